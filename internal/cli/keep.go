package cli

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/pflag"

	"github.com/fullbore-net/fullbore/internal/render/json"
	"github.com/fullbore-net/fullbore/internal/store"
	"github.com/fullbore-net/fullbore/internal/store/sqlite"
	"github.com/fullbore-net/fullbore/internal/units"
	"github.com/fullbore-net/fullbore/result"
)

// keepOptions say how a measuring command keeps what it measured. Every such command has them:
// addFlags, then check before anything is sent, mark before the document is printed, and keep
// at the end.
type keepOptions struct {
	label, note string
	tags        []string
	out         string // folder for files; "" = none
	noStore     bool

	// host is the other end as the user named it; "" = the first of the report's inputs.
	host string
	// headline are the figures that the history shows, the first of them as a curve; nil = the
	// rates, losses and round trips of the runs.
	headline []result.Value

	flags *pflag.FlagSet // of the command; nil = it was called without
	// always: the way is looked for even where nothing is stored, and the command itself puts it into its
	// runs before it prints them.
	always bool

	id   string              // of the report; made once
	ways map[string]*wayLook // by host; see look
}

func (o *keepOptions) addFlags(f *pflag.FlagSet) {
	o.flags = f
	f.StringVar(&o.label, "label", "", "name of what is measured, for the history and the files of --out, e.g. a link")
	f.StringVar(&o.note, "note", "", "a remark that is kept with the result")
	f.StringArrayVar(&o.tags, "tag", nil, "a word to find the result by (repeatable; \"keep\" is never pruned)")
	f.StringVar(&o.out, "out", "", "write the result to files DATE_LABEL_TEST.json, .txt and, of each end's own count, _client.csv, _server.csv in this folder, too; nothing is overwritten")
	f.BoolVar(&o.noStore, "no-store", false, "do not keep the result in the history")
}

// check finds out before anything is sent whether the words can be met.
func (o *keepOptions) check() error {
	for _, t := range o.tags {
		if err := checkTag(t); err != nil {
			return err
		}
	}
	if strings.ContainsAny(o.label, "\n\r\x00") {
		return usagef("--label: one line")
	}
	if o.out == "" {
		return nil
	}
	if st, err := os.Stat(o.out); err != nil {
		return usagef("--out: %v", err)
	} else if !st.IsDir() {
		return usagef("--out %s: it is no folder", o.out)
	}
	probe, err := os.CreateTemp(o.out, ".fullbore-*")
	if err != nil {
		return usagef("--out: %v", err)
	}
	_ = probe.Close()
	_ = os.Remove(probe.Name())
	return nil
}

// checkTag says what is wrong with a tag.
func checkTag(t string) error {
	if t == "" || len(t) > 64 || strings.ContainsAny(t, " ,\t\n\r\x00") {
		return usagef("tag %q: one word of at most 64 bytes, without commas", t)
	}
	return nil
}

// markRun puts the user's words into a run. A run that has a label keeps it: it is its stage's.
func (o *keepOptions) markRun(run *result.Run) {
	if run == nil {
		return
	}
	if run.Label == "" {
		run.Label = o.label
	}
	run.Note = o.note
}

// mark puts the user's words and an identifier into a report.
func (o *keepOptions) mark(rep *result.Report) {
	if o.id == "" {
		o.id = store.NewID(rep.Started)
	}
	rep.ID, rep.Label, rep.Note, rep.Tags = o.id, o.label, o.note, o.tags
	if rep.Kind != "test" && rep.Kind != "delay" { // of those the runs say it
		rep.Asked = askedFor(o.flags)
	}
}

// besides are flags that only print, keep or judge, or say where the peer is: runs that differ in them are alike.
var besides = []string{
	"label", "note", "tag", "out", "no-store", "json", "json-stream", "csv", "plain", "quiet", "report", "junit", "expect", "seed", "dry-run", "record", "resume", "replay",
	"port", "connect-timeout", "queue", "availability", "longest-outage", "reference",
}

// askedFor is what of a command's words bears on the measurement: flags by name, then words but for the last, which
// is the host.
func askedFor(f *pflag.FlagSet) (out []string) {
	if f == nil {
		return nil
	}
	f.Visit(func(x *pflag.Flag) { // in order of the names
		if slices.Contains(besides, x.Name) {
			return
		}
		value := x.Value.String()
		if v, ok := x.Value.(exactFlag); ok {
			value = v.exact()
		}
		out = append(out, "--"+x.Name+"="+value)
	})
	if n := f.NArg(); n > 1 {
		out = append(out, f.Args()[:n-1]...)
	}
	return out
}

// keep stores a report and writes the files of --out. What goes wrong in the history is said
// on stderr and is no failure of the measurement; an error is one of --out. A report in which
// nothing was measured is not kept. It is called once, after printing.
func (e *env) keep(ctx context.Context, o *keepOptions, rep *result.Report) error {
	any := false
	for _, run := range rep.Runs {
		any = any || tells(run)
	}
	if !any {
		o.mark(rep)
		return nil
	}
	if !o.always {
		o.setHops(ctx, e, rep.Runs...)
	}
	o.mark(rep)
	return e.keepEntry(ctx, o, store.Of(rep))
}

// hopsPatience is how long a command waits at its end for the stations of the way, where it was too short for
// them to answer meanwhile.
const hopsPatience = 300 * time.Millisecond

// setHops puts the way into runs, if it is known.
func (o *keepOptions) setHops(ctx context.Context, e *env, runs ...*result.Run) {
	if o.noStore && o.out == "" && !o.always || len(runs) == 0 {
		return
	}
	host := o.host
	if host == "" {
		host = runs[0].Test.Target
	}
	o.look(ctx, e, host, 0)
	hops := o.way(host, hopsPatience)
	for _, run := range runs {
		if run.Hops == nil {
			run.Hops = hops
		}
	}
}

// keepRun is keep for a command whose document is one run.
func (e *env) keepRun(ctx context.Context, o *keepOptions, run *result.Run) error {
	if run == nil || !tells(run) {
		return nil
	}
	o.setHops(ctx, e, run)
	o.markRun(run)
	entry := store.OfRun(run)
	entry.Record.Tags = store.SortTags(o.tags)
	return e.keepEntry(ctx, o, entry)
}

func (e *env) keepEntry(ctx context.Context, o *keepOptions, entry *store.Entry) error {
	if o.host != "" {
		entry.Record.Host = o.host
	}
	if o.headline != nil {
		entry.Record.Figures = o.headline
	}
	if !o.noStore {
		if err := e.storeEntry(ctx, entry); err != nil {
			fmt.Fprintf(e.Err, "fullbore: not kept in the history: %v\n", err)
		}
	}
	if o.out == "" {
		return nil
	}
	return e.writeFiles(o.out, entry)
}

// historyVariable names the file of the history; "off" keeps none.
const historyVariable = "FULLBORE_HISTORY"

// historyLimitVariable is the size that documents may take, e.g. 1G; "off" = any.
const historyLimitVariable = "FULLBORE_HISTORY_MAX"

var errHistoryOff = errors.New("the history is switched off (" + historyVariable + "=off)")

// historyPath is where the history is: $FULLBORE_HISTORY, else history.db in the folder for such
// things: $XDG_STATE_HOME/fullbore, ~/.local/state/fullbore, on Windows %LOCALAPPDATA%\fullbore.
func (e *env) historyPath() (string, error) {
	if e.Getenv == nil {
		return "", errHistoryOff
	}
	if p := e.Getenv(historyVariable); p == "off" {
		return "", errHistoryOff
	} else if p != "" {
		return p, nil
	}
	if dir := e.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "fullbore", "history.db"), nil
	}
	if dir := e.Getenv("LOCALAPPDATA"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "fullbore", "history.db"), nil
	}
	if home := e.Getenv("HOME"); filepath.IsAbs(home) {
		return filepath.Join(home, ".local", "state", "fullbore", "history.db"), nil
	}
	return "", fmt.Errorf("no home folder is known; name a file in %s", historyVariable)
}

// historyLimit is the automatic bound in bytes, 0 = none.
func (e *env) historyLimit() (int64, error) {
	switch v := e.Getenv(historyLimitVariable); v {
	case "":
		return store.DefaultMax, nil
	case "off":
		return 0, nil
	default:
		n, err := units.ParseSize(v)
		if err != nil || n <= 0 {
			return 0, fmt.Errorf("%s=%s: want a size such as 1G, or off", historyLimitVariable, v)
		}
		return int64(n), nil
	}
}

// openHistory opens the history, and makes it where there is none. The caller closes it.
func (e *env) openHistory(ctx context.Context) (store.Store, error) {
	path, err := e.historyPath()
	if err != nil {
		return nil, err
	}
	return sqlite.Open(ctx, path)
}

// storePatience bounds how long keeping may take, waiting for other processes included.
const storePatience = 15 * time.Second

// storeEntry adds to the history and keeps its bound. An interrupt does not stop it: what was
// measured until then is worth keeping.
func (e *env) storeEntry(ctx context.Context, entry *store.Entry) (err error) {
	if _, err := e.historyPath(); errors.Is(err, errHistoryOff) {
		return nil
	}
	defer func() { // a fault of the database must not cost the measurement
		if r := recover(); r != nil {
			err = fmt.Errorf("internal fault: %v\n%s", r, debug.Stack())
		}
	}()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storePatience)
	defer cancel()
	limit, err := e.historyLimit()
	if err != nil {
		return err
	}
	s, err := e.openHistory(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	if err := s.Add(ctx, entry); err != nil {
		return err
	}
	if limit == 0 {
		return nil
	}
	size, err := s.Size(ctx)
	if err != nil || size.Bytes-size.Protected <= limit {
		return err
	}
	gone, err := s.Prune(ctx, store.Bounds{MaxSize: limit / 10 * 9})
	if err == nil && gone.Runs > 0 {
		fmt.Fprintf(e.Err, "fullbore: the history is full (%s): its oldest %d runs were removed; see fullbore prune --help\n", units.ByteSize(limit).IEC(), gone.Runs)
	}
	return err
}

// outFile is one of the files of --out: what follows the name, and what is in it.
type outFile struct {
	ending string
	data   []byte
}

// writeFiles writes the document, its text and each end's own table to files in dir that did not exist.
func (e *env) writeFiles(dir string, entry *store.Entry) error {
	var doc, text bytes.Buffer
	var err error
	if entry.Report != nil {
		err = json.WriteReport(&doc, entry.Report)
	} else {
		err = json.Write(&doc, entry.Run)
	}
	if err == nil {
		err = e.plainEntry(&text, entry)
	}
	files := []outFile{{".json", doc.Bytes()}, {".txt", text.Bytes()}}
	var tables []outFile
	if err == nil {
		tables, err = e.endTables(entry)
	}
	if err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	files = append(files, tables...)
	for n := 1; n <= mostNames; n++ {
		name := filepath.Join(dir, numbered(fileBase(&entry.Record), n))
		var endings []string
		for _, f := range files {
			if err = writeNew(name+f.ending, f.data); err != nil {
				break
			}
			endings = append(endings, f.ending)
		}
		switch {
		case len(endings) == 0 && errors.Is(err, os.ErrExist):
			continue
		case err != nil:
			return fmt.Errorf("--out: %w", err)
		}
		fmt.Fprintf(e.Err, "fullbore: written to %s%s\n", name, strings.Join(endings, ", "))
		return nil
	}
	return fmt.Errorf("--out: %s: there are too many of that name", filepath.Join(dir, fileBase(&entry.Record)))
}

// mostNames is how many files may have one name, told apart by numbers.
const mostNames = 1000

// numbered is the n-th name of a base, from 1.
func numbered(base string, n int) string {
	if n < 2 {
		return base
	}
	return fmt.Sprintf("%s-%d", base, n)
}

// endTables are intervals and totals as each end counted them, one file an end; an end that told nothing has none.
func (e *env) endTables(entry *store.Entry) (out []outFile, err error) {
	var all bytes.Buffer
	if err := e.showAs(&all, "csv", false, loadedOf(entry)); err != nil {
		return nil, err
	}
	rows, err := csv.NewReader(&all).ReadAll()
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	column := slices.Index(rows[0], "end")
	for _, end := range []result.End{result.Client, result.Server} {
		mine := [][]string{rows[0]}
		for _, row := range rows[1:] {
			if row[column] == string(end) {
				mine = append(mine, row)
			}
		}
		if len(mine) == 1 {
			continue
		}
		var b bytes.Buffer
		w := csv.NewWriter(&b)
		w.UseCRLF = true
		if err := w.WriteAll(mine); err != nil {
			return nil, err
		}
		out = append(out, outFile{"_" + string(end) + ".csv", b.Bytes()})
	}
	return out, nil
}

// fileBase is DATE_LABEL_TEST: the start in UTC, what was measured, the command.
func fileBase(r *store.Record) string {
	what := r.Label
	if what == "" {
		what = r.Host
	}
	clean := func(s string) string {
		s = strings.Map(func(c rune) rune {
			if c == '.' || c == '-' || unicode.IsLetter(c) || unicode.IsMark(c) || unicode.IsDigit(c) {
				return c
			}
			return '-'
		}, s)
		for len(s) > mostWord {
			_, n := utf8.DecodeLastRuneInString(s)
			s = s[:len(s)-n]
		}
		return strings.Trim(s, ".-")
	}
	parts := []string{r.Started.UTC().Format("20060102T150405Z")}
	for _, p := range []string{clean(what), clean(r.Kind)} {
		if p != "" {
			parts = append(parts, p)
		}
	}
	return strings.Join(parts, "_")
}

// mostWord bounds a part of a file's name, bytes: systems take 255 for all of it.
const mostWord = 100

// writeNew writes a file that must not exist.
func writeNew(name string, data []byte) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}

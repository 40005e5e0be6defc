package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/fullbore-net/fullbore/internal/importer"
	"github.com/fullbore-net/fullbore/internal/store"
	"github.com/fullbore-net/fullbore/internal/store/sqlite"
	"github.com/fullbore-net/fullbore/internal/units"
	"github.com/fullbore-net/fullbore/result"
)

// What the commands on the history share: opening, filters, finding a run, reading files.

// history opens the history for a command that is about it: its faults are errors. One that cannot be written
// (a medium, another user's) is opened for reading.
func (e *env) history(ctx context.Context) (store.Store, error) {
	s, err := e.openHistory(ctx)
	if !errors.Is(err, store.ErrUnwritable) {
		return s, err
	}
	path, perr := e.historyPath()
	if perr != nil {
		return nil, perr
	}
	reading, rerr := sqlite.OpenReading(ctx, path)
	if rerr != nil {
		return nil, err // the first reason says more
	}
	return reading, nil
}

// onKept finds a kept measurement and does something to it.
func (e *env) onKept(ctx context.Context, word string, do func(s store.Store, id string) error) error {
	s, err := e.history(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	id, err := findID(ctx, s, word)
	if err != nil {
		return err
	}
	return do(s, id)
}

// filterOptions choose runs of the history.
type filterOptions struct {
	host, label, kind, since, until, like string
	tags                                  []string
	limit                                 int
}

func (o *filterOptions) addFlags(f *pflag.FlagSet, limit int) {
	f.StringVar(&o.host, "host", "", "only runs to this host, as it was typed")
	f.StringVar(&o.label, "label", "", "only runs with this label")
	f.StringArrayVar(&o.tags, "tag", nil, "only runs with this tag (repeatable: with all of them)")
	f.StringVar(&o.kind, "kind", "", "only runs of this command: test, delay, diagnose, …")
	f.StringVar(&o.since, "since", "", "only runs since: 2026-11-30, 2026-11-30T14:00, or an age: 7d, 12h")
	f.StringVar(&o.until, "until", "", "only runs before, written as --since")
	f.StringVar(&o.like, "like", "", "only runs like this one (an ID, or last): to its host, with its label, command and settings")
	f.IntVar(&o.limit, "limit", limit, "only the newest so many; 0 = all")
}

// given reports that there is a filter.
func (o *filterOptions) given() bool {
	return o.host != "" || o.label != "" || o.kind != "" || o.since != "" || o.until != "" || o.like != "" || len(o.tags) > 0
}

// list are the records that fit.
func (o *filterOptions) list(ctx context.Context, s store.Store, now time.Time) ([]store.Record, error) {
	f, err := o.filter(now)
	switch {
	case err != nil:
		return nil, err
	case o.like == "":
		return s.List(ctx, f)
	}
	entry, err := find(ctx, s, o.like)
	if err != nil {
		return nil, err
	}
	r := &entry.Record
	for _, same := range []struct {
		flag  string
		asked *string
		is    string
	}{{"host", &f.Host, r.Host}, {"label", &f.Label, r.Label}, {"kind", &f.Kind, r.Kind}} {
		if *same.asked != "" && *same.asked != same.is {
			return nil, usagef("--like %s: its %s is %q, and --%s %s asks for another", o.like, same.flag, same.is, same.flag, *same.asked)
		}
		*same.asked = same.is
	}
	most := f.Limit
	f.Settings, f.Limit = r.Settings, 0
	records, err := s.List(ctx, f)
	records = slices.DeleteFunc(records, func(x store.Record) bool { return seriesOf(&x) != seriesOf(r) }) // an empty label is no filter
	if most > 0 && len(records) > most {
		records = records[len(records)-most:]
	}
	return records, err
}

func (o *filterOptions) filter(now time.Time) (store.Filter, error) {
	f := store.Filter{Host: o.host, Label: o.label, Kind: o.kind, Tags: o.tags, Limit: o.limit}
	if o.limit < 0 {
		return f, usagef("--limit %d: must not be negative", o.limit)
	}
	var err error
	if f.Since, err = moment(o.since, now); err != nil {
		return f, usagef("--since %s: %v", o.since, err)
	}
	if f.Until, err = moment(o.until, now); err != nil {
		return f, usagef("--until %s: %v", o.until, err)
	}
	return f, nil
}

// moment reads a date, a date with a time (both local), RFC 3339, or an age. "" = zero.
func moment(s string, now time.Time) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	for _, layout := range []string{"2006-01-02", "2006-01-02T15:04", "2006-01-02 15:04", "2006-01-02T15:04:05", "2006-01-02 15:04:05", time.RFC3339} {
		if t, err := time.ParseInLocation(layout, s, time.Local); err == nil {
			return t, nil
		}
	}
	age, err := parseAge(s)
	if err != nil {
		return time.Time{}, errors.New("want a date such as 2026-11-30 or an age such as 7d")
	}
	return now.Add(-age), nil
}

// parseAge reads a duration that may be in days or weeks.
func parseAge(s string) (time.Duration, error) {
	for suffix, unit := range map[string]time.Duration{"d": 24 * time.Hour, "w": 7 * 24 * time.Hour, "y": 365 * 24 * time.Hour} {
		if n, ok := strings.CutSuffix(s, suffix); ok {
			var v float64
			var rest string
			if k, _ := fmt.Sscanf(n+" ", "%g%s", &v, &rest); k != 1 || v < 0 || v > 1e5 {
				return 0, errors.New("want an age such as 7d")
			}
			return time.Duration(v * float64(unit)), nil
		}
	}
	return units.ParseDuration(s)
}

// loaded is a run or report that was named on a command line.
type loaded struct {
	Record store.Record
	Runs   []*result.Run
	Report *result.Report // nil for a plain run
	Entry  *store.Entry
}

// load finds what word names: a run of the history (ID, the beginning of one, "last",
// "last~N"), or a file: fullbore's own documents, iperf3's or NTTTCP's. A name with a path or an
// ending is a file; "-" is standard input.
func (e *env) load(ctx context.Context, word string) (*loaded, error) {
	if word == "-" || strings.ContainsAny(word, `/\.`) || isFile(word) {
		return e.loadFile(word)
	}
	s, err := e.history(ctx)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	entry, err := find(ctx, s, word)
	if err != nil {
		return nil, err
	}
	return loadedOf(entry), nil
}

func isFile(word string) bool {
	st, err := os.Stat(word)
	return err == nil && st.Mode().IsRegular()
}

func loadedOf(entry *store.Entry) *loaded {
	return &loaded{Record: entry.Record, Runs: entry.AllRuns(), Report: entry.Report, Entry: entry}
}

// loadFile reads one document from a file; several plain runs are taken together.
func (e *env) loadFile(name string) (*loaded, error) {
	data, err := e.readFile(name)
	if err != nil {
		return nil, err
	}
	docs, err := importer.Decode(name, data)
	if err != nil {
		return nil, usagef("%v", err)
	}
	entries := entriesOf(docs, data)
	out := loadedOf(entries[0])
	for _, more := range entries[1:] {
		if more.Report != nil || out.Report != nil {
			return nil, usagef("%s: it holds several reports: import it, and name one by its ID", name)
		}
		out.Runs = append(out.Runs, more.Run)
	}
	return out, nil
}

func (e *env) readFile(name string) ([]byte, error) {
	if name == "-" {
		return io.ReadAll(e.In)
	}
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, usagef("%v", err)
	}
	return data, nil
}

// keptLine is an entry as fullbore export writes it.
type keptLine struct {
	Record   store.Record    `json:"record"`
	Document json.RawMessage `json:"document"`           // run or report
	Original []byte          `json:"original,omitempty"` // file that it was imported from, base64
}

// entriesOf makes entries of the documents of one file.
func entriesOf(docs []importer.Document, data []byte) []*store.Entry {
	var out []*store.Entry
	for _, d := range docs {
		var entry *store.Entry
		if d.Report != nil {
			entry = store.Of(d.Report)
		} else {
			entry = store.OfRun(d.Run)
		}
		var kept keptLine
		if d.Kept != nil && json.Unmarshal(d.Kept, &kept) == nil && kept.Record.ID != "" {
			kept.Record.Bytes = 0
			entry.Record, entry.Original = kept.Record, kept.Original
		}
		if d.Run != nil && d.Run.Imported != nil && d.Kept == nil {
			entry.Original = data
		}
		out = append(out, entry)
	}
	return out
}

// find reads one entry; what is not there is a usage error.
func find(ctx context.Context, s store.Store, word string) (*store.Entry, error) {
	id, err := findID(ctx, s, word)
	if err != nil {
		return nil, err
	}
	return s.Get(ctx, id)
}

func findID(ctx context.Context, s store.Store, word string) (string, error) {
	id, err := s.Find(ctx, word)
	if errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrAmbiguous) {
		return "", &UsageError{Msg: err.Error(), Hints: []string{"fullbore history lists what is there; the last one is \"last\""}}
	}
	return id, err
}

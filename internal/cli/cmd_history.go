package cli

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fullbore-net/fullbore/internal/render/screen"
	"github.com/fullbore-net/fullbore/internal/store"
	"github.com/fullbore-net/fullbore/internal/units"
	"github.com/fullbore-net/fullbore/result"
)

const historyLong = `List what was measured, the newest last, and how it went on: runs of the same host,
label, command and settings are one series, drawn as a small curve of its first figure. What
differs from the run before in its series is named: other hosts (kernel, driver, card, release:
fullbore compare says what), another way.

Every run of a measuring command is kept, unless --no-store is given; the drop-ins
(iperf3, ntttcp) keep nothing. The history is one file: $FULLBORE_HISTORY, else
fullbore/history.db under $XDG_STATE_HOME or ~/.local/state (Windows: %LOCALAPPDATA%).
FULLBORE_HISTORY=off keeps nothing. It stays below 256 MiB by itself (a test of both directions
takes about 11 kB), the oldest going first; FULLBORE_HISTORY_MAX=1G is another bound, off none.
The records of soaks (soak/ beside it, 22 MB a day) have the same bound of their own.
A run with the tag "keep" is never removed. A history that cannot be written can be read.`

const historyExample = `  fullbore history
  fullbore history --host 192.0.2.2 --since 7d
  fullbore history --label uplink --kind test --csv > uplink.csv
  fullbore history --like last       the series of the newest run
  fullbore show last                 the newest run, whole
  fullbore show 01KB7 --iperf3-json  another, as iperf3 -J prints it`

func newHistoryCmd(e *env) *cobra.Command {
	var o filterOptions
	var asJSON, asCSV bool
	cmd := &cobra.Command{
		Use:     "history",
		Short:   "List earlier measurements and how they went on",
		Long:    historyLong,
		Example: historyExample,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return e.runHistory(cmd.Context(), &o, asJSON, asCSV)
		},
	}
	o.addFlags(cmd.Flags(), 50)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print records, one JSON document")
	cmd.Flags().BoolVar(&asCSV, "csv", false, "print records as CSV")
	cmd.MarkFlagsMutuallyExclusive("json", "csv")
	return cmd
}

func (e *env) runHistory(ctx context.Context, o *filterOptions, asJSON, asCSV bool) error {
	s, err := e.history(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	records, err := o.list(ctx, s, e.Now())
	if err != nil {
		return err
	}
	switch {
	case asJSON:
		if records == nil {
			records = []store.Record{}
		}
		enc := json.NewEncoder(e.Out)
		enc.SetIndent("", "  ")
		return enc.Encode(map[string]any{"records": records})
	case asCSV:
		return writeRecords(e.Out, records)
	case len(records) == 0:
		fmt.Fprintln(e.Out, "Nothing is kept that fits.")
		return nil
	}
	size, err := s.Size(ctx)
	if err != nil {
		return err
	}
	e.printHistory(records, size)
	if files, bytes := e.soakRecords(); files > 0 {
		fmt.Fprintf(e.Out, "Records of soaks: %d, %s.\n", files, units.ByteSize(bytes))
	}
	return nil
}

// seriesOf is what makes records comparable.
func seriesOf(r *store.Record) string {
	return strings.Join([]string{r.Host, r.Label, r.Kind, r.Settings}, "\x00")
}

func (e *env) printHistory(records []store.Record, size store.Size) {
	w := e.Out
	zone := time.Local
	rows := [][]string{{"id", "when", "host", "label", "what", "result", ""}}
	before := map[string]*store.Record{} // the last one of each series
	for i := range records {
		r := &records[i]
		was := before[seriesOf(r)]
		if complete(r) {
			before[seriesOf(r)] = r
		}
		rows = append(rows, []string{
			screen.Clean(shortID(r.ID, records)), r.Started.In(zone).Format("2006-01-02 15:04"), screen.Cut(screen.Clean(r.Host), 24), screen.Cut(screen.Clean(r.Label), 16), whatOf(r), figuresText(r), remarks(r, was),
		})
	}
	printColumns(w, rows)
	curves := series(records)
	if len(curves) > 0 {
		fmt.Fprintln(w)
		printColumns(w, curves)
	}
	fmt.Fprintf(w, "\n%d kept in all, %s of documents, %s on disk. fullbore show ID prints one.\n", size.Runs, units.ByteSize(size.Bytes), units.ByteSize(size.FileBytes))
}

// shortID is as much of an ID as tells it apart from the others shown, in steps of four letters.
func shortID(id string, all []store.Record) string {
	for n := 10; n < len(id); n += 4 {
		same := 0
		for i := range all {
			if strings.HasPrefix(all[i].ID, id[:n]) {
				same++
			}
		}
		if same == 1 {
			return id[:n]
		}
	}
	return id
}

// whatOf says in short what was done.
func whatOf(r *store.Record) string {
	parts := []string{r.Kind}
	if r.Transport != "" && (r.Kind == "test" || r.Kind == "soak") { // others choose it, and more than one
		parts = append(parts, r.Transport)
	}
	if r.Direction != "" && r.Kind == "test" {
		parts = append(parts, r.Direction)
	}
	if r.Streams > 1 && r.Kind == "test" {
		parts = append(parts, fmt.Sprintf("×%d", r.Streams))
	}
	if r.Source != "fullbore" && r.Source != "" {
		parts = append(parts, "("+r.Source+")")
	}
	return screen.Clean(strings.Join(parts, " "))
}

// figuresText is the first figures and what was found.
func figuresText(r *store.Record) string {
	var parts []string
	if r.Verdict != "" {
		parts = append(parts, r.Verdict)
	}
	for i, f := range r.Figures {
		if i == 3 {
			break
		}
		parts = append(parts, f.Name+" "+figureText(f))
	}
	return screen.Clean(strings.Join(parts, ", "))
}

// complete reports that r did not break off.
func complete(r *store.Record) bool {
	return slices.Contains([]string{"done", result.Pass, result.Fail, result.Inconclusive}, r.Outcome)
}

// remarks are what differs from the run before in its series (nil = there is none), the outcome where it is not
// plain, tags and the note.
func remarks(r, before *store.Record) string {
	var parts []string
	if !complete(r) { // it may have ended before it knew
		before = nil
	}
	if before != nil && before.Facts != "" && r.Facts != "" && before.Facts != r.Facts {
		parts = append(parts, "≠hosts")
	}
	if before != nil && before.Hops != "" && r.Hops != "" && before.Hops != r.Hops {
		parts = append(parts, "≠way")
	}
	if r.Outcome != "done" && r.Outcome != result.Pass {
		parts = append(parts, screen.Clean(r.Outcome))
	}
	for _, t := range r.Tags {
		parts = append(parts, "#"+screen.Clean(t))
	}
	if r.Note != "" {
		parts = append(parts, "“"+screen.Cut(screen.Clean(r.Note), 40)+"”")
	}
	return strings.Join(parts, " ")
}

// figureText prints a figure in its unit.
func figureText(v result.Value) string {
	switch v.Unit {
	case "bit/s":
		return units.BitRate(v.Value + 0.5).String()
	case "s":
		return millisText(v.Value)
	case "ratio":
		return strconv.FormatFloat(100*v.Value, 'g', 3, 64) + " %"
	case "bytes":
		if v.Value < 1<<20 { // packets, segments: to the byte
			return fmt.Sprintf("%.0f bytes", v.Value)
		}
		return units.ByteSize(v.Value).IEC()
	}
	if v.Value >= 1000 {
		return strings.TrimSpace(fmt.Sprintf("%.0f %s", v.Value, v.Unit))
	}
	return strings.TrimSpace(strconv.FormatFloat(v.Value, 'g', 4, 64) + " " + v.Unit)
}

// sparkWidth is of the curve of a series.
const sparkWidth = 30

// series are the curves of those that have at least two records.
func series(records []store.Record) [][]string {
	type line struct {
		first  *store.Record
		name   string
		values []result.Value
	}
	var order []string
	lines := map[string]*line{}
	for i := range records {
		r := &records[i]
		h := r.Headline()
		if h == nil {
			continue
		}
		key := seriesOf(r) + "\x00" + h.Name + "\x00" + h.Unit
		l := lines[key]
		if l == nil {
			l = &line{first: r, name: h.Name}
			lines[key] = l
			order = append(order, key)
		}
		l.values = append(l.values, *h)
	}
	var out [][]string
	for _, key := range order {
		l := lines[key]
		if len(l.values) < 2 {
			continue
		}
		numbers := make([]float64, len(l.values))
		for i, v := range l.values {
			numbers[i] = v.Value
		}
		unit := l.values[0].Unit
		low, high := slices.Min(numbers), slices.Max(numbers)
		out = append(out, []string{
			screen.Cut(screen.Clean(l.first.Host), 24), screen.Cut(screen.Clean(l.first.Label), 16), whatOf(l.first), l.name,
			screen.Spark(numbers, sparkWidth, high),
			fmt.Sprintf("%s … %s, last %s, %d runs", figureText(result.Value{Value: low, Unit: unit}), figureText(result.Value{Value: high, Unit: unit}), figureText(l.values[len(l.values)-1]), len(numbers)),
		})
	}
	return out
}

// printColumns prints rows with columns as wide as they must be.
func printColumns(w io.Writer, rows [][]string) {
	var width []int
	for _, r := range rows {
		for i, c := range r {
			if i == len(width) {
				width = append(width, 0)
			}
			width[i] = max(width[i], screen.Width(c))
		}
	}
	for _, r := range rows {
		var b strings.Builder
		for i, c := range r {
			if width[i] > 0 {
				b.WriteString(screen.Left(c, width[i]) + "  ")
			}
		}
		fmt.Fprintln(w, strings.TrimRight(b.String(), " "))
	}
}

// recordColumns are those of CSV; docs/history.md explains them.
var recordColumns = []string{
	"id", "started", "kind", "host", "label", "tags", "protocol", "transport", "direction", "streams", "figure", "value", "unit",
	"verdict", "outcome", "summary", "settings", "facts", "hops", "source", "tool", "note",
}

// writeRecords writes one row for each figure of each record, in plain numbers; a record without figures has
// one row with none.
func writeRecords(w io.Writer, records []store.Record) error {
	c := csv.NewWriter(w)
	if err := c.Write(recordColumns); err != nil {
		return err
	}
	for i := range records {
		r := &records[i]
		figures := r.Figures
		if len(figures) == 0 {
			figures = []result.Value{{}}
		}
		for _, f := range figures {
			value := ""
			if f.Name != "" {
				value = strconv.FormatFloat(f.Value, 'g', -1, 64)
			}
			if err := c.Write([]string{
				r.ID, r.Started.UTC().Format(time.RFC3339Nano), r.Kind, r.Host, r.Label, strings.Join(r.Tags, " "), r.Protocol, r.Transport, r.Direction, strconv.Itoa(r.Streams),
				f.Name, value, f.Unit, r.Verdict, r.Outcome, r.Summary, r.Settings, r.Facts, r.Hops, r.Source, r.Tool, r.Note,
			}); err != nil {
				return err
			}
		}
	}
	c.Flush()
	return c.Error()
}

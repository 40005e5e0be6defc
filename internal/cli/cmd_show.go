package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fullbore-net/fullbore/internal/importer"
	"github.com/fullbore-net/fullbore/internal/render"
	"github.com/fullbore-net/fullbore/internal/render/csv"
	"github.com/fullbore-net/fullbore/internal/render/iperf3view"
	jsonrender "github.com/fullbore-net/fullbore/internal/render/json"
	"github.com/fullbore-net/fullbore/internal/render/junit"
	"github.com/fullbore-net/fullbore/internal/render/screen"
	"github.com/fullbore-net/fullbore/result"
)

// showOptions are the words of `fullbore show`.
type showOptions struct {
	forms    map[string]*bool // by name of the output
	report   string
	original bool
	record   bool
	junit    bool
	verbose  bool
}

const showLong = `Print a kept measurement again: as text, or in any other form that fullbore knows.

ID is one of those that fullbore history lists, or the beginning of one (four letters or
more), "last", or "last~N" for the N-th before it. It may also be a file: a document of
fullbore --json, or a result of iperf3 or NTTTCP (see fullbore import --help), which is shown
without being kept.

A report of several runs has them one after the other in the forms that know single runs only.
--original prints an imported file as it was, byte for byte; so does the form that the file
is in, when it holds one test.`

const showExample = `  fullbore show last
  fullbore show 01KB7Q --report page.html
  fullbore show last~1 --json | jq .summary
  fullbore show last --iperf3-json > run.json      as iperf3 -J
  fullbore show result.xml                         a file of NTTTCP, as text`

func newShowCmd(e *env) *cobra.Command {
	o := &showOptions{forms: map[string]*bool{}}
	cmd := &cobra.Command{
		Use:     "show ID",
		Short:   "Print a kept measurement again, in any form",
		Long:    showLong,
		Example: showExample,
		Args:    cobra.ExactArgs(1),
		RunE:    func(cmd *cobra.Command, args []string) error { return e.runShow(cmd.Context(), o, args[0]) },
	}
	f := cmd.Flags()
	exclusive := []string{"original", "record", "junit"}
	for _, out := range render.Outputs {
		if out.Name == "html" { // it is a file: --report
			continue
		}
		on := new(bool)
		o.forms[out.Name] = on
		f.BoolVar(on, out.Name, false, out.Doc)
		exclusive = append(exclusive, out.Name)
	}
	f.BoolVar(&o.original, "original", false, "the file that it was imported from, byte for byte")
	f.BoolVar(&o.record, "record", false, "what the history knows of it, as JSON: figures, tags, hashes of settings and hosts")
	f.BoolVar(&o.junit, "junit", false, "what was judged (accept, --expect, a soak), as JUnit's XML for CI pipelines")
	f.BoolVarP(&o.verbose, "verbose", "V", false, "in iperf3's and NTTTCP's forms: as with their -V")
	f.StringVar(&o.report, "report", "", "write it to FILE.html: one page with plots")
	cmd.MarkFlagsMutuallyExclusive(exclusive...)
	return cmd
}

func (e *env) runShow(ctx context.Context, o *showOptions, word string) error {
	if err := checkReport(o.report); err != nil {
		return err
	}
	l, err := e.load(ctx, word)
	if err != nil {
		return err
	}
	if o.report != "" {
		rep := l.Report
		if rep == nil {
			rep = reportOf(l)
		}
		if err := e.writeReport(o.report, rep); err != nil {
			return err
		}
	}
	form := ""
	for name, on := range o.forms {
		if *on {
			form = name
		}
	}
	switch {
	case o.original && l.Entry.Original == nil:
		return usagef("show: %s was not imported: there is no file of it", word)
	case o.original:
		_, err := e.Out.Write(l.Entry.Original)
		return err
	case o.record:
		enc := json.NewEncoder(e.Out)
		enc.SetIndent("", "  ")
		return enc.Encode(&l.Record)
	case o.junit:
		rep := l.Report
		if rep == nil {
			rep = reportOf(l)
		}
		return junit.WriteReport(e.Out, rep)
	case form == "" && o.report != "":
		return nil
	case form == "" || form == "plain":
		return e.showPlain(l)
	}
	return e.showAs(e.Out, form, o.verbose, l)
}

// reportOf is a report over the plain runs of l.
func reportOf(l *loaded) *result.Report {
	rep := &result.Report{
		Schema: result.Schema, ID: l.Record.ID, Label: l.Record.Label, Note: l.Record.Note, Tags: l.Record.Tags,
		Kind: l.Record.Kind, Started: l.Record.Started, Inputs: []string{l.Record.Host}, Runs: l.Runs,
		Verdicts: []result.Verdict{}, Items: []result.Item{}, Notices: []result.Notice{}, Summary: l.Record.Summary,
	}
	if len(l.Runs) > 0 {
		rep.Tool, rep.Err = l.Runs[0].Tool, l.Runs[0].Err
	}
	return rep
}

// showPlain prints the text for people, with a head that says what it is.
func (e *env) showPlain(l *loaded) error {
	r := &l.Record
	head := whatOf(r)
	if !r.Started.IsZero() { // a file need not say it
		head = r.Started.Local().Format("2006-01-02 15:04:05") + "  " + head
	}
	if r.Host != "" {
		head += " to " + r.Host
	}
	fmt.Fprintf(e.Out, "%s  %s\n", screen.Clean(r.ID), screen.Clean(head))
	for _, line := range [][2]string{{"label", r.Label}, {"note", r.Note}, {"tags", strings.Join(r.Tags, " ")}} {
		if line[1] != "" {
			fmt.Fprintf(e.Out, "%s: %s\n", line[0], screen.Clean(line[1]))
		}
	}
	fmt.Fprintln(e.Out)
	if l.Report == nil && len(l.Runs) > 1 {
		return e.plainReport(e.Out, reportOf(l))
	}
	return e.plainEntry(e.Out, l.Entry)
}

// ownForm is the form of package render that a format of package importer is in.
var ownForm = map[string]string{
	importer.Iperf3JSON: "iperf3-json", importer.Iperf3Stream: "iperf3-stream", importer.Iperf3Text: "iperf3",
	importer.NTTTCPXML: "ntttcp-xml", importer.NTTTCPJSON: "ntttcp-json", importer.NTTTCPText: "ntttcp",
	importer.WindowsXML: "ntttcp-windows-xml", importer.WindowsText: "ntttcp-windows",
}

// asItWas is the file that l was imported from, where it is in that form and holds nothing but
// this test; nil otherwise. No printing could be more faithful.
func asItWas(form string, l *loaded) []byte {
	if l.Entry.Original == nil || ownForm[l.Record.Source] != form {
		return nil
	}
	docs, err := importer.Decode("original", l.Entry.Original)
	if err != nil || len(docs) != 1 {
		return nil
	}
	return l.Entry.Original
}

// showAs prints l in one of the forms of package render.
func (e *env) showAs(w io.Writer, form string, verbose bool, l *loaded) error {
	if data := asItWas(form, l); data != nil {
		_, err := w.Write(data)
		return err
	}
	switch form {
	case "json":
		if l.Report != nil {
			return jsonrender.WriteReport(w, l.Report)
		}
		if len(l.Runs) > 1 {
			return jsonrender.WriteReport(w, reportOf(l))
		}
	case "csv": // one table
		c := csv.New(w)
		for _, run := range l.Runs {
			for _, ev := range result.Unfold(run) {
				c.Event(ev)
			}
			c.Finish(run)
		}
		return c.Err()
	}
	var errs []error
	for _, run := range l.Runs {
		errs = append(errs, render.Print(w, form, run, render.Options{Err: e.Err, Verbose: verbose, Release: releaseOf(run)}))
	}
	return errors.Join(errs...)
}

// releaseOf is the layout that a run of iperf3 had.
func releaseOf(run *result.Run) iperf3view.Release {
	if run.Imported == nil || run.Wire == nil {
		return ""
	}
	_, number, _ := strings.Cut(run.Wire.Version, " ")
	var minor int
	if n, _ := fmt.Sscanf(number, "3.%d", &minor); n == 1 && minor < 17 {
		return iperf3view.R312
	}
	return ""
}

package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/fullbore-net/fullbore/internal/render/plain"
	"github.com/fullbore-net/fullbore/internal/render/screen"
	"github.com/fullbore-net/fullbore/internal/store"
	"github.com/fullbore-net/fullbore/result"
)

// plainEntry prints a kept document as text for people: what the command that made it said,
// without its live part.
func (e *env) plainEntry(w io.Writer, entry *store.Entry) error {
	if entry.Run != nil {
		return plain.Write(w, entry.Run, e.plainOptions(w))
	}
	rep := entry.Report
	if rep.Kind == "diagnose" && len(rep.Stages) > 0 {
		there := *e
		there.Out = w
		if w != e.Out {
			there.Terminal = false
		}
		view := there.newDiagnoseView(&diagnoseOptions{replay: "history", plainLines: true}, strings.Join(rep.Inputs, " "))
		view.final(rep)
		return nil
	}
	return e.plainReport(w, rep)
}

// plainReport prints a report run by run, then what it says of the whole.
func (e *env) plainReport(w io.Writer, rep *result.Report) error {
	o := e.plainOptions(w)
	for i, run := range rep.Runs {
		if i > 0 {
			fmt.Fprintln(w)
		}
		if title := stageTitle(rep, i); title != "" {
			fmt.Fprintln(w, screen.Clean(title))
		}
		if err := plain.Write(w, run, o); err != nil {
			return err
		}
	}
	if rep.Summary != "" && (len(rep.Runs) != 1 || rep.Runs[0].Summary != rep.Summary) {
		fmt.Fprintf(w, "\n%s\n", screen.Clean(rep.Summary))
	}
	e.keptTables(w, rep)
	e.answers(w, rep)
	for _, v := range rep.Verdicts {
		fmt.Fprintf(w, "\n%s (%s): %s\n", screen.Clean(v.Code), screen.Clean(v.Certainty), screen.Clean(v.Summary))
		for _, text := range v.Evidence {
			fmt.Fprintf(w, "  · %s\n", screen.Clean(text))
		}
		for _, text := range v.Advice {
			fmt.Fprintf(w, "  → %s\n", screen.Clean(text))
		}
	}
	for _, i := range rep.Items {
		fmt.Fprintf(w, "%s: %s: %s\n", screen.Clean(i.Result), screen.Clean(i.ID), screen.Clean(strings.Join(i.Reasons, "; ")))
	}
	for _, n := range rep.Notices {
		fmt.Fprintf(w, "note: %s\n", screen.Clean(n.Text))
	}
	if rep.Err != nil {
		fmt.Fprintf(w, "broke off: %s\n", screen.Clean(rep.Err.Text))
	}
	if rep.Next != nil {
		fmt.Fprintf(w, "next: %s\n      # %s\n", screen.Clean(rep.Next.Command), screen.Clean(rep.Next.Why))
	}
	return nil
}

// stageTitle is the heading of the stage that made the i-th run, "" when there are no stages.
func stageTitle(rep *result.Report, i int) string {
	for _, s := range rep.Stages {
		if s.Run != nil && *s.Run == i {
			return fmt.Sprintf("%s: %s", s.Name, s.Title)
		}
	}
	return ""
}

// plainOptions are those of a terminal where w is the command's own output.
func (e *env) plainOptions(w io.Writer) plain.Options {
	if w != e.Out {
		return plain.Options{}
	}
	o := plain.Options{Color: e.Terminal && !e.NoColor}
	if e.Terminal && e.Size != nil {
		o.Width, _ = e.Size()
	}
	return o
}

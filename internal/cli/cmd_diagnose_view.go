package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/fullbore-net/fullbore/internal/conclude"
	"github.com/fullbore-net/fullbore/internal/diagnose"
	"github.com/fullbore-net/fullbore/internal/render/screen"
	"github.com/fullbore-net/fullbore/internal/units"
	"github.com/fullbore-net/fullbore/result"
)

// diagnoseView shows a diagnosis: its stages as they go on, and the report at the end.
type diagnoseView struct {
	*stageView
	host string
	o    *diagnoseOptions
}

func (e *env) newDiagnoseView(o *diagnoseOptions, host string) *diagnoseView {
	v := &diagnoseView{stageView: e.newStageView(!o.json && !o.stream && !o.silent, o.plainLines), o: o, host: host}
	v.table.rate = diagnose.RateOf
	return v
}

// head says what begins and how much traffic it makes.
func (v *diagnoseView) head(ctx context.Context) {
	if !v.shows {
		return
	}
	b := v.o.budget()
	fmt.Fprintf(v.e.Out, "%s\n%s\n\n", v.paint("1", fmt.Sprintf("Diagnosing the path to %s, at most %s", screen.Clean(v.host), units.FormatDuration(b.Total))), v.e.volumeText(ctx, v.o, v.host))
}

// final is the closing screen: the sentence, the evidence, what to do, what could not be
// seen.
func (v *diagnoseView) final(rep *result.Report) {
	w := v.e.Out
	line := v.line
	fmt.Fprintln(w)
	if len(rep.Verdicts) == 0 && rep.Err != nil {
		fmt.Fprintln(w, v.paint("1", "Nothing was measured.")) // why follows on stderr
		return
	}
	for _, l := range screen.Wrap(screen.Clean(rep.Summary), v.width) {
		fmt.Fprintln(w, v.paint("1", l))
	}
	if v.o.replay != "" { // else it stands above, as it grew
		fmt.Fprintf(w, "\n%s\n", v.paint("1", "what was measured"))
		for _, d := range diagnose.History(rep) {
			v.table.print(v.stageView, &d)
		}
	}
	notes := 0
	for i, x := range rep.Verdicts {
		if x.Note {
			notes++
			continue
		}
		head := fmt.Sprintf("%s (%s)", x.Code, x.Certainty)
		if twice(rep.Verdicts, x.Code) {
			head = fmt.Sprintf("%s, %s (%s)", x.Code, x.Direction, x.Certainty)
		}
		fmt.Fprintf(w, "\n%s\n", v.paint("1", head))
		if i > 0 {
			line("  ", x.Summary)
		}
		for _, ev := range x.Evidence {
			line("  · ", ev)
		}
		if x.Reach != nil && x.Measured != nil && *x.Reach > *x.Measured {
			line("  → ", fmt.Sprintf("mended, it would carry about %s instead of %s", units.BitRate(*x.Reach+0.5), units.BitRate(*x.Measured+0.5)))
		}
	}
	if notes > 0 {
		fmt.Fprintf(w, "\n%s\n", v.paint("1", "worth knowing"))
		for _, x := range rep.Verdicts {
			if x.Note {
				line("  · ", fmt.Sprintf("%s (%s, %s)", strings.TrimSuffix(x.Summary, "."), x.Code, x.Certainty))
			}
		}
	}
	v.todo(rep)
	if len(rep.Unseen) > 0 && len(rep.Verdicts) > 0 {
		fmt.Fprintf(w, "\n%s\n", v.paint("1", "what I could not see"))
		for _, u := range rep.Unseen {
			line("  · ", u)
		}
	}
	for _, n := range rep.Notices {
		line("note: ", n.Text)
	}
	if rep.Err != nil && diagnose.Conclusive(rep.Verdicts) {
		line("broke off: ", rep.Err.Text)
	}
}

// twice reports that a cause is named of more than one direction.
func twice(vs []result.Verdict, code string) bool {
	n := 0
	for _, v := range vs {
		if v.Code == code && !v.Note && v.Direction != "" {
			n++
		}
	}
	return n > 1
}

// todo lists advice, of causes first, each once.
func (v *diagnoseView) todo(rep *result.Report) {
	seen := map[string]bool{}
	first := true
	for _, x := range rep.Verdicts {
		if x.Code == diagnose.Inconclusive && rep.Err != nil {
			continue // first of all it must not break off
		}
		for _, a := range x.Advice {
			if seen[a] {
				continue
			}
			seen[a] = true
			if first {
				fmt.Fprintf(v.e.Out, "\n%s\n", v.paint("1", "what to do"))
				first = false
			}
			v.advice(a)
		}
	}
}

// advice writes a line of advice. A command stands on a line of its own and is never broken, so
// that it can be copied whole.
func (v *diagnoseView) advice(text string) {
	a := conclude.AdviceOf(screen.Clean(text))
	says := strings.TrimRight(a.Text, ": ")
	switch {
	case a.Where != "" && says != "":
		says = a.Where + ": " + says
	case a.Where != "":
		says = a.Where
	}
	if len(a.Commands) > 0 && says != "" {
		says += ":"
	}
	if says != "" {
		v.line("  · ", says)
	}
	for i, c := range a.Commands {
		head := "      "
		if says == "" && i == 0 {
			head = "  · "
		}
		fmt.Fprintln(v.e.Out, head+v.paint("1", c))
	}
}

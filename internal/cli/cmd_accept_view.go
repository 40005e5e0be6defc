package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fullbore-net/fullbore/internal/render/screen"
	"github.com/fullbore-net/fullbore/internal/suite"
	"github.com/fullbore-net/fullbore/internal/units"
	"github.com/fullbore-net/fullbore/result"
)

// Colours of the results.
var acceptColors = map[string]string{result.Pass: "32", result.Fail: "1;31", result.Inconclusive: "33"}

// acceptFinal is the last screen: the items with figure and limit, why not all passed, findings,
// what to do, and the hash of the document.
func acceptFinal(v *stageView, rep *result.Report) {
	w := v.e.Out
	figure := max(v.width-9-24-15, 20)
	fmt.Fprintln(w, v.paint("2", "  "+screen.Left("item", 9)+screen.Left("", 24)+screen.Left("measured / limit", figure)+"result"))
	for _, i := range rep.Items {
		lines := acceptFigures(&i)
		if len(lines) == 0 {
			lines = []string{""}
		}
		title := i.Title
		if i.Direction != "" {
			title += ", " + i.Direction
		}
		for k, l := range lines {
			if k > 0 {
				fmt.Fprintln(w, strings.TrimRight("  "+screen.Left("", 33)+screen.Cut(l, figure), " "))
				continue
			}
			fmt.Fprintln(w, "  "+screen.Left(i.ID, 9)+screen.Left(screen.Cut(title, 23), 24)+screen.Left(screen.Cut(l, figure-1), figure)+v.paint(acceptColors[i.Result], strings.ToUpper(i.Result)))
		}
	}
	first := true
	for _, i := range rep.Items {
		if i.Result == result.Pass {
			continue
		}
		if first {
			fmt.Fprintf(w, "\n%s\n", v.paint("1", "why not"))
			first = false
		}
		for _, r := range acceptReasons(&i) {
			v.line("  "+screen.Left(i.ID, 9), r)
		}
	}
	a := rep.Acceptance
	if a == nil {
		return
	}
	section := func(head string, lines []string) {
		if len(lines) == 0 {
			return
		}
		fmt.Fprintf(w, "\n%s\n", v.paint("1", head))
		for _, l := range lines {
			v.line("  · ", l)
		}
	}
	section("findings", a.Findings)
	if a.Capture != nil {
		v.captureLines(a.Capture)
	}
	if len(a.Todo) > 0 {
		fmt.Fprintf(w, "\n%s\n", v.paint("1", "what to do"))
		for _, t := range a.Todo {
			v.line("  · ", t.Where+": "+t.Text)
			for _, c := range t.Commands {
				fmt.Fprintln(w, "      "+screen.Clean(c))
			}
		}
	}
	section("what could not be seen", rep.Unseen)
	fmt.Fprintf(w, "\nSHA-256 of the document (--json): %s\n", rep.SHA256())
}

// acceptReasons are the sentences that bear on an item's result.
func acceptReasons(i *result.Item) (out []string) {
	met := map[string]bool{}
	for _, c := range i.Criteria {
		if c.Result == result.Pass || c.Result == "" {
			met[c.Reason] = true
		}
	}
	for _, r := range i.Reasons {
		if !met[r] {
			out = append(out, r)
		}
	}
	return out
}

// acceptFigures are an item's figures with their limits, a line each.
func acceptFigures(i *result.Item) (out []string) {
	for _, c := range i.Criteria {
		text := strings.ReplaceAll(c.Figure, "_", " ") + " "
		if c.Value == nil {
			text += "not known"
		} else {
			text += suite.Spell(c.Unit, *c.Value)
		}
		if c.Bound != nil {
			text += " / " + map[string]string{">=": "≥ ", "<=": "≤ "}[c.Op] + suite.Spell(c.Unit, *c.Bound)
		}
		if c.Result != "" && c.Result != result.Pass && i.Result != result.Pass && len(i.Criteria) > 1 {
			text += " ✗"
		}
		out = append(out, text)
	}
	if len(out) == 0 && len(i.Checks) > 0 {
		n := 0
		for _, c := range i.Checks {
			if c.Result == result.Pass {
				n++
			}
		}
		out = append(out, fmt.Sprintf("%d of %d checks in order", n, len(i.Checks)))
	}
	return out
}

// captureLines tell what a third point saw.
func (v *stageView) captureLines(c *result.CaptureCheck) {
	fmt.Fprintf(v.e.Out, "\n%s\n", v.paint("1", "third point"))
	for _, f := range c.Flows {
		v.line("  · ", f.Reason)
	}
	if len(c.Missing) > 0 {
		v.line("  · ", "Not in the capture: "+strings.Join(c.Missing, ", ")+".")
	}
}

// checkSuite says what a suite file asks for.
func (e *env) checkSuite(o *acceptOptions, s suite.Suite) error {
	name := o.file
	if name == "" {
		name = "the default suite"
	}
	if s.Link > 0 {
		if err := s.Validate(); err != nil {
			return &UsageError{Msg: strings.ReplaceAll(err.Error(), "\n", "; ")}
		}
	}
	link := "given with --link"
	if s.Link > 0 {
		link = s.Link.String()
	}
	fmt.Fprintf(e.Out, "%s is in order: %s, link %s, limits of %s, %d items.\n", screen.Clean(name), screen.Clean(s.Name), link, s.Class, len(s.Items))
	for _, it := range s.Items {
		var demands []string
		for _, d := range it.Demands {
			demands = append(demands, d.Text())
		}
		text := fmt.Sprintf("  %-4s %-24s", it.ID, it.Kind)
		if it.Kind != suite.LossFree {
			text += fmt.Sprintf(" %6s × %d", units.FormatDuration(it.Time), it.Rounds)
		}
		fmt.Fprintln(e.Out, strings.TrimRight(text+"   "+strings.Join(demands, "; "), " "))
	}
	return nil
}

// replayAccept shows a stored document again, and sets it beside a capture or the other end's.
func (e *env) replayAccept(o *acceptOptions) error {
	rep, err := readAccept("--replay", o.replay)
	if err != nil {
		return err
	}
	if o.capture != "" {
		if err := captureCheck(rep, o.capture); err != nil {
			return usagef("--capture %s: %v", o.capture, err)
		}
	}
	if o.swapped != "" {
		there, err := readAccept("--swapped", o.swapped)
		if err != nil {
			return err
		}
		rep.Items = slices.DeleteFunc(rep.Items, func(i result.Item) bool { return i.ID == "swapped" })
		rep.Acceptance.Swapped = nil
		if err := suite.Swapped(rep, there); err != nil {
			return usagef("--swapped %s: %v", o.swapped, err)
		}
	}
	rep.Summary = suite.Closing(rep)
	view := e.newStageView(!o.json && !o.silent, true)
	return e.closeMethod(&o.methodOptions, methodJob{
		kind: "accept", final: acceptFinal, write: func(rep *result.Report) error { return e.writeAccept(o, rep) },
		failed:   func(rep *result.Report) bool { return suite.Total(rep) == result.Fail },
		answered: func(rep *result.Report) bool { return suite.Total(rep) == result.Pass },
	}, view, rep, nil)
}

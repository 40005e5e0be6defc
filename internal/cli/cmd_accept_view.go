package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fullbore-net/fullbore/internal/conclude"
	"github.com/fullbore-net/fullbore/internal/method"
	"github.com/fullbore-net/fullbore/internal/render/screen"
	"github.com/fullbore-net/fullbore/internal/suite"
	"github.com/fullbore-net/fullbore/internal/units"
	"github.com/fullbore-net/fullbore/result"
)

// Colours of the results.
var acceptColors = map[string]string{result.Pass: "32", result.Fail: "1;31", result.Inconclusive: "33"}

// acceptStep is the line of a finished step: of the search for the path's packet size what it showed.
func acceptStep(v *stageView, d *method.Done) {
	if !strings.HasPrefix(d.Step.Name, suite.MTUPrefix) {
		v.table.print(v, d)
		return
	}
	text := "made"
	switch {
	case d.Err != nil:
		text = "broke off: " + d.Err.Text
	case d.Run != nil && len(d.Run.Probes) > 0:
		var ways []string
		for i := range d.Run.Probes {
			for k := range d.Run.Probes[i].MTU {
				ways = append(ways, conclude.MTUText(&d.Run.Probes[i].MTU[k]))
			}
		}
		text = strings.Join(ways, "; ")
		if text == "" {
			text = "no packet of any size was answered"
		}
	}
	v.line("  "+screen.Left(screen.Cut(d.Step.Title, v.table.titles), v.table.titles)+"  ", text)
}

// acceptFinal is the last screen: the items with figure and limit, why not all passed, findings,
// what to do, and the hash of the document.
func acceptFinal(v *stageView, rep *result.Report) {
	w := v.e.Out
	ids := 9
	for _, i := range rep.Items {
		ids = max(ids, screen.Width(i.ID)+2)
	}
	figure := max(v.width-ids-24-15, 20)
	fmt.Fprintln(w, v.paint("2", "  "+screen.Left("item", ids)+screen.Left("", 24)+screen.Left("measured / limit", figure)+"result"))
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
				fmt.Fprintln(w, strings.TrimRight("  "+screen.Left("", ids+24)+screen.Cut(l, figure), " "))
				continue
			}
			fmt.Fprintln(w, "  "+screen.Left(i.ID, ids)+screen.Left(screen.Cut(title, 23), 24)+screen.Left(screen.Cut(l, figure-1), figure)+v.paint(acceptColors[i.Result], strings.ToUpper(i.Result)))
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
			v.line("  "+screen.Left(i.ID, ids), r)
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
	section("what it holds for", a.Scope)
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
		n, unknown := 0, 0
		for _, c := range i.Checks {
			switch c.Result {
			case result.Pass:
				n++
			case "":
				unknown++
			}
		}
		text := fmt.Sprintf("%d of %d checks in order", n, len(i.Checks))
		if unknown > 0 {
			text += fmt.Sprintf(", %d not known", unknown)
		}
		out = append(out, text)
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
		switch {
		case it.Kind == suite.LossFree:
		case it.Auto:
			text += fmt.Sprintf(" %6s × auto", units.FormatDuration(it.Time))
		default:
			text += fmt.Sprintf(" %6s × %d", units.FormatDuration(it.Time), it.Rounds)
		}
		switch {
		case it.Streams == 0:
			text += ", as many streams as the knee"
		case it.Streams > 1:
			text += fmt.Sprintf(", %d streams", it.Streams)
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
	broke := strings.HasPrefix(rep.Summary, notFinished)
	rep.Summary = suite.Closing(rep)
	if broke {
		rep.Summary = notFinished + rep.Summary
	}
	view := e.newStageView(!o.json && !o.silent, true)
	return e.closeMethod(&o.methodOptions, methodJob{
		kind: "accept", final: acceptFinal, write: func(rep *result.Report) error { return e.writeAccept(o, rep) },
		failed:   func(rep *result.Report) bool { return suite.Total(rep) == result.Fail },
		answered: func(rep *result.Report) bool { return suite.Total(rep) == result.Pass },
	}, view, rep, nil)
}

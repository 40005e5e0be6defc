package html

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/fullbore-net/fullbore/internal/conclude"
	"github.com/fullbore-net/fullbore/internal/render/svg"
	"github.com/fullbore-net/fullbore/internal/units"
	"github.com/fullbore-net/fullbore/result"
)

// acceptView is what the page of an acceptance has beside others.
type acceptView struct {
	Items              []acceptItem
	Inputs             []tile
	Findings           []string
	Advice             []adviceGroup
	Checks             []acceptCheck
	MoreChecks         int // that passed and are only in the document
	Third              *thirdView
	Swapped            []string
	Document, Settings string // SHA-256
	ID                 string // of the document
	Trial              bool

	Plans      []acceptPlan
	Conditions []tile
	Rates      []acceptRate
	Interfaces []acceptInterface
	Scope      []string
}

type acceptItem struct {
	ID, Title, Result, Word string
	Rows                    []acceptRow
	Reasons, Flags          []string
	Rounds                  []tile
	Plots                   []plot
	Runs                    []string // numbers of the stages
}

type acceptRow struct{ Figure, Limit, Basis, Value string }

type acceptCheck struct{ Item, Name, Text, Result, Word string }

type thirdView struct {
	Head  string
	Lines []string
}

// mostChecks is how many checks are listed before those that passed are only counted.
const mostChecks = 400

// acceptance makes the view; nil for other reports.
func acceptance(rep *result.Report) *acceptView {
	a := rep.Acceptance
	if a == nil {
		return nil
	}
	v := &acceptView{Findings: cleaned(a.Findings), Settings: clean(a.Settings), Trial: a.Trial, Document: rep.SHA256(), ID: clean(rep.ID)}
	for i := range rep.Items {
		v.Items = append(v.Items, itemOf(rep, &rep.Items[i]))
		for _, c := range rep.Items[i].Checks {
			if c.Result == result.Pass && len(v.Checks) > mostChecks {
				v.MoreChecks++ // nobody reads further ones that are in order
				continue
			}
			v.Checks = append(v.Checks, acceptCheck{clean(cmp.Or(c.Run, rep.Items[i].ID)), spoken(clean(c.Check)), clean(c.Text), clean(c.Result), cmp.Or(resultWord(c.Result), "told")})
		}
	}
	v.Inputs = agreed(rep)
	v.record(rep)
	for _, t := range a.Todo {
		where := clean(t.Where)
		line := adviceLine{Text: clean(t.Text), Commands: cleaned(t.Commands)}
		if n := len(v.Advice); n > 0 && v.Advice[n-1].Where == where {
			v.Advice[n-1].Lines = append(v.Advice[n-1].Lines, line)
			continue
		}
		v.Advice = append(v.Advice, adviceGroup{Where: where, Lines: []adviceLine{line}})
	}
	if c := a.Capture; c != nil {
		v.Third = &thirdView{Head: fmt.Sprintf("%s: %s packets, %s of them not understood.", clean(c.File), conclude.Grouped(c.Packets), conclude.Grouped(c.Skipped))}
		if c.Cut {
			v.Third.Head += " The file ends in the middle of a packet."
		}
		for _, f := range c.Flows {
			v.Third.Lines = append(v.Third.Lines, clean(f.Reason))
		}
		if len(c.Missing) > 0 {
			v.Third.Lines = append(v.Third.Lines, "Not in the capture: "+strings.Join(cleaned(c.Missing), ", ")+".")
		}
	}
	for _, s := range a.Swapped {
		v.Swapped = append(v.Swapped, clean(s.Reason))
	}
	return v
}

// agreed are the inputs of an acceptance.
func agreed(rep *result.Report) (out []tile) {
	a := rep.Acceptance
	add := func(name, value, note string) {
		if value != "" {
			out = append(out, tile{name, clean(value), note})
		}
	}
	add("link", units.BitRate(a.Link).String(), linkNote(a.LinkFrom))
	if len(rep.Runs) > 0 {
		add("up", endName(rep, result.Client)+" → "+endName(rep, result.Server), "down is the way back")
	}
	add("contract", a.Contract, "")
	add("suite", a.Suite, "")
	add("limits of", a.Class, "where the suite says none")
	rounds := fmt.Sprint(a.Rounds)
	if a.Adaptive {
		rounds = fmt.Sprintf("3 to %d", a.Rounds)
	}
	if a.Trial {
		rounds += ", a trial"
	}
	note := "the median counts"
	if a.Adaptive {
		note = "until the throughput settled; the median counts"
	}
	add("rounds of TCP", rounds, note)
	add("order of a round", "random", fmt.Sprintf("seed %d", a.Seed))
	if a.Parallel != nil {
		add("streams of items with several", fmt.Sprint(*a.Parallel), map[string]string{
			"given": "as was asked for", "knee": "by the knee, which was looked for first", "default": "the default",
		}[a.ParallelFrom])
	}
	add("packet size", fmt.Sprintf("%d bytes", a.MTU), "IP")
	add("ideal of TCP", svg.BitRate.Format(a.Ideal), "payload that such a link carries")
	if a.RTT != nil {
		add("round trip, empty path", conclude.Time(*a.RTT), "least")
	}
	if a.Self != nil {
		add("this machine alone", svg.BitRate.Format(*a.Self), "over its loopback")
	}
	if a.Alarm != nil {
		add("alarm below", svg.BitRate.Format(*a.Alarm), "")
	}
	if a.Streams != nil {
		add("connections to fill it", fmt.Sprint(*a.Streams), "")
	}
	if len(rep.Inputs) > 0 {
		add("command", "fullbore "+rep.Kind+" "+strings.Join(rep.Inputs, " "), "")
	}
	return out
}

// resultWord is a result as the page shows it.
func resultWord(r string) string { return strings.ToUpper(clean(r)) }

// plainID is an id that may stand in links.
func plainID(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' {
			return r
		}
		return '-'
	}, s)
}

func itemOf(rep *result.Report, i *result.Item) acceptItem {
	out := acceptItem{ID: plainID(i.ID), Title: clean(i.Title), Result: clean(i.Result), Word: resultWord(i.Result), Reasons: cleaned(i.Reasons), Flags: cleaned(i.Flags)}
	if i.Direction != "" {
		out.Title += ", " + clean(i.Direction)
	}
	for k := range i.Criteria {
		c := &i.Criteria[k]
		row := acceptRow{Figure: figureWord(c.Figure), Limit: "reported", Value: "not known"}
		if c.Bound != nil {
			row.Limit = map[string]string{">=": "≥ ", "<=": "≤ "}[c.Op] + figureText(c.Unit, *c.Bound)
			row.Basis = clean(c.Basis)
		} else if c.Op != "" {
			row.Limit = "not known"
		}
		if c.Value != nil {
			row.Value = figureText(c.Unit, *c.Value)
		}
		out.Rows = append(out.Rows, row)
		if len(c.Rounds) > 1 {
			var texts []string
			for _, r := range c.Rounds {
				texts = append(texts, figureText(c.Unit, r))
			}
			out.Rounds = append(out.Rounds, tile{Name: row.Figure, Value: strings.Join(texts, " · ")})
		}
		if x := criterionPlot(&out, c, k); x != nil {
			out.Plots = append(out.Plots, *x)
		}
	}
	if len(out.Rows) == 0 {
		row := acceptRow{Figure: "–", Limit: "–", Value: "–"}
		if len(i.Checks) > 0 {
			row = acceptRow{Figure: "checks", Limit: "no fault", Value: checksText(i.Checks)}
		}
		out.Rows = []acceptRow{row}
	}
	for k, s := range rep.Stages {
		if s.Run != nil && slices.Contains(i.From, *s.Run) {
			out.Runs = append(out.Runs, fmt.Sprint(k+1))
		}
	}
	return out
}

// checksText counts checks: "6 in order, 1 not, 2 not known".
func checksText(all []result.Check) string {
	n := map[string]int{}
	for _, c := range all {
		n[c.Result]++
	}
	text := fmt.Sprintf("%d in order", n[result.Pass])
	if bad := n[result.Fail] + n[result.Inconclusive]; bad > 0 {
		text += fmt.Sprintf(", %d not", bad)
	}
	if n[""] > 0 {
		text += fmt.Sprintf(", %d not known", n[""])
	}
	return text
}

func figureWord(word string) string { return strings.ReplaceAll(clean(word), "_", " ") }

// figureText prints a figure with its unit.
func figureText(unit string, v float64) string {
	switch unit {
	case "bit/s":
		return svg.BitRate.Format(v)
	case "ratio":
		switch {
		case v == 0:
			return "0"
		case v < 0.0005:
			return strings.Replace(fmt.Sprintf("%.2g", v), "e-0", "e-", 1)
		case v >= 0.9 && v < 1:
			return fmt.Sprintf("%.2f %%", 100*v)
		}
		return fmt.Sprintf("%.3g %%", 100*v)
	case "s":
		return conclude.Time(v)
	case "bytes":
		return fmt.Sprintf("%.0f bytes", v)
	}
	return conclude.Grouped(int64(v + 0.5))
}

// criterionPlot draws the rounds of a figure beside its limit: of rates and delays, which have a
// scale that the eye can read.
func criterionPlot(item *acceptItem, c *result.Criterion, k int) *plot {
	unit, ok := map[string]svg.Unit{"bit/s": svg.BitRate, "s": svg.Seconds}[c.Unit]
	if !ok || c.Value == nil || c.Bound == nil {
		return nil
	}
	word := figureWord(c.Figure)
	b := svg.Bars{ID: fmt.Sprintf("item-%s-%d", item.ID, k), Title: item.ID + ", " + word, Unit: unit}
	for n, v := range c.Rounds {
		label := word
		if len(c.Rounds) > 1 {
			label = fmt.Sprintf("%s, round %d", word, n+1)
		}
		b.Rows = append(b.Rows, svg.Bar{Label: label, Value: v, Color: 1})
	}
	if len(b.Rows) == 0 {
		b.Rows = append(b.Rows, svg.Bar{Label: word, Value: *c.Value, Color: 1})
	}
	limit := "limit, at least"
	if c.Op == "<=" {
		limit = "limit, at most"
	}
	b.Rows = append(b.Rows, svg.Bar{Label: limit, Value: *c.Bound, Color: 6})
	b.Desc = fmt.Sprintf("%s %s; %s %s.", word, figureText(c.Unit, *c.Value), limit, figureText(c.Unit, *c.Bound))
	return &plot{ID: b.ID, Text: b.Desc, Drawing: drawn(b.Draw())}
}

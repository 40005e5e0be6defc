package html

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/fullbore-net/fullbore/internal/conclude"
	"github.com/fullbore-net/fullbore/internal/render/svg"
	"github.com/fullbore-net/fullbore/result"
)

// sidesPlot draws goodput (or what was sent) of both sides over their rounds, which each side counts from
// its first, so that it shows how far the sides lie apart for the spread within each.
func sidesPlot(rep *result.Report) *plot {
	if rep.Comparison == nil {
		return nil
	}
	panel := svg.Panel{Y: svg.Axis{Label: "goodput", Unit: svg.BitRate}, Height: 170}
	var says []string
	name := "Goodput of both sides"
	for _, m := range rep.Comparison.Metrics {
		if m.Metric != "goodput" && m.Metric != "sent" || m.A.Median == nil || m.B.Median == nil || len(panel.Series) >= 4 {
			continue
		}
		for i, side := range []*result.Rounds{&m.A, &m.B} {
			var ps []svg.Point
			for k, v := range side.Values {
				if v != nil {
					x := float64(k + 1)
					ps = append(ps, svg.Point{X: x, To: x, Y: *v})
				}
			}
			series := strings.TrimSpace([]string{"A", "B"}[i] + " " + clean(m.Direction))
			panel.Series = append(panel.Series, svg.Series{Name: series, Kind: svg.LineDots, Points: ps, Color: len(panel.Series) + 1, Dash: i == 1})
		}
		if m.Metric == "sent" {
			name, panel.Y.Label = "What both sides sent", "sent"
		}
		says = append(says, fmt.Sprintf("%s: median of A %s, of B %s: %s", clean(m.Direction), svg.BitRate.Format(*m.A.Median), svg.BitRate.Format(*m.B.Median), clean(m.Verdict)))
	}
	if len(panel.Series) == 0 {
		return nil
	}
	f := svg.Figure{ID: "sides", Title: name, X: svg.Axis{Label: "round of each side", Whole: true}, Panels: []svg.Panel{panel}, Desc: strings.Join(says, "; ") + "."}
	return &plot{ID: f.ID, Heading: "Both sides, round by round", Text: f.Desc, Drawing: drawn(f.Draw())}
}

// comparedTables are the figures of both sides, and what else is not alike.
func comparedTables(rep *result.Report) (out []table) {
	c := rep.Comparison
	if c == nil {
		return nil
	}
	if len(c.Metrics) > 0 {
		t := table{
			ID: "figures", Heading: "Figures", Head: []string{"figure", "A", "B", "shift", "interval", "p", "B is"},
			Text: fmt.Sprintf("Medians. A shift counts from %.3g %% on. p is corrected (Holm): the directions of goodput, which decide, are one family, all other figures another.", 100*c.Threshold),
		}
		for i := range c.Metrics {
			t.Rows = append(t.Rows, comparedRow(&c.Metrics[i]))
		}
		out = append(out, t)
	}
	if len(c.Differences) > 0 {
		t := table{ID: "differences", Heading: "What differs besides", Head: []string{"what", "of", "A", "B"}}
		for _, d := range c.Differences {
			of := "the hosts or the path"
			switch {
			case d.End != "":
				of = string(d.End)
			case d.Setting:
				of = "the test"
			}
			t.Rows = append(t.Rows, []string{clean(d.What), of, clean(d.A), clean(d.B)})
		}
		out = append(out, t)
	}
	return out
}

func comparedRow(m *result.Compared) []string {
	name := strings.TrimSpace(clean(m.Metric) + " " + clean(m.Direction))
	value := func(v *float64) string {
		if v == nil {
			return "–"
		}
		return amount(m.Unit, *v)
	}
	shift, interval, p := amount(m.Unit, m.Shift), "–", "–"
	if m.Share != nil {
		shift = fmt.Sprintf("%+.1f %%", 100**m.Share)
	}
	if m.Low != nil && m.High != nil {
		interval = amount(m.Unit, *m.Low) + " … " + amount(m.Unit, *m.High)
		if m.Share != nil && m.A.Median != nil && *m.A.Median > 0 {
			interval = fmt.Sprintf("%+.1f … %+.1f %%", 100**m.Low / *m.A.Median, 100**m.High / *m.A.Median)
		}
	}
	if !m.TooFew {
		p = strconv.FormatFloat(m.Holm, 'g', 2, 64)
	}
	return []string{name, value(m.A.Median), value(m.B.Median), shift, interval, p, clean(m.Verdict)}
}

// amount is a value in the unit of the document, for people.
func amount(unit string, v float64) string {
	sign := ""
	if v < 0 {
		sign = "-"
	}
	switch unit {
	case "bit/s":
		return sign + svg.BitRate.Format(math.Abs(v))
	case "ratio":
		return fmt.Sprintf("%.3g %%", 100*v)
	case "s":
		return conclude.Time(v)
	}
	return strings.TrimSpace(strconv.FormatFloat(v, 'g', 3, 64) + " " + clean(unit))
}

// connPlot draws how many connections came about of those that were asked for.
func connPlot(rep *result.Report) *plot {
	c := rep.ConnRate
	if c == nil {
		return nil
	}
	var opened, failed, asked []svg.Point
	for i := range c.Steps {
		s := &c.Steps[i]
		if s.Asked <= 0 || !(s.Seconds > 0) {
			continue
		}
		at := func(y float64) svg.Point { return svg.Point{X: s.Asked, To: s.Asked, Y: y} }
		opened, asked = append(opened, at(s.Rate)), append(asked, at(s.Asked))
		if n := failures(s); n > 0 {
			failed = append(failed, at(float64(n)/s.Seconds))
		}
	}
	if len(opened) == 0 {
		return nil
	}
	for _, ps := range [][]svg.Point{opened, failed, asked} {
		sortPoints(ps)
	}
	panel := svg.Panel{Y: svg.Axis{Label: "connections a second"}, Height: 180, Series: []svg.Series{
		{Name: "opened", Kind: svg.LineDots, Points: opened, Color: 1}, {Name: "asked for", Kind: svg.Line, Dash: true, Points: asked, Color: 6},
	}}
	if len(failed) > 0 {
		panel.Series = append(panel.Series, svg.Series{Name: "failed", Kind: svg.LineDots, Points: failed, Color: 2})
	}
	f := svg.Figure{ID: "connections", Title: "Connections a second", X: svg.Axis{Label: "asked for a second", Scale: svg.Log2}, Panels: []svg.Panel{panel}}
	f.Desc = "None failed."
	if len(failed) > 0 {
		f.Desc = fmt.Sprintf("Some failed from %s a second on.", svg.Plain.Format(failed[0].X))
	}
	return &plot{ID: f.ID, Heading: "How many come about?", Text: f.Desc, Drawing: drawn(f.Draw())}
}

func failures(s *result.ConnRateStep) (n int64) {
	for _, f := range s.Failed {
		n += f.Count
	}
	return n
}

// connTables are the steps of connrate, in the order of measuring.
func connTables(rep *result.Report) []table {
	c := rep.ConnRate
	if c == nil || len(c.Steps) == 0 {
		return nil
	}
	t := table{ID: "steps", Heading: "Step by step", Head: []string{"asked", "for", "tried", "opened", "failed", "connect p50", "p99", "SYNs sent again", "why"}}
	for i := range c.Steps {
		s := &c.Steps[i]
		asked, p50, p99, again := "as fast as it goes", "–", "–", "–"
		if s.Asked > 0 {
			asked = svg.Plain.Format(s.Asked) + "/s"
		}
		if s.Connect != nil {
			p50, p99 = conclude.Time(s.Connect.P50), conclude.Time(s.Connect.P99)
		}
		if s.SYNAgain != nil {
			again = conclude.Grouped(*s.SYNAgain)
		}
		var why []string
		for _, f := range s.Failed {
			why = append(why, fmt.Sprintf("%s × %d", clean(f.Code), f.Count))
		}
		t.Rows = append(t.Rows, []string{
			asked, conclude.Time(s.Seconds), conclude.Grouped(s.Tried), conclude.Grouped(s.Opened), conclude.Grouped(failures(s)), p50, p99, again, strings.Join(why, ", "),
		})
	}
	return []table{t}
}

// connTiles are the figures of the answer.
func connTiles(c *result.ConnRate) []tile {
	reached := tile{"without a failure", "none", clean("connections a second, to " + c.Target)}
	if c.Reached != nil {
		reached.Value = svg.Plain.Format(*c.Reached)
	}
	out := []tile{reached}
	if c.Limit != "" {
		out = append(out, tile{"beyond it they fail by", spoken(clean(c.Limit)), clean(string(c.Where))})
	}
	return out
}

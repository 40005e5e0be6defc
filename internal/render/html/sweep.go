package html

import (
	"fmt"
	"strings"

	"github.com/fullbore-net/fullbore/internal/render/svg"
	"github.com/fullbore-net/fullbore/result"
)

// sweepPlots draws each curve of a sweep: the medians, the range of the rounds, of windows what
// they allow and what the system's own did.
func sweepPlots(rep *result.Report) (out []plot) {
	if rep.Sweep == nil {
		return nil
	}
	for i := range rep.Sweep.Parts {
		if p := sweepPlot(rep, i); p != nil {
			out = append(out, *p)
		}
	}
	return out
}

func sweepPlot(rep *result.Report, at int) *plot {
	part := &rep.Sweep.Parts[at]
	var medians, low, high, predicted, own []svg.Point
	unit := svg.Plain
	if part.Axis != "streams" {
		unit = svg.Bytes
	}
	for _, q := range rep.Curve {
		if q.Series != part.Series || q.Direction != part.Direction {
			continue
		}
		if q.X <= 0 {
			own = append(own, svg.Point{Y: q.Y})
			continue
		}
		medians = append(medians, svg.Point{X: q.X, To: q.X, Y: q.Y})
		if q.Low != nil && q.High != nil && len(q.Values) > 1 {
			low, high = append(low, svg.Point{X: q.X, To: q.X, Y: *q.Low}), append(high, svg.Point{X: q.X, To: q.X, Y: *q.High})
		}
		if q.Predicted != nil {
			predicted = append(predicted, svg.Point{X: q.X, To: q.X, Y: *q.Predicted})
		}
	}
	if len(medians) < 2 {
		return nil
	}
	for _, ps := range [][]svg.Point{medians, low, high, predicted} {
		sortPoints(ps)
	}
	label := map[string]string{"streams": "streams", "window": "window of a stream", "length": "bytes of a write"}[part.Axis]
	id := fmt.Sprintf("sweep-%d", at+1)
	panel := svg.Panel{Y: svg.Axis{Label: "all streams together", Unit: svg.BitRate}, Height: 200, Series: []svg.Series{
		{Name: "median", Kind: svg.LineDots, Points: medians, Color: 1, Labels: true},
	}}
	add := func(s svg.Series) {
		if len(s.Points) > 0 {
			panel.Series = append(panel.Series, s)
		}
	}
	add(svg.Series{Name: "least of the rounds", Kind: svg.Points, Points: low, Color: 3})
	add(svg.Series{Name: "most of the rounds", Kind: svg.Points, Points: high, Color: 4})
	add(svg.Series{Name: "what the window allows", Kind: svg.Line, Dash: true, Points: predicted, Color: 6})
	if len(own) > 0 {
		first, last := medians[0].X, medians[len(medians)-1].X
		add(svg.Series{Name: "the system's own window", Kind: svg.Line, Color: 2, Points: []svg.Point{{X: first, To: first, Y: own[0].Y}, {X: last, To: last, Y: own[0].Y}}})
	}
	name := func(x float64) string {
		if x == 0 {
			return "none"
		}
		return unit.Format(x)
	}
	says := []string{
		"knee (Kneedle) " + name(part.Knee), "a doubling gains less than 5 % from " + name(part.Marginal), "best " + name(part.Best),
		"cheapest within 3 % of it " + name(part.Cheapest),
	}
	f := svg.Figure{ID: id, Title: fmt.Sprintf("Throughput %s over %s", clean(part.Direction), label), X: svg.Axis{Label: label, Unit: unit, Scale: svg.Log2}, Panels: []svg.Panel{panel}}
	f.Desc = strings.Join(says, "; ") + "."
	if part.HostKnee != "" {
		f.Desc += " Of the knee: " + clean(part.HostKnee) + "."
	}
	return &plot{ID: id, Heading: f.Title, Text: f.Desc, Drawing: drawn(f.Draw())}
}

// mostLabels is how many rounds have their rates written beside them: more lie over the lines.
const mostLabels = 3

// roundsPlot draws the rates of the rounds one after the other.
func roundsPlot(rep *result.Report) *plot {
	panel := svg.Panel{Y: svg.Axis{Label: "goodput", Unit: svg.BitRate}, Height: 160}
	var says []string
	for _, r := range rep.Rounds {
		if r.Unit != "bit/s" || r.Median == nil || len(panel.Series) >= 4 {
			continue
		}
		var ps []svg.Point
		for i, v := range r.Values {
			if v != nil {
				ps = append(ps, svg.Point{X: float64(i + 1), To: float64(i + 1), Y: *v})
			}
		}
		if len(ps) < 2 {
			continue
		}
		name := strings.TrimSpace(clean(r.Of) + " " + clean(r.Figure))
		panel.Series = append(panel.Series, svg.Series{Name: name, Kind: svg.LineDots, Points: ps, Color: len(panel.Series) + 1, Dash: len(panel.Series)%2 == 1, Labels: len(ps) <= mostLabels})
		text := fmt.Sprintf("%s: median %s of %s (%s … %s)", name, svg.BitRate.Format(*r.Median), plural(float64(len(ps)), "round"), svg.BitRate.Format(*r.Min), svg.BitRate.Format(*r.Max))
		if r.CoV != nil {
			text += fmt.Sprintf(", CoV %.2f %%", 100**r.CoV)
		}
		if r.Low != nil {
			text += fmt.Sprintf(", %.1f %% interval of the median %s … %s", 100**r.Level, svg.BitRate.Format(*r.Low), svg.BitRate.Format(*r.High))
		}
		if len(r.Marked) > 0 {
			text += ", far from the others: " + strings.Trim(strings.ReplaceAll(fmt.Sprint(r.Marked), " ", ", "), "[]")
		}
		says = append(says, text)
	}
	if len(panel.Series) == 0 {
		return nil
	}
	f := svg.Figure{ID: "rounds", Title: "Rounds", X: svg.Axis{Label: "round", Whole: true}, Panels: []svg.Panel{panel}, Desc: strings.Join(says, "; ") + "."}
	return &plot{ID: "rounds", Heading: "Rounds: how much does it differ?", Text: f.Desc, Drawing: drawn(f.Draw())}
}

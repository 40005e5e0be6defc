package html

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/fullbore-net/fullbore/internal/conclude"
	"github.com/fullbore-net/fullbore/internal/render/svg"
	"github.com/fullbore-net/fullbore/result"
)

// tried are the stages of a direction whose name is the direction and something that match
// accepts, with their runs.
func tried(rep *result.Report, d result.Direction, match func(what string) bool) (out []*result.Run) {
	for _, s := range rep.Stages {
		what, ok := strings.CutPrefix(s.Name, string(d)+"-")
		if !ok || !match(what) || s.Run == nil || *s.Run < 0 || *s.Run >= len(rep.Runs) {
			continue
		}
		if r := rep.Runs[*s.Run]; r.Sum(d) != nil {
			out = append(out, r)
		}
	}
	return out
}

func isNumber(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

// knee draws the rate over the number of streams.
func knee(rep *result.Report) *plot {
	if rep.Sweep != nil || len(rep.Findings) > 0 { // they have plots of their own; a search's steps are numbered, too
		return nil
	}
	f := svg.Figure{
		ID: "knee", Title: "Throughput over the number of streams",
		X: svg.Axis{Label: "streams", Scale: svg.Log2},
	}
	p := svg.Panel{Y: svg.Axis{Label: "all streams together", Unit: svg.BitRate}, Height: 180}
	var says []string
	enough := false
	for i, d := range []result.Direction{result.Up, result.Down} {
		var ps []svg.Point
		for _, r := range tried(rep, d, isNumber) {
			if n := float64(r.Test.Streams); n > 0 {
				ps = append(ps, svg.Point{X: n, To: n, Y: conclude.HeadlineOf(r, d).BPS})
			}
		}
		if len(ps) == 0 {
			continue
		}
		enough = enough || len(ps) > 1
		sortPoints(ps)
		p.Series = append(p.Series, svg.Series{Name: string(d), Kind: svg.LineDots, Points: ps, Color: 1 + 2*i, Dash: i > 0, Labels: true})
		first, best := ps[0], slices.MaxFunc(ps, func(a, b svg.Point) int { return cmp.Compare(a.Y, b.Y) })
		say := fmt.Sprintf("%s: %s with %s", d, svg.BitRate.Format(first.Y), plural(first.X, "stream"))
		switch {
		case len(ps) == 1:
		case best.X == first.X:
			say += ", no more with more"
		default:
			say += fmt.Sprintf(", %s with %s", svg.BitRate.Format(best.Y), plural(best.X, "stream"))
		}
		says = append(says, say)
	}
	if !enough {
		return nil
	}
	f.Panels = []svg.Panel{p}
	f.Desc = strings.Join(says, "; ") + ". A sum that grows with the streams is a limit of each flow; one that does not is a limit of all."
	return &plot{ID: "knee", Heading: "Streams: where is the knee?", Text: f.Desc, Drawing: drawn(f.Draw())}
}

func plural(n float64, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%.0f %ss", n, word)
}

func sortPoints(ps []svg.Point) {
	slices.SortStableFunc(ps, func(a, b svg.Point) int { return cmp.Compare(a.X, b.X) })
}

// windows draws the rate over the window, measured and as the round trip predicts.
func windows(rep *result.Report) *plot {
	if rep.Sweep != nil {
		return nil
	}
	rtt, from := emptyRTT(rep)
	if rtt <= 0 {
		return nil
	}
	f := svg.Figure{ID: "window", Title: "Throughput over the window", X: svg.Axis{Label: "window of one stream", Unit: svg.Bytes, Scale: svg.Log2}}
	p := svg.Panel{Y: svg.Axis{Label: "one stream", Unit: svg.BitRate, Scale: svg.Log10}, Height: 190}
	lo, hi := math.Inf(1), 0.0
	var says []string
	for i, d := range []result.Direction{result.Up, result.Down} {
		var ps []svg.Point
		for _, r := range tried(rep, d, func(w string) bool { return strings.HasPrefix(w, "window-") }) {
			if w := float64(r.Test.Window); w > 0 {
				ps = append(ps, svg.Point{X: w, To: w, Y: conclude.HeadlineOf(r, d).BPS})
			}
		}
		if len(ps) == 0 {
			continue
		}
		var own []svg.Point
		for _, r := range tried(rep, d, func(w string) bool { return w == "1" }) {
			if w := windowSeen(r, d); w > 0 {
				own = append(own, svg.Point{X: w, To: w, Y: conclude.HeadlineOf(r, d).BPS})
			}
		}
		for _, q := range append(slices.Clone(ps), own...) {
			lo, hi = min(lo, q.X), max(hi, q.X)
		}
		sortPoints(ps)
		p.Series = append(p.Series,
			svg.Series{Name: "measured " + string(d) + ", window asked for", Kind: svg.LineDots, Points: ps, Color: 1 + 2*i, Labels: true},
			svg.Series{Name: string(d) + ", the system's own window", Kind: svg.Points, Points: own, Color: 2 + 2*i, Labels: true})
		for _, q := range ps {
			says = append(says, fmt.Sprintf("%s, %s: %s measured, %s predicted", d, svg.Bytes.Format(q.X), svg.BitRate.Format(q.Y), svg.BitRate.Format(q.X*8/rtt)))
		}
	}
	if len(p.Series) == 0 {
		return nil
	}
	line := svg.Series{Name: "prediction: window × 8 ÷ " + conclude.Time(rtt), Kind: svg.Line, Dash: true, Color: 6}
	for _, w := range []float64{lo, hi} {
		line.Points = append(line.Points, svg.Point{X: w, To: w, Y: w * 8 / rtt})
	}
	p.Series = append(p.Series, line)
	f.Panels = []svg.Panel{p}
	f.Desc = strings.Join(says, "; ") + ". The prediction is window × 8 ÷ round trip of the empty path (" + from + "): what lies on it is held by the window, what lies below by something else."
	return &plot{ID: "window", Heading: "Window: does the rate follow?", Text: f.Desc, Drawing: drawn(f.Draw())}
}

// windowSeen is the largest window that the receivers offered a stream, bytes; 0 = not known.
func windowSeen(r *result.Run, d result.Direction) (most float64) {
	for i := range r.Streams {
		s := &r.Streams[i]
		t := s.TCP
		if r.End != d.Sender() {
			t = s.RemoteTCP
		}
		if s.Direction == d && t != nil {
			most = max(most, float64(t.MaxSndWnd))
		}
	}
	return most
}

// delays draws the distribution of small packets' round trips, empty and beside load.
func delays(rep *result.Report) *plot {
	f := svg.Figure{ID: "delay", Title: "Distribution of round trips", X: svg.Axis{Label: "round trip of small packets", Unit: svg.Seconds, Scale: svg.Log10}}
	one := 1.0
	p := svg.Panel{Y: svg.Axis{Label: "packets that were as fast", Unit: svg.Share, To: &one}, Height: 170}
	var says []string
	for i, r := range rep.Runs {
		name := labelOf(rep, i)
		switch name {
		case "idle", "up-1", "down-1", "both-4":
		default:
			if len(rep.Stages) > 0 && rep.Load == nil || len(p.Series) >= 4 {
				continue
			}
		}
		for k := range r.Probes {
			q := &r.Probes[k]
			ps := distribution(q)
			if len(ps) == 0 {
				continue
			}
			kind := svg.Line // between quantiles
			if len(q.Histogram) > 0 {
				kind = svg.Steps
			}
			p.Series = append(p.Series, svg.Series{Name: name, Kind: kind, Points: svg.Thin(ps, 120), Color: len(p.Series) + 1, Dash: len(p.Series)%2 == 1})
			says = append(says, fmt.Sprintf("%s: %s typical, p99 %s", name, conclude.Time(q.RoundTrip.P50), conclude.Time(q.RoundTrip.P99)))
			break
		}
	}
	if len(p.Series) == 0 {
		return nil
	}
	f.Panels = []svg.Panel{p}
	f.Desc = strings.Join(says, "; ") + ". What lies to the right of the empty path's line is the queue that the load builds."
	return &plot{ID: "delay", Heading: "Delay: what does the load add?", Text: f.Desc, Drawing: drawn(f.Draw())}
}

// labelOf is the name of a run's stage.
func labelOf(rep *result.Report, run int) string {
	for _, s := range rep.Stages {
		if s.Run != nil && *s.Run == run {
			return clean(s.Name)
		}
	}
	if l := rep.Runs[run].Label; l != "" {
		return clean(l)
	}
	return fmt.Sprint("run ", run+1)
}

// distribution is that of a probe stream, from its histogram, else from its quantiles.
func distribution(q *result.Probes) []svg.Point {
	if q.RoundTrip == nil {
		return nil
	}
	if len(q.Histogram) > 0 {
		upper, counts := make([]float64, len(q.Histogram)), make([]int64, len(q.Histogram))
		for i, b := range q.Histogram {
			upper[i], counts[i] = b.To, b.Count
		}
		return svg.CDF(upper, counts)
	}
	t := q.RoundTrip
	ps := svg.XY([2]float64{t.Min, 0}, [2]float64{t.P50, 0.5}, [2]float64{t.P95, 0.95}, [2]float64{t.P99, 0.99}, [2]float64{t.Max, 1})
	return ps
}

// curve draws the figures of a method, as the report has them: a line for each label that differs in what follows
// its last comma ("offered bit/s, up").
func curve(rep *result.Report) *plot {
	if len(rep.Curve) < 2 || rep.Sweep != nil {
		return nil
	}
	var series []svg.Series
	axis := svg.Axis{Scale: svg.Log2}
	at := map[string]int{}
	for _, q := range rep.Curve {
		label, name := clean(q.Label), "throughput"
		if i := strings.LastIndex(label, ", "); i >= 0 {
			label, name = label[:i], label[i+2:]
		}
		if axis.Label == "" {
			axis.Label = label
		}
		i, known := at[name]
		if !known {
			i = len(series)
			at[name] = i
			series = append(series, svg.Series{Name: name, Kind: svg.LineDots, Color: 1 + i%svg.Colors, Dash: i%2 == 1})
		}
		series[i].Points = append(series[i].Points, svg.Point{X: q.X, To: q.X, Y: q.Y})
		if q.X <= 0 {
			axis.Scale = svg.Linear
		}
	}
	for i := range series {
		sortPoints(series[i].Points)
		series[i].Labels = len(series) == 1
	}
	switch axis.Label {
	case "offered bit/s":
		axis.Label, axis.Unit, axis.Scale = "offered rate", svg.BitRate, svg.Linear
	case "s":
		axis.Label, axis.Unit = "time", svg.Seconds
	case "share of the link":
		axis.Unit, axis.Scale = svg.Share, svg.Linear
	}
	f := svg.Figure{
		ID: "curve", Title: "Throughput over " + axis.Label, X: axis,
		Panels: []svg.Panel{{Y: svg.Axis{Label: "throughput", Unit: svg.BitRate}, Height: 190, Series: series}},
	}
	var says []string
	for _, s := range series {
		best := slices.MaxFunc(s.Points, func(a, b svg.Point) int { return cmp.Compare(a.Y, b.Y) })
		if len(says) < mostAcross {
			says = append(says, fmt.Sprintf("%s: %d figures, the most is %s at %s", s.Name, len(s.Points), svg.BitRate.Format(best.Y), axis.Unit.Format(best.X)))
		}
	}
	f.Desc = strings.Join(says, "; ") + "."
	return &plot{ID: "curve", Heading: f.Title, Text: f.Desc, Drawing: drawn(f.Draw())}
}

package html

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/fullbore-net/fullbore/internal/conclude"
	"github.com/fullbore-net/fullbore/internal/render/svg"
	"github.com/fullbore-net/fullbore/internal/stats"
	"github.com/fullbore-net/fullbore/result"
)

// table is rows of figures with a heading of each column; the first column names the row.
type table struct {
	ID      string
	Heading string
	Text    string
	Head    []string
	Rows    [][]string
}

// What a page of a soak shows at most: points of a line, bands of outages, rows of its tables.
// The document has all.
const (
	soakPoints = 900
	soakBands  = 100
	soakRows   = 200
)

// soakPlots draws each direction's rate over time, outages set apart.
func soakPlots(rep *result.Report) (out []plot) {
	if rep.Soak == nil {
		return nil
	}
	for i := range rep.Soak.Ways {
		if x := soakPlot(rep.Soak, &rep.Soak.Ways[i]); x != nil {
			out = append(out, *x)
		}
	}
	return out
}

func soakPlot(s *result.Soak, w *result.SoakWay) *plot {
	if len(w.Rates) == 0 || !(w.Step > 0) {
		return nil
	}
	ps := make([]svg.Point, 0, len(w.Rates))
	for i, r := range w.Rates {
		p := svg.Point{X: float64(i) * w.Step, To: float64(i+1) * w.Step, Y: math.NaN()}
		if r != nil {
			p.Y = *r
		}
		ps = append(ps, p)
	}
	d := string(w.Direction)
	panel := svg.Panel{
		Y: svg.Axis{Label: "throughput " + d, Unit: svg.BitRate}, Height: 190,
		Series: []svg.Series{{Name: "least and largest of each stretch", Kind: svg.Steps, Points: svg.Thin(ps, soakPoints), Color: 1}},
	}
	if len(ps) <= soakPoints {
		panel.Series[0].Name = "each " + conclude.Time(w.Step)
	}
	if len(ps) > soakPoints { // the line from least to largest is an area: what was usual is drawn over it
		panel.Series = append(panel.Series, svg.Series{Name: "median of each stretch", Kind: svg.Line, Points: medians(w.Rates, w.Step), Color: 2})
	}
	if len(w.Levels) == 1 && w.Levels[0].Reference > 0 {
		panel.Rules = []svg.Rule{{Name: "usual", Y: w.Levels[0].Reference, Color: 6}}
	}
	bands := 0
	for _, o := range s.Outages {
		if bands == soakBands || o.Direction != "both" && o.Direction != d {
			continue
		}
		b := svg.Band{From: o.Start, To: o.Start + max(o.Stalled, o.Length)}
		if bands == 0 {
			b.Name = "outages"
		}
		panel.Bands = append(panel.Bands, b)
		bands++
	}
	f := svg.Figure{
		ID: "soak-" + d, Title: "Throughput " + d + " over the whole time", X: svg.Axis{Label: "since the start", Unit: svg.Seconds},
		Panels: []svg.Panel{panel}, Desc: soakWords(w),
	}
	return &plot{ID: f.ID, Heading: "Steadiness " + d, Text: f.Desc, Drawing: drawn(f.Draw())}
}

// soakMedians is how many medians a line has.
const soakMedians = 200

// medians are those of equal stretches of the rates; what was not measured does not count.
func medians(rates []*float64, step float64) (out []svg.Point) {
	size := (len(rates) + soakMedians - 1) / soakMedians
	for from := 0; from < len(rates); from += size {
		to := min(from+size, len(rates))
		var known []float64
		for _, r := range rates[from:to] {
			if r != nil {
				known = append(known, *r)
			}
		}
		p := svg.Point{X: step * float64(from+to) / 2, To: step * float64(from+to) / 2, Y: math.NaN()}
		if m, ok := stats.Median(known); ok {
			p.Y = m
		}
		out = append(out, p)
	}
	return out
}

// soakWords says what the plot shows.
func soakWords(w *result.SoakWay) string {
	f := &w.Figures
	var parts []string
	if f.Median != nil && f.P1 != nil && f.Min != nil {
		parts = append(parts, fmt.Sprintf("%s typical, %s in the slowest second of a hundred, %s at least", svg.BitRate.Format(*f.Median), svg.BitRate.Format(*f.P1), svg.BitRate.Format(*f.Min)))
	}
	if t := w.Trend; t != nil {
		parts = append(parts, fmt.Sprintf("trend %+.2g %% a day (p = %.2g)", 100*t.Slope, t.P))
	}
	for i, x := range w.Shifts {
		if i == 5 {
			parts = append(parts, fmt.Sprintf("%d more shifts", len(w.Shifts)-i))
			break
		}
		parts = append(parts, fmt.Sprintf("level %+.0f %% after %s", 100*(x.Ratio-1), length(x.At)))
	}
	if p := w.Period; p != nil {
		parts = append(parts, fmt.Sprintf("a pattern repeats each %s", length(p.Period)))
	}
	return strings.Join(parts, "; ") + "."
}

// length prints seconds: 12.3 s, 2h3m0s.
func length(s float64) string {
	if s < 60 {
		return fmt.Sprintf("%.1f s", s)
	}
	return time.Duration(math.Round(s) * float64(time.Second)).String()
}

// soakTables are the outages and the hours.
func soakTables(rep *result.Report) (out []table) {
	s := rep.Soak
	if s == nil {
		return nil
	}
	if len(s.Outages) > 0 {
		t := table{ID: "outages", Heading: "Outages", Head: []string{"UTC", "after", "direction", "length", "payload again after", "what was seen"}}
		for i, o := range s.Outages {
			if i == soakRows {
				t.Text = fmt.Sprintf("%d more are in the document.", len(s.Outages)-i)
				break
			}
			t.Rows = append(t.Rows, []string{
				rep.Started.Add(time.Duration(o.Start * float64(time.Second))).UTC().Format("2006-01-02 15:04:05.0"), length(o.Start), clean(o.Direction),
				length(o.Length), length(o.Stalled), outageWords(&o),
			})
		}
		out = append(out, t)
	}
	if len(s.Hours) > 1 {
		out = append(out, hoursTable(s))
	}
	return out
}

func outageWords(o *result.Outage) string {
	words := "no payload, though the path answered"
	switch {
	case o.Why == "refused":
		words = "the host answered, its server did not"
	case o.Basis == "reach":
		words = "the path did not answer"
	}
	if o.Open {
		words += "; it went on at the end"
	}
	return words
}

func hoursTable(s *result.Soak) table {
	t := table{ID: "hours", Heading: "Hour by hour", Head: []string{"hour", "direction", "typical", "p5", "p1", "available", "outages", "lost or resent", "variation p99", "this host"}}
	rate := func(v *float64) string {
		if v == nil {
			return "–"
		}
		return svg.BitRate.Format(*v)
	}
	for i := range s.Hours {
		h := &s.Hours[i]
		for k := range h.Ways {
			if len(t.Rows) == soakRows {
				t.Text = fmt.Sprintf("%d more hours are in the document.", len(s.Hours)-i)
				return t
			}
			f := &h.Ways[k]
			again, available, varies := "–", "–", "–"
			switch {
			case f.Lost != nil && f.Packets != nil && *f.Packets > 0:
				again = fmt.Sprintf("%.2g %%", 100*float64(*f.Lost)/float64(*f.Packets))
			case f.Retransmits != nil:
				again = conclude.Grouped(*f.Retransmits)
			}
			if f.Availability != nil {
				available = fmt.Sprintf("%.2f %%", 100**f.Availability)
			}
			if f.PDV != nil {
				varies = conclude.Time(*f.PDV)
			}
			host := ""
			if k == 0 { // it is one for both directions
				host = conclude.SoakHourHost(h)
			}
			t.Rows = append(t.Rows, []string{fmt.Sprint(i + 1), string(f.Direction), rate(f.Median), rate(f.P5), rate(f.P1), available, fmt.Sprint(f.Outages), again, varies, host})
		}
	}
	return t
}

// soakTiles are the figures of the answer.
func soakTiles(s *result.Soak) (out []tile) {
	for i := range s.Ways {
		f := &s.Ways[i].Figures
		if f.Median != nil {
			out = append(out, tile{"typical " + string(f.Direction), svg.BitRate.Format(*f.Median), ""})
		}
		if f.Availability != nil {
			out = append(out, tile{"available " + string(f.Direction), fmt.Sprintf("%.3f %%", 100**f.Availability), "seconds with 90 % of it"})
		}
	}
	longest := 0.0
	for _, o := range s.Outages {
		longest = max(longest, o.Length)
	}
	note := ""
	if len(s.Outages) > 0 {
		note = "the longest " + length(longest)
	}
	out = append(out, tile{"outages", fmt.Sprint(len(s.Outages)), note})
	if m := s.Machine; m != nil && (m.MaxCelsius != nil || m.MinMHz != nil) {
		var parts []string
		if m.MinMHz != nil {
			parts = append(parts, fmt.Sprintf("clock %d MHz at least", *m.MinMHz))
		}
		if m.Throttles != nil && *m.Throttles > 0 {
			parts = append(parts, fmt.Sprintf("slowed for heat %d×", *m.Throttles))
		}
		warm := "–"
		if m.MaxCelsius != nil {
			warm = fmt.Sprintf("%.0f °C", *m.MaxCelsius)
		}
		out = append(out, tile{"this host at most", warm, strings.Join(parts, ", ")})
	}
	return out
}

package html

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/fullbore-net/fullbore/internal/conclude"
	"github.com/fullbore-net/fullbore/internal/render/svg"
	"github.com/fullbore-net/fullbore/internal/stats"
	"github.com/fullbore-net/fullbore/result"
)

// stageView is a step of the method, or one run of a report without stages.
type stageView struct {
	Number           int
	Name, Title, Why string
	Showed           string
	In, Out          []string
	Err              string
	Plots            []plot
	Facts            []tile // of the loss pattern
	Quiet            string // what the plots leave out since there was none of it
	Bearing          []string
}

// mostPoints is how many points a line of a plot has at most; Thin keeps the extremes.
const mostPoints = 300

func stages(rep *result.Report) (out []stageView) {
	rtt, _ := emptyRTT(rep)
	if len(rep.Stages) == 0 {
		for i, r := range rep.Runs {
			s := stageView{Number: i + 1, Name: fmt.Sprint("run-", i+1), Title: runTitle(r), Why: clean(r.Summary)}
			s.fill(r, rtt)
			out = append(out, s)
		}
		return out
	}
	for i, st := range rep.Stages {
		s := stageView{
			Number: i + 1, Name: clean(st.Name), Title: clean(st.Title), Why: clean(st.Why),
			Showed: clean(st.Showed), In: cleaned(st.RuledIn), Out: cleaned(st.RuledOut),
		}
		if st.Round > 0 {
			s.Title += fmt.Sprintf(", round %d", st.Round)
		}
		if st.Err != nil {
			s.Err = clean(st.Err.Text)
		}
		if st.Run != nil && *st.Run >= 0 && *st.Run < len(rep.Runs) {
			s.fill(rep.Runs[*st.Run], rtt)
		}
		for _, v := range rep.Verdicts {
			if slices.Contains(v.Stages, st.Name) && !slices.Contains(s.Bearing, clean(v.Code)) {
				s.Bearing = append(s.Bearing, clean(v.Code))
			}
		}
		out = append(out, s)
	}
	return out
}

func runTitle(r *result.Run) string {
	t := strings.ToUpper(r.Test.Transport)
	if t == "" {
		t = "Run"
	}
	n := "one stream"
	if r.Test.Streams != 1 {
		n = fmt.Sprintf("%d streams", r.Test.Streams)
	}
	return clean(strings.TrimSpace(t + ", " + n + ", " + directionWord(r.Test.Direction)))
}

func (s *stageView) fill(r *result.Run, rtt float64) {
	var none []string
	for _, d := range []result.Direction{result.Up, result.Down} {
		if r.Sum(d) == nil && !hasRows(r, d) {
			continue
		}
		w := wayOf(r, d)
		id := fmt.Sprintf("stage-%d-%s", s.Number, d)
		if x := w.plot(id, s.Title, rtt); x != nil {
			s.Plots = append(s.Plots, *x)
		}
		if q := w.quiet(); q != "" {
			none = append(none, q)
		}
		if r.Test.Transport == "udp" {
			s.losses(r, d)
		}
	}
	s.Quiet = strings.Join(none, "; ")
}

func hasRows(r *result.Run, d result.Direction) bool {
	for i := range r.Rows {
		for _, x := range r.Rows[i].Sums {
			if x.Direction == d {
				return true
			}
		}
	}
	return false
}

// way is what the rows of a run say of one direction over time.
type way struct {
	run           *result.Run
	dir           result.Direction
	omit          float64 // length of the warm-up; it is drawn below 0
	arrived, sent []svg.Point
	again         []svg.Point // TCP: segments sent again; UDP: lost
	known         bool        // again is
	rtt, rttMost  []svg.Point
	total         float64 // of again
}

func wayOf(r *result.Run, d result.Direction) *way {
	w := &way{run: r, dir: d}
	udp := r.Test.Transport == "udp"
	ends := map[result.End]float64{} // of each end's warm-up
	for i := range r.Rows {
		if row := &r.Rows[i]; row.Omitted {
			ends[row.End] = max(ends[row.End], row.Stop)
		}
	}
	for i := range r.Rows {
		row := &r.Rows[i]
		shift := 0.0
		if row.Omitted { // its clock is begun anew for the measured part
			shift = -ends[row.End]
			w.omit = max(w.omit, ends[row.End])
		}
		for _, x := range row.Sums {
			if x.Direction != d || !(x.Stop > x.Start) {
				continue
			}
			p := svg.Point{X: x.Start + shift, To: x.Stop + shift, Y: x.BPS}
			n := x.Retransmits
			if udp {
				n = x.Lost
			}
			if x.Sender {
				w.sent = append(w.sent, p)
			} else {
				w.arrived = append(w.arrived, p)
			}
			if n != nil && x.Sender != udp {
				w.known = true
				p.Y = float64(*n)
				w.total += p.Y
				w.again = append(w.again, p)
			}
		}
		if row.End == d.Sender() {
			w.takeRTT(row, shift)
		}
	}
	return w
}

// takeRTT reads TCP's smoothed round trips: mean and largest over the streams.
func (w *way) takeRTT(row *result.Interval, shift float64) {
	sum, most, n := 0.0, 0.0, 0
	for _, s := range row.Streams {
		if s.Sender && s.TCP != nil && s.TCP.RTT > 0 && w.directionOf(s.ID) == w.dir {
			v := float64(s.TCP.RTT) / 1e6
			sum, most = sum+v, max(most, v)
			n++
		}
	}
	p := svg.Point{X: row.Stop + shift, To: row.Stop + shift, Y: math.NaN()}
	if n > 0 {
		p.Y = sum / float64(n)
	}
	w.rtt = append(w.rtt, p)
	if n > 1 {
		p.Y = most
		w.rttMost = append(w.rttMost, p)
	}
}

func (w *way) directionOf(id int) result.Direction {
	for i := range w.run.Streams {
		if w.run.Streams[i].ID == id {
			return w.run.Streams[i].Direction
		}
	}
	return w.dir
}

// quiet says what did not happen.
func (w *way) quiet() string {
	if !w.known || w.total > 0 {
		return ""
	}
	if w.run.Test.Transport == "udp" {
		return "no datagram was lost " + string(w.dir)
	}
	return "nothing was sent again " + string(w.dir)
}

// plot draws a direction; nil when no row tells anything.
func (w *way) plot(id, title string, rtt float64) *plot {
	if len(w.arrived)+len(w.sent) == 0 {
		return nil
	}
	warm := []svg.Band{{Name: "warm-up, not counted", From: -w.omit, To: 0}}
	if w.omit == 0 {
		warm = nil
	}
	bare := []svg.Band{{From: -w.omit, To: 0}}
	f := svg.Figure{ID: id, Title: title + ", " + string(w.dir) + ": over time", X: svg.Axis{Label: "time", Unit: svg.Seconds}}
	f.Panels = append(f.Panels, svg.Panel{
		Y: svg.Axis{Label: "throughput " + string(w.dir), Unit: svg.BitRate}, Bands: warm, Height: 130,
		Series: []svg.Series{
			{Name: "arrived", Kind: svg.Steps, Points: svg.Thin(w.arrived, mostPoints), Color: 1},
			{Name: "sent", Kind: svg.Steps, Points: svg.Thin(w.sent, mostPoints), Color: 2, Dash: true},
		},
	})
	if w.total > 0 {
		what := "segments sent again"
		if w.run.Test.Transport == "udp" {
			what = "datagrams lost"
		}
		f.Panels = append(f.Panels, svg.Panel{
			Y: svg.Axis{Label: what, Unit: svg.Plain}, Bands: bare, Height: 52,
			Series: []svg.Series{{Name: what, Kind: svg.Columns, Points: svg.ThinSum(w.again, mostPoints/2), Color: 2}},
		})
	}
	if slices.ContainsFunc(w.rtt, func(p svg.Point) bool { return !math.IsNaN(p.Y) }) {
		p := svg.Panel{
			Y: svg.Axis{Label: "round trip under load (TCP)", Unit: svg.Seconds}, Bands: bare, Height: 80,
			Series: []svg.Series{{Name: "mean of the streams", Kind: svg.Line, Points: svg.Thin(w.rtt, mostPoints), Color: 3}},
		}
		if len(w.rttMost) > 0 {
			p.Series = append(p.Series, svg.Series{Name: "longest", Kind: svg.Line, Points: svg.Thin(w.rttMost, mostPoints), Color: 4, Dash: true})
		} else {
			p.Series[0].Name = "smoothed"
		}
		if rtt > 0 {
			p.Rules = []svg.Rule{{Name: "empty path", Y: rtt, Color: 6}}
		}
		f.Panels = append(f.Panels, p)
	}
	f.Desc = w.describe()
	return &plot{ID: id, Heading: string(w.dir), Text: f.Desc, Drawing: drawn(f.Draw())}
}

// describe says what the plot shows to those who do not see it.
func (w *way) describe() string {
	rates := func(ps []svg.Point) (vs []float64) {
		for _, p := range ps {
			if p.X >= 0 {
				vs = append(vs, p.Y)
			}
		}
		return vs
	}
	what, vs := "arrived", rates(w.arrived)
	if len(vs) == 0 {
		what, vs = "sent", rates(w.sent)
	}
	text := ""
	if m, ok := stats.Median(vs); ok {
		text = fmt.Sprintf("%s: %s typical, between %s and %s in one interval", strings.ToUpper(what[:1])+what[1:], svg.BitRate.Format(m), svg.BitRate.Format(slices.Min(vs)), svg.BitRate.Format(slices.Max(vs)))
	}
	if w.known {
		kind := "sent again"
		if w.run.Test.Transport == "udp" {
			kind = "lost"
		}
		counted := 0.0 // without the warm-up's, as the sums have it
		for _, p := range w.again {
			if p.X >= 0 {
				counted += p.Y
			}
		}
		text += fmt.Sprintf("; %s %s", conclude.Grouped(int64(counted)), kind)
	}
	var trips []float64
	for _, p := range w.rtt {
		if p.X >= 0 && !math.IsNaN(p.Y) {
			trips = append(trips, p.Y)
		}
	}
	if m, ok := stats.Median(trips); ok {
		text += fmt.Sprintf("; round trip %s typical, %s at most", conclude.Time(m), conclude.Time(slices.Max(trips)))
	}
	return strings.TrimPrefix(text, "; ") + "."
}

// losses are the figures of the pattern in which datagrams were lost.
func (s *stageView) losses(r *result.Run, d result.Direction) {
	l := conclude.LossOf(r, d)
	if l == nil {
		return
	}
	add := func(name, value string) { s.Facts = append(s.Facts, tile{Name: name, Value: value}) }
	add("lost "+string(d), conclude.LossText(l))
	for _, o := range []struct {
		name string
		n    *int64
	}{{"of them at the receiver's socket", l.Socket}, {"in the receiving kernel's queue", l.Softnet}, {"at the receiver's interface", l.NIC}, {"on the network", l.Network}} {
		if o.n != nil && *o.n > 0 {
			add(o.name, conclude.Grouped(*o.n))
		}
	}
	sum := r.Sum(d)
	if sum == nil || sum.UDP == nil || sum.UDP.Received == nil || sum.UDP.Received.Periods == nil {
		return
	}
	q := sum.UDP.Received.Periods
	add("runs of losses", conclude.Grouped(q.Runs))
	add("longest run", conclude.Grouped(q.Longest)+" in a row")
	alone := 1.0
	if l.Ratio < 1 {
		alone = 1 / (1 - l.Ratio) // of losses that know nothing of each other
	}
	b := svg.Bars{
		ID: fmt.Sprintf("stage-%d-%s-runs", s.Number, d), Title: "Loss pattern " + string(d), Unit: svg.Plain,
		Rows: []svg.Bar{{Label: "mean run of losses, packets", Value: q.MeanLength, Color: 2}, {Label: "the same if each were lost by chance alone", Value: alone, Color: 6}},
	}
	word := "one by one, as chance does"
	if q.MeanLength > 1.5*alone {
		word = "several in a row: in bursts"
	}
	b.Desc = fmt.Sprintf("Losses come %s: %s packets in a row on average, where chance alone would make %s.", word, svg.Plain.Format(q.MeanLength), svg.Plain.Format(alone))
	s.Plots = append(s.Plots, plot{ID: b.ID, Heading: "loss pattern", Text: b.Desc, Drawing: drawn(b.Draw())})
}

package diagnose

import (
	"fmt"
	"math"
	"slices"

	"github.com/fullbore-net/fullbore/internal/stats"
	"github.com/fullbore-net/fullbore/result"
)

const (
	// unsteadyCoV is how much the rows must vary, in all and in their second half, which a slow
	// start does not reach.
	unsteadyCoV = 0.2
	// unsteadySpan is the least distance of the 15th and 85th percentile, of the median.
	unsteadySpan = 0.25
	// leastDips is how often it must have been low: a start and one hole are not enough.
	leastDips = 3
	// leastRows is how many rows a statement about their course needs.
	leastRows = 10
	// periodic is the least autocorrelation at a period, follows the least correlation of what
	// moved with the rate.
	periodic = 0.5
	follows  = 0.6
)

// unsteady: the rate of one stream went up and down; with which period, and with what.
func unsteady(c *Case) (out []result.Verdict) {
	for _, l := range c.legs() {
		f := l.one()
		if f == nil || !f.usable() || serverLimited(f) {
			continue
		}
		if _, _, stopped := gap(f); stopped {
			continue // it did not waver, it stopped: the outage rule's, or a stall
		}
		rows := whole(f.rates())
		if len(rows) < leastRows {
			continue
		}
		x := make([]float64, len(rows))
		for i, r := range rows {
			x[i] = r.BPS
		}
		cov, ok := stats.CoV(x)
		late, ok2 := stats.CoV(x[len(x)/2:])
		if !ok || !ok2 || cov < unsteadyCoV || late < unsteadyCoV || !wavers(x) {
			continue
		}
		v := draft(Unsteady, Likely, l, f)
		v.Note = true
		put(&v, "variation", cov, "ratio")
		low, high := slices.Min(x), slices.Max(x)
		say(&v, "1 stream: %s, from %s to %s in rows of %s (coefficient of variation %s)", rate(f.rate), rate(low), rate(high), ms(step(rows)), percent(cov))
		c.steadyLater(&v, l)
		text := "without a period"
		if lag, r, ok := period(x); ok {
			p := lag * step(rows)
			put(&v, "period", p, "s")
			say(&v, "it repeats each %s (autocorrelation %.2f)", ms(p), r)
			text = "with a period of about " + ms(p)
		}
		moved := c.movedWith(f, rows)
		for _, m := range moved {
			put(&v, m.name, m.r, "")
			say(&v, "%s (correlation %+.2f)", m.text, m.r)
		}
		with := "nothing that was counted moved with it"
		if len(moved) > 0 {
			with = "with it moved: " + moved[0].what
		} else {
			say(&v, "neither retransmits, round trip, processors nor other traffic moved with it")
		}
		v.Summary = fmt.Sprintf("%s: the rate is unsteady (%s to %s), %s; %s.", c.way(l.dir), rate(low), rate(high), text, with)
		advise(&v, "a longer look: "+c.again(l.dir, "-t 120 -i 0.2"))
		out = append(out, v)
	}
	return out
}

// wavers reports that the rate went up and down all along: one hole and what filled it is none.
func wavers(x []float64) bool {
	q, ok := stats.Quantiles(x, 0.15, 0.5, 0.85)
	if !ok || q[1] <= 0 || (q[2]-q[0])/q[1] < unsteadySpan {
		return false
	}
	low, high := q[0]+0.3*(q[2]-q[0]), q[2]-0.3*(q[2]-q[0])
	dips, below := 0, false
	for _, v := range x {
		switch {
		case v <= low && !below:
			dips, below = dips+1, true
		case v >= high:
			below = false
		}
	}
	return dips >= leastDips
}

// whole are the rows of full length that count: what a warm-up did is left out.
func whole(rows []result.IntervalSum) (out []result.IntervalSum) {
	long := 0.0
	for _, r := range rows {
		long = max(long, r.Stop-r.Start)
	}
	for _, r := range rows {
		if r.Start >= 0.5 && r.Stop-r.Start >= long/2 {
			out = append(out, r)
		}
	}
	return out
}

// step is the usual length of a row, s.
func step(rows []result.IntervalSum) float64 {
	var x []float64
	for _, r := range rows {
		x = append(x, r.Stop-r.Start)
	}
	m, _ := stats.Median(x)
	return m
}

// detrended takes mean and slope out, so that a rate that only grows has no period.
func detrended(x []float64) []float64 {
	n := float64(len(x))
	var sx, sy, sxx, sxy float64
	for i, y := range x {
		t := float64(i)
		sx, sy, sxx, sxy = sx+t, sy+y, sxx+t*t, sxy+t*y
	}
	slope := 0.0
	if d := n*sxx - sx*sx; d > 0 {
		slope = (n*sxy - sx*sy) / d
	}
	out := make([]float64, len(x))
	for i, y := range x {
		out[i] = y - (sy-slope*sx)/n - slope*float64(i)
	}
	return out
}

// period is the lag, in rows, at which a series repeats itself: the highest peak of its
// autocorrelation behind the first trough. At least two and a half periods must be seen.
func period(x []float64) (lag, r float64, found bool) {
	d := detrended(x)
	n := len(d)
	most := n * 2 / 5
	if most < 3 {
		return 0, 0, false
	}
	c := make([]float64, most+2)
	for k := range c {
		var ab, aa, bb float64
		for i := 0; i+k < n; i++ {
			ab, aa, bb = ab+d[i]*d[i+k], aa+d[i]*d[i], bb+d[i+k]*d[i+k]
		}
		if aa > 0 && bb > 0 {
			c[k] = ab / math.Sqrt(aa*bb)
		}
	}
	trough := slices.IndexFunc(c, func(v float64) bool { return v < -0.2 })
	if trough < 0 {
		return 0, 0, false
	}
	best := 0
	for k := trough + 1; k <= most; k++ {
		if c[k] >= c[k-1] && c[k] >= c[k+1] && (best == 0 || c[k] > c[best]) {
			best = k
		}
	}
	if best == 0 || c[best] < periodic {
		return 0, 0, false
	}
	// A parabola through the peak and its neighbours tells it to a part of a row.
	lag = float64(best)
	if curve := c[best-1] - 2*c[best] + c[best+1]; curve < 0 {
		lag += (c[best-1] - c[best+1]) / (2 * curve)
	}
	return lag, c[best], true
}

// mover is something that was counted row by row beside the rate.
type mover struct {
	name, what, text string
	r                float64
}

// movedWith are the series that went with the rate, the strongest first. What merely follows
// from the rate (a processor that is busier when more comes) is not among them: the sign must
// be that of a cause.
func (c *Case) movedWith(f *flow, rows []result.IntervalSum) (out []mover) {
	for _, s := range []struct {
		name, what, text string
		sign             float64 // −1: more of it, less rate; 0: either
		end              result.End
		of               func(*result.Interval) (float64, bool)
	}{
		{"with_retransmits", "retransmits", "where more was sent again, less came through", -1, f.dir.Sender(), func(r *result.Interval) (float64, bool) { return retransmitsOf(r) }},
		{"with_rtt", "the round trip", "the round trip moved with it", 0, f.dir.Sender(), roundTripOf},
		{"with_throttled_sender", "the CPU quota of " + c.host(f.dir.Sender()), "where the quota held the sender longer, less came through", -1, f.dir.Sender(), throttledOf},
		{"with_throttled_receiver", "the CPU quota of " + c.host(f.dir.Receiver()), "where the quota held the receiver longer, less came through", -1, f.dir.Receiver(), throttledOf},
		{"with_load_sender", "the processor of " + c.host(f.dir.Sender()), "where the sender's worker was busier, less came through", -1, f.dir.Sender(), loadOf},
		{"with_load_receiver", "the processor of " + c.host(f.dir.Receiver()), "where the receiver's worker was busier, less came through", -1, f.dir.Receiver(), loadOf},
		{"with_steal", "time that the hypervisor took", "where the hypervisor took more time, less came through", -1, f.dir.Sender(), stealOf},
		{"with_other_traffic", "other traffic on the interface of " + c.host(f.dir.Sender()), "where the interface carried more of others, less came through", -1, f.dir.Sender(), func(r *result.Interval) (float64, bool) { return othersOf(f, r) }},
	} {
		r, ok := correlation(f, rows, s.end, s.of)
		if !ok || math.Abs(r) < follows || s.sign < 0 && r > 0 {
			continue
		}
		out = append(out, mover{s.name, s.what, s.text, r})
	}
	slices.SortStableFunc(out, func(a, b mover) int { return int(math.Copysign(1, math.Abs(b.r)-math.Abs(a.r))) })
	return out
}

// correlation is that of the rate with a figure of the rows of an end, matched by their time;
// as it is or a row later, whichever is stronger, since TCP answers a round trip after.
func correlation(f *flow, rows []result.IntervalSum, e result.End, of func(*result.Interval) (float64, bool)) (float64, bool) {
	var at []float64 // the figure for each of rows; NaN = none
	for _, row := range rows {
		v := math.NaN()
		mid := (row.Start + row.Stop) / 2
		for i := range f.run.Rows {
			r := &f.run.Rows[i]
			if r.End == e && !r.Partial && r.Start <= mid && mid < r.Stop {
				if x, ok := of(r); ok {
					v = x
				}
				break
			}
		}
		at = append(at, v)
	}
	best, found := 0.0, false
	for lag := range 2 {
		var x, y []float64
		for i := lag; i < len(rows); i++ {
			if !math.IsNaN(at[i-lag]) {
				x, y = append(x, rows[i].BPS), append(y, at[i-lag])
			}
		}
		if r, ok := pearson(x, y); ok && math.Abs(r) > math.Abs(best) {
			best, found = r, true
		}
	}
	return best, found
}

func pearson(x, y []float64) (float64, bool) {
	if len(x) < leastRows-1 {
		return 0, false
	}
	n := float64(len(x))
	var mx, my float64
	for i := range x {
		mx, my = mx+x[i]/n, my+y[i]/n
	}
	var xy, xx, yy float64
	for i := range x {
		a, b := x[i]-mx, y[i]-my
		xy, xx, yy = xy+a*b, xx+a*a, yy+b*b
	}
	if xx == 0 || yy == 0 {
		return 0, false
	}
	return xy / math.Sqrt(xx*yy), true
}

func retransmitsOf(r *result.Interval) (float64, bool) {
	n, known := 0.0, false
	for i := range r.Streams {
		if s := &r.Streams[i]; s.Sender && s.Retransmits != nil {
			n, known = n+float64(*s.Retransmits), true
		}
	}
	return n, known
}

func roundTripOf(r *result.Interval) (float64, bool) {
	for i := range r.Streams {
		if s := &r.Streams[i]; s.Sender && s.TCP != nil && s.TCP.RTT > 0 {
			return float64(s.TCP.RTT), true
		}
	}
	return 0, false
}

func throttledOf(r *result.Interval) (float64, bool) {
	if r.Host == nil || r.Host.Throttled == nil {
		return 0, false
	}
	return *r.Host.Throttled, true
}

func loadOf(r *result.Interval) (float64, bool) {
	if r.Host == nil || r.Host.WorkerLoad == nil {
		return 0, false
	}
	return *r.Host.WorkerLoad, true
}

func stealOf(r *result.Interval) (float64, bool) {
	if r.Host == nil || len(r.Host.Cores) == 0 {
		return 0, false
	}
	return r.Host.StealMax, true
}

// othersOf is what the interface carried beside the test's own bytes.
func othersOf(f *flow, r *result.Interval) (float64, bool) {
	if r.Host == nil || r.Host.NIC == nil || r.Host.NIC.TxBytes == 0 {
		return 0, false
	}
	own := 0.0
	for _, s := range r.Sums {
		if s.Direction == f.dir {
			own += f.wire(float64(s.Bytes))
			if s.Retransmits != nil {
				own += f.wire(float64(*s.Retransmits) * f.mss)
			}
		}
	}
	if others := float64(r.Host.NIC.TxBytes) - own; others > 0.05*float64(r.Host.NIC.TxBytes) {
		return others, true
	}
	return 0, true
}

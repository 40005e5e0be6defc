package method

import (
	"math"

	"github.com/fullbore-net/fullbore/internal/stats"
	"github.com/fullbore-net/fullbore/result"
)

// Words of a comparison's verdict: B against A.
const (
	Faster    = "faster"
	Slower    = "slower"
	Better    = "better" // of figures of which less is better
	Worse     = "worse"
	Same      = "same"
	Undecided = "undecided"
)

// Comparison is what M-ROUNDS says of B against A.
type Comparison struct {
	Verdict string  // "faster", "slower", "same", "undecided"
	Shift   float64 // Hodges–Lehmann: median of all differences b − a
	Share   float64 // Shift over the median of A; 0 where that is 0
	// Low and High are the interval of Shift when Interval is true (four rounds a side and
	// more), with the coverage Level.
	Low, High, Level float64
	Interval         bool
	U                float64 // Mann–Whitney, of A
	P                float64 // two-sided, exact up to 20 rounds a side, ties as they are
	// TooFew: fewer than four rounds on a side cannot reach 5 %; Verdict is by the
	// threshold alone.
	TooFew bool
}

// DefaultThreshold is the least shift that counts.
const DefaultThreshold = 0.03

// Significant is the level of a comparison's test.
const Significant = 0.05

// least is how many rounds a side can reach Significant.
const leastCompared = 4

// Bound is by how much a figure must differ to count: a share of A's median, and never less
// than Floor, in the figure's unit.
type Bound struct {
	Share, Floor float64
	Less         bool // less is better: the words are better and worse
}

// Compare judges B against A, of which more is better; both need a value. threshold 0 =
// DefaultThreshold.
func Compare(a, b []float64, threshold float64) (Comparison, bool) {
	if threshold == 0 {
		threshold = DefaultThreshold
	}
	if median, ok := stats.Median(a); !ok || median <= 0 {
		return Comparison{}, false
	}
	return CompareBy(a, b, Bound{Share: threshold})
}

// CompareBy judges B against A with the bound of the figure; false when a side has no value.
func CompareBy(a, b []float64, by Bound) (Comparison, bool) {
	test, ok := stats.MannWhitney(a, b)
	if !ok {
		return Comparison{}, false
	}
	median, _ := stats.Median(a)
	shift, _ := stats.HodgesLehmann(a, b, 1-Significant)
	c := Comparison{
		Shift: shift.Median, Low: shift.Low, High: shift.High, Level: shift.Coverage, Interval: shift.Interval,
		U: test.U, P: test.P, TooFew: len(a) < leastCompared || len(b) < leastCompared,
	}
	if median != 0 {
		c.Share = c.Shift / math.Abs(median)
	}
	c.Verdict = by.verdict(c, median, c.P)
	return c, true
}

// verdict is that of a shift whose p was perhaps corrected for several figures.
func (by Bound) verdict(c Comparison, median, p float64) string {
	large := math.Abs(c.Shift) > max(by.Share*math.Abs(median), by.Floor)
	switch {
	case !large:
		return Same
	case !c.TooFew && p >= Significant:
		return Undecided
	}
	up, down := Faster, Slower
	if by.Less {
		up, down = Worse, Better
	}
	if c.Shift < 0 {
		return down
	}
	return up
}

// Holm corrects p-values of several comparisons.
func Holm(p []float64) []float64 { return stats.Holm(p) }

// figure is something that runs are compared by.
type figure struct {
	name, unit string
	by         Bound
	of         func(*result.Run, result.Direction) (float64, bool)
	whole      bool // of the run: one in both directions tells it once
}

// figures are what runs are compared by: goodput first, and what was sent, which stands in for it
// where a side's documents tell no more (a sender of NTTTCP). The floors are what nobody would call
// a change: one datagram in ten thousand, a tenth of a millisecond, a hundredth of a second of
// CPU for a gigabyte.
func figures(share float64) []figure {
	less := func(floor float64) Bound { return Bound{Share: share, Floor: floor, Less: true} }
	return []figure{
		{name: goodputFigure, unit: "bit/s", by: Bound{Share: share}, of: Goodput},
		{name: sentFigure, unit: "bit/s", by: Bound{Share: share}, of: sentRate},
		{name: "loss", unit: "ratio", by: less(1e-4), of: lossRatio},
		{name: "jitter", unit: "s", by: less(1e-4), of: jitter},
		{name: "rtt", unit: "s", by: less(1e-4), of: meanRTT},
		{name: "retransmits", unit: "ratio", by: less(5e-4), of: RetransmitRatio},
		{name: "cpu-client", unit: "s/GB", by: less(1e-2), of: cpuPerGB(result.Client), whole: true},
		{name: "cpu-server", unit: "s/GB", by: less(1e-2), of: cpuPerGB(result.Server), whole: true},
	}
}

// The figures that the verdict is about.
const (
	goodputFigure = "goodput"
	sentFigure    = "sent" // only where goodput is not known of both sides
)

// Decides reports that a comparison's verdict is about the figure of that name; all others are what
// it cost.
func Decides(metric string) bool { return metric == goodputFigure || metric == sentFigure }

// sentRate is what the sender of a TCP test handed over, payload bit/s. All of it but what was under way at
// the end arrived. Of datagrams it says nothing.
func sentRate(run *result.Run, d result.Direction) (float64, bool) {
	s := run.Sum(d)
	if s == nil || s.Sender == nil || s.Sender.Seconds() <= 0 || run.Test.Transport == "udp" {
		return 0, false
	}
	return s.Sender.Rate(), true
}

// lossRatio is of the datagrams of direction d.
func lossRatio(run *result.Run, d result.Direction) (float64, bool) {
	s := run.Sum(d)
	if s == nil {
		return 0, false
	}
	if s.UDP != nil && s.UDP.Loss != nil && s.UDP.Loss.Sent > 0 {
		return s.UDP.Loss.Ratio, true
	}
	if r := s.Receiver; r != nil && r.Lost != nil && r.Packets != nil && *r.Packets > 0 {
		return float64(*r.Lost) / float64(*r.Packets), true
	}
	return 0, false
}

// jitter is that of RFC 3550, mean over the run where it is known.
func jitter(run *result.Run, d result.Direction) (float64, bool) {
	s := run.Sum(d)
	switch {
	case s == nil:
	case s.UDP != nil && s.UDP.Received != nil && s.UDP.Received.Jitter != nil:
		return s.UDP.Received.Jitter.Mean, true
	case s.Receiver != nil && s.Receiver.Jitter != nil:
		return *s.Receiver.Jitter, true
	}
	return 0, false
}

// meanRTT is what the sender's kernel saw over the run, mean over the streams; of a run that was
// made for its probes, their median.
func meanRTT(run *result.Run, d result.Direction) (float64, bool) {
	sum, n := 0.0, 0
	for i := range run.Streams {
		s := &run.Streams[i]
		if s.Direction != d {
			continue
		}
		t := s.TCP
		if run.End != d.Sender() {
			t = s.RemoteTCP
		}
		if t != nil && t.MeanRTT > 0 {
			sum, n = sum+float64(t.MeanRTT)/1e6, n+1
		}
	}
	if n > 0 {
		return sum / float64(n), true
	}
	if !run.Test.ProbeOnly {
		return 0, false
	}
	for i := range run.Probes {
		if p := &run.Probes[i]; p.RoundTrip != nil && p.RoundTrip.N > 0 {
			return p.RoundTrip.P50, true
		}
	}
	return 0, false
}

// cpuPerGB is the CPU time of an end's program for 10⁹ bytes of payload, all directions.
func cpuPerGB(e result.End) func(*result.Run, result.Direction) (float64, bool) {
	return func(run *result.Run, _ result.Direction) (float64, bool) {
		c := run.CPU.Of(e)
		var bytes int64
		span := 0.0
		for i := range run.Sums {
			t := run.Sums[i].Receiver
			if t == nil {
				t = run.Sums[i].Sender
			}
			if t != nil {
				bytes += t.Bytes
				span = max(span, t.Seconds())
			}
		}
		if c == nil || c.Total <= 0 || bytes <= 0 {
			return 0, false
		}
		return c.Total / 100 * span / (float64(bytes) / 1e9), true
	}
}

// CompareRuns holds the runs of side B against those of side A: each figure that both sides have,
// and what else is not alike. threshold 0 = DefaultThreshold.
//
// p-values are corrected (Holm) in two families. Goodput, of one direction or of both, is the
// question that the verdict answers: "slower" is said when either direction is, so both are one
// family. What it cost (loss, jitter, round trip, retransmits, CPU time) decides nothing and is
// looked through for whatever changed: all of it is the other family. One family for everything
// would let the number of figures that happen to be known decide whether four rounds a side
// (p = 0.029 at best) can show that B is slower; none at all would find a change in one of a dozen
// figures of every second pair of equal sides.
func CompareRuns(a, b []*result.Run, threshold float64) result.Comparison {
	if threshold == 0 {
		threshold = DefaultThreshold
	}
	c := result.Comparison{Threshold: threshold, Verdict: Undecided, Metrics: []result.Compared{}, Differences: Differences(a, b)}
	var bounds []Bound
	var found []Comparison
	var medians, p []float64
	for _, f := range figures(threshold) {
		if f.name == sentFigure && len(c.Metrics) > 0 { // goodput is known
			continue
		}
		for _, d := range []result.Direction{result.Up, result.Down} {
			va, vb := valuesOf(a, d, f), valuesOf(b, d, f)
			x, y := known(va), known(vb)
			cmp, ok := CompareBy(x, y, f.by)
			if !ok || useless(f, x, y) {
				continue
			}
			m := result.Compared{
				Metric: f.name, Direction: string(d), Unit: f.unit, Shift: cmp.Shift, U: cmp.U, P: cmp.P, TooFew: cmp.TooFew,
				A: RoundsOf("", f.name, d, f.unit, va, nil), B: RoundsOf("", f.name, d, f.unit, vb, nil),
			}
			if *m.A.Median != 0 {
				m.Share = &cmp.Share
			}
			if cmp.Interval {
				m.Low, m.High, m.Level = &cmp.Low, &cmp.High, &cmp.Level
			}
			c.Metrics = append(c.Metrics, m)
			bounds, found, medians, p = append(bounds, f.by), append(found, cmp), append(medians, *m.A.Median), append(p, cmp.P)
		}
	}
	main := 0
	for main < len(c.Metrics) && Decides(c.Metrics[main].Metric) {
		main++
	}
	for i, corrected := range append(stats.Holm(p[:main]), stats.Holm(p[main:])...) {
		c.Metrics[i].Holm = corrected
		c.Metrics[i].Verdict = bounds[i].verdict(found[i], medians[i], corrected)
	}
	c.Verdict = overall(c.Metrics)
	return c
}

// Reachable reports that a and b rounds can show a difference in a family of so many figures: that
// the least p which their numbers allow, corrected, is below Significant.
func Reachable(a, b, family int) bool {
	orders := 1.0 // in which a and b rounds can lie: C(a + b, a)
	for i := 1; i <= a; i++ {
		orders *= float64(b+i) / float64(i)
	}
	return float64(max(family, 1))*2/orders < Significant
}

// useless: a figure that never was anything but 0 says nothing.
func useless(f figure, a, b []float64) bool {
	if Decides(f.name) || f.name == "loss" {
		return false
	}
	for _, v := range append(append([]float64{}, a...), b...) {
		if v != 0 {
			return false
		}
	}
	return true
}

// overall is the verdict of goodput, or of what was sent: of both directions, where they do not contradict each other.
func overall(ms []result.Compared) string {
	seen := map[string]bool{}
	for _, m := range ms {
		if Decides(m.Metric) {
			seen[m.Verdict] = true
		}
	}
	switch {
	case seen[Faster] && seen[Slower] || seen[Undecided] || len(seen) == 0:
		return Undecided
	case seen[Slower]:
		return Slower
	case seen[Faster]:
		return Faster
	}
	return Same
}

func valuesOf(runs []*result.Run, d result.Direction, f figure) []*float64 {
	var out []*float64
	for _, r := range runs {
		if r.Sum(d) == nil || f.whole && d == result.Down && len(r.Sums) > 1 { // it is no round of this direction
			continue
		}
		var v *float64
		if x, ok := f.of(r, d); ok {
			v = &x
		}
		out = append(out, v)
	}
	return out
}

func known(values []*float64) (out []float64) {
	for _, v := range values {
		if v != nil {
			out = append(out, *v)
		}
	}
	return out
}

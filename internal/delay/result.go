package delay

import (
	"math"

	"github.com/fullbore-net/fullbore/internal/stats"
	"github.com/fullbore-net/fullbore/result"
)

// When a drift is believed: clocks of computers differ by less than 500 ppm, there are
// this many delays over this long a time, and the line explains the least delays of an
// eighth of the run each better, by half, than no line does. A queue that fills is not
// straight for long; one that is cannot be told from a clock, which is why DriftPPM is
// in the result.
const (
	maxDrift       = 500e-6
	minDriftDelays = 64
	minDriftTime   = 1_000_000_000
	driftGroups    = 8
)

// Result fills in the delay figures: Jitter, CompatJitter, IPDV, PDV, Histogram,
// DriftPPM, Outliers and Climb. What there was too little for is nil.
//
// PDV's N, Min, Mean and Max are of all delays (Max within the drift of a 512th of the
// run, which is nothing when DriftPPM is nil); its quantiles and the histogram are of the
// samples kept. In the histogram a sample counts for as many delays as it stands for.
// After a clock was set PDV is relative to the least delay since then.
func (m *Meter) Result(r *result.UDPReceived) {
	r.Jitter, r.CompatJitter, r.Outliers = m.jitter(), m.Compat(), m.outliers
	r.IPDV = m.ipdv.Quantiles()
	v := m.variation()
	r.PDV, r.DriftPPM, r.Histogram, r.Climb = nil, nil, nil, nil
	if v == nil {
		return
	}
	r.PDV = v.quantiles()
	if v.slope != 0 {
		ppm := v.slope * 1e6
		r.DriftPPM = &ppm
	}
	r.Histogram = v.histogram(m.stride)
	r.Climb = v.climb(m.time)
}

// OneWay returns one direction's figures of a probe stream. offset gives the receiver's
// clock less the sender's at a datagram, ns; without it (nil) Delay stays unknown. Delays
// that come out negative are left so.
func (m *Meter) OneWay(offset func(sent, received int64) int64) result.OneWay {
	out := result.OneWay{Jitter: m.jitter(), IPDV: m.ipdv.Quantiles()}
	v := m.variation()
	if v == nil {
		return out
	}
	out.PDV = v.quantiles()
	if offset == nil {
		return out
	}
	delay := func(e *epoch, p point) float64 {
		received := e.received + (p.time - e.start)
		raw := e.base + p.d
		return float64(raw-offset(received-raw, received)) / 1e9
	}
	q := &result.Quantiles{N: v.n, Min: math.Inf(1), Max: math.Inf(-1)}
	var all []float64
	m.eachSample(func(e *epoch, p point) { all = append(all, delay(e, p)) })
	for i := range m.blocks {
		b := &m.blocks[i]
		e := &m.epochs[b.epoch]
		q.Min = min(q.Min, delay(e, b.min))
		q.Max = max(q.Max, delay(e, b.max))
	}
	// An offset is a straight line, so that the mean of delays is that of the mean datagram.
	for i := range m.epochs {
		if e := &m.epochs[i]; e.n > 0 {
			mean := point{e.start + int64(e.sumTime/float64(e.n)), int64(e.sumD / float64(e.n))}
			q.Mean += delay(e, mean) * float64(e.n) / float64(v.n)
		}
	}
	fill(q, all)
	out.Delay = q
	return out
}

func (m *Meter) jitter() *result.Jitter {
	if m.pairs == 0 {
		return nil
	}
	return &result.Jitter{N: m.pairs, Final: m.j / 1e9, Mean: m.jSum / float64(m.pairs) / 1e9, Max: m.jMax / 1e9}
}

// fill puts the quantiles of values into q, inside its extremes; values are sorted by it.
func fill(q *result.Quantiles, values []float64) {
	v, ok := stats.Quantiles(values, 0.5, 0.95, 0.99, 0.999)
	if !ok {
		v = []float64{q.Mean, q.Max, q.Max, q.Max}
	}
	for i, p := range []*float64{&q.P50, &q.P95, &q.P99, &q.P999} {
		*p = min(max(v[i], q.Min), q.Max)
	}
}

// variation is PDV, when the run is over.
type variation struct {
	n         int64
	mean, max float64 // ns, of all
	slope     float64 // of the drift that was taken out; 0 = none
	values    []float64
	times     []int64
}

func (t *track) eachSample(do func(e *epoch, p point)) {
	i := 0
	for _, p := range t.samples {
		for i+1 < len(t.epochs) && t.epochs[i+1].start <= p.time {
			i++
		}
		do(&t.epochs[i], p)
	}
}

// variation computes PDV; nil when there are no delays.
func (t *track) variation() *variation {
	v := &variation{slope: t.drift()}
	rest := func(e *epoch, p point) float64 { return float64(p.d) - v.slope*float64(p.time-e.start) }
	least := make([]float64, len(t.epochs))
	for i := range least {
		least[i] = math.Inf(1)
	}
	for i := range t.blocks {
		b := &t.blocks[i]
		least[b.epoch] = min(least[b.epoch], rest(&t.epochs[b.epoch], b.min))
	}
	index := func(e *epoch) int {
		for i := range t.epochs {
			if e == &t.epochs[i] {
				return i
			}
		}
		return 0
	}
	last, at := (*epoch)(nil), 0
	t.eachSample(func(e *epoch, p point) {
		if e != last {
			last, at = e, index(e)
		}
		x := rest(e, p)
		// Not the least of its block, but below it along the line.
		least[at] = min(least[at], x)
		v.values = append(v.values, x)
		v.times = append(v.times, p.time)
	})
	last, i := nil, 0
	t.eachSample(func(e *epoch, _ point) {
		if e != last {
			last, at = e, index(e)
		}
		v.values[i] -= least[at]
		v.max = max(v.max, v.values[i])
		i++
	})
	for i := range t.blocks {
		b := &t.blocks[i]
		v.max = max(v.max, rest(&t.epochs[b.epoch], b.max)-least[b.epoch])
	}
	sum := 0.0
	for i := range t.epochs {
		if e := &t.epochs[i]; e.n > 0 {
			v.n += e.n
			sum += e.sumD - v.slope*e.sumTime - float64(e.n)*least[i]
		}
	}
	if v.n == 0 {
		return nil
	}
	v.mean = max(0, sum/float64(v.n))
	return v
}

func (v *variation) quantiles() *result.Quantiles {
	q := &result.Quantiles{N: v.n, Mean: v.mean / 1e9, Max: v.max / 1e9}
	seconds := make([]float64, len(v.values))
	for i, x := range v.values {
		seconds[i] = x / 1e9
	}
	fill(q, seconds)
	return q
}

func (v *variation) histogram(weight int64) []result.Bucket {
	var h Histogram
	for _, x := range v.values {
		h.add(int64(max(x, 0)), weight)
	}
	return h.Buckets()
}

// climb is the median of the last quarter of the time over that of the first; nil when
// either has fewer than 16 samples, or the first has nothing to be compared with.
func (v *variation) climb(end int64) *float64 {
	var first, last []float64
	for i, x := range v.values {
		switch {
		case v.times[i] <= end/4:
			first = append(first, x)
		case v.times[i] >= end-end/4:
			last = append(last, x)
		}
	}
	a, _ := stats.Median(first)
	b, _ := stats.Median(last)
	if len(first) < 16 || len(last) < 16 || a <= 0 {
		return nil
	}
	c := b / a
	return &c
}

// drift is the slope of delay over time that the clocks have, from the longest epoch; 0
// when none is to be believed.
func (t *track) drift() float64 {
	best, longest := -1, int64(minDriftTime-1)
	for i, e := range t.epochs {
		end := t.time
		if i+1 < len(t.epochs) {
			end = t.epochs[i+1].start
		}
		if e.n >= minDriftDelays && end-e.start > longest {
			best, longest = i, end-e.start
		}
	}
	if best < 0 {
		return 0
	}
	e := t.epochs[best]
	var points []point
	for i := range t.blocks {
		if b := &t.blocks[i]; b.epoch == best {
			points = append(points, point{b.min.time - e.start, b.min.d})
		}
	}
	slope, ok := slopeBelow(points, e.sumTime/float64(e.n))
	if !ok || math.Abs(slope) > maxDrift {
		return 0
	}
	// What is left of the least delays of each eighth of the time, with the line.
	var least [driftGroups]float64
	for i := range least {
		least[i] = math.Inf(1)
	}
	for _, p := range points {
		g := min(int(p.time*driftGroups/max(longest, 1)), driftGroups-1)
		least[g] = min(least[g], float64(p.d)-slope*float64(p.time))
	}
	lo, hi := math.Inf(1), math.Inf(-1)
	for _, x := range least {
		if !math.IsInf(x, 1) {
			lo, hi = min(lo, x), max(hi, x)
		}
	}
	if math.Abs(slope)*float64(longest) < 2*(hi-lo) {
		return 0
	}
	return slope
}

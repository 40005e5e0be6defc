package probe

import (
	"github.com/fullbore-net/fullbore/internal/delay"
	"github.com/fullbore-net/fullbore/result"
)

// figures is what the answers of one probe stream add up to, in bounded memory.
type figures struct {
	sameHost   bool
	kept       *Kept
	answered   int64
	duplicates int64
	late       int64  // answers to requests that were forgotten, or never sent
	odd        int64  // answers whose times make no sense
	highest    uint32 // newest request answered
	count      int64  // of its answer: how many requests had arrived
	limited    uint16 // the same: not answered for the limit
	kernel     bool   // every stamp so far was a kernel's

	trips    delay.Histogram
	up, down *delay.Meter
	clock    clockSet
}

// Kept is how the other end's clock relates to this one's when both hosts' times of day are kept by
// time services.
type Kept struct {
	Offset int64 // the other less this one's, both monotonic, ns
	Bound  int64 // Offset is right within it, ns, as both systems say
}

func newFigures(sameHost bool, kept *Kept) *figures {
	return &figures{sameHost: sameHost, kept: kept, kernel: true, up: delay.NewMeter(0), down: delay.NewMeter(0)}
}

// add takes the first answer to the request sent at t1, which arrived at t4.
func (f *figures) add(a Answer, t1, t4 int64, kernel bool) {
	f.answered++
	inOrder := a.Seq > f.highest
	if inOrder {
		f.highest, f.count, f.limited = a.Seq, a.Count, a.Limited
	}
	e := delay.Exchange{T1: t1, T2: a.Received, T3: a.Sent, T4: t4}
	if e.T3 < e.T2 || e.T3-e.T2 < 0 || e.T4 < e.T1 || e.Delay() <= 0 || e.T3-e.T2 > e.T4-e.T1 {
		f.odd++ // a clock was set, or the other end makes its times up
		return
	}
	f.kernel = f.kernel && kernel && a.Flags&FlagKernel != 0
	f.trips.Add(e.Delay())
	f.up.Arrive(int64(a.Seq), true, inOrder, e.T1, e.T2)
	f.down.Arrive(int64(a.Seq), true, inOrder, e.T3, e.T4)
	f.clock.add(e)
}

// fill puts the figures into out. How the clocks relate, and what follows from it, is told
// at the end.
func (f *figures) fill(out *result.Probes, final bool) {
	out.RoundTrip = f.trips.Quantiles()
	if final {
		out.Histogram = append([]result.Bucket{}, f.trips.Buckets()...)
	}
	if f.trips.N() == 0 {
		return
	}
	out.Stamps = "user"
	if f.kernel {
		out.Stamps = "kernel"
	}
	if !final {
		up, down := f.up.OneWay(nil), f.down.OneWay(nil)
		out.Up, out.Down = &up, &down
		return
	}
	f.oneWay(out)
}

// sameHostBound is how far off one-way delays on one clock may be: the kernel's stamps are
// of the wall clock and are put onto the monotonic one, about a microsecond apart.
const sameHostBound = 2e-6

// oneWay tells the figures of each direction, with the delays as far as the clocks can be
// related.
func (f *figures) oneWay(out *result.Probes) {
	if f.sameHost {
		zero := func(int64, int64) int64 { return 0 }
		up, down := f.up.OneWay(zero), f.down.OneWay(zero)
		out.Up, out.Down = &up, &down
		out.Clock = &result.Clock{Source: "same-host", BoundS: sameHostBound, Exchanges: f.trips.N()}
		out.Clock.Causal = up.Delay == nil || down.Delay == nil || min(up.Delay.Min, down.Delay.Min) >= -sameHostBound
		f.bound(out)
		return
	}
	est, ok := f.clock.estimate()
	if !ok {
		up, down := f.up.OneWay(nil), f.down.OneWay(nil)
		out.Up, out.Down = &up, &down
		return
	}
	source := "exchange"
	if f.kept != nil && est.Prefer(f.kept.Offset, f.kept.Bound) {
		source = "ntp"
	}
	up := f.up.OneWay(func(sent, _ int64) int64 { return est.OffsetAt(sent) })
	down := f.down.OneWay(func(_, received int64) int64 { return -est.OffsetAt(received) })
	for _, w := range []result.OneWay{up, down} {
		if w.Delay != nil {
			est.Check(int64(w.Delay.Min * 1e9))
		}
	}
	out.Up, out.Down, out.Clock = &up, &down, est.Clock()
	out.Clock.Source = source
	f.bound(out)
}

// bound puts the clock's bound to the delays it is of.
func (f *figures) bound(out *result.Probes) {
	for _, w := range []*result.OneWay{out.Up, out.Down} {
		if w.Delay != nil {
			b := out.Clock.BoundS
			w.BoundS = &b
		}
	}
}

// clockSet chooses the exchanges by which M-CLOCK relates the clocks: 20 at the begin, the
// quickest of each second, 20 at the end.
type clockSet struct {
	first, last []delay.Exchange
	seconds     []delay.Exchange
	second      int64 // which second the last of them is of
}

const clockEnds = 20

func (c *clockSet) add(e delay.Exchange) {
	if len(c.first) < clockEnds {
		c.first = append(c.first, e)
		return
	}
	c.last = append(c.last, e)
	if len(c.last) <= clockEnds {
		return
	}
	// What leaves the end belongs to the middle.
	e, c.last = c.last[0], c.last[1:]
	n := len(c.seconds)
	switch s := (e.T1 - c.first[0].T1) / 1e9; {
	case n == 0 || s > c.second:
		c.seconds, c.second = append(c.seconds, e), s
	case e.Delay() < c.seconds[n-1].Delay():
		c.seconds[n-1] = e
	}
}

// estimate relates the clocks; false when nothing was answered.
func (c *clockSet) estimate() (delay.Estimate, bool) {
	var est delay.ClockEstimator
	for _, part := range []struct {
		phase delay.Phase
		list  []delay.Exchange
	}{{delay.Before, c.first}, {delay.During, c.seconds}, {delay.After, c.last}} {
		for _, e := range part.list {
			est.Add(e, part.phase)
		}
	}
	return est.Estimate()
}

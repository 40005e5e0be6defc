package delay

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/fullbore-net/fullbore/result"
)

// The golden of methods §12.
func TestExchangeGolden(t *testing.T) {
	x := Exchange{100_000 * ms, 100_060 * ms, 100_062 * ms, 100_022 * ms}
	if x.Offset() != 50*ms || x.Delay() != 20*ms {
		t.Errorf("θ = %d, δ = %d", x.Offset(), x.Delay())
	}
	var c ClockEstimator
	if _, ok := c.Estimate(); ok {
		t.Error("an estimate of nothing")
	}
	c.Add(x, Before)
	e, ok := c.Estimate()
	if !ok || e.Offset != 50*ms || e.Bound != 10*ms || e.Corrected || !e.Causal || e.Exchanges != 1 {
		t.Errorf("%+v", e)
	}
	clock := e.Clock()
	// 11 ms after the middle of the exchange the clocks may have run apart by 0.55 µs.
	if clock.Source != "exchange" || clock.OffsetS != 0.05 || clock.SkewPPM != nil || math.Abs(clock.BoundS-0.01-11e-3*50e-6) > 1e-9 {
		t.Errorf("%+v", clock)
	}
}

func TestExchangeExtremes(t *testing.T) {
	x := Exchange{0, 4e18, 4e18 + 2, 12}
	if x.Offset() != 4e18-5 || x.Delay() != 10 {
		t.Errorf("θ = %d, δ = %d", x.Offset(), x.Delay())
	}
	var c ClockEstimator
	for _, x := range []Exchange{{10, 0, 0, 5}, {0, 10, 5, 20}, {0, 10, 50, 20}} {
		if c.Add(x, Before) {
			t.Errorf("%+v was taken", x)
		}
	}
}

// path makes exchanges between a client's clock and a server's that is ahead by offset
// and runs faster by skew, over a way with a fixed delay each way and random queues.
type path struct {
	rng    *rand.Rand
	offset int64
	skew   float64
	there  int64 // ns
	back   int64
	queue  int64 // up to so much each way
	jumpAt int64
	jump   int64
}

func (p *path) server(client int64) int64 {
	s := client + p.offset + int64(p.skew*float64(client))
	if p.jump != 0 && client >= p.jumpAt {
		s += p.jump
	}
	return s
}

func (p *path) exchange(t1 int64) Exchange {
	arrives := t1 + p.there + p.rng.Int64N(p.queue+1)
	leaves := arrives + 20*us
	return Exchange{t1, p.server(arrives), p.server(leaves), leaves + p.back + p.rng.Int64N(p.queue+1)}
}

// run is M-CLOCK's plan: 20 before, one a second for so long, 20 after.
func (p *path) run(seconds int64, after bool) *ClockEstimator {
	c := &ClockEstimator{}
	for i := range int64(20) {
		c.Add(p.exchange(i*20*ms), Before)
	}
	for i := range seconds {
		c.Add(p.exchange(s+i*s), During)
	}
	if after {
		for i := range int64(20) {
			c.Add(p.exchange((seconds+1)*s+i*20*ms), After)
		}
	}
	return c
}

// Whatever the path, the bound holds: at the start, the middle and the end.
func TestEstimateHolds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := &path{
			rng:    rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1)),
			offset: rapid.SampledFrom([]int64{0, 50 * ms, -3600 * s, 1_700_000_000 * s}).Draw(t, "offset"),
			skew:   rapid.Float64Range(-40e-6, 40e-6).Draw(t, "skew"),
			there:  rapid.Int64Range(10*us, 50*ms).Draw(t, "there"),
			back:   rapid.Int64Range(10*us, 50*ms).Draw(t, "back"),
			queue:  rapid.Int64Range(0, 5*ms).Draw(t, "queue"),
		}
		seconds := rapid.Int64Range(5, 60).Draw(t, "seconds")
		after := rapid.Bool().Draw(t, "after")
		e, ok := p.run(seconds, after).Estimate()
		if !ok || !e.Causal || e.Corrected != after {
			t.Fatalf("%+v", e)
		}
		for _, at := range []int64{0, seconds / 2 * s, (seconds + 1) * s} {
			truth := p.server(at) - at
			// For the rounding of the made-up clock.
			slack := int64(us)
			if miss := e.OffsetAt(at) - truth; miss > e.BoundAt(at)+slack || -miss > e.BoundAt(at)+slack {
				t.Fatalf("at %d: offset %d, truth %d, bound %d", at, e.OffsetAt(at), truth, e.BoundAt(at))
			}
		}
	})
}

// With 20 ms round trip, symmetric, and clocks 30 ppm apart: the skew is found, and the
// offset far better than the bound says.
func TestSkew(t *testing.T) {
	p := &path{rng: rand.New(rand.NewPCG(7, 8)), offset: 1_700_000_000 * s, skew: 30e-6, there: 10 * ms, back: 10 * ms, queue: 3 * ms}
	e, _ := p.run(60, true).Estimate()
	near(t, "skew", e.Skew*1e6, 30, 5)
	near(t, "offset at 30 s", float64(e.OffsetAt(30*s)-(p.server(30*s)-30*s)), 0, ms)
	if e.Bound < 10*ms || e.Bound > 12*ms {
		t.Errorf("bound %d", e.Bound)
	}
	if c := e.Clock(); c.SkewPPM == nil || c.Exchanges != 100 {
		t.Errorf("%+v", c)
	}
	// Without those after: no skew, and 50 ppm of 60 s.
	e, _ = p.run(60, false).Estimate()
	if e.Corrected || e.BoundAt(60*s)-e.Bound < 50e-6*59*s || e.BoundAt(60*s)-e.Bound > 50e-6*61*s {
		t.Errorf("without after: %+v, %d at the end", e, e.BoundAt(60*s))
	}
}

// A clock that is set in the middle cannot be hidden: the bound holds both offsets.
func TestSetClockWidens(t *testing.T) {
	p := &path{rng: rand.New(rand.NewPCG(9, 10)), there: ms, back: ms, queue: 100 * us, jumpAt: 30 * s, jump: 700 * ms}
	for _, after := range []bool{true, false} {
		e, _ := p.run(60, after).Estimate()
		for _, at := range []int64{0, 60 * s} {
			truth := p.server(at) - at
			if miss := math.Abs(float64(e.OffsetAt(at) - truth)); miss > float64(e.BoundAt(at)) {
				t.Errorf("after %v, at %d: off by %v, bound %d", after, at, miss, e.BoundAt(at))
			}
		}
		if !after && e.Causal {
			t.Error("negative delays went unnoticed")
		}
	}
}

func TestCheck(t *testing.T) {
	e := Estimate{Bound: 100, Causal: true, Corrected: true}
	e.Check(-100)
	if !e.Causal || e.Bound != 100 {
		t.Errorf("within the bound: %+v", e)
	}
	e.Check(-130)
	if e.Causal || e.Bound != 130 {
		t.Errorf("beyond it: %+v", e)
	}
}

// A long test keeps the best of its exchanges.
func TestExchangesAreBounded(t *testing.T) {
	var c ClockEstimator
	for i := range int64(3 * maxExchanges) {
		slow := int64(10 * ms)
		if i%100 == 0 {
			slow = ms
		}
		c.Add(Exchange{i * s, i*s + slow/2, i*s + slow/2, i*s + slow}, During)
	}
	if n := len(c.exchanges[During]); n >= maxExchanges {
		t.Errorf("%d kept", n)
	}
	e, _ := c.Estimate()
	if e.Exchanges != 3*maxExchanges || e.Offset != 0 || e.Bound != ms/2 {
		t.Errorf("%+v", e)
	}
}

// One-way delay of a stream between clocks that differ and drift, in both directions.
func TestOneWay(t *testing.T) {
	p := &path{rng: rand.New(rand.NewPCG(11, 12)), offset: 5000 * s, skew: 20e-6, there: 8 * ms, back: 8 * ms, queue: 0}
	e, _ := p.run(20, true).Estimate()
	up, down := NewMeter(0), NewMeter(0)
	for i := range int64(1000) {
		at := i * 20 * ms
		q := i % 10 * ms / 10
		up.Arrive(i+1, true, true, at, p.server(at+8*ms+q))
		down.Arrive(i+1, true, true, p.server(at), at+8*ms+q)
	}
	for name, w := range map[string]result.OneWay{
		"up":   up.OneWay(func(sent, _ int64) int64 { return e.OffsetAt(sent) }),
		"down": down.OneWay(func(_, received int64) int64 { return -e.OffsetAt(received) }),
	} {
		if w.Delay == nil || w.PDV == nil || w.IPDV == nil || w.Jitter == nil {
			t.Fatalf("%s: %+v", name, w)
		}
		near(t, name+" min", w.Delay.Min, 8e-3, 20e-6)
		near(t, name+" mean", w.Delay.Mean, 8.45e-3, 20e-6)
		near(t, name+" p50", w.Delay.P50, 8.45e-3, 70e-6)
		near(t, name+" max", w.Delay.Max, 8.9e-3, 20e-6)
		near(t, name+" PDV max", w.PDV.Max, .9e-3, 20e-6)
	}
	if w := up.OneWay(nil); w.Delay != nil || w.PDV == nil {
		t.Errorf("without an offset: %+v", w)
	}
	if w := NewMeter(0).OneWay(nil); w.PDV != nil || w.Jitter != nil {
		t.Errorf("of nothing: %+v", w)
	}
}

// What time services stand for is taken where it is closer, and where the exchanges do not
// contradict it (M-CLOCK 5).
func TestPrefer(t *testing.T) {
	for name, c := range map[string]struct {
		offset, bound int64
		want          bool
	}{
		"closer":              {1100, 50, true},
		"not closer":          {1000, 500, false},
		"contradicted":        {1700, 50, false},
		"at the edge":         {1450, 50, true},
		"below, contradicted": {400, 50, false},
		"no bound":            {1000, 0, false},
	} {
		e := Estimate{Offset: 1000, Bound: 400, Until: 5000, Corrected: true, Causal: true}
		if got := e.Prefer(c.offset, c.bound); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
		if c.want && (e.OffsetAt(9000) != c.offset || e.BoundAt(9000) != c.bound || e.Clock().SkewPPM != nil) {
			t.Errorf("%s: %+v", name, e)
		}
	}
}

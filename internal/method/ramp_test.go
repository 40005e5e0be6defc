package method

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/result"
)

// seen is an interval of a ramp: its rate, and round trips, s, of new connections and of the load.
func seen(bps, foreign, self float64) *result.RampInterval {
	iv := &result.RampInterval{BPS: bps}
	if foreign > 0 {
		iv.Connects, iv.Requests = slices.Repeat([]float64{foreign}, 10), slices.Repeat([]float64{foreign}, 10)
	}
	if self > 0 {
		iv.Trips = []float64{self, self}
	}
	return iv
}

// Streams begin one an interval until the rate has settled, and from there on the responsiveness ends
// the test.
func TestRamp(t *testing.T) {
	type step struct {
		rate, foreign, self float64
		open                int
		over                bool
	}
	for name, c := range map[string]struct {
		ramp    plan.Ramp
		streams int
		steps   []step
	}{
		"one connection fills the path": {plan.Ramp{}, 16, []step{
			{100, 0.1, 0.1, 2, false}, {100, 0.1, 0.1, 3, false}, {100, 0.1, 0.1, 4, false}, {100, 0.1, 0.1, 4, false}, // four: it is known
			{100, 0.1, 0.1, 4, false}, {100, 0.1, 0.1, 4, false}, {100, 0.1, 0.1, 4, true},
		}},
		"each brings more, up to the most": {plan.Ramp{First: 1, Add: 2}, 6, []step{
			{10, 0.1, 0, 3, false}, {30, 0.1, 0, 5, false}, {50, 0.1, 0, 6, false}, {70, 0.1, 0, 6, false}, {90, 0.1, 0, 6, false},
		}},
		"the queue still grows": {plan.Ramp{}, 16, []step{
			{100, 0.1, 0, 2, false},
			{100, 0.1, 0, 3, false},
			{100, 0.1, 0, 4, false},
			{100, 0.1, 0, 4, false},
			{100, 0.2, 0, 4, false},
			{100, 0.3, 0, 4, false},
			{100, 0.5, 0, 4, false},
			{100, 0.5, 0, 4, false},
		}},
		"nothing tells the responsiveness": {plan.Ramp{First: 3}, 16, []step{
			{100, 0, 0, 4, false},
			{100, 0, 0, 5, false},
			{100, 0, 0, 6, false},
			{100, 0, 0, 6, false},
			{100, 0, 0, 6, false},
			{100, 0, 0, 6, false},
			{100, 0, 0, 6, false},
			{100, 0, 0, 6, false},
			{100, 0, 0, 6, false},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			r := NewRamping(c.ramp, c.streams)
			for i, s := range c.steps {
				iv := seen(s.rate, s.foreign, s.self)
				open, over := r.Next(iv)
				if open != s.open || over != s.over || iv.Saturated != (i >= 3 && open == c.steps[i-1].open && s.rate == c.steps[i-1].rate) {
					t.Fatalf("after interval %d: %d open, over %v, %+v; want %+v", i+1, open, over, iv, s)
				}
			}
		})
	}
}

// rampRun is a run whose ramp saw intervals, and whose sending kernel saw their round trips in its rows.
func rampRun(ivs ...*result.RampInterval) *result.Run {
	run := loadRun()
	p := result.Probes{Kind: "rpm"}
	r := NewRamping(plan.Ramp{}, 16)
	for i, iv := range ivs {
		iv.Open, _ = r.Next(iv)
		p.Ramp = append(p.Ramp, *iv)
		row := result.Interval{End: result.Client, Index: i, Sums: []result.IntervalSum{{Direction: result.Up, Sender: true, BPS: iv.BPS}}}
		for k, trip := range iv.Trips {
			row.Streams = append(row.Streams, result.StreamInterval{ID: k, Sender: true, Bytes: 1, TCP: &result.TCPInfo{RTT: int64(trip * 1e6)}})
		}
		// One that has not begun yet knows the round trip of its handshake only.
		row.Streams = append(row.Streams, result.StreamInterval{ID: 99, Sender: true, TCP: &result.TCPInfo{RTT: 1000}})
		run.Rows = append(run.Rows, row)
	}
	run.Probes = append(run.Probes, p)
	return run
}

// The golden values of methods §13, from the last four intervals of a ramp alone.
func TestRPMOfRamp(t *testing.T) {
	golden := func() *result.RampInterval {
		iv := seen(100, 0, 0.050)
		iv.Connects, iv.Requests = slices.Repeat([]float64{0.020}, 10), slices.Repeat([]float64{0.040}, 10)
		return iv
	}
	run := rampRun(seen(50, 0.001, 0.001), seen(80, 0.001, 0.001), seen(100, 0.001, 0.001), golden(), golden(), golden(), golden())
	r := rpmOf(run, result.Up, nil)
	if r == nil || math.Abs(*r.Foreign-2000) > 1e-6 || math.Abs(*r.Self-1200) > 1e-6 || math.Abs(r.Value-1600) > 1e-6 {
		t.Fatalf("%+v", r)
	}
	if r.ForeignBy != "tcp-connect" || r.SelfBy != "tcp-info" || r.Kind != "rpm-raw" || r.Class != "good" || r.Intervals != 7 || r.Streams < 4 {
		t.Errorf("%+v", r)
	}
}

func TestRampConfidence(t *testing.T) {
	times := func(n int, iv *result.RampInterval) (out []*result.RampInterval) {
		for range n {
			c := *iv
			out = append(out, &c)
		}
		return out
	}
	for name, c := range map[string]struct {
		ivs  []*result.RampInterval
		want string
	}{
		"three intervals":         {times(3, seen(100, 0.1, 0.1)), "low"},
		"the rate climbs":         {[]*result.RampInterval{seen(10, .1, .1), seen(20, .1, .1), seen(40, .1, .1), seen(80, .1, .1), seen(160, .1, .1)}, "medium"},
		"settled a moment ago":    {times(5, seen(100, 0.1, 0.1)), "medium"},
		"both settled":            {times(7, seen(100, 0.1, 0.1)), "high"},
		"no responsiveness known": {times(9, seen(100, 0, 0)), "medium"},
	} {
		if got := rampConfidence(rampRun(c.ivs...).Probes[0].Ramp); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// A deeper queue never gives more round trips a minute, whatever of the two kinds is known.
func TestRampIsMonotone(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		base := rapid.Float64Range(0.001, 0.1).Draw(t, "empty")
		queue := rapid.Float64Range(0, 0.5).Draw(t, "queue")
		more := queue + rapid.Float64Range(0.0001, 0.5).Draw(t, "more")
		foreign, self := rapid.Bool().Draw(t, "foreign"), rapid.Bool().Draw(t, "self")
		if !foreign && !self {
			self = true
		}
		noise := rapid.SliceOfN(rapid.Float64Range(0.9, 1), 4, 12).Draw(t, "fill") // of the queue
		of := func(queue float64) float64 {
			var ivs []*result.RampInterval
			for _, f := range noise {
				trip := base + f*queue
				iv := &result.RampInterval{BPS: 100}
				if foreign {
					iv.Connects, iv.Requests = []float64{trip, trip}, []float64{trip, trip}
				}
				if self {
					iv.Trips = []float64{trip}
				}
				ivs = append(ivs, iv)
			}
			return rpmOf(rampRun(ivs...), result.Up, nil).Value
		}
		if a, b := of(queue), of(more); a < b {
			t.Fatalf("a queue of %v: %v, of %v: %v", queue, a, more, b)
		}
	})
}

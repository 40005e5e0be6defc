package method

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/fullbore-net/fullbore/result"
)

// The golden values of methods §13.
func TestRPMGolden(t *testing.T) {
	foreign, loaded := ForeignRPM(0.020, 0.030, 0.040), LoadedRPM(0.050)
	if math.Abs(foreign-2000) > 1e-9 || math.Abs(loaded-1200) > 1e-9 || math.Abs((foreign+loaded)/2-1600) > 1e-9 {
		t.Errorf("foreign %v, loaded %v, RPM %v", foreign, loaded, (foreign+loaded)/2)
	}
	if v := ForeignRPM(0.020, 0, 0.040); math.Abs(v-2000) > 1e-9 {
		t.Errorf("without TLS %v", v)
	}
}

func TestTrimmedMean(t *testing.T) {
	var x []float64
	for i := range 100 {
		x = append(x, float64(i+1))
	}
	if m, ok := TrimmedMean(x); !ok || m != 48 { // of 1 … 95
		t.Errorf("%v, %v", m, ok)
	}
	if _, ok := TrimmedMean(nil); ok {
		t.Error("a mean of nothing")
	}
	if m, _ := TrimmedMean([]float64{7}); m != 7 {
		t.Errorf("of one: %v", m)
	}
	var b []result.Bucket
	for i := range 100 {
		b = append(b, result.Bucket{From: float64(i) + 0.5, To: float64(i) + 1.5, Count: 1})
	}
	if m, ok := trimmedBuckets(b); !ok || m != 48 {
		t.Errorf("of classes: %v, %v", m, ok)
	}
}

func TestSaturation(t *testing.T) {
	for name, c := range map[string]struct {
		values         []float64
		settled, known bool
	}{
		"too few":     {[]float64{1, 1, 1}, false, false},
		"flat":        {[]float64{5, 5, 5, 5}, true, true},
		"growing":     {[]float64{1, 2, 4, 8, 16}, false, true},
		"grown":       {[]float64{1, 5, 10, 10, 10, 10, 10, 10, 10, 10}, true, true},
		"5 % at most": {[]float64{100, 104, 97, 101, 99, 103, 98, 100}, true, true},
	} {
		if settled, known := Saturated(c.values); settled != c.settled || known != c.known {
			t.Errorf("%s: %v, %v", name, settled, known)
		}
	}
	flat, wild := []float64{5, 5, 5, 5, 5}, []float64{1, 9, 2, 30, 90}
	for _, c := range []struct {
		goodput, trips []float64
		want           string
	}{{flat[:3], flat, "low"}, {wild, flat, "medium"}, {flat, wild, "medium"}, {flat, flat, "high"}, {flat, nil, "high"}} {
		if got := Confidence(c.goodput, c.trips); got != c.want {
			t.Errorf("%v, %v: %s, want %s", c.goodput, c.trips, got, c.want)
		}
	}
}

// loadRun is a run whose sending kernel saw round trips, ms, one an interval.
func loadRun(trips ...float64) *result.Run {
	run := &result.Run{End: result.Client, Sums: []result.Sum{{Direction: result.Up}}}
	rate := 50e6
	run.Sums[0].Goodput = &rate
	run.Streams = []result.Stream{{ID: 1, Direction: result.Up, Remote: result.Addr{Host: "192.0.2.2"}, TCP: &result.TCPSummary{Last: result.TCPInfo{MSS: 1448, Timestamps: true}}}}
	for i, ms := range trips {
		run.Rows = append(run.Rows, result.Interval{
			End: result.Client, Index: i,
			Streams: []result.StreamInterval{{ID: 1, Sender: true, Bytes: 1, TCP: &result.TCPInfo{RTT: int64(ms * 1000)}}},
			Sums:    []result.IntervalSum{{Direction: result.Up, Sender: true, BPS: rate}},
		})
	}
	return run
}

func TestLoadOfPlainServer(t *testing.T) {
	least := 0.010
	idle := &result.Run{Probes: []result.Probes{{Kind: "udp-test", TCPMinRTT: &least}}}
	l := Load{Streams: 1}
	a := l.Answer([]Done{
		{Step: Step{Name: "idle"}, Run: idle},
		{Step: Step{Name: "up"}, Run: loadRun(110, 110, 110, 110, 110)},
	})
	if a.Source != "tcp-info" || a.Worst == nil || math.Abs(*a.Worst-0.1) > 1e-9 || a.Grade != "C" || len(a.Ways) != 1 {
		t.Fatalf("%+v", a)
	}
	w := a.Ways[0]
	// 0.1 s of 50 Mbit/s, and headers of 52 bytes for each 1448.
	if want := 0.1 * 50e6 / 8 * 1500 / 1448; math.Abs(*w.QueueBytes-want) > 1 {
		t.Errorf("queue %v, want %v", *w.QueueBytes, want)
	}
	if w.RPM == nil || w.RPM.Foreign != nil || math.Abs(w.RPM.Value-60/0.110) > 1e-6 || w.RPM.Confidence != "high" || w.RPM.Class != "fair" {
		t.Errorf("%+v", w.RPM)
	}
}

// Deeper queues never give a better grade, nor more round trips.
func TestLoadIsMonotone(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		least := rapid.Float64Range(0.001, 0.1).Draw(t, "idle")
		of := func(queue float64) (*result.Load, float64) {
			ms := 1000 * (least + queue)
			a := Load{}.Answer([]Done{
				{Step: Step{Name: "idle"}, Run: &result.Run{Probes: []result.Probes{{Kind: "udp-test", TCPMinRTT: &least}}}},
				{Step: Step{Name: "up"}, Run: loadRun(ms, ms, ms, ms)},
			})
			return a, a.Ways[0].RPM.Value
		}
		small := rapid.Float64Range(0.001, 0.5).Draw(t, "small")
		more := small + rapid.Float64Range(0.0001, 0.5).Draw(t, "more")
		a, rpmA := of(small)
		b, rpmB := of(more)
		rank := map[string]int{"A+": 0, "A": 1, "B": 2, "C": 3, "D": 4, "F": 5}
		if rank[a.Grade] > rank[b.Grade] || rpmA < rpmB || *a.Worst > *b.Worst {
			t.Fatalf("%v: %s %v; %v: %s %v", small, a.Grade, rpmA, more, b.Grade, rpmB)
		}
	})
}

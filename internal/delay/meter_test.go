package delay

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/fullbore-net/fullbore/internal/stats"
	"github.com/fullbore-net/fullbore/result"
)

const (
	us = 1_000
	ms = 1_000_000
	s  = 1_000_000_000
)

func near(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tolerance) {
		t.Errorf("%s = %v, want %v ± %v", what, got, want, tolerance)
	}
}

// The golden of methods §11, ms: each J, theirs and ours.
func TestJitterGolden(t *testing.T) {
	sent := []int64{0, 20, 40, 60, 80}
	received := []int64{5, 25, 47, 64, 86}
	want := []float64{0, 0, .125, .30469, .41064}
	for _, offset := range []int64{0, 1_700_000_000 * s, -5_000 * s} {
		m := NewMeter(0)
		for i := range sent {
			m.Arrive(int64(i+1), true, true, sent[i]*ms, received[i]*ms+offset)
			near(t, "J", m.j/ms, want[i], 0.000005)
			near(t, "compat J", m.Compat()*1e3, want[i], 0.000005)
		}
		var r result.UDPReceived
		m.Result(&r)
		near(t, "final", r.Jitter.Final*1e3, .41064, .000005)
		near(t, "mean", r.Jitter.Mean*1e3, (.125+.30469+.41064)/4, .00001)
		near(t, "max", r.Jitter.Max*1e3, .41064, .000005)
		if r.Jitter.N != 4 || r.Outliers != 0 {
			t.Errorf("n = %d, outliers = %d", r.Jitter.N, r.Outliers)
		}
		near(t, "IPDV max", r.IPDV.Max*1e3, 3, 1e-9)
		near(t, "IPDV mean", r.IPDV.Mean*1e3, 7./4, 1e-9)
		near(t, "PDV max", r.PDV.Max*1e3, 7-4, 1e-9) // delays 5 5 7 4 6
		near(t, "PDV mean", r.PDV.Mean*1e3, 27./5-4, 1e-9)
	}
}

// F04: the embedded time, or the receiver's clock, jumps by an hour in the middle; one of
// the two directions also for compat. Clocks may differ by any constant.
func TestClockSteps(t *testing.T) {
	for name, c := range map[string]struct{ sender, receiver int64 }{
		"none":                {0, 0},
		"sender forwards":     {3600 * s, 0},
		"sender backwards":    {-3600 * s, 0},
		"receiver forwards":   {0, 3600 * s},
		"receiver backwards":  {0, -3600 * s},
		"receiver by two":     {0, 2 * s},
		"sender back by two":  {-2 * s, 0},
		"both the same jump":  {3600 * s, 3600 * s},
		"sender at its limit": {1 << 62, 0},
	} {
		for _, offset := range []int64{0, 500_000 * s, -1_700_000_000 * s} {
			m := NewMeter(0)
			rng := rand.New(rand.NewPCG(1, 2))
			worst := 0.0
			for i := range int64(100) {
				sent, received := 4000*s+i*10*ms, 4000*s+i*10*ms+offset+rng.Int64N(2*ms)
				if i >= 50 {
					sent += c.sender
					received += c.receiver
				}
				m.Arrive(i+1, true, true, sent, received)
				worst = max(worst, m.Compat())
			}
			var r result.UDPReceived
			m.Result(&r)
			want := int64(1)
			if c.sender == c.receiver {
				want = 0
			}
			if r.Outliers != want || r.Jitter.N != 99-want {
				t.Errorf("%s: %d outliers, %d pairs", name, r.Outliers, r.Jitter.N)
			}
			if worst > 0.002 || r.Jitter.Max > 0.002 || r.IPDV.Max > 0.002 || r.PDV.Max > 0.002 || r.PDV.N != 100 {
				t.Errorf("%s: compat %v, jitter %+v, IPDV %+v, PDV %+v", name, worst, r.Jitter, r.IPDV, r.PDV)
			}
			if q := m.Interval(); q == nil || q.N != 100 || q.Max > 0.0021 {
				t.Errorf("%s: interval %+v", name, q)
			}
		}
	}
}

// A clock that is set at each datagram leaves the meter nothing to measure, and says so.
func TestMadClock(t *testing.T) {
	m := NewMeter(64)
	for i := range int64(1000) {
		m.Arrive(i+1, true, true, i*10*ms+(i%2)*3600*s, i*10*ms)
	}
	var r result.UDPReceived
	m.Result(&r)
	if r.Outliers < 500 || r.Jitter != nil && r.Jitter.Max > 1 || m.Compat() > 1 || r.PDV.Max > 1 {
		t.Errorf("%+v, jitter %+v, PDV %+v, compat %v", r.Outliers, r.Jitter, r.PDV, m.Compat())
	}
}

// A real delay of five seconds (a queue that stood still) stays in PDV in full.
func TestStandstillIsSeen(t *testing.T) {
	m := NewMeter(0)
	for i := range int64(2000) {
		sent := i * 10 * ms
		received := sent + ms
		if i >= 500 && i < 1000 { // from 5 s to 10 s nothing moves
			received = max(received, 10*s+(i-500)*us)
		}
		m.Arrive(i+1, true, true, sent, received)
	}
	var r result.UDPReceived
	m.Result(&r)
	near(t, "PDV max", r.PDV.Max, 5-.001, .002)
	if r.Jitter.Max > .1 || r.Outliers != 1 {
		t.Errorf("jitter %+v, %d outliers", r.Jitter, r.Outliers)
	}
}

// Pairs are consecutive in sequence and arrival: nothing across loss and reordering.
func TestPairs(t *testing.T) {
	for name, c := range map[string]struct {
		seq   []int64
		pairs int64
	}{
		"in order":      {[]int64{1, 2, 3, 4}, 3},
		"a loss":        {[]int64{1, 2, 4, 5}, 2},
		"swapped":       {[]int64{1, 3, 2, 4, 5}, 1},
		"one late":      {[]int64{1, 2, 4, 5, 3, 6, 7}, 3},
		"a duplicate":   {[]int64{1, 2, 2, 3}, 2},
		"loss at start": {[]int64{7, 8}, 1},
		"alone":         {[]int64{1}, 0},
	} {
		m := NewMeter(0)
		seen, high := map[int64]bool{}, int64(0)
		for i, q := range c.seq {
			m.Arrive(q, !seen[q], q > high, q*10*ms, int64(i)*10*ms)
			seen[q], high = true, max(high, q)
		}
		var r result.UDPReceived
		m.Result(&r)
		got := int64(0)
		if r.Jitter != nil {
			got = r.Jitter.N
		}
		if got != c.pairs || r.PDV.N != int64(len(seen)) {
			t.Errorf("%s: %d pairs, want %d; PDV of %d", name, got, c.pairs, r.PDV.N)
		}
	}
}

// Segments of one coalesced packet have one stamp: only the first counts, and the group
// as a whole still makes a pair with the next when nothing is missing.
func TestGroups(t *testing.T) {
	run := func(missing int64) result.UDPReceived {
		m := NewMeter(0)
		for q := int64(1); q <= 64; q++ {
			if q == missing {
				continue
			}
			group := (q - 1) / 16
			m.Arrive(q, true, true, q*ms, 100*ms+group*16*ms)
		}
		var r result.UDPReceived
		m.Result(&r)
		if r.CompatJitter != 0 || r.Jitter.Max != 0 || r.IPDV.Max != 0 || r.PDV.Max > 1e-3 {
			t.Errorf("groups look like jitter: %v %+v %+v %+v", r.CompatJitter, r.Jitter, r.IPDV, r.PDV)
		}
		if r.PDV.N != 4 {
			t.Errorf("%d delays of 4 groups", r.PDV.N)
		}
		return r
	}
	if r := run(0); r.Jitter.N != 3 {
		t.Errorf("%d pairs of 4 groups", r.Jitter.N)
	}
	if r := run(20); r.Jitter.N != 2 {
		t.Errorf("%d pairs of 4 groups with a loss in the second", r.Jitter.N)
	}
}

// exact is PDV computed from all delays.
func exact(t *testing.T, delays []float64) (q result.Quantiles) {
	t.Helper()
	least := slices.Min(delays)
	all := make([]float64, len(delays))
	for i, d := range delays {
		all[i] = (d - least) / 1e9
		q.Mean += all[i] / float64(len(delays))
	}
	v, _ := stats.Quantiles(all, 0.5, 0.95, 0.99, 0.999, 1)
	q.N, q.P50, q.P95, q.P99, q.P999, q.Max = int64(len(all)), v[0], v[1], v[2], v[3], v[4]
	return q
}

// Uniform 0–4 ms: 10,000 datagrams within 0.2 ms of the exact percentiles, whether all
// are kept or one of several, with clocks that drift or do not.
func TestUniformJitter(t *testing.T) {
	for _, ppm := range []float64{0, 50, -80} {
		for _, samples := range []int{0, 2048} {
			m := NewMeter(samples)
			rng := rand.New(rand.NewPCG(3, 4))
			var delays []float64
			type arrival struct{ seq, received int64 }
			var order []arrival
			for i := range int64(10_000) {
				d := rng.Int64N(4 * ms)
				delays = append(delays, float64(d))
				order = append(order, arrival{i + 1, 77*s + i*ms + d + int64(float64(i*ms)*ppm/1e6)})
			}
			slices.SortFunc(order, func(a, b arrival) int { return cmp.Compare(a.received, b.received) })
			high := int64(0)
			for _, a := range order {
				m.Arrive(a.seq, true, a.seq > high, (a.seq-1)*ms, a.received)
				high = max(high, a.seq)
			}
			want := exact(t, delays)
			var r result.UDPReceived
			m.Result(&r)
			tolerance := 0.0002
			near(t, "p50", r.PDV.P50, want.P50, tolerance)
			near(t, "p95", r.PDV.P95, want.P95, tolerance)
			near(t, "p99", r.PDV.P99, want.P99, tolerance)
			near(t, "p99.9", r.PDV.P999, want.P999, tolerance)
			if ppm == 0 {
				tolerance = 1e-9
			}
			near(t, "mean", r.PDV.Mean, want.Mean, tolerance)
			near(t, "max", r.PDV.Max, want.Max, tolerance)
			if r.PDV.Min != 0 || r.PDV.N != 10_000 {
				t.Errorf("%+v", r.PDV)
			}
			switch {
			case ppm == 0:
				if r.DriftPPM != nil {
					t.Errorf("drift of %v found in none", *r.DriftPPM)
				}
				if samples == 0 {
					near(t, "p99 of all", r.PDV.P99, want.P99, 1e-9)
				}
			case r.DriftPPM == nil:
				t.Errorf("drift of %v not found", ppm)
			default:
				near(t, "drift", *r.DriftPPM, ppm, 5)
			}
			n := int64(0)
			for _, b := range r.Histogram {
				n += b.Count
			}
			if n < 10_000-64 || n > 10_000+64 {
				t.Errorf("histogram of %d", n)
			}
			if r.Climb == nil || *r.Climb < 0.9 || *r.Climb > 1.1 {
				t.Errorf("climb %v of a steady run", r.Climb)
			}
		}
	}
}

// A queue that fills in the last quarter is a climb, not a drift.
func TestClimb(t *testing.T) {
	m := NewMeter(0)
	rng := rand.New(rand.NewPCG(5, 6))
	for i := range int64(4000) {
		d := 100*us + rng.Int64N(200*us)
		if i > 2000 {
			d += (i - 2000) * 3 * us
		}
		m.Arrive(i+1, true, true, i*ms, i*ms+d)
	}
	var r result.UDPReceived
	m.Result(&r)
	if r.DriftPPM != nil || r.Climb == nil || *r.Climb < 10 {
		t.Errorf("drift %v, climb %v", r.DriftPPM, r.Climb)
	}
}

// TestAgainstModel: pairs, J, iperf3's J, IPDV and PDV of any sequence with loss,
// duplicates and reordering equal those computed from all stamps at the end.
func TestAgainstModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := NewMeter(0)
		n := rapid.IntRange(1, 400).Draw(t, "n")
		offset := rapid.SampledFrom([]int64{0, 1e18, -1e15}).Draw(t, "offset")
		seen := map[int64]bool{}
		next, high, clock := int64(0), int64(0), int64(0)
		var (
			j, cj, ipdvSum        float64
			pairs                 int64
			delays                []float64
			lastSeq, lastD, prevD int64
		)
		for i := range n {
			var q int64
			switch rapid.IntRange(0, 9).Draw(t, "what") {
			case 0:
				next += rapid.Int64Range(2, 9).Draw(t, "gap")
				q = next
			case 1, 2:
				q = max(1, next-rapid.Int64Range(0, 9).Draw(t, "back"))
				next = max(next, q)
			default:
				next++
				q = next
			}
			clock += rapid.Int64Range(1, 20*ms).Draw(t, "step")
			sent := q * 10 * ms
			inOrder, first := q > high, !seen[q]
			m.Arrive(q, first, inOrder, sent, clock+offset)
			seen[q], high = true, max(high, q)

			d := clock - sent
			if i > 0 {
				cj += (math.Abs(float64(d-prevD)) - cj) / 16
			}
			prevD = d
			if !first {
				continue
			}
			if inOrder && q == lastSeq+1 && len(delays) > 0 {
				change := math.Abs(float64(d - lastD))
				j += (change - j) / 16
				ipdvSum += change
				pairs++
			}
			lastSeq, lastD = q, d
			delays = append(delays, float64(d))
		}
		var r result.UDPReceived
		m.Result(&r)
		if r.Outliers != 0 {
			t.Fatalf("%d outliers; nothing here comes near a second", r.Outliers)
		}
		close := func(what string, got, want float64) {
			if !(math.Abs(got-want) <= 1e-12+1e-9*math.Abs(want)) {
				t.Fatalf("%s = %v, want %v", what, got, want)
			}
		}
		close("iperf3's J", r.CompatJitter*1e9, cj)
		if (r.Jitter == nil) != (pairs == 0) {
			t.Fatalf("jitter %+v of %d pairs", r.Jitter, pairs)
		}
		if pairs > 0 {
			if r.Jitter.N != pairs {
				t.Fatalf("%d pairs, want %d", r.Jitter.N, pairs)
			}
			close("J", r.Jitter.Final*1e9, j)
			close("IPDV mean", r.IPDV.Mean*1e9, ipdvSum/float64(pairs))
		}
		if r.PDV.N != int64(len(delays)) {
			t.Fatalf("PDV of %d, want %d", r.PDV.N, len(delays))
		}
		if r.DriftPPM != nil {
			return
		}
		v := slices.Clone(delays)
		slices.Sort(v)
		close("PDV max", r.PDV.Max, (v[len(v)-1]-v[0])/1e9)
		p99, _ := stats.Quantile(v, 0.99)
		close("PDV p99", r.PDV.P99, (p99-v[0])/1e9)
	})
}

// Whatever the stamps, nothing is negative, not a number or out of order.
func FuzzMeter(f *testing.F) {
	f.Add(int64(0), int64(0), []byte{1, 2, 3, 4, 5, 6, 7, 8})
	f.Add(int64(math.MaxInt64), int64(math.MinInt64), []byte{255, 0, 128, 64, 3, 3, 3})
	f.Fuzz(func(t *testing.T, sent, received int64, data []byte) {
		m := NewMeter(64)
		seq, high := int64(0), int64(0)
		for _, b := range data {
			seq += int64(b&7) - 2
			sent += int64(b) << (b & 63)
			received += int64(b^0x55) << (b * 7 & 63)
			m.Arrive(seq, b&16 == 0, seq > high, sent, received)
			high = max(high, seq)
		}
		var r result.UDPReceived
		m.Result(&r)
		check := func(q *result.Quantiles) {
			if q == nil {
				return
			}
			if !(q.Min >= 0 && q.Min <= q.P50 && q.P50 <= q.P95 && q.P95 <= q.P99 && q.P99 <= q.P999 && q.P999 <= q.Max) ||
				!(q.Mean >= 0) || math.IsInf(q.Max, 0) {
				t.Fatalf("%+v", q)
			}
		}
		check(r.PDV)
		check(r.IPDV)
		check(m.Interval())
		if !(r.CompatJitter >= 0) || r.Jitter != nil && !(r.Jitter.Final >= 0 && r.Jitter.Max >= r.Jitter.Mean) {
			t.Fatalf("%v %+v", r.CompatJitter, r.Jitter)
		}
	})
}

func TestNoAllocation(t *testing.T) {
	m := NewMeter(128)
	i := int64(0)
	got := testing.AllocsPerRun(10_000, func() {
		i++
		m.Arrive(i, i%17 != 0, i%17 != 0, i*ms, i*ms+i%100)
		m.Compat()
	})
	if got != 0 {
		t.Errorf("%v allocations", got)
	}
	if got := testing.AllocsPerRun(1, func() { m.Interval() }); got > 1 {
		t.Errorf("an interval takes %v allocations", got)
	}
}

func BenchmarkArrive(b *testing.B) {
	for _, group := range []int64{1, 16} {
		b.Run(map[int64]string{1: "single", 16: "groups of 16"}[group], func(b *testing.B) {
			m := NewMeter(0)
			for i := range int64(b.N) {
				m.Arrive(i+1, true, true, i*1000, (i-i%group)*1000+(i/group*7919%1024))
			}
		})
	}
}

func BenchmarkInterval(b *testing.B) {
	m := NewMeter(0)
	for i := range int64(b.N) {
		m.Arrive(i+1, true, true, i*ms, i*ms+i%4*ms)
		m.Interval()
	}
}

// A sampler looks while the worker measures: no delay is lost between two intervals.
func TestIntervalMeanwhile(t *testing.T) {
	m := NewMeter(0)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range int64(20_000) {
			m.Arrive(i+1, true, true, i*ms, i*ms+i%3*ms/10)
		}
	}()
	n := int64(0)
	for running := true; running; {
		select {
		case <-done:
			running = false
		default:
		}
		if q := m.Interval(); q != nil {
			n += q.N
			if q.Max > 0.21e-3 {
				t.Fatalf("%+v", q)
			}
		}
		if j := m.Compat(); j > 0.2e-3 {
			t.Fatalf("J = %v", j)
		}
	}
	if n != 20_000 {
		t.Errorf("%d delays in all intervals", n)
	}
}

// The baseline of an interval follows drifting clocks: half an hour at 100 ppm is no PDV.
func TestIntervalWithDrift(t *testing.T) {
	m := NewMeter(0)
	for i := range int64(18_000) {
		m.Arrive(i+1, true, true, i*100*ms, i*100*ms+i*10*us+i%2*ms)
		if i%10 == 9 {
			if q := m.Interval(); q == nil || q.N != 10 || q.Max > 1.3e-3 || q.P50 > 0.3e-3 {
				t.Fatalf("after %d: %+v", i, q)
			}
		}
	}
	var r result.UDPReceived
	m.Result(&r)
	if r.DriftPPM == nil {
		t.Fatal("drift not seen")
	}
	near(t, "drift", *r.DriftPPM, 100, 1)
	near(t, "PDV max", r.PDV.Max, 1e-3, 50e-6)
}

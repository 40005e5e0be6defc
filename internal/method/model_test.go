package method_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/fullbore-net/fullbore/internal/method"
	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/result"
)

// Spec methods §10: R = 2.5 Mbit/s, T = 50 ms, payload 1460.
func TestModelGolden(t *testing.T) {
	w := method.ModelWindow(2.5e6, 50*time.Millisecond, 1460)
	s, h1, h2 := method.ModelTest(w).Lines()
	if w != 11 || method.RunLength(w) != 363 || math.Abs(h1-2.111) > 0.0005 || math.Abs(h2-2.111) > 0.0005 || math.Abs(s-5.967e-3) > 5e-7 {
		t.Errorf("W %d, N %v, h1 %v, h2 %v, s %v", w, method.RunLength(w), h1, h2, s)
	}
	for w, want := range map[int64]struct {
		n     float64
		after int64
	}{11: {363, 354}, 33: {3267, 3205}, 100: {30000, 29442}} {
		test := method.ModelTest(w)
		if got := test.PassAfter(0); method.RunLength(w) != want.n || got != want.after {
			t.Errorf("W %d: N %v, passes after %d, want %v and %d", w, method.RunLength(w), got, want.n, want.after)
		}
		if test.Decide(want.after, 0) != result.Pass || test.Decide(want.after-1, 0) != result.Inconclusive {
			t.Errorf("W %d: it does not pass at %d packets and only then", w, want.after)
		}
	}
}

func TestModelFails(t *testing.T) {
	test := method.ModelTest(11)
	if test.Decide(10, 3) != result.Fail || test.Decide(10, 2) != result.Inconclusive {
		t.Error("three of ten packets lost must fail, two not yet")
	}
}

// The test errs about as seldom as it promises.
func TestModelErrors(t *testing.T) {
	test := method.ModelTest(11)
	rng := rand.New(rand.NewPCG(1, 2))
	// From loss to loss: between two the test can only pass, at the packet that PassAfter names.
	play := func(p float64) string {
		var n, lost int64
		for {
			n += 1 + int64(math.Log(1-rng.Float64())/math.Log(1-p)) // the next loss (geometric)
			if at := test.PassAfter(lost); n > at {
				return test.Decide(at, lost)
			}
			lost++
			if r := test.Decide(n, lost); r != result.Inconclusive {
				return r
			}
		}
	}
	wrong := map[string]int{}
	const plays = 2000
	for range plays {
		if play(test.P0) != result.Pass {
			wrong["good path fails"]++
		}
		if play(test.P1) != result.Fail {
			wrong["bad path passes"]++
		}
	}
	for what, n := range wrong {
		if float64(n)/plays > 0.065 {
			t.Errorf("%s in %d of %d", what, n, plays)
		}
	}
}

func TestModelGreatest(t *testing.T) {
	const rtt = 50 * time.Millisecond
	// 354 packets without loss are just enough for W = 11: 2.57 Mbit/s.
	if got, want := method.ModelGreatest(354, 0, rtt, 1460), 11*1460*8/0.05; math.Abs(got-want) > 1 {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := method.ModelGreatest(10, 10, rtt, 1460); got != 0 {
		t.Errorf("with all lost: %v", got)
	}
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int64Range(1, 1e7).Draw(t, "n")
		lost := rapid.Int64Range(0, min(n, 50)).Draw(t, "lost")
		r := method.ModelGreatest(n, lost, rtt, 1460)
		w := int64(math.Round(r * 0.05 / (1460 * 8)))
		if w > 0 && method.ModelTest(w).Decide(n, lost) != result.Pass {
			t.Fatalf("W %d does not pass with %d of %d", w, lost, n)
		}
		if w > 0 && method.ModelTest(w+1).Decide(n, lost) == result.Pass {
			t.Fatalf("W %d passes, too, with %d of %d", w+1, lost, n)
		}
	})
}

// modelRun is a run of UDP upwards that lost so many.
func modelRun(s method.Step, lost func(n int64) int64) method.Done {
	sent := int64(float64(s.Plan.Bitrate) * s.Plan.Duration.Seconds() / float64(s.Plan.BlockSize*8))
	l := lost(sent)
	good := float64(sent-l) * float64(s.Plan.BlockSize*8) / s.Plan.Duration.Seconds()
	return method.Done{Step: s, Run: &result.Run{
		Test: result.Test{Transport: "udp", Duration: s.Plan.Duration.Seconds(), BlockSize: s.Plan.BlockSize},
		Sums: []result.Sum{{
			Direction: result.Up, Goodput: &good,
			Sender:   &result.Total{End: s.Plan.Duration.Seconds(), Bytes: sent * int64(s.Plan.BlockSize)},
			Receiver: &result.Total{End: s.Plan.Duration.Seconds(), Packets: &sent, Lost: &l},
		}},
	}}
}

func TestModelSequence(t *testing.T) {
	m := method.Model{
		Rate: 2.5e6, RTT: 50 * time.Millisecond, Directions: []plan.Direction{plan.Up}, Bursts: true,
		UDP: plan.Plan{BlockSize: 1460},
	}
	play := func(loss float64) ([]method.Done, []method.ModelPart) {
		rng := rand.New(rand.NewPCG(7, 7))
		var history []method.Done
		for {
			s, more := m.Next(history)
			if !more {
				return history, m.Answer(history)
			}
			history = append(history, modelRun(s, func(n int64) (lost int64) {
				for range n {
					if rng.Float64() < loss {
						lost++
					}
				}
				return lost
			}))
			if len(history) > 200 {
				t.Fatal("it does not end")
			}
		}
	}
	history, parts := play(0)
	if len(history) != 2 || len(parts) != 2 || parts[0].Result != result.Pass || !parts[1].Bursts || parts[1].Result != result.Pass {
		t.Errorf("without loss: %d steps, %+v", len(history), parts)
	}
	if d := history[0].Step.Plan.Duration; d < 1600*time.Millisecond || d > 1800*time.Millisecond {
		t.Errorf("the first part is as long as 354 packets take: %v", d)
	}
	if history[1].Step.Plan.Burst != 11 {
		t.Errorf("bursts of %d", history[1].Step.Plan.Burst)
	}
	_, parts = play(0.05)
	if len(parts) != 1 || parts[0].Result != result.Fail || parts[0].Greatest >= 2.5e6 {
		t.Errorf("with 5 %% loss: %+v", parts)
	}
	// A sender that never reaches the rate says nothing of the path.
	var history2 []method.Done
	for {
		s, more := m.Next(history2)
		if !more {
			break
		}
		d := modelRun(s, func(int64) int64 { return 0 })
		d.Run.Sums[0].Sender.Bytes = d.Run.Sums[0].Sender.Bytes * 9 / 10
		history2 = append(history2, d)
	}
	if p := m.Answer(history2); len(history2) != 3 || len(p) != 1 || !p[0].Short || p[0].Result != result.Inconclusive || p[0].Packets != 0 {
		t.Errorf("a slow sender: %d steps, %+v", len(history2), p)
	}
	m.Limit = time.Second
	history, parts = play(0)
	if parts[0].Result != result.Inconclusive || len(history) != 1 {
		t.Errorf("in too short a time: %+v", parts)
	}
}

// The test ends at the first row that decides, whatever the rest of the part shows; rows that
// are not what the end counted decide nothing.
func TestModelFeedback(t *testing.T) {
	m := method.Model{Rate: 2.5e6, RTT: 50 * time.Millisecond, Directions: []plan.Direction{plan.Up}, UDP: plan.Plan{BlockSize: 1460}}
	first, more := m.Next(nil)
	if !more || first.Plan.Interval != plan.MinInterval {
		t.Fatalf("%+v: each part has rows of %v", first, plan.MinInterval)
	}
	play := func(total int64, rows ...int64) method.ModelPart {
		d := modelRun(first, func(int64) int64 { return total })
		each := *d.Run.Sums[0].Receiver.Packets / 20
		for i, lost := range rows {
			d.Run.Rows = append(d.Run.Rows, result.Interval{End: result.Server, Sums: []result.IntervalSum{
				{Direction: result.Up, Start: float64(i) / 10, Stop: float64(i+1) / 10, Packets: &each, Lost: &lost},
			}})
		}
		parts := m.Answer([]method.Done{d})
		if len(parts) != 1 {
			t.Fatalf("%+v", parts)
		}
		return parts[0]
	}
	for name, c := range map[string]struct {
		total  int64
		rows   []int64
		want   string
		lost   int64
		within float64 // s
	}{
		"three at once":                {3, []int64{0, 3, 0, 0, 0, 0, 0, 0}, result.Fail, 3, 0.25},
		"the whole would go on":        {3, nil, result.Inconclusive, 3, 2},
		"the rows lost what came late": {3, []int64{0, 9, 0, 0}, result.Inconclusive, 3, 2},
		"a row took some back":         {3, []int64{0, 4, -1, 0}, result.Inconclusive, 3, 2},
		"lost after the last row":      {5, []int64{0, 0, 0, 0}, result.Fail, 5, 2},
		"nothing lost":                 {0, []int64{0, 0, 0, 0, 0, 0}, result.Pass, 0, 2},
	} {
		p := play(c.total, c.rows...)
		if p.Result != c.want || p.Lost != c.lost || p.Seconds > c.within || p.Seconds <= 0 {
			t.Errorf("%s: %s with %d of %d lost in %.2f s; want %s with %d in at most %v s", name, p.Result, p.Lost, p.Packets, p.Seconds, c.want, c.lost, c.within)
		}
	}
}

// What the receiver's socket dropped is not the path's; where datagrams were merged nobody knows how much that is,
// so the part does not count and the next is made without.
func TestModelLeavesOutTheReceiversDrops(t *testing.T) {
	m := method.Model{Rate: 2.5e6, RTT: 50 * time.Millisecond, Directions: []plan.Direction{plan.Up}, UDP: plan.Plan{BlockSize: 1460}}
	play := func(s method.Step, dropped, others int64, merged bool) method.Done {
		d := modelRun(s, func(int64) int64 { return dropped + others })
		u := &d.Run.Sums[0]
		n := *u.Receiver.Packets
		u.UDP = &result.UDPStream{
			Received: &result.UDPReceived{Coalesced: merged},
			Loss:     &result.UDPLoss{Sent: n, Lost: dropped + others, Ratio: float64(dropped+others) / float64(n), Socket: &dropped},
		}
		if merged {
			one := int64(1) // as the kernel counts them
			u.UDP.Loss.Socket = &one
		}
		return d
	}
	first, _ := m.Next(nil)
	if p := m.Answer([]method.Done{play(first, 9, 0, false)}); len(p) != 1 || p[0].Host != 9 || p[0].Lost != 0 || p[0].Result == result.Fail {
		t.Errorf("exact: %+v", p)
	}
	if p := m.Answer([]method.Done{play(first, 9, 5, false)}); len(p) != 1 || p[0].Lost != 5 || p[0].Result != result.Fail {
		t.Errorf("exact, and the path lost five: %+v", p)
	}
	history := []method.Done{play(first, 9, 0, true)}
	if p := m.Answer(history); len(p) != 1 || p[0].Unclear != 1 || p[0].Packets != 0 || p[0].Result != result.Inconclusive {
		t.Errorf("merged: %+v", p)
	}
	again, more := m.Next(history)
	if !more || again.Plan.Offload != plan.OffloadOff || again.Name != "up-paced-2" {
		t.Fatalf("after merged drops: %+v", again)
	}
	history = append(history, play(again, 9, 0, false))
	if p := m.Answer(history); p[0].Result == result.Fail || p[0].Host != 9 {
		t.Errorf("again: %+v", p)
	}
}

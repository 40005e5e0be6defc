package method

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/result"
)

func curve(x, y []float64) (out []KneePoint) {
	for i := range x {
		out = append(out, KneePoint{X: x[i], Y: y[i]})
	}
	return out
}

// The golden values of spec methods §4.
func TestKneeGolden(t *testing.T) {
	a := Knee(curve([]float64{1, 2, 4, 8, 16, 32, 64}, []float64{9.2, 17.8, 31.0, 38.5, 40.1, 40.0, 38.7}))
	want := KneeAnswer{Knee: 8, Marginal: 8, Best: 16, Cheapest: 16, Reached: true, D: []float64{0, .112, .372, .448, .333, .163, -.045}}
	if diff := cmp.Diff(want, a, cmpopts.EquateApprox(0, 0.0006)); diff != "" {
		t.Error(diff)
	}
}

func TestKneeOfOtherCurves(t *testing.T) {
	for _, c := range []struct {
		name    string
		y       []float64
		reached bool
		best    float64
	}{
		{"still growing", []float64{1, 2, 4, 8}, false, 8},
		{"flat", []float64{10, 10.1, 10, 10.05}, true, 2},
		{"falling", []float64{10, 9, 8, 7}, true, 1},
	} {
		a := Knee(curve([]float64{1, 2, 4, 8}, c.y))
		if a.Reached != c.reached || a.Best != c.best {
			t.Errorf("%s: %+v", c.name, a)
		}
		if c.name != "still growing" && a.Marginal != 1 {
			t.Errorf("%s: marginal %v, want 1", c.name, a.Marginal)
		}
	}
	p := curve([]float64{1, 2, 4, 8, 16}, []float64{10, 20, 40, 41, 41})
	p[2].HotCore = 0.99
	if a := Knee(p); a.Knee != 4 || a.Rejected == "" {
		t.Errorf("a knee at a full core is not rejected: %+v", a)
	}
	if a := Knee(nil); a.Best != 0 || a.Knee != 0 {
		t.Errorf("nothing has a knee: %+v", a)
	}
}

// The unit of y changes nothing, and what is named was measured.
func TestKneeProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 8).Draw(t, "n")
		var p, scaled []KneePoint
		for i := range n {
			y := rapid.Float64Range(1, 1000).Draw(t, "y")
			p = append(p, KneePoint{X: math.Pow(2, float64(i)), Y: y})
			scaled = append(scaled, KneePoint{X: math.Pow(2, float64(i)), Y: y * 1024})
		}
		a, b := Knee(p), Knee(scaled)
		if a.Knee != b.Knee || a.Best != b.Best || a.Cheapest != b.Cheapest || a.Marginal != b.Marginal {
			t.Fatalf("%+v and %+v", a, b)
		}
		if a.Cheapest > a.Best {
			t.Fatalf("cheapest %v above best %v", a.Cheapest, a.Best)
		}
		slices.Reverse(p)
		if c := Knee(p); c.Knee != a.Knee || c.Marginal != a.Marginal {
			t.Fatal("the order of the points matters")
		}
	})
}

func TestRounds(t *testing.T) {
	a, ok := Rounds([]float64{941, 939, 940, 702, 942})
	if !ok || a.Median != 940 || !cmp.Equal(a.Outliers, []int{3}) || a.Interval || a.Low != 702 || a.High != 942 {
		t.Errorf("%+v", a)
	}
	if a, _ := Rounds([]float64{1, 2, 3, 4, 5, 6}); !a.Interval || math.Abs(a.Level-0.969) > 0.001 || a.Low != 1 || a.High != 6 {
		t.Errorf("six rounds: %+v", a)
	}
	if _, ok := Rounds(nil); ok {
		t.Error("no rounds have an answer")
	}
	for _, c := range []struct {
		x               []float64
		enough, settled bool
	}{
		{[]float64{100, 100}, false, false},
		{[]float64{100, 100.5, 99.8}, true, true},
		{[]float64{100, 120, 90}, false, false},
		{[]float64{100, 104, 98, 100, 101, 100}, false, false},
		{[]float64{100, 101, 98, 100, 101, 100}, true, true},
		{[]float64{1, 9, 2, 8, 3, 7, 4, 6, 5, 9}, true, false},
	} {
		if enough, settled := EnoughRounds(c.x); enough != c.enough || settled != c.settled {
			t.Errorf("%v: enough %v settled %v", c.x, enough, settled)
		}
	}
}

func TestOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 20).Draw(t, "n")
		seed, round := rapid.Uint64().Draw(t, "seed"), rapid.IntRange(0, 9).Draw(t, "round")
		got := Order(seed, round, n)
		if !cmp.Equal(got, Order(seed, round, n)) {
			t.Fatal("not repeatable")
		}
		sorted := slices.Clone(got)
		slices.Sort(sorted)
		for i, v := range sorted {
			if v != i {
				t.Fatalf("no permutation: %v", got)
			}
		}
	})
	if cmp.Equal(Order(1, 0, 8), Order(1, 1, 8)) {
		t.Error("rounds have the same order")
	}
}

// play drives a method with a made-up world, up to most steps.
func play(m Method, most int, world func(Step) *result.Run) []Done {
	var history []Done
	for range most {
		step, more := m.Next(history)
		if !more {
			return history
		}
		history = append(history, Done{Step: step, Run: world(step)})
	}
	panic(fmt.Sprintf("%T did not end after %d steps", m, most))
}

func made(d result.Direction, bps float64) *result.Run {
	again := int64(0)
	return &result.Run{
		End:     result.Client,
		Streams: []result.Stream{{Direction: d, Sender: &result.Total{End: 1, Bytes: int64(bps / 8), Retransmits: &again}, TCP: &result.TCPSummary{MeanRTT: 30000, Last: result.TCPInfo{MSS: 1448}}}},
		Sums:    []result.Sum{{Direction: d, Goodput: &bps, Sender: &result.Total{End: 1, Bytes: int64(bps / 8)}}},
	}
}

// bucketRun is a UDP run through a token bucket of so many bytes at a rate (payload
// bit/s), with a queue (s) before it or, with none, dropping.
func bucketRun(offered, rate, bucket, queue, span float64) *result.Run {
	run := made(result.Up, rate)
	run.Test.BlockSize = 1200
	run.Sums[0].Sender = &result.Total{End: span, Bytes: int64(offered * span / 8)}
	tokens, backlog, worst := bucket, 0.0, 0.0
	const step = 0.1
	for at := 0.0; at < span-1e-9; at += step {
		in := offered / 8 * step
		tokens = tokens + rate/8*step
		out := min(in+backlog, tokens)
		tokens -= out
		backlog += in - out
		over := max(0, backlog-queue*rate/8)
		backlog -= over
		lost, packets := int64(over/1200), int64(in/1200)
		worst = max(worst, backlog*8/rate)
		run.Rows = append(run.Rows, result.Interval{
			End: result.Server, Start: at, Stop: at + step,
			Sums: []result.IntervalSum{{Direction: result.Up, Start: at, Stop: at + step, BPS: out * 8 / step, Lost: &lost, Packets: &packets}},
		})
	}
	run.Streams[0].UDP = &result.UDPStream{Received: &result.UDPReceived{PDV: &result.Quantiles{N: 1, P95: worst}}}
	return run
}

func TestPolice(t *testing.T) {
	const rate = 50e6
	for _, c := range []struct {
		name          string
		bucket, queue float64
		want          string
		check         func(PoliceAnswer) bool
	}{
		{"policer", 4e6, 0, Policer, func(a PoliceAnswer) bool { return math.Abs(a.Bucket/4e6-1) < 0.15 && math.Abs(a.Rate/rate-1) < 0.02 }},
		{"shaper", 4e6, 0.05, Shaper, func(a PoliceAnswer) bool { return math.Abs(a.Queue/(0.05*rate/8)-1) < 0.15 }},
		{"capacity", 0, 0.05, Capacity, func(a PoliceAnswer) bool { return math.Abs(a.Queue/(0.05*rate/8)-1) < 0.15 }},
		{"no queue at all", 0, 0, Capacity, func(a PoliceAnswer) bool { return a.Queue < 1000 }},
	} {
		p := Police{Direction: result.Up, Rate: rate, Each: 6 * time.Second}
		history := play(p, 3, func(s Step) *result.Run { return bucketRun(float64(s.Plan.Bitrate), rate, c.bucket, c.queue, 6) })
		a, ok := p.Answer(history, 0.02)
		if !ok || a.Verdict != c.want || !c.check(a) {
			t.Errorf("%s: %v %+v", c.name, ok, a)
		}
		if history[0].Step.Plan.Transport != plan.UDP || history[1].Step.Plan.Bitrate != 100e6 || history[0].Step.Pause != 10*time.Second {
			t.Errorf("%s: steps %+v", c.name, history)
		}
	}
	free := PolicePhase{Offered: 1e6, Received: 1e6, FirstLoss: -1}
	if a := JudgePolice(free, PolicePhase{Offered: 2e6, Received: 2e6, FirstLoss: -1}, 0.01); a.Verdict != Nothing {
		t.Errorf("no loss: %+v", a)
	}
	if a := JudgePolice(PolicePhase{Offered: 9e6, Received: 3e6, FirstLoss: 1, Loss: .67}, PolicePhase{Offered: 9e6, Received: 5e6, FirstLoss: 1, Loss: .4}, 0.01); a.Verdict != Unclear {
		t.Errorf("rates that differ: %+v", a)
	}
}

// Whatever is measured, a policer is only called so where no queue stood.
func TestPoliceNeverInventsAPolicer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		phase := func(name string) PolicePhase {
			f := func(what string, low, high float64) float64 { return rapid.Float64Range(low, high).Draw(t, name+what) }
			return PolicePhase{Offered: f("r", 1e6, 1e8), Received: f("R", 1e5, 1e8), Early: f("e", 0, 1e8), FirstLoss: f("t", -1, 6), Loss: f("l", 0, 1), Rise: f("q", -0.1, 1)}
		}
		a := JudgePolice(phase("a"), phase("b"), 0.02)
		if a.Verdict == Policer && (a.Bucket < 0.75*policeBurst*0.75 || a.Rate <= 0) {
			t.Fatalf("%+v", a)
		}
		if math.IsNaN(a.Rate + a.Bucket + a.Queue) {
			t.Fatalf("%+v", a)
		}
	})
}

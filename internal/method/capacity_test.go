package method_test

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/fullbore-net/fullbore/internal/method"
	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/result"
)

func TestCapTable(t *testing.T) {
	table := method.CapTables()
	for row, want := range map[int]float64{
		0: 0.12e6, 1: 1e6, 200: 200e6, 1000: 1e9, 1001: 1.1e9, 1090: 10e9, 1091: 11e9, 1180: 100e9,
	} {
		if got := table.Rate(row); got != want {
			t.Errorf("row %d: %v, want %v", row, got, want)
		}
	}
	for row := 1; row <= table.Last; row++ {
		if table.Rate(row) <= table.Rate(row-1) {
			t.Fatalf("row %d is not above the one before", row)
		}
	}
}

// Spec methods §7, line by line.
func TestCapSteeringTypeB(t *testing.T) {
	c := method.CapDefaults(false)
	const ms = time.Millisecond
	for _, x := range []struct {
		name string
		s    method.CapState
		f    method.CapFeedback
		row  int
		slow int
	}{
		{"a fast step", method.CapState{Row: 50}, method.CapFeedback{Lost: 10, Delay: 29 * ms}, 60, 0},
		{"it forgets congestion", method.CapState{Row: 50, Slow: 2}, method.CapFeedback{}, 60, 0},
		{"not beyond the knee", method.CapState{Row: 995}, method.CapFeedback{}, 1000, 0},
		{"from the knee on by one", method.CapState{Row: 1000}, method.CapFeedback{}, 1001, 0},
		{"after the ramp by one", method.CapState{Row: 50, Slow: 3}, method.CapFeedback{}, 51, 3},
		{"the last row", method.CapState{Row: 1180, Slow: 5}, method.CapFeedback{}, 1180, 5},
		{"delay between the thresholds holds", method.CapState{Row: 50}, method.CapFeedback{Delay: 30 * ms}, 50, 0},
		{"at the upper one it still holds", method.CapState{Row: 50}, method.CapFeedback{Delay: 90 * ms}, 50, 0},
		{"congestion once", method.CapState{Row: 50}, method.CapFeedback{Lost: 11}, 49, 1},
		{"by delay", method.CapState{Row: 50}, method.CapFeedback{Delay: 91 * ms}, 49, 1},
		{"the third time takes three fast steps back", method.CapState{Row: 50, Slow: 2}, method.CapFeedback{Lost: 11}, 20, 3},
		{"not below the monitor", method.CapState{Row: 20, Slow: 2}, method.CapFeedback{Lost: 11}, 0, 3},
		{"later by one", method.CapState{Row: 50, Slow: 3}, method.CapFeedback{Lost: 11}, 49, 4},
		{"above the knee by one", method.CapState{Row: 1000, Slow: 2}, method.CapFeedback{Lost: 11}, 999, 3},
		{"row 0", method.CapState{Row: 0, Slow: 7}, method.CapFeedback{Lost: 11}, 0, 8},
	} {
		got := c.Next(x.s, x.f)
		if got.Row != x.row || got.Slow != x.slow {
			t.Errorf("%s: row %d slow %d, want %d and %d", x.name, got.Row, got.Slow, x.row, x.slow)
		}
	}
}

func TestCapSteeringTypeC(t *testing.T) {
	c := method.CapDefaults(true)
	s := method.CapState{Row: 8}
	var rows []int
	for range 6 {
		s = c.Next(s, method.CapFeedback{})
		rows = append(rows, s.Row)
	}
	if rows[0] != 8 || rows[1] != 16 || rows[3] != 32 || rows[5] != 64 {
		t.Errorf("doubling every second feedback: %v", rows)
	}
	for range 3 {
		s = c.Next(s, method.CapFeedback{Lost: 100})
	}
	if s.Row != 64-1-1-30 {
		t.Errorf("after congestion: row %d", s.Row)
	}
	for range 5 {
		s = c.Next(s, method.CapFeedback{})
	}
	at := s.Row
	s = c.Next(c.Next(s, method.CapFeedback{}), method.CapFeedback{})
	if at != 37 || s.Row != 74 {
		t.Errorf("after five slow steps the ramp is tried again: %d, then %d", at, s.Row)
	}
	for range 3 {
		s = c.Next(s, method.CapFeedback{Lost: 100})
	}
	from := s.Row
	for range 10 {
		s = c.Next(s, method.CapFeedback{})
	}
	if s.Row != from+10 {
		t.Errorf("the second retry comes after ten slow steps: %d → %d", from, s.Row)
	}
	if next := c.Next(c.Next(s, method.CapFeedback{}), method.CapFeedback{}); next.Row != 2*(from+10) {
		t.Errorf("then it comes: %d", next.Row)
	}
}

// A steered sender on a path of a fixed rate with a queue keeps the path busy, without filling it
// for good.
func TestCapSteeringFindsTheRate(t *testing.T) {
	for _, typeC := range []bool{false, true} {
		for _, rate := range []float64{20e6, 150e6, 800e6} {
			c := method.CapDefaults(typeC)
			var s method.CapState
			queue, most := 0.0, rate*0.05 // bits
			var best float64
			for range 200 { // 10 s
				in := c.Table.Rate(s.Row) * 0.05
				through := math.Min(in+queue, rate*0.05)
				queue += in - through
				lost := math.Max(0, queue-most)
				queue -= lost
				best = math.Max(best, through/0.05)
				s = c.Next(s, method.CapFeedback{Lost: int64(lost / 11776), Delay: time.Duration(queue / rate * 1e9)})
			}
			if best < 0.98*rate || best > rate*1.0001 {
				t.Errorf("type C %v: best %.4g of %.4g", typeC, best, rate)
			}
			if end := c.Table.Rate(s.Row); end < 0.7*rate || end > 1.3*rate {
				t.Errorf("type C %v: ended at %.4g of %.4g", typeC, end, rate)
			}
		}
	}
}

func TestCapSteeringStaysInTheTable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := method.CapDefaults(rapid.Bool().Draw(t, "c"))
		s := method.CapState{Row: rapid.IntRange(0, c.Table.Last).Draw(t, "row"), Slow: rapid.IntRange(0, 5).Draw(t, "slow")}
		for range 50 {
			s = c.Next(s, method.CapFeedback{Lost: rapid.Int64Range(0, 30).Draw(t, "lost"), Delay: time.Duration(rapid.IntRange(0, 120).Draw(t, "ms")) * time.Millisecond})
			if s.Row < 0 || s.Row > c.Table.Last || s.Slow < 0 {
				t.Fatalf("%+v", s)
			}
		}
	})
}

// capRun is a run of rows of the receiver, IP-layer rates in Mbit/s.
func capRun(steered bool, rates ...float64) *result.Run {
	run := &result.Run{
		Test: result.Test{Transport: "udp", Duration: float64(len(rates)), Steered: steered}, Hosts: result.Hosts{},
		Layers: []result.LayerRate{{Direction: result.Up, L7: 100e6, L3: 102e6, L2: 103e6, L1: 105e6}},
	}
	lost := int64(3)
	packets := int64(100)
	for i, r := range rates {
		run.Rows = append(run.Rows, result.Interval{
			End: result.Server, Index: i, Start: float64(i), Stop: float64(i + 1),
			Sums: []result.IntervalSum{{Direction: result.Up, Start: float64(i), Stop: float64(i + 1), BPS: r * 1e6 / 1.02, Lost: &lost, Packets: &packets}},
		})
	}
	return run
}

func TestCapacityOf(t *testing.T) {
	run := capRun(true, 10, 90, 200, 120, 100, 110, 100)
	// A rest after the measured time is no sub-interval.
	run.Rows = append(run.Rows, result.Interval{End: result.Server, Start: 7, Stop: 7.9, Sums: []result.IntervalSum{{Direction: result.Up, Start: 7, Stop: 7.9, BPS: 1e9}}})
	worst := &result.Quantiles{Min: 0.001, Mean: 0.002, Max: 0.004}
	run.Rows[2].Streams = []result.StreamInterval{
		{UDP: &result.UDPInterval{PDV: &result.Quantiles{Max: 0.003}, Reordered: 1}},
		{UDP: &result.UDPInterval{PDV: worst, Reordered: 3, Duplicates: 2}},
	}
	a, ok := method.CapacityOf(run, result.Up, 1, 4)
	if !ok || math.Abs(a.Max.L3-200e6) > 1 || a.Max.Start != 2 || math.Abs(a.Max.Ratio()-0.03) > 1e-9 {
		t.Fatalf("%v %+v", ok, a.Max)
	}
	if m := a.Max; m.Delay != worst || m.Variation == nil || *m.Variation != 0.004 || m.Reordered != 4 || m.Duplicates != 2 {
		t.Errorf("of the best sub-interval: %+v", m)
	}
	if math.Abs(a.Sustained-107.5e6) > 1 { // of the last four of seven
		t.Errorf("sustained %v", a.Sustained)
	}
	if a.First.L3 != a.Max.L3 || math.Abs(a.Rest.L3-110e6) > 1 {
		t.Errorf("bimodal %+v %+v", a.First, a.Rest)
	}
	if _, ok := method.CapacityOf(run, result.Down, 1, 0); ok {
		t.Error("of a direction that was not measured")
	}
}

// Against a peer that cannot be steered with the rates double until the path gives, then a few
// tests are made just above what came through.
func TestCapacityByShortRuns(t *testing.T) {
	c := method.CapacityTest{Directions: []plan.Direction{plan.Up}, Max: 1e9}
	const path = 77e6
	var history []method.Done
	for {
		s, more := c.Next(history)
		if !more {
			break
		}
		load := float64(s.Plan.Bitrate)
		if len(history) > 0 && s.Plan.Steer != nil || load > 1e9 {
			t.Fatalf("step %d: %+v", len(history), s.Plan)
		}
		got := math.Min(load, path)
		run := capRun(false, got*1.02/1e6)
		sent, lost := int64(1000), int64(1000*(1-got/load))
		run.Sums = []result.Sum{{
			Direction: result.Up, Sender: &result.Total{End: 1, Bytes: int64(load / 8)}, Goodput: &got,
			Receiver: &result.Total{End: 1, Bytes: int64(got / 8), Packets: &sent, Lost: &lost},
		}}
		history = append(history, method.Done{Step: s, Run: run})
		if len(history) > 40 {
			t.Fatal("it does not end")
		}
	}
	found := c.Answer(history)
	if len(found) != 1 || found[0].Steered || math.Abs(found[0].Max.L3-path*1.02) > 1e4 || math.Abs(found[0].Sustained-path*1.02) > 1e4 {
		t.Fatalf("%+v", found)
	}
	if len(history) != 4+1+3 { // 10, 20, 40, 80, and four just above
		t.Errorf("%d tests", len(history))
	}
}

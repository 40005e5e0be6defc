package method

import (
	"math"
	"testing"

	"github.com/fullbore-net/fullbore/result"
)

// The golden values of methods §2.
func TestFrameworkGolden(t *testing.T) {
	for _, c := range []struct {
		bb           float64
		mtu, headers int
		fps, ideal   float64 // ideal in Mbit/s; 0 = not in the table
		digits       float64
	}{
		{100e6, 1500, 40, 8127, 94.923, .001},
		{1e9, 1500, 40, 81274, 949.28, .01},
		{1e9, 1500, 52, 81274, 941.48, .01},
		{10e9, 1500, 40, 812743, 9492.84, .01},
		{10e9, 1500, 52, 812743, 9414.81, .01},
		{10e9, 9000, 52, 138304, 9900.35, .01},
		{100e9, 1500, 52, 8127438, 94148.24, .01},
	} {
		if got := FPSMax(c.bb, c.mtu, 0); got != c.fps {
			t.Errorf("%v, %d: %v frames a second, want %v", c.bb, c.mtu, got, c.fps)
		}
		if got := IdealThroughput(c.bb, c.mtu, c.headers, 0) / 1e6; math.Abs(got-c.ideal) > c.digits/2+1e-9 {
			t.Errorf("%v, %d, %d: %v Mbit/s, want %v", c.bb, c.mtu, c.headers, got, c.ideal)
		}
	}
	for what, c := range map[string][3]float64{
		"BDP of 1 Gbit/s, 20 ms":         {MinWindow(0.020, 1e9), 2_500_000, 1e-6},
		"BDP of 10 Gbit/s, 100 ms":       {MinWindow(0.100, 10e9), 125_000_000, 1e-6},
		"window 16 000, 5 ms":            {WindowLimit(16_000, 0.005), 25.6e6, 1e-6},
		"window 65 535, 25 ms":           {WindowLimit(65_535, 0.025), 20.97e6, 5e3},
		"actual 12 s, ideal 8 s":         {TransferRatio(12, 8), 1.5, 1e-12},
		"sent 102 000, 2 000 again":      {Efficiency(102_000, 2_000), 98.04, .005},
		"32 ms over 25 ms":               {BufferDelay(0.032, 0.025), 28, 1e-9},
		"ideal time of 94.923 Mbit":      {IdealTime(94_923_000/8, 94.923e6), 1, 1e-9},
		"connections for 2.5 MB by 64 K": {float64(ConnectionsNeeded(2_500_000, 65_536)), 39, 0},
		"one VLAN tag":                   {FPSMax(1e9, 1500, 1), 81063, 0},
	} {
		if math.Abs(c[0]-c[1]) > c[2] {
			t.Errorf("%s: %v, want %v", what, c[0], c[1])
		}
	}
	if ConnectionsNeeded(1000, 0) != 0 || ConnectionsNeeded(1000, 64000) != 1 {
		t.Error("connections needed")
	}
}

func TestFrameworkVerdicts(t *testing.T) {
	f := func(v float64) *float64 { return &v }
	for name, c := range map[string]struct {
		test        result.TCPTest
		single      bool
		want        string
		pass, known bool
	}{
		"good":    {result.TCPTest{Ratio: f(1.02)}, false, "good", true, true},
		"loss":    {result.TCPTest{Ratio: f(1.5), Efficiency: f(98)}, false, "loss", false, true},
		"queue":   {result.TCPTest{Ratio: f(1.5), Efficiency: f(99.9), BufferDelay: f(150)}, false, "a standing queue", false, true},
		"neither": {result.TCPTest{Ratio: f(1.5), Efficiency: f(99.9), BufferDelay: f(20)}, false, "the window or an end", false, true},
		"window":  {result.TCPTest{Ratio: f(4), WindowRatio: f(1.01)}, true, "good with this window", true, true},
		"several": {result.TCPTest{Ratio: f(4), WindowRatio: f(1.01)}, false, "the window or an end", false, true},
		"unknown": {result.TCPTest{}, true, "not judged", false, false},
	} {
		text, pass, known := judgeFramework(&c.test, c.single, goodRatio)
		if len(text) < len(c.want) || text[:len(c.want)] != c.want || pass != c.pass || known != c.known {
			t.Errorf("%s: %q, %v, %v", name, text, pass, known)
		}
	}
}

// What a bound of the user's holds back is not judged; what passes all the same is.
func TestFrameworkHeldBack(t *testing.T) {
	rate := func(v float64) *float64 { return &v }
	for name, c := range map[string]struct {
		test result.Test
		sums []result.Sum
		held bool
	}{
		"unbounded":        {result.Test{}, []result.Sum{{Goodput: rate(95e6)}}, false},
		"below it":         {result.Test{MaxRate: 95e6}, []result.Sum{{Goodput: rate(40e6)}}, false},
		"both together":    {result.Test{MaxRate: 95e6}, []result.Sum{{Goodput: rate(47e6)}, {Goodput: rate(48e6)}}, true},
		"the server's own": {result.Test{MaxRate: 95e6, ServerLimit: &result.Limit{BitrateBPS: 50e6}}, []result.Sum{{Goodput: rate(49e6)}, {}}, true},
	} {
		if got := heldBack(&result.Run{Test: c.test, Sums: c.sums}); got != c.held {
			t.Errorf("%s: %v", name, got)
		}
	}
	for ratio, want := range map[float64][2]bool{2.0: {false, false}, 1.04: {true, true}} {
		text, pass, known := judgeFramework(&result.TCPTest{Ratio: &ratio, Held: true}, false, goodRatio)
		if pass != want[0] || known != want[1] {
			t.Errorf("ratio %v: %s, pass %v, known %v", ratio, text, pass, known)
		}
	}
}

// Tags make frames longer, so that fewer fit, and a measured bottleneck carries more on layer 1 than the
// payload alone tells.
func TestFrameworkTags(t *testing.T) {
	f := Framework{BB: [2]float64{1e9, 0}, Tags: 1}
	history := []Done{
		{Step: Step{Name: "rate-down"}, Run: &result.Run{}},
		{Step: Step{Name: "bb-down"}, Run: &result.Run{Layers: []result.LayerRate{{Direction: result.Down, L7: 957.09e6, L1: 1e9}}}},
	}
	a := f.base(history)
	x := result.TCPTest{Headers: 52, Connections: 1}
	f.refer(a, &x, 0, 0)
	if want := IdealThroughput(1e9, 1500, 52, 1); x.Ideal == nil || *x.Ideal != want || want >= IdealThroughput(1e9, 1500, 52, 0) {
		t.Errorf("ideal %v, want %v", x.Ideal, want)
	}
	if b := a.BB[1]; b == nil || math.Abs(b.BPS-1e9*1542/1538) > 1 {
		t.Errorf("measured %+v", a.BB[1])
	}
}

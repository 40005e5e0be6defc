package method

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/fullbore-net/fullbore/internal/stats"
	"github.com/fullbore-net/fullbore/result"
)

// The golden values of spec methods §17.
func TestCompareGolden(t *testing.T) {
	a := []float64{940, 938, 941, 939, 942}
	b := []float64{921, 925, 919, 930, 923}
	c, ok := Compare(a, b, 0.01)
	if !ok || c.U != 25 || math.Abs(c.P-0.0079) > 0.0001 || c.Shift != -17 || c.Verdict != "slower" {
		t.Errorf("%+v", c)
	}
	if c, _ := Compare(a, b, 0); c.Verdict != "same" { // 1.8 % is below 3 %
		t.Errorf("%+v", c)
	}
	if c, _ := Compare([]float64{10, 10, 10}, []float64{20, 20, 20}, 0); !c.TooFew || c.Verdict != "faster" {
		t.Errorf("%+v", c)
	}
	if _, ok := Compare(nil, b, 0); ok {
		t.Error("nothing can be compared")
	}
	if got := Holm([]float64{0.01, 0.04, 0.03}); !cmp.Equal(got, []float64{0.03, 0.06, 0.06}, cmpopts.EquateApprox(0, 1e-12)) {
		t.Errorf("Holm: %v", got)
	}
}

// Swapping the two sides turns the answer round.
func TestCompareIsAntisymmetric(t *testing.T) {
	turned := map[string]string{"faster": "slower", "slower": "faster", "same": "same", "undecided": "undecided"}
	rapid.Check(t, func(t *rapid.T) {
		gen := rapid.SliceOfN(rapid.Float64Range(900, 1100), 4, 9)
		a, b := gen.Draw(t, "a"), gen.Draw(t, "b")
		x, _ := Compare(a, b, 1e-9)
		y, _ := Compare(b, a, 1e-9)
		if math.Abs(x.P-y.P) > 1e-12 || math.Abs(x.Shift+y.Shift) > 1e-9 || turned[x.Verdict] != y.Verdict {
			t.Fatalf("%+v and %+v", x, y)
		}
	})
}

// noisy draws n rounds around a rate: noise of one part in a hundred and, as real paths have, now
// and then a round far below.
func noisy(r *rand.Rand, n int, rate float64) (x []float64) {
	for range n {
		v := rate * (1 + 0.01*r.NormFloat64())
		if r.IntN(20) == 0 {
			v *= 0.8
		}
		x = append(x, v)
	}
	return x
}

// What must be shown: A against A is the same, and a change of 5 % is found with 5 rounds.
func TestCompareOfSimulatedPairs(t *testing.T) {
	const pairs = 400
	for _, c := range []struct {
		name   string
		change float64
		want   string
	}{{"A/A", 1, Same}, {"5 % less", 0.95, Slower}, {"5 % more", 1.05, Faster}} {
		r := rand.New(rand.NewPCG(7, 11))
		hit := 0
		for range pairs {
			got, ok := Compare(noisy(r, 5, 940e6), noisy(r, 5, 940e6*c.change), 0)
			if ok && got.Verdict == c.want {
				hit++
			}
		}
		share := float64(hit) / pairs
		least := 0.95
		if c.want != Same {
			least = 0.70 // where a round far below falls on the faster side, five do not decide
		}
		t.Logf("%s: %.1f %% %s", c.name, 100*share, c.want)
		if share < least {
			t.Errorf("%s: %s in %.1f %% only", c.name, c.want, 100*share)
		}
	}
	// Without such rounds the change is found nearly always, and never the other way round.
	r := rand.New(rand.NewPCG(3, 5))
	hit := 0
	for range pairs {
		var a, b []float64
		for range 5 {
			a, b = append(a, 940e6*(1+0.01*r.NormFloat64())), append(b, 893e6*(1+0.01*r.NormFloat64()))
		}
		switch got, _ := Compare(a, b, 0); got.Verdict {
		case Slower:
			hit++
		case Faster:
			t.Error("the wrong way round")
		}
	}
	if share := float64(hit) / pairs; share < 0.95 {
		t.Errorf("5 %% less, noise 1 %%: found in %.1f %% only", 100*share)
	}
}

func TestCompareByLessIsBetter(t *testing.T) {
	by := Bound{Share: 0.03, Floor: 1e-4, Less: true}
	none := []float64{0, 0, 0, 0, 0}
	some := []float64{0.01, 0.02, 0.015, 0.01, 0.02}
	for _, c := range []struct {
		a, b []float64
		want string
	}{
		{none, some, Worse},
		{some, none, Better},
		{none, none, Same},
		{none, []float64{0, 1e-5, 0, 2e-5, 1e-5}, Same}, // below the floor
		{none[:2], some[:2], Worse},                     // too few: by the bound alone
		{[]float64{0.01, 0, 0.02, 0}, []float64{0.02, 0, 0.03, 0.001}, Undecided},
	} {
		got, ok := CompareBy(c.a, c.b, by)
		if !ok || got.Verdict != c.want {
			t.Errorf("%v against %v: %+v, want %s", c.a, c.b, got, c.want)
		}
	}
	if _, ok := CompareBy(nil, some, by); ok {
		t.Error("nothing was compared")
	}
}

// run is a made-up one in direction d.
func compared(d result.Direction, bps float64, change func(*result.Run)) *result.Run {
	r := made(d, bps)
	r.Sums[0].Receiver = &result.Total{End: 1, Bytes: int64(bps / 8)}
	r.Test = result.Test{Transport: "tcp", Streams: 1, Direction: string(d), Duration: 10}
	r.Hosts.Client = &result.Host{Name: "a", OS: "linux", NIC: &result.NIC{Name: "eth0", Driver: "ixgbe 1"}}
	r.CPU.Client = &result.CPU{Total: 50}
	if change != nil {
		change(r)
	}
	return r
}

func TestCompareRuns(t *testing.T) {
	var a, b []*result.Run
	for i := range 5 {
		a = append(a, compared(result.Up, 940e6+float64(i)*1e6, nil), compared(result.Down, 500e6+float64(i)*1e6, nil))
		slower := func(r *result.Run) {
			r.Hosts.Client.NIC.Driver = "ixgbe 2"
			r.Test.Streams = 4
			r.CPU.Client.Total = 90
		}
		b = append(b, compared(result.Up, 840e6+float64(i)*1e6, slower), compared(result.Down, 500e6+float64(i)*1.1e6, slower))
	}
	c := CompareRuns(a, b, 0)
	if c.Verdict != Slower {
		t.Errorf("verdict %s", c.Verdict)
	}
	verdicts := map[string]string{}
	for _, m := range c.Metrics {
		verdicts[m.Metric+" "+m.Direction] = m.Verdict
		if m.Holm < m.P {
			t.Errorf("%s: corrected p %v below %v", m.Metric, m.Holm, m.P)
		}
	}
	want := map[string]string{
		"goodput up": Slower, "goodput down": Same, "rtt up": Same, "cpu-client up": Worse, "cpu-client down": Worse,
	}
	if diff := cmp.Diff(want, verdicts); diff != "" {
		t.Error(diff)
	}
	wantDifferences := []result.Difference{
		{What: "streams", A: "1", B: "4", Setting: true},
		{What: "driver", End: result.Client, A: "ixgbe 1", B: "ixgbe 2"},
	}
	if diff := cmp.Diff(wantDifferences, c.Differences); diff != "" {
		t.Error(diff)
	}
	// Five rounds reach p = 0.0079 at least: the two directions of goodput are corrected by
	// themselves, however many other figures there are.
	if m := c.Metrics[0]; math.Abs(m.P-2.0/252) > 1e-9 || math.Abs(m.Holm-4.0/252) > 1e-9 {
		t.Errorf("%+v", m)
	}
}

// Sides that do not agree on the direction cannot be called faster or slower as a whole.
func TestCompareRunsOpposed(t *testing.T) {
	var a, b []*result.Run
	for i := range 4 {
		v := float64(i) * 1e5
		a = append(a, compared(result.Up, 900e6+v, nil), compared(result.Down, 500e6+v, nil))
		b = append(b, compared(result.Up, 500e6+v, nil), compared(result.Down, 900e6+v, nil))
	}
	if c := CompareRuns(a, b, 0); c.Verdict != Undecided {
		t.Errorf("%+v", c.Verdict)
	}
	if c := CompareRuns(a, nil, 0); c.Verdict != Undecided || len(c.Metrics) != 0 {
		t.Errorf("without a side: %+v", c)
	}
}

// Two families: goodput's directions, and everything else. Four rounds a side reach p = 2/70.
func TestCompareRunsFamilies(t *testing.T) {
	sides := func(ways ...result.Direction) (a, b []*result.Run) {
		for i := range 4 {
			for _, d := range ways {
				a = append(a, compared(d, 900e6+float64(i)*1e5, nil))
				b = append(b, compared(d, 800e6+float64(i)*1e5, func(r *result.Run) { r.CPU.Client.Total = 90 + float64(i) }))
			}
		}
		return a, b
	}
	const least = 2.0 / 70
	for _, c := range []struct {
		name    string
		ways    []result.Direction
		verdict string
		want    map[string]float64 // corrected p of each figure
	}{
		{"one direction", []result.Direction{result.Up}, Slower, map[string]float64{
			"goodput up": least,                               // alone in its family
			"rtt up":     1, "cpu-client up": min(2*least, 1), // two in the other
		}},
		{"both directions", []result.Direction{result.Up, result.Down}, Undecided, map[string]float64{
			"goodput up": 2 * least, "goodput down": 2 * least,
			"rtt up": 1, "cpu-client up": 3 * least, "cpu-client down": 3 * least,
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, b := sides(c.ways...)
			x := CompareRuns(a, b, 0)
			got := map[string]float64{}
			for _, m := range x.Metrics {
				got[m.Metric+" "+m.Direction] = m.Holm
			}
			if diff := cmp.Diff(c.want, got, cmpopts.EquateApprox(0, 1e-9)); diff != "" {
				t.Error(diff)
			}
			if x.Verdict != c.verdict {
				t.Errorf("verdict %s, want %s", x.Verdict, c.verdict)
			}
		})
	}
}

func TestReachable(t *testing.T) {
	for _, c := range []struct {
		a, b, family int
		want         bool
	}{{3, 3, 1, false}, {4, 4, 1, true}, {4, 4, 2, false}, {5, 5, 2, true}, {5, 5, 6, true}, {5, 5, 7, false}, {2, 9, 1, true}, {0, 5, 1, false}} {
		if got := Reachable(c.a, c.b, c.family); got != c.want {
			t.Errorf("%+v", c)
		}
	}
}

// What else changed is named: hops, drivers of either end, settings. What one side does not tell is
// no change.
func TestCompareRunsNamesWhatChanged(t *testing.T) {
	hops := func(addrs ...string) []result.Hop {
		var out []result.Hop
		for i, a := range addrs {
			out = append(out, result.Hop{TTL: i + 1, Addr: a})
		}
		return out
	}
	var a, b []*result.Run
	for i := range 4 {
		v := float64(i) * 1e5
		a = append(a, compared(result.Up, 900e6+v, func(r *result.Run) {
			r.Hops = hops("192.0.2.1", "", "192.0.2.9")
			r.Hosts.Server = &result.Host{OS: "linux", CPUModel: "X", NIC: &result.NIC{Driver: "mlx5_core 1"}}
			r.Test.Congestion = "cubic"
		}))
		b = append(b, compared(result.Up, 900e6+v, func(r *result.Run) {
			r.Hops = hops("192.0.2.1", "198.51.100.7", "192.0.2.9")
			r.Hosts.Client.NIC.Driver = "ixgbe 2"
			r.Hosts.Server = &result.Host{OS: "linux", NIC: &result.NIC{Driver: "mlx5_core 2"}} // its processor is not told
			r.Test.Congestion = "bbr"
		}))
	}
	got := CompareRuns(a, b, 0).Differences
	for _, want := range []result.Difference{
		{What: "hops", A: "192.0.2.1 ? 192.0.2.9", B: "192.0.2.1 198.51.100.7 192.0.2.9"},
		{What: "driver", End: result.Client, A: "ixgbe 1", B: "ixgbe 2"},
		{What: "driver", End: result.Server, A: "mlx5_core 1", B: "mlx5_core 2"},
		{What: "congestion", A: "cubic", B: "bbr", Setting: true},
	} {
		if !slices.Contains(got, want) {
			t.Errorf("not named: %+v\nof %+v", want, got)
		}
	}
	if len(got) != 4 {
		t.Errorf("%+v", got)
	}
	if same := CompareRuns(a, a, 0).Differences; len(same) != 0 {
		t.Errorf("a side differs from itself: %+v", same)
	}
}

// least is the smallest p that so many rounds a side can have: of those that lie wholly apart.
func least(t *testing.T, a, b int) float64 {
	t.Helper()
	var x, y []float64
	for i := range a {
		x = append(x, float64(i))
	}
	for i := range b {
		y = append(y, 100+float64(i))
	}
	m, ok := stats.MannWhitney(x, y)
	if !ok {
		return 1
	}
	return m.P
}

// Reachable is what the test itself says of sides that lie wholly apart.
func TestReachableIsTheTest(t *testing.T) {
	for a := 0; a <= 9; a++ {
		for b := 0; b <= 9; b++ {
			for family := 1; family <= 14; family++ {
				if got, want := Reachable(a, b, family), float64(family)*least(t, a, b) < Significant-1e-12; got != want {
					t.Errorf("%d against %d, %d figures: %v, want %v", a, b, family, got, want)
				}
			}
		}
	}
}

// What must be shown, of whole comparisons: both directions, with all other figures beside them.
func TestCompareRunsOfSimulatedPairs(t *testing.T) {
	const pairs = 100
	for _, c := range []struct {
		name   string
		change float64
		want   string
	}{{"A/A", 1, Same}, {"5 % less", 0.95, Slower}, {"5 % more", 1.05, Faster}} {
		r := rand.New(rand.NewPCG(17, 19))
		hit := 0
		for range pairs {
			var a, b []*result.Run
			for range 5 {
				for _, d := range []result.Direction{result.Up, result.Down} {
					a = append(a, compared(d, 940e6*(1+0.01*r.NormFloat64()), nil))
					b = append(b, compared(d, 940e6*c.change*(1+0.01*r.NormFloat64()), nil))
				}
			}
			if CompareRuns(a, b, 0).Verdict == c.want {
				hit++
			}
		}
		if hit < 95 {
			t.Errorf("%s: %s in %d of %d", c.name, c.want, hit, pairs)
		}
	}
}

// Where a side's documents do not tell what arrived, what was sent is compared, of TCP.
func TestCompareRunsBySent(t *testing.T) {
	sent := func(bps float64, transport string) *result.Run {
		r := &result.Run{End: result.Client, Test: result.Test{Transport: transport, Direction: "up", Streams: 1}}
		r.Streams = []result.Stream{{Direction: result.Up, Sender: &result.Total{End: 10, Bytes: int64(bps * 10 / 8)}}}
		return result.Fold(result.Unfold(r))
	}
	var a, b, udp []*result.Run
	for i := range 5 {
		v := float64(i) * 1e5
		a, b, udp = append(a, sent(900e6+v, "tcp")), append(b, sent(800e6+v, "tcp")), append(udp, sent(800e6+v, "udp"))
	}
	c := CompareRuns(a, b, 0)
	if c.Verdict != Slower || len(c.Metrics) != 1 || c.Metrics[0].Metric != "sent" || c.Metrics[0].Holm > Significant {
		t.Errorf("%s, %+v", c.Verdict, c.Metrics)
	}
	if c := CompareRuns(udp, udp, 0); len(c.Metrics) != 0 || c.Verdict != Undecided {
		t.Errorf("what was sent of datagrams was compared: %+v", c.Metrics)
	}
	var full []*result.Run
	for i := range 5 {
		r := sent(900e6+float64(i)*1e5, "tcp")
		r.Streams[0].Receiver = &result.Total{End: 10, Bytes: 1e9}
		full = append(full, result.Fold(result.Unfold(r)))
	}
	if c := CompareRuns(full, full, 0); c.Metrics[0].Metric != "goodput" || len(c.Metrics) != 1 {
		t.Errorf("goodput is known: %+v", c.Metrics)
	}
}

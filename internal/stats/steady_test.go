package stats_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/fullbore-net/fullbore/internal/stats"
)

// mserFormula is M-STEADY as it is written, with its n² sums.
func mserFormula(x []float64) stats.Steady {
	var y []float64
	for i := 0; i+5 <= len(x); i += 5 {
		y = append(y, (x[i]+x[i+1]+x[i+2]+x[i+3]+x[i+4])/5)
	}
	best, at := math.Inf(1), 0
	for d := 0; d <= len(y)/2; d++ {
		mean, sum := 0.0, 0.0
		for _, v := range y[d:] {
			mean += v / float64(len(y)-d)
		}
		for _, v := range y[d:] {
			sum += (v - mean) * (v - mean)
		}
		if z := sum / float64((len(y)-d)*(len(y)-d)); z < best {
			best, at = z, d
		}
	}
	return stats.Steady{Warmup: 5 * at, Unsteady: at == len(y)/2}
}

func noise(seed uint64, n int, sd float64, mean func(i int) float64) []float64 {
	r := rand.New(rand.NewPCG(seed, 1))
	x := make([]float64, n)
	for i := range x {
		x[i] = mean(i) + sd*r.NormFloat64()
	}
	return x
}

func TestMSER5EqualsItsFormula(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(50, 400).Draw(t, "n")
		ramp := rapid.IntRange(0, 300).Draw(t, "ramp")
		x := noise(rapid.Uint64().Draw(t, "seed"), n, 3, func(i int) float64 {
			return 100 * math.Min(1, float64(i+1)/float64(ramp+1))
		})
		got, ok := stats.MSER5(x)
		if want := mserFormula(x); !ok || got != want {
			t.Fatalf("MSER5 = %+v, %v; the formula says %+v", got, ok, want)
		}
	})
}

func TestMSER5(t *testing.T) {
	step := make([]float64, 100)
	for i := range step {
		step[i] = 941.3
		if i < 20 {
			step[i] = 10 * float64(i)
		}
	}
	constant := make([]float64, 100)
	for i := range constant {
		constant[i] = 941.3
	}
	rising := make([]float64, 100)
	for i := range rising {
		rising[i] = float64(i)
	}
	for _, c := range []struct {
		name string
		x    []float64
		want stats.Steady
		ok   bool
	}{
		{"constant has no warm-up, whatever its last digit", constant, stats.Steady{}, true},
		{"slow start of 2 s", step, stats.Steady{Warmup: 20}, true},
		{"rising to the end", rising, stats.Steady{Warmup: 50, Unsteady: true}, true},
		{"idle", make([]float64, 50), stats.Steady{}, true},
		{"one sample too few", make([]float64, 49), stats.Steady{}, false},
		{"none", nil, stats.Steady{}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, ok := stats.MSER5(c.x)
			if got != c.want || ok != c.ok {
				t.Errorf("got %+v, %v; want %+v, %v", got, ok, c.want, c.ok)
			}
		})
	}
}

// The rates that the doc comment promises, with fixed seeds.
func TestMSER5FalseAlarms(t *testing.T) {
	for _, c := range []struct {
		n   int
		max float64
	}{
		{50, 0.12},
		{100, 0.03},
		{200, 0.01},
	} {
		const runs = 1000
		alarms := 0
		for seed := range uint64(runs) {
			if s, _ := stats.MSER5(noise(seed, c.n, 1, func(int) float64 { return 100 })); s.Unsteady {
				alarms++
			}
		}
		if rate := float64(alarms) / runs; rate > c.max {
			t.Errorf("%d samples: %.3f of steady runs called unsteady, want at most %v", c.n, rate, c.max)
		}
	}
}

func TestSettled(t *testing.T) {
	calm := []float64{100, 101, 99, 100, 102, 98, 100, 101, 99, 100}
	if !stats.Settled(calm) {
		t.Error("calm samples are not settled")
	}
	if !stats.Settled(append([]float64{1, 5, 900}, calm...)) {
		t.Error("what came before the last ten samples must not matter")
	}
	if stats.Settled(calm[:9]) {
		t.Error("nine samples are too few")
	}
	if stats.Settled([]float64{10, 20, 30, 40, 50, 60, 70, 80, 90, 100}) {
		t.Error("a ramp is not settled")
	}
	if stats.Settled(make([]float64, 10)) {
		t.Error("an idle link is not settled")
	}
}

// A run of 10 s that needs 2 s at half rate to get going reads 10 % low.
func TestWarmupDeficit(t *testing.T) {
	x := []float64{50, 50, 100, 100, 100, 100, 100, 100, 100, 100}
	got, ok := stats.WarmupDeficit(x, 2)
	if !ok {
		t.Fatal("not ok")
	}
	near(t, "deficit", got, 0.1, 1e-12)
	got, _ = stats.WarmupDeficit([]float64{300, 100, 100, 100}, 1)
	near(t, "deficit of a burst", got, -0.5, 1e-12)
}

func TestEndTrend(t *testing.T) {
	for _, c := range []struct {
		name   string
		x      []float64
		rising bool
		ok     bool
	}{
		{"still in slow start", []float64{1, 2, 4, 8, 16, 32, 64, 128}, true, true},
		{"linear growth of a long fat pipe, noisy", noise(7, 30, 2, func(i int) float64 { return 50 + float64(i) }), true, true},
		{"the same in 100-ms slots over a minute", noise(8, 600, 5, func(i int) float64 { return 50 + float64(i)/10 }), true, true},
		{"rose, then level", []float64{1, 10, 50, 90, 100, 100, 101, 99, 100, 100}, false, true},
		{"level and noisy", noise(9, 60, 5, func(int) float64 { return 100 }), false, true},
		{"growth that does not matter", noise(10, 60, 0, func(i int) float64 { return 1000 + float64(i)/10 }), false, true},
		{"falling", []float64{9, 9, 9, 9, 8, 7, 6, 5, 4}, false, true},
		{"too short", []float64{1, 2, 3, 4, 5, 6}, false, false},
		{"idle", make([]float64, 20), false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, ok := stats.EndTrend(c.x)
			if got.Rising() != c.rising || ok != c.ok {
				t.Errorf("got %+v, rising %v, ok %v; want rising %v, ok %v", got, got.Rising(), ok, c.rising, c.ok)
			}
		})
	}
}

// Kendall's own worked form: all pairs ascend in 1…10, so S = 45, variance 125.
func TestMannKendall(t *testing.T) {
	x := []float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}
	z, _ := stats.MannKendall(x)
	near(t, "z", z, 44/math.Sqrt(125), 1e-12)
	z, _ = stats.MannKendall([]float64{3, 3, 3, 3})
	near(t, "z of a constant", z, 0, 0)
	// Two ties of two: variance (4·3·13 − 2·2·1·9)/18 = 20/3, S = 4.
	z, _ = stats.MannKendall([]float64{1, 1, 2, 2})
	near(t, "z with ties", z, 3/math.Sqrt(20.0/3), 1e-12)
}

func TestTrendProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := rapid.SliceOfN(rapid.Float64Range(-1e6, 1e6), 2, 40).Draw(t, "x")
		mirror := make([]float64, len(x))
		for i := range x {
			mirror[i] = -x[i]
		}
		z, _ := stats.MannKendall(x)
		mz, _ := stats.MannKendall(mirror)
		s, _ := stats.TheilSen(x)
		ms, _ := stats.TheilSen(mirror)
		if z != -mz || math.Abs(s+ms) > 1e-9*math.Abs(s) {
			t.Fatalf("a mirrored series has another trend: %v %v, %v %v", z, mz, s, ms)
		}
	})
}

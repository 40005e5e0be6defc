package stats_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/fullbore-net/fullbore/internal/stats"
)

func TestDriftGolden(t *testing.T) {
	// Eight values, each larger than the one before: of 8! orders two are as extreme.
	d, ok := stats.DriftOf([]float64{1, 2, 4, 7, 11, 16, 22, 29})
	if !ok {
		t.Fatal("no drift of eight values")
	}
	near(t, "p", d.P, 2.0/40320, 1e-12)
	near(t, "slope", d.Slope, 4, 1e-12) // median of the 28 slopes
	if d.Low < 1 || d.High > 7 || d.Low > d.Slope || d.High < d.Slope {
		t.Errorf("interval %v…%v", d.Low, d.High)
	}
	if _, ok := stats.DriftOf([]float64{1, 2, 3, 4, 5, 6, 7}); ok {
		t.Error("seven values have a drift")
	}
	flat, _ := stats.DriftOf([]float64{5, 5, 5, 5, 5, 5, 5, 5, 5})
	if flat.P != 1 || flat.Slope != 0 {
		t.Errorf("a flat series drifts: %+v", flat)
	}
}

// The exact probability against all orders of eight values.
func TestDriftAgainstAllOrders(t *testing.T) {
	score := func(x []float64) (s float64) {
		for i := range x {
			for j := i + 1; j < len(x); j++ {
				s += math.Copysign(1, x[j]-x[i])
			}
		}
		return math.Abs(s)
	}
	counts := map[float64]int{}
	x := []float64{1, 2, 3, 4, 5, 6, 7, 8}
	var all func(k int)
	all = func(k int) {
		if k == len(x) {
			counts[score(x)]++
			return
		}
		for i := k; i < len(x); i++ {
			x[k], x[i] = x[i], x[k]
			all(k + 1)
			x[k], x[i] = x[i], x[k]
		}
	}
	all(0)
	r := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		r.Shuffle(len(x), func(i, j int) { x[i], x[j] = x[j], x[i] })
		more := 0
		for s, n := range counts {
			if s >= score(x) {
				more += n
			}
		}
		d, _ := stats.DriftOf(x)
		near(t, "p", d.P, float64(more)/40320, 1e-12)
	}
}

// Beyond the exact counts the approximation keeps its level: 5 % of series without a trend.
func TestDriftFalseAlarms(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, n := range []int{20, 21, 60} {
		alarms := 0
		const series = 1000
		for range series {
			x := make([]float64, n)
			for i := range x {
				x[i] = r.NormFloat64()
			}
			if d, _ := stats.DriftOf(x); d.P <= 0.05 {
				alarms++
			}
		}
		if alarms < 25 || alarms > 75 { // 50 ± 3.6 standard deviations
			t.Errorf("n = %d: %d of %d series without a trend have one at 5 %%", n, alarms, series)
		}
	}
}

func TestDriftProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := rapid.SliceOfN(rapid.Float64Range(-1e6, 1e6), 8, 24).Draw(t, "x")
		d, _ := stats.DriftOf(x)
		back := slices.Clone(x)
		slices.Reverse(back)
		r, _ := stats.DriftOf(back)
		if math.Abs(d.Slope+r.Slope) > 1e-6*(1+math.Abs(d.Slope)) || math.Abs(d.P-r.P) > 1e-12 {
			t.Fatalf("backwards %+v, forwards %+v", r, d)
		}
		if !(d.P >= 0 && d.P <= 1) || d.Low > d.Slope || d.High < d.Slope {
			t.Fatalf("%+v", d)
		}
	})
}

func TestCUSUM(t *testing.T) {
	z := make([]float64, 30)
	for i := 10; i < 20; i++ {
		z[i] = 3
	}
	// Each adds 2.5: the second one reaches 5, five times over.
	want := []stats.Alarm{{At: 11, From: 10, Up: true}, {At: 13, From: 12, Up: true}, {At: 15, From: 14, Up: true}, {At: 17, From: 16, Up: true}, {At: 19, From: 18, Up: true}}
	if diff := cmp.Diff(want, stats.CUSUM(z)); diff != "" {
		t.Error(diff)
	}
	for i := range z {
		z[i] = -z[i]
	}
	if got := stats.CUSUM(z); len(got) != 5 || got[0].Up {
		t.Errorf("downwards: %+v", got)
	}
	if got := stats.CUSUM([]float64{0.4, -0.4, 0.5, 0.5, -0.5}); got != nil {
		t.Errorf("noise: %+v", got)
	}
}

func TestSplits(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	level := func(n int, mean float64) (x []float64) {
		for range n {
			x = append(x, mean+r.NormFloat64())
		}
		return x
	}
	got := stats.Splits(slices.Concat(level(60, 100), level(50, 60), level(40, 80)), 7)
	if len(got) != 2 || got[0].At != 60 || got[1].At != 110 {
		t.Fatalf("%+v", got)
	}
	near(t, "before", got[0].Before, 100, 1)
	near(t, "after", got[0].After, 60, 1)
	near(t, "shift", got[1].Shift, 20, 1)
	if got[0].P > stats.SplitLevel {
		t.Errorf("p = %v", got[0].P)
	}
	again := stats.Splits(slices.Concat(level(20, 5), level(20, 50)), 7)
	if len(again) != 1 || again[0].At != 20 {
		t.Errorf("%+v", again)
	}
	if got := stats.Splits(make([]float64, 100), 1); got != nil {
		t.Errorf("a flat series: %+v", got)
	}
}

// The level of the test is kept: a chance of 1 % in noise.
func TestSplitsFalseAlarms(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 9))
	alarms := 0
	for k := range 200 {
		x := make([]float64, 40)
		for i := range x {
			x[i] = r.NormFloat64()
		}
		if len(stats.Splits(x, uint64(k))) > 0 {
			alarms++
		}
	}
	if alarms > 8 { // 2 expected; more than 8 have a chance of 3 in 10,000
		t.Errorf("%d of 200 series without a change have one", alarms)
	}
}

// The cut is the best one by the definition, computed term by term.
func TestSplitIsTheBestCut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := append(rapid.SliceOfN(rapid.Float64Range(0, 1), 8, 14).Draw(t, "a"), rapid.SliceOfN(rapid.Float64Range(10, 11), 8, 14).Draw(t, "b")...)
		got := stats.Splits(x, 1)
		if len(got) == 0 {
			t.Fatal("no split between 0…1 and 10…11")
		}
		energy := func(c int) float64 {
			mean := func(a, b []float64) (s float64) {
				for _, v := range a {
					for _, w := range b {
						s += math.Abs(v - w)
					}
				}
				return s / float64(len(a)*len(b))
			}
			a, b := x[:c], x[c:]
			m, n := float64(len(a)), float64(len(b))
			return m * n / (m + n) * (2*mean(a, b) - mean(a, a) - mean(b, b))
		}
		best := stats.SplitSide
		for c := best; c <= len(x)-stats.SplitSide; c++ {
			if energy(c) > energy(best)*(1+1e-9) {
				best = c
			}
		}
		if !slices.ContainsFunc(got, func(s stats.Split) bool { return s.At == best }) {
			t.Fatalf("splits %+v, the best cut is %d", got, best)
		}
	})
}

func TestPeriod(t *testing.T) {
	r := rand.New(rand.NewPCG(10, 11))
	noise := func(n int) []float64 {
		x := make([]float64, n)
		for i := range x {
			x[i] = 100 + r.NormFloat64()
		}
		return x
	}
	dips := noise(360) // a dip of two samples each thirty
	for i := range dips {
		if i%30 < 2 {
			dips[i] -= 40
		}
	}
	dips[100], dips[200] = math.NaN(), math.NaN()
	c, ok := stats.Period(dips, 6, 120)
	if !ok || c.Lag != 30 || c.R < 0.8 {
		t.Errorf("dips each 30 samples: %+v, %v", c, ok)
	}
	drift := noise(360)
	for i := range drift {
		drift[i] += float64(i)
	}
	if c, ok := stats.Period(drift, 6, 120); ok {
		t.Errorf("a drift has a period: %+v", c)
	}
	if c, ok := stats.Period(noise(360), 6, 120); ok {
		t.Errorf("noise has a period: %+v", c)
	}
	if _, ok := stats.Period(make([]float64, 360), 6, 120); ok {
		t.Error("a flat series has a period")
	}
	if _, ok := stats.Period(dips[:80], 6, 120); ok {
		t.Error("a cycle that was seen less than three times is one")
	}
}

func TestAutocorrelation(t *testing.T) {
	x := []float64{1, -1, 1, -1, 1, -1, 1, -1}
	got := stats.Autocorrelation(x, 3)
	want := []float64{1, -1, 1, -1}
	if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) < 1e-12 })); diff != "" {
		t.Error(diff)
	}
	if got := stats.Autocorrelation(nil, 5); len(got) != 1 || got[0] != 0 {
		t.Errorf("of nothing: %v", got)
	}
}

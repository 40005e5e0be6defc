package stats_test

import (
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/fullbore-net/fullbore/internal/stats"
)

func near(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if math.IsNaN(got) || math.Abs(got-want) > tolerance {
		t.Errorf("%s = %v, want %v", what, got, want)
	}
}

// The rounds of methods §17: one of five is far off and must be marked, not dropped.
var rounds = []float64{941, 939, 940, 702, 942}

func TestRounds(t *testing.T) {
	median, _ := stats.Median(rounds)
	mad, _ := stats.MAD(rounds)
	near(t, "median", median, 940, 0)
	near(t, "MAD", mad, 1, 0)
	if got := stats.Outliers(rounds); !cmp.Equal(got, []int{3}) {
		t.Errorf("outliers = %v, want [3]", got)
	}
	near(t, "z of 702", stats.RobustZ(rounds)[3], 0.6745*(702-940), 1e-9)
	if !cmp.Equal(rounds, []float64{941, 939, 940, 702, 942}) {
		t.Errorf("the argument was changed: %v", rounds)
	}
}

func TestSpread(t *testing.T) {
	x := []float64{2, 4, 4, 4, 5, 5, 7, 9}
	mean, _ := stats.Mean(x)
	sd, _ := stats.StdDev(x)
	cov, _ := stats.CoV(x)
	near(t, "mean", mean, 5, 1e-12)
	near(t, "sd", sd, math.Sqrt(32.0/7), 1e-12)
	near(t, "cov", cov, math.Sqrt(32.0/7)/5, 1e-12)
}

func TestQuantileType7(t *testing.T) {
	x := []float64{40, 10, 30, 20} // unsorted on purpose
	for _, c := range []struct{ q, want float64 }{
		{0, 10},
		{0.25, 17.5},
		{0.5, 25},
		{0.9, 37},
		{1, 40},
	} {
		got, ok := stats.Quantile(x, c.q)
		if !ok {
			t.Errorf("quantile %v: not ok", c.q)
		}
		near(t, "quantile", got, c.want, 1e-12)
	}
	several, ok := stats.Quantiles(x, 0.5, 0.9)
	if !ok || !cmp.Equal(several, []float64{25, 37}) {
		t.Errorf("quantiles = %v, %v", several, ok)
	}
}

// What cannot be known is said, and is not NaN.
func TestNoAnswer(t *testing.T) {
	var none []float64
	one := []float64{3}
	for name, got := range map[string]func() (float64, bool){
		"mean of none":            func() (float64, bool) { return stats.Mean(none) },
		"sd of one":               func() (float64, bool) { return stats.StdDev(one) },
		"cov around zero":         func() (float64, bool) { return stats.CoV([]float64{-1, 1}) },
		"median of none":          func() (float64, bool) { return stats.Median(none) },
		"mad of none":             func() (float64, bool) { return stats.MAD(none) },
		"quantile 1.1":            func() (float64, bool) { return stats.Quantile(one, 1.1) },
		"quantile NaN":            func() (float64, bool) { return stats.Quantile(one, math.NaN()) },
		"slope of one":            func() (float64, bool) { return stats.TheilSen(one) },
		"Mann-Kendall of one":     func() (float64, bool) { return stats.MannKendall(one) },
		"deficit, all warm-up":    func() (float64, bool) { return stats.WarmupDeficit(one, 1) },
		"deficit of an idle link": func() (float64, bool) { return stats.WarmupDeficit([]float64{0, 0}, 1) },
	} {
		if v, ok := got(); ok || v != 0 {
			t.Errorf("%s: %v, %v; want 0, false", name, v, ok)
		}
	}
	if v, ok := stats.Quantiles(none, 0.5); ok || v != nil {
		t.Errorf("quantiles of none: %v, %v", v, ok)
	}
	if z := stats.RobustZ([]float64{5, 5, 5}); !cmp.Equal(z, []float64{0, 0, 0}) {
		t.Errorf("z of equal values = %v", z)
	}
}

// More than half of the values equal: MAD is 0, the odd one is still found.
func TestOutliersWithZeroMAD(t *testing.T) {
	x := []float64{10, 10, 10, 10, 10, 10, 10, 10, 10, 99}
	if got := stats.Outliers(x); !cmp.Equal(got, []int{9}) {
		t.Errorf("outliers = %v, want [9]", got)
	}
}

// The values of methods §17.
func TestMedianInterval(t *testing.T) {
	for _, c := range []struct {
		n         int
		low, high float64
		coverage  float64
	}{
		{6, 1, 6, 0.969},
		{9, 2, 8, 0.961},
		{15, 4, 12, 0.965},
	} {
		x := make([]float64, c.n)
		for i := range x {
			x[i] = float64(c.n - i)
		}
		iv, ok := stats.MedianInterval(x, 0.95)
		if !ok || iv.Low != c.low || iv.High != c.high {
			t.Errorf("n = %d: %+v, %v; want %v..%v", c.n, iv, ok, c.low, c.high)
		}
		near(t, "coverage", iv.Coverage, c.coverage, 0.0005)
	}
	if iv, ok := stats.MedianInterval([]float64{1, 2, 3, 4, 5}, 0.95); ok {
		t.Errorf("five values have no 95 %% interval, got %+v", iv)
	}
	if iv, ok := stats.MedianInterval(nil, 0.95); ok {
		t.Errorf("no values have an interval: %+v", iv)
	}
}

func TestQuantileProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := rapid.SliceOfN(rapid.Float64Range(-1e9, 1e9), 1, 60).Draw(t, "x")
		a := rapid.Float64Range(0, 1).Draw(t, "a")
		b := rapid.Float64Range(0, 1).Draw(t, "b")
		if a > b {
			a, b = b, a
		}
		qa, _ := stats.Quantile(x, a)
		qb, _ := stats.Quantile(x, b)
		if qa > qb {
			t.Fatalf("quantile falls: q(%v) = %v > q(%v) = %v", a, qa, b, qb)
		}
		if qa < slices.Min(x) || qb > slices.Max(x) {
			t.Fatalf("quantile outside the data")
		}
	})
}

// The interval of the median holds the sample median and keeps its promise.
func TestMedianIntervalProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := rapid.SliceOfN(rapid.Float64Range(-1e9, 1e9), 6, 200).Draw(t, "x")
		iv, ok := stats.MedianInterval(x, 0.95)
		m, _ := stats.Median(x)
		if !ok || iv.Coverage < 0.95 || iv.Low > m || iv.High < m {
			t.Fatalf("median %v, interval %+v, %v", m, iv, ok)
		}
	})
}

package stats_test

import (
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"github.com/fullbore-net/fullbore/internal/stats"
)

// The line of methods §5: 0 of 4 877 000 lost (≤ 6.2e-7 at 95 %).
func TestRuleOfThree(t *testing.T) {
	near(t, "0 of 4877000", stats.RuleOfThree(4_877_000), 6.15e-7, 0.005e-7)
	near(t, "0 of 1", stats.RuleOfThree(1), 1, 0)
}

func TestClopperPearsonEnds(t *testing.T) {
	for _, n := range []int64{1, 2, 10, 1000, 1e6, 1e11} {
		want := -math.Expm1(math.Log(0.025) / float64(n)) // 1 − 0.025^(1/n)
		low, high, ok := stats.ClopperPearson(0, n, 0.95)
		if !ok || low != 0 || math.Abs(high/want-1) > 1e-12 {
			t.Errorf("0 of %d: %v…%v, want 0…%v", n, low, high, want)
		}
		low, high, ok = stats.ClopperPearson(n, n, 0.95)
		if !ok || high != 1 || math.Abs(low-(1-want)) > 1e-12 {
			t.Errorf("%d of %[1]d: %v…%v, want %v…1", n, low, high, 1-want)
		}
	}
	for _, c := range []struct {
		k, n  int64
		level float64
	}{{0, 0, .95}, {-1, 5, .95}, {6, 5, .95}, {1, 5, 0}, {1, 5, 1}, {1, 5, math.NaN()}} {
		if low, high, ok := stats.ClopperPearson(c.k, c.n, c.level); ok {
			t.Errorf("%+v: %v…%v", c, low, high)
		}
	}
}

// Computed with mpmath, 34 digits: quadrature of the beta density and a secant search.
func TestClopperPearsonGoldens(t *testing.T) {
	for _, c := range []struct {
		k, n      int64
		low, high float64
	}{
		{10, 100, 0.049004689221486, 0.176222597740023},
		{1000, 1000000, 0.000939001207950072, 0.00106391810731523},
		{500000, 1000000, 0.499019519195312, 0.500980480804688},
		{1000000, 1000000000, 0.000998041960675846, 0.00100196092881979},
		{1000000000, 100000000000, 0.00999938332091144, 0.0100006167074531},
		{123456789, 100000000000, 0.00123435026013066, 0.00123478554874182},
		{1000, 100000000000, 9.38973018689514e-9, 1.06395213567609e-8},
	} {
		low, high, ok := stats.ClopperPearson(c.k, c.n, 0.95)
		// Of what matters, the distance from k/n, nine digits.
		p := float64(c.k) / float64(c.n)
		if !ok || math.Abs((low-c.low)/(p-c.low)) > 1e-9 || math.Abs((high-c.high)/(c.high-p)) > 1e-9 {
			t.Errorf("%d of %d: %.15g…%.15g, want %.15g…%.15g", c.k, c.n, low, high, c.low, c.high)
		}
	}
}

// Both ends against the definition, summed up term by term in 200 bits.
func TestClopperPearsonByDefinition(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int64Range(1, 150).Draw(t, "n")
		k := rapid.Int64Range(0, n).Draw(t, "k")
		level := rapid.SampledFrom([]float64{0.5, 0.9, 0.95, 0.999}).Draw(t, "level")
		low, high, ok := stats.ClopperPearson(k, n, level)
		p := float64(k) / float64(n)
		if !ok || low > p || high < p || low < 0 || high > 1 {
			t.Fatalf("%d of %d: %v…%v", k, n, low, high)
		}
		alpha := (1 - level) / 2
		if k > 0 {
			if got := tail(n, k, n, low); math.Abs(got/alpha-1) > 1e-9 {
				t.Fatalf("%d of %d at %v: P(X ≥ k) = %v at the lower end %v", k, n, level, got, low)
			}
		}
		if k < n {
			if got := tail(n, 0, k, high); math.Abs(got/alpha-1) > 1e-9 {
				t.Fatalf("%d of %d at %v: P(X ≤ k) = %v at the upper end %v", k, n, level, got, high)
			}
		}
	})
}

// tail is P(from ≤ X ≤ to), X ~ Bin(n, p).
func tail(n, from, to int64, p float64) float64 {
	const precision = 200
	num := func(x float64) *big.Float { return new(big.Float).SetPrec(precision).SetFloat64(x) }
	P := num(p)
	Q := new(big.Float).SetPrec(precision).Sub(num(1), P)
	power := func(b *big.Float, e int64) *big.Float {
		r := num(1)
		for range e {
			r.Mul(r, b)
		}
		return r
	}
	sum := num(0)
	for k := from; k <= to; k++ {
		c := new(big.Float).SetPrec(precision).SetInt(new(big.Int).Binomial(n, k))
		c.Mul(c, power(P, k))
		sum.Add(sum, c.Mul(c, power(Q, n-k)))
	}
	f, _ := sum.Float64()
	return f
}

// The interval moves with k and narrows with n, whatever the size.
func TestClopperPearsonOrder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int64Range(2, 100_000_000_000).Draw(t, "n")
		k := rapid.Int64Range(0, min(n-1, 1_000_000_000)).Draw(t, "k")
		low, high, _ := stats.ClopperPearson(k, n, 0.95)
		low2, high2, _ := stats.ClopperPearson(k+1, n, 0.95)
		if !(low < low2 && high < high2 || high == 1) || !(low <= float64(k)/float64(n) && float64(k)/float64(n) <= high) {
			t.Fatalf("%d and one more of %d: %v…%v, %v…%v", k, n, low, high, low2, high2)
		}
		if k > 100 && n-k > 100 {
			// The normal approximation is near there.
			p := float64(k) / float64(n)
			width := 2 * 1.96 * math.Sqrt(p*(1-p)/float64(n))
			if r := (high - low) / width; r < 0.98 || r > 1.12 {
				t.Fatalf("%d of %d: width %v of the normal one", k, n, r)
			}
		}
	})
}

func BenchmarkClopperPearson(b *testing.B) {
	for b.Loop() {
		stats.ClopperPearson(1_000_000_000, 100_000_000_000, 0.95)
	}
}

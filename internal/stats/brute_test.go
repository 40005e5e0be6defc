package stats_test

import (
	"math"
	"math/big"
	"math/bits"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/fullbore-net/fullbore/internal/stats"
)

// The statistics of M-ROUNDS against their definitions, by counting: nothing here sorts, interpolates
// or uses a recurrence as the package does.

// selected is the k-th smallest value (from 0): the one with at most k smaller and more than k not
// larger ones.
func selected(x []float64, k int) float64 {
	for _, v := range x {
		less, upTo := 0, 0
		for _, w := range x {
			if w < v {
				less++
			}
			if w <= v {
				upTo++
			}
		}
		if less <= k && k < upTo {
			return v
		}
	}
	panic("no such value")
}

// middle is the median: the middle value, of an even number the mean of the two in the middle.
func middle(x []float64) float64 {
	n := len(x)
	return (selected(x, (n-1)/2) + selected(x, n/2)) / 2
}

// wholes are values with many ties, and far ones among them.
func wholes(t *rapid.T, least, most int) []float64 {
	value := rapid.Map(rapid.OneOf(rapid.IntRange(0, 6), rapid.IntRange(-1000, 1000)), func(v int) float64 { return float64(v) })
	return rapid.SliceOfN(value, least, most).Draw(t, "x")
}

func TestMedianAndOutliersByDefinition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := wholes(t, 1, 15)
		m, _ := stats.Median(x)
		if want := middle(x); m != want {
			t.Fatalf("median of %v is %v, want %v", x, m, want)
		}
		var away []float64
		sum := 0.0
		for _, v := range x {
			away = append(away, math.Abs(v-middle(x)))
			sum += math.Abs(v - middle(x))
		}
		mad, _ := stats.MAD(x)
		if want := middle(away); mad != want {
			t.Fatalf("MAD of %v is %v, want %v", x, mad, want)
		}
		var marked []int
		for i, v := range x {
			// |0.6745 (x − median) / MAD| > 3.5, without dividing; where MAD is 0 by the mean deviation
			far := 0.6745*math.Abs(v-middle(x)) > 3.5*mad
			if mad == 0 {
				far = 0.7979*math.Abs(v-middle(x))*float64(len(x)) > 3.5*sum
			}
			if far {
				marked = append(marked, i)
			}
		}
		if got := stats.Outliers(x); !slices.Equal(got, marked) {
			t.Fatalf("of %v are marked %v, want %v", x, got, marked)
		}
	})
}

// The quantile at rank k of n is the k-th smallest value, and it goes straight between two.
func TestQuantileByRanks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := wholes(t, 2, 12)
		k := rapid.IntRange(0, len(x)-2).Draw(t, "k")
		share := float64(rapid.IntRange(0, 8).Draw(t, "eighths")) / 8
		got, _ := stats.Quantile(x, (float64(k)+share)/float64(len(x)-1))
		want := selected(x, k) + share*(selected(x, k+1)-selected(x, k))
		if math.Abs(got-want) > 1e-9*(1+math.Abs(want)) {
			t.Fatalf("quantile %d + %v of %v is %v, want %v", k, share, x, got, want)
		}
	})
}

// CoV by the two sums, exactly: the values are whole numbers.
func TestCoVByDefinition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := wholes(t, 2, 12)
		for i := range x {
			x[i] = math.Abs(x[i]) + 1
		}
		n, sum, squares := float64(len(x)), 0.0, 0.0
		for _, v := range x {
			sum, squares = sum+v, squares+v*v
		}
		got, ok := stats.CoV(x)
		want := math.Sqrt(max(n*squares-sum*sum, 0)/(n*(n-1))) / (sum / n)
		if !ok || math.Abs(got-want) > 1e-9*(1+want) {
			t.Fatalf("CoV of %v is %v, want %v", x, got, want)
		}
	})
}

// The coverage of the median's interval is that of the binomial distribution, in whole numbers, for
// as many rounds as anybody makes; and the interval is the narrowest that keeps the level.
func TestMedianIntervalAgainstExactBinomials(t *testing.T) {
	for n := 1; n <= 120; n++ {
		all := new(big.Int).Lsh(big.NewInt(1), uint(n)) //nolint:gosec // small
		missed := func(rank int) float64 {              // 2 · P(fewer than rank of n lie below the median)
			below := new(big.Int)
			for k := range rank {
				below.Add(below, new(big.Int).Binomial(int64(n), int64(k)))
			}
			share, _ := new(big.Rat).SetFrac(below.Lsh(below, 1), all).Float64()
			return share
		}
		best := 0
		for rank := 1; rank <= n/2 && 1-missed(rank) >= 0.95; rank++ {
			best = rank
		}
		iv, ok := stats.MedianInterval(ascending(n, 1), 0.95)
		switch {
		case ok != (best > 0) || ok != (n >= 6):
			t.Errorf("n = %d: there is an interval: %v", n, ok)
		case ok && (iv.Rank != best || math.Abs(iv.Coverage-(1-missed(best))) > 1e-9):
			t.Errorf("n = %d: %+v, want rank %d, coverage %v", n, iv, best, 1-missed(best))
		case ok && (iv.Low != float64(best) || iv.High != float64(n+1-best)):
			t.Errorf("n = %d: %+v", n, iv)
		}
	}
}

// The interval of the shift against all orders of the values of both sides: how often U is below k.
func TestShiftCoverageAgainstAllOrders(t *testing.T) {
	for n := 1; n <= 6; n++ {
		for m := 1; m <= 6; m++ {
			x := ascending(n+m, 1)
			below := make([]float64, n*m+1) // orders with this U
			all := 0.0
			splits(x, n, func(in, out []float64) {
				below[int(pairs(in, out))]++
				all++
			})
			k, coverage, tail := 0, 0.0, 0.0
			for u := range n * m / 2 {
				if tail += below[u]; 1-2*tail/all < 0.95 {
					break
				}
				k, coverage = u+1, 1-2*tail/all
			}
			a, b := ascending(n, 0), make([]float64, m)
			for i := range b {
				b[i] = 100 + float64(i)*17.3 // all differences differ
			}
			s, _ := stats.HodgesLehmann(a, b, 0.95)
			var diffs []float64
			for _, v := range a {
				for _, w := range b {
					diffs = append(diffs, w-v)
				}
			}
			switch {
			case math.Abs(s.Median-middle(diffs)) > 1e-9:
				t.Errorf("%d against %d: shift %v, want %v", n, m, s.Median, middle(diffs))
			case s.Interval != (k > 0):
				t.Errorf("%d against %d: an interval: %v", n, m, s.Interval)
			case s.Interval && (math.Abs(s.Coverage-coverage) > 1e-12 || s.Low != selected(diffs, k-1) || s.High != selected(diffs, len(diffs)-k)):
				t.Errorf("%d against %d: %+v, want the %d-th differences, coverage %v", n, m, s, k, coverage)
			}
		}
	}
}

// Eight a side, with ties: more splits than the drawn cases have.
func TestMannWhitneyAgainstAllSplitsOfEight(t *testing.T) {
	a := []float64{941, 939, 940, 702, 942, 940, 938, 941}
	b := []float64{939, 940, 930, 925, 938, 936, 702, 931}
	got, _ := stats.MannWhitney(a, b)
	u := pairs(a, b)
	var all, below, above float64
	splits(append(slices.Clone(a), b...), 8, func(in, out []float64) {
		all++
		switch v := pairs(in, out); {
		case v < u:
			below++
		case v > u:
			above++
		default:
			below, above = below+1, above+1
		}
	})
	near(t, "splits", all, 12870, 0)
	near(t, "U", got.U, u, 0)
	near(t, "p", got.P, 2*min(below, above)/all, 1e-12)
}

// Holm's correction is the closed test of Bonferroni's: a hypothesis falls when each set of
// hypotheses with it falls.
func TestHolmAgainstAllSets(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := rapid.SliceOfN(rapid.Float64Range(0, 1), 1, 8).Draw(t, "p")
		got := stats.Holm(p)
		for i := range p {
			want := 0.0
			for set := range 1 << len(p) {
				if set>>i&1 == 0 {
					continue
				}
				least := 1.0
				for j, v := range p {
					if set>>j&1 == 1 {
						least = min(least, v)
					}
				}
				want = max(want, min(1, least*float64(bits.OnesCount(uint(set)))))
			}
			if math.Abs(got[i]-want) > 1e-12 {
				t.Fatalf("%v: corrected %v, want %v at %d", p, got, want, i)
			}
		}
	})
}

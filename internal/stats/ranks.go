package stats

import (
	"cmp"
	"math"
	"slices"
)

// ExactRanks is the largest number of values a side for which rank tests are exact; with
// more, the normal approximation is good to three digits of p.
const ExactRanks = 20

// RankTest is Mann and Whitney's test of two samples (1947).
type RankTest struct {
	U     float64 // pairs in which the value of a is the larger; equal ones count half
	P     float64 // two-sided: twice the smaller tail, at most 1
	Exact bool    // counted over all splits of the values, ties as they are
}

// MannWhitney tests whether values of a and b are alike in size. ok is false when a side
// has none.
func MannWhitney(a, b []float64) (t RankTest, ok bool) {
	n, m := len(a), len(b)
	if n == 0 || m == 0 {
		return RankTest{}, false
	}
	ranks, ties := midranks(append(slices.Clone(a), b...))
	sum := 0 // of a's ranks, doubled
	for _, r := range ranks[:n] {
		sum += r
	}
	t.U = float64(sum-n*(n+1)) / 2
	if n > ExactRanks || m > ExactRanks {
		t.P = approximateP(float64(n), float64(m), t.U, ties)
		return t, true
	}
	t.P, t.Exact = splitP(ranks, n, sum), true
	return t, true
}

// midranks are the doubled ranks of x, equal values sharing their mean rank, and the sum of
// t³ − t over the groups of t equal values.
func midranks(x []float64) (doubled []int, ties float64) {
	order := make([]int, len(x))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int { return cmp.Compare(x[i], x[j]) })
	doubled = make([]int, len(x))
	for from := 0; from < len(order); {
		to := from + 1
		for to < len(order) && x[order[to]] == x[order[from]] {
			to++
		}
		for _, i := range order[from:to] {
			doubled[i] = from + 1 + to
		}
		t := float64(to - from)
		ties += t*t*t - t
		from = to
	}
	return doubled, ties
}

// splitP counts the ways to choose n of the ranks by their sum.
func splitP(ranks []int, n, sum int) float64 {
	most := 0
	for _, r := range ranks {
		most += r
	}
	ways := make([][]float64, n+1) // ways[k][s]: choices of k ranks with sum s
	for k := range ways {
		ways[k] = make([]float64, most+1)
	}
	ways[0][0] = 1
	top := 0
	for _, r := range ranks {
		top += r
		for k := n; k > 0; k-- {
			for s := top; s >= r; s-- {
				ways[k][s] += ways[k-1][s-r]
			}
		}
	}
	var below, above, all float64
	for s, w := range ways[n] {
		all += w
		if s <= sum {
			below += w
		}
		if s >= sum {
			above += w
		}
	}
	return math.Min(1, 2*math.Min(below, above)/all)
}

// approximateP is the normal approximation with the correction for ties and for steps.
func approximateP(n, m, u, ties float64) float64 {
	both := n + m
	variance := n * m / 12 * (both + 1 - ties/(both*(both-1)))
	if variance <= 0 {
		return 1
	}
	z := (math.Abs(u-n*m/2) - 0.5) / math.Sqrt(variance)
	return math.Min(1, math.Erfc(math.Max(z, 0)/math.Sqrt2))
}

// Shift is Hodges and Lehmann's estimate (1963) of how much larger b is than a: the median of
// all differences b − a, with the interval that belongs to Mann and Whitney's test.
type Shift struct {
	Median float64
	// Low and High hold the shift of continuous distributions with probability Coverage, at
	// least the level; they are meaningful when Interval is true.
	Low, High float64
	Coverage  float64
	Interval  bool
}

// HodgesLehmann estimates the shift from a to b; ok is false when a side has no values. There
// is no interval when even the whole range of differences does not reach the level (0.95: 3
// against 3).
func HodgesLehmann(a, b []float64, level float64) (s Shift, ok bool) {
	if len(a) == 0 || len(b) == 0 {
		return Shift{}, false
	}
	diffs := make([]float64, 0, len(a)*len(b))
	for _, x := range a {
		for _, y := range b {
			diffs = append(diffs, y-x)
		}
	}
	slices.Sort(diffs)
	s.Median = quantileSorted(diffs, 0.5)
	k, coverage := shiftRank(len(a), len(b), level)
	if k == 0 {
		return s, true
	}
	s.Low, s.High, s.Coverage, s.Interval = diffs[k-1], diffs[len(diffs)-k], coverage, true
	return s, true
}

// shiftRank is the largest k for which [D(k), D(nm+1−k)] has the coverage, 1 − 2·P(U < k); 0 =
// there is none.
func shiftRank(n, m int, level float64) (k int, coverage float64) {
	if n > ExactRanks || m > ExactRanks {
		mean := float64(n) * float64(m) / 2
		sd := math.Sqrt(float64(n) * float64(m) * float64(n+m+1) / 12)
		k = int(math.Floor(mean - math.Sqrt2*math.Erfinv(level)*sd))
		return max(k, 0), level
	}
	ways := rankSumWays(n, m)
	all, tail := 0.0, 0.0
	for _, w := range ways {
		all += w
	}
	for i, w := range ways[:len(ways)/2] {
		tail += w
		if 1-2*tail/all < level {
			break
		}
		k, coverage = i+1, 1-2*tail/all
	}
	return k, coverage
}

// rankSumWays counts the orders of n values of one sample and m of another, all different, by
// U: the coefficients of the Gaussian binomial.
func rankSumWays(n, m int) []float64 {
	ways := make([]float64, n*m+1)
	ways[0] = 1
	// Multiply by (1 − q^(m+i)) / (1 − q^i) for i = 1 … n.
	for i := 1; i <= n; i++ {
		for s := len(ways) - 1; s >= m+i; s-- {
			ways[s] -= ways[s-m-i]
		}
		for s := i; s < len(ways); s++ {
			ways[s] += ways[s-i]
		}
	}
	return ways
}

// Holm corrects the p-values of several tests (Holm 1979): the returned ones may each be held
// against the level of the whole family.
func Holm(p []float64) []float64 {
	order := make([]int, len(p))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(p[a], p[b]) })
	out := make([]float64, len(p))
	most := 0.0
	for rank, i := range order {
		most = math.Max(most, math.Min(1, float64(len(p)-rank)*p[i]))
		out[i] = most
	}
	return out
}

// Jain is the fairness index of x, (Σx)²/(n·Σx²): 1 when all are equal, 1/n when one has all;
// ok is false for no values, or all 0.
func Jain(x []float64) (index float64, ok bool) {
	var sum, squares float64
	for _, v := range x {
		sum += v
		squares += v * v
	}
	if squares == 0 {
		return 0, false
	}
	return sum * sum / (float64(len(x)) * squares), true
}

package method

import (
	"cmp"
	"math"
	"slices"

	"github.com/fullbore-net/fullbore/internal/stats"
)

// RoundsAnswer is M-ROUNDS' account of one setting measured several times.
type RoundsAnswer struct {
	N        int
	Median   float64
	Min, Max float64
	CoV      float64 // 0 for fewer than two rounds
	Outliers []int   // indices that are marked, never dropped
	// Low and High are a confidence interval of the median when Interval is true (six
	// rounds and more); else they are the range, which is none.
	Low, High float64
	Level     float64 // of the interval, e.g. 0.969
	Interval  bool
}

// Rounds sums up rounds; false for none.
func Rounds(x []float64) (RoundsAnswer, bool) {
	median, ok := stats.Median(x)
	if !ok {
		return RoundsAnswer{}, false
	}
	a := RoundsAnswer{N: len(x), Median: median, Min: slices.Min(x), Max: slices.Max(x), Outliers: stats.Outliers(x)}
	a.CoV, _ = stats.CoV(x)
	a.Low, a.High = a.Min, a.Max
	if iv, ok := stats.MedianInterval(x, 0.95); ok {
		a.Low, a.High, a.Level, a.Interval = iv.Low, iv.High, iv.Coverage, true
	}
	return a, true
}

// Limits of the adaptive number of rounds (M-ROUNDS).
const (
	LeastRounds  = 3
	MostRounds   = 10
	roundsCoV    = 0.01
	roundsHalf   = 0.025 // of the median
	intervalFrom = 6
)

// EnoughRounds reports whether more rounds would tell nothing new, and whether the rounds
// so far settled; at MostRounds they are enough whatever they say.
func EnoughRounds(x []float64) (enough, settled bool) {
	a, ok := Rounds(x)
	switch {
	case !ok || a.N < LeastRounds:
		return false, false
	case a.N == LeastRounds && a.CoV <= roundsCoV:
		return true, true
	case a.N >= intervalFrom && a.Median > 0 && (a.High-a.Low)/2 <= roundsHalf*a.Median:
		return true, true
	}
	return a.N >= MostRounds, false
}

// Order is a random order of n settings for round r, from a seed that is recorded: the
// same for the same numbers. (A small generator of its own, so that no release of the
// library changes recorded orders: SplitMix64 with Fisher and Yates' shuffle.)
func Order(seed uint64, round, n int) []int {
	state := seed + uint64(round)*0x9E3779B97F4A7C15
	next := func() uint64 {
		state += 0x9E3779B97F4A7C15
		z := state
		z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
		z = (z ^ z>>27) * 0x94D049BB133111EB
		return z ^ z>>31
	}
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	for i := n - 1; i > 0; i-- {
		j := int(next() % uint64(i+1))
		out[i], out[j] = out[j], out[i]
	}
	return out
}

// Comparison is what M-ROUNDS says of B against A.
type Comparison struct {
	Verdict string  // "faster", "slower", "same", "undecided"
	Shift   float64 // Hodges–Lehmann: median of all differences b − a
	Share   float64 // Shift over the median of A
	U       float64 // Mann–Whitney, of A
	P       float64 // two-sided, exact; 1 where there are too few values or ties decide
	// TooFew: fewer than four rounds on a side cannot reach 5 %; Verdict is by the
	// threshold alone.
	TooFew bool
}

// DefaultThreshold is the least shift that counts.
const DefaultThreshold = 0.03

// Compare judges B against A; both need a value. threshold 0 = DefaultThreshold.
func Compare(a, b []float64, threshold float64) (Comparison, bool) {
	if threshold == 0 {
		threshold = DefaultThreshold
	}
	median, ok := stats.Median(a)
	if !ok || len(b) == 0 || median <= 0 {
		return Comparison{}, false
	}
	var diffs []float64
	c := Comparison{P: 1}
	for _, x := range a {
		for _, y := range b {
			diffs = append(diffs, y-x)
			switch {
			case x > y:
				c.U++
			case x == y:
				c.U += 0.5
			}
		}
	}
	c.Shift, _ = stats.Median(diffs)
	c.Share = c.Shift / median
	c.P = mannWhitney(len(a), len(b), c.U)
	c.TooFew = len(a) < 4 || len(b) < 4
	large := math.Abs(c.Share) > threshold
	word := "faster"
	if c.Shift < 0 {
		word = "slower"
	}
	switch {
	case c.TooFew && large:
		c.Verdict = word
	case c.TooFew || !large && c.P >= 0.05:
		c.Verdict = "same"
	case large && c.P < 0.05:
		c.Verdict = word
	case !large:
		c.Verdict = "same"
	default:
		c.Verdict = "undecided"
	}
	return c, true
}

// mannWhitney is the exact two-sided p of U for n and m values without ties, n, m ≤ 20;
// with more the normal approximation (Mann and Whitney 1947).
func mannWhitney(n, m int, u float64) float64 {
	mean := float64(n*m) / 2
	low := math.Min(u, float64(n*m)-u)
	if n > 20 || m > 20 {
		sd := math.Sqrt(float64(n*m*(n+m+1)) / 12)
		return math.Min(1, math.Erfc((mean-low-0.5)/sd/math.Sqrt2))
	}
	// ways[k]: orders of i values of one and j of the other with U = k.
	type key struct{ i, j int }
	memo := map[key][]float64{}
	var ways func(i, j int) []float64
	ways = func(i, j int) []float64 {
		if i == 0 || j == 0 {
			return []float64{1}
		}
		if w, ok := memo[key{i, j}]; ok {
			return w
		}
		w := make([]float64, i*j+1)
		for k, v := range ways(i-1, j) { // the largest is of the first: it beats j
			w[k+j] += v
		}
		for k, v := range ways(i, j-1) {
			w[k] += v
		}
		memo[key{i, j}] = w
		return w
	}
	var below, all float64
	for k, v := range ways(n, m) {
		all += v
		if float64(k) <= low {
			below += v
		}
	}
	return math.Min(1, 2*below/all)
}

// Holm corrects p-values of several comparisons (Holm 1979): the returned ones may each
// be held against the level of the whole.
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

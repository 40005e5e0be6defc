// Package stats is the arithmetic behind "how sure is this number": location and
// spread, the interval of a median, where a run's warm-up ends, whether it was
// still rising when it stopped. It is pure and knows nothing of networks.
//
// Functions whose answer may not exist (no values, zero mean) return ok = false
// with it, never NaN: what a caller cannot compute it must not print. No function
// changes its argument.
package stats

import (
	"math"
	"slices"
)

// Mean returns the arithmetic mean; ok is false for no values.
func Mean(x []float64) (mean float64, ok bool) {
	if len(x) == 0 {
		return 0, false
	}
	for i, v := range x {
		mean += (v - mean) / float64(i+1)
	}
	return mean, true
}

// StdDev returns the sample standard deviation (divisor n−1); ok is false for fewer
// than two values.
func StdDev(x []float64) (sd float64, ok bool) {
	if len(x) < 2 {
		return 0, false
	}
	var m welford
	for _, v := range x {
		m.add(v)
	}
	return math.Sqrt(m.m2 / float64(m.n-1)), true
}

// CoV returns the coefficient of variation, standard deviation over mean, as a
// fraction; ok is false for fewer than two values or a mean that is not positive.
func CoV(x []float64) (cov float64, ok bool) {
	mean, _ := Mean(x)
	sd, ok := StdDev(x)
	if !ok || mean <= 0 {
		return 0, false
	}
	return sd / mean, true
}

// Quantile returns the q-quantile, 0 ≤ q ≤ 1, by linear interpolation between the
// closest ranks (Hyndman and Fan 1996, type 7: the definition of R, NumPy and
// spreadsheets). ok is false for no values or a q outside the range.
func Quantile(x []float64, q float64) (v float64, ok bool) {
	if len(x) == 0 || !(q >= 0 && q <= 1) {
		return 0, false
	}
	return quantileSorted(sorted(x), q), true
}

// Quantiles returns several quantiles at the price of one sort. ok is as for Quantile.
func Quantiles(x []float64, qs ...float64) (v []float64, ok bool) {
	if len(x) == 0 {
		return nil, false
	}
	s := sorted(x)
	for _, q := range qs {
		if !(q >= 0 && q <= 1) {
			return nil, false
		}
		v = append(v, quantileSorted(s, q))
	}
	return v, true
}

func quantileSorted(s []float64, q float64) float64 {
	h := q * float64(len(s)-1)
	i := int(h)
	if i+1 >= len(s) {
		return s[len(s)-1]
	}
	return s[i] + (h-float64(i))*(s[i+1]-s[i])
}

// Median returns the 0.5-quantile; ok is false for no values.
func Median(x []float64) (median float64, ok bool) { return Quantile(x, 0.5) }

// MAD returns the median absolute deviation from the median, not scaled; ok is false
// for no values.
func MAD(x []float64) (mad float64, ok bool) {
	m, ok := Median(x)
	if !ok {
		return 0, false
	}
	return Median(deviations(x, m))
}

// OutlierZ is the robust z beyond which a value is marked (M-ROUNDS, after Iglewicz
// and Hoaglin 1993).
const OutlierZ = 3.5

// RobustZ returns for each value 0.6745·(x − median)/MAD. Where more than half of the
// values are equal MAD is 0, and the mean absolute deviation takes its place,
// 0.7979·(x − median)/meanAD (Iglewicz and Hoaglin, same source). All equal: all 0.
func RobustZ(x []float64) []float64 {
	z := make([]float64, len(x))
	m, ok := Median(x)
	if !ok {
		return z
	}
	dev := deviations(x, m)
	scale, _ := Median(dev)
	factor := 0.6745
	if scale == 0 {
		scale, _ = Mean(dev)
		factor = 0.7979
	}
	if scale == 0 {
		return z
	}
	for i, v := range x {
		z[i] = factor * (v - m) / scale
	}
	return z
}

// Outliers returns the indices of the values whose robust z exceeds OutlierZ. They
// are for marking, never for dropping.
func Outliers(x []float64) []int {
	var out []int
	for i, z := range RobustZ(x) {
		if math.Abs(z) > OutlierZ {
			out = append(out, i)
		}
	}
	return out
}

// Interval is a confidence interval of a median.
type Interval struct {
	Low, High float64
	// Coverage is the probability, as a fraction, that intervals made this way hold
	// the median of a continuous distribution; at least what was asked for.
	Coverage float64
	// Rank is the order statistic of Low, from 1; High has the same rank from above.
	Rank int
}

// MedianInterval returns the distribution-free interval of the median between two
// symmetric order statistics: the narrowest whose coverage is at least level. ok is
// false when even the whole range does not reach it (for 0.95: fewer than 6 values);
// then there is only a range, and it must not be called a confidence interval.
func MedianInterval(x []float64, level float64) (iv Interval, ok bool) {
	n := len(x)
	if n == 0 {
		return Interval{}, false
	}
	s := sorted(x)
	// The interval between ranks r and n+1−r misses with probability 2·P(Bin(n,½) < r).
	tail := 0.0
	for r := 1; r <= n/2; r++ {
		tail += binomialHalf(n, r-1)
		coverage := 1 - 2*tail
		if coverage < level {
			break
		}
		iv = Interval{Low: s[r-1], High: s[n-r], Coverage: coverage, Rank: r}
		ok = true
	}
	return iv, ok
}

// binomialHalf is P(Bin(n, ½) = k).
func binomialHalf(n, k int) float64 {
	a, _ := math.Lgamma(float64(n) + 1)
	b, _ := math.Lgamma(float64(k) + 1)
	c, _ := math.Lgamma(float64(n-k) + 1)
	return math.Exp(a - b - c - float64(n)*math.Ln2)
}

func sorted(x []float64) []float64 {
	s := slices.Clone(x)
	slices.Sort(s)
	return s
}

func deviations(x []float64, from float64) []float64 {
	d := make([]float64, len(x))
	for i, v := range x {
		d[i] = math.Abs(v - from)
	}
	return d
}

// welford accumulates mean and sum of squared deviations without cancellation; equal
// values give exactly 0.
type welford struct {
	n    int
	mean float64
	m2   float64
}

func (w *welford) add(v float64) {
	w.n++
	d := v - w.mean
	w.mean += d / float64(w.n)
	w.m2 += d * (v - w.mean)
}

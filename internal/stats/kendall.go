package stats

import "math"

// Drift is the trend of a series of equally spaced values.
type Drift struct {
	// Slope is the median of the slopes between all pairs (Theil 1950, Sen 1968), per step.
	Slope float64
	// P is the two-sided probability of a Mann–Kendall statistic at least as large when there is no
	// trend: exact up to KendallExact values without ties, else by the normal approximation with
	// the corrections for ties and continuity (Kendall 1975). It presumes that the values do not
	// depend on each other; where they do, it comes out too small.
	P float64
	// Low and High bound Slope at 95 % (Sen 1968: order statistics of the pairs' slopes); equal to
	// the least and the largest slope where the series is too short for narrower ones.
	Low, High float64
	N         int // values
}

// KendallExact is the largest number of values for which P is counted instead of approximated.
const KendallExact = 20

// DriftMinimum is the least number of values with a Drift (M-TREND).
const DriftMinimum = 8

// DriftOf finds the trend of x; ok is false below DriftMinimum values. It takes n² steps.
func DriftOf(x []float64) (d Drift, ok bool) {
	n := len(x)
	if n < DriftMinimum {
		return Drift{}, false
	}
	slopes := make([]float64, 0, n*(n-1)/2)
	for i := range x {
		for j := i + 1; j < n; j++ {
			slopes = append(slopes, (x[j]-x[i])/float64(j-i))
		}
	}
	s := sorted(slopes)
	d = Drift{N: n, Slope: quantileSorted(s, 0.5)}
	z, _ := MannKendall(x)
	d.P = min(1, math.Erfc(math.Abs(z)/math.Sqrt2))
	if score, tied := kendallScore(x); !tied && n <= KendallExact {
		d.P = kendallExact(n, score)
	}
	half := 1.959964 * math.Sqrt(kendallTerm(n))
	low := int(math.Floor((float64(len(s)) - half) / 2))
	high := int(math.Ceil((float64(len(s))+half)/2)) + 1
	d.Low, d.High = s[max(low-1, 0)], s[min(high-1, len(s)-1)]
	return d, true
}

// kendallScore is the number of pairs that rise minus that of those that fall, and whether any
// two values are equal.
func kendallScore(x []float64) (score int, tied bool) {
	for i := range x {
		for j := i + 1; j < len(x); j++ {
			switch {
			case x[j] > x[i]:
				score++
			case x[j] < x[i]:
				score--
			default:
				tied = true
			}
		}
	}
	return score, tied
}

// kendallExact is P(|S| ≥ |score|) over all orders of n different values, each as likely. The
// number of inversions of a random order is the sum of independent uniform ones in 0…k, k < n.
func kendallExact(n, score int) float64 {
	most := n * (n - 1) / 2
	ways := make([]float64, most+1)
	ways[0] = 1
	for k := 1; k < n; k++ {
		next := make([]float64, most+1)
		sum := 0.0
		for i := range next {
			sum += ways[i]
			if i > k {
				sum -= ways[i-k-1]
			}
			next[i] = sum / float64(k+1)
		}
		ways = next
	}
	p := 0.0
	for inversions, w := range ways { // S = most − 2·inversions
		if s := most - 2*inversions; s >= abs(score) || -s >= abs(score) {
			p += w
		}
	}
	return min(1, p)
}

func abs(n int) int {
	if n < 0 {
		return -n
	}
	return n
}

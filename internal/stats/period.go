package stats

import "math"

// Autocorrelation returns r(0…most) of x about its mean, with r(0) = 1. NaN values are left out:
// each lag is the mean over the pairs of which both are known, divided by the variance. All 0 when x
// does not vary.
func Autocorrelation(x []float64, most int) []float64 {
	most = max(0, min(most, len(x)-1))
	out := make([]float64, most+1)
	var w welford
	for _, v := range x {
		if !math.IsNaN(v) {
			w.add(v)
		}
	}
	if w.n < 2 || w.m2 <= 0 {
		return out
	}
	variance := w.m2 / float64(w.n)
	d := make([]float64, len(x))
	for i, v := range x {
		d[i] = v - w.mean
	}
	for lag := range out {
		sum, n := 0.0, 0
		for i := lag; i < len(d); i++ {
			if p := d[i] * d[i-lag]; !math.IsNaN(p) {
				sum += p
				n++
			}
		}
		if n > 1 {
			out[lag] = sum / float64(n) / variance
		}
	}
	return out
}

// Cycle is a pattern that repeats.
type Cycle struct {
	Lag int     // its length in samples
	R   float64 // the autocorrelation there
}

// The rules of a cycle: its autocorrelation reaches CycleLevel and four times what chance makes of
// so many samples, and rises by as much above a valley before it. A slow drift has no valley.
const CycleLevel = 0.3

// Period finds the shortest cycle of x with a length of least…most samples that is seen at least
// three times; of several the first whose peak is within a tenth of the highest (the others are its
// multiples). ok is false when there is none.
func Period(x []float64, least, most int) (c Cycle, ok bool) {
	most = min(most, len(x)/3)
	if least < 1 || most <= least {
		return Cycle{}, false
	}
	r := Autocorrelation(x, most+1)
	need := max(CycleLevel, 4/math.Sqrt(float64(len(x))))
	peak := func(lag int) bool { return lag+1 < len(r) && r[lag] >= r[lag-1] && r[lag] > r[lag+1] }
	best := 0.0
	valley := make([]float64, len(r)) // least r so far
	valley[0] = r[0]
	for lag := 1; lag < len(r); lag++ {
		valley[lag] = min(valley[lag-1], r[lag])
		if lag >= least && peak(lag) && r[lag] >= need && r[lag]-valley[lag] >= need {
			best = max(best, r[lag])
		}
	}
	if best == 0 {
		return Cycle{}, false
	}
	for lag := least; lag <= most; lag++ {
		if peak(lag) && r[lag] >= 0.9*best && r[lag]-valley[lag] >= need {
			return Cycle{Lag: lag, R: min(1, r[lag])}, true
		}
	}
	return Cycle{}, false
}

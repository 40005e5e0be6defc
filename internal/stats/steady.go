package stats

import "math"

// Steady says where the steady part of a run begins.
type Steady struct {
	// Warmup is the number of leading samples that belong to the start-up.
	Warmup int
	// Unsteady: no cut within the first half leaves a steady rest; the mean of the run
	// is the mean of something that was still changing.
	Unsteady bool
}

// MSERGroup is the number of samples averaged into one, the 5 of MSER-5.
const MSERGroup = 5

// MSERMinimum is the least number of samples MSER5 gives an answer for: ten groups.
// With fewer the last two or three groups decide everything.
const MSERMinimum = 10 * MSERGroup

// MSER5 finds the end of the warm-up (M-STEADY; White 1997, Spratt 1998). Groups of five
// samples are averaged to y; of all cuts d in 0…n/2 the one with the least
//
//	z(d) = Σ_{j>d} (y_j − mean of the rest)² / (n−d)²
//
// wins, the shortest of equals. Samples that do not fill a group are left out of the
// decision. A d of n/2 means unsteady. ok is false below MSERMinimum samples.
//
// The method is meant for slots of 100 ms, so it answers for runs of 5 s and more. White
// noise around a constant is called unsteady in 10 % of the runs of 50 samples, 2 % of
// those of 100, 0.4 % of those of 200 (TestMSER5FalseAlarms).
func MSER5(x []float64) (s Steady, ok bool) {
	if len(x) < MSERMinimum {
		return Steady{}, false
	}
	y := make([]float64, len(x)/MSERGroup)
	for i := range y {
		y[i], _ = Mean(x[i*MSERGroup : (i+1)*MSERGroup])
	}
	half := len(y) / 2
	var rest welford
	best, at := math.Inf(1), 0
	for d := len(y) - 1; d >= 0; d-- {
		rest.add(y[d])
		if d > half {
			continue
		}
		m := float64(rest.n)
		if z := rest.m2 / (m * m); z <= best {
			best, at = z, d
		}
	}
	return Steady{Warmup: at * MSERGroup, Unsteady: at == half}, true
}

// SettledSlots and SettledCoV are the on-line rule of M-STEADY.
const (
	SettledSlots = 10
	SettledCoV   = 0.05
)

// Settled is the cheap on-line version of MSER5: the last ten samples vary by less
// than 5 %. False while there are fewer. (The caller ends the warm-up at the latest
// after a quarter of the run.)
func Settled(x []float64) bool {
	if len(x) < SettledSlots {
		return false
	}
	cov, ok := CoV(x[len(x)-SettledSlots:])
	return ok && cov < SettledCoV
}

// WarmupDeficit returns by which fraction the mean of x reads lower than the mean of
// its steady part x[warmup:]: the share of a rate that slow start cost. Negative when the
// run began above its steady level (a full token bucket, an empty buffer). ok is
// false when nothing is left after the warm-up or its mean is not positive.
func WarmupDeficit(x []float64, warmup int) (share float64, ok bool) {
	if warmup < 0 || warmup >= len(x) {
		return 0, false
	}
	steady, _ := Mean(x[warmup:])
	all, _ := Mean(x)
	if steady <= 0 {
		return 0, false
	}
	return 1 - all/steady, true
}

// Trend is what MannKendall and TheilSen say about a series together.
type Trend struct {
	// Rise is the growth from the first to the last sample along the Theil–Sen line, as
	// a fraction of the median. Negative when falling.
	Rise float64
	// Z is the Mann–Kendall statistic; |Z| > 1.645 is a trend at 5 %, one-sided.
	Z float64
}

// Rising reports a trend upwards that is both real and large enough to matter: at
// the one-sided 5 % level, by at least 5 %.
func (t Trend) Rising() bool { return t.Z > 1.645 && t.Rise >= 0.05 }

// TrendMinimum is the least number of samples EndTrend judges by.
const TrendMinimum = 4

// trendGroups bounds the work, which grows with the square of the samples.
const trendGroups = 100

// EndTrend judges the last half of x: was the run still rising when it ended? Long
// series are first averaged into at most 100 equal groups (the remainder at the
// front is left out). ok is false when the half has fewer than TrendMinimum samples or a
// median that is not positive.
func EndTrend(x []float64) (t Trend, ok bool) {
	x = x[len(x)/2:]
	if len(x) < TrendMinimum {
		return Trend{}, false
	}
	if size := (len(x) + trendGroups - 1) / trendGroups; size > 1 {
		x = x[len(x)%size:]
		y := make([]float64, len(x)/size)
		for i := range y {
			y[i], _ = Mean(x[i*size : (i+1)*size])
		}
		x = y
	}
	median, _ := Median(x)
	if median <= 0 {
		return Trend{}, false
	}
	slope, _ := TheilSen(x)
	z, _ := MannKendall(x)
	return Trend{Rise: slope * float64(len(x)-1) / median, Z: z}, true
}

// TheilSen returns the median of the slopes between all pairs of equally spaced
// samples, per step. It takes n² steps. ok is false for fewer than two samples.
func TheilSen(x []float64) (slope float64, ok bool) {
	var slopes []float64
	for i := range x {
		for j := i + 1; j < len(x); j++ {
			slopes = append(slopes, (x[j]-x[i])/float64(j-i))
		}
	}
	return Median(slopes)
}

// MannKendall returns the trend statistic with the continuity and tie corrections,
// standard normal when there is none (Kendall 1975). It takes n² steps. ok is false
// for fewer than two samples.
func MannKendall(x []float64) (z float64, ok bool) {
	n := len(x)
	if n < 2 {
		return 0, false
	}
	s := 0.0
	for i := range x {
		for j := i + 1; j < n; j++ {
			switch {
			case x[j] > x[i]:
				s++
			case x[j] < x[i]:
				s--
			}
		}
	}
	v := kendallTerm(n)
	order := sorted(x)
	for i := 0; i < n; {
		j := i
		for j < n && order[j] == order[i] {
			j++
		}
		v -= kendallTerm(j - i)
		i = j
	}
	if v <= 0 || s == 0 {
		return 0, true
	}
	return (s - math.Copysign(1, s)) / math.Sqrt(v), true
}

// kendallTerm is n(n−1)(2n+5)/18, the variance of n untied samples; also what a tie of n takes away.
func kendallTerm(n int) float64 {
	f := float64(n)
	return f * (f - 1) * (2*f + 5) / 18
}

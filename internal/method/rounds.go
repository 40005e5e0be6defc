package method

import (
	"slices"
	"time"

	"github.com/fullbore-net/fullbore/internal/stats"
	"github.com/fullbore-net/fullbore/result"
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
	a := RoundsAnswer{N: len(x), Median: median, Min: slices.Min(x), Max: slices.Max(x)}
	if len(x) >= LeastRounds { // of two, neither stands out
		a.Outliers = stats.Outliers(x)
	}
	a.CoV, _ = stats.CoV(x)
	a.Low, a.High = a.Min, a.Max
	if iv, ok := stats.MedianInterval(x, 0.95); ok {
		a.Low, a.High, a.Level, a.Interval = iv.Low, iv.High, iv.Coverage, true
	}
	return a, true
}

// Spread is the range over the median; 0 where the median is 0.
func (a RoundsAnswer) Spread() float64 {
	if a.Median == 0 {
		return 0
	}
	return (a.Max - a.Min) / a.Median
}

// Limits of the adaptive number of rounds (M-ROUNDS).
const (
	LeastRounds  = 3
	MostRounds   = 10
	RoundsPause  = 2 * time.Second
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

// RoundsOf is the account of rounds for a report: values by round, nil where a round told none.
func RoundsOf(of, figure string, d result.Direction, unit string, values []*float64, runs []int) result.Rounds {
	r := result.Rounds{Of: of, Figure: figure, Direction: string(d), Unit: unit, Values: values, Runs: runs, Marked: []int{}}
	var known []float64
	var round []int // of each known value, from 1
	for i, v := range values {
		if v != nil {
			known, round = append(known, *v), append(round, i+1)
		}
	}
	a, ok := Rounds(known)
	if !ok {
		return r
	}
	r.Median, r.Min, r.Max = &a.Median, &a.Min, &a.Max
	if a.N > 1 && a.Median > 0 {
		r.CoV = &a.CoV
	}
	if a.Interval {
		r.Low, r.High, r.Level = &a.Low, &a.High, &a.Level
	}
	for _, i := range a.Outliers {
		r.Marked = append(r.Marked, round[i])
	}
	return r
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

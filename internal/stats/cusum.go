package stats

import (
	"math"
	"math/rand/v2"
	"slices"
)

// The two-sided CUSUM of M-TREND: what deviates by more than CUSUMSlack spreads is added up, and
// an alarm is raised at CUSUMAlarm.
const (
	CUSUMSlack = 0.5
	CUSUMAlarm = 5.0
)

// Alarm is a moment at which a CUSUM crossed its limit.
type Alarm struct {
	At   int  // index of the value that raised it
	From int  // where the sum began to grow: about where the change was
	Up   bool // the values rose
}

// CUSUM watches values that are deviations from a level in units of the usual spread (see
// RobustZ): C+ = max(0, C+ + z − 0.5), C− alike with −z; past CUSUMAlarm it alarms and begins anew.
func CUSUM(z []float64) []Alarm {
	var out []Alarm
	var sum [2]float64
	var from [2]int
	for i, v := range z {
		for side := range sum {
			if side == 1 {
				v = -v
			}
			if sum[side] == 0 {
				from[side] = i
			}
			if sum[side] = max(0, sum[side]+v-CUSUMSlack); sum[side] >= CUSUMAlarm {
				out = append(out, Alarm{At: i, From: from[side], Up: side == 0})
				sum[side] = 0
			}
		}
	}
	return out
}

// Split is a moment at which the distribution of a series changed.
type Split struct {
	At int // index of the first value of the new level
	// Before and After are the medians of the parts on both sides, up to the next splits.
	Before, After float64
	Shift         float64 // Hodges–Lehmann: median of all differences after − before
	P             float64 // of the permutation test
}

// The rules of M-TREND for a split: at least SplitSide values on each side, and at most a chance
// of SplitLevel that a series in random order has one as clear.
const (
	SplitSide  = 8
	SplitLevel = 0.01
)

// splitOrders is how many random orders a split is compared with: the least p is 1/(n+1).
const splitOrders = 199

// Splits finds where the level of x changed: the cut with the largest energy distance between
// the two sides (as E-divisive does, Matteson and James 2014), if few random orders of the values
// have as large a one, then the same within both sides. Splits are in order. The same seed gives the
// same answer. It takes about 200·n² steps for each split; thin longer series to some hundred values.
//
// The test presumes that the values do not depend on each other: a slow drift is cut into steps.
func Splits(x []float64, seed uint64) []Split {
	var cuts []Split
	splits(x, 0, rand.New(rand.NewPCG(seed, 0x5eed)), &cuts) //nolint:gosec // no secret
	slices.SortFunc(cuts, func(a, b Split) int { return a.At - b.At })
	for i := range cuts {
		from, to := 0, len(x)
		if i > 0 {
			from = cuts[i-1].At
		}
		if i+1 < len(cuts) {
			to = cuts[i+1].At
		}
		before, after := x[from:cuts[i].At], x[cuts[i].At:to]
		cuts[i].Before, _ = Median(before)
		cuts[i].After, _ = Median(after)
		all := make([]float64, 0, len(before)*len(after))
		for _, a := range after {
			for _, b := range before {
				all = append(all, a-b)
			}
		}
		cuts[i].Shift, _ = Median(all)
	}
	return cuts
}

func splits(x []float64, offset int, r *rand.Rand, into *[]Split) {
	if len(x) < 2*SplitSide {
		return
	}
	at, most := bestCut(x)
	if most <= 0 {
		return
	}
	order := slices.Clone(x)
	larger := 0
	for range splitOrders {
		r.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		if _, q := bestCut(order); q >= most {
			larger++
		}
		if float64(larger+1)/(splitOrders+1) > SplitLevel {
			return // it cannot become significant any more
		}
	}
	*into = append(*into, Split{At: offset + at, P: float64(larger+1) / (splitOrders + 1)})
	splits(x[:at], offset, r, into)
	splits(x[at:], offset+at, r, into)
}

// bestCut returns the cut of x with the largest energy statistic and that statistic,
//
//	m·n/(m+n) · (2·mean|a−b| − mean|a−a'| − mean|b−b'|)
//
// over the m values a before and n values b after the cut.
func bestCut(x []float64) (at int, most float64) {
	n := len(x)
	// left is Σ|a−a'| over the pairs before the cut, right that after it, cross that between.
	left, right, cross := 0.0, 0.0, 0.0
	for i := range x {
		for j := i + 1; j < n; j++ {
			right += math.Abs(x[i] - x[j])
		}
	}
	for c := 1; c <= n-SplitSide; c++ { // x[c−1] goes over to the left
		v := x[c-1]
		toLeft, toRight := 0.0, 0.0
		for i := range c - 1 {
			toLeft += math.Abs(v - x[i])
		}
		for i := c; i < n; i++ {
			toRight += math.Abs(v - x[i])
		}
		left, right, cross = left+toLeft, right-toRight, cross-toLeft+toRight
		if c < SplitSide {
			continue
		}
		a, b := float64(c), float64(n-c)
		within := func(sum, k float64) float64 { return 2 * sum / (k * k) }
		if q := a * b / (a + b) * (2*cross/(a*b) - within(left, a) - within(right, b)); q > most*(1+1e-12) {
			at, most = c, q
		}
	}
	return at, most
}

package stats

import (
	"math"
	"slices"
)

// Clusters are the two groups into which values fall apart best.
type Clusters struct {
	Low, High float64 // means of the groups
	N         [2]int  // how many are in each, low first
	Above     float64 // values from this on are in the high group
	// Rest is how much of the values' spread the two groups leave unexplained, 0..1: 1/4 for evenly
	// spread values, 0 when each group is of equal values.
	Rest float64
}

// evenRest is what two groups leave of the spread of evenly spread values (1/4: halving an
// interval quarters its variance): the reference of the gap statistic (Tibshirani, Walther,
// Hastie 2001) for two groups in one dimension.
const evenRest = 0.25

// Gap is the gap statistic of two groups against one: log of how much less they leave than they
// would of evenly spread values. Above 1 there are two.
func (c Clusters) Gap() float64 {
	if c.Rest <= 0 {
		return math.Inf(1)
	}
	return math.Log(evenRest / c.Rest)
}

// TwoClusters splits values into two groups with the least spread within them; false for fewer
// than four values or when all are equal.
func TwoClusters(values []float64) (Clusters, bool) {
	if len(values) < 4 {
		return Clusters{}, false
	}
	xs := slices.Clone(values)
	slices.Sort(xs)
	whole := scatter(xs)
	if whole <= 0 {
		return Clusters{}, false
	}
	best := Clusters{Rest: math.Inf(1)}
	for k := 1; k < len(xs); k++ {
		if rest := (scatter(xs[:k]) + scatter(xs[k:])) / whole; rest < best.Rest {
			best = Clusters{Low: mean(xs[:k]), High: mean(xs[k:]), N: [2]int{k, len(xs) - k}, Above: xs[k], Rest: rest}
		}
	}
	return best, true
}

// scatter is the sum of squared distances from the mean.
func scatter(xs []float64) (sum float64) {
	m := mean(xs)
	for _, x := range xs {
		sum += (x - m) * (x - m)
	}
	return sum
}

func mean(xs []float64) (sum float64) {
	for _, x := range xs {
		sum += x
	}
	return sum / float64(len(xs))
}

package soak

import (
	"cmp"
	"math"
	"slices"

	"github.com/fullbore-net/fullbore/internal/delay"
	"github.com/fullbore-net/fullbore/result"
)

// perDoubling is how many classes of rates there are for each doubling: 0.54 % each.
const perDoubling = 128

// zero is the class of rates below 1 bit/s.
const zero = math.MinInt32

type cell struct {
	n   int64
	sum float64
}

// Rates is a histogram of rates that can be merged. A class stands for itself by the mean of
// its values, so that quantiles are right within 0.3 %, and exact where all values are alike. The zero
// value is empty.
type Rates struct {
	cells    map[int32]cell
	packed   []place // in the place of cells where nothing more is expected
	n        int64
	min, max float64
}

// place is a class with what is in it.
type place struct {
	class int32
	cell
}

func rateClass(bps float64) int32 {
	if bps < 1 {
		return zero
	}
	return int32(math.Floor(math.Log2(bps) * perDoubling))
}

// Add counts a rate.
func (h *Rates) Add(bps float64) { h.add(rateClass(bps), cell{1, bps}, bps, bps) }

func (h *Rates) add(class int32, c cell, least, most float64) {
	if h.cells == nil {
		h.cells = map[int32]cell{}
		for _, p := range h.packed {
			h.cells[p.class] = p.cell
		}
		h.packed = nil
	}
	if h.n == 0 {
		h.min, h.max = least, most
	}
	h.min, h.max = min(h.min, least), max(h.max, most)
	old := h.cells[class]
	h.cells[class] = cell{old.n + c.n, old.sum + c.sum}
	h.n += c.n
}

// Merge adds all of o.
func (h *Rates) Merge(o *Rates) {
	for _, p := range o.places() {
		h.add(p.class, p.cell, o.min, o.max)
	}
}

// places are the classes that hold something, in order.
func (h *Rates) places() []place {
	if h.packed != nil {
		return h.packed
	}
	out := make([]place, 0, len(h.cells))
	for class, c := range h.cells {
		out = append(out, place{class, c})
	}
	slices.SortFunc(out, func(a, b place) int { return cmp.Compare(a.class, b.class) })
	return out
}

// pack makes h as small as it can be; it may still be added to.
func (h *Rates) pack() { h.packed, h.cells = h.places(), nil }

// N is how many rates were counted.
func (h *Rates) N() int64 { return h.n }

// Quantile is that of rank ⌈q·n⌉; ok is false for an empty histogram.
func (h *Rates) Quantile(q float64) (bps float64, ok bool) {
	if h.n == 0 {
		return 0, false
	}
	below := int64(0)
	for _, c := range h.places() {
		if below += c.n; float64(below) >= q*float64(h.n) {
			return min(max(c.sum/float64(c.n), h.min), h.max), true
		}
	}
	return h.max, true
}

// AtLeast is the share of the rates that are at least bps, by their classes' means.
func (h *Rates) AtLeast(bps float64) float64 {
	if h.n == 0 {
		return 0
	}
	n := int64(0)
	for _, c := range h.places() {
		if c.sum/float64(c.n) >= bps {
			n += c.n
		}
	}
	return float64(n) / float64(h.n)
}

// spanPlaces is over how many places the values between two quantiles are spread.
const spanPlaces = 32

// addPDV puts what was told of n values into a histogram: they lie between the quantiles that were
// named, spread evenly. What follows from many such is right within the width of those spans.
func addPDV(h *delay.Histogram, p PDVPart) {
	spans := [...]struct{ to, upper float64 }{{0.5, p.P50}, {0.95, p.P95}, {0.99, p.P99}, {0.999, p.P999}, {1, p.Max}}
	var list [spanPlaces]result.Bucket
	below, counted := p.Min, int64(0)
	for _, s := range spans {
		n := int64(math.Round(s.to*float64(p.N))) - counted
		counted += n
		places := min(n, spanPlaces)
		for i := range places {
			at := below + (s.upper-below)*(float64(i)+0.5)/float64(places)
			list[i] = result.Bucket{From: at, To: at, Count: n*(i+1)/places - n*i/places}
		}
		h.AddBuckets(list[:max(places, 0)])
		below = s.upper
	}
}

// partOf sums a histogram up; nil when it is empty.
func partOf(h *delay.Histogram) *PDVPart {
	q := h.Quantiles()
	if q == nil {
		return nil
	}
	return &PDVPart{q.N, q.Min, q.P50, q.P95, q.P99, q.P999, q.Max}
}

// partOfQuantiles is what a report's figures say.
func partOfQuantiles(q *result.Quantiles) PDVPart {
	return PDVPart{q.N, q.Min, q.P50, q.P95, q.P99, q.P999, q.Max}
}

package delay

import (
	"math"
	"math/bits"

	"github.com/fullbore-net/fullbore/result"
)

// The classes of a histogram are log-linear: 64 of 16 ns below 1.024 µs, then 64 for
// each doubling up to 68.7 s, and one for all above. A value differs from the middle of
// its class by at most 1/128 (from 1 µs on), below that by at most 8 ns. They are the
// same everywhere, so histograms of streams, hosts and intervals can be added.
const (
	unitShift = 4 // 16 ns
	perOctave = 64
	octaves   = 26
	overflow  = perOctave * (octaves + 1)
	classes   = overflow + 1
)

func class(ns int64) int {
	v := uint64(max(ns, 0)) >> unitShift
	if v < perOctave {
		return int(v)
	}
	e := bits.Len64(v) - 7
	return min(e*perOctave+int(v>>e), overflow)
}

// edges are the bounds [from, to) of a class in ns; the last has no upper one.
func edges(class int) (from, to float64) {
	lower := func(i int) float64 {
		if i < perOctave {
			return float64(i << unitShift)
		}
		e := i/perOctave - 1
		return float64(uint64(i-e*perOctave) << (e + unitShift))
	}
	if class == overflow {
		return lower(class), math.Inf(1)
	}
	return lower(class), lower(class + 1)
}

// middle is what stands for the values of a class.
func middle(class int) float64 {
	from, to := edges(class)
	if class == overflow {
		return from
	}
	return (from + to) / 2
}

// Histogram counts times: 1 µs … 60 s within 1 %. Count, mean and extremes are exact.
// The zero value is empty. It is not safe for concurrent use.
type Histogram struct {
	counts   [classes]uint64
	n        int64
	sum      float64 // ns
	min, max int64   // ns; of n > 0
}

// Add counts one value in ns; negative ones count as 0.
func (h *Histogram) Add(ns int64) { h.add(max(ns, 0), 1) }

func (h *Histogram) add(ns, n int64) {
	if h.n == 0 || ns < h.min {
		h.min = ns
	}
	h.max = max(h.max, ns)
	h.n += n
	h.sum += float64(ns) * float64(n)
	h.counts[class(ns)] += uint64(n)
}

// N returns how many values were counted.
func (h *Histogram) N() int64 { return h.n }

// Merge adds all values of o.
func (h *Histogram) Merge(o *Histogram) {
	if o.n == 0 {
		return
	}
	if h.n == 0 || o.min < h.min {
		h.min = o.min
	}
	h.max = max(h.max, o.max)
	h.n += o.n
	h.sum += o.sum
	for i, c := range o.counts {
		h.counts[i] += c
	}
}

// AddBuckets adds what Buckets gave, perhaps on another host: each value as the middle
// of its bucket. Buckets that no histogram of ours gives (negative, upside down) are left
// out and make ok false.
func (h *Histogram) AddBuckets(list []result.Bucket) (ok bool) {
	ok = true
	for _, b := range list {
		mid := (b.From + b.To) / 2 * 1e9
		if !(b.From >= 0 && b.To >= b.From && mid < math.MaxInt64) || b.Count < 0 || b.Count > math.MaxInt64-h.n {
			ok = false
			continue
		}
		if b.Count > 0 {
			h.add(int64(mid), b.Count)
		}
	}
	return ok
}

// Quantiles sums the histogram up, in seconds; nil when it is empty. Min, Mean and Max
// are exact, the others within 1 %.
func (h *Histogram) Quantiles() *result.Quantiles {
	if h.n == 0 {
		return nil
	}
	q := quantiles(h.counts[:], h.n)
	q.Min, q.Max, q.Mean = float64(h.min)/1e9, float64(h.max)/1e9, h.sum/float64(h.n)/1e9
	for _, p := range []*float64{&q.P50, &q.P95, &q.P99, &q.P999} {
		*p = min(max(*p, q.Min), q.Max)
	}
	return q
}

// quantiles reads them off counts whose sum is n > 0; the extremes and the mean are
// those of the classes' middles.
func quantiles(counts []uint64, n int64) *result.Quantiles {
	q := &result.Quantiles{N: n}
	want := [...]float64{0.5, 0.95, 0.99, 0.999}
	into := [...]*float64{&q.P50, &q.P95, &q.P99, &q.P999}
	next, below, first := 0, uint64(0), true
	for i, c := range counts {
		if c == 0 {
			continue
		}
		v := middle(i) / 1e9
		if first {
			q.Min, first = v, false
		}
		q.Max = v
		q.Mean += v * float64(c)
		below += c
		// The value of rank ⌈p·n⌉.
		for next < len(want) && float64(below) >= want[next]*float64(n) {
			*into[next] = v
			next++
		}
	}
	q.Mean /= float64(n)
	return q
}

// Buckets returns the classes that have values, ascending, in seconds. The last class
// ends with the largest value.
func (h *Histogram) Buckets() []result.Bucket {
	var out []result.Bucket
	for i, c := range h.counts {
		if c == 0 {
			continue
		}
		from, to := edges(i)
		if i == overflow {
			to = math.Max(from, float64(h.max))
		}
		out = append(out, result.Bucket{From: from / 1e9, To: to / 1e9, Count: int64(c)})
	}
	return out
}

// Coarse puts buckets of a Histogram together so that each doubling has at most so many
// (a power of two below 64), for a shorter document.
func Coarse(list []result.Bucket, perDoubling int) []result.Bucket {
	group := max(1, perOctave/max(1, perDoubling))
	var out []result.Bucket
	last := -1
	for _, b := range list {
		g := class(int64(math.Round((b.From+b.To)/2*1e9))) / group
		if n := len(out); n > 0 && g == last {
			out[n-1].Count += b.Count
			out[n-1].To = b.To
			continue
		}
		out = append(out, b)
		last = g
	}
	return out
}

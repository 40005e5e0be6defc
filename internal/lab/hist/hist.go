// Package hist counts durations in a histogram that is cheap enough for a packet loop.
package hist

import (
	"math/bits"
	"time"
)

// Summary sums up durations, one for each packet. Quantiles are upper bounds of a
// histogram's bin, at most 1/64 too high.
type Summary struct {
	Packets int64         `json:"packets"`
	P50     time.Duration `json:"p50"`
	P95     time.Duration `json:"p95"`
	P99     time.Duration `json:"p99"`
	Max     time.Duration `json:"max"` // exact
}

// Hist counts durations in bins whose width is 1/64 of their value: fine enough for any
// threshold, small enough (16 KiB) to stay in the cache. The zero value is empty.
type Hist struct {
	bins [subBins * 32]int64
	n    int64
	max  time.Duration
}

const subBins = 64

// bin maps 0..127 ns to themselves, then each power of two to 64 bins. 2^37 ns, over
// two minutes, is the last bin's upper end.
func bin(d time.Duration) int {
	v := uint64(max(d, 0))
	if v < 2*subBins {
		return int(v)
	}
	shift := bits.Len64(v) - 7 // leaves the 7 leading bits: 64..127
	return min(shift*subBins+int(v>>shift), subBins*32-1)
}

// upper returns the largest value in a bin.
func upper(i int) time.Duration {
	if i < 2*subBins {
		return time.Duration(i)
	}
	shift := i/subBins - 1
	return time.Duration((int64(i%subBins)+subBins+1)<<shift - 1)
}

// Add counts one duration; what is negative counts as none.
func (h *Hist) Add(d time.Duration) {
	h.bins[bin(d)]++
	h.n++
	h.max = max(h.max, d)
}

// quantile returns the smallest bound that at least q of all values keep.
func (h *Hist) quantile(q float64) time.Duration {
	if h.n == 0 {
		return 0
	}
	need := int64(q * float64(h.n))
	if float64(need) < q*float64(h.n) || need == 0 {
		need++
	}
	var sum int64
	for i, n := range h.bins {
		if sum += n; sum >= need {
			return min(upper(i), h.max)
		}
	}
	return h.max
}

// Summary sums up what was counted so far.
func (h *Hist) Summary() Summary {
	return Summary{Packets: h.n, P50: h.quantile(0.5), P95: h.quantile(0.95), P99: h.quantile(0.99), Max: h.max}
}

// Merge adds what another histogram has counted.
func (h *Hist) Merge(o *Hist) {
	for i, n := range o.bins {
		h.bins[i] += n
	}
	h.n += o.n
	h.max = max(h.max, o.max)
}

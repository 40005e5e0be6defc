package hist

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

func TestBins(t *testing.T) {
	var values []time.Duration
	for shift := range 37 {
		for _, off := range []int64{-1, 0, 1, 1<<shift/3 + 1, 1 << shift / 2} {
			values = append(values, time.Duration(max(0, int64(1)<<shift+off)))
		}
	}
	slices.Sort(values)
	last := 0
	for _, v := range values {
		i := bin(v)
		if i < last {
			t.Errorf("bin(%d) = %d, below that of a smaller value", v, i)
		}
		last = i
		if up := upper(i); up < v || float64(up) > float64(v)*(1+1.0/64)+1 {
			t.Errorf("bin of %d ends at %d, want at most 1/64 above", v, up)
		}
		if i > 0 && upper(i-1) >= v {
			t.Errorf("%d is in bin %d, but belongs in an earlier one", v, i)
		}
	}
	if got := bin(-5); got != 0 {
		t.Errorf("bin(-5) = %d: early counts as on time", got)
	}
	if got, n := bin(math.MaxInt64), len(new(Hist).bins); got != n-1 {
		t.Errorf("bin of the largest = %d, want the last, %d", got, n-1)
	}
}

func TestQuantiles(t *testing.T) {
	var empty Hist
	if got := empty.Summary(); got != (Summary{}) {
		t.Errorf("of nothing: %+v", got)
	}
	r := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{1, 2, 3, 99, 100, 101, 10_000} {
		var h Hist
		var all []time.Duration
		for range n {
			d := time.Duration(math.Exp(r.Float64() * 20))
			h.Add(d)
			all = append(all, d)
		}
		slices.Sort(all)
		for _, q := range []float64{0.5, 0.95, 0.99} {
			exact := all[int(math.Ceil(q*float64(n)))-1]
			if got := h.quantile(q); got < exact || float64(got) > float64(exact)*(1+1.0/64)+1 {
				t.Errorf("n %d: quantile %v = %d, want %d or up to 1/64 more", n, q, got, exact)
			}
		}
		if s := h.Summary(); s.Max != all[n-1] || s.Packets != int64(n) || s.P99 > s.Max {
			t.Errorf("n %d: summary %+v, want max %d", n, s, all[n-1])
		}
	}
}

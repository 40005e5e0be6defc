package delay

import (
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/fullbore-net/fullbore/result"
)

// Every value is in its class, the classes join without a gap, and from 1 µs to 60 s the
// middle stands for its values within 1 %.
func TestClasses(t *testing.T) {
	end := 0.0
	for i := range classes {
		from, to := edges(i)
		if from != end || to <= from {
			t.Fatalf("class %d is %v…%v after %v", i, from, to, end)
		}
		end = to
		last := to - 1
		if i == overflow {
			last = math.MaxInt64 - 1024
		}
		for _, v := range []float64{from, last} {
			if got := class(int64(v)); got != i {
				t.Errorf("%v is in class %d, not in %d of %v…%v", v, got, i, from, to)
			}
			if v >= us && v <= 60*s && math.Abs(middle(i)/v-1) > 0.01 {
				t.Errorf("%v is told as %v", v, middle(i))
			}
		}
	}
	if from, _ := edges(overflow); from < 60*s {
		t.Errorf("the last class begins at %v", from)
	}
	if class(-5) != 0 || class(math.MinInt64) != 0 || class(math.MaxInt64) != overflow {
		t.Error("extremes")
	}
}

func TestHistogramQuantiles(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Int64Range(us, 60*s), 1, 300).Draw(t, "values")
		var h Histogram
		sum := 0.0
		for _, v := range values {
			h.Add(v)
			sum += float64(v)
		}
		slices.Sort(values)
		rank := func(p float64) float64 { return float64(values[int(math.Ceil(p*float64(len(values))))-1]) / 1e9 }
		q := h.Quantiles()
		for _, c := range []struct{ got, want, tolerance float64 }{
			{q.P50, rank(.5), .01},
			{q.P95, rank(.95), .01},
			{q.P99, rank(.99), .01},
			{q.P999, rank(.999), .01},
			{q.Min, float64(values[0]) / 1e9, 0},
			{q.Max, float64(values[len(values)-1]) / 1e9, 0},
			{q.Mean, sum / float64(len(values)) / 1e9, 1e-12},
		} {
			if math.Abs(c.got/c.want-1) > c.tolerance {
				t.Fatalf("%+v: %v, want %v", q, c.got, c.want)
			}
		}
		if q.N != int64(len(values)) {
			t.Fatalf("%d values", q.N)
		}
	})
}

// Halves merged, on one host or through a document, are the whole.
func TestMerge(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Int64Range(0, 200*s), 0, 200).Draw(t, "values")
		cut := rapid.IntRange(0, len(values)).Draw(t, "cut")
		var whole, a, b, far Histogram
		for i, v := range values {
			whole.Add(v)
			if i < cut {
				a.Add(v)
			} else {
				b.Add(v)
			}
		}
		if !far.AddBuckets(a.Buckets()) || !far.AddBuckets(b.Buckets()) {
			t.Fatal("own buckets refused")
		}
		a.Merge(&b)
		if diff := cmp.Diff(whole.Buckets(), a.Buckets()); diff != "" {
			t.Fatal(diff)
		}
		if q, w := a.Quantiles(), whole.Quantiles(); q != nil {
			if math.Abs(q.Mean-w.Mean) > 1e-9*w.Mean {
				t.Fatalf("mean %v, want %v", q.Mean, w.Mean)
			}
			q.Mean = w.Mean
			if diff := cmp.Diff(w, q); diff != "" {
				t.Fatal(diff)
			}
		}
		if far.counts != whole.counts || far.N() != whole.N() {
			t.Fatal("through buckets it is another histogram")
		}
		n := int64(0)
		for _, b := range Coarse(whole.Buckets(), 4) {
			n += b.Count
			if b.From > b.To {
				t.Fatalf("%+v", b)
			}
		}
		if n != whole.N() {
			t.Fatalf("%d of %d in coarse buckets", n, whole.N())
		}
	})
}

func TestCoarse(t *testing.T) {
	var h Histogram
	for v := int64(1024); v < 1<<20; v += 16 {
		h.Add(v)
	}
	if n := len(Coarse(h.Buckets(), 4)); n != 40 {
		t.Errorf("ten doublings by 4 are %d buckets", n)
	}
	if n := len(Coarse(h.Buckets(), 64)); n != 640 {
		t.Errorf("ten doublings by 64 are %d buckets", n)
	}
}

func TestAddBucketsRefuses(t *testing.T) {
	for _, b := range []result.Bucket{
		{From: -1, To: 1, Count: 1},
		{From: 2, To: 1, Count: 1},
		{From: 1, To: 2, Count: -1},
		{From: math.NaN(), To: 1, Count: 1},
		{From: 1, To: math.Inf(1), Count: 1},
		{From: 1e300, To: 1e301, Count: 1},
	} {
		var h Histogram
		if h.AddBuckets([]result.Bucket{b}) || h.N() != 0 {
			t.Errorf("%+v was taken", b)
		}
	}
	var h Histogram
	if h.Quantiles() != nil || h.Buckets() != nil {
		t.Error("an empty histogram says something")
	}
}

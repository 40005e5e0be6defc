package stats_test

import (
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/fullbore-net/fullbore/internal/stats"
)

// The golden values of methods §17.
func TestRankTestGolden(t *testing.T) {
	a := []float64{940, 938, 941, 939, 942}
	b := []float64{921, 925, 919, 930, 923}
	r, ok := stats.MannWhitney(a, b)
	if !ok || !r.Exact || r.U != 25 {
		t.Errorf("%+v", r)
	}
	near(t, "p", r.P, 2.0/252, 1e-12)
	s, _ := stats.HodgesLehmann(a, b, 0.95)
	near(t, "shift", s.Median, -17, 0)
	if !s.Interval || s.Low != -21 || s.High != -10 {
		t.Errorf("interval of the shift: %+v", s)
	}
	near(t, "coverage", s.Coverage, 1-8.0/252, 1e-12)
	for n, least := range map[int]float64{3: 0.1, 4: 2.0 / 70, 5: 2.0 / 252} {
		low, high := ascending(n, 0), ascending(n, 100)
		r, _ := stats.MannWhitney(low, high)
		near(t, "least p", r.P, least, 1e-12)
		s, _ := stats.HodgesLehmann(low, high, 0.95)
		if s.Interval != (n > 3) {
			t.Errorf("%d against %d: interval %v", n, n, s.Interval)
		}
	}
}

func ascending(n int, from float64) (x []float64) {
	for i := range n {
		x = append(x, from+float64(i))
	}
	return x
}

func TestRankTestEdges(t *testing.T) {
	if _, ok := stats.MannWhitney(nil, []float64{1}); ok {
		t.Error("a side without values was tested")
	}
	if _, ok := stats.HodgesLehmann([]float64{1}, nil, 0.95); ok {
		t.Error("a side without values has a shift")
	}
	same := []float64{7, 7, 7, 7, 7}
	if r, _ := stats.MannWhitney(same, same); r.P != 1 || r.U != 12.5 {
		t.Errorf("all equal: %+v", r)
	}
	many := make([]float64, 25)
	if r, _ := stats.MannWhitney(many, many); r.P != 1 || r.Exact {
		t.Errorf("25 equal values a side: %+v", r)
	}
}

// splits calls f for each choice of n of the values x.
func splits(x []float64, n int, f func(chosen, rest []float64)) {
	for mask := range 1 << len(x) {
		if bits.OnesCount(uint(mask)) != n {
			continue
		}
		var in, out []float64
		for i, v := range x {
			if mask>>i&1 == 1 {
				in = append(in, v)
			} else {
				out = append(out, v)
			}
		}
		f(in, out)
	}
}

// pairs is U by its definition.
func pairs(a, b []float64) (u float64) {
	for _, x := range a {
		for _, y := range b {
			switch {
			case x > y:
				u++
			case x == y:
				u += 0.5
			}
		}
	}
	return u
}

// Against the definition: all splits of the pooled values, with many ties.
func TestMannWhitneyAgainstAllSplits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.Map(rapid.IntRange(0, rapid.IntRange(1, 40).Draw(t, "kinds")), func(v int) float64 { return float64(v) })
		a := rapid.SliceOfN(value, 1, 5).Draw(t, "a")
		b := rapid.SliceOfN(value, 1, 5).Draw(t, "b")
		got, _ := stats.MannWhitney(a, b)
		u := pairs(a, b)
		var all, below, above float64
		splits(append(slices.Clone(a), b...), len(a), func(in, out []float64) {
			all++
			v := pairs(in, out)
			if v <= u {
				below++
			}
			if v >= u {
				above++
			}
		})
		want := math.Min(1, 2*math.Min(below, above)/all)
		if got.U != u || math.Abs(got.P-want) > 1e-12 {
			t.Fatalf("%v against %v: %+v, want U %v p %v", a, b, got, u, want)
		}
	})
}

// The interval of the shift is the set of shifts that the test does not reject.
func TestShiftIntervalIsTheTestTurnedRound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.Map(rapid.IntRange(0, 100000), func(v int) float64 { return float64(v) })
		a := rapid.SliceOfNDistinct(value, 3, 8, rapid.ID).Draw(t, "a")
		b := rapid.SliceOfNDistinct(value, 3, 8, rapid.ID).Draw(t, "b")
		s, _ := stats.HodgesLehmann(a, b, 0.95)
		var diffs []float64
		for _, x := range a {
			for _, y := range b {
				diffs = append(diffs, y-x)
			}
		}
		slices.Sort(diffs)
		if m, _ := stats.Median(diffs); m != s.Median {
			t.Fatalf("shift %v, want %v", s.Median, m)
		}
		if s.Interval && s.Coverage < 0.95 {
			t.Fatalf("coverage %v", s.Coverage)
		}
		for i := range len(diffs) - 1 {
			if diffs[i+1]-diffs[i] < 1e-6 { // no room for a shift between them
				continue
			}
			d := (diffs[i] + diffs[i+1]) / 2
			moved := slices.Clone(b)
			for k := range moved {
				moved[k] -= d
			}
			r, _ := stats.MannWhitney(a, moved)
			inside := !s.Interval || s.Low < d && d < s.High
			if (r.P > 0.05) != inside && math.Abs(r.P-0.05) > 1e-9 {
				t.Fatalf("shift %v: p %v, interval %+v", d, r.P, s)
			}
		}
	})
}

// Beyond the exact range, against drawn splits: without ties and with many.
func TestApproximateRankTestAgainstDrawnSplits(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, kinds := range []int{1000000, 12} {
		var a, b []float64
		for range 24 {
			a, b = append(a, float64(r.IntN(kinds))), append(b, float64(r.IntN(kinds))+0.2*float64(kinds))
		}
		got, _ := stats.MannWhitney(a, b)
		all := append(slices.Clone(a), b...)
		far, mean, n := 0, float64(len(a)*len(b))/2, 4000
		for range n {
			r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
			if math.Abs(pairs(all[:24], all[24:])-mean) >= math.Abs(got.U-mean) {
				far++
			}
		}
		want := float64(far) / float64(n)
		if got.Exact || math.Abs(got.P-want) > 0.03 || want > 0.5 {
			t.Errorf("%d kinds: %+v, drawn p %v", kinds, got, want)
		}
	}
}

// Order statistics against the definition: all patterns of values below and above the median.
func TestMedianIntervalAgainstAllSigns(t *testing.T) {
	for n := 1; n <= 12; n++ {
		x := ascending(n, 1)
		iv, ok := stats.MedianInterval(x, 0.95)
		best, rank := 0.0, 0
		for r := 1; r <= n/2; r++ {
			hit := 0
			for mask := range 1 << n { // bit: the value is below the median
				if below := bits.OnesCount(uint(mask)); below >= r && n-below >= r {
					hit++
				}
			}
			if c := float64(hit) / float64(int(1)<<n); c >= 0.95 {
				best, rank = c, r
			}
		}
		if ok != (rank > 0) || ok && (iv.Rank != rank || math.Abs(iv.Coverage-best) > 1e-12 || iv.Low != float64(rank) || iv.High != float64(n+1-rank)) {
			t.Errorf("n = %d: %+v %v, want rank %d coverage %v", n, iv, ok, rank, best)
		}
	}
	// The golden ones of methods §17.
	for n, want := range map[int][2]float64{6: {1, 0.969}, 9: {2, 0.961}, 15: {4, 0.965}} {
		iv, _ := stats.MedianInterval(ascending(n, 1), 0.95)
		if float64(iv.Rank) != want[0] || math.Abs(iv.Coverage-want[1]) > 0.0005 {
			t.Errorf("n = %d: %+v, want %v", n, iv, want)
		}
	}
}

func TestHolm(t *testing.T) {
	if got := stats.Holm([]float64{0.01, 0.04, 0.03}); !cmp.Equal(got, []float64{0.03, 0.06, 0.06}, cmpopts.EquateApprox(0, 1e-12)) {
		t.Errorf("%v", got)
	}
	// By the definition: the k-th smallest is rejected when all up to it are below level/(n−k+1).
	rapid.Check(t, func(t *rapid.T) {
		p := rapid.SliceOfN(rapid.Float64Range(0, 0.2), 0, 7).Draw(t, "p")
		got := stats.Holm(p)
		const level = 0.05
		sorted := slices.Clone(p)
		slices.Sort(sorted)
		rejected := 0
		for rejected < len(sorted) && sorted[rejected] <= level/float64(len(sorted)-rejected) {
			rejected++
		}
		for i, v := range got {
			in := rejected > 0 && p[i] <= sorted[rejected-1]
			if (v <= level) != in && math.Abs(v-level) > 1e-12 {
				t.Fatalf("%v: corrected %v, rejected %d", p, got, rejected)
			}
			if v < p[i] || v > 1 {
				t.Fatalf("%v: corrected %v", p, got)
			}
		}
	})
}

// The golden value of methods §28.
func TestJain(t *testing.T) {
	j, ok := stats.Jain([]float64{10, 10, 10, 1})
	if !ok {
		t.Fatal("no index")
	}
	near(t, "Jain", j, 0.798, 0.0005)
	if _, ok := stats.Jain(nil); ok {
		t.Error("nothing has an index")
	}
	if j, _ := stats.Jain([]float64{3, 3, 3}); j != 1 {
		t.Errorf("equal shares: %v", j)
	}
}

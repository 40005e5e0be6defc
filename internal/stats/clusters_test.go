package stats

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestTwoClusters(t *testing.T) {
	for _, c := range []struct {
		name   string
		values []float64
		ok     bool
		n      [2]int
		two    bool
	}{
		{name: "too few", values: []float64{1, 2, 9}},
		{name: "all equal", values: []float64{5, 5, 5, 5, 5}},
		{name: "two ways", values: []float64{9.6, 48, 9.5, 48.2, 9.7, 47.9, 48.1, 9.6}, ok: true, n: [2]int{4, 4}, two: true},
		{name: "one slow of sixteen", values: []float64{48, 48, 47, 48, 49, 48, 48, 47, 9, 48, 48, 47, 49, 48, 48, 48}, ok: true, n: [2]int{1, 15}, two: true},
		{name: "evenly spread", values: []float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, ok: true, n: [2]int{6, 6}},
	} {
		got, ok := TwoClusters(c.values)
		if ok != c.ok || got.N != c.n || ok && (got.Gap() > 1) != c.two {
			t.Errorf("%s: %+v, gap %.2f, %v", c.name, got, got.Gap(), ok)
		}
	}
}

// Evenly spread values are rarely taken for two groups, and leave a quarter.
func TestTwoClustersOfOne(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	wrong, rest := 0, 0.0
	for range 1000 {
		xs := make([]float64, 16)
		for i := range xs {
			xs[i] = r.Float64()
		}
		c, _ := TwoClusters(xs)
		if c.Gap() > 1 {
			wrong++
		}
		rest += c.Rest / 1000
	}
	if wrong > 30 || math.Abs(rest-0.22) > 0.04 {
		t.Errorf("%d of 1000 were taken for two groups; %.3f of their spread is left", wrong, rest)
	}
}

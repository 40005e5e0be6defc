package plan

import "testing"

func TestBudget(t *testing.T) {
	for _, c := range []struct {
		b     Budget
		tests int
		used  bool
		share int64
	}{
		{Budget{}, 1, false, 0},
		{Budget{Moved: 5}, 2, false, 0}, // unbounded
		{Budget{Most: 100}, 1, false, 100},
		{Budget{Most: 100, Moved: 40}, 3, false, 20},
		{Budget{Most: 100, Moved: 99}, 3, false, 1}, // 0 would be no bound
		{Budget{Most: 100, Moved: 100}, 1, true, 1},
		{Budget{Most: 100, Moved: 130}, 1, true, 1},
	} {
		if c.b.Used() != c.used || c.b.Share(c.tests) != c.share {
			t.Errorf("%+v for %d: used %v, %d each", c.b, c.tests, c.b.Used(), c.b.Share(c.tests))
		}
	}
}

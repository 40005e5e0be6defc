package suite

import (
	"testing"

	"github.com/fullbore-net/fullbore/internal/bdp"
)

// A sender of the full load that was late makes up for it, and stays below the link's rate all the same.
func TestCatchUp(t *testing.T) {
	m := Method{Suite: Suite{Link: 1e9}, Path: Path{Family: 4, MTU: 1500}}
	l7 := bdp.UDP(4).Convert(1e9, 1472, bdp.L1, bdp.L7)
	for name, c := range map[string]struct {
		it   Item
		want float64
	}{
		"as it is agreed":         {Item{Share: 0.95}, mostCatchUp},
		"near the link":           {Item{Share: 0.98}, 0.99/0.98 - 1},
		"the whole link":          {Item{Share: 1}, 0},
		"a rate":                  {Item{Rate: int64(0.98 * l7)}, 0.99/0.98 - 1},
		"a rate above the link's": {Item{Rate: int64(1.1 * l7)}, 0},
		"a small rate":            {Item{Rate: 1e6}, mostCatchUp},
	} {
		got := m.catchUp(c.it)
		if got < c.want-1e-6 || got > c.want+1e-6 {
			t.Errorf("%s: %g, want %g", name, got, c.want)
		}
		if s := m.full(c.it, "up", 1); s.Plan.CatchUp != got || !s.Plan.Steady {
			t.Errorf("%s: the plan has %g", name, s.Plan.CatchUp)
		}
	}
}

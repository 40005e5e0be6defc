package cli

import (
	"strings"
	"testing"

	"github.com/fullbore-net/fullbore/internal/method"
	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/result"
)

// A sender that left out a part of its load is named as the reason for that the bounds lie further apart; one
// that left out next to nothing is not.
func TestUDPMaxNamesAPausingSender(t *testing.T) {
	notice := func(lower float64, d plan.Direction) *result.Notice {
		for _, n := range rateNotices(method.NDRAnswer{Direction: d, Answers: []method.RateAnswer{{Load: 50e6, Lower: lower, Upper: 51e6}}}) {
			if n.Code == "sender-paused" {
				return &n
			}
		}
		return nil
	}
	for _, c := range []struct {
		lower float64
		way   plan.Direction
		end   result.End
	}{{49e6, plan.Up, result.Client}, {48.5e6, plan.Down, result.Server}} {
		n := notice(c.lower, c.way)
		if n == nil || n.End != c.end || !strings.Contains(n.Text, "of the 50.0 Mbit/s that were asked for") {
			t.Errorf("%s at %v: %+v", c.way, c.lower, n)
		}
	}
	if n := notice(49.9e6, plan.Up); n != nil {
		t.Errorf("%+v", n)
	}
	if out := rateNotices(method.NDRAnswer{Direction: plan.Up, Answers: []method.RateAnswer{{Upper: 51e6}}}); len(out) > 0 {
		t.Errorf("without a lower bound: %+v", out)
	}
}

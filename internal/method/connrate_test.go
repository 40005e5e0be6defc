package method

import (
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/fullbore-net/fullbore/result"
)

// server is a made-up one that takes so many a second, and by what others fail; "" = it is slow.
func connWorld(most float64, code string) func(float64) result.ConnRateStep {
	return func(rate float64) result.ConnRateStep {
		s := result.ConnRateStep{Asked: rate, Seconds: 1, Tried: int64(rate), Failed: []result.ConnFault{}, Connect: &result.Quantiles{N: 1, P50: 0.001, P99: 0.002}}
		opened := min(rate, most)
		s.Opened, s.Rate = int64(opened), opened
		if lost := int64(rate - opened); lost > 0 && code != "" {
			s.Failed = append(s.Failed, result.ConnFault{Code: code, Count: lost, Text: "so it was"})
		}
		return s
	}
}

func playConn(c ConnRate, world func(float64) result.ConnRateStep) (steps []result.ConnRateStep) {
	for range 100 {
		rate, more := c.Next(steps)
		if !more {
			return steps
		}
		steps = append(steps, world(rate))
	}
	panic("it does not end")
}

func TestConnRate(t *testing.T) {
	c := ConnRate{From: 50, Most: 20000, Refine: 3}
	for _, code := range []string{"refused", "reset", "no-answer", "local-ports", "local-files", "busy", "silent", "other", ""} {
		a := c.Answer(playConn(c, connWorld(1000, code)))
		want := code
		if code == "" {
			want = "slow"
		}
		if a.Limit != want || a.Why == "" || a.Reached == nil || *a.Reached < 850 || *a.Reached > 1100 {
			t.Errorf("%q: %+v", code, a)
		}
		if client := strings.HasPrefix(code, "local"); client != (a.Where == result.Client) {
			t.Errorf("%q fails at %q", code, a.Where)
		}
	}
	if a := c.Answer(playConn(c, connWorld(1e9, ""))); a.Limit != "" || *a.Reached != 20000 {
		t.Errorf("without a limit: %+v", a)
	}
	steps := playConn(c, connWorld(0, "refused"))
	if a := c.Answer(steps); len(steps) != 1 || a.Reached != nil || a.Limit != "refused" {
		t.Errorf("nobody there: %+v", a)
	}
	if a := c.Answer(nil); a.Reached != nil || a.Limit != "" || a.Steps == nil {
		t.Errorf("nothing done: %+v", a)
	}
}

// The reached rate is within the refinement of the truth, from below.
func TestConnRateProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		most := rapid.Float64Range(100, 15000).Draw(t, "most")
		c := ConnRate{From: 50, Most: 20000, Refine: 4}
		a := c.Answer(playConn(c, connWorld(most, "reset")))
		if a.Reached == nil || *a.Reached > most+1 || *a.Reached < most*0.85-1 {
			t.Fatalf("most %v: %+v", most, a.Reached)
		}
		if math.IsNaN(*a.Reached) {
			t.Fatal("NaN")
		}
	})
}

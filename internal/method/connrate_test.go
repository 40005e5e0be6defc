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

// A host that begins fewer than it should is tried again before it is named, and then named: nothing is
// said about the other end.
func TestConnRateOfABusyHost(t *testing.T) {
	c := ConnRate{From: 50, Most: 20000, Refine: 3}
	begun := func(rate, n, held float64) result.ConnRateStep {
		return result.ConnRateStep{Asked: rate, Seconds: 1, Tried: int64(n), Opened: int64(n), Rate: n, Held: held, Failed: []result.ConnFault{}}
	}
	steps := playConn(c, func(rate float64) result.ConnRateStep { return begun(rate, min(rate, 1000), 0) })
	a := c.Answer(steps)
	if a.Limit != ConnCPU || a.Where != result.Client || *a.Reached != 1000 || len(steps) != 5+connTries || !strings.Contains(a.Why, "1600 a second were asked for and this host began 1000") {
		t.Errorf("%d steps: %+v, reached %v", len(steps), a, *a.Reached)
	}
	// Not even the first rate, which is no word about the server either.
	if a := c.Answer(playConn(c, func(rate float64) result.ConnRateStep { return begun(rate, 5, 0) })); a.Limit != ConnCPU || *a.Reached != 5 {
		t.Errorf("from the beginning: %+v", a)
	}
	// One late moment is none.
	late := true
	steps = playConn(c, func(rate float64) result.ConnRateStep {
		if rate == 800 && late {
			late = false
			return begun(rate, 200, 0)
		}
		return begun(rate, rate, 0)
	})
	if a := c.Answer(steps); a.Limit != "" || *a.Reached != 20000 {
		t.Errorf("after a late moment: %+v", a)
	}
	// Others' answers that do not come are the other end's.
	if a := c.Answer(playConn(c, func(rate float64) result.ConnRateStep { return begun(rate, min(rate, 1000), max(0, 1-1000/rate)) })); a.Limit != ConnSlow || a.Where != "" {
		t.Errorf("with all places taken: %+v", a)
	}
	// A failure counts, however late the host was.
	if a := c.Answer(playConn(c, func(rate float64) result.ConnRateStep {
		s := begun(rate, min(rate, 1000), 0)
		if rate > 1000 {
			s.Failed = append(s.Failed, result.ConnFault{Code: "refused", Count: 1})
		}
		return s
	})); a.Limit != "refused" || a.Where != result.Server {
		t.Errorf("with failures: %+v", a)
	}
}

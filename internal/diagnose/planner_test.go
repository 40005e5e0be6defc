package diagnose_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fullbore-net/fullbore/internal/diagnose"
	"github.com/fullbore-net/fullbore/internal/method"
	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/result"
)

// again plays the planner over a recorded history: a stage that was recorded is answered
// with its record, any other with a failure.
func again(t *testing.T, p diagnose.Planner, rep *result.Report) []method.Done {
	t.Helper()
	known := map[string]method.Done{}
	for _, d := range diagnose.History(rep) {
		known[d.Step.Name] = d
	}
	var history []method.Done
	for {
		step, more := p.Next(history)
		if !more {
			return history
		}
		if len(history) > 60 {
			t.Fatalf("no end: %d stages", len(history))
		}
		d, ok := known[step.Name]
		if !ok {
			d = method.Done{Err: &result.Error{Code: "failed", Text: "not recorded"}}
		}
		d.Step = step
		history = append(history, d)
	}
}

// TestPlannerKeepsToItsBudget: whatever was measured, the stages fit, none comes twice,
// and every plan is one that can be run.
func TestPlannerKeepsToItsBudget(t *testing.T) {
	for _, f := range recorded(t) {
		rep := load(t, f)
		for _, b := range []diagnose.Budget{diagnose.Quick(), diagnose.Default(), diagnose.Deep()} {
			history := again(t, diagnose.Planner{Budget: b, Facts: rep.Facts}, rep)
			total := time.Duration(0)
			seen := map[string]bool{}
			for _, d := range history {
				total += d.Step.Length()
				if seen[d.Step.Name] {
					t.Errorf("%s %s: %s comes twice", f, b.Name, d.Step.Name)
				}
				seen[d.Step.Name] = true
				p := d.Step.Plan
				p.Host = "192.0.2.1"
				if err := p.Validate(); err != nil {
					t.Errorf("%s %s: %s: %v", f, b.Name, d.Step.Name, err)
				}
				if d.Step.Title == "" || d.Step.Why == "" {
					t.Errorf("%s: %s has no words", f, d.Step.Name)
				}
			}
			if total > b.Total {
				t.Errorf("%s %s: %v planned, %v allowed", f, b.Name, total, b.Total)
			}
			if len(history) < 3 || history[0].Step.Name != "idle" {
				t.Errorf("%s %s: %d stages, the first %q", f, b.Name, len(history), history[0].Step.Name)
			}
		}
	}
}

// UDP never goes above what TCP was seen to reach, except in a deep diagnosis.
func TestPlannerDoesNotFlood(t *testing.T) {
	for _, f := range recorded(t) {
		rep := load(t, f)
		best := 0.0
		for _, run := range rep.Runs {
			if run.Test.Transport != "tcp" {
				continue
			}
			for _, row := range run.Rows {
				for _, s := range row.Sums {
					best = max(best, s.BPS)
				}
			}
		}
		for _, d := range again(t, diagnose.Planner{Budget: diagnose.Default(), Facts: rep.Facts}, rep) {
			if p := d.Step.Plan; p.Transport == plan.UDP && d.Step.Name != "idle" && float64(p.Bitrate) > best {
				t.Errorf("%s: %s sends %d bit/s, TCP reached %.0f", f, d.Step.Name, p.Bitrate, best)
			}
		}
	}
}

func TestPlannerDirections(t *testing.T) {
	rep := load(t, recorded(t)[0])
	for _, dir := range []result.Direction{result.Up, result.Down} {
		for _, d := range again(t, diagnose.Planner{Budget: diagnose.Default(), Facts: rep.Facts, Directions: []result.Direction{dir}}, rep) {
			if !strings.HasPrefix(d.Step.Name, "idle") && !strings.HasPrefix(d.Step.Name, string(dir)) {
				t.Errorf("%s was asked for only, and %s planned", dir, d.Step.Name)
			}
		}
	}
}

// A peer that cannot be reached, or does not want to, is not asked again.
func TestPlannerStops(t *testing.T) {
	p := diagnose.Planner{Budget: diagnose.Default()}
	first, _ := p.Next(nil)
	for _, code := range []string{"connect", "busy", "auth", "resolve"} {
		if _, more := p.Next([]method.Done{{Step: first, Err: &result.Error{Code: code}}}); more {
			t.Errorf("it goes on after %s", code)
		}
	}
	if _, more := p.Next([]method.Done{{Step: first, Err: &result.Error{Code: "udp-no-answer"}}}); !more {
		t.Error("it gives up where only UDP is blocked")
	}
	if vs := diagnose.Judge(nil, nil); len(vs) != 0 {
		t.Errorf("nothing was measured, and it says %v", vs)
	}
	if s := diagnose.Summary(nil); s != "Nothing was measured." {
		t.Error(s)
	}
	names := []string{}
	for _, s := range p.Possible() {
		names = append(names, s.Title)
	}
	if !slices.Contains(names, "half the rate") || !slices.Contains(names, "the empty path") {
		t.Errorf("possible: %v", names)
	}
}

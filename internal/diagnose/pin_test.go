package diagnose

import (
	"strings"
	"testing"
	"time"

	"github.com/fullbore-net/fullbore/internal/method"
	"github.com/fullbore-net/fullbore/result"
)

// crowded is a single stream whose sender's worker shares core 1 with the card's interrupts.
func crowded(name string, bps, interrupts, otherBusy float64) flow {
	run := &result.Run{Test: result.Test{Transport: "tcp", Target: "192.0.2.2"}, Started: time.Unix(0, 0), End: result.Client}
	for i := range 10 {
		run.Rows = append(run.Rows, result.Interval{
			End: result.Client, Start: float64(i), Stop: float64(i + 1),
			Host: &result.HostSample{Cores: []result.CoreShare{
				{CPU: 0, User: otherBusy, Idle: 1 - otherBusy},
				{CPU: 1, User: 0.1, System: 0.9 - interrupts, SoftIRQ: interrupts},
				{CPU: 2, User: otherBusy / 2, Idle: 1 - otherBusy/2},
			}},
		})
	}
	return flow{name: name, run: run, dir: result.Up, streams: 1, rate: bps, arrived: true, ratioKnown: true, mss: segment, rttMin: 0.001, rttMean: 0.001, load: [2]float64{0.99, 0.3}}
}

func TestPinned(t *testing.T) {
	ask := func(f flow) *method.Step {
		c := &Case{}
		c.Up, c.Down = leg{dir: result.Up, case_: c, flows: []flow{f}}, leg{dir: result.Down, case_: c}
		c.History = []method.Done{{Step: method.Step{Name: "up-1"}, Run: f.run}}
		return Planner{Budget: Default()}.pinned(c, &c.Up)
	}
	s := ask(crowded("up-1", 5e9, 0.4, 0.2))
	if s == nil || s.Name != "up-pin-2" || len(s.Plan.Affinity) != 1 || s.Plan.Affinity[0] != 2 {
		t.Fatalf("%+v", s)
	}
	if s := ask(crowded("up-1", 5e9, 0.05, 0.2)); s != nil {
		t.Errorf("hardly an interrupt, and it is moved: %+v", s)
	}
	if s := ask(crowded("up-1", 5e9, 0.4, 0.9)); s == nil || s.Name != "up-pin-2" {
		t.Errorf("core 2 is half free: %+v", s)
	}
	idle := crowded("up-1", 5e9, 0.4, 0.2)
	idle.load = [2]float64{0.3, 0.3}
	if s := ask(idle); s != nil {
		t.Errorf("nobody is full, and it is moved: %+v", s)
	}
	held := crowded("up-1", 5e9, 0.4, 0.2)
	held.load = [2]float64{1.5, 0.3}
	if s := ask(held); s != nil {
		t.Errorf("a quota is not of a core: %+v", s)
	}
}

func TestPinnedVerdict(t *testing.T) {
	for _, k := range []struct {
		name, certainty, says, todo string
		later                       float64
	}{
		{"it helps", Proven, "away from the interrupts on core 1: 8.00 Gbit/s, +60 %", "taskset -c 2", 8e9},
		{"it does not", Likely, "+2 %", "", 5.1e9},
	} {
		t.Run(k.name, func(t *testing.T) {
			c := &Case{}
			c.Up = leg{dir: result.Up, case_: c, flows: []flow{crowded("up-1", 5e9, 0.4, 0.2), crowded("up-pin-2", k.later, 0.4, 0.2)}}
			c.Down = leg{dir: result.Down, case_: c}
			c.History = []method.Done{{Step: method.Step{Name: "up-1"}, Run: c.Up.flows[0].run}}
			vs := cpu(c)
			if len(vs) != 1 || vs[0].Certainty != k.certainty || !strings.Contains(strings.Join(vs[0].Evidence, "\n"), k.says) {
				t.Fatalf("%+v", vs)
			}
			if todo := strings.Join(vs[0].Advice, "\n"); k.todo != "" != strings.Contains(todo, "taskset") {
				t.Errorf("advice: %s", todo)
			}
		})
	}
}

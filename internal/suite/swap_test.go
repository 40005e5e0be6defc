package suite_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fullbore-net/fullbore/internal/conclude"
	"github.com/fullbore-net/fullbore/internal/method"
	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/internal/suite"
	"github.com/fullbore-net/fullbore/internal/units"
	"github.com/fullbore-net/fullbore/result"
)

// swapWorld is a world with the roles exchanged at the end: what its steps carry, and what befalls them.
type swapWorld struct {
	rates map[string]float64 // by the beginning of a step's name; else 93 Mbit/s
	flags map[string]string  // likewise: a flag of the run
	errs  map[string]string  // likewise: it could not begin
	plain bool               // the other end is no fullbore
}

func begins[T any](m map[string]T, name string) (v T, ok bool) {
	for k, x := range m {
		if strings.HasPrefix(name, k) {
			return x, true
		}
	}
	return v, false
}

// play plays a suite; names are the steps with the roles exchanged.
func (b swapWorld) play(t *testing.T, s suite.Suite, x *suite.Exchange) (rep *result.Report, names []string) {
	t.Helper()
	m := suite.Method{Suite: s, Path: suite.Path{Family: 4, MTU: 1500}, Exchange: x}
	var history []method.Done
	for {
		step, more := m.Next(history)
		if !more {
			break
		}
		w := world{rate: 93e6}
		if r, ok := begins(b.rates, step.Name); ok {
			w.rate = r
		}
		d := method.Done{Step: step, Run: w.run(step)}
		d.Run.Wire.Extension = !b.plain
		if f, ok := begins(b.flags, step.Name); ok {
			d.Run.Flags = []string{f}
		}
		if text, ok := begins(b.errs, step.Name); ok {
			d.Err = &result.Error{Code: "swap-unreached", Text: text}
			d.Run = &result.Run{Err: d.Err}
		}
		if step.Plan.Swap != nil {
			names = append(names, step.Name)
			p := step.Plan
			p.Host = "h"
			if err := p.Validate(); err != nil {
				t.Errorf("%s: %v", step.Name, err)
			}
		}
		if history = append(history, d); len(history) > 200 {
			t.Fatal("it does not end")
		}
	}
	rep = &result.Report{Kind: "accept"}
	for i := range history {
		rep.Runs = append(rep.Runs, history[i].Run)
	}
	self := 8e9
	(&suite.Judge{Method: m, Host: "192.0.2.2", Self: &self}).Fill(rep, history)
	return rep, names
}

func TestExchangedRoles(t *testing.T) {
	first := []string{"swap:A2-up-1", "swap:A2-down-1"}
	for name, tc := range map[string]struct {
		world  swapWorld
		names  []string
		result string // of the item; "" = there is none
		rows   int
		says   string // in the item, a row, or what could not be seen
	}{
		"alike": {swapWorld{}, first, result.Pass, 2, "A2, client-host → server-host: 93.0 Mbit/s with client-host as the client, 93.0 Mbit/s with server-host, 0 apart."},
		"a bad moment": {
			swapWorld{rates: map[string]float64{"swap:A2-up-1": 80e6, "swap:A2-up-2": 92e6, "swap:A2-up-3": 91e6}},
			[]string{"swap:A2-up-1", "swap:A2-down-1", "swap:A2-up-2", "swap:A2-up-3"},
			result.Pass, 2, "91.0 Mbit/s with server-host, 2.15 % apart.",
		},
		"as unsteady as the rounds": {
			swapWorld{rates: map[string]float64{"A2-up-2": 90e6, "swap:A2-up": 90.05e6}}, first, result.Pass, 2, "no more than the 3 rounds with client-host differ among themselves",
		},
		"a weaker client": {
			swapWorld{rates: map[string]float64{"swap:": 70e6}},
			[]string{"swap:A2-up-1", "swap:A2-down-1", "swap:A2-up-2", "swap:A2-down-2", "swap:A2-up-3", "swap:A2-down-3"},
			result.Inconclusive, 2, "more than 3 %: slower with server-host as the client. So it is server-host that differs, not the direction.",
		},
		"a full processor": {
			swapWorld{rates: map[string]float64{"swap:A2-up": 70e6}, flags: map[string]string{"swap:A2-up": conclude.FlagSenderCPU}},
			[]string{"swap:A2-up-1", "swap:A2-down-1", "swap:A2-up-2", "swap:A2-up-3"},
			result.Inconclusive, 2, "slower with server-host as the client, when the processor of client-host was the limit. So it is client-host that differs",
		},
		"not reached": {
			swapWorld{errs: map[string]string{"swap:": "the other end cannot reach port 5000 of this one (nothing answered)"}},
			first[:1], "", 0, "Roles not swapped: the other end cannot reach port 5000 of this one (nothing answered).",
		},
		"reached once": {
			swapWorld{errs: map[string]string{"swap:A2-down": "busy"}}, first, result.Pass, 1, "Roles not swapped: busy.",
		},
		"another program": {swapWorld{plain: true}, nil, "", 0, "The other end is no fullbore"},
	} {
		t.Run(name, func(t *testing.T) {
			rep, names := tc.world.play(t, trial(), &suite.Exchange{Port: 5000})
			if diff := cmp.Diff(tc.names, names); diff != "" {
				t.Errorf("steps (-want +got):\n%s", diff)
			}
			at := slices.IndexFunc(rep.Items, func(i result.Item) bool { return i.ID == "swapped" })
			said := slices.Clone(rep.Unseen)
			for _, s := range rep.Acceptance.Swapped {
				said = append(said, s.Reason)
			}
			switch {
			case (at >= 0) != (tc.result != ""):
				t.Errorf("items %+v", rep.Items)
			case at >= 0 && rep.Items[at].Result != tc.result:
				t.Errorf("%s %q", rep.Items[at].Result, rep.Items[at].Reasons)
			}
			if len(rep.Acceptance.Swapped) != tc.rows || !strings.Contains(strings.Join(said, "\n"), tc.says) {
				t.Errorf("%d rows; said:\n%s", len(rep.Acceptance.Swapped), strings.Join(said, "\n"))
			}
			if total := suite.Total(rep); total == result.Fail {
				t.Errorf("total %s", total)
			}
			if i := find(t, rep, "A2-up"); !tc.world.plain && i.Result != result.Pass {
				t.Errorf("A2 itself: %s %q", i.Result, i.Reasons)
			}
		})
	}
}

// What is played, and that it is counted and can be left out.
func TestExchangedSteps(t *testing.T) {
	m := theMethod(suite.Default(suite.Metro, 100*units.MbitPerSec))
	least, most := m.Length()
	volume, steps := m.Volume(), len(m.Steps())
	m.Exchange = &suite.Exchange{Port: 5000}
	all := m.Steps()
	if len(all) != steps+2 {
		t.Fatalf("%d steps instead of %d", len(all), steps)
	}
	more := all[steps].Length() + all[steps+1].Length()
	if l, h := m.Length(); l != least+more || h != most+more || m.Volume() != volume+all[steps].Volume+all[steps+1].Volume {
		t.Errorf("%v to %v instead of %v to %v and %v", l, h, least, most, more)
	}
	up, down := all[steps].Plan, all[steps+1].Plan
	if up.Direction != plan.Down || down.Direction != plan.Up || up.Swap.Port != 5000 || up.Streams != 8 || up.Duration != 10*time.Second {
		t.Errorf("up %+v, down %+v", up, down)
	}
	one, err := trial().Only([]string{"A1"})
	if err != nil {
		t.Fatal(err)
	}
	m.Suite = one
	if all = m.Steps(); all[len(all)-1].Name != "swap:A1-down-1" {
		t.Errorf("without A2: %s", all[len(all)-1].Name)
	}
	m.Suite = trial().Shortened()
	for _, s := range m.Steps() {
		if s.Plan.Swap != nil {
			t.Errorf("a trial has %s", s.Name)
		}
	}
}

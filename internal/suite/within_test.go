package suite_test

import (
	"strings"
	"testing"
	"time"

	"github.com/fullbore-net/fullbore/internal/method"
	"github.com/fullbore-net/fullbore/internal/suite"
	"github.com/fullbore-net/fullbore/result"
)

// play goes on with a method against a server that takes tests of most seconds at most (0 = any), and
// would refuse what is longer or has no end in time.
func play(t *testing.T, m suite.Method, w world, most float64) (history []method.Done) {
	t.Helper()
	for len(history) < 200 {
		step, more := m.Next(history)
		if !more {
			return history
		}
		p := step.Plan
		if length := (p.Omit + p.Duration).Seconds(); most > 0 && (length == 0 || length > most) {
			t.Errorf("%s would be refused: %v + %v", step.Name, p.Omit, p.Duration)
		}
		p.Host = "h"
		if err := p.Validate(); err != nil {
			t.Errorf("%s: %v", step.Name, err)
		}
		run := w.run(step)
		run.Test.Duration = p.Duration.Seconds()
		if most > 0 {
			run.Test.ServerLimit = &result.Limit{MaxDuration: most}
		}
		history = append(history, method.Done{Step: step, Run: run})
	}
	t.Fatal("no end")
	return nil
}

// reported judges a history.
func reported(m suite.Method, history []method.Done) *result.Report {
	rep := &result.Report{Kind: "accept"}
	for i := range history {
		at := i
		rep.Runs = append(rep.Runs, history[i].Run)
		rep.Stages = append(rep.Stages, result.Stage{Name: history[i].Step.Name, Run: &at})
	}
	(&suite.Judge{Method: m, Host: "192.0.2.2"}).Fill(rep, history)
	return rep
}

// shortTrial is trial with a look at the empty path of 1 s.
func shortTrial() suite.Suite {
	s := trial()
	s.Items[0].Time = time.Second
	return s
}

// A server that takes shorter tests than agreed is asked for what it takes; the figures are there, and that
// they are not of the time that was agreed decides against a pass.
func TestLongestTest(t *testing.T) {
	m := theMethod(shortTrial())
	history := play(t, m, world{rate: 93e6}, 2.5)
	if ids, most, needs := m.Cramped(history); len(ids) != 6 || most != 2500*time.Millisecond || needs != 4*time.Second {
		t.Errorf("%v, %v, %v", ids, most, needs)
	}
	rep := reported(m, history)
	for id, says := range map[string]string{
		"A0":    "Server-host takes tests of 2.5 s at most (--max-time there), and A1, A2, A3, A4, A5, A6 would be up to 4 s long",
		"A1-up": "Server-host takes tests of 2.5 s at most (--max-time there), so this one was 1.5 s long, not the 3 s that were agreed.",
		"A4-up": "so this one was 2.5 s long, not the 3 s",
	} {
		i := find(t, rep, id)
		if i.Result != result.Inconclusive || !strings.Contains(strings.ToLower(strings.Join(i.Reasons, "\n")), strings.ToLower(says)) {
			t.Errorf("%s: %s %q", id, i.Result, i.Reasons)
		}
	}
	if c := find(t, rep, "A1-up").Criteria[0]; c.Result != result.Pass || c.Value == nil {
		t.Errorf("its figure: %+v", c)
	}
	if rep = reported(m, play(t, m, world{rate: 84e6}, 2.5)); find(t, rep, "A2-up").Result != result.Fail {
		t.Error("what misses its limit is no failure any more")
	}
	if rep = reported(m, play(t, m, world{rate: 93e6}, 60)); suite.Total(rep) != result.Pass {
		t.Errorf("a server that takes 60 s: %s", rep.Summary)
	}
}

// Gone on with after a break, a server is asked anew how long tests may be: what was too short is made
// again where it may be longer by now, and kept where not.
func TestLongestTestResumed(t *testing.T) {
	m := theMethod(shortTrial())
	first := play(t, m, world{rate: 93e6}, 2.5)
	rep := reported(m, first)
	again := m
	again.Earlier = suite.Kept(suite.History(rep))
	if len(again.Earlier) != len(first)-1 {
		t.Errorf("%d of %d are kept", len(again.Earlier), len(first))
	}
	if same := play(t, again, world{rate: 93e6}, 2.5); len(same) != 1 || same[0].Step.Name != "A0" {
		t.Errorf("%d steps are made again", len(same))
	}
	longer := play(t, again, world{rate: 93e6}, 0)
	if len(longer) != 1+6+6+3+2+2+2 {
		t.Errorf("%d steps are made again", len(longer))
	}
	all := append(append([]method.Done{}, again.Earlier...), longer...)
	if rep = reported(again, all); suite.Total(rep) != result.Pass {
		t.Errorf("%s", rep.Summary)
	}
}

// A look at the empty path that is refused for its length alone is made once more, shorter.
func TestIdleTooLong(t *testing.T) {
	m := theMethod(trial())
	refused := func(s method.Step, code string) method.Done {
		e := &result.Error{Code: code, Text: "no"}
		return method.Done{Step: s, Run: &result.Run{Err: e}, Err: e}
	}
	first, _ := m.Next(nil)
	history := []method.Done{refused(first, "limit")}
	second, more := m.Next(history)
	if !more || second.Name != "A0" || second.Plan.Duration != time.Second {
		t.Fatalf("%v %+v", more, second)
	}
	if _, more := m.Next(append(history, refused(second, "limit"))); more {
		t.Error("and a third time")
	}
	if _, more := m.Next([]method.Done{refused(first, "busy")}); more {
		t.Error("a busy server is asked again")
	}
	run := world{rate: 93e6}.run(second)
	run.Test.ServerLimit = &result.Limit{MaxDuration: 2}
	if third, more := m.Next(append(history, method.Done{Step: second, Run: run})); !more || !strings.HasPrefix(third.Name, "A0-mtu-") {
		t.Errorf("behind it: %q", third.Name)
	}
}

// What is announced when the other end was met is what is left, as long as that takes.
func TestAnnouncedWhenMet(t *testing.T) {
	m := theMethod(shortTrial())
	m.Exchange = &suite.Exchange{}
	first, _ := m.Next(nil)
	titles := func(m suite.Method) (text string) {
		for _, s := range m.Possible() {
			text += s.Title + "\n"
		}
		return text
	}
	before := titles(m)
	for _, want := range []string{"A0 the empty path\n", "A0 the path's packet size, both ways\n", "roles exchanged\n"} {
		if !strings.Contains(before, want) {
			t.Errorf("%q is not announced in\n%s", want, before)
		}
	}
	plain := world{rate: 93e6}.run(first)
	plain.Wire = nil
	m.Earlier = []method.Done{{Step: first, Run: plain}}
	if got := titles(m); strings.Contains(got, "A0 ") || strings.Contains(got, "roles exchanged") || !strings.Contains(got, "A1 ") {
		t.Errorf("towards an iperf3:\n%s", got)
	}
	m.Earlier[0].Run = world{rate: 93e6}.run(first)
	whole, _ := m.Length()
	volume := m.Volume()
	if got := titles(m); strings.Contains(got, "empty path") || !strings.Contains(got, "packet size") || !strings.Contains(got, "roles exchanged") {
		t.Errorf("towards a fullbore:\n%s", got)
	}
	m.Earlier[0].Run.Test.ServerLimit = &result.Limit{MaxDuration: 2.5}
	if less, _ := m.Length(); less >= whole || m.Volume() >= volume {
		t.Errorf("%v of %v, %d of %d bytes", less, whole, m.Volume(), volume)
	}
}

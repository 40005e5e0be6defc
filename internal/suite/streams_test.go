package suite_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fullbore-net/fullbore/internal/method"
	"github.com/fullbore-net/fullbore/internal/suite"
	"github.com/fullbore-net/fullbore/internal/units"
	"github.com/fullbore-net/fullbore/result"
)

// curve makes up a link whose rate follows the number of streams.
func curve(rates map[int]float64, cores float64) func(string, result.Direction, *result.Run) {
	return func(_ string, d result.Direction, run *result.Run) {
		if run.Test.Transport != "tcp" {
			return
		}
		v := rates[run.Test.Streams]
		for i := range run.Sums {
			if run.Sums[i].Direction == d {
				run.Sums[i].Goodput, run.Sums[i].Peak = &v, &v
			}
		}
		for i := range run.Rows {
			for k := range run.Rows[i].Host.Cores {
				run.Rows[i].Host.Cores[k] = result.CoreShare{Idle: 1 - cores, System: cores}
			}
		}
	}
}

// The items with several streams have as many as the knee, or 8, and the report says why.
func TestKnee(t *testing.T) {
	flat := map[int]float64{1: 93e6, 2: 93e6, 4: 93e6, 8: 93e6, 16: 93e6}
	// M-KNEE's golden curve, a tenth of a per cent of noise left out.
	golden := map[int]float64{1: 9.2e6, 2: 17.8e6, 4: 31.0e6, 8: 38.5e6, 16: 40.1e6, 32: 40.0e6, 64: 38.7e6}
	steep := map[int]float64{1: 1e6, 2: 2e6, 4: 4e6, 8: 8e6, 16: 16e6, 32: 32e6, 64: 64e6}
	for _, c := range []struct {
		name    string
		rates   map[int]float64
		cores   float64
		streams int
		from    string
		pool    int
		says    string
	}{
		{"flat", flat, 0.1, 8, "default", 1, "have 8, since no knee was found: up 1 stream carried as much as more did"},
		{"golden", golden, 0.1, 8, "knee", 16, "have 8, by the knee: up 8 (38.5 Mbit/s; the best, with 16, is 40.1 Mbit/s)"},
		{"ever steeper", steep, 0.1, 64, "knee", 64, "have 64, by the knee: up 64, the most that was tried: the rate still grew there"},
		{"a full core", golden, 0.99, 8, "default", 1, "the knee at 8 is not the link's: a core was 99 % busy there"},
		{"early", map[int]float64{1: 20e6, 2: 40e6, 4: 78e6, 8: 79e6, 16: 79e6}, 0.1, 4, "knee", 4, "have 4, by the knee: up 4 (78.0 Mbit/s"},
	} {
		s := openTrial()
		rep := judged(t, s, world{rate: 93e6, plant: curve(c.rates, c.cores)})
		a := rep.Acceptance
		if a.Parallel == nil || *a.Parallel != c.streams || a.ParallelFrom != c.from || a.Streams == nil || !strings.Contains(a.Findings[0], c.says) {
			t.Errorf("%s: %v streams by %q, pool %v, %q", c.name, a.Parallel, a.ParallelFrom, a.Streams, a.Findings[0])
			continue
		}
		if *a.Streams != c.pool && c.cores < 0.9 {
			t.Errorf("%s: a pool of %d, want %d", c.name, *a.Streams, c.pool)
		}
		if again := fmt.Sprintf("--profile metro -P %d --quick", c.streams); (c.from == "knee") != strings.Contains(fmt.Sprint(a.Todo), again) {
			t.Errorf("%s: a later trial does not have the same streams: %v", c.name, a.Todo)
		}
		for _, run := range rep.Runs {
			name := run.Label
			want := c.streams
			switch {
			case strings.HasPrefix(name, "A1-"):
				want = 1
			case !strings.HasPrefix(name, "A2-") && !strings.HasPrefix(name, "A3-") && !strings.HasPrefix(name, "A6-"):
				continue
			}
			if run.Test.Streams != want {
				t.Errorf("%s: %s has %d streams, want %d", c.name, name, run.Test.Streams, want)
			}
		}
	}
}

// A core that others keep full does not make a knee the hosts': it is told, and counts.
func TestKneeBesideOthers(t *testing.T) {
	golden := curve(map[int]float64{1: 9.2e6, 2: 17.8e6, 4: 31.0e6, 8: 38.5e6, 16: 40.1e6, 32: 40.0e6, 64: 38.7e6}, 0.99)
	rep := judged(t, openTrial(), world{rate: 93e6, plant: func(name string, d result.Direction, run *result.Run) {
		golden(name, d, run)
		run.Notices = append(run.Notices, result.Notice{Code: "competing-load", Level: result.Warn})
	}})
	if a := rep.Acceptance; *a.Parallel != 8 || a.ParallelFrom != "knee" || !strings.Contains(a.Findings[0], "other programs kept a core full meanwhile") {
		t.Errorf("%d streams by %q: %q", *a.Parallel, a.ParallelFrom, a.Findings[0])
	}
}

// Said numbers are taken; a trial does not look, and says so.
func TestNoKnee(t *testing.T) {
	looked := func(rep *result.Report) (n int) {
		for _, st := range rep.Stages {
			if strings.HasPrefix(st.Name, "knee-") {
				n++
			}
		}
		return n
	}
	s := openTrial()
	s.Override(5, 0, "")
	rep := judged(t, s, world{rate: 93e6})
	if a := rep.Acceptance; looked(rep) != 0 || *a.Parallel != 5 || a.ParallelFrom != "given" {
		t.Errorf("given: %d looks, %v by %q", looked(rep), *a.Parallel, a.ParallelFrom)
	}
	rep = judged(t, openTrial().Shortened(), world{rate: 93e6})
	if a := rep.Acceptance; looked(rep) != 0 || *a.Parallel != 8 || a.ParallelFrom != "default" || !strings.Contains(a.Findings[0], "a trial does not look for the knee") {
		t.Errorf("a trial: %d looks, %v by %q, %q", looked(rep), *a.Parallel, a.ParallelFrom, a.Findings)
	}
	only, err := openTrial().Only([]string{"A6"})
	if err != nil {
		t.Fatal(err)
	}
	rep = judged(t, only, world{rate: 93e6})
	if a := rep.Acceptance; looked(rep) != 0 || *a.Parallel != 8 || !strings.Contains(a.Findings[0], "no item of several streams") {
		t.Errorf("A6 alone: %d looks, %v, %q", looked(rep), *a.Parallel, a.Findings)
	}
	if rep = judged(t, openTrial(), world{rate: 93e6}); looked(rep) != 2*5*method.LeastRounds {
		t.Errorf("%d looks", looked(rep))
	}
}

// What is announced holds the look for the knee; every step that is made has a valid plan and a name of
// its own within its round.
func TestAnnounced(t *testing.T) {
	m := theMethod(suite.Default(suite.Metro, units.GbitPerSec))
	text, volume := "", int64(0)
	for _, s := range m.Possible() {
		text += s.Title + "\n"
		volume += s.Volume
	}
	for _, want := range []string{"A0 the path's packet size, both ways\n", "A2 for the knee: 1 to 16 streams up\n", "A2 for the knee: 1 to 16 streams down\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not announced:\n%s", want, text)
		}
	}
	if volume != m.Volume() || volume < 95e9 || volume > 105e9 {
		t.Errorf("%d bytes, %d", volume, m.Volume())
	}
	given := m
	given.Suite.Items = append([]suite.Item{}, m.Suite.Items...)
	given.Suite.Override(8, 0, "")
	long, _ := m.Length()
	short, most := given.Length()
	if long-short < 2*time.Minute || long-short > 3*time.Minute || most != short {
		t.Errorf("%v with the look for the knee, %v without (at most %v)", long, short, most)
	}

	w := world{rate: 93e6, plant: curve(map[int]float64{1: 1, 2: 2, 4: 4, 8: 8, 16: 16, 32: 32, 64: 64}, 0.1)}
	m = theMethod(openTrial())
	var history []method.Done
	seen := map[string]bool{}
	for range 200 {
		s, more := m.Next(history)
		if !more {
			break
		}
		p := s.Plan
		p.Host = "h"
		if err := p.Validate(); err != nil {
			t.Errorf("%s: %v", s.Name, err)
		}
		if key := fmt.Sprint(s.Name, " ", s.Round); seen[key] {
			t.Errorf("%s comes twice", key)
		} else {
			seen[key] = true
		}
		history = append(history, method.Done{Step: s, Run: w.run(s)})
	}
	if n := len(history); n != 3+2*7*3+6+6+3+2+2+2 {
		t.Errorf("%d steps", n)
	}
}

// The look for the knee goes on after a break where it ended.
func TestKneeResumed(t *testing.T) {
	s := openTrial()
	w := world{rate: 93e6, plant: curve(map[int]float64{1: 20e6, 2: 40e6, 4: 78e6, 8: 79e6, 16: 79e6}, 0.1)}
	m := theMethod(s)
	var whole []string
	var history []method.Done
	for len(history) < 200 {
		step, more := m.Next(history)
		if !more {
			break
		}
		whole = append(whole, fmt.Sprint(step.Name, " ", step.Round))
		history = append(history, method.Done{Step: step, Run: w.run(step)})
	}
	for _, at := range []int{1, 2, 10, 40, 50} {
		rep := &result.Report{}
		for i := range history[:at] {
			d := &history[i]
			n := i
			rep.Runs = append(rep.Runs, d.Run)
			rep.Stages = append(rep.Stages, result.Stage{Name: d.Step.Name, Round: d.Step.Round, Run: &n})
		}
		again := theMethod(s)
		again.Earlier = suite.Kept(suite.History(rep))
		var rest []method.Done
		for i := at; i < len(whole); i++ {
			step, more := again.Next(rest)
			if got := fmt.Sprint(step.Name, " ", step.Round); !more || got != whole[i] {
				t.Fatalf("after a break behind %d steps: %q, want %q", at, got, whole[i])
			}
			rest = append(rest, method.Done{Step: step, Run: w.run(step)})
		}
		if _, more := again.Next(rest); more {
			t.Errorf("after a break behind %d steps there is more than without one", at)
		}
	}
}

// jumpy makes up rounds: the throughput of the step with that name.
func jumpy(rates map[string]float64) func(string, result.Direction, *result.Run) {
	return func(name string, d result.Direction, run *result.Run) {
		v, ok := rates[name]
		for i := range run.Sums {
			if ok && run.Sums[i].Direction == d {
				run.Sums[i].Goodput, run.Sums[i].Peak = &v, &v
			}
		}
	}
}

// Rounds go on until the throughput settles, item by item; what does not settle is said.
func TestAutoRounds(t *testing.T) {
	s := trial()
	s.Override(4, 0, "")
	s.SetRounds(0, true)
	rates := map[string]float64{}
	for r, v := range []float64{93, 90, 92, 92.1, 92.2, 92.3, 92.2, 92.1, 92.2, 92.1} { // settles with the sixth
		rates[fmt.Sprintf("A1-up-%d", r+1)] = v * 1e6
	}
	for r, v := range []float64{93, 60, 93, 62, 92, 61, 93, 60, 92, 95} { // never; its median lies about the limit
		rates[fmt.Sprintf("A2-down-%d", r+1)] = v * 1e6
	}
	for r, v := range []float64{50, 60, 42, 51, 61, 40, 52, 60, 41, 55} { // never; all of it below the limit
		rates[fmt.Sprintf("A2-up-%d", r+1)] = v * 1e6
	}
	rep := judged(t, s, world{rate: 93e6, plant: jumpy(rates)})
	for id, want := range map[string]struct {
		rounds       int
		result, says string
	}{
		"A1-up":   {6, result.Pass, "median of 6"},
		"A1-down": {3, result.Pass, "median of 3"},
		"A2-up":   {10, result.Fail, "after 10 rounds it had not settled"},
		"A2-down": {10, result.Inconclusive, "the limit lies within what its median may be"},
		"A3-up":   {3, result.Pass, ""},
	} {
		i := find(t, rep, id)
		if n := len(i.Criteria[0].Rounds); n != want.rounds || i.Criteria[0].Result != want.result || !strings.Contains(i.Criteria[0].Reason, want.says) {
			t.Errorf("%s: %d rounds, %s, %q", id, n, i.Criteria[0].Result, i.Criteria[0].Reason)
		}
		if restless := want.rounds == method.MostRounds; restless != strings.Contains(strings.Join(i.Flags, " "), "unsteady") {
			t.Errorf("%s: flags %v", id, i.Flags)
		}
	}
	if a := rep.Acceptance; !a.Adaptive || a.Rounds != method.MostRounds {
		t.Errorf("%+v", a)
	}
	if least, most := theMethod(s).Length(); most < 2*least {
		t.Errorf("%v to %v", least, most)
	}
}

// An acceptance that ended before the rounds of an item settled decides nothing of it.
func TestAutoRoundsCutOff(t *testing.T) {
	s, err := trial().Only([]string{"A1"})
	if err != nil {
		t.Fatal(err)
	}
	s.SetRounds(0, true)
	m := theMethod(s)
	w := world{rate: 93e6, plant: jumpy(map[string]float64{"A1-up-1": 93e6, "A1-up-2": 89e6, "A1-up-3": 93e6, "A1-up-4": 88e6})}
	var history []method.Done
	for !strings.HasPrefix(last(history), "A1-up-4") {
		step, more := m.Next(history)
		if !more || len(history) > 50 {
			t.Fatalf("it ended behind %q", last(history))
		}
		history = append(history, method.Done{Step: step, Run: w.run(step)})
	}
	rep := &result.Report{}
	for i := range history {
		rep.Runs = append(rep.Runs, history[i].Run)
	}
	(&suite.Judge{Method: m}).Fill(rep, history)
	if i := find(t, rep, "A1-up"); i.Result != result.Inconclusive || !strings.Contains(strings.Join(i.Reasons, " "), "ended before its rounds had settled") {
		t.Errorf("%s %q", i.Result, i.Reasons)
	}
}

func last(history []method.Done) string {
	if len(history) == 0 {
		return ""
	}
	return history[len(history)-1].Step.Name
}

// A run that a bound ended before its time decides nothing, and it is said which bound.
func TestCutItem(t *testing.T) {
	for says, plant := range map[string]func(*result.Run){
		"the budget (--max-bytes) ended it before its time": func(run *result.Run) { run.Test.MaxBytes = 1e6 },
		"the server ended it after 2 s":                     func(run *result.Run) { run.Test.ServerLimit = &result.Limit{MaxDuration: 2} },
	} {
		s := trial()
		s.Override(4, 0, "")
		rep := judged(t, s, world{rate: 93e6, plant: func(name string, _ result.Direction, run *result.Run) {
			if name == "A1-up-2" {
				run.Sums[0].Sender.End, run.Sums[0].Receiver.End = 1, 1
				plant(run)
			}
		}})
		if i := find(t, rep, "A1-up"); i.Result != result.Inconclusive || !strings.Contains(strings.Join(i.Reasons, "\n"), strings.ToUpper(says[:1])+says[1:]) {
			t.Errorf("%s: %s %q", says, i.Result, i.Reasons)
		}
		if i := find(t, rep, "A1-down"); i.Result != result.Pass {
			t.Errorf("%s: A1-down is %s %q", says, i.Result, i.Reasons)
		}
	}
}

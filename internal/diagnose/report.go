package diagnose

import (
	"fmt"

	"github.com/fullbore-net/fullbore/internal/conclude"
	"github.com/fullbore-net/fullbore/internal/method"
	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/result"
)

// Fill puts stages, runs, verdicts, the sentence and what could not be seen into a report.
func Fill(rep *result.Report, history []method.Done, facts *result.Facts) {
	rep.Kind, rep.Facts = "diagnose", facts
	rep.Runs, rep.Stages = []*result.Run{}, nil
	for _, d := range history {
		s := result.Stage{Name: d.Step.Name, Title: d.Step.Title, Why: d.Step.Why, Pause: d.Step.Pause.Seconds(), Err: d.Err}
		if d.Run != nil {
			at := len(rep.Runs)
			s.Run = &at
			rep.Runs = append(rep.Runs, d.Run)
		}
		rep.Stages = append(rep.Stages, s)
	}
	rep.Verdicts = Judge(history, facts)
	if rep.Verdicts == nil {
		rep.Verdicts = []result.Verdict{}
	}
	rep.Unseen = append(Unseen(history, facts), undecided(NewCase(history, facts), rep.Verdicts)...)
	rep.Summary = Summary(rep.Verdicts)
	if rep.Err == nil {
		rep.Err = Ended(history)
	}
	if rep.Err != nil && !Conclusive(rep.Verdicts) {
		rep.Summary = "Nothing was measured: " + trimStop(rep.Err.Text) + "."
		if len(rep.Verdicts) > 0 {
			rep.Summary = "Broke off before a limit stood out: " + trimStop(rep.Err.Text) + "."
		}
	}
	trace(rep, history, facts)
}

// undecided says of which directions no limit was found though one was of the other: whoever reads
// of one alone would take it for both.
func undecided(c *Case, vs []result.Verdict) (out []string) {
	found := map[string]bool{}
	for _, v := range vs {
		if !v.Note && v.Code != Inconclusive {
			found[v.Direction] = true
		}
	}
	if len(found) == 0 || found["both"] || found[""] {
		return nil
	}
	for _, l := range c.legs() {
		if one := l.one(); one != nil && one.usable() && !found[string(l.dir)] {
			out = append(out, fmt.Sprintf("what limits the way %s (1 stream: %s): nothing stood out; fullbore diagnose %s --%s looks at it alone", l.dir, rate(one.rate), c.target(), l.dir))
		}
	}
	return out
}

// Ended is why a diagnosis could not go on: an error of its last stage after which none would
// fare better. nil = it came to its end.
func Ended(history []method.Done) *result.Error {
	if len(history) == 0 {
		return nil
	}
	e := history[len(history)-1].Err
	if !ends(e) {
		return nil
	}
	for _, d := range history[:len(history)-1] {
		if e.Code == "connect" && d.Run != nil && len(d.Run.Streams) > 0 {
			gone := *e
			gone.Text = "the server went away in the middle of the diagnosis: it serves one test only (-1; of ntttcp: without -H), or it ended"
			return &gone
		}
	}
	return e
}

// History is that of a stored report, to be judged again.
func History(rep *result.Report) (out []method.Done) {
	for _, s := range rep.Stages {
		d := method.Done{Step: method.Step{Name: s.Name, Title: s.Title, Why: s.Why}, Err: s.Err}
		d.Step.Pause = seconds(s.Pause)
		if s.Run != nil && *s.Run >= 0 && *s.Run < len(rep.Runs) {
			d.Run = rep.Runs[*s.Run]
			d.Step.Plan.Streams = d.Run.Test.Streams
			d.Step.Plan.Window = int64(d.Run.Test.Window)
		}
		out = append(out, d)
	}
	return out
}

// Summary is the sentence of a diagnosis: its first verdict's, with how sure it is.
func Summary(vs []result.Verdict) string {
	if len(vs) == 0 {
		return "Nothing was measured."
	}
	v := vs[0]
	text := v.Summary
	if v.Code != Inconclusive {
		text = fmt.Sprintf("%s (%s)", trimStop(text), v.Certainty) + "."
	}
	return text
}

func trimStop(s string) string {
	if n := len(s); n > 0 && s[n-1] == '.' {
		return s[:n-1]
	}
	return s
}

// Conclusive reports a verdict that is proven or likely and says something (design §3).
func Conclusive(vs []result.Verdict) bool {
	for _, v := range vs {
		if !v.Note && v.Code != Inconclusive && v.Certainty != Possible {
			return true
		}
	}
	return false
}

// Unseen says what could not be seen, one sentence each.
func Unseen(history []method.Done, facts *result.Facts) (out []string) {
	c := NewCase(history, facts)
	run := c.first()
	if run == nil {
		return []string{"anything: no test could be made"}
	}
	server := c.host(result.Server)
	switch {
	case run.Protocol == plan.ProtocolNTTTCP && !c.extended():
		out = append(out,
			fmt.Sprintf("the way from %s to here: an NTTTCP receiver only receives (start one here and its sender there: fullbore ntttcp)", server),
			fmt.Sprintf("what the program on %s counted, its processor and its interface: what its system acknowledged stands for what arrived; fullbore serve there would tell", server),
			"loss of UDP, and delay under load in each direction: nothing answers probes there")
	case !c.extended() && run.Wire != nil && run.Wire.TestStarted:
		out = append(out,
			fmt.Sprintf("the counters of %s: it is no fullbore, so its processor, its interface and (downwards) its TCP's state are not known; fullbore serve there would tell", server),
			"delay under load in each direction: nothing answers probes there")
	}
	if c.extended() && !c.loopback() && run.Hosts.Server != nil && run.Hosts.Server.NIC == nil {
		out = append(out, fmt.Sprintf("the interface and settings of %s: it tells strangers little (serve --facts full, or a login)", server))
	}
	if c.Idle.rtt == 0 {
		out = append(out, "the round trip of the empty path")
	}
	for _, l := range c.legs() {
		if one := l.one(); one != nil && one.usable() && one.shares == nil {
			out = append(out, fmt.Sprintf("what the sender waited for, %s: its kernel's counters are not told", l.dir))
		}
	}
	if l := conclude.LinkSpeed(run); l == 0 && !c.loopback() {
		out = append(out, "the speed of the slowest link between: the interfaces do not tell theirs, so the most that was reached stands for it")
	}
	return out
}

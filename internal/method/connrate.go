package method

import (
	"fmt"
	"math"
	"strings"

	"github.com/fullbore-net/fullbore/result"
)

// ConnRate steps up the number of connections opened a second until new ones fail, then closes in
// on where that begins.
type ConnRate struct {
	From, Most float64 // connections a second
	Refine     int     // steps between the last good and the first bad rate
}

// connKept is the share of the asked rate that must come about for a step to be good.
const connKept = 0.9

// Good reports that a step went well: nothing failed, and it kept its rate.
func (c ConnRate) Good(s *result.ConnRateStep) bool {
	return len(s.Failed) == 0 && s.Opened > 0 && s.Rate >= connKept*s.Asked
}

// bracket is the largest good rate below the least bad one; 0 and +Inf = there is none.
func (c ConnRate) bracket(steps []result.ConnRateStep) (good, bad float64) {
	bad = math.Inf(1)
	for i := range steps {
		if !c.Good(&steps[i]) {
			bad = min(bad, steps[i].Asked)
		}
	}
	for i := range steps {
		if c.Good(&steps[i]) && steps[i].Asked < bad {
			good = max(good, steps[i].Asked)
		}
	}
	return good, bad
}

// Next is the rate of the next step; false when there is nothing more to try.
func (c ConnRate) Next(steps []result.ConnRateStep) (rate float64, more bool) {
	good, bad := c.bracket(steps)
	switch {
	case len(steps) == 0:
		return min(c.From, c.Most), true
	case math.IsInf(bad, 1):
		if good >= c.Most {
			return 0, false
		}
		return min(2*good, c.Most), true
	case good == 0: // not even the first: no rate is low enough to look for
		return 0, false
	}
	between := 0
	seenBad := false
	for i := range steps {
		if seenBad {
			between++
		}
		seenBad = seenBad || !c.Good(&steps[i])
	}
	if between >= c.Refine || bad/good < 1.1 {
		return 0, false
	}
	return math.Round((good + bad) / 2), true
}

// Answer says how many were reached and what new ones fail by. The words of a fault are those of
// package connrate.
func (c ConnRate) Answer(steps []result.ConnRateStep) (out result.ConnRate) {
	out.Steps = steps
	if out.Steps == nil {
		out.Steps = []result.ConnRateStep{}
	}
	good, bad := c.bracket(steps)
	for i := range steps {
		s := &steps[i]
		if s.Asked == good && c.Good(s) {
			rate := s.Rate
			out.Reached = &rate
		}
	}
	if math.IsInf(bad, 1) {
		return out
	}
	for i := range steps {
		if s := &steps[i]; s.Asked == bad && !c.Good(s) {
			c.blame(&out, s)
			return out
		}
	}
	return out
}

// blame names what the first bad rate failed by.
func (c ConnRate) blame(out *result.ConnRate, s *result.ConnRateStep) {
	if len(s.Failed) == 0 {
		out.Limit = "slow"
		out.Why = fmt.Sprintf("%.0f a second were asked for and %.0f came about, none failed: this host or the other one could not go faster", s.Asked, s.Rate)
		if s.Connect != nil {
			out.Why += fmt.Sprintf("; connecting took %.3g ms typically, %.3g ms at p99", 1000*s.Connect.P50, 1000*s.Connect.P99)
		}
		if s.SYNAgain != nil && *s.SYNAgain > 0 {
			out.Why += fmt.Sprintf("; %d SYNs had to be sent again, so some were dropped on the way or by a full queue of the listener", *s.SYNAgain)
		}
		return
	}
	f := s.Failed[0]
	for _, g := range s.Failed {
		if g.Count > f.Count {
			f = g
		}
	}
	out.Limit = f.Code
	words := map[string]struct {
		where result.End
		why   string
	}{
		"refused":     {result.Server, "the other end refused them: nobody listens there, a filter rejects them, or its queue of new connections overflows and it is set to abort (tcp_abort_on_overflow)"},
		"reset":       {result.Server, "the other end took them and let them fall: its program or a device before it has reached a limit (an iperf3 takes one test at a time)"},
		"no-answer":   {"", "their SYNs had no answer: dropped on the way (a filter, a full connection table of a firewall), or by the listener's full queue (somaxconn, tcp_max_syn_backlog)"},
		"local-ports": {result.Client, "this host has no local port left: each closed connection keeps its port for a minute (net.ipv4.ip_local_port_range, tcp_tw_reuse; --abort leaves none waiting). Applications are to keep connections open"},
		"local-files": {result.Client, "this program may open no more files (ulimit -n)"},
		"busy":        {result.Server, "the server answered that it takes no more tests at one time (fullbore serve --max-tests; an iperf3 takes one)"},
		"silent":      {result.Server, "they were opened, but the program there did not answer in time: an iperf3 takes one after the other"},
	}
	w := words[f.Code]
	out.Where = w.where
	out.Why = fmt.Sprintf("at %.0f a second %d of %d failed: ", s.Asked, f.Count, s.Tried)
	if w.why == "" {
		w.why = strings.TrimSpace(f.Text)
	}
	out.Why += w.why
	if s.SYNAgain != nil && *s.SYNAgain > 0 && f.Code == "no-answer" {
		out.Why += fmt.Sprintf("; %d SYNs were sent again", *s.SYNAgain)
	}
}

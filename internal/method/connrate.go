package method

import (
	"fmt"
	"math"
	"strings"

	"github.com/fullbore-net/fullbore/result"
)

// ConnRate steps up the number of connections opened a second until new ones fail, then closes in
// on where that begins. A step that this host was too busy to make as it should shows nothing of
// the other end, and is made again.
type ConnRate struct {
	From, Most float64 // connections a second
	Refine     int     // steps between the last good and the first bad rate
}

const (
	// connKept is the share of the asked rate that must come about for a step to be good.
	connKept = 0.9
	// connTries is how often a rate is tried that this host does not keep, before that is its limit.
	connTries = 3
)

// Limits that are not faults of connections.
const (
	ConnSlow = "slow"      // they come about, but so slowly that no more could be begun
	ConnCPU  = "local-cpu" // this host did not begin so many
)

// Good reports that a step went well: nothing failed, and it kept its rate.
func (c ConnRate) Good(s *result.ConnRateStep) bool {
	return len(s.Failed) == 0 && s.Opened > 0 && s.Rate >= connKept*s.Asked
}

// Starved reports that this host, not what it connects to, kept a step below its rate: fewer
// connections were begun than should have been, none failed, and none had to wait for others.
func (c ConnRate) Starved(s *result.ConnRateStep) bool {
	return len(s.Failed) == 0 && s.Seconds > 0 && float64(s.Tried) < connKept*s.Asked*s.Seconds && s.Held < (1-connKept)*s.Seconds
}

// starved is how many steps of a rate this host did not keep.
func (c ConnRate) starved(steps []result.ConnRateStep, rate float64) (n int) {
	for i := range steps {
		if steps[i].Asked == rate && c.Starved(&steps[i]) {
			n++
		}
	}
	return n
}

// shows is what a step says of its rate: good or bad; neither where this host was only late for it.
func (c ConnRate) shows(steps []result.ConnRateStep, s *result.ConnRateStep) (good, bad bool) {
	switch {
	case c.Good(s):
		return true, false
	case !c.Starved(s):
		return false, true
	case c.starved(steps, s.Asked) < connTries:
		return false, false
	}
	for i := range steps {
		if steps[i].Asked == s.Asked && c.Good(&steps[i]) {
			return false, false
		}
	}
	return false, true
}

// bracket is the largest good rate below the least bad one; 0 and +Inf = there is none.
func (c ConnRate) bracket(steps []result.ConnRateStep) (good, bad float64) {
	bad = math.Inf(1)
	for i := range steps {
		if _, no := c.shows(steps, &steps[i]); no {
			bad = min(bad, steps[i].Asked)
		}
	}
	for i := range steps {
		if yes, _ := c.shows(steps, &steps[i]); yes && steps[i].Asked < bad {
			good = max(good, steps[i].Asked)
		}
	}
	return good, bad
}

// Next is the rate of the next step; false when there is nothing more to try.
func (c ConnRate) Next(steps []result.ConnRateStep) (rate float64, more bool) {
	if len(steps) == 0 {
		return min(c.From, c.Most), true
	}
	if last := &steps[len(steps)-1]; !c.Good(last) && c.Starved(last) && c.starved(steps, last.Asked) < connTries {
		return last.Asked, true
	}
	good, bad := c.bracket(steps)
	switch {
	case math.IsInf(bad, 1):
		if good >= c.Most {
			return 0, false
		}
		return min(2*good, c.Most), true
	case good == 0: // not even the first: no rate is low enough to look for
		return 0, false
	case c.starved(steps, bad) >= connTries: // the steps themselves say how many this host begins
		return 0, false
	}
	between, seenBad := 0, false
	for i := range steps {
		yes, no := c.shows(steps, &steps[i])
		if seenBad && (yes || no) {
			between++
		}
		seenBad = seenBad || no
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
	_, bad := c.bracket(steps)
	for i := range steps {
		s := &steps[i]
		if kept := c.Good(s) && s.Asked < bad; !kept && !(c.Starved(s) && s.Opened > 0 && s.Asked <= bad) {
			continue
		}
		if rate := min(s.Rate, s.Asked); out.Reached == nil || rate > *out.Reached {
			out.Reached = &rate
		}
	}
	if math.IsInf(bad, 1) {
		return out
	}
	for i := range steps {
		s := &steps[i]
		if _, no := c.shows(steps, s); no && s.Asked == bad {
			c.blame(&out, s)
			return out
		}
	}
	return out
}

// connFault is what a kind of failure means, and at which end it is.
type connFault struct {
	where result.End
	why   string
}

// connFaults are those that are known.
func connFaults() map[string]connFault {
	return map[string]connFault{
		"refused":     {result.Server, "the other end refused them: nobody listens there, a filter rejects them, or its queue of new connections overflows and it is set to abort (tcp_abort_on_overflow)"},
		"reset":       {result.Server, "the other end took them and let them fall: its program or a device before it has reached a limit (an iperf3 takes one test at a time)"},
		"no-answer":   {"", "their SYNs had no answer: dropped on the way (a filter, a full connection table of a firewall), or by the listener's full queue (somaxconn, tcp_max_syn_backlog)"},
		"local-ports": {result.Client, "this host has no local port left: each closed connection keeps its port for a minute (net.ipv4.ip_local_port_range, tcp_tw_reuse; --abort leaves none waiting). Applications are to keep connections open"},
		"local-files": {result.Client, "this program may open no more files (ulimit -n)"},
		"busy":        {result.Server, "the server answered that it takes no more tests at one time (fullbore serve --max-tests; an iperf3 takes one)"},
		"silent":      {result.Server, "they were opened, but the program there did not answer in time: an iperf3 takes one after the other"},
	}
}

// blame names what the first bad rate failed by.
func (c ConnRate) blame(out *result.ConnRate, s *result.ConnRateStep) {
	if len(s.Failed) == 0 {
		c.blameRate(out, s)
		return
	}
	f := s.Failed[0]
	for _, g := range s.Failed {
		if g.Count > f.Count {
			f = g
		}
	}
	out.Limit = f.Code
	w := connFaults()[f.Code]
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

// blameRate names why a rate did not come about although none failed.
func (c ConnRate) blameRate(out *result.ConnRate, s *result.ConnRateStep) {
	if c.Starved(s) {
		out.Limit, out.Where = ConnCPU, result.Client
		begun := 0.0
		for i := range out.Steps {
			if t := &out.Steps[i]; t.Asked == s.Asked && t.Seconds > 0 {
				begun = max(begun, float64(t.Tried)/t.Seconds)
			}
		}
		out.Why = fmt.Sprintf("%.0f a second were asked for and this host began %.0f at most, in %d tries; none failed, and none had to wait for an answer: its processors were busy, with this program or with others. Nothing is said about the other end", s.Asked, begun, c.starved(out.Steps, s.Asked))
		return
	}
	out.Limit = ConnSlow
	out.Why = fmt.Sprintf("%.0f a second were asked for and %.0f came about, none failed", s.Asked, s.Rate)
	if s.Held > 0 {
		out.Why += fmt.Sprintf("; for %.2g s no more were begun, since thousands waited for their answers at the same time: the other end, or the way to it, is slow", s.Held)
	}
	if s.Connect != nil {
		out.Why += fmt.Sprintf("; connecting took %.3g ms typically, %.3g ms at p99", 1000*s.Connect.P50, 1000*s.Connect.P99)
	}
	if s.SYNAgain != nil && *s.SYNAgain > 0 {
		out.Why += fmt.Sprintf("; %d SYNs had to be sent again, so some were dropped on the way or by a full queue of the listener", *s.SYNAgain)
	}
}

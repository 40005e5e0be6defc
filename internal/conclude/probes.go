package conclude

import (
	"fmt"
	"strings"

	"github.com/fullbore-net/fullbore/result"
)

// FlagClock says that one-way delays are not right: the clocks have no common bound.
const FlagClock = "clock_unsynced"

// madeForProbes reports that a run has no load, or one that only stands in for probes
// that the other end does not answer, and got as far as to tell something.
func madeForProbes(run *result.Run) bool { return run.Test.ProbeOnly && len(run.Probes) > 0 }

// probesSentence is the closing sentence of a run that was made for its probes, "" for
// others.
func probesSentence(run *result.Run) string {
	if !madeForProbes(run) {
		return ""
	}
	var parts []string
	for i := range run.Probes {
		if text := probeClause(run, &run.Probes[i]); text != "" {
			parts = append(parts, text)
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return probesPrologue(run) + EndName(run, result.Server) + ": " + strings.Join(parts, "; ") + "."
}

// probesPrologue says first that the run did not end as planned.
func probesPrologue(run *result.Run) string {
	switch {
	case run.Err == nil:
		return ""
	case run.Err.Interrupted && !run.Err.Remote:
		return "Interrupted: "
	}
	return "Broke off (" + strings.TrimSuffix(run.Err.Text, ".") + "): "
}

// probeClause is what one kind of probes says.
func probeClause(run *result.Run, p *result.Probes) string {
	switch p.Kind {
	case "udp-echo":
		return echoClause(p)
	case "udp-test":
		return plainWay(run, p)
	case "udp-mtu":
		return mtuClause(p)
	case "tcp-rr":
		return tripsClause(p)
	case "tcp-connect":
		if p.Connect == nil {
			return ""
		}
		text := fmt.Sprintf("connecting takes %s (p50 of %d, p95 %s)", Time(p.Connect.P50), p.Connect.N, Time(p.Connect.P95))
		if len(run.Streams) > 0 {
			text += "; the time of a request and its answer is not known: the other end answers none (fullbore serve there would)"
		}
		return text
	}
	return ""
}

func echoClause(p *result.Probes) string {
	if p.RoundTrip == nil {
		if p.Sent == 0 {
			return "no probe was sent"
		}
		return fmt.Sprintf("none of %s probes was answered%s", grouped(p.Sent), lossWays(p))
	}
	text := fmt.Sprintf("round trip %s (p50; p99 %s) of %s probes %s%s", Time(p.RoundTrip.P50), Time(p.RoundTrip.P99), grouped(p.Answered), spaced(p), lossWays(p))
	if p.Up != nil && p.Down != nil && p.Up.Jitter != nil && p.Down.Jitter != nil {
		text += fmt.Sprintf("; jitter %s up, %s down", Time(p.Up.Jitter.Mean), Time(p.Down.Jitter.Mean))
	}
	if one := oneWayClause(p); one != "" {
		text += "; " + one
	}
	return text
}

// spaced says how probes follow each other.
func spaced(p *result.Probes) string {
	text := "each " + seconds(p.Spacing)
	if p.Profile == "voice" {
		text += " (voice)"
	}
	return text
}

// oneWayClause tells the delay of each direction with its bound. A delay of which the
// bound is the larger part is none to put into a sentence.
func oneWayClause(p *result.Probes) string {
	if p.Up == nil || p.Down == nil || p.Up.Delay == nil || p.Down.Delay == nil || p.Clock == nil {
		return ""
	}
	if p.Clock.Source == "same-host" {
		return fmt.Sprintf("one way %s up, %s down (both ends on one clock)", Time(p.Up.Delay.P50), Time(p.Down.Delay.P50))
	}
	return fmt.Sprintf("one way %s up, %s down (± %s)", Time(p.Up.Delay.P50), Time(p.Down.Delay.P50), Time(p.Clock.BoundS))
}

// lossWays says what was lost where.
func lossWays(p *result.Probes) string {
	if p.LostUp == nil || p.LostDown == nil {
		if lost := p.Sent - p.Answered; lost > 0 {
			return fmt.Sprintf(", %s of %s lost (on which way is not known)", grouped(lost), grouped(p.Sent))
		}
		return ", none lost"
	}
	if *p.LostUp == 0 && *p.LostDown == 0 {
		if p.Answered < p.Sent {
			return ""
		}
		return ", none lost"
	}
	return fmt.Sprintf(", of %s sent %s lost up and %s down", grouped(p.Sent), grouped(*p.LostUp), grouped(*p.LostDown))
}

func tripsClause(p *result.Probes) string {
	if p.RoundTrip == nil {
		return "no request was answered"
	}
	text := fmt.Sprintf("request and response %s (p50; p99 %s) with %s", Time(p.RoundTrip.P50), Time(p.RoundTrip.P99), Bytes(p.Size))
	if p.Rate != nil {
		text += fmt.Sprintf(", %s a second", grouped(int64(*p.Rate+0.5)))
	}
	return text
}

// Bytes spells a small size.
func Bytes(n int) string {
	if n == 1 {
		return "1 byte"
	}
	return fmt.Sprintf("%d bytes", n)
}

// Time spells a short time with three digits: 23.4 µs, 1.23 ms, 2.5 s.
func Time(s float64) string {
	a := s
	if a < 0 {
		a = -a
	}
	switch {
	case s == 0:
		return "0 µs"
	case a < 999.5e-6:
		return three(s*1e6) + " µs"
	case a < 0.9995:
		return three(s*1e3) + " ms"
	}
	return three(s) + " s"
}

func three(v float64) string {
	a := v
	if a < 0 {
		a = -a
	}
	switch {
	case a >= 99.95:
		return fmt.Sprintf("%.0f", v)
	case a >= 9.995:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}

// probeFlags sets the validity flags that follow from probes.
func (c *conclusion) probeFlags() {
	for _, p := range c.run.Probes {
		if p.Clock == nil {
			continue
		}
		negative := false
		for _, w := range []*result.OneWay{p.Up, p.Down} {
			negative = negative || w != nil && w.Delay != nil && w.Delay.Min < 0
		}
		if !p.Clock.Causal || negative {
			c.flag(FlagClock)
		}
	}
}

// probesNext is what to type after probes.
func (c *conclusion) probesNext() *result.Step {
	run := c.run
	host := quote(run.Test.Target)
	if run.Test.Own {
		host = "self"
	} else if run.Test.Port != 0 && run.Test.Port != defaultPort {
		host += fmt.Sprintf(" -p %d", run.Test.Port)
	}
	for _, p := range run.Probes {
		switch {
		case len(run.Streams) > 0:
			return &result.Step{Command: "fullbore serve", Why: "on " + EndName(run, result.Server) + ": it answers probes, which tell round trips and one-way delay"}
		case p.Kind == "udp-echo" && p.RoundTrip == nil:
			return &result.Step{Command: "fullbore delay " + host + " --tcp", Why: "datagrams do not come back, a firewall may drop them: the same over TCP"}
		case p.Kind == "udp-echo" && p.Spacing > 0.001:
			return &result.Step{Command: "fullbore delay " + host + " --profile 1ms", Why: "twenty times as many probes: what is rare shows"}
		}
	}
	return &result.Step{Command: "fullbore test " + host, Why: "how the round trip grows when the path is full"}
}

// TogetherProbes is the one sentence over two plain tests, up and down, that took the
// place of probes: what they tell, and what nobody knows. It is "" for one run.
func TogetherProbes(runs []*result.Run) string {
	if len(runs) < 2 {
		return ""
	}
	var parts []string
	var rtt *float64
	name := ""
	for _, run := range runs {
		name = EndName(run, result.Server)
		for i := range run.Probes {
			p := &run.Probes[i]
			if p.TCPMinRTT != nil && (rtt == nil || *p.TCPMinRTT < *rtt) {
				rtt = p.TCPMinRTT
			}
			if text := plainWay(run, p); text != "" {
				parts = append(parts, text)
			}
		}
		if run.Err != nil {
			parts = append(parts, strings.TrimSuffix(run.Err.Text, "."))
		}
	}
	if rtt != nil {
		parts = append(parts, fmt.Sprintf("round trip %s (least that TCP saw on the control connection)", Time(*rtt)))
	}
	if len(parts) == 0 {
		return "Nothing was measured."
	}
	return name + ": " + strings.Join(parts, "; ") +
		"; one-way delay, and the round trip of datagrams, are not known: the other end does not answer probes (fullbore serve there would)."
}

// plainWay is one direction of it.
func plainWay(run *result.Run, p *result.Probes) string {
	if p.Kind != "udp-test" || len(run.Sums) == 0 {
		return ""
	}
	s := run.Sums[0]
	text := "up"
	lost, way := p.LostUp, p.Up
	if s.Direction == result.Down {
		text, lost, way = "down", p.LostDown, p.Down
	}
	switch {
	case way != nil && way.Jitter != nil:
		text += " jitter " + Time(way.Jitter.Mean)
	case s.Receiver != nil && s.Receiver.Jitter != nil:
		text += " jitter " + Time(*s.Receiver.Jitter) + " (by its count)"
	default:
		text += " jitter not known"
	}
	if way != nil && way.PDV != nil {
		text += ", variation p99 " + Time(way.PDV.P99)
	}
	if lost != nil {
		text += fmt.Sprintf(", %s of %s lost", grouped(*lost), grouped(p.Sent))
	}
	return text
}

package diagnose

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fullbore-net/fullbore/internal/conclude"
	"github.com/fullbore-net/fullbore/internal/method"
	"github.com/fullbore-net/fullbore/result"
)

// trace writes into each stage of a report what it showed, which verdicts it brought up or
// made surer, and what it ruled out. The first is found by judging the history up to the
// stage and including it: the difference is what the stage taught, whatever rule saw it.
func trace(rep *result.Report, history []method.Done, facts *result.Facts) {
	final := standing(rep.Verdicts)
	before := map[finding]string{}
	for i := range rep.Stages {
		s := &rep.Stages[i]
		c := NewCase(history[:i+1], facts)
		s.Showed = c.showed(&history[i])
		after := standing(Judge(history[:i+1], facts))
		s.RuledIn, s.RuledOut = compared(before, after)
		for _, o := range c.excluded(&history[i]) {
			if !o.contradicts(final) {
				s.RuledOut = append(s.RuledOut, o.text)
			}
		}
		before = after
	}
}

// finding is a verdict without its figures.
type finding struct {
	code, direction string
	host            result.End
}

func (f finding) String() string {
	if f.direction == "" {
		return f.code
	}
	return f.code + ", " + f.direction
}

// standing lists what verdicts say and how surely, each direction by itself.
func standing(vs []result.Verdict) map[finding]string {
	out := map[finding]string{}
	for _, v := range vs {
		if v.Code == Inconclusive {
			continue
		}
		for _, d := range directionsOf(v) {
			out[finding{v.Code, d, v.Host}] = v.Certainty
		}
	}
	return out
}

func directionsOf(v result.Verdict) []string {
	if v.Direction == "both" && !v.Note {
		return []string{string(result.Up), string(result.Down)}
	}
	return []string{v.Direction}
}

func sureness(certainty string) int {
	return slices.Index([]string{"", Possible, Likely, Proven}, certainty)
}

// compared says what is new or surer, and what no longer stands, in a stable order.
func compared(before, after map[finding]string) (in, out []string) {
	for f, now := range after {
		switch was := before[f]; {
		case was == "":
			in = append(in, fmt.Sprintf("%s: %s", f, now))
		case sureness(now) > sureness(was):
			in = append(in, fmt.Sprintf("%s: %s (was %s)", f, now, was))
		case sureness(now) < sureness(was):
			out = append(out, fmt.Sprintf("%s: only %s now (was %s)", f, now, was))
		}
	}
	for f, was := range before {
		if after[f] == "" {
			out = append(out, fmt.Sprintf("%s: no longer (was %s)", f, was))
		}
	}
	slices.Sort(in)
	slices.Sort(out)
	return in, out
}

// exclusion is something that a stage shows not to be so, and the verdicts that it denies.
type exclusion struct {
	codes     []string
	direction string
	text      string
}

// contradicts reports that a verdict stands that says otherwise: the rules have looked at
// more than one stage, so they count.
func (o exclusion) contradicts(final map[finding]string) bool {
	for f := range final {
		if slices.Contains(o.codes, f.code) && (f.direction == o.direction || f.direction == "" || o.direction == "" || f.direction == "both") {
			return true
		}
	}
	return false
}

// little is the share below which waiting for something is no limit; idleWorker the load
// below which a worker has room.
const (
	little     = 0.05
	idleWorker = 0.7
)

// excluded are the limits that one stage shows not to hold.
func (c *Case) excluded(d *method.Done) (out []exclusion) {
	if strings.HasPrefix(d.Step.Name, "idle") {
		if i := &c.Idle; i.counted && i.lossUp == 0 && i.lossDn == 0 && i.sent >= 50 {
			out = append(out, exclusion{[]string{LossRandom, Outage}, "", fmt.Sprintf("loss without load: all of %d small packets came back", i.sent)})
		}
		return out
	}
	for _, l := range c.legs() {
		if f := l.named(d.Step.Name); f != nil && f.run != nil {
			out = append(out, c.excludedBy(l, f)...)
		}
	}
	return out
}

// named is the flow of a stage.
func (l *leg) named(stage string) *flow {
	for _, f := range []*flow{l.udp, l.frag} {
		if f != nil && f.name == stage {
			return f
		}
	}
	for i := range l.flows {
		if l.flows[i].name == stage {
			return &l.flows[i]
		}
	}
	return nil
}

func (c *Case) excludedBy(l *leg, f *flow) (out []exclusion) {
	dir := string(l.dir)
	not := func(text string, codes ...string) {
		out = append(out, exclusion{codes, dir, strings.Replace(text, ":", ", "+dir+":", 1)})
	}
	if f == l.udp {
		if u := conclude.LossOf(f.run, l.dir); u != nil && u.Lost == 0 && u.Sent >= 1000 {
			not(fmt.Sprintf("loss that is there at any rate: none of %s datagrams", conclude.Grouped(u.Sent)), LossRandom, LossBursty)
		}
		return out
	}
	if f == l.frag || !f.usable() || strings.HasPrefix(f.name, "both") {
		return out
	}
	one := l.one()
	if f == one {
		if s := f.shares; s != nil && s.Window < little {
			not(fmt.Sprintf("receive window: the sender waited for it %s of the time", percent(s.Window)), ReceiveWindow, Autotuning, ScalingLost)
		}
		if s := f.shares; s != nil && s.Buffer < little {
			not(fmt.Sprintf("send buffer: the sender waited for it %s of the time", percent(s.Buffer)), SendBuffer, Autotuning)
		}
		if v := f.load[0]; v >= 0 && v < idleWorker {
			not(fmt.Sprintf("sender's processor: its busiest worker was %s busy", percent(v)), SenderCPU)
		}
		if v := f.load[1]; v >= 0 && v < idleWorker {
			not(fmt.Sprintf("receiver's processor: its busiest worker was %s busy", percent(v)), ReceiverCPU)
		}
		if f.ratioKnown && f.retransmits == 0 && f.mss > 0 && f.rate*f.seconds()/8/f.mss >= 1000 {
			not("loss: nothing had to be sent again", LossRandom, LossBursty, ShallowBuffer, ControlUnfit)
		}
		return out
	}
	if one == nil || !one.usable() {
		return out
	}
	switch {
	case f.streams > 1 && slices.ContainsFunc(l.plain(), func(p *flow) bool { return p.name == f.name }) && f.rate < (1+same)*one.rate:
		not(fmt.Sprintf("limit of each single flow: %d streams carry %.2f times as much as one", f.streams, f.rate/one.rate), PerFlow)
	case strings.HasSuffix(f.name, "-half") && lossMatters(one) && l.lossesVanish(one):
		not("errors on the path: what was lost at the full rate is not lost at half of it", LossRandom)
	case strings.HasSuffix(f.name, "-copy") && f.rate > one.rate/(1+same):
		not("processor: it is as fast with more work for each byte", SenderCPU, ReceiverCPU)
	}
	return out
}

// showed says in a line what a stage saw.
func (c *Case) showed(d *method.Done) string {
	if d.Run == nil {
		if d.Err != nil {
			return "it could not begin: " + d.Err.Text
		}
		return "it could not begin"
	}
	var parts []string
	if strings.HasPrefix(d.Step.Name, "idle") {
		if i := &c.Idle; i.rtt > 0 {
			parts = append(parts, fmt.Sprintf("round trip %s (%s)", ms(i.rtt), i.source))
			if i.counted && i.sent > 0 {
				parts = append(parts, fmt.Sprintf("%d of %d small packets lost", i.lossUp+i.lossDn, i.sent))
			}
		}
	}
	for _, l := range c.legs() {
		if f := l.named(d.Step.Name); f != nil {
			parts = append(parts, c.flowShowed(f, d.Run.Test.Direction == "both"))
		} else if serves(d, l.dir) {
			parts = append(parts, rate(conclude.HeadlineOf(d.Run, l.dir).BPS))
		}
	}
	if d.Err != nil {
		parts = append(parts, "it broke off: "+d.Err.Text)
	}
	if len(parts) == 0 {
		return "nothing"
	}
	return strings.Join(parts, "; ")
}

func (c *Case) flowShowed(f *flow, both bool) string {
	text := rate(f.rate)
	if both {
		text = string(f.dir) + " " + text
	}
	if !f.arrived {
		text += " sent (what arrived is not known)"
	}
	if u := conclude.LossOf(f.run, f.dir); u != nil && f.run.Test.Transport == "udp" {
		return text + ", " + conclude.LossText(u)
	}
	if f.ratioKnown {
		text += fmt.Sprintf(", %s segments sent again (%s)", conclude.Grouped(f.retransmits), percent(f.ratio))
	}
	if s := f.shares; s != nil {
		var waited []string
		for _, w := range []struct {
			what  string
			share float64
		}{{"the receive window", s.Window}, {"its send buffer", s.Buffer}, {"the path", s.Network}, {"its program", s.Idle}} {
			if w.share >= 0.01 {
				waited = append(waited, w.what+" "+percent(w.share))
			}
		}
		if len(waited) > 0 {
			text += "; of the time the sender waited for " + strings.Join(waited, ", ")
		}
	}
	if typical, most, known := f.queue(c); known {
		text += fmt.Sprintf("; the queue added %s (worst %s)", ms(typical), ms(most))
	}
	return text
}

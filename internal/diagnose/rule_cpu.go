package diagnose

import (
	"fmt"

	"github.com/fullbore-net/fullbore/internal/conclude"
	"github.com/fullbore-net/fullbore/result"
)

// hotCore is the core of an end that was busiest, with what it did: shares of its time,
// means over the counted rows.
type hotCore struct {
	cpu                      int
	busy, user, system, soft float64
	known                    bool
}

func hottest(run *result.Run, e result.End) hotCore {
	sums := map[int]*hotCore{}
	time := 0.0
	for i := range run.Rows {
		r := &run.Rows[i]
		if r.End != e || r.Omitted || r.Host == nil || len(r.Host.Cores) == 0 {
			continue
		}
		t := r.Stop - r.Start
		time += t
		for _, k := range r.Host.Cores {
			s := sums[k.CPU]
			if s == nil {
				s = &hotCore{cpu: k.CPU, known: true}
				sums[k.CPU] = s
			}
			s.busy += t * (1 - k.Idle - k.IOWait)
			s.user += t * k.User
			s.system += t * k.System
			s.soft += t * (k.SoftIRQ + k.IRQ)
		}
	}
	var out hotCore
	for _, s := range sums {
		if !out.known || s.busy > out.busy || s.busy == out.busy && s.cpu < out.cpu {
			out = *s
		}
	}
	if time > 0 && out.known {
		out.busy, out.user, out.system, out.soft = out.busy/time, out.user/time, out.system/time, out.soft/time
	}
	return out
}

func (h hotCore) String() string {
	return fmt.Sprintf("core %d was %s busy (user %s, system %s, interrupts %s)", h.cpu, percent(h.busy), percent(h.user), percent(h.system), percent(h.soft))
}

// cpu: a worker ran, or waited to run, all the time (M-LIMIT rule 1). Over loopback, where
// both ends share the machine and no wire is in the way, a full core is enough: there is
// nothing else that could be the limit.
func cpu(c *Case) (out []result.Verdict) {
	for _, l := range c.legs() {
		one := l.one()
		if one == nil || !one.usable() {
			continue
		}
		end, load, bound := one.cpuBound()
		if bound && !c.loopback() && filled(c, l) {
			continue // busy, and yet the path is full
		}
		eliminated := false
		if !bound && (c.loopback() || c.bare()) && !ownLimit(one) && !serverLimited(one) {
			end, load, bound = loopbackCPU(one)
			eliminated = !bound && c.bare() && !one.windowBound() && !one.bufferBound()
		}
		if !bound && !eliminated {
			continue
		}
		v := c.cpuVerdict(l, one, end, load)
		if eliminated {
			v.Certainty = weaker(v.Certainty, Likely)
			say(&v, "no core was busy all the time: the ends take turns on one machine, and nothing else is between them")
			if c.near() {
				say(&v, "that it is one machine is told by the virtual interface (veth) and the round trip of %s", ms(c.Idle.rtt))
			}
		}
		out = append(out, v)
	}
	return out
}

func (c *Case) cpuVerdict(l *leg, one *flow, end result.End, load float64) result.Verdict {
	code, role := SenderCPU, "sends"
	if end == l.dir.Receiver() {
		code, role = ReceiverCPU, "receives"
	}
	v := draft(code, Likely, l, one)
	v.Host = end
	put(&v, "rate", one.rate, "bit/s")
	put(&v, "load", min(load, 1), "ratio")
	core := hottest(one.run, end)
	what := "the processor"
	if load > 1 {
		put(&v, "throttled", load-1, "ratio")
		say(&v, "1 stream: %s; a CPU quota held the program on %s for %s of the time", rate(one.rate), c.host(end), percent(load-1))
		what = "the CPU quota"
	} else {
		say(&v, "1 stream: %s; the busiest worker on %s ran or waited for a core %s of the time", rate(one.rate), c.host(end), percent(min(load, 1)))
	}
	if core.known {
		put(&v, "core", float64(core.cpu), "")
		put(&v, "busy", core.busy, "ratio")
		put(&v, "softirq", core.soft, "ratio")
		say(&v, "%s on %s", core, c.host(end))
		if load <= 1 {
			what = fmt.Sprintf("core %d (%s busy)", core.cpu, percent(core.busy))
		}
	}
	goal := 0.0
	if m := l.many(); m != nil {
		v.Stages = append(v.Stages, m.name)
		say(&v, "changed: %s, %.2f times as much", streamsText(m), m.rate/one.rate)
		if m.rate >= (1+moved)*one.rate {
			v.Certainty, goal = Proven, m.rate
		}
	}
	if f := l.find("copy"); f != nil && f.usable() {
		v.Stages = append(v.Stages, f.name)
		say(&v, "changed: the same with each byte copied and blocks of 16 KiB: %s, %+.0f %%", rate(f.rate), 100*(f.rate/one.rate-1))
		if f.rate <= one.rate*(1-moved/2) {
			v.Certainty = Proven
		}
	}
	if reached, to := l.movedAway(&v, one, core); reached > 0 {
		v.Certainty, goal = Proven, max(goal, reached)
		pin := fmt.Sprintf("taskset -c %d, in a unit CPUAffinity=%d", to, to)
		advise(&v, c.on(end, []string{"keep the program off the core of the card's interrupts: " + pin}, []string{fmt.Sprintf("keep the program off the core of the card's interrupts: start /affinity %x", 1<<to)})...)
	}
	for _, n := range one.run.Notices {
		if n.Code == conclude.CompetingLoad && n.End == end && load <= 1 {
			// Whose time it was cannot be told apart: no intervention of ours proves it.
			v.Certainty = weaker(v.Certainty, Likely)
			say(&v, "%s", n.Text)
			advise(&v, fmt.Sprintf("on %s: stop what else runs there (top), and repeat", c.place(end)))
		}
	}
	reach(&v, goal)
	c.adviseCPU(&v, l, end, load, core)
	v.Summary = fmt.Sprintf("%s: %s of %s, which %s, is the limit: %s.", c.way(l.dir), what, c.host(end), role, rate(one.rate))
	if c.loopback() {
		v.Summary = fmt.Sprintf("This host's CPU is the limit: %s of this machine, which plays both ends: %s %s.", what, rate(one.rate), l.dir)
	}
	return v
}

func (c *Case) adviseCPU(v *result.Verdict, l *leg, end result.End, load float64, core hotCore) {
	switch {
	case load > 1:
		if s := c.settings(end); s != nil && s.Quota != nil {
			put(v, "quota", *s.Quota, "processors")
			say(v, "the control group on %s allows %.2g processors' worth of time", c.host(end), *s.Quota)
		}
		advise(v, c.on(end, []string{"raise the quota: systemctl set-property UNIT CPUQuota=, docker update --cpus N, or the pod's limits.cpu"}, []string{"raise the job object's or container's CPU limit"})...)
	case v.Reach != nil:
		advise(v, fmt.Sprintf("several streams use several cores (%s)", c.again(l.dir, "-P 4")))
	}
	if core.known && core.soft > 0.6*core.busy {
		advise(v, c.on(end, []string{"spread the interrupts: ethtool -L DEV combined N; systemctl start irqbalance"}, []string{"Enable-NetAdapterRss -Name *"})...)
	}
	advise(v, fmt.Sprintf("on %s: fullbore doctor (offloads, governor, queues)", c.place(end)))
}

// stolen: the hypervisor gave the machine's time to others.
func stolen(c *Case) (out []result.Verdict) {
	for _, e := range []result.End{result.Client, result.Server} {
		worst := 0.0
		var at *flow
		for _, l := range c.legs() {
			for _, f := range l.plain() {
				if s, ok := conclude.Stolen(f.run, e); ok && s > worst {
					worst, at = s, f
				}
			}
		}
		if at == nil || worst <= 0.05 {
			continue
		}
		v := draft(Steal, Likely, nil, at)
		v.Note, v.Host = true, e
		put(&v, "steal", worst, "ratio")
		say(&v, "%s of a core's time on %s went to other machines of its hypervisor", percent(worst), c.host(e))
		advise(&v, "give the virtual machine reserved cores, or measure on another host")
		v.Summary = fmt.Sprintf("The hypervisor took %s of a core's time from %s: its figures are those of a machine that was not always running.", percent(worst), c.host(e))
		out = append(out, v)
		if c.loopback() {
			break // one machine
		}
	}
	return out
}

package diagnose

import (
	"fmt"

	"github.com/fullbore-net/fullbore/internal/conclude"
	"github.com/fullbore-net/fullbore/result"
)

// serverLimited: the rate that the server allows was reached.
func serverLimited(f *flow) bool {
	if f.run == nil || f.run.Test.ServerLimit == nil || f.run.Test.ServerLimit.BitrateBPS <= 0 {
		return false
	}
	return f.rate >= 0.95*float64(f.run.Test.ServerLimit.BitrateBPS)
}

// ownLimit: the rate that the user allows (--max-rate) was reached.
func ownLimit(f *flow) bool {
	return f.run != nil && f.run.Test.MaxRate > 0 && f.rate >= 0.9*float64(f.run.Test.MaxRate)
}

// setRate: the server, or the user, said to go no faster.
func setRate(c *Case) (out []result.Verdict) {
	for _, l := range c.legs() {
		one := l.one()
		if one != nil && one.usable() && ownLimit(one) {
			v := draft(RateLimited, Likely, l, one)
			v.Host = result.Client
			put(&v, "rate", one.rate, "bit/s")
			put(&v, "limit", float64(one.run.Test.MaxRate), "bit/s")
			say(&v, "1 stream: %s; --max-rate allows %s", rate(one.rate), rate(float64(one.run.Test.MaxRate)))
			advise(&v, "without --max-rate, or with a higher one, the path itself is tried")
			v.Summary = fmt.Sprintf("%s: the rate that was allowed with --max-rate is reached (%s): nothing is known of the path beyond it.", c.way(l.dir), rate(float64(one.run.Test.MaxRate)))
			out = append(out, v)
			continue
		}
		if one == nil || !one.usable() || !serverLimited(one) {
			continue
		}
		limit := float64(one.run.Test.ServerLimit.BitrateBPS)
		v := draft(RateLimited, Likely, l, one, l.many())
		v.Host = result.Server
		put(&v, "rate", one.rate, "bit/s")
		put(&v, "limit", limit, "bit/s")
		say(&v, "1 stream: %s; the server on %s allows a test %s", rate(one.rate), c.host(result.Server), rate(limit))
		if m := l.many(); m != nil {
			say(&v, "changed: %s: the same limit", streamsText(m))
		}
		advise(&v, fmt.Sprintf("on %s: fullbore serve without --max-rate, or a higher one", c.host(result.Server)))
		v.Summary = fmt.Sprintf("%s: the server's own limit is reached (%s): nothing is known of the path beyond it.", c.way(l.dir), rate(limit))
		out = append(out, v)
	}
	return out
}

// idleSender: the sender's sockets had nothing to send for a fifth of the time and more.
func idleSender(f *flow) bool {
	return f.shares != nil && f.shares.Idle > idleShare && f.run.Test.Bitrate == 0
}

// application: the sending program was the limit (M-LIMIT rule 2).
func application(c *Case) (out []result.Verdict) {
	for _, l := range c.legs() {
		one := l.one()
		if one == nil || !one.usable() || serverLimited(one) || ownLimit(one) || cpuFirst(one) {
			continue
		}
		if slowReader(c, l) {
			out = append(out, c.reader(l, one))
			continue
		}
		if !idleSender(one) || c.loopback() && hottest(one.run, result.Client).busy >= busyWorker {
			continue // without a processor a program looks like one with nothing to do
		}
		core := hottest(one.run, l.dir.Sender())
		v := draft(Application, Likely, l, one)
		v.Host = l.dir.Sender()
		put(&v, "idle", one.shares.Idle, "ratio")
		put(&v, "rate", one.rate, "bit/s")
		say(&v, "1 stream: %s; its socket had nothing to send %s of the time", rate(one.rate), percent(one.shares.Idle))
		if core.known {
			say(&v, "%s on %s", core, c.host(v.Host))
			if core.busy > 0.8 {
				v.Certainty = Possible // a program that gets no processor looks like one with nothing to do
			}
		}
		if m := l.many(); m != nil && m.rate > one.rate*(1+moved) {
			say(&v, "changed: %s, %.1f times as much", streamsText(m), m.rate/one.rate)
			reach(&v, m.rate)
		}
		advise(&v, fmt.Sprintf("on %s: what else runs there, and is its program paced or held up? (top; fullbore doctor)", c.host(v.Host)))
		v.Summary = fmt.Sprintf("%s: the sending program on %s is the limit, not the path: it had nothing to send %s of the time.", c.way(l.dir), c.host(v.Host), percent(one.shares.Idle))
		out = append(out, v)
	}
	return out
}

// reader words an application limit at the receiving end.
func (c *Case) reader(l *leg, one *flow) result.Verdict {
	m := l.many()
	v := draft(Application, Likely, l, one, m)
	v.Host = l.dir.Receiver()
	put(&v, "rate", one.rate, "bit/s")
	put(&v, "window", one.window, "bytes")
	say(&v, "1 stream: %s; %s of the time the receiver's window was full", rate(one.rate), percent(one.shares.Window))
	say(&v, "changed: %s with as many windows, also full: no window is the limit, the program behind them reads no faster", streamsText(m))
	advise(&v, fmt.Sprintf("on %s: what holds the receiving program up? (its disk, its processor, a rate of its own; top, iostat)", c.host(v.Host)))
	v.Summary = fmt.Sprintf("%s: the receiving program on %s reads no faster than %s: windows fill up behind it.", c.way(l.dir), c.host(v.Host), rate(one.rate))
	return v
}

// competing: an interface carried more than this test.
func competing(c *Case) (out []result.Verdict) {
	for _, l := range c.legs() {
		f := l.one()
		if f == nil || !f.usable() {
			continue
		}
		for _, e := range []result.End{l.dir.Sender(), l.dir.Receiver()} {
			all, foreign, known := foreignTraffic(f, e)
			if !known || foreign < 0.05*all || foreign < 1e6 {
				continue
			}
			v := draft(Competing, Likely, l, f)
			v.Host = e
			put(&v, "foreign", foreign, "bit/s")
			put(&v, "share", foreign/all, "ratio")
			put(&v, "rate", f.rate, "bit/s")
			say(&v, "1 stream: %s; the interface of %s carried %s this way, %s of it not this test's", rate(f.rate), c.host(e), rate(all), percent(foreign/all))
			// A tenth and less is worth knowing; more is what the test lacks.
			v.Note = foreign < 0.1*all
			reach(&v, f.rate+foreign)
			c.goneLater(&v, l, f, e, foreign)
			advise(&v, fmt.Sprintf("on %s: who sends? (ss -tinp; nethogs; iftop) – repeat when it is over, or at another hour", c.host(e)))
			v.Summary = fmt.Sprintf("%s: other traffic uses %s of the interface of %s (%s): this test got the rest, %s.", c.way(l.dir), percent(foreign/all), c.host(e), rate(foreign), rate(f.rate))
			out = append(out, v)
			break
		}
	}
	return out
}

// foreignTraffic compares the interface's counter with what the test sent, both over the
// counted rows of an end, bit/s on the interface's layer (l3 and its own header).
func foreignTraffic(f *flow, e result.End) (all, foreign float64, known bool) {
	var nic, own, time float64
	for i := range f.run.Rows {
		r := &f.run.Rows[i]
		if r.End != e || r.Omitted || r.Host == nil || r.Host.NIC == nil {
			continue
		}
		n := r.Host.NIC.TxBytes
		if e == f.dir.Receiver() {
			n = r.Host.NIC.RxBytes
		}
		nic += float64(n)
		time += r.Stop - r.Start
		for _, s := range r.Sums {
			if s.Direction == f.dir {
				own += float64(s.Bytes)
			}
		}
	}
	if time < 1 || nic <= 0 || f.mss <= 0 {
		return 0, 0, false
	}
	own = (f.wire(own) + 14*own/f.mss) * (1 + f.ratio)
	// Reading and counting are a socket buffer apart at the ends of the time, and behind a hole
	// waits what came in a round trip: so much is not anybody's, at either end of it.
	slack := nic / time * (0.125 + 2*max(f.rttMean, f.rttMin))
	foreign = nic - own
	if foreign < slack {
		foreign = 0
	}
	return nic * 8 / time, foreign * 8 / time, true
}

// linkFacts: what was negotiated is less than the hardware can, or half duplex.
func linkFacts(c *Case) (out []result.Verdict) {
	run := c.first()
	if run == nil {
		return nil
	}
	best := 0.0
	for _, l := range c.legs() {
		if b := l.best(); b != nil {
			best = max(best, b.rate)
		}
	}
	for _, e := range []result.End{result.Client, result.Server} {
		nic := c.nicOf(run, e)
		if nic == nil {
			continue
		}
		speed, f := nic.SpeedBPS, c.settings(e)
		if speed != nil && f != nil && f.MaxBPS != nil && *speed < *f.MaxBPS && *speed <= 100e6 {
			v := draft(LinkSlow, Likely, nil)
			v.Host, v.Note = e, best < 0.8*float64(*speed)
			put(&v, "speed", float64(*speed), "bit/s")
			put(&v, "possible", float64(*f.MaxBPS), "bit/s")
			say(&v, "%s on %s negotiated %s; its hardware can %s%s", nic.Name, c.host(e), rate(float64(*speed)), rate(float64(*f.MaxBPS)), replayed(f))
			if best > 0 {
				m := best
				v.Measured = &m
				say(&v, "measured: %s", rate(best))
			}
			reach(&v, float64(*f.MaxBPS)*0.94)
			advise(&v, "change the cable (two of its pairs may be broken) and let both sides negotiate")
			advise(&v, c.on(e, []string{"ethtool " + nic.Name}, []string{"Get-NetAdapter -Name '" + nic.Name + "' | Format-List LinkSpeed,FullDuplex"})...)
			v.Summary = fmt.Sprintf("The link of %s runs at %s though it can %s: cable, or a setting of the other side.", c.host(e), rate(float64(*speed)), rate(float64(*f.MaxBPS)))
			out = append(out, v)
		}
		if nic.Duplex == "half" {
			v := draft(HalfDuplex, Likely, nil)
			v.Host = e
			say(&v, "%s on %s runs half duplex%s", nic.Name, c.host(e), replayed(f))
			if best > 0 {
				m := best
				v.Measured = &m
			}
			advise(&v, "let both sides negotiate: ethtool -s "+nic.Name+" autoneg on (and the same on the switch)")
			v.Summary = fmt.Sprintf("The link of %s runs half duplex: both directions share it, and collide.", c.host(e))
			out = append(out, v)
		}
	}
	return out
}

// hostFacts: one queue for a fast card, a radio link.
func hostFacts(c *Case) (out []result.Verdict) {
	if c.first() == nil {
		return nil
	}
	for _, e := range c.tellers() {
		f := c.settings(e)
		if q, most := f.QueuesNow, f.QueuesMax; q != nil && most != nil && *q == 1 && *most > 1 {
			out = append(out, c.oneQueue(e, f, *most))
		}
		if f.Kind == "wireless" {
			v := draft(Wireless, Likely, nil)
			v.Host, v.Note = e, true
			say(&v, "%s on %s is a radio interface%s: shared with its neighbours, half duplex", c.nicName(e), c.host(e), replayed(f))
			advise(&v, "repeat it over a cable: what is gone then was the radio's", "one station alone, 60 s, 4 streams: "+c.again(result.Down, "-P 4 -t 60"))
			v.Summary = fmt.Sprintf("%s is connected by radio: its rate is shared, half duplex and changes from second to second.", c.host(e))
			out = append(out, v)
		}
	}
	return out
}

// oneQueue words that a card which could use most queues uses one.
func (c *Case) oneQueue(e result.End, f *result.Facts, most int) result.Verdict {
	name, soft := c.nicName(e), 0.0
	for _, l := range c.legs() {
		if one := l.one(); one != nil && one.run != nil {
			soft = max(soft, hottest(one.run, e).soft)
		}
	}
	v := draft(SingleQueue, Possible, nil)
	v.Host, v.Note = e, soft < 0.6
	if soft >= 0.6 {
		v.Certainty = Likely
	}
	put(&v, "queues", 1, "")
	put(&v, "possible", float64(most), "")
	put(&v, "softirq", soft, "ratio")
	say(&v, "%s uses 1 of %d queues; the core that serves it spent %s in interrupts%s", name, most, percent(soft), replayed(f))
	advise(&v, c.on(e, []string{fmt.Sprintf("ethtool -L %s combined %d; systemctl start irqbalance", name, most)}, []string{"Enable-NetAdapterRss -Name *"})...)
	v.Summary = fmt.Sprintf("One queue takes all interrupts of %s on %s.", name, c.host(e))
	return v
}

// sameMachine: both ends look like one machine, so what was measured is its own inside.
func sameMachine(c *Case) []result.Verdict {
	run := c.first()
	if run == nil || !conclude.SharedCores(run) {
		return nil
	}
	v := draft(SameMachine, Possible, nil)
	v.Note = true
	say(&v, "both ends have the name and system of one machine: %s", run.Hosts.Client.Name)
	v.Summary = "Both ends may be one machine (namespaces, containers): they share its processors, and no wire is between them."
	advise(&v, "for figures of a network: two machines")
	return []result.Verdict{v}
}

// inconclusive says what was seen and what would decide.
func inconclusive(c *Case) result.Verdict {
	v := draft(Inconclusive, Possible, nil)
	for _, l := range c.legs() {
		one := l.one()
		if one == nil {
			continue
		}
		switch {
		case one.shares != nil:
			say(&v, "%s: 1 stream: %s; its sender waited for the path %s of the time, for the window %s, for its buffer %s, had nothing to send %s", l.dir, rate(one.rate), percent(one.shares.Network), percent(one.shares.Window), percent(one.shares.Buffer), percent(one.shares.Idle))
		case one.usable():
			say(&v, "%s: 1 stream: %s; what its sender waited for is not known", l.dir, rate(one.rate))
		case one.err != nil:
			say(&v, "%s: %s", l.dir, one.err.Text)
		}
		if m := l.many(); m != nil && one.usable() {
			say(&v, "%s: %s, %+.0f %%", l.dir, streamsText(m), 100*(m.rate/one.rate-1))
		}
		if typical, _, ok := one.queue(c); ok {
			say(&v, "%s: queue under load %s", l.dir, ms(typical))
		}
	}
	if len(v.Evidence) == 0 {
		say(&v, "no direction was measured under load; round trip of the empty path: %s", ms(c.Idle.rtt))
	}
	if !c.extended() {
		advise(&v, "with fullbore serve at the other end both ends tell what they see")
	}
	advise(&v, "longer stages: fullbore diagnose "+c.target()+" --deep", "at another hour, and from another host on the same network")
	v.Summary = "No single limit stood out."
	return v
}

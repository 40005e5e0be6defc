package diagnose

import (
	"fmt"
	"strings"

	"github.com/fullbore-net/fullbore/internal/stats"
	"github.com/fullbore-net/fullbore/result"
)

// mtuHole: streams are set up, small segments come through, full-size ones do not, and
// nobody says so.
func mtuHole(c *Case) (out []result.Verdict) {
	for _, l := range c.legs() {
		one := l.one()
		if one == nil || !stuck(one) {
			continue
		}
		good, bad := 0, 0
		var stages []*flow
		for i := range l.flows {
			f := &l.flows[i]
			var mss int
			if n, _ := fmt.Sscanf(strings.TrimPrefix(f.name, string(l.dir)+"-"), "mss-%d", &mss); n != 1 || f.run == nil {
				continue
			}
			stages = append(stages, f)
			if f.usable() && !stuck(f) {
				good = max(good, mss)
			} else if bad == 0 || mss < bad {
				bad = mss
			}
		}
		if good == 0 {
			continue
		}
		header := 40
		if len(stages) > 0 && stages[0].ipv6() {
			header = 60
		}
		v := draft(MTUHole, Proven, l, append([]*flow{one}, stages...)...)
		zero := 0.0
		v.Measured = &zero
		put(&v, "mtu", float64(good+header), "bytes")
		say(&v, "1 stream: set up, and then nothing arrived")
		say(&v, "changed: segments of %d bytes (packets of %d) come through", good, good+header)
		if bad > 0 {
			put(&v, "mtu_bad", float64(bad+header), "bytes")
			say(&v, "changed: segments of %d bytes (packets of %d) do not", bad, bad+header)
		}
		advise(&v,
			"let ICMP through (type 3 code 4; ICMPv6 type 2) on every firewall of the path: it says that a packet is too big",
			fmt.Sprintf("clamp the segments on the router before the narrow hop: nft add rule inet filter forward tcp flags syn tcp option maxseg size set %d", good))
		advise(&v, c.on(l.dir.Sender(), []string{"sysctl -w net.ipv4.tcp_mtu_probing=1"}, []string{"netsh interface ipv4 set subinterface NAME mtu=" + fmt.Sprint(good+header)})...)
		v.Summary = fmt.Sprintf("%s: packets above %d bytes do not get through and nobody says so (path MTU black hole): connections open and then stand still.", c.way(l.dir), good+header)
		out = append(out, v)
	}
	return out
}

// firewall: the control connection works and data does not, whatever its size.
func firewall(c *Case) (out []result.Verdict) {
	for _, l := range c.legs() {
		one, small := l.one(), l.find("mss-1000")
		if one == nil || !stuck(one) || small == nil || !stuck(small) {
			continue
		}
		v := draft(Firewall, Likely, l, one, small)
		zero := 0.0
		v.Measured = &zero
		say(&v, "the control connection works; 1 stream was set up, and nothing arrived")
		say(&v, "changed: segments of 1000 bytes: nothing arrived either, so it is not their size")
		advise(&v, "look for a firewall that closes connections after their set-up (inspection, connection table full, asymmetric route)", "fullbore doctor, at both ends")
		v.Summary = fmt.Sprintf("%s: connections open and their data does not arrive: a firewall or a route that only knows one direction.", c.way(l.dir))
		out = append(out, v)
	}
	return out
}

// udpBlocked: TCP works, UDP does not come through.
func udpBlocked(c *Case) []result.Verdict {
	if c.Up.one() == nil && c.Down.one() == nil {
		return nil
	}
	why := ""
	switch p := c.Idle.probes; {
	case c.errorOf("idle") == "udp-no-answer" || c.errorOf("-udp") == "udp-no-answer":
		why = "the set-up of a UDP stream is not answered"
	case c.errorOf("idle") == "udp-refused" || c.errorOf("-udp") == "udp-refused":
		why = "UDP is refused (ICMP: port closed or forbidden)"
	case p != nil && p.Kind == "udp-echo" && p.Sent >= 20 && p.Answered == 0:
		why = fmt.Sprintf("none of %d probes was answered", p.Sent)
	case udpIdleUnanswered(c):
		why = "no probe over UDP was answered"
	default:
		return nil
	}
	v := draft(Firewall, Likely, nil)
	v.Note = true
	v.Stages = []string{"idle"}
	say(&v, "the control connection and TCP streams work; %s", why)
	port := 5201
	if run := c.first(); run != nil && run.Test.Port != 0 {
		port = run.Test.Port
	}
	advise(&v, c.on(result.Server,
		[]string{fmt.Sprintf("nft add rule inet filter input udp dport %d accept (or firewall-cmd --add-port=%d/udp)", port, port)},
		[]string{fmt.Sprintf("New-NetFirewallRule -DisplayName fullbore -Direction Inbound -Protocol UDP -LocalPort %d -Action Allow", port)})...)
	v.Summary = fmt.Sprintf("UDP to port %d of %s does not come through while TCP does: a firewall.", port, c.host(result.Server))
	return []result.Verdict{v}
}

// udpDead reports that UDP was tried and does not come through.
func udpDead(c *Case) bool {
	return c.errorOf("idle") != "" || c.errorOf("-udp") != "" || udpIdleUnanswered(c)
}

// udpIdleUnanswered: the stage over UDP has probes without an answer; a later one over TCP
// may have taken its place as the source of the round trip.
func udpIdleUnanswered(c *Case) bool {
	for _, d := range c.History {
		if d.Step.Name != "idle" || d.Run == nil {
			continue
		}
		for _, p := range d.Run.Probes {
			if p.Kind == "udp-echo" && p.Sent >= 20 && p.Answered == 0 {
				return true
			}
		}
	}
	return false
}

// outage: everything stopped for a while, small packets too, and went on.
func outage(c *Case) (out []result.Verdict) {
	for _, l := range c.legs() {
		var flows []*flow
		for i := range l.flows {
			if f := &l.flows[i]; f.run != nil && !strings.HasPrefix(f.name, "both") && f.usable() {
				flows = append(flows, f)
			}
		}
		for _, f := range flows {
			at, length, found := gap(f)
			if !found {
				continue
			}
			lost, seen := lostProbes(f)
			// A gap of TCP alone is a time-out of its own: small packets must have gone, too.
			if !seen || float64(lost)*probeSpacing.Seconds() < 0.4*length || float64(lost)*probeSpacing.Seconds() < 0.1 {
				continue
			}
			v := draft(Outage, Likely, l, f)
			put(&v, "at", at, "s")
			put(&v, "length", float64(lost)*probeSpacing.Seconds(), "s")
			say(&v, "%s: nothing arrived for %s, %s after the start of the measured part", f.name, ms(length), ms(at))
			say(&v, "of the small packets beside it, one each %s, %d were lost: the path itself was away for about %s", probeSpacing, lost, ms(float64(lost)*probeSpacing.Seconds()))
			reach(&v, f.rate*f.seconds()/max(f.seconds()-length, 0.1))
			advise(&v, "watch it for longer: "+c.again(l.dir, "-t 600 -i 1"), "look at the logs of routers and switches for that time: a link that went down, a route that moved (Wi-Fi: roaming, interference)")
			v.Summary = fmt.Sprintf("%s: the path was away for about %s in the middle of a test and came back.", c.way(l.dir), ms(float64(lost)*probeSpacing.Seconds()))
			out = append(out, v)
			break
		}
	}
	return out
}

func (f *flow) seconds() float64 {
	if s := f.run.Sum(f.dir); s != nil && s.Receiver != nil {
		return s.Receiver.Seconds()
	}
	return 0
}

// gap finds the longest run of rows in which next to nothing arrived, between rows in which
// much did: at least two rows.
func gap(f *flow) (at, length float64, found bool) {
	rows := f.rates()
	var rates []float64
	for _, r := range rows {
		rates = append(rates, r.BPS)
	}
	m, ok := stats.Quantile(rates, 0.75)
	if !ok || m <= 0 {
		return 0, 0, false
	}
	begin, n := 0.0, 0
	for i, r := range rows {
		switch {
		case r.BPS < 0.02*m:
			if n == 0 {
				begin = r.Start
			}
			n++
		default:
			if first := i - n; n >= 2 && first > 0 && r.Start-begin > length {
				at, length, found = begin, r.Start-begin, true
			}
			n = 0
		}
	}
	return at, length, found
}

// lostProbes counts the probes beside a load of which no answer came: one that is lost on its way
// there is never on its way back, so of a path that is away both ways only one direction's count
// tells.
func lostProbes(f *flow) (int64, bool) {
	if f.probes == nil || f.probes.LostUp == nil || f.probes.LostDown == nil {
		return 0, false
	}
	return *f.probes.LostUp + *f.probes.LostDown, true
}

// smallMTU: the path takes smaller packets than the interfaces of both ends.
func smallMTU(c *Case) (out []result.Verdict) {
	for _, l := range c.legs() {
		packet, mtu, narrow := narrowed(l)
		if !narrow {
			continue
		}
		v := draft(SmallMTU, Likely, l, l.one())
		v.Note = true
		put(&v, "mtu", float64(packet), "bytes")
		put(&v, "interface", float64(mtu), "bytes")
		say(&v, "TCP sends packets of %d bytes; the smaller known interface takes %d", packet, mtu)
		advise(&v, "a tunnel (VPN, PPPoE, VXLAN), an end with a smaller MTU, or a router that clamps segments: nothing to mend unless the two ends were meant to be alike")
		v.Summary = fmt.Sprintf("%s: packets are at most %d bytes, less than the interfaces' %d.", c.way(l.dir), packet, mtu)
		out = append(out, v)
	}
	return out
}

package diagnose

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/fullbore-net/fullbore/internal/bdp"
	"github.com/fullbore-net/fullbore/internal/units"
	"github.com/fullbore-net/fullbore/result"
)

// heldBy is what the rules about windows and buffers have in common.
type heldBy struct {
	code     string
	end      result.End // where the setting is
	window   float64    // bytes that were on the way at most
	share    float64    // of the sender's time; negative = not known
	sysctl   string     // net.ipv4.tcp_rmem or tcp_wmem
	setting  *[3]int64  // its value, where known
	flow     *flow
	certain  string
	whatHeld string // "the receiver's window", "the send buffer"
	how      string // how the share shows, in place of "held"; "" = held
}

// receiveWindow: the sender had data and was not allowed to send it (M-LIMIT rule 3).
func receiveWindow(c *Case) (out []result.Verdict) {
	for _, l := range c.legs() {
		one := l.one()
		if one == nil || !one.usable() || cpuFirst(one) {
			continue
		}
		h := heldBy{code: ReceiveWindow, end: l.dir.Receiver(), sysctl: "tcp_rmem", flow: one, whatHeld: "the receiver's window", certain: Likely}
		if s := c.settings(h.end); s != nil {
			h.setting = s.TCPRead
		}
		switch window, near := unseenWindow(c, l); {
		case one.windowBound():
			h.window, h.share = one.window, one.shares.Window
		case near:
			h.window, h.share, h.certain = window, -1, Possible
		default:
			continue
		}
		if scalingOff(one) || slowReader(c, l) || serverLimited(one) || ownLimit(one) || filled(c, l) || c.loopback() && hottest(one.run, result.Client).busy >= busyWorker {
			continue // other rules'
		}
		out = append(out, c.held(l, h))
	}
	return out
}

// sendBuffer: the path could have taken more than the sender's kernel was allowed to hold
// (M-LIMIT rule 4).
func sendBuffer(c *Case) (out []result.Verdict) {
	for _, l := range c.legs() {
		one := l.one()
		if one == nil || !one.usable() || cpuFirst(one) || !one.bufferBound() || serverLimited(one) || filled(c, l) {
			continue
		}
		h := heldBy{code: SendBuffer, end: l.dir.Sender(), sysctl: "tcp_wmem", flow: one, whatHeld: "the send buffer", certain: Likely, share: one.shares.Buffer}
		if s := c.settings(h.end); s != nil {
			h.setting = s.TCPWrite
		}
		h.window = one.onTheWay(c)
		if h.share <= heldShare {
			h.share = one.starved
			h.how = "%s of the time TCP had room in its window and nothing in its buffer to send, though the program had"
		}
		out = append(out, c.held(l, h))
	}
	return out
}

// cpuFirst: an end that had no processor time left leaves windows full and buffers empty.
func cpuFirst(f *flow) bool {
	_, _, bound := f.cpuBound()
	return bound
}

// scalingOff reports a connection without the window scale option, though its window is as
// large as one without it can be.
func scalingOff(f *flow) bool {
	if f.run == nil {
		return false
	}
	for i := range f.run.Streams {
		s := &f.run.Streams[i]
		t := s.TCP
		if f.run.End != f.dir.Sender() {
			t = s.RemoteTCP
		}
		if s.Direction == f.dir && t != nil && t.Last.WScale == [2]uint8{} && t.MaxSndWnd > 0 && t.MaxSndWnd <= int64(bdp.UnscaledWindow) && t.Last.MSS > 0 {
			return true
		}
	}
	return false
}

// defaultMost are the third numbers of tcp_rmem and tcp_wmem that Linux sets by itself on a
// machine with enough memory; a limit at or above them was not made small by anybody, the
// path is just long and fast.
var defaultMost = map[string]float64{"tcp_rmem": 6 << 20, "tcp_wmem": 4 << 20}

// held words a limit of a window or buffer, and looks for its proof.
func (c *Case) held(l *leg, h heldBy) result.Verdict {
	one := h.flow
	v := draft(h.code, h.certain, l, one)
	v.Host = h.end
	rtt := c.Idle.rtt
	predicted := h.window * 8 / max(rtt, 1e-6)
	put(&v, "window", h.window, "bytes")
	put(&v, "rtt", rtt, "s")
	put(&v, "rate", one.rate, "bit/s")
	switch {
	case h.how != "":
		say(&v, "1 stream: %s; "+h.how, rate(one.rate), percent(h.share))
	case h.share >= 0:
		say(&v, "1 stream: %s; %s of the time %s held its sender", rate(one.rate), percent(h.share), h.whatHeld)
	default:
		say(&v, "1 stream: %s; %s on the way over %s, about what the largest receive buffer here allows (the sender does not tell what it waits for)", rate(one.rate), size(h.window), ms(rtt))
	}
	if h.window > 0 && rtt > 0 {
		if off := math.Abs(predicted-one.rate) / one.rate; off <= 0.15 {
			say(&v, "%s per round trip of %s carry %s: measured %s", size(h.window), ms(rtt), rate(predicted), rate(one.rate))
		} else if one.rttMean > 1.15*rtt {
			say(&v, "%s per round trip of %s (%s when empty) carry %s", size(h.window), ms(one.rttMean), ms(rtt), rate(h.window*8/one.rttMean))
		}
	}
	goal := c.proofs(l, &v, h)
	need := float64(bdp.Product(units.BitRate(one.wire(goal)), time.Duration(rtt*1e9)))
	if autotuned(h) {
		v.Code = Autotuning
	}
	if need > 0 && goal > one.rate*(1+same) {
		put(&v, "needed", need, "bytes")
		reach(&v, goal)
	}
	c.adviseHeld(l, &v, h, need, goal)
	v.Summary = c.heldSummary(l, v, h, need, goal)
	return v
}

// proofs looks for interventions that moved the rate as the window says, tells them, and
// returns the most that the direction carried.
func (c *Case) proofs(l *leg, v *result.Verdict, h heldBy) (goal float64) {
	one := h.flow
	goal = one.rate
	if b := l.best(); b != nil {
		goal = max(goal, b.rate)
	}
	for _, f := range l.windows() {
		v.Stages = append(v.Stages, f.name)
		asked := float64(f.run.Test.Window)
		switch {
		case f.rate >= (1+moved)*one.rate:
			v.Certainty = Proven
			say(v, "changed: -w %s: %s, %.1f times as much", units.ByteSize(asked).Exact(), rate(f.rate), f.rate/one.rate)
		case f.rate < one.rate/(1+moved):
			say(v, "changed: -w %s: %s (the system granted less than it gives by itself)", units.ByteSize(asked).Exact(), rate(f.rate))
		}
	}
	if m := l.many(); m != nil {
		v.Stages = append(v.Stages, m.name)
		times := m.rate / one.rate
		say(v, "changed: %s, %.1f times as much", streamsText(m), times)
		if times >= 1+2*moved && times <= float64(m.streams)*(1+moved) && v.Certainty == Likely {
			v.Certainty = Proven
		}
	}
	return goal
}

// autotuned reports that nobody made the limit small: it is the system's own maximum.
func autotuned(h heldBy) bool {
	if h.setting != nil {
		most := float64(h.setting[2])
		return most >= defaultMost[h.sysctl] && h.window >= 0.25*most
	}
	return h.window >= 0.4*defaultMost[h.sysctl]
}

func (c *Case) adviseHeld(l *leg, v *result.Verdict, h heldBy, need, goal float64) {
	twice := units.ByteSize(2 * max(need, h.window))
	linux := bdp.ForLinux(twice)
	line := linux.Lines[slices.IndexFunc(linux.Lines, func(s string) bool { return strings.Contains(s, h.sysctl) })]
	if now := h.setting; now != nil {
		where := "here"
		if h.end != result.Client {
			where = "on " + c.host(h.end)
		}
		put(v, "setting", float64(now[2]), "bytes")
		say(v, "net.ipv4.%s %s allows %d bytes, of which about half is window", h.sysctl, where, now[2])
		line = fmt.Sprintf("net.ipv4.%s is %d %d %d now, and %s on the way are needed: %s", h.sysctl, now[0], now[1], now[2], size(max(need, h.window)), line)
	}
	windows := bdp.ForWindows(twice)
	advise(v, c.on(h.end, []string{line}, []string{windows.Netsh[1]})...)
	if s := c.settings(h.end); s != nil && h.code == ReceiveWindow && s.Moderate != nil && !*s.Moderate {
		advise(v, c.on(h.end, []string{"sysctl -w net.ipv4.tcp_moderate_rcvbuf=1"}, nil)...)
	}
	if goal > h.flow.rate*(1+moved) {
		n := int(math.Ceil(goal / h.flow.rate))
		advise(v, fmt.Sprintf("without changing the host: several streams (%s)", c.again(l.dir, fmt.Sprintf("-P %d", min(max(n, 2), 128)))))
	}
}

func (c *Case) heldSummary(l *leg, v result.Verdict, h heldBy, need, goal float64) string {
	what := fmt.Sprintf("%s on %s", map[string]string{ReceiveWindow: "the receive window", SendBuffer: "the send buffer"}[h.code], c.host(h.end))
	text := fmt.Sprintf("%s: %s is the limit: %s per round trip of %s carry %s", c.way(l.dir), what, size(h.window), ms(c.Idle.rtt), rate(h.flow.rate))
	if v.Code == Autotuning {
		text = fmt.Sprintf("%s: the largest buffer that autotuning gives on %s (net.ipv4.%s) is too small for this path: %s per round trip of %s carry %s",
			c.way(l.dir), c.host(h.end), h.sysctl, size(h.window), ms(c.Idle.rtt), rate(h.flow.rate))
	}
	if v.Reach != nil {
		text += fmt.Sprintf("; with %s this path would carry %s", size(need), rate(goal))
	}
	return text + "."
}

// scalingLost: both systems scale their windows, and the connection does not: somebody on
// the way took the option out, or one end has it switched off.
func scalingLost(c *Case) (out []result.Verdict) {
	for _, l := range c.legs() {
		one := l.one()
		if one == nil || !one.usable() || !scalingOff(one) {
			continue
		}
		v := draft(ScalingLost, Likely, l, one)
		rtt := c.Idle.rtt
		put(&v, "window", one.window, "bytes")
		put(&v, "rtt", rtt, "s")
		say(&v, "neither end scales its window: at most 65,535 bytes per round trip of %s, %s", ms(rtt), rate(65535*8/max(rtt, 1e-6)))
		say(&v, "1 stream: %s", rate(one.rate))
		where := c.scalingWhere(&v)
		goal := one.rate
		if m := l.many(); m != nil {
			say(&v, "changed: %s, %.1f times as much", streamsText(m), m.rate/one.rate)
			v.Stages = append(v.Stages, m.name)
			if m.rate > goal {
				goal = m.rate
				reach(&v, goal)
			}
		}
		if v.Reach != nil {
			put(&v, "needed", float64(bdp.Product(units.BitRate(one.wire(goal)), time.Duration(rtt*1e9))), "bytes")
		}
		v.Summary = fmt.Sprintf("%s: window scaling is not in use, %s, so a stream has at most 64 KiB on the way: %s over %s.", c.way(l.dir), where, rate(one.rate), ms(rtt))
		out = append(out, v)
	}
	return out
}

// scalingWhere says where window scaling was lost, as far as the ends tell their own setting.
func (c *Case) scalingWhere(v *result.Verdict) string {
	offers := 0
	for _, e := range []result.End{result.Client, result.Server} {
		s := c.settings(e)
		if s == nil || s.Scaling == nil {
			continue
		}
		name := "this host"
		if e != result.Client {
			name = c.host(e)
		}
		if *s.Scaling {
			offers++
			say(v, "%s offers window scaling (net.ipv4.tcp_window_scaling = 1)", name)
			continue
		}
		v.Host, v.Certainty = e, Proven
		advise(v, c.on(e, []string{"sysctl -w net.ipv4.tcp_window_scaling=1"}, []string{"netsh interface tcp set global autotuninglevel=normal"})...)
		if e == result.Client {
			return "here: net.ipv4.tcp_window_scaling is off"
		}
		return "on " + name + ": net.ipv4.tcp_window_scaling is off"
	}
	if offers > 0 {
		advise(v, "compare a capture of the SYN at both ends: tcpdump -ni any 'tcp[tcpflags] & tcp-syn != 0' (option wscale)")
	}
	if s := c.settings(result.Server); offers > 0 && (s == nil || s.Scaling == nil) {
		advise(v, c.on(result.Server, []string{"sysctl net.ipv4.tcp_window_scaling must be 1"}, []string{"netsh interface tcp show global"})...)
	}
	if offers == 2 {
		return "on the path, since both ends offer it (a middlebox takes the option out)"
	}
	return "on the path (a middlebox takes the option out), or at an end that has it switched off"
}

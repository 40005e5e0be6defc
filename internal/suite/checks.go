package suite

import (
	"fmt"
	"math"
	"net/netip"

	"github.com/fullbore-net/fullbore/internal/conclude"
	"github.com/fullbore-net/fullbore/internal/units"
	"github.com/fullbore-net/fullbore/result"
)

// Tolerances of the cross-checks (M-ACCEPT).
const (
	clockTolerance = 0.01 // between the two ends' rates
	wireTolerance  = 0.02 // between an interface's bytes and what the test accounts for

	// Each end begins and stops counting when it hears of the other, seconds: 1 % of 15 s, and more of
	// a shorter run.
	startSlack = 0.15
)

// crossChecks compare what both ends and their interfaces say of one run's direction.
func crossChecks(run *result.Run, name string, it Item, d result.Direction) (out []result.Check) {
	if run == nil || run.Sum(d) == nil {
		return nil
	}
	add := func(c result.Check) {
		c.Run = name
		out = append(out, c)
	}
	if run.Test.Transport == "udp" {
		add(datagramCheck(run, d))
	} else {
		add(bytesCheck(run, d))
		add(ratesCheck(run, d))
	}
	for _, e := range []result.End{d.Sender(), d.Receiver()} {
		add(wireCheck(run, d, e))
	}
	return out
}

// inFlight bounds what a sender has counted and the receiver not yet: in the send buffer, on the
// way, unread.
func inFlight(run *result.Run, d result.Direction) float64 {
	sum := 0.0
	for i := range run.Streams {
		s := &run.Streams[i]
		if s.Direction != d {
			continue
		}
		t := senderTCP(run, s)
		if t == nil {
			sum += 4 << 20 // the largest send buffer of a system left alone
			continue
		}
		sum += 2*float64(t.MaxCwnd) + 256<<10
		if t.Last.NotSent != nil {
			sum += float64(*t.Last.NotSent)
		}
	}
	return sum
}

// bytesCheck: what arrived is what was sent, but for what was on its way.
func bytesCheck(run *result.Run, d result.Direction) result.Check {
	c := result.Check{Check: "tcp-bytes"}
	s := run.Sum(d)
	if s.Sender == nil || s.Receiver == nil {
		c.Text = "The ends' counts of bytes are not both known."
		return c
	}
	tx, rx := float64(s.Sender.Bytes), float64(s.Receiver.Bytes)
	room := inFlight(run, d) + math.Abs(s.Sender.Seconds()-s.Receiver.Seconds())*max(s.Sender.Rate(), s.Receiver.Rate())/8 + startSlack*s.Sender.Rate()/8
	least := 0.0
	if run.Test.Omit > 0 || s.Receiver.Seconds() > s.Sender.Seconds() {
		least = -room // the measured part begins in the middle of a flow
	}
	diff := tx - rx
	c.Text = fmt.Sprintf("%s bytes sent, %s received: %s on their way, of at most %s.", conclude.Grouped(s.Sender.Bytes), conclude.Grouped(s.Receiver.Bytes), conclude.Grouped(int64(diff)), conclude.Grouped(int64(room)))
	if diff < 0 {
		c.Text = fmt.Sprintf("%s bytes sent, %s received: %s were on their way when the measured part began, of at most %s.", conclude.Grouped(s.Sender.Bytes), conclude.Grouped(s.Receiver.Bytes), conclude.Grouped(int64(-diff)), conclude.Grouped(int64(room)))
	}
	c.Result = result.Pass
	if diff < least || diff > room {
		c.Result = result.Fail
		c.Text = fmt.Sprintf("The ends do not agree: %s bytes sent, %s received, though at most %s can have been on their way.", conclude.Grouped(s.Sender.Bytes), conclude.Grouped(s.Receiver.Bytes), conclude.Grouped(int64(room)))
	}
	return c
}

// ratesCheck: both ends' clocks tell the same rate.
func ratesCheck(run *result.Run, d result.Direction) result.Check {
	c := result.Check{Check: "clock-rates"}
	s := run.Sum(d)
	if s.Sender == nil || s.Receiver == nil || s.Sender.Seconds() <= 0 || s.Receiver.Seconds() <= 0 || s.Sender.Bytes == 0 {
		c.Text = "The ends' rates are not both known."
		return c
	}
	tx, rx := s.Sender.Rate(), s.Receiver.Rate()
	differ := math.Abs(tx-rx) / max(tx, rx)
	room := inFlight(run, d)/float64(s.Sender.Bytes) + max(startSlack/s.Sender.Seconds()-clockTolerance, 0)
	c.Result = result.Pass
	c.Text = fmt.Sprintf("%s by the sender's clock, %s by the receiver's: %s apart.", units.BitRate(tx+0.5), units.BitRate(rx+0.5), shareText(differ))
	if differ > clockTolerance+room {
		c.Result = result.Fail
		c.Text = fmt.Sprintf("The ends' clocks do not agree: %s by the sender's, %s by the receiver's, %s apart where %s can be explained.", units.BitRate(tx+0.5), units.BitRate(rx+0.5), shareText(differ), shareText(clockTolerance+room))
	}
	return c
}

// datagramCheck: every datagram that was sent arrived or was lost.
func datagramCheck(run *result.Run, d result.Direction) result.Check {
	c := result.Check{Check: "udp-counts"}
	u := run.Sum(d).UDP
	if u == nil || u.Sent == nil || u.Received == nil {
		c.Text = "The ends' accounts of datagrams are not both known."
		return c
	}
	l := lossOf(run, d)
	if l == nil {
		c.Text = "The loss is not known."
		return c
	}
	rest := u.Sent.Packets - u.Received.Packets - l.Lost
	c.Result = result.Pass
	c.Text = fmt.Sprintf("%s sent = %s received + %s lost; copies %s, too late to tell %s.", conclude.Grouped(u.Sent.Packets), conclude.Grouped(u.Received.Packets), conclude.Grouped(l.Lost), conclude.Grouped(u.Received.Duplicates), conclude.Grouped(u.Received.Late))
	if rest < 0 || rest > u.Received.Late || u.Received.Highest > u.Sent.Packets {
		c.Result = result.Fail
		c.Text = fmt.Sprintf("The counts of datagrams do not add up: %s sent, %s received, %s lost, highest number %s.", conclude.Grouped(u.Sent.Packets), conclude.Grouped(u.Received.Packets), conclude.Grouped(l.Lost), conclude.Grouped(u.Received.Highest))
	}
	return c
}

// wire is what an interface and the test say of one direction at one end.
type wire struct {
	nic             string
	bytes, packets  float64 // by the interface
	payload, behind float64 // by the test: of this direction; of the other one, whose acknowledgements go this way
	again           float64 // segments sent again, all of which pass the sender's interface
	seconds         float64
}

func wireOf(run *result.Run, d result.Direction, e result.End) (w wire, ok bool) {
	out := e == d.Sender()
	for i := range run.Rows {
		row := &run.Rows[i]
		if row.End != e || row.Omitted || row.Host == nil || row.Host.NIC == nil {
			continue
		}
		n := row.Host.NIC
		w.nic, ok = n.Name, true
		w.seconds += row.Stop - row.Start
		if out {
			w.bytes, w.packets = w.bytes+float64(n.TxBytes), w.packets+float64(n.TxPackets)
		} else {
			w.bytes, w.packets = w.bytes+float64(n.RxBytes), w.packets+float64(n.RxPackets)
		}
		for _, s := range row.Sums {
			if s.Direction != d {
				w.behind += float64(s.Bytes)
				continue
			}
			w.payload += float64(s.Bytes)
			if s.Retransmits != nil {
				w.again += float64(*s.Retransmits)
			}
		}
	}
	return w, ok
}

// ethernet is what an interface counts of a frame's header: none on tunnels, with a VLAN tag at most.
const ethernet = units.EthernetHeader + units.VLANTag

// control is about what the control connection and its frames take, bytes/s.
const control = 40e3

// expect bounds what the interface must have counted, without slack.
func (w *wire) expect(run *result.Run, d result.Direction, e result.End) (low, high float64) {
	v6 := ipv6(run)
	header := float64(units.TCPHeaders(v6, 0, true).Bytes(0, units.L3))
	mss := float64(1448)
	if run.Test.Transport == "udp" {
		header, mss = float64(units.UDPHeaders(v6, 0).Bytes(0, units.L3)), float64(max(run.Test.BlockSize, 1))
	}
	for i := range run.Streams {
		for _, t := range []*result.TCPSummary{run.Streams[i].TCP, run.Streams[i].RemoteTCP} {
			if t != nil && t.Last.MSS > 0 {
				mss = float64(t.Last.MSS)
			}
		}
	}
	segments := w.payload / mss
	low = w.payload + math.Min(w.packets, segments)*header
	high = w.payload + segments*(header+ethernet)
	if run.Test.Transport != "udp" {
		high += w.behind/mss*(header+ethernet) + control*w.seconds
		if e == d.Sender() {
			high += w.again * (mss + header + ethernet)
		}
	} else {
		high += control * w.seconds
	}
	for _, p := range run.Probes {
		n := float64(p.Sent)
		high += n * (float64(p.Size) + float64(units.UDPHeaders(v6, 0).Bytes(0, units.L3)) + ethernet)
	}
	return low, high
}

// wireCheck holds an interface's bytes against the test's: more is others' traffic, less means that
// the test went another way, or a counter is wrong.
func wireCheck(run *result.Run, d result.Direction, e result.End) result.Check {
	c := result.Check{Check: "interface-bytes", End: e}
	if conclude.Loopback(run) {
		c.Text = "Not compared with the interface: a loopback carries both directions."
		return c
	}
	w, ok := wireOf(run, d, e)
	if !ok || w.payload == 0 {
		c.Text = "The interface's counters of " + run.EndName(e) + " are not known."
		return c
	}
	low, high := w.expect(run, d, e)
	slack := 0.0
	if run.Test.Transport != "udp" {
		slack = inFlight(run, d)
	}
	way := "sent"
	if e == d.Receiver() {
		way = "received"
	}
	at := fmt.Sprintf("%s of %s %s", w.nic, run.EndName(e), way)
	switch {
	case w.bytes > high*(1+wireTolerance)+slack:
		extra := w.bytes - high
		c.Check, c.Result = "foreign-traffic", result.Inconclusive
		c.Text = fmt.Sprintf("%s %s beside the test, %s of all its bytes: other traffic.", at, units.BitRate(extra*8/max(w.seconds, 1e-9)+0.5), shareText(extra/w.bytes))
	case w.bytes < low*(1-wireTolerance)-slack:
		c.Result = result.Fail
		c.Text = fmt.Sprintf("%s only %s bytes where the test moved %s: it went another way, or a counter is wrong.", at, conclude.Grouped(int64(w.bytes)), conclude.Grouped(int64(low)))
	default:
		c.Result = result.Pass
		c.Text = fmt.Sprintf("%s %s bytes; the test accounts for %s to %s.", at, conclude.Grouped(int64(w.bytes)), conclude.Grouped(int64(low)), conclude.Grouped(int64(high)))
	}
	return c
}

func ipv6(run *result.Run) bool {
	for _, s := range run.Streams {
		if a, err := netip.ParseAddr(s.Remote.Host); err == nil {
			return a.Is6() && !a.Is4In6()
		}
	}
	return false
}

package diagnose

import (
	"math"
	"strings"
	"time"

	"github.com/fullbore-net/fullbore/internal/conclude"
	"github.com/fullbore-net/fullbore/internal/stats"
	"github.com/fullbore-net/fullbore/result"
)

// Signs that the planner and several rules look at.

// stuck reports that a stream was set up and next to nothing came through it.
func stuck(f *flow) bool {
	if f.run == nil || len(f.run.Streams) == 0 {
		return false
	}
	return f.nothing || f.err != nil && (f.err.Code == "no-data" || f.err.Code == "receive-timeout") || !f.arrived && f.rate == 0
}

// lossMatters reports losses that can be what holds a flow: more than a few in all.
func lossMatters(f *flow) bool {
	return f.ratioKnown && f.retransmits >= 3 && f.ratio >= 1e-5
}

// lossy is the flow whose losses were looked into: the one stream, else the fastest of
// several.
func (l *leg) lossy() *flow {
	if one := l.one(); one != nil && one.retransmits > 0 && lossMatters(one) {
		return one
	}
	if m := l.many(); m != nil && m.retransmits > 0 && lossMatters(m) {
		return m
	}
	return nil
}

// packetBits is a full packet on the wire.
const packetBits = 1500 * 8

// noise is how much the delay of small packets varies without a queue: on the empty path and
// at half the rate, whichever is quieter (p95), s. Hosts that share their processors with
// others wake late; what is within that is no queue.
func (l *leg) noise(c *Case) float64 {
	out := math.Inf(1)
	if p := c.Idle.probes; p != nil {
		way := p.Up
		if l.dir == result.Down {
			way = p.Down
		}
		if way != nil && way.PDV != nil && way.PDV.N >= 20 {
			out = way.PDV.P95
		}
	}
	if half := l.find("half"); half != nil && half.rise != nil && half.rise.N >= 20 {
		out = min(out, half.rise.P95)
	}
	if math.IsInf(out, 1) {
		return 0
	}
	return out
}

func (c *Case) leg(d result.Direction) *leg {
	if d == result.Down {
		return &c.Down
	}
	return &c.Up
}

// floors are the least delays of a queue that stands: of the typical packet a twentieth of
// the empty path's round trip, at its worst a quarter (a quarter of the bandwidth-delay
// product), and in any case more than the packets that are being sent and the hosts' noise.
func (f *flow) floors(c *Case) (typical, most float64) {
	unit := packetBits / max(f.wire(f.rate), 1)
	noise := c.leg(f.dir).noise(c)
	return max(0.0003, c.Idle.rtt/20, 1.5*unit, noise), max(0.001, c.Idle.rtt/4, 4*unit, 2*noise)
}

// queued reports that a queue stood under a flow's load. The typical packet counts since a
// burst at the start (slow start, a full bucket) fills any queue for a moment.
func queued(c *Case, f *flow) bool {
	typical, most, known := f.queue(c)
	t, m := f.floors(c)
	// A short queue that is full most of the time never gets to a quarter of the round trip.
	return known && (typical >= t && most >= m || typical >= 2*t && most >= m/2)
}

// unqueued reports that it is known that no queue stood: what nobody measured is no sign, and
// what a noisy host hides is none either.
func unqueued(c *Case, f *flow) bool {
	_, _, known := f.queue(c)
	noise := c.leg(f.dir).noise(c)
	return known && !queued(c, f) && noise <= max(0.002, c.Idle.rtt/4)
}

// delayless reports that packets were lost, or held to a rate, without any queue: no bottleneck
// of a line does that, since it is full before it drops. The typical packet waits less than for
// one packet to be sent, and but for a burst at the start none waits longer.
func delayless(c *Case, f *flow, burst bool) bool {
	if f.rise == nil {
		// Nothing answers probes (a plain peer): TCP's own round trips, and only where a burst
		// that went through says that the line is faster.
		typical, _, known := f.queue(c)
		return burst && known && unqueued(c, f) && typical <= 0.0002+packetBits/max(f.wire(f.rate), 1)
	}
	if f.rise.N < 20 || !unqueued(c, f) {
		return false
	}
	l := c.leg(f.dir)
	fastest := f.rate
	if b := l.best(); b != nil {
		fastest = max(fastest, b.rate) // the bottleneck sends its packets no slower than that
	}
	unit := packetBits / max(f.wire(fastest), 1)
	return f.rise.P50 <= 0.0002+unit/2 && (burst || f.rise.P95 <= 2*unit+l.noise(c))
}

// flat reports that several streams carry what one does.
func (l *leg) flat() bool {
	one, m := l.one(), l.many()
	return one != nil && m != nil && one.usable() && m.rate < (1+same)*one.rate
}

// filled reports that a single stream fills the path, whatever else may be said of its ends: a
// queue stands under it, and nothing that was changed carried more. Who is held by a window, a
// buffer or a processor keeps no queue full; a quota lets bursts of full speed through and is
// no such thing.
func filled(c *Case, l *leg) bool {
	one, best := l.one(), l.best()
	if one == nil || max(one.throttled[0], one.throttled[1]) >= throttledShare {
		return false
	}
	return one.usable() && l.flat() && queued(c, one) && best.rate < (1+moved)*one.rate
}

// carried is the largest rate of UDP that came through without loss, 0 when none did.
func carried(c *Case, l *leg) (most float64) {
	for _, d := range c.History {
		if d.Run == nil || !serves(&d, l.dir) || d.Run.Test.Transport != "udp" || strings.HasPrefix(d.Step.Name, "both") {
			continue
		}
		if u := conclude.LossOf(d.Run, l.dir); u != nil && u.Sent > 100 && u.Ratio < 1e-4 {
			most = max(most, conclude.HeadlineOf(d.Run, l.dir).BPS)
		}
	}
	return most
}

// slowReader reports that the receiver's window is full because its program does not read:
// several streams have several windows, and carried no more, though no queue stood.
func slowReader(c *Case, l *leg) bool {
	one, m := l.one(), l.many()
	return one != nil && m != nil && one.windowBound() && m.windowBound() && m.rate < (1+moved)*one.rate && unqueued(c, one)
}

// heldUnseen reports, where the sender's kernel does not tell what it waits for (a plain
// iperf3 sends), that the rate is about what this host's receive buffer allows.
func heldUnseen(c *Case, l *leg) bool {
	_, near := unseenWindow(c, l)
	return near
}

// unseenWindow is the bytes on the way of a flow whose sender does not tell, and whether
// that is what this host's largest receive window allows.
func unseenWindow(c *Case, l *leg) (window float64, near bool) {
	one := l.one()
	if one == nil || one.shares != nil || !one.usable() || c.Idle.rtt <= 0 || one.run.End != l.dir.Receiver() {
		return 0, false
	}
	window = one.rate / 8 * c.Idle.rtt
	if c.Facts.TCPRead == nil {
		return window, false
	}
	most := float64(c.Facts.TCPRead[2])
	return window, window >= 0.4*most && window <= 1.1*most
}

// plateau is the rate that a direction settled at with one stream, and its fastest row.
func plateau(l *leg) (rate, peak float64) {
	for _, f := range l.plain() {
		var late []float64
		rows, counted := f.rows()
		for i, r := range rows {
			if r.Stop-r.Start < rowLength.Seconds()/2 {
				continue
			}
			peak = max(peak, r.BPS)
			if i >= len(rows)/2 {
				late = append(late, r.BPS)
			}
		}
		if m, ok := stats.Median(late); ok {
			if !counted {
				m = min(m, f.rate) // a sender's rows have what its buffer took, too
			}
			rate = max(rate, m)
		}
	}
	return rate, peak
}

// errorOf is the code of the error of the last stage whose name ends so, "" without.
func (c *Case) errorOf(suffix string) string {
	code := ""
	for _, d := range c.History {
		if strings.HasSuffix(d.Step.Name, suffix) {
			code = ""
			if d.Err != nil {
				code = d.Err.Code
			}
		}
	}
	return code
}

// loopback reports that both ends are this machine.
func (c *Case) loopback() bool {
	run := c.first()
	return run != nil && conclude.Loopback(run)
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

package diagnose

import (
	"strings"
	"time"

	"github.com/fullbore-net/fullbore/internal/conclude"
	"github.com/fullbore-net/fullbore/internal/stats"
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

// stays reports that losses are as many at half the rate: errors, not congestion. Their
// number there must be one that chance does not make of a clean path.
func stays(half, full *flow) bool {
	return half.retransmits >= 3 && half.ratio >= 0.3*full.ratio
}

// vanishes reports the opposite, with as many segments as would have shown it.
func vanishes(half, full *flow) bool {
	if half.ratio >= 0.1*full.ratio && half.retransmits >= 3 {
		return false
	}
	segments := float64(half.retransmits)
	if half.ratio > 0 {
		segments /= half.ratio
	} else if half.mss > 0 {
		for _, s := range half.run.Sums {
			if s.Direction == half.dir && s.Sender != nil {
				segments = float64(s.Sender.Bytes) / half.mss
			}
		}
	}
	return segments*full.ratio >= 5 // so many were to be expected
}

// queued reports that a queue stood under a flow's load: there for the typical packet, and
// at its worst a quarter of the empty path's round trip. The typical one counts since a
// burst at the start (slow start, a full bucket) fills any queue for a moment.
func queued(c *Case, f *flow) bool {
	typical, most, known := f.queue(c)
	return known && typical >= max(0.0005, c.Idle.rtt/20) && most >= max(0.002, c.Idle.rtt/4)
}

// unqueued reports that it is known that no queue stood: what nobody measured is no sign.
func unqueued(c *Case, f *flow) bool {
	_, _, known := f.queue(c)
	return known && !queued(c, f)
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
		rows := f.rates()
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

package diagnose

import (
	"math"

	"github.com/fullbore-net/fullbore/internal/conclude"
	"github.com/fullbore-net/fullbore/internal/stats"
	"github.com/fullbore-net/fullbore/result"
)

// Losses compared. Errors of a hop take the same share of the packets whatever the rate
// and the number of streams; congestion takes none below the bottleneck's rate. Both are
// statements about ratios, so counts are compared by their confidence, never by a fixed
// number: three lost of three hundred say less than thirty of three thousand.

// counted is how many packets were sent at one setting and how many of them were lost.
type counted struct {
	lost    float64
	packets float64
	// runs is how many times something was lost, as far as the rows tell: segments that go
	// together (an overflow, a burst of errors) are one event, and chance counts events.
	runs float64
}

func (n counted) ratio() float64 { return n.lost / math.Max(n.packets, 1) }

func (n counted) plus(m counted) counted {
	return counted{lost: n.lost + m.lost, packets: n.packets + m.packets, runs: n.runs + m.runs}
}

// expected is how many events would be seen among packets if they were lost as they are
// here.
func (n counted) expected(packets float64) float64 {
	return n.runs / math.Max(n.packets, 1) * packets
}

// losses counts what a flow lost, by its sender's retransmissions.
func (f *flow) losses() counted {
	out := counted{lost: float64(f.retransmits)}
	if f.run == nil || !f.ratioKnown {
		return counted{}
	}
	if f.mss > 0 {
		for i := range f.run.Sums {
			if s := &f.run.Sums[i]; s.Direction == f.dir && s.Sender != nil {
				out.packets = float64(s.Sender.Bytes)/f.mss + out.lost
			}
		}
	}
	if out.packets == 0 && f.ratio > 0 {
		out.packets = out.lost / f.ratio
	}
	out.runs = f.events(out.lost)
	return out
}

// events is in how many rows of the sender something was lost, which bounds in how many events;
// what was lost where no rows tell.
func (f *flow) events(lost float64) float64 {
	rows, hit := f.hits()
	if rows == 0 {
		return lost
	}
	return math.Min(hit, lost)
}

// hits counts the sender's rows, and those of them in which something was lost.
func (f *flow) hits() (rows, hit float64) {
	if f.run == nil {
		return 0, 0
	}
	for i := range f.run.Rows {
		r := &f.run.Rows[i]
		if r.End != f.dir.Sender() || r.Omitted || r.Partial {
			continue
		}
		for _, s := range r.Sums {
			if s.Direction == f.dir && s.Retransmits != nil {
				rows++
				if *s.Retransmits > 0 {
					hit++
				}
			}
		}
	}
	return rows, hit
}

// clustered is the mean number of packets that were lost together, where they came together more
// than chance does: of rows that lose k on average, chance spares exp(−k). 1 = they did not, or too
// few were lost to tell.
func (f *flow) clustered() float64 {
	rows, hit := f.hits()
	lost := float64(f.retransmits)
	if rows == 0 || hit == 0 || lost < 8 || hit > 0.6*rows*(1-math.Exp(-lost/rows)) {
		return 1
	}
	return lost / hit
}

// probesOf counts the small packets beside a flow, or of the empty path.
func probesOf(p *result.Probes, dir result.Direction) counted {
	if p == nil || p.Kind != "udp-echo" || p.LostUp == nil || p.LostDown == nil || p.Answered == 0 {
		return counted{}
	}
	lost := float64(*p.LostUp)
	if dir == result.Down {
		lost = float64(*p.LostDown)
	}
	return counted{lost: lost, packets: float64(p.Sent), runs: lost}
}

// datagramLosses counts the UDP stage's, without those of the receiver's own socket. Above what
// a stream gets it is no test of errors where each flow is held to that: then the loss is the
// limit's, and is left out.
func (l *leg) datagramLosses() counted {
	u, one := udpLoss(l), l.one()
	if u == nil || u.Sent == 0 {
		return counted{}
	}
	if one != nil && one.usable() && u.Ratio > 0.1 && l.udp.rate < 1.25*one.rate {
		return counted{}
	}
	out := counted{lost: float64(networkLost(u)), packets: float64(u.Sent)}
	out.runs = out.lost
	if p := periodsOf(l); p != nil && p.Runs > 0 {
		out.runs = math.Min(out.lost, float64(p.Runs))
	}
	return out
}

// below counts what was lost at no more than half of what the path is known to carry: TCP
// paced, the UDP stage, the small packets beside them.
func (l *leg) below() (n counted, known bool) {
	half := l.find("half")
	if half != nil && half.ratioKnown && half.usable() {
		n, known = half.losses().plus(probesOf(half.probes, l.dir)), true
	}
	if u := l.datagramLosses(); u.packets > 0 {
		n, known = n.plus(u), true
	}
	return n, known
}

// few is what is left when losses are gone: a tenth.
const few = 0.1

// lossesStay reports that what a flow lost is lost below it, too: even the least that the
// count there allows is more than a tenth of it, and no other setting of the direction
// contradicts.
func (l *leg) lossesStay(f *flow) bool {
	full := f.losses()
	n, known := l.below()
	if f.streams > 1 {
		n = l.datagramLosses() // several paced streams meet, and overflow a short queue
		if half := l.find("half"); half != nil {
			n = n.plus(probesOf(half.probes, l.dir))
		}
	}
	if !known || full.packets == 0 || n.packets == 0 {
		return false
	}
	if lower(n.lost, n.packets) < few*full.ratio() || n.lost < 2 {
		return false
	}
	return !l.contradicted(n) && !l.slowerSpared()
}

// slowerSpared reports that the paced stream, the slowest of all, lost nothing where the datagrams'
// losses would have shown: then it is the rate (or a sender that caught up after it was not
// scheduled, into a short queue) that loses.
func (l *leg) slowerSpared() bool {
	half, u := l.find("half"), l.datagramLosses()
	if half == nil || !half.ratioKnown || !half.usable() || u.packets == 0 {
		return false
	}
	n := half.losses().plus(probesOf(half.probes, l.dir))
	return u.expected(n.packets) >= sure && n.lost <= few*u.ratio()*n.packets
}

// lossesVanish reports that what a flow lost is not lost below it, where chance would have
// shown several events.
func (l *leg) lossesVanish(f *flow) bool {
	full := f.losses()
	n, known := l.below()
	if !known || full.lost < 3 || full.packets == 0 {
		return false
	}
	gone := func(n counted) bool {
		return full.expected(n.packets) >= enough && n.lost <= few*full.ratio()*n.packets
	}
	if gone(n) {
		return true
	}
	// Half of what several streams carry may be more than what one does, and overflow a short queue,
	// too: then the paced stream decides, unless the datagrams were lost as often as the stream's packets.
	half, u := l.find("half"), l.datagramLosses()
	if half == nil || !half.ratioKnown || !half.usable() || u.packets == 0 || l.udp.rate <= (1+moved)*f.rate {
		return false
	}
	_, most, ok := stats.ClopperPearson(int64(u.lost), int64(u.packets), 0.95)
	return ok && most < full.ratio() && gone(half.losses().plus(probesOf(half.probes, l.dir)))
}

// enough is how many events chance hides once in twenty times (Poisson, exp(−3)).
const enough = 3

// contradicted reports that some setting of the direction should have lost packets at this
// ratio and did not: errors do not choose. A paced sum of several streams overflows a short
// queue when they meet; a single paced flow does not.
func (l *leg) contradicted(n counted) bool {
	return l.sparedOf(n)
}

// spared reports that a single flow of the direction, one stream or paced UDP, lost nothing
// where errors as those of f would have shown: f's losses come of its many streams.
func (l *leg) spared(f *flow) bool { return l.sparedOf(f.losses()) }

func (l *leg) sparedOf(n counted) bool {
	events := n.runs / math.Max(n.packets, 1)
	spared := func(m counted) bool {
		return m.packets*events >= sure && m.lost <= few*n.ratio()*m.packets
	}
	if one := l.one(); one != nil && one.usable() && one.ratioKnown && spared(one.losses()) {
		return true
	}
	return spared(l.datagramLosses())
}

// sure is how many events chance hides once in a hundred times (exp(−4.6)).
const sure = 4.6

// lower is the least ratio that a count allows, at 95 %.
func lower(lost, packets float64) float64 {
	low, _, ok := stats.ClopperPearson(int64(math.Min(lost, packets)), int64(packets), 0.95)
	if !ok {
		return 0
	}
	return low
}

// belowItsShare reports that losses hold a single stream far under what the direction
// carries, though no queue stood: a stream that alone fills a bottleneck, however short its
// buffer, keeps 0.7 of it after a loss (RFC 9438, β) and so gets no less than that once it
// has begun to lose regularly. Three events in a run are regular.
func belowItsShare(c *Case, l *leg) bool {
	one, best := l.one(), l.best()
	if one == nil || best == nil || !one.usable() || !unqueued(c, one) || l.lossesVanish(one) || l.slowerSpared() {
		return false
	}
	return one.losses().runs >= 3 && lossMatters(one) && best.rate > 2*one.rate
}

// lossHolds reports that what is lost below a stream, too, is enough to hold it where it is, though a
// queue stands (that of others' bursts may): Mathis' rate for that loss, at the empty path's round
// trip, is no more than half above the stream's.
func (c *Case) lossHolds(l *leg, f *flow) bool {
	n, known := l.below()
	if !known || !l.lossesStay(f) || !conclude.LossBased(f.cc) || f.mss <= 0 || c.Idle.rtt <= 0 || f.rate <= 0 {
		return false
	}
	most := float64(f.streams) * conclude.Mathis(int64(f.mss), int64(c.Idle.rtt*1e6), n.ratio())
	return most <= 1.5*f.rate
}

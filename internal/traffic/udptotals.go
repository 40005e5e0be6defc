package traffic

import (
	"fmt"

	"github.com/fullbore-net/fullbore/internal/datagram"
	"github.com/fullbore-net/fullbore/internal/delay"
	"github.com/fullbore-net/fullbore/internal/osnet"
	"github.com/fullbore-net/fullbore/result"
)

// udpMark is one sample of a UDP flow beyond its bytes; everything in it only grows,
// but the counts' CompatLost.
type udpMark struct {
	sent                             int64 // sender, datagrams
	refused, unsent, blocked, stalls int64 // likewise

	counts datagram.Counts // receiver
	got    received
	jitter float64
	drops  int64 // as the socket tells, 32 bits that wrap; −1 = not known
}

// more reports whether anything happened since p.
func (m *udpMark) more(p *udpMark) bool {
	return m.counts != p.counts || m.got != p.got || m.refused != p.refused || m.unsent != p.unsent
}

// udpSample reads the flow; at is the sample's time.
func (s *stream) udpSample(at int64) mark {
	m := mark{at: at, u: &udpMark{drops: -1}}
	if u := s.tx; u != nil {
		m.bytes = s.ctr.bytes.Load()
		m.u.sent = s.sentPackets(m.bytes)
		m.u.refused, m.u.unsent = u.refused.Load(), u.unsent.Load()
		m.u.blocked, m.u.stalls = u.blocked.Load(), u.stalls.Load()
		return m
	}
	s.rx.mu.Lock()
	s.rx.look(s, &m)
	s.rx.mu.Unlock()
	if osnet.Capabilities().Meminfo {
		if n, err := s.Conn.SocketDrops(); err == nil {
			m.u.drops = n
		}
	}
	return m
}

// look fills m; the caller holds mu.
func (u *udpReceiver) look(s *stream, m *mark) {
	m.bytes = s.ctr.bytes.Load()
	m.u.got = u.got
	if !u.bare {
		m.u.counts, m.u.jitter = u.acc.Counts(), u.jitter()
	}
}

// markDatagrams is sampleAll at the end of the omitted part: the sample of each flow is
// the moment from which its account and its delays are of the measured time.
func (e *Engine) markDatagrams() ([]mark, []reading) {
	marks := make([]mark, len(e.streams))
	for i, s := range e.streams {
		if s.tx != nil {
			marks[i] = s.udpSample(e.now())
			continue
		}
		marks[i] = e.markReceiver(s)
	}
	return marks, make([]reading, len(e.streams))
}

func (e *Engine) markReceiver(s *stream) mark {
	u := s.rx
	var fresh *delay.Meter
	if u.meter != nil {
		fresh = delay.NewMeter(e.samples())
	}
	m := s.udpSample(0)
	u.mu.Lock()
	u.look(s, &m)
	m.at = e.now()
	if !u.bare {
		u.acc.Mark()
	}
	old := u.meter
	u.meter, u.lean = fresh, leanJitter{}
	u.mu.Unlock()
	if old != nil && e.cfg.Interval > 0 {
		u.omitted = old.Interval() // of the row that ends now
	}
	return m
}

func ptr[T any](v T) *T { return &v }

// udpRow adds what a row of datagrams has from p to m.
func (e *Engine) udpRow(s *stream, m, p *mark, si *result.StreamInterval) {
	if s.Send {
		si.Packets = ptr(m.u.sent - p.u.sent)
		si.UDP = &result.UDPInterval{Refused: m.u.refused - p.u.refused, Unsent: m.u.unsent - p.u.unsent}
		return
	}
	if s.rx.bare {
		si.Packets = ptr(m.u.got.bare - p.u.got.bare)
		return
	}
	c := m.u.counts.Since(p.u.counts)
	si.Packets = ptr(m.u.counts.Highest - p.u.counts.Highest)
	// What an earlier row took for lost and came after all makes up for later loss, so that
	// no row is negative.
	lost := m.u.counts.CompatLost - p.u.counts.CompatLost + s.carry
	s.carry = min(lost, 0)
	si.Lost = ptr(max(lost, 0))
	si.OutOfOrder = ptr(c.CompatOutOfOrder)
	si.Jitter = ptr(m.u.jitter)
	si.UDP = &result.UDPInterval{
		Duplicates: c.Duplicates, Reordered: c.Reordered, SocketDrops: dropsSince(m.u.drops, p.u.drops),
	}
}

// dropsSince is the difference of two readings of a 32-bit counter; nil when one is not
// known.
func dropsSince(now, then int64) *int64 {
	if now < 0 || then < 0 {
		return nil
	}
	return ptr(int64(uint32(now) - uint32(then)))
}

// udpDetails adds the distributions to the rows, with at most detailFlows flows.
func (e *Engine) udpDetails(rows []result.StreamInterval) {
	for i, s := range e.streams {
		switch {
		case s.tx != nil && s.tx.ownsLate:
			rows[i].UDP.Late = s.tx.late.takeRow(e.ax.measured)
		case s.rx != nil && s.rx.omitted != nil:
			rows[i].UDP.PDV, s.rx.omitted = s.rx.omitted, nil
		case s.rx != nil && s.rx.meter != nil:
			rows[i].UDP.PDV = s.rx.meter.Interval()
		}
	}
}

// sumDatagrams adds up the datagrams of sum's direction; jitter is the mean.
func sumDatagrams(sum *result.IntervalSum, streams []*stream, rows []result.StreamInterval) {
	var packets, lost, disorder, n int64
	var jitter float64
	for i, s := range streams {
		r := &rows[i]
		if s.Direction != sum.Direction || r.Packets == nil {
			continue
		}
		n++
		packets += *r.Packets
		if !s.Send && !s.e.cfg.UDP.Bare {
			lost, disorder, jitter = lost+*r.Lost, disorder+*r.OutOfOrder, jitter+*r.Jitter
		}
	}
	if n == 0 {
		return
	}
	sum.Packets = &packets
	if !sum.Sender && !streams[0].e.cfg.UDP.Bare {
		sum.Lost, sum.OutOfOrder, sum.Jitter = &lost, &disorder, ptr(jitter/float64(n))
	}
}

// udpTotals fills in f what the flow moved since base. Loss periods and delays only come
// with the final ones: they take a while, for which the receiver would stand still.
func (s *stream) udpTotals(base mark, f *FlowTotal, details, final bool) {
	if s.tx != nil {
		s.sentTotals(base, f, details)
	} else {
		s.receivedTotals(base, f, details, final)
	}
}

// sentPackets is how many datagrams a flow has sent whose count is bytes.
func (s *stream) sentPackets(bytes int64) int64 {
	if s.e.cfg.Message == RoundTrip {
		return s.tx.sends.Load()
	}
	return bytes / int64(s.e.cfg.BlockSize)
}

func (s *stream) sentTotals(base mark, f *FlowTotal, details bool) {
	u, sent := s.tx, s.sentPackets(base.bytes+f.Total.Bytes)
	f.Total.Packets = ptr(sent)
	f.Total.OmittedPackets = ptr(base.u.sent)
	if !details {
		return
	}
	out := &result.UDPSent{
		Packets: sent - base.u.sent, Bytes: f.Total.Bytes,
		Refused: u.refused.Load() - base.u.refused, Unsent: u.unsent.Load() - base.u.unsent,
		BlockedNS: u.blocked.Load() - base.u.blocked, Stalls: u.stalls.Load() - base.u.stalls,
		PlannedBurst: u.planned.Load(), LargestBurst: u.largest[1].Load(),
		Segment: u.segment.Load(),
	}
	if s.e.cfg.Message == RoundTrip { // the answers are in the total
		out.Bytes = out.Packets * int64(s.e.cfg.BlockSize)
	}
	if s.e.rate.Load() > 0 || s.e.cfg.Spacing > 0 {
		out.Late = u.late.total()
	}
	f.UDP = &result.UDPStream{Sent: out}
}

func (s *stream) receivedTotals(base mark, f *FlowTotal, details, final bool) {
	m := s.udpSample(0)
	if s.rx.bare {
		f.Total.Packets = ptr(m.u.got.bare)
		f.Total.OmittedPackets = ptr(base.u.got.bare)
		return
	}
	first := int64(s.e.cfg.UDP.FirstSeq) - 1 // the stream's own zero
	all, c := m.u.counts, m.u.counts.Since(base.u.counts)
	f.Total.Packets = ptr(all.Highest - first)
	f.Total.OmittedPackets = ptr(base.u.counts.Highest - first)
	f.Total.Lost = ptr(all.CompatLost)
	f.Total.OmittedLost = ptr(min(base.u.counts.CompatLost, all.CompatLost))
	f.Total.OutOfOrder = ptr(c.CompatOutOfOrder)
	f.Total.Jitter = ptr(m.u.jitter)
	if !details {
		return
	}
	got := m.u.got
	out := &result.UDPReceived{
		Packets: c.First, Bytes: got.distinct - base.u.got.distinct, Duplicates: c.Duplicates,
		Reordered: c.Reordered, MaxExtent: c.MaxExtent, Late: c.Late,
		Foreign: c.Foreign + got.foreign - base.u.got.foreign, Highest: all.Highest,
		Early: got.head - base.u.got.head, Tail: got.tail, Coalesced: got.bytes > 0, LargestRead: got.largest,
		SocketDrops: dropsSince(m.u.drops, base.u.drops),
	}
	switch {
	case got.kernel > 100*got.user:
		out.Stamps = "kernel"
	case got.user > 0:
		out.Stamps = "user"
	}
	out.CompatJitter = m.u.jitter
	if final {
		s.rx.mu.Lock()
		out.Periods = s.rx.acc.Periods(0)
		if s.rx.meter != nil {
			s.rx.meter.Result(out)
		}
		s.rx.mu.Unlock()
	}
	f.UDP = &result.UDPStream{Received: out}
}

// datagramPath names how datagrams were really moved, as far as the test has come.
func (e *Engine) datagramPath(p *result.DataPath) {
	tx, rx := "", ""
	for _, s := range e.streams {
		if u := s.tx; u != nil {
			p.Tx = "copy"
			switch {
			case u.segment.Load() > 1:
				tx = "gso"
			case u.batched.Load() && tx != "gso":
				tx = "sendmmsg"
			case tx == "":
				tx = "plain"
			}
			continue
		}
		p.Rx = "copy"
		s.rx.mu.Lock()
		got := s.rx.got
		s.rx.mu.Unlock()
		switch {
		case got.bytes > 0:
			rx = "gro"
		case e.u.fastRx && rx == "":
			rx = "recvmmsg"
		case rx == "":
			rx = "plain"
		}
		p.Uncut = p.Uncut || got.uncut()
	}
	switch {
	case tx != "" && rx != "":
		p.Batch = tx + "/" + rx
	default:
		p.Batch = tx + rx
	}
}

// uncut reports that a message held more than a card's receive offload is likely to
// have put together: it is taken for a super-packet that nobody cut, as on loopback and
// veth. A fast card whose driver merges as much looks the same, so it is a doubt about
// the cost per datagram, and never about their number.
func (g *received) uncut() bool {
	return g.bytes > 0 && (g.largest > 16 || g.bytes > 65535/2)
}

// noticeStamps says that arrivals are timed in user space.
func (e *Engine) noticeStamps() {
	if !e.noticed("stamps-user") {
		e.notice("stamps-user", result.Info, "arrivals are timed by this program: this system does not stamp datagrams, so jitter and delay variation include its own scheduling")
	}
}

// buildDatagrams is build for UDP.
func (e *Engine) buildDatagrams() error {
	if err := e.prepareUDP(); err != nil {
		return err
	}
	rest, err := e.messages(e.streams)
	if err == nil {
		rest, err = e.buildUDP(rest)
	}
	if err != nil {
		return err
	}
	for i, s := range rest {
		e.movers = append(e.movers, newUDPPortable(s, i))
		if e.path.Worker == "" {
			e.path.Worker = "goroutine"
		}
		if s.Send && e.cfg.Bitrate > 0 && e.cfg.UDP.Pacing == "" && !e.noticed("pacing-coarse") {
			e.notice("pacing-coarse", result.Info, "bursts hold what falls into 1 ms: the timers here are no finer")
		}
	}
	if e.cfg.Interval > 0 && e.thin() {
		e.notice("details-thinned", result.Info, fmt.Sprintf(
			"with more than %d streams intervals carry no delays and bursts, and the totals the accounts of the %d slowest only", detailFlows, slowFlows))
	}
	return nil
}

package iperf3

import (
	"fmt"
	"maps"

	"github.com/fullbore-net/fullbore/internal/datagram"
	"github.com/fullbore-net/fullbore/internal/proto/ext"
	"github.com/fullbore-net/fullbore/internal/traffic"
	"github.com/fullbore-net/fullbore/result"
)

// What the two ends tell each other about UDP streams, and what follows from both
// (spec §8.1, §9, §10; M-UDP).

// datagramResult puts a UDP flow's totals into the entry that iperf3 knows: packets and
// errors with their omitted parts (spec §9).
func datagramResult(s *StreamResult, f traffic.FlowTotal) {
	t := f.Total
	if t.Packets == nil {
		return
	}
	s.Packets, s.OmittedPackets = *t.Packets, value(t.OmittedPackets)
	s.Errors, s.OmittedErrors = value(t.Lost), value(t.OmittedLost)
	if t.Jitter != nil {
		s.Jitter = *t.Jitter
	}
}

func value(p *int64) int64 {
	if p == nil {
		return 0
	}
	return *p
}

// echo puts the client's jitter and loss into the server's entries of what it sent, as
// iperf3's do: it merges the client's results before it writes its own (spec §10.4).
func echo(r *Results, own traffic.Totals, other *Results) {
	if other == nil {
		return
	}
	told := make(map[int]StreamResult, len(other.Streams))
	for _, s := range other.Streams {
		told[s.ID] = s
	}
	for i := range r.Streams {
		if t, ok := told[r.Streams[i].ID]; ok && i < len(own.Flows) && own.Flows[i].Send {
			r.Streams[i].Jitter, r.Streams[i].Errors, r.Streams[i].OmittedErrors = t.Jitter, t.Errors, t.OmittedErrors
		}
	}
}

// correctTotals counts the lost tail into this end's receiving flows once the sender has
// told how many it sent: gaps alone do not show what is missing at the end (field case
// F02).
func correctTotals(own *traffic.Totals, other *Results) {
	if other == nil {
		return
	}
	told := make(map[int]StreamResult, len(other.Streams))
	for _, s := range other.Streams {
		told[s.ID] = s
	}
	for i := range own.Flows {
		f := &own.Flows[i]
		s, ok := told[f.ID]
		if !ok || f.Send || f.Total.Packets == nil {
			continue
		}
		var rec *result.UDPReceived
		if f.UDP != nil {
			rec = f.UDP.Received
		}
		if l := lossOf(s.Packets, &f.Total, rec); l != nil {
			correct(&f.Total, *l)
		}
	}
}

// lossOf compares what the sender counted (with its omitted part) with a receiver's
// account; nil when the sender's number makes no sense. The receiver's omitted part is
// taken off both, so that the ends' different clocks of it do not matter. Without an
// account (rec is nil) the receiver's total tells: its highest number and the gaps below.
func lossOf(sent int64, receiver *result.Total, rec *result.UDPReceived) *result.UDPLoss {
	base := value(receiver.OmittedPackets)
	c := datagram.Counts{Base: base}
	if rec != nil {
		c.First, c.Duplicates, c.Reordered, c.Late = rec.Packets, rec.Duplicates, rec.Reordered, rec.Late
		c.MaxExtent, c.Highest = rec.MaxExtent, max(rec.Highest, base)
	} else {
		gaps := max(0, value(receiver.Lost)-value(receiver.OmittedLost))
		c.Highest = max(value(receiver.Packets), base)
		c.First = max(0, c.Highest-base-gaps)
	}
	if sent < c.Highest {
		return nil
	}
	l := datagram.Loss(sent-base, c)
	return &l
}

// correct makes a receiver's totals say what l does, in iperf3's terms.
func correct(t *result.Total, l result.UDPLoss) {
	packets, lost := value(t.OmittedPackets)+l.Sent, value(t.OmittedLost)+l.Lost
	t.Packets, t.Lost = &packets, &lost
}

// mergeUDP completes the streams, which merge has made, with what UDP adds: the other
// end's counts, both accounts and the loss that follows from them. It returns what a
// reader must know of them.
func mergeUDP(e result.End, streams []result.Stream, own traffic.Totals, other *Results, drops map[result.End]hostDrops) []result.Notice {
	told := map[int]StreamResult{}
	more := map[int]StreamExt{}
	fullbore := false
	if other != nil {
		for _, s := range other.Streams {
			told[s.ID] = s
		}
		if other.Ext != nil {
			fullbore = true
			for _, s := range other.Ext.Streams {
				more[s.ID] = s
			}
		}
	}
	var uncounted tails
	for i := range streams {
		s := &streams[i]
		u := &result.UDPStream{}
		if i < len(own.Flows) && own.Flows[i].UDP != nil {
			u.Sent, u.Received = own.Flows[i].UDP.Sent, own.Flows[i].UDP.Received
		}
		if t, ok := told[s.ID]; ok {
			tellDatagrams(e, s, t, more[s.ID])
			adopt(e, s, u, more[s.ID].UDP)
		}
		plain := !fullbore && s.Direction.Sender() == e // the receiver is
		judge(s, u, plain, drops[s.Direction.Receiver()])
		if plain && u.Loss != nil {
			uncounted.add(u.Loss)
		}
		if *u != (result.UDPStream{}) {
			s.UDP = u
		}
	}
	return uncounted.notices()
}

// tellDatagrams fills the other end's total of a stream, which merge has made of t.
func tellDatagrams(e result.End, s *result.Stream, t StreamResult, x StreamExt) {
	mine, theirs := s.Sender, s.Receiver
	receives := s.Direction.Sender() == e // the other end does
	if !receives {
		mine, theirs = s.Receiver, s.Sender
	}
	if theirs == nil {
		return
	}
	packets, omitted := t.Packets, t.OmittedPackets
	if !t.HasOmitted && mine != nil { // before 3.14: taken to be ours (spec §10.3)
		omitted = min(value(mine.OmittedPackets), packets)
	}
	theirs.Packets, theirs.OmittedPackets = &packets, &omitted
	if !receives {
		return
	}
	lost, jitter := t.Errors, t.Jitter
	theirs.Lost, theirs.Jitter, theirs.OutOfOrder = &lost, &jitter, x.OutOfOrder
	if t.HasOmitted {
		l := t.OmittedErrors
		theirs.OmittedLost = &l
	}
}

// adopt takes the other end's half of a stream's account, if it can be one.
func adopt(e result.End, s *result.Stream, u *result.UDPStream, x *result.UDPStream) {
	switch {
	case x == nil:
	case s.Direction.Sender() == e:
		if r := x.Received; r != nil && min(r.Packets, r.Bytes, r.Duplicates, r.Reordered, r.Late, r.Highest, r.Tail, r.Early) >= 0 {
			r.Stamps = ext.Printable(r.Stamps)
			u.Received = r
		}
	default:
		if x.Sent != nil && min(x.Sent.Packets, x.Sent.Bytes, x.Sent.Refused, x.Sent.Unsent) >= 0 {
			u.Sent = x.Sent
		}
	}
}

// judge says what was lost and where, as far as both ends' words allow. plain = the
// receiver is an iperf3: what it reports of itself stays.
func judge(s *result.Stream, u *result.UDPStream, plain bool, host hostDrops) {
	if s.Sender == nil || s.Sender.Packets == nil || s.Receiver == nil || s.Receiver.Packets == nil {
		return
	}
	l := lossOf(*s.Sender.Packets, s.Receiver, u.Received)
	if l == nil {
		return
	}
	u.Loss = l
	if rec := u.Received; rec != nil {
		datagram.Attribute(l, rec.SocketDrops, rec.Coalesced, host.softnet, host.nic)
	} else {
		datagram.Attribute(l, nil, false, host.softnet, host.nic)
	}
	if plain && l.Tail > 0 { // lost, or not yet read when it stopped counting
		most := l.Lost
		l.Network, l.Attribution = &most, datagram.Bounded
	}
	// Where nothing arrived, that is all of it also at an iperf3, not "0 of 0".
	if !plain || l.Lost == l.Sent {
		correct(s.Receiver, *l)
	}
}

// tails sums up what a plain receiver never counted.
type tails struct{ sent, tail int64 }

func (t *tails) add(l *result.UDPLoss) {
	t.sent += l.Sent
	t.tail += l.Tail
}

func (t *tails) notices() []result.Notice {
	if t.tail == 0 {
		return nil
	}
	return []result.Notice{{
		Code: "tail-uncounted", Level: result.Warn,
		Text: fmt.Sprintf("the last %d of %d datagrams never showed in the receiver's count: they were lost, or it stopped counting first (iperf3 cannot tell); they count as lost here", t.tail, t.sent),
	}}
}

// hostDrops are what a host dropped before its sockets over the measured time; nil = not known.
type hostDrops struct{ softnet, nic *int64 }

// addDrops adds up one row's counters of an end. e.mu is held.
func (e *emitter) addDrops(end result.End, h *result.HostSample) {
	if h == nil {
		return
	}
	d := e.drops[end]
	if d.softnet, d.nic = plus(d.softnet, softnetDrops(h)), plus(d.nic, nicDrops(h)); d != (hostDrops{}) {
		e.drops[end] = d
	}
}

// plus adds b to a, where unknown is nothing: rows without a counter do not hide the others.
func plus(a, b *int64) *int64 {
	if a == nil || b == nil {
		if a == nil {
			return b
		}
		return a
	}
	sum := *a + *b
	return &sum
}

func softnetDrops(h *result.HostSample) *int64 {
	if h.Softnet == nil {
		return nil
	}
	n := h.Softnet.Dropped
	return &n
}

func nicDrops(h *result.HostSample) *int64 {
	if h.NIC == nil {
		return nil
	}
	n := h.NIC.RxMissed + h.NIC.RxDropped
	return &n
}

// hostDrops returns what both ends' rows have told so far.
func (e *emitter) hostDrops() map[result.End]hostDrops {
	e.mu.Lock()
	defer e.mu.Unlock()
	return maps.Clone(e.drops)
}

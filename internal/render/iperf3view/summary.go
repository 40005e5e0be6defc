package iperf3view

import "github.com/fullbore-net/fullbore/result"

// Group is the closing report of one direction.
type Group struct {
	Direction result.Direction
	Sends     bool // this end sends
	Streams   []Total
	Sum       Total
}

// Total is one line pair of the closing report: a stream's or a sum's.
type Total struct {
	Socket   int // 0 for a sum
	Sent     Side
	Received Side
	// Retransmits is nil where iperf3 shows none: the sender has no count, or this end
	// is a server that received.
	Retransmits *int64
	// TCP holds the extremes that go with Retransmits, zeros when the sender's kernel
	// is the other end's: they are not part of the exchanged results. Never in a sum.
	TCP  result.TCPSummary
	UDP  *Datagram // of the receiving end; nil unless the run uses datagrams
	Disk *Disk
	// SenderPackets is the sending end's datagram count without the omitted ones, 0
	// when unknown; UDP.Packets is the receiving end's.
	SenderPackets int64
}

// Side is one end's count.
type Side struct {
	End     float64 // s
	Seconds float64 // as the JSON says it; see Received
	Bytes   int64
	Rate    float64 // bytes per second
}

// Disk is a file transfer's figures.
type Disk struct {
	Size            int64
	PercentSent     int
	PercentReceived int
	Name            string
}

// Complete reports whether iperf3 would print a closing report for r: totals exist
// and the test was not cut off by a fault. Of the broken tests only those that one end
// was told to stop have one (src/iperf_api.c, iperf_got_sigend; iperf_client_api.c
// and iperf_server_api.c, states CLIENT_TERMINATE and SERVER_TERMINATE).
func Complete(r *result.Run) bool {
	return r.Finished() && (r.Err == nil || Stopped(r.Err))
}

// clock holds the two times that iperf3 uses for a whole closing report: those of the
// first stream.
type clock struct{ sent, received, own float64 }

// clockOf follows iperf_print_results: the first stream says how long each end ran.
// In a bidirectional run the other direction's rows are printed with the same two
// times, though there the roles are swapped.
func clockOf(r *result.Run) clock {
	if len(r.Streams) == 0 {
		return clock{}
	}
	s := r.Streams[0]
	mine, theirs := s.Sender, s.Receiver
	sends := Sends(r, s.Direction)
	if !sends {
		mine, theirs = theirs, mine
	}
	var c clock
	if mine != nil {
		c.own = Secs(Micros(mine.End))
	}
	other := c.own
	if theirs != nil && theirs.End > 0 && r.End != result.Server {
		// The other end's time came as text with six decimals.
		other = float64(Micros(theirs.End)) / 1e6
	}
	if sends {
		c.sent, c.received = c.own, other
	} else {
		c.sent, c.received = other, c.own
	}
	return c
}

// Summary computes the closing report, Up first. A server shows only what it did
// itself: in iperf3 it reports before the results are exchanged.
func Summary(r *result.Run) []Group {
	c := clockOf(r)
	var out []Group
	for _, d := range Directions(r) {
		g := Group{Direction: d, Sends: Sends(r, d)}
		retrans := HasRetransmits(r, d)
		for i := range r.Streams {
			if s := &r.Streams[i]; s.Direction == d {
				g.Streams = append(g.Streams, total(r, s, c, retrans))
			}
		}
		g.Sum = addUp(g.Streams, c)
		if retrans && g.Sum.Retransmits == nil {
			g.Sum.Retransmits = new(int64)
		}
		if Datagrams(r) && g.Sum.UDP == nil {
			g.Sum.UDP = &Datagram{}
		}
		out = append(out, g)
	}
	return out
}

// HasRetransmits reports whether the closing rows of direction d carry retransmits.
func HasRetransmits(r *result.Run, d result.Direction) bool {
	if Datagrams(r) {
		return false
	}
	sends := Sends(r, d)
	if r.End == result.Server && !sends {
		return false
	}
	if Bidirectional(r) { // this end's ability decides for both directions
		d, sends = direction(r.End, true), true
	}
	if sends && r.Wire != nil && r.Wire.HasRetrans {
		return true
	}
	for _, s := range r.Streams {
		if s.Direction == d && s.Sender != nil && s.Sender.Retransmits != nil {
			return true
		}
	}
	return false
}

func total(r *result.Run, s *result.Stream, c clock, retrans bool) Total {
	sends := Sends(r, s.Direction)
	snd, rcv := s.Sender, s.Receiver
	if r.End == result.Server { // its report never has the other half
		if sends {
			rcv = nil
		} else {
			snd = nil
		}
	}
	t := Total{Socket: s.Socket}
	if snd != nil {
		t.Sent.Bytes = snd.Bytes
		t.SenderPackets = val(snd.Packets) - val(snd.OmittedPackets)
	}
	if rcv != nil {
		t.Received.Bytes = rcv.Bytes
	}
	t.sides(c)
	if retrans {
		var n int64
		if snd != nil {
			n = val(snd.Retransmits)
		}
		t.Retransmits = &n
		if s.TCP != nil && (sends || Bidirectional(r)) {
			t.TCP = *s.TCP
		}
	}
	if Datagrams(r) {
		t.UDP = datagrams(rcv, t.SenderPackets)
	}
	if s.Disk != nil {
		t.Disk = &Disk{
			Size: s.Disk.Size, Name: s.Disk.Name,
			PercentSent: share(t.Sent.Bytes, s.Disk.Size), PercentReceived: share(t.Received.Bytes, s.Disk.Size),
		}
	}
	return t
}

// sides fills the times and rates. In the JSON the receiver's "seconds" are this
// end's time, whatever "end" says.
func (t *Total) sides(c clock) {
	t.Sent.End, t.Sent.Seconds = c.sent, c.sent
	t.Received.End, t.Received.Seconds = c.received, c.own
	t.Sent.Rate = rate(t.Sent.Bytes, c.sent)
	t.Received.Rate = rate(t.Received.Bytes, c.received)
}

// datagrams is what the receiving end says of a UDP stream. The loss ratio is over
// what was sent; where that is unknown (a server's own view) over what the receiver
// counts. There iperf3 says 0 % beside the lost datagrams (field case F05).
func datagrams(rcv *result.Total, sent int64) *Datagram {
	u := &Datagram{}
	if rcv == nil {
		return u
	}
	u.Packets = val(rcv.Packets) - val(rcv.OmittedPackets)
	u.Lost = val(rcv.Lost) - val(rcv.OmittedLost)
	u.OutOfOrder = val(rcv.OutOfOrder)
	if rcv.Jitter != nil {
		u.Jitter = *rcv.Jitter
	}
	if sent == 0 {
		sent = u.Packets
	}
	u.LostPercent = percent(u.Lost, sent)
	return u
}

func addUp(ts []Total, c clock) Total {
	var sum Total
	for i := range ts {
		t := &ts[i]
		sum.Sent.Bytes += t.Sent.Bytes
		sum.Received.Bytes += t.Received.Bytes
		sum.SenderPackets += t.SenderPackets
		if t.Retransmits != nil {
			n := val(sum.Retransmits) + *t.Retransmits
			sum.Retransmits = &n
		}
		if t.UDP != nil {
			if sum.UDP == nil {
				sum.UDP = &Datagram{}
			}
			sum.UDP.Packets += t.UDP.Packets
			sum.UDP.Lost += t.UDP.Lost
			sum.UDP.OutOfOrder += t.UDP.OutOfOrder
			sum.UDP.Jitter += t.UDP.Jitter
		}
	}
	sum.sides(c)
	sum.Received.Seconds = c.received
	if sum.UDP != nil {
		sum.UDP.Jitter /= float64(len(ts))
		packets := sum.SenderPackets
		if packets == 0 {
			packets = sum.UDP.Packets
		}
		sum.UDP.LostPercent = percent(sum.UDP.Lost, packets)
	}
	return sum
}

// share is bytes of size in whole percent, cut; an empty file counts as done.
func share(bytes, size int64) int {
	if size <= 0 {
		return 100
	}
	return int(float64(bytes) / float64(size) * 100)
}

// CPU returns what the closing report says of both ends, zeros for what is unknown.
// A server says nothing of its client.
func CPU(r *result.Run) (own, other result.CPU) {
	if c := r.CPU.Of(r.End); c != nil {
		own = *c
	}
	if c := r.CPU.Of(r.End.Other()); c != nil && r.End != result.Server {
		other = *c
	}
	return own, other
}

// Congestion returns the algorithms of the sending and the receiving end of direction
// d, "" when not shown: TCP only, and a server knows only its own.
func Congestion(r *result.Run, d result.Direction) (sender, receiver string) {
	if r.Test.Transport != "tcp" {
		return "", ""
	}
	own, other := CPU(r)
	if Sends(r, d) {
		return own.Congestion, other.Congestion
	}
	return other.Congestion, own.Congestion
}

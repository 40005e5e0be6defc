package sample

import "github.com/fullbore-net/fullbore/result"

// NewUDP returns a quiet 10 s UDP test of 100 Mbit/s in 1448-byte datagrams, both ends
// known and nothing lost.
func NewUDP() Test {
	t := New()
	t.UDP, t.Rates = true, Flat(100e6, 10)
	t.Bitrate = 100e6
	return t
}

// ForeignUDP is NewUDP with an iperf3 of that release at the other end.
func ForeignUDP(version string) Test {
	f, t := Foreign(version), NewUDP()
	t.Extended, t.Server = f.Extended, f.Server
	return t
}

// Spread returns a distribution around a median, in seconds.
func Spread(n int64, p50 float64) *result.Quantiles {
	return &result.Quantiles{N: n, Min: 0, Mean: p50 * 1.2, P50: p50, P95: p50 * 2.5, P99: p50 * 4, P999: p50 * 6, Max: p50 * 9}
}

// jitterBase is the median delay variation of a quiet test, s.
const jitterBase = 0.000020

// udpInterval is what a row says of UDP.
func (t Test) udpInterval(packets int64, sender bool, row int) *result.UDPInterval {
	if sender {
		return &result.UDPInterval{Late: Spread(packets, 0.000004)}
	}
	if t.PDV != nil {
		return &result.UDPInterval{PDV: Spread(packets, t.PDV[row])}
	}
	return &result.UDPInterval{PDV: Spread(packets, jitterBase)}
}

// account fills what the ends tell of a UDP stream after the test: each end that speaks
// for itself, and the loss where both counts came.
func (t Test) account(s *result.Stream) {
	tells := func(e result.End) bool { return e == t.Recorder || t.Extended && !t.NoPeer }
	out := &result.UDPStream{}
	if s.Sender != nil && s.Sender.Packets == nil || s.Receiver != nil && s.Receiver.Packets == nil {
		return // there were no intervals
	}
	if snd := s.Sender; snd != nil && tells(s.Direction.Sender()) {
		out.Sent = &result.UDPSent{
			Packets: *snd.Packets, Bytes: snd.Bytes, PlannedBurst: 1, LargestBurst: 2, Late: Spread(*snd.Packets, 0.000004),
		}
	}
	rcv := s.Receiver
	if rcv != nil && tells(s.Direction.Receiver()) {
		drops := int64(0)
		out.Received = &result.UDPReceived{
			Packets: rcv.Bytes / t.MSS, Bytes: rcv.Bytes, Highest: *rcv.Packets,
			Jitter: &result.Jitter{N: *rcv.Packets, Final: *rcv.Jitter, Mean: *rcv.Jitter, Max: *rcv.Jitter * 3}, CompatJitter: *rcv.Jitter,
			IPDV: Spread(*rcv.Packets, jitterBase), PDV: Spread(*rcv.Packets, jitterBase), Stamps: "kernel", LargestRead: 8, SocketDrops: &drops,
		}
	}
	if s.Sender != nil && rcv != nil {
		l := result.UDPLoss{Sent: *s.Sender.Packets, Lost: *rcv.Lost, Attribution: "unknown", High: 1}
		if l.Sent > 0 {
			l.Ratio = float64(l.Lost) / float64(l.Sent)
		}
		if out.Received != nil {
			zero, network := int64(0), l.Lost
			l.Socket, l.Network, l.Attribution = &zero, &network, "exact"
		}
		out.Loss = &l
	}
	if t.Account != nil {
		t.Account(s.Direction, out)
	}
	s.UDP = out
}

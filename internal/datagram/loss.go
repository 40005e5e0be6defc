package datagram

import (
	"github.com/fullbore-net/fullbore/internal/stats"
	"github.com/fullbore-net/fullbore/result"
)

// Confidence is the level of the bounds on a loss ratio.
const Confidence = 0.95

// Loss compares what the sender says it sent with what arrived: never negative, never
// more than was sent. With something lost the bounds are Clopper–Pearson's; with nothing
// lost the upper one is the rule of three, 3/n, as M-UDP prints it. Nothing sent: nothing
// is known of the ratio, 0…1.
func Loss(sent int64, c Counts) result.UDPLoss {
	l := result.UDPLoss{Sent: max(sent, 0), High: 1}
	if sent <= 0 {
		return l
	}
	l.Lost = min(max(sent-c.First, 0), sent)
	l.Ratio = float64(l.Lost) / float64(sent)
	l.Tail = min(max(c.Base+sent-c.Highest, 0), l.Lost)
	if l.Lost == 0 {
		l.High = stats.RuleOfThree(sent)
		return l
	}
	if low, high, ok := stats.ClopperPearson(l.Lost, sent, Confidence); ok {
		l.Low, l.High = low, high
	}
	return l
}

// The words of UDPLoss.Attribution.
const (
	Exact   = "exact"
	Bounded = "bounded"
	Unknown = "unknown"
)

// Attribute says who lost what of l, by M-UDP. socket are the drops of the stream's own
// socket (SO_MEMINFO), nil when the system does not tell; coalesced says that the kernel
// handed over several datagrams at once, so that a drop may have been 1…64 of them.
// softnet and nic are drops of the whole receiving host, nil when unknown: what of them
// was other traffic's is not known either.
//
//   - unknown: no count of the socket. Nothing is said about the network.
//   - bounded, coalesced and the socket dropped: Socket is the least that it can be, and
//     the rest is not called the network's (Network is nil).
//   - bounded otherwise: softnet or NIC dropped or are unknown. Network is what is left.
//   - exact: all owners are known and the host-wide ones dropped nothing.
//
// A host-wide count of the socket's kind (RcvbufErrors) may be given as socket where
// nothing better is known; the caller then sets Attribution to Bounded if it is Exact.
func Attribute(l *result.UDPLoss, socket *int64, coalesced bool, softnet, nic *int64) {
	l.Socket, l.Softnet, l.NIC, l.Network = nil, nil, nil, nil
	left := l.Lost
	take := func(drops *int64) *int64 {
		if drops == nil {
			return nil
		}
		n := min(max(*drops, 0), left)
		left -= n
		return &n
	}
	l.Socket = take(socket)
	l.Softnet = take(softnet)
	l.NIC = take(nic)
	switch {
	case l.Lost == 0:
		l.Network, l.Attribution = &left, Exact
	case l.Socket == nil:
		l.Attribution = Unknown
	case coalesced && *l.Socket > 0 && *l.Socket < l.Lost:
		l.Attribution = Bounded
	case left > 0 && (l.Softnet == nil || l.NIC == nil), l.Softnet != nil && *l.Softnet > 0, l.NIC != nil && *l.NIC > 0:
		l.Network, l.Attribution = &left, Bounded
	default:
		l.Network, l.Attribution = &left, Exact
	}
}

package datagram

import (
	"fmt"

	"github.com/fullbore-net/fullbore/result"
)

// Owners says in a line who lost what of l, as far as it is known: "" = nothing was lost. It never
// calls more the network's than Attribution allows.
func Owners(l *result.UDPLoss) string {
	if l == nil || l.Lost <= 0 {
		return ""
	}
	socket := int64(0)
	if l.Socket != nil {
		socket = *l.Socket
	}
	switch {
	case l.Attribution == Exact && l.Network != nil:
		return fmt.Sprintf("of the lost: %d dropped by the receiver's sockets (their buffers were full), %d by the network (exact)", socket, *l.Network)
	case l.Attribution == Bounded && l.Network != nil:
		return fmt.Sprintf("of the lost: %d dropped by the receiver's sockets (their buffers were full), at most %d by the network (bounded)", socket, *l.Network)
	case l.Attribution == Bounded:
		return fmt.Sprintf("of the lost: at least %d dropped by the receiver's sockets (their buffers were full); the rest there or in the network (bounded)", socket)
	}
	return "of the lost: who dropped them is not known (unknown)"
}

// Dropped says in a line what the receiver's sockets dropped of a test whose loss nobody knows, as its
// sender does not tell what it sent: "" = nothing, or that is not known.
func Dropped(u *result.UDPStream) string {
	if u == nil || u.Loss != nil || u.Received == nil || u.Received.SocketDrops == nil || *u.Received.SocketDrops <= 0 {
		return ""
	}
	least := ""
	if u.Received.Coalesced {
		least = "at least "
	}
	return fmt.Sprintf("dropped by the receiver's sockets (their buffers were full): %s%d datagrams", least, *u.Received.SocketDrops)
}

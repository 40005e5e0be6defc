package osnet

import (
	"context"
	"net/netip"
	"time"
)

// Hop is one station on the way to another host.
type Hop struct {
	TTL  int        // how many stations from here, from 1
	Addr netip.Addr // who answered; the zero Addr = nobody did
}

// MostHops is how far Hops looks.
const MostHops = 20

// hopsBasePort is the first of the ports that the datagrams go to, as traceroute's do: closed
// nearly everywhere, and known to those who watch firewalls.
const hopsBasePort = 33434

// Hops finds the way to a host: one empty datagram for each distance, all at once, and the ICMP
// messages that they bring. It needs no rights. It returns after wait at the latest, with what is
// known then: the stations up to the host, or up to the farthest that answered; nil when none did.
//
// Where the system does not hand over ICMP messages (all but Linux) the error is ErrUnsupported.
func Hops(ctx context.Context, to netip.Addr, wait time.Duration) ([]Hop, error) {
	return hops(ctx, to, wait)
}

// hopList makes the list of what answered: by distance, and the nearest distance at which the host
// itself did, 0 = it did not.
func hopList(answers map[int]netip.Addr, reached int) []Hop {
	last := reached
	if last == 0 {
		for ttl := range answers {
			last = max(last, ttl)
		}
	}
	var out []Hop
	for ttl := 1; ttl <= last; ttl++ {
		out = append(out, Hop{ttl, answers[ttl]})
	}
	return out
}

package osnet

import (
	"context"
	"fmt"
	"net/netip"

	"github.com/fullbore-net/fullbore/result"
)

// ConnectBeside makes a stream's own UDP socket beside a server's wildcard one
// (ListenUDP): bound to local, the address and port that the stream's first datagram was
// sent to (PacketConn.Read), and at once connected to remote, so that from then on the
// stream's datagrams come to it and to nothing else. An unspecified local address leaves
// the choice to the route.
//
// Between bind and connect it catches what others send to the same address: that is
// returned as stray, in order of arrival, and belongs to whoever serves the wildcard
// socket. What it caught from remote is the stream's: see Conn.Early.
//
// Where a system does not separate connected sockets on one port (Windows) the error
// wraps errors.ErrUnsupported: use Shared. The other errors are Dial's.
func ConnectBeside(ctx context.Context, local, remote netip.AddrPort, o Options) (c *Conn, stray []Stray, notices []result.Notice, err error) {
	return connectBeside(ctx, local, remote, o, func() {})
}

// besideAddrs brings both addresses to the form that the socket calls want.
func besideAddrs(local, remote netip.AddrPort) (netip.AddrPort, netip.AddrPort, error) {
	r, err := withZone(remote.Addr().Unmap(), "")
	if err != nil {
		return local, remote, err
	}
	l := local.Addr().Unmap()
	switch {
	case !l.IsValid() || l.IsUnspecified():
		l = netip.IPv6Unspecified()
		if r.Is4() {
			l = netip.IPv4Unspecified()
		}
	case l.Is4() != r.Is4():
		return local, remote, &ResolveError{
			Host: l.String(), Family: family(r),
			Reason: fmt.Sprintf("cannot be the source address towards %s, which is %s", r, familyNumber(family(r))),
		}
	case l.IsLinkLocalUnicast() && l.Is6() && l.Zone() == "":
		l = l.WithZone(r.Zone())
	}
	return netip.AddrPortFrom(l, local.Port()), netip.AddrPortFrom(r, remote.Port()), nil
}

func family(a netip.Addr) int {
	if a.Is4() {
		return 4
	}
	return 6
}

// Early returns the datagrams of a stream that came before its socket was the stream's
// alone (ConnectBeside), in order of arrival: its greeting's repetitions and whatever
// else it sent by then. They come before anything that is read from the socket. The
// second call returns nothing.
func (c *Conn) Early() [][]byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.early
	c.early = nil
	return e
}

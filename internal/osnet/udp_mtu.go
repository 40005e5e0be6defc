package osnet

import (
	"context"
	"fmt"
	"net"
	"net/netip"
)

// SetMTUProbing makes the datagrams of a UDP socket go out whole, whatever the system believes of
// the path (IP_PMTUDISC_PROBE): nobody may fragment them, and what a router said of earlier ones
// does not hold them back. Where the system has no such mode it is SetDontFragment.
func (c *Conn) SetMTUProbing() error {
	return c.option("dont-fragment", "", func(fd uintptr) error { return setMTUProbing(fd, isIPv6Socket(fd), true) })
}

// WriteWhole is Write for one datagram that nobody may fragment (as SetMTUProbing); what others
// write to the socket in the same microseconds may be treated alike. The error is EMSGSIZE when it
// is longer than the interface takes.
func (p *PacketConn) WriteWhole(b []byte, to netip.AddrPort, from netip.Addr) (int, error) {
	p.whole.Lock()
	defer p.whole.Unlock()
	set := func(on bool) error {
		return rawControl(p.rc, func(fd uintptr) error { return setMTUProbing(fd, p.v6, on) })
	}
	if err := set(true); err != nil {
		return 0, fmt.Errorf("osnet: %w", err)
	}
	n, err := p.Write(b, to, from)
	if serr := set(false); err == nil && serr != nil {
		err = fmt.Errorf("osnet: %w", serr)
	}
	return n, err
}

// MTUTowards returns what the system believes of packets to remote: path, the largest that fits
// the whole way (less than link once a router has said so), and link, the interface's MTU. 0 = not
// known. It sends nothing.
func MTUTowards(ctx context.Context, remote netip.AddrPort, o Options) (path, link int, err error) {
	c, _, err := Dial(ctx, "udp", remote, Options{Family: o.Family, BindHost: o.BindHost, BindDev: o.BindDev})
	if err != nil {
		return 0, 0, err
	}
	defer c.Close() //nolint:errcheck // nothing is lost with it
	path, err = c.PathMTU()
	if err != nil {
		path = 0
	}
	local, err := netip.ParseAddr(c.Local().Host)
	if err != nil {
		return path, 0, nil
	}
	return path, linkMTU(local), nil
}

// linkMTU is the MTU of the interface that has an address; 0 = none has.
func linkMTU(local netip.Addr) int {
	all, err := net.Interfaces()
	if err != nil {
		return 0
	}
	for _, i := range all {
		addrs, err := i.Addrs()
		if err != nil {
			continue
		}
		for _, a := range addrs {
			p, err := netip.ParsePrefix(a.String())
			if err == nil && p.Addr().Unmap().WithZone("") == local.Unmap().WithZone("") {
				return i.MTU
			}
			// The whole network of a loopback interface is its own (127.0.0.0/8).
			if err == nil && i.Flags&net.FlagLoopback != 0 && p.Contains(local.Unmap()) {
				return i.MTU
			}
		}
	}
	return 0
}

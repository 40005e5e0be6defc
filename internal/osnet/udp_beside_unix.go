//go:build linux || darwin || freebsd

package osnet

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/fullbore-net/fullbore/result"
)

// shareable lets sockets of streams be bound beside a wildcard socket. It is set after
// the wildcard socket is bound, so that its own bind still finds out whether another
// program has the port (net/ipv4/udp.c, udp_lib_lport_inuse: both sockets must have the
// option when the second is bound). The BSDs ask only the second.
func shareable(fd uintptr) error { return optReuseAddr.set(fd, 1) }

// connectBeside calls between when the socket is bound but not connected yet.
func connectBeside(ctx context.Context, local, remote netip.AddrPort, o Options, between func()) (c *Conn, stray []Stray, notices []result.Notice, err error) {
	local, remote, err = besideAddrs(local, remote)
	if err != nil {
		return nil, nil, nil, err
	}
	c, notices, err = dialFrom(ctx, "udp", local, remote, o, func(fd uintptr) error {
		if err := optReuseAddr.set(fd, 1); err != nil {
			return os.NewSyscallError("setsockopt", err)
		}
		if err := unix.Bind(int(fd), sockaddr(local)); err != nil {
			return os.NewSyscallError("bind", err)
		}
		between()
		return nil
	})
	if err != nil {
		return nil, nil, notices, err
	}
	err = c.control(func(fd uintptr) error {
		zone := zoneIndex(remote.Addr().Zone())
		own := func(s Stray) bool {
			return s.From.Port() == remote.Port() && s.From.Addr().WithZone("") == remote.Addr().WithZone("") &&
				(zone == 0 || zoneIndex(s.From.Addr().Zone()) == zone)
		}
		caught, err := drain(fd)
		if err == nil && !all(caught, own) {
			// Others are sending right now. A processor that chose this socket before the connect
			// may not have queued its datagram yet.
			awaitLookups()
			var late []Stray
			late, err = drain(fd)
			caught = append(caught, late...)
		}
		for _, s := range caught {
			if own(s) {
				c.early = append(c.early, s.Data)
			} else {
				stray = append(stray, s)
			}
		}
		return err
	})
	if err != nil {
		_ = c.Close()
		return nil, stray, notices, fmt.Errorf("osnet: what came before the connection: %w", err)
	}
	return c, stray, notices, nil
}

// drain reads what waits. A fast sender could keep it busy for ever, but what came
// before the connect is at the front, and the receive buffer is charged at least 512
// bytes for a datagram (sizeof struct sk_buff and of its shared info).
func drain(fd uintptr) ([]Stray, error) {
	size, err := optRcvBuf.get(fd)
	if err != nil {
		return nil, err
	}
	var got []Stray
	buf := make([]byte, 64<<10)
	for range size/512 + 64 {
		n, from, err := unix.Recvfrom(int(fd), buf, unix.MSG_DONTWAIT)
		switch err {
		case nil:
			got = append(got, Stray{From: addrPortOf(from), Data: slices.Clone(buf[:n])})
		case unix.EAGAIN:
			return got, nil
		case unix.EINTR:
		default:
			return got, err
		}
	}
	return got, nil
}

func sockaddr(a netip.AddrPort) unix.Sockaddr {
	if a.Addr().Is4() {
		return &unix.SockaddrInet4{Port: int(a.Port()), Addr: a.Addr().As4()}
	}
	return &unix.SockaddrInet6{Port: int(a.Port()), Addr: a.Addr().As16(), ZoneId: zoneIndex(a.Addr().Zone())}
}

// addrPortOf is the reverse, for the sources of datagrams.
func addrPortOf(sa unix.Sockaddr) netip.AddrPort {
	switch sa := sa.(type) {
	case *unix.SockaddrInet4:
		return netip.AddrPortFrom(netip.AddrFrom4(sa.Addr), uint16(sa.Port))
	case *unix.SockaddrInet6:
		a := netip.AddrFrom16(sa.Addr).Unmap()
		if sa.ZoneId != 0 && a.Is6() {
			a = a.WithZone(zoneName(sa.ZoneId))
		}
		return netip.AddrPortFrom(a, uint16(sa.Port))
	}
	return netip.AddrPort{}
}

func all(l []Stray, f func(Stray) bool) bool {
	return !slices.ContainsFunc(l, func(s Stray) bool { return !f(s) })
}

func zoneIndex(zone string) uint32 {
	if zone == "" {
		return 0
	}
	if i, err := net.InterfaceByName(zone); err == nil {
		return uint32(i.Index)
	}
	n, _ := strconv.ParseUint(zone, 10, 32)
	return uint32(n)
}

func zoneName(index uint32) string {
	if i, err := net.InterfaceByIndex(int(index)); err == nil {
		return i.Name
	}
	return strconv.Itoa(int(index))
}

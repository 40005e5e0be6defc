package osnet

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"syscall"
)

// Listen listens for TCP connections on addr. The unspecified IPv6 address without
// Options.Family takes both families (one socket), and falls back to IPv4 where the
// system has no IPv6. Accepted connections want Apply.
func Listen(ctx context.Context, network string, addr netip.AddrPort, o Options) (net.Listener, error) {
	if network != "tcp" {
		return nil, fmt.Errorf("osnet: listen %s: %w", network, errors.ErrUnsupported)
	}
	var optErr error
	lc := net.ListenConfig{KeepAlive: -1}
	lc.SetMultipathTCP(o.MPTCP)
	lc.Control = func(_, _ string, rc syscall.RawConn) error {
		optErr = rawControl(rc, func(fd uintptr) error {
			_, err := before(fd, true, o)
			return err
		})
		return optErr
	}
	if a := addr.Addr(); o.Family == 4 && a == netip.IPv6Unspecified() {
		addr = netip.AddrPortFrom(netip.IPv4Unspecified(), addr.Port())
	}
	if err := checkFamily(addr.Addr().String(), addr.Addr(), o.Family); err != nil {
		return nil, err
	}
	n := "tcp" + familyOf(addr.Addr())
	dual := o.Family == 0 && addr.Addr() == netip.IPv6Unspecified()
	if dual {
		n = "tcp"
	}
	ln, err := lc.Listen(ctx, n, addr.String())
	if err != nil && optErr == nil && dual && errors.Is(err, syscall.EAFNOSUPPORT) {
		ln, err = lc.Listen(ctx, "tcp4", netip.AddrPortFrom(netip.IPv4Unspecified(), addr.Port()).String())
	}
	switch {
	case optErr != nil:
		return nil, optErr
	case err != nil:
		var se *os.SyscallError
		if errors.As(err, &se) {
			err = se.Err
		}
		switch {
		case isAddrNotAvail(err):
			return nil, &AddrError{Reason: ForeignAddress, Local: addr, Err: err}
		case isAddrInUse(err):
			return nil, &AddrError{Reason: PortTaken, Local: addr, Err: err}
		}
		return nil, fmt.Errorf("listen on %s: %w", addr, err)
	}
	return ln, nil
}

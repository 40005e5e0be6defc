package osnet

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"syscall"

	"github.com/fullbore-net/fullbore/result"
)

// Dial connects to addr over network "tcp" or "udp". Options that matter before the
// handshake are set before it.
func Dial(ctx context.Context, network string, addr netip.AddrPort, o Options) (*Conn, []result.Notice, error) {
	addr = netip.AddrPortFrom(addr.Addr().Unmap(), addr.Port())
	if err := checkFamily(addr.Addr().String(), addr.Addr(), o.Family); err != nil {
		return nil, nil, err
	}
	local, err := localAddr(ctx, addr, o)
	if err != nil {
		return nil, nil, err
	}
	d := net.Dialer{Timeout: o.Timeout, KeepAlive: -1}
	d.SetMultipathTCP(o.MPTCP)
	if local.IsValid() {
		if network == "tcp" {
			d.LocalAddr = net.TCPAddrFromAddrPort(local)
		} else {
			d.LocalAddr = net.UDPAddrFromAddrPort(local)
		}
	}
	var notices []result.Notice
	var optErr error
	d.Control = func(_, _ string, rc syscall.RawConn) error {
		optErr = rawControl(rc, func(fd uintptr) (err error) {
			notices, err = before(fd, network == "tcp", o)
			return err
		})
		return optErr
	}
	nc, err := d.DialContext(ctx, network+familyOf(addr.Addr()), addr.String())
	switch {
	case optErr != nil:
		return nil, nil, optErr
	case err != nil:
		return nil, nil, dialError(ctx, local, addr, err)
	}
	c := NewConn(nc)
	if err := after(nc, o); err != nil {
		_ = c.Close()
		return nil, nil, err
	}
	return c, append(notices, windowNotices(c, o.Window)...), nil
}

func familyOf(a netip.Addr) string {
	if a.Is4() {
		return "4"
	}
	return "6"
}

func localAddr(ctx context.Context, remote netip.AddrPort, o Options) (netip.AddrPort, error) {
	if o.BindHost == "" && o.LocalPort == 0 {
		return netip.AddrPort{}, nil
	}
	a := netip.IPv6Unspecified()
	if remote.Addr().Is4() {
		a = netip.IPv4Unspecified()
	}
	if o.BindHost != "" {
		fam := 6
		if remote.Addr().Is4() {
			fam = 4
		}
		as, err := Resolve(ctx, o.BindHost, fam)
		if err != nil {
			return netip.AddrPort{}, err
		}
		a = as[0]
	}
	return netip.AddrPortFrom(a, uint16(o.LocalPort)), nil
}

func dialError(ctx context.Context, local, remote netip.AddrPort, err error) error {
	if ctx.Err() != nil {
		return &ConnectError{Addr: remote, Err: context.Cause(ctx)}
	}
	var ne net.Error
	if errors.As(err, &ne) && ne.Timeout() && !errors.Is(err, syscall.ETIMEDOUT) {
		return &ConnectError{Addr: remote, Err: os.ErrDeadlineExceeded}
	}
	var se *os.SyscallError
	op := ""
	if errors.As(err, &se) {
		op, err = se.Syscall, se.Err
	}
	switch {
	case op == "bind" && isAddrNotAvail(err):
		return &AddrError{Reason: ForeignAddress, Local: local, Remote: remote, Err: err}
	case isAddrInUse(err), isAddrNotAvail(err):
		if local.IsValid() && local.Port() != 0 {
			return &AddrError{Reason: PortTaken, Local: local, Remote: remote, Err: err}
		}
		return &AddrError{Reason: PortsExhausted, Local: local, Remote: remote, Err: err}
	}
	return &ConnectError{Addr: remote, Err: err}
}

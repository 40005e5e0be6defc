package osnet

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"syscall"

	"github.com/fullbore-net/fullbore/result"
)

// Dial connects to addr over network "tcp" or "udp": this address and no other. What
// matters to the handshake is set before it, so that the first packet already carries
// the mark and the MSS, and the window scale fits the buffers.
//
// Errors are *ConnectError, *AddrError, *OptionError, *CongestionError, *ResolveError
// (BindHost) and *ZoneError; the notices say what was capped, altered or left out.
func Dial(ctx context.Context, network string, addr netip.AddrPort, o Options) (*Conn, []result.Notice, error) {
	if network != "tcp" && network != "udp" {
		return nil, nil, fmt.Errorf("osnet: dial %s: %w", network, errors.ErrUnsupported)
	}
	a, err := withZone(addr.Addr().Unmap(), o.BindDev)
	if err != nil {
		return nil, nil, err
	}
	addr = netip.AddrPortFrom(a, addr.Port())
	if !inFamily(a, o.Family) {
		return nil, nil, &ResolveError{Host: a.String(), Family: o.Family, Reason: fmt.Sprintf("is not an %s address", familyNumber(o.Family))}
	}
	if o.FlowLabel != 0 && a.Is4() {
		return nil, nil, &OptionError{Option: "flow-label", Value: fmt.Sprintf("%#x", o.FlowLabel), Err: errors.New("IPv4 has no flow label"), Hint: "use IPv6"}
	}
	if network == "tcp" && o.MPTCP && !Capabilities().MPTCP {
		return nil, nil, &OptionError{Option: "mptcp", Err: errors.ErrUnsupported}
	}
	local, err := localAddr(ctx, addr, o)
	if err != nil {
		return nil, nil, err
	}
	return dial(ctx, network, local, addr, o)
}

func dial(ctx context.Context, network string, local, addr netip.AddrPort, o Options) (*Conn, []result.Notice, error) {
	return dialFrom(ctx, network, local, addr, o, nil)
}

// dialFrom is dial with a bind of the caller's own, when it is not nil.
func dialFrom(ctx context.Context, network string, local, addr netip.AddrPort, o Options, bind func(fd uintptr) error) (*Conn, []result.Notice, error) {
	d := net.Dialer{Timeout: o.Timeout, KeepAlive: -1}
	d.SetMultipathTCP(o.MPTCP)
	tcp := network == "tcp"
	// The flow label travels in the address given to connect, which the runtime leaves
	// 0: connectLabelled binds and connects by itself, and the runtime waits for it.
	labelled := tcp && o.FlowLabel != 0
	if local.IsValid() && !labelled && bind == nil {
		if tcp {
			d.LocalAddr = net.TCPAddrFromAddrPort(local)
		} else {
			d.LocalAddr = net.UDPAddrFromAddrPort(local)
		}
	}
	var notices []result.Notice
	var failed error
	d.Control = func(_, _ string, rc syscall.RawConn) error {
		failed = rawControl(rc, func(fd uintptr) (err error) {
			if notices, err = before(fd, tcp, o); err != nil {
				return err
			}
			if bind != nil {
				return bind(fd)
			}
			sourcePort(fd, tcp, local)
			if labelled {
				return connectLabelled(fd, local, addr, o.FlowLabel)
			}
			return nil
		})
		return failed
	}
	nc, err := d.DialContext(ctx, network+strings.TrimPrefix(familyName(addr.Addr()), "IPv"), addr.String())
	if failed != nil {
		err = failed
	}
	if err != nil {
		return nil, nil, dialError(ctx, local, addr, o, err)
	}
	c := NewConn(nc)
	n, err := afterConnect(c, tcp, addr, o)
	if err != nil {
		_ = c.Close()
		return nil, nil, err
	}
	return c, append(notices, n...), nil
}

// sourcePort prepares the choice of the local port. A fixed TCP port may be in
// TIME_WAIT from the last test; an open one leaves the choice to connect. Both only
// widen what is possible, so a system that lacks them is no fault.
func sourcePort(fd uintptr, tcp bool, local netip.AddrPort) {
	switch {
	case !local.IsValid():
	case local.Port() == 0:
		_ = optLatePort.set(fd, 1)
	case tcp:
		_ = optReuseAddr.set(fd, 1)
	}
}

// afterConnect sets what the runtime has decided otherwise meanwhile and what works
// only on a connected socket.
func afterConnect(c *Conn, tcp bool, addr netip.AddrPort, o Options) ([]result.Notice, error) {
	var notices []result.Notice
	err := c.control(func(fd uintptr) (err error) {
		if !tcp {
			if o.FlowLabel != 0 {
				return connectLabelled(fd, netip.AddrPort{}, addr, o.FlowLabel)
			}
			return nil
		}
		// A route with a congctl of its own gives it to the socket at connect, over what was
		// set before (tcp_ca_dst_init, net/ipv4/tcp_output.c).
		if now, cerr := congestion(fd); o.Congestion != "" && cerr == nil && now != o.Congestion {
			if err := setCongestion(fd, o.Congestion); err != nil {
				return congestionError(o.Congestion, err)
			}
		}
		again := o
		again.UserTimeout = 0 // set already, and noticed where it is missing
		_, err = tcpTimers(fd, again)
		return err
	})
	if err != nil {
		return nil, err
	}
	if tc, ok := c.nc.(*net.TCPConn); ok && o.MPTCP {
		if on, err := tc.MultipathTCP(); err == nil && !on {
			notices = append(notices, result.Notice{Code: "mptcp-fallback", Level: result.Warn, Text: fmt.Sprintf(
				"MPTCP was asked for, but %s answered with plain TCP (it, or something between, does not speak MPTCP)", addr)})
		}
	}
	return append(notices, windowNotices(c, o.Window)...), nil
}

// localAddr is what the socket is to be bound to, invalid when to nothing.
func localAddr(ctx context.Context, remote netip.AddrPort, o Options) (netip.AddrPort, error) {
	family, a := 6, netip.IPv6Unspecified()
	if remote.Addr().Is4() {
		family, a = 4, netip.IPv4Unspecified()
	}
	if o.BindHost != "" {
		zone := o.BindDev
		if zone == "" {
			zone = remote.Addr().Zone()
		}
		as, err := ResolveOn(ctx, o.BindHost, family, zone)
		if err != nil {
			if l, ok := literal(o.BindHost); ok && !inFamily(l, family) {
				return netip.AddrPort{}, &ResolveError{
					Host: o.BindHost, Family: family, Err: err,
					Reason: fmt.Sprintf("cannot be the source address towards %s, which is %s", remote.Addr(), familyNumber(family)),
				}
			}
			return netip.AddrPort{}, fmt.Errorf("bind address: %w", err)
		}
		a = as[0]
	}
	if o.LocalPort == 0 && a.IsUnspecified() {
		return netip.AddrPort{}, nil
	}
	return netip.AddrPortFrom(a, uint16(o.LocalPort)), nil
}

// dialError turns what the runtime returned into one of Dial's errors.
func dialError(ctx context.Context, local, remote netip.AddrPort, o Options, err error) error {
	var oe *OptionError
	var ce *CongestionError
	if errors.As(err, &oe) || errors.As(err, &ce) {
		return err
	}
	if ctx.Err() != nil {
		return &ConnectError{Addr: remote, Err: context.Cause(ctx)}
	}
	op := "connect"
	var se *os.SyscallError
	if errors.As(err, &se) {
		op, err = se.Syscall, se.Err
	} else if ne := net.Error(nil); errors.As(err, &ne) && ne.Timeout() {
		return &ConnectError{Addr: remote, After: o.Timeout, Err: os.ErrDeadlineExceeded}
	}
	if op != "bind" {
		op = "connect" // "connectex", "getsockopt" after a failed connect, …
	}
	if ae := addrError(op, local, remote, err); ae != nil {
		return ae
	}
	var op2 *net.OpError
	if errors.As(err, &op2) {
		err = op2.Err
	}
	return &ConnectError{Addr: remote, Err: err}
}

// DialFirst connects to the first of addrs that answers, one after the other, and tells
// which one it used when that is not the first: the next address is tried only when the
// one before has refused or cannot be reached, never beside it. host is the name that
// addrs came from (Resolve), for the texts. With Options.BindHost only addresses of its
// family are tried. Options.Timeout holds for each.
//
// The error is that of the only address, or an *AllFailedError.
func DialFirst(ctx context.Context, network, host string, addrs []netip.Addr, port uint16, o Options) (*Conn, []result.Notice, error) {
	if l, ok := literal(o.BindHost); ok {
		var same []netip.Addr
		for _, a := range addrs {
			if a.Is4() == l.Is4() {
				same = append(same, a)
			}
		}
		if len(same) > 0 {
			addrs = same
		}
	}
	if len(addrs) == 0 {
		return nil, nil, &ResolveError{Host: host, Family: o.Family, Reason: "has no address"}
	}
	var failed []error
	for _, a := range addrs {
		c, notices, err := Dial(ctx, network, netip.AddrPortFrom(a, port), o)
		if err == nil {
			if len(failed) > 0 {
				notices = append(notices, result.Notice{Code: "address-fallback", Level: result.Info, Text: fmt.Sprintf(
					"%s: %s; using %s", host, joinErrors(failed), a)})
			}
			return c, notices, nil
		}
		failed = append(failed, err)
		var ce *ConnectError
		if !errors.As(err, &ce) || ctx.Err() != nil {
			break
		}
	}
	if len(failed) == 1 {
		return nil, nil, failed[0]
	}
	return nil, nil, &AllFailedError{Host: host, Errs: failed}
}

// AllFailedError says that none of a host's addresses could be connected to.
type AllFailedError struct {
	Host string
	Errs []error // in order of trying
}

func (e *AllFailedError) Error() string { return e.Host + ": " + joinErrors(e.Errs) }

// Unwrap returns the errors of the addresses.
func (e *AllFailedError) Unwrap() []error { return e.Errs }

func joinErrors(errs []error) string {
	var s []string
	for _, e := range errs {
		s = append(s, e.Error())
	}
	return strings.Join(s, "; ")
}

package osnet

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"syscall"

	"github.com/fullbore-net/fullbore/result"
)

// Listener is what Listen returns: a TCP listener with the notices of its making.
type Listener struct {
	*net.TCPListener
	o       Options
	notices []result.Notice
}

// Notices says what was capped, left out or fallen back to when l was made.
func (l *Listener) Notices() []result.Notice { return l.notices }

// Listen listens for TCP connections on addr; the result is a *Listener. The
// unspecified IPv6 address takes both families on one socket, unless Options.Family is
// 6, and falls back to IPv4 with a notice where the system has no IPv6; with
// Options.Family 4 it means the unspecified IPv4 address. The port may be taken over
// from connections in TIME_WAIT (SO_REUSEADDR). Plain TCP unless Options.MPTCP:
// accepted MPTCP sockets ignore SO_RCVLOWAT and refuse several options, so they are
// never made unasked.
//
// Options set here are inherited by accepted connections; NoDelay and Keepalive are
// not, the Go runtime resets both: use Apply.
func Listen(ctx context.Context, network string, addr netip.AddrPort, o Options) (net.Listener, error) {
	if network != "tcp" {
		return nil, fmt.Errorf("osnet: listen on %s: %w (ListenUDP is for datagrams)", network, errors.ErrUnsupported)
	}
	if o.MPTCP && !Capabilities().MPTCP {
		return nil, &OptionError{Option: "mptcp", Err: errors.ErrUnsupported}
	}
	l := &Listener{o: o}
	lc := net.ListenConfig{KeepAlive: -1}
	lc.SetMultipathTCP(o.MPTCP)
	err := listen(addr, o, true, &lc, &l.notices, func(network, address string) error {
		ln, err := lc.Listen(ctx, network, address)
		if err == nil {
			l.TCPListener = ln.(*net.TCPListener)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if rc, err := l.SyscallConn(); err == nil {
		_ = rc.Control(keepSYN)
	}
	return l, nil
}

// ListenUDP binds a UDP socket to addr, by the same rules for addresses and options. A
// port that another socket has is an error, as with TCP; once bound, the socket lets
// ConnectBeside have the same port.
func ListenUDP(ctx context.Context, addr netip.AddrPort, o Options) (*net.UDPConn, []result.Notice, error) {
	var lc net.ListenConfig
	var notices []result.Notice
	var uc *net.UDPConn
	err := listen(addr, o, false, &lc, &notices, func(network, address string) error {
		pc, err := lc.ListenPacket(ctx, network, address)
		if err == nil {
			uc = pc.(*net.UDPConn)
		}
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	c := NewConn(uc)
	if err := c.control(shareable); err != nil {
		_ = uc.Close()
		return nil, nil, fmt.Errorf("listen on %s: share the port: %w", addr, err)
	}
	return uc, append(notices, windowNotices(c, o.Window)...), nil
}

// listen works out what to bind to, prepares lc and calls open once, or a second time
// for the fallback to IPv4.
func listen(addr netip.AddrPort, o Options, tcp bool, lc *net.ListenConfig, notices *[]result.Notice, open func(network, address string) error) error {
	a := addr.Addr().Unmap()
	if o.Family == 4 && a == netip.IPv6Unspecified() {
		a = netip.IPv4Unspecified()
	}
	if !inFamily(a, o.Family) {
		return &ResolveError{Host: a.String(), Family: o.Family, Reason: fmt.Sprintf("is not an %s address", familyNumber(o.Family))}
	}
	a, err := withZone(a, o.BindDev)
	if err != nil {
		return err
	}
	addr = netip.AddrPortFrom(a, addr.Port())
	var failed error
	lc.Control = func(_, _ string, rc syscall.RawConn) error {
		failed = rawControl(rc, func(fd uintptr) error {
			n, err := before(fd, tcp, o)
			*notices = append(*notices, n...)
			return err
		})
		return failed
	}
	proto := "udp"
	if tcp {
		proto = "tcp"
	}
	network := proto + "6"
	dual := a == netip.IPv6Unspecified() && o.Family == 0
	switch {
	case a.Is4():
		network = proto + "4"
	case dual:
		network = proto // both families on one socket
	}
	err = open(network, addr.String())
	if dual && failed == nil && err != nil && isNoFamily(err) {
		addr = netip.AddrPortFrom(netip.IPv4Unspecified(), addr.Port())
		if err = open(proto+"4", addr.String()); err == nil {
			*notices = append(*notices, result.Notice{Code: "ipv4-only", Level: result.Info, Text: "this system has no IPv6: listening on IPv4 only"})
		}
	}
	if failed != nil {
		return failed
	}
	if err == nil {
		return nil
	}
	var se *os.SyscallError
	if errors.As(err, &se) {
		err = se.Err
	}
	if ae := addrError("listen", addr, netip.AddrPort{}, err); ae != nil {
		return ae
	}
	return fmt.Errorf("listen on %s: %w", addr, err)
}

// Arm prepares l for the connections of one coming test: from now on the SYN-ACK and
// whatever the kernel sends before Apply carry o.TOS, the SYN-ACK's MSS option is
// o.MSS, and with o.FlowLabel connections answer with the label of the peer's SYN. The
// function it returns takes all of that back.
//
// It changes the listener for everybody: only a server that runs one test at a time
// should use it, and control connections that are accepted meanwhile inherit it.
func (l *Listener) Arm(o Options) (disarm func() error, notices []result.Notice, err error) {
	rc, err := l.SyscallConn()
	if err != nil {
		return nil, nil, err
	}
	err = rawControl(rc, func(fd uintptr) error {
		n, err := setTOS(fd, o.TOS)
		notices = append(notices, n...)
		if err != nil {
			return err
		}
		if err := setMSS(fd, o.MSS); err != nil {
			return err
		}
		if o.FlowLabel == 0 || !isIPv6Socket(fd) {
			return nil
		}
		if err := reflectLabels(fd, true); err != nil {
			e := &OptionError{Option: "flow-label", Value: fmt.Sprintf("%#x", o.FlowLabel), Err: err}
			if isNoPermission(err) {
				e.Hint = "answering with the peer's label needs net.ipv6.flowlabel_consistency = 0"
			}
			notices = append(notices, refused(e))
		}
		return nil
	})
	if err != nil {
		return nil, notices, err
	}
	return func() error {
		return rawControl(rc, func(fd uintptr) error {
			var errs []error
			if o.TOS != 0 {
				errs = append(errs, resetTOS(fd, l.o.TOS))
			}
			if o.MSS != 0 {
				errs = append(errs, optMSS.set(fd, l.o.MSS))
			}
			if o.FlowLabel != 0 && isIPv6Socket(fd) {
				// Fails only where setting it failed too, which was a notice.
				_ = reflectLabels(fd, false)
			}
			return errors.Join(errs...)
		})
	}, notices, nil
}

// resetTOS sets tos in both families, 0 included.
func resetTOS(fd uintptr, tos int) error {
	if isIPv6Socket(fd) {
		_ = optTOS4.set(fd, tos)
		return optTOS6.set(fd, tos)
	}
	return optTOS4.set(fd, tos)
}

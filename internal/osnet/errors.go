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
	"time"
)

// OptionError says that the system refused a socket option.
type OptionError struct {
	// Option is the plan's word: "window", "mss", "no-delay", "tos", "flow-label",
	// "mptcp", "bind-dev", "user-timeout", "keepalive", "fq-rate", "dont-fragment",
	// "coalesce", "segment", "stamps".
	Option string
	Value  string // as asked, "" when the option has none
	Hint   string // what would be right, "" when nothing is known
	Err    error
}

func (e *OptionError) Error() string {
	s := "option " + e.Option
	if e.Value != "" {
		s += " " + e.Value
	}
	switch {
	case errors.Is(e.Err, errShared):
		s += ": all streams of this server share one UDP socket"
	case errors.Is(e.Err, errors.ErrUnsupported):
		s += ": this system does not have it"
	default:
		s += ": " + e.Err.Error()
	}
	if e.Hint != "" {
		s += "; " + e.Hint
	}
	return s
}

// Unwrap returns the system's error.
func (e *OptionError) Unwrap() error { return e.Err }

// ConnectError says that a connection could not be made.
type ConnectError struct {
	Addr  netip.AddrPort
	After time.Duration // Options.Timeout, when it was that which ended the attempt
	Err   error
}

func (e *ConnectError) Error() string {
	reason := ""
	switch {
	case errors.Is(e.Err, os.ErrDeadlineExceeded) && e.After > 0:
		reason = fmt.Sprintf("no answer within %v", e.After)
	case e.Timeout():
		reason = "no answer, timed out"
	default:
		reason = e.Err.Error()
	}
	return fmt.Sprintf("connect to %s over %s: %s", e.Addr, familyName(e.Addr.Addr()), reason)
}

// Unwrap returns the cause: an errno, os.ErrDeadlineExceeded, or the cause of a
// cancelled context.
func (e *ConnectError) Unwrap() error { return e.Err }

// Timeout reports whether the attempt ran out of time.
func (e *ConnectError) Timeout() bool {
	return errors.Is(e.Err, os.ErrDeadlineExceeded) || errors.Is(e.Err, context.DeadlineExceeded) || isTimedOut(e.Err)
}

// AddrReason says why an address or port could not be had.
type AddrReason string

// The reasons.
const (
	ForeignAddress  AddrReason = "foreign-address"   // the bind address is not one of this machine
	AddressNotReady AddrReason = "address-not-ready" // it is, but duplicate address detection has not ended
	PortTaken       AddrReason = "port-taken"        // another socket has the port (or the whole address pair)
	PortsExhausted  AddrReason = "ports-exhausted"   // no port left in the range that the kernel hands out
	PortPrivileged  AddrReason = "port-privileged"   // the port may be used by root only
	PortReserved    AddrReason = "port-reserved"     // Windows: excluded from use, or held exclusively
)

// AddrError explains EADDRNOTAVAIL, EADDRINUSE and EACCES: the system uses each of
// them for several troubles that want different cures.
type AddrError struct {
	Reason AddrReason
	Op     string         // "bind", "connect", "listen"
	Local  netip.AddrPort // as asked; invalid when left to the system
	Remote netip.AddrPort // invalid when listening
	Have   []string       // this machine's addresses, for ForeignAddress
	Range  string         // the system's port range, for PortsExhausted
	Err    error
}

func (e *AddrError) Error() string {
	switch e.Reason {
	case ForeignAddress:
		s := fmt.Sprintf("%s %s: no interface of this machine has that address", e.verb(), e.Local.Addr())
		if len(e.Have) > 0 {
			s += "; it has " + strings.Join(e.Have, ", ")
		}
		return s
	case AddressNotReady:
		return fmt.Sprintf("%s %s: the address is not usable yet (duplicate address detection); try again in a second or two", e.verb(), e.Local.Addr())
	case PortTaken:
		if e.Op == "connect" {
			return fmt.Sprintf("source port %d is taken: a connection from it to %s exists or ended less than a minute ago; wait or choose another source port", e.Local.Port(), e.Remote)
		}
		s := fmt.Sprintf("%s %s: port %d is taken by another socket; choose another port", e.verb(), e.Local, e.Local.Port())
		if cmd := portOwner(e.Local.Port()); cmd != "" {
			s += " or see who has it: " + cmd
		}
		return s
	case PortPrivileged:
		return fmt.Sprintf("%s %s: port %d needs root; choose one above 1023", e.verb(), e.Local, e.Local.Port())
	}
	if e.Reason == PortReserved {
		return fmt.Sprintf("%s %s: the system does not give port %d away: it is in a reserved range (netsh int ipv4 show excludedportrange tcp) or held exclusively; choose another port", e.verb(), e.Local, e.Local.Port())
	}
	s := "no port is left"
	if e.Remote.IsValid() {
		s = "no source port is left for " + e.Remote.String()
	}
	if e.Range != "" {
		s += fmt.Sprintf(": all of %s (%s) are in use or ended less than a minute ago", e.Range, portRangeName)
	}
	s += "; wait, use fewer streams"
	if cmd := widenPorts(); cmd != "" {
		s += ", or widen the range: " + cmd
	}
	return s
}

func (e *AddrError) verb() string {
	if e.Op == "listen" {
		return "listen on"
	}
	return "bind to"
}

// Unwrap returns the system's error.
func (e *AddrError) Unwrap() error { return e.Err }

// CongestionError says that an algorithm cannot be used and which can.
type CongestionError struct {
	Name      string
	Available []string // what the kernel has loaded (net.ipv4.tcp_available_congestion_control)
	Allowed   []string // what an unprivileged process may choose, when that is the trouble
	Err       error
}

func (e *CongestionError) Error() string {
	switch {
	case errors.Is(e.Err, errors.ErrUnsupported):
		return fmt.Sprintf("congestion control %s: this system does not let a program choose it", e.Name)
	case len(e.Allowed) > 0:
		return fmt.Sprintf("congestion control %s needs root here; allowed: %s (net.ipv4.tcp_allowed_congestion_control)", e.Name, strings.Join(e.Allowed, " "))
	}
	return fmt.Sprintf("congestion control %s is not available here; available: %s", e.Name, strings.Join(e.Available, " "))
}

// Unwrap returns the system's error.
func (e *CongestionError) Unwrap() error { return e.Err }

func congestionError(name string, err error) *CongestionError {
	e := &CongestionError{Name: name, Err: err}
	e.Available, _ = congestionAvailable()
	if isNoPermission(err) {
		e.Allowed = congestionAllowed()
	}
	return e
}

func deviceError(dev string, err error) error {
	e := &OptionError{Option: "bind-dev", Value: dev, Err: err}
	if errors.Is(err, errors.ErrUnsupported) {
		return e
	}
	if _, nerr := net.InterfaceByName(dev); nerr != nil {
		e.Hint = "interfaces here: " + strings.Join(interfaceNames(func(net.Interface) bool { return true }), ", ")
	} else if isNoPermission(err) {
		e.Hint = "binding to a device needs root (CAP_NET_RAW)"
	}
	return e
}

// addrError explains err, the errno of op ("bind", "connect", "listen"), or returns nil
// when it is not about addresses and ports.
func addrError(op string, local, remote netip.AddrPort, err error) *AddrError {
	e := &AddrError{Op: op, Local: local, Remote: remote, Err: err}
	fixedPort := local.IsValid() && local.Port() != 0
	switch {
	case op != "connect" && isAddrNotAvail(err):
		e.Reason = ForeignAddress
		var own bool
		if e.Have, own = ownAddresses(local.Addr()); own {
			e.Reason = AddressNotReady
		}
	case (isAddrInUse(err) || isAddrNotAvail(err)) && fixedPort:
		e.Reason = PortTaken
	case isAddrInUse(err), isAddrNotAvail(err), op == "connect" && isOutOfPorts(err):
		e.Reason, e.Range = PortsExhausted, portRange()
	case op != "connect" && isNoPermission(err) && fixedPort && privilegedPorts == 0:
		e.Reason = PortReserved
	case op != "connect" && isNoPermission(err) && local.Port() < privilegedPorts && fixedPort:
		e.Reason = PortPrivileged
	default:
		return nil
	}
	return e
}

// ownAddresses lists this machine's addresses of a's family ("10.0.0.1 (eth0)"), those
// of loopback interfaces last, and says whether a is among them.
func ownAddresses(a netip.Addr) (list []string, own bool) {
	ifs, err := net.Interfaces()
	if err != nil {
		return nil, false
	}
	var loop []string
	for _, i := range ifs {
		as, err := i.Addrs()
		if err != nil {
			continue
		}
		for _, x := range as {
			p, err := netip.ParsePrefix(x.String())
			if err != nil || p.Addr().Unmap().Is4() != a.Is4() {
				continue
			}
			b := p.Addr().Unmap().WithZone("")
			if b == a.WithZone("") && (a.Zone() == "" || a.Zone() == i.Name) {
				own = true
			}
			text := fmt.Sprintf("%s (%s)", b, i.Name)
			if b.IsLinkLocalUnicast() && b.Is6() {
				text = fmt.Sprintf("%s%%%s", b, i.Name)
			}
			if i.Flags&net.FlagLoopback != 0 {
				loop = append(loop, text)
			} else {
				list = append(list, text)
			}
		}
	}
	return append(list, loop...), own
}

func interfaceNames(want func(net.Interface) bool) []string {
	ifs, err := net.Interfaces()
	if err != nil {
		return nil
	}
	var names []string
	for _, i := range ifs {
		if want(i) {
			names = append(names, i.Name)
		}
	}
	return names
}

// Errno returns the system's error number within err, 0 when there is none. On Windows
// it is a WSA number (10061 for a refused connection).
func Errno(err error) int {
	var no syscall.Errno
	if errors.As(err, &no) {
		return int(no)
	}
	return 0
}

// IsTooManyFiles reports whether err says that the process or the system is out of
// descriptors: an accept that fails so leaves the connection waiting and may be
// repeated once a descriptor is free.
func IsTooManyFiles(err error) bool { return isTooManyFiles(err) }

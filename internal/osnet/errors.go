package osnet

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"syscall"
)

// OptionError says that the system refused a socket option.
type OptionError struct {
	Option string // plan's word: "window", "mss", "no-delay", "tos", "flow-label", "mptcp", "bind-dev", "user-timeout", "keepalive", "fq-rate", "dont-fragment"
	Value  string // as asked
	Err    error
}

func (e *OptionError) Error() string {
	if e.Value == "" {
		return fmt.Sprintf("option %s: %v", e.Option, e.Err)
	}
	return fmt.Sprintf("option %s %s: %v", e.Option, e.Value, e.Err)
}

// Unwrap returns the system's error.
func (e *OptionError) Unwrap() error { return e.Err }

// ConnectError says that a connection could not be made.
type ConnectError struct {
	Addr netip.AddrPort
	Err  error
}

func (e *ConnectError) Error() string { return fmt.Sprintf("connect to %s: %v", e.Addr, e.Err) }

// Unwrap returns the cause: an errno, a context's cause or os.ErrDeadlineExceeded.
func (e *ConnectError) Unwrap() error { return e.Err }

// Timeout reports whether the attempt ran out of time.
func (e *ConnectError) Timeout() bool {
	return errors.Is(e.Err, os.ErrDeadlineExceeded) || errors.Is(e.Err, syscall.ETIMEDOUT)
}

// AddrReason says why an address or port could not be had.
type AddrReason string

// The reasons.
const (
	ForeignAddress AddrReason = "foreign-address" // the bind address is not one of this machine
	PortTaken      AddrReason = "port-taken"      // another socket has the port (or the whole address pair)
	PortsExhausted AddrReason = "ports-exhausted" // no free port left in the ephemeral range
)

// AddrError explains EADDRNOTAVAIL and EADDRINUSE.
type AddrError struct {
	Reason AddrReason
	Local  netip.AddrPort // as asked
	Remote netip.AddrPort // zero when listening
	Err    error
}

func (e *AddrError) Error() string {
	switch e.Reason {
	case ForeignAddress:
		return fmt.Sprintf("bind to %s: no interface of this machine has that address", e.Local.Addr())
	case PortTaken:
		return fmt.Sprintf("port %d on %s is taken by another socket", e.Local.Port(), e.Local.Addr())
	}
	return fmt.Sprintf("no free local port for %s", e.Remote)
}

// Unwrap returns the system's error.
func (e *AddrError) Unwrap() error { return e.Err }

func deviceError(dev string, err error) error {
	return &OptionError{Option: "bind-dev", Value: dev, Err: err}
}

// Package osnet is the sockets of every system behind values: dialling and
// listening with all options of a Plan, TCP_INFO, buffer sizes, queue lengths, and
// the cheap ways to move bytes. Everything above it compiles and tests anywhere.
package osnet

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"syscall"

	"github.com/fullbore-net/fullbore/result"
)

// Conn is one data stream's socket. Whoever holds it closes it; the methods may be
// called from any goroutine while another reads or writes. After Close they return
// net.ErrClosed.
type Conn struct {
	nc            net.Conn
	rc            syscall.RawConn // of nc; nil when nc has no descriptor (tests)
	local, remote result.Addr     // as they were when c was made

	shared   *sharedConn           // nc, when the stream shares its socket with others
	messages *[controlWords]uint64 // control messages of ReadDatagrams, made at its first call

	mu       sync.RWMutex // held for reading while a method uses fd, so that Close cannot free it under it
	detached bool         // fd is ours and nc is closed
	fd       int
	closed   bool
	early    [][]byte
}

// NewConn takes over nc, which must be a *net.TCPConn or *net.UDPConn (or, in tests, any net.Conn).
func NewConn(nc net.Conn) *Conn {
	c := &Conn{nc: nc, fd: -1, local: addrOf(nc.LocalAddr()), remote: addrOf(nc.RemoteAddr())}
	if sc, ok := nc.(syscall.Conn); ok {
		if rc, err := sc.SyscallConn(); err == nil {
			c.rc = rc
		}
	}
	return c
}

// Net returns the wrapped connection. It stays owned by c, and is closed (but still
// tells its addresses) after Detach.
func (c *Conn) Net() net.Conn { return c.nc }

// Close closes the socket. A second call returns net.ErrClosed.
func (c *Conn) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return net.ErrClosed
	}
	c.closed = true
	if c.detached {
		fd := c.fd
		c.fd = -1
		return closeDescriptor(fd)
	}
	return c.nc.Close()
}

// Detach hands out the descriptor for a worker that makes its own system calls
// (spec/engine.md §6.3): the descriptor is duplicated, the net.Conn closed, and c works
// on with the duplicate, which it still owns: Close closes it. The descriptor is
// non-blocking and close-on-exec. A second call returns the same descriptor. Not on
// Windows, where a socket handle cannot leave the runtime's poller (errors.ErrUnsupported).
//
// The caller must have stopped using fd before Close: the number may be given to
// another socket at once.
func (c *Conn) Detach() (fd int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.closed:
		return -1, net.ErrClosed
	case c.detached:
		return c.fd, nil
	case c.rc == nil:
		return -1, fmt.Errorf("osnet: detach %T: %w", c.nc, errors.ErrUnsupported)
	}
	var derr error
	if err := c.rc.Control(func(s uintptr) { fd, derr = duplicate(s) }); err != nil {
		return -1, err
	}
	if derr != nil {
		return -1, fmt.Errorf("osnet: duplicate descriptor: %w", derr)
	}
	c.fd, c.detached = fd, true
	if err := c.nc.Close(); err != nil {
		return fd, fmt.Errorf("osnet: close original descriptor: %w", err)
	}
	return fd, nil
}

// control runs f on the descriptor, which stays open meanwhile.
func (c *Conn) control(f func(fd uintptr) error) error {
	c.mu.RLock()
	defer c.mu.RUnlock()
	switch {
	case c.closed:
		return net.ErrClosed
	case c.detached:
		return f(uintptr(c.fd))
	case c.shared != nil:
		return errShared
	case c.rc == nil:
		return errors.ErrUnsupported
	}
	return rawControl(c.rc, f)
}

// inspect is control for what may be asked of a socket that is shared with others.
func (c *Conn) inspect(f func(fd uintptr) error) error {
	if c.shared != nil {
		return rawControl(c.shared.s.p.rc, f)
	}
	return c.control(f)
}

func rawControl(rc syscall.RawConn, f func(fd uintptr) error) error {
	var ferr error
	if err := rc.Control(func(fd uintptr) { ferr = f(fd) }); err != nil {
		return err
	}
	return ferr
}

// Local returns the socket's own address, an IPv4-mapped one as IPv4, the zone kept.
func (c *Conn) Local() result.Addr { return c.local }

// Remote returns the peer's address in the same form.
func (c *Conn) Remote() result.Addr { return c.remote }

func addrOf(a net.Addr) result.Addr {
	if a == nil {
		return result.Addr{}
	}
	ap, err := netip.ParseAddrPort(a.String())
	if err != nil {
		return result.Addr{Host: a.String()}
	}
	return result.Addr{Host: ap.Addr().Unmap().String(), Port: int(ap.Port())}
}

// isTCP reports whether the socket carries TCP (or MPTCP).
func (c *Conn) isTCP() bool {
	_, ok := c.nc.(*net.TCPConn)
	return ok
}

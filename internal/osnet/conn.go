// Package osnet is the sockets of every system behind values: dialling and
// listening with all options of a Plan, TCP_INFO, buffer sizes, queue lengths, and
// the cheap ways to move bytes. Everything above it compiles and tests anywhere.
package osnet

import (
	"net"
	"net/netip"

	"github.com/fullbore-net/fullbore/result"
)

// Conn is one data stream's socket. Whoever holds it closes it; the methods may be
// called from any goroutine while another reads or writes, except after Close.
type Conn struct {
	nc net.Conn
}

// NewConn takes over nc, which must be a *net.TCPConn or *net.UDPConn (or, in tests, any net.Conn).
func NewConn(nc net.Conn) *Conn { return &Conn{nc: nc} }

// Net returns the wrapped connection. It stays owned by c.
func (c *Conn) Net() net.Conn { return c.nc }

// Close closes the socket.
func (c *Conn) Close() error { return c.nc.Close() }

// Local and Remote return the socket's addresses, IPv4-mapped ones as IPv4, zone kept.
func (c *Conn) Local() result.Addr { return addrOf(c.nc.LocalAddr()) }

// Remote returns the peer's address.
func (c *Conn) Remote() result.Addr { return addrOf(c.nc.RemoteAddr()) }

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

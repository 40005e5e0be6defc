package iperf3

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/fullbore-net/fullbore/internal/osnet"
	"github.com/fullbore-net/fullbore/result"
)

// How the control connection comes about.

// controlOptions are the socket options of the control connection.
func (r *clientRun) controlOptions() osnet.Options {
	return osnet.Options{
		Family: r.p.Family, BindHost: r.p.BindHost, BindDev: r.p.BindDev, NoDelay: true,
		UserTimeout: r.p.SendTimeout, Keepalive: r.p.Keepalive, Timeout: r.p.ConnectTimeout,
	}
}

// connect resolves the host and connects to its first address that answers. Going on
// to a further address is said (field case F13).
func (r *clientRun) connect(ctx context.Context) error {
	addrs, err := osnet.ResolveOn(ctx, r.p.Host, r.p.Family, r.p.BindDev)
	if err != nil {
		return &result.Error{Code: "resolve", Text: err.Error(), Number: codeConnect, Errno: errnoOr(err, linuxEAGAIN)}
	}
	began := time.Now()
	conn, notices, err := osnet.DialFirst(ctx, "tcp", r.p.Host, addrs, uint16(r.p.Port), r.controlOptions())
	if err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return connectError(err, r.p.Port)
	}
	r.noteConnect(began)
	remote, err := netip.ParseAddrPort(conn.Net().RemoteAddr().String())
	if err != nil {
		_ = conn.Close()
		return connectError(err, r.p.Port)
	}
	r.addr = netip.AddrPortFrom(remote.Addr().Unmap(), remote.Port())
	r.out.notices(notices)
	r.conn = conn
	r.ctl = newControl(conn.Net(), true, MaxResults, nil, r.frame)
	return nil
}

func errnoOr(err error, other int) int {
	if n := errno(err); n != 0 {
		return n
	}
	return other
}

// connectError words why nobody could be reached.
func connectError(err error, port int) *result.Error {
	e := &result.Error{Code: "connect", Number: codeConnect, Errno: errno(err), Text: err.Error()}
	var addr *osnet.AddrError
	var conn *osnet.ConnectError
	switch {
	case errors.As(err, &addr):
		e.Code = "address"
	case errors.As(err, &conn) && conn.Timeout():
		e.Text += ": nothing answered; a firewall may drop it, or the host is down"
		e.Errno = linuxETIMEDOUT
	case e.Errno == linuxECONNREFUSED:
		e.Text += fmt.Sprintf(": the host answers, but nothing listens on port %d; start a server there (fullbore serve, or iperf3 -s) or name its port", port)
	}
	return e
}

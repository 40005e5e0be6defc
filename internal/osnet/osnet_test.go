package osnet

import (
	"context"
	"net"
	"net/netip"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/fullbore-net/fullbore/result"
)

func TestMain(m *testing.M) {
	// Before any test moves its thread to a namespace: the answer is for the process.
	Capabilities()
	goleak.VerifyTestMain(m)
}

// cannot skips a test that this user or machine may not run. CI has all that they need,
// so there it is a failure.
func cannot(t *testing.T, why string) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatal(why)
	}
	t.Skip(why)
}

func loopback(port uint16) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), port)
}

// mustListen listens on addr until the test ends.
func mustListen(t *testing.T, addr string, o Options) *Listener {
	t.Helper()
	ln, err := Listen(context.Background(), "tcp", netip.MustParseAddrPort(addr), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ln.Close() })
	return ln.(*Listener)
}

func portOf(ln net.Listener) uint16 { return netip.MustParseAddrPort(ln.Addr().String()).Port() }

// pair connects to ln at host with co and accepts with so, until the test ends.
func pair(t *testing.T, ln *Listener, host string, co, so Options) (client, server *Conn) {
	t.Helper()
	client, cn, server, sn := pairNotices(t, ln, host, co, so)
	if len(cn) != 0 || len(sn) != 0 {
		t.Fatalf("notices: client %v, server %v", cn, sn)
	}
	return client, server
}

func pairNotices(t *testing.T, ln *Listener, host string, co, so Options) (client *Conn, cn []result.Notice, server *Conn, sn []result.Notice) {
	t.Helper()
	client, cn, err := Dial(context.Background(), "tcp", netip.AddrPortFrom(netip.MustParseAddr(host), portOf(ln)), co)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	nc, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	server = NewConn(nc)
	t.Cleanup(func() { _ = server.Close() })
	if sn, err = Apply(server, so); err != nil {
		t.Fatal(err)
	}
	return client, cn, server, sn
}

func addrPort(host string, port uint16) netip.AddrPort {
	return netip.AddrPortFrom(netip.MustParseAddr(host), port)
}

func codes(notices []result.Notice) []string {
	var c []string
	for _, n := range notices {
		c = append(c, n.Code)
	}
	return c
}

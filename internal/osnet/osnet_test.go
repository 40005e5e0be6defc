package osnet

import (
	"context"
	"net/netip"
	"testing"
)

func TestDialListenApply(t *testing.T) {
	ctx := context.Background()
	ln, err := Listen(ctx, "tcp", netip.MustParseAddrPort("[::]:0"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	port := netip.MustParseAddrPort(ln.Addr().String()).Port()
	c, n, err := Dial(ctx, "tcp", netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), port), Options{Window: 65536, MSS: 1200, TOS: 184, Congestion: "reno"})
	if err != nil || len(n) != 0 {
		t.Fatal(n, err)
	}
	defer c.Close()
	nc, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	s := NewConn(nc)
	defer s.Close()
	if n, err := Apply(s, Options{Window: 65536, TOS: 184, Congestion: "reno", NoDelay: true}); err != nil || len(n) != 0 {
		t.Fatal(n, err)
	}
	if tos, err := s.TOS(); err != nil || tos != 184 {
		t.Fatal(tos, err)
	}
	ti, err := c.TCPInfo()
	t.Logf("%+v %v", ti, err)
	if ti.MSS == 0 || ti.MSS > 1200 {
		t.Fatal(ti.MSS)
	}
	fd, err := c.Detach()
	if err != nil || fd < 0 {
		t.Fatal(err)
	}
	if q, err := c.SendQueue(); err != nil || q != 0 {
		t.Fatal(q, err)
	}
}

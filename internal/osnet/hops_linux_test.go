package osnet

import (
	"context"
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestHops(t *testing.T) {
	n := newNetwork(t)
	// The peer is a router that does not know fd78::/16.
	run(t, "ip", "-6", "route", "add", "fd78::/16", "via", "fd77::2")
	n.peer(func() {
		writeSysctl(t, "net.ipv4.ip_forward", "1")
		writeSysctl(t, "net.ipv6.conf.all.forwarding", "1")
		writeSysctl(t, "net.ipv4.icmp_ratelimit", "0")
		writeSysctl(t, "net.ipv6.icmp.ratelimit", "0")
		run(t, "ip", "addr", "add", "10.79.0.1/32", "dev", "lo")
	})
	run(t, "ip", "route", "add", "10.79.0.1/32", "via", "10.77.0.2")
	// What goes to 10.76.0.0/16 comes back here, where it ends: only the router answers.
	run(t, "ip", "route", "add", "10.76.0.0/16", "via", "10.77.0.2")
	n.peer(func() { run(t, "ip", "route", "add", "10.76.0.0/16", "via", "10.77.0.1") })
	same := func(a, b netip.Addr) bool { return a == b }
	for _, c := range []struct {
		to   string
		want []Hop
	}{
		{"10.77.0.2", []Hop{{1, netip.MustParseAddr("10.77.0.2")}}},
		{"10.79.0.1", []Hop{{1, netip.MustParseAddr("10.79.0.1")}}},
		{"10.76.0.9", []Hop{{1, netip.MustParseAddr("10.77.0.2")}}}, // time exceeded, then silence
		{"fd77::2", []Hop{{1, netip.MustParseAddr("fd77::2")}}},
		{"fd78::9", []Hop{{1, netip.MustParseAddr("fd77::2")}}},
		{"127.0.0.1", []Hop{{1, netip.MustParseAddr("127.0.0.1")}}},
	} {
		got, err := Hops(context.Background(), netip.MustParseAddr(c.to), time.Second)
		if diff := cmp.Diff(c.want, got, cmp.Comparer(same)); err != nil || diff != "" {
			t.Errorf("%s: %v\n%s", c.to, err, diff)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if got, err := Hops(ctx, netip.MustParseAddr("10.77.0.99"), time.Minute); err != nil || got != nil {
		t.Errorf("after the end: %v, %v", got, err)
	}
}

func TestHopMessage(t *testing.T) {
	for _, d := range [][]byte{nil, make([]byte, 15), make([]byte, 16), make([]byte, 64)} {
		if _, _, ok := hopMessage(d); ok {
			t.Errorf("%d bytes of nothing are an answer", len(d))
		}
	}
}

package datagram_test

import (
	"testing"

	"github.com/fullbore-net/fullbore/internal/datagram"
	"github.com/fullbore-net/fullbore/result"
)

func TestOwners(t *testing.T) {
	n := func(i int64) *int64 { return &i }
	for _, c := range []struct {
		loss   int64
		socket *int64
		joined bool
		host   *int64 // softnet and NIC
		want   string
	}{
		{0, n(0), false, nil, ""},
		{10, nil, false, nil, "of the lost: who dropped them is not known (unknown)"},
		{10, n(0), false, nil, "of the lost: 0 dropped by the receiver's sockets (their buffers were full), at most 10 by the network (bounded)"},
		{10, n(7), false, nil, "of the lost: 7 dropped by the receiver's sockets (their buffers were full), at most 3 by the network (bounded)"},
		{10, n(7), true, nil, "of the lost: at least 7 dropped by the receiver's sockets (their buffers were full); the rest there or in the network (bounded)"},
		{10, n(12), false, nil, "of the lost: 10 dropped by the receiver's sockets (their buffers were full), 0 by the network (exact)"},
		{10, n(4), false, n(0), "of the lost: 4 dropped by the receiver's sockets (their buffers were full), 6 by the network (exact)"},
	} {
		l := result.UDPLoss{Sent: 100, Lost: c.loss}
		datagram.Attribute(&l, c.socket, c.joined, c.host, c.host)
		if got := datagram.Owners(&l); got != c.want {
			t.Errorf("%+v: %q, want %q", c, got, c.want)
		}
	}
	if got := datagram.Owners(nil); got != "" {
		t.Errorf("no loss known: %q", got)
	}
}

func TestDropped(t *testing.T) {
	n := int64(3)
	for want, u := range map[string]*result.UDPStream{
		"": {Received: &result.UDPReceived{SocketDrops: &n}, Loss: &result.UDPLoss{}},
		"dropped by the receiver's sockets (their buffers were full): 3 datagrams":          {Received: &result.UDPReceived{SocketDrops: &n}},
		"dropped by the receiver's sockets (their buffers were full): at least 3 datagrams": {Received: &result.UDPReceived{SocketDrops: &n, Coalesced: true}},
	} {
		if got := datagram.Dropped(u); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if got := datagram.Dropped(nil); got != "" {
		t.Errorf("%q of nothing", got)
	}
}

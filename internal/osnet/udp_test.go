package osnet

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// wildcard is a server's socket; it waits at most as long as no good test does.
func wildcard(t *testing.T, addr string) *PacketConn {
	t.Helper()
	u, notices, err := ListenUDP(context.Background(), netip.MustParseAddrPort(addr), Options{})
	if err != nil || len(notices) > 0 {
		t.Fatal(notices, err)
	}
	p, err := NewPacketConn(u)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	if err := p.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	return p
}

// dialUDP connects to p at host.
func dialUDP(t *testing.T, p *PacketConn, host string) *Conn {
	t.Helper()
	c, _, err := Dial(context.Background(), "udp", addrPort(host, p.LocalAddr().Port()), Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if err := c.Net().SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	return c
}

func say(t *testing.T, c *Conn, text string) {
	t.Helper()
	if _, err := c.Net().Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
}

// hear reads one datagram.
func hear(t *testing.T, c *Conn, want string) {
	t.Helper()
	b := make([]byte, 2000)
	n, err := c.Net().Read(b)
	if err != nil || string(b[:n]) != want {
		t.Fatalf("got %q, %v; want %q", b[:n], err, want)
	}
}

func ownAddr(c *Conn) netip.AddrPort { return addrPort(c.Local().Host, uint16(c.Local().Port)) }

// F11: one socket serves all addresses, and each answer comes from the one that was
// asked: the client's connected socket would not see another.
func TestAnswersFromTheRightAddress(t *testing.T) {
	type end struct{ listen, host string }
	ends := []end{
		{"0.0.0.0:0", "127.0.0.1"}, {"0.0.0.0:0", "127.0.0.3"}, {"127.0.0.2:0", "127.0.0.2"},
	}
	if Capabilities().IPv6 {
		ends = append(ends, end{"[::]:0", "127.0.0.1"}, end{"[::]:0", "127.0.0.3"}, end{"[::]:0", "::1"}, end{"[::1]:0", "::1"})
	}
	for _, e := range ends {
		if !loopbackNet() && strings.HasPrefix(e.host, "127.0.0.") && e.host != "127.0.0.1" {
			continue
		}
		t.Run(e.listen+" "+e.host, func(t *testing.T) {
			p := wildcard(t, e.listen)
			if !p.info {
				t.Fatal("the system does not tell the local address")
			}
			c := dialUDP(t, p, e.host)
			before := time.Now().Add(-time.Second)
			say(t, c, "hello")
			b := make([]byte, 3)
			n, from, to, at, err := p.Read(b)
			if err != nil || string(b[:n]) != "hel" {
				t.Fatalf("%q, %v", b[:n], err)
			}
			if from != ownAddr(c) || to != netip.MustParseAddr(e.host) {
				t.Errorf("from %v to %v, want %v to %v", from, to, ownAddr(c), e.host)
			}
			if p.stamps != (at != 0) || at != 0 && (at < before.UnixNano() || at > time.Now().Add(time.Second).UnixNano()) {
				t.Errorf("stamp %d (told: %v), sent after %v", at, p.stamps, before)
			}
			if _, err := p.Write([]byte("answer"), from, to); err != nil {
				t.Fatal(err)
			}
			hear(t, c, "answer")
			// Unknown, or of the other family: as the route has it.
			other := netip.MustParseAddr("fd00::1")
			if from.Addr().Is6() {
				other = netip.MustParseAddr("10.0.0.1")
			}
			for _, src := range []netip.Addr{{}, other, netip.IPv4Unspecified(), netip.IPv6Unspecified()} {
				if _, err := p.Write([]byte("again"), from, src); err != nil {
					t.Errorf("from %v: %v", src, err)
				}
			}
		})
	}
}

// loopbackNet reports whether all of 127.0.0.0/8 is this machine's.
func loopbackNet() bool {
	l, err := net.ListenPacket("udp4", "127.0.0.3:0")
	if err != nil {
		return false
	}
	_ = l.Close()
	return true
}

func TestPacketConnDeadlineAndClose(t *testing.T) {
	p := wildcard(t, "127.0.0.1:0")
	if err := p.SetReadDeadline(time.Now()); err != nil {
		t.Fatal(err)
	}
	if _, _, _, _, err := p.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("after the deadline: %v", err)
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if _, _, _, _, err := p.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

// A port in use stays an error, though streams may be bound beside the server's socket.
func TestListenUDPRefusesATakenPort(t *testing.T) {
	for _, addr := range []string{"127.0.0.1:0", "0.0.0.0:0"} {
		p := wildcard(t, addr)
		_, _, err := ListenUDP(context.Background(), p.LocalAddr(), Options{})
		var ae *AddrError
		if !errors.As(err, &ae) || ae.Reason != PortTaken {
			t.Errorf("second socket on %v: %v, want port-taken", p.LocalAddr(), err)
		}
	}
}

// Shared is what ConnectBeside is elsewhere: four streams over one socket, each gets
// its own datagrams, answers come from the address that was asked.
func TestShared(t *testing.T) {
	p := wildcard(t, "0.0.0.0:0")
	s := NewShared(p)
	const streams, each = 4, 50
	clients := make([]*Conn, streams)
	servers := make([]*Conn, streams)
	b := make([]byte, 2000)
	hosts := []string{"127.0.0.1"}
	if loopbackNet() {
		hosts = append(hosts, "127.0.0.3")
	}
	for i := range clients {
		clients[i] = dialUDP(t, p, hosts[i%len(hosts)])
		say(t, clients[i], "greeting")
		n, from, to, at, err := p.Read(b)
		if err != nil || s.Deliver(from, b[:n], at) {
			t.Fatalf("a stream before Open: %v", err)
		}
		if servers[i], err = s.Open(to, from); err != nil {
			t.Fatal(err)
		}
		defer servers[i].Close()
		if err := servers[i].Net().SetDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		if got, want := servers[i].Remote().Host, clients[i].Local().Host; got != want || servers[i].Local().Host != hosts[i%len(hosts)] {
			t.Errorf("stream %d: %v to %v", i, servers[i].Local(), servers[i].Remote())
		}
		var ae *AddrError
		if _, err := s.Open(to, from); !errors.As(err, &ae) || ae.Reason != PortTaken {
			t.Errorf("the same stream again: %v", err)
		}
	}
	for k := range each {
		for i, c := range clients {
			say(t, c, fmt.Sprint(i, k))
			n, from, _, at, err := p.Read(b)
			if err != nil || !s.Deliver(from, b[:n], at) {
				t.Fatalf("datagram %d of stream %d: %v", k, i, err)
			}
		}
	}
	for i, c := range servers {
		for k := range each {
			n, segment, at, err := c.ReadDatagrams(b)
			if err != nil || segment != 0 || string(b[:n]) != fmt.Sprint(i, k) || p.stamps != (at != 0) {
				t.Fatalf("stream %d: %q, stamp %d, %v", i, b[:n], at, err)
			}
		}
		say(t, c, fmt.Sprint("answer ", i))
		hear(t, clients[i], fmt.Sprint("answer ", i))
	}
	// An address of its own, in either form, and none that is not a stream's.
	a := ownAddr(clients[0])
	if !s.Deliver(netip.AddrPortFrom(netip.AddrFrom16(a.Addr().As16()), a.Port()), []byte("mapped"), 0) {
		t.Error("an IPv4-mapped address is not found")
	}
	hear(t, servers[0], "mapped")
	if s.Deliver(netip.AddrPortFrom(a.Addr(), 1), nil, 0) {
		t.Error("a stranger's datagram was taken")
	}
	if err := servers[0].Close(); err != nil {
		t.Fatal(err)
	}
	if s.Deliver(a, nil, 0) {
		t.Error("a closed stream takes datagrams")
	}
	if _, err := servers[0].Net().Read(b); !errors.Is(err, net.ErrClosed) {
		t.Errorf("read after Close: %v", err)
	}
	if again, err := s.Open(netip.Addr{}, a); err != nil {
		t.Errorf("opened again: %v", err)
	} else {
		_ = again.Close()
	}
}

// What a stream's queue has no room for is counted, and more room can be asked for.
func TestSharedQueueIsBounded(t *testing.T) {
	p := wildcard(t, "127.0.0.1:0")
	s := NewShared(p)
	from := addrPort("127.0.0.1", 9)
	c, err := s.Open(netip.Addr{}, from)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	b := make([]byte, 1<<20-overhead)
	for range 6 {
		if !s.Deliver(from, b, 0) {
			t.Fatal("not taken")
		}
	}
	drops := func(want int64) {
		t.Helper()
		n, err := c.SocketDrops()
		if err != nil && !errors.Is(err, errors.ErrUnsupported) || n != want {
			t.Errorf("%d drops, %v; want %d", n, err, want)
		}
	}
	drops(2)
	if _, err := c.GrowReceive(6 << 20); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		s.Deliver(from, b, 0)
	}
	drops(3)
	buf := make([]byte, len(b))
	for range 6 {
		if n, err := c.Net().Read(buf); n != len(b) || err != nil {
			t.Fatal(n, err)
		}
	}
	if got := testing.AllocsPerRun(100, func() {
		s.Deliver(from, b[:1400], 1)
		_, _ = c.Net().Read(buf)
	}); got != 0 {
		t.Errorf("%v allocations a datagram", got)
	}
}

func TestSharedDeadlines(t *testing.T) {
	s := NewShared(wildcard(t, "127.0.0.1:0"))
	from := addrPort("127.0.0.1", 9)
	c, err := s.Open(netip.Addr{}, from)
	if err != nil {
		t.Fatal(err)
	}
	nc, b := c.Net(), make([]byte, 10)
	if err := nc.SetDeadline(time.Now().Add(-time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := nc.Read(b); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("read: %v", err)
	}
	if _, err := nc.Write(b); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("write: %v", err)
	}
	if err := nc.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	s.Deliver(from, []byte("x"), 0)
	if n, err := nc.Read(b); n != 1 || err != nil {
		t.Errorf("moved on: %d, %v", n, err)
	}
	if err := nc.SetReadDeadline(time.Now().Add(10 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if _, err := nc.Read(b); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("waited: %v", err)
	}
	if err := nc.SetReadDeadline(time.Time{}); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error)
	go func() {
		_, err := nc.Read(b)
		ended <- err
	}()
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; !errors.Is(err, net.ErrClosed) {
		t.Errorf("Close ends a read with %v", err)
	}
	if err := nc.SetDeadline(time.Time{}); !errors.Is(err, net.ErrClosed) {
		t.Errorf("deadline after Close: %v", err)
	}
}

// What cannot be had for one of many streams is said (F15: the TOS not silently unset).
func TestSharedOptions(t *testing.T) {
	s := NewShared(wildcard(t, "127.0.0.1:0"))
	c, err := s.Open(netip.Addr{}, addrPort("127.0.0.1", 9))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	notices, err := Apply(c, Options{TOS: 184, FQRate: 1e6, DontFragment: true})
	if err != nil || !slices.Equal(codes(notices), []string{"option-refused", "option-refused", "option-refused"}) {
		t.Fatal(notices, err)
	}
	if want := "option tos 184: all streams of this server share one UDP socket; the run goes on without it"; notices[0].Text != want {
		t.Errorf("got %q, want %q", notices[0].Text, want)
	}
	if _, err := c.Detach(); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("Detach: %v", err)
	}
	if err := c.SetSegment(100); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("SetSegment: %v", err)
	}
	if b, err := c.BufferFacts(0); err != nil || b.RcvUsable <= 0 {
		t.Errorf("buffers %+v, %v", b, err)
	}
	own, err := c.UsableDatagram()
	like := dialUDP(t, s.p, "127.0.0.1")
	want, werr := like.UsableDatagram()
	if own != want || (err == nil) != (werr == nil) {
		t.Errorf("usable %d, %v; a socket of its own says %d, %v", own, err, want, werr)
	}
}

// The way of systems without batches: several datagrams in one write, several in one read.
func TestReadDatagrams(t *testing.T) {
	p := wildcard(t, "127.0.0.1:0")
	c := dialUDP(t, p, "127.0.0.1")
	say(t, c, "hello")
	b := make([]byte, 64<<10)
	_, from, _, _, err := p.Read(b)
	if err != nil {
		t.Fatal(err)
	}
	can := Capabilities()
	if err := c.SetStamps(); (err == nil) != can.Stamps {
		t.Errorf("SetStamps: %v", err)
	}
	const size, count = 100, 10
	all := []byte(strings.Repeat("0123456789", size*count/10))
	if can.Coalesce {
		if err := c.SetCoalesce(true); err != nil {
			t.Fatal(err)
		}
	}
	if can.Segment {
		if err := (&Conn{nc: p.u, rc: p.rc}).SetSegment(size); err != nil {
			t.Fatal(err)
		}
		if _, err := p.Write(all, from, netip.Addr{}); err != nil {
			t.Fatal(err)
		}
	} else {
		for i := range count {
			if _, err := p.Write(all[i*size:(i+1)*size], from, netip.Addr{}); err != nil {
				t.Fatal(err)
			}
		}
	}
	var got []byte
	for len(got) < len(all) {
		n, segment, stamp, err := c.ReadDatagrams(b)
		if err != nil || segment == 0 && n != size || segment != 0 && (segment != size || n <= size || !can.Coalesce) || can.Stamps != (stamp != 0) {
			t.Fatalf("%d bytes in segments of %d, stamp %d, %v", n, segment, stamp, err)
		}
		got = append(got, b[:n]...)
	}
	if string(got) != string(all) {
		t.Error("the bytes differ")
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if _, _, _, err := c.ReadDatagrams(b); !errors.Is(err, net.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

// The message that chooses a source has the form of the one that tells it.
func TestSourceControl(t *testing.T) {
	for _, a := range []string{"127.0.0.3", "fd77::1", "fe80::1"} {
		from := netip.MustParseAddr(a)
		var room [controlWords]uint64
		room[controlWords-1] = 1 // what was there before does not matter
		n := sourceControl(room[:], from)
		if n <= 0 || n%8 != 0 || n > 8*controlWords {
			t.Fatalf("%v: %d bytes", from, n)
		}
		if got := packetInfo(room[:], n); got != (arrival{to: from}) {
			t.Errorf("%v: %+v", from, got)
		}
		// A cut or damaged message is left alone.
		for k := range n {
			_ = packetInfo(room[:], k)
		}
	}
}

func TestClocksAgreeWithTheTimeOfDay(t *testing.T) {
	first := Monotonic()
	if diff := time.Since(time.Unix(0, RealOffset()+Monotonic())); diff.Abs() > time.Second {
		t.Errorf("off by %v", diff)
	}
	if now := Monotonic(); now < first {
		t.Errorf("runs backwards: %d, %d", first, now)
	}
}

// Where the system cuts long writes into datagrams (GSO, USO) they come as such; where it does
// not, it says so, and each write is a datagram.
func TestSegmentOrNot(t *testing.T) {
	p := wildcard(t, "127.0.0.1:0")
	c := dialUDP(t, p, "127.0.0.1")
	r, err := NewPacketReceiver(p, 5000, 1)
	if err != nil {
		t.Fatal(err)
	}
	const size = 1000
	writes, want := 1, []int{size, size, size, size / 2}
	if err := c.SetSegment(size); !Capabilities().Segment {
		writes, want = 2, []int{3*size + size/2, 3*size + size/2}
		if err == nil {
			t.Fatal("SetSegment did not say that it is not there")
		}
	} else if err != nil {
		t.Fatal(err)
	}
	for range writes {
		if _, err := c.Net().Write(make([]byte, 3*size+size/2)); err != nil {
			t.Fatal(err)
		}
	}
	var got []int
	for len(got) < len(want) {
		n, err := r.Receive()
		if err != nil {
			t.Fatalf("%v after datagrams of %v", err, got)
		}
		for i := range n {
			data, _, _ := r.Message(i)
			got = append(got, len(data))
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("datagrams of %v, want %v", got, want)
	}
	if !Capabilities().Coalesce && c.SetCoalesce(true) == nil {
		t.Error("SetCoalesce did not say that it is not there")
	}
}

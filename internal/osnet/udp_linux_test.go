package osnet

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fullbore-net/fullbore/result"
)

// eventually polls a condition that must come true.
func eventually(t *testing.T, what string, cond func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !cond(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not after a minute: %s", what)
		}
	}
}

// F09: what a small receive buffer drops is counted exactly, datagram by datagram.
func TestSocketDropsAreExact(t *testing.T) {
	for _, segment := range []bool{false, true} {
		_, b, afd, bfd := udpPair(t, "127.0.0.1")
		if err := b.control(func(fd uintptr) error { return optRcvBuf.set(fd, 4096) }); err != nil {
			t.Fatal(err)
		}
		const size, batch, rounds = 1000, 50, 8
		d := must[*DatagramSender](t)(NewDatagramSender(afd, size, batch, segment))
		r := must[*DatagramReceiver](t)(NewDatagramReceiver(bfd, size, 16, false, true))
		before := must[int64](t)(b.SocketDrops())
		for k := range rounds {
			sendAll(t, d, uint64(k*batch), batch)
		}
		if err := unix.SetNonblock(bfd, true); err != nil {
			t.Fatal(err)
		}
		got := int64(0)
		eventually(t, "every datagram read or counted as dropped", func() bool {
			n, _ := r.Receive()
			got += int64(n)
			return got+must[int64](t)(b.SocketDrops())-before >= batch*rounds
		})
		if n, e := r.Receive(); n != 0 || e != unix.EAGAIN {
			t.Errorf("%d more datagrams, %v", n, e)
		}
		dropped := must[int64](t)(b.SocketDrops()) - before
		if got+dropped != batch*rounds || got == 0 || dropped == 0 {
			t.Errorf("segment %v: %d received, %d dropped, %d sent", segment, got, dropped, batch*rounds)
		}
	}
}

// dial connects to the peer of a network.
func (n *network) dial(t *testing.T, to netip.AddrPort, o Options) *Conn {
	t.Helper()
	c, _, err := Dial(context.Background(), "udp", to, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// packets makes a server's socket at the peer.
func (n *network) packets(t *testing.T, addr string) *PacketConn {
	t.Helper()
	var p *PacketConn
	var err error
	n.peer(func() { // where the test cannot be ended
		u, _, lerr := ListenUDP(context.Background(), netip.MustParseAddrPort(addr), Options{})
		if err = lerr; err == nil {
			p, err = NewPacketConn(u)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	if err := p.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	return p
}

// F07: the usable size follows the path, and what does not fit is refused with DF and
// cut without.
func TestPathMTU(t *testing.T) {
	n := newNetwork(t)
	p := n.packets(t, "[::]:0")
	port := p.LocalAddr().Port()
	for _, mtu := range []int{1500, 1280} {
		run(t, "ip", "link", "set", n.a, "mtu", fmt.Sprint(mtu))
		for _, tt := range []struct {
			host    string
			headers int
		}{{"10.77.0.2", 28}, {"fd77::2", 48}} {
			c := n.dial(t, addrPort(tt.host, port), Options{})
			usable, err := c.UsableDatagram()
			if got, merr := c.PathMTU(); got != mtu || merr != nil || usable != mtu-tt.headers || err != nil {
				t.Fatalf("%s at MTU %d: path %d, %v; usable %d, %v", tt.host, mtu, got, merr, usable, err)
			}
			fd := must[int](t)(c.Detach())
			if err := SetBlocking(fd, 5*time.Second); err != nil {
				t.Fatal(err)
			}
			buf := make([]byte, 1<<16)
			for _, df := range []bool{true, false} {
				if err := c.SetDontFragment(df); err != nil {
					t.Fatal(err)
				}
				for _, size := range []int{usable, usable + 1} {
					for _, segment := range []bool{false, true} {
						d := must[*DatagramSender](t)(NewDatagramSender(fd, size, 3, segment))
						sent, e := 0, unix.Errno(unix.EINTR)
						for calls := 0; e == unix.EINTR && sent < 3 && calls < 10; calls++ {
							var m int
							m, e = d.Send(3 - sent)
							sent += m
						}
						name := fmt.Sprintf("%s at MTU %d, %d bytes, DF %v, segment %v", tt.host, mtu, size, df, segment)
						if df && size > usable {
							if sent != 0 || e != unix.EMSGSIZE || d.Segmented() {
								t.Errorf("%s: sent %d, %v, want EMSGSIZE; segmented %v", name, sent, e, d.Segmented())
							}
							continue
						}
						if sent != 3 || e != 0 || d.Segmented() != (segment && size == usable && Capabilities().Segment) {
							t.Errorf("%s: sent %d, %v, segmented %v", name, sent, e, d.Segmented())
						}
						for range sent {
							if m, _, _, _, err := p.Read(buf); err != nil || m != size {
								t.Fatalf("%s: read %d bytes, %v", name, m, err)
							}
						}
					}
				}
			}
		}
	}
	// On loopback an IP packet may be longer than UDP can fill.
	c := n.dial(t, addrPort("127.0.0.1", 9), Options{})
	if got, err := c.UsableDatagram(); got != largestPayload4 || err != nil {
		t.Errorf("loopback: %d, %v; want %d", got, err, largestPayload4)
	}
}

// A socket or device that takes no super-packets costs the offload and nothing else.
func TestSegmentFallsBack(t *testing.T) {
	_, b, afd, bfd := udpPair(t, "127.0.0.1")
	if _, err := b.GrowReceive(1 << 20); err != nil {
		t.Fatal(err)
	}
	// Without checksum the kernel refuses them (net/ipv4/udp.c, udp_send_skb).
	if err := unix.SetsockoptInt(afd, unix.SOL_SOCKET, unix.SO_NO_CHECK, 1); err != nil {
		t.Fatal(err)
	}
	d := must[*DatagramSender](t)(NewDatagramSender(afd, 100, 96, true))
	if sent, e := d.Send(96); sent != 0 || e != unix.EINTR || d.Segmented() {
		t.Fatalf("sent %d, %v, segmented %v", sent, e, d.Segmented())
	}
	r := must[*DatagramReceiver](t)(NewDatagramReceiver(bfd, 100, 8, true, false))
	sendAll(t, d, 7, 96)
	if seqs, _ := collect(t, r, 100, 96); seqs[0] != 7 || seqs[95] != 102 {
		t.Errorf("%v", seqs)
	}
}

// What this host's own queue did not take was not sent: the sender is told, and every
// datagram that it counts arrives.
func TestOwnQueueRefuses(t *testing.T) {
	n := newNetwork(t)
	p := n.packets(t, "10.77.0.2:0")
	if notices, err := p.GrowReceive(4 << 20); err != nil || len(notices) > 0 {
		t.Fatal(notices, err)
	}
	run(t, "tc", "qdisc", "add", "dev", n.a, "root", "tbf", "rate", "20mbit", "burst", "3000", "limit", "6000")
	c := n.dial(t, p.LocalAddr(), Options{})
	fd := must[int](t)(c.Detach())
	if err := SetBlocking(fd, 5*time.Second); err != nil {
		t.Fatal(err)
	}
	d := must[*DatagramSender](t)(NewDatagramSender(fd, 1000, 40, false))
	sent, refused := 0, 0
	for range 20 {
		m, e := d.Send(40)
		sent += m
		switch e {
		case 0, unix.EINTR:
		case unix.ENOBUFS:
			refused++
		default:
			t.Fatal(e)
		}
	}
	if refused == 0 || sent == 0 {
		t.Fatalf("sent %d, refused %d times", sent, refused)
	}
	buf := make([]byte, 2000)
	for k := range sent {
		if _, _, _, _, err := p.Read(buf); err != nil {
			t.Fatalf("after %d of %d datagrams: %v", k, sent, err)
		}
	}
	// Nothing that was refused came all the same: the marker is the next.
	if _, e := Write(fd, []byte("end")); e != 0 {
		eventually(t, "room for the marker", func() bool { _, e := Write(fd, []byte("end")); return e == 0 })
	}
	if m, _, _, _, err := p.Read(buf); err != nil || string(buf[:m]) != "end" {
		t.Errorf("%d bytes more, %v", m, err)
	}
}

// A router's or firewall's word that the host cannot be reached is counted and ends
// nothing; that nobody listens is told.
func TestICMPErrors(t *testing.T) {
	for _, tt := range []struct {
		host, family, soft string
		sizes              []int
	}{{"10.77.0.2", "icmp", "host-unreachable", []int{1, 32}}, {"fd77::2", "icmpv6", "addr-unreachable", []int{1, 32}}} {
		n := newNetwork(t)
		p := n.packets(t, "[::]:0")
		port := p.LocalAddr().Port()
		var soft bool
		n.peer(func() { count(t) })
		reject := func(kind string) {
			n.peer(func() {
				run(t, "nft", fmt.Sprintf("flush chain inet t i; add rule inet t i udp dport %d reject with %s type %s", port, tt.family, kind))
				// The kernel answers a host only so many times a second.
				writeSysctl(t, "net.ipv4.icmp_ratelimit", "0")
				writeSysctl(t, "net.ipv6.icmp.ratelimit", "0")
			})
		}
		for _, soft = range []bool{true, false} {
			reject(map[bool]string{true: tt.soft, false: "port-unreachable"}[soft])
			for _, size := range tt.sizes {
				c := n.dial(t, addrPort(tt.host, port), Options{})
				fd := must[int](t)(c.Detach())
				if err := SetBlocking(fd, 5*time.Second); err != nil {
					t.Fatal(err)
				}
				d := must[*DatagramSender](t)(NewDatagramSender(fd, 100, size, false))
				told := false
				eventually(t, "ICMP errors are seen", func() bool {
					sent, e := d.Send(size)
					if e == unix.ECONNREFUSED {
						told = true
					} else if e != 0 && e != unix.EINTR || e == 0 && sent != size {
						t.Fatalf("%s, soft %v, %d a call: sent %d, %v", tt.host, soft, size, sent, e)
					}
					return soft && d.Unreachable() > 2 || !soft && told && d.Refused() > 2
				})
				if soft && (told || d.Refused() > 0) || !soft && d.Unreachable() > 0 {
					t.Errorf("%s, soft %v, %d a call: told %v, refused %d, unreachable %d", tt.host, soft, size, told, d.Refused(), d.Unreachable())
				}
			}
		}
	}
}

// F11 and F12 across a link: the server has two addresses, and a link-local one.
func TestServerAcrossALink(t *testing.T) {
	n := newNetwork(t)
	n.peer(func() { run(t, "ip", "addr", "add", "10.77.0.3/24", "dev", n.b) })
	p := n.packets(t, "[::]:0")
	port := p.LocalAddr().Port()
	for _, host := range []string{"10.77.0.2", "10.77.0.3", "fd77::2", n.bLL + "%" + n.a} {
		c := n.dial(t, addrPort(host, port), Options{})
		if err := c.Net().SetDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		say(t, c, "greeting")
		var s *Conn
		n.peer(func() {
			b := make([]byte, 100)
			m, from, to, _, err := p.Read(b)
			if err != nil || string(b[:m]) != "greeting" || to.WithZone("") != netip.MustParseAddr(host).WithZone("") || to.Zone() != from.Addr().Zone() {
				t.Errorf("%s: %q from %v to %v, %v", host, b[:m], from, to, err)
				return
			}
			if _, err := p.Write([]byte("from the server"), from, to); err != nil {
				t.Errorf("%s: %v", host, err)
			}
			var stray []Stray
			s, stray, _, err = connectBeside(context.Background(), netip.AddrPortFrom(to, port), from, Options{}, func() { _, _ = c.Net().Write([]byte("early")) })
			if err != nil || len(stray) > 0 {
				t.Errorf("%s: stray %v, %v", host, stray, err)
				return
			}
			if _, err := s.Net().Write([]byte("from the stream")); err != nil {
				t.Errorf("%s: %v", host, err)
			}
		})
		if t.Failed() {
			return
		}
		hear(t, c, "from the server")
		hear(t, c, "from the stream")
		say(t, c, "data")
		// Whether the veth pair had delivered it by then is not ours to say; lost it is not.
		early := s.Early()
		if len(early) == 0 {
			hear(t, s, "early")
		} else if len(early) != 1 || string(early[0]) != "early" {
			t.Errorf("%s: early %q", host, early)
		}
		hear(t, s, "data")
		_ = s.Close()
	}
}

// A limit that leaves less than was asked for is named with its cure; a privileged
// process goes past it, and nobody's buffer gets smaller.
func TestGrowReceive(t *testing.T) {
	_, b, _, _ := udpPair(t, "127.0.0.1")
	_, before, err := b.Buffers()
	if err != nil {
		t.Fatal(err)
	}
	if notices, err := b.GrowReceive(1000); err != nil || len(notices) > 0 {
		t.Fatal(notices, err)
	}
	if _, after, err := b.Buffers(); after != before || err != nil {
		t.Errorf("asked for less: %d became %d, %v", before, after, err)
	}
	var limit int64
	if _, err := fmt.Sscan(sysctl("net.core.rmem_max"), &limit); err != nil {
		t.Fatal(err)
	}
	asked := 2 * max(limit, int64(before))
	if os.Geteuid() == 0 {
		if notices, err := b.GrowReceive(asked); err != nil || len(notices) > 0 {
			t.Fatal(notices, err)
		}
		if _, after, err := b.Buffers(); int64(UsableBuffer(after)) != asked || err != nil {
			t.Errorf("privileged: %d usable, %v; want %d", UsableBuffer(after), err, asked)
		}
	}
	_, c, _, _ := udpPair(t, "127.0.0.1")
	var notices []result.Notice
	withoutPrivilege(t, func() { notices, err = c.GrowReceive(asked) })
	if err != nil || len(notices) != 1 || notices[0].Code != "window-clamped" || notices[0].Level != result.Warn {
		t.Fatal(notices, err)
	}
	if n := notices[0]; !strings.Contains(n.Text, fmt.Sprintf("a receive buffer of %d bytes", asked)) ||
		!strings.Contains(n.Text, fmt.Sprintf("raise net.core.rmem_max = %d", limit)) || n.Fix != fmt.Sprintf("sysctl -w net.core.rmem_max=%d", asked) {
		t.Errorf("%q, fix %q", n.Text, n.Fix)
	}
	// More than the system's numbers hold is not taken for less.
	if notices, err := c.GrowReceive(math.MaxInt64); err != nil || len(notices) != 1 {
		t.Error(notices, err)
	}
}

// withoutPrivilege runs f on a thread that has given up its capabilities; it ends with it.
func withoutPrivilege(t *testing.T, f func()) {
	t.Helper()
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		h := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		var none [2]unix.CapUserData
		err := unix.Capset(&h, &none[0])
		if err == nil {
			f()
		}
		done <- err
	}()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

func TestUDPOptionsRefused(t *testing.T) {
	ln := mustListen(t, "127.0.0.1:0", Options{})
	c, _ := pair(t, ln, "127.0.0.1", Options{}, Options{})
	for name, err := range map[string]error{"coalesce": c.SetCoalesce(true), "segment": c.SetSegment(100)} {
		var oe *OptionError
		if !errors.As(err, &oe) || oe.Option != name || !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("%s on a TCP socket: %v", name, err)
		}
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := c.SocketDrops(); err == nil {
		t.Error("drops of a closed socket")
	}
	if _, err := c.PathMTU(); err == nil {
		t.Error("path MTU of a closed socket")
	}
}

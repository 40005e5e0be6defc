package lab_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fullbore-net/fullbore/internal/lab"
	"github.com/fullbore-net/fullbore/internal/lab/forward"
	"github.com/fullbore-net/fullbore/internal/lab/link"
)

func newLink(t *testing.T, cfg forward.Config) *lab.Network {
	t.Helper()
	needNamespaces(t)
	return network(t)(lab.NewLink(lab.LinkOptions{Config: cfg, CC: "reno", Command: linkCommand(t)}))
}

// connect joins the two ends by TCP.
func connect(t *testing.T, n *lab.Network, address string) (near, far *net.TCPConn) {
	t.Helper()
	var ln net.Listener
	err := n.Far.Do(func() (err error) {
		ln, err = net.Listen("tcp", net.JoinHostPort(address, "0"))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	var c net.Conn
	if err := n.Near.Do(func() (err error) { c, err = net.Dial("tcp", ln.Addr().String()); return err }); err != nil {
		t.Fatal(err)
	}
	f, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(); f.Close() })
	return c.(*net.TCPConn), f.(*net.TCPConn)
}

func tcpInfo(t *testing.T, c *net.TCPConn) *unix.TCPInfo {
	t.Helper()
	raw, err := c.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var info *unix.TCPInfo
	var errOpt error
	if err := raw.Control(func(fd uintptr) { info, errOpt = unix.GetsockoptTCPInfo(int(fd), unix.SOL_TCP, unix.TCP_INFO) }); err != nil || errOpt != nil {
		t.Fatal(err, errOpt)
	}
	return info
}

// TestStrippedOptions: the kernel at both ends does without what was taken out, and
// accepts the changed SYN.
func TestStrippedOptions(t *testing.T) {
	const timestamps, sack, scale = 1, 2, 4 // TCPI_OPT_* of linux/tcp.h
	for _, tt := range []struct {
		box  forward.Box
		want uint8
		mss  uint32
	}{
		{forward.Box{}, timestamps | sack | scale, 1448},
		{forward.Box{WindowScale: true}, timestamps | sack, 1448},
		{forward.Box{SACK: true}, timestamps | scale, 1448},
		{forward.Box{Timestamps: true}, sack | scale, 1460},
		{forward.Box{WindowScale: true, SACK: true, Timestamps: true, MSS: 1000}, 0, 1000},
	} {
		n := newLink(t, forward.Config{MTU: 1500, Boxes: [2]forward.Box{tt.box, tt.box}})
		for _, address := range []string{lab.FarIPv4, lab.FarIPv6} {
			near, far := connect(t, n, address)
			mss := tt.mss
			if address == lab.FarIPv6 && tt.box.MSS == 0 {
				mss -= 20
			}
			for i, c := range []*net.TCPConn{near, far} {
				if info := tcpInfo(t, c); info.Options&7 != tt.want || info.Snd_mss != mss {
					t.Errorf("%+v, %s, end %d: options %d, MSS %d, want %d and %d", tt.box, address, i, info.Options&7, info.Snd_mss, tt.want, mss)
				}
			}
		}
	}
}

// TestNarrowHop: the kernel learns of the smaller MTU when it is told, fragments arrive
// whole, and what nobody tells of vanishes.
func TestNarrowHop(t *testing.T) {
	n := newLink(t, forward.Config{MTU: 1500, Boxes: [2]forward.Box{{MTU: 1300}, {}}})
	for _, family := range []struct {
		address  string
		headers  int
		level    int
		discover int
		mtu      int
	}{
		{lab.FarIPv4, 28, unix.SOL_IP, unix.IP_MTU_DISCOVER, unix.IP_MTU},
		{lab.FarIPv6, 48, unix.SOL_IPV6, unix.IPV6_MTU_DISCOVER, unix.IPV6_MTU},
	} {
		var c, s *net.UDPConn
		err := n.Far.Do(func() (err error) {
			s, err = net.ListenUDP("udp", &net.UDPAddr{IP: net.ParseIP(family.address)})
			return err
		})
		if err == nil {
			err = n.Near.Do(func() (err error) {
				c, err = net.DialUDP("udp", nil, s.LocalAddr().(*net.UDPAddr))
				return err
			})
		}
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		defer s.Close()
		raw, err := c.SyscallConn()
		if err != nil {
			t.Fatal(err)
		}
		mtu := func(discover int) (got int) {
			err := raw.Control(func(fd uintptr) {
				if discover >= 0 {
					err = unix.SetsockoptInt(int(fd), family.level, family.discover, discover)
				}
				if err == nil {
					got, err = unix.GetsockoptInt(int(fd), family.level, family.mtu)
				}
			})
			if err != nil {
				t.Fatal(err)
			}
			return got
		}
		if got := mtu(unix.IP_PMTUDISC_DO); got != 1500 {
			t.Errorf("%s: path MTU %d at first", family.address, got)
		}
		if _, err := c.Write(make([]byte, 1400)); err != nil {
			t.Fatal(err)
		}
		// The answer is the socket's error, once, and is believed by then. To ask for the MTU all the
		// time is no way to wait for it: of a socket that a call has locked just then the kernel
		// updates the route, but not which one the socket uses (net/ipv4/route.c, ipv4_sk_update_pmtu).
		if err := c.SetReadDeadline(time.Now().Add(patience)); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Read(make([]byte, 1)); !errors.Is(err, syscall.EMSGSIZE) {
			t.Fatalf("%s: the answer to one that does not fit: %v", family.address, err)
		}
		if got := mtu(-1); got != 1300 {
			t.Errorf("%s: path MTU %d, want 1300", family.address, got)
		}
		if _, err := c.Write(make([]byte, 1300-family.headers)); err != nil {
			t.Fatalf("%s: one that fits: %v", family.address, err)
		}
		if _, err := c.Write(make([]byte, 1301-family.headers)); !errors.Is(err, syscall.EMSGSIZE) {
			t.Errorf("%s: one that does not fit: %v", family.address, err)
		}
		buf := make([]byte, 2000)
		if got, err := s.Read(buf); got != 1300-family.headers || err != nil {
			t.Errorf("%s: received %d bytes, %v", family.address, got, err)
		}
	}
	// Without the mark not to, the hop cuts it.
	c, s := udpPair(t, n)
	raw, err := c.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var errOpt error
	// IP_PMTUDISC_INTERFACE: as large as the device takes, without the mark.
	if err := raw.Control(func(fd uintptr) {
		errOpt = unix.SetsockoptInt(int(fd), unix.SOL_IP, unix.IP_MTU_DISCOVER, unix.IP_PMTUDISC_INTERFACE)
	}); err != nil || errOpt != nil {
		t.Fatal(err, errOpt)
	}
	if _, err := c.Write(make([]byte, 1450)); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Read(make([]byte, 2000)); got != 1450 || err != nil {
		t.Errorf("received %d bytes, %v", got, err)
	}
	rep, err := n.Link.Report()
	if err != nil {
		t.Fatal(err)
	}
	if b := rep.Directions[0].Box; b.Fragmented.Packets != 1 || b.Fragments != 2 || b.Told != 2 || b.Told != b.TooBig.Packets {
		t.Errorf("%+v", b)
	}
}

// TestLivePolicer: real packets meet a bucket that does not fill: exactly what it held
// gets through.
func TestLivePolicer(t *testing.T) {
	n := newLink(t, forward.Config{MTU: 1500, Links: [2]link.Config{{Policer: link.Policer{BitsPerSecond: 8, BucketBytes: 128 * 300}}}})
	got := sendNumbered(t, n, 1000, 100)
	for i := range 1000 {
		if got[i] != (i < 300) {
			t.Fatalf("packet %d arrived: %v; %d in all", i, got[i], len(got))
		}
	}
	rep, err := n.Link.Report()
	if err != nil {
		t.Fatal(err)
	}
	if d := rep.Directions[0]; d.Link.Policer.Packets != 700 || d.Held.Packets != 0 {
		t.Errorf("%+v", d)
	}
}

// TestLiveMembers: connections with different source ports take different ways, and the
// report knows which.
func TestLiveMembers(t *testing.T) {
	n := newLink(t, forward.Config{MTU: 1500, Links: [2]link.Config{{Members: []link.Config{{}, {}, {}}}, {}}})
	const connections = 20
	ports := map[uint16]bool{}
	for range connections {
		near, _ := connect(t, n, lab.FarIPv4)
		ports[uint16(near.LocalAddr().(*net.TCPAddr).Port)] = true
	}
	rep, err := n.Link.Report()
	if err != nil {
		t.Fatal(err)
	}
	d := rep.Directions[0]
	seen := map[int]int64{}
	for _, f := range d.Taken {
		if f.Proto == unix.IPPROTO_TCP && !ports[f.Src.Port()] {
			t.Errorf("nobody's flow %+v", f)
		}
		seen[f.Member] += f.Offered.Packets
	}
	if len(d.Taken) != connections {
		t.Errorf("%d flows, want %d", len(d.Taken), connections)
	}
	for i, m := range d.Members {
		if m.In.Packets != seen[i] {
			t.Errorf("member %d carried %d, its flows sent %d", i, m.In.Packets, seen[i])
		}
	}
}

// TestSplit: both ends see each other's addresses, the connection stands before the link
// has carried anything, and the ends of both halves meet.
func TestSplit(t *testing.T) {
	needNamespaces(t)
	split := func(delay time.Duration) *lab.Network {
		t.Helper()
		cfg := forward.Config{MTU: 1500, Links: [2]link.Config{{Delay: delay}, {Delay: delay}}}
		n, err := lab.NewSplit(testContext(t), lab.LinkOptions{Config: cfg, CC: "reno", Command: linkCommand(t)}, options(t).Fullbore)
		var cannot *lab.CannotError
		if errors.As(err, &cannot) && os.Getenv("CI") != "true" {
			t.Skip(err)
		}
		return network(t)(n, err)
	}
	n := split(time.Millisecond)
	for _, address := range []struct{ near, far string }{{lab.RoutedNearIPv4, lab.FarIPv4}, {lab.RoutedNearIPv6, lab.FarIPv6}} {
		near, far := connect(t, n, address.far)
		if near.LocalAddr().String() != far.RemoteAddr().String() || near.RemoteAddr().String() != far.LocalAddr().String() {
			t.Errorf("near %v → %v, far %v → %v", near.LocalAddr(), near.RemoteAddr(), far.LocalAddr(), far.RemoteAddr())
		}
		for i, ends := range [][2]*net.TCPConn{{near, far}, {far, near}} {
			if _, err := ends[0].Write([]byte("hello")); err != nil {
				t.Error(err)
			}
			if err := ends[0].CloseWrite(); err != nil {
				t.Error(err)
			}
			if got, err := io.ReadAll(ends[1]); string(got) != "hello" || err != nil {
				t.Errorf("way %d: %q, %v", i, got, err)
			}
		}
		if cc := congestionOf(t, near); cc != "reno" {
			t.Errorf("congestion control %q", cc)
		}
	}
	// UDP goes straight through.
	c, s := udpPair(t, n)
	if _, err := c.Write([]byte("x")); err != nil {
		t.Error(err)
	}
	if _, from, err := s.ReadFromUDP(make([]byte, 9)); err != nil || from.String() != c.LocalAddr().String() {
		t.Errorf("from %v, %v", from, err)
	}
	// Nobody listens there, which the client learns after all.
	err := n.Near.Do(func() error {
		c, err := net.Dial("tcp", net.JoinHostPort(lab.FarIPv4, "9"))
		if err != nil {
			return err
		}
		_, err = c.Read(make([]byte, 1))
		return errors.Join(err, c.Close())
	})
	if !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("a port that nobody listens on: %v", err)
	}

	// Acknowledged in the middle: the link takes a minute.
	n = split(time.Minute)
	err = n.Near.Do(func() error {
		c, err := net.Dial("tcp", net.JoinHostPort(lab.FarIPv4, "9"))
		if err != nil {
			return err
		}
		rep, err := n.Link.Report()
		if err == nil && rep.Directions[0].Out.Packets+rep.Directions[1].Out.Packets != 0 {
			err = fmt.Errorf("the link had carried %+v", rep.Directions)
		}
		return errors.Join(err, c.Close())
	})
	if err != nil {
		t.Error(err)
	}
}

package osnet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// These tests build real links: two nameless network namespaces, one for the test's own
// thread and one for a second thread, joined by a veth pair. Both vanish with their
// threads, so nothing can be left behind.

var netCount atomic.Int32

// network is a link: the test runs at a, peer runs functions at b.
type network struct {
	a, b     string // devices
	aLL, bLL string // link-local addresses
	do       chan func()
	done     chan struct{}
}

// newNetwork moves the calling test to a namespace of its own with the addresses
// 10.77.0.1/24 and fd77::1/64 and makes a peer with 10.77.0.2 and fd77::2.
func newNetwork(t *testing.T) *network {
	t.Helper()
	if os.Geteuid() != 0 {
		cannot(t, "network namespaces need root")
	}
	// The runtime ends a thread whose goroutine ends while locked to it.
	runtime.LockOSThread()
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		t.Fatalf("unshare: %v", err)
	}
	k := netCount.Add(1)
	n := &network{
		a: fmt.Sprintf("osn%d%da", os.Getpid()%100000, k), b: fmt.Sprintf("osn%d%db", os.Getpid()%100000, k),
		do: make(chan func()), done: make(chan struct{}),
	}
	tid := make(chan int)
	go func() {
		runtime.LockOSThread()
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			tid <- -1
			return
		}
		tid <- unix.Gettid()
		for f := range n.do {
			f()
			n.done <- struct{}{}
		}
	}()
	peer := <-tid
	if peer < 0 {
		t.Fatal("no second namespace")
	}
	t.Cleanup(func() { close(n.do) })
	run(t, "ip", "link", "add", n.a, "type", "veth", "peer", "name", n.b)
	run(t, "ip", "link", "set", n.b, "netns", fmt.Sprint(peer))
	up := func(dev, ll, v4, v6 string) {
		run(t, "ip", "link", "set", "lo", "up")
		run(t, "ip", "link", "set", dev, "addrgenmode", "none")
		run(t, "ip", "link", "set", dev, "up")
		run(t, "ip", "addr", "add", v4+"/24", "dev", dev)
		run(t, "ip", "addr", "add", v6+"/64", "dev", dev, "nodad")
		run(t, "ip", "addr", "add", ll+"/64", "dev", dev, "nodad")
	}
	n.aLL, n.bLL = "fe80::77:1", "fe80::77:2"
	up(n.a, n.aLL, "10.77.0.1", "fd77::1")
	n.peer(func() { up(n.b, n.bLL, "10.77.0.2", "fd77::2") })
	return n
}

// peer runs f on the peer's thread and waits.
func (n *network) peer(f func()) {
	n.do <- f
	<-n.done
}

// listen listens at the peer.
func (n *network) listen(t *testing.T, addr string, o Options) *Listener {
	t.Helper()
	var ln net.Listener
	var err error
	n.peer(func() { ln, err = Listen(context.Background(), "tcp", netip.MustParseAddrPort(addr), o) })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ln.Close() })
	return ln.(*Listener)
}

// run starts a program in the calling thread's namespace.
func run(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		t.Errorf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

func writeSysctl(t *testing.T, name, value string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join("/proc/sys", strings.ReplaceAll(name, ".", "/")), []byte(value), 0o644); err != nil {
		t.Fatal(err)
	}
}

// nftCounters reads the packet counters of table inet t, in order of their rules.
func nftCounters(t *testing.T) []int {
	t.Helper()
	var doc struct {
		Nftables []struct {
			Rule *struct {
				Expr []struct {
					Counter *struct{ Packets int }
				}
			}
		}
	}
	if err := json.Unmarshal([]byte(run(t, "nft", "-j", "list", "table", "inet", "t")), &doc); err != nil {
		t.Fatal(err)
	}
	var counts []int
	for _, x := range doc.Nftables {
		if x.Rule == nil {
			continue
		}
		for _, e := range x.Rule.Expr {
			if e.Counter != nil {
				counts = append(counts, e.Counter.Packets)
			}
		}
	}
	return counts
}

// count installs one counting rule a match, for packets that come into the namespace:
// where they leave it, the stack still handles many segments as one packet.
func count(t *testing.T, matches ...string) {
	t.Helper()
	if _, err := exec.LookPath("nft"); err != nil {
		cannot(t, "nft is not installed; it is what counts the packets")
	}
	run(t, "nft", "add table inet t; add chain inet t i { type filter hook input priority 0; }")
	for _, m := range matches {
		run(t, "nft", "add rule inet t i "+m+" counter")
	}
}

// roundTrip moves a byte each way and ends the connection, so that every kind of
// packet has been sent.
func roundTrip(t *testing.T, c, s *Conn) {
	t.Helper()
	big := make([]byte, 20_000)
	for _, x := range []struct{ from, to *Conn }{{c, s}, {s, c}} {
		if _, err := x.from.Net().Write(big); err != nil {
			t.Fatal(err)
		}
		for left := len(big); left > 0; {
			n, err := x.to.Net().Read(big)
			if err != nil {
				t.Fatal(err)
			}
			left -= n
		}
	}
}

func TestScopedAddresses(t *testing.T) {
	n := newNetwork(t)
	ctx := context.Background()
	ln := n.listen(t, "[::]:0", Options{})

	// F12: without a zone the error asks for it and lists what could be meant.
	_, err := Resolve(ctx, n.bLL, 0)
	var ze *ZoneError
	if !errors.As(err, &ze) || !strings.Contains(err.Error(), n.bLL+"%"+n.a) || !strings.Contains(err.Error(), "candidates: "+n.a) || strings.Contains(err.Error(), "lo") && !strings.Contains(err.Error(), "link-local") {
		t.Errorf("Resolve without zone: %v", err)
	}
	_, _, err = Dial(ctx, "tcp", addrPort(n.bLL, portOf(ln)), Options{})
	if !errors.As(err, &ze) {
		t.Errorf("Dial without zone: %v, want a ZoneError", err)
	}
	_, err = Resolve(ctx, n.bLL+"%nosuch0", 0)
	if !errors.As(err, &ze) || !strings.Contains(err.Error(), "no interface nosuch0") {
		t.Errorf("unknown zone: %v", err)
	}

	// With one, by name, by number, in brackets, or from the device, it connects.
	dev, err := net.InterfaceByName(n.a)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		host string
		o    Options
	}{
		{n.bLL + "%" + n.a, Options{}},
		{fmt.Sprintf("%s%%%d", n.bLL, dev.Index), Options{}},
		{"[" + n.bLL + "%" + n.a + "]", Options{}},
		{n.bLL + "%" + n.a, Options{BindHost: n.aLL + "%" + n.a}},
		{n.bLL + "%" + n.a, Options{BindHost: n.aLL}},
		{n.bLL + "%" + n.a, Options{FlowLabel: 0xfb1, BindHost: n.aLL}},
		{n.bLL, Options{BindDev: n.a}},
	} {
		as, err := ResolveOn(ctx, tt.host, 0, tt.o.BindDev)
		if err != nil {
			t.Errorf("%s: %v", tt.host, err)
			continue
		}
		c, s := pair(t, ln, as[0].String(), tt.o, Options{})
		if got := c.Remote().Host; got != as[0].String() && got != n.bLL+"%"+n.a {
			t.Errorf("%s: remote host %s, want the zone kept", tt.host, got)
		}
		// Accepted on this thread, whose namespace does not know the peer's device by name.
		if got := s.Remote().Host; !strings.HasPrefix(got, n.aLL+"%") {
			t.Errorf("%s: the server sees %s, want %s with a zone", tt.host, got, n.aLL)
		}
		roundTrip(t, c, s)
	}
	for _, o := range []Options{{}, {BindHost: n.aLL}} {
		c, _, err := Dial(ctx, "udp", addrPort(n.bLL+"%"+n.a, 9), o)
		if err != nil {
			t.Errorf("udp %+v: %v", o, err)
			continue
		}
		_ = c.Close()
	}
}

func TestBindDevice(t *testing.T) {
	n := newNetwork(t)
	ln := n.listen(t, "[::]:0", Options{BindDev: n.b})
	for _, host := range []string{"10.77.0.2", "fd77::2"} {
		c, s := pair(t, ln, host, Options{BindDev: n.a}, Options{})
		for end, x := range map[string]struct {
			c   *Conn
			dev string
		}{"client": {c, n.a}, "server": {s, n.b}} {
			var got string
			err := x.c.control(func(fd uintptr) (err error) {
				got, err = unix.GetsockoptString(int(fd), unix.SOL_SOCKET, unix.SO_BINDTODEVICE)
				return err
			})
			if err != nil || got != x.dev {
				t.Errorf("%s of %s is bound to %q, %v; want %s", end, host, got, err, x.dev)
			}
		}
	}
	// The wrong device cannot reach the peer.
	_, _, err := Dial(context.Background(), "tcp", addrPort("10.77.0.2", portOf(ln)), Options{BindDev: "lo", Timeout: time.Second})
	var ce *ConnectError
	if !errors.As(err, &ce) {
		t.Errorf("by lo: %v, want a ConnectError", err)
	}
}

// F38, F35: from the first SYN on every packet of both ends carries the mark, the MSS
// option of SYN and SYN-ACK is what was asked, and no segment is larger.
func TestMarksOnTheWire(t *testing.T) {
	for _, tt := range []struct{ name, host, dscp, large string }{
		{"IPv4", "10.77.0.2", "ip dscp", "ip length > 1252"},
		{"IPv6", "fd77::2", "ip6 dscp", "ip6 length > 1232"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			n := newNetwork(t)
			ln := n.listen(t, "[::]:0", Options{})
			rules := func(port string) []string {
				return []string{
					"tcp " + port + " " + tt.dscp + " != ef",
					"tcp " + port + " " + tt.dscp + " ef",
					"tcp " + port + " " + tt.large,
					"tcp " + port + " tcp flags & syn == syn tcp option maxseg size != 1200",
					"tcp " + port + " tcp flags & syn == syn tcp option maxseg size 1200",
				}
			}
			// Offload would hand packets of many segments to the counters.
			run(t, "ethtool", "-K", n.a, "tso", "off", "gso", "off", "gro", "off")
			n.peer(func() { run(t, "ethtool", "-K", n.b, "tso", "off", "gso", "off", "gro", "off") })
			count(t, rules(fmt.Sprintf("sport %d", portOf(ln)))...)
			n.peer(func() { count(t, rules(fmt.Sprintf("dport %d", portOf(ln)))...) })

			o := Options{TOS: 184, MSS: 1200}
			disarm, notices, err := ln.Arm(o)
			if err != nil || len(notices) != 0 {
				t.Fatal(notices, err)
			}
			c, s := pair(t, ln, tt.host, o, o)
			roundTrip(t, c, s)
			if err := disarm(); err != nil {
				t.Fatal(err)
			}
			check := func(end string, got []int) {
				if len(got) != 5 {
					t.Fatalf("%s: counters %v", end, got)
				}
				if got[0] != 0 || got[1] == 0 {
					t.Errorf("%s: %d unmarked packets, %d marked", end, got[0], got[1])
				}
				if got[2] != 0 {
					t.Errorf("%s: %d packets larger than the MSS allows", end, got[2])
				}
				if got[3] != 0 || got[4] != 1 {
					t.Errorf("%s: %d SYNs with another MSS, %d with 1200", end, got[3], got[4])
				}
			}
			check("server", nftCounters(t))
			n.peer(func() { check("client", nftCounters(t)) })
		})
	}
}

// The flow label is in every packet from the SYN on; the accepting end can answer with
// it where the system allows.
// A route may name a congestion control of its own; what the caller asked for wins.
func TestCongestionOverRoute(t *testing.T) {
	n := newNetwork(t)
	ln := n.listen(t, "10.77.0.2:0", Options{})
	run(t, "ip", "route", "replace", "10.77.0.0/24", "dev", n.a, "scope", "link", "src", "10.77.0.1", "congctl", "cubic")
	for asked, want := range map[string]string{"reno": "reno", "": "cubic"} {
		c, _, err := Dial(t.Context(), "tcp", ln.Addr().(*net.TCPAddr).AddrPort(), Options{Congestion: asked})
		if err != nil {
			t.Fatal(err)
		}
		if got, err := c.Congestion(); got != want || err != nil {
			t.Errorf("asked for %q: %q, %v", asked, got, err)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
	run(t, "ip", "route", "replace", "10.77.0.0/24", "dev", n.a, "scope", "link", "src", "10.77.0.1", "congctl", "lock", "cubic")
	_, _, err := Dial(t.Context(), "tcp", ln.Addr().(*net.TCPAddr).AddrPort(), Options{Congestion: "reno"})
	var ce *CongestionError
	if !errors.As(err, &ce) {
		t.Errorf("a route that forbids it: %v", err)
	}
}

func TestFlowLabelOnTheWire(t *testing.T) {
	n := newNetwork(t)
	n.peer(func() { writeSysctl(t, "net.ipv6.flowlabel_consistency", "0") })
	ln := n.listen(t, "[::]:0", Options{})
	rules := func(port string) []string {
		return []string{"tcp " + port + " ip6 flowlabel 0xfb1", "tcp " + port + " ip6 flowlabel != 0xfb1"}
	}
	count(t, rules(fmt.Sprintf("sport %d", portOf(ln)))...)
	n.peer(func() { count(t, rules(fmt.Sprintf("dport %d", portOf(ln)))...) })
	disarm, notices, err := ln.Arm(Options{FlowLabel: 0xfb1})
	if err != nil || len(notices) != 0 {
		t.Fatal(notices, err)
	}
	for _, o := range []Options{{FlowLabel: 0xfb1}, {FlowLabel: 0xfb1, BindHost: "fd77::1"}} {
		c, s := pair(t, ln, "fd77::2", o, Options{})
		roundTrip(t, c, s)
	}
	if got := nftCounters(t); got[0] < 6 || got[1] != 0 {
		t.Errorf("server: %d packets with the label, %d without", got[0], got[1])
	}
	n.peer(func() {
		if got := nftCounters(t); got[0] < 6 || got[1] != 0 {
			t.Errorf("client: %d packets with the label, %d without", got[0], got[1])
		}
	})
	if err := disarm(); err != nil {
		t.Fatal(err)
	}

	// A refused or unreachable peer is the same error as without a label.
	_, _, err = Dial(context.Background(), "tcp", addrPort("fd77::2", 1), Options{FlowLabel: 0xfb1})
	var ce *ConnectError
	if !errors.As(err, &ce) || !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("refused with a label: %v", err)
	}
	_, _, err = Dial(context.Background(), "tcp", addrPort("fd77::2", 1), Options{FlowLabel: 0xfb1, BindHost: "fd77::9"})
	var ae *AddrError
	if !errors.As(err, &ae) || ae.Reason != ForeignAddress {
		t.Errorf("foreign address with a label: %v", err)
	}
	uc, _, err := Dial(context.Background(), "udp", addrPort("fd77::2", 9), Options{FlowLabel: 0xfb1})
	if err != nil {
		t.Fatal(err)
	}
	defer uc.Close()
	n.peer(func() { run(t, "nft", "add rule inet t i udp dport 9 ip6 flowlabel 0xfb1 counter") })
	if _, err := uc.Net().Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	n.peer(func() {
		if got := nftCounters(t); got[2] != 1 {
			t.Errorf("udp: %d datagrams with the label, want 1", got[2])
		}
	})
}

// With consistency on, as by default, the accepting end says that it cannot.
func TestFlowLabelReflectionRefused(t *testing.T) {
	n := newNetwork(t)
	n.peer(func() { writeSysctl(t, "net.ipv6.flowlabel_consistency", "1") })
	ln := n.listen(t, "[::]:0", Options{})
	disarm, notices, err := ln.Arm(Options{FlowLabel: 0xfb1})
	if err != nil || len(notices) != 1 || notices[0].Code != "option-refused" || !strings.Contains(notices[0].Text, "flowlabel_consistency") {
		t.Fatalf("%+v, %v; want option-refused naming the sysctl", notices, err)
	}
	if err := disarm(); err != nil {
		t.Error(err)
	}
}

// F13: the addresses are tried in order, the next one only after a refusal, and that is said.
func TestDialFirst(t *testing.T) {
	n := newNetwork(t)
	ctx := context.Background()
	four := n.listen(t, "0.0.0.0:0", Options{Family: 4})
	v6, v4 := netip.MustParseAddr("fd77::2"), netip.MustParseAddr("10.77.0.2")
	port := portOf(four)

	c, notices, err := DialFirst(ctx, "tcp", "dualhost", []netip.Addr{v6, v4}, port, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if c.Remote().Host != "10.77.0.2" || len(notices) != 1 || notices[0].Code != "address-fallback" {
		t.Fatalf("connected to %+v, notices %+v", c.Remote(), notices)
	}
	for _, want := range []string{"dualhost", "fd77::2", "refused", "using 10.77.0.2"} {
		if !strings.Contains(notices[0].Text, want) {
			t.Errorf("%q lacks %q", notices[0].Text, want)
		}
	}
	nc, err := four.Accept()
	if err != nil {
		t.Fatal(err)
	}
	_ = nc.Close()

	// The first that answers is taken without a word.
	c, notices, err = DialFirst(ctx, "tcp", "dualhost", []netip.Addr{v4, v6}, port, Options{})
	if err != nil || len(notices) != 0 || c.Remote().Host != "10.77.0.2" {
		t.Fatalf("%v, %v", notices, err)
	}
	_ = c.Close()
	// A source address of one family leaves only that family.
	c, notices, err = DialFirst(ctx, "tcp", "dualhost", []netip.Addr{v6, v4}, port, Options{BindHost: "10.77.0.1"})
	if err != nil || len(notices) != 0 || c.Local().Host != "10.77.0.1" {
		t.Fatalf("%v, %v", notices, err)
	}
	_ = c.Close()

	// -6 alone: the error names family and address.
	_, _, err = DialFirst(ctx, "tcp", "dualhost", []netip.Addr{v6}, port, Options{Family: 6})
	if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("[fd77::2]:%d over IPv6: connection refused", port)) {
		t.Errorf("-6: %v", err)
	}
	// None answers: both are named, and the errno is at hand.
	_, _, err = DialFirst(ctx, "tcp", "dualhost", []netip.Addr{v6, v4}, 1, Options{})
	var all *AllFailedError
	if !errors.As(err, &all) || len(all.Errs) != 2 || Errno(err) != int(syscall.ECONNREFUSED) {
		t.Errorf("none: %v", err)
	}
	// Trouble at this end ends it: the next address would meet the same.
	_, _, err = DialFirst(ctx, "tcp", "dualhost", []netip.Addr{v6, v4}, port, Options{Congestion: "nosuch"})
	var ce *CongestionError
	if !errors.As(err, &ce) || errors.As(err, &all) {
		t.Errorf("unknown congestion control: %v, want that error alone", err)
	}
}

func TestPortsExhausted(t *testing.T) {
	n := newNetwork(t)
	writeSysctl(t, "net.ipv4.ip_local_port_range", "40000 40001")
	ln := n.listen(t, "[::]:0", Options{})
	for _, tt := range []struct {
		name, network string
		o             Options
	}{
		{"port left to connect", "tcp", Options{}},
		{"source address given", "tcp", Options{BindHost: "10.77.0.1"}},
		{"udp", "udp", Options{}},
	} {
		// No t.Run: a subtest's goroutine would leave the namespace of this thread.
		var open []*Conn
		var err error
		for range 4 {
			var c *Conn
			if c, _, err = Dial(context.Background(), tt.network, addrPort("10.77.0.2", portOf(ln)), tt.o); err != nil {
				break
			}
			open = append(open, c)
		}
		var ae *AddrError
		if !errors.As(err, &ae) || ae.Reason != PortsExhausted || !strings.Contains(err.Error(), "40000-40001") || !strings.Contains(err.Error(), "ip_local_port_range") {
			t.Errorf("%s: after %d connections: %v, want PortsExhausted with the range", tt.name, len(open), err)
		}
		if len(open) != 2 {
			t.Errorf("%s: %d connections from two ports", tt.name, len(open))
		}
		for _, c := range open {
			_ = setLinger(c) // no TIME_WAIT, so that the next case finds both ports free
			_ = c.Close()
		}
	}
}

// setLinger makes Close reset the connection.
func setLinger(c *Conn) error {
	return c.control(func(fd uintptr) error {
		return unix.SetsockoptLinger(int(fd), unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1})
	})
}

// A source address is shared by more connections than the range has ports, as long as
// their destinations differ.
func TestPortsSharedOverDestinations(t *testing.T) {
	n := newNetwork(t)
	writeSysctl(t, "net.ipv4.ip_local_port_range", "40000 40001")
	for range 3 {
		ln := n.listen(t, "10.77.0.2:0", Options{})
		for range 2 {
			pair(t, ln, "10.77.0.2", Options{BindHost: "10.77.0.1"}, Options{})
		}
	}
}

func TestAddressNotReady(t *testing.T) {
	n := newNetwork(t)
	// Duplicate address detection that does not end while the test looks.
	writeSysctl(t, "net.ipv6.conf."+n.a+".dad_transmits", "100")
	run(t, "ip", "addr", "add", "fd77::d/64", "dev", n.a)
	_, err := Listen(context.Background(), "tcp", addrPort("fd77::d", 0), Options{})
	var ae *AddrError
	if !errors.As(err, &ae) || ae.Reason != AddressNotReady || !strings.Contains(err.Error(), "duplicate address detection") {
		t.Errorf("tentative address: %v, want AddressNotReady", err)
	}
	_, err = Listen(context.Background(), "tcp", addrPort("fd77::e", 0), Options{})
	if !errors.As(err, &ae) || ae.Reason != ForeignAddress || !strings.Contains(err.Error(), "fd77::1 ("+n.a+")") {
		t.Errorf("foreign address: %v, want ForeignAddress with the own ones", err)
	}
}

func TestUnreachable(t *testing.T) {
	newNetwork(t)
	_, _, err := Dial(context.Background(), "tcp", addrPort("192.0.2.1", 80), Options{})
	var ce *ConnectError
	if !errors.As(err, &ce) || !errors.Is(err, unix.ENETUNREACH) || !strings.Contains(err.Error(), "192.0.2.1:80 over IPv4") {
		t.Errorf("no route: %v", err)
	}
	// A host that does not exist on the link: the time-out is ours.
	_, _, err = Dial(context.Background(), "tcp", addrPort("10.77.0.99", 80), Options{Timeout: 50 * time.Millisecond})
	if !errors.As(err, &ce) || !ce.Timeout() || !strings.Contains(err.Error(), "no answer within 50ms") {
		t.Errorf("silence: %v", err)
	}
	cause := errors.New("interrupted by the user")
	ctx, cancel := context.WithCancelCause(context.Background())
	time.AfterFunc(20*time.Millisecond, func() { cancel(cause) })
	_, _, err = Dial(ctx, "tcp", addrPort("10.77.0.99", 80), Options{})
	if !errors.As(err, &ce) || !errors.Is(err, cause) {
		t.Errorf("cancelled: %v, want the cause", err)
	}
	// The first address is silent, and the second is not asked once the caller has gone.
	_, _, err = DialFirst(ctx, "tcp", "h", []netip.Addr{netip.MustParseAddr("10.77.0.99"), netip.MustParseAddr("10.77.0.98")}, 80, Options{})
	var all *AllFailedError
	if errors.As(err, &all) || !errors.Is(err, cause) {
		t.Errorf("cancelled list: %v, want one error with the cause", err)
	}
}

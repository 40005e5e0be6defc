package osnet

import (
	"context"
	"errors"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/result"
)

// readBack reads an integer option of c as the kernel has it.
func readBack(t *testing.T, c *Conn, level, name int) int {
	t.Helper()
	var v int
	err := c.control(func(fd uintptr) (err error) {
		v, err = unix.GetsockoptInt(int(fd), level, name)
		return err
	})
	if err != nil {
		t.Fatalf("getsockopt(%d, %d): %v", level, name, err)
	}
	return v
}

// Each option is set at both ends and read back from the kernel at both ends, over both
// families, the IPv4 one also through a dual-stack listener (an IPv6 socket there).
func TestOptionsReadBack(t *testing.T) {
	type check struct{ level, name, want int }
	tests := []struct {
		name string
		o    Options
		// want of both ends; on an accepted IPv4-mapped socket too
		want []check
	}{
		{"defaults are plain TCP with Nagle and without keepalive", Options{}, []check{
			{unix.IPPROTO_TCP, unix.TCP_NODELAY, 0},
			{unix.SOL_SOCKET, unix.SO_KEEPALIVE, 0},
			{unix.SOL_SOCKET, unix.SO_PROTOCOL, unix.IPPROTO_TCP},
		}},
		{"window is doubled by the kernel", Options{Window: 100_000}, []check{
			{unix.SOL_SOCKET, unix.SO_SNDBUF, 200_000},
			{unix.SOL_SOCKET, unix.SO_RCVBUF, 200_000},
		}},
		{"no delay", Options{NoDelay: true}, []check{{unix.IPPROTO_TCP, unix.TCP_NODELAY, 1}}},
		{"user timeout", Options{UserTimeout: 2500 * time.Millisecond}, []check{{unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, 2500}}},
		{"keepalive, system's numbers", Options{Keepalive: &plan.Keepalive{}}, []check{
			{unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1},
			{unix.IPPROTO_TCP, unix.TCP_KEEPIDLE, 7200},
		}},
		{"keepalive", Options{Keepalive: &plan.Keepalive{Idle: 30 * time.Second, Interval: 1500 * time.Millisecond, Count: 4}}, []check{
			{unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1},
			{unix.IPPROTO_TCP, unix.TCP_KEEPIDLE, 30},
			{unix.IPPROTO_TCP, unix.TCP_KEEPINTVL, 2},
			{unix.IPPROTO_TCP, unix.TCP_KEEPCNT, 4},
		}},
	}
	dual := mustListen(t, "[::]:0", Options{})
	four := mustListen(t, "127.0.0.1:0", Options{})
	for _, tt := range tests {
		for _, via := range []struct {
			name, host string
			ln         *Listener
		}{{"IPv4", "127.0.0.1", four}, {"IPv6", "::1", dual}, {"mapped", "127.0.0.1", dual}} {
			t.Run(tt.name+"/"+via.name, func(t *testing.T) {
				c, s := pair(t, via.ln, via.host, tt.o, tt.o)
				for _, w := range tt.want {
					if got := readBack(t, c, w.level, w.name); got != w.want {
						t.Errorf("client: option %d/%d is %d, want %d", w.level, w.name, got, w.want)
					}
					if got := readBack(t, s, w.level, w.name); got != w.want {
						t.Errorf("server: option %d/%d is %d, want %d", w.level, w.name, got, w.want)
					}
				}
			})
		}
	}
}

func TestTOS(t *testing.T) {
	dual := mustListen(t, "[::]:0", Options{})
	for _, host := range []string{"127.0.0.1", "::1"} {
		c, s := pair(t, dual, host, Options{TOS: 184}, Options{TOS: 184})
		for end, x := range map[string]*Conn{"client": c, "server": s} {
			if got, err := x.TOS(); err != nil || got != 184 {
				t.Errorf("%s of %s: TOS %d, %v; want 184", end, host, got, err)
			}
		}
		// The accepted socket is an IPv6 one in both cases and must carry both marks.
		if got := readBack(t, s, unix.IPPROTO_IP, unix.IP_TOS); got != 184 {
			t.Errorf("server of %s: IP_TOS %d, want 184", host, got)
		}
		if got := readBack(t, s, unix.IPPROTO_IPV6, unix.IPV6_TCLASS); got != 184 {
			t.Errorf("server of %s: IPV6_TCLASS %d, want 184", host, got)
		}
	}
}

// The kernel keeps the ECN bits of a TCP socket for itself; silently sending another
// byte than was asked for would be a lie.
func TestTOSWithECNBitsIsNoticed(t *testing.T) {
	ln := mustListen(t, "[::]:0", Options{})
	for _, host := range []string{"127.0.0.1", "::1"} {
		_, cn, _, sn := pairNotices(t, ln, host, Options{TOS: 0x1f}, Options{TOS: 0x1f})
		for end, n := range map[string][]result.Notice{"client": cn, "server": sn} {
			if len(n) != 1 || n[0].Code != "tos-altered" || !strings.Contains(n[0].Text, "0x1f") || !strings.Contains(n[0].Text, "0x1c") {
				t.Errorf("%s over %s: %+v, want tos-altered naming 0x1f and 0x1c", end, host, n)
			}
		}
	}
}

func TestMSS(t *testing.T) {
	ln := mustListen(t, "[::]:0", Options{})
	for _, host := range []string{"127.0.0.1", "::1"} {
		// 12 bytes of the segment go to the timestamp option.
		c, s := pair(t, ln, host, Options{MSS: 1200}, Options{MSS: 1200})
		for end, x := range map[string]*Conn{"client": c, "server": s} {
			if got, err := x.MSS(); err != nil || got != 1188 && got != 1200 {
				t.Errorf("%s over %s: MSS %d, %v; want 1200 less the timestamps", end, host, got, err)
			}
		}
		// Only the server asks: the handshake is over, so nothing can change and that is said.
		_, _, s, notices := pairNotices(t, ln, host, Options{}, Options{MSS: 1200})
		got, err := s.MSS()
		if err != nil {
			t.Fatal(err)
		}
		if len(notices) != 1 || notices[0].Code != "mss-ignored" || !strings.Contains(notices[0].Text, strconv.Itoa(got)) {
			t.Errorf("server alone over %s: %+v, want mss-ignored naming %d", host, notices, got)
		}
	}
	_, _, err := Dial(context.Background(), "tcp", loopback(portOf(ln)), Options{MSS: 50})
	var oe *OptionError
	if !errors.As(err, &oe) || oe.Option != "mss" || !strings.Contains(err.Error(), "88 to 32767") {
		t.Errorf("MSS 50: %v, want an OptionError with the range", err)
	}
}

func TestArm(t *testing.T) {
	ln := mustListen(t, "[::]:0", Options{})
	disarm, notices, err := ln.Arm(Options{TOS: 184, MSS: 1200})
	if err != nil || len(notices) != 0 {
		t.Fatal(notices, err)
	}
	c, s := pair(t, ln, "127.0.0.1", Options{}, Options{})
	if got := readBack(t, s, unix.IPPROTO_IP, unix.IP_TOS); got != 184 {
		t.Errorf("accepted while armed: TOS %d, want 184 before Apply", got)
	}
	if got, err := c.MSS(); err != nil || got > 1200 {
		t.Errorf("peer of an armed listener: MSS %d, %v; the SYN-ACK should have said 1200", got, err)
	}
	if err := disarm(); err != nil {
		t.Fatal(err)
	}
	c, s = pair(t, ln, "127.0.0.1", Options{}, Options{})
	if got := readBack(t, s, unix.IPPROTO_IP, unix.IP_TOS); got != 0 {
		t.Errorf("accepted after disarming: TOS %d, want 0", got)
	}
	if got, err := c.MSS(); err != nil || got <= 1200 {
		t.Errorf("after disarming: MSS %d, %v; want loopback's own", got, err)
	}
}

func TestCongestion(t *testing.T) {
	available, err := CongestionAvailable()
	if err != nil || !slices.Contains(available, "reno") {
		t.Fatalf("available: %v, %v; every kernel has reno", available, err)
	}
	ln := mustListen(t, "[::]:0", Options{})
	c, s := pair(t, ln, "::1", Options{Congestion: "reno"}, Options{Congestion: "reno"})
	for end, x := range map[string]*Conn{"client": c, "server": s} {
		if got, err := x.Congestion(); err != nil || got != "reno" {
			t.Errorf("%s uses %q, %v; want reno", end, got, err)
		}
	}

	// F36: here it is an error with the list, at the accepting end a notice.
	_, _, err = Dial(context.Background(), "tcp", loopback(portOf(ln)), Options{Congestion: "nosuch"})
	var ce *CongestionError
	if !errors.As(err, &ce) || !strings.Contains(err.Error(), "nosuch") || !errors.Is(err, unix.ENOENT) {
		t.Fatalf("unknown algorithm: %v, want a CongestionError", err)
	}
	for _, a := range available {
		if !strings.Contains(err.Error(), a) {
			t.Errorf("%q does not name %s", err, a)
		}
	}
	_, _, s, notices := pairNotices(t, ln, "127.0.0.1", Options{}, Options{Congestion: "nosuch"})
	used, err := s.Congestion()
	if err != nil {
		t.Fatal(err)
	}
	if len(notices) != 1 || notices[0].Code != "congestion-unavailable" || !strings.Contains(notices[0].Text, "using "+used) {
		t.Errorf("accepting end: %+v, want congestion-unavailable that names %s", notices, used)
	}
}

func TestPacing(t *testing.T) {
	ln := mustListen(t, "127.0.0.1:0", Options{})
	c, s := pair(t, ln, "127.0.0.1", Options{FQRate: 80e6}, Options{FQRate: 400e9})
	for _, tt := range []struct {
		name string
		c    *Conn
		want int64
	}{{"dialled", c, 80e6}, {"accepted, beyond 32 bits", s, 400e9}} {
		if got, err := tt.c.Pacing(); err != nil || got != tt.want {
			t.Errorf("%s: %d bit/s, %v; want %d", tt.name, got, err, tt.want)
		}
	}
	for _, tt := range []struct{ set, want int64 }{{1e6, 1e6}, {1, 8}, {0, 0}} {
		if err := c.SetPacing(tt.set); err != nil {
			t.Fatal(err)
		}
		if got, err := c.Pacing(); err != nil || got != tt.want {
			t.Errorf("SetPacing(%d): %d, %v; want %d", tt.set, got, err, tt.want)
		}
	}
	ti, err := s.TCPInfo()
	if err != nil || ti.PacingRate == nil || *ti.PacingRate > 400e9 {
		t.Errorf("TCP_INFO's pacing rate: %v, %v", ti.PacingRate, err)
	}
}

func TestQueues(t *testing.T) {
	ln := mustListen(t, "127.0.0.1:0", Options{})
	c, s := pair(t, ln, "127.0.0.1", Options{Window: 1 << 20}, Options{Window: 128 << 10})
	// More than the receiver's buffer, less than the sender's: some stays unacknowledged.
	payload := make([]byte, 500_000)
	if n, err := c.Net().Write(payload); err != nil || n != len(payload) {
		t.Fatal(n, err)
	}
	sent, err := c.SendQueue()
	if err != nil || sent == 0 || sent > len(payload) {
		t.Fatalf("send queue %d, %v; want some of %d", sent, err, len(payload))
	}
	if n, err := s.RecvQueue(); err != nil || n == 0 || n+sent < len(payload) {
		t.Fatalf("receive queue %d, %v; with %d unacknowledged it must cover %d", n, err, sent, len(payload))
	}
	for buf, left := make([]byte, 64<<10), len(payload); left > 0; {
		n, err := s.Net().Read(buf)
		if err != nil {
			t.Fatal(err)
		}
		left -= n
	}
	deadline := time.Now().Add(10 * time.Second)
	for {
		n, err := c.SendQueue()
		if err != nil || time.Now().After(deadline) {
			t.Fatalf("send queue %d, %v after the peer read everything", n, err)
		}
		if n == 0 {
			break
		}
		time.Sleep(time.Millisecond) // the last acknowledgement is on its way
	}
	if n, err := s.RecvQueue(); err != nil || n != 0 {
		t.Errorf("receive queue %d, %v; want 0", n, err)
	}
}

func TestWindowClamped(t *testing.T) {
	limit := func(name string) int64 {
		v, err := strconv.ParseInt(sysctl(name), 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	wmem, rmem := limit("net.core.wmem_max"), limit("net.core.rmem_max")
	ln := mustListen(t, "127.0.0.1:0", Options{})
	asked := 4 * max(wmem, rmem)
	c, cn, s, sn := pairNotices(t, ln, "127.0.0.1", Options{Window: asked}, Options{Window: asked})
	for end, n := range map[string][]result.Notice{"client": cn, "server": sn} {
		if len(n) != 1 || n[0].Code != "window-clamped" {
			t.Fatalf("%s: %+v, want window-clamped", end, n)
		}
		for _, want := range []string{
			strconv.FormatInt(asked, 10), strconv.FormatInt(wmem, 10), strconv.FormatInt(2*rmem, 10),
			"net.core.wmem_max = ", "net.core.rmem_max = ",
		} {
			if !strings.Contains(n[0].Text, want) {
				t.Errorf("%s: %q lacks %q", end, n[0].Text, want)
			}
		}
		if want := "sysctl -w net.core.wmem_max=" + strconv.FormatInt(asked, 10); !strings.HasPrefix(n[0].Fix, want) {
			t.Errorf("%s: fix %q, want %q…", end, n[0].Fix, want)
		}
	}
	for end, x := range map[string]*Conn{"client": c, "server": s} {
		got, err := x.BufferFacts(asked)
		if err != nil {
			t.Fatal(err)
		}
		want := result.Buffers{RequestedBytes: asked, SndGranted: 2 * wmem, RcvGranted: 2 * rmem, SndUsable: wmem, RcvUsable: rmem, MSS: got.MSS}
		if d := cmp.Diff(want, got); d != "" || got.MSS == 0 {
			t.Errorf("%s's buffers (-want +got):\n%s", end, d)
		}
	}

	_, cn, _, _ = pairNotices(t, ln, "127.0.0.1", Options{Window: 100}, Options{})
	if len(cn) != 1 || cn[0].Code != "window-raised" || cn[0].Level != result.Info {
		t.Errorf("100 bytes: %+v, want window-raised", cn)
	}
}

// The window scale is fixed by the handshake: a buffer set too late could not be used.
func TestWindowScaleFitsWindow(t *testing.T) {
	rmem, err := strconv.ParseInt(sysctl("net.core.rmem_max"), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	ln := mustListen(t, "127.0.0.1:0", Options{})
	c, s := pair(t, ln, "127.0.0.1", Options{Window: rmem}, Options{Window: rmem})
	for end, x := range map[string]*Conn{"client": c, "server": s} {
		ti, err := x.TCPInfo()
		if err != nil {
			t.Fatal(err)
		}
		if reach := int64(65535) << ti.WScale[1]; reach < rmem {
			t.Errorf("%s: scale %d reaches %d bytes, less than the window of %d", end, ti.WScale[1], reach, rmem)
		}
	}
}

func TestMPTCP(t *testing.T) {
	if !Capabilities().MPTCP {
		_, err := Listen(context.Background(), "tcp", loopback(0), Options{MPTCP: true})
		if !errors.Is(err, errors.ErrUnsupported) {
			t.Fatalf("without MPTCP in the kernel: %v, want errors.ErrUnsupported", err)
		}
		return
	}
	multi := mustListen(t, "127.0.0.1:0", Options{MPTCP: true})
	single := mustListen(t, "127.0.0.1:0", Options{})
	c, s := pair(t, multi, "127.0.0.1", Options{MPTCP: true, TOS: 32, Window: 50_000}, Options{MPTCP: true, TOS: 32, Window: 50_000})
	for end, x := range map[string]*Conn{"client": c, "server": s} {
		if got := readBack(t, x, unix.SOL_SOCKET, unix.SO_PROTOCOL); got != unix.IPPROTO_MPTCP {
			t.Errorf("%s: protocol %d, want MPTCP", end, got)
		}
		if _, err := x.TCPInfo(); err != nil {
			t.Errorf("%s: TCP_INFO over MPTCP: %v", end, err)
		}
		if _, err := x.SendQueue(); err != nil {
			t.Errorf("%s: send queue over MPTCP: %v", end, err)
		}
	}
	_, cn, s, _ := pairNotices(t, single, "127.0.0.1", Options{MPTCP: true}, Options{})
	if len(cn) != 1 || cn[0].Code != "mptcp-fallback" {
		t.Errorf("MPTCP to a TCP listener: %+v, want mptcp-fallback", cn)
	}
	if got := readBack(t, s, unix.SOL_SOCKET, unix.SO_PROTOCOL); got != unix.IPPROTO_TCP {
		t.Errorf("a listener that was not asked for MPTCP accepted protocol %d", got)
	}
	// What the ban on unasked MPTCP is for: the low-water mark holds on the accepted socket.
	err := s.control(func(fd uintptr) error {
		return unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVLOWAT, 65536)
	})
	if got := readBack(t, s, unix.SOL_SOCKET, unix.SO_RCVLOWAT); err != nil || got != 65536 {
		t.Errorf("SO_RCVLOWAT reads back as %d, %v", got, err)
	}
}

func TestUDPOptions(t *testing.T) {
	for _, host := range []string{"127.0.0.1", "::1"} {
		uc, notices, err := ListenUDP(context.Background(), addrPort(host, 0), Options{Window: 70_000})
		if err != nil || len(notices) != 0 {
			t.Fatal(notices, err)
		}
		defer uc.Close()
		port := uint16(NewConn(uc).Local().Port)
		c, notices, err := Dial(context.Background(), "udp", addrPort(host, port),
			Options{Window: 80_000, TOS: 184, DontFragment: true, FQRate: 8e6, NoDelay: true, MSS: 1200})
		if err != nil || len(notices) != 0 {
			t.Fatal(notices, err)
		}
		defer c.Close()
		if snd, rcv, err := c.Buffers(); err != nil || snd != 160_000 || rcv != 160_000 {
			t.Errorf("%s: buffers %d, %d, %v; want 160000", host, snd, rcv, err)
		}
		if got, err := c.TOS(); err != nil || got != 184 {
			t.Errorf("%s: TOS %d, %v", host, got, err)
		}
		level, name := unix.IPPROTO_IP, unix.IP_MTU_DISCOVER
		if host == "::1" {
			level, name = unix.IPPROTO_IPV6, unix.IPV6_MTU_DISCOVER
		}
		if got := readBack(t, c, level, name); got != unix.IP_PMTUDISC_DO {
			t.Errorf("%s: path MTU discovery %d, want %d", host, got, unix.IP_PMTUDISC_DO)
		}
		if _, err := c.Net().Write([]byte("datagram")); err != nil {
			t.Fatal(err)
		}
		buf := make([]byte, 100)
		n, from, err := uc.ReadFromUDPAddrPort(buf)
		if err != nil || string(buf[:n]) != "datagram" || int(from.Port()) != c.Local().Port {
			t.Errorf("%s: got %q from %v, %v", host, buf[:n], from, err)
		}
	}
}

func TestLocalPort(t *testing.T) {
	ln := mustListen(t, "127.0.0.1:0", Options{})
	first, _ := pair(t, ln, "127.0.0.1", Options{}, Options{})
	port := first.Local().Port // now in use by a connection to ln

	_, _, err := Dial(context.Background(), "tcp", loopback(portOf(ln)), Options{LocalPort: port})
	var ae *AddrError
	if !errors.As(err, &ae) || ae.Reason != PortTaken || !strings.Contains(err.Error(), strconv.Itoa(port)) {
		t.Fatalf("the port of a live connection: %v, want an AddrError with PortTaken", err)
	}

	// The end that closes first keeps the port in TIME_WAIT; the next test with the same
	// port may use it all the same.
	busy := mustListen(t, "127.0.0.1:0", Options{})
	free := mustListen(t, "127.0.0.2:0", Options{})
	port = int(portOf(free))
	_ = free.Close()
	for range 2 {
		c, s := pair(t, busy, "127.0.0.1", Options{BindHost: "127.0.0.2", LocalPort: port}, Options{})
		if got := c.Local(); got.Host != "127.0.0.2" || got.Port != port {
			t.Errorf("bound to %+v, want 127.0.0.2 port %d", got, port)
		}
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Net().Read(make([]byte, 1)); err == nil {
			t.Fatal("data from nowhere")
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}

	// A listener's port is taken for both.
	_, _, err = Dial(context.Background(), "tcp", loopback(portOf(ln)), Options{BindHost: "127.0.0.1", LocalPort: int(portOf(busy))})
	if !errors.As(err, &ae) || ae.Reason != PortTaken || ae.Op != "bind" {
		t.Errorf("the port of a listener: %v, want PortTaken at bind", err)
	}
	_, err = Listen(context.Background(), "tcp", loopback(portOf(busy)), Options{})
	if !errors.As(err, &ae) || ae.Reason != PortTaken || !strings.Contains(err.Error(), "ss -tulnp") {
		t.Errorf("listening twice: %v, want PortTaken with how to find the owner", err)
	}
	if Errno(err) != int(syscall.EADDRINUSE) {
		t.Errorf("errno %d, want EADDRINUSE", Errno(err))
	}
}

func TestForeignAddress(t *testing.T) {
	ln := mustListen(t, "[::]:0", Options{})
	for _, tt := range []struct{ host, bind, have string }{
		{"127.0.0.1", "203.0.113.9", "127.0.0.1 (lo)"},
		{"::1", "2001:db8::9", "::1 (lo)"},
	} {
		_, _, err := Dial(context.Background(), "tcp", addrPort(tt.host, portOf(ln)), Options{BindHost: tt.bind})
		var ae *AddrError
		if !errors.As(err, &ae) || ae.Reason != ForeignAddress || !strings.Contains(err.Error(), tt.bind) || !strings.Contains(err.Error(), tt.have) {
			t.Errorf("Dial from %s: %v, want ForeignAddress that names it and %s", tt.bind, err, tt.have)
		}
		_, err = Listen(context.Background(), "tcp", addrPort(tt.bind, 0), Options{})
		if !errors.As(err, &ae) || ae.Reason != ForeignAddress || ae.Op != "listen" {
			t.Errorf("Listen on %s: %v, want ForeignAddress", tt.bind, err)
		}
	}
}

func TestUnknownDevice(t *testing.T) {
	ln := mustListen(t, "127.0.0.1:0", Options{})
	_, _, err := Dial(context.Background(), "tcp", loopback(portOf(ln)), Options{BindDev: "nosuch0"})
	var oe *OptionError
	if !errors.As(err, &oe) || oe.Option != "bind-dev" || !strings.Contains(err.Error(), "interfaces here: lo") {
		t.Errorf("Dial: %v, want bind-dev with the interfaces", err)
	}
	_, err = Listen(context.Background(), "tcp", loopback(0), Options{BindDev: "nosuch0"})
	if !errors.As(err, &oe) || oe.Option != "bind-dev" {
		t.Errorf("Listen: %v, want bind-dev", err)
	}
}

// A failed Dial or Listen must give every descriptor back (F45).
func TestNoDescriptorLeaks(t *testing.T) {
	ln := mustListen(t, "[::]:0", Options{})
	ctx := context.Background()
	attempts := func() {
		for _, o := range []Options{
			{Congestion: "nosuch"},
			{MSS: 1},
			{BindDev: "nosuch0"},
			{BindHost: "203.0.113.9"},
			{LocalPort: int(portOf(ln))},
			{FlowLabel: 1},
		} {
			if c, _, err := Dial(ctx, "tcp", loopback(portOf(ln)), o); err == nil {
				_ = c.Close()
				t.Errorf("%+v: connected", o)
			}
		}
		if c, _, err := Dial(ctx, "tcp", loopback(1), Options{}); err == nil {
			_ = c.Close()
			t.Error("connected to port 1")
		}
		c, _, err := Dial(ctx, "tcp", loopback(portOf(ln)), Options{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Detach(); err != nil {
			t.Fatal(err)
		}
		_ = c.Close()
		nc, err := ln.Accept()
		if err != nil {
			t.Fatal(err)
		}
		_ = nc.Close()
	}
	attempts() // whatever the runtime opens once
	before := openDescriptors(t)
	for range 5 {
		attempts()
	}
	if after := openDescriptors(t); after != before {
		t.Errorf("%d descriptors open, %d before", after, before)
	}
}

func openDescriptors(t *testing.T) int {
	t.Helper()
	l, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(l)
}

func TestKeepaliveRefusalIsAnError(t *testing.T) {
	ln := mustListen(t, "127.0.0.1:0", Options{})
	for _, k := range []plan.Keepalive{{Idle: 40_000 * time.Second}, {Interval: 40_000 * time.Second}, {Count: 200}} {
		_, _, err := Dial(t.Context(), "tcp", loopback(portOf(ln)), Options{Keepalive: &k})
		var oe *OptionError
		if !errors.As(err, &oe) || oe.Option != "keepalive" {
			t.Errorf("%+v: %v, want an OptionError", k, err)
		}
	}
}

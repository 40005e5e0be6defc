package osnet

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fullbore-net/fullbore/result"
)

func TestErrorTexts(t *testing.T) {
	remote := netip.MustParseAddrPort("[fd77::2]:5301")
	local := netip.MustParseAddrPort("10.77.0.1:4000")
	for _, tt := range []struct {
		name string
		err  error
		want []string
	}{
		{"refused", &ConnectError{Addr: remote, Err: syscall.ECONNREFUSED}, []string{"connect to [fd77::2]:5301 over IPv6: " + syscall.ECONNREFUSED.Error()}},
		{"own time-out", &ConnectError{Addr: remote, After: 3 * time.Second, Err: os.ErrDeadlineExceeded}, []string{"no answer within 3s"}},
		{"context's time-out", &ConnectError{Addr: remote, Err: context.DeadlineExceeded}, []string{"no answer, timed out"}},
		{"cause", &ConnectError{Addr: remote, Err: errors.New("interrupted")}, []string{"over IPv6: interrupted"}},
		{"foreign", &AddrError{Reason: ForeignAddress, Op: "bind", Local: local, Have: []string{"10.0.0.1 (eth0)"}}, []string{"bind to 10.77.0.1: no interface", "it has 10.0.0.1 (eth0)"}},
		{"foreign, nothing known", &AddrError{Reason: ForeignAddress, Op: "listen", Local: local}, []string{"listen on 10.77.0.1: no interface of this machine has that address"}},
		{"taken by a connection", &AddrError{Reason: PortTaken, Op: "connect", Local: local, Remote: remote}, []string{"source port 4000 is taken", "[fd77::2]:5301", "choose another"}},
		{"taken by a socket", &AddrError{Reason: PortTaken, Op: "listen", Local: local}, []string{"listen on 10.77.0.1:4000: port 4000 is taken by another socket; choose another port"}},
		{"privileged", &AddrError{Reason: PortPrivileged, Op: "listen", Local: netip.MustParseAddrPort("[::]:80")}, []string{"port 80 needs root", "above 1023"}},
		{"exhausted", &AddrError{Reason: PortsExhausted, Op: "connect", Remote: remote, Range: "32768-60999"}, []string{"no source port is left for [fd77::2]:5301", "32768-60999", "wait, use fewer streams"}},
		{"exhausted, listening", &AddrError{Reason: PortsExhausted, Op: "listen", Local: netip.MustParseAddrPort("[::]:0")}, []string{"no port is left; wait"}},
		{"not ready", &AddrError{Reason: AddressNotReady, Op: "bind", Local: local}, []string{"bind to 10.77.0.1", "not usable yet"}},
		{"option", &OptionError{Option: "mss", Value: "50", Hint: "the system takes 88 to 32767", Err: syscall.EINVAL}, []string{"option mss 50: " + syscall.EINVAL.Error() + "; the system takes 88 to 32767"}},
		{"option, missing", &OptionError{Option: "keepalive", Err: fmt.Errorf("x: %w", errors.ErrUnsupported)}, []string{"option keepalive: this system does not have it"}},
		{"congestion", &CongestionError{Name: "nosuch", Available: []string{"reno", "cubic"}, Err: syscall.ENOENT}, []string{"congestion control nosuch is not available here; available: reno cubic"}},
		{"congestion, forbidden", &CongestionError{Name: "bbr", Available: []string{"reno", "bbr"}, Allowed: []string{"reno"}, Err: syscall.EPERM}, []string{"bbr needs root here; allowed: reno"}},
		{"congestion, no choice", &CongestionError{Name: "bbr", Err: errors.ErrUnsupported}, []string{"does not let a program choose"}},
		{"zone", &ZoneError{Addr: netip.MustParseAddr("fe80::1"), Candidates: []string{"va", "vb"}}, []string{"fe80::1%va", "candidates: va, vb"}},
		{"zone, none", &ZoneError{Addr: netip.MustParseAddr("fe80::1")}, []string{"add the %interface", "no interface here has IPv6"}},
		{"zone, unknown", &ZoneError{Addr: netip.MustParseAddr("fe80::1%vx"), Candidates: []string{"va"}}, []string{"fe80::1%vx: there is no interface vx; candidates: va"}},
		{"all", &AllFailedError{Host: "h", Errs: []error{errors.New("a"), errors.New("b")}}, []string{"h: a; b"}},
		{"affinity", &AffinityError{CPU: 99, Usable: []int{0, 1}}, []string{"CPU 99 cannot be used here; usable: 0-1"}},
	} {
		got := tt.err.Error()
		for _, w := range tt.want {
			if !strings.Contains(got, w) {
				t.Errorf("%s: %q lacks %q", tt.name, got, w)
			}
		}
		if strings.HasSuffix(got, ".") || strings.Contains(got, "failed to") {
			t.Errorf("%s: %q is not in the tone of an error", tt.name, got)
		}
	}
}

func TestAddrErrorReasons(t *testing.T) {
	own := netip.MustParseAddr("127.0.0.1")
	foreign := netip.MustParseAddr("203.0.113.9")
	remote := netip.MustParseAddrPort("203.0.113.1:5201")
	restricted := PortPrivileged
	if privilegedPorts == 0 {
		restricted = PortReserved
	}
	for _, tt := range []struct {
		name, op      string
		local, remote netip.AddrPort
		err           error
		want          AddrReason // "" = not about addresses
	}{
		{"foreign", "bind", netip.AddrPortFrom(foreign, 0), remote, notAvail, ForeignAddress},
		{"foreign with port", "listen", netip.AddrPortFrom(foreign, 80), netip.AddrPort{}, notAvail, ForeignAddress},
		{"own but not ready", "listen", netip.AddrPortFrom(own, 80), netip.AddrPort{}, notAvail, AddressNotReady},
		{"listener's port", "listen", netip.AddrPortFrom(own, 5201), netip.AddrPort{}, inUse, PortTaken},
		{"pair in use", "connect", netip.AddrPortFrom(own, 4000), remote, notAvail, PortTaken},
		{"no port for connect", "connect", netip.AddrPort{}, remote, notAvail, PortsExhausted},
		{"no port for bind", "bind", netip.AddrPortFrom(own, 0), remote, inUse, PortsExhausted},
		{"low port", "listen", netip.AddrPortFrom(own, 80), netip.AddrPort{}, forbidden, restricted},
		{"filter forbids connecting", "connect", netip.AddrPort{}, remote, forbidden, ""},
		{"descriptors", "connect", netip.AddrPort{}, remote, tooMany, ""},
	} {
		got := AddrReason("")
		if e := addrError(tt.op, tt.local, tt.remote, tt.err); e != nil {
			got = e.Reason
			if !errors.Is(e, tt.err) {
				t.Errorf("%s: the errno is lost", tt.name)
			}
		}
		if got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestIsTooManyFiles(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want bool
	}{
		{nil, false},
		{inUse, false},
		{tooMany, true},
		{&net.OpError{Op: "accept", Err: os.NewSyscallError("accept4", tooMany)}, true},
	} {
		if got := IsTooManyFiles(tt.err); got != tt.want {
			t.Errorf("%v: %v, want %v", tt.err, got, tt.want)
		}
	}
}

// A system that refuses a size instead of capping it says the same with its errno.
func TestWindowErrorRefused(t *testing.T) {
	e := &WindowError{Asked: 64 << 20, Snd: 8 << 20 * bufferFactor, Rcv: 128 << 20 * bufferFactor, Err: tooMany}
	if !errors.Is(e, tooMany) || !e.BelowReported() {
		t.Errorf("%v: the refusal is lost", e)
	}
	n := e.Notice()
	if n.Code != "window-clamped" || !strings.Contains(n.Text, "67108864 bytes were asked for, usable are 8388608 to send and 134217728 to receive") {
		t.Errorf("%+v", n)
	}
	if sndBufLimit != "" && (!strings.Contains(n.Text, "raise "+sndBufLimit) || !strings.Contains(n.Fix, sndBufLimit+"=67108864")) {
		t.Errorf("%+v does not name %s", n, sndBufLimit)
	}
	if rcvBufLimit != sndBufLimit && strings.Contains(n.Text, rcvBufLimit) {
		t.Errorf("%+v names %s, which was enough", n, rcvBufLimit)
	}
}

func TestDeviceError(t *testing.T) {
	ifs, err := net.Interfaces()
	if err != nil || len(ifs) == 0 {
		t.Fatal(ifs, err)
	}
	for _, tt := range []struct {
		dev  string
		err  error
		want string
	}{
		{"nosuch0", noDevice, "interfaces here: " + ifs[0].Name},
		{ifs[0].Name, forbidden, "needs root"},
		{ifs[0].Name, errors.ErrUnsupported, "option bind-dev " + ifs[0].Name + ": this system does not have it"},
	} {
		if got := deviceError(tt.dev, tt.err).Error(); !strings.Contains(got, tt.want) {
			t.Errorf("%q lacks %q", got, tt.want)
		}
	}
}

func TestConnectErrorTimeout(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want bool
	}{
		{os.ErrDeadlineExceeded, true},
		{context.DeadlineExceeded, true},
		{syscall.ECONNREFUSED, false},
		{context.Canceled, false},
	} {
		e := fmt.Errorf("x: %w", &ConnectError{Err: tt.err})
		var ce *ConnectError
		if !errors.As(e, &ce) || ce.Timeout() != tt.want || !errors.Is(e, tt.err) {
			t.Errorf("%v: time-out %v, want %v", tt.err, ce.Timeout(), tt.want)
		}
	}
}

func TestErrno(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want int
	}{
		{nil, 0},
		{errors.New("x"), 0},
		{&ConnectError{Err: syscall.Errno(111)}, 111},
		{&AllFailedError{Errs: []error{errors.New("x"), &ConnectError{Err: syscall.Errno(113)}}}, 113},
		{fmt.Errorf("x: %w", &AddrError{Err: syscall.Errno(99)}), 99},
	} {
		if got := Errno(tt.err); got != tt.want {
			t.Errorf("%v: %d, want %d", tt.err, got, tt.want)
		}
	}
}

// Where the system has no IPv6 the wildcard listens on IPv4 and says so; nothing else
// falls back.
func TestListenFallback(t *testing.T) {
	for _, tt := range []struct {
		name, addr string
		family     int
		err        error // of the first attempt
		want       []string
		code       string
	}{
		{"both families", "[::]:5201", 0, nil, []string{"tcp [::]:5201"}, ""},
		{"no IPv6", "[::]:5201", 0, noFamily, []string{"tcp [::]:5201", "tcp4 0.0.0.0:5201"}, "ipv4-only"},
		{"no IPv6 but insisted on", "[::]:5201", 6, noFamily, []string{"tcp6 [::]:5201"}, ""},
		{"only IPv6", "[::]:5201", 6, nil, []string{"tcp6 [::]:5201"}, ""},
		{"only IPv4", "[::]:5201", 4, nil, []string{"tcp4 0.0.0.0:5201"}, ""},
		{"IPv4 wildcard is not dual", "0.0.0.0:5201", 0, nil, []string{"tcp4 0.0.0.0:5201"}, ""},
		{"one address", "[::1]:5201", 0, noFamily, []string{"tcp6 [::1]:5201"}, ""},
		{"port taken", "[::]:5201", 0, inUse, []string{"tcp [::]:5201"}, ""},
		{"mapped", "[::ffff:127.0.0.1]:5201", 0, nil, []string{"tcp4 127.0.0.1:5201"}, ""},
	} {
		var calls []string
		var notices []result.Notice
		var lc net.ListenConfig
		err := listen(netip.MustParseAddrPort(tt.addr), Options{Family: tt.family}, true, &lc, &notices, func(network, address string) error {
			calls = append(calls, network+" "+address)
			if len(calls) == 1 && tt.err != nil {
				return &net.OpError{Op: "listen", Err: os.NewSyscallError("socket", tt.err)}
			}
			return nil
		})
		if got, want := strings.Join(calls, ", "), strings.Join(tt.want, ", "); got != want {
			t.Errorf("%s: tried %s, want %s", tt.name, got, want)
		}
		if tt.code != "" && (err != nil || len(notices) != 1 || notices[0].Code != tt.code) {
			t.Errorf("%s: %v, notices %+v; want %s", tt.name, err, notices, tt.code)
		}
		if tt.code == "" && (len(notices) != 0 || (err != nil) != (tt.err != nil)) {
			t.Errorf("%s: %v, notices %+v", tt.name, err, notices)
		}
	}
	_, err := Listen(context.Background(), "tcp", netip.MustParseAddrPort("127.0.0.1:0"), Options{Family: 6})
	var re *ResolveError
	if !errors.As(err, &re) || !strings.Contains(err.Error(), "127.0.0.1 is not an IPv6 address") {
		t.Errorf("IPv4 address with family 6: %v", err)
	}
	_, err = Listen(context.Background(), "udp", netip.MustParseAddrPort("127.0.0.1:0"), Options{})
	if !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("udp: %v", err)
	}
}

func TestDialRefusesMismatches(t *testing.T) {
	ctx := context.Background()
	for _, tt := range []struct {
		name, addr string
		o          Options
		want       string
	}{
		{"family", "127.0.0.1:1", Options{Family: 6}, "127.0.0.1 is not an IPv6 address"},
		{"source of the other family", "127.0.0.1:1", Options{BindHost: "::1"}, "::1 cannot be the source address towards 127.0.0.1, which is IPv4"},
		{"label over IPv4", "127.0.0.1:1", Options{FlowLabel: 1}, "IPv4 has no flow label; use IPv6"},
	} {
		_, _, err := Dial(ctx, "tcp", netip.MustParseAddrPort(tt.addr), tt.o)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}
	if _, _, err := Dial(ctx, "sctp", loopback(1), Options{}); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("sctp: %v", err)
	}
	if _, _, err := DialFirst(ctx, "tcp", "h", nil, 1, Options{}); err == nil || err.Error() != "h has no address" {
		t.Errorf("no address: %v", err)
	}
}

func TestClamped(t *testing.T) {
	f := bufferFactor
	for _, tt := range []struct {
		name          string
		asked         int64
		snd, rcv      int
		clamped       bool
		belowReported bool
	}{
		{"nothing asked", 0, 100, 100, false, false},
		{"exact", 1000, 1000 * f, 1000 * f, false, false},
		{"send short", 1000, 999 * f, 1000 * f, true, f == 1},
		{"receive short", 1000, 1000 * f, 400 * f, true, true},
		{"usable short, reported enough", 3000, 1500 * f, 1500 * f, true, f == 1},
		{"far too much", 64 << 20, 4 << 20 * f, 4 << 20 * f, true, true},
	} {
		w := Clamped(tt.asked, tt.snd, tt.rcv)
		if (w != nil) != tt.clamped {
			t.Errorf("%s: %v", tt.name, w)
			continue
		}
		if w != nil && w.BelowReported() != tt.belowReported {
			t.Errorf("%s: below what is reported: %v, want %v", tt.name, w.BelowReported(), tt.belowReported)
		}
	}
}

package pacing

import (
	"net"
	"os"
	"os/exec"
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"golang.org/x/sys/unix"

	"github.com/fullbore-net/fullbore/internal/datagram"
	"github.com/fullbore-net/fullbore/internal/osnet"
)

// ownNetwork moves the test to a network namespace of its own, with a loopback. It goes
// with the test's thread.
func ownNetwork(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("packet sockets and network namespaces need root")
	}
	runtime.LockOSThread() // not unlocked: the changed thread ends with the test
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		t.Fatalf("unshare: %v", err)
	}
	if out, err := exec.Command("ip", "link", "set", "lo", "up").CombinedOutput(); err != nil {
		t.Fatalf("ip link set lo up: %v: %s", err, out)
	}
}

// A capture sees every datagram once, in super-packets or alone, whatever else comes, and
// its stamps are between the moment before the send and the moment after.
func TestCapture(t *testing.T) {
	ownNetwork(t)
	to, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer to.Close()
	from, err := net.DialUDP("udp4", nil, to.LocalAddr().(*net.UDPAddr))
	if err != nil {
		t.Fatal(err)
	}
	conn := osnet.NewConn(from)
	defer conn.Close()
	fd, err := conn.Detach()
	if err != nil {
		t.Fatal(err)
	}
	const size, each = 200, 10
	out, err := osnet.NewDatagramSender(fd, size, each, true)
	if err != nil {
		t.Fatal(err)
	}
	c, err := Watch(Stream{Port: to.LocalAddr().(*net.UDPAddr).Port, Size: size, Wide: true, Extended: true}, -1)
	if err != nil {
		t.Fatal(err)
	}
	before := osnet.Monotonic()
	send := func(seq uint64, n int) {
		for i := range n {
			datagram.PutHeader(out.Datagram(i), true, seq+uint64(i), before)
			datagram.PutExt(out.Datagram(i), before, 7)
		}
		if sent, errno := out.Send(n); sent != n {
			t.Fatalf("sent %d of %d: %v", sent, n, errno)
		}
	}
	send(1, each)
	if _, err := unix.Write(fd, make([]byte, 45)); err != nil { // a greeting's length
		t.Fatal(err)
	}
	send(1+each, 1)
	send(2+each, each)
	after := osnet.Monotonic()
	if !out.Segmented() {
		t.Fatal("no super-packets over loopback")
	}
	got, err := c.Stop()
	if err != nil {
		t.Fatal(err)
	}
	want := []Arrival{{Sent: before, Seq: 1, Count: each}, {Sent: before, Seq: 1 + each, Count: 1}, {Sent: before, Seq: 2 + each, Count: each}}
	if d := cmp.Diff(want, got, cmpopts.IgnoreFields(Arrival{}, "At")); d != "" {
		t.Errorf("arrivals (-want +got):\n%s", d)
	}
	// Two clocks are read one after the other to convert a stamp.
	const slack = int64(1e6)
	for _, a := range got {
		if a.At < before-slack || a.At > after+slack {
			t.Errorf("datagram %d came at %d, sent between %d and %d", a.Seq, a.At, before, after)
		}
	}
}

func TestArrivalRefuses(t *testing.T) {
	s := Stream{Port: 5201, Size: 100}
	good := make([]byte, 128)
	good[0], good[9], good[3] = 0x45, unix.IPPROTO_UDP, 128
	good[22], good[23] = 5201>>8, 5201&255
	datagram.PutHeader(good[28:], false, 7, 3e9)
	if a, ok := s.arrival(good, 5); !ok || a != (Arrival{At: 5, Sent: 3e9, Seq: 7, Count: 1}) {
		t.Fatalf("%+v, %v", a, ok)
	}
	for name, change := range map[string]func(p []byte) []byte{
		"IPv6":             func(p []byte) []byte { p[0] = 0x65; return p },
		"TCP":              func(p []byte) []byte { p[9] = unix.IPPROTO_TCP; return p },
		"another port":     func(p []byte) []byte { p[23]++; return p },
		"another length":   func(p []byte) []byte { p[3] = 127; return p },
		"no payload":       func(p []byte) []byte { p[3] = 28; return p },
		"a fragment":       func(p []byte) []byte { p[7] = 1; return p },
		"a first fragment": func(p []byte) []byte { p[6] = 0x20; return p },
		"cut":              func(p []byte) []byte { return p[:43] },
		"long IP header":   func(p []byte) []byte { p[0] = 0x4f; return p[:60] },
		"empty":            func(p []byte) []byte { return nil },
		"no header of ours": func(p []byte) []byte {
			copy(p[28:], "FBP1\xff\xff\xff\xff")
			return p
		},
	} {
		if a, ok := s.arrival(change(append([]byte(nil), good...)), 5); ok {
			t.Errorf("%s: %+v", name, a)
		}
	}
}

// An observer counts a beat of its own as one, however long it took.
func TestObserver(t *testing.T) {
	o := Observe(-1)
	for begun := osnet.Monotonic(); osnet.Monotonic() < begun+20*machineBeat; {
		runtime.Gosched()
	}
	m, err := o.Stop()
	if err != nil {
		t.Fatal(err)
	}
	if len(o.late) == 0 || m.Late.Least < 0 || m.Late.P50 > m.Late.P99 || m.Late.P99 > m.Late.Most || m.Steal < 0 || m.Steal > 1 {
		t.Errorf("%d beats, %+v", len(o.late), m)
	}
}

package lab_test

import (
	"context"
	"encoding/binary"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fullbore-net/fullbore/internal/lab"
)

// needNamespaces skips a test that this user may not run. CI may run all of them, so
// there it is a failure.
func needNamespaces(t *testing.T) {
	t.Helper()
	if err := lab.Check(); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
}

// network closes n at the test's end.
func network(t *testing.T) func(n *lab.Network, err error) *lab.Network {
	return func(n *lab.Network, err error) *lab.Network {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := n.Close(); err != nil {
				t.Error(err)
			}
		})
		return n
	}
}

func linkCommand(t *testing.T) []string {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return lab.LinkCommand(exe)
}

// patience is how long anything is waited for: no test takes a quarter of it on a busy machine,
// and one that hangs must not use up the time of those behind it.
const patience = 3 * time.Minute

// testContext ends when something hangs, and before the time limit of all tests, so that a
// hanging child shows where. It is kept until the test's end: ask for one before a loop, not in it.
func testContext(t *testing.T) context.Context {
	t.Helper()
	limit := time.Now().Add(patience)
	if all, ok := t.Deadline(); ok && all.Add(-5*time.Second).Before(limit) {
		limit = all.Add(-5 * time.Second)
	}
	ctx, cancel := context.WithDeadline(t.Context(), limit)
	t.Cleanup(cancel)
	return ctx
}

// until polls a condition of which nobody tells.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	ctx := testContext(t)
	for !ok() {
		select {
		case <-ctx.Done():
			t.Fatalf("waited in vain until %s", what)
		case <-time.After(time.Millisecond):
		}
	}
}

// must fails the test unless a program ended with 0.
func must(t *testing.T, ns *lab.Namespace, args ...string) string {
	t.Helper()
	r, err := ns.Run(testContext(t), args...)
	if err != nil {
		t.Fatal(err)
	}
	if r.Code != 0 {
		t.Fatalf("%s: %q: exit code %d\n%s%s", ns.Role, args, r.Code, r.Stdout, r.Stderr)
	}
	return r.Stdout
}

func getCongestion(fd int) (string, error) {
	name, err := unix.GetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION)
	return strings.TrimRight(name, "\x00"), err
}

// udpPair opens a socket at the near end that is connected to one at the far end.
func udpPair(t *testing.T, n *lab.Network) (near, far *net.UDPConn) {
	t.Helper()
	open := func(ns *lab.Namespace, f func() (net.Conn, error)) *net.UDPConn {
		t.Helper()
		var c net.Conn
		if err := ns.Do(func() (err error) { c, err = f(); return err }); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c.(*net.UDPConn)
	}
	far = open(n.Far, func() (net.Conn, error) {
		return net.ListenUDP("udp4", nil)
	})
	near = open(n.Near, func() (net.Conn, error) {
		address := lab.FarIPv4
		if n.Router != nil && n.Link == nil {
			address = lab.RoutedFarIPv4
		}
		return net.DialUDP("udp4", nil, &net.UDPAddr{IP: net.ParseIP(address), Port: far.LocalAddr().(*net.UDPAddr).Port})
	})
	// Room for all that a test sends, whatever the system's limit, so that nothing is lost
	// while the test itself does not get the processor.
	raw, err := far.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var errOpt error
	if err := raw.Control(func(fd uintptr) {
		errOpt = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 128<<20)
	}); err != nil || errOpt != nil {
		t.Fatal(err, errOpt)
	}
	return near, far
}

// sendNumbered sends datagrams with numbers from 0 on and returns those that arrived.
func sendNumbered(t *testing.T, n *lab.Network, packets, size int) map[int]bool {
	t.Helper()
	near, far := udpPair(t, n)
	buf := make([]byte, size)
	for i := range packets {
		binary.BigEndian.PutUint32(buf, uint32(i))
		if _, err := near.Write(buf); err != nil {
			t.Fatal(err)
		}
	}
	// All have been sent; all that will arrive has when the link holds none.
	until(t, "the link has passed on what was sent", func() bool {
		rep, err := n.Link.Report()
		if err != nil {
			t.Fatal(err)
		}
		d := rep.Directions[0]
		return d.Link.In.Packets >= int64(packets) && d.Held.Packets == 0
	})
	raw, err := far.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	got := map[int]bool{}
	err = raw.Control(func(fd uintptr) {
		for {
			n, _, err := unix.Recvfrom(int(fd), buf, unix.MSG_DONTWAIT)
			if err == unix.EAGAIN {
				return
			}
			if err != nil || n != size {
				t.Errorf("received %d bytes, %v, want %d", n, err, size)
				return
			}
			got[int(binary.BigEndian.Uint32(buf))] = true
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

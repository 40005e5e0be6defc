package osnet

import (
	"bytes"
	"errors"
	"io"
	"net"
	"runtime"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fullbore-net/fullbore/result"
)

func TestConnAddresses(t *testing.T) {
	ln := mustListen(t, "[::]:0", Options{})
	for _, host := range []string{"127.0.0.1", "::1"} {
		c, s := pair(t, ln, host, Options{}, Options{})
		if got := c.Remote(); got.Host != host || got.Port != int(portOf(ln)) {
			t.Errorf("client's remote address %+v, want %s port %d", got, host, portOf(ln))
		}
		if got := s.Remote(); got.Host != host {
			t.Errorf("server's remote address %+v, want %s: a mapped address must come as IPv4", got, host)
		}
		if d := cmp.Diff(c.Local(), s.Remote()); d != "" {
			t.Errorf("the ends disagree about the client's address (-client +server):\n%s", d)
		}
	}
}

func TestConnClosed(t *testing.T) {
	ln := mustListen(t, "127.0.0.1:0", Options{})
	c, _ := pair(t, ln, "127.0.0.1", Options{}, Options{})
	want := c.Local()
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	for name, f := range map[string]func() error{
		"Close":     c.Close,
		"TCPInfo":   func() error { _, err := c.TCPInfo(); return err },
		"Buffers":   func() error { _, _, err := c.Buffers(); return err },
		"SendQueue": func() error { _, err := c.SendQueue(); return err },
		"Detach":    func() error { _, err := c.Detach(); return err },
		"SetPacing": func() error { return c.SetPacing(1e6) },
	} {
		if err := f(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("%s after Close: %v, want net.ErrClosed", name, err)
		}
	}
	if d := cmp.Diff(want, c.Local()); d != "" {
		t.Errorf("address after Close (-want +got):\n%s", d)
	}
}

// A connection without a descriptor, as in tests of the protocols, must say that it
// has no readings instead of failing otherwise.
func TestConnWithoutDescriptor(t *testing.T) {
	a, b := net.Pipe()
	defer b.Close()
	c := NewConn(a)
	defer c.Close()
	for name, f := range map[string]func() error{
		"TCPInfo":    func() error { _, err := c.TCPInfo(); return err },
		"Buffers":    func() error { _, _, err := c.Buffers(); return err },
		"SendQueue":  func() error { _, err := c.SendQueue(); return err },
		"RecvQueue":  func() error { _, err := c.RecvQueue(); return err },
		"MSS":        func() error { _, err := c.MSS(); return err },
		"TOS":        func() error { _, err := c.TOS(); return err },
		"Congestion": func() error { _, err := c.Congestion(); return err },
		"Pacing":     func() error { _, err := c.Pacing(); return err },
		"Detach":     func() error { _, err := c.Detach(); return err },
		"Apply":      func() error { _, err := Apply(c, Options{}); return err },
	} {
		if err := f(); !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("%s: %v, want errors.ErrUnsupported", name, err)
		}
	}
	if d := cmp.Diff(result.Addr{Host: "pipe"}, c.Local()); d != "" {
		t.Errorf("address (-want +got):\n%s", d)
	}
}

func TestDetach(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a Windows socket cannot leave the runtime's poller; see Detach")
	}
	ln := mustListen(t, "127.0.0.1:0", Options{})
	c, s := pair(t, ln, "127.0.0.1", Options{MSS: 1000}, Options{})
	before, remote := c.Local(), c.Remote()
	fd, err := c.Detach()
	if err != nil {
		t.Fatal(err)
	}
	if again, err := c.Detach(); err != nil || again != fd {
		t.Errorf("second Detach: %d, %v; want the same descriptor %d", again, err, fd)
	}
	if _, err := c.Net().Write([]byte("x")); !errors.Is(err, net.ErrClosed) {
		t.Errorf("the net.Conn still writes after Detach: %v", err)
	}
	if c.Local() != before || c.Remote() != remote {
		t.Errorf("addresses changed to %v, %v", c.Local(), c.Remote())
	}
	if mss, err := c.MSS(); err != nil || mss == 0 || mss > 1000 {
		t.Errorf("MSS on the detached descriptor: %d, %v", mss, err)
	}
	if _, err := Apply(c, Options{NoDelay: true}); err != nil {
		t.Errorf("Apply on the detached descriptor: %v", err)
	}

	// The descriptor carries bytes, and its queue empties when the peer has read them.
	payload := bytes.Repeat([]byte("fullbore"), 1000)
	if n, err := writeDescriptor(fd, payload); err != nil || n != len(payload) {
		t.Fatalf("write: %d, %v", n, err)
	}
	got := make([]byte, len(payload))
	if _, err := io.ReadFull(s.Net(), got); err != nil || !bytes.Equal(got, payload) {
		t.Fatalf("read at the peer: %v", err)
	}

	// Close gives the descriptor back, so the peer sees the end.
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if n, err := s.Net().Read(got); err != io.EOF {
		t.Errorf("peer after Close: %d, %v; want EOF", n, err)
	}
}

// Readings race with Close in every test that is interrupted; run under -race.
func TestReadingsWhileClosing(t *testing.T) {
	ln := mustListen(t, "127.0.0.1:0", Options{})
	for _, detach := range []bool{false, true} {
		if detach && runtime.GOOS == "windows" {
			continue
		}
		c, _ := pair(t, ln, "127.0.0.1", Options{}, Options{})
		if detach {
			if _, err := c.Detach(); err != nil {
				t.Fatal(err)
			}
		}
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for {
					if _, _, err := c.Buffers(); err != nil {
						if !errors.Is(err, net.ErrClosed) {
							t.Errorf("Buffers: %v", err)
						}
						return
					}
				}
			})
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		wg.Wait()
	}
}

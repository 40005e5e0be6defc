package ntttcp

import (
	"io"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/fullbore-net/fullbore/result"
)

// atPorts maps meant ports where the receiver's data ports begin above base, at which ports are
// told (-sp).
func (f *fixture) atPorts(base int) func(int) netip.AddrPort {
	return func(port int) netip.AddrPort {
		if port == base {
			return netip.MustParseAddrPort(f.lns.PortSync.Addr().String())
		}
		return f.at(port - base - 1 + DefaultPort)
	}
}

// TestPortSync: three threads of two senders are told ports of their own (windows §3.5).
func TestPortSync(t *testing.T) {
	t.Parallel()
	f := serve(t, Config{Windows: true, PortSync: true, Port: DefaultPort + 1, Ports: 3, Expect: 3, Follow: true, OneOff: true}, nil)
	sender := Config{Windows: true, PortSync: true, Ports: 2, Threads: 1, Host: "127.0.0.1", Blocks: 20, BlockSize: 4096, Duration: time.Hour, WaitTimeout: time.Minute}
	two := send(t, sender, dialFrom("", f.atPorts(DefaultPort)))
	sender.Ports = 1
	one := send(t, sender, dialFrom("", f.atPorts(DefaultPort)))
	run := f.finished(t, 0)
	for i, s := range []*sending{two, one} {
		if got := s.wait(t); got != "" {
			t.Errorf("sender %d ends with %q: %+v", i, got, s.rec.run().Err)
		}
	}
	if run.Err != nil || len(run.Streams) != 3 || run.NTTTCP.BasePort != DefaultPort {
		t.Errorf("%d streams at %d: %+v", len(run.Streams), run.NTTTCP.BasePort, run.Err)
	}
	seen := map[int]bool{}
	for _, s := range run.Streams {
		seen[*s.Thread] = true
	}
	if len(seen) != 3 {
		t.Errorf("threads %v", seen)
	}
	if a, b := bytesOf(run, result.Server), bytesOf(two.rec.run(), result.Client)+bytesOf(one.rec.run(), result.Client); a != b || a != 3*20*4096 {
		t.Errorf("%d bytes came, %d were sent", a, b)
	}
}

// TestPortBytes: the message is little-endian, and the connection ends with it.
func TestPortBytes(t *testing.T) {
	t.Parallel()
	f := serve(t, Config{Windows: true, PortSync: true, Port: DefaultPort + 1, Ports: 1, Expect: 1, Duration: time.Second, OneOff: true}, nil)
	nc, err := net.Dial("tcp", f.lns.PortSync.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	_ = nc.SetReadDeadline(time.Now().Add(10 * time.Second))
	if b, err := io.ReadAll(nc); err != nil || string(b) != "\x8a\x13\x00\x00" {
		t.Errorf("% x, %v", b, err)
	}
}

// TestNoPortTold: a receiver that was not started with -sp, or falls silent, does not hold the
// sender.
func TestNoPortTold(t *testing.T) {
	for name, answer := range map[string][]byte{"silence": nil, "no port": {0, 0, 0, 0}, "half": {0x8a, 0x13}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ln, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer ln.Close()
			go func() { // ends with ln
				for {
					nc, err := ln.Accept()
					if err != nil {
						return
					}
					_, _ = nc.Write(answer)
					if answer != nil {
						nc.Close()
						continue
					}
					t.Cleanup(func() { nc.Close() })
				}
			}()
			s := send(t, Config{Windows: true, PortSync: true, Ports: 1, Threads: 1, Host: "127.0.0.1", Duration: time.Second, WaitTimeout: 300 * time.Millisecond},
				dialFrom("", func(int) netip.AddrPort { return netip.MustParseAddrPort(ln.Addr().String()) }))
			if got := s.wait(t); got != "no-answer" || s.rec.has(result.KindStart) {
				t.Errorf("ends with %q", got)
			}
		})
	}
}

// TestPortGiver: every thread has a port of its own, and one that does not come loses it.
func TestPortGiver(t *testing.T) {
	g := portGiver{handed: make([]time.Time, 2)}
	now := time.Unix(1000, 0)
	ask := func(at time.Time) int {
		if p, ok := g.next(at, time.Minute); ok {
			return p
		}
		return -1
	}
	for i, want := range []int{0, 1, -1} {
		if got := ask(now); got != want {
			t.Errorf("ask %d: %d, want %d", i, got, want)
		}
	}
	g.came(1)
	g.came(7)
	now = now.Add(2 * time.Minute)
	for i, want := range []int{0, -1} {
		if got := ask(now); got != want {
			t.Errorf("later, ask %d: %d, want %d", i, got, want)
		}
	}
	g.reset()
	if got := ask(now); got != 0 {
		t.Errorf("after a test: %d", got)
	}
}

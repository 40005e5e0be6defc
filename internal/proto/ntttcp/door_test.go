package ntttcp

import (
	"bytes"
	"io"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/fullbore-net/fullbore/result"
)

// script is a sender at one address, played by hand.
type script struct {
	t     *testing.T
	f     *fixture
	local string
	sync  net.Conn
	data  []net.Conn
	token []net.Conn
}

func (f *fixture) script(t *testing.T, local string) *script {
	return &script{t: t, f: f, local: local}
}

func (s *script) dial(ln net.Listener) net.Conn {
	s.t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(s.local)}}
	nc, err := d.Dial("tcp", ln.Addr().String())
	if err != nil {
		s.t.Fatal(err)
	}
	_ = nc.SetReadDeadline(time.Now().Add(40 * time.Second))
	s.t.Cleanup(func() { nc.Close() })
	return nc
}

// hello asks for the state and proposes a cycle; it is answered when the door is free.
func (s *script) hello(cycle Word) *script {
	s.t.Helper()
	s.ask()
	hear(s.t, s.sync, StateFullbore)
	s.propose(cycle)
	return s
}

func (s *script) ask() *script {
	s.t.Helper()
	s.sync = s.dial(s.f.lns.Sync)
	say(s.t, s.sync, WordState)
	return s
}

func (s *script) propose(cycle Word) {
	s.t.Helper()
	say(s.t, s.sync, cycle)
	hear(s.t, s.sync, cycle)
}

// connect opens a data connection to each of the ports, and waits until the receiver has them.
func (s *script) connect(ports ...int) *script {
	s.t.Helper()
	for _, p := range ports {
		s.data = append(s.data, s.dial(s.f.lns.Data[p]))
	}
	s.f.r.barrier.pass(s.t.Context(), s.f.r.data)
	return s
}

// tokens sends a token for each port.
func (s *script) tokens(ports ...int) *script {
	s.t.Helper()
	for _, p := range ports {
		nc := s.dial(s.f.lns.Tokens[p])
		if _, err := nc.Write([]byte{Token}); err != nil {
			s.t.Fatal(err)
		}
		s.token = append(s.token, nc)
	}
	return s
}

// held waits until so many tokens wait at this address's door.
func (s *script) held(n int) *script {
	s.t.Helper()
	until(s.t, "tokens at the door", func() bool {
		s.f.r.mu.Lock()
		defer s.f.r.mu.Unlock()
		d := s.f.r.doors[netip.MustParseAddr(s.local)]
		return d != nil && len(d.tokens) == n
	})
	return s
}

// taken waits until so many tokens belong to a set-up.
func (s *script) taken(n int) *script {
	s.t.Helper()
	until(s.t, "tokens of a set-up", func() bool {
		s.f.r.mu.Lock()
		defer s.f.r.mu.Unlock()
		d := s.f.r.doors[netip.MustParseAddr(s.local)]
		return d != nil && d.windows != nil && len(d.windows.tokened) == n
	})
	return s
}

// answered reads the receiver's tokens.
func (s *script) answered() *script {
	s.t.Helper()
	for i, nc := range s.token {
		var b [2]byte
		if n, err := io.ReadAtLeast(nc, b[:], 1); err != nil || b[0] != Token {
			s.t.Fatalf("token %d: %x, %v", i, b[:n], err)
		}
	}
	return s
}

// started says R.
func (s *script) started() *script {
	s.t.Helper()
	say(s.t, s.sync, WordStart)
	hear(s.t, s.sync, WordStart)
	return s
}

// write sends n bytes on every data connection.
func (s *script) write(n int) *script {
	s.t.Helper()
	for _, nc := range s.data {
		if _, err := nc.Write(bytes.Repeat([]byte{PayloadByte}, n)); err != nil {
			s.t.Fatal(err)
		}
	}
	return s
}

// end closes the data connections; a Linux sender first says E when all it sent has been counted.
func (s *script) end() {
	for _, nc := range s.data {
		nc.Close()
	}
}

// expectRuns waits for one run for each row of want, in any order, and compares.
func expectRuns(t *testing.T, f *fixture, want ...wantRun) []*result.Run {
	t.Helper()
	var runs []*result.Run
	for i := range want {
		runs = append(runs, f.finished(t, i))
	}
	left := append([]*result.Run(nil), runs...)
next:
	for _, w := range want {
		for i, r := range left {
			if w.is(r) {
				left = append(left[:i:i], left[i+1:]...)
				continue next
			}
		}
		t.Errorf("no run of %+v", w)
	}
	for _, r := range left {
		t.Errorf("a run of %s, %d streams, %d bytes, no-sync %v, ends with %+v", r.NTTTCP.Dialect, len(r.Streams), bytesOf(r, result.Server), r.NTTTCP.NoSync, r.Err)
	}
	if n := len(f.tests()); n != len(want) {
		t.Errorf("%d runs, want %d", n, len(want))
	}
	for _, r := range runs {
		checkRows(t, r, result.Server)
	}
	return runs
}

// wantRun is a run as a receiver should have it.
type wantRun struct {
	kind    string // "linux", "windows", "none"
	streams int
	bytes   int64
	code    string // of its error
}

func (w wantRun) is(r *result.Run) bool {
	kind := r.NTTTCP.Dialect
	if r.NTTTCP.NoSync {
		kind = "none"
	}
	code := ""
	if r.Err != nil {
		code = r.Err.Code
	}
	return kind == w.kind && len(r.Streams) == w.streams && bytesOf(r, result.Server) == w.bytes && code == w.code
}

// TestDoor: senders of one address in each other's way. Every step waits until the receiver knows
// of it, so that their order is certain.
func TestDoor(t *testing.T) {
	const at = "127.0.0.1"
	for _, c := range []struct {
		name string
		play func(t *testing.T, f *fixture)
		want []wantRun
	}{
		{"Linux senders take turns", func(t *testing.T, f *fixture) {
			a := f.script(t, at).hello(0).connect(0, 1)
			b := f.script(t, at).ask()
			waits(t, f, at, 1)
			c := f.script(t, at).ask()
			waits(t, f, at, 2)
			a.started()
			hear(t, b.sync, StateFullbore)
			b.propose(0)
			b.connect(0).started()
			hear(t, c.sync, StateFullbore)
			c.propose(0)
			c.connect(1).started().write(3000).end()
			b.write(2000).end()
			a.write(1000).end()
		}, []wantRun{{"linux", 2, 2000, ""}, {"linux", 1, 2000, ""}, {"linux", 1, 3000, ""}}},

		{"one that does not synchronise while a Linux sender connects", func(t *testing.T, f *fixture) {
			a := f.script(t, at).hello(0).connect(0)
			n := f.script(t, at).connect(0, 1).write(700)
			a.connect(1)
			until(t, "its test", func() bool { return len(f.tests()) == 1 })
			a.started().write(1000).end()
			n.end()
		}, []wantRun{{"none", 2, 1400, ""}, {"linux", 2, 2000, ""}}},

		{"and between its connections and its start", func(t *testing.T, f *fixture) {
			a := f.script(t, at).hello(0).connect(0, 1)
			n := f.script(t, at).connect(1).write(700)
			a.started().write(1000).end()
			n.end()
		}, []wantRun{{"none", 1, 700, ""}, {"linux", 2, 2000, ""}}},

		{"a Windows sender while a Linux sender connects", func(t *testing.T, f *fixture) {
			a := f.script(t, at).hello(0).connect(0)
			w := f.script(t, at).connect(0, 1)
			a.connect(1, 0)
			w.tokens(0, 1).held(2)
			a.started().write(1000)
			w.answered().write(500).end()
			a.end()
		}, []wantRun{{"linux", 3, 3000, ""}, {"windows", 2, 1000, ""}}},

		{"a Linux sender while a Windows sender connects", func(t *testing.T, f *fixture) {
			w := f.script(t, at).connect(0)
			a := f.script(t, at).ask()
			waits(t, f, at, 1)
			w.connect(1).tokens(0, 1).answered()
			hear(t, a.sync, StateFullbore)
			a.propose(0)
			a.connect(0, 1).started().write(1000).end()
			w.write(500).end()
		}, []wantRun{{"linux", 2, 2000, ""}, {"windows", 2, 1000, ""}}},

		{"Windows senders one after the other", func(t *testing.T, f *fixture) {
			w := f.script(t, at).connect(0, 1).tokens(0, 1).answered()
			x := f.script(t, at).connect(0, 1).tokens(1, 0).answered()
			w.write(500).end()
			x.write(600).end()
		}, []wantRun{{"windows", 2, 1000, ""}, {"windows", 2, 1200, ""}}},

		{"Windows senders that overlap", func(t *testing.T, f *fixture) {
			w := f.script(t, at).connect(0, 1)
			x := f.script(t, at).connect(0)
			w.tokens(0).taken(1)
			x.connect(1).tokens(0).held(1)
			w.tokens(1).answered().write(500)
			x.tokens(1).answered().write(600).end()
			w.end()
		}, []wantRun{{"windows", 2, 1000, ""}, {"windows", 2, 1200, ""}}},

		{"the second of two Windows senders is the first to be ready", func(t *testing.T, f *fixture) {
			w := f.script(t, at).connect(0, 1)
			x := f.script(t, at).connect(0, 1).tokens(0, 1).answered().write(600)
			w.tokens(0, 1).answered().write(500).end()
			x.end()
		}, []wantRun{{"windows", 2, 1000, ""}, {"windows", 2, 1200, ""}}},

		{"Windows senders with tokens in each other's order", func(t *testing.T, f *fixture) {
			w := f.script(t, at).connect(0, 1, 2)
			x := f.script(t, at).connect(0, 1)
			w.tokens(0).taken(1)
			x.tokens(1).taken(2).tokens(0).held(1)
			w.tokens(1).held(2).tokens(2)
			// Neither has all its answers before all are answered; then both are one.
			w.answered()
			x.answered().write(600).end()
			w.write(500).end()
		}, []wantRun{{"windows", 5, 2700, ""}}},

		{"no synchronisation while a Windows sender connects", func(t *testing.T, f *fixture) {
			w := f.script(t, at).connect(0, 1)
			n := f.script(t, at).connect(0, 1).write(700)
			until(t, "its test", func() bool { return len(f.tests()) == 1 })
			w.tokens(0, 1).answered().write(500).end()
			n.end()
		}, []wantRun{{"none", 2, 1400, ""}, {"windows", 2, 1000, ""}}},

		{"a Windows sender while one without synchronisation runs", func(t *testing.T, f *fixture) {
			n := f.script(t, at).connect(1).write(700)
			until(t, "its test", func() bool { return len(f.tests()) == 1 })
			w := f.script(t, at).connect(0, 1).tokens(0, 1).answered().write(500)
			n.write(1).end()
			w.end()
		}, []wantRun{{"none", 1, 701, ""}, {"windows", 2, 1000, ""}}},

		{"a Linux sender that goes away lets the next in", func(t *testing.T, f *fixture) {
			a := f.script(t, at).hello(0).connect(0, 1)
			b := f.script(t, at).ask()
			waits(t, f, at, 1)
			a.sync.Close()
			hear(t, b.sync, StateFullbore)
			b.propose(0)
			b.connect(0).started().write(1000).end()
			ends(t, a.data...)
		}, []wantRun{{"linux", 1, 1000, ""}}},

		{"a Windows sender that goes away lets the next in", func(t *testing.T, f *fixture) {
			w := f.script(t, at).connect(0, 1).tokens(0)
			a := f.script(t, at).ask()
			waits(t, f, at, 1)
			w.end()
			hear(t, a.sync, StateFullbore)
			a.propose(0)
			a.connect(0).started().write(1000).end()
		}, []wantRun{{"linux", 1, 1000, ""}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := serve(t, Config{Ports: 3, Follow: true}, nil)
			c.play(t, f)
			expectRuns(t, f, c.want...)
		})
	}
}

// waits waits until n Linux senders wait at a door.
func waits(t *testing.T, f *fixture, at string, n int) {
	t.Helper()
	until(t, "who waits", func() bool {
		f.r.mu.Lock()
		defer f.r.mu.Unlock()
		d := f.r.doors[netip.MustParseAddr(at)]
		return d != nil && len(d.waiting) == n
	})
}

// ends waits until the receiver has closed connections.
func ends(t *testing.T, conns ...net.Conn) {
	t.Helper()
	for _, nc := range conns {
		if _, err := nc.Read(make([]byte, 1)); err == nil || isTimeout(err) {
			t.Errorf("a connection lives on: %v", err)
		}
	}
}

// TestStartFirst: the oldest Linux senders say R before they connect. All connections are awaited
// that come without a long pause.
func TestStartFirst(t *testing.T) {
	t.Parallel()
	f := serve(t, Config{Ports: 2, Follow: true}, func(r *Receiver) { r.Timeouts.Settle = 200 * time.Millisecond })
	f.script(t, "127.0.0.1").hello(0).started().connect(0, 1, 0, 1).write(1000).end()
	expectRuns(t, f, wantRun{"linux", 4, 4000, ""})
}

// TestTurn: who waits for a sender that does not get on is told busy; the door is free when that
// one is given up.
func TestTurn(t *testing.T) {
	t.Parallel()
	f := serve(t, Config{Ports: 1, Follow: true}, func(r *Receiver) { r.Timeouts.Turn = 50 * time.Millisecond })
	a := f.script(t, "127.0.0.1").hello(0)
	b := f.script(t, "127.0.0.1").ask()
	hear(t, b.sync, StateRunning)
	a.sync.Close()
	until(t, "its end", func() bool {
		f.r.mu.Lock()
		defer f.r.mu.Unlock()
		return len(f.r.doors) == 0
	})
	say(t, b.sync, WordState)
	hear(t, b.sync, StateFullbore)
	b.propose(0)
	b.connect(0).started().write(10).end()
	expectRuns(t, f, wantRun{"linux", 1, 10, ""})
}

// TestIdle: nothing is kept of who came and left.
func TestIdle(t *testing.T) {
	t.Parallel()
	f := serve(t, Config{Ports: 2, Follow: true}, nil)
	f.script(t, "127.0.0.1").hello(0).connect(0, 1).started().write(10).end()
	f.script(t, "127.0.0.1").connect(0, 1).tokens(0, 1).answered().write(10).end()
	f.script(t, "127.0.0.1").connect(0).write(10).end()
	f.script(t, "127.0.0.1").connect(0, 1).end()
	f.finished(t, 2)
	until(t, "an empty house", func() bool {
		f.r.mu.Lock()
		defer f.r.mu.Unlock()
		return len(f.r.doors) == 0 && len(f.r.running) == 0
	})
}

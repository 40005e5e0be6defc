package ntttcp

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/result"
)

// What befalls a peer. A cut path is a freeze to whoever waits for what would come; what it is to
// whoever sends, a test with a real path shows (test/fieldcases).
const (
	killed = "killed" // its system ends its connections
	reset  = "reset"  // its system has forgotten them
	frozen = "frozen" // nothing more comes
)

// befall does it to all connections of s.
func (s *script) befall(what string) {
	for _, nc := range slices.Concat([]net.Conn{s.sync}, s.data, s.token) {
		tc, ok := nc.(*net.TCPConn)
		if !ok || what == frozen {
			continue
		}
		if what == reset {
			_ = tc.SetLinger(0)
		}
		tc.Close()
	}
}

// TestSenderLost: in whatever step a sender is killed, reset or frozen, the receiver says what
// became of a test that had begun, keeps its part, and serves the next.
func TestSenderLost(t *testing.T) {
	const at = "127.0.0.1"
	const cycle = 60
	linux := func(s *script) { s.hello(cycle).connect(0, 1) }
	for _, c := range []struct {
		step string
		play func(s *script)
		// codes of the run that there is then, by what befell the sender; nil = there is none.
		codes map[string]string
		bytes bool
	}{
		{"connected to the sync port", func(s *script) { s.sync = s.dial(s.f.lns.Sync) }, nil, false},
		{"asked for the state", func(s *script) { s.ask(); hear(s.t, s.sync, StateFullbore) }, nil, false},
		{"half a word", func(s *script) { s.ask(); hear(s.t, s.sync, StateFullbore); _, _ = s.sync.Write([]byte{0, 0}) }, nil, false},
		{"agreed on a time", func(s *script) { s.hello(cycle) }, nil, false},
		{"some connections", func(s *script) { s.hello(cycle).connect(0) }, nil, false},
		{"all connections", linux, nil, false},
		{
			"started without connections", func(s *script) { s.hello(cycle).started() },
			map[string]string{killed: "peer-vanished", reset: "peer-vanished", frozen: "no-data"},
			false,
		},
		{
			"started", func(s *script) { linux(s); s.started() },
			map[string]string{killed: "peer-vanished", reset: "peer-vanished", frozen: "peer-vanished"},
			false,
		},
		{
			"sends", func(s *script) { linux(s); s.started().write(5000); s.until(s.moves) },
			map[string]string{killed: "peer-vanished", reset: "peer-vanished", frozen: "peer-vanished"},
			true,
		},
		{
			"said E", func(s *script) {
				linux(s)
				s.started().write(5000)
				s.until(s.moves)
				say(s.t, s.sync, WordEnd)
				hear(s.t, s.sync, StateFinished)
			},
			map[string]string{killed: "sender-interrupted", reset: "sender-interrupted", frozen: "sender-interrupted"},
			true,
		},

		{"Windows, some connections", func(s *script) { s.connect(0) }, nil, false},
		{"Windows, some tokens", func(s *script) { s.connect(0, 1).tokens(0).taken(1) }, nil, false},
		{
			"Windows, tokens answered", func(s *script) { s.connect(0, 1).tokens(0, 1).answered() },
			map[string]string{killed: "no-data", reset: "peer-vanished", frozen: "peer-vanished"},
			false,
		},
		{
			"Windows, sends", func(s *script) { s.connect(0, 1).tokens(0, 1).answered().write(5000); s.until(s.moves) },
			map[string]string{killed: "", reset: "peer-vanished", frozen: "peer-vanished"},
			true,
		},

		{
			"not synchronised, sends", func(s *script) { s.connect(0, 1).write(5000); s.until(s.moves) },
			map[string]string{killed: "", reset: "peer-vanished", frozen: "peer-vanished"},
			true,
		},
	} {
		for _, what := range []string{killed, reset, frozen} {
			t.Run(c.step+", "+what, func(t *testing.T) {
				t.Parallel()
				f := serve(t, Config{Ports: 2, Follow: true}, func(r *Receiver) {
					r.Timeouts.Header, r.Timeouts.Setup, r.Timeouts.Silence, r.Timeouts.Turn, r.Timeouts.Stale = 3*time.Second, 3*time.Second, 3*time.Second, 3*time.Second, time.Second
				})
				s := f.script(t, at)
				c.play(s)
				s.befall(what)
				if c.codes != nil {
					run := f.finished(t, 0)
					got := ""
					if run.Err != nil {
						got = run.Err.Code
					}
					if got != c.codes[what] {
						t.Errorf("ends with %q (%+v), want %q", got, run.Err, c.codes[what])
					}
					if n := bytesOf(run, result.Server); c.bytes && n != 10000 {
						t.Errorf("%d bytes are left of 10000", n)
					}
					checkRows(t, run, result.Server)
				}
				// Nothing is left of it, and the next is served.
				until(t, "an empty house", func() bool {
					f.r.mu.Lock()
					defer f.r.mu.Unlock()
					return len(f.r.doors) == 0 && len(f.r.running) == 0
				})
				f.script(t, at).hello(0).connect(0).started().write(100).end()
				next := f.finished(t, count(c.codes != nil))
				if next.Err != nil || bytesOf(next, result.Server) != 100 {
					t.Errorf("the next: %d bytes, %+v", bytesOf(next, result.Server), next.Err)
				}
			})
		}
	}
}

// until polls a condition of the receiver.
func (s *script) until(ok func() bool) { s.t.Helper(); until(s.t, "the receiver", ok) }

// moves: the first run has rows with all 10000 bytes.
func (s *script) moves() bool {
	runs := s.f.tests()
	if len(runs) == 0 {
		return false
	}
	var n int64
	for _, e := range runs[0].all() {
		if e.Interval != nil {
			for _, x := range e.Interval.Streams {
				n += x.Bytes
			}
		}
	}
	return n == 10000
}

// TestDatagramsLost: likewise over UDP, where nothing tells of an end.
func TestDatagramsLost(t *testing.T) {
	for _, c := range []struct {
		name  string
		begin func(s *script)
		code  string
	}{
		{"Linux", func(s *script) { s.hello(60).started() }, "peer-vanished"},
		{"Windows", func(s *script) { s.tokens(0, 1).answered() }, ""},
		{"not synchronised", func(*script) {}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := serveBoth(t, Config{Ports: 2, Follow: true}, true, true, func(r *Receiver) { r.Timeouts.Silence = 3 * time.Second })
			s := f.script(t, "127.0.0.1")
			c.begin(s)
			for i := range 2 {
				nc, err := net.Dial("udp", f.lns.Packets[i].LocalAddr().String())
				if err != nil {
					t.Fatal(err)
				}
				defer nc.Close()
				for range 50 {
					if _, err := nc.Write(make([]byte, 100)); err != nil {
						t.Fatal(err)
					}
				}
			}
			run := f.finished(t, 0)
			got := ""
			if run.Err != nil {
				got = run.Err.Code
			}
			if got != c.code || len(run.Streams) != 2 || bytesOf(run, result.Server) != 10000 {
				t.Errorf("%d streams, %d bytes, ends with %+v, want %q", len(run.Streams), bytesOf(run, result.Server), run.Err, c.code)
			}
			checkRows(t, run, result.Server)
		})
	}
}

// victim is a receiver played by hand: it agrees to everything, reads data until its fate, and then
// that befalls it.
type victim struct {
	sync, data net.Listener
	token      net.Listener
	fate       string
	after      int64 // bytes of data

	mu    sync.Mutex
	conns []net.Conn
	wg    sync.WaitGroup
}

func newVictim(t *testing.T, fate string, after int64) *victim {
	v := &victim{fate: fate, after: after}
	for _, ln := range []*net.Listener{&v.sync, &v.data, &v.token} {
		var err error
		if *ln, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
			t.Fatal(err)
		}
	}
	serve := func(ln net.Listener, talk func(net.Conn)) {
		v.wg.Go(func() {
			for {
				nc, err := ln.Accept()
				if err != nil {
					return
				}
				v.mu.Lock()
				v.conns = append(v.conns, nc)
				v.mu.Unlock()
				v.wg.Go(func() { talk(nc) })
			}
		})
	}
	serve(v.sync, func(nc net.Conn) {
		for _, a := range []Word{StateIdle, 60, WordStart} {
			if _, err := readWord(nc); err != nil {
				return
			}
			_, _ = nc.Write(a.Append(nil))
		}
	})
	serve(v.token, func(nc net.Conn) {
		if _, err := io.ReadFull(nc, make([]byte, 1)); err == nil {
			_, _ = nc.Write([]byte{Token})
		}
	})
	serve(v.data, func(nc net.Conn) {
		if _, err := io.CopyN(io.Discard, nc, v.after); err == nil {
			v.strike()
		}
	})
	t.Cleanup(func() {
		for _, ln := range []net.Listener{v.sync, v.data, v.token} {
			ln.Close()
		}
		v.strike()
		v.mu.Lock()
		for _, nc := range v.conns {
			nc.Close()
		}
		v.mu.Unlock()
		v.wg.Wait()
	})
	return v
}

// strike is the fate of all its connections.
func (v *victim) strike() {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, nc := range v.conns {
		switch v.fate {
		case reset:
			_ = nc.(*net.TCPConn).SetLinger(0)
			nc.Close()
		case killed:
			nc.Close()
		}
	}
}

func (v *victim) at(port int) netip.AddrPort {
	ln := v.data
	switch {
	case port < DefaultPort:
		ln = v.sync
	case port >= DefaultPort+TokenOffset:
		ln = v.token
	}
	return netip.MustParseAddrPort(ln.Addr().String())
}

// TestReceiverLost: a sender whose receiver is killed, reset or frozen in mid-test says so, keeps its
// part and ends.
func TestReceiverLost(t *testing.T) {
	for _, dialect := range []string{"linux", "windows", "none"} {
		for _, fate := range []string{killed, reset, frozen} {
			t.Run(dialect+", "+fate, func(t *testing.T) {
				t.Parallel()
				v := newVictim(t, fate, 100_000)
				c := Config{
					Host: "127.0.0.1", Ports: 1, Threads: 1, Duration: time.Minute, BlockSize: 10_000, Interval: beat / 4,
					Windows: dialect == "windows", NoSync: dialect == "none", WaitTimeout: time.Minute, Extension: "off",
				}
				s := &Sender{Config: c, Timeouts: quick(), second: beat, dial: dialFrom("", v.at)}
				s.Timeouts.Silence = 3 * time.Second
				rec := newRecorder()
				got := code(s.Run(context.Background(), rec))
				want := map[string]string{killed: "peer-closed", reset: "peer-closed", frozen: "stalled"}[fate]
				if got != want {
					t.Errorf("ends with %q, want %q", got, want)
				}
				run := rec.run()
				if bytesOf(run, result.Client) < 100_000 {
					t.Errorf("%d bytes are left", bytesOf(run, result.Client))
				}
				if run.Err == nil || strings.TrimSpace(run.Err.Text) == "" || !run.Err.Remote {
					t.Errorf("it says %+v", run.Err)
				}
				checkRows(t, run, result.Client)
			})
		}
	}
}

// TestLargeDatagrams: datagrams larger than the receiver's blocks are received (recipe N7).
func TestLargeDatagrams(t *testing.T) {
	t.Parallel()
	f := serveBoth(t, Config{Windows: true, Expect: 1, Ports: 1, Follow: true, BlockSize: 128, Transport: plan.UDP, OneOff: true}, true, false, nil)
	s := f.script(t, "127.0.0.1").hello(60).started()
	nc, err := net.Dial("udp", f.lns.Packets[0].LocalAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	const each = 65507
	for i := range 3 { // one at a time: no system's receive buffer is too small for that
		if _, err := nc.Write(make([]byte, each)); err != nil {
			t.Fatal(err)
		}
		until(t, "the datagram", func() bool { return f.counted() == int64(i+1)*each })
	}
	say(t, s.sync, WordEnd)
	hear(t, s.sync, StateFinished)
	run := f.finished(t, 0)
	if n := bytesOf(run, result.Server); n != 3*each || len(run.Streams) != 1 {
		t.Errorf("%d bytes in %d streams, %+v", n, len(run.Streams), run.Err)
	}
}

// counted is how many bytes the counts of running tests have.
func (f *fixture) counted() (n int64) {
	f.r.mu.Lock()
	defer f.r.mu.Unlock()
	for t := range f.r.running {
		if t.tally == nil {
			continue
		}
		t.tally.mu.RLock()
		for _, s := range t.tally.list {
			n += s.bytes.Load()
		}
		t.tally.mu.RUnlock()
	}
	return n
}

// TestUDPReceiverGone: a sender of datagrams whose receiver is killed hears so from the receiver's
// host, and ends with its part.
func TestUDPReceiverGone(t *testing.T) {
	for _, dialect := range []string{"linux", "windows", "none"} {
		t.Run(dialect, func(t *testing.T) {
			t.Parallel()
			v := newVictim(t, killed, 0)
			var ports []net.PacketConn
			for range 2 {
				pc, err := net.ListenPacket("udp", "127.0.0.1:0")
				if err != nil {
					t.Fatal(err)
				}
				defer pc.Close()
				ports = append(ports, pc)
			}
			c := Config{
				Host: "127.0.0.1", Ports: 2, Threads: 2, Duration: time.Minute, Transport: "udp", BlockSize: 1000, Bitrate: 8e6,
				Windows: dialect == "windows", NoSync: dialect == "none", WaitTimeout: time.Minute, Extension: "off",
			}
			s := send(t, c, dialFrom("", func(port int) netip.AddrPort {
				if i := port - DefaultPort; i >= 0 && i < 2 {
					return netip.MustParseAddrPort(ports[i].LocalAddr().String())
				}
				return v.at(port)
			}))
			until(t, "the sender's datagrams", s.rec.moved)
			for _, pc := range ports {
				pc.Close()
			}
			if got := s.wait(t); got != "peer-closed" {
				t.Errorf("ends with %q", got)
			}
			run := s.rec.run()
			if bytesOf(run, result.Client) == 0 || run.Err == nil || !strings.Contains(run.Err.Text, "port unreachable") {
				t.Errorf("%d bytes are left, it says %+v", bytesOf(run, result.Client), run.Err)
			}
			checkRows(t, run, result.Client)
		})
	}
}

// TestUDPPortsMissing: a sender of datagrams with more ports than its receiver goes on with the
// others and names those.
func TestUDPPortsMissing(t *testing.T) {
	t.Parallel()
	f := serve(t, Config{Ports: 1, Transport: "udp", Extension: "off", Follow: true}, nil)
	dead := listenUDP(t, "127.0.0.1:0")
	closed := dead.LocalAddr()
	dead.Close()
	s := send(t, Config{Host: "127.0.0.1", Ports: 2, Threads: 1, Duration: 10 * time.Second, Transport: "udp", BlockSize: 1000, Bitrate: 8e6, Extension: "off"},
		dialFrom("", func(port int) netip.AddrPort {
			if port == DefaultPort+1 {
				return closed
			}
			return f.at(port)
		}))
	if got := s.wait(t); got != "" {
		t.Errorf("ends with %q", got)
	}
	if n := s.rec.notice("icmp-refused"); n == nil || !strings.Contains(n.Text, fmt.Sprint(closed.Port())) {
		t.Errorf("it says %+v", n)
	}
	if run := f.finished(t, 0); run.Err != nil || bytesOf(run, result.Server) == 0 {
		t.Errorf("the receiver: %d bytes, %+v", bytesOf(run, result.Server), run.Err)
	}
}

// TestLinkedSenderKilled: a fullbore tells what it counted when it ends, so that a receiver knows one
// that was killed also where an original would look the same.
func TestLinkedSenderKilled(t *testing.T) {
	for _, c := range []struct {
		name string
		s, r Config
	}{
		{"tokens, its own time", Config{Windows: true, Duration: time.Minute}, Config{Duration: time.Minute}},
		{"tokens, the sender's time", Config{Windows: true, Duration: time.Minute}, Config{Follow: true}},
		{"tokens, calls", Config{Windows: true, Duration: time.Minute, Blocks: 1 << 30}, Config{Follow: true}},
		{"Linux", Config{Duration: time.Minute}, Config{Follow: true}},
		{"Linux, until interrupted", Config{Endless: true}, Config{Follow: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.r.Ports, c.s.Ports, c.s.Threads, c.s.Host, c.s.Bitrate = 2, 2, 1, "127.0.0.1", 8e6
			f := serve(t, c.r, func(r *Receiver) { r.Timeouts.Silence = 3 * time.Second })
			through := newRelay(t, f.at)
			s := send(t, c.s, dialFrom("", through.at))
			until(t, "data", func() bool { return len(f.tests()) > 0 && f.tests()[0].moved() })
			through.cut()
			run := f.finished(t, 0)
			if run.Err == nil || run.Err.Code != "peer-vanished" || bytesOf(run, result.Server) == 0 {
				t.Errorf("%d bytes, %+v, %+v", bytesOf(run, result.Server), run.Err, run.Notices)
			}
			s.stop(errInterrupt)
			s.wait(t)
		})
	}
}

// relay passes connections on until they are cut: then the receiver hears what it does of a sender
// whose program was killed.
type relay struct {
	t    *testing.T
	to   func(port int) netip.AddrPort
	wg   sync.WaitGroup
	mu   sync.Mutex
	lns  map[int]net.Listener
	ends []net.Conn // towards the sender and the receiver, in turn
}

func newRelay(t *testing.T, to func(port int) netip.AddrPort) *relay {
	r := &relay{t: t, to: to, lns: map[int]net.Listener{}}
	t.Cleanup(func() {
		r.mu.Lock()
		for _, ln := range r.lns {
			ln.Close()
		}
		for _, nc := range r.ends {
			nc.Close()
		}
		r.mu.Unlock()
		r.wg.Wait()
	})
	return r
}

// at is where the relay listens in place of port.
func (r *relay) at(port int) netip.AddrPort {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.lns[port] == nil {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			r.t.Error(err)
			return netip.AddrPort{}
		}
		r.lns[port] = ln
		r.wg.Go(func() { r.serve(ln, port) })
	}
	return netip.MustParseAddrPort(r.lns[port].Addr().String())
}

func (r *relay) serve(ln net.Listener, port int) {
	for {
		near, err := ln.Accept()
		if err != nil {
			return
		}
		far, err := net.Dial("tcp", r.to(port).String())
		if err != nil {
			near.Close()
			continue
		}
		r.mu.Lock()
		r.ends = append(r.ends, near, far)
		r.mu.Unlock()
		for _, way := range [][2]net.Conn{{near, far}, {far, near}} {
			r.wg.Go(func() {
				_, _ = io.Copy(way[0], way[1])
				way[0].Close()
			})
		}
	}
}

// cut ends the connections to the receiver, those for words first.
func (r *relay) cut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := 1; i < len(r.ends); i += 2 {
		r.ends[i].Close()
	}
}

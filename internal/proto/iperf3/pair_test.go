package iperf3

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fullbore-net/fullbore/internal/osnet"
	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/result"
)

// short are timeouts for tests that have to see one of them pass. They are long enough for
// a busy machine to do between two of them what a test does.
func short() Timeouts {
	return Timeouts{
		Header: time.Second, Answer: 1500 * time.Millisecond, Stream: 1500 * time.Millisecond, Drain: time.Second,
		UDPAnswer: 1500 * time.Millisecond, Turn: time.Second,
		Grace: 500 * time.Millisecond, Reason: 300 * time.Millisecond, Linger: 300 * time.Millisecond, Stopping: time.Second,
	}
}

// recorder keeps a test's events.
type recorder struct {
	mu     sync.Mutex
	events []result.Event
	on     func(result.Event) // called for each, before it is kept; nil = not
}

func newRecorder() *recorder { return &recorder{} }

func (r *recorder) Event(e result.Event) {
	if r.on != nil {
		r.on(e)
	}
	r.mu.Lock()
	r.events = append(r.events, e)
	r.mu.Unlock()
}

func (r *recorder) run() *result.Run {
	r.mu.Lock()
	defer r.mu.Unlock()
	return result.Fold(r.events)
}

// testServer is a server on a free loopback port.
type testServer struct {
	*Server
	t      testing.TB
	addr   netip.AddrPort
	stop   context.CancelCauseFunc
	result chan error

	mu   sync.Mutex
	runs []*recorder
}

// startServer runs s until the test's end; its tests are recorded.
func startServer(t testing.TB, s *Server) *testServer {
	t.Helper()
	return startServerOn(t, s, func(ln net.Listener) net.Listener { return ln })
}

// startServerAt is startServer at another address than IPv4 loopback.
func startServerAt(t testing.TB, s *Server, at netip.AddrPort) *testServer {
	t.Helper()
	return startServerWith(t, s, at, func(ln net.Listener) net.Listener { return ln })
}

var portSlot atomic.Int64

// freeAddr is an address whose port is free for TCP and for UDP. It lies below the ports
// that the system hands out: of those a UDP socket of another test may have the one that
// the system chose for a TCP listener.
func freeAddr(t testing.TB, ip netip.Addr) netip.AddrPort {
	t.Helper()
	for range 1000 {
		at := netip.AddrPortFrom(ip, uint16(12000+(os.Getpid()*131+int(portSlot.Add(1)))%8000))
		ln, err := net.Listen("tcp", at.String())
		if err != nil {
			continue
		}
		ln.Close()
		u, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(at))
		if err != nil {
			continue
		}
		u.Close()
		return at
	}
	t.Fatal("no free port")
	return netip.AddrPort{}
}

// startServerOn lets the test put something between the server and its listener.
func startServerOn(t testing.TB, s *Server, wrap func(net.Listener) net.Listener) *testServer {
	t.Helper()
	return startServerWith(t, s, netip.MustParseAddrPort("127.0.0.1:0"), wrap)
}

func startServerWith(t testing.TB, s *Server, at netip.AddrPort, wrap func(net.Listener) net.Listener) *testServer {
	t.Helper()
	if at.Port() == 0 {
		at = freeAddr(t, at.Addr())
	}
	ln, err := osnet.Listen(t.Context(), "tcp", at, osnet.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if s.Log == nil {
		s.Log = slog.New(slog.NewTextHandler(testWriter{t}, nil))
	}
	if s.Tool.Name == "" {
		s.Tool = result.Tool{Name: "fullbore", Version: "test"}
	}
	addr := ln.Addr().(*net.TCPAddr).AddrPort()
	u, _, err := osnet.ListenUDP(t.Context(), addr, osnet.Options{})
	if err != nil {
		t.Fatal(err)
	}
	pc, err := osnet.NewPacketConn(u)
	if err != nil {
		t.Fatal(err)
	}
	s.Packets = []*osnet.PacketConn{pc}
	ts := &testServer{Server: s, t: t, addr: addr, result: make(chan error, 1)}
	if s.NewTest == nil {
		s.NewTest = func(result.Addr) TestHooks {
			r := newRecorder()
			ts.mu.Lock()
			ts.runs = append(ts.runs, r)
			ts.mu.Unlock()
			return TestHooks{Sink: r}
		}
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	ts.stop = cancel
	go func() { ts.result <- s.Serve(ctx, []net.Listener{wrap(ln)}) }()
	t.Cleanup(func() { ts.close() })
	return ts
}

// close ends the server and returns what Serve returned.
func (ts *testServer) close() error {
	ts.stop(errTestOver)
	err := <-ts.result
	ts.result <- err
	return err
}

var errTestOver = errors.New("the test is over")

// recorded returns the i-th test's recorder, waiting for it to appear.
func (ts *testServer) recorded(i int) *recorder {
	ts.t.Helper()
	var r *recorder
	eventually(ts.t, "the server saw no test", func() bool {
		ts.mu.Lock()
		defer ts.mu.Unlock()
		if i < len(ts.runs) {
			r = ts.runs[i]
		}
		return r != nil
	})
	return r
}

// run returns the i-th test's run when it is over.
func (ts *testServer) run(i int) *result.Run {
	ts.t.Helper()
	rec := ts.recorded(i)
	var run *result.Run
	eventually(ts.t, "the server's test did not end", func() bool {
		run = rec.run()
		return run.Err != nil || run.Finished()
	})
	return run
}

// eventually polls a condition; what is said when it does not come true within a time
// that only a hang exceeds.
func eventually(t testing.TB, what string, cond func() bool) {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for !cond() {
		if time.Now().After(deadline) {
			t.Fatal(what)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// client is a client of ts.
func (ts *testServer) client(p plan.Plan) *Client {
	p.Host, p.Port = ts.addr.Addr().String(), int(ts.addr.Port())
	return &Client{Plan: p, Tool: result.Tool{Name: "fullbore", Version: "test"}}
}

func runClient(t testing.TB, c *Client) (*result.Run, error) {
	t.Helper()
	rec := newRecorder()
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	err := c.Run(ctx, rec)
	return rec.run(), err
}

type testWriter struct{ t testing.TB }

func (w testWriter) Write(b []byte) (int, error) {
	w.t.Log(string(b[:len(b)-1]))
	return len(b), nil
}

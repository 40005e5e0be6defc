package iperf3

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/fullbore-net/fullbore/internal/osnet"
	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/result"
)

// TestMany: forty clients at once, each with its own sums (issue: many tests at once).
func TestMany(t *testing.T) {
	ts := startServer(t, &Server{})
	var wg sync.WaitGroup
	for i := range 40 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			dir := []plan.Direction{plan.Up, plan.Down, plan.Both}[i%3]
			ext := []string{"off", ""}[i%2]
			bytes := int64(1<<20 + i*1000)
			c := ts.client(plan.Plan{Bytes: bytes, BlockSize: 1000, Streams: 1 + i%4, Direction: dir, Extension: ext})
			run, err := runClient(t, c)
			if err != nil {
				t.Errorf("client %d: %v", i, err)
				return
			}
			if dir == plan.Up {
				s := run.Sum(result.Up)
				if s.Receiver.Bytes != s.Sender.Bytes || s.Sender.Bytes < bytes || s.Sender.Bytes >= bytes+4000 {
					t.Errorf("client %d: %d sent, %d received of %d", i, s.Sender.Bytes, s.Receiver.Bytes, bytes)
				}
			}
		}()
	}
	wg.Wait()
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if len(ts.runs) != 40 {
		t.Errorf("the server saw %d tests", len(ts.runs))
	}
}

// TestBackToBack: clients that follow each other without a pause are all served, also
// by a server that takes one at a time (field case F32).
func TestBackToBack(t *testing.T) {
	ts := startServer(t, &Server{Policy: plan.Serve{Exclusive: true}, Log: slog.New(slog.DiscardHandler)})
	for i := range 200 {
		c := ts.client(plan.Plan{Bytes: 1000, BlockSize: 1000})
		if _, err := runClient(t, c); err != nil {
			t.Fatalf("client %d: %v", i, err)
		}
	}
}

// TestSiege: two hundred silent, slow, lying and foreign connections at once do not keep
// a client waiting, and hold next to no memory (field cases F26, F31, F52).
func TestSiege(t *testing.T) {
	ts := startServer(t, &Server{Policy: plan.Serve{Exclusive: true}, Log: slog.New(slog.DiscardHandler)})
	serves(t, ts)
	runtime.GC()
	var before, during runtime.MemStats
	runtime.ReadMemStats(&before)
	attacks := [][]byte{
		nil, []byte("a"), []byte("GET / HTTP/1.1\r\n"),
		{0x16, 3, 1},
		bytes.Repeat([]byte{0x80}, 30),
		append([]byte(strings.Repeat("a", 36)), 0),
		append([]byte(strings.Repeat("b", 36)), 0, 0, 0, 0x20, 0, '{'),
		append([]byte(strings.Repeat("c", 36)), 0, 0, 0, 0x20),
	}
	for i := range 200 {
		nc, err := net.Dial("tcp", ts.addr.String())
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		if _, err := nc.Write(attacks[i%len(attacks)]); err != nil {
			t.Fatal(err)
		}
	}
	for range 5 {
		serves(t, ts)
	}
	runtime.ReadMemStats(&during)
	if grown := int64(during.HeapInuse+during.StackInuse) - int64(before.HeapInuse+before.StackInuse); grown > 20<<20 {
		t.Errorf("memory grew by %d MB", grown>>20)
	}
}

// TestPendingIsBounded: when too many connections hold back their greeting, the oldest
// go, not the newest.
func TestPendingIsBounded(t *testing.T) {
	p := newPending(2)
	var mine []net.Conn
	var entries []*pendingEntry
	for range 3 {
		a, b := net.Pipe()
		defer b.Close()
		mine = append(mine, b)
		entries = append(entries, p.add(a))
	}
	if _, err := mine[0].Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("the oldest lives: %v", err)
	}
	p.remove(entries[0]) // gone already
	p.remove(entries[1])
	p.closeAll()
	if _, err := mine[2].Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("closeAll left one: %v", err)
	}
	mine[1].SetReadDeadline(time.Unix(1, 0))
	if _, err := mine[1].Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("one that had finished was closed: %v", err)
	}
	a, b := net.Pipe()
	p.add(a)
	if _, err := b.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("after closeAll one got in: %v", err)
	}
}

// TestVisitorsAreLimited: a few lines per address and pause, the rest counted; memory bounded.
func TestVisitorsAreLimited(t *testing.T) {
	log := &logged{}
	v := newVisitors(slog.New(slog.NewTextHandler(log, nil)))
	a := netip.MustParseAddr("192.0.2.1")
	for range 100 {
		v.note(a, "test")
	}
	if n := strings.Count(log.String(), "\n"); n != visitorLines {
		t.Errorf("%d lines", n)
	}
	v.seen[a].since = time.Now().Add(-time.Hour)
	v.note(a, "test")
	if !strings.Contains(log.String(), fmt.Sprintf("also=%d", 100-visitorLines)) {
		t.Errorf("the omitted are not counted: %s", log)
	}
	for i := range 10000 {
		v.note(netip.AddrFrom4([4]byte{10, byte(i >> 8), byte(i), 1}), "test")
	}
	if len(v.seen) > maxVisitors {
		t.Errorf("%d remembered", len(v.seen))
	}
}

// TestServerOutput: text and JSON reach the client, after the server's own Finish.
func TestServerOutput(t *testing.T) {
	for _, asJSON := range []bool{false, true} {
		finished := false
		s := &Server{}
		s.NewTest = func(result.Addr) TestHooks {
			rec := newRecorder()
			rec.on = func(e result.Event) { finished = finished || e.Kind == result.KindFinish }
			return TestHooks{Sink: rec, Output: func(r *result.Run) (string, []byte) {
				if !finished || r.Streams[0].Receiver == nil || r.Streams[0].Sender == nil {
					t.Error("output was asked for before the end")
				}
				if asJSON {
					return "", fmt.Appendf(nil, `{"end":{"n":%d}}`, r.Streams[0].Receiver.Bytes)
				}
				return fmt.Sprintf("got %d\n\"quoted\"\n", r.Streams[0].Receiver.Bytes), nil
			}}
		}
		ts := startServer(t, s)
		run, err := runClient(t, ts.client(plan.Plan{Bytes: 1000, BlockSize: 1000, GetServerOutput: true}))
		if err != nil {
			t.Fatal(err)
		}
		if asJSON {
			if string(run.Wire.ServerJSON) != `{"end":{"n":1000}}` || run.Wire.ServerText != nil {
				t.Errorf("%s", run.Wire.ServerJSON)
			}
		} else if run.Wire.ServerText == nil || *run.Wire.ServerText != "got 1000\n\"quoted\"\n" {
			t.Errorf("%v", run.Wire.ServerText)
		}
		run, err = runClient(t, ts.client(plan.Plan{Bytes: 1000}))
		if err != nil || run.Wire.ServerText != nil || run.Wire.ServerJSON != nil {
			t.Errorf("not asked for: %v %v", err, run.Wire)
		}
	}
}

// TestFile: the file arrives whole, whoever has it, and both ends say how much (field
// case F23).
func TestFile(t *testing.T) {
	dir := t.TempDir()
	in := filepath.Join(dir, "in")
	data := make([]byte, 1000003)
	for i := range data {
		data[i] = byte(i * 7)
	}
	if err := os.WriteFile(in, data, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, ext := range []string{"off", ""} {
		for _, dirn := range []plan.Direction{plan.Up, plan.Down} {
			out := filepath.Join(dir, "out"+ext+string(dirn))
			pol, p := plan.Serve{File: out}, plan.Plan{File: in, Direction: dirn, Extension: ext, Bitrate: 400e6}
			if dirn == plan.Down {
				pol.File, p.File = in, out
			}
			ts := startServer(t, &Server{Policy: pol})
			run, err := runClient(t, ts.client(p))
			if err != nil {
				t.Fatalf("%s %q: %v", dirn, ext, err)
			}
			got, err := os.ReadFile(out)
			if err != nil || !bytes.Equal(got, data) {
				t.Errorf("%s %q: %d bytes arrived, %v", dirn, ext, len(got), err)
			}
			s, o := run.Streams[0], ts.run(0).Streams[0]
			for _, n := range []int64{s.Sender.Bytes, s.Receiver.Bytes, o.Sender.Bytes, o.Receiver.Bytes, s.Disk.Transferred, o.Disk.Transferred} {
				if n != int64(len(data)) {
					t.Errorf("%s %q: somebody says %d: client %+v %+v, server %+v %+v", dirn, ext, n, s.Sender, s.Receiver, o.Sender, o.Receiver)
					break
				}
			}
			if s.Disk.Percent != 100 || s.Disk.Sending != (dirn == plan.Up) || o.Disk.Sending == s.Disk.Sending {
				t.Errorf("%s %q: %+v, %+v", dirn, ext, s.Disk, o.Disk)
			}
		}
	}
	_, err := runClient(t, &Client{Plan: plan.Plan{Host: "127.0.0.1", Port: 1, File: filepath.Join(dir, "missing")}})
	wantError(t, err, codeFile, "file")
}

// TestOtherAddress: a stream from elsewhere with the right cookie is not taken.
func TestOtherAddress(t *testing.T) {
	ts := startServer(t, &Server{})
	p := dialRaw(t, ts)
	p.greet()
	p.document(`{"tcp":true}`)
	p.want(StateCreateStreams)
	c, _, err := osnet.Dial(t.Context(), "tcp", ts.addr, osnet.Options{BindHost: "127.0.0.2"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.Net().SetDeadline(time.Now().Add(10 * time.Second))
	c.Net().Write(p.cookie[:])
	if got, _ := io.ReadAll(c.Net()); !bytes.Equal(got, []byte{0xff}) {
		t.Errorf("got %x", got)
	}
	p.stream()
	p.want(StateTestStart, StateTestRunning)
}

// TestSettingsDoNotLeak: nothing of one client's test is in the next one's (field case F20).
func TestSettingsDoNotLeak(t *testing.T) {
	ts := startServer(t, &Server{})
	for _, p := range []plan.Plan{
		{Blocks: 1},
		{Direction: plan.Down, TOS: 72, Congestion: "reno", Duration: 20 * time.Millisecond, Bitrate: 1e6},
		{Direction: plan.Down, FQRate: 1e6, Duration: 20 * time.Millisecond},
		{Direction: plan.Down, Bytes: 1000},
	} {
		c := ts.client(p)
		if _, err := runClient(t, c); err != nil {
			t.Fatal(err)
		}
	}
	c := ts.client(plan.Plan{Direction: plan.Down, Bytes: 1000, Extension: "off"})
	if _, err := runClient(t, c); err != nil {
		t.Fatal(err)
	}
	test := ts.run(4).Test
	test.Port, test.Interval, test.Path = 0, 0, result.DataPath{}
	want := plan.Plan{Transport: plan.TCP, Direction: plan.Down, Streams: 1, Bytes: 1000, BlockSize: plan.DefaultTCPBlock}.Test()
	got, err := json.Marshal(test)
	if err != nil {
		t.Fatal(err)
	}
	exp, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, exp) {
		t.Errorf("the last test was\n%s\nwant\n%s", got, exp)
	}
}

// starving is a listener that has no descriptor left for the n-th to the m-th connection.
type starving struct {
	net.Listener
	mu         sync.Mutex
	n          int
	from, till int
}

func (l *starving) Accept() (net.Conn, error) {
	l.mu.Lock()
	l.n++
	n := l.n
	l.mu.Unlock()
	if n >= l.from && n < l.till {
		return nil, &net.OpError{Op: "accept", Err: os.NewSyscallError("accept4", syscall.EMFILE)}
	}
	return l.Listener.Accept()
}

// TestTooFewDescriptors: the test that needs too many is ended with the reason; the
// server lives, and serves a smaller one (field case F45).
func TestTooFewDescriptors(t *testing.T) {
	ts := startServerOn(t, &Server{Policy: plan.Serve{Exclusive: true}}, func(ln net.Listener) net.Listener {
		return &starving{Listener: ln, from: 5, till: 12}
	})
	_, err := runClient(t, ts.client(plan.Plan{Bytes: 1000, Streams: 60, Extension: "off"}))
	wantError(t, err, codeStreamAccept, "refused")
	var e *result.Error
	if errors.As(err, &e); e.Errno != linuxEMFILE || !e.Reported {
		t.Errorf("%+v", e)
	}
	if run := ts.run(0); run.Err == nil || run.Err.Number != codeStreamAccept || !strings.Contains(run.Err.Text, "ulimit") {
		t.Errorf("%+v", run.Err)
	}
	serves(t, ts)
}

// TestControlOptions: keepalive and user timeout are on the control connection, of both ends.
func TestControlOptions(t *testing.T) {
	ka := &plan.Keepalive{Idle: 60 * time.Second, Interval: 5 * time.Second, Count: 3}
	ts := startServer(t, &Server{Policy: plan.Serve{Keepalive: ka, SendTimeout: 20 * time.Second}})
	c := ts.client(plan.Plan{Bytes: 1000, Keepalive: ka, SendTimeout: 20 * time.Second})
	if _, err := runClient(t, c); err != nil {
		t.Fatal(err)
	}
}

// TestFaultEndsOneTest: a panic in one test is that test's end, told to its client, and
// the server goes on.
func TestFaultEndsOneTest(t *testing.T) {
	var tests atomic.Int32
	ts := startServer(t, &Server{NewTest: func(result.Addr) TestHooks {
		if tests.Add(1) == 1 {
			panic("made up")
		}
		return TestHooks{}
	}})
	_, err := runClient(t, ts.client(plan.Plan{Bytes: 1000}))
	var e *result.Error
	if !errors.As(err, &e) || !e.Remote {
		t.Fatalf("the client was told %v", err)
	}
	if _, err := runClient(t, ts.client(plan.Plan{Bytes: 1000})); err != nil {
		t.Errorf("the next test: %v", err)
	}
}

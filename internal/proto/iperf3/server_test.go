package iperf3

import (
	"bytes"
	"context"
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

// TestPolicy: what a server refuses, with which code and which words at both ends
// (field case F53).
func TestPolicy(t *testing.T) {
	sec := time.Second
	for name, tc := range map[string]struct {
		policy plan.Serve
		plan   plan.Plan
		number int // 0 = allowed
		code   string
	}{
		"rate":                 {plan.Serve{RateLimit: 1e6}, plan.Plan{Duration: sec, Bitrate: 5e6}, codeTotalRate, "limit"},
		"rate of all streams":  {plan.Serve{RateLimit: 10e6}, plan.Plan{Duration: sec, Bitrate: 6e6, Streams: 2}, codeTotalRate, "limit"},
		"rate both ways":       {plan.Serve{RateLimit: 10e6}, plan.Plan{Duration: sec, Bitrate: 6e6, Direction: plan.Both}, codeTotalRate, "limit"},
		"pacing rate":          {plan.Serve{RateLimit: 1e6}, plan.Plan{Duration: sec, FQRate: 5e6}, codeTotalRate, "limit"},
		"rate below":           {plan.Serve{RateLimit: 10e6}, plan.Plan{Bytes: 10e3, Bitrate: 5e6}, 0, ""},
		"max rate":             {plan.Serve{MaxRate: 1e6}, plan.Plan{Duration: sec, Bitrate: 5e6}, codeTotalRate, "limit"},
		"time":                 {plan.Serve{MaxDuration: 5 * sec}, plan.Plan{Duration: 20 * sec}, codeMaxDuration, "limit"},
		"time and omit":        {plan.Serve{MaxDuration: 5 * sec}, plan.Plan{Duration: 4 * sec, Omit: 2 * sec}, codeMaxDuration, "limit"},
		"no time":              {plan.Serve{MaxDuration: 5 * sec}, plan.Plan{Endless: true}, codeMaxDuration, "limit"},
		"bytes":                {plan.Serve{MaxDuration: 5 * sec}, plan.Plan{Bytes: 1000}, codeMaxDuration, "limit"},
		"time within":          {plan.Serve{MaxDuration: 5 * sec}, plan.Plan{Duration: 50 * time.Millisecond}, 0, ""},
		"streams":              {plan.Serve{MaxStreams: 2}, plan.Plan{Bytes: 1000, Streams: 3}, codeNumStreams, "limit"},
		"streams within":       {plan.Serve{MaxStreams: 2}, plan.Plan{Bytes: 1000, Streams: 2, Direction: plan.Both}, 0, ""},
		"not allowed":          {plan.Serve{Allow: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}, plan.Plan{Bytes: 1000}, codeAuth, "auth"},
		"allowed":              {plan.Serve{Allow: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("127.0.0.0/8")}}, plan.Plan{Bytes: 1000}, 0, ""},
		"extension turned off": {plan.Serve{Extension: "off"}, plan.Plan{Bytes: 1000, Streams: 200}, codeNumStreams, "plan"},
	} {
		t.Run(name, func(t *testing.T) {
			ts := startServer(t, &Server{Policy: tc.policy})
			run, err := runClient(t, ts.client(tc.plan))
			if tc.number == 0 {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			wantError(t, err, tc.number, tc.code)
			if run.Finished() {
				t.Error("data flowed")
			}
			if tc.code == "limit" {
				srv := ts.run(0)
				if srv.Err == nil || srv.Err.Number != tc.number || !strings.Contains(srv.Err.Text, "allowed are") {
					t.Errorf("the server says %+v", srv.Err)
				}
			}
			if name == "not allowed" {
				return
			}
			c := ts.client(plan.Plan{Duration: 20 * time.Millisecond, Bitrate: 500e3})
			if _, err := runClient(t, c); err != nil {
				t.Errorf("the next client: %v", err)
			}
		})
	}
}

// TestRateLimitMidTest: a test that averages more than allowed is ended with the code
// and the figures.
func TestRateLimitMidTest(t *testing.T) {
	for _, dir := range []plan.Direction{plan.Up, plan.Down} {
		ts := startServer(t, &Server{Policy: plan.Serve{RateLimit: 1e6, RateLimitWindow: 100 * time.Millisecond}})
		run, err := runClient(t, ts.client(plan.Plan{Duration: time.Minute, Direction: dir, Extension: "off"}))
		wantError(t, err, codeTotalRate, "limit")
		if !run.Finished() {
			t.Error("no partial totals")
		}
		srv := ts.run(0)
		eventually(t, "the server gives no reason", func() bool { srv = ts.run(0); return srv.Err != nil })
		if srv.Err.Number != codeTotalRate || len(srv.Notices) == 0 || srv.Notices[len(srv.Notices)-1].Code != "rate-limit-exceeded" {
			t.Errorf("the server says %+v, notices %+v", srv.Err, srv.Notices)
		}
	}
}

// TestMaxRatePaces: what a server sends is held to its limit.
func TestMaxRatePaces(t *testing.T) {
	ts := startServer(t, &Server{Policy: plan.Serve{MaxRate: 8e6}})
	run, err := runClient(t, ts.client(plan.Plan{Duration: 500 * time.Millisecond, Direction: plan.Down, Streams: 2}))
	if err != nil {
		t.Fatal(err)
	}
	if got := run.Sum(result.Down).Sender; got.Rate() > 12e6 || got.Bytes == 0 {
		t.Errorf("%.0f bit/s, %d bytes", got.Rate(), got.Bytes)
	}
}

// holder starts a test that lasts until the returned function is called.
func holder(t *testing.T, ts *testServer, p plan.Plan) (release func()) {
	t.Helper()
	p.Duration = time.Minute
	p.Bitrate = 1e6
	started := make(chan struct{})
	rec := newRecorder()
	rec.on = func(e result.Event) {
		if e.Kind == result.KindStart {
			close(started)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = ts.client(p).Run(ctx, rec)
	}()
	select {
	case <-started:
	case <-done:
		t.Fatalf("the test that should hold a slot ended: %v", rec.run().Err)
	}
	stop := func() { cancel(); <-done }
	t.Cleanup(stop)
	return stop
}

func TestBusy(t *testing.T) {
	for name, pol := range map[string]plan.Serve{
		"exclusive": {Exclusive: true}, "max tests": {MaxTests: 1}, "one-off": {OneOff: true},
		"queue, but the client does not wait": {Exclusive: true, Queue: true},
	} {
		t.Run(name, func(t *testing.T) {
			log := &logged{}
			ts := startServer(t, &Server{Policy: pol, Log: slog.New(slog.NewTextHandler(log, nil))})
			holder(t, ts, plan.Plan{})
			_, err := runClient(t, ts.client(plan.Plan{Bytes: 1000}))
			wantError(t, err, codeAccessDenied, "busy")
			_, err = runClient(t, ts.client(plan.Plan{Bytes: 1000, Extension: "off"}))
			wantError(t, err, codeAccessDenied, "busy")
			if !pol.Queue {
				if s := log.String(); !strings.Contains(s, "what=busy") || !strings.Contains(s, "since") {
					t.Errorf("the log does not say who holds the slot: %s", s)
				}
			}
		})
	}
}

// TestOverlap: tests at once are served by default, and both know.
func TestOverlap(t *testing.T) {
	ts := startServer(t, &Server{})
	release := holder(t, ts, plan.Plan{})
	run, err := runClient(t, ts.client(plan.Plan{Bytes: 1000}))
	if err != nil {
		t.Fatal(err)
	}
	if !hasNotice(run, "overlap") {
		t.Error("the second client does not know")
	}
	eventually(t, "the first test does not know", func() bool { return hasNotice(ts.recorded(0).run(), "overlap") })
	if !hasNotice(ts.run(1), "overlap") {
		t.Error("the server's second run does not say")
	}
	release()
	eventually(t, "the slot is still taken", func() bool {
		ts.Server.mu.Lock()
		defer ts.Server.mu.Unlock()
		return len(ts.running) == 0
	})
	run, err = runClient(t, ts.client(plan.Plan{Bytes: 1000}))
	if err != nil || hasNotice(run, "overlap") {
		t.Errorf("alone: %v, %+v", err, run.Notices)
	}
}

func hasNotice(r *result.Run, code string) bool {
	for _, n := range r.Notices {
		if n.Code == code {
			return true
		}
	}
	return false
}

// TestQueue: clients that may wait get their turn in order, hear of their place, and
// one who leaves the queue makes room.
func TestQueue(t *testing.T) {
	ts := startServer(t, &Server{Policy: plan.Serve{Exclusive: true, Queue: true}})
	release := holder(t, ts, plan.Plan{})
	type done struct {
		i   int
		err error
	}
	results := make(chan done, 3)
	var leave context.CancelFunc
	for i := range 3 {
		rec := newRecorder()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		if i == 1 {
			leave = cancel
		}
		go func() {
			err := ts.client(plan.Plan{Bytes: 1000, Queue: true, Title: fmt.Sprint(i)}).Run(ctx, rec)
			results <- done{i, err}
		}()
		eventually(t, "the client is not queued", func() bool { return hasNotice(rec.run(), "queued") })
	}
	leave()
	if d := <-results; d.i != 1 || d.err == nil {
		t.Fatalf("client %d ended first: %v", d.i, d.err)
	}
	eventually(t, "the queue did not shrink", func() bool {
		ts.Server.mu.Lock()
		defer ts.Server.mu.Unlock()
		return len(ts.queue) == 2
	})
	release()
	for range 2 {
		if d := <-results; d.err != nil {
			t.Fatalf("client %d: %v", d.i, d.err)
		}
	}
	if first, second := ts.run(1).Test.Title, ts.run(2).Test.Title; first != "0" || second != "2" {
		t.Errorf("served first client %s, then client %s", first, second)
	}
}

// TestOneOff: the server ends with its test, good or refused for its wishes; strangers
// do not use it up (see TestStrangers), nor do failed logins (TestLogin).
func TestOneOff(t *testing.T) {
	for name, p := range map[string]plan.Plan{
		"good": {Bytes: 1000}, "refused": {Duration: time.Second, Bitrate: 1e9},
	} {
		ts := startServer(t, &Server{Policy: plan.Serve{OneOff: true, RateLimit: 100e6}})
		_, err := runClient(t, ts.client(p))
		if (err == nil) != (name == "good") {
			t.Errorf("%s: %v", name, err)
		}
		if err := <-ts.result; err != nil {
			t.Errorf("%s: Serve returned %v", name, err)
		}
		ts.result <- nil
	}
	// A test that breaks off is over too.
	ts := startServer(t, &Server{Policy: plan.Serve{OneOff: true}})
	p := dialRaw(t, ts)
	p.greet()
	p.document(`{"tcp":true}`)
	p.want(StateCreateStreams)
	p.nc.Close()
	if err := <-ts.result; err != nil {
		t.Errorf("broken off: Serve returned %v", err)
	}
	ts.result <- nil
}

func TestIdle(t *testing.T) {
	ts := startServer(t, &Server{Policy: plan.Serve{OneOff: true, IdleTimeout: 50 * time.Millisecond}})
	if err := <-ts.result; !errors.Is(err, ErrIdle) {
		t.Errorf("Serve returned %v", err)
	}
	ts.result <- nil
	// A test that takes longer is not cut off.
	ts = startServer(t, &Server{Policy: plan.Serve{OneOff: true, IdleTimeout: 300 * time.Millisecond}})
	if _, err := runClient(t, ts.client(plan.Plan{Duration: 600 * time.Millisecond, Bitrate: 1e6})); err != nil {
		t.Error(err)
	}
}

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

package iperf3

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"testing"
	"time"

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

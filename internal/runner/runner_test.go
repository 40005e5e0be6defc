package runner

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/result"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// log keeps events.
type log struct {
	mu     sync.Mutex
	events []result.Event
	done   int
}

func (l *log) Event(e result.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events = append(l.events, e)
}

// server serves on loopback until the test ends.
func server(t *testing.T, s plan.Serve) (port int, seen *log) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	seen = &log{}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	r := &Runner{Version: "test"}
	go func() {
		ended <- r.Serve(ctx, s, []net.Listener{ln}, func(result.Addr) Hooks {
			return Hooks{Sink: seen, Done: func() {
				seen.mu.Lock()
				seen.done++
				seen.mu.Unlock()
			}}
		})
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	return ln.Addr().(*net.TCPAddr).Port, seen
}

func TestRun(t *testing.T) {
	port, seen := server(t, plan.Serve{})
	for _, d := range []plan.Direction{plan.Up, plan.Down, plan.Both} {
		mine := &log{}
		r := &Runner{Version: "1.2.3"}
		run, err := r.Run(t.Context(), plan.Plan{Host: "127.0.0.1", Port: port, Direction: d, Bytes: 1 << 20}, mine)
		if err != nil {
			t.Fatalf("%s: %v", d, err)
		}
		if run.ID == "" || run.Tool.Version != "1.2.3" || run.Started.IsZero() || run.Summary == "" || run.Schema != result.Schema {
			t.Errorf("%s: the head is incomplete: %+v", d, run)
		}
		for _, s := range run.Sums {
			if s.Receiver == nil || s.Sender == nil || s.Receiver.Bytes < 1<<20 && d != plan.Both {
				t.Errorf("%s %s: sender %+v receiver %+v", d, s.Direction, s.Sender, s.Receiver)
			}
		}
		// What was seen live and what is returned are one thing.
		if diff := cmp.Diff(run, result.Fold(mine.events)); diff != "" {
			t.Errorf("%s: the fold of the events differs from the run: %s", d, diff)
		}
	}
	seen.mu.Lock()
	defer seen.mu.Unlock()
	if seen.done == 0 || len(seen.events) == 0 {
		t.Errorf("server: %d tests done, %d events", seen.done, len(seen.events))
	}
}

func TestRunRefusesBadPlans(t *testing.T) {
	r := &Runner{}
	for name, p := range map[string]plan.Plan{
		"no host": {}, "streams": {Host: "h", Streams: -1}, "protocol": {Host: "h", Protocol: "carrier-pigeon"},
	} {
		run, err := r.Run(t.Context(), p, nil)
		var e *result.Error
		if run != nil || !errors.As(err, &e) || e.Code != "plan" {
			t.Errorf("%s: run %v, error %v", name, run, err)
		}
	}
}

func TestRunThatFindsNobody(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := ln.Addr().(*net.TCPAddr).Port
	if err := ln.Close(); err != nil {
		t.Fatal(err)
	}
	mine := &log{}
	run, err := (&Runner{}).Run(t.Context(), plan.Plan{Host: "127.0.0.1", Port: port}, mine)
	var e *result.Error
	if !errors.As(err, &e) || e.Code != "connect" {
		t.Fatalf("error %v", err)
	}
	if run == nil || run.Err == nil || run.Test.Target != "127.0.0.1" || run.Test.Transport != "tcp" || len(run.Sums) != 0 {
		t.Errorf("run %+v", run)
	}
}

func TestInterruptedRunKeepsWhatItHas(t *testing.T) {
	port, _ := server(t, plan.Serve{})
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	cause := &result.Error{Code: "interrupted", Text: "stop", Interrupted: true, Signal: "Interrupt(2)"}
	sink := result.SinkFunc(func(e result.Event) {
		if e.Kind == result.KindInterval && e.Interval.End == result.Client {
			cancel(cause)
		}
	})
	p := plan.Plan{Host: "127.0.0.1", Port: port, Endless: true, Interval: plan.MinInterval, Bitrate: 100e6}
	run, err := (&Runner{}).Run(ctx, p, sink)
	var e *result.Error
	if !errors.As(err, &e) || !e.Interrupted {
		t.Fatalf("error %v", err)
	}
	if len(run.Intervals(result.Client)) == 0 || !run.Finished() {
		t.Errorf("an interrupted run lost its data: %d rows, finished %v", len(run.Rows), run.Finished())
	}
}

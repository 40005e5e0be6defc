package traffic

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/fullbore-net/fullbore/internal/osnet"
	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/result"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// pairs returns n connected TCP sockets over loopback, both ends.
func pairs(tb testing.TB, n int) (a, b []*osnet.Conn) {
	tb.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	defer ln.Close()
	for range n {
		c, err := net.Dial("tcp", ln.Addr().String())
		if err != nil {
			tb.Fatal(err)
		}
		s, err := ln.Accept()
		if err != nil {
			tb.Fatal(err)
		}
		a, b = append(a, osnet.NewConn(c)), append(b, osnet.NewConn(s))
	}
	return a, b
}

// flowsOf makes flows of conns.
func flowsOf(conns []*osnet.Conn, d result.Direction, send bool) []Flow {
	var out []Flow
	for i, c := range conns {
		out = append(out, Flow{ID: i + 1, Socket: 5 + 2*i, Direction: d, Conn: c, Send: send})
	}
	return out
}

// rows is a sink that keeps what it is told.
type rows struct {
	mu   sync.Mutex
	evs  []result.Event
	done bool
	late int
}

func (r *rows) Event(e result.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.done {
		r.late++
	}
	r.evs = append(r.evs, e)
}

func (r *rows) intervals() []result.Interval {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []result.Interval
	for _, e := range r.evs {
		if e.Kind == result.KindInterval {
			out = append(out, *e.Interval)
		}
	}
	return out
}

// end is one side of a test under test.
type end struct {
	*Engine
	rows *rows
}

func start(tb testing.TB, cfg Config, flows []Flow) *end {
	tb.Helper()
	r := &rows{}
	cfg.Out = r
	e, err := New(cfg, flows)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(e.Close)
	e.Start()
	return &end{e, r}
}

func (e *end) wait(tb testing.TB, want Reason) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	got, err := e.Wait(ctx)
	if got != want || err != nil {
		tb.Fatalf("Wait = %v, %v; want %v", got, err, want)
	}
}

// totals finishes and checks that the counted rows add up to the totals.
func (e *end) totals(tb testing.TB) Totals {
	tb.Helper()
	t := e.Finish()
	e.rows.mu.Lock()
	e.rows.done = true
	e.rows.mu.Unlock()
	for i, f := range t.Flows {
		var counted, omitted int64
		for _, iv := range e.rows.intervals() {
			if iv.Omitted {
				omitted += iv.Streams[i].Bytes
			} else {
				counted += iv.Streams[i].Bytes
			}
		}
		if counted != f.Total.Bytes {
			tb.Errorf("flow %d: rows add up to %d, total is %d", f.ID, counted, f.Total.Bytes)
		}
		if e.cfg.Interval > 0 && omitted != f.OmittedBytes {
			tb.Errorf("flow %d: omitted rows add up to %d, omitted is %d", f.ID, omitted, f.OmittedBytes)
		}
	}
	return t
}

func TestBytesAreExact(t *testing.T) {
	for _, c := range []struct {
		name          string
		streams       int
		block         int
		bytes, blocks int64
		want          int64 // exact sum
	}{
		{"one block", 1, 128 << 10, 1, 0, 128 << 10},
		{"n, 1 stream", 1, 1 << 10, 100 << 10, 0, 100 << 10},
		{"n, 4 streams", 4, 128 << 10, 1 << 20, 0, 1 << 20},
		{"n, not a multiple", 3, 1000, 100001, 0, 101000},
		{"k", 4, 4096, 0, 10, 40960},
		{"k below streams", 4, 4096, 0, 2, 8192},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, b := pairs(t, c.streams)
			rx := start(t, Config{End: result.Server, Interval: time.Second, Limited: true, BlockSize: c.block}, flowsOf(b, result.Up, false))
			tx := start(t, Config{
				End: result.Client, Interval: time.Second, BlockSize: c.block, Bytes: c.bytes, Blocks: c.blocks,
			}, flowsOf(a, result.Up, true))
			want := Bytes
			if c.blocks > 0 {
				want = Blocks
			}
			tx.wait(t, want)
			tx.StopSend()
			tx.Drain(context.Background())
			tt := tx.totals(t)
			tx.Close()
			rx.wait(t, PeerClosed)
			rt := rx.totals(t)
			if got := sum(tt); got != c.want {
				t.Errorf("sent %d, want %d", got, c.want)
			}
			if got := sum(rt); got != c.want {
				t.Errorf("received %d, want %d", got, c.want)
			}
		})
	}
}

func sum(t Totals) (n int64) {
	for _, f := range t.Flows {
		n += f.Total.Bytes
	}
	return n
}

func TestOmitAndDuration(t *testing.T) {
	a, b := pairs(t, 2)
	rx := start(t, Config{End: result.Server, Interval: 100 * time.Millisecond, Omit: 200 * time.Millisecond}, flowsOf(b, result.Up, false))
	tx := start(t, Config{
		End: result.Client, Transport: plan.TCP, Interval: 100 * time.Millisecond, Omit: 200 * time.Millisecond,
		Duration: 300 * time.Millisecond, Bitrate: 80e6,
	}, flowsOf(a, result.Up, true))
	tx.wait(t, Duration)
	tx.StopSend()
	rx.StopReceive(true)
	tt, rt := tx.totals(t), rx.totals(t)
	if sum(tt) == 0 || sum(rt) == 0 {
		t.Errorf("sent %d, received %d", sum(tt), sum(rt))
	}
	var counted int
	for _, iv := range tx.rows.intervals() {
		if !iv.Omitted {
			counted++
		}
	}
	if counted < 1 || counted > 3 {
		t.Errorf("%d counted rows, want at most 3", counted)
	}
	if e := tt.Flows[0].Total.End; e < 0.3 {
		t.Errorf("sender's end %v, want at least 0.3", e)
	}
}

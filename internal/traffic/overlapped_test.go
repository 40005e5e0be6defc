package traffic

import (
	"io"
	"net"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fullbore-net/fullbore/internal/osnet"
	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/result"
)

// fakeRing is overlapped calls on any connection: a goroutine makes them one after the other.
type fakeRing struct {
	nc    net.Conn
	send  bool
	size  int
	calls chan int
	ends  chan fakeEnd
	woken chan struct{}
	n     int
	most  int // calls that were under way at once

	mu        sync.Mutex
	cancelled bool
	done      chan struct{}
}

type fakeEnd struct {
	data []byte
	n    int
	err  error
}

func newFakeRing(nc net.Conn, send bool, depth, size int) *fakeRing {
	f := &fakeRing{
		nc: nc, send: send, size: size, calls: make(chan int, depth), ends: make(chan fakeEnd, depth),
		woken: make(chan struct{}, 1), done: make(chan struct{}),
	}
	go f.work()
	return f
}

func (f *fakeRing) work() {
	defer close(f.done)
	for n := range f.calls {
		f.mu.Lock()
		off := f.cancelled
		f.mu.Unlock()
		e := fakeEnd{data: make([]byte, n)}
		switch {
		case off:
			e.err = os.ErrDeadlineExceeded
		case f.send:
			e.n, e.err = f.nc.Write(e.data)
		default:
			if e.n, e.err = f.nc.Read(e.data); e.err == io.EOF {
				e.err = nil
			}
		}
		f.ends <- e
	}
}

func (f *fakeRing) Begin(n int) error {
	f.n++
	f.most = max(f.most, f.n)
	f.calls <- n
	return nil
}

func (f *fakeRing) Pending() int { return f.n }

func (f *fakeRing) Wait(ns int64) (int, []byte, error) {
	var limit <-chan time.Time
	if ns >= 0 {
		t := time.NewTimer(time.Duration(ns))
		defer t.Stop()
		limit = t.C
	}
	select {
	case e := <-f.ends:
		f.n--
		return e.n, e.data[:e.n], e.err
	case <-f.woken:
	case <-limit:
	}
	return 0, nil, osnet.ErrWoken
}

func (f *fakeRing) Wake() {
	select {
	case f.woken <- struct{}{}:
	default:
	}
}

func (f *fakeRing) Cancel() {
	f.mu.Lock()
	f.cancelled = true
	f.mu.Unlock()
	_ = f.nc.SetDeadline(time.Unix(1, 0))
}

func (f *fakeRing) Close() {
	f.Cancel()
	close(f.calls)
	<-f.done
}

// overlap gives the engine's flows depth calls under way each, and starts it.
func overlap(t *testing.T, depth int, cfg Config, flows []Flow) (*end, []*fakeRing) {
	t.Helper()
	r := &rows{}
	cfg.Out = r
	e, err := New(cfg, flows)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	var rings []*fakeRing
	for i, m := range e.movers {
		s := m.(*portable).s
		o := newOverlapped(s, i, depth)
		ring := newFakeRing(s.Conn.Net(), s.Send, depth, o.size)
		o.ring, e.movers[i] = ring, o
		rings = append(rings, ring)
	}
	e.Start()
	return &end{e, r}, rings
}

func pipes(n int) (a, b []*osnet.Conn) {
	for range n {
		x, y := net.Pipe()
		a, b = append(a, osnet.NewConn(x)), append(b, osnet.NewConn(y))
	}
	return a, b
}

// Limits hold to the byte with several calls under way on each of several flows, at both ends,
// and each call is counted and timed from its own beginning.
func TestOverlappedLimits(t *testing.T) {
	for _, c := range []struct {
		name string
		cfg  Config
		want int64
	}{
		{"blocks", Config{Blocks: 41}, 41 * 1000},
		{"blocks of each", Config{Blocks: 13, BlocksEach: true}, 39 * 1000},
		{"bytes", Config{Bytes: 40_500}, 41 * 1000},
		{"budget", Config{MaxBytes: 40_500}, 40_500},
		{"paced", Config{Blocks: 41, Bitrate: 8_000_000}, 41 * 1000},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, b := pipes(3)
				rx, _ := overlap(t, 6, Config{End: result.Server, BlockSize: 700, TimeCalls: true}, flowsOf(b, result.Up, false))
				cfg := c.cfg
				cfg.End, cfg.BlockSize, cfg.TimeCalls = result.Client, 1000, true
				tx, rings := overlap(t, 4, cfg, flowsOf(a, result.Up, true))
				why := Blocks
				switch {
				case cfg.Bytes > 0:
					why = Bytes
				case cfg.MaxBytes > 0:
					why = Budget
				}
				tx.wait(t, why)
				tx.StopSend()
				sent := tx.totals(t)
				tx.Close()
				rx.wait(t, PeerClosed)
				got := rx.totals(t)
				rx.Close()
				var out, in, calls, most int64
				for i := range sent.Flows {
					s, r := sent.Flows[i], got.Flows[i]
					out, in, calls = out+s.Total.Bytes, in+r.Total.Bytes, calls+s.IO.Completions
					most = max(most, int64(rings[i].most))
					if s.Total.Bytes > 0 && s.IO.Latency == nil || r.IO.Latency == nil {
						t.Errorf("flow %d is not timed: %+v %+v", i, s.IO, r.IO)
					}
				}
				if each := sent.Flows[0].Total.Bytes; cfg.BlocksEach && each != 13_000 {
					t.Errorf("flow 1 sent %d bytes of its 13000", each)
				}
				if out != c.want || in != c.want || calls != (c.want+999)/1000 && why != Budget {
					t.Errorf("%d bytes sent in %d calls, %d received; want %d", out, calls, in, c.want)
				}
				if most < 2 && cfg.Bitrate == 0 || most > 4 {
					t.Errorf("%d calls were under way at once, want up to 4", most)
				}
			})
		})
	}
}

// A rate holds although calls overlap.
func TestOverlappedRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := pipes(1)
		rx, _ := overlap(t, 6, Config{End: result.Server, BlockSize: 1000}, flowsOf(b, result.Up, false))
		tx, _ := overlap(t, 4, Config{End: result.Client, BlockSize: 1000, Bitrate: 8_000_000, Duration: 2 * time.Second}, flowsOf(a, result.Up, true))
		tx.wait(t, Duration)
		tx.StopSend()
		if sent := tx.totals(t).Flows[0].Total.Bytes; sent < 1_995_000 || sent > 2_005_000 {
			t.Errorf("%d bytes in 2 s at 1 MB/s", sent)
		}
		tx.Close()
		rx.wait(t, PeerClosed)
		rx.Close()
	})
}

// A sender whose peer does not read is patient, then leaves; what was not sent is not counted.
// A receiver whose peer does not send leaves at once.
func TestOverlappedStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := pipes(1)
		tx, _ := overlap(t, 4, Config{End: result.Client, BlockSize: 1000}, flowsOf(a, result.Up, true))
		if _, err := io.ReadFull(b[0].Net(), make([]byte, 2500)); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		begun := time.Now()
		tx.StopSend()
		if took := time.Since(begun); took < time.Duration(sendPatience) || took > 2*time.Duration(sendPatience) {
			t.Errorf("it stopped after %v", took)
		}
		if f := tx.totals(t).Flows[0]; f.Total.Bytes != 2500 {
			t.Errorf("%d bytes counted, 2500 were read", f.Total.Bytes)
		}
		tx.Close()
		closeAll(b)

		a, b = pipes(1)
		rx, _ := overlap(t, 6, Config{End: result.Server, BlockSize: 1000}, flowsOf(b, result.Up, false))
		synctest.Wait()
		begun = time.Now()
		rx.StopReceive(false)
		if took := time.Since(begun); took != 0 {
			t.Errorf("it stopped after %v", took)
		}
		rx.Close()
		closeAll(a)
	})
}

// With WaitAll a receive is a whole block, however the bytes come.
func TestOverlappedWaitAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := pipes(1)
		rx, _ := overlap(t, 3, Config{End: result.Server, BlockSize: 100, WaitAll: true}, flowsOf(b, result.Up, false))
		for _, n := range []int{30, 60, 30, 200, 30} {
			if _, err := a[0].Net().Write(make([]byte, n)); err != nil {
				t.Fatal(err)
			}
		}
		closeAll(a)
		rx.wait(t, PeerClosed)
		if f := rx.totals(t).Flows[0]; f.IO.Completions != 3 || f.Total.Bytes != 350 {
			t.Errorf("%d receives, %d bytes", f.IO.Completions, f.Total.Bytes)
		}
		rx.Close()
	})
}

func TestOverlapDepth(t *testing.T) {
	for _, c := range []struct {
		name  string
		cfg   Config
		flows int
		send  bool
		want  int
	}{
		{"nothing said", Config{}, 1, true, 1},
		{"asked for", Config{Outstanding: 4}, 1, true, 4},
		{"asked for much", Config{Outstanding: 1000}, 1, false, osnet.MaxOverlapped},
		{"one at a time", Config{Outstanding: 1, Send: plan.SendCheapest}, 1, true, 1},
		{"cheapest", Config{Send: plan.SendCheapest}, 1, true, overlapSend},
		{"cheapest, receiver", Config{Receive: plan.Discard}, 1, false, overlapReceive},
		{"cheapest, too many", Config{Receive: plan.Discard}, overlapFlows + 1, false, 1},
		{"asked for, many", Config{Outstanding: 3}, overlapFlows + 1, false, 3},
		{"receiver with a budget", Config{Outstanding: 4, MaxBytes: 5}, 1, false, 1},
		{"receiver with a rate", Config{Outstanding: 4, MaxRate: 5}, 1, false, 1},
		{"file", Config{Outstanding: 4, Source: os.Stdin}, 1, true, 1},
	} {
		a, b := pipes(c.flows)
		e, err := New(c.cfg, flowsOf(a, result.Up, c.send))
		if err != nil {
			t.Fatal(err)
		}
		if got := e.overlapDepth(e.streams[0]); got != c.want {
			t.Errorf("%s: %d calls, want %d", c.name, got, c.want)
		}
		e.Close()
		closeAll(b)
	}
}

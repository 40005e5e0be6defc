package traffic

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"runtime"
	"syscall"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/fullbore-net/fullbore/internal/osnet"
	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/result"
)

// within fails when f does not return: a hang must not wait for the test's own timeout.
func within(t *testing.T, d time.Duration, what string, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	select {
	case <-done:
	case <-time.After(d):
		buf := make([]byte, 1<<20)
		t.Fatalf("%s did not return\n%s", what, buf[:runtime.Stack(buf, true)])
	}
}

// counts are the flow counts that reach each kind of worker.
var counts = []int{1, manyFlows}

// manyFlows is more than get threads of their own.
var manyFlows = max(2*runtime.NumCPU(), 4) + 1

// workerName names the kind that the flows got, for the names of tests.
func workerName(n int) string {
	if n < manyFlows {
		return "few"
	}
	return "many"
}

// poll waits until cond holds.
func poll(t *testing.T, what string, cond func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !cond(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s never happened", what)
		}
	}
}

// A peer that does not read fills the window; stopping must not wait for it.
func TestStopWithAPeerThatDoesNotRead(t *testing.T) {
	for _, n := range counts {
		for _, send := range []plan.Send{plan.SendCopy, plan.SendCheapest} {
			t.Run(workerName(n)+" "+string(send), func(t *testing.T) {
				a, b := pairs(t, n)
				defer closeAll(b)
				e := start(t, Config{End: result.Client, Interval: time.Second, Send: send}, flowsOf(a, result.Up, true))
				// The send queue stands still once buffers on both sides are full.
				last := int64(-1)
				poll(t, "a full window", func() bool {
					now := sum(e.Snapshot())
					still := now == last && now > 0
					last = now
					time.Sleep(20 * time.Millisecond)
					return still
				})
				within(t, 5*time.Second, "StopSend", e.StopSend)
				within(t, 5*time.Second, "Finish", func() { e.totals(t) })
				within(t, 5*time.Second, "Close", e.Close)
			})
		}
	}
}

// A peer that does not write leaves receivers blocked.
func TestStopWithAPeerThatDoesNotWrite(t *testing.T) {
	for _, n := range counts {
		t.Run(workerName(n), func(t *testing.T) {
			a, b := pairs(t, n)
			defer closeAll(b)
			e := start(t, Config{End: result.Client, Interval: time.Second}, flowsOf(a, result.Down, false))
			within(t, 5*time.Second, "StopReceive", func() { e.StopReceive(true) })
			within(t, 5*time.Second, "Close", e.Close)
			e.Close()
		})
	}
}

func closeAll(conns []*osnet.Conn) {
	for _, c := range conns {
		c.Close()
	}
}

// reset makes the peer of a flow vanish with an RST.
func reset(t *testing.T, c *osnet.Conn) {
	t.Helper()
	if err := c.Net().(*net.TCPConn).SetLinger(0); err != nil {
		t.Fatal(err)
	}
	c.Close()
}

// A dead stream is recorded and the others go on; when all are dead the run ends.
func TestDeadStreams(t *testing.T) {
	for _, n := range []int{2, manyFlows} {
		t.Run(workerName(n), func(t *testing.T) {
			a, b := pairs(t, n)
			for _, c := range b[1:] {
				go io.Copy(io.Discard, c.Net())
			}
			e := start(t, Config{End: result.Client, Interval: time.Second, Bitrate: 80_000_000}, flowsOf(a, result.Up, true))
			poll(t, "traffic on every flow", func() bool {
				for _, f := range e.Snapshot().Flows {
					if f.Total.Bytes == 0 {
						return false
					}
				}
				return true
			})
			reset(t, b[0])
			poll(t, "the first flow's end", func() bool { return e.Snapshot().Flows[0].Err != nil })
			before := e.Snapshot().Flows[1].Total.Bytes
			poll(t, "more traffic on another", func() bool { return e.Snapshot().Flows[1].Total.Bytes > before })
			for _, c := range b[1:] {
				reset(t, c)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			r, err := e.Wait(ctx)
			if r != PeerClosed || !errors.Is(err, syscall.ECONNRESET) && !errors.Is(err, syscall.EPIPE) {
				t.Errorf("Wait = %v, %v; want peer-closed and the reset", r, err)
			}
			tt := e.totals(t)
			for _, f := range tt.Flows {
				if f.Err == nil {
					t.Errorf("flow %d has no error", f.ID)
				}
				if f.Total.End != tt.Flows[0].Total.End {
					t.Errorf("flow %d ends at %v, the first at %v: the sum would be over different times", f.ID, f.Total.End, tt.Flows[0].Total.End)
				}
			}
		})
	}
}

func TestPeerClosesInOrder(t *testing.T) {
	for _, n := range counts {
		t.Run(workerName(n), func(t *testing.T) {
			a, b := pairs(t, n)
			e := start(t, Config{End: result.Server, Interval: time.Second}, flowsOf(b, result.Up, false))
			for i, c := range a {
				if _, err := c.Net().Write(make([]byte, 1000*(i+1))); err != nil {
					t.Fatal(err)
				}
				c.Close()
			}
			e.wait(t, PeerClosed)
			for i, f := range e.totals(t).Flows {
				if !f.EOF || f.Err != nil || f.Total.Bytes != int64(1000*(i+1)) {
					t.Errorf("flow %d: %+v; want EOF, no error, %d bytes", f.ID, f, 1000*(i+1))
				}
			}
		})
	}
}

// StopReceive(true) counts what the kernel holds.
func TestDrainOnStop(t *testing.T) {
	for _, n := range counts {
		for _, rx := range []plan.Receive{plan.Copy, plan.Discard} {
			t.Run(workerName(n)+" "+string(rx), func(t *testing.T) {
				a, b := pairs(t, n)
				defer closeAll(a)
				// MaxRate holds the readers back, so that bytes wait in the kernel.
				e := start(t, Config{End: result.Server, Interval: time.Second, Receive: rx, MaxRate: int64(n) * 8000}, flowsOf(b, result.Up, false))
				for _, c := range a {
					if _, err := c.Net().Write(make([]byte, 60_000)); err != nil {
						t.Fatal(err)
					}
				}
				for i, c := range b {
					poll(t, "arrival", func() bool {
						q, err := c.RecvQueue()
						if err != nil {
							t.Fatal(err)
						}
						return int64(q)+e.Snapshot().Flows[i].Total.Bytes >= 60_000
					})
				}
				e.StopReceive(true)
				for _, f := range e.totals(t).Flows {
					if f.Total.Bytes != 60_000 {
						t.Errorf("flow %d: %d bytes, want 60000", f.ID, f.Total.Bytes)
					}
				}
			})
		}
	}
}

func TestBudget(t *testing.T) {
	for _, n := range counts {
		t.Run("sent "+workerName(n), func(t *testing.T) {
			a, b := pairs(t, n)
			rx := start(t, Config{End: result.Server, Interval: time.Second, Limited: true}, flowsOf(b, result.Up, false))
			tx := start(t, Config{End: result.Client, Interval: time.Second, MaxBytes: 1_000_003}, flowsOf(a, result.Up, true))
			tx.wait(t, Budget)
			tx.StopSend()
			if got := sum(tx.totals(t)); got != 1_000_003 {
				t.Errorf("sent %d, want the budget 1000003", got)
			}
			tx.Close()
			rx.wait(t, PeerClosed)
			if got := sum(rx.totals(t)); got != 1_000_003 {
				t.Errorf("received %d, want 1000003", got)
			}
		})
		t.Run("received "+workerName(n), func(t *testing.T) {
			a, b := pairs(t, n)
			tx := start(t, Config{End: result.Server, Interval: time.Second}, flowsOf(a, result.Down, true))
			rx := start(t, Config{End: result.Client, Interval: time.Second, MaxBytes: 1_000_000}, flowsOf(b, result.Down, false))
			rx.wait(t, Budget)
			rx.StopReceive(false)
			most := int64(1_000_000 + n*copyBufferMost)
			if got := sum(rx.totals(t)); got < 1_000_000 || got > most {
				t.Errorf("received %d, want 1000000 to %d: one read a flow above the budget", got, most)
			}
			tx.Close()
		})
	}
}

// copyBufferMost is the largest single read of a copying receiver.
const copyBufferMost = 512 << 10

func TestReceiversByteRule(t *testing.T) {
	for _, n := range counts {
		t.Run(workerName(n), func(t *testing.T) {
			a, b := pairs(t, n)
			tx := start(t, Config{End: result.Server, Interval: time.Second}, flowsOf(a, result.Down, true))
			rx := start(t, Config{End: result.Client, Interval: time.Second, Bytes: 5_000_000, Omit: 20 * time.Millisecond}, flowsOf(b, result.Down, false))
			rx.wait(t, Bytes)
			rx.StopReceive(false)
			if got := sum(rx.totals(t)); got < 5_000_000 {
				t.Errorf("received %d since the end of omit, want at least 5000000", got)
			}
			tx.Close()
		})
	}
}

// A file arrives whole, with either kind of source, and reports its length (F23).
func TestFile(t *testing.T) {
	data := make([]byte, 1_000_003)
	rand.NewChaCha8([32]byte{1}).Read(data)
	for _, c := range []struct {
		name  string
		src   func() io.Reader
		bytes int64
		want  int
	}{
		{"reader", func() io.Reader { return io.LimitReader(bytes.NewReader(data), int64(len(data))) }, 0, len(data)},
		{"reader at", func() io.Reader { return bytes.NewReader(data) }, 0, len(data)},
		{"size as limit", func() io.Reader { return bytes.NewReader(data) }, int64(len(data)), len(data)},
		{"part of it", func() io.Reader { return bytes.NewReader(data) }, 500_001, 500_001},
		{"limit above", func() io.Reader { return bytes.NewReader(data) }, 5_000_000, len(data)},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out bytes.Buffer
			a, b := pairs(t, 1)
			rx := start(t, Config{End: result.Server, Interval: time.Second, Sink: &out}, flowsOf(b, result.Up, false))
			tx := start(t, Config{
				End: result.Client, Interval: time.Second, Source: c.src(), SourceSize: int64(len(data)), Bytes: c.bytes,
			}, flowsOf(a, result.Up, true))
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			if r, err := tx.Wait(ctx); err != nil || r != FileEnd && r != Bytes {
				t.Fatalf("Wait = %v, %v", r, err)
			}
			tx.StopSend()
			if got := sum(tx.totals(t)); got != int64(c.want) {
				t.Errorf("sent %d, want %d", got, c.want)
			}
			tx.Close()
			rx.wait(t, PeerClosed)
			if got := sum(rx.totals(t)); got != int64(c.want) {
				t.Errorf("received %d, want %d", got, c.want)
			}
			if sha256.Sum256(out.Bytes()) != sha256.Sum256(data[:c.want]) {
				t.Error("what arrived is not what was sent")
			}
		})
	}
}

type brokenFile struct{}

func (brokenFile) Read([]byte) (int, error)  { return 0, os.ErrPermission }
func (brokenFile) Write([]byte) (int, error) { return 0, os.ErrPermission }

func TestBrokenFile(t *testing.T) {
	a, b := pairs(t, 1)
	rx := start(t, Config{End: result.Server, Sink: brokenFile{}}, flowsOf(b, result.Up, false))
	tx := start(t, Config{End: result.Client}, flowsOf(a, result.Up, true))
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if r, err := rx.Wait(ctx); r != PeerClosed || !errors.Is(err, os.ErrPermission) {
		t.Errorf("Wait = %v, %v; want the sink's error", r, err)
	}
	tx.Close()
	rx.Close()

	a, b = pairs(t, 1)
	defer closeAll(b)
	tx = start(t, Config{End: result.Client, Source: brokenFile{}}, flowsOf(a, result.Up, true))
	if r, err := tx.Wait(ctx); r != PeerClosed || !errors.Is(err, os.ErrPermission) {
		t.Errorf("Wait = %v, %v; want the source's error", r, err)
	}
}

func TestMaxRateHoldsASenderBack(t *testing.T) {
	a, b := pairs(t, 2)
	rx := start(t, Config{End: result.Server, Interval: time.Second, MaxRate: 16_000_000, BlockSize: 10_000}, flowsOf(b, result.Up, false))
	tx := start(t, Config{End: result.Client, Interval: time.Second}, flowsOf(a, result.Up, true))
	poll(t, "a megabyte", func() bool { return sum(rx.Snapshot()) > 1_000_000 })
	s := rx.Snapshot()
	rx.StopReceive(false)
	if rate := float64(sum(s)) * 8 / s.Elapsed; rate > 17_000_000 {
		t.Errorf("received at %.0f bit/s under a budget of 16000000", rate)
	}
	tx.Close()
	rx.Close()
}

// Whatever the test, the rows of a flow add up to its total, and what one end sent the
// other received when all was drained.
func TestRowsAddUp(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(1, manyFlows+2).Draw(rt, "streams")
		cfg := Config{
			End:       result.Client,
			BlockSize: rapid.SampledFrom([]int{1, 1000, 1460, 65536, 128 << 10, 1 << 20}).Draw(rt, "block"),
			Interval:  time.Duration(rapid.IntRange(0, 20).Draw(rt, "interval")) * time.Millisecond,
			Omit:      time.Duration(rapid.SampledFrom([]int{0, 0, 7, 20}).Draw(rt, "omit")) * time.Millisecond,
			Send:      rapid.SampledFrom([]plan.Send{plan.SendCopy, plan.SendCheapest, plan.SendZeroCopy}).Draw(rt, "send"),
			Bitrate:   rapid.SampledFrom([]int64{0, 0, 400_000_000}).Draw(rt, "rate"),
		}
		total := int64(cfg.BlockSize) * rapid.Int64Range(1, 40).Draw(rt, "blocks")
		byBlocks := rapid.Bool().Draw(rt, "by blocks")
		want := Bytes
		if byBlocks {
			cfg.Blocks, want = total/int64(cfg.BlockSize), Blocks
		} else {
			cfg.Bytes = total - rapid.Int64Range(0, int64(cfg.BlockSize)-1).Draw(rt, "less")
		}
		rcfg := Config{
			End: result.Server, Interval: cfg.Interval, Omit: cfg.Omit, Limited: true,
			Receive: rapid.SampledFrom([]plan.Receive{plan.Copy, plan.Discard}).Draw(rt, "receive"),
		}
		a, b := pairs(t, n)
		rx := start(t, rcfg, flowsOf(b, result.Up, false))
		tx := start(t, cfg, flowsOf(a, result.Up, true))
		tx.wait(t, want)
		tx.StopSend()
		if err := tx.Drain(t.Context()); err != nil && !errors.Is(err, errors.ErrUnsupported) {
			rt.Fatal(err)
		}
		rx.StopReceive(true)
		tt, rr := tx.totals(t), rx.totals(t)
		sent, all, received := sum(tt), int64(0), int64(0)
		for i := range tt.Flows {
			all += tt.Flows[i].Total.Bytes + tt.Flows[i].OmittedBytes
			received += rr.Flows[i].Total.Bytes + rr.Flows[i].OmittedBytes
		}
		most := total
		if cfg.Omit > 0 { // a block that was under way when the omitted part ended counts on top
			most += int64(n * cfg.BlockSize)
		}
		if sent < total || sent > most {
			rt.Errorf("sent %d, want %d to %d", sent, total, most)
		}
		if all != received {
			rt.Errorf("sent %d in all, received %d", all, received)
		}
		tx.Close()
		rx.Close()
	})
}

func TestNoEventAfterFinish(t *testing.T) {
	a, b := pairs(t, 1)
	go io.Copy(io.Discard, b[0].Net())
	defer b[0].Close()
	e := start(t, Config{End: result.Client, Interval: time.Millisecond}, flowsOf(a, result.Up, true))
	poll(t, "some rows", func() bool { return len(e.rows.intervals()) > 5 })
	e.totals(t)
	first := e.Finish()
	e.Close()
	if e.rows.late != 0 {
		t.Errorf("%d events after Finish", e.rows.late)
	}
	if again := e.Finish(); again.Flows[0].Total != first.Flows[0].Total {
		t.Error("a second Finish says something else")
	}
}

func TestNewRefuses(t *testing.T) {
	a, _ := pairs(t, 1)
	for name, cfg := range map[string]Config{
		"block":    {BlockSize: -1},
		"both":     {Bytes: 1, Blocks: 1},
		"udp":      {Transport: plan.UDP},
		"rate":     {Bitrate: -1},
		"affinity": {Affinity: []int{100000}},
	} {
		if _, err := New(cfg, flowsOf(a, result.Up, true)); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	if _, err := New(Config{}, nil); err == nil {
		t.Error("no flows: accepted")
	}
	if err := a[0].Close(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("New left the refused flows open: %v", err)
	}
}

func TestCloseAtAnyTime(t *testing.T) {
	for _, n := range counts {
		a, b := pairs(t, 2*n)
		e, err := New(Config{End: result.Client}, append(flowsOf(a[:n], result.Up, true), flowsOf(a[n:], result.Down, false)...))
		if err != nil {
			t.Fatal(err)
		}
		e.Close()
		e.Close()
		e.Steer(5)
		e.Snapshot()
		e.StopSend()
		closeAll(b)
	}
}

package traffic

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fullbore-net/fullbore/internal/osnet"
	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/result"
)

// The data path that runs is the one that was asked for, and the result names it.
func TestPath(t *testing.T) {
	for _, c := range []struct {
		name string
		n    int
		tx   Config
		rx   Config
		want [2]result.DataPath
	}{
		{"drop-in", 1, Config{}, Config{}, [2]result.DataPath{
			{Tx: "copy", Pacing: "none", Worker: "thread"}, {Rx: "copy", Pacing: "none", Worker: "thread"},
		}},
		{"native", manyFlows, Config{Send: plan.SendCheapest}, Config{Receive: plan.Discard}, [2]result.DataPath{
			{Tx: "vmsplice", Pacing: "none", Worker: "epoll"}, {Rx: "discard", Pacing: "none", Worker: "epoll"},
		}},
		{"small blocks are copied", 1, Config{Send: plan.SendCheapest, BlockSize: 1000}, Config{}, [2]result.DataPath{
			{Tx: "copy", Pacing: "none", Worker: "thread"}, {Rx: "copy", Pacing: "none", Worker: "thread"},
		}},
		{"unless insisted on", 1, Config{Send: plan.SendZeroCopy, BlockSize: 1000, Bitrate: 80_000_000}, Config{}, [2]result.DataPath{
			{Tx: "vmsplice", Pacing: "sleep", Worker: "thread"}, {Rx: "copy", Pacing: "none", Worker: "thread"},
		}},
		{"kernel pacing", 1, Config{Bitrate: 1_000_000_000, KernelPacing: true}, Config{}, [2]result.DataPath{
			{Tx: "copy", Pacing: "kernel", Worker: "thread"}, {Rx: "copy", Pacing: "none", Worker: "thread"},
		}},
		{"kernel pacing is too coarse at low rates", 1, Config{Bitrate: 80_000_000, KernelPacing: true}, Config{}, [2]result.DataPath{
			{Tx: "copy", Pacing: "sleep", Worker: "thread"}, {Rx: "copy", Pacing: "none", Worker: "thread"},
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, b := pairs(t, c.n)
			c.tx.Bytes, c.rx.Limited = 1_000_000, true
			rx, tx := start(t, c.rx, flowsOf(b, result.Up, false)), start(t, c.tx, flowsOf(a, result.Up, true))
			tx.wait(t, Bytes)
			tt := tx.totals(t)
			tx.Close()
			rx.wait(t, PeerClosed)
			rt := rx.totals(t)
			if got := [2]result.DataPath{tt.Path, rt.Path}; got != c.want {
				t.Errorf("path %+v, want %+v", got, c.want)
			}
			if sum(tt) != sum(rt) {
				t.Errorf("sent %d, received %d", sum(tt), sum(rt))
			}
		})
	}
}

// Payload must arrive as it is in memory by each way to send.
func TestPayloadArrives(t *testing.T) {
	for _, way := range []int32{txCopy, txSendFile, txSplice} {
		t.Run(fmt.Sprint(way), func(t *testing.T) {
			a, b := pairs(t, 1)
			defer closeAll(b)
			e, err := New(Config{End: result.Client, Repeating: true, BlockSize: 50_000, Bytes: 200_000, Send: plan.SendZeroCopy}, flowsOf(a, result.Up, true))
			if err != nil {
				t.Fatal(err)
			}
			e.tx.Store(way)
			e.Start()
			go func() {
				_, _ = e.Wait(t.Context())
				_ = e.Drain(t.Context())
				e.Close()
			}()
			got, err := io.ReadAll(b[0].Net())
			if err != nil || len(got) != 200_000 {
				t.Fatalf("read %d bytes, %v", len(got), err)
			}
			for i, c := range got {
				if c != '0'+byte(i%50_000%10) {
					t.Fatalf("byte %d is %q", i, c)
				}
			}
		})
	}
}

// A kernel that refuses a way to send is met by the next one, and that is told.
func TestFallback(t *testing.T) {
	a, b := pairs(t, 1)
	go io.Copy(io.Discard, b[0].Net())
	defer closeAll(b)
	r := &rows{}
	e, err := New(Config{End: result.Client, Bytes: 1_000_000, Send: plan.SendZeroCopy, Out: r}, flowsOf(a, result.Up, true))
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	for _, errno := range []syscall.Errno{unix.EINVAL, unix.EPERM} {
		g := newGun(e)
		from := e.tx.Load()
		if got := g.refused(from, from-1, errno); !passing(got) {
			t.Errorf("%v is not tried again", errno)
		}
	}
	e.Start()
	e2 := &end{e, r}
	e2.wait(t, Bytes)
	if tt := e2.totals(t); tt.Path.Tx != "copy" || sum(tt) < 1_000_000 {
		t.Errorf("sent %d by %q, want 1000000 by copy", sum(tt), tt.Path.Tx)
	}
	told := 0
	for _, ev := range r.evs {
		if ev.Kind == result.KindNotice && ev.Notice.Code == "zerocopy-unavailable" {
			told++
		}
	}
	if told != 1 {
		t.Errorf("%d notices, want 1", told)
	}
}

// runtime.GC returns beside workers that are busy, blocked or asleep: a worker that the
// collector could not stop would stop the whole program.
func TestCollectorIsNotBlocked(t *testing.T) {
	for _, n := range counts {
		for _, c := range []struct {
			name string
			rate int64
			idle bool
		}{{"busy", 0, false}, {"paced", 8_000_000, false}, {"idle", 0, true}} {
			t.Run(workerName(n)+" "+c.name, func(t *testing.T) {
				a, b := pairs(t, n)
				rx := start(t, Config{End: result.Server, Interval: time.Second}, flowsOf(b, result.Up, false))
				if c.idle {
					defer closeAll(a)
				} else {
					tx := start(t, Config{End: result.Client, Interval: time.Second, Bitrate: c.rate}, flowsOf(a, result.Up, true))
					defer tx.Close()
					poll(t, "traffic", func() bool { return sum(rx.Snapshot()) > 0 })
				}
				within(t, 20*time.Second, "runtime.GC", func() {
					for range 10 {
						runtime.GC()
					}
				})
				rx.Close()
			})
		}
	}
}

// swallow keeps a socket's receive queue empty until it is closed.
func swallow(conns []*osnet.Conn) {
	for _, c := range conns {
		go func() {
			buf := make([]byte, 1<<20)
			for {
				if _, err := c.Net().Read(buf); err != nil {
					return
				}
			}
		}()
	}
}

// feed writes 0xff to a socket until it is closed.
func feed(conns []*osnet.Conn) {
	for _, c := range conns {
		go func() {
			buf := bytes.Repeat([]byte{0xff}, 128<<10)
			for {
				if _, err := c.Net().Write(buf); err != nil {
					return
				}
			}
		}()
	}
}

// parked makes an engine whose workers the test drives itself.
func parked(tb testing.TB, cfg Config, flows []Flow) *Engine {
	tb.Helper()
	e, err := New(cfg, flows)
	if err != nil {
		tb.Fatal(err)
	}
	e.t0 = time.Now()
	tb.Cleanup(e.Close)
	return e
}

var hotPaths = []struct {
	name  string
	flows int
	send  bool
	cfg   Config
}{
	{"thread send copy", 1, true, Config{}},
	{"thread send vmsplice", 1, true, Config{Send: plan.SendZeroCopy}},
	{"thread send limited", 1, true, Config{MaxBytes: 1 << 50}},
	{"thread receive copy", 1, false, Config{}},
	{"thread receive discard", 1, false, Config{Receive: plan.Discard}},
	{"epoll send copy", 16, true, Config{}},
	{"epoll send vmsplice", 16, true, Config{Send: plan.SendZeroCopy}},
	{"epoll send paced", 16, true, Config{Bitrate: 100_000_000}},
	{"epoll receive copy", 16, false, Config{}},
	{"epoll receive discard", 16, false, Config{Receive: plan.Discard}},
	{"thread send timed", 1, true, Config{TimeCalls: true}},
	{"thread receive timed", 1, false, Config{TimeCalls: true}},
	{"thread receive verified", 1, false, Config{Verify: true, Fill: 0xff}},
	{"epoll receive verified", 16, false, Config{Verify: true, Fill: 0xff}},
	{"epoll send counted", 16, true, Config{CountCalls: true}},
	{"epoll receive timed", 16, false, Config{TimeCalls: true}},
}

// step returns one turn of the first worker.
func step(e *Engine) func() {
	now := e.now()
	switch m := e.movers[0].(type) {
	case *thread:
		if m.s.Send {
			return func() { now, _ = m.sendOnce(now) }
		}
		return func() { now, _ = m.readOnce(now) }
	case *epollSet:
		for k := range m.lanes {
			m.enqueue(int32(k))
		}
		return func() { now = m.turn(now) }
	}
	return nil
}

func TestHotPathsDoNotAllocate(t *testing.T) {
	for _, c := range hotPaths {
		t.Run(c.name, func(t *testing.T) {
			a, b := pairs(t, c.flows+manyFlows)
			if c.flows == 1 {
				closeAll(a[1:])
				closeAll(b[1:])
				a, b = a[:1], b[:1]
			}
			defer closeAll(b)
			e := parked(t, c.cfg, flowsOf(a, result.Up, c.send))
			do := step(e)
			if c.send {
				swallow(b)
			} else {
				feed(b)
			}
			for range 20 { // the pipe, and whatever the runtime sets up once
				do()
			}
			// The average is rounded down, so what a peer's goroutine allocates once is not held against us.
			if n := testing.AllocsPerRun(200, do); n != 0 {
				t.Errorf("%v allocations a call", n)
			}
		})
	}
}

func BenchmarkHotPath(b *testing.B) {
	for _, c := range hotPaths {
		b.Run(c.name, func(b *testing.B) {
			x, y := pairs(b, c.flows+manyFlows)
			if c.flows == 1 {
				closeAll(x[1:])
				closeAll(y[1:])
				x, y = x[:1], y[:1]
			}
			defer closeAll(y)
			e := parked(b, c.cfg, flowsOf(x, result.Up, c.send))
			do := step(e)
			if c.send {
				swallow(y)
			} else {
				feed(y)
			}
			b.ReportAllocs()
			before := moved(e)
			for b.Loop() {
				do()
			}
			b.SetBytes((moved(e) - before) / int64(b.N))
		})
	}
}

func moved(e *Engine) (n int64) {
	for _, s := range e.streams {
		n += s.ctr.bytes.Load()
	}
	return n
}

// One turn gives every ready flow exactly one call: that is what makes thousands of
// flows fair.
func TestATurnIsFair(t *testing.T) {
	const n = 64
	a, b := pairs(t, n)
	defer closeAll(b)
	e := parked(t, Config{BlockSize: 100, Affinity: []int{firstCPU(t)}}, flowsOf(a, result.Up, true))
	set := e.movers[0].(*epollSet)
	do := step(e)
	for turn := int64(1); turn <= 20; turn++ {
		do()
		for i, s := range e.streams {
			if got := s.ctr.bytes.Load(); got != 100*turn {
				t.Fatalf("after %d turns flow %d has moved %d bytes", turn, i, got)
			}
		}
	}
	if set.queue.n != n {
		t.Errorf("%d flows are ready, want %d", set.queue.n, n)
	}
}

func firstCPU(t *testing.T) int {
	cpus, err := osnet.UsableCPUs()
	if err != nil {
		t.Fatal(err)
	}
	return cpus[0]
}

func TestAffinity(t *testing.T) {
	cpus, err := osnet.UsableCPUs()
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{1, manyFlows} {
		a, b := pairs(t, n)
		swallow(b)
		e := start(t, Config{End: result.Client, Affinity: cpus[:1], Bitrate: 800_000_000}, flowsOf(a, result.Up, true))
		poll(t, "a thread on that CPU alone", func() bool { return pinnedThreads(t, cpus[0]) > 0 })
		e.Close()
		closeAll(b)
		poll(t, "the thread's end", func() bool { return pinnedThreads(t, cpus[0]) == 0 || len(cpus) == 1 })
	}
}

// pinnedThreads counts this process's threads that may only run on one CPU.
func pinnedThreads(t *testing.T, cpu int) (n int) {
	for _, tid := range threads(t) {
		set := unix.NewCPUSet(8192)
		if unix.SchedGetaffinityDynamic(tid, set) == nil && set.Count() == 1 && set.IsSet(cpu) {
			n++
		}
	}
	return n
}

func TestProcsAreGivenBack(t *testing.T) {
	before := runtime.GOMAXPROCS(0)
	one, two := raiseProcs(before), raiseProcs(3)
	if got := runtime.GOMAXPROCS(0); got != before+5 {
		t.Errorf("GOMAXPROCS %d with %d workers", got, before+3)
	}
	one()
	one()
	two()
	if got := runtime.GOMAXPROCS(0); got != before {
		t.Errorf("GOMAXPROCS %d afterwards, want %d", got, before)
	}
}

// Thousands of flows: rows carry every flow's bytes, and the details of the slowest.
func TestManyFlows(t *testing.T) {
	var lim unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &lim); err != nil {
		t.Fatal(err)
	}
	n := min(2000, int(lim.Cur)/5)
	a, b := pairs(t, n)
	rx := start(t, Config{End: result.Server, Interval: 50 * time.Millisecond, Limited: true}, flowsOf(b, result.Up, false))
	tx := start(t, Config{End: result.Client, Interval: 50 * time.Millisecond, BlockSize: 8192, Bytes: int64(n) * 5 * 8192}, flowsOf(a, result.Up, true))
	tx.wait(t, Bytes)
	tx.StopSend()
	if err := tx.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	tt := tx.totals(t)
	tx.Close()
	rx.wait(t, PeerClosed)
	rt := rx.totals(t)
	if sum(tt) != int64(n)*5*8192 || sum(rt) != sum(tt) {
		t.Errorf("sent %d, received %d, want %d", sum(tt), sum(rt), n*5*8192)
	}
	summaries := 0
	for _, f := range tt.Flows {
		if f.Total.Retransmits == nil {
			t.Fatalf("flow %d has no retransmits", f.ID)
		}
		if f.TCP != nil && f.TCP.Last.MSS > 0 {
			summaries++
		}
	}
	if summaries != slowFlows {
		t.Errorf("%d TCP summaries, want %d", summaries, slowFlows)
	}
	last := tx.rows.intervals()[0]
	details := 0
	for _, s := range last.Streams {
		if s.TCP != nil {
			details++
		}
	}
	if details != slowFlows {
		t.Errorf("%d rows with TCP details, want %d", details, slowFlows)
	}
}

func TestSendErrorsAreNamed(t *testing.T) {
	if err := sendError(unix.EPIPE); !errors.Is(err, syscall.EPIPE) || err.Error() != "traffic: send: write: broken pipe" {
		t.Error(err)
	}
	if err := receiveError(unix.ECONNRESET); !errors.Is(err, syscall.ECONNRESET) {
		t.Error(err)
	}
}

// threads lists this process's threads.
func threads(t *testing.T) (ids []int) {
	t.Helper()
	names, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range names {
		id, err := strconv.Atoi(n.Name())
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	return ids
}

// A flow that stalls with data below its low-water mark is still counted.
func TestLowWaterMarkDoesNotHideBytes(t *testing.T) {
	for _, n := range counts {
		t.Run(workerName(n), func(t *testing.T) {
			a, b := pairs(t, n)
			defer closeAll(a)
			e := start(t, Config{End: result.Server, Interval: time.Hour, Receive: plan.Discard}, flowsOf(b, result.Up, false))
			var sent int64
			for mark := false; !mark; {
				for _, c := range a {
					m, err := c.Net().Write(make([]byte, 1<<20))
					if err != nil {
						t.Fatal(err)
					}
					sent += int64(m)
				}
				for _, c := range b {
					v, err := lowMark(c)
					if err != nil {
						t.Fatal(err)
					}
					mark = mark || v > 1
				}
				if sent > 4<<30 {
					t.Skip("this machine is too slow today for a mark to go up")
				}
			}
			for _, c := range a {
				m, err := c.Net().Write(make([]byte, 1000))
				if err != nil {
					t.Fatal(err)
				}
				sent += int64(m)
			}
			poll(t, "every byte's count", func() bool { return moved(e.Engine) == sent })
			e.StopReceive(false)
			if got := sum(e.totals(t)); got != sent {
				t.Errorf("counted %d of %d", got, sent)
			}
		})
	}
}

func lowMark(c *osnet.Conn) (int, error) {
	fd, err := c.Detach() // gives the descriptor that it has
	if err != nil {
		return 0, err
	}
	return unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVLOWAT)
}

// Several blocks in one call are the same bytes in the same order, counted one by one.
func TestSeveralBlocksInOneCall(t *testing.T) {
	for _, c := range []struct {
		name string
		n    int
		way  int32
	}{{"thread copy", 1, txCopy}, {"thread vmsplice", 1, txSplice}, {"epoll copy", manyFlows, txCopy}} {
		t.Run(c.name, func(t *testing.T) {
			a, b := pairs(t, c.n)
			defer closeAll(b)
			r := &rows{}
			eng, err := New(Config{End: result.Client, Repeating: true, BlockSize: 50_000, Interval: 10 * time.Millisecond, Out: r}, flowsOf(a, result.Up, true))
			if err != nil {
				t.Fatal(err)
			}
			e := &end{eng, r}
			defer e.Close()
			e.tx.Store(c.way)
			for _, m := range e.movers {
				if m, ok := m.(*thread); ok {
					if m.gun.vecs[0].Len() != 20*50_000 || m.gun.vecs[1].Len() != 10*50_000 {
						t.Fatalf("%d and %d bytes a call", m.gun.vecs[0].Len(), m.gun.vecs[1].Len())
					}
					m.fast = true
				}
			}
			got := make([]int64, c.n)
			var wg sync.WaitGroup
			for i := range b {
				wg.Go(func() {
					buf := make([]byte, 100_000)
					for {
						m, err := b[i].Net().Read(buf)
						for k, x := range buf[:m] {
							if x != '0'+byte((got[i]+int64(k))%10) {
								t.Errorf("flow %d: byte %d is %q", i, got[i]+int64(k), x)
								return
							}
						}
						got[i] += int64(m)
						if err != nil {
							return
						}
					}
				})
			}
			e.Start()
			poll(t, "20 MB", func() bool { return sum(e.Snapshot()) > 20_000_000 })
			e.StopSend()
			if err := e.Drain(t.Context()); err != nil {
				t.Fatal(err)
			}
			tt := e.totals(t)
			e.Close()
			wg.Wait()
			for i, f := range tt.Flows {
				if f.Total.Bytes != got[i] {
					t.Errorf("flow %d: sent %d, received %d", i, f.Total.Bytes, got[i])
				}
			}
		})
	}
}

func TestLeftAfterSeveralBlocks(t *testing.T) {
	e := &Engine{cfg: Config{BlockSize: 100}}
	e.q.block = 100
	for _, c := range []struct{ n, left int64 }{{30, 70}, {100, 0}, {130, 70}, {200, 0}, {201, 99}, {799, 1}} {
		s := &stream{e: e, left: 100}
		s.wrote(int(c.n), 1)
		if s.left != c.left {
			t.Errorf("after %d of blocks of 100: %d left, want %d", c.n, s.left, c.left)
		}
	}
}

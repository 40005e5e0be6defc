package traffic

import (
	"math"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fullbore-net/fullbore/internal/osnet"
	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/result"
)

// checkCalls checks what holds for every count of calls, and that there is one only where
// it was asked for.
func checkCalls(t *testing.T, cfg Config, f FlowTotal, elapsed float64) {
	t.Helper()
	if counted := cfg.CountCalls || cfg.TimeCalls; counted != (f.IO != nil) || counted && cfg.TimeCalls != (f.IO.Latency != nil) {
		t.Fatalf("flow %d: %+v", f.ID, f.IO)
	}
	if f.IO == nil || f.IO.Latency == nil {
		return
	}
	l, n := f.IO.Latency, f.IO.Completions
	if l.Min < 0 || l.Min*n > l.Sum || l.Max*n < l.Sum || n == 0 && l.Max > 0 || seconds(l.Sum) > elapsed+1e-6 {
		t.Errorf("flow %d: %d calls took %+v ns in %v s", f.ID, n, *l, elapsed)
	}
}

// In virtual time: a peer that takes a block every 10 ms, or sends one, makes each call
// take just that.
func TestCallsInVirtualTime(t *testing.T) {
	for _, send := range []bool{true, false} {
		for _, cfg := range []Config{{}, {CountCalls: true}, {TimeCalls: true}} {
			synctest.Test(t, func(t *testing.T) {
				const size, each, omitted, counted = 1000, 10 * time.Millisecond, 100, 300
				a, b := net.Pipe()
				done := make(chan struct{})
				go func() { // ends with the engine's socket
					defer close(done)
					buf := make([]byte, size)
					for {
						time.Sleep(each)
						var err error
						if send {
							_, err = b.Read(buf)
						} else {
							_, err = b.Write(buf)
						}
						if err != nil {
							return
						}
					}
				}()
				cfg.End, cfg.BlockSize, cfg.Interval = result.Client, size, time.Second
				cfg.Omit, cfg.Duration = omitted*each+each/2, counted*each
				e := start(t, cfg, []Flow{{ID: 1, Direction: result.Up, Conn: osnet.NewConn(a), Send: send}})
				e.wait(t, Duration)
				tot := e.totals(t)
				f := tot.Flows[0]
				checkCalls(t, cfg, f, tot.Elapsed+each.Seconds())
				if f.Total.Bytes != counted*size || f.OmittedBytes != omitted*size {
					t.Fatalf("%d bytes after %d", f.Total.Bytes, f.OmittedBytes)
				}
				if f.IO != nil && f.IO.Completions != counted {
					t.Errorf("send %v: %d calls, want %d", send, f.IO.Completions, counted)
				}
				if f.IO != nil && f.IO.Latency != nil {
					want := result.CallLatency{Sum: counted * int64(each), Min: int64(each), Max: int64(each)}
					if *f.IO.Latency != want {
						t.Errorf("send %v: %+v, want %+v", send, *f.IO.Latency, want)
					}
				}
				e.Close()
				b.Close()
				<-done
			})
		}
	}
}

// A flow that was never measured has no calls, and no nonsense in their place.
func TestCallsOfNothing(t *testing.T) {
	a, b := pairs(t, 1)
	defer closeAll(b)
	e := start(t, Config{End: result.Client, TimeCalls: true, Omit: time.Hour, Interval: time.Hour}, flowsOf(a, result.Up, false))
	f := e.totals(t).Flows[0]
	if f.IO == nil || *f.IO.Latency != (result.CallLatency{}) || f.IO.Completions != 0 {
		t.Errorf("%+v", f.IO)
	}
}

// On every way of moving bytes a block that was sent is a call, and a receive is of a
// block at most.
func TestCallsAreBlocks(t *testing.T) {
	for _, c := range []struct {
		name  string
		flows int
		send  plan.Send
		rate  int64
		burst int
	}{
		{"copy", 1, "", 0, 0},
		{"zero copy", 1, plan.SendZeroCopy, 0, 0},
		{"many", 40, "", 0, 0},
		{"many, zero copy", 40, plan.SendZeroCopy, 0, 0},
		{"paced", 1, "", 4_000_000_000, 0},
		{"paced in bursts", 1, "", 4_000_000_000, 3},
	} {
		for _, cfg := range []Config{{}, {CountCalls: true}, {TimeCalls: true}} {
			t.Run(c.name, func(t *testing.T) {
				const size = 64 << 10
				blocks := int64(20 * c.flows)
				a, b := pairs(t, c.flows)
				rx := start(t, Config{End: result.Server, BlockSize: size, CountCalls: cfg.CountCalls, TimeCalls: cfg.TimeCalls}, flowsOf(b, result.Up, false))
				tx := start(t, Config{
					End: result.Client, BlockSize: size, CountCalls: cfg.CountCalls, TimeCalls: cfg.TimeCalls, Send: c.send,
					Bitrate: c.rate, Burst: c.burst, Blocks: blocks,
				}, flowsOf(a, result.Up, true))
				tx.wait(t, Blocks)
				sent := tx.totals(t)
				tx.Close()
				rx.wait(t, PeerClosed)
				got := rx.totals(t)
				var calls int64
				for i, f := range sent.Flows {
					checkCalls(t, cfg, f, sent.Elapsed)
					r := got.Flows[i]
					checkCalls(t, cfg, r, got.Elapsed)
					if f.IO == nil {
						continue
					}
					calls += f.IO.Completions
					if least := (r.Total.Bytes + size - 1) / size; r.IO.Completions < least || r.IO.Completions > r.Total.Bytes {
						t.Errorf("flow %d received %d bytes in %d calls", i, r.Total.Bytes, r.IO.Completions)
					}
				}
				if calls != blocks && (cfg.CountCalls || cfg.TimeCalls) {
					t.Errorf("%d calls, want %d", calls, blocks)
				}
			})
		}
	}
}

// The portable way of datagrams, in virtual time.
func TestCallsAreDatagramsEverywhere(t *testing.T) {
	for _, cfg := range []Config{{}, {CountCalls: true}, {TimeCalls: true}} {
		cfg.BlockSize, cfg.Bitrate, cfg.Interval = 1400, 1_120_000, time.Second
		cfg.Omit, cfg.Duration = 2*time.Second, 10*time.Second
		tx, rx, _, _ := virtualUDP(t, cfg, nil)
		for _, f := range []FlowTotal{tx.Flows[0], rx.Flows[0]} {
			checkCalls(t, cfg, f, 10.1)
			if f.IO != nil && f.IO.Completions != 1000 {
				t.Errorf("%d calls, want 1000", f.IO.Completions)
			}
		}
	}
}

// With WaitAll a receive is a whole block, however the bytes come.
func TestWaitAll(t *testing.T) {
	for _, flows := range []int{1, 40} {
		a, b := pairs(t, flows)
		const size, blocks = 1000, 30
		e := start(t, Config{End: result.Server, BlockSize: size, WaitAll: true}, flowsOf(b, result.Up, false))
		for _, x := range a {
			go func() { // in pieces of 7, 14, 28, …
				for n, left := 7, blocks*size+size/2; left > 0; n *= 2 {
					k, err := x.Net().Write(make([]byte, min(n, left)))
					if left -= k; err != nil {
						return
					}
				}
				x.Close()
			}()
		}
		e.wait(t, PeerClosed)
		for _, f := range e.totals(t).Flows {
			if f.IO.Completions != blocks || f.Total.Bytes != blocks*size+size/2 || f.IO.Latency != nil {
				t.Errorf("%d receives, %d bytes", f.IO.Completions, f.Total.Bytes)
			}
		}
	}
	synctest.Test(t, func(t *testing.T) { // the portable way
		a, b := net.Pipe()
		e := start(t, Config{End: result.Server, BlockSize: 100, WaitAll: true}, []Flow{{ID: 1, Direction: result.Up, Conn: osnet.NewConn(b)}})
		for _, n := range []int{30, 60, 30, 200, 30} {
			if _, err := a.Write(make([]byte, n)); err != nil {
				t.Fatal(err)
			}
		}
		a.Close()
		e.wait(t, PeerClosed)
		if f := e.totals(t).Flows[0]; f.IO.Completions != 3 || f.Total.Bytes != 350 {
			t.Errorf("%d receives, %d bytes", f.IO.Completions, f.Total.Bytes)
		}
		e.Close()
	})
}

// A worker that burns does so after each call, and leaves when it is told to, however much
// is left to burn.
func TestBurn(t *testing.T) {
	for _, transport := range []plan.Transport{plan.TCP, plan.UDP} {
		for _, flows := range []int{1, 20} {
			a, b := connected(t, transport, flows)
			cfg := Config{End: result.Client, Transport: transport, BlockSize: 1000, UDP: UDPConfig{Bare: true}}
			rcfg := cfg
			cfg.Burn = math.MaxInt
			if transport == plan.TCP {
				cfg.UDP, rcfg.UDP = UDPConfig{}, UDPConfig{}
			} else {
				cfg.TimeCalls = true // one at a time
			}
			rx := start(t, rcfg, flowsOf(b, result.Up, false))
			tx := start(t, cfg, flowsOf(a, result.Up, true))
			poll(t, "a block", func() bool { return sum(rx.Snapshot()) >= 1000 })
			within(t, 20*time.Second, "the end", func() {
				var calls int64
				for _, f := range tx.totals(t).Flows {
					calls += f.IO.Completions
				}
				if calls < 1 || calls > int64(flows) {
					t.Errorf("%d calls of %d flows", calls, flows)
				}
			})
			tx.Close()
			rx.Close()
		}
	}
	if x := turns(1, 3); x != turns(turns(1, 1), 2) || x == 1 || x == turns(1, 2) {
		t.Error("a turn is lost")
	}
}

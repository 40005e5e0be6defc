package traffic

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"net"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fullbore-net/fullbore/internal/osnet"
	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/result"
)

// relay passes datagrams on and does to them what its rule says. It is the truth that a
// run's figures are compared with.
type relay struct {
	in, lost, copied, held atomic.Int64
	a, b                   *net.UDPConn
	done                   chan struct{}
}

// fate of one datagram.
type fate int

const (
	pass fate = iota
	lose
	double
	hold // until one more has passed
)

// relayed returns a pair of connected sockets with a relay between them.
func relayed(t *testing.T, rule func(n int64) fate) (a, b *osnet.Conn, r *relay) {
	t.Helper()
	as, am := udpPairs(t, 1)
	bm, bs := udpPairs(t, 1)
	r = &relay{a: am[0].Net().(*net.UDPConn), b: bm[0].Net().(*net.UDPConn), done: make(chan struct{})}
	for _, c := range []*osnet.Conn{am[0], bs[0]} {
		if _, err := c.GrowReceive(8 << 20); err != nil {
			t.Fatal(err)
		}
	}
	go func() {
		defer close(r.done)
		buf := make([]byte, 2048)
		var kept []byte
		for {
			n, err := r.a.Read(buf)
			if err != nil {
				return
			}
			switch rule(r.in.Add(1)) {
			case lose:
				r.lost.Add(1)
				continue
			case double:
				r.copied.Add(1)
				r.b.Write(buf[:n])
				r.b.Write(buf[:n])
			case hold:
				if kept == nil {
					r.held.Add(1)
					kept = append([]byte(nil), buf[:n]...)
					continue
				}
				r.b.Write(buf[:n])
			default:
				r.b.Write(buf[:n])
			}
			if kept != nil {
				r.b.Write(kept)
				kept = nil
			}
		}
	}()
	t.Cleanup(func() {
		am[0].Close()
		bm[0].Close()
		<-r.done
	})
	return as[0], bs[0], r
}

// Loss, copies and swaps that a path makes are what the receiver says, to the datagram,
// and their rows are sound.
func TestPathIsTold(t *testing.T) {
	for _, c := range []struct {
		name string
		rate int64
		tx   UDPConfig
		rx   UDPConfig
	}{
		{"paced", 4_800_000, UDPConfig{Wide: true, Nonce: 5}, UDPConfig{}},
		{"super-packets", 8_000_000, UDPConfig{Pacing: plan.PacingFrugal}, UDPConfig{}},
		{"receiver without offload", 4_800_000, UDPConfig{Wide: true}, UDPConfig{Offload: plan.OffloadOff}},
	} {
		t.Run(c.name, func(t *testing.T) {
			const blocks = 3000
			rng := rand.New(rand.NewPCG(1, 2))
			a, b, path := relayed(t, func(n int64) fate {
				switch {
				case n == blocks: // so that a held one is let go
					return pass
				case rng.IntN(10) == 0:
					return lose
				case rng.IntN(20) == 0:
					return double
				case rng.IntN(20) == 0:
					return hold
				}
				return pass
			})
			c.rx.Wide, c.rx.Nonce = c.tx.Wide, c.tx.Nonce
			cfg := Config{Transport: plan.UDP, BlockSize: 200, Interval: 50 * time.Millisecond, Limited: true}
			txCfg, rxCfg := cfg, cfg
			txCfg.End, txCfg.Bitrate, txCfg.Blocks, txCfg.UDP = result.Client, c.rate, blocks, c.tx
			rxCfg.End, rxCfg.UDP = result.Server, c.rx
			rx := start(t, rxCfg, flowsOf([]*osnet.Conn{b}, result.Up, false))
			tx := start(t, txCfg, flowsOf([]*osnet.Conn{a}, result.Up, true))
			tx.wait(t, Blocks)
			poll(t, "the last datagram at the relay", func() bool { return path.in.Load() == blocks })
			rx.StopReceive(true)
			rt, tt := rx.totals(t), tx.totals(t)
			checkDatagrams(t, rt, rx.rows.intervals())
			checkDatagrams(t, tt, tx.rows.intervals())
			f := rt.Flows[0]
			u := f.UDP.Received
			if u.SocketDrops == nil || *u.SocketDrops != 0 {
				t.Fatalf("the receiver's socket dropped %v: its buffer is too small for this machine", u.SocketDrops)
			}
			if u.Packets != blocks-path.lost.Load() {
				t.Errorf("received %d, want %d less %d", u.Packets, blocks, path.lost.Load())
			}
			if u.Duplicates != path.copied.Load() || u.Reordered != path.held.Load() || u.Late != 0 || u.Foreign != 0 {
				t.Errorf("duplicates %d, reordered %d, late %d, foreign %d; want %d, %d, 0, 0",
					u.Duplicates, u.Reordered, u.Late, u.Foreign, path.copied.Load(), path.held.Load())
			}
			if u.MaxExtent != 1 && u.MaxExtent != 2 {
				t.Errorf("extent %d, want 1: each was held until one more passed", u.MaxExtent)
			}
			if u.Periods == nil || u.PDV == nil || u.Jitter == nil || u.IPDV == nil {
				t.Errorf("%+v: figures are missing", u)
			}
			if n := sentPackets(tt); n != blocks {
				t.Errorf("sent %d", n)
			}
		})
	}
}

// A receiver that does not run loses at its socket, and the socket's count is the loss.
func TestStarvedReceiver(t *testing.T) {
	const blocks = 4000
	a, b := udpPairs(t, 1)
	if err := b[0].Net().(*net.UDPConn).SetReadBuffer(64 << 10); err != nil {
		t.Fatal(err)
	}
	rx := start(t, Config{
		End: result.Server, Transport: plan.UDP, BlockSize: 1000, Interval: time.Hour,
		UDP: UDPConfig{Offload: plan.OffloadOff, Window: 64 << 10},
	}, flowsOf(b, result.Up, false))
	u := rx.streams[0].rx
	u.mu.Lock() // its worker stops here
	tx := start(t, Config{
		End: result.Client, Transport: plan.UDP, BlockSize: 1000, Blocks: blocks, UDP: UDPConfig{Offload: plan.OffloadOff},
	}, flowsOf(a, result.Up, true))
	tx.wait(t, Blocks)
	u.mu.Unlock()
	rx.StopReceive(true)
	f := rx.totals(t).Flows[0].UDP.Received
	if f.SocketDrops == nil || *f.SocketDrops == 0 || f.Packets+*f.SocketDrops != blocks {
		t.Errorf("received %d and dropped %v at the socket, want %d together", f.Packets, f.SocketDrops, blocks)
	}
}

// What came before this end was at its start counts for loss and not for the rate, and
// what its socket dropped then is told too.
func TestBeforeTheStart(t *testing.T) {
	const blocks = 4000
	a, b := udpPairs(t, 1)
	if err := b[0].Net().(*net.UDPConn).SetReadBuffer(64 << 10); err != nil {
		t.Fatal(err)
	}
	r := &rows{}
	e, err := New(Config{
		End: result.Client, Transport: plan.UDP, BlockSize: 1000, Interval: time.Hour, Out: r,
		UDP: UDPConfig{Offload: plan.OffloadOff, Window: 64 << 10},
	}, flowsOf(b, result.Down, false))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	tx := start(t, Config{
		End: result.Server, Transport: plan.UDP, BlockSize: 1000, Blocks: blocks, UDP: UDPConfig{Offload: plan.OffloadOff},
	}, flowsOf(a, result.Down, true))
	tx.wait(t, Blocks)
	e.Start()
	e.StopReceive(true)
	f := (&end{e, r}).totals(t).Flows[0]
	u := f.UDP.Received
	if u.Early == 0 || u.Early != u.Packets || u.Bytes != 0 || f.Total.Bytes != 0 {
		t.Errorf("%d received, %d of them before the start, %d bytes", u.Packets, u.Early, u.Bytes)
	}
	if u.SocketDrops == nil || u.Packets+*u.SocketDrops != blocks {
		t.Errorf("received %d and dropped %v at the socket, want %d together", u.Packets, u.SocketDrops, blocks)
	}
}

// Near the wraps of a signed and an unsigned 32-bit counter nothing happens: fast motion
// of a test of weeks.
func TestSoakInFastMotion(t *testing.T) {
	for _, c := range []struct {
		name  string
		first uint64
		wide  bool
	}{
		{"2^31", 1<<31 - 500, false},
		{"2^32", 1<<32 - 500, false},
		{"2^32, 64 bit", 1<<32 - 500, true},
		{"2^48, 64 bit", 1<<48 - 500, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			sent, got, _, _ := udpTest(t, 1,
				Config{BlockSize: 100, Bitrate: 16_000_000, Blocks: 1000, Interval: 20 * time.Millisecond, UDP: UDPConfig{FirstSeq: c.first, Wide: c.wide}},
				Config{Interval: 20 * time.Millisecond, Limited: true})
			f, u := got.Flows[0], got.Flows[0].UDP.Received
			if sentPackets(sent) != 1000 || u.Packets != 1000 || *f.Total.Lost != 0 || *f.Total.OutOfOrder != 0 || u.Highest != int64(c.first)+999 {
				t.Errorf("sent %d, %+v, total %+v", sentPackets(sent), u, f.Total)
			}
			if u.Jitter == nil || u.Jitter.N < 500 {
				t.Errorf("jitter %+v: pairs are missing", u.Jitter)
			}
		})
	}
}

// Nobody listening from the first datagram on is an error; a receiver that goes away is a
// count and a notice, and the sender goes on.
func TestICMPRefused(t *testing.T) {
	t.Run("from the start", func(t *testing.T) {
		a, b := udpPairs(t, 1)
		closeAll(b)
		tx := start(t, Config{End: result.Client, Transport: plan.UDP, BlockSize: 100, Bitrate: 1_600_000}, flowsOf(a, result.Up, true))
		reason, err := tx.Wait(t.Context())
		if reason != PeerClosed || !errors.Is(err, errRefused) {
			t.Errorf("Wait = %v, %v", reason, err)
		}
		if n := tx.totals(t).Flows[0].UDP.Sent.Refused; n == 0 {
			t.Error("nothing was refused")
		}
	})
	t.Run("later", func(t *testing.T) {
		a, b := udpPairs(t, 1)
		tx := start(t, Config{End: result.Client, Transport: plan.UDP, BlockSize: 100, Bitrate: 1_600_000, Interval: 20 * time.Millisecond}, flowsOf(a, result.Up, true))
		packets := func() int64 { return tx.Snapshot().Flows[0].UDP.Sent.Packets }
		poll(t, "100 datagrams", func() bool { return packets() > 100 })
		closeAll(b)
		poll(t, "a refusal", func() bool { return tx.Snapshot().Flows[0].UDP.Sent.Refused > 0 })
		before := packets()
		poll(t, "more datagrams", func() bool { return packets() > before+20 })
		poll(t, "the notice", func() bool {
			tx.rows.mu.Lock()
			defer tx.rows.mu.Unlock()
			for _, e := range tx.rows.evs {
				if e.Kind == result.KindNotice && e.Notice.Code == "icmp-refused" {
					return true
				}
			}
			return false
		})
		tx.StopSend()
		if f := tx.totals(t).Flows[0]; f.Err != nil {
			t.Errorf("the flow ended: %v", f.Err)
		}
	})
}

// Workers of datagrams leave whatever they wait for.
func TestDatagramWorkersStop(t *testing.T) {
	for _, n := range counts {
		for _, pacing := range []plan.Pacing{"", plan.PacingPrecise} {
			t.Run(workerName(n)+" "+string(pacing), func(t *testing.T) {
				a, b := udpPairs(t, n)
				rx := start(t, Config{End: result.Server, Transport: plan.UDP, BlockSize: 1000}, flowsOf(b, result.Up, false))
				tx := start(t, Config{
					End: result.Client, Transport: plan.UDP, BlockSize: 1000, Bitrate: 8, UDP: UDPConfig{Pacing: pacing},
				}, flowsOf(a, result.Up, true))
				within(t, 5*time.Second, "StopSend", tx.StopSend)
				within(t, 5*time.Second, "StopReceive", func() { rx.StopReceive(false) })
				within(t, 5*time.Second, "Close", func() {
					tx.Close()
					rx.Close()
				})
			})
		}
	}
}

// A schedule that is far off follows a new rate at once.
func TestSteerWakesASleeper(t *testing.T) {
	for _, n := range counts {
		t.Run(workerName(n), func(t *testing.T) {
			a, b := udpPairs(t, n)
			defer closeAll(b)
			tx := start(t, Config{End: result.Client, Transport: plan.UDP, BlockSize: 1000, Bitrate: 8}, flowsOf(a, result.Up, true))
			poll(t, "the first datagrams", func() bool { return moved(tx.Engine) == int64(n)*1000 })
			tx.Steer(800_000)
			poll(t, "more datagrams", func() bool { return moved(tx.Engine) > int64(n)*5000 })
			tx.Steer(0)
			poll(t, "datagrams at full speed", func() bool { return moved(tx.Engine) > int64(n)*500_000 })
		})
	}
}

func TestDatagramBudgets(t *testing.T) {
	t.Run("sender", func(t *testing.T) {
		a, b := udpPairs(t, 2)
		defer closeAll(b)
		tx := start(t, Config{End: result.Client, Transport: plan.UDP, BlockSize: 1000, MaxBytes: 10_500}, flowsOf(a, result.Up, true))
		tx.wait(t, Budget)
		tx.StopSend()
		if n := sum(tx.totals(t)); n != 10_000 {
			t.Errorf("sent %d bytes of a budget of 10500, want 10 datagrams of 1000", n)
		}
	})
	t.Run("receiver", func(t *testing.T) {
		a, b := udpPairs(t, 1)
		rx := start(t, Config{End: result.Server, Transport: plan.UDP, BlockSize: 1000, MaxBytes: 50_000}, flowsOf(b, result.Up, false))
		tx := start(t, Config{End: result.Client, Transport: plan.UDP, BlockSize: 1000, Bitrate: 8_000_000}, flowsOf(a, result.Up, true))
		rx.wait(t, Budget)
		rx.StopReceive(true)
		tx.StopSend()
		if n := sum(rx.totals(t)); n < 50_000 {
			t.Errorf("stopped after %d bytes of 50000", n)
		}
	})
	t.Run("a sender that does not keep to the rate", func(t *testing.T) {
		a, b := udpPairs(t, 1)
		rx := start(t, Config{End: result.Server, Transport: plan.UDP, BlockSize: 1000, MaxRate: 100_000}, flowsOf(b, result.Up, false))
		start(t, Config{End: result.Client, Transport: plan.UDP, BlockSize: 1000, Bitrate: 10_000_000}, flowsOf(a, result.Up, true))
		rx.wait(t, Budget)
	})
	t.Run("rate", func(t *testing.T) {
		a, b := udpPairs(t, 2)
		defer closeAll(b)
		tx := start(t, Config{
			End: result.Client, Transport: plan.UDP, BlockSize: 1000, MaxRate: 1_600_000, Duration: 500 * time.Millisecond,
		}, flowsOf(a, result.Up, true))
		tx.wait(t, Duration)
		tx.StopSend()
		tt := tx.totals(t)
		if most := 200_000*tt.Elapsed + 2000; float64(sum(tt)) > most {
			t.Errorf("sent %d bytes in %v s under 200 kB/s", sum(tt), tt.Elapsed)
		}
	})
	t.Run("what the receiver wants", func(t *testing.T) {
		a, b := udpPairs(t, 1)
		rx := start(t, Config{End: result.Client, Transport: plan.UDP, BlockSize: 1000, Blocks: 20}, flowsOf(b, result.Up, false))
		start(t, Config{End: result.Server, Transport: plan.UDP, BlockSize: 1000, Bitrate: 8_000_000}, flowsOf(a, result.Up, true))
		rx.wait(t, Blocks)
	})
}

// Many paced flows are a few threads, and each keeps its own rate.
func TestManyPacedFlows(t *testing.T) {
	const flows, perSecond = 200, 50
	a, b := udpPairs(t, flows)
	rx := start(t, Config{End: result.Server, Transport: plan.UDP, BlockSize: 200, Limited: true}, flowsOf(b, result.Up, false))
	tx := start(t, Config{
		End: result.Client, Transport: plan.UDP, BlockSize: 200, Bitrate: 80_000, Duration: 400 * time.Millisecond, UDP: UDPConfig{},
	}, flowsOf(a, result.Up, true))
	if n := len(tx.movers) + len(rx.movers); n > 2*runtime.NumCPU() {
		t.Errorf("%d workers for %d flows each way", n, flows)
	}
	tx.wait(t, Duration)
	tx.StopSend()
	rx.StopReceive(true)
	tt, rt := tx.totals(t), rx.totals(t)
	for i := range tt.Flows {
		n := *tt.Flows[i].Total.Packets
		if most := tt.Elapsed*perSecond + 1; float64(n) > most {
			t.Errorf("flow %d sent %d in %v s, want %v at most", i, n, tt.Elapsed, most)
		}
		if got := *rt.Flows[i].Total.Packets; got != n || *rt.Flows[i].Total.Lost != 0 {
			t.Errorf("flow %d: sent %d, received %d", i, n, got)
		}
	}
	if tt.Path.Worker != "shared" || rt.Path.Worker != "epoll" {
		t.Errorf("workers %q and %q", tt.Path.Worker, rt.Path.Worker)
	}
	detailed := 0
	for _, f := range tt.Flows {
		if f.UDP != nil {
			detailed++
			if f.UDP.Sent.Late == nil {
				t.Errorf("flow %d: no lateness", f.ID)
			}
		}
	}
	if detailed != slowFlows {
		t.Errorf("%d flows carry details, want %d", detailed, slowFlows)
	}
}

// The header's time is CLOCK_MONOTONIC at the send, and arrival stamps are on the same
// clock: on one machine the difference is the delay.
func TestHeaderTime(t *testing.T) {
	a, b := udpPairs(t, 1)
	defer closeAll(b)
	before := osnet.Monotonic()
	tx := start(t, Config{End: result.Client, Transport: plan.UDP, BlockSize: 64, Blocks: 1, UDP: UDPConfig{Nonce: 1 << 60}}, flowsOf(a, result.Up, true))
	tx.wait(t, Blocks)
	d := make([]byte, 100)
	n, err := b[0].Net().Read(d)
	after := osnet.Monotonic()
	if err != nil || n != 64 {
		t.Fatal(n, err)
	}
	sec, usec := binary.BigEndian.Uint32(d), binary.BigEndian.Uint32(d[4:])
	seq, ns, nonce := binary.BigEndian.Uint32(d[8:]), int64(binary.BigEndian.Uint64(d[16:])), binary.BigEndian.Uint64(d[24:])
	if at := int64(sec)*1e9 + int64(usec)*1e3; ns < before || ns > after || ns/1e3 != at/1e3 || seq != 1 || nonce != 1<<60 {
		t.Errorf("header %d.%06d sequence %d, %d ns, nonce %x; sent between %d and %d", sec, usec, seq, ns, nonce, before, after)
	}
}

// stepUDP returns one turn of the first worker.
func stepUDP(e *Engine) func() {
	switch m := e.movers[0].(type) {
	case *udpTx:
		m.begin(e.now())
		return func() { m.turn(e.now()) }
	case *udpRx:
		return func() { m.readOnce(receiving) }
	case *udpRxSet:
		for k := range m.lanes {
			m.enqueue(int32(k))
		}
		return func() { m.turn(receiving) }
	}
	return nil
}

var udpPaths = []struct {
	name  string
	flows int
	send  bool
	cfg   Config
}{
	{"send plain", 1, true, Config{Bitrate: 1_000_000_000, UDP: UDPConfig{Pacing: plan.PacingPrecise}}},
	{"send gso", 1, true, Config{UDP: UDPConfig{Wide: true, Nonce: 3}}},
	{"send sendmmsg", 1, true, Config{UDP: UDPConfig{Offload: plan.OffloadOff}}},
	{"send limited", 1, true, Config{MaxBytes: 1 << 50}},
	{"send bare", 1, true, Config{UDP: UDPConfig{Bare: true}, Fill: 'A'}},
	{"send many", 16, true, Config{Bitrate: 100_000_000}},
	{"receive gro", 1, false, Config{}},
	{"receive recvmmsg", 1, false, Config{UDP: UDPConfig{Offload: plan.OffloadOff}}},
	{"receive many", 16, false, Config{}},
	{"receive bare", 1, false, Config{UDP: UDPConfig{Bare: true}}},
	{"send counted", 1, true, Config{CountCalls: true}},
	{"send timed", 1, true, Config{TimeCalls: true}},
	{"receive counted", 1, false, Config{CountCalls: true}},
	{"receive many timed", 16, false, Config{TimeCalls: true}},
	{"receive jitter", 1, false, Config{Message: Jitter, OnMessage: func(int, Message) {}}},
	{"receive bare, recvmmsg", 1, false, Config{UDP: UDPConfig{Bare: true, Offload: plan.OffloadOff}}},
}

// udpStep makes the engine of one of udpPaths with what it needs at the other end.
func udpStep(tb testing.TB, flows int, send bool, cfg Config) (*Engine, func()) {
	n := flows
	if flows > 1 {
		n += manyFlows
	}
	a, b := udpPairs(tb, n)
	cfg.Transport, cfg.BlockSize = plan.UDP, 1400
	if send {
		tb.Cleanup(func() { closeAll(b) })
		e := parked(tb, cfg, flowsOf(a, result.Up, true))
		return e, stepUDP(e)
	}
	peer := Config{Transport: plan.UDP, BlockSize: 1400, UDP: cfg.UDP, Message: cfg.Message}
	peer.UDP.Offload = cfg.UDP.Offload
	start(tb, peer, flowsOf(a, result.Up, true))
	e := parked(tb, cfg, flowsOf(b, result.Up, false))
	e.u.base = osnet.Monotonic() - e.now()
	return e, stepUDP(e)
}

func TestDatagramPathsDoNotAllocate(t *testing.T) {
	for _, c := range udpPaths {
		t.Run(c.name, func(t *testing.T) {
			_, do := udpStep(t, c.flows, c.send, c.cfg)
			for range 50 { // the account's second array comes with the first gap
				do()
			}
			if n := testing.AllocsPerRun(200, do); n != 0 {
				t.Errorf("%v allocations a call", n)
			}
		})
	}
}

func BenchmarkUDPHotPath(b *testing.B) {
	for _, c := range udpPaths {
		b.Run(c.name, func(b *testing.B) {
			e, do := udpStep(b, c.flows, c.send, c.cfg)
			b.ReportAllocs()
			before := moved(e)
			for b.Loop() {
				do()
			}
			b.SetBytes((moved(e) - before) / int64(b.N))
		})
	}
}

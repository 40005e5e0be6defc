package traffic

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fullbore-net/fullbore/internal/osnet"
	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/result"
)

// connected returns n connected pairs of one transport over loopback.
func connected(t *testing.T, transport plan.Transport, n int) (a, b []*osnet.Conn) {
	t.Helper()
	if transport == plan.TCP {
		return pairs(t, n)
	}
	for range n {
		x, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
		if err != nil {
			t.Fatal(err)
		}
		s, err := net.DialUDP("udp4", nil, x.LocalAddr().(*net.UDPAddr))
		if err != nil {
			t.Fatal(err)
		}
		local := x.LocalAddr().(*net.UDPAddr)
		x.Close()
		r, err := net.DialUDP("udp4", local, s.LocalAddr().(*net.UDPAddr))
		if err != nil {
			t.Fatal(err)
		}
		a, b = append(a, osnet.NewConn(s)), append(b, osnet.NewConn(r))
	}
	return a, b
}

// A round trip is a message and its answer: both ends count both, and what they count adds
// up.
func TestRoundTrip(t *testing.T) {
	for _, c := range []struct {
		transport plan.Transport
		flows     int
		size      int
	}{
		{plan.TCP, 1, 1},
		{plan.TCP, 1, 128},
		{plan.TCP, 3, 1000},
		{plan.TCP, 2, 200_000},
		{plan.TCP, 1, 1 << 20},
		{plan.UDP, 1, 1},
		{plan.UDP, 3, 128},
		{plan.UDP, 1, 65507},
	} {
		t.Run(fmt.Sprint(c.transport, c.flows, c.size), func(t *testing.T) {
			a, b := connected(t, c.transport, c.flows)
			cfg := Config{Transport: c.transport, BlockSize: c.size, Message: RoundTrip, Fill: 'A', Verify: true, Interval: time.Second}
			peer := cfg
			peer.End, cfg.End, cfg.Blocks = result.Server, result.Client, int64(20*c.flows)
			rx, tx := start(t, peer, flowsOf(b, result.Up, false)), start(t, cfg, flowsOf(a, result.Up, true))
			tx.wait(t, Blocks)
			sent := tx.totals(t)
			tx.Close()
			if c.transport == plan.TCP {
				rx.wait(t, PeerClosed)
			}
			got := rx.totals(t)
			var exchanges int64
			for i, f := range sent.Flows {
				r := got.Flows[i]
				exchanges += f.Blocks
				for _, x := range []FlowTotal{f, r} {
					if x.Err != nil || x.Blocks != f.Blocks || x.Total.Bytes != 2*f.Blocks*int64(c.size) || x.IO.Completions != 2*f.Blocks || x.IO.Latency == nil {
						t.Errorf("flow %d: %d exchanges, %+v, %+v, %v", i, x.Blocks, x.Total, x.IO, x.Err)
					}
					if l := x.IO.Latency; l.Min <= 0 && f.Blocks > 0 || l.Min*f.Blocks > l.Sum || l.Max*f.Blocks < l.Sum {
						t.Errorf("flow %d: %+v", i, l)
					}
				}
				if l := f.IO.Latency; seconds(l.Sum) > sent.Elapsed {
					t.Errorf("flow %d: %d ns in %v s", i, l.Sum, sent.Elapsed)
				}
				if c.transport == plan.UDP && (*f.Total.Packets != f.Blocks || f.UDP.Sent.Packets != f.Blocks || f.UDP.Sent.Bytes != f.Blocks*int64(c.size) || *r.Total.Packets != f.Blocks) {
					t.Errorf("flow %d: %d datagrams sent, %+v; received %d", i, *f.Total.Packets, f.UDP.Sent, *r.Total.Packets)
				}
			}
			if exchanges != cfg.Blocks {
				t.Errorf("%d exchanges, want %d", exchanges, cfg.Blocks)
			}
			if c.transport == plan.UDP {
				checkDatagrams(t, sent, tx.rows.intervals())
				checkDatagrams(t, got, rx.rows.intervals())
			}
			for _, n := range append(tx.notices, rx.notices...) {
				t.Errorf("%+v", n)
			}
		})
	}
}

// What is on the wire: a sender's message is payload from its first byte to its last, and it
// waits for an answer of that length before it sends the next, however that comes.
func TestRoundTripSender(t *testing.T) {
	const size, rounds = 10, 5
	a, b := pairs(t, 1)
	defer closeAll(b)
	tx := start(t, Config{End: result.Client, BlockSize: size, Message: RoundTrip, Fill: 'A', Blocks: rounds}, flowsOf(a, result.Up, true))
	nc := b[0].Net()
	buf := make([]byte, 100)
	for range rounds {
		if _, err := io.ReadFull(nc, buf[:size]); err != nil || !bytes.Equal(buf[:size], bytes.Repeat([]byte{'A'}, size)) {
			t.Fatalf("%q, %v", buf[:size], err)
		}
		if n, err := b[0].RecvQueue(); err != nil || n != 0 {
			t.Fatalf("%d bytes came before the answer (%v)", n, err)
		}
		for i := range size { // in pieces
			if _, err := nc.Write([]byte{byte(i)}); err != nil {
				t.Fatal(err)
			}
		}
	}
	tx.wait(t, Blocks)
	if f := tx.totals(t).Flows[0]; f.Blocks != rounds || f.Total.Bytes != 2*rounds*size {
		t.Errorf("%+v", f)
	}
}

// A receiver answers what is a message to it: all of its length, however it comes, and what
// seems to be a shorter one.
func TestRoundTripReceiver(t *testing.T) {
	const size = 10
	read := func(t *testing.T, nc net.Conn) {
		t.Helper()
		buf := make([]byte, size)
		if _, err := io.ReadFull(nc, buf); err != nil || !bytes.Equal(buf, bytes.Repeat([]byte{'A'}, size)) {
			t.Fatalf("answer %q, %v", buf, err)
		}
	}
	a, b := pairs(t, 2)
	rx := start(t, Config{End: result.Server, BlockSize: size, Message: RoundTrip, Fill: 'A'}, flowsOf(b, result.Up, false))
	whole, short := a[0].Net(), a[1].Net()
	for _, pieces := range []string{"xxxxxxxxxx", "x xxx xxxxx x", "xxxxxxxxxxxxxxxxxxxx"} {
		answers := 0
		for i, p := range bytes.Fields([]byte(pieces)) {
			if i > 0 { // the piece before was read on its own
				poll(t, "the piece", func() bool { n, err := b[0].RecvQueue(); return err == nil && n == 0 })
			}
			if _, err := whole.Write(p); err != nil {
				t.Fatal(err)
			}
			answers += len(p)
		}
		for range answers / size {
			read(t, whole)
		}
	}
	for range 3 {
		if _, err := short.Write([]byte("xxx")); err != nil {
			t.Fatal(err)
		}
		read(t, short)
	}
	closeAll(a)
	rx.wait(t, PeerClosed)
	tot := rx.totals(t)
	if f := tot.Flows[0]; f.Blocks != 4 || f.Total.Bytes != 2*4*size || !f.EOF {
		t.Errorf("%+v", f)
	}
	if f := tot.Flows[1]; f.Blocks != 3 || f.Total.Bytes != 3*3+3*size {
		t.Errorf("%+v", f)
	}
	rx.told(t, "message-size", 1)
}

// told checks how often a notice was emitted.
func (e *end) told(t *testing.T, code string, want int) {
	t.Helper()
	n := 0
	e.rows.mu.Lock()
	defer e.rows.mu.Unlock()
	for _, ev := range e.rows.evs {
		if ev.Kind == result.KindNotice && ev.Notice.Code == code {
			n++
		}
	}
	if n != want {
		t.Errorf("notice %s %d times, want %d", code, n, want)
	}
}

// A receiver that answers each piece of a message says more than was asked: that counts, is
// no later message's answer, and blocks nobody.
func TestRoundTripWithATalker(t *testing.T) {
	const size, rounds = 256 << 10, 12
	a, b := pairs(t, 1)
	tx := start(t, Config{End: result.Client, BlockSize: size, Message: RoundTrip, Fill: 'A', Verify: true, Blocks: rounds}, flowsOf(a, result.Up, true))
	done := make(chan int64)
	go func() { // ends with the engine's socket
		nc := b[0].Net()
		buf, answer := make([]byte, size/4), bytes.Repeat([]byte{'A'}, size)
		var wrote int64
		for {
			if _, err := io.ReadFull(nc, buf); err != nil {
				done <- wrote
				return
			}
			n, err := nc.Write(answer)
			wrote += int64(n)
			if err != nil {
				done <- wrote
				return
			}
		}
	}()
	tx.wait(t, Blocks)
	f := tx.totals(t).Flows[0]
	tx.Close()
	b[0].Close()
	if wrote := <-done; f.Blocks != rounds || f.Total.Bytes < 2*rounds*size || f.Total.Bytes > rounds*size+wrote || f.Err != nil {
		t.Errorf("%d exchanges, %d bytes of %d, %v", f.Blocks, f.Total.Bytes, rounds*size+wrote, f.Err)
	}
}

// In virtual time: what a round trip takes is what is reported, and the omitted part is not
// in it.
func TestRoundTripInVirtualTime(t *testing.T) {
	for _, transport := range []plan.Transport{plan.TCP, plan.UDP} {
		synctest.Test(t, func(t *testing.T) {
			const size, each = 100, 10 * time.Millisecond
			a, b := net.Pipe()
			tx := start(t, Config{
				End: result.Client, Transport: transport, BlockSize: size, Message: RoundTrip, Fill: 'A', Interval: time.Second,
				Omit: 2*time.Second + each/2, Duration: 3 * time.Second,
			}, []Flow{{ID: 1, Direction: result.Up, Conn: osnet.NewConn(a), Send: true}})
			done := make(chan struct{})
			go func() {
				defer close(done)
				buf := make([]byte, size)
				for {
					if _, err := io.ReadFull(b, buf); err != nil {
						return
					}
					time.Sleep(each)
					if _, err := b.Write(buf); err != nil {
						return
					}
				}
			}()
			tx.wait(t, Duration)
			f := tx.totals(t).Flows[0]
			want := result.CallLatency{Sum: 300 * int64(each), Min: int64(each), Max: int64(each)}
			if f.Blocks != 300 || *f.IO.Latency != want || f.IO.Completions != 600 || f.Total.Bytes != 600*size {
				t.Errorf("%d exchanges, %+v, %+v", f.Blocks, f.IO, f.IO.Latency)
			}
			tx.Close()
			b.Close()
			<-done
		})
	}
}

// A datagram without an answer is given up after two seconds; the next message is sent, and
// an answer that comes late is not taken for its.
func TestRoundTripLoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := net.Pipe()
		tx := start(t, Config{
			End: result.Client, Transport: plan.UDP, BlockSize: 50, Message: RoundTrip, Blocks: 3,
		}, []Flow{{ID: 1, Direction: result.Up, Conn: osnet.NewConn(a), Send: true}})
		buf := make([]byte, 50)
		var at []time.Duration
		for i := range 3 {
			if _, err := io.ReadFull(b, buf); err != nil {
				t.Fatal(err)
			}
			at = append(at, time.Since(tx.t0))
			if i != 1 {
				if _, err := b.Write(buf); err != nil {
					t.Fatal(err)
				}
			}
		}
		tx.wait(t, Blocks)
		f := tx.totals(t).Flows[0]
		if f.Blocks != 2 || *f.Total.Packets != 3 || at[2]-at[1] != 2*time.Second || f.IO.Completions != 5 {
			t.Errorf("%d exchanges, %d datagrams at %v, %+v", f.Blocks, *f.Total.Packets, at, f.IO)
		}
		tx.told(t, "message-unanswered", 1)
		tx.Close()
		b.Close()
	})
}

// Nobody listens: the flow ends, as it does with datagrams of any kind.
func TestRoundTripRefused(t *testing.T) {
	a, b := connected(t, plan.UDP, 1)
	closeAll(b)
	tx := start(t, Config{End: result.Client, Transport: plan.UDP, BlockSize: 50, Message: RoundTrip}, flowsOf(a, result.Up, true))
	poll(t, "the flow's end", func() bool { return tx.streams[0].over.Load() })
	if f := tx.totals(t).Flows[0]; !errors.Is(f.Err, errRefused) {
		t.Errorf("%v", f.Err)
	}
}

// Both ends leave at once when they are told to, whatever they wait for.
func TestMessagesStop(t *testing.T) {
	for _, transport := range []plan.Transport{plan.TCP, plan.UDP} {
		for _, mode := range []MessageMode{RoundTrip, Jitter} {
			a, b := connected(t, transport, 2)
			c, d := connected(t, transport, 2)
			cfg := Config{End: result.Client, Transport: transport, BlockSize: 10_000, Message: mode}
			tx, rx := start(t, cfg, flowsOf(a, result.Up, true)), start(t, cfg, flowsOf(d, result.Up, false))
			within(t, 20*time.Second, "the end", func() {
				tx.totals(t)
				rx.StopReceive(true)
				rx.totals(t)
			})
			closeAll(b)
			closeAll(c)
		}
	}
}

// The portable way leaves as well.
func TestMessagesStopEverywhere(t *testing.T) {
	for _, transport := range []plan.Transport{plan.TCP, plan.UDP} {
		for _, send := range []bool{true, false} {
			synctest.Test(t, func(t *testing.T) {
				a, b := net.Pipe()
				e := start(t, Config{
					End: result.Client, Transport: transport, BlockSize: 100, Message: RoundTrip,
				}, []Flow{{ID: 1, Direction: result.Up, Conn: osnet.NewConn(a), Send: send}})
				synctest.Wait() // it waits
				began := time.Now()
				if f := e.totals(t).Flows[0]; f.Err != nil || f.Blocks != 0 || time.Since(began) > 250*time.Millisecond {
					t.Errorf("%+v after %v", f, time.Since(began))
				}
				e.Close()
				b.Close()
			})
		}
	}
}

// Budgets hold over both ways, and the end of the other end is the flow's.
func TestRoundTripBudget(t *testing.T) {
	a, b := pairs(t, 1)
	rx := start(t, Config{End: result.Server, BlockSize: 100, Message: RoundTrip, Fill: 'A'}, flowsOf(b, result.Up, false))
	tx := start(t, Config{End: result.Client, BlockSize: 100, Message: RoundTrip, Fill: 'A', MaxBytes: 10_050}, flowsOf(a, result.Up, true))
	tx.wait(t, Budget)
	if n := sum(tx.totals(t)); n < 9_900 || n > 10_100 {
		t.Errorf("moved %d bytes", n)
	}
	tx.Close()
	rx.wait(t, PeerClosed)
	a, b = pairs(t, 1)
	closeAll(b)
	tx = start(t, Config{End: result.Client, BlockSize: 100, Message: RoundTrip}, flowsOf(a, result.Up, true))
	tx.wait2(t, PeerClosed)
}

// wait2 is wait for an end that may have an error.
func (e *end) wait2(t *testing.T, want Reason) {
	t.Helper()
	within(t, 30*time.Second, "Wait", func() {
		if got, _ := e.Wait(t.Context()); got != want {
			t.Errorf("%v, want %v", got, want)
		}
	})
}

// One block a period, on a schedule that begins with the test; what was late is not made up.
func TestSpacing(t *testing.T) {
	for _, mode := range []MessageMode{"", Jitter, RoundTrip} {
		for _, transport := range []plan.Transport{plan.TCP, plan.UDP} {
			synctest.Test(t, func(t *testing.T) {
				const period = 20 * time.Millisecond
				a, b := net.Pipe()
				tx := start(t, Config{
					End: result.Client, Transport: transport, BlockSize: 100, Message: mode, Spacing: period, Blocks: 50,
				}, []Flow{{ID: 1, Direction: result.Up, Conn: osnet.NewConn(a), Send: true}})
				buf := make([]byte, 100)
				var at []time.Duration
				for i := range 50 {
					if i == 10 {
						time.Sleep(5*period - period/4) // of the next, three quarters of a period are left
					}
					if _, err := io.ReadFull(b, buf); err != nil {
						t.Fatal(err)
					}
					at = append(at, time.Since(tx.t0))
					if mode == RoundTrip {
						if _, err := b.Write(buf); err != nil {
							t.Fatal(err)
						}
					}
				}
				tx.wait(t, Blocks)
				for i, d := range at {
					want := time.Duration(i) * period
					switch {
					case i == 10: // it was under way while the peer slept: since the ninth was read
						want = 9*period + 5*period - period/4
					case i > 10:
						want += 3 * period
					}
					if d != want {
						t.Errorf("%s over %s: block %d at %v, want %v", mode, transport, i, d, want)
					}
				}
				f := tx.totals(t).Flows[0]
				tx.told(t, "spacing-missed", 1)
				if p := tx.pathNow(); p.Pacing != "sleep" {
					t.Errorf("%+v", p)
				}
				if transport == plan.UDP {
					if l := f.UDP.Sent.Late; l == nil || l.N != 50 || l.Max != 0 {
						t.Errorf("%+v", l)
					}
				}
				tx.Close()
				b.Close()
			})
		}
	}
}

// Bitrate keeps messages whole.
func TestMessagesArePaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := net.Pipe()
		tx := start(t, Config{
			End: result.Client, BlockSize: 1000, Message: Jitter, Fill: 'A', Bitrate: 8000, Blocks: 5,
		}, []Flow{{ID: 1, Direction: result.Up, Conn: osnet.NewConn(a), Send: true}})
		buf := make([]byte, 2000)
		for i := range 5 {
			n, err := b.Read(buf)
			if d := time.Since(tx.t0); n != 1000 || err != nil || d != time.Duration(i)*time.Second {
				t.Fatalf("%d bytes at %v, %v", n, d, err)
			}
		}
		tx.wait(t, Blocks)
		tx.totals(t)
		tx.Close()
		b.Close()
	})
}

func TestMessagesAreChecked(t *testing.T) {
	for _, cfg := range []Config{
		{Message: "other"},
		{Message: Jitter, BlockSize: 19},
		{Message: Jitter, BlockSize: 19, Transport: plan.UDP},
		{Message: RoundTrip, BlockSize: 100, Transport: plan.UDP, UDP: UDPConfig{Wide: true}},
		{Spacing: -1},
		{Spacing: 1, Source: bytes.NewReader(nil)},
		{Message: RoundTrip, Sink: io.Discard},
	} {
		var fault *plan.FieldError
		if _, err := New(cfg, nil); !errors.As(err, &fault) {
			t.Errorf("%+v is possible: %v", cfg, err)
		}
	}
}

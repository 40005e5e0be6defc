package traffic

import (
	"context"
	"math"
	"net"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/fullbore-net/fullbore/internal/datagram"
	"github.com/fullbore-net/fullbore/internal/osnet"
	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/result"
)

// script is a peer made by hand: it writes the datagrams that a test wants to an
// engine's receiver, one at a time, and waits until each was counted.
type script struct {
	t    *testing.T
	c    net.Conn
	e    *end
	cfg  UDPConfig
	size int
	sent int64
}

func newScript(t *testing.T, cfg Config) *script {
	t.Helper()
	local, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	peer, err := net.DialUDP("udp4", nil, local.LocalAddr().(*net.UDPAddr))
	if err != nil {
		t.Fatal(err)
	}
	at := local.LocalAddr().(*net.UDPAddr)
	local.Close()
	mine, err := net.DialUDP("udp4", at, peer.LocalAddr().(*net.UDPAddr))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { peer.Close() })
	cfg.End, cfg.Transport = result.Server, plan.UDP
	e := start(t, cfg, flowsOf([]*osnet.Conn{osnet.NewConn(mine)}, result.Up, false))
	return &script{t: t, c: peer, e: e, cfg: cfg.UDP, size: cfg.BlockSize}
}

// counted is how many datagrams the receiver has looked at.
func (s *script) counted() int64 {
	rx := s.e.streams[0].rx
	rx.mu.Lock()
	defer rx.mu.Unlock()
	return rx.got.kernel + rx.got.user
}

func (s *script) raw(b []byte) {
	s.t.Helper()
	if _, err := s.c.Write(b); err != nil {
		s.t.Fatal(err)
	}
	s.sent++
	poll(s.t, "the datagram's arrival", func() bool { return s.counted() == s.sent })
}

// send sends sequence numbers as they are on the wire, with the time ns in the header.
func (s *script) send(at int64, seqs ...uint64) {
	s.t.Helper()
	for _, seq := range seqs {
		b := make([]byte, s.size)
		datagram.PutHeader(b, s.cfg.Wide, seq, at)
		if s.cfg.Nonce != 0 {
			datagram.PutExt(b, at, s.cfg.Nonce)
		}
		s.raw(b)
	}
}

func (s *script) finish() FlowTotal {
	s.e.StopReceive(true)
	t := s.e.totals(s.t)
	checkDatagrams(s.t, t, s.e.rows.intervals())
	return t.Flows[0]
}

// iperf3's figures and ours for sequences made by hand (spec protocol §8.1).
func TestScriptedSequences(t *testing.T) {
	for _, c := range []struct {
		name                      string
		seqs                      []uint64
		packets, lost, disorder   int64 // iperf3
		first, dup, reord, extent int64
	}{
		{"gap", []uint64{1, 2, 5, 6}, 6, 2, 0, 4, 0, 0, 0},
		{"swapped", []uint64{1, 3, 2, 4}, 4, 0, 1, 4, 0, 1, 1},
		{"duplicate", []uint64{1, 2, 2, 3}, 3, 0, 1, 3, 1, 0, 0},
		{"loss before the first", []uint64{3, 4}, 4, 2, 0, 2, 0, 0, 0},
		{"the first again", []uint64{1, 2, 1}, 2, 0, 1, 2, 1, 0, 0},
		{"late by three", []uint64{1, 3, 4, 5, 2}, 5, 0, 1, 5, 0, 1, 3},
		{"a duplicate takes a loss back with iperf3, not with us", []uint64{1, 3, 3}, 3, 0, 1, 2, 1, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newScript(t, Config{BlockSize: 100, Interval: time.Hour})
			s.send(1e9, c.seqs...)
			f := s.finish()
			u := f.UDP.Received
			if *f.Total.Packets != c.packets || *f.Total.Lost != c.lost || *f.Total.OutOfOrder != c.disorder {
				t.Errorf("iperf3's: packets %d, lost %d, out of order %d; want %d, %d, %d",
					*f.Total.Packets, *f.Total.Lost, *f.Total.OutOfOrder, c.packets, c.lost, c.disorder)
			}
			if u.Packets != c.first || u.Duplicates != c.dup || u.Reordered != c.reord || u.MaxExtent != c.extent {
				t.Errorf("ours: %+v", u)
			}
			if f.Total.Bytes != 100*int64(len(c.seqs)) || u.Bytes != 100*c.first {
				t.Errorf("%d bytes, %d of them distinct", f.Total.Bytes, u.Bytes)
			}
		})
	}
}

// What is not of this test is not counted: another size, another nonce, no header.
func TestForeignDatagrams(t *testing.T) {
	s := newScript(t, Config{BlockSize: 100, Interval: time.Hour, UDP: UDPConfig{Wide: true, Nonce: 99}})
	s.send(1e9, 1, 2)
	s.raw(make([]byte, 99))
	s.raw(make([]byte, 101))
	s.raw(make([]byte, 2000))
	s.raw(nil)
	other := make([]byte, 100)
	datagram.PutHeader(other, true, 3, 1e9)
	datagram.PutExt(other, 1e9, 98)
	s.raw(other)
	garbage := make([]byte, 100)
	for i := range garbage {
		garbage[i] = 0xff
	}
	s.raw(garbage)
	far := make([]byte, 100)
	datagram.PutHeader(far, true, 1<<40, 1e9)
	datagram.PutExt(far, 1e9, 99)
	s.raw(far)
	s.send(1e9, 3)
	f := s.finish()
	u := f.UDP.Received
	if u.Packets != 3 || u.Foreign != 7 || f.Total.Bytes != 300 || *f.Total.Lost != 0 || u.Highest != 3 {
		t.Errorf("%+v, total %+v; want 3 of this test and 7 foreign", u, f.Total)
	}
}

// A 32-bit counter wraps without loss, and the total goes on (field case F03).
func TestWireSequenceWraps(t *testing.T) {
	s := newScript(t, Config{BlockSize: 16, Interval: time.Hour, UDP: UDPConfig{FirstSeq: math.MaxUint32 - 49}})
	for i := range uint64(100) {
		s.send(1e9, uint64(uint32(math.MaxUint32-49+i)))
	}
	f := s.finish()
	if u := f.UDP.Received; u.Packets != 100 || u.Highest != 1<<32+49 || *f.Total.Lost != 0 || *f.Total.OutOfOrder != 0 || *f.Total.Packets != 100 {
		t.Errorf("%+v, total %+v", u, f.Total)
	}
}

// A clock that is set at the sender does not ruin the jitter (field case F04).
func TestSenderClockStep(t *testing.T) {
	for _, step := range []int64{3600e9, -3600e9} {
		s := newScript(t, Config{BlockSize: 64, Interval: time.Hour})
		for i := range int64(100) {
			at := 10_000e9 + osnet.Monotonic()
			if i >= 50 {
				at += step
			}
			s.send(at, uint64(i+1))
		}
		f := s.finish()
		if j := *f.Total.Jitter; j > 0.5 || f.UDP.Received.Outliers != 1 {
			t.Errorf("step %d: jitter %v s, %d outliers", step, j, f.UDP.Received.Outliers)
		}
	}
}

// The omitted part is a sample, nothing is reset, and loss on both sides of its end is
// told apart (field case F01).
func TestOmittedDatagrams(t *testing.T) {
	s := newScript(t, Config{BlockSize: 50, Interval: 50 * time.Millisecond, Omit: 100 * time.Millisecond})
	s.send(1e9, 1, 2, 5)
	poll(t, "the end of the omitted part", s.e.measured.Load)
	s.e.Snapshot() // waits for the sample that is being taken
	s.send(1e9, 6, 8, 9)
	f := s.finish()
	u := f.UDP.Received
	if *f.Total.Packets != 9 || *f.Total.OmittedPackets != 5 || *f.Total.Lost != 3 || *f.Total.OmittedLost != 2 {
		t.Errorf("total %d packets, %d omitted, %d lost, %d omitted", *f.Total.Packets, *f.Total.OmittedPackets, *f.Total.Lost, *f.Total.OmittedLost)
	}
	if u.Packets != 3 || u.Bytes != 150 || f.Total.Bytes != 150 || f.OmittedBytes != 150 || u.Periods == nil || u.Periods.Runs != 1 || u.Highest != 9 {
		t.Errorf("%+v, periods %+v", u, u.Periods)
	}
}

// A row that took for lost what a later row sees arrive is not made up for with a
// negative one.
func TestRowsAreNeverNegative(t *testing.T) {
	s := newScript(t, Config{BlockSize: 50, Interval: 50 * time.Millisecond})
	rows := func(n int) {
		poll(t, "a row", func() bool { return len(s.e.rows.intervals()) >= n })
	}
	s.send(1e9, 1, 5) // 3 lost
	rows(len(s.e.rows.intervals()) + 1)
	s.send(1e9, 2, 3, 4) // none
	rows(len(s.e.rows.intervals()) + 1)
	s.send(1e9, 9) // 3 lost again, already told
	f := s.finish()
	if *f.Total.Lost != 3 || f.UDP.Received.Packets != 6 {
		t.Errorf("lost %d, received %d", *f.Total.Lost, f.UDP.Received.Packets)
	}
	var lost int64
	for _, iv := range s.e.rows.intervals() {
		lost += *iv.Streams[0].Lost
		if *iv.Sums[0].Lost != *iv.Streams[0].Lost || *iv.Sums[0].Packets != *iv.Streams[0].Packets {
			t.Errorf("row %d: sums %+v", iv.Index, iv.Sums[0])
		}
	}
	if lost != 3 {
		t.Errorf("rows have %d lost, want 3", lost)
	}
}

// Stamps are brought onto the engine's clock; where the time of day was set between two
// readings, or a stamp lies in the future, the reader's time is taken.
func TestStampClock(t *testing.T) {
	const ms = int64(time.Millisecond)
	var c stampClock
	if _, ok := c.at(5, 10); ok {
		t.Error("a stamp was believed before the offset was known")
	}
	c.set(-1000*ms, 0)
	if at, ok := c.at(1005*ms, 6*ms); !ok || at != 5*ms {
		t.Errorf("at %d, %v; want 5 ms", at, ok)
	}
	if at, ok := c.at(1006*ms+5000, 6*ms); !ok || at != 6*ms {
		t.Errorf("a stamp 5 µs ahead: %d, %v; want now", at, ok)
	}
	if _, ok := c.at(1010*ms, 6*ms); ok {
		t.Error("a stamp of the future was believed")
	}
	c.set(-1000*ms+10*ms/2000, 10*ms) // slewed by 500 ppm
	if _, ok := c.at(1009*ms, 10*ms); !ok {
		t.Error("a slewed clock was taken for a step")
	}
	c.set(-1000*ms-3600_000*ms, 20*ms)
	if _, ok := c.at(1009*ms, 20*ms); ok {
		t.Error("a stamp was believed across a step")
	}
	c.set(-1000*ms-3600_000*ms, 30*ms)
	if at, ok := c.at(3601_029*ms, 30*ms); !ok || at != 29*ms {
		t.Errorf("after a step: %d, %v; want 29 ms", at, ok)
	}
}

// Claims of whole datagrams: what is handed out is what the limit and the budget hold,
// and everything not sent comes back.
func TestClaims(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.Int64Range(16, 1500).Draw(t, "size")
		limit := rapid.Int64Range(0, 50).Draw(t, "limit")
		budget := rapid.Int64Range(0, 100_000).Draw(t, "budget")
		e := &Engine{fired: make(chan struct{})}
		e.cfg.BlockSize, e.cfg.Blocks, e.cfg.Transport = int(size), limit, plan.UDP
		e.q.block, e.q.budgeted = size, budget > 0
		e.q.budget.Store(budget)
		if limit > 0 {
			e.q.arm(limit, true)
		}
		most := int64(math.MaxInt64)
		if limit > 0 {
			most = limit
		}
		if budget > 0 {
			most = min(most, budget/size)
		}
		s := &stream{e: e, tx: &udpSender{pace: bursts{full: 8, planned: 8, late: -1}, late: newLateness()}}
		var sent int64
		for range 200 {
			n, wait := s.nextDatagrams(0, 8)
			if n == 0 {
				if wait < 0 {
					break
				}
				continue
			}
			took := rapid.IntRange(0, n).Draw(t, "took")
			sent += int64(took)
			s.sentDatagrams(took, 0, 1)
		}
		if sent > most {
			t.Fatalf("sent %d, limit %d, budget for %d", sent, limit, budget/size)
		}
		if sent == most {
			s.nextDatagrams(0, 8)
		}
		if r, _ := e.Wait(ended{t.Context()}); sent == most && r == Cancelled {
			t.Fatalf("sent all %d and no rule fired", sent)
		}
		s.releaseDatagrams()
		if limit > 0 && e.q.left.Load() != limit-sent || e.q.open.Load() != 0 {
			t.Fatalf("%d left of %d after %d, %d open", e.q.left.Load(), limit, sent, e.q.open.Load())
		}
		if budget > 0 && e.q.budget.Load() != budget-sent*size {
			t.Fatalf("budget %d of %d left after %d", e.q.budget.Load(), budget, sent)
		}
	})
}

// ended is a context that is over.
type ended struct{ context.Context }

func (ended) Done() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}
func (ended) Err() error { return context.Canceled }

package traffic

import (
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fullbore-net/fullbore/internal/datagram"
	"github.com/fullbore-net/fullbore/internal/osnet"
	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/result"
)

// virtualUDP runs the portable sender and receiver in virtual time over an in-memory
// connection and returns both totals and rows.
func virtualUDP(t *testing.T, cfg Config, steer func(*Engine)) (tx, rx Totals, txRows, rxRows []result.Interval) {
	cfg.Transport, cfg.End = plan.UDP, result.Client
	synctest.Test(t, func(t *testing.T) {
		a, b := net.Pipe()
		flow := func(c net.Conn, send bool) []Flow {
			return []Flow{{ID: 1, Socket: 5, Direction: result.Up, Conn: osnet.NewConn(c), Send: send}}
		}
		r := start(t, Config{
			End: result.Server, Transport: plan.UDP, BlockSize: cfg.BlockSize, Interval: cfg.Interval, Omit: cfg.Omit,
			UDP: cfg.UDP, Limited: cfg.Bytes > 0 || cfg.Blocks > 0, CountCalls: cfg.CountCalls, TimeCalls: cfg.TimeCalls,
		}, flow(b, false))
		s := start(t, cfg, flow(a, true))
		if steer != nil {
			steer(s.Engine)
		}
		reason := Duration
		switch {
		case cfg.Bytes > 0:
			reason = Bytes
		case cfg.Blocks > 0:
			reason = Blocks
		}
		s.wait(t, reason)
		s.StopSend()
		r.StopReceive(true)
		tx, rx = s.totals(t), r.totals(t)
		checkDatagrams(t, tx, s.rows.intervals())
		checkDatagrams(t, rx, r.rows.intervals())
		txRows, rxRows = s.rows.intervals(), r.rows.intervals()
		s.Close()
		r.Close()
	})
	return tx, rx, txRows, rxRows
}

// checkDatagrams checks what holds in every run: counted rows add up to the totals, and
// nothing is negative or more than there can be.
func checkDatagrams(tb testing.TB, tot Totals, rows []result.Interval) {
	tb.Helper()
	for i, f := range tot.Flows {
		var packets, omitted, lost, disorder int64
		for _, iv := range rows {
			s := iv.Streams[i]
			if iv.Omitted {
				omitted += *s.Packets
				continue
			}
			packets += *s.Packets
			if *s.Packets < 0 || s.Bytes < 0 {
				tb.Errorf("flow %d: row %d has %d packets, %d bytes", f.ID, iv.Index, *s.Packets, s.Bytes)
			}
			if f.Send || f.Total.Lost == nil { // no header: nothing is known
				continue
			}
			if *s.Lost < 0 || *s.OutOfOrder < 0 || *s.Jitter < 0 {
				tb.Errorf("flow %d: row %d: lost %d, out of order %d, jitter %v", f.ID, iv.Index, *s.Lost, *s.OutOfOrder, *s.Jitter)
			}
			lost += *s.Lost
			disorder += *s.OutOfOrder
		}
		p := *f.Total.Packets - *f.Total.OmittedPackets
		if packets != p {
			tb.Errorf("flow %d: rows have %d packets, the total %d", f.ID, packets, p)
		}
		if omitted != *f.Total.OmittedPackets && len(rows) > 1 {
			tb.Errorf("flow %d: omitted rows have %d packets, the total %d", f.ID, omitted, *f.Total.OmittedPackets)
		}
		if f.Send || f.Total.Lost == nil {
			continue
		}
		l := *f.Total.Lost - *f.Total.OmittedLost
		if l < 0 || l > p || lost < l {
			tb.Errorf("flow %d: lost %d of %d, rows have %d", f.ID, l, p, lost)
		}
		if disorder != *f.Total.OutOfOrder {
			tb.Errorf("flow %d: rows have %d out of order, the total %d", f.ID, disorder, *f.Total.OutOfOrder)
		}
	}
}

func TestPortableDatagramsInVirtualTime(t *testing.T) {
	tx, rx, rows, rxRows := virtualUDP(t, Config{
		BlockSize: 1400, Bitrate: 1_120_000, Interval: time.Second, Duration: 10 * time.Second, Omit: 2 * time.Second,
		UDP: UDPConfig{Wide: true, Nonce: 42},
	}, nil)
	s, r := tx.Flows[0], rx.Flows[0]
	if *s.Total.Packets != 1200 || *s.Total.OmittedPackets != 200 || s.UDP.Sent.Packets != 1000 || s.Total.Bytes != 1_400_000 {
		t.Errorf("sent %d packets, %d omitted, %d in the measured time, %d bytes; want 1200, 200, 1000, 1400000",
			*s.Total.Packets, *s.Total.OmittedPackets, s.UDP.Sent.Packets, s.Total.Bytes)
	}
	u := r.UDP.Received
	if *r.Total.Packets != 1200 || *r.Total.OmittedPackets != 200 || u.Packets != 1000 || u.Bytes != 1_400_000 || u.Foreign != 0 || u.Highest != 1200 {
		t.Errorf("received %+v, total %d packets, %d omitted", u, *r.Total.Packets, *r.Total.OmittedPackets)
	}
	if *r.Total.Jitter != 0 || u.PDV == nil || u.PDV.Max != 0 || u.Jitter == nil || u.Jitter.Final != 0 {
		t.Errorf("jitter %v, %+v, PDV %+v: want none in virtual time", *r.Total.Jitter, u.Jitter, u.PDV)
	}
	if l := s.UDP.Sent.Late; l == nil || l.N != 1000 || l.Max != 0 {
		t.Errorf("lateness %+v, want 1000 bursts on time", l)
	}
	if s.UDP.Sent.PlannedBurst != 1 || s.UDP.Sent.LargestBurst != 1 {
		t.Errorf("bursts %+v", s.UDP.Sent)
	}
	if len(rows) != 12 || len(rxRows) != 12 {
		t.Fatalf("%d and %d rows, want 12", len(rows), len(rxRows))
	}
	for i := range rows {
		if n := *rows[i].Streams[0].Packets; n != 100 {
			t.Errorf("row %d: sent %d, want 100", i, n)
		}
		if n := *rxRows[i].Streams[0].Packets; n != 100 || *rxRows[i].Sums[0].Packets != 100 {
			t.Errorf("row %d: received %d, want 100", i, n)
		}
		if p := rxRows[i].Streams[0].UDP.PDV; p == nil || p.N != 100 {
			t.Errorf("row %d: PDV %+v, want that of 100 datagrams", i, p)
		}
	}
	if r.Total.End != 10 || s.Total.End != 10 {
		t.Errorf("ends %v and %v, want 10", s.Total.End, r.Total.End)
	}
	if tx.Path != (result.DataPath{Tx: "copy", Pacing: "sleep", Worker: "goroutine", Batch: "plain"}) {
		t.Errorf("path %+v", tx.Path)
	}
}

// Limits are exact: -k 10 is ten datagrams (field case F19), also with an omitted part.
func TestDatagramLimits(t *testing.T) {
	for _, c := range []struct {
		name          string
		bytes, blocks int64
		omit          time.Duration
		want          int64
	}{
		{"10 datagrams", 0, 10, 0, 10},
		{"10 after omit", 0, 10, time.Second, 10},
		{"a byte is a datagram", 1, 0, 0, 1},
		{"100 K", 100 << 10, 0, 0, 103},
	} {
		t.Run(c.name, func(t *testing.T) {
			tx, rx, _, _ := virtualUDP(t, Config{
				BlockSize: 1000, Bitrate: 1_000_000, Interval: time.Second, Bytes: c.bytes, Blocks: c.blocks, Omit: c.omit,
			}, nil)
			if n := tx.Flows[0].UDP.Sent.Packets; n != c.want {
				t.Errorf("sent %d, want %d", n, c.want)
			}
			if n := rx.Flows[0].UDP.Received.Packets; n != c.want {
				t.Errorf("received %d, want %d", n, c.want)
			}
		})
	}
}

func TestSteerDatagrams(t *testing.T) {
	_, _, rows, _ := virtualUDP(t, Config{
		BlockSize: 1250, Bitrate: 1_000_000, Interval: time.Second, Duration: 4 * time.Second,
	}, func(e *Engine) {
		time.Sleep(2 * time.Second)
		e.Steer(2_000_000)
	})
	for i, want := range []int64{100, 100, 200, 200} {
		if n := *rows[i].Streams[0].Packets; n < want-1 || n > want+1 {
			t.Errorf("row %d: %d datagrams, want %d", i, n, want)
		}
	}
}

// The tail is counted for loss and not for the rate; the receiver waits for silence, and
// for 2 s at most.
func TestTailInVirtualTime(t *testing.T) {
	for _, c := range []struct {
		name    string
		drain   time.Duration
		spacing time.Duration
		n       int
		tail    int64
		took    time.Duration
	}{
		{"nothing comes", 0, time.Hour, 0, 0, 200 * time.Millisecond},
		{"three more", 0, 100 * time.Millisecond, 3, 3, 500 * time.Millisecond},
		{"a long way", time.Second, 900 * time.Millisecond, 1, 1, 1900 * time.Millisecond},
		{"it never ends", 0, 100 * time.Millisecond, 50, 20, 2 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, b := net.Pipe()
				defer a.Close()
				e := start(t, Config{
					End: result.Server, Transport: plan.UDP, BlockSize: 100, Interval: 100 * time.Millisecond,
					UDP: UDPConfig{Drain: c.drain},
				}, []Flow{{ID: 1, Direction: result.Up, Conn: osnet.NewConn(b)}})
				seq := uint64(0)
				send := func() {
					d := make([]byte, 100)
					seq++
					datagram.PutHeader(d, false, seq, int64(seq))
					_, _ = a.Write(d)
				}
				send()
				send()
				time.Sleep(time.Second)
				sent := make(chan struct{})
				go func() {
					defer close(sent)
					for range c.n {
						time.Sleep(c.spacing)
						send()
					}
				}()
				begun := time.Now()
				e.StopReceive(true)
				// The silence is noticed by a read's deadline, 20 ms.
				if took := time.Since(begun); took < c.took || took > c.took+25*time.Millisecond {
					t.Errorf("took %v, want %v", took, c.took)
				}
				f := e.totals(t).Flows[0]
				u := f.UDP.Received
				if u.Tail != c.tail && u.Tail != c.tail-1 || u.Packets != 2+u.Tail || u.Bytes != 200 || f.Total.Bytes != 200 || f.Total.End != 1 {
					t.Errorf("%+v, total %+v; want a tail of %d that does not count for the rate", u, f.Total, c.tail)
				}
				if c.n <= 3 && u.Tail != c.tail {
					t.Errorf("tail %d, want %d", u.Tail, c.tail)
				}
				e.Close()
				a.Close()
				<-sent
			})
		})
	}
}

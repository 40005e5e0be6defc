package traffic

import (
	"errors"
	"fmt"
	"net"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fullbore-net/fullbore/internal/datagram"
	"github.com/fullbore-net/fullbore/internal/osnet"
	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/result"
)

// udpPairs returns n connected pairs of UDP sockets over loopback.
func udpPairs(tb testing.TB, n int) (a, b []*osnet.Conn) {
	tb.Helper()
	for range n {
		r, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
		if err != nil {
			tb.Fatal(err)
		}
		s, err := net.DialUDP("udp4", nil, r.LocalAddr().(*net.UDPAddr))
		if err != nil {
			tb.Fatal(err)
		}
		local := r.LocalAddr().(*net.UDPAddr)
		r.Close()
		c, err := net.DialUDP("udp4", local, s.LocalAddr().(*net.UDPAddr))
		if err != nil {
			tb.Fatal(err)
		}
		a, b = append(a, osnet.NewConn(s)), append(b, osnet.NewConn(c))
	}
	return a, b
}

// udpTest runs a sender and a receiver until the sender's limit.
func udpTest(tb testing.TB, n int, tx, rx Config) (sent, got Totals, txEnd, rxEnd *end) {
	tb.Helper()
	a, b := udpPairs(tb, n)
	tx.Transport, rx.Transport, tx.End, rx.End = plan.UDP, plan.UDP, result.Client, result.Server
	rx.BlockSize, rx.UDP.Wide, rx.UDP.Nonce, rx.UDP.FirstSeq, rx.UDP.Bare = tx.BlockSize, tx.UDP.Wide, tx.UDP.Nonce, tx.UDP.FirstSeq, tx.UDP.Bare
	rx.CountCalls, rx.TimeCalls = tx.CountCalls, tx.TimeCalls
	if rx.Bitrate == 0 {
		rx.Bitrate = tx.Bitrate
	}
	r, s := start(tb, rx, flowsOf(b, result.Up, false)), start(tb, tx, flowsOf(a, result.Up, true))
	want := Duration
	switch {
	case tx.Blocks > 0:
		want = Blocks
	case tx.Bytes > 0:
		want = Bytes
	}
	s.wait(tb, want)
	s.StopSend()
	r.StopReceive(true)
	sent, got = s.totals(tb), r.totals(tb)
	checkDatagrams(tb, sent, s.rows.intervals())
	checkDatagrams(tb, got, r.rows.intervals())
	for i := range sent.Flows {
		if sent.Flows[i].Err != nil || got.Flows[i].Err != nil {
			tb.Errorf("flow %d: %v, %v", i, sent.Flows[i].Err, got.Flows[i].Err)
		}
	}
	return sent, got, s, r
}

func sentPackets(t Totals) (n int64) {
	for _, f := range t.Flows {
		n += *f.Total.Packets - *f.Total.OmittedPackets
	}
	return n
}

func receivedPackets(t Totals) (n int64) {
	for _, f := range t.Flows {
		n += f.UDP.Received.Packets
	}
	return n
}

// Every path counts exactly: what was asked for is what is sent, and on a path that
// loses nothing what arrives.
func TestDatagramsAreExact(t *testing.T) {
	for _, c := range []struct {
		name    string
		flows   int
		size    int
		rate    int64
		blocks  int64
		udp     UDPConfig
		rx      plan.Offload
		batch   string // of the sender
		rxBatch string
	}{
		{"one, plain", 1, 1400, 11_200_000, 50, UDPConfig{}, "", "plain", "recvmmsg"},
		{"smallest, 64 bit", 1, 16, 128_000, 50, UDPConfig{Wide: true}, "", "plain", "recvmmsg"},
		{"extended", 1, 200, 1_600_000, 50, UDPConfig{Wide: true, Nonce: 7}, "", "plain", "recvmmsg"},
		{"offload to offload", 1, 1400, 0, 200, UDPConfig{}, "", "gso", "gro"},
		{"offload to plain", 1, 1400, 0, 200, UDPConfig{}, plan.OffloadOff, "gso", "recvmmsg"},
		{"batches", 1, 1400, 0, 200, UDPConfig{Offload: plan.OffloadOff}, "", "sendmmsg", "recvmmsg"},
		{"largest", 1, 65507, 0, 5, UDPConfig{}, "", "plain", "recvmmsg"},
		{"many", 20, 1000, 800_000, 200, UDPConfig{Wide: true, Nonce: 7}, "", "plain", "recvmmsg"},
		{"many, unpaced", 20, 1000, 0, 200, UDPConfig{}, "", "gso", "gro"},
		{"precise", 1, 1400, 11_200_000, 20, UDPConfig{Pacing: plan.PacingPrecise}, "", "plain", "recvmmsg"},
		{"frugal", 1, 1400, 112_000_000, 100, UDPConfig{Pacing: plan.PacingFrugal}, "", "gso", "gro"},
	} {
		t.Run(c.name, func(t *testing.T) {
			sent, got, _, _ := udpTest(t, c.flows,
				Config{BlockSize: c.size, Bitrate: c.rate, Blocks: c.blocks, UDP: c.udp, Interval: 100 * time.Millisecond},
				Config{UDP: UDPConfig{Offload: c.rx}, Interval: 100 * time.Millisecond, Limited: true})
			if n := sentPackets(sent); n != c.blocks {
				t.Errorf("sent %d, want %d", n, c.blocks)
			}
			if n := receivedPackets(got); n != c.blocks {
				t.Errorf("received %d, want %d", n, c.blocks)
			}
			if sum(sent) != c.blocks*int64(c.size) || sum(got) != sum(sent) {
				t.Errorf("sent %d bytes, received %d", sum(sent), sum(got))
			}
			for _, f := range got.Flows {
				u := f.UDP.Received
				if u.Duplicates+u.Reordered+u.Late+u.Foreign != 0 || *f.Total.Lost != 0 || u.Periods != nil {
					t.Errorf("flow %d: %+v", f.ID, u)
				}
				if u.Stamps != "kernel" && u.Packets > 0 {
					t.Errorf("flow %d: stamps %q", f.ID, u.Stamps)
				}
				if u.SocketDrops == nil || *u.SocketDrops != 0 {
					t.Errorf("flow %d: socket drops %v", f.ID, u.SocketDrops)
				}
			}
			if sent.Path.Batch != c.batch || got.Path.Batch != c.rxBatch {
				t.Errorf("batch %q and %q, want %q and %q", sent.Path.Batch, got.Path.Batch, c.batch, c.rxBatch)
			}
		})
	}
}

// A datagram that does not fit is an error that names what fits, once the kernel refused
// it twice: the first refusal may be a router's word about an earlier one. What the
// kernel merely had no room for is counted and passed over.
func TestRefusalsAreTold(t *testing.T) {
	a, b := udpPairs(t, 1)
	defer closeAll(b)
	usable, err := a[0].UsableDatagram()
	if err != nil {
		t.Fatal(err)
	}
	e := parked(t, Config{Transport: plan.UDP, BlockSize: 1400, Bitrate: 1_000_000_000}, flowsOf(a, result.Up, true))
	w := e.movers[0].(*udpTx)
	w.begin(0)
	l, u := &w.lanes[0], e.streams[0].tx
	per := int64(w.per())
	if next := w.refused(l, 10, unix.ENOBUFS, 5); next != 5 || u.refused.Load() != per || u.seq != 1 {
		t.Errorf("ENOBUFS: again at %d, %d refused, sequence %d; want at 5, %d and 1", next, u.refused.Load(), u.seq, per)
	}
	e.cfg.UDP.Iperf3 = true
	sent := &e.streams[0].ctr.bytes
	if w.refused(l, 10, unix.ENOBUFS, 5); u.seq != 1+uint64(per) || sent.Load() != 1400*per || u.refused.Load() != 2*per {
		t.Errorf("ENOBUFS as iperf3 counts: sequence %d, %d bytes sent, %d refused; want %d, %d and %d",
			u.seq, sent.Load(), u.refused.Load(), 1+per, 1400*per, 2*per)
	}
	if w.refused(l, 10, unix.EPERM, 5); u.seq != 1+uint64(per) || u.refused.Load() != 3*per {
		t.Errorf("EPERM: sequence %d, %d refused", u.seq, u.refused.Load())
	}
	if next := w.refused(l, 1, unix.EINTR, 6); next != 6 || u.refused.Load() != 3*per {
		t.Errorf("EINTR: again at %d, %d refused", next, u.refused.Load())
	}
	if next := w.refused(l, 1, unix.EMSGSIZE, 7); next != 7 || e.streams[0].failure() != nil {
		t.Errorf("the first EMSGSIZE: again at %d, %v", next, e.streams[0].failure())
	}
	var long *TooLongError
	if next := w.refused(l, 1, unix.EMSGSIZE, 8); next != -1 || !errors.As(e.streams[0].failure(), &long) || *long != (TooLongError{1400, usable}) {
		t.Errorf("the second EMSGSIZE: again at %d, %v", next, e.streams[0].failure())
	}
	if got, want := long.Error(), fmt.Sprintf("traffic: datagrams of 1400 bytes do not fit the path: usable are %d", usable); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// A receiver that did not run for longer than the silence still counts what came before:
// the silence is proved by a read that finds nothing.
func TestTailOfALateReceiver(t *testing.T) {
	for _, flows := range []int{1, 40} {
		a, b := udpPairs(t, flows)
		defer closeAll(a)
		e := parked(t, Config{End: result.Server, Transport: plan.UDP, BlockSize: 100}, flowsOf(b, result.Up, false))
		const each = 3*plainMessages + 1 // several calls
		d := make([]byte, 100)
		for _, c := range a {
			for seq := range uint64(each) {
				datagram.PutHeader(d, false, seq+1, int64(seq))
				if _, err := c.Net().Write(d); err != nil {
					t.Fatal(err)
				}
			}
		}
		e.alignClock()
		e.u.stop.Store(e.now())
		e.t0 = e.t0.Add(-time.Second) // it is a second later
		e.drain.Store(true)
		e.stopRecv.Store(true)
		for _, m := range e.movers {
			m.run()
		}
		for i, s := range e.streams {
			if got := s.rx.acc.Counts().First; got != each {
				t.Errorf("%d flows: flow %d counted %d of %d", flows, i, got, each)
			}
		}
	}
}

// A burst of several calls is cut between super-packets, so that no call ends with one
// that is nearly empty.
func TestCallOf(t *testing.T) {
	if !osnet.Capabilities().Segment {
		t.Skip("this kernel has no UDP_SEGMENT (Linux 4.18)")
	}
	for _, c := range []struct {
		size    int
		planned int64
		offload plan.Offload
		want    int
	}{
		{1448, 1, "", 1},
		{1448, 44, "", 44},
		{1448, 90, "", 90},
		{1448, 432, "", 90},
		{1472, 425, "", 88},
		{1472, 425, plan.OffloadOff, 89},
		{64, 9766, "", 512},
		{65507, 10, "", 2},
		{16, 1 << 40, plan.OffloadOff, 512},
	} {
		w := &udpTx{e: &Engine{cfg: Config{BlockSize: c.size, UDP: UDPConfig{Offload: c.offload}}}}
		if got := w.callOf(c.planned); got != c.want {
			t.Errorf("%d bytes, burst of %d, offload %q: a call of %d, want %d", c.size, c.planned, c.offload, got, c.want)
		}
	}
}

package traffic

import (
	"net"
	"testing"
	"time"

	"github.com/fullbore-net/fullbore/internal/osnet"
	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/result"
)

// Streams that share the server's one socket, as on Windows, count as exactly, both ways.
func TestSharedSocket(t *testing.T) {
	const flows, blocks = 3, 90
	pc, shared := sharedServer(t)
	var mine, theirs []*osnet.Conn
	for range flows {
		c, err := net.DialUDP("udp4", nil, net.UDPAddrFromAddrPort(pc.LocalAddr()))
		if err != nil {
			t.Fatal(err)
		}
		s, err := shared.Open(pc.LocalAddr().Addr(), c.LocalAddr().(*net.UDPAddr).AddrPort())
		if err != nil {
			t.Fatal(err)
		}
		mine, theirs = append(mine, osnet.NewConn(c)), append(theirs, s)
	}
	flowsFor := func(conns []*osnet.Conn, client bool) []Flow {
		out := flowsOf(conns, result.Up, client)
		out[0].Direction, out[0].Send = result.Down, !client // the first comes back
		return out
	}
	cfg := Config{
		Transport: plan.UDP, BlockSize: 300, Interval: 50 * time.Millisecond, Limited: true, Bitrate: 2_400_000,
		UDP: UDPConfig{Wide: true, Nonce: 3},
	}
	txCfg, rxCfg := cfg, cfg
	txCfg.End, rxCfg.End = result.Client, result.Server
	rxCfg.Blocks = blocks // its own flow's; what it receives may end it as well
	rx := start(t, rxCfg, flowsFor(theirs, false))
	tx := start(t, txCfg, flowsFor(mine, true))
	rx.wait(t, Blocks)
	tx.StopSend()
	rx.StopSend()
	rx.StopReceive(true)
	tx.StopReceive(true)
	tt, rt := tx.totals(t), rx.totals(t)
	checkDatagrams(t, tt, tx.rows.intervals())
	checkDatagrams(t, rt, rx.rows.intervals())
	for i := range flows {
		s, r := tt.Flows[i], rt.Flows[i]
		if i == 0 {
			s, r = r, s
		}
		u := r.UDP.Received
		if u.Packets != *s.Total.Packets || u.Packets == 0 || u.Foreign != 0 || *r.Total.Lost != 0 {
			t.Errorf("flow %d: sent %d, received %+v", i, *s.Total.Packets, u)
		}
		if u.Stamps != "kernel" {
			t.Errorf("flow %d: stamps %q", i, u.Stamps)
		}
	}
	if rt.Path.Worker != "goroutine" || rt.Path.Batch != "plain/plain" {
		t.Errorf("path %+v", rt.Path)
	}
}

// sharedServer is a socket whose datagrams are given to the streams that share it.
func sharedServer(t *testing.T) (*osnet.PacketConn, *osnet.Shared) {
	t.Helper()
	u, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	pc, err := osnet.NewPacketConn(u)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := pc.GrowReceive(1 << 20); err != nil {
		t.Fatal(err)
	}
	shared := osnet.NewShared(pc)
	done := make(chan struct{})
	go func() {
		defer close(done)
		b := make([]byte, 2048)
		for {
			n, from, _, at, err := pc.Read(b)
			if err != nil {
				return
			}
			shared.Deliver(from, b[:n], at)
		}
	}()
	t.Cleanup(func() {
		pc.Close()
		<-done
	})
	return pc, shared
}

// On a system without batches the portable worker joins and cuts as the fast one does.
func TestPortableOffload(t *testing.T) {
	a, b := udpPairs(t, 1)
	cfg := Config{Transport: plan.UDP, BlockSize: 1000, Interval: time.Hour, Limited: true}
	txCfg, rxCfg := cfg, cfg
	txCfg.End, txCfg.Blocks, rxCfg.End = result.Client, 256, result.Server
	rx, tx := portably(t, rxCfg, flowsOf(b, result.Up, false)), portably(t, txCfg, flowsOf(a, result.Up, true))
	tx.wait(t, Blocks)
	rx.StopReceive(true)
	tt, rt := tx.totals(t), rx.totals(t)
	if n := receivedPackets(rt); n != 256 || sentPackets(tt) != 256 {
		t.Errorf("sent %d, received %d, want 256", sentPackets(tt), n)
	}
	if tt.Path.Batch != "gso" || rt.Path.Batch != "gro" || !rt.Path.Uncut {
		t.Errorf("paths %+v and %+v", tt.Path, rt.Path)
	}
}

// portably starts an engine with portable workers although the flows have descriptors.
func portably(t *testing.T, cfg Config, flows []Flow) *end {
	t.Helper()
	r := &rows{}
	cfg.Out = r
	cfg.UDP.FirstSeq = 1
	e := &Engine{cfg: cfg, fired: make(chan struct{}), halt: make(chan struct{}), clockDone: make(chan struct{})}
	for _, f := range flows {
		e.streams = append(e.streams, &stream{Flow: f, e: e})
	}
	e.q.block = int64(cfg.BlockSize)
	e.receiveTarget.Store(noStop)
	if err := e.prepareUDP(); err != nil {
		t.Fatal(err)
	}
	for i, s := range e.streams {
		e.movers = append(e.movers, newUDPPortable(s, i))
	}
	e.setRate(cfg.Bitrate)
	t.Cleanup(e.Close)
	e.Start()
	return &end{e, r}
}

package iperf3

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/fullbore-net/fullbore/internal/osnet"
	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/internal/proto/ext"
	"github.com/fullbore-net/fullbore/internal/proto/probe"
	"github.com/fullbore-net/fullbore/internal/traffic"
	"github.com/fullbore-net/fullbore/result"
)

// probeServer answers the probe datagrams of all tests of a Server
// (docs/wire-extension.md §11).
type probeServer struct {
	r *probe.Responder
}

func newProbeServer() *probeServer { return &probeServer{r: probe.NewResponder()} }

// datagram takes a datagram that a wildcard socket caught; false = it is none of ours. to
// is the local address it was sent to, at the kernel's stamp (CLOCK_REALTIME, 0 = none). It
// may be called by several goroutines.
func (p *probeServer) datagram(pc *osnet.PacketConn, b []byte, from netip.AddrPort, to netip.Addr, at int64) bool {
	if !probe.IsRequest(b) {
		return false
	}
	var room [1500]byte
	now := osnet.Monotonic()
	received, kernel := monotonicOf(at, now)
	out := p.r.Answer(room[:0], b, from, probe.Arrival{Received: received, Now: now, Kernel: kernel})
	switch {
	case out == nil:
	case probe.Sized(b):
		if _, err := pc.WriteWhole(out, from, to); errno(err) == linuxEMSGSIZE {
			if out = p.r.TooLong(out, b); out != nil {
				_, _ = pc.Write(out, from, to)
			}
		}
	default:
		_, _ = pc.WriteClass(out, from, to, probe.AnswerClass(b)) // what cannot be sent is lost, as on the way
	}
	return true
}

// longestWait is how long a datagram may have waited for its reader: a stamp that is
// older, or in the future, means that the wall clock was set in between.
const longestWait = 10 * time.Second

// monotonicOf puts a stamp of the wall clock onto the monotonic clock, which reads now;
// false = there is none that makes sense, and it is now.
func monotonicOf(stamp, now int64) (int64, bool) {
	if stamp == 0 {
		return now, false
	}
	if at := stamp - osnet.RealOffset(); at <= now+int64(stampSlack) && at >= now-int64(longestWait) {
		return min(at, now), true
	}
	return now, false
}

// stampSlack is how far the two clocks may be read apart.
const stampSlack = 50 * time.Microsecond

// probeOnly reports that the client wants no streams, and that what it wants instead can
// be had: the features of its transport are in use.
func (t *session) probeOnly() bool {
	if t.hello == nil || !t.hello.ProbeOnly {
		return false
	}
	if t.params.Transport == plan.UDP {
		return t.hello.Has(ext.FeatureProbe) && t.desk != nil
	}
	return t.hello.Has(ext.FeaturePing)
}

// admitProbes begins to answer this test's probes; the client knows id and nonce from the
// hello that is about to go out.
func (t *session) admitProbes() {
	if t.hello.Has(ext.FeatureProbe) && t.desk != nil {
		t.s.probes.r.Add(probe.Test{ID: t.testID, Nonce: t.nonce, Peer: t.peer, Arrivals: t.counted})
		t.probed = true
	}
}

// endProbes ends that and keeps the counts. It may be called more than once.
func (t *session) endProbes() {
	if t.probed {
		t.probed = false
		c := t.s.probes.r.Remove(t.testID)
		t.probeCounts = &c
	}
}

// probeTest is the data phase and the end of a test without streams.
func (t *session) probeTest(ctx context.Context) error {
	t.totals = &traffic.Totals{}
	t.flowed = true
	t.out.begin()
	t.emitHead(result.KindStart)
	t.ctl.maxDoc.Store(MaxResults)
	pings := make(chan struct{})
	go func() { // ends when no ping is wanted and all are over
		defer close(pings)
		t.servePings()
	}()
	defer func() {
		t.refuseStreams()
		t.endPings()
		<-pings
	}()
	if err := t.ctl.sendState(t.s.to.Answer, StateTestStart, StateTestRunning); err != nil {
		return t.closedError(err)
	}
	if err := t.watchProbes(ctx); err != nil {
		return err
	}
	t.ending.Store(true)
	return t.swapResults(ctx)
}

// watchProbes waits for the client's TEST_END and for everything that ends a test earlier.
func (t *session) watchProbes(ctx context.Context) error {
	var hard <-chan time.Time
	if t.plan.Duration > 0 {
		timer := time.NewTimer(t.plan.Duration + t.plan.Omit + t.s.to.Grace)
		defer timer.Stop()
		hard = timer.C
	}
	// A client that is gone without a word is known by its silence.
	look := time.NewTicker(max(t.plan.ReceiveTimeout/4, 10*time.Millisecond))
	defer look.Stop()
	seen, since := int64(0), time.Now()
	for {
		select {
		case in, ok := <-t.ctl.in:
			over, err := t.word(in, ok)
			if err != nil || over {
				return err
			}
		case <-hard:
			return &result.Error{
				Code: "expired", Number: codeDurationExpired,
				Text: fmt.Sprintf("the client did not end the test %v after its time: given up", t.s.to.Grace),
			}
		case now := <-look.C:
			if n := t.s.probes.r.Counts(t.testID).Received + t.pinged.Load(); n != seen {
				seen, since = n, now
			} else if now.Sub(since) >= t.plan.ReceiveTimeout {
				return t.idleError()
			}
		case <-t.overlap:
			t.noteOverlap(t.s.beside())
		case e := <-t.failed:
			return e
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// PingIndex is the index of a connection for round trips, in place of a stream's.
const PingIndex = 0xffffffff

// maxPings is how many such connections a test may have open.
const maxPings = 64

// servePings echoes on the connections that offer hands over, until none is wanted.
func (t *session) servePings() {
	rate := lowest(t.s.Policy.RateLimit, t.s.Policy.MaxRate)
	conns := map[net.Conn]struct{}{}
	done := make(chan net.Conn)
	serve := func(nc net.Conn) { // ends with nc
		conn := osnet.NewConn(nc)
		_, _ = osnet.Apply(conn, osnet.Options{NoDelay: true})
		_, err := probe.Echo(countingConn{nc, t}, rate)
		if err != nil && !errors.Is(err, net.ErrClosed) {
			t.s.log.Debug("ping", "from", t.name(), "err", err)
		}
		_ = nc.Close()
		done <- nc
	}
	for {
		select {
		case a := <-t.pings:
			if len(conns) == maxPings {
				_ = a.Close()
				continue
			}
			t.pinged.Add(1)
			conns[a] = struct{}{}
			go serve(a)
		case nc := <-done:
			delete(conns, nc)
		case <-t.noPings:
			for nc := range conns {
				_ = nc.Close()
			}
			for range len(conns) {
				<-done
			}
			return
		}
	}
}

// countingConn notes that its test is alive.
type countingConn struct {
	net.Conn
	t *session
}

func (c countingConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.t.pinged.Add(1)
	return n, err
}

// offerPing takes a connection for round trips, and turns a stream away from a test that
// has none; false = it is a stream of a test with streams.
func (t *session) offerPing(nc net.Conn, index int64) bool {
	if !t.probeOnly() && (index != PingIndex || !t.ramped()) {
		return false
	}
	if index != PingIndex {
		t.s.farewell(nc, []byte{0xff})
		return true
	}
	_ = nc.SetDeadline(time.Time{})
	select {
	case t.pings <- nc:
	case <-t.noPings:
		_ = nc.Close()
	}
	return true
}

// features are those that this server can do for the client, for the hello.
func (t *session) features() []string {
	return slices.DeleteFunc(features(), func(f string) bool {
		return (f == ext.FeatureProbe || f == ext.FeatureClass || f == ext.FeatureMTU || f == ext.FeatureSteer) && t.desk == nil ||
			f == ext.FeatureSwap && !(t.hello.Has(f) && t.s.swaps()) // who does not ask is not bothered with it
	})
}

// probeWords are what a test's log line says of probes.
func (t *session) probeWords() []any {
	var out []any
	if c := t.probeCounts; c != nil && c.Received > 0 {
		out = append(out, "probes", c.Received)
	}
	return out
}

// probeResults is what the results say of probes, nil when the client wanted none; it ends them.
func (t *session) probeResults() *probe.Counts {
	t.endProbes()
	if c := t.probeCounts; c != nil && t.hello.Has(ext.FeatureMTU) && t.hello.ProbeOnly {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		// The port is of no matter: nothing is sent.
		c.PathMTU, c.LinkMTU, _ = osnet.MTUTowards(ctx, netip.AddrPortFrom(t.peer, 9), osnet.Options{})
	}
	return t.probeCounts
}

package iperf3

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fullbore-net/fullbore/internal/osnet"
	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/internal/proto/ext"
	"github.com/fullbore-net/fullbore/internal/proto/probe"
	"github.com/fullbore-net/fullbore/result"
)

// echoPlan is a stream of probes over UDP.
func echoPlan(d time.Duration) plan.Plan {
	return plan.Plan{
		Transport: plan.UDP, Streams: 1, BlockSize: 64, Bitrate: 128e3, RateSet: true, Duration: d,
		Probe: &plan.Probe{Spacing: 4 * time.Millisecond, Size: 64, Profile: "4ms", Idle: true},
	}
}

// pingPlan is round trips over TCP.
func pingPlan(d time.Duration, connects int) plan.Plan {
	return plan.Plan{
		Streams: connects - 1, BlockSize: 128, Bitrate: 1024, RateSet: true, Duration: d,
		Probe: &plan.Probe{Size: 1, Profile: "back-to-back", Idle: true, TCP: true},
	}
}

// kindsOf are the kinds of a run's probes, in order.
func kindsOf(run *result.Run) []string {
	var out []string
	for _, p := range run.Probes {
		out = append(out, p.Kind)
	}
	return out
}

// probed returns the i-th test's run, which has no totals, when it is over.
func (ts *testServer) probed(i int) *result.Run {
	ts.t.Helper()
	rec := ts.recorded(i)
	var run *result.Run
	eventually(ts.t, "the server's test did not end", func() bool {
		run = rec.run()
		return run.Err != nil || run.Elapsed > 0
	})
	return run
}

func TestProbesBetweenFullbores(t *testing.T) {
	ts := startServer(t, &Server{})
	run, err := runClient(t, ts.client(echoPlan(300*time.Millisecond)))
	if err != nil {
		t.Fatal(err)
	}
	if run.Elapsed == 0 || run.Streams == nil || len(run.Streams) != 0 || len(run.Sums) != 0 || !cmp.Equal(kindsOf(run), []string{"udp-echo"}) {
		t.Fatalf("elapsed %v, streams %v, sums %v, probes %v", run.Elapsed, run.Streams, run.Sums, kindsOf(run))
	}
	p := run.Probes[0]
	if p.Sent < 1 || p.Sent > 75 || p.Answered < 1 || p.LostUp == nil || p.LostDown == nil || p.Answered+*p.LostUp+*p.LostDown != p.Sent {
		t.Errorf("counts %+v", p)
	}
	if p.RoundTrip == nil || p.RoundTrip.Min <= 0 || p.RoundTrip.N != p.Answered || p.Up == nil || p.Up.PDV == nil || p.Down == nil || p.Size != 64 || p.Profile != "4ms" {
		t.Errorf("figures %+v", p)
	}
	if probe.HostMark(probe.Nonce{}) != "" { // both ends are this process
		if p.Clock == nil || p.Clock.Source != "same-host" || p.Up.Delay == nil || p.Up.Delay.Min < -*p.Up.BoundS || p.Down.Delay.Min < -*p.Down.BoundS {
			t.Errorf("clock %+v, up %+v, down %+v", p.Clock, p.Up, p.Down)
		}
	} else if p.Clock == nil || p.Clock.Source != "exchange" {
		t.Errorf("clock %+v", p.Clock)
	}
	if other := ts.probed(0); other.Err != nil || other.Elapsed == 0 {
		t.Errorf("the server's run: %+v, elapsed %v", other.Err, other.Elapsed)
	}
	if c := ts.probes.r.Counts(probe.ID{}); c != (probe.Counts{}) {
		t.Errorf("counts of no test: %+v", c)
	}
	serves(t, ts)
}

// Without the kernel's word that both ends are one host, the clocks are related by the
// exchanges, and come out as one.
func TestProbesRelateClocks(t *testing.T) {
	ts := startServer(t, &Server{})
	c := ts.client(echoPlan(300 * time.Millisecond))
	rec := newRecorder()
	c.forgetHost = true
	if err := c.Run(t.Context(), rec); err != nil {
		t.Fatal(err)
	}
	p := rec.run().Probes[0]
	if p.Clock == nil || p.Clock.Source != "exchange" {
		t.Fatalf("clock %+v", p.Clock)
	}
	if o := p.Clock.OffsetS; o < -p.Clock.BoundS || o > p.Clock.BoundS {
		t.Errorf("one clock, but an offset of %v ± %v s", o, p.Clock.BoundS)
	}
}

func TestPingBetweenFullbores(t *testing.T) {
	ts := startServer(t, &Server{})
	run, err := runClient(t, ts.client(pingPlan(200*time.Millisecond, 5)))
	if err != nil {
		t.Fatal(err)
	}
	if run.Elapsed == 0 || len(run.Streams) != 0 || !cmp.Equal(kindsOf(run), []string{"tcp-connect", "tcp-rr"}) {
		t.Fatalf("elapsed %v, streams %v, probes %v", run.Elapsed, run.Streams, kindsOf(run))
	}
	if c := run.Probes[0].Connect; c == nil || c.N != 6 || c.Min <= 0 { // the control connection, 4, and the one of the round trips
		t.Errorf("connects %+v", c)
	}
	rr := run.Probes[1]
	if rr.Answered < 1 || rr.Sent != rr.Answered || rr.RoundTrip == nil || rr.RoundTrip.Min <= 0 || rr.Rate == nil || *rr.Rate <= 0 || rr.Size != 1 {
		t.Errorf("round trips %+v", rr)
	}
	if other := ts.probed(0); other.Err != nil {
		t.Errorf("the server's run: %+v", other.Err)
	}
	serves(t, ts)
}

// A server whose policy has a rate keeps to it.
func TestPingKeepsToTheServersRate(t *testing.T) {
	ts := startServer(t, &Server{Policy: plan.Serve{MaxRate: 80e3}})
	p := pingPlan(300*time.Millisecond, 2)
	p.Probe.Size = 1000 // 8000 bit: one each 100 ms
	run, err := runClient(t, ts.client(p))
	if err != nil {
		t.Fatal(err)
	}
	if rr := run.Probes[1]; rr.Answered < 1 || rr.Answered > 5 {
		t.Errorf("%d answers", rr.Answered)
	}
}

// A server that knows nothing of probes gets the plain test that the parameters describe.
func TestProbesWithPlainServer(t *testing.T) {
	ts := startServer(t, &Server{Policy: plan.Serve{Extension: "off"}})
	for _, d := range []plan.Direction{plan.Up, plan.Down} {
		p := echoPlan(time.Second)
		p.Direction = d
		run, err := runClient(t, ts.client(p))
		if err != nil {
			t.Fatalf("%s: %v", d, err)
		}
		if len(run.Streams) != 1 || !cmp.Equal(kindsOf(run), []string{"udp-test"}) {
			t.Fatalf("%s: %d streams, probes %+v", d, len(run.Streams), run.Probes)
		}
		got := run.Probes[0]
		if got.Sent < 1 || got.Answered != 0 || got.RoundTrip != nil || got.Clock != nil || got.Size != 64 {
			t.Errorf("%s: %+v", d, got)
		}
		lost, way := got.LostUp, got.Down
		if d == plan.Down {
			lost = got.LostDown
			if way == nil || way.PDV == nil || way.Delay != nil {
				t.Errorf("down: %+v", way)
			}
		} else if way != nil || got.Up != nil { // iperf3 tells its jitter, and that is in the totals
			t.Errorf("up: %+v, %+v", got.Up, way)
		}
		if lost == nil {
			t.Errorf("%s: loss is not known", d)
		}
		if _, err := run.Streams[0], error(nil); err != nil || run.Wire.Extension {
			t.Errorf("%s: the extension is in use", d)
		}
	}
	run, err := runClient(t, ts.client(pingPlan(5*time.Second, 4)))
	if err != nil {
		t.Fatal(err)
	}
	if len(run.Streams) != 3 || !cmp.Equal(kindsOf(run), []string{"tcp-connect"}) || run.Probes[0].Connect.N != 4 || run.Test.Duration != 1 {
		t.Errorf("%d streams, %v s, probes %+v", len(run.Streams), run.Test.Duration, run.Probes)
	}
}

// Probes beside a load: both are measured, in either transport and direction, and an
// interruption keeps both.
func TestProbesBesideALoad(t *testing.T) {
	ts := startServer(t, &Server{})
	for i, c := range []struct {
		p         plan.Plan
		interrupt bool
	}{
		{plan.Plan{Duration: 300 * time.Millisecond, Bitrate: 50e6}, false},
		{plan.Plan{Duration: 300 * time.Millisecond, Bitrate: 50e6, Direction: plan.Down}, false},
		{plan.Plan{Duration: 300 * time.Millisecond, Transport: plan.UDP, Bitrate: 1e6, RateSet: true, BlockSize: 1000, Direction: plan.Both}, false},
		{plan.Plan{Endless: true, Bitrate: 50e6}, true},
	} {
		c.p.Probe = &plan.Probe{Spacing: 4 * time.Millisecond, Size: 64, Profile: "4ms"}
		cause := &result.Error{Code: "interrupted", Text: "stop", Interrupted: true}
		ctx, cancel := context.WithCancelCause(t.Context())
		rec := newRecorder()
		rec.on = func(e result.Event) {
			if c.interrupt && e.Kind == result.KindProbes && e.Probes.Answered > 0 {
				cancel(cause)
			}
		}
		err := ts.client(c.p).Run(ctx, rec)
		cancel(nil)
		run := rec.run()
		var e *result.Error
		if c.interrupt != errors.As(err, &e) || err != nil && !e.Interrupted {
			t.Fatalf("test %d: %v", i, err)
		}
		if !run.Finished() || run.Test.ProbeOnly || !cmp.Equal(kindsOf(run), []string{"udp-echo"}) {
			t.Fatalf("test %d: finished %v, probes %v", i, run.Finished(), kindsOf(run))
		}
		for _, s := range run.Sums {
			if s.Receiver == nil || s.Receiver.Bytes == 0 {
				t.Errorf("test %d: %s: %+v", i, s.Direction, s.Receiver)
			}
		}
		p := run.Probes[0]
		if p.Answered < 1 || p.LostUp == nil || p.LostDown == nil || p.Answered+*p.LostUp+*p.LostDown != p.Sent || p.RoundTrip == nil || p.Histogram == nil {
			t.Errorf("test %d: %d sent, %d answered, %v up, %v down", i, p.Sent, p.Answered, p.LostUp, p.LostDown)
		}
	}
	serves(t, ts)
	old := startServer(t, &Server{Policy: plan.Serve{Extension: "off"}})
	run, err := runClient(t, old.client(plan.Plan{Bytes: 1 << 20, Probe: &plan.Probe{}}))
	if err != nil || !run.Finished() || len(run.Probes) != 0 || !slices.ContainsFunc(run.Notices, func(n result.Notice) bool { return n.Code == "no-probes" }) {
		t.Errorf("a server without probes: %v, %v, %+v", err, kindsOf(run), run.Notices)
	}
}

// A fullbore without UDP refuses, and still answers over TCP.
func TestProbesWithoutUDP(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{Tool: result.Tool{Name: "fullbore", Version: "test"}}
	ctx, cancel := context.WithCancelCause(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, []net.Listener{ln}) }()
	defer func() {
		cancel(errTestOver)
		<-ended
	}()
	addr := ln.Addr().(*net.TCPAddr)
	for name, c := range map[string]struct {
		p    plan.Plan
		code string
	}{"udp": {echoPlan(time.Second), "unsupported"}, "tcp": {pingPlan(100*time.Millisecond, 2), ""}} {
		c.p.Host, c.p.Port = addr.IP.String(), addr.Port
		run, err := runClient(t, &Client{Plan: c.p, Tool: result.Tool{Name: "fullbore", Version: "test"}})
		var e *result.Error
		switch {
		case c.code == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case c.code != "" && (!errors.As(err, &e) || !e.Remote && e.Code != c.code):
			t.Errorf("%s: %v (%+v)", name, err, run.Err)
		}
	}
}

// What an interrupted client had measured stays, with the server's counts, and the server
// knows who stopped.
func TestProbesInterrupted(t *testing.T) {
	for name, p := range map[string]plan.Plan{"udp": echoPlan(0), "tcp": pingPlan(0, 2)} {
		ts := startServer(t, &Server{})
		p.Endless = true
		cause := &result.Error{Code: "interrupted", Text: "stop", Interrupted: true, Signal: "Interrupt(2)"}
		ctx, cancel := context.WithCancelCause(t.Context())
		rec := newRecorder()
		rec.on = func(e result.Event) {
			if e.Kind == result.KindProbes && e.Probes.RoundTrip != nil {
				cancel(cause)
			}
		}
		err := ts.client(p).Run(ctx, rec)
		run := rec.run()
		var e *result.Error
		if !errors.As(err, &e) || !e.Interrupted || run.Err == nil {
			t.Errorf("%s: error %v", name, err)
		}
		last := run.Probes[len(run.Probes)-1]
		if run.Elapsed == 0 || last.Answered < 1 || last.Histogram == nil && last.Connect == nil {
			t.Errorf("%s: elapsed %v, %d answered", name, run.Elapsed, last.Answered)
		}
		rec2 := ts.recorded(0)
		eventually(t, "the server does not know that its client stopped", func() bool {
			e := rec2.run().Err
			return e != nil && e.Code == "client-terminated"
		})
		serves(t, ts)
		cancel(nil)
	}
}

// A server that is stopped ends the probing at once; the figures stay.
func TestProbesServerStops(t *testing.T) {
	for name, p := range map[string]plan.Plan{"udp": echoPlan(time.Hour), "tcp": pingPlan(time.Hour, 2)} {
		ts := startServer(t, &Server{})
		rec := newRecorder()
		rec.on = func(e result.Event) {
			if e.Kind == result.KindProbes && e.Probes.RoundTrip != nil {
				ts.stop(errTestOver)
			}
		}
		err := ts.client(p).Run(t.Context(), rec)
		run := rec.run()
		var e *result.Error
		if !errors.As(err, &e) || !e.Remote {
			t.Errorf("%s: error %v", name, err)
		}
		if run.Elapsed == 0 || len(run.Probes) == 0 || run.Probes[0].Answered < 1 {
			t.Errorf("%s: elapsed %v, probes %v", name, run.Elapsed, kindsOf(run))
		}
	}
}

// A client that falls silent is let go; its test is not answered any more.
func TestProbesClientGone(t *testing.T) {
	ts := startServer(t, &Server{Policy: plan.Serve{ReceiveTimeout: 200 * time.Millisecond}, Timeouts: short()})
	p := dialRaw(t, ts)
	id, nonce := p.probeHello("udp", 0)
	p.want(StateTestStart, StateTestRunning)
	if b := p.read(1); State(b[0]) != StateServerError {
		t.Errorf("got %x", b)
	}
	if run := ts.probed(0); run.Err == nil || run.Err.Code != "receive-timeout" {
		t.Errorf("the server's end: %+v", run.Err)
	}
	eventually(t, "its probes are still answered", func() bool {
		b := make([]byte, 64)
		probe.PutRequest(b, probe.Request{Test: id, Seq: 1}, probe.NewSigner(nonce))
		return ts.probes.r.Answer(nil, b, ts.addr, probe.Arrival{Received: 1, Now: 1}) == nil
	})
}

// probeHello greets as a client that wants probes alone over tr, for so many seconds, and
// returns what the server's hello says; CREATE_STREAMS has been read.
func (p *rawPeer) probeHello(tr string, seconds int) (probe.ID, probe.Nonce) {
	p.t.Helper()
	p.greet()
	p.document(fmt.Sprintf(`{%q:true,"time":%d,"parallel":1,"len":64,"fullbore":{"v":1,"version":"x","features":["index","probe","ping"],"probe_only":true}}`, tr, seconds))
	p.want(FrameHello)
	doc := p.read(int(binary.BigEndian.Uint32(p.read(4))))
	var h ext.ServerHello
	if err := json.Unmarshal(doc, &h); err != nil {
		p.t.Fatal(err)
	}
	if !slices.Contains(h.Features, ext.FeatureProbe) || !slices.Contains(h.Features, ext.FeaturePing) {
		p.t.Fatalf("features %v", h.Features)
	}
	var id probe.ID
	var nonce probe.Nonce
	if n, err := hex.Decode(id[:], []byte(h.Test)); n != 8 || err != nil {
		p.t.Fatalf("test id %q", h.Test)
	}
	if n, err := hex.Decode(nonce[:], []byte(h.Nonce)); n != 8 || err != nil {
		p.t.Fatalf("nonce %q", h.Nonce)
	}
	p.want(StateCreateStreams)
	return id, nonce
}

// endProbes ends such a test and returns what the server counted.
func (p *rawPeer) endProbes() *probe.Counts {
	p.t.Helper()
	p.write(byte(StateTestEnd))
	p.want(StateExchangeResults)
	p.document(`{"cpu_util_total":0,"cpu_util_user":0,"cpu_util_system":0,"sender_has_retransmits":-1,"streams":[]}`)
	doc := p.read(int(binary.BigEndian.Uint32(p.read(4))))
	p.want(StateDisplayResults)
	p.write(byte(StateDone))
	res, err := DecodeResults(doc)
	if err != nil || res.Ext == nil {
		p.t.Fatalf("results %s: %v", doc, err)
	}
	return res.Ext.Probes
}

// Whoever is not part of a living test gets nothing, and what he sends counts nowhere. The
// path is in order and has one reader, so what is answered first tells what was not.
func TestProbesByHand(t *testing.T) {
	ts := startServer(t, &Server{})
	p := dialRaw(t, ts)
	id, nonce := p.probeHello("udp", 5)
	p.want(StateTestStart, StateTestRunning)
	u, err := net.Dial("udp", ts.addr.String())
	if err != nil {
		t.Fatal(err)
	}
	defer u.Close()
	_ = u.SetDeadline(time.Now().Add(20 * time.Second))
	s := probe.NewSigner(nonce)
	ask := func(size int, q probe.Request, s *probe.Signer) {
		b := make([]byte, size)
		probe.PutRequest(b, q, s)
		if _, err := u.Write(b); err != nil {
			t.Fatal(err)
		}
	}
	answer := func(seq uint32, size int) probe.Answer {
		t.Helper()
		b := make([]byte, 2000)
		n, err := u.Read(b)
		if err != nil {
			t.Fatal(err)
		}
		a, ok := probe.ParseAnswer(b[:n], s)
		if !ok || a.Seq != seq || n != size {
			t.Fatalf("%d bytes %x; wanted the answer to %d in %d bytes", n, b[:n], seq, size)
		}
		return a
	}
	before := osnet.Monotonic()
	ask(64, probe.Request{Test: id, Seq: 1, Sent: before}, s)
	a := answer(1, 64)
	if after := osnet.Monotonic(); a.Received < before-int64(time.Millisecond) || a.Sent < a.Received || a.Sent > after || a.Count != 1 {
		t.Errorf("%+v between %d and %d", a, before, after)
	}
	for _, b := range [][]byte{{}, []byte("FBP1"), []byte("FBR1"), make([]byte, 45), append([]byte("9876"), make([]byte, 41)...)} {
		if _, err := u.Write(b); err != nil {
			t.Fatal(err)
		}
	}
	ask(64, probe.Request{Test: id, Seq: 2}, probe.NewSigner(probe.Nonce{}))
	ask(64, probe.Request{Test: probe.ID{}, Seq: 3}, s)
	ask(64, probe.Request{Test: id, Seq: 1}, s) // a replay
	ask(1400, probe.Request{Test: id, Seq: 4, Flags: probe.FlagShort}, s)
	answer(4, probe.HeaderSize)
	ask(1400, probe.Request{Test: id, Seq: 5}, s)
	if a := answer(5, 1400); a.Count != 3 {
		t.Errorf("%d counted", a.Count)
	}
	if c := p.endProbes(); c == nil || *c != (probe.Counts{Received: 3, Answered: 3, Duplicates: 1}) {
		t.Errorf("the results say %+v", c)
	}
	if run := ts.probed(0); run.Err != nil {
		t.Errorf("the server's end: %v", run.Err)
	}
	// The test is over; another one's probes are answered on the same socket.
	q := dialRaw(t, ts)
	id2, nonce2 := q.probeHello("udp", 5)
	q.want(StateTestStart, StateTestRunning)
	ask(64, probe.Request{Test: id, Seq: 6}, s)
	s2 := probe.NewSigner(nonce2)
	ask(64, probe.Request{Test: id2, Seq: 6}, s2)
	s = s2
	answer(6, 64)
	if c := q.endProbes(); c == nil || c.Received != 1 {
		t.Errorf("the results say %+v", c)
	}
}

// Round trips by hand: of one size only, with the cookie only, no more than so many.
func TestPingByHand(t *testing.T) {
	ts := startServer(t, &Server{})
	p := dialRaw(t, ts)
	p.probeHello("tcp", 5)
	p.want(StateTestStart, StateTestRunning)
	open := func(cookie Cookie, index uint32, words ...byte) net.Conn {
		nc, err := net.Dial("tcp", ts.addr.String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { nc.Close() })
		_ = nc.SetDeadline(time.Now().Add(20 * time.Second))
		if _, err := nc.Write(append(binary.BigEndian.AppendUint32(append([]byte{}, cookie[:]...), index), words...)); err != nil {
			t.Fatal(err)
		}
		return nc
	}
	closed := func(what string, nc net.Conn, want ...byte) {
		t.Helper()
		b := make([]byte, 100)
		n := 0
		for {
			k, err := nc.Read(b[n:])
			n += k
			if err != nil {
				break
			}
		}
		if string(b[:n]) != string(want) {
			t.Errorf("%s: got %x, want %x", what, b[:n], want)
		}
	}
	good := open(p.cookie, PingIndex, 0, 0, 0, 3, 'a', 'b', 'c')
	b := make([]byte, 3)
	if _, err := good.Read(b); err != nil || string(b) != "abc" {
		t.Errorf("%q, %v", b, err)
	}
	connect := open(p.cookie, PingIndex, 0, 0, 0, 0)
	_ = connect.(*net.TCPConn).CloseWrite()
	closed("connect only", connect)
	closed("too long", open(p.cookie, PingIndex, 0, 1, 0, 1))
	closed("a stream", open(p.cookie, 0), 0xff)
	if _, err := good.Write([]byte("def")); err != nil {
		t.Fatal(err)
	}
	if _, err := good.Read(b); err != nil || string(b) != "def" {
		t.Errorf("%q, %v", b, err)
	}
	if c := p.endProbes(); c == nil || *c != (probe.Counts{}) {
		t.Errorf("the results say %+v", c)
	}
	closed("the test is over", good)
	if run := ts.probed(0); run.Err != nil {
		t.Errorf("the server's end: %v", run.Err)
	}
}

// Stamps of the wall clock become those of the monotonic one; what cannot be is now.
func TestMonotonicOf(t *testing.T) {
	now := osnet.Monotonic()
	real := now + osnet.RealOffset()
	const slack = int64(time.Millisecond) // two readings of two clocks
	for name, c := range map[string]struct {
		stamp  int64
		want   int64
		kernel bool
	}{
		"none":     {0, now, false},
		"just now": {real, now, true},
		"earlier":  {real - int64(5*time.Millisecond), now - int64(5*time.Millisecond), true},
		"future":   {real + int64(time.Second), now, false},
		"long ago": {real - int64(time.Minute), now, false},
	} {
		at, kernel := monotonicOf(c.stamp, now)
		if d := at - c.want; kernel != c.kernel || d < -slack || d > slack {
			t.Errorf("%s: off by %d ns, kernel %v", name, d, kernel)
		}
	}
}

package iperf3

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/fullbore-net/fullbore/internal/osnet"
	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/internal/proto/ext"
	"github.com/fullbore-net/fullbore/internal/traffic"
	"github.com/fullbore-net/fullbore/result"
)

// collect waits until every stream is there.
func (t *session) collect(ctx context.Context) error {
	defer t.refuseStreams()
	if t.plan.Transport == plan.UDP {
		return t.collectDatagrams(ctx)
	}
	var got []arrival
	taken := map[int64]bool{}
	keep := false
	defer func() {
		if !keep {
			for _, a := range got {
				_ = a.nc.Close()
			}
		}
	}()
	timer := time.NewTimer(t.s.to.Stream)
	defer timer.Stop()
	for len(got) < t.wanted() {
		select {
		case a := <-t.arrivals:
			if taken[a.order] { // an index that came before
				_ = a.nc.Close()
				continue
			}
			taken[a.order] = true
			got = append(got, a)
			timer.Reset(t.s.to.Stream)
		case in, ok := <-t.ctl.in:
			if err := t.early(in, ok); err != nil {
				return err
			}
		case e := <-t.failed:
			return e
		case <-timer.C:
			return &result.Error{
				Code: "no-streams", Remote: true, Number: codeStreamAccept, Errno: linuxETIMEDOUT,
				Text: fmt.Sprintf("the client opened %d of %d streams, then none for %v", len(got), t.wanted(), t.s.to.Stream),
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	// Plain streams are what the client opened first, second, …: their connections were
	// accepted in that order, whoever read its cookie first.
	slices.SortFunc(got, func(a, b arrival) int { return cmp.Compare(a.order, b.order) })
	keep = true
	dirs := directions(t.plan.Direction, t.plan.Streams)
	for i, a := range got {
		t.streams = append(t.streams, stream{conn: osnet.NewConn(a.nc), dir: dirs[i], id: streamID(i)})
	}
	return nil
}

// refuseStreams turns away further streams. It may be called more than once.
func (t *session) refuseStreams() {
	t.s.mu.Lock()
	delete(t.s.creating, t)
	t.s.mu.Unlock()
	t.udp.close()
	t.noMoreOnce.Do(func() { close(t.noMore) })
}

// early handles what a client says before the data phase; nil = nothing of weight.
func (t *session) early(in inbound, ok bool) error {
	switch {
	case !ok:
		return t.closedError(errPeerClosed)
	case in.err != nil:
		return t.closedError(in.err)
	case in.m.State == StateTestStart, in.m.State.Frame(): // silently ignored, as servers do (spec §3)
		return nil
	}
	return t.goodbye(in.m)
}

// goodbye words a message by which a client leaves, or one that does not belong.
func (t *session) goodbye(m message) error {
	switch m.State {
	case StateClientTerminate:
		return &result.Error{Code: "client-terminated", Remote: true, Number: codeClientTerm, Text: "the client was stopped by its operator"}
	case StateDone:
		return &result.Error{Code: "peer-closed", Remote: true, Number: codeCtrlClose, Text: "the client left before the test's end"}
	}
	what := m.State.String()
	if m.State == 0 {
		what = "a document"
	}
	return &result.Error{Code: "protocol", Remote: true, Number: codeMessage, Text: fmt.Sprintf("the client sent %s where it does not belong", what)}
}

// closedError words the loss of the control connection.
func (t *session) closedError(err error) error {
	if e := asResult(err); e != nil {
		return e
	}
	if errors.Is(err, errTimeout) {
		return &result.Error{
			Code: "no-answer", Remote: true, Number: codeSendMessage, Errno: linuxETIMEDOUT,
			Text: fmt.Sprintf("the client did not read its control connection for %v: it is frozen, or the path is cut", t.s.to.Answer),
		}
	}
	if !errors.Is(err, errPeerClosed) && !isNetError(err) {
		return &result.Error{Code: "protocol", Remote: true, Number: codeRecvMessage, Text: "the client's message makes no sense: " + err.Error()}
	}
	e := &result.Error{Code: "peer-closed", Remote: true, Number: codeCtrlClose, Text: "the client closed the connection: it ended or was cut off"}
	if n := errno(err); n != 0 {
		e.Errno = n
		e.Text = "the connection to the client broke: " + Strerror(n)
	}
	return e
}

// build applies the socket options and hands the streams to the engine.
func (t *session) build() error {
	p := t.plan
	o := osnet.Options{
		Window: p.Window, MSS: p.MSS, NoDelay: p.NoDelay, TOS: p.TOS, Congestion: p.Congestion, UserTimeout: p.SendTimeout, FQRate: p.FQRate,
	}
	notices := t.notices
	for _, s := range t.streams {
		if p.Transport == plan.UDP { // its options were set before its first datagram
			break
		}
		ns, err := osnet.Apply(s.conn, o)
		notices = append(notices, ns...)
		if err != nil {
			e := optionError(err)
			e.Text = "refused: " + e.Text
			return e
		}
	}
	flows, views := flowsOf(result.Server, p.Transport, t.s.SocketBase, p.Window, t.streams)
	t.streams = nil // the engine owns the sockets now
	t.senders = sendersOf(flows)
	watchPeer(t.conn, p, p.Sends(result.Server), t.s.Policy.Keepalive)
	if p.MPTCP {
		notices = append(notices, mptcpNotices(flows)...)
	}
	t.head.Streams = views
	if b := views[0].Buffers; b != nil {
		t.head.Wire.SndbufActual, t.head.Wire.RcvbufActual = int(b.SndGranted), int(b.RcvGranted)
	}
	_, infoErr := flows[0].Conn.TCPInfo()
	t.head.Wire.HasRetrans = infoErr == nil && p.Sends(result.Server)
	if t.hello.Has(ext.FeatureEvents) {
		t.out.mu.Lock() // event reads it under this lock
		t.frames = ext.NewForwarder(ext.FrameEvent, func(b []byte) error { return t.ctl.sendFrame(b, t.s.to.Answer) })
		t.out.mu.Unlock()
	}
	t.out.notices(notices)
	cfg := traffic.Config{
		End: result.Server, Transport: p.Transport, BlockSize: p.BlockSize, Bitrate: p.Bitrate, Burst: p.Burst,
		MaxRate: t.s.Policy.MaxRate, Omit: p.Omit, Limited: p.Bytes > 0 || p.Blocks > 0, Interval: p.Interval,
		Send: p.Send, Receive: p.Receive, Repeating: p.Repeating, Affinity: p.Affinity, Host: t.sampler(), Out: t.out,
		UDP: t.udpConfig(),
	}
	if t.ramped() {
		cfg.Open = t.hello.Open
	}
	if p.OneRow {
		cfg.Interval = 0
	}
	if p.Sends(result.Client) {
		cfg.ReceiveTimeout = p.ReceiveTimeout
	}
	if t.hello.Has(ext.FeatureExact) && p.Direction == plan.Down && p.Omit == 0 {
		cfg.Bytes, cfg.Blocks = p.Bytes, p.Blocks // the client counts them in, and ends the test
	}
	if p.File != "" {
		send := p.Sends(result.Server) && p.Direction != plan.Both
		f, size, err := openFile(p.File, send)
		if err != nil {
			closeFlows(flows)
			return err
		}
		t.file, t.size = f, size
		if send {
			cfg.Source, cfg.SourceSize, cfg.Limited = f, size, true
		} else {
			cfg.Sink = f
		}
	}
	eng, err := traffic.New(cfg, flows)
	if err != nil {
		return engineError("refused", err)
	}
	t.eng = eng
	t.steerable.Store(eng)
	return nil
}

func closeFlows(flows []traffic.Flow) {
	for _, f := range flows {
		_ = f.Conn.Close()
	}
}

// measure runs the data phase and what follows it.
func (t *session) measure(ctx context.Context) error {
	t.flowed = true
	t.out.begin()
	t.emitHead(result.KindStart)
	defer t.pingsBeside()()
	// Whoever only receives must be ready before the client sends; whoever sends must not
	// fill the client's buffers before it is told to count.
	sends := t.plan.Sends(result.Server)
	if !sends {
		t.eng.Start()
	}
	t.ctl.maxDoc.Store(MaxResults) // from a running peer, results of any number of streams
	if err := t.ctl.sendState(t.s.to.Answer, StateTestStart, StateTestRunning); err != nil {
		return t.closedError(err)
	}
	if sends {
		t.eng.Start()
	}
	if err := t.watch(ctx); err != nil {
		return err
	}
	return t.exchange(ctx)
}

// exchange ends the data phase on this side, exchanges results and waits for goodbye.
func (t *session) exchange(ctx context.Context) error {
	t.ending.Store(true)
	t.awaitRest(ctx)
	t.stopEngine(true)
	t.frames.Stop() // none follows EXCHANGE_RESULTS
	t.udp.end()
	t.eng.Close()
	return t.swapResults(ctx)
}

// swapResults is the end of every test, once nothing moves any more: results both ways,
// then the client's goodbye.
func (t *session) swapResults(ctx context.Context) error {
	if err := t.ctl.sendState(t.s.to.Answer, StateExchangeResults); err != nil {
		return t.closedError(err)
	}
	if err := t.readResults(ctx); err != nil {
		return err
	}
	if !t.swapping() { // else the client that this end was has told everything
		t.emitFinish()
	}
	if err := t.ctl.send(append(AppendDocument(nil, t.results().Encode()), byte(StateDisplayResults)), t.s.to.Answer); err != nil {
		return t.closedError(err)
	}
	// The client has all it wants: the next one need not wait for its goodbye.
	t.s.release(t)
	_, _ = t.ctl.next(ctx, t.s.to.Answer) // both ends have all results: whatever comes instead changes nothing
	return nil
}

// awaitRest waits for what is still on its way in a test that a count ends: the client
// has sent all of it, and iperf3's sends TEST_END without waiting for it to arrive.
// Silence ends the wait. (In a test that time ends, what is on its way is nobody's.)
func (t *session) awaitRest(ctx context.Context) {
	want := t.plan.Bytes
	if want == 0 {
		want = t.plan.Blocks * int64(t.plan.BlockSize)
	}
	if want == 0 || t.plan.Direction != plan.Up || t.byStop != "" {
		return
	}
	deadline := time.Now().Add(restLimit)
	var got int64
	last := time.Now()
	for pause := time.Millisecond; ; pause = min(2*pause, 20*time.Millisecond) {
		var sum, omitted int64
		for _, f := range t.eng.Snapshot().Flows {
			sum += f.Total.Bytes
			omitted += f.OmittedBytes
		}
		now := time.Now()
		if sum+omitted != got {
			got, last = sum+omitted, now
		}
		if sum >= want || now.Sub(last) > restSilence || now.After(deadline) {
			return
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return
		}
	}
}

// The bounds of awaitRest (design §5 "The end" has the same for datagrams).
const (
	restSilence = 200 * time.Millisecond
	restLimit   = 2 * time.Second
)

// stopEngine takes the totals; drain = count what the kernel holds.
func (t *session) stopEngine(drain bool) {
	if t.totals != nil || t.eng == nil {
		return
	}
	t.eng.StopSend()
	t.eng.StopReceive(drain)
	totals := t.eng.Finish()
	t.totals = &totals
}

// readResults takes the client's results, which come first (spec §4.1).
func (t *session) readResults(ctx context.Context) error {
	for {
		m, err := t.ctl.next(ctx, t.s.to.Answer)
		switch {
		case errors.Is(err, errTimeout):
			return &result.Error{
				Code: "no-answer", Remote: true, Number: codeRecvResults, Errno: linuxETIMEDOUT,
				Text: fmt.Sprintf("the client ended the test but sent no results for %v", t.s.to.Answer),
			}
		case err != nil:
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return t.closedError(err)
		case m.State == StateTestEnd, m.State.Frame():
			continue // sent before the client knew that we ended the test
		case m.State != 0:
			return t.goodbye(m)
		}
		res, err := DecodeResults(m.Doc)
		if err != nil {
			return &result.Error{Code: "results", Remote: true, Number: codeRecvResults, Text: "the client's results make no sense: " + err.Error()}
		}
		if id := checkIDs(res, t.head.Streams); id != 0 {
			return &result.Error{Code: "results", Remote: true, Number: codeStreamID, Text: fmt.Sprintf("the client's results name a stream %d that does not exist", id)}
		}
		t.other = &res
		if t.plan.Transport == plan.UDP {
			correctTotals(t.totals, t.other)
		}
		return nil
	}
}

// results are ours, with the output the client asked for.
func (t *session) results() Results {
	r := resultsOf(result.Server, *t.totals)
	if t.plan.Transport == plan.UDP {
		echo(&r, *t.totals, t.other)
	}
	if t.hello == nil {
		r.Ext = nil
	} else {
		r.Ext.Dropped = t.frames.Dropped()
		r.Ext.Probes = t.probeResults()
		r.Ext.Swap = t.swapped
	}
	if t.params.ServerOutput && t.hooks.Output != nil {
		t.foldMu.Lock()
		run := t.folder.Run()
		t.foldMu.Unlock()
		text, doc := t.hooks.Output(run)
		const room = 64 << 10 // for everything else
		switch {
		case len(doc) > 0 && json.Valid(doc) && len(doc) < MaxResults-room:
			r.ServerJSON = doc
		case text != "" && len(text) < (MaxResults-room)/2: // escapes may double it
			r.ServerText = &text
		}
	}
	return r
}

func (t *session) emitFinish() {
	tot := t.totals
	f := &result.Finish{
		Streams: merge(result.Server, t.head.Streams, *tot, t.other), Usage: tot.Usage, Path: &tot.Path, Elapsed: time.Since(t.begun).Seconds(),
		Zero: tot.Zero,
	}
	if t.plan.Transport == plan.UDP {
		t.out.notices(mergeUDP(result.Server, f.Streams, *tot, t.other, t.out.hostDrops()))
	}
	f.CPU.Server = tot.CPU
	wire := *t.head.Wire
	if o := t.other; o != nil {
		cpu := o.CPU
		f.CPU.Client = &cpu
	}
	f.Wire = &wire
	if t.file != nil {
		noteDisk(f.Streams, result.Server, t.plan.File, t.size)
	}
	if n := ext.DroppedNotice(result.Client, "the client's", t.lost.Load()); n != nil {
		t.out.notice(*n)
	}
	t.out.Event(result.Event{Kind: result.KindFinish, Finish: f})
}

// frame takes a client's frame, on the reader's goroutine.
func (t *session) frame(m message) {
	var f ext.ClientFrame
	if m.State != FrameClient || !t.greeted.Load() || json.Unmarshal(m.Doc, &f) != nil {
		return
	}
	t.lost.Store(max(t.lost.Load(), f.Dropped))
	if f.Facts != nil {
		t.out.Event(result.Event{Kind: result.KindHost, End: result.Client, Host: ext.PrintableHost(f.Facts)})
	}
	if ev, ok := ext.FromWire(f.Event, result.Client); ok {
		t.out.Event(ev)
	}
	if f.Steer != nil && f.Steer.BPS >= 0 {
		if eng := t.steerable.Load(); eng != nil {
			eng.Steer(f.Steer.BPS)
			t.noteSteer(f.Steer.Watch)
		}
	}
	if f.Open > 0 && t.ramped() {
		if eng := t.steerable.Load(); eng != nil {
			eng.Open(f.Open)
		}
	}
	if f.Stop != nil {
		t.byStop = ext.Printable(f.Stop.Why)
		t.ctl.put(inbound{m: message{State: FrameClient}})
	}
}

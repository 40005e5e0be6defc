package iperf3

import (
	"context"
	"fmt"
	"time"

	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/internal/proto/ext"
	"github.com/fullbore-net/fullbore/internal/traffic"
	"github.com/fullbore-net/fullbore/result"
)

// awaitStart hands the streams to the engine and waits for the server's word to begin.
func (r *clientRun) awaitStart(ctx context.Context) error {
	if err := r.build(); err != nil {
		return err
	}
	if r.begun {
		return nil
	}
	wait := r.answer() + time.Duration(len(r.head.Streams))*2*time.Millisecond
	for {
		m, err := r.next(ctx, wait)
		if err != nil {
			return r.waitError(err, fmt.Sprintf("to start the test after %d streams were opened", len(r.head.Streams)))
		}
		switch m.State {
		case StateTestStart, FrameReady: // TEST_RUNNING follows at once
		case StateTestRunning:
			return nil
		default:
			if err := r.refused(m); err != nil {
				return err
			}
			return r.unknown(m)
		}
	}
}

// build makes the engine.
func (r *clientRun) build() error {
	base := r.c.SocketBase
	if base == 0 {
		base = 5
	}
	flows, views := flowsOf(result.Client, r.p.Transport, base, r.p.Window, r.streams)
	r.senders = sendersOf(flows)
	for _, s := range r.streams {
		r.early = append(r.early, s.early)
	}
	r.streams = nil // the engine owns the sockets now
	r.head.Streams = views
	if len(views) > 0 {
		if b := views[0].Buffers; b != nil {
			r.head.Wire.SndbufActual, r.head.Wire.RcvbufActual = int(b.SndGranted), int(b.RcvGranted)
		}
		_, err := flows[0].Conn.TCPInfo()
		r.head.Wire.HasRetrans = err == nil && r.p.Sends(result.Client)
	}
	watchPeer(r.conn, r.p, r.p.Sends(result.Client), r.p.Keepalive)
	if r.p.MPTCP {
		r.out.notices(mptcpNotices(flows))
	}
	cfg := traffic.Config{
		End: result.Client, Transport: r.p.Transport, BlockSize: r.p.BlockSize, Bitrate: r.firstRate(), Burst: r.p.Burst,
		MaxRate: r.p.MaxRate, MaxBytes: r.p.MaxBytes, Duration: r.p.Duration, Omit: r.p.Omit, Bytes: r.p.Bytes, Blocks: r.p.Blocks,
		Interval: r.p.Interval, Send: r.p.Send, Receive: r.p.Receive, Repeating: r.p.Repeating, Affinity: r.p.Affinity,
		ReceiveTimeout: r.p.ReceiveTimeout, Host: r.c.Host, UDP: r.udpConfig(),
	}
	if r.ramper != nil {
		cfg.Open = r.p.Ramp.First
	}
	if r.p.OneRow {
		cfg.Interval = 0
	}
	if r.file != nil {
		if r.sendsFile() {
			cfg.Source, cfg.SourceSize, cfg.Limited = r.file, r.size, true
		} else {
			cfg.Sink = r.file
		}
	}
	out := result.Sink(r.out)
	if r.hello.Has(ext.FeatureClient) && !r.quiet() {
		r.frames = ext.NewForwarder(ext.FrameClient, func(b []byte) error { return r.ctl.sendFrame(b, r.to.Answer) })
		if r.c.Facts != nil {
			if err := r.sendFrame(ext.ClientFrame{Facts: r.c.Facts}); err != nil {
				return r.closedError(err)
			}
		}
		out = result.Tee(r.out, r.frames)
	}
	cfg.Out = out
	eng, err := traffic.New(cfg, flows)
	if err != nil {
		return engineError("plan", err)
	}
	r.eng = eng
	return nil
}

// waited is what Engine.Wait returned.
type waited struct {
	reason traffic.Reason
	err    error
}

// ending says how the data phase ended.
type ending struct {
	limited   bool          // a count or a file ended it: what was sent must arrive
	byServer  bool          // the server sent EXCHANGE_RESULTS of itself
	interrupt *result.Error // ctx ended, and the server can be asked for its figures
}

// measure runs the data phase and what follows it.
func (r *clientRun) measure(ctx context.Context) error {
	if err := r.startBeside(ctx); err != nil {
		return err
	}
	r.flowed = true
	r.out.begin()
	r.emitHead(result.KindStart)
	r.eng.Start()
	r.c.mu.Lock()
	r.c.run = r
	r.c.mu.Unlock()
	steered, stop := r.startSteering(ctx)
	settled := r.ramper.start(ctx)
	end, err := r.watch(steered)
	settled()
	stop()
	if err != nil {
		return err
	}
	return r.finish(ctx, end)
}

// watch waits for the end of the data phase: a stop rule, a word of the server, ctx, or
// a send queue that stands still.
func (r *clientRun) watch(ctx context.Context) (ending, error) {
	wctx, cancel := context.WithCancel(ctx)
	defer cancel()
	wait := make(chan waited, 1)
	go func() { // ends with wctx at the latest
		reason, err := r.eng.Wait(wctx)
		wait <- waited{reason, err}
	}()
	still := newStall(r.acknowledged(), r.stallAfter())
	defer still.stop()
	var dead waited
	var reason <-chan time.Time
	for {
		select {
		case w := <-wait:
			switch w.reason {
			case traffic.Duration, traffic.Budget:
				return ending{}, nil
			case traffic.Bytes, traffic.Blocks, traffic.FileEnd:
				return ending{limited: true}, nil
			case traffic.ReceiveTimeout:
				return ending{}, &result.Error{
					Code: "receive-timeout", Number: codeNoMsg,
					Text: fmt.Sprintf("no data arrived for %v: the server, or the path from it, has stopped", r.p.ReceiveTimeout),
				}
			case traffic.PeerClosed: // why is said on the control connection, if at all
				dead = w
				t := time.NewTimer(r.to.Reason)
				defer t.Stop()
				reason = t.C
			case traffic.Cancelled: // seen below
			}
		case <-reason:
			return ending{}, r.deadStreams(dead.err)
		case in, ok := <-r.ctl.in:
			end, err, over := r.word(in, ok)
			if over {
				return end, err
			}
		case <-r.ramper.over():
			return ending{}, nil
		case <-still.tick():
			if still.stuck() {
				return ending{}, &result.Error{
					Code: "stalled", Number: codeStreamWrite, Errno: linuxETIMEDOUT,
					Text: fmt.Sprintf("nothing that was sent was acknowledged for %v: the server, or the path to it, has stopped", still.after),
				}
			}
		case <-ctx.Done():
			return r.interrupted(ctx)
		}
	}
}

// stallAfter is how long a send queue may stand still: the user's send timeout, else
// as long as a receiver would wait.
func (r *clientRun) stallAfter() time.Duration {
	if r.p.SendTimeout > 0 {
		return r.p.SendTimeout
	}
	return r.p.ReceiveTimeout
}

// word handles a message of the server in the data phase. over = the phase ended.
func (r *clientRun) word(in inbound, ok bool) (end ending, err error, over bool) {
	if !ok {
		in.err = errPeerClosed
	}
	switch {
	case in.err != nil:
		return end, r.closedError(in.err), true
	case in.m.State == StateExchangeResults:
		return ending{byServer: true}, nil, true
	case in.m.State == StateTestStart, in.m.State == StateTestRunning, in.m.State.Frame():
		return end, nil, false
	}
	if err := r.refused(in.m); err != nil {
		return end, err, true
	}
	return end, r.unknown(in.m), true
}

// interrupted ends a test because ctx did. A fullbore server is asked for its figures.
func (r *clientRun) interrupted(ctx context.Context) (ending, error) {
	cause := r.asError(ctx, context.Cause(ctx))
	if r.hello.Has(ext.FeatureClient) {
		return ending{interrupt: cause}, nil
	}
	return ending{}, cause
}

// finish ends the data phase on this side, exchanges results and says goodbye.
func (r *clientRun) finish(ctx context.Context, end ending) error {
	stop := ctx
	if end.interrupt != nil {
		var cancel context.CancelFunc
		stop, cancel = context.WithTimeout(context.Background(), r.to.Stopping)
		defer cancel()
	}
	if end.limited && r.p.Sends(result.Client) {
		var err error
		if end.byServer, err = r.drain(stop); err != nil {
			return err
		}
	}
	r.eng.StopSend()
	err := r.stopAndSayEnd(end)
	if err == nil {
		r.beside.stop()
		err = r.exchange(stop, end)
	}
	if end.interrupt != nil { // with or without the server's figures
		if err == nil {
			r.said = true
			_ = r.ctl.sendState(r.to.Linger, StateDone)
		}
		return end.interrupt
	}
	if err != nil {
		return err
	}
	r.emitFinish()
	r.eng.Close()
	if err := r.ctl.sendState(r.to.Answer, StateDone); err != nil {
		return nil //nolint:nilerr // both ends have all results: a lost goodbye changes nothing
	}
	r.done = true
	return nil
}

// stopAndSayEnd takes the totals and says TEST_END.
func (r *clientRun) stopAndSayEnd(end ending) error {
	if r.p.Transport == plan.UDP && r.p.Sends(result.Server) {
		// Loss is known only when the server has stopped: this end counts on until then, but
		// not for the rate.
		err := r.sayEnd(end)
		r.eng.StopReceive(true)
		totals := r.eng.Finish()
		r.countEarly(&totals)
		r.totals = &totals
		r.frames.Stop() // none follows our results
		return err
	}
	// What lies in the kernel has arrived in time, though this program was not given a
	// core to read it. But what a count asked for has been counted.
	r.eng.StopReceive(end.byServer || !end.limited)
	totals := r.eng.Finish()
	r.totals = &totals
	r.frames.Stop() // none follows TEST_END
	r.settleDatagrams()
	return r.sayEnd(end)
}

func (r *clientRun) sayEnd(end ending) error {
	switch {
	case end.byServer:
		return nil
	case end.interrupt != nil:
		if err := r.sendFrame(ext.ClientFrame{Stop: &ext.Stop{Why: end.interrupt.Text}}); err != nil {
			return r.closedError(err)
		}
		return nil
	}
	if err := r.ctl.sendState(r.to.Answer, StateTestEnd); err != nil {
		return r.closedError(err)
	}
	return nil
}

// drain waits until the server's system has acknowledged all that was sent, as long as
// the queues move (design §5 "The end"). What the server says meanwhile ends it; byServer =
// that was EXCHANGE_RESULTS.
func (r *clientRun) drain(ctx context.Context) (byServer bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	gone := make(chan struct{})
	go func() { // ends with ctx
		defer close(gone)
		done <- r.eng.Drain(ctx)
	}()
	defer func() {
		cancel()
		<-gone
	}()
	still := newStall(r.senders, r.to.Drain)
	defer still.stop()
	for {
		select {
		case err := <-done:
			if err == nil && r.hello == nil {
				// The data is in the server's kernel. An iperf3 server handles TEST_END before
				// data that it has not yet read, so give it a moment to read.
				t := time.NewTimer(settle)
				defer t.Stop()
				<-t.C
			}
			return false, nil // what the system cannot tell is not waited for
		case in, ok := <-r.ctl.in:
			if end, err, over := r.word(in, ok); over {
				return end.byServer, err
			}
		case <-still.tick():
			if still.stuck() {
				r.out.notice(result.Notice{
					Code: "drain-incomplete", Level: result.Warn,
					Text: fmt.Sprintf("the server stopped acknowledging for %v before all that was sent had arrived", still.after),
				})
				return false, nil
			}
		}
	}
}

// settle is how long an iperf3 server is given to read what its kernel already holds.
const settle = 5 * time.Millisecond

// exchange sends our results and takes the server's.
func (r *clientRun) exchange(ctx context.Context, end ending) error {
	if !end.byServer {
		if err := r.await(ctx, StateExchangeResults, "for its results after the test's end"); err != nil {
			return err
		}
	}
	own := resultsOf(result.Client, *r.totals)
	if r.hello == nil {
		own.Ext = nil
	} else {
		own.Ext.Dropped = r.frames.Dropped()
	}
	if err := r.ctl.send(AppendDocument(nil, own.Encode()), r.to.Answer); err != nil {
		return r.closedError(err)
	}
	m, err := r.next(ctx, r.answer())
	if err != nil {
		return r.waitError(err, "for its results")
	}
	if err := r.refused(m); err != nil {
		return err
	}
	if m.State != 0 {
		return r.unknown(m)
	}
	res, err := DecodeResults(m.Doc)
	if err != nil {
		return &result.Error{Code: "results", Remote: true, Text: "the server's results make no sense: " + err.Error(), Number: codeRecvResults}
	}
	if id := checkIDs(res, r.head.Streams); id != 0 {
		return &result.Error{Code: "results", Remote: true, Text: fmt.Sprintf("the server's results name a stream %d that does not exist", id), Number: codeStreamID}
	}
	r.other = &res
	return r.await(ctx, StateDisplayResults, "to confirm the results")
}

// await waits for one state.
func (r *clientRun) await(ctx context.Context, want State, what string) error {
	for {
		m, err := r.next(ctx, r.answer())
		if err != nil {
			return r.waitError(err, what)
		}
		switch {
		case m.State == want:
			return nil
		case m.State.Frame():
			continue
		}
		if err := r.refused(m); err != nil {
			return err
		}
		return r.unknown(m)
	}
}

// emitFinish hands on the totals of both ends, as far as they are known.
func (r *clientRun) emitFinish() {
	if r.ended || r.totals == nil {
		return
	}
	r.ended = true
	t := r.totals
	f := &result.Finish{
		Streams: merge(result.Client, r.head.Streams, *t, r.other), Usage: t.Usage, Path: &t.Path, Elapsed: time.Since(r.began).Seconds(),
		Zero: t.Zero,
	}
	if r.p.Transport == plan.UDP {
		r.out.notices(mergeUDP(result.Client, f.Streams, *t, r.other, r.out.hostDrops()))
	}
	f.CPU.Client = t.CPU
	wire := *r.head.Wire
	if o := r.other; o != nil {
		cpu := o.CPU
		f.CPU.Server = &cpu
		wire.ServerText, wire.ServerJSON = o.ServerText, o.ServerJSON
		if !r.p.Sends(result.Client) {
			wire.HasRetrans = o.HasRetransmit == 1
		}
		if o.Ext != nil {
			r.c.mu.Lock()
			r.lost = max(r.lost, o.Ext.Dropped)
			r.c.mu.Unlock()
		}
	}
	f.Wire = &wire
	if r.file != nil {
		noteDisk(f.Streams, result.Client, r.p.File, r.size)
	}
	r.c.mu.Lock()
	lost := r.lost
	r.c.mu.Unlock()
	if n := ext.DroppedNotice(result.Server, "the server's", lost); n != nil {
		r.out.notice(*n)
	}
	r.emitBeside()
	r.ramper.emit()
	if p := r.probesOfPlain(f.Streams); p != nil {
		r.out.Event(result.Event{Kind: result.KindProbes, Probes: p})
	}
	r.out.Event(result.Event{Kind: result.KindFinish, Finish: f})
}

// partial emits what is known of a test that broke off.
func (r *clientRun) partial() {
	if r.eng == nil || !r.flowed {
		return
	}
	if r.totals == nil {
		r.eng.StopSend()
		r.eng.StopReceive(false)
		t := r.eng.Finish()
		r.totals = &t
	}
	r.emitFinish()
}

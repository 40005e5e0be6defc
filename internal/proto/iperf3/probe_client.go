package iperf3

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/fullbore-net/fullbore/internal/osnet"
	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/internal/proto/ext"
	"github.com/fullbore-net/fullbore/internal/proto/probe"
	"github.com/fullbore-net/fullbore/internal/traffic"
	"github.com/fullbore-net/fullbore/result"
)

// wantsOnlyProbes reports that the plan asks for no load.
func (r *clientRun) wantsOnlyProbes() bool { return r.p.Probe != nil && r.p.Probe.Idle }

// probing reports that the server has what such a plan needs. Else the test is the plain
// one that the parameters describe.
func (r *clientRun) probing() bool {
	if r.p.Transport == plan.UDP {
		return r.wantsOnlyProbes() && r.hello.Has(ext.FeatureProbe)
	}
	return r.wantsOnlyProbes() && r.p.Probe.TCP && r.hello.Has(ext.FeaturePing)
}

// plainProbes fits a plan for probes to a server that does not answer any: of the TCP
// form only the connections can be timed, which takes no longer than opening them.
func (r *clientRun) plainProbes() {
	if r.wantsOnlyProbes() && r.p.Probe.TCP {
		r.p.Duration, r.p.Endless = plainConnects, false
		r.head.Test.Duration = r.p.Duration.Seconds()
	}
}

// plainConnects is how long a test lasts of which only the connections matter.
const plainConnects = time.Second

// noteConnect notes how long a connection took, where that is asked for.
func (r *clientRun) noteConnect(began time.Time) {
	if r.p.Probe == nil || !r.p.Probe.TCP {
		return
	}
	if r.connects == nil { // the control connection, before there are others
		r.connects = probe.NewConnects()
	}
	r.connects.Add(time.Since(began))
}

// probeWork is what happens between TEST_RUNNING and TEST_END in a test without streams.
type probeWork interface {
	// run works until its time is over or ctx ends (then the error is ctx's cause).
	run(ctx context.Context) error
	// figures are the final ones, with what the server counted (nil = not known).
	figures(remote *probe.Counts) ([]*result.Probes, []result.Notice)
	close()
}

// probeTest is the data phase and the end of a test without streams.
func (r *clientRun) probeTest(ctx context.Context) error {
	work, err := r.newProbeWork(ctx)
	if err != nil {
		return err
	}
	defer work.close()
	if err := r.awaitRunning(ctx); err != nil {
		return err
	}
	r.totals, r.flowed = &traffic.Totals{}, true
	r.head.Streams = []result.Stream{}
	r.out.begin()
	zero := osnet.Monotonic()
	r.emitHead(result.KindStart)
	end, err := r.watchProbes(ctx, work)
	if err == nil {
		err = r.endProbes(ctx, end)
	}
	r.emitProbes(work, zero)
	switch {
	case end.interrupt != nil:
		if err == nil {
			r.said = true
			_ = r.ctl.sendState(r.to.Linger, StateDone)
		}
		return end.interrupt
	case err != nil:
		return err
	}
	if err := r.ctl.sendState(r.to.Answer, StateDone); err != nil {
		return nil //nolint:nilerr // both ends have all results: a lost goodbye changes nothing
	}
	r.done = true
	return nil
}

func (r *clientRun) newProbeWork(ctx context.Context) (probeWork, error) {
	switch {
	case r.p.Probe.MTU:
		return r.newMTU(ctx)
	case r.p.Transport == plan.UDP:
		return r.newEcho(ctx, r.p.Duration)
	}
	return &pingWork{r: r}, nil
}

// awaitRunning waits for the server's word to begin.
func (r *clientRun) awaitRunning(ctx context.Context) error {
	for {
		m, err := r.next(ctx, r.answer())
		if err != nil {
			return r.waitError(err, "to begin")
		}
		switch {
		case m.State == StateTestRunning:
			return nil
		case m.State == StateTestStart, m.State.Frame():
			continue
		}
		if err := r.refused(m); err != nil {
			return err
		}
		return r.unknown(m)
	}
}

// watchProbes runs work, and ends it when the server says something that ends the test.
func (r *clientRun) watchProbes(ctx context.Context, work probeWork) (ending, error) {
	wctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	done := make(chan error, 1)
	go func() { done <- work.run(wctx) }() // ends with wctx at the latest; always waited for
	for {
		select {
		case err := <-done:
			switch {
			case err == nil:
				return ending{}, nil
			case ctx.Err() != nil:
				return r.interrupted(ctx)
			}
			return ending{}, r.probeError(err)
		case in, ok := <-r.ctl.in:
			if end, err, over := r.word(in, ok); over {
				cancel(nil)
				<-done
				return end, err
			}
		}
	}
}

// probeError words what ended the work; what the server says of it comes first.
func (r *clientRun) probeError(err error) error {
	var told *result.Error
	if errors.As(err, &told) {
		return told
	}
	ctx, cancel := context.WithTimeout(context.Background(), r.to.Reason)
	defer cancel()
	if m, merr := r.next(ctx, r.to.Reason); merr == nil {
		if e := r.refused(m); e != nil {
			return e
		}
	}
	return &result.Error{Code: "stream-closed", Text: err.Error(), Number: codeStreamRead, Errno: errno(err)}
}

// endProbes ends the test and takes the server's counts.
func (r *clientRun) endProbes(ctx context.Context, end ending) error {
	if end.interrupt != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.Background(), r.to.Stopping)
		defer cancel()
	}
	if err := r.sayEnd(end); err != nil {
		return err
	}
	return r.exchange(ctx, end)
}

// emitProbes hands on the final figures and ends the run's events.
func (r *clientRun) emitProbes(work probeWork, zero int64) {
	r.emitWork(work)
	r.ended = true
	wire := *r.head.Wire
	r.out.Event(result.Event{Kind: result.KindFinish, Finish: &result.Finish{
		Streams: []result.Stream{}, Elapsed: time.Since(r.began).Seconds(), Zero: &zero, Wire: &wire,
	}})
}

// emitWork hands on the figures, with what the server counted if it told.
func (r *clientRun) emitWork(work probeWork) {
	var remote *probe.Counts
	if r.other != nil && r.other.Ext != nil {
		remote = r.other.Ext.Probes
	}
	all, notices := work.figures(remote)
	r.out.notices(notices)
	for _, p := range all {
		r.reportProbes(p)
	}
}

// echoWork is a stream of probes over UDP.
type echoWork struct {
	p    *probe.Prober
	conn *probeConn
	ran  bool
	lane uint8
}

func (w *echoWork) run(ctx context.Context) error {
	w.ran = true
	return w.p.Run(ctx)
}

func (w *echoWork) figures(remote *probe.Counts) ([]*result.Probes, []result.Notice) {
	if w.lane > 0 {
		remote = nil // the results tell of the first stream only
	}
	return []*result.Probes{w.p.Result(remote)}, w.p.Notices(remote)
}

func (w *echoWork) close() {
	if !w.ran {
		_ = w.conn.Close()
	}
}

// newEcho opens the socket of a probe stream that lasts d; 0 = until it is stopped.
func (r *clientRun) newEcho(ctx context.Context, d time.Duration) (*echoWork, error) {
	return r.newLane(ctx, d, 0)
}

// newLane is newEcho for one of the test's probe streams: the first, or from 1 on one of those
// in other classes.
func (r *clientRun) newLane(ctx context.Context, d time.Duration, lane int) (*echoWork, error) {
	pr := r.p.Probe
	var id probe.ID
	var nonce probe.Nonce
	if n, err := hex.Decode(id[:], []byte(r.hello.Test)); err != nil || n != len(id) {
		return nil, r.badHello("test id")
	}
	if n, err := hex.Decode(nonce[:], []byte(r.hello.Nonce)); err != nil || n != len(nonce) {
		return nil, r.badHello("nonce")
	}
	o := r.streamOptions(0)
	if r.p.Transport != plan.UDP {
		o = osnet.Options{Family: o.Family, BindHost: o.BindHost, BindDev: o.BindDev, TOS: o.TOS, FlowLabel: o.FlowLabel, Timeout: o.Timeout}
	}
	if !r.wantsOnlyProbes() {
		o.LocalPort, o.Window, o.FQRate = 0, 0, 0 // those are the streams'
	}
	most := int64(0) // of probes beside a load: the budget is the load's
	if r.wantsOnlyProbes() {
		most = r.p.MaxBytes
	}
	kind, name, spacing, class := "", profileName(pr), pr.Spacing, uint8(0)
	if lane > 0 {
		o.TOS = pr.Classes[lane-1]
		kind, spacing, class = "udp-class", plan.ClassSpacing, uint8(o.TOS)
		name = fmt.Sprintf("class %d", o.TOS>>2)
	}
	conn, notices, err := osnet.Dial(ctx, "udp", r.addr, o)
	r.out.notices(notices)
	if err != nil {
		return nil, optionError(err)
	}
	pc, err := newProbeConn(conn)
	if err != nil {
		_ = conn.Close()
		return nil, optionError(err)
	}
	mark := probe.HostMark(nonce)
	var heard func(int64, probe.Arrivals, bool)
	if r.steerer != nil && lane == 0 {
		heard = r.steerer.answer
	}
	p, err := probe.New(probe.Config{
		Heard: heard,
		Conn:  pc, Test: id, Nonce: nonce, Profile: name, Spacing: spacing, Size: pr.Size, Duration: d, Most: most,
		Kind: kind, Class: class, Lane: uint8(lane),
		Now: osnet.Monotonic, SameHost: mark != "" && mark == r.hello.SameHost && !r.c.forgetHost, Report: r.reportProbes,
		Kept: r.kept(),
	})
	if err != nil {
		_ = pc.Close()
		return nil, &result.Error{Code: "plan", Text: err.Error()}
	}
	return &echoWork{p: p, conn: pc, lane: uint8(lane)}, nil
}

// beside is the probe streams that run while a test's streams carry their load.
type beside struct {
	work   []*echoWork
	cancel context.CancelFunc
	ended  chan struct{}
}

// startBeside begins the probes that the plan wants beside the load.
func (r *clientRun) startBeside(ctx context.Context) error {
	if r.p.Probe == nil || r.p.Probe.Idle {
		return nil
	}
	if !r.hello.Has(ext.FeatureProbe) {
		r.out.notice(result.Notice{
			Code: "no-probes", Level: result.Warn,
			Text: "the other end does not answer probes: how the round trip behaves under this load is not known (fullbore serve there would answer)",
		})
		return nil
	}
	work, err := r.newEcho(ctx, 0)
	if err != nil {
		return err
	}
	all := []*echoWork{work}
	if r.hello.Has(ext.FeatureClass) {
		for i := range r.p.Probe.Classes {
			more, err := r.newLane(ctx, 0, i+1)
			if err != nil {
				for _, w := range all {
					w.close()
				}
				return err
			}
			all = append(all, more)
		}
	}
	bctx, cancel := context.WithCancel(context.WithoutCancel(ctx)) // an interrupted test still wants their end
	b := &beside{work: all, cancel: cancel, ended: make(chan struct{})}
	var running sync.WaitGroup
	for _, w := range all {
		running.Go(func() { _ = w.run(bctx) }) // ends with stop or abort, which wait for it; the cause is ours
	}
	go func() { // ends with them
		running.Wait()
		close(b.ended)
	}()
	r.beside = b
	return nil
}

// stop ends the probes and waits for the answers to those on their way. It may be called
// more than once, and on nil.
func (b *beside) stop() {
	if b != nil {
		for _, w := range b.work {
			w.p.Stop()
		}
		<-b.ended
		b.cancel()
	}
}

// abort is stop without waiting for answers.
func (b *beside) abort() {
	if b != nil {
		b.cancel()
		<-b.ended
	}
}

// emitBeside hands on the final figures of probes beside the load.
func (r *clientRun) emitBeside() {
	if r.beside == nil {
		return
	}
	r.beside.abort() // no-op when they were stopped
	for _, w := range r.beside.work {
		r.emitWork(w)
	}
}

func (r *clientRun) reportProbes(p *result.Probes) {
	r.out.Event(result.Event{Kind: result.KindProbes, Probes: p})
}

func (r *clientRun) badHello(what string) error {
	return &result.Error{Code: "protocol", Remote: true, Number: codeMessage, Text: "the server's hello has no valid " + what}
}

// profileName is the name shown for a probe stream.
func profileName(p *plan.Probe) string {
	if p.Profile != "" {
		return p.Profile
	}
	return p.Spacing.String()
}

// probeConn is a connected UDP socket with the kernel's stamps.
type probeConn struct {
	conn *osnet.Conn
	pc   *osnet.PacketConn // the same socket; it owns it
}

func newProbeConn(conn *osnet.Conn) (*probeConn, error) {
	u, ok := conn.Net().(*net.UDPConn)
	if !ok {
		return nil, fmt.Errorf("iperf3: %T is no UDP socket", conn.Net())
	}
	pc, err := osnet.NewPacketConn(u)
	if err != nil {
		return nil, err
	}
	return &probeConn{conn: conn, pc: pc}, nil
}

// Send implements probe.Conn.
func (c *probeConn) Send(b []byte) error {
	_, err := c.conn.Net().Write(b)
	return probeConnError(err)
}

// Receive implements probe.Conn.
func (c *probeConn) Receive(b []byte) (n int, at int64, kernel bool, err error) {
	n, _, _, stamp, err := c.pc.Read(b)
	if err != nil {
		return 0, 0, false, probeConnError(err)
	}
	at, kernel = monotonicOf(stamp, osnet.Monotonic())
	return n, at, kernel, nil
}

// Close implements probe.Conn.
func (c *probeConn) Close() error { return c.pc.Close() }

func probeConnError(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, net.ErrClosed):
		return probe.ErrClosed
	}
	switch errno(err) {
	case linuxECONNREFUSED, linuxEHOSTUNREACH, linuxENETUNREACH:
		return fmt.Errorf("%w: %w", probe.ErrRefused, err)
	case linuxEMSGSIZE:
		return fmt.Errorf("%w: %w", probe.ErrTooLong, err)
	}
	return err
}

// Linux's numbers, to which errno maps those of other systems.
const (
	linuxENETUNREACH  = 101
	linuxEHOSTUNREACH = 113
)

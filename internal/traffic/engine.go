package traffic

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fullbore-net/fullbore/internal/oshost"
	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/result"
)

// Engine runs one test's flows at one end. Wait, Snapshot and Steer may be called
// from any goroutine; the other methods by one at a time.
type Engine struct {
	cfg     Config
	streams []*stream
	movers  []mover
	notices []result.Notice
	shared  shared       // what the fast workers have in common
	u       udpState     // of a UDP test
	discard bool         // receivers let the kernel drop payload
	tx      atomic.Int32 // the fast senders' way: txCopy …
	fastTx  bool         // Path.Tx follows tx
	told    atomic.Bool  // the notice of a fallback was emitted

	letter   [1]byte     // Fill
	measured atomic.Bool // the omitted part is over

	t0      time.Time
	mono    *int64       // t0 on the machine's monotonic clock; nil = not known
	started atomic.Bool  // t0 and the base samples are there
	rate    atomic.Int64 // per flow now, for the workers: Bitrate and Steer, under MaxRate; 0 = unpaced
	open    atomic.Int64 // how many of the senders may send; 0 = all
	cap     int64        // per flow share of MaxRate; 0 = none
	q       quota

	// received counts against a receiver's Bytes/Blocks rule; receiveTarget is
	// math.MaxInt64 while there is none.
	received      atomic.Int64
	receiveTarget atomic.Int64
	watchReceived bool

	stopSend atomic.Bool
	stopRecv atomic.Bool
	drain    atomic.Bool // receivers read what the kernel holds before they leave
	senders  group
	readers  group

	fired    chan struct{} // closed by fire
	fireOnce sync.Once
	reason   Reason
	silent   atomic.Bool // ReceiveTimeout fired: a limited run is not complete

	halt      chan struct{} // ends the clock goroutine
	clockDone chan struct{}

	mu          sync.Mutex // guards what follows and the marks of streams
	path        result.DataPath
	kernelPaced bool
	ax          axis
	rows        []*result.Interval // made, not yet emitted
	final       *Totals
	usage       struct{ base, end usage }

	sourceMu, sinkMu sync.Mutex

	life   sync.RWMutex // held for reading while movers are kicked
	closed bool
}

// mover is a worker: it moves the bytes of the flows it owns.
type mover interface {
	// run moves bytes until its flows ended or were told to stop. It is the goroutine's body.
	run()
	// kick makes a run that is blocked notice its stop flag soon. It may be called often,
	// and not after close.
	kick()
	sends() bool
	// close gives resources back, after run.
	close()
}

// group counts the goroutines of one direction; done is closed by the last.
type group struct {
	left atomic.Int32
	done chan struct{}
}

func (g *group) leave() {
	if g.left.Add(-1) == 0 {
		close(g.done)
	}
}

// New checks cfg and takes over the flows' sockets, also on error (then they are closed).
func New(cfg Config, flows []Flow) (*Engine, error) {
	if cfg.Transport == "" {
		cfg.Transport = plan.TCP
	}
	if cfg.BlockSize == 0 && cfg.Transport == plan.TCP {
		cfg.BlockSize = plan.DefaultTCPBlock
	}
	if cfg.Bytes > 0 || cfg.Blocks > 0 {
		cfg.Limited = true
	}
	cfg.TimeCalls = cfg.TimeCalls || cfg.Message == RoundTrip
	cfg.CountCalls = cfg.CountCalls || cfg.TimeCalls || cfg.WaitAll || cfg.Burn > 0
	cfg.UDP.Bare = cfg.UDP.Bare || cfg.Message != "" && cfg.Transport == plan.UDP
	e := &Engine{
		cfg: cfg, fired: make(chan struct{}),
		halt: make(chan struct{}), clockDone: make(chan struct{}),
	}
	for _, f := range flows {
		e.streams = append(e.streams, &stream{Flow: f, e: e, calls: newCalls(&cfg), turns: cfg.Blocks})
	}
	e.numberSenders()
	if err := validate(cfg, flows); err != nil {
		e.closeSockets()
		return nil, err
	}
	if cfg.MaxRate > 0 {
		e.cap = max(1, cfg.MaxRate/int64(len(flows)))
	}
	e.letter[0] = cfg.Fill
	e.u.stop.Store(noStop)
	e.q.block = int64(cfg.BlockSize)
	e.q.exact = cfg.Source != nil
	e.q.budgeted = cfg.MaxBytes > 0
	e.q.budget.Store(cfg.MaxBytes)
	e.receiveTarget.Store(math.MaxInt64)
	e.watchReceived = cfg.Bytes > 0 || cfg.Blocks > 0
	if err := e.build(); err != nil {
		e.Close()
		return nil, err
	}
	e.setRate(cfg.Bitrate)
	e.readSYNs()
	return e, nil
}

// build makes the movers: fast ones where the system has them, portable ones for the
// rest (files, connections without a descriptor).
func (e *Engine) build() error {
	if len(e.cfg.Affinity) > 0 {
		if err := checkAffinity(e.cfg.Affinity); errors.Is(err, errors.ErrUnsupported) {
			e.notice("affinity-unavailable", result.Warn, "workers are not bound to CPUs: this system does not offer it")
			e.cfg.Affinity = nil
		} else if err != nil {
			return err
		}
	}
	if e.udp() {
		return e.buildDatagrams()
	}
	rest, err := e.messages(e.streams)
	if err == nil {
		rest, err = e.buildFast(rest)
	}
	if err != nil {
		return err
	}
	for _, s := range e.streams {
		switch {
		case !s.Send && e.cfg.Sink != nil:
			e.path.Rx = "file"
		case !s.Send && e.discard:
			e.path.Rx = "discard"
		case !s.Send:
			e.path.Rx = "copy"
		case e.cfg.Source != nil:
			e.path.Tx = "file"
		default:
			e.path.Tx = "copy"
			e.fastTx = true
		}
	}
	for i, s := range rest {
		e.movers = append(e.movers, newPortable(s, i))
		if s.Send {
			e.fastTx = false
		}
		if e.path.Worker == "" {
			e.path.Worker = "goroutine"
		}
	}
	switch {
	case e.cfg.Receive != plan.Discard || e.path.Rx != "copy":
	case e.cfg.Verify, e.cfg.Message != "":
		e.notice("discard-unavailable", result.Info, "payload is copied out of the kernel: it is to be looked at")
	default:
		e.notice("discard-unavailable", result.Info, "payload is copied out of the kernel: this system cannot discard it there")
	}
	if e.cfg.Send == plan.SendZeroCopy && e.path.Tx == "copy" && !e.fastTx && !e.cfg.usesMessages() {
		e.notice("zerocopy-unavailable", result.Info, "payload is copied into the kernel: this system has no zero-copy send")
	}
	if e.cfg.Interval > 0 && len(e.streams) > detailFlows {
		e.notice("details-thinned", result.Info, fmt.Sprintf(
			"with more than %d streams an interval carries the TCP details of the %d slowest only", detailFlows, slowFlows))
	}
	return nil
}

func (e *Engine) notice(code string, level result.Level, text string) {
	e.notices = append(e.notices, result.Notice{Code: code, End: e.cfg.End, Level: level, Text: text})
}

// now is the engine's clock: ns since t0, monotonic.
func (e *Engine) now() int64 { return int64(time.Since(e.t0)) }

// setRate puts a per-flow rate in force, in the kernel or for the workers.
func (e *Engine) setRate(bps int64) {
	if e.cap > 0 && (bps <= 0 || bps > e.cap) {
		bps = e.cap
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	was := e.kernelPaced
	e.kernelPaced = !e.udp() && !e.cfg.usesMessages() && e.paceInKernel(bps)
	if was && !e.kernelPaced {
		for _, s := range e.streams {
			if s.Send {
				_ = s.Conn.SetPacing(0)
			}
		}
	}
	e.path.Pacing = "none"
	switch {
	case e.kernelPaced:
		bps = 0
		e.path.Pacing = "kernel"
	case bps > 0 && e.udp() && e.cfg.UDP.Pacing != plan.PacingDefault:
		e.path.Pacing = string(e.cfg.UDP.Pacing)
	case bps > 0, e.cfg.Spacing > 0:
		e.path.Pacing = "sleep"
	}
	e.rate.Store(bps)
}

// paced reports whether the workers of one direction keep to a rate themselves.
func (e *Engine) paced(send bool) bool {
	return e.cap > 0 || send && e.rate.Load() > 0
}

// trimOnce: the first test of a process comes after much that is never run again.
var trimOnce = sync.OnceFunc(oshost.TrimCode)

// Start begins the test: it is t0 of all times, unless Config.Began is earlier.
func (e *Engine) Start() {
	if e.started.Load() {
		return
	}
	trimOnce()
	e.t0, e.mono = time.Now(), monotonic()
	if ago := e.t0.Sub(e.cfg.Began); !e.cfg.Began.IsZero() && ago > 0 {
		e.t0 = e.cfg.Began
		if e.mono != nil {
			*e.mono -= int64(ago)
		}
	}
	e.senders.done, e.readers.done = make(chan struct{}), make(chan struct{})
	for _, m := range e.movers {
		if m.sends() {
			e.senders.left.Add(1)
		} else {
			e.readers.left.Add(1)
		}
	}
	if e.senders.left.Load() == 0 {
		close(e.senders.done)
	}
	if e.readers.left.Load() == 0 {
		close(e.readers.done)
	}
	e.shared.acquire(len(e.movers))
	e.alignClock()
	e.begin()
	e.started.Store(true)
	for _, n := range e.notices {
		e.emit(result.Event{Kind: result.KindNotice, Notice: &n})
	}
	for _, m := range e.movers {
		go e.work(m)
	}
	go e.clock()
}

// work runs one mover; it ends when the mover's flows ended or were stopped.
func (e *Engine) work(m mover) {
	m.run()
	if m.sends() {
		e.senders.leave()
	} else {
		e.readers.leave()
	}
}

// fire records the first stop rule.
func (e *Engine) fire(r Reason) {
	e.fireOnce.Do(func() {
		e.reason = r
		if r == ReceiveTimeout {
			e.silent.Store(true)
		}
		if r == Duration || r == Budget {
			e.stopSend.Store(true)
		}
		if r == Budget {
			e.endReceive()
			e.stopRecv.Store(true)
		}
		close(e.fired)
	})
}

// Wait returns the first stop rule that is met. When ctx ends before, it returns
// Cancelled and ctx's cause; that changes nothing in the engine. PeerClosed comes with the first flow's error, if any.
// Wait stops nothing by itself, but senders that reached Duration, Bytes, Blocks, the
// budget or the end of the file send no more.
func (e *Engine) Wait(ctx context.Context) (Reason, error) {
	select {
	case <-e.fired:
	default:
		select {
		case <-e.fired:
		case <-ctx.Done():
			return Cancelled, context.Cause(ctx)
		}
	}
	if e.reason == PeerClosed {
		for _, s := range e.streams {
			if err := s.failure(); err != nil {
				return e.reason, err
			}
		}
	}
	return e.reason, nil
}

// StopSend stops the senders and returns when none is in a write any more, within
// about 250 ms whatever the peer does.
func (e *Engine) StopSend() {
	e.stopSend.Store(true)
	e.leaveAll(true, &e.senders)
	e.keepLast(true, false)
}

// StopReceive stops the receivers. With drain each first reads what its socket holds
// at that moment. It returns when none reads any more, within about 250 ms. Receivers of
// datagrams with drain count on, for loss only, until UDPConfig.Drain (at least 200 ms) of
// silence, 2 s at most.
func (e *Engine) StopReceive(drain bool) {
	e.endReceive()
	e.drain.Store(drain)
	e.stopRecv.Store(true)
	e.leaveAll(false, &e.readers)
	e.keepLast(false, false)
}

// leaveAll kicks the movers of one direction until all have left.
func (e *Engine) leaveAll(send bool, g *group) {
	if !e.started.Load() {
		return
	}
	for pause := time.Millisecond; ; pause = min(2*pause, 20*time.Millisecond) {
		select {
		case <-g.done:
			return
		default:
		}
		e.kick(send)
		t := time.NewTimer(pause)
		select {
		case <-g.done:
		case <-t.C:
		}
		t.Stop()
	}
}

// Drain returns when the peer has acknowledged all that was sent, or with ctx's error.
// Flows that died count as drained. On systems that do not tell, it returns an error
// wrapping errors.ErrUnsupported at once.
func (e *Engine) Drain(ctx context.Context) error {
	if !e.started.Load() {
		return nil
	}
	pause := 200 * time.Microsecond
	for {
		left := 0
		for _, s := range e.streams {
			if !s.Send || s.drained != 0 || s.failure() != nil {
				continue
			}
			n, err := s.Conn.SendQueue()
			switch {
			case errors.Is(err, errors.ErrUnsupported):
				return fmt.Errorf("traffic: drain: %w", err)
			case err != nil:
				s.fail(fmt.Errorf("traffic: read send queue: %w", err))
			case n == 0:
				e.mu.Lock()
				s.drained = max(e.now(), 1)
				e.mu.Unlock()
			default:
				left++
			}
		}
		if left == 0 {
			e.keepLast(true, true)
			return nil
		}
		t := time.NewTimer(pause)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			e.keepLast(true, true)
			return fmt.Errorf("traffic: drain: %d flows hold unacknowledged data: %w", left, context.Cause(ctx))
		}
		pause = min(pause*5/4, 5*time.Millisecond)
	}
}

// Steer sets a new rate (payload bit/s per flow, 0 = unlimited), still under MaxRate.
// The new schedule begins now.
func (e *Engine) Steer(bps int64) {
	e.setRate(bps)
	e.kick(true)
}

// numberSenders gives each sender its place in the order in which they may begin.
func (e *Engine) numberSenders() {
	n := int64(0)
	for _, s := range e.streams {
		if s.Send {
			s.nth = n
			n++
		}
	}
	e.open.Store(int64(e.cfg.Open))
}

// Open lets the first n of the sending flows send (Config.Open). A flow that has begun goes on.
func (e *Engine) Open(n int) {
	for {
		was := e.open.Load()
		if was == 0 || int64(n) <= was {
			return
		}
		if e.open.CompareAndSwap(was, int64(n)) {
			break
		}
	}
	e.kick(true)
}

// kick kicks the movers of one direction.
func (e *Engine) kick(send bool) {
	e.life.RLock()
	defer e.life.RUnlock()
	if e.closed {
		return
	}
	for _, m := range e.movers {
		if m.sends() == send {
			m.kick()
		}
	}
}

// Close ends everything: sockets are closed and the engine's goroutines are gone when
// it returns. It may be called at any time, more than once.
func (e *Engine) Close() {
	if e.started.Load() {
		e.StopSend()
		e.StopReceive(false)
		e.stopClock()
	}
	e.life.Lock()
	defer e.life.Unlock()
	if e.closed {
		return
	}
	e.closed = true
	for _, m := range e.movers {
		m.close()
	}
	e.shared.release()
	e.closeSockets()
}

func (e *Engine) closeSockets() {
	for _, s := range e.streams {
		if s.Conn != nil {
			s.Conn.Close()
		}
	}
}

func (e *Engine) stopClock() {
	e.mu.Lock()
	select {
	case <-e.halt:
	default:
		close(e.halt)
	}
	e.mu.Unlock()
	<-e.clockDone
}

func (e *Engine) emit(ev result.Event) {
	if e.cfg.Out == nil {
		return
	}
	ev.End = e.cfg.End
	ev.T = seconds(e.now())
	e.cfg.Out.Event(ev)
}

func seconds(ns int64) float64 { return float64(ns) / float64(time.Second) }

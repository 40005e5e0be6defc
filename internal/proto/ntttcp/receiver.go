package ntttcp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/fullbore-net/fullbore/internal/osnet"
	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/result"
)

// Listeners are the sockets of a receiver, which Serve closes.
type Listeners struct {
	// Sync is the port below the data ports; nil = nobody can synchronise the Linux way.
	Sync net.Listener
	// Data are the data ports, in order; nil = UDP only.
	Data []net.Listener
	// Tokens are the token ports of the Windows dialect, as many as Data; nil = none.
	Tokens []net.Listener
	// Packets are the data ports of UDP, in order; nil = TCP only.
	Packets []*osnet.PacketConn
}

// TestHooks connect one test of a receiver to its surroundings.
type TestHooks struct {
	Sink result.Sink               // gets the test's events; nil = nobody listens
	Host func() *result.HostSample // samples this machine's counters once per interval; nil = not
	// Machine counts over the measured time; nil = not.
	Machine Machine
	Done    func() // called once when the last event was delivered; nil = not
}

// Receiver takes tests. The zero value of every field but Config works. A Receiver is used for
// one Serve.
//
// It tells senders apart by where their first connection lands: the sync port = Linux; a token
// port before any data = Windows; data = not synchronised. Data connections belong to the
// sender that is setting up a test at their source address.
type Receiver struct {
	Config Config
	Tool   result.Tool
	Facts  *result.Host
	Now    func() time.Time
	Log    *slog.Logger // one line per test and per odd visitor; nil = none
	// NewTest is called for every test that begins. nil = no hooks.
	NewTest  func(remote result.Addr) TestHooks
	Timeouts Timeouts

	second time.Duration // for tests: a second of the protocol

	c       Config
	to      Timeouts
	log     *slog.Logger
	lns     Listeners
	wg      sync.WaitGroup
	cancel  context.CancelCauseFunc
	arrived visitors
	barrier barrier
	clamped []result.Notice

	mu      sync.Mutex
	setups  map[netip.Addr]*test // who is setting up; their data connections are the test's
	running map[*test]struct{}   // tests from their start on; those with a tally take datagrams
	tallies map[netip.Addr]*test // of running tests: where datagrams go
	multi   *test                // the one that waits for its last sender (-M)
	// ghosts are senders of datagrams whose test is over, and when they were last heard: what
	// they still send begins no other. callers are those that sent one datagram.
	ghosts  map[netip.AddrPort]time.Time
	callers map[netip.AddrPort]caller
	tests   int  // how many have begun
	over    int  // and ended
	used    bool // one-off: its test has begun
}

// ErrPorts is returned when the listeners make no receiver.
var ErrPorts = errors.New("ntttcp: a receiver needs data ports")

// errServed ends Serve after a one-off test.
var errServed = errors.New("the one test is done")

// Serve takes tests until ctx ends, which ends running ones, or until a one-off receiver's test
// is over. It returns nil after that, ctx's cause, or a listener's error; every socket is closed
// and every goroutine gone then.
func (r *Receiver) Serve(ctx context.Context, lns Listeners) error {
	r.lns = lns
	if err := r.prepare(); err != nil {
		r.closeSockets()
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	r.cancel = cancel
	defer cancel(nil)
	stop := context.AfterFunc(ctx, func() {
		r.closeSockets()
		r.arrived.closeAll()
	})
	defer stop()
	if lns.Sync != nil {
		r.wg.Go(func() {
			r.accept(ctx, lns.Sync, func(nc net.Conn) { r.wg.Go(func() { r.handleSync(ctx, nc) }) })
		})
	}
	for i, ln := range lns.Data {
		r.wg.Go(func() { r.accept(ctx, ln, func(nc net.Conn) { r.handleData(ctx, nc, i) }) })
	}
	for i, ln := range lns.Tokens {
		r.wg.Go(func() { r.accept(ctx, ln, func(nc net.Conn) { r.wg.Go(func() { r.handleToken(ctx, nc, i) }) }) })
	}
	for i, pc := range lns.Packets {
		r.wg.Go(func() { r.read(ctx, pc, i) })
	}
	<-ctx.Done()
	r.wg.Wait()
	err := context.Cause(ctx)
	if errors.Is(err, errServed) {
		return nil
	}
	return err
}

func (r *Receiver) prepare() error {
	r.c = r.Config.filled(false)
	if err := r.c.Validate(false); err != nil {
		return &result.Error{Code: "plan", Text: err.Error()}
	}
	if len(r.lns.Data) == 0 && len(r.lns.Packets) == 0 {
		return ErrPorts
	}
	r.clamped = r.c.clamp()
	r.to = r.Timeouts.filled()
	if r.log = r.Log; r.log == nil {
		r.log = slog.New(slog.DiscardHandler)
	}
	if r.second == 0 {
		r.second = time.Second
	}
	r.setups, r.running, r.tallies = map[netip.Addr]*test{}, map[*test]struct{}{}, map[netip.Addr]*test{}
	r.ghosts, r.callers = map[netip.AddrPort]time.Time{}, map[netip.AddrPort]caller{}
	r.arrived.conns = map[net.Conn]struct{}{}
	return nil
}

func (r *Receiver) closeSockets() {
	close := func(ln net.Listener) {
		if ln != nil {
			_ = ln.Close()
		}
	}
	close(r.lns.Sync)
	for _, ln := range append(append([]net.Listener(nil), r.lns.Data...), r.lns.Tokens...) {
		close(ln)
	}
	for _, pc := range r.lns.Packets {
		_ = pc.Close()
	}
}

func (r *Receiver) now() time.Time {
	if r.Now != nil {
		return r.Now()
	}
	return time.Now()
}

// accept takes connections until the listener is closed. handle must not wait: the next
// connection is accepted when this one is known.
func (r *Receiver) accept(ctx context.Context, ln net.Listener, handle func(net.Conn)) {
	pause := 5 * time.Millisecond
	for {
		nc, err := ln.Accept()
		switch {
		case err == nil:
			pause = 5 * time.Millisecond
			if r.barrier.marker(nc) {
				continue
			}
			if !r.allowed(peerOf(nc)) {
				r.note(peerOf(nc), "not allowed")
				_ = nc.Close()
				continue
			}
			handle(nc)
			continue
		case ctx.Err() != nil:
			return
		case errors.Is(err, net.ErrClosed):
			r.cancel(fmt.Errorf("ntttcp: accept: %w", err))
			return
		case osnet.IsTooManyFiles(err):
			r.note(netip.Addr{}, "out of descriptors", "err", err)
		default:
			r.log.Warn("accept", "err", err)
		}
		t := time.NewTimer(pause)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return
		}
		pause = min(2*pause, 100*time.Millisecond)
	}
}

func (r *Receiver) allowed(a netip.Addr) bool { return plan.Allowed(r.c.Allow, a) }

// note logs an odd visitor, a bounded number of times. what must not hold what it sent.
func (r *Receiver) note(peer netip.Addr, what string, attrs ...any) {
	if r.arrived.mayLog(peer) {
		r.log.Warn("visitor", append([]any{"from", peer.String(), "what", what}, attrs...)...)
	}
}

// visitors are connections that belong to no test yet, and how often their addresses were
// logged. Beyond maxVisitors the newest is turned away: those that are here leave by their
// timeouts.
type visitors struct {
	mu     sync.Mutex
	conns  map[net.Conn]struct{}
	closed bool
	lines  map[netip.Addr]int
	since  time.Time
}

const (
	maxVisitors  = 4096
	visitorLines = 8
	visitorPause = 10 * time.Second
)

func (v *visitors) add(nc net.Conn) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.closed || len(v.conns) >= maxVisitors {
		return false
	}
	v.conns[nc] = struct{}{}
	return true
}

func (v *visitors) remove(nc net.Conn) {
	v.mu.Lock()
	delete(v.conns, nc)
	v.mu.Unlock()
}

func (v *visitors) closeAll() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.closed = true
	for nc := range v.conns {
		_ = nc.Close()
	}
}

func (v *visitors) mayLog(a netip.Addr) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	now := time.Now()
	if now.Sub(v.since) >= visitorPause || v.lines == nil {
		v.since, v.lines = now, map[netip.Addr]int{}
	}
	if len(v.lines) >= 256 || v.lines[a] >= visitorLines {
		return false
	}
	v.lines[a]++
	return true
}

// full reports that no further test may begin. r.mu is held.
func (r *Receiver) full() bool {
	return (r.c.Exclusive || r.c.OneOff) && len(r.running) > 0 || r.used || r.c.MaxTests > 0 && len(r.running) >= r.c.MaxTests
}

// enter lets a sender at peer set up a test; nil = it must come back later. Where one address
// sets up another test already, it waits for that, since nothing tells their connections apart.
func (r *Receiver) enter(ctx context.Context, peer netip.Addr) *test {
	deadline := time.Now().Add(r.to.Turn)
	for {
		r.mu.Lock()
		if r.full() {
			r.mu.Unlock()
			return nil
		}
		if r.c.Multi {
			t := r.multi
			if t == nil {
				t = r.newTest(peer)
				r.multi = t
			}
			r.setups[peer] = t
			t.entered(peer)
			r.mu.Unlock()
			return t
		}
		other := r.setups[peer]
		if other == nil || other.stale() {
			t := r.newTest(peer)
			r.setups[peer] = t
			r.mu.Unlock()
			return t
		}
		r.mu.Unlock()
		left := time.Until(deadline)
		if left <= 0 {
			return nil
		}
		timer := time.NewTimer(left)
		select {
		case <-other.settled:
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil
		}
		timer.Stop()
	}
}

// begin gives t a slot; false = there is none any more.
func (r *Receiver) begin(t *test) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, ok := r.running[t]; ok {
		return true
	}
	if r.full() {
		return false
	}
	r.take(t)
	return true
}

// take gives t its slot. r.mu is held.
func (r *Receiver) take(t *test) {
	r.used = r.c.OneOff
	r.tests++
	t.number, t.others = r.tests, len(r.running)
	r.running[t] = struct{}{}
	if r.multi == t {
		r.multi = nil
	}
}

// forget ends t's set-up: connections from its addresses are no longer its own.
func (r *Receiver) forget(t *test) {
	r.mu.Lock()
	for a, x := range r.setups {
		if x == t {
			delete(r.setups, a)
		}
	}
	if r.multi == t {
		r.multi = nil
	}
	r.mu.Unlock()
	t.settle()
}

// ended gives the slot back.
func (r *Receiver) ended(t *test) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.running, t)
	r.over++
	for a, x := range r.tallies {
		if x == t {
			delete(r.tallies, a)
		}
	}
	r.haunt(t)
}

// parted ends a one-off receiver when the senders have left.
func (r *Receiver) parted(ctx context.Context, t *test) {
	if r.c.OneOff {
		t.awaitParting(ctx)
		r.cancel(errServed)
	}
}

// state is the answer to X for a sender that may set up a test.
func (r *Receiver) state() Word {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over > 0 {
		return StateFinished
	}
	return StateIdle
}

// handleData takes a data connection: it belongs to the test that its address sets up, or is
// the first of a sender that does not synchronise, or not the Linux way.
func (r *Receiver) handleData(ctx context.Context, nc net.Conn, port int) {
	peer := peerOf(nc)
	r.mu.Lock()
	t := r.setups[peer]
	fresh := t == nil
	if fresh {
		if r.full() || r.c.Multi {
			r.mu.Unlock()
			r.note(peer, "data connection without a test")
			_ = nc.Close()
			return
		}
		t = r.newTest(peer)
		t.kind = kindUnsynced
		r.setups[peer] = t
	}
	ok := t.offer(nc, port)
	r.mu.Unlock()
	if !ok {
		r.note(peer, "more connections than its test has, or may have")
		_ = nc.Close()
		return
	}
	if fresh {
		r.wg.Go(func() { t.runUnsynced(ctx) })
	}
}

package ntttcp

import (
	"bytes"
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
	"github.com/fullbore-net/fullbore/internal/traffic"
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
	// PortSync tells each Windows sender's thread its data port, one of Data (-sp); nil = not.
	PortSync net.Listener
	// These are the ports of Linux senders with -P n, where a Windows receiver was given -P n
	// and has other ports itself (plan.NTTTCP.LinuxPorts); nil = none.
	LinuxSync    net.Listener
	LinuxData    []net.Listener
	LinuxPackets []*osnet.PacketConn
}

// Close closes all of them.
func (l Listeners) Close() {
	for _, ln := range append(l.data(), append([]net.Listener{l.Sync, l.PortSync, l.LinuxSync}, l.Tokens...)...) {
		if ln != nil {
			_ = ln.Close()
		}
	}
	for _, pc := range l.packets() {
		_ = pc.Close()
	}
}

// data are the data ports of both sets; a connection's port is an index here.
func (l Listeners) data() []net.Listener {
	return append(append([]net.Listener(nil), l.Data...), l.LinuxData...)
}

// packets are those of UDP.
func (l Listeners) packets() []*osnet.PacketConn {
	return append(append([]*osnet.PacketConn(nil), l.Packets...), l.LinuxPackets...)
}

// TestHooks connect one test of a receiver to its surroundings.
type TestHooks struct {
	Sink result.Sink               // gets the test's events; nil = nobody listens
	Host func() *result.HostSample // samples this machine's counters once per interval; nil = not
	// Machine counts over the measured time; nil = not.
	Machine Machine
	// OnMessage gets the number and times of each message (Config.Message traffic.Jitter); several
	// may come at once. nil = not.
	OnMessage func(traffic.Message)
	Done      func() // called once when the last event was delivered; nil = not
}

// Receiver takes tests. The zero value of every field but Config works. A Receiver is used for
// one Serve.
//
// It tells senders apart by where their first connection lands: the sync port = Linux; a token
// port before any data = Windows; data = not synchronised. What tells the connections of several
// senders at one address apart is in door.go.
type Receiver struct {
	Config Config
	Tool   result.Tool
	Facts  *result.Host
	// FactsTo looks at this machine anew, along the route to a sender, with its settings, where
	// Config.FullFacts has them told; nil = Facts.
	FactsTo func(sender netip.Addr) *result.Host
	Now     func() time.Time
	Log     *slog.Logger // one line per test and per odd visitor; nil = none
	// NewTest is called for every test that begins. nil = no hooks.
	NewTest  func(remote result.Addr) TestHooks
	Timeouts Timeouts
	// Slots bounds the tests of this receiver and of whoever shares them; nil = Config's own.
	Slots *plan.Slots

	second time.Duration // for tests: a second of the protocol

	c       Config
	to      Timeouts
	log     *slog.Logger
	slots   *plan.Slots
	lns     Listeners
	data    []net.Listener // lns.data()
	wg      sync.WaitGroup
	cancel  context.CancelCauseFunc
	arrived visitors
	barrier barrier
	ports   portGiver
	clamped []result.Notice
	answer  []byte // to datagrams, in round trips

	mu      sync.Mutex
	doors   map[netip.Addr]*door // of addresses of which something is here
	running map[*test]struct{}   // tests from their start on
	// multi is the test that waits for its last sender (-M); joint the one that Windows senders
	// at several addresses make together (Config.Expect). nil = none, or it has begun.
	multi, joint *test
	// ghosts are senders of datagrams whose test is over, and when they were last heard: what
	// they still send begins no other. callers are those that sent one datagram.
	ghosts  map[netip.AddrPort]time.Time
	callers map[netip.AddrPort]caller
	marks   map[netip.AddrPort]chan struct{} // datagrams of our own: see passDatagrams
	tests   int                              // how many have begun
	over    int                              // and ended
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
		lns.Close()
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	r.cancel = cancel
	defer cancel(nil)
	stop := context.AfterFunc(ctx, func() {
		lns.Close()
		r.arrived.closeAll()
	})
	defer stop()
	for i, ln := range []net.Listener{lns.Sync, lns.LinuxSync} {
		if ln != nil {
			r.wg.Go(func() {
				r.accept(ctx, ln, func(nc net.Conn) { r.wg.Go(func() { r.handleSync(ctx, nc, i == 1) }) })
			})
		}
	}
	for i, ln := range r.data {
		r.wg.Go(func() { r.accept(ctx, ln, func(nc net.Conn) { r.handleData(ctx, nc, i) }) })
	}
	for i, ln := range lns.Tokens {
		r.wg.Go(func() { r.accept(ctx, ln, func(nc net.Conn) { r.wg.Go(func() { r.handleToken(ctx, nc, i) }) }) })
	}
	if lns.PortSync != nil {
		r.wg.Go(func() {
			r.accept(ctx, lns.PortSync, func(nc net.Conn) { r.wg.Go(func() { r.handlePort(ctx, nc) }) })
		})
	}
	for i, pc := range lns.packets() {
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
	r.data = r.lns.data()
	if len(r.data) == 0 && len(r.lns.packets()) == 0 {
		return ErrPorts
	}
	r.clamped = r.c.clamp()
	if r.c.Message == traffic.RoundTrip {
		r.answer = bytes.Repeat([]byte{PayloadByte}, r.c.BlockSize)
	}
	r.to = r.Timeouts.filled()
	if r.log = r.Log; r.log == nil {
		r.log = slog.New(slog.DiscardHandler)
	}
	if r.second == 0 {
		r.second = time.Second
	}
	if r.slots = r.Slots; r.slots == nil {
		r.slots = plan.Serve{Exclusive: r.c.Exclusive, OneOff: r.c.OneOff, MaxTests: r.c.MaxTests}.Slots()
	}
	r.arrived.conns = map[net.Conn]struct{}{}
	r.ports.handed = make([]time.Time, len(r.lns.Data))
	r.mu.Lock()
	defer r.mu.Unlock()
	r.doors, r.running = map[netip.Addr]*door{}, map[*test]struct{}{}
	r.ghosts, r.callers = map[netip.AddrPort]time.Time{}, map[netip.AddrPort]caller{}
	r.marks = map[netip.AddrPort]chan struct{}{}
	return nil
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
			r.evict()
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

// begin gives t a slot; false = there is none any more.
func (r *Receiver) begin(t *test) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.take(t)
}

// take is begin. r.mu is held.
func (r *Receiver) take(t *test) bool {
	if _, ok := r.running[t]; ok {
		return true
	}
	others, begun, ok := r.slots.Take()
	if !ok {
		return false
	}
	r.tests++
	t.number, t.others, t.begunAs = r.tests, others, begun
	r.running[t] = struct{}{}
	if r.multi == t {
		r.multi = nil
	}
	if r.joint == t {
		r.joint = nil
	}
	return true
}

// ended gives the slot back.
func (r *Receiver) ended(t *test) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.running, t)
	r.over++
	for _, d := range t.doors {
		d.datagramsEnd(t)
		r.tidy(d)
	}
	r.haunt(t)
	r.slots.Release()
}

// parted ends a one-off receiver when the senders have left.
func (r *Receiver) parted(ctx context.Context, t *test) {
	if r.slots.Spent() {
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

package ntttcp

import (
	"context"
	"net/netip"
	"slices"
	"time"

	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/result"
)

// udpIdle is how long a silence ends a test over UDP whose end nobody knows: the sender says no
// goodbye. A Windows sender may send a datagram a second (-ps).
const udpIdle = 2500 * time.Millisecond

// caller is somebody who sent one datagram; the second begins a test without synchronisation, so
// that a scan of the port does not.
type caller struct {
	flow  datagramFlow
	local result.Addr
	bytes int
	at    time.Time
}

// takes reports that a stream that shows now is t's: a sender's all show in the first moments of
// its test, and one that shows later is of another sender at the same address. Receiver.mu is held.
func (t *test) takes() bool {
	moments := t.r.to.Stale
	if t.kind != kindUnsynced { // who does not synchronise does not begin at this moment, as a rule
		moments *= 2
	}
	return (t.tally == nil || time.Since(t.tally.t0) < moments) && (t.hello == nil || t.hello.UDP)
}

// maxUnsyncedUDP bounds the tests that nobody but datagrams speak for: anybody can write any
// source address on them.
const maxUnsyncedUDP = 256

// tallyOf is the running count that a datagram belongs to, which it may begin; nil = it belongs to
// none.
func (r *Receiver) tallyOf(ctx context.Context, f datagramFlow, local result.Addr, n int) *tally {
	a := f.from.Addr().Unmap()
	r.mu.Lock()
	defer r.mu.Unlock()
	if came := r.marks[f.from]; came != nil {
		close(came)
		delete(r.marks, f.from)
		return nil
	}
	if r.ghost(f.from) {
		return nil
	}
	full := r.slots.Full()
	if d := r.doors[a]; d != nil {
		for i := len(d.datagrams) - 1; i >= 0; i-- {
			if y := d.datagrams[i].counts(f); y != nil {
				return y
			}
		}
		for i := len(d.datagrams) - 1; i >= 0; i-- {
			if t := d.datagrams[i]; full || t.takes() {
				return r.openTallyLocked(t)
			}
		}
	}
	if full || r.c.Multi || !r.allowed(a) || ctx.Err() != nil {
		return nil
	}
	c, again := r.callers[f.from]
	if !again || c.flow != f || time.Since(c.at) > udpIdle {
		if len(r.callers) >= maxVisitors {
			clear(r.callers)
		}
		r.callers[f.from] = caller{f, local, n, time.Now()}
		return nil
	}
	unsynced := 0
	for t := range r.running {
		if t.kind == kindUnsynced && t.tally != nil {
			unsynced++
		}
	}
	if unsynced >= maxUnsyncedUDP {
		return nil
	}
	return r.beginDatagrams(ctx, f)
}

// counts is t's count if f is one of its streams.
func (t *test) counts(f datagramFlow) *tally {
	if t.tally != nil && t.tally.has(f) {
		return t.tally
	}
	return nil
}

// beginDatagrams begins the test of a sender of datagrams that does not synchronise; what it sent
// before counts. r.mu is held.
func (r *Receiver) beginDatagrams(ctx context.Context, f datagramFlow) *tally {
	d := r.doorOf(f.from.Addr().Unmap())
	t := r.newTest(d)
	t.kind = kindUnsynced
	t.first = result.Addr{Host: d.peer.String(), Port: int(f.from.Port())}
	t.linux = f.port >= len(r.lns.Packets)
	if !r.take(t) {
		r.tidy(d)
		return nil
	}
	t.started, t.begun = true, time.Now()
	d.datagrams = append(d.datagrams, t)
	y := r.openTallyLocked(t)
	for from, c := range r.callers {
		if from.Addr().Unmap() == d.peer {
			if time.Since(c.at) <= udpIdle {
				y.add(c.flow, c.local, c.bytes)
			}
			delete(r.callers, from)
		}
	}
	r.wg.Go(func() { t.run(ctx, false) })
	return y
}

// openTally makes the count of t if it is to have one now; true = it has one.
func (t *test) openTally(now bool) bool {
	t.r.mu.Lock()
	defer t.r.mu.Unlock()
	if now {
		t.r.openTallyLocked(t)
	}
	return t.tally != nil
}

// openTallyLocked begins the count of a started test without connections; nil = it has some, or
// has not begun: datagrams before the start are not its own. r.mu is held.
func (r *Receiver) openTallyLocked(t *test) *tally {
	s := t.schedule()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.tally != nil || !t.started || len(t.conns) > 0 {
		return t.tally
	}
	idle := time.Duration(0)
	if t.kind != kindLinux && s.endless() {
		idle = udpIdle
	}
	// As in test.receive: what came since the cycle began will be counted, so that time counts.
	began := t.begun
	if rest := s.late(time.Since(began)); rest.measured < 0 {
		s, began = rest, time.Now()
	}
	t.phase = newPhase(s, r.to.Silence, nil)
	t.tally = newTally(s, r.c.Interval, idle, t.phase, nil)
	t.tally.t0 = began
	t.tally.most, t.tally.maxRate = r.c.MaxStreams, r.c.MaxRate
	var sockets []dropper
	for _, pc := range r.lns.packets() {
		sockets = append(sockets, pc)
	}
	t.tally.watch(sockets)
	t.phase.m, t.phase.began = t.tally, t.tally.t0
	t.expect()
	t.poke()
	return t.tally
}

// datagramsEnd: d's datagrams are no longer t's. Receiver.mu is held.
func (d *door) datagramsEnd(t *test) {
	d.datagrams = slices.DeleteFunc(d.datagrams, func(x *test) bool { return x == t })
}

// ghost: f's last test has just ended; what it still sends belongs to nothing. r.mu is held.
func (r *Receiver) ghost(f netip.AddrPort) bool {
	at, ok := r.ghosts[f]
	if !ok {
		return false
	}
	if time.Since(at) > udpIdle {
		delete(r.ghosts, f)
		return false
	}
	r.ghosts[f] = time.Now()
	return true
}

// haunt remembers the senders of t's datagrams. r.mu is held.
func (r *Receiver) haunt(t *test) {
	if t.tally == nil {
		return
	}
	if len(r.ghosts) > maxTallied {
		clear(r.ghosts)
	}
	for _, f := range t.tally.senders() {
		r.ghosts[f] = time.Now()
	}
}

// count runs the data phase over UDP. The count began with the first datagram, or the start of
// the test; its senders show within a moment.
func (t *test) count(ctx context.Context, head result.Run, y *tally) error {
	timer := time.NewTimer(min(3*t.r.to.Settle, t.r.c.Interval/2))
	select {
	case <-timer.C:
	case <-ctx.Done():
		timer.Stop()
	}
	p := t.phase
	p.out, y.host, p.machine = t.out, t.hooks.Host, t.hooks.Machine
	y.handMessages(t.hooks.OnMessage)
	head.Streams = y.views()
	head.Test.Streams = len(head.Streams)
	head.Test.Transport = string(plan.UDP)
	t.begins()
	t.out.head(result.KindStart, head)
	why, err := p.run(ctx, t.stop)
	if why == stopPeer { // it has sent all that it will
		t.r.passDatagrams(ctx)
	}
	return t.report(ctx, p, why, err, y.views)
}

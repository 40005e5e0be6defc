package ntttcp

import (
	"context"
	"net/netip"
	"time"

	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/result"
)

// udpIdle is how long a silence ends a test over UDP whose end nobody knows: the sender neither
// synchronises nor says goodbye.
const udpIdle = time.Second

// caller is somebody who sent one datagram; the second begins a test without synchronisation, so
// that a scan of the port does not.
type caller struct {
	flow  datagramFlow
	local result.Addr
	bytes int
	at    time.Time
}

// tallyOf is the running count that a datagram belongs to, which it may begin; nil = it belongs to
// none.
func (r *Receiver) tallyOf(ctx context.Context, f datagramFlow, local result.Addr, n int) *tally {
	a := f.from.Addr().Unmap()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ghost(f.from) {
		return nil
	}
	if t := r.tallies[a]; t != nil {
		return t.tally
	}
	if !r.allowed(a) || len(r.tallies) >= maxVisitors {
		return nil
	}
	if t := r.setups[a]; t != nil {
		return r.openTallyLocked(t)
	}
	if r.full() || r.c.Multi {
		return nil
	}
	c, again := r.callers[f.from]
	if !again || time.Since(c.at) > udpIdle {
		if len(r.callers) >= maxVisitors {
			clear(r.callers)
		}
		r.callers[f.from] = caller{f, local, n, time.Now()}
		return nil
	}
	delete(r.callers, f.from)
	t := r.newTest(a)
	t.kind, t.started, t.first, t.begun = kindUnsynced, true, result.Addr{Host: a.String(), Port: int(f.from.Port())}, time.Now()
	r.setups[a] = t
	r.take(t)
	y := r.openTallyLocked(t)
	y.add(c.flow, c.local, c.bytes)
	r.wg.Go(func() { t.run(ctx, false) })
	return y
}

// openTally makes the count of t if it is to have one now; true = it has one.
func (t *test) openTally(s schedule, now bool) bool {
	t.r.mu.Lock()
	defer t.r.mu.Unlock()
	if now {
		t.r.openTallyLocked(t)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.tally != nil
}

// openTallyLocked begins the count of a started test without connections; nil = it has some, or
// has not begun: datagrams before the start do not count. r.mu is held.
func (r *Receiver) openTallyLocked(t *test) *tally {
	s := t.schedule()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.tally != nil || !t.started || len(t.conns) > 0 || t.closed {
		return t.tally
	}
	idle := time.Duration(0)
	if t.kind == kindUnsynced && s.endless() {
		idle = udpIdle
	}
	t.phase = newPhase(s.late(time.Since(t.begun)), r.to.Silence, nil)
	t.tally = newTally(t.phase.s, r.c.Interval, idle, t.phase, nil)
	t.phase.m, t.phase.began = t.tally, t.tally.t0
	for _, p := range t.peers {
		r.tallies[p] = t
	}
	t.poke()
	return t.tally
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
	head.Streams = y.views()
	head.Test.Streams = len(head.Streams)
	head.Test.Transport = string(plan.UDP)
	t.begins()
	t.out.head(result.KindStart, head)
	why, err := p.run(ctx, t.stop)
	return t.report(ctx, p, why, err, y.views)
}

package ntttcp

import (
	"context"
	"slices"
	"time"
)

// A sender without synchronisation began when all its connections were up (linux §3.8, windows
// §3.4), so with the first byte they are all here; but those of other senders at its address may
// be here, too. Its own bring data within a moment: unsyncedSilence bounds the wait for one whose
// thread did not get a core.
const unsyncedSilence = 25 // Settles

// togetherFor is how long the first senders to a Windows receiver wait for the others, when they
// do not synchronise.
const togetherFor = time.Second

// beginUnsynced starts the test of the connections at d that brought data. What they brought
// counts: the sender's clock runs.
func (r *Receiver) beginUnsynced(ctx context.Context, d *door) {
	began := time.Now()
	r.mu.Lock()
	t := r.newTest(d)
	t.kind = kindUnsynced
	if r.c.Expect > 0 {
		r.joint = t
	}
	refused, full := d.refused, r.slots.Full()
	r.mu.Unlock()
	if full || refused > 0 {
		r.refuseUnsynced(t, d, refused)
		return
	}
	r.barrier.pass(ctx, r.data)
	r.awaitOthers(ctx, t, began)
	r.mu.Lock()
	for _, d := range r.doorsOf(t) {
		t.joinDoor(d)
		t.conns = append(t.conns, r.unsynced(d)...)
	}
	ok := len(t.conns) > 0 && r.take(t)
	r.leaveDoors(t)
	r.mu.Unlock()
	if !ok {
		t.abandon()
		r.note(d.peer, "busy")
		return
	}
	t.start(began)
	r.wg.Go(func() { t.run(ctx, false) })
}

// refuseUnsynced closes what t would have been.
func (r *Receiver) refuseUnsynced(t *test, d *door, refused int) {
	r.mu.Lock()
	for _, a := range slices.Clone(d.pool) {
		if a.data {
			d.drop(a)
			_ = a.nc.Close()
		}
	}
	d.refused = 0
	r.leaveDoors(t)
	r.mu.Unlock()
	if refused > 0 {
		r.note(d.peer, "more connections than a test may have")
		return
	}
	r.note(d.peer, "busy")
}

// doorsOf is where t's connections may be. r.mu is held.
func (r *Receiver) doorsOf(t *test) []*door {
	if r.c.Expect == 0 {
		return t.doors
	}
	out := make([]*door, 0, len(r.doors))
	for _, d := range r.doors {
		out = append(out, d)
	}
	return out
}

// awaitOthers returns when every connection that was there at t's first byte has brought data, or
// will not.
func (r *Receiver) awaitOthers(ctx context.Context, t *test, first time.Time) {
	all := time.Now() // who connected before the first byte is in the pool now
	quiet := all
	settle := r.to.Settle
	for {
		var silent, theirs []*arrival // theirs seem to be of the Linux sender that connects
		conns := 0
		r.mu.Lock()
		for _, d := range r.doorsOf(t) {
			if d.last.After(quiet) {
				quiet = d.last
			}
			for _, a := range d.pool {
				switch {
				case a.data:
					conns++
				case a.at.Sub(all) > settle:
				case d.own(a):
					theirs = append(theirs, a)
				default:
					silent = append(silent, a)
				}
			}
			if w := d.windows; w != nil && !d.sorting { // it may have taken some for its own
				silent = append(silent, w.conns...)
			}
		}
		r.mu.Unlock()
		s := look(append(theirs, silent...), false)
		r.mu.Lock()
		for _, a := range s.data {
			a.data = true
			quiet = time.Now()
			for _, d := range t.doors {
				if d.windows != nil {
					d.windows.giveBack(a)
				}
			}
		}
		r.mu.Unlock()
		explained := t.explained(silent)
		conns += len(s.data)
		over := time.Since(first) >= 2*unsyncedSilence*settle // others connect all the time
		least := settle
		if len(theirs) > 0 {
			least *= unlisted
		}
		done := over || time.Since(quiet) >= least && (explained || time.Since(first) >= unsyncedSilence*settle)
		if n := r.c.Expect; n > 0 {
			all = time.Now()
			done = conns >= n || time.Since(quiet) >= stretched(togetherFor, r.second)
		}
		if done {
			return
		}
		timer := time.NewTimer(pollData)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return
		}
	}
}

// unsynced takes the connections of a sender that does not synchronise from d's pool: those with
// data, and silent ones where they complete its own or nobody else's can be. r.mu is held.
func (r *Receiver) unsynced(d *door) []*arrival {
	var with, both []*arrival
	for _, a := range d.pool {
		switch {
		case a.data && !(d.own(a) && d.live):
			with = append(with, a)
			both = append(both, a)
		case !a.data && !d.own(a) && d.tokensOf(a.port) == 0:
			both = append(both, a)
		}
	}
	if r.alone() && len(with) > 0 || !even(with) && even(both) {
		with = both
	}
	for _, a := range with {
		d.drop(a)
	}
	return with
}

// tokensOf is how many tokens wait for a connection of port. r.mu is held.
func (d *door) tokensOf(port int) (n int) {
	tokens := d.tokens
	if d.windows != nil {
		tokens = append(slices.Clone(tokens), d.windows.tokens...)
	}
	for _, k := range tokens {
		if k.port == port {
			n++
		}
	}
	return n
}

// explained reports that of conns those without data are no more than the tokens that wait for
// them.
func (t *test) explained(conns []*arrival) bool {
	t.r.mu.Lock()
	defer t.r.mu.Unlock()
	n := map[int]int{}
	for _, a := range conns {
		if !a.data {
			n[a.port]++
		}
	}
	for port, silent := range n {
		tokens := 0
		for _, d := range t.doors {
			tokens += d.tokensOf(port)
		}
		if silent > tokens {
			return false
		}
	}
	return true
}

// even reports that every port has as many connections as the others: a sender's do.
func even(conns []*arrival) bool {
	n := map[int]int{}
	most := 0
	for _, a := range conns {
		n[a.port]++
		most = max(most, n[a.port])
	}
	for _, k := range n {
		if k != most {
			return false
		}
	}
	return true
}

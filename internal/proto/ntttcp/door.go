package ntttcp

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/fullbore-net/fullbore/internal/osnet"
)

// door is where the connections of one address stay until it is known whose they are. NTTTCP's
// carry no name, so several senders at one address are told apart by what they do, and when:
//
//   - A Linux sender that synchronises opens its connections after its time was answered and
//     sends nothing on them before its R is. It has the door for itself from its X to its start;
//     the next one's X waits for it.
//   - A Windows sender opens its token connections when all its data connections are up, one for
//     each, and sends nothing before they are answered. While a Linux sender has the door its
//     tokens wait; meanwhile the Linux sender's connections show themselves by their data.
//   - What sends data before anybody let it is of a sender that does not synchronise. It cannot
//     be made to wait and is served at once.
//
// A door's goroutine, the porter, looks after it as long as something is there. Receiver.mu guards
// a door.
type door struct {
	peer   netip.Addr
	pool   []*arrival   // data connections that belong to nobody yet, as they came
	tokens []*tokenConn // whose byte came, and that are not answered
	last   time.Time    // when the last connection came
	// refused are connections beyond MaxStreams since the last test's start.
	refused int

	linux   *test     // between its X and its start
	since   time.Time // connections that came earlier are not linux's
	live    bool      // its R is being answered: data on its connections is its own
	windows *test     // between its first token and its start
	sorting bool      // windows' tokens are answered: data may be its own, see sortOut
	waiting []*int    // Linux senders whose X waits, in order of their coming

	datagrams []*test // running tests without connections, in order of their start

	porter  bool          // its goroutine runs
	wake    chan struct{} // it has something to do
	changed chan struct{} // closed, and made anew, when who waits should look again
}

// arrival is a data connection.
type arrival struct {
	nc   net.Conn
	c    *osnet.Conn // the same
	port int         // index in Listeners.data
	at   time.Time
	data bool // it has brought some; written under Receiver.mu
}

// doorOf returns peer's door. r.mu is held.
func (r *Receiver) doorOf(peer netip.Addr) *door {
	d := r.doors[peer]
	if d == nil {
		d = &door{peer: peer, wake: make(chan struct{}, 1), changed: make(chan struct{})}
		r.doors[peer] = d
	}
	return d
}

// tidy forgets d when nothing of its address is here; its address may have another door by then.
// r.mu is held.
func (r *Receiver) tidy(d *door) {
	if r.doors[d.peer] == d && len(d.pool) == 0 && len(d.tokens) == 0 && len(d.waiting) == 0 && len(d.datagrams) == 0 && d.linux == nil && d.windows == nil && !d.porter {
		delete(r.doors, d.peer)
	}
}

// tell lets everybody who waits at d look again. r.mu is held.
func (d *door) tell() {
	close(d.changed)
	d.changed = make(chan struct{})
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

// attend tells that something came to d, and has its porter there. r.mu is held.
func (r *Receiver) attend(ctx context.Context, d *door) {
	d.last = time.Now()
	d.tell()
	for _, t := range []*test{d.linux, d.windows} {
		if t != nil {
			t.poke()
		}
	}
	if !d.porter && ctx.Err() == nil {
		d.porter = true
		r.wg.Go(func() { r.porter(ctx, d) })
	}
}

// handleData takes a data connection.
func (r *Receiver) handleData(ctx context.Context, nc net.Conn, port int) {
	peer := peerOf(nc)
	r.mu.Lock()
	d := r.doorOf(peer)
	why := ""
	switch {
	case ctx.Err() != nil:
		why = "the receiver ends"
	case d.linux == nil && (r.c.Multi || r.slots.Full()):
		why = "data connection without a test"
	case r.c.MaxStreams > 0 && len(d.pool) >= r.c.MaxStreams:
		d.refused++
		why = "more connections than a test may have"
	default:
		d.pool = append(d.pool, &arrival{nc: nc, c: osnet.NewConn(nc), port: port, at: time.Now()})
		r.ports.came(port)
		r.attend(ctx, d)
	}
	r.tidy(d)
	r.mu.Unlock()
	if why != "" {
		r.note(peer, why)
		_ = nc.Close()
	}
}

// evict closes what waits at the door where most does: strangers must not keep others out.
func (r *Receiver) evict() {
	r.mu.Lock()
	defer r.mu.Unlock()
	var most *door
	for _, d := range r.doors {
		if d.linux == nil && (most == nil || len(d.pool)+len(d.tokens) > len(most.pool)+len(most.tokens)) {
			most = d
		}
	}
	if most != nil {
		most.clear()
	}
}

// clear closes what waits at d. r.mu is held.
func (d *door) clear() {
	for _, a := range d.pool {
		_ = a.nc.Close()
	}
	for _, k := range d.tokens {
		_ = k.nc.Close()
	}
	d.pool, d.tokens = nil, nil
	d.tell()
}

// drop takes a connection from the pool; false = it is not there any more. r.mu is held.
func (d *door) drop(a *arrival) bool {
	i := slices.Index(d.pool, a)
	if i < 0 {
		return false
	}
	d.pool = slices.Delete(d.pool, i, i+1)
	return true
}

// own reports that a is of the Linux sender that has the door. r.mu is held.
func (d *door) own(a *arrival) bool {
	return d.linux != nil && !a.at.Before(d.since)
}

// lookEvery is how often connections without data are asked whether they still live.
const lookEvery = 500 * time.Millisecond

// pollData is how often connections are asked for their first byte, at most.
const pollData = 2 * time.Millisecond

// porter looks after d. It ends when nothing waits there, or with ctx, and closes what is left
// then.
func (r *Receiver) porter(ctx context.Context, d *door) {
	var asked time.Time
	for {
		began := time.Now()
		ends := began.Sub(asked) >= lookEvery
		if ends {
			asked = began
		}
		conns, ok := r.inPool(d)
		if !ok {
			return
		}
		s := look(conns, ends)
		switch r.decide(ctx, d, s) {
		case doUnsynced:
			r.beginUnsynced(ctx, d)
			continue
		case doTokens:
			r.beginTokens(ctx, d)
			continue
		}
		// A door where nothing happens is looked at less often, and many connections do not
		// take a core.
		pause := min(max(pollData, 20*time.Since(began), began.Sub(r.lastAt(d))/50), lookEvery/5)
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-d.wake:
			timer.Stop()
		case <-ctx.Done():
			timer.Stop()
			r.mu.Lock()
			d.clear()
			d.porter = false
			r.tidy(d)
			r.mu.Unlock()
			return
		}
	}
}

func (r *Receiver) lastAt(d *door) time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return d.last
}

// inPool lists the connections that have not sent anything; false = nothing waits, and the porter
// has left.
func (r *Receiver) inPool(d *door) ([]*arrival, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(d.pool) == 0 && len(d.tokens) == 0 {
		d.porter = false
		r.tidy(d)
		return nil, false
	}
	return d.silent(), true
}

// silent are the connections that brought nothing yet. r.mu is held.
func (d *door) silent() []*arrival {
	var out []*arrival
	for _, a := range d.pool {
		if !a.data {
			out = append(out, a)
		}
	}
	return out
}

// seen is what a look at connections showed.
type seen struct {
	data, ended []*arrival
}

// look asks connections for their first byte; with ends also
// whether their peer has left.
func look(conns []*arrival, ends bool) seen {
	var s seen
	for _, a := range conns {
		switch {
		case hasData(a):
			s.data = append(s.data, a)
		case ends && ended(a.c):
			s.ended = append(s.ended, a)
		}
	}
	return s
}

func ended(c *osnet.Conn) bool {
	closed, err := c.PeerClosed()
	return err == nil && closed
}

func hasData(a *arrival) bool {
	n, err := a.c.RecvQueue()
	return err == nil && n > 0
}

// job is what a porter is to do.
type job int

const (
	doNothing job = iota
	doUnsynced
	doTokens
)

// decide takes note of what was seen at d, and says what is to be done.
func (r *Receiver) decide(ctx context.Context, d *door, s seen) job {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, a := range s.data {
		a.data = true
	}
	if len(s.data) > 0 && d.linux != nil {
		d.linux.poke()
	}
	now := time.Now()
	for _, a := range d.silent() {
		gone := slices.Contains(s.ended, a)
		if gone || now.Sub(a.at) > r.to.Setup {
			d.drop(a)
			_ = a.nc.Close()
			d.tell()
			if !d.own(a) {
				r.note(d.peer, "data connection without data")
			}
		}
	}
	if ctx.Err() != nil {
		return doNothing
	}
	for _, a := range d.pool {
		if a.data && !(d.own(a) && d.live) && !d.sorting && r.joint == nil && !r.c.Multi {
			return doUnsynced
		}
	}
	for _, k := range d.tokens {
		if d.windows == nil && (d.linux == nil || now.Sub(k.at) > r.to.Turn) {
			return doTokens
		}
	}
	return doNothing
}

// enter lets a sender at peer set up a test; nil = it must come back later. Where one address
// sets up another test already, it waits for that in the order of coming.
func (r *Receiver) enter(ctx context.Context, peer netip.Addr) *test {
	deadline := time.Now().Add(r.to.Turn)
	ticket := new(int)
	r.mu.Lock()
	defer r.mu.Unlock()
	d := r.doorOf(peer)
	d.waiting = append(d.waiting, ticket)
	defer func() {
		d.waiting = slices.DeleteFunc(d.waiting, func(w *int) bool { return w == ticket })
		d.tell()
		r.tidy(d)
	}()
	for {
		now := time.Now()
		switch {
		case r.slots.Full() || ctx.Err() != nil || now.After(deadline):
			return nil
		case r.c.Multi:
			return r.enterMulti(d)
		}
		again, free := r.free(d, now)
		if free && d.waiting[0] == ticket {
			t := r.newTest(d)
			d.linux, d.since, d.live, d.refused = t, now, false, 0
			return t
		}
		changed := d.changed
		timer := time.NewTimer(min(again, time.Until(deadline)) + time.Millisecond)
		r.mu.Unlock()
		select {
		case <-changed:
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
		r.mu.Lock()
	}
}

// enterMulti lets a sender at d join those that wait for the last one. r.mu is held.
func (r *Receiver) enterMulti(d *door) *test {
	t := r.multi
	if t == nil {
		t = r.newTest(d)
		r.multi = t
	}
	if d.linux != t {
		d.linux, d.since, d.live, d.refused = t, time.Now(), false, 0
		t.joinDoor(d)
	}
	return t
}

// free reports whether a Linux sender may have d now, or when to look again at the latest: not
// while another has it, nor while connections come whose kind nobody knows yet. r.mu is held.
func (r *Receiver) free(d *door, now time.Time) (again time.Duration, ok bool) {
	if d.linux != nil {
		return time.Hour, false
	}
	if d.windows != nil || len(d.tokens) > 0 {
		if left := 3*r.to.Stale - now.Sub(d.last); left > 0 {
			return left, false
		}
		return 0, true // it hangs; what comes from now on is not its own
	}
	for _, a := range d.pool {
		if a.data {
			return time.Hour, false
		}
		again = max(again, r.to.Stale-now.Sub(a.at))
	}
	return again, again <= 0
}

// leaveDoors ends t's set-up: who waits at its doors may have them. r.mu is held.
func (r *Receiver) leaveDoors(t *test) {
	for _, d := range t.doors {
		if d.linux == t {
			d.linux, d.live = nil, false
		}
		if d.windows == t {
			d.windows, d.sorting = nil, false
		}
		d.tell()
		r.tidy(d)
	}
	if r.multi == t {
		r.multi = nil
	}
	if r.joint == t {
		r.joint = nil
	}
	r.ports.reset()
}

// forget ends t's set-up: connections from its addresses are no longer its own.
func (r *Receiver) forget(t *test) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.leaveDoors(t)
}

// quiet returns when no connection came to t's doors for so long, and what sent data too early
// is out of the way: it is of others.
func (r *Receiver) quiet(ctx context.Context, t *test, quiet time.Duration) {
	began := time.Now()
	deadline := began.Add(2 * time.Second)
	for {
		r.mu.Lock()
		var silent []*arrival
		for _, d := range t.doors {
			silent = append(silent, d.silent()...)
		}
		r.mu.Unlock()
		s := look(silent, false)
		r.mu.Lock()
		for _, a := range s.data {
			a.data = true
		}
		last, early := began, false
		for _, d := range t.doors {
			if d.last.After(last) {
				last = d.last
			}
			for _, a := range d.pool {
				early = early || a.data && !d.live
			}
			if len(s.data) > 0 {
				d.tell()
			}
		}
		r.mu.Unlock()
		left := quiet - time.Since(last)
		if early {
			left = max(left, pollData)
		}
		if left = min(left, time.Until(deadline)); left <= 0 {
			return
		}
		timer := time.NewTimer(left)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return
		}
	}
}

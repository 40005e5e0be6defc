package ntttcp

import (
	"context"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/fullbore-net/fullbore/internal/proto/ext"
	"github.com/fullbore-net/fullbore/result"
)

// kind is how a test's senders synchronise.
type kind int

const (
	kindLinux kind = iota
	kindUnsynced
	kindWindows
)

// test is one test at the receiver, from the first word or connection of its first sender on.
// Its run is one goroutine; what senders do comes from those of their connections.
type test struct {
	r    *Receiver
	peer netip.Addr // of the first sender
	kind kind       // set before the test is at a door

	done chan struct{} // closed: the data phase is over
	told chan struct{} // closed: with a link, the sender has this end's results
	stop chan struct{} // closed: a sender said E
	came chan struct{} // has an element after a connection, datagram or token came

	doneOnce, stopOnce sync.Once

	// These are guarded by Receiver.mu. From its start on conns are the test's goroutine's.
	number   int   // set by take, as others and begunAs
	others   int   // tests that ran at its start
	begunAs  int64 // which test of the server it is
	doors    []*door
	conns    []*arrival
	tokens   []*tokenConn // Windows: not answered
	answered []*tokenConn // Windows: the others, closed; the test's goroutine's
	tokened  []int        // the ports of tokens that have come
	lastCame time.Time    // the last of them
	doubtful bool         // connections of one port may be of several senders
	lost     bool         // a thread of the sender has ended
	merged   bool         // it is of several senders that could not be told apart
	late     bool         // Linux: its connections show by their data
	streams  bool         // and some must be its own

	mu      sync.Mutex // guards the rest; taken after Receiver.mu
	first   result.Addr
	members []*member
	waiting []*member // multi-client: those that were told to wait
	started bool
	linux   bool // at the second set of ports
	agreed  Word
	wanted  Word // was proposed
	asked   bool // agreed was agreed
	begun   time.Time
	tally   *tally
	phase   *phase // of the tally
	parted  bool   // a sender said E
	gone    int    // members whose sync connection ended

	// link and hello are set before the test runs; nil = a real tool's.
	link  *link
	hello *ext.ClientHello

	// Of the test's goroutine. hooks and out are set by open; figures are the results that the sender
	// gets, said that it has them.
	hooks   TestHooks
	out     *emitter
	figures *ext.Results
	said    bool
}

// newTest makes a test for a sender at d. r.mu is held.
func (r *Receiver) newTest(d *door) *test {
	return &test{
		r: r, peer: d.peer, doors: []*door{d}, done: make(chan struct{}), told: make(chan struct{}), stop: make(chan struct{}), came: make(chan struct{}, 1),
		lastCame: time.Now(),
	}
}

// joinDoor makes d one of t's. Receiver.mu is held.
func (t *test) joinDoor(d *door) {
	if !slices.Contains(t.doors, d) {
		t.doors = append(t.doors, d)
	}
}

func (t *test) poke() {
	select {
	case t.came <- struct{}{}:
	default:
	}
}

func (t *test) join(m *member) {
	t.mu.Lock()
	t.members = append(t.members, m)
	t.linux = m.linux
	t.mu.Unlock()
}

// own is this end's -t as a word; 0 = until interrupted.
func (t *test) own() Word {
	if t.r.c.Endless {
		return 0
	}
	return Word(t.r.c.Duration / time.Second)
}

// propose answers a proposed cycle. The sender's connections come after the answer.
func (t *test) propose(p Word) Word {
	a := agreement(t.own(), p, t.r.c.Multi)
	if t.r.c.Follow && !t.r.c.Multi {
		a = max(p, 0)
	}
	if most := Word(min(int64(t.r.c.MaxDuration/time.Second), int64(maxCycle))); most > 0 && (a == 0 || a > most) {
		a = most // real senders run for whatever is answered (linux §3.3)
	}
	t.mu.Lock()
	again := t.asked
	t.agreed, t.wanted, t.asked = a, p, true
	t.mu.Unlock()
	if !again && !t.r.c.Multi {
		t.r.mu.Lock()
		for _, d := range t.doors {
			if d.linux == t {
				d.since = time.Now()
			}
		}
		t.r.mu.Unlock()
	}
	return a
}

// left takes note that a sender's sync connection ended.
func (t *test) left(m *member) {
	t.mu.Lock()
	t.waiting = slices.DeleteFunc(t.waiting, func(w *member) bool { return w == m })
	if t.started {
		t.gone++
	} else {
		t.members = slices.DeleteFunc(t.members, func(x *member) bool { return x == m })
	}
	empty := !t.started && len(t.members) == 0
	t.poke()
	t.mu.Unlock()
	if !empty {
		return
	}
	n := t.abandonPool()
	t.r.forget(t)
	t.abandon()
	t.r.note(t.peer, "left before its test began", "connections", n)
}

// abandonPool closes what a Linux sender has at its doors, and returns how many connections.
func (t *test) abandonPool() (n int) {
	r := t.r
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, d := range t.doors {
		if d.linux != t {
			continue
		}
		for _, a := range slices.Clone(d.pool) {
			if d.own(a) && (!a.data || d.live) {
				d.drop(a)
				_ = a.nc.Close()
				n++
			}
		}
	}
	return n
}

// abandon closes what t has.
func (t *test) abandon() {
	r := t.r
	r.mu.Lock()
	for _, a := range t.conns {
		_ = a.nc.Close()
	}
	for _, k := range t.tokens {
		_ = k.nc.Close()
	}
	t.tokens = nil
	r.mu.Unlock()
	t.doneOnce.Do(func() { close(t.done) })
}

func (t *test) stopBySender() {
	t.mu.Lock()
	t.parted = true
	t.mu.Unlock()
	t.stopOnce.Do(func() { close(t.stop) })
}

// start is when t's time begins.
func (t *test) start(at time.Time) {
	r := t.r
	r.mu.Lock()
	defer r.mu.Unlock()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.started, t.begun = true, at
	switch {
	case t.first.Host != "":
	case len(t.conns) > 0:
		t.first = addrOf(t.conns[0].nc.RemoteAddr())
		t.linux = t.conns[0].port >= len(r.lns.Data)
	case len(t.tokens) > 0:
		t.first = addrOf(t.tokens[0].nc.RemoteAddr())
	}
	if len(t.conns) == 0 && !t.streams {
		t.awaitDatagrams()
	}
}

// awaitDatagrams has those that come to t's doors be its own. Receiver.mu is held.
func (t *test) awaitDatagrams() {
	for _, d := range t.doors {
		if !slices.Contains(d.datagrams, t) {
			d.datagrams = append(d.datagrams, t)
		}
	}
}

// request answers R and L; false = the connection ends.
func (t *test) request(ctx context.Context, m *member, last bool) bool {
	if t.r.c.Multi && !last {
		t.mu.Lock()
		full := len(t.waiting) >= maxWaiting
		if !full && !t.started {
			t.waiting = append(t.waiting, m)
			m.asked = true
		}
		started := t.started
		t.mu.Unlock()
		if full || started {
			t.r.note(peerOf(m.nc), "too many senders")
			m.say(WordEnd)
			return false
		}
		return m.say(WordWait)
	}
	t.r.barrier.pass(ctx, t.r.data)
	settle := t.r.to.Settle
	if !t.r.alone() && m.link == nil { // those of others will show
		settle *= unlisted
	}
	t.r.quiet(ctx, t, settle+2*m.rtt())
	if t.uneven() { // some are of others, indeed
		t.r.quiet(ctx, t, doubt*t.r.to.Settle)
	}
	if why := t.claimOwn(m); why != "" {
		t.r.note(peerOf(m.nc), why)
		m.say(WordEnd)
		return false
	}
	t.mu.Lock()
	waiting := t.waiting
	t.waiting = nil
	t.mu.Unlock()
	t.r.wg.Go(func() { t.run(ctx, last) })
	for _, w := range waiting {
		w.say(WordStart)
	}
	return m.say(WordStart)
}

// unlisted is how many Settles without another connection complete those of a Linux sender that
// does not list them, where others may come too.
const unlisted = 5

// alone reports that no two tests are ever served at a time: what else comes is nobody's.
func (r *Receiver) alone() bool { return r.c.Exclusive || r.c.OneOff || r.c.Multi }

// uneven reports that the connections which seem to be a Linux sender's are not: it has as many to
// each port.
func (t *test) uneven() bool {
	t.r.mu.Lock()
	defer t.r.mu.Unlock()
	for _, d := range t.doors {
		own := slices.DeleteFunc(d.silent(), func(a *arrival) bool { return !d.own(a) })
		if d.linux == t && !even(own) {
			return true
		}
	}
	return false
}

// claimOwn takes the connections of a Linux sender, or why it may not begin. Some may be a Windows
// sender's, which is silent as long as its tokens wait: t's show by their data, after the start.
func (t *test) claimOwn(m *member) (why string) {
	r := t.r
	r.mu.Lock()
	for _, d := range t.doors {
		if d.linux == t && d.refused > 0 {
			why = "more connections than a test may have"
		}
	}
	if why == "" && !r.take(t) {
		why = "busy"
	}
	if why != "" {
		r.mu.Unlock()
		return why
	}
	t.carry(m)
	listed := t.datagramsOnly() || t.takeListed()
	for _, d := range t.doors {
		t.late = t.late || !listed && d.linux == t && (len(d.tokens) > 0 || !r.alone() && len(d.pool) > 0)
		t.streams = t.streams || !listed && d.linux == t && !d.tokensCover()
	}
	for _, d := range t.doors {
		if d.linux != t {
			continue
		}
		d.live = true
		if !t.late && !listed {
			t.conns = append(t.conns, d.takeOwn()...)
		}
	}
	m.asked = true
	t.mu.Lock()
	t.first = addrOf(m.nc.RemoteAddr())
	t.mu.Unlock()
	r.mu.Unlock()
	t.start(time.Now())
	return ""
}

// datagramsOnly reports that the sender has said that it sends no other.
func (t *test) datagramsOnly() bool { return t.hello != nil && t.hello.UDP }

// takeOwn takes the silent connections of d's Linux sender. r.mu is held.
func (d *door) takeOwn() []*arrival {
	var out []*arrival
	for _, a := range d.silent() {
		if d.own(a) {
			d.drop(a)
			out = append(out, a)
		}
	}
	return out
}

// showUp returns the connections of a Linux sender, when those without data are no more than the
// tokens that wait for them.
func (t *test) showUp(ctx context.Context) {
	deadline := time.Now().Add(sortOutFor)
	for {
		t.r.mu.Lock()
		var silent []*arrival
		for _, d := range t.doors {
			if d.linux == t {
				silent = append(silent, d.silent()...)
			}
		}
		t.r.mu.Unlock()
		s := look(silent, false)
		t.r.mu.Lock()
		for _, a := range s.data {
			a.data = true
		}
		over := time.Now().After(deadline) || ctx.Err() != nil || t.tally != nil
		all := true
		for _, d := range t.doors {
			if d.linux == t && (!d.tokensCover() || len(d.silent()) == len(d.pool)) {
				all = false
			}
		}
		if over || all {
			for _, d := range t.doors {
				if d.linux == t && t.tally == nil {
					t.conns = append(t.conns, d.takeShown(over)...)
				}
			}
			if len(t.conns) == 0 {
				t.awaitDatagrams()
			}
			t.r.mu.Unlock()
			return
		}
		t.r.mu.Unlock()
		timer := time.NewTimer(pollData)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
		}
	}
}

// tokensCover reports that of each port no more connections are silent than tokens wait. r.mu is
// held.
func (d *door) tokensCover() bool {
	n := map[int]int{}
	for _, k := range d.tokens {
		n[k.port]++
	}
	for _, a := range d.silent() {
		if n[a.port]--; n[a.port] < 0 {
			return false
		}
	}
	return true
}

// takeShown takes the connections of d's Linux sender that brought data; with rest also those that
// no token waits for. r.mu is held.
func (d *door) takeShown(rest bool) []*arrival {
	n := map[int]int{}
	for _, k := range d.tokens {
		n[k.port]++
	}
	var out []*arrival
	for _, a := range slices.Clone(d.pool) {
		mine := a.data
		if rest && !a.data {
			n[a.port]--
			mine = n[a.port] < 0
		}
		if mine && d.own(a) {
			d.drop(a)
			out = append(out, a)
		}
	}
	return out
}

package ntttcp

import (
	"context"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"time"

	"github.com/fullbore-net/fullbore/internal/osnet"
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
	r      *Receiver
	number int // set by begin, as others
	others int // tests that ran at its start

	settled chan struct{} // closed: further connections from its addresses are not its own
	done    chan struct{} // closed: the data phase is over
	stop    chan struct{} // closed: a sender said E
	came    chan struct{} // has an element after a connection, datagram or token came

	settleOnce, doneOnce, stopOnce sync.Once

	mu       sync.Mutex
	kind     kind
	peers    []netip.Addr
	first    result.Addr // of the first sender
	conns    []arrival
	closed   bool // no connection is wanted any more
	lastCame time.Time
	members  []*member
	waiting  []*member // multi-client: those that were told to wait
	started  bool
	agreed   Word
	asked    bool // agreed was agreed
	begun    time.Time
	tally    *tally
	phase    *phase // of the tally
	parted   bool   // a sender said E
	gone     int    // members whose sync connection ended
	tokens   []*tokenConn
	hooks    TestHooks
	out      *emitter
}

// arrival is a data connection.
type arrival struct {
	nc   net.Conn
	c    *osnet.Conn // the same
	port int         // index
}

// newTest makes a test for a sender at peer. r.mu is held.
func (r *Receiver) newTest(peer netip.Addr) *test {
	return &test{
		r: r, settled: make(chan struct{}), done: make(chan struct{}), stop: make(chan struct{}), came: make(chan struct{}, 1),
		peers: []netip.Addr{peer}, lastCame: time.Now(),
	}
}

func (t *test) entered(peer netip.Addr) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, p := range t.peers {
		if p == peer {
			return
		}
	}
	t.peers = append(t.peers, peer)
}

func (t *test) settle() { t.settleOnce.Do(func() { close(t.settled) }) }

// stale reports connections that came a while ago and neither sent data nor tokens: no sender
// that is at work.
func (t *test) stale() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.kind == kindUnsynced && !t.started && time.Since(t.lastCame) > staleAfter
}

const staleAfter = time.Second

func (t *test) poke() {
	select {
	case t.came <- struct{}{}:
	default:
	}
}

// offer takes a data connection; false = it is not wanted.
func (t *test) offer(nc net.Conn, port int) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed || t.r.c.MaxStreams > 0 && len(t.conns) >= t.r.c.MaxStreams {
		return false
	}
	t.conns = append(t.conns, arrival{nc, osnet.NewConn(nc), port})
	t.lastCame = time.Now()
	t.poke()
	return true
}

func (t *test) join(m *member) {
	t.mu.Lock()
	t.members = append(t.members, m)
	t.mu.Unlock()
}

// own is this end's -t as a word; 0 = until interrupted.
func (t *test) own() Word {
	if t.r.c.Endless {
		return 0
	}
	return Word(t.r.c.Duration / time.Second)
}

// propose answers a proposed cycle.
func (t *test) propose(p Word) Word {
	a := agreement(t.own(), p, t.r.c.Multi)
	if t.r.c.Follow && !t.r.c.Multi {
		a = max(p, 0)
	}
	if most := Word(min(int64(t.r.c.MaxDuration/time.Second), int64(maxCycle))); most > 0 && (a == 0 || a > most) {
		a = most // real senders run for whatever is answered (linux §3.3)
	}
	t.mu.Lock()
	t.agreed, t.asked = a, true
	t.mu.Unlock()
	return a
}

// left takes note that a sender's sync connection ended.
func (t *test) left(m *member) {
	t.mu.Lock()
	for i, w := range t.waiting {
		if w == m {
			t.waiting = append(t.waiting[:i:i], t.waiting[i+1:]...)
			break
		}
	}
	if t.started {
		t.gone++
	}
	for i, x := range t.members {
		if x == m && !t.started {
			t.members = append(t.members[:i:i], t.members[i+1:]...)
			break
		}
	}
	empty := !t.started && len(t.members) == 0
	t.poke()
	t.mu.Unlock()
	if !empty {
		return
	}
	t.r.forget(t)
	t.abandon()
	peer := t.peers[0]
	t.r.note(peer, "left before its test began", "connections", len(t.conns))
}

// abandon closes what has come.
func (t *test) abandon() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	for _, a := range t.conns {
		_ = a.nc.Close()
	}
	for _, k := range t.tokens {
		_ = k.nc.Close()
	}
	t.doneOnce.Do(func() { close(t.done) })
}

func (t *test) stopBySender() {
	t.mu.Lock()
	t.parted = true
	t.mu.Unlock()
	t.stopOnce.Do(func() { close(t.stop) })
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
	t.r.barrier.pass(ctx, t.r.lns.Data)
	t.awaitQuiet(ctx, t.r.to.Settle)
	if !t.r.begin(t) {
		m.say(WordEnd)
		return false
	}
	t.mu.Lock()
	t.started, m.asked = true, true
	waiting := t.waiting
	t.waiting = nil
	t.first = addrOf(m.nc.RemoteAddr())
	t.discardQueued()
	t.begun = time.Now()
	t.mu.Unlock()
	t.r.wg.Go(func() { t.run(ctx, last) })
	for _, w := range waiting {
		w.say(WordStart)
	}
	return m.say(WordStart)
}

// awaitQuiet returns when no connection came for so long; the sender waits for our answer
// meanwhile.
func (t *test) awaitQuiet(ctx context.Context, quiet time.Duration) {
	deadline := time.Now().Add(2 * time.Second)
	began := time.Now()
	for {
		t.mu.Lock()
		last := t.lastCame
		t.mu.Unlock()
		if last.Before(began) {
			last = began
		}
		left := min(quiet-time.Since(last), time.Until(deadline))
		if left <= 0 {
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

// discardQueued reads what the connections hold: it came before the start and does not count.
// t.mu is held.
func (t *test) discardQueued() {
	buf := make([]byte, 64<<10)
	for _, a := range t.conns {
		left, err := a.c.RecvQueue()
		if err != nil {
			continue
		}
		_ = a.nc.SetReadDeadline(time.Now().Add(time.Second))
		for left > 0 {
			n, err := a.nc.Read(buf[:min(left, len(buf))])
			if left -= n; err != nil {
				break
			}
		}
		_ = a.nc.SetReadDeadline(time.Time{})
	}
}

// runUnsynced waits until the first data byte shows that the sender neither synchronises nor
// sends tokens, then runs the test.
func (t *test) runUnsynced(ctx context.Context) {
	lookAt := time.Now().Add(lookEvery)
	for {
		look := time.Now().After(lookAt)
		if look {
			lookAt = time.Now().Add(lookEvery)
		}
		k, data, left := t.look(look)
		switch {
		case k == kindWindows:
			t.runTokens(ctx)
			return
		case data:
			t.beginUnsynced(ctx)
			return
		case left, ctx.Err() != nil:
			t.r.forget(t)
			t.abandon()
			if ctx.Err() == nil {
				t.r.note(t.peers[0], "data connections without data")
			}
			return
		}
		timer := time.NewTimer(pollData)
		select {
		case <-timer.C:
		case <-t.came:
			timer.Stop()
		case <-ctx.Done():
			timer.Stop()
		}
	}
}

// look reports whether data has come; with ends also whether the sender has left again.
func (t *test) look(ends bool) (k kind, data, left bool) {
	t.mu.Lock()
	conns, k := t.conns, t.kind
	left = time.Since(t.lastCame) > t.r.to.Setup
	t.mu.Unlock()
	for _, a := range conns {
		if n, err := a.c.RecvQueue(); err == nil && n > 0 {
			return k, true, false
		}
	}
	if ends && !left {
		left = true
		for _, a := range conns {
			left = left && ended(a.nc)
		}
	}
	return k, false, left
}

// lookEvery is how often connections without data are asked whether they still live.
const lookEvery = 500 * time.Millisecond

// pollData is how often connections are asked for their first byte. The clock starts later by
// that much at most; what came before is dropped.
const pollData = 2 * time.Millisecond

// beginUnsynced starts a test without synchronisation: the sender began when all its connections
// were up, so they are all there.
func (t *test) beginUnsynced(ctx context.Context) {
	t.r.barrier.pass(ctx, t.r.lns.Data)
	if !t.r.begin(t) {
		t.r.forget(t)
		t.abandon()
		t.r.note(t.peers[0], "busy")
		return
	}
	t.mu.Lock()
	t.started = true
	if len(t.conns) > 0 {
		t.first = addrOf(t.conns[0].nc.RemoteAddr())
	}
	t.discardQueued()
	t.begun = time.Now()
	t.mu.Unlock()
	t.run(ctx, false)
}

// ended looks, without reading, whether the peer has ended a connection that holds no data.
func ended(nc net.Conn) bool {
	sc, ok := nc.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return true
	}
	_ = nc.SetReadDeadline(time.Now().Add(200 * time.Microsecond))
	defer func() { _ = nc.SetReadDeadline(time.Time{}) }()
	waited := false
	err = raw.Read(func(uintptr) bool { // the second call means that it is ready
		was := waited
		waited = true
		return was
	})
	return err == nil || !isTimeout(err)
}

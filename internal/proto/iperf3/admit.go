package iperf3

import (
	"bytes"
	"container/list"
	"context"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"sync"
	"time"
)

// full reports that no slot is free. s.mu is held.
func (s *Server) full() bool { return s.Slots.Full() || s.Policy.OneOff && s.used }

// watchSlots takes note of the tests of other protocols at this server. It ends with ctx.
func (s *Server) watchSlots(ctx context.Context, changes <-chan struct{}) {
	others := 0
	for {
		select {
		case <-changes:
		case <-ctx.Done():
			return
		}
		s.mu.Lock()
		before := others
		if others = s.Slots.Taken() - len(s.running); others != before {
			s.lastBusy = time.Now()
		}
		if others > before {
			for t := range s.running {
				t.overlapped()
			}
		}
		s.admitQueued()
		s.mu.Unlock()
	}
}

// beside is how many tests run at this server beside one.
func (s *Server) beside() int { return max(1, s.Slots.Taken()-1) }

// sayBusyAtOnce reports that a new connection can only be a client that must be told
// busy: no slot, no queue, and no test that waits for streams.
func (s *Server) sayBusyAtOnce() bool {
	s.waitForEnding()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.full() && !s.Policy.Queue && len(s.creating) == 0
}

// exclusiveAndTaken is the same once the connection proved to be no stream.
func (s *Server) exclusiveAndTaken() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.full() && !s.Policy.Queue
}

// endingPatience bounds waitForEnding; a busy answer is still at once for people.
const endingPatience = 200 * time.Millisecond

// waitForEnding waits a moment when the test that holds the last slot is over for its
// client, who may be back already, before this server has noticed (field case F32).
func (s *Server) waitForEnding() {
	deadline := time.Now().Add(endingPatience)
	for {
		s.mu.Lock()
		var ending <-chan struct{}
		if s.full() && !s.used {
			for t := range s.running {
				if t.ending.Load() {
					ending = t.released
					break
				}
			}
		}
		s.mu.Unlock()
		left := time.Until(deadline)
		if ending == nil || left <= 0 {
			return
		}
		timer := time.NewTimer(left)
		select {
		case <-ending:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// busy tells a client so, and the log who holds the slot since when (field case F24).
func (s *Server) busy(nc net.Conn, peer netip.Addr) {
	var holder string
	s.mu.Lock()
	for t := range s.running {
		holder = t.name() + " since " + t.since.UTC().Format(time.RFC3339)
		break
	}
	s.mu.Unlock()
	s.visitors.note(peer, "busy", "holder", holder)
	s.farewell(nc, []byte{0xff})
}

// expecting returns the test that waits for a stream with this cookie, and whether the
// stream comes from another address than its control connection. Every waiting test is
// compared, so that the time tells nothing.
func (s *Server) expecting(c Cookie, peer netip.Addr) (t *session, foreign bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for x := range s.creating {
		if x.cookie.Equal(c) {
			t = x
		}
	}
	return t, t != nil && t.peer != peer
}

// verdict is admission's answer.
type verdict int

const (
	admitted verdict = iota
	mustWait
	isBusy
)

// admit takes a slot for t, puts it into the queue, or says busy.
func (s *Server) admit(t *session, mayWait bool) verdict {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.full() && len(s.queue) == 0 && s.take(t) {
		return admitted
	}
	if s.Policy.Queue && mayWait && !(s.Policy.OneOff && s.used) {
		s.queue = append(s.queue, t)
		return mustWait
	}
	return isBusy
}

// take gives t a slot; false = there is none any more. s.mu is held.
func (s *Server) take(t *session) bool {
	others, _, ok := s.Slots.Take()
	if !ok {
		return false
	}
	if s.Policy.OneOff {
		s.used = true
	}
	t.others = others
	for o := range s.running {
		o.overlapped()
	}
	s.running[t] = struct{}{}
	t.since = s.now()
	close(t.turn)
	return true
}

// release gives t's slot, or its place in the queue, to the next.
func (s *Server) release(t *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.creating, t)
	if _, held := s.running[t]; held {
		delete(s.running, t)
		s.lastBusy = time.Now()
		s.Slots.Release()
		close(t.released)
	}
	for i, q := range s.queue {
		if q == t {
			s.queue = append(s.queue[:i:i], s.queue[i+1:]...)
			break
		}
	}
	s.admitQueued()
	for _, q := range s.queue {
		q.moved()
	}
}

// admitQueued gives free slots to those that wait. s.mu is held.
func (s *Server) admitQueued() {
	for len(s.queue) > 0 && !s.full() && s.take(s.queue[0]) {
		s.queue = s.queue[1:]
	}
}

// place is t's position in the queue (1 = next, 0 = it is not there) and the time until
// its turn when every test before it has a known end.
func (s *Server) place(t *session) (int, *float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, q := range s.queue {
		if q != t {
			continue
		}
		var total time.Duration
		if s.Slots.Taken() > len(s.running) {
			return i + 1, nil // a test of another protocol, whose end nobody knows here
		}
		if s.Policy.Exclusive || s.Policy.OneOff || s.Policy.MaxTests == 1 {
			for r := range s.running {
				left, ok := r.remaining()
				if !ok {
					return i + 1, nil
				}
				total += left
			}
			for _, before := range s.queue[:i] {
				d := before.plan.Duration + before.plan.Omit
				if before.plan.Duration == 0 {
					return i + 1, nil
				}
				total += d
			}
			est := total.Seconds()
			return i + 1, &est
		}
		return i + 1, nil
	}
	return 0, nil
}

// foreignClient names the protocol that a client's first bytes belong to, "" = it may be
// iperf3. Such a visitor gets no answer.
func foreignClient(b []byte) string {
	for _, m := range []string{"GET ", "POST ", "HEAD ", "PUT ", "OPTIONS ", "CONNECT ", "PRI * HTTP"} {
		if bytes.HasPrefix(b, []byte(m)) {
			return "HTTP client"
		}
	}
	switch {
	case len(b) >= 2 && b[0] == 0x16 && b[1] == 3:
		return "TLS client"
	case bytes.HasPrefix(b, []byte("SSH-")):
		return "SSH client"
	case len(b) >= 12 && b[4] == 0 && b[5] == 0 && b[8] == 0 && b[9] == 0 && b[0]&0x3b == 0:
		// iperf 2: flags (0x40010078, 0xc0010079, 0x44010078 seen with 2.1.8; 0 and 0x80000000
		// before), number of threads, port, all 32 bit.
		return "iperf 2 client"
	}
	return ""
}

// pending are the connections that have not finished their greeting. When there are too
// many, the oldest is closed: a real client needs one round trip, so it is not the one.
type pending struct {
	mu     sync.Mutex
	limit  int
	order  *list.List
	closed bool
}

type pendingEntry struct {
	nc net.Conn
	at *list.Element
}

func newPending(limit int) *pending { return &pending{limit: limit, order: list.New()} }

func (p *pending) add(nc net.Conn) *pendingEntry {
	p.mu.Lock()
	defer p.mu.Unlock()
	e := &pendingEntry{nc: nc}
	if p.closed {
		_ = nc.Close()
		return e
	}
	if p.order.Len() >= p.limit {
		oldest := p.order.Front()
		p.order.Remove(oldest)
		old := oldest.Value.(*pendingEntry)
		old.at = nil
		_ = old.nc.Close() // its goroutine's read fails
	}
	e.at = p.order.PushBack(e)
	return e
}

func (p *pending) remove(e *pendingEntry) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if e.at != nil {
		p.order.Remove(e.at)
		e.at = nil
	}
}

// closeAll ends every greeting, now and from now on.
func (p *pending) closeAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for e := p.order.Front(); e != nil; e = e.Next() {
		_ = e.Value.(*pendingEntry).nc.Close()
	}
}

// OutOfDescriptors is what the log says, as "what" of a "visitor", where connections could not be taken for want of
// descriptors: the one such record that is no visitor's doing.
const OutOfDescriptors = "out of descriptors"

// visitors logs who came and was no client, at most visitorLines per address and
// visitorPause, and bounded in all; what was left out is counted.
type visitors struct {
	log *slog.Logger

	mu   sync.Mutex
	seen map[netip.Addr]*visits
}

type visits struct {
	since   time.Time // of the present pause
	lines   int       // in it
	omitted int
}

const (
	visitorPause = 10 * time.Second
	visitorLines = 8
	maxVisitors  = 256
)

func newVisitors(log *slog.Logger) *visitors {
	return &visitors{log: log, seen: map[netip.Addr]*visits{}}
}

// note logs one visit. what must not hold what the visitor sent.
func (v *visitors) note(peer netip.Addr, what string, attrs ...any) {
	now := time.Now()
	v.mu.Lock()
	x := v.seen[peer]
	if x == nil {
		if len(v.seen) >= maxVisitors {
			for a, old := range v.seen { // forget some; those that matter come back
				if now.Sub(old.since) > visitorPause || len(v.seen) >= maxVisitors {
					delete(v.seen, a)
				}
			}
		}
		x = &visits{}
		v.seen[peer] = x
	}
	if now.Sub(x.since) >= visitorPause {
		x.since, x.lines = now, 0
	}
	if x.lines >= visitorLines {
		x.omitted++
		v.mu.Unlock()
		return
	}
	omitted := x.omitted
	x.lines++
	x.omitted = 0
	v.mu.Unlock()
	attrs = append([]any{"from", peer.String(), "what", what}, attrs...)
	if omitted > 0 {
		attrs = append(attrs, "also", omitted)
	}
	v.log.Warn("visitor", attrs...)
}

// stranger notes a connection that ended without being a client's.
func (v *visitors) stranger(peer netip.Addr, got []byte, err error) {
	what := "left without a greeting"
	switch {
	case foreignClient(got) != "":
		what = foreignClient(got)
	case isNetTimeout(err):
		what = "silent or too slow"
	case len(got) > 0 && strings.IndexFunc(string(got), func(r rune) bool { return r < ' ' || r > '~' }) >= 0 && len(got) < CookieSize:
		what = "sent something that is not iperf3"
	case len(got) == CookieSize:
		what = "sent no valid parameters"
	}
	v.note(peer, what, "err", err)
}

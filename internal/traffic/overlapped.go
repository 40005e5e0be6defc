package traffic

import (
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/fullbore-net/fullbore/internal/osnet"
	"github.com/fullbore-net/fullbore/internal/plan"
)

// callRing is several calls under way on one connection, which end in their order:
// osnet.Overlapped, whose words these are.
type callRing interface {
	Begin(n int) error
	Pending() int
	Wait(ns int64) (n int, data []byte, err error)
	Wake()
	Cancel()
	Close()
}

// overlapped moves one flow with several calls under way, so that the system has something
// to do while this program learns that a call has ended: Windows without send buffering
// moves one call's bytes a round trip otherwise. It waits in the system, on a thread.
type overlapped struct {
	portable          // pauses; reads what is left in the end
	ring     callRing // of depth calls
	depth    int
	size     int
	begun    []overlappedSend // calls under way, a queue
	at       []int64          // when receives under way began, likewise
	rest     int64            // of a block's calls that ended short
	blocks   int64            // whose last call is under way
	cancels  bool             // Cancel was called
}

// overlappedSend is a send under way.
type overlappedSend struct {
	n       int
	at      int64
	last    bool // its block's
	claimed bool // its block counts against the limit
	whole   bool // it ends what was to be written at once
}

// Calls under way where the plan leaves it to the engine: what Microsoft advises for NTTTCP's
// -a at either end.
const (
	overlapSend    = 2
	overlapReceive = 6
	// overlapFlows is the most flows that get a thread each unasked.
	overlapFlows = 64
)

// overlapDepth is how many calls of s should be under way, 1 for one at a time.
func (e *Engine) overlapDepth(s *stream) int {
	c := &e.cfg
	switch {
	case s.Send && c.Source != nil, !s.Send && c.Sink != nil:
		return 1 // a file has an order
	case !s.Send && (e.cap > 0 || e.q.budgeted):
		return 1 // nothing is asked for that may not come
	case c.Outstanding > 0:
		return min(c.Outstanding, osnet.MaxOverlapped)
	case len(e.streams) > overlapFlows:
		return 1
	case s.Send && c.Send == plan.SendCheapest:
		return overlapSend
	case !s.Send && c.Receive == plan.Discard:
		return overlapReceive
	}
	return 1
}

func newOverlapped(s *stream, i, depth int) *overlapped {
	o := &overlapped{portable: *newPortable(s, i), depth: depth, size: s.e.cfg.BlockSize}
	if !s.Send && s.calls == nil {
		o.size = max(o.size, 128<<10)
	}
	return o
}

func (o *overlapped) close() { o.ring.Close() }

func (o *overlapped) kick() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
	o.ring.Wake()
}

func (o *overlapped) run() {
	s := o.s
	if len(s.e.cfg.Affinity) > 0 {
		defer s.e.pin(o.i, false)()
	}
	o.startTimer()
	defer o.timer.Stop()
	if s.Send {
		o.send()
		o.giveBack()
	} else {
		o.receive()
	}
	s.ctr.stopped.Store(max(s.e.now(), 1))
}

// sendPatience is how long a sender that was stopped lets its calls end by themselves, ns: a
// peer that reads takes them, and Windows breaks a connection whose send is cancelled half way.
const sendPatience = int64(150_000_000)

func (o *overlapped) send() {
	s, e := o.s, o.s.e
	until := int64(0) // when patience ends, after a stop
	for {
		now, wait := e.now(), int64(-1)
		switch stopped := e.stopSend.Load(); {
		case stopped && o.ring.Pending() == 0:
			return
		case stopped && until == 0:
			until = now + sendPatience
			wait = sendPatience
		case stopped && now < until:
			wait = until - now
		case stopped && !o.cancels:
			o.cancels = true
			o.ring.Cancel()
		case stopped:
		default:
			var err error
			if wait, err = o.beginSends(now); err != nil {
				o.fail("send", err)
				return
			}
			if o.ring.Pending() == 0 {
				if wait < 0 {
					return
				}
				o.pause(wait)
				continue
			}
		}
		n, _, err := o.ring.Wait(wait)
		if errors.Is(err, osnet.ErrWoken) {
			continue
		}
		o.sent(n, e.now())
		if err != nil && !(o.cancels && osnet.IsCancelled(err)) {
			o.fail("send", err)
			return
		}
		if s.over.Load() {
			return
		}
	}
}

// beginSends begins as many sends as may be under way now. It returns how long to wait until
// another may begin, negative when none may before one ends.
func (o *overlapped) beginSends(now int64) (wait int64, err error) {
	s, e := o.s, o.s.e
	for o.ring.Pending() < o.depth {
		if s.left == 0 && e.cfg.BlocksEach && o.blocks >= s.turns {
			return -1, nil // its last blocks are under way
		}
		n, wait := s.next(now)
		if n == 0 {
			return wait, nil
		}
		if err := o.ring.Begin(n); err != nil {
			return 0, err
		}
		s.pace.took(int64(n))
		s.left -= int64(n)
		if s.left == 0 {
			o.blocks++
		}
		o.begun = append(o.begun, overlappedSend{
			n: n, at: now, last: s.left == 0, claimed: s.claimed,
			whole: s.left == 0 || s.rate > 0 && s.pace.open == 0,
		})
	}
	return -1, nil
}

// sent counts the oldest send, which moved n bytes.
func (o *overlapped) sent(n int, now int64) {
	s, c := o.s, o.begun[0]
	o.begun = append(o.begun[:0], o.begun[1:]...)
	if n > 0 {
		s.ctr.add(n, now)
	}
	if n == c.n && c.whole && s.calls != nil {
		s.calls.begin(c.at)
		s.finished(1, now)
	}
	o.rest += int64(c.n - n)
	if !c.last {
		return
	}
	if c.claimed || s.e.q.budgeted {
		s.e.q.settle(o.rest, c.claimed)
		s.e.checkQuota()
	}
	o.blocks--
	if o.rest == 0 {
		s.sentBlocks(1)
	}
	o.rest = 0
}

// giveBack puts what was claimed and not sent where release finds it.
func (o *overlapped) giveBack() {
	o.s.left += o.rest
	o.rest = 0
	o.s.release()
}

// fail ends the flow for err, once nothing of it is under way.
func (o *overlapped) fail(what string, err error) {
	o.collect()
	o.s.left += o.rest
	o.rest = 0
	o.s.end(fmt.Errorf("traffic: %s: %w", what, err))
}

// collect ends the calls under way and counts what they moved.
func (o *overlapped) collect() {
	o.cancels = true
	o.ring.Cancel()
	for until := o.s.e.now() + collectWait; o.ring.Pending() > 0; {
		n, _, err := o.ring.Wait(collectWait)
		switch {
		case !errors.Is(err, osnet.ErrWoken):
			o.ended(n)
		case o.s.e.now() > until:
			return // close waits on
		}
	}
}

// collectWait is more than any system takes to end calls that are cancelled, ns.
const collectWait = int64(1_000_000_000)

// ended counts the oldest call, which moved n bytes.
func (o *overlapped) ended(n int) {
	if o.s.Send {
		o.sent(n, o.s.e.now())
	} else {
		o.took(n, o.s.e.now())
	}
}

func (o *overlapped) receive() {
	s, e := o.s, o.s.e
	for {
		if e.stopRecv.Load() {
			o.collect()
			break
		}
		if err := o.beginReceives(e.now()); err != nil {
			o.fail("receive", err)
			return
		}
		n, data, err := o.ring.Wait(-1)
		if errors.Is(err, osnet.ErrWoken) {
			continue
		}
		o.took(n, e.now())
		switch {
		case n > 0 && !s.verified(data):
			o.collect()
			return
		case err != nil:
			o.fail("receive", err)
			return
		case n == 0:
			o.collect()
			s.end(io.EOF)
			return
		}
	}
	if e.drain.Load() {
		o.buf = make([]byte, o.size)
		o.drainSocket()
	}
}

// beginReceives begins as many receives as may be under way: one more than what is still to
// come needs, where that is known.
func (o *overlapped) beginReceives(now int64) error {
	e := o.s.e
	for n := o.ring.Pending(); n < o.depth; n++ {
		if n > 0 && e.watchReceived && int64(n*o.size) >= e.receiveTarget.Load()-min(e.received.Load(), math.MaxInt64/2) {
			return nil
		}
		if err := o.ring.Begin(o.size); err != nil {
			return err
		}
		o.at = append(o.at, now)
	}
	return nil
}

// took counts the oldest receive, which has n bytes.
func (o *overlapped) took(n int, now int64) {
	s, at := o.s, o.at[0]
	o.at = append(o.at[:0], o.at[1:]...)
	if n <= 0 {
		return
	}
	s.got(n, now)
	if s.calls == nil {
		return
	}
	whole := 1
	if s.e.cfg.WaitAll {
		s.part += n
		whole = s.part / s.e.cfg.BlockSize
		s.part %= s.e.cfg.BlockSize
	}
	for range whole {
		s.calls.begin(at)
		s.finished(1, now)
	}
}

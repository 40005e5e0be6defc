package traffic

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"syscall"
	"time"

	"github.com/fullbore-net/fullbore/result"
)

// link is a flow's socket as a messenger uses it: each call blocks for a moment at most
// (callTimeout, or until a kick), and moved < 0 says that nothing happened.
type link interface {
	send(p []byte) (moved int, err error)
	// receive waits for bytes; until, if not 0, is when to look again, ns since t0. The peer's
	// end is io.EOF.
	receive(p []byte, until int64) (moved int, err error)
	// receiveNow takes what is there.
	receiveNow(p []byte) (moved int, err error)
	// sleep returns at until (ns since t0), or earlier.
	sleep(until int64)
	worker() string // for DataPath.Worker
	enter()         // called by the worker's goroutine when it begins,
	leave()         // and when it ends
	kick()
}

// messenger moves whole messages over one flow, one at a time: what it waits for is what is
// measured.
type messenger struct {
	s    *stream
	i    int
	link link
	out  []byte // a message
	in   []byte // room for one

	// Of one that sends.
	pace    pacer
	rate    int64 // pace follows it
	held    bool  // a message is claimed and not settled,
	limited bool  // under a limit
	number  uint32
	due     int64 // by Spacing
	missed  int64 // periods without a message
	periods int64
	tooLong int   // refusals for the size, one after the other
	silent  int64 // messages without an answer

	// Of one that receives.
	have  int   // bytes of the message under way
	size  int   // of the peer's messages
	whole bool  // one of BlockSize came: that is their size
	last  int64 // when bytes came last
	began int64 // when the exchange began
	beat  int64 // when it last went through the scheduler
}

const (
	// answerLimit is how long an answer to a datagram is waited for, as the original does
	// (windows §3.7).
	answerLimit = int64(2 * time.Second)
	// shortSilence is after how long a silence what came of a first message is taken for all
	// of it.
	shortSilence = int64(time.Second)
	// messageBeat is how often a messenger goes through Go's scheduler.
	messageBeat = int64(4 * time.Millisecond)
)

func newMessenger(s *stream, i int) (*messenger, error) {
	l, err := newLink(s)
	if err != nil {
		return nil, err
	}
	c := &s.e.cfg
	m := &messenger{s: s, i: i, link: l, size: c.BlockSize, in: make([]byte, messageRoom(c)), out: make([]byte, c.BlockSize)}
	c.fill(m.out)
	if s.tx != nil {
		s.tx.planned.Store(1)
	}
	return m, nil
}

func (m *messenger) sends() bool { return m.s.Send }
func (m *messenger) kick()       { m.link.kick() }
func (m *messenger) close()      {}

func (m *messenger) run() {
	s, e := m.s, m.s.e
	if m.link.worker() == "thread" || len(e.cfg.Affinity) > 0 {
		defer e.pin(m.i, e.paced(s.Send) || e.cfg.Spacing > 0)()
	}
	m.link.enter()
	m.beat = e.now()
	if s.Send {
		m.send()
		m.release()
	} else {
		m.receive()
	}
	m.link.leave()
	if s.rx != nil {
		s.leftReceiving()
		return
	}
	s.ctr.stopped.Store(max(e.now(), 1))
}

func (m *messenger) breathe(now int64) {
	if now-m.beat >= messageBeat {
		m.beat = now
		runtime.Gosched()
	}
}

// moved counts n bytes; answers and what they answer count alike.
func (m *messenger) moved(n int, now int64) {
	if s := m.s; s.rx != nil {
		s.rx.mu.Lock()
		s.ctr.add(n, now)
		s.rx.mu.Unlock()
	} else {
		s.ctr.add(n, now)
	}
}

// answers takes n bytes of answers off the budget.
func (m *messenger) answers(n int, now int64) {
	m.moved(n, now)
	if e := m.s.e; e.q.received(n) {
		e.fire(Budget)
	}
}

// called counts one call that ended now.
func (m *messenger) called(now int64) {
	if m.s.calls != nil {
		m.s.finished(1, now)
	}
}

func (m *messenger) send() {
	e := m.s.e
	m.due = e.now()
	for !e.stopSend.Load() {
		now := e.now()
		if now < m.due {
			m.link.sleep(m.due)
			continue
		}
		ok, wait := m.claim(now)
		if !ok {
			if wait < 0 {
				return
			}
			m.link.sleep(now + wait)
			continue
		}
		if e.cfg.Message == RoundTrip && !m.clear() || !m.message(now) {
			return
		}
		m.breathe(now)
	}
}

// claim asks for a message. Without one the worker waits so many ns or, when wait is
// negative, has nothing to send until it is stopped.
func (m *messenger) claim(now int64) (ok bool, wait int64) {
	e := m.s.e
	if r := e.rate.Load(); r != m.rate {
		m.rate = r
		m.pace.set(r, e.cfg.BlockSize, max(1, e.cfg.Burst), now)
	}
	if m.s.spent() {
		return false, -1
	}
	if !m.held && e.q.on() {
		n, limited := e.q.claim()
		if n < e.q.block {
			if n > 0 { // a rest is no message: it ends a budget
				e.q.settle(n, limited)
				e.fire(Budget)
			}
			if e.stopSend.Load() || e.checkQuota() {
				return false, -1
			}
			return false, settleWait
		}
		m.held, m.limited = true, limited
	}
	n, wait := m.pace.allow(now, e.q.block)
	return n > 0, wait
}

// settle ends a claim whose message was sent.
func (m *messenger) settle() {
	if m.held {
		m.held = false
		m.s.e.q.settle(0, m.limited)
		m.s.e.checkQuota()
	}
	m.s.sentBlocks(1)
}

// release gives a claim back and tells what went wrong without ending the flow.
func (m *messenger) release() {
	e := m.s.e
	if m.held {
		m.held = false
		e.q.settle(e.q.block, m.limited)
	}
	if m.missed > 0 {
		e.u.later(result.Notice{
			Code: "spacing-missed", End: e.cfg.End, Level: result.Warn,
			Text: fmt.Sprintf("%d of %d periods of %v had no message: what was before took longer, or this program was not running", m.missed, m.periods, e.cfg.Spacing),
		})
	}
	if m.silent > 0 {
		e.u.later(result.Notice{
			Code: "message-unanswered", End: e.cfg.End, Level: result.Warn,
			Text: fmt.Sprintf("%d of %d messages had no answer within %v: they, or their answers, were lost, or the other end does not answer", m.silent, m.number, time.Duration(answerLimit)),
		})
	}
}

// next sets when the next message is due: at the next whole period, so that nothing is made
// up and no period has two.
func (m *messenger) next(now int64) {
	period := int64(m.s.e.cfg.Spacing)
	if period <= 0 {
		m.due = 0
		return
	}
	late := max(now-m.due, 0) / period
	m.missed += late
	m.periods += late + 1
	m.due += (late + 1) * period
}

// message sends one, takes its answer where there is to be one, and reports whether the flow
// goes on.
func (m *messenger) message(now int64) bool {
	s, e := m.s, m.s.e
	began := e.now()
	s.headerOf(m.out, m.number, began)
	if s.calls != nil {
		s.calls.began = began
	}
	if more, sent := m.put(now); !sent {
		m.next(e.now())
		return more
	}
	m.number++
	after := e.now()
	if s.tx != nil {
		s.tx.seq++
		s.tx.sends.Store(s.tx.sends.Load() + 1)
		s.largestBurst(1)
		if e.cfg.Spacing > 0 {
			s.tx.lateBy(began - m.due)
		}
	}
	m.next(after)
	m.called(after)
	if e.cfg.Message == RoundTrip && !m.answered(began) {
		return false
	}
	m.settle()
	return true
}

// put sends the message in out. sent is false when it was not; more tells whether the flow
// goes on then.
func (m *messenger) put(now int64) (more, sent bool) {
	s, e := m.s, m.s.e
	for rest := m.out; len(rest) > 0; {
		began := now
		n, err := m.link.send(rest)
		now = e.now()
		if e.stopSend.Load() && n < 0 {
			return false, false
		}
		switch {
		case err != nil:
			if again, more := m.refused(err, now); !again {
				return more, false
			}
		case n >= 0:
			m.moved(n, now)
			m.pace.took(int64(n))
			rest = rest[n:]
		case e.cfg.Message == RoundTrip: // the peer may wait for us to read what it sends
			if !m.clear() {
				return false, false
			}
			fallthrough
		default:
			if s.tx != nil {
				s.tx.blocked.Add(now - began)
			}
		}
	}
	m.tooLong = 0
	return true, true
}

// refused deals with a send that failed: again = it is made again; more = the flow goes on
// without it.
func (m *messenger) refused(err error, now int64) (again, more bool) {
	s, e := m.s, m.s.e
	var errno syscall.Errno
	if e.udp() && errors.As(err, &errno) {
		switch sortRefusal(errno) {
		case sendAgain:
			return true, true
		case sendRefused:
			s.tx.refused.Add(1)
			m.pace.took(e.q.block)
			m.link.sleep(now + retryPause)
			return false, true
		case sendICMP:
			if err := s.answeredByICMP(1); err != nil {
				s.end(err)
				return false, false
			}
			return true, true
		case sendTooLong:
			if m.tooLong++; m.tooLong < 2 { // perhaps a router's word about an earlier one
				return true, true
			}
			s.end(s.tooLong())
			return false, false
		}
	}
	s.end(fmt.Errorf("traffic: send: %w", err))
	return false, false
}

// clear takes what came after the answer: a peer that answers each piece of a message says
// more than was asked. It reports whether the flow goes on.
func (m *messenger) clear() bool {
	for !m.s.e.stopSend.Load() {
		n, err := m.link.receiveNow(m.in)
		if err != nil {
			return m.lost(err)
		}
		if n < 0 {
			return true
		}
		if !m.answer(m.in[:n], m.s.e.now()) {
			return false
		}
		m.called(m.s.e.now())
	}
	return true
}

// answer counts bytes of an answer and reports whether they are right.
func (m *messenger) answer(p []byte, now int64) bool {
	m.answers(len(p), now)
	return m.s.verified(p)
}

// lost deals with a receive that failed and reports whether the flow goes on.
func (m *messenger) lost(err error) bool {
	s := m.s
	var errno syscall.Errno
	switch {
	case isEOF(err):
		s.end(io.EOF)
		return false
	case s.e.udp() && errors.As(err, &errno) && s.tx == nil && concernsAnswer(errno):
		return true
	case s.e.udp() && errors.As(err, &errno) && sortRefusal(errno) == sendICMP:
		if err = s.answeredByICMP(1); err == nil {
			return true
		}
		s.end(err)
		return false
	case s.e.udp() && errors.As(err, &errno) && sortRefusal(errno) != sendBroken:
		return true
	}
	s.end(fmt.Errorf("traffic: receive: %w", err))
	return false
}

// concernsAnswer reports errors of what a receiver has sent, not of what comes.
func concernsAnswer(errno syscall.Errno) bool {
	return sortRefusal(errno) != sendBroken || errno == syscall.EHOSTUNREACH || errno == syscall.ENETUNREACH
}

// answered waits for the answer of the message that was begun at began, and reports whether
// the flow goes on.
func (m *messenger) answered(began int64) bool {
	s, e := m.s, m.s.e
	limit := int64(0)
	if e.udp() {
		limit = e.now() + answerLimit
	}
	for have := 0; !e.stopSend.Load(); {
		n, err := m.link.receive(m.in, limit)
		now := e.now()
		switch {
		case err != nil:
			if !m.lost(err) {
				return false
			}
			if e.udp() { // nobody will answer this one
				m.link.sleep(now + retryPause)
				return true
			}
		case n >= 0:
			if !m.answer(m.in[:n], now) {
				return false
			}
			if have += n; have >= e.cfg.BlockSize || e.udp() {
				m.called(now)
				s.calls.exchanged(now-began, e.measured.Load())
				return true
			}
		}
		if limit > 0 && now >= limit {
			m.silent++
			return true
		}
	}
	return true
}

func (m *messenger) receive() {
	e := m.s.e
	m.began = e.now()
	for !e.stopRecv.Load() {
		came, more := m.take(false)
		if !more {
			return
		}
		if came && e.cfg.Message == RoundTrip && !m.reply() {
			return
		}
		m.breathe(m.last)
	}
	if !e.drain.Load() || e.cfg.Message == RoundTrip {
		return
	}
	for left, err := m.s.Conn.RecvQueue(); err == nil && left > 0; {
		before := m.s.ctr.bytes.Load()
		if _, more := m.take(true); !more || m.s.ctr.bytes.Load() == before {
			return
		}
		left -= int(m.s.ctr.bytes.Load() - before)
	}
}

// take makes one receive. came = a message is whole; more = the flow goes on.
func (m *messenger) take(rest bool) (came, more bool) {
	s, e := m.s, m.s.e
	now := e.now()
	s.calling(now)
	if e.udp() {
		return m.takeDatagram()
	}
	want, wait := s.wants(m.size-m.have, now)
	if rest {
		want = m.size - m.have
	}
	if want == 0 {
		m.link.sleep(now + wait)
		return false, true
	}
	var n int
	var err error
	p := m.in[m.have:][:want]
	switch {
	case rest:
		n, err = m.link.receiveNow(p)
	case m.have > 0 && !m.whole:
		n, err = m.link.receive(p, m.last+shortSilence)
	default:
		n, err = m.link.receive(p, 0)
	}
	now = e.now()
	switch {
	case err != nil:
		return false, m.lost(err)
	case n < 0:
		return m.short(now), true
	}
	return m.took(p[:n], now)
}

// took counts bytes of a message.
func (m *messenger) took(p []byte, now int64) (came, more bool) {
	s, e := m.s, m.s.e
	s.got(len(p), now)
	m.last = now
	checked := p
	if e.cfg.Message == Jitter {
		checked = p[min(len(p), max(0, MessageHeader-m.have)):]
	}
	if !s.verified(checked) {
		return false, false
	}
	if m.have += len(p); m.have < m.size {
		return false, true
	}
	m.whole = m.whole || m.size == e.cfg.BlockSize
	s.message(m.in[:m.have], now, false)
	m.have = 0
	m.called(now)
	s.calling(now)
	return true, true
}

// short reports that what came of the first message seems to be all of it.
func (m *messenger) short(now int64) bool {
	e := m.s.e
	if e.cfg.Message != RoundTrip || m.have == 0 || m.whole || now < m.last+shortSilence {
		return false
	}
	m.size, m.have = m.have, 0
	e.u.later(result.Notice{
		Code: "message-size", End: e.cfg.End, Level: result.Warn,
		Text: fmt.Sprintf("messages seem to have %d bytes instead of %d: each is answered when that much of it is here", m.size, e.cfg.BlockSize),
	})
	m.called(now)
	return true
}

func (m *messenger) takeDatagram() (came, more bool) {
	s, e := m.s, m.s.e
	n, err := m.link.receive(m.in, 0)
	now := e.now()
	switch {
	case err != nil:
		return false, m.lost(err)
	case n < 0:
		return false, true
	}
	m.last = now
	s.rx.mu.Lock()
	counted := s.arrived(m.in[:n], 0, 0, now)
	s.rx.mu.Unlock()
	s.noteDatagrams(counted)
	s.rx.took = 0
	if s.rx.bad != nil {
		s.end(s.rx.bad)
		return false, false
	}
	m.called(now)
	return true, true
}

// reply answers a message and reports whether the flow goes on.
func (m *messenger) reply() bool {
	s, e := m.s, m.s.e
	for rest := m.out; len(rest) > 0 && !e.stopRecv.Load(); {
		n, err := m.link.send(rest)
		now := e.now()
		switch {
		case err != nil:
			var errno syscall.Errno
			if e.udp() && errors.As(err, &errno) {
				switch sortRefusal(errno) {
				case sendAgain, sendRefused, sendICMP: // a datagram fewer
					return true
				case sendTooLong:
					err = s.tooLong()
				}
			}
			s.end(fmt.Errorf("traffic: answer: %w", err))
			return false
		case n >= 0:
			m.answers(n, now)
			rest = rest[n:]
		}
		if len(rest) == 0 {
			m.called(now)
			s.calls.exchanged(now-m.began, e.measured.Load())
			m.began = now
		}
	}
	return true
}

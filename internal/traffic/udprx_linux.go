package traffic

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fullbore-net/fullbore/internal/osnet"
	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/result"
)

const (
	// tailTimeout bounds a call while the tail is counted, so that its silence is seen.
	tailTimeout = 20 * time.Millisecond
	// lastTimeout bounds the last one.
	lastTimeout = time.Millisecond
)

func (e *Engine) addReceivers(group []*stream) error {
	e.u.fastRx = len(group) > 0
	for i, part := range e.share(group) {
		var m mover
		var err error
		if len(part) == 1 {
			m, err = newUDPRx(part[0], i)
			e.path.Worker = "thread"
		} else {
			m, err = newUDPRxSet(part, i)
			e.path.Worker = "epoll"
		}
		if err != nil {
			return err
		}
		e.movers = append(e.movers, m)
	}
	return nil
}

// newReceiver makes the buffers of one flow, or of all flows of a worker. Where the system
// has no coalescing or no stamps, it does without and says so.
func (e *Engine) newReceiver(fds []int) (*osnet.DatagramReceiver, error) {
	caps := osnet.Capabilities()
	coalesce := caps.Coalesce && e.cfg.UDP.Offload != plan.OffloadOff && !e.cfg.TimeCalls && e.cfg.Message == ""
	if e.cfg.UDP.Offload == plan.OffloadOn && !coalesce && !e.noticed("offload-off") {
		e.notice("offload-off", result.Info, "coalescing of received datagrams was asked for: this system does not offer it")
	}
	if !caps.Stamps && (!e.cfg.UDP.Bare || e.cfg.Message == Jitter) {
		e.noticeStamps()
	}
	messages := plainMessages
	switch {
	case e.cfg.TimeCalls:
		messages = 1
	case coalesce:
		messages = coalescedMessages
	case e.cfg.UDP.Bare:
		messages = bareMessages
	}
	r, err := osnet.NewDatagramReceiver(fds[0], e.receiveSize(false), messages, coalesce, caps.Stamps)
	for _, fd := range fds[1:] {
		if err == nil {
			err = r.Add(fd)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("traffic: %w", err)
	}
	return r, nil
}

// takeBatch counts the messages of one call, read at now, and reports whether the flow
// goes on.
func (s *stream) takeBatch(r *osnet.DatagramReceiver, n int, now int64) (more bool) {
	u := s.rx
	u.clock.refresh(u.e.u.base, now)
	counted := 0
	u.mu.Lock()
	for i := range n {
		data, segment, stamp := r.Message(i)
		counted += s.arrived(data, segment, stamp, now)
	}
	u.mu.Unlock()
	if s.e.cfg.Message == Jitter {
		for i := range n {
			data, _, stamp := r.Message(i)
			s.tookMessage(data, stamp, now)
		}
	}
	more = s.tookDatagrams(now)
	s.noteDatagrams(counted)
	return more
}

// udpRx receives one flow's datagrams with blocking calls on a locked thread.
type udpRx struct {
	s    *stream
	i    int
	fd   int
	in   *osnet.DatagramReceiver
	tid  atomic.Int64
	beat int64
	tail bool
}

func newUDPRx(s *stream, i int) (*udpRx, error) {
	fd, err := s.Conn.Detach()
	if err != nil {
		return nil, err
	}
	if err := osnet.SetBlocking(fd, callTimeout); err != nil {
		return nil, err
	}
	in, err := s.e.newReceiver([]int{fd})
	if err != nil {
		return nil, err
	}
	return &udpRx{s: s, i: i, fd: fd, in: in}, nil
}

func (w *udpRx) sends() bool { return false }
func (w *udpRx) close()      {}

func (w *udpRx) kick() {
	if tid := w.tid.Load(); tid != 0 {
		osnet.Interrupt(int(tid))
	}
}

func (w *udpRx) run() {
	e := w.s.e
	defer e.pin(w.i, false)()
	w.tid.Store(int64(osnet.Thread()))
	for now := e.now(); ; {
		state := e.listens(w.s.rx.quiet, now)
		if state == heard {
			break
		}
		var errno syscall.Errno
		if now, errno = w.readOnce(state); state == silent && errno == unix.EAGAIN || errno != 0 && !receivePasses(errno) {
			break
		}
	}
	w.tid.Store(0)
	w.s.leftReceiving()
}

// readOnce makes one call. It returns when it was over, and its error; EBADMSG = the flow
// has ended.
func (w *udpRx) readOnce(state listening) (int64, syscall.Errno) {
	s, e := w.s, w.s.e
	switch {
	case state == silent:
		_ = osnet.SetBlocking(w.fd, lastTimeout)
	case !w.tail && e.stopRecv.Load():
		w.tail = true
		_ = osnet.SetBlocking(w.fd, tailTimeout)
	}
	if s.calls != nil {
		s.calls.begin(e.now())
	}
	n, errno := w.in.Receive()
	now := e.now()
	switch {
	case errno == 0:
		if !s.takeBatch(w.in, n, now) {
			return now, unix.EBADMSG
		}
	case !receivePasses(errno):
		s.end(receiveError(errno))
		return now, errno
	}
	if now-w.beat >= beat {
		w.beat = now
		runtime.Gosched()
		e.police(now)
	}
	return now, errno
}

// receivePasses reports errnos after which a receiver goes on: an ICMP error concerns
// what this socket once sent (a greeting's answer), not what comes.
func receivePasses(errno syscall.Errno) bool {
	switch errno {
	case unix.ECONNREFUSED, unix.EHOSTUNREACH, unix.ENETUNREACH, unix.ENOMEM, unix.ENOBUFS:
		return true
	}
	return passing(errno)
}

// udpRxSet receives the datagrams of many flows on one locked thread: one call per flow
// that has any, then the next.
type udpRxSet struct {
	e     *Engine
	i     int
	lanes []rxLane
	in    *osnet.DatagramReceiver // of all lanes
	queue ring
	live  int
	poll  *osnet.Poller
	beat  int64
	quiet int64 // when the last datagram of any of its flows came
	reads int64 // calls that found something
}

type rxLane struct {
	s     *stream
	fd    int
	state laneState
}

func newUDPRxSet(part []*stream, i int) (*udpRxSet, error) {
	w := &udpRxSet{e: part[0].e, i: i, lanes: make([]rxLane, len(part)), live: len(part)}
	w.queue.init(len(part))
	fds := make([]int, len(part))
	for k, s := range part {
		fd, err := s.Conn.Detach()
		if err != nil {
			return nil, err
		}
		fds[k], w.lanes[k] = fd, rxLane{s: s, fd: fd}
	}
	in, err := w.e.newReceiver(fds)
	if err != nil {
		return nil, err
	}
	p, err := osnet.NewPoller()
	if err != nil {
		return nil, err
	}
	w.in, w.poll = in, p
	for k, fd := range fds {
		if err := p.Add(fd, int32(k), false); err != nil {
			p.Close()
			return nil, err
		}
	}
	return w, nil
}

func (w *udpRxSet) sends() bool { return false }
func (w *udpRxSet) kick()       { w.poll.Wake() }
func (w *udpRxSet) close()      { w.poll.Close() }

func (w *udpRxSet) run() {
	defer w.e.pin(w.i, false)()
	for k := range w.lanes {
		w.enqueue(int32(k))
	}
	for now := w.e.now(); w.live > 0; {
		state := w.e.listens(w.quiet, now)
		if state == heard {
			break
		}
		before := w.reads
		if now = w.turn(state); state == silent && w.reads == before {
			break
		}
	}
	for k := range w.lanes {
		w.lanes[k].s.leftReceiving()
	}
}

func (w *udpRxSet) enqueue(k int32) {
	w.lanes[k].state = queued
	w.queue.push(k)
}

// turn looks for events, then gives every queued flow one call.
func (w *udpRxSet) turn(state listening) int64 {
	timeout := time.Duration(0)
	if w.queue.n == 0 && state != silent {
		if timeout = callTimeout; w.e.stopRecv.Load() {
			timeout = tailTimeout
		}
	}
	for _, r := range w.poll.Wait(timeout) {
		if k := r >> 1; w.lanes[k].state == waiting {
			w.enqueue(k)
		}
	}
	now := w.e.now()
	for range w.queue.n {
		now = w.readOne(w.queue.pop())
	}
	if now-w.beat >= beat {
		w.beat = now
		runtime.Gosched()
		w.e.police(now)
	}
	return now
}

func (w *udpRxSet) readOne(k int32) int64 {
	l := &w.lanes[k]
	w.in.Use(l.fd)
	if l.s.calls != nil {
		l.s.calls.begin(w.e.now())
	}
	n, errno := w.in.Receive()
	now := w.e.now()
	switch {
	case errno == unix.EAGAIN:
		l.state = waiting
	case errno == 0:
		w.reads++
		more := l.s.takeBatch(w.in, n, now)
		w.quiet = max(w.quiet, l.s.rx.quiet)
		if !more {
			w.leave(k)
			return now
		}
		w.enqueue(k)
	case receivePasses(errno):
		w.enqueue(k)
	default:
		l.s.end(receiveError(errno))
		w.leave(k)
	}
	return now
}

func (w *udpRxSet) leave(k int32) {
	w.lanes[k].state = over
	w.live--
}

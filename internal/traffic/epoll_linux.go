package traffic

import (
	"io"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fullbore-net/fullbore/internal/osnet"
)

// epollSet moves many flows of one direction on one locked thread. A flow that can go
// on waits in a queue and gets one call a turn; one whose socket is full or empty
// waits for the kernel's event, one that is ahead of its rate for its due time. So no
// flow can starve another, whatever their number.
type epollSet struct {
	e     *Engine
	i     int
	tx    bool
	lanes []lane
	queue ring
	due   dueHeap
	live  int // flows not over
	poll  *osnet.Poller
	buf   []byte
	gun   gun
	beat  int64 // when it last went through the scheduler
	marks bool  // lanes have low-water marks
	swept int64 // when the marks were last looked at
}

// lane is one flow of an epollSet. It is in the queue, or in the heap, or waits for an
// event, or is over.
type lane struct {
	s     *stream
	fd    int
	hup   bool // the peer ended or broke the connection: ready for ever
	state laneState
	low   lowat
}

type laneState uint8

const (
	waiting laneState = iota // for an event
	queued
	timed
	over
)

func newEpollSet(part []*stream, i int) (*epollSet, error) {
	e := part[0].e
	w := &epollSet{e: e, i: i, tx: part[0].Send, live: len(part)}
	p, err := osnet.NewPoller()
	if err != nil {
		return nil, err
	}
	w.poll = p
	w.lanes = make([]lane, len(part))
	w.queue.init(len(part))
	w.due.init(len(part))
	for k, s := range part {
		fd, err := s.Conn.Detach()
		if err == nil {
			err = p.Add(fd, int32(k), w.tx)
		}
		if err != nil {
			p.Close()
			return nil, err
		}
		w.lanes[k] = lane{s: s, fd: fd, low: lowat{fd: fd, up: laneLowatUp}}
	}
	if w.tx {
		w.gun = newGun(e)
	} else {
		w.buf = e.shared.buffers[i%len(e.shared.buffers)]
		// A copying receiver is the slower end; it finds enough whenever it looks.
		w.marks = e.discard && !e.mustSeeAll() && len(part) <= lowatLanes
	}
	return w, nil
}

func (w *epollSet) sends() bool { return w.tx }
func (w *epollSet) kick()       { w.poll.Wake() }

func (w *epollSet) close() {
	w.gun.close()
	w.poll.Close()
}

func (w *epollSet) stopping() bool {
	if w.tx {
		return w.e.stopSend.Load()
	}
	return w.e.stopRecv.Load()
}

func (w *epollSet) run() {
	defer w.e.pin(w.i, w.e.paced(w.tx))()
	for k := range w.lanes {
		w.enqueue(int32(k))
	}
	now := w.e.now()
	w.beat = now
	for w.live > 0 && !w.stopping() {
		now = w.turn(now)
	}
	if w.tx {
		for k := range w.lanes {
			w.lanes[k].s.release()
		}
	} else if w.e.stopRecv.Load() {
		for k := range w.lanes { // what lies below a mark arrived in time, drain or not
			if l := &w.lanes[k]; l.state != over && (l.low.high || w.e.drain.Load()) {
				l.s.drainFD(l.fd, w.buf)
			}
		}
	}
	end := max(w.e.now(), 1)
	for k := range w.lanes {
		w.lanes[k].s.ctr.stopped.Store(end)
	}
}

// turn looks for events and due times, then gives every queued flow one call.
func (w *epollSet) turn(now int64) int64 {
	timeout := time.Duration(0)
	if w.queue.n == 0 {
		timeout = callTimeout
		if w.marks {
			timeout = time.Duration(sweepEvery)
		}
		if len(w.due.heap) > 0 {
			timeout = min(timeout, max(time.Duration(w.due.heap[0].at-now), 0))
		}
	}
	for _, r := range w.poll.Wait(timeout) {
		k := r >> 1
		w.lanes[k].hup = w.lanes[k].hup || r&1 != 0
		if w.lanes[k].state == waiting {
			w.enqueue(k)
		}
	}
	now = w.e.now()
	for len(w.due.heap) > 0 && w.due.heap[0].at <= now {
		w.enqueue(w.due.pop())
	}
	if w.marks && now-w.swept >= sweepEvery {
		w.sweep(now)
	}
	for range w.queue.n {
		k := w.queue.pop()
		if w.tx {
			now = w.sendOne(k, now)
		} else {
			now = w.readOne(k, now)
		}
		if w.stopping() {
			break
		}
	}
	if now-w.beat >= beat {
		w.beat = now
		runtime.Gosched()
	}
	return now
}

// sweepEvery is how often the marks follow the rates, and so how long at most bytes
// below a mark can lie when a flow stalls.
const sweepEvery = int64(20 * time.Millisecond)

func (w *epollSet) sweep(now int64) {
	w.swept = now
	for k := range w.lanes {
		if l := &w.lanes[k]; l.state != over {
			l.low.adjust(l.s.ctr.bytes.Load(), now, sweepEvery/2)
		}
	}
}

func (w *epollSet) enqueue(k int32) {
	w.lanes[k].state = queued
	w.queue.push(k)
}

func (w *epollSet) wait(k int32, until int64) {
	w.lanes[k].state = timed
	w.due.push(k, until)
}

func (w *epollSet) leave(k int32) {
	w.lanes[k].state = over
	w.live--
}

func (w *epollSet) sendOne(k int32, now int64) int64 {
	l := &w.lanes[k]
	now = l.s.fresh(now)
	n, pause := l.s.next(now)
	if n == 0 {
		if pause < 0 {
			w.leave(k)
		} else {
			w.wait(k, now+pause)
		}
		return now
	}
	// A call that does not block takes several blocks only when there is room for them.
	l.s.calling(now)
	m, errno := w.gun.send(l.fd, l.s.position(n), n, l.s.rate == 0 && len(w.lanes) <= severalFlows)
	now = w.e.now()
	switch {
	case errno == unix.EAGAIN:
		l.state = waiting
	case errno == unix.EINTR:
		w.enqueue(k)
	case errno != 0:
		l.s.end(sendError(errno))
		w.leave(k)
	default:
		l.s.wrote(m, now)
		w.enqueue(k)
	}
	return now
}

// severalFlows is up to how many flows of a worker a call may take several blocks: with
// more, one round takes so long that a second does not even it out (1,000 flows in one
// second: Jain's index 0.82 instead of 0.99).
const severalFlows = 64

func (w *epollSet) readOne(k int32, now int64) int64 {
	l := &w.lanes[k]
	now = l.s.fresh(now)
	want, pause := l.s.wants(len(w.buf), now)
	if want == 0 {
		w.wait(k, now+pause)
		return now
	}
	l.s.calling(now)
	n, errno := w.read(l.fd, want)
	now = w.e.now()
	switch {
	case errno == unix.EAGAIN && !l.hup:
		l.state = waiting
	case passing(errno):
		w.enqueue(k)
	case errno != 0:
		l.s.end(receiveError(errno))
		w.leave(k)
	case n == 0:
		l.s.end(io.EOF)
		w.leave(k)
	default:
		l.s.read(n, now)
		if !l.s.verified(w.buf[:n]) {
			w.leave(k)
			return now
		}
		if n < want && !l.hup { // it was all; more will be an event
			l.state = waiting
		} else {
			w.enqueue(k)
		}
	}
	return now
}

func (w *epollSet) read(fd, want int) (int, unix.Errno) {
	if w.e.discard {
		return osnet.Discard(fd, w.buf[:want])
	}
	return osnet.Read(fd, w.buf[:want])
}

// ring is a queue of at most as many keys as there are lanes.
type ring struct {
	keys    []int32
	head, n int
}

func (r *ring) init(size int) { r.keys = make([]int32, size) }

func (r *ring) push(k int32) {
	i := r.head + r.n
	if i >= len(r.keys) {
		i -= len(r.keys)
	}
	r.keys[i] = k
	r.n++
}

func (r *ring) pop() int32 {
	k := r.keys[r.head]
	r.head++
	if r.head == len(r.keys) {
		r.head = 0
	}
	r.n--
	return k
}

// dueHeap orders flows by the time at which they may go on.
type dueHeap struct{ heap []dueItem }

type dueItem struct {
	at int64
	k  int32
}

func (h *dueHeap) init(size int) { h.heap = make([]dueItem, 0, size) }

func (h *dueHeap) push(k int32, at int64) {
	h.heap = append(h.heap, dueItem{at, k})
	i := len(h.heap) - 1
	for i > 0 {
		p := (i - 1) / 2
		if h.heap[p].at <= h.heap[i].at {
			break
		}
		h.heap[p], h.heap[i] = h.heap[i], h.heap[p]
		i = p
	}
}

func (h *dueHeap) pop() int32 {
	k := h.heap[0].k
	n := len(h.heap) - 1
	h.heap[0] = h.heap[n]
	h.heap = h.heap[:n]
	for i := 0; ; {
		c := 2*i + 1
		if c >= n {
			break
		}
		if c+1 < n && h.heap[c+1].at < h.heap[c].at {
			c++
		}
		if h.heap[i].at <= h.heap[c].at {
			break
		}
		h.heap[i], h.heap[c] = h.heap[c], h.heap[i]
		i = c
	}
	return k
}

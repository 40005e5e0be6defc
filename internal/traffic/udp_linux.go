package traffic

import (
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/fullbore-net/fullbore/internal/osnet"
	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/result"
)

const (
	// One call takes so many datagrams and bytes at most; a larger burst takes several, of
	// buffers that stay in the L2 cache.
	callDatagrams = 512
	callBytes     = 128 << 10
	// A super-packet of segmentation offload (osnet.DatagramSender).
	superDatagrams = 64
	superBytes     = 65507
	// plainBatch is how many datagrams one sendmmsg takes when nothing paces.
	plainBatch = 64
	// A receiver's messages a call: whole super-packets, or single datagrams.
	coalescedMessages = 8
	plainMessages     = 64
	bareMessages      = 16 // each may be of any length

	// spinUnder: a pause shorter than this is no pause for a thread.
	spinUnder = int64(4000)
	// catchUpSpin is from which spacing on bursts that are made up can be slept for.
	catchUpSpin = int64(500_000)
	catchUpTail = int64(80_000) // of such a wait is kept awake: what a sleep is late by
)

// buildUDP makes workers for the flows with a descriptor and returns the others.
func (e *Engine) buildUDP(flows []*stream) (rest []*stream, err error) {
	if !osnet.Capabilities().Batch {
		return flows, nil
	}
	var tx, rx []*stream
	for _, s := range flows {
		switch _, err := s.Conn.Detach(); {
		case errors.Is(err, errors.ErrUnsupported):
			rest = append(rest, s)
		case err != nil:
			return nil, fmt.Errorf("traffic: %w", err)
		case s.Send:
			tx = append(tx, s)
		default:
			rx = append(rx, s)
		}
	}
	if err := e.addSenders(tx); err != nil {
		return nil, err
	}
	return rest, e.addReceivers(rx)
}

// share deals flows out to one worker per core, or each to one of its own.
func (e *Engine) share(group []*stream) (parts [][]*stream) {
	n := len(group)
	if n > e.threadsAtMost() {
		n = e.parallel()
	}
	for w := range n {
		var part []*stream
		for i := w; i < len(group); i += n {
			part = append(part, group[i])
		}
		parts = append(parts, part)
	}
	return parts
}

func (e *Engine) addSenders(group []*stream) error {
	for i, part := range e.share(group) {
		w, err := newUDPTx(part, i)
		if err != nil {
			return err
		}
		e.movers = append(e.movers, w)
		e.path.Worker = "thread"
		if len(part) > 1 {
			e.path.Worker = "shared"
		}
	}
	return nil
}

// udpTx sends the datagrams of its flows on one locked thread, in the order of their due
// times, so that a thousand paced flows are one sleeping thread. They share one set of
// buffers: all payload is the same, and the headers are written anew for each call.
type udpTx struct {
	e       *Engine
	i       int
	lanes   []txLane
	due     dueHeap
	live    int
	rate    int64 // that the lanes follow
	out     *osnet.DatagramSender
	planned int64 // burst that out is for
	count   int   // datagrams that out takes
	icmp    int64 // answers of out that were counted
	tid     atomic.Int64
	beat    int64 // when it last went through the scheduler
	ts      unix.Timespec
	poll    [1]unix.PollFd
}

// txLane is one flow of a udpTx.
type txLane struct {
	s       *stream
	fd      int
	tooLong int // refusals for the size, one after the other
}

func newUDPTx(part []*stream, i int) (*udpTx, error) {
	w := &udpTx{e: part[0].e, i: i, lanes: make([]txLane, len(part)), live: len(part)}
	w.due.init(len(part))
	for k, s := range part {
		fd, err := s.Conn.Detach()
		if err != nil {
			return nil, err
		}
		w.lanes[k] = txLane{s: s, fd: fd}
		s.tx.setFull(w.full(), 0)
	}
	return w, nil
}

// full is how many datagrams one call takes when there is no rate.
func (w *udpTx) full() int {
	size := w.e.cfg.BlockSize
	n := plainBatch
	if w.e.cfg.TimeCalls {
		return 1
	}
	if w.e.segments() {
		per := max(1, min(superDatagrams, superBytes/size))
		n = per * max(1, min(callDatagrams/superDatagrams, superBytes/(per*size)))
	}
	return n
}

// segments reports whether segmentation offload is to be used where a call has several
// datagrams.
func (e *Engine) segments() bool {
	return e.cfg.UDP.Offload != plan.OffloadOff && osnet.Capabilities().Segment
}

// fit makes the buffers for the burst that is planned now: that of all flows, as they
// have one rate.
func (w *udpTx) fit(planned int64) error {
	if w.out != nil && w.planned == planned {
		return nil
	}
	size := w.e.cfg.BlockSize
	count := w.callOf(planned)
	if w.out == nil || count != w.count {
		out, err := osnet.NewDatagramSender(w.lanes[0].fd, size, count, w.e.segments() && count > 1)
		for k := 1; k < len(w.lanes) && err == nil; k++ {
			err = out.Add(w.lanes[k].fd)
		}
		if err != nil {
			return fmt.Errorf("traffic: %w", err)
		}
		w.e.cfg.fill(out.Datagram(0))
		for i := 1; i < count; i++ {
			copy(out.Datagram(i), out.Datagram(0))
		}
		w.out, w.count, w.icmp = out, count, 0
	}
	w.planned = planned
	w.tellOffload()
	return nil
}

// callOf is how many datagrams of a burst one call takes. One that takes several calls is
// cut between super-packets.
func (w *udpTx) callOf(planned int64) int {
	if w.e.cfg.TimeCalls {
		return 1
	}
	size := w.e.cfg.BlockSize
	count := int(max(1, min(planned, callDatagrams, int64(callBytes/size))))
	if per := min(superDatagrams, superBytes/size); w.e.segments() && int64(count) < planned && count > per {
		count -= count % per
	}
	return count
}

// tellOffload says when segmentation was asked for and is not used.
func (w *udpTx) tellOffload() {
	if w.e.cfg.UDP.Offload != plan.OffloadOn || w.out.Segmented() {
		return
	}
	why := "this system or the way to the peer does not offer it"
	if w.count == 1 {
		why = "a burst at this rate holds one datagram only"
	}
	w.e.u.later(result.Notice{
		Code: "offload-off", End: w.e.cfg.End, Level: result.Info,
		Text: "segmentation offload was asked for and is not used: " + why,
	})
}

func (w *udpTx) sends() bool { return true }
func (w *udpTx) close()      {}

func (w *udpTx) kick() {
	if tid := w.tid.Load(); tid != 0 {
		osnet.Interrupt(int(tid))
	}
}

func (w *udpTx) run() {
	e := w.e
	defer e.pin(w.i, true)()
	w.tid.Store(int64(osnet.Thread()))
	w.begin(e.now())
	for w.live > 0 && !e.stopSend.Load() {
		w.turn(e.now())
	}
	w.tid.Store(0)
	end := max(e.now(), 1)
	for k := range w.lanes {
		w.lanes[k].s.release()
		w.lanes[k].s.ctr.stopped.Store(end)
	}
}

// begin makes everything that a datagram needs, and the first due times.
func (w *udpTx) begin(now int64) {
	w.beat, w.rate = now, w.e.rate.Load()
	for k := range w.lanes {
		l := &w.lanes[k]
		l.s.follow(now)
		if err := w.fit(l.s.tx.pace.planned); err != nil {
			w.live--
			l.s.end(err)
			continue
		}
		w.due.push(int32(k), now)
	}
}

// turn lets the flow that is due first send, or waits for it.
func (w *udpTx) turn(now int64) {
	if r := w.e.rate.Load(); r != w.rate {
		w.rate = r
		for i := range w.due.heap { // all equal is a heap
			w.due.heap[i].at = now
		}
	}
	first := w.due.heap[0]
	l := &w.lanes[first.k]
	if first.at > now {
		w.wait(l, first.at, now)
		return
	}
	w.due.pop()
	if at := w.send(l, now); at >= 0 {
		w.due.push(first.k, at)
	} else {
		w.live--
	}
	if now-w.beat >= beat {
		w.beat = now
		runtime.Gosched()
	}
}

// wait returns at at, or earlier. It sleeps, or keeps the CPU where a sleep would be too
// coarse: for a precise sender, and while bursts that are close together are made up,
// which would take for ever if each of them came late again.
func (w *udpTx) wait(l *txLane, at, now int64) {
	spin := at-now < spinUnder
	if w.e.cfg.UDP.Pacing == plan.PacingPrecise && l.s.rate > 0 {
		if spin = true; at-now > 2*preciseSpin {
			spin, at = false, at-preciseSpin
		}
	} else if gap, behind := l.s.tx.pace.behind(now); behind && gap < catchUpSpin {
		if spin = at-now < 2*catchUpTail; !spin {
			at -= catchUpTail
		}
	}
	if spin {
		for w.e.now() < at && !w.e.stopSend.Load() && w.e.rate.Load() == w.rate {
		}
		return
	}
	w.ts = unix.NsecToTimespec(w.e.monoAt(min(at, now+int64(callTimeout))))
	_ = unix.ClockNanosleep(unix.CLOCK_MONOTONIC, unix.TIMER_ABSTIME, &w.ts, nil)
}

// send makes one call for the flow if it may send now. It returns when to look at it
// again, or −1 when it is over.
func (w *udpTx) send(l *txLane, now int64) int64 {
	s := l.s
	n, wait := s.nextDatagrams(now, w.count)
	if n == 0 {
		if wait < 0 {
			return -1
		}
		return now + wait
	}
	if w.planned != s.tx.pace.planned { // steered
		if err := w.fit(s.tx.pace.planned); err != nil {
			s.end(err)
			return -1
		}
		n = min(n, w.count)
	}
	w.out.Use(l.fd)
	if !w.e.cfg.UDP.Bare {
		mono := w.e.monoAt(now)
		for i := range n {
			s.stamp(w.out.Datagram(i), i, mono)
		}
	}
	s.calling(now)
	sent, errno := w.out.Send(n)
	after := w.e.now()
	if sent > 0 {
		l.tooLong = 0
		s.sentDatagrams(sent, now, after)
		s.largestBurst(sent)
		if sent > 1 {
			w.noteBatch(s.tx, sent)
		}
	}
	if errno == 0 {
		return after
	}
	return w.refused(l, n-sent, errno, after)
}

func (w *udpTx) noteBatch(u *udpSender, sent int) {
	if !w.out.Segmented() {
		if !u.batched.Load() {
			u.batched.Store(true)
		}
		return
	}
	if per := int64(min(sent, w.per())); per > u.segment.Load() {
		u.segment.Store(per)
	}
}

// per is how many datagrams a super-packet holds.
func (w *udpTx) per() int {
	return max(1, min(superDatagrams, superBytes/w.e.cfg.BlockSize, w.count))
}

// refused deals with a call that did not send all of its datagrams, left of them.
func (w *udpTx) refused(l *txLane, left int, errno unix.Errno, now int64) int64 {
	s := l.s
	switch sortRefusal(errno) {
	case sendAgain:
		w.tellOffload()
		if errno != unix.EAGAIN {
			return now
		}
		return w.waitForRoom(l, now)
	case sendRefused:
		n := 1
		if w.out.Segmented() {
			n = min(left, w.per())
		}
		s.refusedDatagrams(n, errno, now)
		if s.rate == 0 {
			return now + retryPause
		}
		return now
	case sendICMP:
		n := max(1, w.out.Refused()-w.icmp)
		w.icmp += n
		if err := s.answeredByICMP(n); err != nil {
			s.end(err)
			return -1
		}
		return now
	case sendTooLong:
		// A router's word about an earlier one ends a call just so: only a second refusal is
		// this datagram's.
		if l.tooLong++; l.tooLong < 2 {
			return now
		}
		s.end(s.tooLong())
		return -1
	}
	s.end(sendError(errno))
	return -1
}

// waitForRoom waits for room in the socket's buffer: the only flow sleeps until there is, one
// of several looks again soon.
func (w *udpTx) waitForRoom(l *txLane, now int64) int64 {
	if len(w.lanes) > 1 {
		l.s.tx.blocked.Add(retryPause)
		return now + retryPause
	}
	w.poll[0] = unix.PollFd{Fd: int32(l.fd), Events: unix.POLLOUT}
	w.ts = unix.NsecToTimespec(int64(callTimeout))
	_, _ = unix.Ppoll(w.poll[:], &w.ts, nil)
	after := w.e.now()
	l.s.tx.blocked.Add(after - now)
	return after
}

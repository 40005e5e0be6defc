package traffic

import (
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/fullbore-net/fullbore/internal/datagram"
	"github.com/fullbore-net/fullbore/internal/delay"
	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/result"
)

// udpSender is what a flow that sends datagrams has beyond a stream. Its worker is the
// only writer; the sampler reads the atomics and, under its lock, late.
type udpSender struct {
	pace bursts
	seq  uint64 // of the next datagram
	have [2]int // datagrams claimed and not sent: under the budget alone, under a limit

	refusals int64        // ICMP: nobody listens
	sends    atomic.Int64 // datagrams

	refused, unsent, blocked, stalls atomic.Int64
	planned                          atomic.Int64
	segment                          atomic.Int64 // datagrams of the largest super-packet
	batched                          atomic.Bool  // a call took several datagrams
	// largest burst before and since the end of Omit.
	largest [2]atomic.Int64
	stalled bool

	late     *lateness // flows of a thinned run share one
	ownsLate bool
}

// lateness are histograms of how late bursts were: of the present row, and of the
// measured time before it.
type lateness struct {
	mu       sync.Mutex // taken once per burst and once per row
	row, sum *delay.Histogram
}

func newUDPSender(e *Engine, slot, senders int64) *udpSender {
	u := &udpSender{seq: e.cfg.UDP.FirstSeq}
	u.pace = bursts{
		size: int64(e.cfg.BlockSize), burst: int64(e.cfg.Burst), quantum: e.quantum(),
		full: 1, slot: slot, slots: senders, late: -1, patient: e.cfg.UDP.Iperf3,
		giveUp: giveUp,
	}
	if e.cfg.UDP.Steady {
		u.pace.giveUp, u.pace.spare = steadyMost, e.cfg.UDP.CatchUp
	}
	switch {
	case !e.thin():
		u.late, u.ownsLate = newLateness(), true
	case e.u.late == nil:
		e.u.late = newLateness()
		u.late, u.ownsLate = e.u.late, true
	default:
		u.late = e.u.late
	}
	return u
}

func newLateness() *lateness {
	return &lateness{row: &delay.Histogram{}, sum: &delay.Histogram{}}
}

// quantum is how much time a burst groups.
func (e *Engine) quantum() int64 {
	switch e.cfg.UDP.Pacing {
	case plan.PacingFrugal:
		return quantumFrugal
	case plan.PacingPrecise:
		return 0
	}
	return quantum
}

// setFull says how many datagrams one call takes when there is no rate.
func (u *udpSender) setFull(n int, now int64) {
	u.pace.full = int64(n)
	if u.pace.rate == 0 {
		u.pace.set(0, now)
		u.planned.Store(u.pace.planned)
	}
}

// follow puts a new rate in force.
func (s *stream) follow(now int64) {
	if r := s.e.rate.Load(); r != s.rate {
		s.rate = r
		s.tx.pace.set(r, now)
		s.tx.planned.Store(s.tx.pace.planned)
	}
}

// nextDatagrams returns how many datagrams, at most most, to send now. With n = 0 the
// worker waits so many ns, or, when wait is negative, has nothing to send until it is
// stopped.
func (s *stream) nextDatagrams(now int64, most int) (n int, wait int64) {
	s.follow(now)
	if s.spent() {
		return 0, -1
	}
	u := s.tx
	got, wait := u.pace.allow(now)
	if got == 0 {
		return 0, wait
	}
	n = int(min(got, int64(most)))
	if s.e.cfg.BlocksEach {
		n = int(min(int64(n), s.turns))
	}
	if held := u.have[0] + u.have[1]; held > 0 || s.e.q.on() {
		if held < n {
			held += s.claim(n - held)
		}
		if held == 0 {
			if s.e.stopSend.Load() || s.e.checkQuota() {
				return 0, -1
			}
			return 0, settleWait
		}
		n = min(n, held)
	}
	return n, 0
}

// claim asks for up to n datagrams of what the limits leave. A rest that does not hold
// a whole one is no datagram: it ends a budget.
func (s *stream) claim(n int) (got int) {
	q := &s.e.q
	for got < n && q.on() {
		bytes, limited := q.claim()
		if bytes < q.block {
			if bytes > 0 {
				q.settle(bytes, limited)
				s.e.fire(Budget)
			}
			break
		}
		if limited {
			s.tx.have[1]++
		} else {
			s.tx.have[0]++
		}
		got++
	}
	return got
}

// releaseDatagrams gives the claims back that were not sent. What was still to be made up never will be.
func (s *stream) releaseDatagrams() {
	s.tx.pace.close()
	s.tx.measure()
	for i, limited := range []bool{false, true} {
		for ; s.tx.have[i] > 0; s.tx.have[i]-- {
			s.e.q.settle(s.e.q.block, limited)
		}
	}
}

// stamp writes the header of a datagram sent now: number i of the next ones.
func (s *stream) stamp(b []byte, i int, mono int64) {
	u := &s.e.cfg.UDP
	datagram.PutHeader(b, u.Wide, s.tx.seq+uint64(i), mono)
	if s.e.extended() {
		datagram.PutExt(b, mono, u.Nonce)
	}
}

// sentDatagrams counts n datagrams that left with a call between began and now.
func (s *stream) sentDatagrams(n int, began, now int64) {
	u, e := s.tx, s.e
	u.seq += uint64(n)
	u.sends.Store(u.sends.Load() + int64(n))
	s.ctr.add(n*e.cfg.BlockSize, now)
	if s.calls != nil {
		s.finished(n, now)
	}
	u.pace.took(int64(n))
	u.pace.ended(began, now)
	if u.have[0]+u.have[1] > 0 {
		free := min(n, u.have[0])
		u.have[0] -= free
		for range min(n-free, u.have[1]) {
			u.have[1]--
			e.q.settle(0, true)
		}
		e.checkQuota()
	}
	u.measure()
	s.sentBlocks(n)
}

// measure takes over what the pacer saw of the burst that began.
func (u *udpSender) measure() {
	if late := u.pace.takeLate(); late >= 0 {
		u.lateBy(late)
	}
	if n := u.pace.unsent; n != u.unsent.Load() {
		u.unsent.Store(n)
	}
}

// lateBy notes how late a burst began.
func (u *udpSender) lateBy(late int64) {
	u.late.mu.Lock()
	u.late.row.Add(late)
	u.late.mu.Unlock()
	if late <= stallFrom {
		u.stalled = false
	} else if !u.stalled {
		u.stalled = true
		u.stalls.Add(1)
	}
}

// largestBurst notes how many datagrams have left back to back.
func (s *stream) largestBurst(call int) {
	n := int64(call)
	if s.rate > 0 {
		n = s.tx.pace.run - s.tx.pace.open
	}
	l := &s.tx.largest[0]
	if s.e.measured.Load() {
		l = &s.tx.largest[1]
	}
	if n > l.Load() {
		l.Store(n)
	}
}

// refusedDatagrams counts n datagrams that this system did not take, in a call that ended
// at now. They were not sent and are not tried again, unless a limit counts them. iperf3
// does not see what its host's own queue drops, and counts it as sent.
func (s *stream) refusedDatagrams(n int, errno syscall.Errno, now int64) {
	s.tx.refused.Add(int64(n))
	if s.calls != nil {
		s.calls.began = -1
	}
	if s.e.cfg.UDP.Iperf3 && errno == syscall.ENOBUFS {
		s.sentDatagrams(n, now, now)
		return
	}
	s.tx.pace.took(int64(n))
	s.tx.measure()
}

// answeredByICMP counts n answers that nobody listens. The error says which flow is
// over: one of which nothing ever got through.
func (s *stream) answeredByICMP(n int64) error {
	u := s.tx
	u.refusals += n
	u.refused.Add(n)
	if gone := s.e.cfg.UDP.GoneAfter; gone > 0 {
		if u.refusals >= gone {
			return ErrGone
		}
		return nil
	}
	s.e.u.later(result.Notice{
		Code: "icmp-refused", End: s.e.cfg.End, Level: result.Warn,
		Text: "an ICMP error came back for datagrams of this test: nobody listens at the other end's port (any more); the sender goes on",
	})
	if u.refusals >= refusalsMost && u.sends.Load() <= u.refusals+refusalsMost/2 {
		return errRefused
	}
	return nil
}

// refusalsMost is after how many ICMP answers to nearly as many datagrams a flow ends.
const refusalsMost = 16

// retryPause is how long an unpaced sender waits after a refusal.
const retryPause = int64(100 * time.Microsecond)

// takeRow returns the lateness of the row that ends and starts the next; the row counts
// for the total when measured.
func (l *lateness) takeRow(measured bool) *result.Quantiles {
	l.mu.Lock()
	defer l.mu.Unlock()
	q := l.row.Quantiles()
	if measured {
		l.sum.Merge(l.row)
	}
	*l.row = delay.Histogram{}
	return q
}

func (l *lateness) total() *result.Quantiles {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.sum.Quantiles()
}

// sendRefusal sorts what a send call that took nothing ended with.
type sendRefusal int

const (
	sendAgain   sendRefusal = iota // interrupted, or the buffer is full: try again
	sendRefused                    // this datagram not, the next perhaps
	sendICMP                       // an ICMP error of an earlier datagram
	sendTooLong
	sendBroken
)

func sortRefusal(errno syscall.Errno) sendRefusal {
	switch errno {
	case syscall.EINTR, syscall.EAGAIN:
		return sendAgain
	case syscall.ENOBUFS, syscall.ENOMEM, syscall.EPERM:
		return sendRefused
	case syscall.ECONNREFUSED:
		return sendICMP
	case syscall.EMSGSIZE:
		return sendTooLong
	}
	return sendBroken
}

package traffic

import (
	"errors"
	"io"
	"sync/atomic"

	"github.com/fullbore-net/fullbore/result"
)

// stream is one flow's state. The counter and the claim belong to its worker, the
// marks to the sampler (under Engine.mu).
type stream struct {
	ctr counter

	Flow
	e *Engine

	// Owned by the worker.
	pace    pacer
	rate    int64  // pace follows it
	nth     int64  // among the senders; it sends when more than so many may
	left    int64  // of the block being written
	claimed bool   // left counts against the limit
	offset  int64  // into an io.ReaderAt Source
	calls   *calls // nil = not counted
	heat    uint64 // what Burn came to
	part    int    // WaitAll: bytes of the receive under way
	turns   int64  // BlocksEach: left
	// One of them is there in a UDP test.
	tx *udpSender
	rx *udpReceiver

	over    atomic.Bool // nothing more will move: died, EOF, or file ended
	eof     atomic.Bool
	fileEnd atomic.Bool
	full    atomic.Bool // BlocksEach: all are sent
	err     atomic.Pointer[error]

	// Owned by the sampler.
	base, prev mark
	drained    int64 // ns since t0
	sum        summary
	syn        *result.SYN // that opened the connection, where this end accepted it; nil = not known
	carry      int64       // UDP: loss of earlier rows that turned out to be none, not above 0
	last       *reading    // taken when the direction stopped
	called     int64       // calls until the last row
}

// mark is one sample of a stream.
type mark struct {
	at    int64 // ns since t0
	bytes int64
	k     kernel
	u     *udpMark // nil for TCP
}

func (s *stream) failure() error {
	if p := s.err.Load(); p != nil {
		return *p
	}
	return nil
}

// fail records why the flow ended early; the first reason stays.
func (s *stream) fail(err error) { s.err.CompareAndSwap(nil, &err) }

// end marks the flow as over and tells the engine. Called by its worker.
func (s *stream) end(err error) {
	switch {
	case err == nil:
	case isEOF(err):
		s.eof.Store(true)
	default:
		s.fail(err)
	}
	s.release()
	s.over.Store(true)
	s.e.ended()
}

// release gives the unwritten rest of a claim back.
func (s *stream) release() {
	if s.tx != nil {
		s.releaseDatagrams()
	}
	if s.left > 0 {
		s.e.q.settle(s.left, s.claimed)
		s.left = 0
	}
}

// next returns how many bytes to write now. With n = 0 the worker waits so many ns,
// or, when wait is negative, has nothing to send until it is stopped.
func (s *stream) next(now int64) (n int, wait int64) {
	e := s.e
	if open := e.open.Load(); open > 0 && s.nth >= open {
		return 0, openWait
	}
	if r := e.rate.Load(); r != s.rate {
		s.rate = r
		s.pace.set(r, e.cfg.BlockSize, e.cfg.Burst, now)
	}
	if s.left == 0 {
		if s.spent() {
			return 0, -1
		}
		if e.q.on() {
			s.left, s.claimed = e.q.claim()
			if s.left == 0 {
				if e.checkQuota() {
					return 0, -1
				}
				return 0, settleWait
			}
		} else {
			s.left, s.claimed = e.q.block, false
		}
	}
	got, wait := s.pace.allow(now, s.left)
	return int(got), wait
}

// settleWait is how long a sender without a claim waits for the others to finish
// theirs, or to give them back when they die.
const settleWait = 2_000_000

// openWait is how long a sender whose turn has not come sleeps at a time.
const openWait = 50_000_000

// wrote counts n bytes written at now. They may be more than the rest of a block where
// blocks are not claimed.
func (s *stream) wrote(n int, now int64) {
	s.ctr.add(n, now)
	s.pace.took(int64(n))
	s.left -= int64(n)
	if block := s.e.q.block; s.left < 0 {
		s.left = (block - -s.left%block) % block
	}
	if s.calls != nil && (s.left == 0 || s.rate > 0 && s.pace.open == 0) {
		s.finished(1, now)
	}
	if s.left == 0 && (s.claimed || s.e.q.budgeted) {
		s.e.q.settle(0, s.claimed)
		s.e.checkQuota()
	}
	if s.left == 0 {
		s.sentBlocks(1)
	}
}

// spent reports that the flow has sent all that it may of its own.
func (s *stream) spent() bool { return s.e.cfg.BlocksEach && s.turns <= 0 }

// sentBlocks counts n blocks against the flow's own.
func (s *stream) sentBlocks(n int) {
	if !s.e.cfg.BlocksEach {
		return
	}
	if s.turns -= int64(n); s.turns <= 0 && !s.full.Swap(true) {
		s.e.filled()
	}
}

// read counts n bytes read at now by one call.
func (s *stream) read(n int, now int64) {
	s.got(n, now)
	if s.calls == nil {
		return
	}
	if s.e.cfg.WaitAll {
		if s.part += n; s.part < s.e.cfg.BlockSize {
			return
		}
		s.part = 0
	}
	s.received(1, now)
}

// got counts n bytes read at now.
func (s *stream) got(n int, now int64) {
	s.ctr.add(n, now)
	s.pace.took(int64(n))
	if s.e.watchReceived || s.e.q.budgeted {
		s.e.noteReceived(n)
	}
}

// fill reads up to len(p) bytes of the Source.
func (s *stream) fill(p []byte) (int, error) {
	e := s.e
	e.sourceMu.Lock()
	defer e.sourceMu.Unlock()
	if ra, ok := e.cfg.Source.(io.ReaderAt); ok {
		n, err := ra.ReadAt(p, s.offset)
		s.offset += int64(n)
		if n > 0 && errors.Is(err, io.EOF) {
			err = nil
		}
		return n, err
	}
	return e.cfg.Source.Read(p)
}

func (s *stream) sink(p []byte) error {
	e := s.e
	e.sinkMu.Lock()
	defer e.sinkMu.Unlock()
	_, err := e.cfg.Sink.Write(p)
	return err
}

// position is where in the block the next n bytes lie.
func (s *stream) position(n int) int {
	return max(0, min(s.e.cfg.BlockSize-int(s.left), s.e.cfg.BlockSize-n))
}

// wants returns how much a receiver may read now, up to n, or how long to wait (ns);
// only MaxRate limits it.
func (s *stream) wants(n int, now int64) (int, int64) {
	n -= s.part
	limit := s.e.cap
	if limit == 0 {
		return n, 0
	}
	if s.rate != limit {
		s.rate = limit
		s.pace.set(limit, s.e.cfg.BlockSize, 0, now)
	}
	got, wait := s.pace.allow(now, int64(n))
	return int(got), wait
}

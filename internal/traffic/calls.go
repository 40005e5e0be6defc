package traffic

import (
	"math"
	"sync/atomic"

	"github.com/fullbore-net/fullbore/result"
)

// calls counts a flow's finished sends or receives, and how long they took. Its worker
// writes, the sampler reads. A flow has none where nobody asked.
//
// A send is one write of what was to be written at once, a whole block if no rate cuts it,
// however many system calls that took: it begins with the first of them and ends when the
// last byte is in the kernel. A receive begins when the one before it ended and ends with
// its bytes.
type calls struct {
	timed  bool
	rounds bool  // round trips are timed instead
	began  int64 // of the call under way; −1 = none is. The worker's

	seq   atomic.Uint32 // odd while a part is being written
	parts [2]callPart   // before and since the end of the omitted part
}

// callPart has the number of calls and the times of those that are timed; rounds is the
// number of round trips.
type callPart struct{ n, rounds, sum, least, most atomic.Int64 }

func newCalls(cfg *Config) *calls {
	if !cfg.CountCalls {
		return nil
	}
	c := &calls{rounds: cfg.Message == RoundTrip, began: -1}
	c.timed = cfg.TimeCalls && !c.rounds
	for i := range c.parts {
		c.parts[i].least.Store(math.MaxInt64)
	}
	return c
}

// begin notes that a call begins now, unless one is under way.
func (c *calls) begin(now int64) {
	if c.began < 0 {
		c.began = now
	}
}

// done counts n calls that ended now.
func (c *calls) done(n int, now int64, measured bool) {
	p := c.part(measured)
	took := now - c.began
	c.began = -1
	c.seq.Add(1)
	p.n.Store(p.n.Load() + int64(n))
	if c.timed {
		p.add(int64(n), took)
	}
	c.seq.Add(1)
}

// exchanged counts a round trip that took so long; its calls are counted by done.
func (c *calls) exchanged(took int64, measured bool) {
	p := c.part(measured)
	c.seq.Add(1)
	p.rounds.Store(p.rounds.Load() + 1)
	p.add(1, took)
	c.seq.Add(1)
}

func (c *calls) part(measured bool) *callPart {
	if measured {
		return &c.parts[1]
	}
	return &c.parts[0]
}

func (p *callPart) add(n, took int64) {
	p.sum.Store(p.sum.Load() + n*took)
	if took < p.least.Load() {
		p.least.Store(took)
	}
	if took > p.most.Load() {
		p.most.Store(took)
	}
}

// all is how many calls have ended since the start.
func (c *calls) all() int64 { return c.parts[0].n.Load() + c.parts[1].n.Load() }

// total is the count of the measured time.
func (c *calls) total() *result.IOCount {
	if c == nil {
		return nil
	}
	p := &c.parts[1]
	for {
		before := c.seq.Load()
		out := &result.IOCount{Completions: p.n.Load()}
		l := result.CallLatency{Sum: p.sum.Load(), Min: p.least.Load(), Max: p.most.Load()}
		if before%2 != 0 || c.seq.Load() != before {
			continue // the worker is just at it
		}
		if l.Min == math.MaxInt64 {
			l.Min = 0
		}
		if c.timed || c.rounds {
			out.Latency = &l
		}
		return out
	}
}

// calling notes that a call begins.
func (s *stream) calling(now int64) {
	if s.calls != nil {
		s.calls.begin(now)
	}
}

// fresh is now, or later where Burn took time since.
func (s *stream) fresh(now int64) int64 {
	if s.e.cfg.Burn > 0 {
		return s.e.now()
	}
	return now
}

// finished counts n calls that ended now.
func (s *stream) finished(n int, now int64) {
	s.calls.begin(now) // of one whose worker has just begun
	s.calls.done(n, now, s.e.measured.Load())
	if s.e.cfg.Burn > 0 {
		s.burn(n)
	}
}

// received counts n receives that ended now; the next begins.
func (s *stream) received(n int, now int64) {
	s.finished(n, now)
	if s.e.cap == 0 {
		s.calling(s.fresh(now))
	}
}

// burnAtOnce is after how many turns a burning worker looks whether it is to stop: some ten µs.
const burnAtOnce = 1 << 14

// burn keeps the processor busy after n calls.
func (s *stream) burn(n int) {
	stop := &s.e.stopRecv
	if s.Send {
		stop = &s.e.stopSend
	}
	for range n {
		for left := s.e.cfg.Burn; left > 0 && !stop.Load(); left -= burnAtOnce {
			s.heat = turns(s.heat, min(left, burnAtOnce))
		}
	}
}

// turns makes n turns from x on; each needs the one before it.
func turns(x uint64, n int) uint64 {
	for range n {
		x = x*6364136223846793005 + 1442695040888963407 // Knuth's generator
	}
	return x
}

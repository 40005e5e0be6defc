package traffic

import (
	"math/bits"
	"time"
)

// Paced writes are cut so that there are at least so many a second: a low rate with
// a large block must not move in lumps of minutes.
const (
	writesPerSecond = 10
	minPacedWrite   = 16 // bytes
)

// pacer decides when a flow may write next. Due times are computed from the start of
// the schedule and the bytes released since, so lateness never adds up. It is not
// safe for concurrent use: the flow's worker is its only caller. Times are ns on any
// one clock.
type pacer struct {
	rate  int64 // payload bit/s; 0 = not paced
	unit  int64 // bytes released at once when the schedule allows
	start int64
	moved int64 // bytes since start
	open  int64 // bytes of the present unit not yet moved
}

// set begins a schedule of rate bit/s at now. block is the size of a write, burst the
// number of blocks per release (0 = one write).
func (p *pacer) set(rate int64, block, burst int, now int64) {
	*p = pacer{rate: rate, start: now}
	if rate <= 0 {
		return
	}
	p.unit = int64(block)
	if burst > 0 {
		p.unit *= int64(burst)
		return
	}
	p.unit = min(p.unit, max(rate/8/writesPerSecond, minPacedWrite))
	// Half a write late: what was moved at any instant is then right on average, where a
	// write at the very start would always be one ahead.
	p.start += p.timeOf(p.unit) / 2
}

// timeOf is how long n bytes take at the rate, in ns.
func (p *pacer) timeOf(n int64) int64 {
	hi, lo := bits.Mul64(uint64(n), 8*uint64(time.Second))
	q, _ := bits.Div64(hi%uint64(p.rate), lo, uint64(p.rate))
	return int64(q)
}

// due returns when the next byte may go.
func (p *pacer) due() int64 {
	if p.rate <= 0 || p.open > 0 {
		return p.start
	}
	return p.start + p.timeOf(p.moved)
}

// allow returns how many of want bytes may be written now, or how long to wait (ns)
// when none may.
func (p *pacer) allow(now, want int64) (n, wait int64) {
	if p.rate <= 0 {
		return want, 0
	}
	if p.open == 0 {
		if d := p.due() - now; d > 0 {
			return 0, d
		}
		p.open = p.unit
	}
	return min(want, p.open), 0
}

// took records that n bytes were moved.
func (p *pacer) took(n int64) {
	if p.rate <= 0 {
		return
	}
	p.moved += n
	p.open = max(0, p.open-n)
}

package traffic

import (
	"math"
	"math/bits"
	"time"
)

const (
	// A paced UDP sender groups what falls into one quantum (M-UDP): the least that a
	// timer can hold, a tenth of the CPU time, or what timers of Go's runtime hold.
	quantum       = int64(50 * time.Microsecond)
	quantumFrugal = int64(500 * time.Microsecond)
	quantumCoarse = int64(time.Millisecond)

	// giveUp is how late a datagram may be sent; what is due longer is unsent. Of a steady
	// sender it is steadyMost: so much of what it sends a queue must hold at once.
	giveUp     = int64(100 * time.Millisecond)
	steadyMost = int64(2 * time.Millisecond)
	// owedMost is how much time's datagrams a steady sender may owe (see bursts.spare); what is due longer is unsent.
	owedMost = giveUp
	// stallFrom is from which lateness on a burst counts as a stall of this end.
	stallFrom = int64(time.Millisecond)
	// catchUpSpan is how much time's datagrams leave together while a stall is made up.
	catchUpSpan = int64(time.Millisecond)
	// phaseSpan bounds how long the first burst of a slow flow waits.
	phaseSpan = int64(100 * time.Millisecond)
)

// bursts decides when a flow's next datagrams leave. Datagram k is due at
// t0 + k·L/r: due times come from the start of the schedule, so lateness never adds up.
// It is not safe for concurrent use: the flow's worker is its only caller. Times are ns
// on any one clock.
type bursts struct {
	// Set once.
	size    int64 // payload bytes of a datagram
	burst   int64 // datagrams back to back that were asked for; 0 = what the quantum holds
	quantum int64 // ns; 0 = one datagram at a time
	full    int64 // datagrams a call when there is no rate
	slot    int64 // this flow's place among slots flows of one rate, so that they do not
	slots   int64 // leave all at once
	// anchored makes up for late timers by more than one burst a wake-up. Without it, two
	// bursts never leave closer together than half their spacing.
	anchored bool
	// patient makes up for all that is late, however late.
	patient bool
	// giveUp is how late a datagram may be sent, ns (or its own gap, if that is longer).
	giveUp int64
	// spare is by which share of the rate what was given up is made up after all: one more burst among so many. It is
	// for rates that much below what the path must carry.
	spare float64

	rate    int64 // payload bit/s; 0 = not paced
	planned int64 // datagrams a burst
	start   int64 // when datagram 0 was due
	next    int64 // number of the next datagram
	open    int64 // of the burst that began, not yet sent
	least   int64 // the next burst must not begin before
	began   int64 // when the latest burst began
	held    int64 // how long those of its calls took that were held up
	call    int64 // how long a call usually takes
	waited  bool  // a wait was asked for since the last burst
	run     int64 // datagrams since the last wait

	// late is how late the burst that began last was; −1 = not paced, or already taken.
	late   int64
	unsent int64   // given up for good
	owed   int64   // given up, to be made up
	extra  float64 // of a burst more that is due
}

// set begins a schedule of rate bit/s at now. What was already waited of the gap to the
// next burst counts, so that steering often never keeps a slow flow from sending.
func (p *bursts) set(rate, now int64) {
	left, gap := int64(0), int64(0)
	if p.rate > 0 && p.open == 0 {
		left, gap = max(p.due()-now, 0), p.timeOf(p.planned)
	}
	p.rate, p.next, p.open, p.least, p.late = rate, 0, 0, 0, -1
	p.close()
	if rate <= 0 {
		p.planned = p.full
		return
	}
	p.planned = p.burst
	if p.planned == 0 {
		p.planned = max(1, ceilDiv(rate, p.quantum, 8*int64(time.Second)*p.size))
	}
	p.start = now
	switch {
	case gap > 0:
		hi, lo := bits.Mul64(uint64(min(left, gap)), uint64(p.timeOf(p.planned)))
		q, _ := bits.Div64(hi, lo, uint64(gap)) // left ≤ gap, so the quotient fits
		p.start += int64(q)
	case p.burst == 0:
		// In the middle of its slot: what was sent at any instant is then right on average.
		p.start += min(p.timeOf(p.planned), phaseSpan) / 2 * (2*p.slot + 1) / max(p.slots, 1)
	}
}

// ceilDiv returns ⌈a·b/c⌉, for a result that fits.
func ceilDiv(a, b, c int64) int64 {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	if hi >= uint64(c) {
		return math.MaxInt32
	}
	q, r := bits.Div64(hi, lo, uint64(c))
	if r > 0 {
		q++
	}
	return int64(min(q, math.MaxInt32))
}

// timeOf is how long n datagrams take at the rate, ns; capped where it would overflow.
func (p *bursts) timeOf(n int64) int64 {
	hi, lo := bits.Mul64(uint64(n*p.size), 8*uint64(time.Second))
	if hi >= uint64(p.rate) {
		return math.MaxInt64 / 4
	}
	q, _ := bits.Div64(hi, lo, uint64(p.rate))
	return int64(min(q, math.MaxInt64/4))
}

func (p *bursts) due() int64 { return p.start + p.timeOf(p.next) }

// allow returns how many datagrams may leave now back to back, or how long to wait (ns)
// when none may.
func (p *bursts) allow(now int64) (n, wait int64) {
	switch {
	case p.rate <= 0:
		return p.full, 0
	case p.open > 0:
		return p.open, 0
	}
	due := p.due()
	late := now - due
	if late > p.giveUp && !p.patient {
		if most := max(p.giveUp, p.timeOf(p.planned)); late > most {
			p.skip(now - most)
			due = p.due()
		}
	}
	at := max(due, p.least)
	if at > now {
		p.waited = true
		return 0, at - now
	}
	p.begin(due, at, now)
	p.late = late // of the first that was due, given up or not
	p.repay()
	return p.open, 0
}

// repay puts one more burst behind the one that began, as often as spare says.
func (p *bursts) repay() {
	if p.owed < p.planned || p.next < p.planned {
		return
	}
	if p.extra += p.spare; p.extra >= 1 {
		p.extra -= 1 + p.spare // that one counts for none itself
		p.owed -= p.planned
		p.next -= p.planned
	}
}

// close gives up what was owed.
func (p *bursts) close() { p.unsent, p.owed, p.extra = p.unsent+p.owed, 0, 0 }

// begin starts a burst that was due at due, allowed from at and starts now.
func (p *bursts) begin(due, at, now int64) {
	p.late = now - due
	p.began, p.held = now, 0
	gap := p.timeOf(p.planned)
	switch {
	case p.late < gap && !p.anchored:
		p.least = now + gap/2
	case p.late < gap:
		p.least = 0
	case p.anchored:
		p.least = max(at, now-4*gap) + p.makeUp(gap)
	case p.late > stallFrom:
		// Too far behind to keep each distance: a sender that has to be woken for every burst
		// falls back further on a busy machine. What a stall left is made up in groups of up to
		// catchUpSpan.
		p.least = max(at, now-catchUpSpan) + p.makeUp(gap)
	default:
		p.least = now + p.makeUp(gap)
	}
	if p.waited {
		p.run = 0
	}
	p.waited = false
	p.open = p.planned
	p.run += p.planned
}

// makeUp is how far apart bursts are while what is late is made up: at 1.25 times the rate
// or, by a sender that gives nothing up, or that must not be late again at once since it gives up
// so soon, at twice the rate.
func (p *bursts) makeUp(gap int64) int64 {
	if p.patient || p.giveUp <= steadyMost {
		return gap / 2
	}
	return gap * 4 / 5
}

const (
	// callWeight is how much of the usual length of calls one makes: an eighth.
	callWeight = 8
	// callGrowth is how much longer than half as long again as usual a call is that was held
	// up, and how much longer than twice the usual one may count, so that one that was held up
	// does not hide the next.
	callGrowth = int64(2 * time.Microsecond)
)

// ended takes note of when a call of a burst began and ended. One that was held up may
// have sent only at its end: the next burst keeps its distance from there. A sender whose
// calls are always long is not slowed down.
func (p *bursts) ended(began, now int64) {
	if p.rate <= 0 {
		return
	}
	took, gap := now-began, p.timeOf(p.planned)
	if p.anchored {
		if took > max(2*gap, stallFrom/2) {
			p.least = max(p.least, now+gap/2)
		}
		return
	}
	if took > p.call+p.call/2+callGrowth {
		p.held += took // it may have sent only at its end
	}
	if now-p.due() <= stallFrom {
		p.least = max(p.least, p.began+gap/2+p.held)
	}
	p.call += (min(took, 2*p.call+callGrowth) - p.call) / callWeight
}

// behind reports that bursts are being made up one by one, and how far they are apart.
func (p *bursts) behind(now int64) (gap int64, behind bool) {
	if p.rate <= 0 {
		return 0, false
	}
	late := now - p.due()
	return p.timeOf(p.planned), p.least > 0 && late > 0 && late <= stallFrom
}

// skip gives up the datagrams that were due until before, in whole bursts.
func (p *bursts) skip(before int64) {
	hi, lo := bits.Mul64(uint64(before-p.start), uint64(p.rate))
	unit := 8 * uint64(time.Second) * uint64(p.size)
	q, _ := bits.Div64(hi%unit, lo, unit)
	n := (int64(q) - p.next + p.planned) / p.planned * p.planned
	if n <= 0 {
		return
	}
	p.next += n
	if p.spare > 0 {
		p.owed += n
		n = max(p.owed-owedMost/max(p.timeOf(1), 1), 0)
		p.owed -= n
	}
	p.unsent += n
}

// took records that n datagrams left, or were refused: their time has passed.
func (p *bursts) took(n int64) {
	if p.rate <= 0 {
		return
	}
	p.next += n
	p.open = max(0, p.open-n)
}

// takeLate returns how late the burst that began last was, once; −1 = none began.
func (p *bursts) takeLate() int64 {
	v := p.late
	p.late = -1
	return v
}

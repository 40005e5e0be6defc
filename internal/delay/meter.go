// Package delay turns time stamps into delay figures: RFC 3550 jitter, IPDV (RFC 3393)
// and PDV (RFC 5481) of one-way streams whose clocks do not agree, mergeable histograms,
// and what can be known of the other end's clock (methods M-DELAY, M-CLOCK). It is pure:
// no sockets, no clocks of its own.
package delay

import (
	"math"
	"sync/atomic"
)

const (
	// DefaultSamples is how many delay samples NewMeter(0) keeps, 16 bytes each.
	DefaultSamples = 16384
	// step is the change of delay between two datagrams, beyond the shorter of the times
	// between them at both ends, that is taken for a clock that was set (field case F04).
	step = 1_000_000_000
	// baseTime is how long the least delay of an interval's PDV is remembered for, once
	// or twice: clocks drift apart by at most 0.2 ms in it.
	baseTime = 1_000_000_000
)

// Meter measures the delay variation of one stream. Sender's and receiver's time stamps
// are of clocks of their own: nothing depends on their difference.
//
// One worker calls Arrive. Compat and Interval may be called meanwhile (Interval by one
// goroutine); Result and OneWay once the worker has ended, or by it. Memory is fixed when
// it is made; Arrive allocates nothing.
//
// What counts: distinct datagrams, and of those that came at the very same time only the
// first. The kernel gives all segments of a coalesced packet (GRO) one stamp, and so does
// a caller that asks the time once per batch: the others' delays would be too long by as
// much as they waited to be sent. Jitter and IPDV take a pair when the one follows the
// other in sequence and arrival and all datagrams between two stamps did so, too: no pair
// spans a loss or a reordering.
type Meter struct {
	started  bool
	received int64 // of the last arrival, to know the groups
	seq      int64 // of the last distinct arrival
	linked   bool  // all since the last one that counted came in sequence
	prev     mark  // the last one that counted and was in order

	pairs      int64
	j, jSum    float64 // RFC 3550's J in ns, and the sum of all its values
	jMax       float64
	ipdv       Histogram // |ΔD| of the pairs
	outliers   int64
	compatMark mark
	compatJ    float64
	compat     atomic.Uint64 // bits of compatJ

	track
	interval
}

// mark is one datagram's stamps, ns.
type mark struct{ sent, received int64 }

// NewMeter returns a meter that keeps so many samples for quantiles; 0 =
// DefaultSamples, at least 64.
func NewMeter(samples int) *Meter {
	if samples <= 0 {
		samples = DefaultSamples
	}
	m := &Meter{}
	m.track.init(max(samples, 64))
	return m
}

// Arrive takes the stamps, in ns, of a datagram. first: it is not a duplicate (nor too
// old to know). inOrder: its sequence number is the highest so far.
func (m *Meter) Arrive(seq int64, first, inOrder bool, sent, received int64) {
	at := mark{sent, received}
	if !m.started {
		if first {
			m.begin(seq, at)
		}
		return
	}
	group := received == m.received
	m.received = received
	change, elapsed, stepped := at.since(m.prev)
	if !group {
		// Where all came in order the two are the same pair.
		if m.compatMark == m.prev {
			m.addCompat(at, change, stepped)
		} else {
			change, _, stepped := at.since(m.compatMark)
			m.addCompat(at, change, stepped)
		}
	}
	if !first {
		return
	}
	m.linked = m.linked && inOrder && seq == m.seq+1
	m.seq = seq
	if group {
		return
	}
	if !inOrder {
		m.linked = false
		if stepped {
			m.outliers++
			return
		}
		m.sample(at)
		return
	}
	switch {
	case stepped:
		m.outliers++
		if !m.newEpoch(at, max(1, min(magnitude(elapsed), magnitude(sent-m.prev.sent)))) {
			m.linked = false
			return
		}
		m.interval.forget(m.time)
	case m.linked:
		m.pair(change)
	}
	m.prev, m.linked = at, true
	m.sample(at)
}

func (m *Meter) begin(seq int64, at mark) {
	m.started, m.linked = true, true
	m.seq, m.received, m.prev, m.compatMark = seq, at.received, at, at
	m.newEpoch(at, 0)
	m.interval.forget(0)
	m.sample(at)
}

// since returns the change of delay from b to a, the time between their arrivals, and
// whether a clock was set in between. The jump of either end's clock is in only one of
// the two times; the delay of a real datagram can grow by more than the sender's gap and
// shrink by more than the receiver's, but hardly by a second more.
func (a mark) since(b mark) (change, elapsed int64, stepped bool) {
	elapsed = a.received - b.received
	gap := a.sent - b.sent
	change = elapsed - gap
	return change, elapsed, magnitude(change) > step+min(magnitude(elapsed), magnitude(gap))
}

// magnitude is |x| where x may be the smallest number: hostile stamps wrap.
func magnitude(x int64) uint64 {
	if x < 0 {
		return -uint64(x)
	}
	return uint64(x)
}

func (m *Meter) pair(change int64) {
	d := int64(magnitude(change) & math.MaxInt64)
	m.pairs++
	m.j += (float64(d) - m.j) / 16
	m.jSum += m.j
	m.jMax = max(m.jMax, m.j)
	m.ipdv.Add(d)
}

// addCompat is iperf3's arithmetic (spec protocol §8.1): every arrival, duplicates and
// reordered ones too; but a clock that was set only moves the base.
func (m *Meter) addCompat(at mark, change int64, stepped bool) {
	m.compatMark = at
	if stepped {
		return
	}
	m.compatJ += (float64(magnitude(change)) - m.compatJ) / 16
	m.compat.Store(math.Float64bits(m.compatJ))
}

// Compat returns iperf3's jitter so far, in seconds: RFC 3550's estimate over all
// arrivals, from 0 at the first datagram. Any goroutine may call it.
func (m *Meter) Compat() (jitter float64) { return math.Float64frombits(m.compat.Load()) / 1e9 }

// sample adds a delay to the run's and the interval's PDV.
func (m *Meter) sample(at mark) {
	time, d := m.track.add(at)
	m.interval.add(time, d)
}

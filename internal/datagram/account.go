package datagram

import "sync"

const (
	// Window is how many sequence numbers back an arrival can still be told from a
	// duplicate (M-UDP).
	Window = 65536
	// farJump is an advance that one datagram alone is not believed: noise with a
	// plausible header must not make all that follow look old. A second datagram near
	// it confirms it, as RFC 3550 appendix A.1 does. An outage that long is 1 s at a
	// million datagrams a second.
	farJump = 1 << 20
	// maxJump is what no sender can have sent in between; only told apart in 64 bits.
	maxJump = 1 << 31
)

// Arrival is what a datagram was.
type Arrival int

// The kinds of arrival. First and Reordered are distinct datagrams.
const (
	First     Arrival = iota // the highest sequence number so far
	Duplicate                // seen before (RFC 5560)
	Reordered                // not seen before, lower than the highest (RFC 4737)
	Late                     // older than Window: new or duplicate is not known
	Foreign                  // no sequence number of this stream
)

func (a Arrival) String() string {
	return [...]string{"first", "duplicate", "reordered", "late", "foreign"}[a]
}

// Distinct reports whether the datagram is known not to have been there before.
func (a Arrival) Distinct() bool { return a == First || a == Reordered }

// Counts are a receiver's numbers. All but CompatLost, and Foreign in one case (see
// Account.Arrive), only grow.
type Counts struct {
	// First are distinct datagrams, reordered ones included. Late ones are in it as
	// long as a sequence number older than the window is missing that they can be: it
	// is the likelier of the two, and then First never exceeds what was sent.
	First      int64
	Duplicates int64
	Reordered  int64 // RFC 4737 type-P-reordered, within the window
	Late       int64
	// MaxExtent is the greatest reordering extent of RFC 4737 §4.2.1: how many distinct
	// datagrams ago the first one with a greater sequence number arrived.
	MaxExtent int64
	Highest   int64 // greatest sequence number, extended over wraps; iperf3's "packets"
	Foreign   int64 // sequence numbers that cannot be this stream's
	Base      int64 // the sequence number before the first of the stream: 0
	// What iperf3 ≥ 3.2 counts (spec protocol §8.1): CompatLost goes down again when a
	// late one or a duplicate arrives, but not below 0.
	CompatLost       int64
	CompatOutOfOrder int64
}

// Since returns the counts from an earlier snapshot to c: differences, with MaxExtent
// and Highest as they stand in c, and Base the highest of then. CompatLost, which can
// fall, is at least 0.
func (c Counts) Since(then Counts) Counts {
	c.First -= then.First
	c.Duplicates -= then.Duplicates
	c.Reordered -= then.Reordered
	c.Late -= then.Late
	c.Foreign = max(0, c.Foreign-then.Foreign)
	c.Base = max(c.Base, then.Highest)
	c.CompatLost = max(0, c.CompatLost-then.CompatLost)
	c.CompatOutOfOrder -= then.CompatOutOfOrder
	return c
}

// Account counts what arrives of one stream. One worker calls Arrive, Mark and Publish;
// any goroutine may call Snapshot. Counts, Periods and the rest belong to the worker, or
// to anybody once it has ended.
//
// It takes 8 KiB, and once something is missing 256 KiB more; nothing is allocated per
// datagram.
type Account struct {
	wide bool
	c    Counts
	high uint64 // c.Highest
	held uint64 // a far jump that waits for a second datagram; 0 = none

	// seen has one bit for each of the last Window sequence numbers, at number modulo
	// Window. Those before the stream's first count as seen.
	seen []uint64
	mask uint64 // len(seen)−1
	// passed holds for each missing sequence number how many distinct datagrams had
	// arrived when it was passed by; from it follows the extent. Made at the first gap.
	passed []uint32

	gone    int64 // missing ones that left the window and no late arrival was taken for
	pattern pattern

	mu        sync.Mutex // guards published: held for a copy, once per batch and sample
	published Counts
}

// New returns the account of a stream whose sequence numbers start at 1. wide is the
// 64-bit counter.
func New(wide bool) *Account { return NewAt(wide, 1) }

// NewAt is New for a stream that starts at another number than 1 (tests of wraps).
func NewAt(wide bool, first uint64) *Account { return newAccount(wide, first, Window) }

// newAccount: window is a power of two, at least 64.
func newAccount(wide bool, first uint64, window int) *Account {
	a := &Account{wide: wide, high: first - 1, seen: make([]uint64, window/64), mask: uint64(window/64 - 1)}
	for i := range a.seen {
		a.seen[i] = ^uint64(0)
	}
	a.c.Base, a.c.Highest = int64(first-1), int64(first-1)
	a.pattern.start = first
	a.published = a.c
	return a
}

func (a *Account) window() uint64 { return uint64(len(a.seen)) * 64 }

// Arrive counts a datagram with this sequence number as it is on the wire. 32-bit
// numbers are extended over wraps: the nearest to the highest is meant, or, where that
// would be before the first, the one above.
//
// A number more than 2^20 ahead is Foreign until a second one within the window of it
// arrives; then both count, and Counts.Foreign takes it back. With 64 bits a number more
// than 2^31 ahead is Foreign for good.
func (a *Account) Arrive(wireSeq uint64) Arrival {
	s := wireSeq
	if !a.wide {
		s = a.extend(uint32(wireSeq))
	}
	if s != a.high+1 {
		return a.outOfLine(s)
	}
	// The slot holds the number that leaves the window.
	word, bit := &a.seen[(s>>6)&a.mask], uint64(1)<<(s&63)
	if *word&bit != 0 {
		a.pattern.run = 0
	} else {
		a.gone++
		a.pattern.lost(s-a.window(), 1)
		*word |= bit
	}
	a.high = s
	a.c.Highest = int64(s)
	a.c.First++
	return First
}

func (a *Account) extend(w uint32) uint64 {
	s := int64(a.high) + int64(int32(w-uint32(a.high)))
	if s < 1 {
		s += 1 << 32
	}
	return uint64(s)
}

// outOfLine is Arrive for all but the next expected number.
func (a *Account) outOfLine(s uint64) Arrival {
	if s > a.high {
		return a.ahead(s)
	}
	if s <= uint64(a.c.Base) {
		a.c.Foreign++
		return Foreign
	}
	a.c.CompatOutOfOrder++
	if a.c.CompatLost > 0 {
		a.c.CompatLost--
	}
	if a.high-s >= a.window() {
		a.c.Late++
		if a.gone > 0 {
			a.gone--
			a.c.First++
		}
		return Late
	}
	word, bit := &a.seen[(s>>6)&a.mask], uint64(1)<<(s&63)
	if *word&bit != 0 {
		a.c.Duplicates++
		return Duplicate
	}
	*word |= bit
	extent := int64(uint32(a.c.First) - a.passed[s&(a.window()-1)])
	a.c.MaxExtent = max(a.c.MaxExtent, extent)
	a.c.First++
	a.c.Reordered++
	return Reordered
}

func (a *Account) ahead(s uint64) Arrival {
	jump := s - a.high
	switch {
	case a.wide && jump > maxJump:
		a.c.Foreign++
		return Foreign
	case jump <= farJump:
		a.advance(s)
		return First
	case a.held == 0 || s == a.held || max(s, a.held)-min(s, a.held) >= a.window():
		a.held = s
		a.c.Foreign++
		return Foreign
	}
	held := a.held
	a.held = 0
	a.c.Foreign--
	a.advance(held)
	switch {
	case s < held:
		return a.outOfLine(s)
	default:
		a.advance(s)
		return First
	}
}

// advance moves the window up to s, which arrived, and leaves those between missing.
func (a *Account) advance(s uint64) {
	missing := s - a.high - 1
	a.c.CompatLost += int64(missing)
	if w := a.window(); missing+1 >= w {
		a.gone += a.settle(&a.pattern, a.high+1-w, w)
		if unseen := missing + 1 - w; unseen > 0 {
			a.gone += int64(unseen)
			a.pattern.lost(a.high+1, int64(unseen))
		}
		clear(a.seen)
		a.pass(0, w)
	} else {
		a.gone += a.settle(&a.pattern, a.high+1-w, missing+1)
		a.forget(a.high+1, missing)
		first, mod := a.high+1, w-1
		if end := first&mod + missing; end <= w {
			a.pass(first&mod, end)
		} else {
			a.pass(first&mod, w)
			a.pass(0, end-w)
		}
	}
	a.seen[(s>>6)&a.mask] |= 1 << (s & 63)
	a.high = s
	a.c.Highest = int64(s)
	a.c.First++
}

// pass notes for the slots [from, to) that they were passed by now.
func (a *Account) pass(from, to uint64) {
	if from >= to {
		return
	}
	if a.passed == nil {
		a.passed = make([]uint32, a.window())
	}
	now := uint32(a.c.First)
	slots := a.passed[from:to]
	for i := range slots {
		slots[i] = now
	}
}

// forget clears the bits of n numbers from s on.
func (a *Account) forget(s, n uint64) {
	for n > 0 {
		off := s & 63
		k := min(n, 64-off)
		a.seen[(s>>6)&a.mask] &^= ones(k) << off
		s, n = s+k, n-k
	}
}

func ones(k uint64) uint64 { return ^uint64(0) >> (64 - k) }

// Counts returns the numbers so far. It is the worker's; others take Snapshot.
func (a *Account) Counts() Counts { return a.c }

// Publish makes the numbers so far visible to Snapshot. The worker calls it once per
// batch of datagrams; it takes an uncontended mutex for a copy of 80 bytes.
func (a *Account) Publish() {
	a.mu.Lock()
	a.published = a.c
	a.mu.Unlock()
}

// Snapshot returns the numbers last published, all of the same moment.
func (a *Account) Snapshot() Counts {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.published
}

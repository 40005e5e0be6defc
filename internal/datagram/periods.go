package datagram

import (
	"math/bits"

	"github.com/fullbore-net/fullbore/result"
)

// pattern is the pattern of loss (RFC 3357) of those numbers that left the window, in
// their order.
type pattern struct {
	start     uint64 // the stream's, or the measured time's, first number
	run       int64  // length of the run of lost ones that is open; 0 = the last was there
	runs      int64
	longest   int64
	missing   int64
	firstLost bool // number start is lost: that run follows no good one
}

// lost adds n lost numbers from s on, which follow those added before. Numbers before
// start are another time's.
func (p *pattern) lost(s uint64, n int64) {
	if s < p.start {
		before := int64(min(p.start-s, uint64(n)))
		s, n = s+uint64(before), n-before
		if n == 0 {
			return
		}
	}
	if p.run == 0 {
		p.runs++
	}
	if s == p.start {
		p.firstLost = true
	}
	p.run += n
	p.missing += n
	p.longest = max(p.longest, p.run)
}

// settle adds to p the n numbers from s on, as the bitmap has them, and returns how many
// are missing. Numbers below the stream's first have the bits of seen ones.
func (a *Account) settle(p *pattern, s, n uint64) (missing int64) {
	for n > 0 {
		off := s & 63
		k := min(n, 64-off)
		word := a.seen[(s>>6)&a.mask] >> off
		missing += int64(k) - int64(bits.OnesCount64(word&ones(k)))
		p.add(s, word, k)
		s, n = s+k, n-k
	}
	return missing
}

// add adds k numbers from s on: bit i of word says whether s+i arrived.
func (p *pattern) add(s, word, k uint64) {
	for k > 0 {
		if word&1 == 1 {
			n := min(uint64(bits.TrailingZeros64(^word)), k)
			p.run = 0
			s, word, k = s+n, word>>n, k-n
			continue
		}
		n := min(uint64(bits.TrailingZeros64(word)), k)
		p.lost(s, int64(n))
		s, word, k = s+n, word>>n, k-n
	}
}

// Mark begins the measured time: from here on Periods and MaxExtent are of the sequence
// numbers above the highest. The counts go on; their differences are the measured
// time's (Counts.Since).
func (a *Account) Mark() {
	a.c.MaxExtent = 0
	a.pattern = pattern{start: a.high + 1}
}

// Periods returns the pattern of loss since the start of the stream, or since Mark, as
// if it ended now; nil when nothing is missing. sent is how many datagrams the sender
// sent in that time, so that a lost tail counts; less than what arrived means not known.
// A datagram that came after it left the window stays lost here.
//
// Probabilities without a base (all lost: P(lost | good)) are 0.
func (a *Account) Periods(sent int64) *result.LossPeriods {
	// A copy goes through what is still in the window, then the tail.
	p := a.pattern
	from := p.start
	if w := a.window(); a.high >= w {
		from = max(from, a.high+1-w)
	}
	if from <= a.high {
		a.settle(&p, from, a.high+1-from)
	}
	last := a.high
	if end := p.start - 1 + uint64(max(sent, 0)); end > last {
		p.lost(last+1, int64(end-last))
		last = end
	}
	if p.missing == 0 {
		return nil
	}
	n := int64(last - p.start + 1)
	out := &result.LossPeriods{Runs: p.runs, Longest: p.longest, MeanLength: float64(p.missing) / float64(p.runs)}
	// Transitions between neighbours, in the order of the sequence numbers. The last
	// number has no successor.
	good, bad := n-p.missing, p.missing
	goodToBad, badToGood := p.runs, p.runs
	if p.firstLost {
		goodToBad--
	}
	if p.run > 0 {
		badToGood--
		bad--
	} else {
		good--
	}
	if good > 0 {
		out.GoodToBad = float64(goodToBad) / float64(good)
	}
	if bad > 0 {
		out.BadToGood = float64(badToGood) / float64(bad)
		out.Conditional = 1 - out.BadToGood
	}
	return out
}

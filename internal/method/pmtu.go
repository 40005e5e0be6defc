package method

import (
	"slices"

	"github.com/fullbore-net/fullbore/result"
)

// PathMTU is the search for the largest packet that passes (M-PMTU; RFC 4821, 8899): bisection
// over sizes that paths are likely to have, then to the byte, then a confirmation. It is pure:
// Next tells the size of the next packet, given what came of those before. Sizes are of whole IP
// packets, bytes.
type PathMTU struct {
	Least int // smallest that can be sent as a probe
	Upper int // largest that this host's interface takes
	// Sure: an answer is proof on its own that a size passes, and silence may be mere loss, so a
	// size is bad after three packets without an answer. Else each trial is a whole test of
	// several packets, and one of them decides.
	Sure bool
	// Asking: the packets come from the other end. What this host's interface can take in is the
	// most that is tried.
	Asking bool
}

// The sizes of M-PMTU.
const (
	baseMTU     = 1200 // RFC 8899 §5.1.2
	smallMTU    = 576  // RFC 791: what every host takes
	mtuTries    = 3    // packets without an answer that make a size bad
	mtuConfirm  = 3    // answers that confirm a size
	mtuConfirms = 9    // packets at most to get them
)

// likelyMTUs are those of links and tunnels that are met often: IPv6's least; VPNs; PPPoE with
// VPN; DSL; Ethernet with an option less; PPPoE; Ethernet; FDDI; jumbo frames.
var likelyMTUs = []int{1280, 1400, 1420, 1440, 1452, 1460, 1472, 1492, 1500, 4352, 8952, 9000}

// mtuState is what a history says of sizes.
type mtuState struct {
	p       PathMTU
	passed  map[int]int
	failed  map[int]int
	tooLong map[int]bool
	good    int // largest that passed; 0 = none did
	bad     int // smallest above it that did not; p.Upper+1 = none
	told    int
}

func (p PathMTU) read(history []result.MTUTrial) mtuState {
	s := mtuState{p: p, passed: map[int]int{}, failed: map[int]int{}, tooLong: map[int]bool{}, bad: p.Upper + 1}
	for _, t := range history {
		switch {
		case t.Passed:
			s.passed[t.Size]++
			s.good = max(s.good, t.Size)
		case t.TooLong:
			s.tooLong[t.Size] = true
			s.failed[t.Size]++
		default:
			s.failed[t.Size]++
		}
		if t.Told > 0 {
			s.told = t.Told
		}
	}
	for size := range s.failed {
		if size > s.good && s.isBad(size) {
			s.bad = min(s.bad, size)
		}
	}
	return s
}

// isBad: nothing of that size passed, and it had its chance.
func (s *mtuState) isBad(size int) bool {
	tries := 1
	if s.p.Sure {
		tries = mtuTries
	}
	return s.passed[size] == 0 && (s.tooLong[size] || s.failed[size] >= tries)
}

// Next returns the size of the next packet; false = the search is over.
func (p PathMTU) Next(history []result.MTUTrial) (size int, more bool) {
	s := p.read(history)
	if n := len(history); n > 0 { // a size that is neither good nor bad is tried again
		if last := history[n-1].Size; last > s.good && last < s.bad && s.passed[last] == 0 {
			return last, true
		}
	}
	if s.good == 0 {
		return s.first()
	}
	if s.good == p.Upper || s.bad == s.good+1 {
		return s.confirm()
	}
	return s.between(), true
}

// first looks for any size that passes, from the base downwards.
func (s *mtuState) first() (int, bool) {
	for _, size := range []int{min(baseMTU, s.p.Upper), smallMTU, s.p.Least} {
		if size >= s.p.Least && size < s.bad {
			return size, true
		}
	}
	return 0, false
}

// confirm makes sure of the answer: what passes passes three times, what is a byte longer does not.
func (s *mtuState) confirm() (int, bool) {
	if !s.p.Sure {
		return 0, false
	}
	if n := s.passed[s.good]; n < mtuConfirm && n+s.failed[s.good] < mtuConfirms {
		return s.good, true
	}
	if over := s.good + 1; s.good < s.p.Upper && s.failed[over] < mtuTries {
		return over, true
	}
	return 0, false
}

// between is the most telling size above the good and below the bad one.
func (s *mtuState) between() int {
	switch {
	case s.told > s.good && s.told < s.bad:
		return s.told
	case s.told == s.good:
		return s.good + 1
	}
	if s.bad > s.p.Upper {
		return s.p.Upper // most paths carry what the interface does
	}
	var likely []int
	for _, size := range likelyMTUs {
		if size > s.good && size < s.bad {
			likely = append(likely, size)
		}
	}
	if n := len(likely); n > 0 {
		return likely[n/2]
	}
	if slices.Contains(likelyMTUs, s.good) {
		return s.good + 1 // it is that, most likely: one size decides
	}
	return (s.good + s.bad) / 2
}

// Answer says what the history shows. Link, Told and BlackHole are as far as the trials tell: of
// packets that the other end sends (Asking) only it knows what it was told.
func (p PathMTU) Answer(history []result.MTUTrial) result.PathMTU {
	s := p.read(history)
	out := result.PathMTU{Trials: history}
	if s.good == 0 {
		return out
	}
	good := s.good
	out.MTU = &good
	out.AtLink = s.good == p.Upper || s.tooLong[s.good+1] && s.told == 0
	if p.Sure {
		over := s.good == p.Upper || s.failed[s.good+1] >= mtuTries
		out.Exact = s.passed[s.good] >= mtuConfirm && over
	} else {
		out.Exact = s.good == p.Upper || s.bad == s.good+1
	}
	if s.told > 0 {
		told := s.told
		out.Told = &told
	}
	silent := false
	for size, n := range s.failed {
		silent = silent || size > s.good && n > 0 && !s.tooLong[size] && s.passed[size] == 0
	}
	if !p.Asking {
		hole := silent && s.told == 0 && !out.AtLink
		out.BlackHole = &hole
	}
	return out
}

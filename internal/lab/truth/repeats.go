package truth

import (
	"slices"
	"time"
)

// offered is one direction of a connection, as its segments came to the link.
type offered struct {
	isn  uint32
	high int64 // one past the highest byte that came; the first payload byte is number 0
}

// offer counts a TCP segment that the link is offered at time at, whether or not it will leave.
func (t *Tracker) offer(at time.Duration, packet []byte) {
	s, ok := parse(packet)
	if !ok || s.payload == 0 && !s.syn {
		return
	}
	f := t.offered[s.flow]
	switch {
	case s.syn && (f == nil || f.isn != s.seq):
		f = &offered{isn: s.seq}
		t.offered[s.flow] = f
	case f == nil:
		return // its start was not seen: Untracked tells
	case s.syn:
		t.repeat(at)
		return
	}
	seq := s.seq - f.isn - 1
	if s.syn { // its payload begins behind it (RFC 7413)
		seq++
	}
	start := f.high + int64(int32(seq-uint32(f.high)))
	if start < f.high && s.payload > 0 {
		t.repeat(at)
	}
	f.high = max(f.high, start+int64(s.payload))
}

func (t *Tracker) repeat(at time.Duration) {
	t.repeats++
	if len(t.repeated) < mostRepeats {
		t.repeated = append(t.repeated, at)
	}
}

// mostRepeats bounds the times that are kept.
const mostRepeats = 1 << 16

// Repeated is when each of them came, in order; only of the first 65536.
func (t *Tracker) Repeated() []time.Duration { return slices.Clip(t.repeated) }

// Repeats is how many TCP segments with payload, or SYNs, were offered although what they carry, or
// its beginning, had been before: retransmissions, whatever became of the first copy. A window probe
// is none, as it carries nothing.
func (t *Tracker) Repeats() int64 { return t.repeats }

// Package truth counts what really left an emulated link, so that what a receiver
// claims to have got can be compared with what it was given: of TCP the payload, of UDP
// each datagram (Datagrams).
//
// A TCP byte counts once, at its first copy: when a sender repeats a segment whose
// first copy got through, the repetition adds nothing; when the first copy was
// lost, the repetition is the first to leave and counts then. Each flow's count is
// kept as a cumulative series in buckets of a millisecond of the caller's clock
// (CLOCK_MONOTONIC in the lab), so that any window can be asked for afterwards.
package truth

import (
	"slices"
	"sort"
	"time"
)

// Bucket is the resolution of a series. 500 Mbit/s put 62 kB into one.
const Bucket = time.Millisecond

// Tracker watches the packets that leave one direction of a link. It is not safe
// for concurrent use, but what Freeze returns may be read by anyone.
type Tracker struct {
	flows  []*flow // in order of their first segment
	byKey  map[flowKey]*flow
	recent *flow // the last one looked up: bulk transfers come in runs

	untracked int64

	datagrams      []*datagramFlow // in order of their first datagram
	datagramsByKey map[flowKey]*datagramFlow
	fragments      int64

	offered map[flowKey]*offered
	repeats int64
	// repeated is when each came, mostRepeats at most. It only grows.
	repeated []time.Duration
}

// NewTracker returns a tracker that has seen nothing.
func NewTracker() *Tracker {
	return &Tracker{byKey: map[flowKey]*flow{}, datagramsByKey: map[flowKey]*datagramFlow{}, offered: map[flowKey]*offered{}}
}

// flow is the state of one direction of one connection.
type flow struct {
	key flowKey
	isn uint32

	// Sequence numbers unwrapped to 64 bits; the first payload byte is number 0.
	high  int64  // one past the highest byte seen
	holes []span // below high and not yet seen; ascending, disjoint

	first, last time.Duration // when payload first and last left
	bytes       int64         // distinct
	repeated    int64

	// The open bucket is bytes and inOrder themselves; a bucket that is over is
	// appended and never written again.
	bucket int64
	series Series
}

// span is the bytes from start up to but not including end.
type span struct{ start, end int64 }

// Observe counts an IP packet with TCP that leaves the link at now. now must not decrease.
func (t *Tracker) Observe(now time.Duration, packet []byte) {
	s, ok := parse(packet)
	if !ok || s.payload == 0 && !s.syn {
		return
	}
	f := t.recent
	if f == nil || f.key != s.flow {
		f = t.byKey[s.flow]
	}
	if s.syn && (f == nil || f.isn != s.seq) {
		// A new connection, perhaps on the ports of an old one.
		f = &flow{key: s.flow, isn: s.seq}
		t.byKey[s.flow] = f
		t.flows = append(t.flows, f)
	}
	if f == nil {
		t.untracked += int64(s.payload)
		return
	}
	t.recent = f
	if s.payload > 0 {
		f.observe(now, s)
	}
}

// Untracked is the payload of segments of connections whose SYN was not seen.
func (t *Tracker) Untracked() int64 { return t.untracked }

func (f *flow) observe(now time.Duration, s segment) {
	// The SYN has the number before the first byte (RFC 9293 §3.4); its own payload, if
	// any (RFC 7413), starts after it.
	seq := s.seq - f.isn - 1
	if s.syn {
		seq++
	}
	start := f.high + int64(int32(seq-uint32(f.high)))
	end := start + int64(s.payload)

	bucket := int64(now / Bucket)
	if f.bytes == 0 {
		f.first, f.bucket = now, bucket
	} else if bucket != f.bucket {
		f.series.append(f.bucket, f.bytes, f.inOrder())
		f.bucket = bucket
	}

	fresh := f.fill(start, min(end, f.high))
	if end > f.high {
		if start > f.high {
			f.holes = append(f.holes, span{f.high, start})
		}
		fresh += end - max(start, f.high)
		f.high = end
	}
	f.repeated += int64(s.payload) - fresh
	if fresh > 0 {
		f.bytes += fresh
		f.last = now
	}
}

// fill marks [start, end) as seen and returns how much of it was missing.
func (f *flow) fill(start, end int64) (fresh int64) {
	if start >= end || len(f.holes) == 0 {
		return 0
	}
	i := sort.Search(len(f.holes), func(i int) bool { return f.holes[i].end > start })
	for i < len(f.holes) && f.holes[i].start < end {
		h := f.holes[i]
		cut := span{max(h.start, start), min(h.end, end)}
		fresh += cut.end - cut.start
		left, right := span{h.start, cut.start}, span{cut.end, h.end}
		switch {
		case left.start < left.end && right.start < right.end:
			f.holes[i] = left
			f.holes = slices.Insert(f.holes, i+1, right)
			i += 2
		case left.start < left.end:
			f.holes[i] = left
			i++
		case right.start < right.end:
			f.holes[i] = right
			i++
		default:
			f.holes = slices.Delete(f.holes, i, i+1)
		}
	}
	return fresh
}

// inOrder is how far the payload is complete.
func (f *flow) inOrder() int64 {
	if len(f.holes) > 0 {
		return f.holes[0].start
	}
	return f.high
}

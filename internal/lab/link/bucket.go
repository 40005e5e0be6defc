package link

import (
	"time"
)

// MaxBucket is the largest token bucket, bytes.
const MaxBucket = 1 << 30

// Policer drops at once what exceeds a token bucket; it delays nothing. The bucket is
// full at first. A packet that is larger than the bucket never passes.
type Policer struct {
	BitsPerSecond int64 `json:"bits_per_second"` // on whole IP packets; 0: there is no policer
	BucketBytes   int64 `json:"bucket_bytes"`
	PerFlow       bool  `json:"per_flow"` // each flow has a bucket of its own
}

// Shaper delays what exceeds a token bucket, in a queue of its own before that of the
// link: drop-tail, first come, first served. What conforms at once does not count for the
// queue. A packet that is larger than the bucket is dropped.
type Shaper struct {
	BitsPerSecond int64 `json:"bits_per_second"` // on whole IP packets; 0: there is no shaper
	BucketBytes   int64 `json:"bucket_bytes"`
	QueueBytes    int64 `json:"queue_bytes"` // 0: no limit of that kind
	QueuePackets  int   `json:"queue_packets"`
	PerFlow       bool  `json:"per_flow"` // each flow has a bucket and a queue of its own
}

func (p Policer) validate(fault func(format string, args ...any)) {
	validateBucket("policer", p.BitsPerSecond, p.BucketBytes, fault)
}

func (s Shaper) validate(fault func(format string, args ...any)) {
	validateBucket("shaper", s.BitsPerSecond, s.BucketBytes, fault)
	if s.QueueBytes < 0 {
		fault("shaper's queue of %d bytes is negative", s.QueueBytes)
	}
	if s.QueuePackets < 0 {
		fault("shaper's queue of %d packets is negative", s.QueuePackets)
	}
}

func validateBucket(of string, rate, bucket int64, fault func(format string, args ...any)) {
	if rate < 0 || rate > MaxBitsPerSecond {
		fault("%s's rate %d bit/s is outside 0..%d", of, rate, int64(MaxBitsPerSecond))
	}
	if bucket < 0 || bucket > MaxBucket || bucket == 0 && rate > 0 {
		fault("%s's bucket of %d bytes is outside 1..%d", of, bucket, MaxBucket)
	}
}

// bucket is a token bucket whose level is exact. Levels are in units that the rate, in
// bit/s, fills one by one each nanosecond: a byte is nsPerByte of them, and the largest
// bucket is below 2^63.
type bucket struct {
	rate, full, level uint64
	at                time.Duration // when level was right
}

func newBucket(rate, bytes int64, now time.Duration) bucket {
	full := uint64(bytes) * nsPerByte
	return bucket{rate: uint64(rate), full: full, level: full, at: now}
}

// fill adds the tokens of the time until now.
func (b *bucket) fill(now time.Duration) {
	if now <= b.at {
		return
	}
	passed, lacks := uint64(now-b.at), b.full-b.level
	b.at = now
	if passed > lacks/b.rate { // also when the product would overflow
		b.level = b.full
		return
	}
	b.level += passed * b.rate
}

// take takes the tokens for a packet at now; false: there are too few, and none is taken.
func (b *bucket) take(now time.Duration, size int) bool {
	b.fill(now)
	cost := uint64(size) * nsPerByte
	if b.level < cost {
		return false
	}
	b.level -= cost
	return true
}

// reserve takes the tokens for a packet, waiting for them from now on, and returns when
// they were there. The packet fits into the bucket.
func (b *bucket) reserve(now time.Duration, size int) time.Duration {
	b.fill(now)
	if lacks := uint64(size) * nsPerByte; lacks > b.level {
		lacks -= b.level
		b.fill(b.at + time.Duration((lacks+b.rate-1)/b.rate))
	}
	b.level -= uint64(size) * nsPerByte
	return b.at
}

// police is the state of a Policer.
type police struct {
	cfg   Policer
	all   bucket
	flows map[uint64]*bucket
}

func newPolice(cfg Policer) *police {
	if cfg.BitsPerSecond == 0 {
		return nil
	}
	return &police{cfg: cfg, all: newBucket(cfg.BitsPerSecond, cfg.BucketBytes, 0), flows: map[uint64]*bucket{}}
}

// passes reports whether a packet of a flow conforms at now.
func (p *police) passes(now time.Duration, flow uint64, size int) bool {
	b := &p.all
	if p.cfg.PerFlow {
		if b = p.flows[flow]; b == nil {
			n := newBucket(p.cfg.BitsPerSecond, p.cfg.BucketBytes, now)
			b = &n
			p.flows[flow] = b
		}
	}
	return b.take(now, size)
}

// shape is the state of a Shaper.
type shape struct {
	cfg   Shaper
	all   lane
	flows map[uint64]*lane
	most  Count // the most that ever waited in one queue
}

// lane is one queue with its bucket.
type lane struct {
	bucket  bucket
	waiting ring[wait]
	queued  Count
}

func newShape(cfg Shaper) *shape {
	if cfg.BitsPerSecond == 0 {
		return nil
	}
	return &shape{cfg: cfg, all: lane{bucket: newBucket(cfg.BitsPerSecond, cfg.BucketBytes, 0)}, flows: map[uint64]*lane{}}
}

// admit returns when a packet of a flow that comes at now may go on; false: it is
// dropped.
func (s *shape) admit(now time.Duration, flow uint64, size int) (release time.Duration, ok bool) {
	if int64(size) > s.cfg.BucketBytes {
		return 0, false
	}
	l := &s.all
	if s.cfg.PerFlow {
		if l = s.flows[flow]; l == nil {
			l = &lane{bucket: newBucket(s.cfg.BitsPerSecond, s.cfg.BucketBytes, now)}
			s.flows[flow] = l
		}
	}
	for l.waiting.n > 0 && l.waiting.front().start <= now {
		w := l.waiting.pop()
		l.queued.Packets--
		l.queued.Bytes -= int64(w.size)
	}
	// Those before it wait, so it does; else its own tokens may be there.
	if l.waiting.n == 0 && l.bucket.take(now, size) {
		return now, true
	}
	if !fits(l.queued, size, s.cfg.QueueBytes, s.cfg.QueuePackets) {
		return 0, false
	}
	release = l.bucket.reserve(now, size)
	l.waiting.push(wait{start: release, size: size})
	l.queued.add(size)
	s.most.Packets = max(s.most.Packets, l.queued.Packets)
	s.most.Bytes = max(s.most.Bytes, l.queued.Bytes)
	return release, true
}

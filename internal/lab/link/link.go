// Package link computes the schedule of one direction of an emulated network
// path: when each packet leaves and arrives, or why it is dropped.
//
// It is arithmetic on the times it is given. It opens nothing, sleeps never and
// reads no clock, so its schedule is proved exactly, in virtual time, by its
// tests; whoever moves real packets by it (the lab's TUN forwarder) answers only
// for being punctual.
//
// The model is a drop-tail queue, a serialiser and a wire:
//
//	Enqueue ─▶ queue ─▶ serialiser at Rate ─▶ wire of Delay, with Loss ─▶ arrival
//
// A packet being serialised has left the queue. A packet lost on the wire has used
// its share of the rate, like a packet that is corrupted on a real line.
package link

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"time"
)

// MaxBitsPerSecond is the highest rate that Config accepts: 1 Tbit/s, far above
// what a user-space link can carry and far below what the arithmetic can.
const MaxBitsPerSecond = 1_000_000_000_000

// MaxDelay is the longest propagation delay that Config accepts: a minute, beyond
// any path (a geostationary hop is a quarter of a second).
const MaxDelay = time.Minute

// MaxPacket is the largest size that Enqueue accepts, the largest IP packet.
const MaxPacket = 65535

// Config describes one direction. The zero value is a wire that does nothing:
// infinitely fast, no delay, no loss.
type Config struct {
	// BitsPerSecond is the rate of the serialiser, counted on whole IP packets.
	// 0 means infinitely fast; then no queue ever forms.
	BitsPerSecond int64 `json:"bits_per_second"`
	// Delay is the propagation delay, added after the last bit has been sent.
	Delay time.Duration `json:"delay_ns"`
	// QueueBytes and QueuePackets limit what waits for the serialiser; the packet
	// being sent does not count. 0 means no limit of that kind. A packet that would
	// exceed either is dropped (drop-tail).
	QueueBytes   int64 `json:"queue_bytes"`
	QueuePackets int   `json:"queue_packets"`
	// Loss is the probability, 0 to 1, that a packet is lost on the wire, each
	// independently of the others.
	Loss float64 `json:"loss"`
	// Seed fixes all random decisions: the n-th packet that leaves the serialiser
	// meets the same fate in every run with the same seed, whatever the timing.
	Seed uint64 `json:"seed"`
}

// Validate reports every fault of c, each with its field and value.
func (c Config) Validate() error {
	var errs []error
	fault := func(format string, args ...any) { errs = append(errs, fmt.Errorf("link: "+format, args...)) }
	if c.BitsPerSecond < 0 || c.BitsPerSecond > MaxBitsPerSecond {
		fault("rate %d bit/s is outside 0..%d", c.BitsPerSecond, int64(MaxBitsPerSecond))
	}
	if c.Delay < 0 || c.Delay > MaxDelay {
		fault("delay %v is outside 0..%v", c.Delay, MaxDelay)
	}
	if c.QueueBytes < 0 {
		fault("queue of %d bytes is negative", c.QueueBytes)
	}
	if c.QueuePackets < 0 {
		fault("queue of %d packets is negative", c.QueuePackets)
	}
	if !(c.Loss >= 0 && c.Loss <= 1) { // also catches NaN
		fault("loss %v is outside 0..1", c.Loss)
	}
	return errors.Join(errs...)
}

// Drop says why a packet does not arrive.
type Drop uint8

// The fates of a packet.
const (
	Delivered Drop = iota
	DropQueue      // the queue was full
	DropLoss       // lost on the wire, at random
)

// String returns the name used in reports.
func (d Drop) String() string {
	switch d {
	case Delivered:
		return "delivered"
	case DropQueue:
		return "queue"
	case DropLoss:
		return "loss"
	}
	return fmt.Sprintf("drop(%d)", uint8(d))
}

// Decision is what happens to one packet. Times are on the clock of Enqueue's now.
type Decision struct {
	Drop Drop
	// Departure is when the last bit leaves the serialiser, rounded down to the
	// nanosecond; the fraction is carried to the next packet. Not set by DropQueue.
	Departure time.Duration
	// Arrival is Departure plus the delay: when the packet reaches the far end.
	// Only set when Drop is Delivered.
	Arrival time.Duration
}

// Count is a number of packets and the bytes in them.
type Count struct {
	Packets int64 `json:"packets"`
	Bytes   int64 `json:"bytes"`
}

func (c *Count) add(size int) {
	c.Packets++
	c.Bytes += int64(size)
}

// Stats are a link's totals since it was made. In = Delivered + Queue + Loss.
type Stats struct {
	In        Count `json:"in"`        // offered to Enqueue
	Delivered Count `json:"delivered"` // scheduled to arrive
	Queue     Count `json:"dropped_by_queue"`
	Loss      Count `json:"lost_on_wire"`
	// MaxQueue is the most that ever waited, bytes and packets each at their own peak.
	MaxQueue Count `json:"max_queue"`
}

// Link is the state of one direction. It is not safe for concurrent use.
type Link struct {
	cfg Config

	// The serialiser is free from free + frac/BitsPerSecond nanoseconds on. The
	// fraction is exact, so a schedule of any length has no drift.
	free time.Duration
	frac uint64

	waiting waitRing // packets whose first bit has not been sent yet
	queued  Count

	lossBelow uint64 // a draw below this is a loss
	lossAll   bool   // probability 1, which lossBelow cannot express
	lossRand  *rand.PCG

	stats Stats
}

// Each kind of random decision draws from its own stream, so that adding one kind
// to a scenario does not change what the others decide.
const streamLoss = 1

// New returns a link that has carried nothing yet.
func New(cfg Config) (*Link, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	return &Link{
		cfg:       cfg,
		lossBelow: threshold(cfg.Loss),
		lossAll:   cfg.Loss == 1,
		lossRand:  rand.NewPCG(cfg.Seed, streamLoss),
	}, nil
}

// threshold maps a probability below 1 to the draws of a uniform uint64 that are
// below the result. 2^64·p is exact in a float64 but for its lowest bits.
func threshold(p float64) uint64 {
	if p >= 1 {
		return math.MaxUint64
	}
	return uint64(p * (1 << 63) * 2)
}

// Enqueue offers a packet of size bytes (the whole IP packet, 1 to MaxPacket) to
// the link at time now and returns what becomes of it. now must not decrease from
// call to call. It does not allocate once its queue has reached its usual length.
func (l *Link) Enqueue(now time.Duration, size int) Decision {
	l.advance(now)
	l.stats.In.add(size)

	start := now
	if l.free >= now {
		start = l.free // back to back: the fraction goes on
	} else {
		l.frac = 0
	}
	if start > now {
		if !l.fits(size) {
			l.stats.Queue.add(size)
			return Decision{Drop: DropQueue}
		}
		l.waiting.push(wait{start: start, size: size})
		l.queued.add(size)
		l.stats.MaxQueue.Packets = max(l.stats.MaxQueue.Packets, l.queued.Packets)
		l.stats.MaxQueue.Bytes = max(l.stats.MaxQueue.Bytes, l.queued.Bytes)
	}
	l.free = start + l.serialise(size)

	d := Decision{Departure: l.free}
	if l.lose() {
		d.Drop = DropLoss
		l.stats.Loss.add(size)
		return d
	}
	d.Arrival = d.Departure + l.cfg.Delay
	l.stats.Delivered.add(size)
	return d
}

// Queued returns what waits for the serialiser at now.
func (l *Link) Queued(now time.Duration) Count {
	l.advance(now)
	return l.queued
}

// Stats returns the totals so far.
func (l *Link) Stats() Stats { return l.stats }

// advance takes out of the queue what the serialiser has begun to send by now.
func (l *Link) advance(now time.Duration) {
	for l.waiting.n > 0 && l.waiting.front().start <= now {
		w := l.waiting.pop()
		l.queued.Packets--
		l.queued.Bytes -= int64(w.size)
	}
}

func (l *Link) fits(size int) bool {
	if l.cfg.QueuePackets > 0 && l.queued.Packets >= int64(l.cfg.QueuePackets) {
		return false
	}
	return l.cfg.QueueBytes == 0 || l.queued.Bytes+int64(size) <= l.cfg.QueueBytes
}

// serialise returns the whole nanoseconds until the last bit of a packet that
// starts at free + frac/rate is out, and keeps the new fraction.
func (l *Link) serialise(size int) time.Duration {
	rate := uint64(l.cfg.BitsPerSecond)
	if rate == 0 {
		return 0
	}
	// 65535 · 8·10⁹ + MaxBitsPerSecond is below 2^50: no overflow.
	const nsPerByte = 8 * uint64(time.Second)
	sum := uint64(size)*nsPerByte + l.frac
	l.frac = sum % rate
	return time.Duration(sum / rate)
}

func (l *Link) lose() bool {
	if l.cfg.Loss == 0 {
		return false
	}
	draw := l.lossRand.Uint64()
	return l.lossAll || draw < l.lossBelow
}

// wait is a packet in the queue: when its first bit is sent, and its size.
type wait struct {
	start time.Duration
	size  int
}

// waitRing is a first-in-first-out queue that grows by doubling.
type waitRing struct {
	buf  []wait // length is a power of two
	head int
	n    int
}

func (r *waitRing) front() *wait { return &r.buf[r.head] }

func (r *waitRing) pop() wait {
	w := r.buf[r.head]
	r.head = (r.head + 1) & (len(r.buf) - 1)
	r.n--
	return w
}

func (r *waitRing) push(w wait) {
	if r.n == len(r.buf) {
		bigger := make([]wait, max(64, 2*len(r.buf)))
		k := copy(bigger, r.buf[r.head:])
		copy(bigger[k:], r.buf[:r.head])
		r.buf, r.head = bigger, 0
	}
	r.buf[(r.head+r.n)&(len(r.buf)-1)] = w
	r.n++
}

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
//	Enqueue ─▶ queue ─▶ serialiser at Rate ─▶ wire of Delay, with faults ─▶ arrival
//
// A packet being serialised has left the queue. A packet lost on the wire has used
// its share of the rate, like a packet that is corrupted on a real line; a copy that the
// wire makes has not. A Wire puts what arrives in order of its time.
//
// What cannot be decided when a packet comes, because it depends on those that come after
// it, is a Path: both directions with policers, shapers, classes served by strict
// priority, traffic of others, several members among which flows are spread, and a medium
// that both directions share. Without any of these a Path does what two Links do.
package link

import (
	"errors"
	"fmt"
	"time"

	"github.com/fullbore-net/fullbore/internal/lab/hist"
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
	// Seed fixes all random decisions: the n-th packet that leaves the serialiser and
	// is not spared meets the same fate in every run with the same seed, whatever the
	// timing.
	Seed uint64 `json:"seed"`
	Faults

	// What follows needs a Path.
	Policer Policer `json:"policer"`
	Shaper  Shaper  `json:"shaper"`
	// Classes, when there are any, take the place of QueueBytes and QueuePackets: the
	// serialiser sends from the first one that is not empty.
	Classes []Class `json:"classes,omitempty"`
	// Cross is traffic of others, which takes part in everything but the faults and
	// arrives nowhere.
	Cross []Cross `json:"cross,omitempty"`
	// Members, when there are any, are what the direction consists of: each flow takes
	// one, and nothing else of this Config counts.
	Members []Config `json:"members,omitempty"`
}

// Plain reports whether a Link can carry out c.
func (c Config) Plain() bool {
	return c.Policer == Policer{} && c.Shaper == Shaper{} && len(c.Classes)+len(c.Cross)+len(c.Members) == 0
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
	c.Faults.validate(fault)
	c.Policer.validate(fault)
	c.Shaper.validate(fault)
	validateClasses(c, fault)
	for i, x := range c.Cross {
		x.validate(i, fault)
	}
	for i, m := range c.Members {
		if len(m.Members) > 0 {
			fault("member %d has members", i)
		} else if err := m.Validate(); err != nil {
			errs = append(errs, fmt.Errorf("link: member %d: %w", i, err))
		}
	}
	return errors.Join(errs...)
}

// Drop says why a packet does not arrive.
type Drop uint8

// The fates of a packet.
const (
	Delivered   Drop = iota
	DropQueue        // the queue was full
	DropLoss         // lost on the wire, at random
	DropBurst        // lost on the wire while it was in its bad state (Bursts)
	DropOutage       // nothing got through just then
	DropHole         // larger than what gets through (Hole)
	DropPolicer      // above the policer's rate, and its bucket was empty
	DropShaper       // the shaper's queue was full
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
	case DropBurst:
		return "burst"
	case DropOutage:
		return "outage"
	case DropHole:
		return "hole"
	case DropPolicer:
		return "policer"
	case DropShaper:
		return "shaper"
	}
	return fmt.Sprintf("drop(%d)", uint8(d))
}

// Decision is what happens to one packet. Times are on the clock of Enqueue's now.
type Decision struct {
	Drop Drop
	// Departure is when the last bit leaves the serialiser, rounded down to the
	// nanosecond; the fraction is carried to the next packet. Not set by DropQueue.
	Departure time.Duration
	// Arrival is Departure plus the delay, the jitter and the time by which the packet is
	// held back: when it reaches the far end. Only set when Drop is Delivered.
	Arrival time.Duration
	// Held says that the packet is held back, by time or until others have passed.
	Held bool
	// Behind, when not 0, says that the packet arrives right behind the Behind-th one that
	// comes after it and is delivered, neither held back nor spared, but not before
	// Arrival; or at Latest when not so many come.
	Behind int
	Latest time.Duration
	// Twice: a copy arrives right behind it.
	Twice bool
	// Spared: no fault could touch it.
	Spared bool
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

// Stats are a link's totals since it was made.
// In = Delivered + Policer + Shaper + Queue + Loss + Burst + Outage + Hole, but for what
// is underway in a Path; what arrives is Delivered + Duplicated.
type Stats struct {
	In        Count `json:"in"`        // offered
	Delivered Count `json:"delivered"` // scheduled to arrive
	Queue     Count `json:"dropped_by_queue"`
	Loss      Count `json:"lost_on_wire"`
	Burst     Count `json:"lost_in_bursts"`
	Outage    Count `json:"lost_in_outage"`
	Hole      Count `json:"lost_in_hole"`
	Policer   Count `json:"dropped_by_policer"`
	Shaper    Count `json:"dropped_by_shaper"` // its queue was full
	// Duplicated counts the copies; Reordered what was held back, which others need not
	// have overtaken.
	Duplicated Count `json:"duplicated"`
	Reordered  Count `json:"held_back"`
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

	waiting ring[wait] // packets whose first bit has not been sent yet
	queued  Count

	loss  chance
	fate  fates
	stats Stats
	waits hist.Hist
}

// New returns a link that has carried nothing yet.
func New(cfg Config) (*Link, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if !cfg.Plain() {
		return nil, errors.New("link: policers, shapers, classes, cross traffic and members need a Path")
	}
	return newLink(cfg), nil
}

func newLink(cfg Config) *Link {
	return &Link{cfg: cfg, loss: newChance(cfg.Loss, cfg.Seed, streamLoss), fate: newFates(cfg)}
}

// Begin says when the run starts, from which an Outage with FromStart counts. Without it
// that is the clock's zero.
func (l *Link) Begin(now time.Duration) { l.fate.begin = now }

// First says when the first packet of the path came, from which an Outage counts, if that
// was before this link's own first one.
func (l *Link) First(now time.Duration) { l.fate.first(now) }

// Enqueue offers a packet of size bytes (the whole IP packet, 1 to MaxPacket) to
// the link at time now and returns what becomes of it. now must not decrease from
// call to call. It does not allocate once its queue has reached its usual length.
func (l *Link) Enqueue(now time.Duration, size int) Decision {
	return l.enqueue(now, size, false)
}

// EnqueueSpared is Enqueue for a packet that no fault may touch, Loss among them. It
// takes its share of the queue and the rate and has the delay; and it takes no part in
// the random decisions, so that the fate of the others does not depend on it.
func (l *Link) EnqueueSpared(now time.Duration, size int) Decision {
	return l.enqueue(now, size, true)
}

func (l *Link) enqueue(now time.Duration, size int, spared bool) Decision {
	l.fate.first(now)
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
	l.waits.Add(start - now)
	took, frac := serialise(size, uint64(l.cfg.BitsPerSecond), l.frac)
	l.free, l.frac = start+took, frac
	return l.leave(l.free, size, spared)
}

// leave is what happens to a packet once the serialiser has sent it.
func (l *Link) leave(departure time.Duration, size int, spared bool) Decision {
	d := Decision{Departure: departure, Arrival: departure + l.cfg.Delay, Spared: spared}
	if !spared {
		// Both draw in any case, see fates.
		lost := l.loss.happens()
		l.fate.decide(&d, size)
		if lost && d.Drop == Delivered {
			d.Drop = DropLoss
		}
		if d.Drop != Delivered {
			d = Decision{Drop: d.Drop, Departure: d.Departure}
		}
	}
	l.fate.order(&d)
	l.count(d, size)
	return d
}

func (l *Link) count(d Decision, size int) {
	switch d.Drop {
	case DropLoss:
		l.stats.Loss.add(size)
	case DropBurst:
		l.stats.Burst.add(size)
	case DropOutage:
		l.stats.Outage.add(size)
	case DropHole:
		l.stats.Hole.add(size)
	case Delivered:
		l.stats.Delivered.add(size)
		if d.Twice {
			l.stats.Duplicated.add(size)
		}
		if d.Held {
			l.stats.Reordered.add(size)
		}
	}
}

// Queued returns what waits for the serialiser at now.
func (l *Link) Queued(now time.Duration) Count {
	l.advance(now)
	return l.queued
}

// Stats returns the totals so far.
func (l *Link) Stats() Stats { return l.stats }

// Waits sums up how long packets waited for their first bit to be sent, those that were
// not dropped by the queue: its depth in time.
func (l *Link) Waits() hist.Summary { return l.waits.Summary() }

// advance takes out of the queue what the serialiser has begun to send by now.
func (l *Link) advance(now time.Duration) {
	for l.waiting.n > 0 && l.waiting.front().start <= now {
		w := l.waiting.pop()
		l.queued.Packets--
		l.queued.Bytes -= int64(w.size)
	}
}

func (l *Link) fits(size int) bool {
	return fits(l.queued, size, l.cfg.QueueBytes, l.cfg.QueuePackets)
}

// fits reports whether a queue that holds some has room for a packet; a limit of 0 is
// none.
func fits(queued Count, size int, bytes int64, packets int) bool {
	if packets > 0 && queued.Packets >= int64(packets) {
		return false
	}
	return bytes == 0 || queued.Bytes+int64(size) <= bytes
}

// serialise returns the whole nanoseconds until the last bit of a packet is out that
// starts frac/rate after a nanosecond, and the new fraction.
func serialise(size int, rate, frac uint64) (time.Duration, uint64) {
	if rate == 0 {
		return 0, 0
	}
	// 65535 · 8·10⁹ + MaxBitsPerSecond is below 2^50: no overflow.
	sum := uint64(size)*nsPerByte + frac
	return time.Duration(sum / rate), sum % rate
}

// nsPerByte is how long a byte takes at 1 bit/s.
const nsPerByte = 8 * uint64(time.Second)

// wait is a packet in the queue: when its first bit is sent, and its size.
type wait struct {
	start time.Duration
	size  int
}

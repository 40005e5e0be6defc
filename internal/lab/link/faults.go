package link

import (
	"math"
	"math/bits"
	"math/rand/v2"
	"time"
)

// MaxHeld is the largest number of packets that Reorder can hold a packet back for.
const MaxHeld = 1000

// HoldLimit is how long after the latest time of its arrival without Reorder a packet
// arrives that is held back for others which do not come: the last ones of a stream must
// not stay on the wire for ever.
const HoldLimit = 100 * time.Millisecond

// Faults are what the wire does to packets besides losing each at random. The zero
// value is none. Every random decision about a packet is drawn for every packet, also
// for one that something else loses, and from a stream of its own: so a fault added to a
// Config does not change what the others do to which packet.
type Faults struct {
	Jitter    Jitter  `json:"jitter"`
	Reorder   Reorder `json:"reorder"`
	Bursts    Bursts  `json:"bursts"`
	Outage    Outage  `json:"outage"`
	Duplicate float64 `json:"duplicate"` // probability of a second copy, right behind the first
	// Hole is the size of the largest packet that gets through, whole IP packets; larger
	// ones vanish without a word. 0 means no limit.
	Hole int `json:"hole"`
}

// Jitter adds a time to the delay of each packet, evenly distributed from Least to
// Most.
type Jitter struct {
	Least time.Duration `json:"least_ns"`
	Most  time.Duration `json:"most_ns"`
	// KeepOrder lets no packet overtake another: it arrives with the one before at the
	// earliest. Otherwise jitter larger than the packets' spacing reorders them.
	KeepOrder bool `json:"keep_order"`
}

// Reorder holds back a share of the packets, each independently of the others: until
// Packets others have passed, or for Time longer than its delay. One of the two is 0.
type Reorder struct {
	Share   float64       `json:"share"`
	Packets int           `json:"packets"`
	Time    time.Duration `json:"time_ns"`
}

// Bursts is Gilbert's model of loss in bursts: the wire is good or bad, and loses every
// packet while it is bad. With each packet it goes from good to bad with probability
// GoodToBad (p), back with BadToGood (r), and the packet meets the new state. So p/(p+r)
// of the packets are lost, in runs of 1/r on the average.
type Bursts struct {
	GoodToBad float64 `json:"good_to_bad"`
	BadToGood float64 `json:"bad_to_good"`
}

// Outage loses what leaves the serialiser from At on, and up to but not including For
// later. At counts from the first packet that is offered, or from Begin.
type Outage struct {
	At        time.Duration `json:"at_ns"`
	For       time.Duration `json:"for_ns"`
	FromStart bool          `json:"from_start"`
}

// Any reports whether there is any fault.
func (f Faults) Any() bool { return f != Faults{} }

func (f Faults) validate(fault func(format string, args ...any)) {
	share := func(name string, p float64) {
		if !(p >= 0 && p <= 1) { // also catches NaN
			fault("%s %v is outside 0..1", name, p)
		}
	}
	if f.Jitter.Least < 0 || f.Jitter.Most < f.Jitter.Least || f.Jitter.Most > MaxDelay {
		fault("jitter from %v to %v is not within 0..%v", f.Jitter.Least, f.Jitter.Most, MaxDelay)
	}
	share("reorder share", f.Reorder.Share)
	if f.Reorder.Packets < 0 || f.Reorder.Packets > MaxHeld {
		fault("reorder by %d packets is outside 0..%d", f.Reorder.Packets, MaxHeld)
	}
	if f.Reorder.Time < 0 || f.Reorder.Time > MaxDelay {
		fault("reorder by %v is outside 0..%v", f.Reorder.Time, MaxDelay)
	}
	if f.Reorder.Share > 0 && (f.Reorder.Packets == 0) == (f.Reorder.Time == 0) {
		fault("reorder needs either a number of packets or a time")
	}
	share("probability of a burst", f.Bursts.GoodToBad)
	share("probability of a burst's end", f.Bursts.BadToGood)
	share("duplicate", f.Duplicate)
	if f.Outage.At < 0 || f.Outage.For < 0 {
		fault("outage at %v for %v is negative", f.Outage.At, f.Outage.For)
	}
	if f.Hole < 0 || f.Hole > MaxPacket {
		fault("hole above %d is outside 0..%d", f.Hole, MaxPacket)
	}
}

// The streams of random decisions.
const (
	streamLoss = 1 + iota
	streamBurst
	streamJitter
	streamReorder
	streamDuplicate
)

// chance is a stream of decisions that are true with one probability.
type chance struct {
	below uint64 // a draw below this is true
	all   bool   // probability 1, which below cannot express
	rand  *rand.PCG
}

// newChance returns a stream; p is 0 to 1. 2^64·p is exact in a float64 but for its
// lowest bits.
func newChance(p float64, seed, stream uint64) chance {
	c := chance{all: p == 1, below: math.MaxUint64, rand: rand.NewPCG(seed, stream)}
	if p < 1 {
		c.below = uint64(p * (1 << 63) * 2)
	}
	return c
}

// happens draws, unless the outcome is certain.
func (c *chance) happens() bool {
	if c.below == 0 {
		return false
	}
	draw := c.rand.Uint64()
	return c.all || draw < c.below
}

// fates is the state of a link's faults.
type fates struct {
	Faults
	begin, origin time.Duration // when the run started; when the first packet came
	started       bool
	bad           bool // Bursts
	toBad, toGood chance
	jitter        *rand.PCG
	reorder, copy chance
	last          time.Duration // arrival of the last packet that keeps order
}

func newFates(c Config) fates {
	// Going to bad and back share a stream: each packet draws once.
	toBad := newChance(c.Bursts.GoodToBad, c.Seed, streamBurst)
	toGood := newChance(c.Bursts.BadToGood, c.Seed, streamBurst)
	toGood.rand = toBad.rand
	return fates{
		Faults: c.Faults, toBad: toBad, toGood: toGood,
		jitter:  rand.NewPCG(c.Seed, streamJitter),
		reorder: newChance(c.Reorder.Share, c.Seed, streamReorder),
		copy:    newChance(c.Duplicate, c.Seed, streamDuplicate),
	}
}

// first notes when the first packet came.
func (f *fates) first(now time.Duration) {
	if !f.started {
		f.started, f.origin = true, now
	}
}

// decide draws everything about a packet that leaves the serialiser at d.Departure.
func (f *fates) decide(d *Decision, size int) {
	latest := d.Arrival + f.Jitter.Most + HoldLimit
	if f.Jitter.Most > 0 {
		span := uint64(f.Jitter.Most-f.Jitter.Least) + 1
		extra, _ := bits.Mul64(f.jitter.Uint64(), span)
		d.Arrival += f.Jitter.Least + time.Duration(extra)
	}
	if f.reorder.happens() {
		d.Held = true
		d.Arrival += f.Reorder.Time
		if f.Reorder.Packets > 0 {
			d.Behind, d.Latest = f.Reorder.Packets, latest
		}
	}
	d.Twice = f.copy.happens()
	if f.bad {
		f.bad = !f.toGood.happens()
	} else {
		f.bad = f.toBad.happens()
	}
	from := f.origin
	if f.Outage.FromStart {
		from = f.begin
	}
	from += f.Outage.At
	switch {
	case f.Hole > 0 && size > f.Hole:
		d.Drop = DropHole
	case d.Departure >= from && d.Departure < from+f.Outage.For:
		d.Drop = DropOutage
	case f.bad:
		d.Drop = DropBurst
	}
}

// order keeps a delivered packet from overtaking, if it must not.
func (f *fates) order(d *Decision) {
	if !f.Jitter.KeepOrder || d.Drop != Delivered || d.Held || d.Spared {
		return
	}
	d.Arrival = max(d.Arrival, f.last)
	f.last = d.Arrival
}

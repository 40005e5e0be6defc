package delay

import (
	"math"
	"math/bits"
)

const (
	maxBlocks = 512
	// maxEpochs is how often a clock may be set in a run. After that, what is not at
	// the last level is left out, counted as outliers.
	maxEpochs = 64
)

// track keeps what the delay variation of a run is computed from when it has ended: the
// least and the greatest delay of each of up to 512 stretches of equal length, exactly;
// and of all delays, or one at random of each 2^k that follow one another once there are
// more than fit, for the quantiles. A quantile p of n kept samples (n is at least half of
// what fits) has the standard error √(p(1−p)/n) in rank: with 8192, the "p99" is one of
// p98.89 … p99.11.
//
// Time is ns since the first datagram by the receiver's clock, put together over its
// steps.
type track struct {
	time    int64 // the latest
	epochs  []epoch
	blocks  []block
	perBlk  int64 // delays in a full block
	samples []point
	stride  int64 // each sample stands for so many delays
	pos     int64 // in the current stride
	pick    int64 // which of it is taken
	rng     uint64
}

// point is one delay at a time, ns.
type point struct{ time, d int64 }

// epoch is the time between two steps of a clock. Delays in it are relative to base.
type epoch struct {
	start    int64 // time; that of the next is later
	base     int64 // delay of its first datagram as the clocks show it
	received int64 // its first datagram by the receiver's clock
	n        int64
	sumTime  float64
	sumD     float64
}

// block is a stretch of delays of one epoch.
type block struct {
	epoch    int
	n        int64
	min, max point
}

func (t *track) init(samples int) {
	t.samples = make([]point, 0, samples&^1)
	t.blocks = make([]block, 0, maxBlocks)
	t.epochs = make([]epoch, 0, maxEpochs)
	t.perBlk, t.stride = 1, 1
	t.rng = 0x9E3779B97F4A7C15
}

// newEpoch begins one with this datagram, after ns of time; false when there were too
// many.
func (t *track) newEpoch(at mark, after uint64) bool {
	if len(t.epochs) == maxEpochs {
		return false
	}
	t.time += int64(min(after, math.MaxInt64-uint64(t.time)))
	t.epochs = append(t.epochs, epoch{start: t.time, base: at.received - at.sent, received: at.received})
	return true
}

// add takes a datagram's delay and returns it with its time.
func (t *track) add(at mark) (time, d int64) {
	e := &t.epochs[len(t.epochs)-1]
	// Stamps of several CPUs may be a little out of order, but none is of the epoch before.
	time, d = e.start+max(at.received-e.received, 0), at.received-at.sent-e.base
	t.time = max(t.time, time)
	e.n++
	e.sumTime += float64(time - e.start)
	e.sumD += float64(d)

	p := point{time, d}
	if n := len(t.blocks); n > 0 && t.blocks[n-1].epoch == len(t.epochs)-1 && t.blocks[n-1].n < t.perBlk {
		b := &t.blocks[n-1]
		b.n++
		if d < b.min.d {
			b.min = p
		}
		if d > b.max.d {
			b.max = p
		}
	} else {
		t.newBlock(p)
	}
	if t.pos == 0 && len(t.samples) == cap(t.samples) {
		t.halve()
	}
	if t.pos == t.pick {
		t.samples = append(t.samples, p)
	}
	if t.pos++; t.pos == t.stride {
		t.choose()
	}
	return time, d
}

// newBlock starts a block. Merging makes room however many epochs there are.
func (t *track) newBlock(p point) {
	if len(t.blocks) == maxBlocks {
		t.mergeBlocks()
	}
	t.blocks = append(t.blocks, block{epoch: len(t.epochs) - 1, n: 1, min: p, max: p})
}

// mergeBlocks puts neighbours of one epoch together.
func (t *track) mergeBlocks() {
	t.perBlk *= 2
	out := t.blocks[:0]
	for i := 0; i < len(t.blocks); i++ {
		b := t.blocks[i]
		if i+1 < len(t.blocks) && t.blocks[i+1].epoch == b.epoch {
			o := t.blocks[i+1]
			b.n += o.n
			if o.min.d < b.min.d {
				b.min = o.min
			}
			if o.max.d > b.max.d {
				b.max = o.max
			}
			i++
		}
		out = append(out, b)
	}
	t.blocks = out
}

// halve gives up every second of the samples kept.
func (t *track) halve() {
	half := len(t.samples) / 2
	for i := range half {
		t.samples[i] = t.samples[2*i+int(t.random(2))]
	}
	t.samples = t.samples[:half]
	t.stride *= 2
	t.choose()
}

// choose starts a stride: which of its delays to keep.
func (t *track) choose() {
	t.pos, t.pick = 0, 0
	if t.stride > 1 {
		t.pick = t.random(t.stride)
	}
}

// random returns 0 … n−1 (xorshift64*: Vigna 2016). The sequence is the same in each
// run; it only has to know nothing of the traffic.
func (t *track) random(n int64) int64 {
	t.rng ^= t.rng >> 12
	t.rng ^= t.rng << 25
	t.rng ^= t.rng >> 27
	hi, _ := bits.Mul64(t.rng*0x2545F4914F6CDD1D, uint64(n))
	return int64(hi)
}

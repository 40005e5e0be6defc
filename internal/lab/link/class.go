package link

import (
	"slices"
	"time"
)

// Class is one of several queues before a serialiser.
type Class struct {
	Name string `json:"name"`
	// DSCP are the code points of its packets (RFC 2474), 0 to 63. A class without any takes
	// what no other one does.
	DSCP []uint8 `json:"dscp,omitempty"`
	// The limits of its queue; 0 means no limit of that kind.
	QueueBytes   int64 `json:"queue_bytes"`
	QueuePackets int   `json:"queue_packets"`
}

const maxDSCP = 63

// validateClasses: each code point has one class, and each packet.
func validateClasses(c Config, fault func(format string, args ...any)) {
	if len(c.Classes) == 0 {
		return
	}
	if c.BitsPerSecond == 0 {
		fault("classes need a rate: an infinitely fast link has no queue")
	}
	var seen []uint8
	others := 0
	for _, k := range c.Classes {
		if k.QueueBytes < 0 || k.QueuePackets < 0 {
			fault("class %q: queue of %d bytes, %d packets is negative", k.Name, k.QueueBytes, k.QueuePackets)
		}
		if len(k.DSCP) == 0 {
			others++
		}
		for _, d := range k.DSCP {
			if d > maxDSCP {
				fault("class %q: DSCP %d is outside 0..%d", k.Name, d, maxDSCP)
			}
			if slices.Contains(seen, d) {
				fault("class %q: DSCP %d belongs to another class", k.Name, d)
			}
			seen = append(seen, d)
		}
	}
	if others != 1 {
		fault("%d classes take the code points of no other; want one", others)
	}
}

// Cross is a stream of packets of somebody else: at a constant rate, or on and off.
type Cross struct {
	BitsPerSecond int64 `json:"bits_per_second"` // while it is on, on whole IP packets
	Size          int   `json:"size"`            // of each packet, bytes
	DSCP          uint8 `json:"dscp"`
	// From is when its first packet comes, counted from the first packet that is offered to
	// the path; Until, when it ends; 0 means never.
	From  time.Duration `json:"from_ns"`
	Until time.Duration `json:"until_ns"`
	// On and Off alternate, beginning with On. Off 0 means that it is always on.
	On  time.Duration `json:"on_ns"`
	Off time.Duration `json:"off_ns"`
}

// maxCrossPackets bounds the packets of a cross stream in a second, each of which costs
// the path some 100 ns.
const maxCrossPackets = 1_000_000

func (x Cross) validate(i int, fault func(format string, args ...any)) {
	if x.BitsPerSecond <= 0 || x.BitsPerSecond > MaxBitsPerSecond {
		fault("cross traffic %d: rate %d bit/s is outside 1..%d", i, x.BitsPerSecond, int64(MaxBitsPerSecond))
	}
	if x.Size < 1 || x.Size > MaxPacket {
		fault("cross traffic %d: packets of %d bytes are outside 1..%d", i, x.Size, MaxPacket)
	} else if x.BitsPerSecond/8/int64(x.Size) > maxCrossPackets {
		fault("cross traffic %d: more than %d packets a second", i, maxCrossPackets)
	}
	if x.DSCP > maxDSCP {
		fault("cross traffic %d: DSCP %d is outside 0..%d", i, x.DSCP, maxDSCP)
	}
	if x.From < 0 || x.Until < 0 || x.Until > 0 && x.Until <= x.From {
		fault("cross traffic %d: from %v until %v is no time", i, x.From, x.Until)
	}
	if x.On < 0 || x.Off < 0 || (x.On == 0) != (x.Off == 0) {
		fault("cross traffic %d: on for %v and off for %v: give both, or neither", i, x.On, x.Off)
	}
}

// source gives the times of a Cross, one after another.
type source struct {
	Cross
	begin time.Duration // of the present time of being on
	frac  uint64
	at    time.Duration // of the next packet
	over  bool
}

// start says when the path's first packet came.
func (s *source) start(origin time.Duration) {
	s.begin = origin + s.From
	s.at = s.begin
	if s.Until > 0 {
		s.Until += origin
	}
}

// next goes on to the packet after the one at s.at.
func (s *source) next() {
	took, frac := serialise(s.Size, uint64(s.BitsPerSecond), s.frac)
	s.at, s.frac = s.at+took, frac
	if s.On > 0 && s.at >= s.begin+s.On {
		s.begin += s.On + s.Off
		s.at, s.frac = s.begin, 0
	}
	s.over = s.Until > 0 && s.at >= s.Until
}

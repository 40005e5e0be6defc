package link

import (
	"errors"
	"fmt"
	"time"

	"github.com/fullbore-net/fullbore/internal/lab/hist"
)

// MaxMembers is the largest number of members of a direction.
const MaxMembers = 64

// PathConfig describes both directions of a path.
type PathConfig struct {
	Directions [2]Config `json:"directions"`
	// HalfDuplex: both directions share one serialiser, and take turns packet by packet
	// while both have something to send. With members, each pair of them does.
	HalfDuplex bool `json:"half_duplex"`
}

// Plain reports whether two Links can carry out c.
func (c PathConfig) Plain() bool {
	return !c.HalfDuplex && c.Directions[0].Plain() && c.Directions[1].Plain()
}

// Validate reports every fault of c.
func (c PathConfig) Validate() error {
	var errs []error
	for i, d := range c.Directions {
		if err := d.Validate(); err != nil {
			errs = append(errs, fmt.Errorf("link %d: %w", i, err))
		}
		if len(d.Members) > MaxMembers {
			errs = append(errs, fmt.Errorf("link %d: %d members are more than %d", i, len(d.Members), MaxMembers))
		}
	}
	if !c.HalfDuplex {
		return errors.Join(errs...)
	}
	up, down := c.Directions[0].ways(), c.Directions[1].ways()
	if len(up) != len(down) {
		return errors.Join(append(errs, fmt.Errorf("link: directions with %d and %d members cannot share them", len(up), len(down)))...)
	}
	for i := range up {
		if up[i].BitsPerSecond != down[i].BitsPerSecond || up[i].BitsPerSecond == 0 {
			errs = append(errs, fmt.Errorf("link: directions that share a medium have one rate, not %d and %d bit/s",
				up[i].BitsPerSecond, down[i].BitsPerSecond))
		}
	}
	return errors.Join(errs...)
}

// ways returns the members, or c itself as the only one.
func (c Config) ways() []Config {
	if len(c.Members) == 0 {
		return []Config{c}
	}
	return c.Members
}

// Packet is what a path needs to know of a packet.
type Packet struct {
	Size   int    // the whole IP packet, 1 to MaxPacket
	DSCP   uint8  // 0 to 63
	Spared bool   // no fault may touch it, see Link.EnqueueSpared
	Flow   uint64 // tells flows apart, see Key.Flow
	Spread uint64 // chooses the member, see Key.Spread
}

// Path is the state of both directions. It is not safe for concurrent use.
//
// What becomes of a packet may depend on one that comes after it, or from the other end,
// so the path has to be told up to when it has been offered everything (Known); it decides
// no further. It is told of each packet at the time at which it came, however much later
// that is, so its schedule does not depend on how fast its user gets on.
type Path[T any] struct {
	ports   [2][]*port[T] // by direction and member
	media   []*medium[T]
	shared  bool
	known   [2]time.Duration
	started bool
	copies  [2]*port[T] // whose copy is what Pop gives out next
	drop    func(dir int, v T, why Drop)
}

// NewPath returns a path that has carried nothing yet. It calls dropped with each packet
// that does not arrive, within Known.
func NewPath[T any](cfg PathConfig, dropped func(dir int, v T, why Drop)) (*Path[T], error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	p := &Path[T]{drop: dropped, shared: cfg.HalfDuplex}
	for dir, c := range cfg.Directions {
		for i, way := range c.ways() {
			q := newPort[T](dir, way)
			p.ports[dir] = append(p.ports[dir], q)
			m := &medium[T]{path: p, rate: uint64(way.BitsPerSecond), free: -1}
			if p.shared && dir == 1 {
				m = p.ports[0][i].medium
			} else {
				p.media = append(p.media, m)
			}
			q.medium, q.place = m, len(m.ports)
			m.ports = append(m.ports, q)
		}
	}
	return p, nil
}

func newPort[T any](dir int, cfg Config) *port[T] {
	q := &port[T]{dir: dir, link: newLink(cfg), police: newPolice(cfg.Policer), shape: newShape(cfg.Shaper)}
	classes := cfg.Classes
	if len(classes) == 0 {
		classes = []Class{{QueueBytes: cfg.QueueBytes, QueuePackets: cfg.QueuePackets}}
	}
	for i, c := range classes {
		q.classes = append(q.classes, class[T]{Class: c, stats: ClassStats{Name: c.Name}})
		if len(c.DSCP) == 0 {
			for d := range q.classOf {
				q.classOf[d] = uint8(i)
			}
		}
	}
	for i, c := range classes {
		for _, d := range c.DSCP {
			q.classOf[d] = uint8(i)
		}
	}
	for _, x := range cfg.Cross {
		q.sources = append(q.sources, source{Cross: x})
		q.crossed = append(q.crossed, CrossStats{})
	}
	return q
}

// Begin says when the run starts, see Link.Begin.
func (p *Path[T]) Begin(now time.Duration) {
	for _, ports := range p.ports {
		for _, q := range ports {
			q.link.Begin(now)
		}
	}
}

// start notes the time of the first packet.
func (p *Path[T]) start(now time.Duration) {
	if p.started {
		return
	}
	p.started = true
	for _, ports := range p.ports {
		for _, q := range ports {
			q.link.fate.first(now)
			for i := range q.sources {
				q.sources[i].start(now)
			}
		}
	}
}

// Members returns how many members a direction has, 1 without any.
func (p *Path[T]) Members(dir int) int { return len(p.ports[dir]) }

// Offer offers a packet that came at time at, and returns the member that it takes. Of
// each direction at must not decrease from call to call; a time up to which everything
// was known is taken for that time.
func (p *Path[T]) Offer(dir int, at time.Duration, packet Packet, v T) (member int) {
	at = max(at, p.known[dir])
	p.start(at)
	member = int(packet.Spread % uint64(len(p.ports[dir])))
	q := p.ports[dir][member]
	q.inbox.push(arrival[T]{at, entry[T]{
		v: v, at: at, size: packet.Size, flow: packet.Flow, cross: ownTraffic,
		class: q.classOf[packet.DSCP&maxDSCP], spared: packet.Spared,
	}})
	q.medium.own++
	p.known[dir] = at
	return member
}

// Known says that of a direction everything that came before until has been offered, and
// decides what can be decided.
func (p *Path[T]) Known(dir int, until time.Duration) {
	p.known[dir] = max(p.known[dir], until)
	if p.shared {
		for _, m := range p.media {
			m.advance(min(p.known[0], p.known[1]) - 1)
		}
		return
	}
	for _, q := range p.ports[dir] {
		q.medium.advance(p.known[dir] - 1)
	}
}

// Next returns when Known and Pop must be called at the latest for everything to arrive
// in time; false: there is nothing underway.
func (p *Path[T]) Next() (at time.Duration, ok bool) {
	soonest := func(t time.Duration, is bool) {
		if is && (!ok || t < at) {
			at, ok = t, true
		}
	}
	for _, ports := range p.ports {
		for _, q := range ports {
			soonest(q.wire.Next())
		}
	}
	for _, m := range p.media {
		soonest(m.wake())
	}
	return at, ok
}

// Pop takes the next packet of a direction that has arrived by now, of all its members.
// See Wire.Pop.
func (p *Path[T]) Pop(dir int, now time.Duration) (v T, due time.Duration, again, ok bool) {
	first := p.copies[dir] // on a tie with a copy it would not be found
	for i := 0; p.copies[dir] == nil && i < len(p.ports[dir]); i++ {
		q := p.ports[dir][i]
		if t, is := q.wire.Next(); is && t <= now && (first == nil || t < due) {
			first, due = q, t
		}
	}
	if first == nil {
		return v, 0, false, false
	}
	v, due, again, ok = first.wire.Pop(now)
	p.copies[dir] = nil
	if again {
		p.copies[dir] = first
	}
	return v, due, again, ok
}

// ClassStats are a class's own totals, without cross traffic but for MaxQueue.
type ClassStats struct {
	Name     string        `json:"name"`
	In       Count         `json:"in"`
	Dropped  Count         `json:"dropped_by_queue"`
	MaxQueue Count         `json:"max_queue"`
	MaxWait  time.Duration `json:"max_wait_ns"` // of a packet that was sent; shaper included
}

// CrossStats are the totals of traffic of others.
type CrossStats struct {
	In        Count `json:"in"`
	Delivered Count `json:"delivered"`
	Dropped   Count `json:"dropped"`
}

// PortStats are what one member has done.
type PortStats struct {
	Stats
	Wait hist.Summary `json:"wait_ns"` // see Link.Waits
	// ShaperQueue is the most that ever waited in one of the shaper's queues.
	ShaperQueue Count        `json:"max_shaper_queue"`
	Classes     []ClassStats `json:"classes,omitempty"`
	Cross       []CrossStats `json:"cross,omitempty"`
}

// Stats returns the totals of a direction's members so far.
func (p *Path[T]) Stats(dir int) []PortStats {
	out := make([]PortStats, len(p.ports[dir]))
	for i, q := range p.ports[dir] {
		out[i] = PortStats{Stats: q.link.Stats(), Wait: q.link.Waits(), Cross: append([]CrossStats(nil), q.crossed...)}
		if q.shape != nil {
			out[i].ShaperQueue = q.shape.most
		}
		if len(q.link.cfg.Classes) > 0 {
			for c := range q.classes {
				out[i].Classes = append(out[i].Classes, q.classes[c].stats)
			}
		}
	}
	return out
}

// Waits sums up the waits of all members of a direction, see Link.Waits.
func (p *Path[T]) Waits(dir int) hist.Summary {
	var h hist.Hist
	for _, q := range p.ports[dir] {
		h.Merge(&q.link.waits)
	}
	return h.Summary()
}

// Add adds up totals; of the queues' peaks it takes the greatest.
func (s *Stats) Add(o Stats) {
	for _, c := range [][2]*Count{
		{&s.In, &o.In},
		{&s.Delivered, &o.Delivered},
		{&s.Queue, &o.Queue},
		{&s.Loss, &o.Loss},
		{&s.Burst, &o.Burst},
		{&s.Outage, &o.Outage},
		{&s.Hole, &o.Hole},
		{&s.Policer, &o.Policer},
		{&s.Shaper, &o.Shaper},
		{&s.Duplicated, &o.Duplicated},
		{&s.Reordered, &o.Reordered},
	} {
		c[0].Packets += c[1].Packets
		c[0].Bytes += c[1].Bytes
	}
	grow(&s.MaxQueue, o.MaxQueue)
}

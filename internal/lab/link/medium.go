package link

import "time"

// medium is one serialiser and the ports that send through it: one, or one of each
// direction when they share it. It is a simulation by events, in the order of their
// times; what happens at the same time has a fixed order too: a packet is begun to be
// sent, one leaves a shaper, one of somebody else comes, one is offered.
type medium[T any] struct {
	path    *Path[T]
	ports   []*port[T]
	rate    uint64
	free    time.Duration // the serialiser is free from free + frac/rate ns on
	frac    uint64
	turn    int           // the port that is served first, when several have something to send
	waiting int           // packets in the ports' queues
	own     int           // packets that were offered and neither left nor were dropped
	done    time.Duration // until when everything has happened
}

// port is one direction's way into a medium and out of it.
type port[T any] struct {
	medium  *medium[T]
	place   int // in the medium's ports
	dir     int
	link    *Link // its wire and counts; not its queue
	wire    Wire[T]
	inbox   ring[arrival[T]] // offered and not yet there
	police  *police
	shape   *shape
	shaped  Wire[entry[T]] // on its way through the shaper
	classes []class[T]
	classOf [maxDSCP + 1]uint8
	queued  Count // in all classes
	sources []source
	crossed []CrossStats
}

// class is the queue of a Class.
type class[T any] struct {
	Class
	queue  ring[entry[T]]
	queued Count
	stats  ClassStats
}

// entry is a packet on its way to the wire.
type entry[T any] struct {
	v      T
	at     time.Duration // when it came
	flow   uint64
	size   int
	cross  int16 // its source; ownTraffic for a packet that was offered
	class  uint8
	spared bool
}

const ownTraffic = -1

// arrival is a packet that was offered.
type arrival[T any] struct {
	at time.Duration
	e  entry[T]
}

// event is what happens next in a medium.
type event uint8

const (
	nothing event = iota
	serving       // the serialiser begins with the next packet
	releasing
	crossing
	arriving
)

// next finds the next event: when, what, and of which port and source.
func (m *medium[T]) next() (at time.Duration, what event, p *port[T], src int) {
	if m.waiting > 0 {
		at, what = m.free, serving
	}
	sooner := func(t time.Duration, w event) bool {
		return what == nothing || t < at || t == at && w < what
	}
	for _, q := range m.ports {
		if q.shape != nil {
			if t, ok := q.shaped.Next(); ok && sooner(t, releasing) {
				at, what, p = t, releasing, q
			}
		}
		for i := range q.sources {
			if s := &q.sources[i]; m.path.started && !s.over && sooner(s.at, crossing) {
				at, what, p, src = s.at, crossing, q, i
			}
		}
		if q.inbox.n > 0 && sooner(q.inbox.front().at, arriving) {
			at, what, p = q.inbox.front().at, arriving, q
		}
	}
	return at, what, p, src
}

// advance lets everything happen up to and including until.
func (m *medium[T]) advance(until time.Duration) {
	for {
		at, what, p, src := m.next()
		if what == nothing || at > until {
			break
		}
		switch what {
		case serving:
			m.serve()
		case releasing:
			e, _, _, _ := p.shaped.Pop(at)
			p.arrive(at, e)
		case crossing:
			s := &p.sources[src]
			p.crossed[src].In.add(s.Size)
			p.enter(entry[T]{at: at, size: s.Size, cross: int16(src), class: p.classOf[s.DSCP], flow: crossFlow(src), spared: true})
			s.next()
		case arriving:
			e := p.inbox.pop().e
			p.link.stats.In.add(e.size)
			p.enter(e)
		}
	}
	m.done = max(m.done, until)
}

// crossFlow is the flow of a source, apart from those of Key.Flow but for a chance of
// 2^-64.
func crossFlow(src int) uint64 { return mix(uint64(src) + 0x63726f7373) }

// serve begins to send the next packet: the ports take turns, and of a port the first
// class comes first.
func (m *medium[T]) serve() {
	for i := range m.ports {
		p := m.ports[(m.turn+i)%len(m.ports)]
		for c := range p.classes {
			if p.classes[c].queue.n == 0 {
				continue
			}
			e := p.classes[c].queue.pop()
			p.classes[c].queued.take(e.size)
			p.queued.take(e.size)
			m.waiting--
			p.send(m.free, e)
			return
		}
	}
}

func (c *Count) take(size int) {
	c.Packets--
	c.Bytes -= int64(size)
}

// enter is a packet's way as far as the serialiser's queue.
func (p *port[T]) enter(e entry[T]) {
	if p.police != nil && !p.police.passes(e.at, e.flow, e.size) {
		p.drop(e, DropPolicer)
		return
	}
	if p.shape == nil {
		p.arrive(e.at, e)
		return
	}
	switch release, ok := p.shape.admit(e.at, e.flow, e.size); {
	case !ok:
		p.drop(e, DropShaper)
	case release == e.at:
		p.arrive(e.at, e)
	default:
		p.shaped.Add(e, Decision{Arrival: release})
	}
}

// arrive is a packet before the serialiser.
func (p *port[T]) arrive(at time.Duration, e entry[T]) {
	m, c := p.medium, &p.classes[e.class]
	if e.cross == ownTraffic {
		c.stats.In.add(e.size)
	}
	if at < m.free || m.waiting > 0 {
		if !fits(c.queued, e.size, c.QueueBytes, c.QueuePackets) {
			if e.cross == ownTraffic {
				c.stats.Dropped.add(e.size)
			}
			p.drop(e, DropQueue)
			return
		}
		c.queue.push(e)
		c.queued.add(e.size)
		p.queued.add(e.size)
		m.waiting++
		grow(&c.stats.MaxQueue, c.queued)
		grow(&p.link.stats.MaxQueue, p.queued)
		return
	}
	if at > m.free {
		m.frac = 0 // idle time is not saved up
	}
	p.send(at, e)
}

func grow(most *Count, now Count) {
	most.Packets = max(most.Packets, now.Packets)
	most.Bytes = max(most.Bytes, now.Bytes)
}

// send sends a packet from start on.
func (p *port[T]) send(start time.Duration, e entry[T]) {
	m := p.medium
	took, frac := serialise(e.size, m.rate, m.frac)
	m.free, m.frac = start+took, frac
	m.turn = (p.place + 1) % len(m.ports)
	if e.cross != ownTraffic {
		p.crossed[e.cross].Delivered.add(e.size)
		return
	}
	p.link.waits.Add(start - e.at)
	p.classes[e.class].stats.MaxWait = max(p.classes[e.class].stats.MaxWait, start-e.at)
	p.link.free = m.free
	d := p.link.leave(m.free, e.size, e.spared)
	m.own--
	if d.Drop != Delivered {
		p.medium.path.drop(p.dir, e.v, d.Drop)
		return
	}
	p.wire.Add(e.v, d)
}

// drop counts a packet that does not come as far as the wire.
func (p *port[T]) drop(e entry[T], why Drop) {
	if e.cross != ownTraffic {
		p.crossed[e.cross].Dropped.add(e.size)
		return
	}
	switch why {
	case DropPolicer:
		p.link.stats.Policer.add(e.size)
	case DropShaper:
		p.link.stats.Shaper.add(e.size)
	default:
		p.link.stats.Queue.add(e.size)
	}
	p.medium.own--
	p.medium.path.drop(p.dir, e.v, why)
}

// crossPatience is how long a medium that carries only traffic of others may be left
// alone: so much of it is then made up for at once.
const crossPatience = 10 * time.Millisecond

// wake returns when the medium must be advanced at the latest, for what it holds to
// arrive in time.
func (m *medium[T]) wake() (at time.Duration, ok bool) {
	at, what, _, _ := m.next()
	switch {
	case what == nothing:
		return 0, false
	case m.own == 0: // cross traffic alone
		return max(at, m.done+crossPatience), true
	}
	least := m.ports[0].link.cfg.Delay
	for _, p := range m.ports {
		least = min(least, p.link.cfg.Delay)
	}
	return at + least, true
}

package forward

import (
	"net/netip"
	"time"

	"github.com/fullbore-net/fullbore/internal/lab/link"
)

// offer tells the path of a packet.
func (d *direction) offer(at time.Duration, p packet, spared bool) {
	lp := link.Packet{Size: p.size, Spared: spared}
	// What cannot be read is a flow of its own, of class 0.
	h, _ := parseHeader(p.buf[:p.size])
	lp.DSCP, lp.Flow = h.dscp, h.key.Flow()
	if d.spread == nil {
		d.path.Offer(d.index, at, lp, p)
		return
	}
	lp.Spread = h.key.Spread(d.spread.by, d.spread.seed)
	d.spread.note(h.key, lp.Flow, d.path.Offer(d.index, at, lp, p), p.size)
}

// spread is how a direction's flows are spread over members, and what came of it.
type spread struct {
	by    link.Hash
	seed  uint64
	flows map[uint64]*FlowMember
	order []*FlowMember
}

func newSpread(by link.Hash, seed uint64) *spread {
	return &spread{by: by, seed: seed, flows: map[uint64]*FlowMember{}}
}

func (s *spread) note(k link.Key, flow uint64, member, size int) {
	f := s.flows[flow]
	if f == nil {
		f = &FlowMember{
			Src:   netip.AddrPortFrom(netip.AddrFrom16(k.Src).Unmap(), k.SrcPort),
			Dst:   netip.AddrPortFrom(netip.AddrFrom16(k.Dst).Unmap(), k.DstPort),
			Proto: k.Proto, Member: member,
		}
		s.flows[flow] = f
		s.order = append(s.order, f)
	}
	f.Offered.Packets++
	f.Offered.Bytes += int64(size)
}

// list returns the flows so far; s may be nil.
func (s *spread) list() []FlowMember {
	if s == nil {
		return nil
	}
	out := make([]FlowMember, len(s.order))
	for i, f := range s.order {
		out[i] = *f
	}
	return out
}

// box is the state of a Box.
type box struct {
	Box
	edits bool
	mtu   int
	piece []byte // a fragment
	stats BoxStats
}

func newBox(cfg Box, mtu int) box {
	b := box{Box: cfg, edits: cfg.edits(), mtu: cfg.MTU}
	if cfg.MTU > 0 {
		b.piece = make([]byte, 0, mtu)
	}
	return b
}

func (b *box) active() bool { return b.edits || b.mtu > 0 }

func (b *box) edit(p []byte) {
	if b.Box.edit(p) {
		b.stats.Edited.Packets++
		b.stats.Edited.Bytes += int64(len(p))
	}
}

// narrow is the hop behind the link, for a packet that does not fit through it.
func (d *direction) narrow(now, due time.Duration, p packet, again bool) {
	b := &d.box
	whole := p.buf[:p.size]
	if mayFragment(whole) {
		b.stats.Fragmented.Packets++
		b.stats.Fragmented.Bytes += int64(p.size)
		if d.truth != nil {
			d.truth.Observe(now, whole)
			d.truth.Left(now, p.ref, d.again)
		}
		fragments(whole, b.mtu, b.piece, func(piece []byte) {
			b.stats.Fragments++
			d.write(piece)
		})
	} else {
		b.stats.TooBig.Packets++
		b.stats.TooBig.Bytes += int64(p.size)
		if d.truth != nil && !d.again {
			d.truth.Lost(p.ref)
		}
		if !b.Silent {
			d.back.tell(due, whole, b)
		}
	}
	d.again = again
	if !again {
		d.release(p)
	}
}

// tell sends the hop's answer about a packet of the other direction on its way. No fault
// touches it.
func (d *direction) tell(at time.Duration, about []byte, by *box) {
	buf := d.pool.get()
	answer, ok := tooBig(about, by.mtu, buf)
	if !ok {
		d.pool.put(buf)
		return
	}
	by.stats.Told++
	d.last = max(d.last, at)
	d.schedule(d.last, packet{buf: buf, size: len(answer)}, true)
}

package osnet

import (
	"fmt"
	"net/netip"
)

// PacketReceiver takes batches of datagrams off a PacketConn, each with who sent it: one
// call (recvmmsg, Linux) takes what is there, and where the system joins the datagrams of
// one sender (UDP_GRO, UDP_RECV_MAX_COALESCED_SIZE) it takes them joined and gives them out
// one by one. Elsewhere a call takes one message. It belongs to one goroutine, allocates
// nothing after its first datagram, and neither owns nor closes the PacketConn. The memory
// for many messages is there only while datagrams come: see Release.
//
// From New on the PacketConn's own Read may return several datagrams as one, so nobody
// should call it any more.
type PacketReceiver struct {
	p        *PacketConn
	size     int
	coalesce bool

	each  int    // bytes of buf for each message
	words int    // of ctl, likewise
	buf   []byte // of all messages, one after the other; nil = released
	ctl   []uint64
	msgs  []packetMessage // those of the last Receive first
	parts []packetPart    // the datagrams of the last Receive
	calls *packetBatch    // nil = one message a call

	most, mostBytes int // datagrams of one message, and their bytes
}

// packetMessage is what one message of the system said, beside its bytes.
type packetMessage struct {
	from netip.AddrPort
	n    int // bytes in buf
	told int // bytes in ctl
}

// packetPart is where a datagram lies: at bytes after its message's start.
type packetPart struct{ message, at, size int32 }

// NewPacketReceiver prepares for datagrams of up to size bytes and up to batch messages a
// call, 1 to 1024; where the system joins datagrams (each message then has 64 KiB of memory)
// Receive may return more than batch.
func NewPacketReceiver(p *PacketConn, size, batch int) (*PacketReceiver, error) {
	return newPacketReceiver(p, size, batch, Capabilities())
}

func newPacketReceiver(p *PacketConn, size, batch int, can Caps) (*PacketReceiver, error) {
	if size < 0 || size > 65535 {
		return nil, fmt.Errorf("osnet: datagrams of %d bytes: 0 to 65535 are possible", size)
	}
	if batch < 1 || batch > 1024 {
		return nil, fmt.Errorf("osnet: batches of %d messages: 1 to 1024 are possible", batch)
	}
	r := &PacketReceiver{p: p, size: size, words: controlWords}
	if can.Coalesce {
		r.coalesce = rawControl(p.rc, func(fd uintptr) error { return setCoalesce(fd, true) }) == nil
	}
	// One byte more tells a datagram of size bytes from a longer one.
	r.each = size + 1
	parts := batch
	if r.coalesce {
		r.each = 64 << 10
		parts *= 64 // more only of a sender's system that sends more as one (UDP_MAX_SEGMENTS, Linux 6.9)
	}
	if !can.Batch {
		batch = 1
	}
	r.msgs = make([]packetMessage, batch)
	r.parts = make([]packetPart, 0, parts)
	if can.Batch {
		r.calls = newPacketBatch(r)
	} else {
		r.reserve()
	}
	return r, nil
}

func (r *PacketReceiver) reserve() {
	r.buf = make([]byte, r.each*len(r.msgs))
	r.ctl = make([]uint64, r.words*len(r.msgs))
}

// Release gives the memory of a receiver of batches back, and what Message returned with
// it; the next Receive that finds a datagram makes it anew.
func (r *PacketReceiver) Release() {
	if r.calls != nil {
		r.buf, r.ctl, r.parts = nil, nil, r.parts[:0]
		r.calls.detach()
	}
}

// Receive waits for a datagram, takes what else is there, and returns how many it has, at
// least one. Errors are those of PacketConn.Read: os.ErrDeadlineExceeded after its
// SetReadDeadline, net.ErrClosed after its Close, ….
func (r *PacketReceiver) Receive() (n int, err error) {
	r.parts = r.parts[:0]
	m := 1
	if r.calls != nil {
		m, err = r.calls.receive(r)
	} else {
		err = r.receiveOne()
	}
	if err != nil {
		return 0, err
	}
	for i := range m {
		r.divide(i)
	}
	return len(r.parts), nil
}

// receiveOne is Receive for systems without batches.
func (r *PacketReceiver) receiveOne() error {
	n, told, _, from, err := r.p.u.ReadMsgUDPAddrPort(r.buf[:r.each], wordBytes(r.ctl[:r.words]))
	if err != nil && !(isMessageCut(err) && from.IsValid()) {
		return err
	}
	r.msgs[0] = packetMessage{from: netip.AddrPortFrom(from.Addr().Unmap(), from.Port()), n: n, told: told}
	return nil
}

// divide notes the datagrams of message i.
func (r *PacketReceiver) divide(i int) {
	n, segment := r.msgs[i].n, 0
	if r.coalesce {
		segment = r.arrival(i).segment
	}
	if segment <= 0 || segment >= n {
		r.parts = append(r.parts, packetPart{int32(i), 0, int32(n)})
		return
	}
	r.most, r.mostBytes = max(r.most, (n+segment-1)/segment), max(r.mostBytes, n)
	for at := 0; at < n; at += segment {
		r.parts = append(r.parts, packetPart{int32(i), int32(at), int32(min(segment, n-at))})
	}
}

// arrival reads the control messages of message i.
func (r *PacketReceiver) arrival(i int) arrival {
	return packetInfo(r.ctl[i*r.words:][:r.words], r.msgs[i].told)
}

// Message returns datagram i of the last Receive and who sent it, in the form of
// PacketConn.Read; data is valid until the next Receive. One longer than size is cut to it.
func (r *PacketReceiver) Message(i int) (data []byte, from netip.AddrPort, truncated bool) {
	p := r.parts[i]
	n := min(int(p.size), r.size)
	at := int(p.message)*r.each + int(p.at)
	return r.buf[at:][:n:n], r.msgs[p.message].from, int(p.size) > r.size
}

// Batched reports that one call takes what is there (recvmmsg).
func (r *PacketReceiver) Batched() bool { return r.calls != nil }

// Joined returns the most datagrams that came as one message so far, and the most bytes of
// such; 0 = none came joined.
func (r *PacketReceiver) Joined() (datagrams, bytes int) { return r.most, r.mostBytes }

// Local returns the local address that datagram i of the last Receive was sent to, invalid
// when the system does not tell, and when the kernel had it, ns of CLOCK_REALTIME (0 = it
// does not tell; those that came joined have one time).
func (r *PacketReceiver) Local(i int) (to netip.Addr, at int64) {
	m := int(r.parts[i].message)
	a := r.arrival(m)
	return localOf(a, r.msgs[m].from), a.at
}

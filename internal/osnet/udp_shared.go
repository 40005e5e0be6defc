package osnet

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync"
	"time"

	"github.com/fullbore-net/fullbore/result"
)

// sharedQueue is what a stream's queue holds when nobody asked for more, in bytes.
const sharedQueue = 4 << 20

// errShared is why an option cannot be set for one stream.
var errShared = fmt.Errorf("all streams of this server share one UDP socket: %w", errors.ErrUnsupported)

// Shared makes one wildcard socket serve many streams, for systems that do not separate
// connected sockets on one port (F15). Whoever reads the PacketConn hands each datagram
// to Deliver. All methods may be called by any goroutine.
type Shared struct {
	p *PacketConn

	mu      sync.RWMutex
	streams map[netip.AddrPort]*sharedConn
	asked   int64 // bytes of receive buffer, of all streams
}

// NewShared shares p, which stays its owner's: Close it after the streams.
func NewShared(p *PacketConn) *Shared {
	return &Shared{p: p, streams: map[netip.AddrPort]*sharedConn{}}
}

// Open returns a stream with remote, which gets what Deliver is given from there and
// sends from the local address (invalid: as the route has it). A second stream with the
// same remote address and port is an *AddrError: PortTaken.
func (s *Shared) Open(local netip.Addr, remote netip.AddrPort) (*Conn, error) {
	remote = netip.AddrPortFrom(remote.Addr().Unmap(), remote.Port())
	own := s.p.LocalAddr()
	if local = local.Unmap(); local.IsValid() {
		own = netip.AddrPortFrom(local, own.Port())
	}
	c := &sharedConn{
		s: s, local: own, remote: remote, limit: sharedQueue,
		ready: make(chan struct{}, 1), closed: make(chan struct{}), readBy: newDeadline(), writeBy: newDeadline(),
	}
	c.source = c.control[:s.p.sourceFor(c.control[:], remote, local)/8]
	c.dropsBefore, _ = s.p.SocketDrops()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.streams[remote] != nil {
		return nil, &AddrError{Reason: PortTaken, Op: "connect", Local: own, Remote: remote, Err: errors.New("there is a stream with it")}
	}
	s.streams[remote] = c
	conn := NewConn(c)
	conn.shared = c
	return conn, nil
}

// Deliver gives a copy of b to the stream with from and reports whether there is one. A
// datagram for which its queue has no room is dropped and counted (Conn.SocketDrops).
func (s *Shared) Deliver(from netip.AddrPort, b []byte, at int64) bool {
	s.mu.RLock()
	c := s.streams[from]
	s.mu.RUnlock()
	if c == nil && from.Addr().Is4In6() {
		return s.Deliver(netip.AddrPortFrom(from.Addr().Unmap(), from.Port()), b, at)
	}
	return c != nil && c.deliver(b, at)
}

// parcel is a datagram in a queue.
type parcel struct {
	data []byte
	at   int64
}

// sharedConn is one stream's net.Conn.
type sharedConn struct {
	s             *Shared
	local, remote netip.AddrPort
	control       [controlWords]uint64
	source        []uint64 // the control message that chooses local, within control
	dropsBefore   int64    // of the socket, when the stream began

	ready  chan struct{} // has an element when the queue may have one
	closed chan struct{}

	readBy, writeBy *deadline

	mu     sync.Mutex
	queue  []parcel // from head on, then around
	head   int
	count  int
	held   int64 // bytes
	limit  int64
	asked  int64
	drops  int64
	spare  [][]byte // buffers that were read
	closes bool
}

// overhead is what a queued datagram costs beside its bytes, so that empty ones count.
const overhead = 64

func (c *sharedConn) deliver(b []byte, at int64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closes {
		return false
	}
	cost := int64(len(b) + overhead)
	if c.held+cost > c.limit {
		c.drops++
		return true
	}
	if c.count == len(c.queue) {
		c.widen()
	}
	var buf []byte
	if n := len(c.spare); n > 0 {
		buf, c.spare = c.spare[n-1], c.spare[:n-1]
	}
	c.queue[(c.head+c.count)%len(c.queue)] = parcel{append(buf[:0], b...), at}
	c.count++
	c.held += cost
	c.wake()
	return true
}

func (c *sharedConn) widen() {
	wide := make([]parcel, max(64, 2*len(c.queue)))
	n := copy(wide, c.queue[c.head:])
	copy(wide[n:], c.queue[:c.head])
	c.queue, c.head = wide, 0
}

func (c *sharedConn) wake() {
	select {
	case c.ready <- struct{}{}:
	default:
	}
}

// take moves the first datagram to b.
func (c *sharedConn) take(b []byte) (n int, at int64, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.count == 0 {
		return 0, 0, false
	}
	p := &c.queue[c.head]
	n, at = copy(b, p.data), p.at
	c.held -= int64(len(p.data) + overhead)
	c.spare = append(c.spare, p.data)
	p.data = nil
	c.head = (c.head + 1) % len(c.queue)
	if c.count--; c.count > 0 {
		c.wake()
	}
	return n, at, true
}

// readStamped is Read with the time at which the kernel had the datagram.
func (c *sharedConn) readStamped(b []byte) (int, int64, error) {
	for {
		// What is there is read even when the deadline has passed: a reader that was not
		// scheduled for a while must not take that for silence.
		if n, at, ok := c.take(b); ok {
			return n, at, nil
		}
		select {
		case <-c.closed:
			return 0, 0, c.fail("read", net.ErrClosed)
		case <-c.readBy.passed():
			return 0, 0, c.fail("read", os.ErrDeadlineExceeded)
		default:
		}
		select {
		case <-c.ready:
		case <-c.closed:
		case <-c.readBy.passed():
		}
	}
}

// Read reads one datagram; what does not fit b is lost.
func (c *sharedConn) Read(b []byte) (int, error) {
	n, _, err := c.readStamped(b)
	return n, err
}

func (c *sharedConn) Write(b []byte) (int, error) {
	select {
	case <-c.closed:
		return 0, c.fail("write", net.ErrClosed)
	case <-c.writeBy.passed():
		return 0, c.fail("write", os.ErrDeadlineExceeded)
	default:
	}
	return c.s.p.write(b, c.remote, c.source)
}

func (c *sharedConn) fail(op string, err error) error {
	return &net.OpError{Op: op, Net: "udp", Source: c.LocalAddr(), Addr: c.RemoteAddr(), Err: err}
}

func (c *sharedConn) Close() error {
	c.mu.Lock()
	if c.closes {
		c.mu.Unlock()
		return net.ErrClosed
	}
	c.closes = true
	c.queue, c.spare, c.count = nil, nil, 0
	c.mu.Unlock()
	close(c.closed)
	c.readBy.set(time.Time{})
	c.writeBy.set(time.Time{})
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	delete(c.s.streams, c.remote)
	c.s.asked -= c.asked
	return nil
}

func (c *sharedConn) LocalAddr() net.Addr  { return net.UDPAddrFromAddrPort(c.local) }
func (c *sharedConn) RemoteAddr() net.Addr { return net.UDPAddrFromAddrPort(c.remote) }

func (c *sharedConn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

func (c *sharedConn) SetReadDeadline(t time.Time) error  { return c.setDeadline(c.readBy, t) }
func (c *sharedConn) SetWriteDeadline(t time.Time) error { return c.setDeadline(c.writeBy, t) }

func (c *sharedConn) setDeadline(d *deadline, t time.Time) error {
	select {
	case <-c.closed:
		return net.ErrClosed
	default:
	}
	d.set(t)
	return nil
}

// socketDrops is what the stream's queue had no room for, and what the socket dropped
// since the stream began: of whichever stream, so an upper bound when there are several.
func (c *sharedConn) socketDrops() (int64, error) {
	kernel, err := c.s.p.SocketDrops()
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		return c.drops, err // at least
	}
	return c.drops + (kernel-c.dropsBefore)&(1<<32-1), nil
}

// growReceive makes room in the stream's queue and, for all streams together, in the socket.
func (c *sharedConn) growReceive(bytes int64) ([]result.Notice, error) {
	c.mu.Lock()
	more := max(0, bytes-c.asked)
	c.asked += more
	c.limit = max(c.limit, bytes)
	c.mu.Unlock()
	c.s.mu.Lock()
	c.s.asked += more
	all := c.s.asked
	c.s.mu.Unlock()
	return c.s.p.GrowReceive(all)
}

// apply says which of the options that concern one stream cannot be had.
func (c *sharedConn) apply(o Options) (notices []result.Notice, err error) {
	refuse := func(option, value string) {
		notices = append(notices, refused(&OptionError{Option: option, Value: value, Err: errShared}))
	}
	if o.TOS != 0 {
		refuse("tos", fmt.Sprint(o.TOS))
	}
	if o.FQRate != 0 {
		refuse("fq-rate", fmt.Sprintf("%d bit/s", o.FQRate))
	}
	if o.DontFragment {
		refuse("dont-fragment", "")
	}
	if o.Window > 0 {
		n, err := c.growReceive(o.Window)
		return append(notices, n...), err
	}
	return notices, nil
}

// pathMTU asks a socket that is connected like the stream would be.
func (c *sharedConn) pathMTU() (int, error) {
	o := Options{}
	if a := c.local.Addr(); a.IsValid() && !a.IsUnspecified() {
		o.BindHost = a.String()
	}
	like, _, err := Dial(context.Background(), "udp", c.remote, o)
	if err != nil {
		return 0, fmt.Errorf("osnet: path MTU: %w", err)
	}
	defer like.Close()
	return like.PathMTU()
}

// deadline is a moment that can be waited for and moved.
type deadline struct {
	mu    sync.Mutex
	timer *time.Timer
	done  chan struct{} // closed when it has passed
}

func newDeadline() *deadline { return &deadline{done: make(chan struct{})} }

func (d *deadline) passed() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.done
}

func (d *deadline) set(t time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.timer != nil && !d.timer.Stop() {
		<-d.done // it is just firing
	}
	d.timer = nil
	over := false
	select {
	case <-d.done:
		over = true
	default:
	}
	switch left := time.Until(t); {
	case t.IsZero() || left > 0:
		if over {
			d.done = make(chan struct{})
		}
		if !t.IsZero() {
			done := d.done
			d.timer = time.AfterFunc(left, func() { close(done) })
		}
	case !over:
		close(d.done)
	}
}

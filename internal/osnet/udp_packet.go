package osnet

import (
	"fmt"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"github.com/fullbore-net/fullbore/result"
)

// controlWords is room for the control messages that a PacketConn asks for: an address
// and a time stamp, each at most 48 bytes, in units that are aligned as they must be.
const controlWords = 16

// arrival is what control messages say about a datagram.
type arrival struct {
	to      netip.Addr // the local address that it was sent to
	at      int64      // ns of CLOCK_REALTIME, 0 = not told
	segment int        // bytes of each of the datagrams that came as one, 0 = it is one
}

// PacketConn is the wildcard UDP socket of a server: it knows to which of this
// machine's addresses a datagram was sent, so that the answer can come from there.
// Read belongs to one goroutine at a time; everything else may be called by any.
type PacketConn struct {
	u      *net.UDPConn
	rc     syscall.RawConn
	v6     bool // the socket's family
	info   bool // the system tells the local address
	stamps bool // and when a datagram came

	whole sync.Mutex // held while the socket is in the mode of WriteWhole

	control [controlWords]uint64 // of Read
}

// NewPacketConn takes over u, an unconnected socket (ListenUDP), and asks the system
// for the local address of each datagram (IP_PKTINFO, IPV6_RECVPKTINFO; FreeBSD
// IP_RECVDSTADDR) and its time, where it has them.
func NewPacketConn(u *net.UDPConn) (*PacketConn, error) {
	p := &PacketConn{u: u}
	var err error
	if p.rc, err = u.SyscallConn(); err != nil {
		return nil, fmt.Errorf("osnet: packet socket: %w", err)
	}
	err = rawControl(p.rc, func(fd uintptr) error {
		p.v6 = isIPv6Socket(fd)
		p.info = setPacketInfo(fd, p.v6) == nil
		p.stamps = setStamps(fd) == nil
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("osnet: packet socket: %w", err)
	}
	return p, nil
}

// LocalAddr returns the address that the socket is bound to.
func (p *PacketConn) LocalAddr() netip.AddrPort {
	a := p.u.LocalAddr().(*net.UDPAddr).AddrPort()
	return netip.AddrPortFrom(a.Addr().Unmap(), a.Port())
}

// Read waits for a datagram and returns its length, who sent it, the local address it
// was sent to (invalid when the system does not tell) and when the kernel had it (ns of
// CLOCK_REALTIME, 0 when it does not tell). What does not fit b is lost. IPv4-mapped
// addresses come as IPv4; a link-local one has its zone. Errors are those of the
// net.UDPConn: os.ErrDeadlineExceeded, net.ErrClosed, ….
func (p *PacketConn) Read(b []byte) (n int, from netip.AddrPort, to netip.Addr, at int64, err error) {
	n, left, _, from, err := p.u.ReadMsgUDPAddrPort(b, wordBytes(p.control[:]))
	if err != nil && !(isMessageCut(err) && from.IsValid()) {
		return 0, netip.AddrPort{}, netip.Addr{}, 0, err
	}
	from = netip.AddrPortFrom(from.Addr().Unmap(), from.Port())
	a := packetInfo(p.control[:], left)
	return n, from, localOf(a, from), a.at, nil
}

// localOf is the local address of a datagram as Read gives it.
func localOf(a arrival, from netip.AddrPort) netip.Addr {
	switch to := a.to.Unmap(); {
	case to.IsMulticast():
		return netip.Addr{} // nothing can be sent from there
	case to.Is6() && to.IsLinkLocalUnicast():
		return to.WithZone(from.Addr().Zone())
	default:
		return to
	}
}

// Write sends b to to, from this machine's address from; when that is invalid, or the
// system cannot choose it, from the one that the route prefers.
func (p *PacketConn) Write(b []byte, to netip.AddrPort, from netip.Addr) (int, error) {
	var room [controlWords]uint64
	return p.write(b, to, room[:p.sourceFor(room[:], to, from)/8])
}

// WriteClass is Write with a traffic class byte (DSCP × 4), where the system can set it for one
// datagram; else it goes without.
func (p *PacketConn) WriteClass(b []byte, to netip.AddrPort, from netip.Addr, class uint8) (int, error) {
	var room [controlWords]uint64
	n := p.sourceFor(room[:], to, from)
	if class != 0 {
		n += classControl(room[n/8:], class, to.Addr().Unmap().Is4())
	}
	return p.write(b, to, room[:n/8])
}

// sourceFor builds the control message that makes from the source, in control, and
// returns its length in bytes, 0 for none. Both addresses must be of one family.
func (p *PacketConn) sourceFor(control []uint64, to netip.AddrPort, from netip.Addr) int {
	from = from.Unmap()
	if !p.info || !from.IsValid() || from.IsUnspecified() || from.Is4() != to.Addr().Unmap().Is4() {
		return 0
	}
	return sourceControl(control, from)
}

func (p *PacketConn) write(b []byte, to netip.AddrPort, control []uint64) (int, error) {
	if !p.v6 {
		to = netip.AddrPortFrom(to.Addr().Unmap(), to.Port())
	}
	n, _, err := p.u.WriteMsgUDPAddrPort(b, wordBytes(control), to)
	return n, err
}

// wordBytes is the memory of w as bytes.
func wordBytes(w []uint64) []byte {
	if len(w) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&w[0])), 8*len(w))
}

// SetReadDeadline makes a waiting and every later Read return os.ErrDeadlineExceeded at
// t; the zero time takes it back.
func (p *PacketConn) SetReadDeadline(t time.Time) error { return p.u.SetReadDeadline(t) }

// Close closes the socket.
func (p *PacketConn) Close() error { return p.u.Close() }

// GrowReceive is that of Conn: a server's socket must hold what comes while nobody reads.
func (p *PacketConn) GrowReceive(bytes int64) ([]result.Notice, error) {
	return (&Conn{nc: p.u, rc: p.rc}).GrowReceive(bytes)
}

// SocketDrops is that of Conn.
func (p *PacketConn) SocketDrops() (int64, error) {
	return (&Conn{nc: p.u, rc: p.rc}).SocketDrops()
}

// Stray is a datagram that came to a stream's socket before it was the stream's alone.
type Stray struct {
	From netip.AddrPort
	Data []byte
}

package osnet

import (
	"net"
	"net/netip"
	"os"
	"strconv"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// packetBatch is recvmmsg on a socket that stays with Go's poller, so that deadlines and
// Close work.
type packetBatch struct {
	r *PacketReceiver
	batch
	names []unix.RawSockaddrInet6 // room for those of both families
	used  int                     // messages whose headers the kernel has overwritten
	got   int
	errno syscall.Errno
	call  func(fd uintptr) bool // try, made once: a method value is an allocation
	zones map[uint32]string
}

func newPacketBatch(r *PacketReceiver) *packetBatch {
	n := len(r.msgs)
	b := &packetBatch{r: r, batch: newBatch(n), names: make([]unix.RawSockaddrInet6, n), used: n, zones: map[uint32]string{}}
	for i := range b.msgs {
		b.iov[i].SetLen(r.each)
		b.msgs[i].hdr.Name = (*byte)(unsafe.Pointer(&b.names[i]))
	}
	b.call = b.try
	return b
}

// attach points the messages into r's memory, detach takes that back.
func (b *packetBatch) attach() {
	for i := range b.msgs {
		b.iov[i].Base = &b.r.buf[i*b.r.each]
		b.msgs[i].hdr.Control = (*byte)(unsafe.Pointer(&b.r.ctl[i*b.r.words]))
	}
}

func (b *packetBatch) detach() {
	for i := range b.msgs {
		b.iov[i].Base, b.msgs[i].hdr.Control = nil, nil
	}
}

// try makes one call and reports whether it is over; false = wait for data.
func (b *packetBatch) try(fd uintptr) bool {
	if b.r.buf == nil {
		if b.errno = peek(fd); b.errno != 0 {
			b.got = 0
			return b.errno != unix.EAGAIN
		}
		b.r.reserve()
		b.attach()
	}
	for {
		for i := range b.msgs[:b.used] {
			b.msgs[i].hdr.Namelen = unix.SizeofSockaddrInet6
			b.msgs[i].hdr.SetControllen(8 * controlWords)
		}
		n, _, e := syscall.Syscall6(unix.SYS_RECVMMSG, fd, uintptr(unsafe.Pointer(&b.msgs[0])),
			uintptr(len(b.msgs)), unix.MSG_DONTWAIT, 0, 0)
		b.got, b.errno, b.used = int(n), e, 1 // one that failed was touched too
		switch e {
		case 0:
			b.used = min(b.got+1, len(b.msgs))
			return true
		case unix.EINTR:
		case unix.EAGAIN:
			return false
		default:
			return true
		}
	}
}

// peek asks whether a datagram is there; EAGAIN = none.
func peek(fd uintptr) syscall.Errno {
	for {
		_, _, e := syscall.Syscall6(unix.SYS_RECVFROM, fd, 0, 0, unix.MSG_PEEK|unix.MSG_DONTWAIT, 0, 0)
		if e != unix.EINTR {
			return e
		}
	}
}

func (b *packetBatch) receive(r *PacketReceiver) (int, error) {
	if err := r.p.rc.Read(b.call); err != nil {
		return 0, err
	}
	if b.errno != 0 {
		return 0, &net.OpError{Op: "read", Net: "udp", Source: r.p.u.LocalAddr(), Err: os.NewSyscallError("recvmmsg", b.errno)}
	}
	for i := range b.got {
		m := &b.msgs[i]
		r.msgs[i] = packetMessage{from: b.from(i), n: int(m.len), told: int(m.hdr.Controllen)}
	}
	return b.got, nil
}

// from reads the address of message i.
func (b *packetBatch) from(i int) netip.AddrPort {
	sa := &b.names[i]
	port := (*[2]byte)(unsafe.Pointer(&sa.Port)) // network order; at one place in both families
	n := uint16(port[0])<<8 | uint16(port[1])
	switch sa.Family {
	case unix.AF_INET:
		return netip.AddrPortFrom(netip.AddrFrom4((*unix.RawSockaddrInet4)(unsafe.Pointer(sa)).Addr), n)
	case unix.AF_INET6:
		a := netip.AddrFrom16(sa.Addr).Unmap()
		if sa.Scope_id != 0 && a.Is6() {
			a = a.WithZone(b.zone(sa.Scope_id))
		}
		return netip.AddrPortFrom(a, n)
	}
	return netip.AddrPort{}
}

// zone is an interface's name, or its number when it has gone.
func (b *packetBatch) zone(id uint32) string {
	name, ok := b.zones[id]
	if !ok {
		name = strconv.Itoa(int(id))
		if i, err := net.InterfaceByIndex(int(id)); err == nil {
			name = i.Name
		}
		b.zones[id] = name
	}
	return name
}

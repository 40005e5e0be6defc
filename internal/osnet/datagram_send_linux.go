package osnet

import (
	"errors"
	"fmt"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	// maxSegments is UDP_MAX_SEGMENTS of every kernel that has UDP_SEGMENT: 64 since
	// Linux 4.18 (include/linux/udp.h), 128 since 6.9. More is EINVAL on the older ones.
	maxSegments = 64
	// maxPayload is the largest payload of one UDP packet over IPv4 without options.
	maxPayload = 65535 - 20 - 8
	// maxPayload6 is that over IPv6, whose own header does not count.
	maxPayload6 = 65535 - 8
	// maxMessages is UIO_MAXIOV: sendmmsg and recvmmsg take no more messages at once.
	maxMessages = 1024
)

// mmsghdr is struct mmsghdr (recvmmsg(2)).
type mmsghdr struct {
	hdr unix.Msghdr
	len uint32
}

// DatagramSender sends batches of datagrams of one size on a connected UDP socket. It
// belongs to one goroutine, allocates nothing after New, and neither owns nor closes
// the descriptor.
type DatagramSender struct {
	fd, size int
	buf      []byte // all datagrams, one after the other
	plain    batch  // one message a datagram
	super    batch  // one message up to per datagrams
	per      int
	segment  bool
	control  []uint64 // the UDP_SEGMENT message that all super-packets share

	queue                errorQueue
	refused, unreachable int64
}

type batch struct {
	msgs []mmsghdr
	iov  []unix.Iovec
}

func newBatch(n int) batch {
	b := batch{msgs: make([]mmsghdr, n), iov: make([]unix.Iovec, n)}
	for i := range b.msgs {
		b.msgs[i].hdr.Iov = &b.iov[i]
		b.msgs[i].hdr.SetIovlen(1)
	}
	return b
}

// NewDatagramSender prepares memory for count datagrams of size bytes, at most 1024.
// With segment up to 64 of them, and at most 65507 bytes, go through the stack as one
// super-packet that the device or the receiver cuts (UDP_SEGMENT, Linux 4.18).
//
// It turns on IP_RECVERR, so that a datagram that this host's own queue did not take is
// ENOBUFS rather than silence (net/ipv4/udp.c, udp_send_skb), and no ICMP error is lost
// in the middle of a batch.
func NewDatagramSender(fd, size, count int, segment bool) (*DatagramSender, error) {
	if size < 1 || size > maxPayload6 {
		return nil, fmt.Errorf("osnet: datagrams of %d bytes: 1 to %d are possible", size, maxPayload6)
	}
	if count < 1 || count > maxMessages {
		return nil, fmt.Errorf("osnet: batches of %d datagrams: 1 to %d are possible", count, maxMessages)
	}
	d := &DatagramSender{
		fd: fd, size: size, buf: make([]byte, size*count),
		per: min(maxSegments, maxPayload/size, count), plain: newBatch(count),
	}
	for i := range d.plain.iov {
		d.plain.iov[i].Base = &d.buf[i*size]
		d.plain.iov[i].SetLen(size)
	}
	if segment && d.per > 1 {
		d.segment = true
		d.control = segmentControl(size)
		d.super = newBatch((count + d.per - 1) / d.per)
		for i := range d.super.iov {
			d.super.iov[i].Base = &d.buf[i*d.per*size]
			d.super.iov[i].SetLen(d.superLen(i))
			h := &d.super.msgs[i].hdr
			h.Control = (*byte)(unsafe.Pointer(unsafe.SliceData(d.control)))
			h.SetControllen(8 * len(d.control))
		}
	}
	d.queue.prepare()
	return d, d.Add(fd)
}

// Add prepares another socket for Use: it gets what NewDatagramSender gave the first.
func (d *DatagramSender) Add(fd int) error {
	// A kernel without them reports less, and nothing else changes.
	_ = unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_RECVERR, 1)
	if socketFamily(uintptr(fd)) == 6 {
		_ = unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_RECVERR, 1)
	}
	return nil
}

// Use makes the next Sends go to fd, which is the first socket or one given to Add, so
// that one set of buffers serves many flows. Refused and Unreachable count on.
func (d *DatagramSender) Use(fd int) { d.fd = fd }

// superLen is how many bytes super-packet i has when the whole batch is sent.
func (d *DatagramSender) superLen(i int) int {
	return min(d.per*d.size, len(d.buf)-i*d.per*d.size)
}

// segmentControl is the control message that says where to cut. Its memory is aligned
// as a cmsghdr must be.
func segmentControl(size int) []uint64 {
	b := make([]uint64, unix.CmsgSpace(2)/8)
	h := (*unix.Cmsghdr)(unsafe.Pointer(&b[0]))
	h.Level, h.Type = unix.IPPROTO_UDP, unix.UDP_SEGMENT
	h.SetLen(unix.CmsgLen(2))
	*(*uint16)(unsafe.Add(unsafe.Pointer(&b[0]), unix.CmsgLen(0))) = uint16(size)
	return b
}

// Datagram returns the memory of datagram i. What is written there stays until it is
// overwritten, also over a Send.
func (d *DatagramSender) Datagram(i int) []byte {
	return d.buf[i*d.size : (i+1)*d.size : (i+1)*d.size]
}

// Segmented reports whether datagrams leave in super-packets.
func (d *DatagramSender) Segmented() bool { return d.segment }

// Refused is how many ICMP errors said so far that nobody listens at the remote port.
func (d *DatagramSender) Refused() int64 { return d.refused }

// Unreachable is how many other ICMP errors came back. They end no call: a path may heal.
func (d *DatagramSender) Unreachable() int64 { return d.unreachable }

// Send sends the first n datagrams and returns how many the kernel took. An errno
// comes with whatever was sent before, and always when that is less than n: EINTR to
// go on with the rest, ECONNREFUSED for an ICMP error of earlier datagrams (the one at
// hand was not sent), EMSGSIZE, ENOBUFS (this host's queue was full, the datagram did
// not leave), EAGAIN after SO_SNDTIMEO or on a non-blocking socket. A kernel or device
// that cannot cut super-packets makes the sender go on without them, as if interrupted.
func (d *DatagramSender) Send(n int) (sent int, errno syscall.Errno) {
	switch {
	case n <= 0:
		return 0, 0
	case d.segment:
		return d.sendSuper(n)
	case n == 1:
		_, _, e := syscall.Syscall6(unix.SYS_SENDTO, uintptr(d.fd), uintptr(unsafe.Pointer(unsafe.SliceData(d.buf))), uintptr(d.size), 0, 0, 0)
		if e != 0 {
			return 0, d.failed(e)
		}
		return 1, 0
	}
	sent, e := d.sendBatch(&d.plain, n)
	if e != 0 || sent < n {
		return sent, d.failed(e)
	}
	return sent, 0
}

func (d *DatagramSender) sendSuper(n int) (int, syscall.Errno) {
	count := (n + d.per - 1) / d.per
	last := count - 1
	d.super.iov[last].SetLen((n - last*d.per) * d.size)
	taken, e := d.sendBatch(&d.super, count)
	d.super.iov[last].SetLen(d.superLen(last))
	switch {
	case e == 0 && taken == count:
		return n, 0
	case e == 0:
		return taken * d.per, d.failed(0)
	}
	e = d.failed(e)
	// EINVAL: no UDP_SEGMENT, or datagrams that would have to be fragmented (EMSGSIZE
	// since Linux 6.14). EIO: a device without checksum offload, or IPsec (udp_send_skb).
	// Without super-packets the next call tells what is true of a single datagram.
	if e == unix.EIO || e == unix.EINVAL || e == unix.EMSGSIZE {
		d.segment = false
		return 0, unix.EINTR
	}
	return 0, e
}

func (d *DatagramSender) sendBatch(b *batch, n int) (int, syscall.Errno) {
	if n == 1 {
		_, _, e := syscall.Syscall(unix.SYS_SENDMSG, uintptr(d.fd), uintptr(unsafe.Pointer(&b.msgs[0].hdr)), 0)
		if e != 0 {
			return 0, e
		}
		return 1, 0
	}
	m, _, e := syscall.Syscall6(unix.SYS_SENDMMSG, uintptr(d.fd), uintptr(unsafe.Pointer(&b.msgs[0])), uintptr(n), 0, 0, 0)
	return moved(m, e)
}

// failed decides what a call that ended with e, or (0) stopped within the batch,
// means. sendmmsg swallows the errno of the message that stopped it, and the socket's
// pending error is gone then (net/socket.c, __sys_sendmmsg): the error queue still has it.
func (d *DatagramSender) failed(e syscall.Errno) syscall.Errno {
	if e == unix.EINTR || e == unix.EAGAIN {
		return e
	}
	refused, tooLong, other, last := d.queue.drain(d.fd)
	if e == unix.ECONNREFUSED && refused == 0 {
		refused = 1 // the queue had no room for it
	}
	d.refused += int64(refused)
	d.unreachable += int64(other)
	switch {
	case tooLong > 0:
		return unix.EMSGSIZE
	case refused > 0:
		return unix.ECONNREFUSED
	case e == 0, other > 0 && e == last:
		return unix.EINTR
	}
	return e
}

// errorQueue reads a socket's queue of errors (IP_RECVERR, ip(7)).
type errorQueue struct {
	hdr     unix.Msghdr
	control [64]uint64
}

func (q *errorQueue) prepare() {
	q.hdr.Control = (*byte)(unsafe.Pointer(&q.control))
}

// drain empties the queue and counts what ICMP said; last is the errno of the last
// entry under other. Entries that the failed call itself has made are left out.
func (q *errorQueue) drain(fd int) (refused, tooLong, other int, last syscall.Errno) {
	for range maxMessages {
		q.hdr.SetControllen(int(unsafe.Sizeof(q.control)))
		_, _, e := syscall.Syscall(unix.SYS_RECVMSG, uintptr(fd), uintptr(unsafe.Pointer(&q.hdr)), unix.MSG_ERRQUEUE|unix.MSG_DONTWAIT)
		if e != 0 {
			return refused, tooLong, other, last
		}
		ee := q.entry()
		switch {
		case ee == nil || ee.Origin != unix.SO_EE_ORIGIN_ICMP && ee.Origin != unix.SO_EE_ORIGIN_ICMP6:
		case syscall.Errno(ee.Errno) == unix.ECONNREFUSED:
			refused++
		case syscall.Errno(ee.Errno) == unix.EMSGSIZE:
			tooLong++
		default:
			other++
			last = syscall.Errno(ee.Errno)
		}
	}
	return refused, tooLong, other, last
}

func (q *errorQueue) entry() *unix.SockExtendedErr {
	for c := (controlWalk{at: unsafe.Pointer(&q.control), left: int(q.hdr.Controllen)}); c.next(); {
		if c.level == unix.IPPROTO_IP && c.kind == unix.IP_RECVERR || c.level == unix.IPPROTO_IPV6 && c.kind == unix.IPV6_RECVERR {
			return (*unix.SockExtendedErr)(c.data)
		}
	}
	return nil
}

// canBatch reports whether the kernel has sendmmsg and recvmmsg: with a descriptor
// that is none both say so, unless they do not exist (ENOSYS).
func canBatch() bool {
	none := ^uintptr(0)
	for _, call := range []uintptr{unix.SYS_SENDMMSG, unix.SYS_RECVMMSG} {
		if _, _, e := syscall.Syscall6(call, none, 0, 0, 0, 0, 0); errors.Is(e, errors.ErrUnsupported) || e == unix.EPERM {
			return false
		}
	}
	return true
}

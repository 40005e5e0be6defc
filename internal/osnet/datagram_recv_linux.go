package osnet

import (
	"fmt"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// coalescedMost is the most that a coalesced message can hold (64 KiB, udp_gro_receive).
const coalescedMost = 64 << 10

// DatagramReceiver receives batches of datagrams. It belongs to one goroutine,
// allocates nothing after New, and neither owns nor closes the descriptor.
type DatagramReceiver struct {
	fd, size, each   int
	coalesce, stamps bool

	buf     []byte
	batch   batch
	control []uint64
	words   int // of control, per message
	got     int // messages of the last call, whose headers the kernel has overwritten
}

// NewDatagramReceiver prepares for count messages a call, at most 1024, with datagrams
// of size bytes. With coalesce the socket may hand over several datagrams of one length
// as one message (UDP_GRO, Linux 5.0); with stamps each message carries the time at
// which the kernel had it. Both are set on the socket; a refusal of what was asked for
// is an *OptionError.
func NewDatagramReceiver(fd, size, count int, coalesce, stamps bool) (*DatagramReceiver, error) {
	if size < 0 || size > maxPayload6 {
		return nil, fmt.Errorf("osnet: datagrams of %d bytes: at most %d are possible", size, maxPayload6)
	}
	if count < 1 || count > maxMessages {
		return nil, fmt.Errorf("osnet: batches of %d messages: 1 to %d are possible", count, maxMessages)
	}
	r := &DatagramReceiver{fd: fd, size: size, each: size + 1, coalesce: coalesce, stamps: stamps, batch: newBatch(count)}
	if err := r.Add(fd); err != nil {
		return nil, err
	}
	space := 0
	if coalesce {
		r.each = coalescedMost
		space += unix.CmsgSpace(4)
	}
	if stamps {
		space += unix.CmsgSpace(16)
	}
	r.words = space / 8
	r.buf = make([]byte, r.each*count)
	r.control = make([]uint64, r.words*count)
	for i := range r.batch.iov {
		r.batch.iov[i].Base = &r.buf[i*r.each]
		r.batch.iov[i].SetLen(r.each)
		if space > 0 {
			r.batch.msgs[i].hdr.Control = (*byte)(unsafe.Pointer(&r.control[i*r.words]))
		}
	}
	r.got = count
	return r, nil
}

// Add prepares another socket for Use: it gets what NewDatagramReceiver gave the first.
func (r *DatagramReceiver) Add(fd int) error {
	if err := setCoalesce(uintptr(fd), r.coalesce); err != nil && r.coalesce {
		return &OptionError{Option: "coalesce", Err: err}
	}
	if r.stamps {
		if err := setStamps(uintptr(fd)); err != nil {
			return &OptionError{Option: "stamps", Err: err}
		}
	}
	return nil
}

// Use makes the next Receives read from fd, which is the first socket or one given to
// Add, so that one set of buffers serves many flows.
func (r *DatagramReceiver) Use(fd int) { r.fd = fd }

// Receive waits for a message as the socket does, takes what else is there, and returns
// how many it has. Without any the errno says why: EAGAIN (SO_RCVTIMEO, or nothing on a
// non-blocking socket), EINTR, or the socket's pending error.
func (r *DatagramReceiver) Receive() (n int, errno syscall.Errno) {
	for i := range r.batch.msgs[:r.got] {
		r.batch.msgs[i].hdr.SetControllen(8 * r.words)
	}
	m, _, e := syscall.Syscall6(unix.SYS_RECVMMSG, uintptr(r.fd), uintptr(unsafe.Pointer(&r.batch.msgs[0])),
		uintptr(len(r.batch.msgs)), unix.MSG_WAITFORONE, 0, 0)
	if e != 0 {
		// The message that failed was touched too.
		r.got = 1
		return 0, e
	}
	r.got = min(int(m)+1, len(r.batch.msgs))
	return int(m), 0
}

// Message returns message i of the last Receive; data is valid until the next. segment
// is the length of the datagrams that data is a run of (the last may be shorter), 0 when
// data is one datagram. stamp is when the kernel had it, in ns of CLOCK_REALTIME, 0 when
// it did not say. A single datagram longer than size is cut to size: see Truncated.
func (r *DatagramReceiver) Message(i int) (data []byte, segment int, stamp int64) {
	m := &r.batch.msgs[i]
	n := int(m.len)
	if r.words > 0 {
		for c := (controlWalk{at: unsafe.Pointer(m.hdr.Control), left: int(m.hdr.Controllen)}); c.next(); {
			switch {
			case c.level == unix.IPPROTO_UDP && c.kind == unix.UDP_GRO:
				if segment = int(*(*int32)(c.data)); segment >= n {
					segment = 0
				}
			case c.level == unix.SOL_SOCKET && (c.kind == unix.SO_TIMESTAMPNS_NEW || c.kind == unix.SO_TIMESTAMPNS_OLD):
				stamp = stampOf(c.data, c.size)
			}
		}
	}
	if segment == 0 {
		n = min(n, r.size)
	}
	return r.buf[i*r.each:][:n:n], segment, stamp
}

// Truncated reports whether the datagrams of message i were longer than size.
func (r *DatagramReceiver) Truncated(i int) bool {
	if _, segment, _ := r.Message(i); segment > 0 {
		return segment > r.size
	}
	m := &r.batch.msgs[i]
	return int(m.len) > r.size || m.hdr.Flags&unix.MSG_TRUNC != 0
}

// stampOf reads a struct timespec of 64 or (old option, 32-bit systems) 32 bits.
func stampOf(p unsafe.Pointer, size int) int64 {
	switch size {
	case 16:
		ts := (*[2]int64)(p)
		return ts[0]*1e9 + ts[1]
	case 8:
		ts := (*[2]int32)(p)
		return int64(ts[0])*1e9 + int64(ts[1])
	}
	return 0
}

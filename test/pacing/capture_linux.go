package pacing

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fullbore-net/fullbore/internal/datagram"
	"github.com/fullbore-net/fullbore/internal/osnet"
)

// Stream says which datagrams a Capture keeps: UDP over IPv4 to a port, each of Size
// payload bytes and with iperf3's header.
type Stream struct {
	Port     int
	Size     int
	Wide     bool // 64-bit numbers
	Extended bool // fullbore's bytes 16–31: the send time in ns
}

// Capture notes what arrives at a host, with the kernel's stamps, beside the program that
// receives it: a packet socket sees it before any other socket can be full.
type Capture struct {
	fd    int
	s     Stream
	in    *osnet.DatagramReceiver
	stop  atomic.Bool
	ended chan struct{}
	got   []Arrival
	err   error
}

const (
	captureRoom  = 64 << 20
	captureBatch = 128
	// captureHead is enough of a packet: IPv4 with options, UDP, and the headers inside.
	captureHead = 128
	captureBeat = 50 * time.Millisecond
)

// Watch starts a capture in the network namespace of the calling thread. It reads on
// processor cpu, −1 = any. It needs CAP_NET_RAW and, for its buffer, CAP_NET_ADMIN.
func Watch(s Stream, cpu int) (*Capture, error) {
	if s.Size < datagram.HeaderSize64 {
		return nil, fmt.Errorf("capture datagrams of %d bytes: they hold no header", s.Size)
	}
	// Bound to one protocol it gets received packets only, not the sent ones (packet(7)).
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, int(htons(unix.ETH_P_IP)))
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	fail := func(what string, err error) (*Capture, error) {
		return nil, errors.Join(os.NewSyscallError(what, err), unix.Close(fd))
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, captureRoom); err != nil {
		return fail("setsockopt", err)
	}
	if err := osnet.SetBlocking(fd, captureBeat); err != nil {
		return fail("setsockopt", err)
	}
	in, err := osnet.NewDatagramReceiver(fd, captureHead, captureBatch, false, true)
	if err != nil {
		return fail("prepare", err)
	}
	c := &Capture{fd: fd, s: s, in: in, ended: make(chan struct{})}
	go c.run(cpu)
	return c, nil
}

func htons(v uint16) uint16 {
	return binary.NativeEndian.Uint16(binary.BigEndian.AppendUint16(nil, v))
}

// Stop ends the capture when nothing has come for a moment, which is soon, as the sender
// has ended, and returns what came. An
// error says that it is not all.
func (c *Capture) Stop() ([]Arrival, error) {
	c.stop.Store(true)
	<-c.ended
	stats, err := unix.GetsockoptTpacketStats(c.fd, unix.SOL_PACKET, unix.PACKET_STATISTICS)
	switch {
	case err != nil:
		err = os.NewSyscallError("getsockopt", err)
	case stats.Drops > 0:
		err = fmt.Errorf("the capture lost %d packets", stats.Drops)
	}
	return c.got, errors.Join(c.err, err, unix.Close(c.fd))
}

// run reads until Stop. It keeps its thread: that ends with it.
func (c *Capture) run(cpu int) {
	defer close(c.ended)
	runtime.LockOSThread()
	if c.err = bind(cpu); c.err != nil {
		return
	}
	for {
		n, errno := c.in.Receive()
		switch errno {
		case 0:
			offset := osnet.RealOffset()
			for i := range n {
				data, _, stamp := c.in.Message(i)
				if a, ok := c.s.arrival(data, stamp-offset); ok && stamp != 0 {
					c.got = append(c.got, a)
				}
			}
		case unix.EAGAIN:
			if c.stop.Load() {
				return
			}
		case unix.EINTR:
		default:
			c.err = os.NewSyscallError("recvmmsg", errno)
			return
		}
	}
}

// arrival reads a packet from its IP header on.
func (s Stream) arrival(p []byte, at int64) (a Arrival, ok bool) {
	const ipHeader, udpHeader = 20, 8
	if len(p) < ipHeader || p[0]>>4 != 4 || p[9] != unix.IPPROTO_UDP || binary.BigEndian.Uint16(p[6:])&0x3fff != 0 {
		return a, false // a fragment has no header
	}
	head := int(p[0]&15) * 4
	payload := int(binary.BigEndian.Uint16(p[2:])) - head - udpHeader
	if len(p) < head+udpHeader+datagram.HeaderSize64 || payload <= 0 ||
		int(binary.BigEndian.Uint16(p[head+2:])) != s.Port {
		return a, false
	}
	// A greeting is no longer than 45 bytes and no multiple; the last datagram of a
	// super-packet is as long as the others, as all are of one size.
	if payload%s.Size != 0 {
		return a, false
	}
	d := p[head+udpHeader:]
	if !datagram.Plausible(d, s.Wide) {
		return a, false
	}
	seq, sent := datagram.Header(d, s.Wide)
	if s.Extended {
		if len(d) < datagram.ExtSize {
			return a, false
		}
		sent, _ = datagram.Ext(d)
	}
	return Arrival{At: at, Sent: sent, Seq: int64(seq), Count: int64(payload / s.Size)}, true
}

// bind keeps the calling thread on a processor; −1 = any.
func bind(cpu int) error {
	if cpu < 0 {
		return nil
	}
	var set unix.CPUSet
	set.Set(cpu)
	return os.NewSyscallError("sched_setaffinity", unix.SchedSetaffinity(0, &set))
}

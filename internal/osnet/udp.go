package osnet

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"

	"github.com/fullbore-net/fullbore/result"
)

// The largest UDP payloads: the length field of IPv4 counts its own 20-byte header.
const (
	largestPayload4 = 65535 - 20 - 8
	largestPayload6 = 65535 - 8
)

// PathMTU returns the largest IP packet, in bytes with its header, that the system
// believes to fit the path to the remote end: the route's or device's MTU, or less once
// a router has said so (IP_MTU, IPV6_MTU). Where the system does not tell the error
// wraps errors.ErrUnsupported.
func (c *Conn) PathMTU() (int, error) {
	if c.shared != nil {
		return c.shared.pathMTU()
	}
	var n int
	err := c.control(func(fd uintptr) (err error) {
		n, err = pathMTU(fd, c.isRemoteIPv6())
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("osnet: path MTU: %w", err)
	}
	return n, nil
}

// UsableDatagram returns the largest UDP payload that reaches the remote end in one
// packet: PathMTU less the IP header (20 or 40 bytes) and UDP's 8, and never more than
// UDP can carry.
func (c *Conn) UsableDatagram() (int, error) {
	n, err := c.PathMTU()
	if err != nil {
		return 0, err
	}
	if c.isRemoteIPv6() {
		return min(n-40-8, largestPayload6), nil
	}
	return min(n-20-8, largestPayload4), nil
}

func (c *Conn) isRemoteIPv6() bool {
	a, err := netip.ParseAddr(c.remote.Host)
	return err == nil && a.Is6()
}

// SetDontFragment makes the system refuse datagrams that the path cannot carry whole
// (EMSGSIZE) and mark the others so that no router cuts them; off gives back the
// system's default, which cuts them itself.
func (c *Conn) SetDontFragment(on bool) error {
	return c.option("dont-fragment", "", func(fd uintptr) error { return setDontFragment(fd, isIPv6Socket(fd), on) })
}

// SetCoalesce lets the system hand over several datagrams of one length as one message
// (UDP_GRO, UDP_RECV_MAX_COALESCED_SIZE). Only a reader that asks for the length gets
// along with it: a DatagramReceiver or ReadDatagrams.
func (c *Conn) SetCoalesce(on bool) error {
	return c.option("coalesce", "", func(fd uintptr) error { return setCoalesce(fd, on) })
}

// SetSegment makes each write longer than size leave as datagrams of size bytes, the
// last one shorter (UDP_SEGMENT, UDP_SEND_MSG_SIZE); 0 turns it off. One write takes
// at most 64 of them and 65507 bytes.
func (c *Conn) SetSegment(size int) error {
	return c.option("segment", strconv.Itoa(size), func(fd uintptr) error { return setSegment(fd, size) })
}

// SetStamps makes the kernel note when each datagram came (SO_TIMESTAMPNS).
func (c *Conn) SetStamps() error {
	if c.shared != nil && c.shared.s.p.stamps {
		return nil
	}
	return c.option("stamps", "", setStamps)
}

// ReadDatagrams waits for a datagram as Net's Read does, within its deadline, for
// systems and sockets without a DatagramReceiver. With SetCoalesce it may be several:
// segment is then the length of each but the last, otherwise 0. stamp is when the kernel
// had it (SetStamps), in ns of CLOCK_REALTIME, 0 when that is not known. What does not
// fit b is lost. It belongs to one goroutine and does not work after Detach.
func (c *Conn) ReadDatagrams(b []byte) (n, segment int, stamp int64, err error) {
	if c.shared != nil {
		n, stamp, err = c.shared.readStamped(b)
		return n, 0, stamp, err
	}
	u, ok := c.nc.(*net.UDPConn)
	if !ok {
		n, err = c.nc.Read(b)
		return n, 0, 0, err
	}
	if c.messages == nil {
		c.messages = new([controlWords]uint64)
	}
	n, left, _, from, err := u.ReadMsgUDPAddrPort(b, wordBytes(c.messages[:]))
	if err != nil && !(isMessageCut(err) && from.IsValid()) {
		return 0, 0, 0, err
	}
	a := packetInfo(c.messages[:], left)
	if a.segment >= n {
		a.segment = 0
	}
	return n, a.segment, a.at, nil
}

// option wraps a refusal in an *OptionError.
func (c *Conn) option(name, value string, set func(fd uintptr) error) error {
	if err := c.control(set); err != nil {
		return &OptionError{Option: name, Value: value, Err: err}
	}
	return nil
}

// SocketDrops returns how many messages the socket has dropped since it was made, for
// want of room in its receive buffer above all (SO_MEMINFO, Linux 4.12; 32 bits that
// wrap). With SetCoalesce one message is up to 64 datagrams. Elsewhere the error wraps
// errors.ErrUnsupported.
//
// A stream that shares its socket (Shared) counts what its own queue had no room for,
// and what the socket dropped since the stream began, whichever stream's it was.
func (c *Conn) SocketDrops() (int64, error) {
	if c.shared != nil {
		return c.shared.socketDrops()
	}
	var n int64
	err := c.control(func(fd uintptr) (err error) {
		n, err = socketDrops(fd)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("osnet: socket drops: %w", err)
	}
	return n, nil
}

// GrowReceive makes room for bytes of datagrams in the receive buffer, past the
// system's limit when privileged (SO_RCVBUFFORCE). It never shrinks the buffer. A limit
// that left less is a notice "window-clamped" with the sysctl that would help.
func (c *Conn) GrowReceive(bytes int64) ([]result.Notice, error) {
	if c.shared != nil {
		return c.shared.growReceive(bytes)
	}
	const most = 1<<30 - 1 // the kernel doubles an int
	asked := min(bytes, most)
	var got int
	err := c.control(func(fd uintptr) error {
		now, err := optRcvBuf.get(fd)
		if err != nil {
			return err
		}
		if got = UsableBuffer(now); int64(got) >= asked {
			return nil
		}
		if err := growReceive(fd, int(asked)); err != nil && !isBufferRefused(err) {
			return err
		}
		now, err = optRcvBuf.get(fd)
		got = UsableBuffer(now)
		return err
	})
	if err != nil {
		return nil, &OptionError{Option: "window", Value: strconv.FormatInt(bytes, 10), Err: err}
	}
	if int64(got) >= bytes {
		return nil, nil
	}
	return []result.Notice{receiveClamped(bytes, got)}, nil
}

func receiveClamped(asked int64, got int) result.Notice {
	n := result.Notice{Code: "window-clamped", Level: result.Warn, Text: fmt.Sprintf(
		"a receive buffer of %d bytes was asked for to hold what comes while the receiver is not running, usable are %d: datagrams may be lost at this socket",
		asked, got)}
	if rcvBufLimit == "" {
		return n
	}
	name := rcvBufLimit
	if v := sysctl(name); v != "" {
		name += " = " + v
	}
	n.Text += "; raise " + name
	n.Fix = raiseLimits([]string{rcvBufLimit}, asked)
	return n
}

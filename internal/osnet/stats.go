package osnet

import (
	"fmt"
	"net/netip"

	"github.com/fullbore-net/fullbore/result"
)

// TCPInfo reads the kernel's TCP_INFO. Where the system has none the error wraps
// errors.ErrUnsupported; fields that this kernel does not report are nil.
func (c *Conn) TCPInfo() (result.TCPInfo, error) {
	var ti result.TCPInfo
	err := c.control(func(fd uintptr) (err error) {
		ti, err = tcpInfo(fd)
		return err
	})
	if err != nil {
		return result.TCPInfo{}, fmt.Errorf("osnet: TCP_INFO: %w", err)
	}
	return ti, nil
}

// Buffers returns SO_SNDBUF and SO_RCVBUF in bytes as the system reports them: Linux
// reports twice of what an application can use (see UsableBuffer).
func (c *Conn) Buffers() (snd, rcv int, err error) {
	err = c.inspect(func(fd uintptr) (err error) {
		snd, rcv, err = socketBuffers(fd)
		return err
	})
	if err != nil {
		return 0, 0, fmt.Errorf("osnet: buffers: %w", err)
	}
	return snd, rcv, nil
}

// SendQueue returns the bytes that were written but not yet acknowledged, sent or
// not (Linux SIOCOUTQ). It is 0 when the peer's kernel has everything.
func (c *Conn) SendQueue() (int, error) {
	var n int
	err := c.control(func(fd uintptr) (err error) {
		n, err = sendQueue(fd)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("osnet: send queue: %w", err)
	}
	return n, nil
}

// RecvQueue returns the bytes that wait to be read (FIONREAD); for UDP on Linux the
// size of the first waiting datagram.
func (c *Conn) RecvQueue() (int, error) {
	var n int
	err := c.control(func(fd uintptr) (err error) {
		n, err = recvQueue(fd)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("osnet: receive queue: %w", err)
	}
	return n, nil
}

// MSS returns TCP_MAXSEG: the payload bytes of the largest segment that may be sent
// now, TCP options already taken off.
func (c *Conn) MSS() (int, error) {
	n, err := c.int(optMSS)
	if err != nil {
		return 0, fmt.Errorf("osnet: MSS: %w", err)
	}
	return n, nil
}

// TOS returns the type-of-service byte (IPv6: traffic class) that the socket's packets carry.
func (c *Conn) TOS() (int, error) {
	var n int
	err := c.inspect(func(fd uintptr) (err error) {
		o := optTOS4
		if isIPv6Socket(fd) && !c.mapped() {
			o = optTOS6
		}
		n, err = o.get(fd)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("osnet: TOS: %w", err)
	}
	return n, nil
}

// Congestion returns the name of the congestion control algorithm in use.
func (c *Conn) Congestion() (string, error) {
	var name string
	err := c.control(func(fd uintptr) (err error) {
		name, err = congestion(fd)
		return err
	})
	if err != nil {
		return "", fmt.Errorf("osnet: congestion control: %w", err)
	}
	return name, nil
}

// SetPacing limits the kernel's sending rate (SO_MAX_PACING_RATE) to bps bit/s, 0 = no
// limit. TCP keeps to it by itself; UDP only where the fq queueing discipline is used.
func (c *Conn) SetPacing(bps int64) error {
	err := c.control(func(fd uintptr) error { return setPacing(fd, bps) })
	if err != nil {
		return fmt.Errorf("osnet: pacing rate: %w", err)
	}
	return nil
}

// Pacing returns the limit set with SetPacing in bit/s, 0 = none.
func (c *Conn) Pacing() (int64, error) {
	var bps int64
	err := c.control(func(fd uintptr) (err error) {
		bps, err = pacing(fd)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("osnet: pacing rate: %w", err)
	}
	return bps, nil
}

func (c *Conn) int(o sockopt) (int, error) {
	var n int
	err := c.control(func(fd uintptr) (err error) {
		n, err = o.get(fd)
		return err
	})
	return n, err
}

// mapped reports whether an IPv6 socket carries IPv4.
func (c *Conn) mapped() bool {
	a, err := netip.ParseAddr(c.local.Host)
	return err == nil && a.Is4()
}

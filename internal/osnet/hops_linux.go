package osnet

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"
)

// The kinds of ICMP messages that matter, and where the kernel says they come from
// (include/uapi/linux/errqueue.h, icmp.h, icmpv6.h).
const (
	originICMP, originICMP6       = 2, 3
	icmpExceeded, icmpUnreachable = 11, 3
	icmp6Exceeded, icmp6Unreach   = 3, 1
	extendedErrLen                = 16 // struct sock_extended_err; the offender's address follows
)

func hops(ctx context.Context, to netip.Addr, wait time.Duration) ([]Hop, error) {
	to = to.Unmap()
	family, level, recverr, ttlOption := unix.AF_INET, unix.IPPROTO_IP, unix.IP_RECVERR, unix.IP_TTL
	if to.Is6() {
		family, level, recverr, ttlOption = unix.AF_INET6, unix.IPPROTO_IPV6, unix.IPV6_RECVERR, unix.IPV6_UNICAST_HOPS
	}
	fd, err := unix.Socket(family, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("hops: socket: %w", err)
	}
	defer unix.Close(fd)
	if err := unix.SetsockoptInt(fd, level, recverr, 1); err != nil {
		return nil, fmt.Errorf("hops: IP_RECVERR: %w", err)
	}
	answers, reached := map[int]netip.Addr{}, 0
	take := func() { // what has come so far
		for {
			ttl, from, host, ok := hopAnswer(fd)
			if !ok {
				return
			}
			if ttl < 1 || ttl > MostHops {
				continue
			}
			answers[ttl] = from
			if host && (reached == 0 || ttl < reached) {
				reached = ttl
			}
		}
	}
	for ttl := 1; ttl <= MostHops; ttl++ {
		if err := unix.SetsockoptInt(fd, level, ttlOption, ttl); err != nil {
			return nil, fmt.Errorf("hops: TTL: %w", err)
		}
		for range 3 { // an answer to an earlier one is reported as an error of this call
			if err = sendEmpty(fd, to, hopsBasePort+ttl-1); err == nil {
				break
			}
			take()
		}
		if err != nil {
			return nil, fmt.Errorf("hops: send: %w", err)
		}
	}
	deadline := time.Now().Add(wait)
	for {
		take()
		if reached > 0 && len(answers) >= reached || ctx.Err() != nil {
			break
		}
		left := time.Until(deadline)
		if left <= 0 {
			break
		}
		// An error in the queue is reported whatever is asked for. Short waits see the context's end.
		ms := min(left, 100*time.Millisecond).Milliseconds()
		if _, err := unix.Poll([]unix.PollFd{{Fd: int32(fd)}}, int(max(ms, 1))); err != nil && !errors.Is(err, unix.EINTR) {
			break
		}
	}
	return hopList(answers, reached), nil
}

func sendEmpty(fd int, to netip.Addr, port int) error {
	if to.Is6() {
		sa := &unix.SockaddrInet6{Port: port, Addr: to.As16()}
		if zone := to.Zone(); zone != "" {
			sa.ZoneId = uint32(zoneIndex(zone))
		}
		return unix.Sendto(fd, nil, 0, sa)
	}
	return unix.Sendto(fd, nil, 0, &unix.SockaddrInet4{Port: port, Addr: to.As4()})
}

// hopAnswer reads one message of the error queue: which distance it is of, who sent it, and whether
// the way ends there: at the host itself, or at who knows no further way. ok is false when the queue is empty.
func hopAnswer(fd int) (ttl int, from netip.Addr, host, ok bool) {
	var data [64]byte
	var control [512]byte
	_, n, _, to, err := unix.Recvmsg(fd, data[:], control[:], unix.MSG_ERRQUEUE|unix.MSG_DONTWAIT)
	if err != nil {
		return 0, netip.Addr{}, false, false
	}
	switch sa := to.(type) { // where our datagram was sent to
	case *unix.SockaddrInet4:
		ttl = sa.Port - hopsBasePort + 1
	case *unix.SockaddrInet6:
		ttl = sa.Port - hopsBasePort + 1
	}
	messages, err := unix.ParseSocketControlMessage(control[:n])
	if err != nil {
		return 0, netip.Addr{}, false, true
	}
	for _, m := range messages {
		if from, host, good := hopMessage(m.Data); good {
			return ttl, from, host, true
		}
	}
	return 0, netip.Addr{}, false, true
}

// hopMessage reads a struct sock_extended_err with the offender's address behind it.
func hopMessage(d []byte) (from netip.Addr, host, ok bool) {
	if len(d) < extendedErrLen+8 {
		return from, false, false
	}
	origin, kind := d[4], d[5]
	addr := d[extendedErrLen:]
	switch {
	case origin == originICMP && binary.NativeEndian.Uint16(addr) == unix.AF_INET:
		from = netip.AddrFrom4([4]byte(addr[4:8]))
		host = kind == icmpUnreachable
		return from, host, host || kind == icmpExceeded
	case origin == originICMP6 && binary.NativeEndian.Uint16(addr) == unix.AF_INET6 && len(addr) >= 24:
		from = netip.AddrFrom16([16]byte(addr[8:24])).Unmap()
		host = kind == icmp6Unreach
		return from, host, host || kind == icmp6Exceeded
	}
	return from, false, false
}

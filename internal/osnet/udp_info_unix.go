//go:build linux || darwin || freebsd

package osnet

import (
	"net/netip"
	"unsafe"

	"golang.org/x/sys/unix"
)

func isMessageCut(error) bool { return false } // these systems cut without an error

// setPacketInfo asks for the local address. An IPv6 socket tells those of its IPv4
// datagrams in the mapped form (net/ipv6/datagram.c, ip6_datagram_recv_common_ctl;
// sys/netinet6/ip6_input.c, ip6_savecontrol_v4).
func setPacketInfo(fd uintptr, v6 bool) error {
	if v6 {
		return setInt(fd, unix.IPPROTO_IPV6, unix.IPV6_RECVPKTINFO, 1)
	}
	return setInt(fd, unix.IPPROTO_IP, recvInfo4, 1)
}

// packetInfo reads what n bytes of control messages say about a datagram.
func packetInfo(control []uint64, n int) (a arrival) {
	if n == 0 {
		return a
	}
	for c := (controlWalk{at: unsafe.Pointer(&control[0]), left: n}); c.next(); {
		switch {
		case c.level == unix.IPPROTO_IPV6 && c.kind == unix.IPV6_PKTINFO && c.size >= unix.SizeofInet6Pktinfo:
			a.to = netip.AddrFrom16((*unix.Inet6Pktinfo)(c.data).Addr)
		case c.level == unix.IPPROTO_IP && c.kind == gotInfo4 && c.size >= sizeInfo4:
			a.to = infoAddr4(c.data)
		case c.level == unix.SOL_SOCKET && isStamp(c.kind):
			a.at = stampOf(c.data, c.size)
		case isSegment(c.level, c.kind):
			a.segment = int(*(*int32)(c.data))
		}
	}
	return a
}

// sourceControl builds the message that chooses the source address. IPv4 has its own
// also on a socket of both families.
func sourceControl(control []uint64, from netip.Addr) int {
	clear(control)
	h := (*unix.Cmsghdr)(unsafe.Pointer(&control[0]))
	data := unsafe.Add(unsafe.Pointer(&control[0]), unix.CmsgLen(0))
	size := sizeInfo4
	if from.Is4() {
		h.Level, h.Type = unix.IPPROTO_IP, sendInfo4
		putInfoAddr4(data, from.As4())
	} else {
		size = unix.SizeofInet6Pktinfo
		h.Level, h.Type = unix.IPPROTO_IPV6, unix.IPV6_PKTINFO
		// The interface of a link-local address follows from the destination's zone.
		(*unix.Inet6Pktinfo)(data).Addr = from.As16()
	}
	h.SetLen(unix.CmsgLen(size))
	return (unix.CmsgSpace(size) + 7) &^ 7
}

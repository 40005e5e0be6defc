package osnet

import (
	"net/netip"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	recvInfo4 = unix.IP_PKTINFO
	gotInfo4  = unix.IP_PKTINFO
	sendInfo4 = unix.IP_PKTINFO
	sizeInfo4 = unix.SizeofInet4Pktinfo
)

// infoAddr4 takes ipi_spec_dst: where the datagram was sent to, or, when that was a
// broadcast, the address to answer from (net/ipv4/fib_frontend.c, fib_compute_spec_dst).
func infoAddr4(p unsafe.Pointer) netip.Addr {
	return netip.AddrFrom4((*unix.Inet4Pktinfo)(p).Spec_dst)
}

func putInfoAddr4(p unsafe.Pointer, a [4]byte) { (*unix.Inet4Pktinfo)(p).Spec_dst = a }

func isStamp(kind int32) bool {
	return kind == unix.SO_TIMESTAMPNS_NEW || kind == unix.SO_TIMESTAMPNS_OLD
}

func isSegment(level, kind int32) bool { return level == unix.IPPROTO_UDP && kind == unix.UDP_GRO }

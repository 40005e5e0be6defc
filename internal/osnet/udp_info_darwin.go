package osnet

import (
	"net/netip"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	recvInfo4 = unix.IP_RECVPKTINFO
	gotInfo4  = unix.IP_PKTINFO
	sendInfo4 = unix.IP_PKTINFO
	sizeInfo4 = unix.SizeofInet4Pktinfo
)

func infoAddr4(p unsafe.Pointer) netip.Addr {
	return netip.AddrFrom4((*unix.Inet4Pktinfo)(p).Addr)
}

func putInfoAddr4(p unsafe.Pointer, a [4]byte) { (*unix.Inet4Pktinfo)(p).Spec_dst = a }

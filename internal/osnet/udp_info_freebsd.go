package osnet

import (
	"net/netip"
	"unsafe"

	"golang.org/x/sys/unix"
)

// FreeBSD has a message with nothing but the address (ip(4)).
const (
	recvInfo4 = unix.IP_RECVDSTADDR
	gotInfo4  = unix.IP_RECVDSTADDR
	sendInfo4 = unix.IP_SENDSRCADDR
	sizeInfo4 = 4
)

func infoAddr4(p unsafe.Pointer) netip.Addr { return netip.AddrFrom4(*(*[4]byte)(p)) }

func putInfoAddr4(p unsafe.Pointer, a [4]byte) { *(*[4]byte)(p) = a }

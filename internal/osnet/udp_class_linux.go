package osnet

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// classControl builds the control message that sets a datagram's traffic class (IP_TOS since
// Linux 3.13, IPV6_TCLASS) and returns its length in bytes. IPv4 has its own also on a socket of
// both families.
func classControl(control []uint64, class uint8, v4 bool) int {
	h := (*unix.Cmsghdr)(unsafe.Pointer(&control[0]))
	h.Level, h.Type = unix.IPPROTO_IPV6, unix.IPV6_TCLASS
	if v4 {
		h.Level, h.Type = unix.IPPROTO_IP, unix.IP_TOS
	}
	*(*int32)(unsafe.Add(unsafe.Pointer(&control[0]), unix.CmsgLen(0))) = int32(class)
	h.SetLen(unix.CmsgLen(4))
	return (unix.CmsgSpace(4) + 7) &^ 7
}

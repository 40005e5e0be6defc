package osnet

import (
	"errors"
	"net/netip"
	"unsafe"

	"golang.org/x/sys/windows"
)

// isMessageCut: WSARecvMsg reports a datagram longer than the buffer as an error, after
// filling the buffer.
func isMessageCut(err error) bool { return errors.Is(err, windows.WSAEMSGSIZE) }

// setPacketInfo asks for the local address. A socket of both families tells each in its
// own form, so both are asked for; a socket of IPv6 alone may refuse the other.
func setPacketInfo(fd uintptr, v6 bool) error {
	if !v6 {
		return setInt(fd, windows.IPPROTO_IP, windows.IP_PKTINFO, 1)
	}
	_ = setInt(fd, windows.IPPROTO_IP, windows.IP_PKTINFO, 1)
	return setInt(fd, windows.IPPROTO_IPV6, windows.IPV6_PKTINFO, 1)
}

// ws2def.h: WSA_CMSG_DATA begins at the header's size rounded up to a pointer's, and
// the next header likewise.
const (
	cmsgHead  = (unsafe.Sizeof(windows.WSACMSGHDR{}) + ptrSize - 1) &^ (ptrSize - 1)
	ptrSize   = unsafe.Sizeof(uintptr(0))
	sizeInfo4 = unsafe.Sizeof(windows.IN_PKTINFO{})
	sizeInfo6 = unsafe.Sizeof(windows.IN6_PKTINFO{})
)

func packetInfo(control []uint64, n int) (a arrival) {
	left, p := uintptr(n), unsafe.Pointer(&control[0])
	for left >= cmsgHead {
		h := (*windows.WSACMSGHDR)(p)
		if h.Len < cmsgHead || h.Len > left {
			break
		}
		data, size := unsafe.Add(p, cmsgHead), h.Len-cmsgHead
		switch {
		case h.Level == windows.IPPROTO_IP && h.Type == windows.IP_PKTINFO && size >= sizeInfo4:
			a.to = netip.AddrFrom4((*windows.IN_PKTINFO)(data).Addr)
		case h.Level == windows.IPPROTO_IPV6 && h.Type == windows.IPV6_PKTINFO && size >= sizeInfo6:
			a.to = netip.AddrFrom16((*windows.IN6_PKTINFO)(data).Addr)
		case h.Level == windows.IPPROTO_UDP && h.Type == windows.UDP_COALESCED_INFO && size >= 4:
			a.segment = int(*(*uint32)(data))
		}
		step := (h.Len + ptrSize - 1) &^ (ptrSize - 1)
		if step >= left {
			break
		}
		left -= step
		p = unsafe.Add(p, step)
	}
	if a.to == netip.AddrFrom4([4]byte{255, 255, 255, 255}) {
		a.to = netip.Addr{} // nothing can be sent from there
	}
	return a
}

func sourceControl(control []uint64, from netip.Addr) int {
	clear(control)
	h := (*windows.WSACMSGHDR)(unsafe.Pointer(&control[0]))
	data := unsafe.Add(unsafe.Pointer(&control[0]), cmsgHead)
	size := sizeInfo4
	if from.Is4() {
		h.Level, h.Type = windows.IPPROTO_IP, windows.IP_PKTINFO
		(*windows.IN_PKTINFO)(data).Addr = from.As4()
	} else {
		size = sizeInfo6
		h.Level, h.Type = windows.IPPROTO_IPV6, windows.IPV6_PKTINFO
		(*windows.IN6_PKTINFO)(data).Addr = from.As16()
	}
	h.Len = cmsgHead + size
	return int((h.Len + 7) &^ 7)
}

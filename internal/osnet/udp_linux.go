package osnet

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

func pathMTU(fd uintptr, v6 bool) (int, error) {
	if v6 {
		return getInt(fd, unix.IPPROTO_IPV6, unix.IPV6_MTU)
	}
	return getInt(fd, unix.IPPROTO_IP, unix.IP_MTU)
}

func setSegment(fd uintptr, size int) error {
	return known(setInt(fd, unix.IPPROTO_UDP, unix.UDP_SEGMENT, size))
}

func setCoalesce(fd uintptr, on bool) error {
	v := 0
	if on {
		v = 1
	}
	return known(setInt(fd, unix.IPPROTO_UDP, unix.UDP_GRO, v))
}

// setStamps prefers the form whose seconds have 64 bits everywhere (Linux 5.1).
func setStamps(fd uintptr) error {
	if setInt(fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPNS_NEW, 1) == nil {
		return nil
	}
	return known(setInt(fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPNS_OLD, 1))
}

// socketDrops reads sk_drops, which counts a datagram whichever reason it was dropped
// for behind the socket's door: buffer, filter, checksum (net/core/sock.c, sk_get_meminfo).
func socketDrops(fd uintptr) (int64, error) {
	var info [unix.SK_MEMINFO_VARS]uint32
	n := uint32(unsafe.Sizeof(info))
	_, _, e := syscall.Syscall6(unix.SYS_GETSOCKOPT, fd, unix.SOL_SOCKET, unix.SO_MEMINFO,
		uintptr(unsafe.Pointer(&info)), uintptr(unsafe.Pointer(&n)), 0)
	if e != 0 {
		return 0, known(e)
	}
	if int(n) <= 4*unix.SK_MEMINFO_DROPS {
		return 0, known(unix.ENOPROTOOPT) // before 4.12 the array ended earlier
	}
	return int64(info[unix.SK_MEMINFO_DROPS]), nil
}

func growReceive(fd uintptr, bytes int) error {
	if setInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, bytes) == nil {
		return nil
	}
	return optRcvBuf.set(fd, bytes)
}

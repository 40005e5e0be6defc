package osnet

import (
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/fullbore-net/fullbore/result"
)

func tcpInfo(fd uintptr) (result.TCPInfo, error) {
	// The kernel wants room for the whole structure, padding included.
	var buf [512]byte
	n := uint32(len(buf))
	_, _, e := unix.Syscall6(unix.SYS_GETSOCKOPT, fd, unix.IPPROTO_TCP, unix.TCP_INFO,
		uintptr(unsafe.Pointer(&buf)), uintptr(unsafe.Pointer(&n)), 0)
	if e != 0 {
		return result.TCPInfo{}, e
	}
	return decodeFreeBSD(buf[:n]), nil
}

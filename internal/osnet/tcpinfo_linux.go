package osnet

import (
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/fullbore-net/fullbore/result"
)

func tcpInfo(fd uintptr) (result.TCPInfo, error) {
	var buf [linuxInfoSize]byte
	n, err := readTCPInfo(fd, buf[:])
	if err != nil {
		return result.TCPInfo{}, err
	}
	return decodeLinux(buf[:n]), nil
}

// readTCPInfo fills b with as much of struct tcp_info as fits and the kernel has.
func readTCPInfo(fd uintptr, b []byte) (int, error) {
	n := uint32(len(b))
	_, _, e := unix.Syscall6(unix.SYS_GETSOCKOPT, fd, unix.IPPROTO_TCP, unix.TCP_INFO,
		uintptr(unsafe.Pointer(&b[0])), uintptr(unsafe.Pointer(&n)), 0)
	if e != 0 {
		return 0, e
	}
	return int(n), nil
}

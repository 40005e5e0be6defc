package osnet

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// keepSYN makes a listener keep the SYN of each connection until it is asked for (TCP_SAVE_SYN,
// Linux 4.2). A kernel that cannot does without.
func keepSYN(fd uintptr) { _ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_SAVE_SYN, 1) }

// savedSYN fills b with the IP and TCP headers of the SYN; 0 = there is none.
func savedSYN(fd uintptr, b []byte) (int, error) {
	n := uint32(len(b))
	_, _, e := unix.Syscall6(unix.SYS_GETSOCKOPT, fd, unix.IPPROTO_TCP, unix.TCP_SAVED_SYN,
		uintptr(unsafe.Pointer(&b[0])), uintptr(unsafe.Pointer(&n)), 0)
	if e != 0 {
		return 0, e
	}
	return int(n), nil
}

package traffic

import (
	"syscall"

	"golang.org/x/sys/windows"
)

// posix names Windows' socket errors as other systems do. An ICMP port unreachable is
// told as a reset of the connection.
func posix(e syscall.Errno) syscall.Errno {
	switch e {
	case windows.WSAECONNRESET, windows.WSAECONNREFUSED:
		return syscall.ECONNREFUSED
	case windows.WSAEMSGSIZE:
		return syscall.EMSGSIZE
	case windows.WSAENOBUFS:
		return syscall.ENOBUFS
	case windows.WSAEWOULDBLOCK:
		return syscall.EAGAIN
	case windows.WSAEINTR:
		return syscall.EINTR
	}
	return e
}

//go:build linux || darwin || freebsd

package osnet

import (
	"errors"

	"golang.org/x/sys/unix"
)

func duplicate(fd uintptr) (int, error) { return unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, 0) }

func closeDescriptor(fd int) error { return unix.Close(fd) }

func socketFamily(fd uintptr) int {
	sa, err := unix.Getsockname(int(fd))
	if err != nil {
		return 0
	}
	switch sa.(type) {
	case *unix.SockaddrInet6:
		return 6
	case *unix.SockaddrInet4:
		return 4
	}
	return 0
}

func hasIPv6() bool {
	fd, err := unix.Socket(unix.AF_INET6, unix.SOCK_DGRAM, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	return unix.Bind(fd, &unix.SockaddrInet6{Addr: [16]byte{15: 1}}) == nil
}

func isAddrNotAvail(err error) bool  { return errors.Is(err, unix.EADDRNOTAVAIL) }
func isAddrInUse(err error) bool     { return errors.Is(err, unix.EADDRINUSE) }
func isNoPermission(err error) bool  { return errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM) }
func isRefused(err error) bool       { return errors.Is(err, unix.ECONNREFUSED) }
func isNoFamily(err error) bool      { return errors.Is(err, unix.EAFNOSUPPORT) }
func isBufferRefused(err error) bool { return errors.Is(err, unix.ENOBUFS) }
func isOutOfPorts(err error) bool    { return errors.Is(err, unix.EAGAIN) }
func isNoOption(err error) bool      { return errors.Is(err, unix.ENOPROTOOPT) }
func isInvalid(err error) bool       { return errors.Is(err, unix.EINVAL) }
func isTimedOut(err error) bool      { return errors.Is(err, unix.ETIMEDOUT) }
func isTooManyFiles(err error) bool {
	return errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE)
}

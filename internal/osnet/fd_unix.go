//go:build unix

package osnet

import "golang.org/x/sys/unix"

func duplicate(fd uintptr) (int, error) {
	return unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, 0)
}

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

func socketBuffers(fd uintptr) (snd, rcv int, err error) {
	if snd, err = optSndBuf.get(fd); err != nil {
		return 0, 0, err
	}
	rcv, err = optRcvBuf.get(fd)
	return snd, rcv, err
}

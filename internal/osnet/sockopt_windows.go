package osnet

import (
	"errors"

	"golang.org/x/sys/windows"
)

var (
	optSndBuf      = sockopt{windows.SOL_SOCKET, windows.SO_SNDBUF, true}
	optRcvBuf      = sockopt{windows.SOL_SOCKET, windows.SO_RCVBUF, true}
	optMSS         = sockopt{windows.IPPROTO_TCP, windows.TCP_MAXSEG, true}
	optTOS4        = sockopt{windows.IPPROTO_IP, windows.IP_TOS, true}
	optTOS6        = sockopt{windows.IPPROTO_IPV6, 39, true} // IPV6_TCLASS (ws2ipdef.h)
	optUserTimeout = sockopt{}
)

func getInt(fd uintptr, level, name int) (int, error) {
	return windows.GetsockoptInt(windows.Handle(fd), level, name)
}

func setInt(fd uintptr, level, name, v int) error {
	return windows.SetsockoptInt(windows.Handle(fd), level, name, v)
}

func isAddrNotAvail(err error) bool { return errors.Is(err, windows.WSAEADDRNOTAVAIL) }
func isAddrInUse(err error) bool    { return errors.Is(err, windows.WSAEADDRINUSE) }

func duplicate(uintptr) (int, error) { return -1, errors.ErrUnsupported }
func closeDescriptor(int) error      { return errors.ErrUnsupported }

func socketFamily(fd uintptr) int {
	sa, err := windows.Getsockname(windows.Handle(fd))
	if err != nil {
		return 0
	}
	switch sa.(type) {
	case *windows.SockaddrInet6:
		return 6
	case *windows.SockaddrInet4:
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

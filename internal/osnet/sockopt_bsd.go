//go:build unix && !linux

package osnet

import (
	"errors"

	"golang.org/x/sys/unix"
)

var (
	optSndBuf      = sockopt{unix.SOL_SOCKET, unix.SO_SNDBUF, true}
	optRcvBuf      = sockopt{unix.SOL_SOCKET, unix.SO_RCVBUF, true}
	optMSS         = sockopt{unix.IPPROTO_TCP, unix.TCP_MAXSEG, true}
	optTOS4        = sockopt{unix.IPPROTO_IP, unix.IP_TOS, true}
	optTOS6        = sockopt{unix.IPPROTO_IPV6, unix.IPV6_TCLASS, true}
	optUserTimeout = sockopt{}
)

func getInt(fd uintptr, level, name int) (int, error) {
	return unix.GetsockoptInt(int(fd), level, name)
}

func setInt(fd uintptr, level, name, v int) error {
	return unix.SetsockoptInt(int(fd), level, name, v)
}

func isAddrNotAvail(err error) bool { return errors.Is(err, unix.EADDRNOTAVAIL) }
func isAddrInUse(err error) bool    { return errors.Is(err, unix.EADDRINUSE) }

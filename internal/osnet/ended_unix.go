//go:build unix

package osnet

import (
	"errors"

	"golang.org/x/sys/unix"
)

func (c *Conn) peerClosed() (closed bool, err error) {
	err = c.control(func(fd uintptr) error {
		var b [1]byte
		n, _, err := unix.Recvfrom(int(fd), b[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
		switch {
		case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.EINTR):
		case err != nil: // reset
			closed = true
		default:
			closed = n == 0
		}
		return nil
	})
	return closed, err
}

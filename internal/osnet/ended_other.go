//go:build !unix

package osnet

import (
	"errors"
	"os"
	"time"
)

// peerClosed waits a moment for the socket to be readable: on Windows that is a read of no bytes,
// which completes at once when there are some, or the end.
func (c *Conn) peerClosed() (closed bool, err error) {
	if c.rc == nil {
		return false, errors.ErrUnsupported
	}
	if err := c.nc.SetReadDeadline(time.Now().Add(time.Millisecond)); err != nil {
		return false, err
	}
	defer c.nc.SetReadDeadline(time.Time{})
	asked := false
	err = c.rc.Read(func(uintptr) bool {
		was := asked
		asked = true
		return was
	})
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return false, nil
	case err != nil:
		return true, nil
	}
	n, err := c.RecvQueue()
	return err == nil && n == 0, nil
}

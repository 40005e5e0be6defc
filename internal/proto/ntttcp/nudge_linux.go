package ntttcp

import (
	"syscall"

	"github.com/fullbore-net/fullbore/internal/osnet"
)

// swallow reads and drops what a connection holds that an engine's workers have left, and reports
// how much that was; over = the peer has ended it.
func swallow(c *osnet.Conn, buf []byte) (n int64, over bool) {
	fd, err := c.Detach()
	if err != nil {
		return 0, true
	}
	for range 1 << 10 { // a sender may be faster than this
		k, errno := osnet.ReadNow(fd, buf)
		switch {
		case errno == syscall.EINTR:
		case errno == syscall.EAGAIN:
			return n, false
		case errno != 0 || k <= 0:
			return n, true
		}
		n += int64(max(k, 0))
	}
	return n, false
}

// write sends b on a connection that an engine's workers have left.
func write(c *osnet.Conn, b []byte) {
	if fd, err := c.Detach(); err == nil {
		_, _ = osnet.Write(fd, b) // refused: the receiver is gone
	}
}

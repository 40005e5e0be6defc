//go:build !linux

package ntttcp

import (
	"time"

	"github.com/fullbore-net/fullbore/internal/osnet"
)

// swallow reads and drops what a connection holds that an engine's workers have left, and reports
// how much that was; over = the peer has ended it.
func swallow(c *osnet.Conn, buf []byte) (n int64, over bool) {
	_ = c.Net().SetReadDeadline(time.Now().Add(time.Millisecond))
	for range 1 << 10 { // a sender may be faster than this
		k, err := c.Net().Read(buf)
		n += int64(k)
		if err != nil {
			return n, !isTimeout(err)
		}
	}
	return n, false
}

// write sends b on a connection that an engine's workers have left.
func write(c *osnet.Conn, b []byte) {
	_ = c.Net().SetWriteDeadline(time.Now().Add(time.Second))
	_, _ = c.Net().Write(b) // refused: the receiver is gone
}

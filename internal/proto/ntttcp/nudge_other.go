//go:build !linux

package ntttcp

import (
	"time"

	"github.com/fullbore-net/fullbore/internal/osnet"
)

// write sends b on a connection that an engine's workers have left.
func write(c *osnet.Conn, b []byte) {
	_ = c.Net().SetWriteDeadline(time.Now().Add(time.Second))
	_, _ = c.Net().Write(b) // refused: the receiver is gone
}

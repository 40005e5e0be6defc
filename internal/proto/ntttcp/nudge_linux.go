package ntttcp

import "github.com/fullbore-net/fullbore/internal/osnet"

// write sends b on a connection that an engine's workers have left.
func write(c *osnet.Conn, b []byte) {
	if fd, err := c.Detach(); err == nil {
		_, _ = osnet.Write(fd, b) // refused: the receiver is gone
	}
}

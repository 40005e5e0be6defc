//go:build !linux

package osnet

import (
	"errors"
	"fmt"
)

func (c *Conn) brief(*TCPBrief) error {
	return fmt.Errorf("osnet: TCP_INFO: %w", errors.ErrUnsupported)
}

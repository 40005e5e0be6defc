//go:build !linux

package forward

import (
	"errors"
	"fmt"
	"io"
)

// Main is the body of the link process, which needs Linux's TUN devices.
func Main(io.Reader, io.Writer) error {
	return fmt.Errorf("lab: the link process: %w", errors.ErrUnsupported)
}

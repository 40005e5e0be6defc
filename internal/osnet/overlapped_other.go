//go:build !windows

package osnet

import "errors"

// overlapped exists on Windows only.
type overlapped struct{}

func (*overlapped) open(*Conn, bool, int, int, bool, func([]byte)) error {
	return errors.ErrUnsupported
}
func (*overlapped) begin(int) error                 { return errors.ErrUnsupported }
func (*overlapped) pending() int                    { return 0 }
func (*overlapped) wait(int64) (int, []byte, error) { return 0, nil, errors.ErrUnsupported }
func (*overlapped) wake()                           {}
func (*overlapped) cancel()                         {}
func (*overlapped) close()                          {}

func isCancelled(error) bool { return false }

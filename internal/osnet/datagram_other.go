//go:build !linux

package osnet

import (
	"errors"
	"fmt"
	"syscall"
)

// DatagramSender exists on Linux only; elsewhere datagrams go through Conn.Net, with
// Conn.SetSegment where the system has it.
type DatagramSender struct{ none }

// DatagramReceiver exists on Linux only.
type DatagramReceiver struct{ none }

// none stands in for what cannot be made here, so that nothing of it is ever called.
type none struct{}

// NewDatagramSender returns errors.ErrUnsupported.
func NewDatagramSender(_, _, _ int, _ bool) (*DatagramSender, error) {
	return nil, fmt.Errorf("osnet: batches of datagrams: %w", errors.ErrUnsupported)
}

// NewDatagramReceiver returns errors.ErrUnsupported.
func NewDatagramReceiver(_, _, _ int, _, _ bool) (*DatagramReceiver, error) {
	return nil, fmt.Errorf("osnet: batches of datagrams: %w", errors.ErrUnsupported)
}

// Add refuses.
func (none) Add(int) error { return errors.ErrUnsupported }

// Use does nothing.
func (none) Use(int) {}

// Datagram has none.
func (none) Datagram(int) []byte { return nil }

// Segmented reports false.
func (none) Segmented() bool { return false }

// Refused is 0.
func (none) Refused() int64 { return 0 }

// Unreachable is 0.
func (none) Unreachable() int64 { return 0 }

// Send sends nothing.
func (none) Send(int) (int, syscall.Errno) { return 0, syscall.ENOTSUP }

// Receive receives nothing.
func (none) Receive() (int, syscall.Errno) { return 0, syscall.ENOTSUP }

// Message has none.
func (none) Message(int) (data []byte, segment int, stamp int64) { return nil, 0, 0 }

// Truncated reports false.
func (none) Truncated(int) bool { return false }

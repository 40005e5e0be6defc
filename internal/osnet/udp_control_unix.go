//go:build linux || darwin || freebsd

package osnet

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// controlWalk goes through control messages without allocating.
type controlWalk struct {
	at          unsafe.Pointer
	left        int
	level, kind int32
	data        unsafe.Pointer
	size        int
}

func (c *controlWalk) next() bool {
	head := unix.CmsgLen(0)
	if c.left < head {
		return false
	}
	h := (*unix.Cmsghdr)(c.at)
	n := int(h.Len)
	if n < head || n > c.left {
		return false
	}
	c.level, c.kind, c.size = h.Level, h.Type, n-head
	c.data = unsafe.Add(c.at, head)
	step := unix.CmsgSpace(c.size)
	c.left -= step
	if c.left > 0 {
		c.at = unsafe.Add(c.at, step)
	}
	return true
}

//go:build linux || darwin || freebsd

package osnet

import "golang.org/x/sys/unix"

func writeDescriptor(fd int, b []byte) (int, error) { return unix.Write(fd, b) }

//go:build !windows

package osnet

import "syscall"

const (
	notAvail  = syscall.EADDRNOTAVAIL
	noFamily  = syscall.EAFNOSUPPORT
	inUse     = syscall.EADDRINUSE
	tooMany   = syscall.EMFILE
	noDevice  = syscall.ENODEV
	forbidden = syscall.EACCES
)

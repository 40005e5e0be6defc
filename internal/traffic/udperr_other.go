//go:build !windows

package traffic

import "syscall"

func posix(e syscall.Errno) syscall.Errno { return e }

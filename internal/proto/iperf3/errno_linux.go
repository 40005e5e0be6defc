package iperf3

import "syscall"

func linuxErrno(n syscall.Errno) int { return int(n) }

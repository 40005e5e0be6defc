//go:build !linux && !windows

package iperf3

import "syscall"

// linuxErrno translates by name: the numbers below 35 are the same everywhere.
func linuxErrno(n syscall.Errno) int {
	switch n {
	case syscall.EAGAIN:
		return 11
	case syscall.EPROTONOSUPPORT:
		return linuxEPROTONOSUPPORT
	case syscall.EAFNOSUPPORT:
		return 97
	case syscall.EADDRINUSE:
		return 98
	case syscall.EADDRNOTAVAIL:
		return 99
	case syscall.ENETDOWN:
		return 100
	case syscall.ENETUNREACH:
		return 101
	case syscall.ECONNABORTED:
		return 103
	case syscall.ECONNRESET:
		return 104
	case syscall.ENOBUFS:
		return 105
	case syscall.ENOTCONN:
		return 107
	case syscall.ETIMEDOUT:
		return linuxETIMEDOUT
	case syscall.ECONNREFUSED:
		return linuxECONNREFUSED
	case syscall.EHOSTUNREACH:
		return 113
	}
	if n < 35 {
		return int(n)
	}
	return 5 // EIO: something failed, and no Linux number says it better
}

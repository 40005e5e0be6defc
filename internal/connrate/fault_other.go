//go:build !windows

package connrate

import "syscall"

// Errors of connect by their meaning (connect(2)).
var (
	connRefused = []error{syscall.ECONNREFUSED}
	connReset   = []error{syscall.ECONNRESET, syscall.EPIPE}
	noPorts     = []error{syscall.EADDRNOTAVAIL, syscall.EADDRINUSE}
	noFiles     = []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS}
	timedOut    = []error{syscall.ETIMEDOUT}
)

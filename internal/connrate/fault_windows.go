package connrate

import "syscall"

// Errors of connect by their meaning (winsock2.h).
var (
	connRefused = []error{syscall.Errno(10061)}                       // WSAECONNREFUSED
	connReset   = []error{syscall.Errno(10054), syscall.Errno(10053)} // WSAECONNRESET, WSAECONNABORTED
	noPorts     = []error{syscall.Errno(10048), syscall.Errno(10049)} // WSAEADDRINUSE, WSAEADDRNOTAVAIL
	noFiles     = []error{syscall.Errno(10024), syscall.Errno(10055)} // WSAEMFILE, WSAENOBUFS
	timedOut    = []error{syscall.Errno(10060)}                       // WSAETIMEDOUT
)

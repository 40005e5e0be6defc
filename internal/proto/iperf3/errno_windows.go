package iperf3

import "syscall"

// linuxErrno translates Winsock's numbers (winsock2.h: WSABASEERR 10000) and the few
// file errors that -F can meet.
func linuxErrno(n syscall.Errno) int {
	switch n {
	case 2, 3: // ERROR_FILE_NOT_FOUND, ERROR_PATH_NOT_FOUND
		return linuxENOENT
	case 5, 10013: // ERROR_ACCESS_DENIED, WSAEACCES
		return 13
	case 4, 10024: // ERROR_TOO_MANY_OPEN_FILES, WSAEMFILE
		return linuxEMFILE
	case 10022: // WSAEINVAL
		return 22
	case 10043: // WSAEPROTONOSUPPORT
		return linuxEPROTONOSUPPORT
	case 10047: // WSAEAFNOSUPPORT
		return 97
	case 10048: // WSAEADDRINUSE
		return 98
	case 10049: // WSAEADDRNOTAVAIL
		return 99
	case 10050: // WSAENETDOWN
		return 100
	case 10051: // WSAENETUNREACH
		return 101
	case 10053: // WSAECONNABORTED
		return 103
	case 10054: // WSAECONNRESET
		return 104
	case 10055: // WSAENOBUFS
		return 105
	case 10057: // WSAENOTCONN
		return 107
	case 10060: // WSAETIMEDOUT
		return linuxETIMEDOUT
	case 10061, 1225: // WSAECONNREFUSED, ERROR_CONNECTION_REFUSED
		return linuxECONNREFUSED
	case 10065: // WSAEHOSTUNREACH
		return 113
	}
	return 5 // EIO: something failed, and no Linux number says it better
}

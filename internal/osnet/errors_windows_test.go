package osnet

import "golang.org/x/sys/windows"

const (
	notAvail  = windows.WSAEADDRNOTAVAIL
	noFamily  = windows.WSAEAFNOSUPPORT
	inUse     = windows.WSAEADDRINUSE
	tooMany   = windows.WSAEMFILE
	noDevice  = windows.ERROR_FILE_NOT_FOUND
	forbidden = windows.WSAEACCES
)

package osnet

import (
	"errors"
	"unsafe"

	"golang.org/x/sys/windows"

	"github.com/fullbore-net/fullbore/result"
)

// sioTCPInfo is _WSAIORW(IOC_VENDOR, 39) (mstcpip.h); Windows 10 1703, version 1 from 1809.
const sioTCPInfo = 0xd8000027

func tcpInfo(fd uintptr) (result.TCPInfo, error) {
	var buf [windowsInfoSize]byte
	var err error
	for version := uint32(1); ; version-- {
		var n uint32
		err = windows.WSAIoctl(windows.Handle(fd), sioTCPInfo,
			(*byte)(unsafe.Pointer(&version)), uint32(unsafe.Sizeof(version)), &buf[0], uint32(len(buf)), &n, nil, 0)
		if err == nil {
			return decodeWindows(buf[:min(int(n), len(buf))]), nil
		}
		if version == 0 {
			break
		}
	}
	if noTCPInfo(err) {
		return result.TCPInfo{}, errors.ErrUnsupported
	}
	return result.TCPInfo{}, err
}

// noTCPInfo recognises what a system without the call answers (old Windows, Wine).
func noTCPInfo(err error) bool {
	return errors.Is(err, windows.WSAEOPNOTSUPP) || errors.Is(err, windows.WSAEINVAL)
}

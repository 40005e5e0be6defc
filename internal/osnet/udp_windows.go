package osnet

import (
	"errors"

	"golang.org/x/sys/windows"
)

// ws2ipdef.h: the option that Linux calls IP_MTU (Windows 10).
const (
	ipMTU   = 73
	ipv6MTU = 72
)

func pathMTU(fd uintptr, v6 bool) (int, error) {
	if v6 {
		n, err := getInt(fd, windows.IPPROTO_IPV6, ipv6MTU)
		return n, known(err)
	}
	n, err := getInt(fd, windows.IPPROTO_IP, ipMTU)
	return n, known(err)
}

// setSegment is UDP segmentation offload (USO, Windows 10 2004).
func setSegment(fd uintptr, size int) error {
	return known(setInt(fd, windows.IPPROTO_UDP, windows.UDP_SEND_MSG_SIZE, size))
}

// setCoalesce lets the stack merge datagrams (URO, Windows 10 2004); the value is the
// most that one message may hold.
func setCoalesce(fd uintptr, on bool) error {
	v := 0
	if on {
		v = largestPayload6
	}
	return known(setInt(fd, windows.IPPROTO_UDP, windows.UDP_RECV_MAX_COALESCED_SIZE, v))
}

func setStamps(uintptr) error            { return errors.ErrUnsupported }
func socketDrops(uintptr) (int64, error) { return 0, errors.ErrUnsupported }

func growReceive(fd uintptr, bytes int) error { return optRcvBuf.set(fd, bytes) }

package osnet

import (
	"errors"
	"net"

	"golang.org/x/sys/unix"
)

var optKeepIdle = sockopt{unix.IPPROTO_TCP, unix.TCP_KEEPALIVE, true}

// optUnacked counts what the send buffer still holds; TCP keeps bytes there until
// they are acknowledged (xnu bsd/kern/uipc_socket.c, SO_NWRITE).
var optUnacked = sockopt{unix.SOL_SOCKET, unix.SO_NWRITE, true}

// fionread is _IOR('f', 127, int) (sys/filio.h).
const fionread = 0x4004667f

func sendQueue(fd uintptr) (int, error) { return optUnacked.get(fd) }
func recvQueue(fd uintptr) (int, error) { return unix.IoctlGetInt(int(fd), fionread) }

func congestion(uintptr) (string, error)     { return "", errors.ErrUnsupported }
func setCongestion(uintptr, string) error    { return errors.ErrUnsupported }
func congestionAvailable() ([]string, error) { return nil, errors.ErrUnsupported }
func congestionAllowed() []string            { return nil }
func setPacing(uintptr, int64) error         { return errors.ErrUnsupported }
func pacing(uintptr) (int64, error)          { return 0, errors.ErrUnsupported }

// bindDevice ties the socket to an interface by its index (IP_BOUND_IF, IPV6_BOUND_IF).
func bindDevice(fd uintptr, dev string) error {
	i, err := net.InterfaceByName(dev)
	if err != nil {
		return unix.ENODEV
	}
	if isIPv6Socket(fd) {
		return setInt(fd, unix.IPPROTO_IPV6, unix.IPV6_BOUND_IF, i.Index)
	}
	return setInt(fd, unix.IPPROTO_IP, unix.IP_BOUND_IF, i.Index)
}

func probe() Caps {
	return Caps{TCPInfo: true, SendQueue: true, BindDevice: true, Retransmits: true, IPv6: hasIPv6()}
}

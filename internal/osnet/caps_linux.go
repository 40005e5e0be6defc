package osnet

import (
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

func probe() Caps {
	c := Caps{SendQueue: true, Affinity: true, BindDevice: true}
	tcp := func(level, name, v int) bool {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return false
		}
		defer unix.Close(fd)
		return unix.SetsockoptInt(fd, level, name, v) == nil
	}
	udp := func(level, name, v int) bool {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return false
		}
		defer unix.Close(fd)
		return unix.SetsockoptInt(fd, level, name, v) == nil
	}
	c.TCPInfo, c.Retransmits, c.Discard = true, true, true
	list, err := congestionAvailable()
	c.Congestion = err == nil && len(list) > 0
	if b, err := os.ReadFile("/proc/sys/net/mptcp/enabled"); err == nil {
		c.MPTCP = strings.TrimSpace(string(b)) == "1"
	}
	if fd, err := unix.MemfdCreate("osnet-probe", unix.MFD_CLOEXEC); err == nil {
		c.SendFile, c.Splice = true, true
		_ = unix.Close(fd)
	}
	c.ZeroCopy = tcp(unix.SOL_SOCKET, unix.SO_ZEROCOPY, 1)
	c.RcvLowat = tcp(unix.SOL_SOCKET, unix.SO_RCVLOWAT, 1)
	c.Pacing = tcp(unix.SOL_SOCKET, unix.SO_MAX_PACING_RATE, -1)
	c.UserTimeout = tcp(unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, 1000)
	c.UDPSegment = udp(unix.IPPROTO_UDP, unix.UDP_SEGMENT, 1000)
	c.UDPGRO = udp(unix.IPPROTO_UDP, unix.UDP_GRO, 1)
	_, err = os.Stat("/proc/net/ip6_flowlabel")
	c.FlowLabel = err == nil
	return c
}

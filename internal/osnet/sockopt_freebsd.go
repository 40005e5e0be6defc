package osnet

import (
	"errors"
	"strings"

	"golang.org/x/sys/unix"
)

var optKeepIdle = sockopt{unix.IPPROTO_TCP, unix.TCP_KEEPIDLE, true}

// sys/filio.h: _IOR('f', 127, int) and _IOR('f', 119, int).
const (
	fionread  = 0x4004667f
	fionwrite = 0x40046677
)

func sendQueue(fd uintptr) (int, error) { return unix.IoctlGetInt(int(fd), fionwrite) }
func recvQueue(fd uintptr) (int, error) { return unix.IoctlGetInt(int(fd), fionread) }

func congestion(fd uintptr) (string, error) {
	return unix.GetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION)
}

func setCongestion(fd uintptr, name string) error {
	return unix.SetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION, name)
}

// congestionAvailable reads net.inet.tcp.cc.available, a table whose lines begin with
// a name, the default marked with an asterisk.
func congestionAvailable() ([]string, error) {
	s, err := unix.Sysctl("net.inet.tcp.cc.available")
	if err != nil {
		return nil, err
	}
	return parseCCTable(s), nil
}

func congestionAllowed() []string { return nil }

// FreeBSD has SO_MAX_PACING_RATE, but only NICs with hardware pacing heed it.
func setPacing(uintptr, int64) error   { return errors.ErrUnsupported }
func pacing(uintptr) (int64, error)    { return 0, errors.ErrUnsupported }
func bindDevice(uintptr, string) error { return errors.ErrUnsupported }

func parseCCTable(s string) []string {
	var names []string
	for line := range strings.Lines(s) {
		f := strings.Fields(strings.ReplaceAll(line, "*", " "))
		if len(f) == 0 || f[0] == "CCmod" || strings.Trim(f[0], ",") == "" {
			continue
		}
		for _, n := range strings.Split(f[0], ",") {
			if n != "" {
				names = append(names, n)
			}
		}
	}
	return names
}

func probe() Caps {
	list, err := congestionAvailable()
	return Caps{
		TCPInfo: true, Retransmits: true, SendQueue: true, Affinity: true,
		Congestion: err == nil && len(list) > 0, IPv6: hasIPv6(),
	}
}

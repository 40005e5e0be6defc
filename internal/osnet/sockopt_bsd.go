//go:build darwin || freebsd

package osnet

import (
	"strconv"

	"golang.org/x/sys/unix"
)

var (
	optSndBuf      = sockopt{unix.SOL_SOCKET, unix.SO_SNDBUF, true}
	optRcvBuf      = sockopt{unix.SOL_SOCKET, unix.SO_RCVBUF, true}
	optReuseAddr   = sockopt{unix.SOL_SOCKET, unix.SO_REUSEADDR, true}
	optMSS         = sockopt{unix.IPPROTO_TCP, unix.TCP_MAXSEG, true}
	optNoDelay     = sockopt{unix.IPPROTO_TCP, unix.TCP_NODELAY, true}
	optTOS4        = sockopt{unix.IPPROTO_IP, unix.IP_TOS, true}
	optTOS6        = sockopt{unix.IPPROTO_IPV6, unix.IPV6_TCLASS, true}
	optUserTimeout = sockopt{} // both count in seconds and from another start; not the same promise
	optKeepAlive   = sockopt{unix.SOL_SOCKET, unix.SO_KEEPALIVE, true}
	optKeepIntvl   = sockopt{unix.IPPROTO_TCP, unix.TCP_KEEPINTVL, true}
	optKeepCount   = sockopt{unix.IPPROTO_TCP, unix.TCP_KEEPCNT, true}
	optDontFrag4   = sockopt{unix.IPPROTO_IP, unix.IP_DONTFRAG, true}
	optDontFrag6   = sockopt{unix.IPPROTO_IPV6, unix.IPV6_DONTFRAG, true}
	optLatePort    = sockopt{}
)

const (
	// The BSDs report what an application can use.
	bufferFactor  = 1
	sndBufLimit   = "kern.ipc.maxsockbuf"
	rcvBufLimit   = "kern.ipc.maxsockbuf"
	tosCaveat     = ""
	portRangeName = "net.inet.ip.portrange.first"
	// privilegedPorts is the first port that everybody may listen on.
	privilegedPorts = 1024
)

func getInt(fd uintptr, level, name int) (int, error) {
	return unix.GetsockoptInt(int(fd), level, name)
}

func setInt(fd uintptr, level, name, v int) error {
	return unix.SetsockoptInt(int(fd), level, name, v)
}

func sysctl(name string) string {
	v, err := unix.SysctlUint32(name)
	if err != nil {
		return ""
	}
	return strconv.FormatUint(uint64(v), 10)
}

func raiseLimits(names []string, bytes int64) string { return sysctlCommand(names, bytes) }

func widenPorts() string { return "sysctl net.inet.ip.portrange.first=1024" }

func portOwner(port uint16) string { return "lsof -nP -i :" + itoa(port) }

func portRange() string {
	first, last := sysctl("net.inet.ip.portrange.first"), sysctl("net.inet.ip.portrange.last")
	if first == "" || last == "" {
		return ""
	}
	return first + "-" + last
}

// setDontFragment marks a UDP socket; on an IPv6 one the option of the other family may not exist.
func setDontFragment(fd uintptr, v6, on bool) error {
	if v6 {
		return optDontFrag6.setBool(fd, on)
	}
	return optDontFrag4.setBool(fd, on)
}

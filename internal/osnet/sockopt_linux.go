package osnet

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"unsafe"

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
	optUserTimeout = sockopt{unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, true} // milliseconds (Linux 2.6.37)
	optKeepAlive   = sockopt{unix.SOL_SOCKET, unix.SO_KEEPALIVE, true}
	optKeepIdle    = sockopt{unix.IPPROTO_TCP, unix.TCP_KEEPIDLE, true}
	optKeepIntvl   = sockopt{unix.IPPROTO_TCP, unix.TCP_KEEPINTVL, true}
	optKeepCount   = sockopt{unix.IPPROTO_TCP, unix.TCP_KEEPCNT, true}
	optMTUDisc4    = sockopt{unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, true}
	optMTUDisc6    = sockopt{unix.IPPROTO_IPV6, unix.IPV6_MTU_DISCOVER, true}
	// optLatePort lets the kernel choose the port at connect, per destination, instead
	// of at bind, so that one source address serves more connections than the ephemeral
	// range has ports (Linux 4.2).
	optLatePort = sockopt{unix.IPPROTO_IP, unix.IP_BIND_ADDRESS_NO_PORT, true}
)

const (
	// bufferFactor is how many reported bytes stand for one that an application can
	// use: Linux doubles SO_SNDBUF and SO_RCVBUF for its bookkeeping (socket(7)).
	bufferFactor = 2
	sndBufLimit  = "net.core.wmem_max"
	rcvBufLimit  = "net.core.rmem_max"
	// tosCaveat would say that a set TOS need not reach the wire.
	tosCaveat     = ""
	portRangeName = "net.ipv4.ip_local_port_range"
	// privilegedPorts is the first port that everybody may listen on.
	privilegedPorts = 1024
)

func getInt(fd uintptr, level, name int) (int, error) {
	return unix.GetsockoptInt(int(fd), level, name)
}

func setInt(fd uintptr, level, name, v int) error {
	return unix.SetsockoptInt(int(fd), level, name, v)
}

func sendQueue(fd uintptr) (int, error) { return unix.IoctlGetInt(int(fd), unix.SIOCOUTQ) }
func recvQueue(fd uintptr) (int, error) { return unix.IoctlGetInt(int(fd), unix.SIOCINQ) }

// sysctl reads a value below /proc/sys, "" when there is none.
func sysctl(name string) string {
	b, err := os.ReadFile(filepath.Join("/proc/sys", strings.ReplaceAll(name, ".", "/")))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

func raiseLimits(names []string, bytes int64) string { return sysctlCommand(names, bytes) }

func widenPorts() string { return `sysctl -w net.ipv4.ip_local_port_range="1024 65535"` }

func portOwner(port uint16) string { return "ss -tulnp sport = :" + itoa(port) }

// portRange returns the ports that the kernel hands out, "" when it cannot be read.
func portRange() string { return strings.Join(strings.Fields(sysctl(portRangeName)), "-") }

func congestion(fd uintptr) (string, error) {
	return unix.GetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION)
}

func setCongestion(fd uintptr, name string) error {
	return unix.SetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION, name)
}

func congestionAvailable() ([]string, error) {
	b, err := os.ReadFile("/proc/sys/net/ipv4/tcp_available_congestion_control")
	if err != nil {
		return nil, err
	}
	return strings.Fields(string(b)), nil
}

func congestionAllowed() []string {
	return strings.Fields(sysctl("net.ipv4.tcp_allowed_congestion_control"))
}

// setPacing uses the 64-bit form of SO_MAX_PACING_RATE (Linux 4.20); the value is in
// bytes per second and all ones is no limit.
func setPacing(fd uintptr, bps int64) error {
	rate := uint64(math.MaxUint64)
	if bps > 0 {
		rate = max(uint64(bps)/8, 1)
	}
	return unix.SetsockoptUint64(int(fd), unix.SOL_SOCKET, unix.SO_MAX_PACING_RATE, rate)
}

// pacing reads the limit back: a kernel before 4.20 has 32 bits and answers so.
func pacing(fd uintptr) (int64, error) {
	v, size, err := getUint64(fd, unix.SOL_SOCKET, unix.SO_MAX_PACING_RATE)
	switch {
	case err != nil:
		return 0, err
	case size == 4 && v == math.MaxUint32, v == math.MaxUint64:
		return 0, nil
	case v > math.MaxInt64/8:
		return math.MaxInt64, nil
	}
	return int64(v) * 8, nil
}

// getUint64 reads an option that is 4 or 8 bytes long, depending on the kernel.
func getUint64(fd uintptr, level, name int) (v uint64, size int, err error) {
	n := uint32(8)
	_, _, e := unix.Syscall6(unix.SYS_GETSOCKOPT, fd, uintptr(level), uintptr(name),
		uintptr(unsafe.Pointer(&v)), uintptr(unsafe.Pointer(&n)), 0)
	if e != 0 {
		return 0, 0, e
	}
	if n == 4 {
		v = uint64(*(*uint32)(unsafe.Pointer(&v)))
	}
	return v, int(n), nil
}

func bindDevice(fd uintptr, dev string) error { return unix.BindToDevice(int(fd), dev) }

// setDontFragment makes datagrams that do not fit an error; off is the kernel's own
// default (net.ipv4.ip_no_pmtu_disc = 0), which fragments those.
func setDontFragment(fd uintptr, v6, on bool) error {
	v := unix.IP_PMTUDISC_WANT
	if on {
		v = unix.IP_PMTUDISC_DO
	}
	if v6 { // the values are those of IPv4
		if err := optMTUDisc6.set(fd, v); err != nil {
			return err
		}
	}
	return optMTUDisc4.set(fd, v)
}

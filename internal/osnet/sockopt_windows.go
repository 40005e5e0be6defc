package osnet

import (
	"errors"
	"net"
	"unsafe"

	"golang.org/x/sys/windows"
)

var (
	optSndBuf      = sockopt{windows.SOL_SOCKET, windows.SO_SNDBUF, true}
	optRcvBuf      = sockopt{windows.SOL_SOCKET, windows.SO_RCVBUF, true}
	optReuseAddr   = sockopt{} // there it lets a stranger take a port in use; a port in TIME_WAIT needs nothing
	optMSS         = sockopt{windows.IPPROTO_TCP, windows.TCP_MAXSEG, true}
	optNoDelay     = sockopt{windows.IPPROTO_TCP, windows.TCP_NODELAY, true}
	optTOS4        = sockopt{windows.IPPROTO_IP, windows.IP_TOS, true}
	optTOS6        = sockopt{windows.IPPROTO_IPV6, ipv6TClass, true}
	optUserTimeout = sockopt{windows.IPPROTO_TCP, windows.TCP_MAXRTMS, true} // milliseconds (Windows 10)
	optKeepAlive   = sockopt{windows.SOL_SOCKET, windows.SO_KEEPALIVE, true}
	optKeepIdle    = sockopt{windows.IPPROTO_TCP, windows.TCP_KEEPIDLE, true}
	optKeepIntvl   = sockopt{windows.IPPROTO_TCP, windows.TCP_KEEPINTVL, true}
	optKeepCount   = sockopt{windows.IPPROTO_TCP, windows.TCP_KEEPCNT, true}
	optLatePort    = sockopt{}
)

// From ws2ipdef.h and winsock2.h.
const (
	ipv6TClass     = 39
	ipUnicastIf    = 31 // interface index in network byte order
	ipv6UnicastIf  = 31 // interface index in host byte order
	ipDontFragment = 14
	ipv6DontFrag   = 14
	fionread       = 0x4004667f
)

const (
	bufferFactor  = 1
	sndBufLimit   = ""
	rcvBufLimit   = ""
	tosCaveat     = "Windows accepts the value but sends its own unless a QoS policy sets the DSCP (New-NetQosPolicy)"
	portRangeName = "netsh int ipv4 show dynamicport tcp"
	// privilegedPorts is the first port that everybody may listen on; Windows has no others.
	privilegedPorts = 0
)

func getInt(fd uintptr, level, name int) (int, error) {
	return windows.GetsockoptInt(windows.Handle(fd), level, name)
}

func setInt(fd uintptr, level, name, v int) error {
	return windows.SetsockoptInt(windows.Handle(fd), level, name, v)
}

func sysctl(string) string               { return "" }
func raiseLimits([]string, int64) string { return "" }
func widenPorts() string                 { return "netsh int ipv4 set dynamicport tcp start=10000 num=55535" }
func portOwner(port uint16) string       { return "netstat -ano | findstr :" + itoa(port) }
func portRange() string                  { return "" }

// There is no count of bytes that are queued or unacknowledged; SIO_TCP_INFO knows only those in flight.
func sendQueue(uintptr) (int, error) { return 0, errors.ErrUnsupported }

func recvQueue(fd uintptr) (int, error) {
	var n, got uint32
	err := windows.WSAIoctl(windows.Handle(fd), fionread, nil, 0,
		(*byte)(unsafe.Pointer(&n)), uint32(unsafe.Sizeof(n)), &got, nil, 0)
	return int(n), err
}

func congestion(uintptr) (string, error)     { return "", errors.ErrUnsupported }
func setCongestion(uintptr, string) error    { return errors.ErrUnsupported }
func congestionAvailable() ([]string, error) { return nil, errors.ErrUnsupported }
func congestionAllowed() []string            { return nil }
func setPacing(uintptr, int64) error         { return errors.ErrUnsupported }
func pacing(uintptr) (int64, error)          { return 0, errors.ErrUnsupported }

// bindDevice makes unicast packets leave by dev (IP_UNICAST_IF). Unlike Linux it does
// not restrict where packets may come in.
func bindDevice(fd uintptr, dev string) error {
	i, err := net.InterfaceByName(dev)
	if err != nil {
		return err
	}
	if isIPv6Socket(fd) {
		return setInt(fd, windows.IPPROTO_IPV6, ipv6UnicastIf, i.Index)
	}
	n := uint32(i.Index)
	return setInt(fd, windows.IPPROTO_IP, ipUnicastIf, int(int32(n<<24|n<<8&0xff0000|n>>8&0xff00|n>>24)))
}

func setDontFragment(fd uintptr, v6, on bool) error {
	o := sockopt{windows.IPPROTO_IP, ipDontFragment, true}
	if v6 {
		o = sockopt{windows.IPPROTO_IPV6, ipv6DontFrag, true}
	}
	return o.setBool(fd, on)
}

func duplicate(uintptr) (int, error) { return -1, errors.ErrUnsupported }
func closeDescriptor(int) error      { return errors.ErrUnsupported }

// socketFamily asks for the protocol's description, since an unbound socket has no name yet.
func socketFamily(fd uintptr) int {
	var info windows.WSAProtocolInfo
	n := int32(unsafe.Sizeof(info))
	const soProtocolInfoW = 0x2005
	if err := windows.Getsockopt(windows.Handle(fd), windows.SOL_SOCKET, soProtocolInfoW, (*byte)(unsafe.Pointer(&info)), &n); err != nil {
		return 0
	}
	switch info.AddressFamily {
	case windows.AF_INET6:
		return 6
	case windows.AF_INET:
		return 4
	}
	return 0
}

func hasIPv6() bool {
	l, err := net.ListenPacket("udp6", "[::1]:0")
	if err != nil {
		return false
	}
	_ = l.Close()
	return true
}

func isAddrNotAvail(err error) bool  { return errors.Is(err, windows.WSAEADDRNOTAVAIL) }
func isAddrInUse(err error) bool     { return errors.Is(err, windows.WSAEADDRINUSE) }
func isNoPermission(err error) bool  { return errors.Is(err, windows.WSAEACCES) }
func isRefused(err error) bool       { return errors.Is(err, windows.WSAECONNREFUSED) }
func isNoFamily(err error) bool      { return errors.Is(err, windows.WSAEAFNOSUPPORT) }
func isBufferRefused(err error) bool { return false }
func isOutOfPorts(err error) bool    { return false }
func isNoOption(err error) bool      { return errors.Is(err, windows.WSAENOPROTOOPT) }
func isInvalid(err error) bool       { return errors.Is(err, windows.WSAEINVAL) }
func isTimedOut(err error) bool      { return errors.Is(err, windows.WSAETIMEDOUT) }
func isTooManyFiles(err error) bool  { return errors.Is(err, windows.WSAEMFILE) }

func probe() Caps {
	c := Caps{BindDevice: true, IPv6: hasIPv6()}
	if s, err := windows.Socket(windows.AF_INET, windows.SOCK_STREAM, windows.IPPROTO_TCP); err == nil {
		c.UserTimeout = optUserTimeout.set(uintptr(s), 1000) == nil
		_ = windows.Closesocket(s)
	}
	if s, err := windows.Socket(windows.AF_INET, windows.SOCK_DGRAM, windows.IPPROTO_UDP); err == nil {
		c.Segment = setSegment(uintptr(s), 1000) == nil
		c.Coalesce = setCoalesce(uintptr(s), true) == nil
		_ = windows.Closesocket(s)
	}
	c.TCPInfo = hasTCPInfo()
	usable, err := usableCPUs()
	c.Affinity = err == nil && len(usable) > 0
	return c
}

// hasTCPInfo asks about a connection over loopback: what the call answers about an
// unconnected socket is not documented.
func hasTCPInfo() bool {
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return false
	}
	defer ln.Close()
	nc, err := net.Dial("tcp4", ln.Addr().String())
	if err != nil {
		return false
	}
	c := NewConn(nc)
	defer c.Close()
	_, err = c.TCPInfo()
	return err == nil
}

package osnet

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// From include/uapi/linux/in6.h; x/sys does not have them.
const (
	ipv6FlowLabelMgr = 32
	ipv6FlowInfoSend = 33
	flowActionGet    = 0 // IPV6_FL_A_GET
	flowActionPut    = 1 // IPV6_FL_A_PUT
	flowCreate       = 1 // IPV6_FL_F_CREATE
	flowReflect      = 4 // IPV6_FL_F_REFLECT
	flowShareAny     = 255
)

// flowRequest is struct in6_flowlabel_req.
type flowRequest struct {
	dst     [16]byte
	label   [4]byte // network byte order
	action  uint8
	share   uint8
	flags   uint16
	expires uint16
	linger  uint16
	_       uint32
}

func (r *flowRequest) set(fd uintptr) error {
	_, _, e := unix.Syscall6(unix.SYS_SETSOCKOPT, fd, unix.IPPROTO_IPV6, ipv6FlowLabelMgr,
		uintptr(unsafe.Pointer(r)), unsafe.Sizeof(*r), 0)
	if e != 0 {
		return e
	}
	return nil
}

func labelBytes(label int) [4]byte {
	return [4]byte{0, byte(label >> 16), byte(label >> 8), byte(label)}
}

func flowError(label int, err error) error {
	return &OptionError{Option: "flow-label", Value: fmt.Sprintf("%#x", label), Err: err}
}

// connectLabelled reserves the flow label for packets to remote (IPV6_FLOWLABEL_MGR),
// binds to local if it is valid, and begins to connect with the label in sin6_flowinfo.
// For TCP the connection is under way when it returns: the runtime's own connect then
// gets EALREADY or EISCONN and waits as usual.
func connectLabelled(fd uintptr, local, remote netip.AddrPort, label int) error {
	req := flowRequest{
		dst: remote.Addr().As16(), label: labelBytes(label),
		action: flowActionGet, share: flowShareAny, flags: flowCreate,
	}
	if err := req.set(fd); err != nil {
		return flowError(label, err)
	}
	if err := unix.SetsockoptInt(int(fd), unix.IPPROTO_IPV6, ipv6FlowInfoSend, 1); err != nil {
		return flowError(label, err)
	}
	if local.IsValid() {
		sa := unix.SockaddrInet6{Addr: local.Addr().As16(), Port: int(local.Port()), ZoneId: zoneIndex(local.Addr().Zone())}
		if err := unix.Bind(int(fd), &sa); err != nil {
			return os.NewSyscallError("bind", err)
		}
	}
	sa := unix.RawSockaddrInet6{
		Family: unix.AF_INET6, Flowinfo: *(*uint32)(unsafe.Pointer(&req.label)),
		Addr: remote.Addr().As16(), Scope_id: zoneIndex(remote.Addr().Zone()),
	}
	port := (*[2]byte)(unsafe.Pointer(&sa.Port))
	port[0], port[1] = byte(remote.Port()>>8), byte(remote.Port())
	_, _, e := unix.Syscall(unix.SYS_CONNECT, fd, uintptr(unsafe.Pointer(&sa)), unsafe.Sizeof(sa))
	if e != 0 && !errors.Is(e, unix.EINPROGRESS) && !errors.Is(e, unix.EINTR) {
		return os.NewSyscallError("connect", e)
	}
	return nil
}

// reflectLabels makes connections of a listening socket answer with the flow label of
// the peer's SYN (Linux 3.14), the only way for the accepting end to send a chosen one.
// The kernel answers EPERM unless net.ipv6.flowlabel_consistency is 0; the default is 1
// (net/ipv6/ip6_flowlabel.c, ipv6_flowlabel_get).
func reflectLabels(fd uintptr, on bool) error {
	req := flowRequest{action: flowActionGet, flags: flowReflect}
	if !on {
		req.action = flowActionPut
	}
	return req.set(fd)
}

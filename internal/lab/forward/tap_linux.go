package forward

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A tap tells when the kernel gave a packet to a TUN device. The loop reads a packet
// some time later, and if it is late then, nothing else would show it: the packet
// would be scheduled from the wrong moment and written punctually by that schedule.
//
// It is a packet socket with a ring in shared memory (packet(7), kernel document
// networking/packet_mmap), into which the kernel puts the time and the first bytes of
// each outgoing packet before the device gets it (dev_queue_xmit_nit, net/core/dev.c).
// A TUN device with one queue gets its packets in the order of its tap.
type tap struct {
	ring []byte
	next int // index of the frame to be read next
}

// The ring holds twice what a device's queue does. A frame has the kernel's header
// (rounded up, 80 bytes; tpacket_rcv, net/packet/af_packet.c) and tapBytes of the packet.
const (
	tapBytes     = 48 // enough to tell any two packets apart: IP header, ports, numbers
	tapFrame     = 128
	tapFrames    = 1 << 15
	tapBlock     = 1 << 16
	tapStaleness = time.Second // no packet waits that long in a device
)

// OpenTap opens a tap on a device of the calling thread's network namespace.
func OpenTap(device string) (*os.File, error) {
	fd, err := openTap(device)
	if err != nil {
		return nil, fmt.Errorf("forward: tap device %s: %w", device, err)
	}
	return os.NewFile(uintptr(fd), "tap of "+device), nil
}

func openTap(device string) (fd int, err error) {
	dev, err := net.InterfaceByName(device)
	if err != nil {
		return -1, err
	}
	// Protocol 0: nothing is received before the bind below.
	fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, unix.Close(fd))
		}
	}()
	// Of outgoing packets the first bytes, of others nothing.
	filter := [...]unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: skfAdPktType},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: 1, K: unix.PACKET_OUTGOING},
		{Code: unix.BPF_RET | unix.BPF_K, K: tapBytes},
		{Code: unix.BPF_RET | unix.BPF_K, K: 0},
	}
	prog := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if err := unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &prog); err != nil {
		return -1, os.NewSyscallError("SO_ATTACH_FILTER", err)
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_VERSION, unix.TPACKET_V2); err != nil {
		return -1, os.NewSyscallError("PACKET_VERSION", err)
	}
	req := unix.TpacketReq{
		Block_size: tapBlock, Block_nr: tapFrame * tapFrames / tapBlock, Frame_size: tapFrame, Frame_nr: tapFrames,
	}
	if err := unix.SetsockoptTpacketReq(fd, unix.SOL_PACKET, unix.PACKET_RX_RING, &req); err != nil {
		return -1, os.NewSyscallError("PACKET_RX_RING", err)
	}
	const everything = unix.ETH_P_ALL>>8 | unix.ETH_P_ALL<<8&0xff00 // in network order
	if err := unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: everything, Ifindex: dev.Index}); err != nil {
		return -1, os.NewSyscallError("bind", err)
	}
	return fd, nil
}

// skfAdPktType is SKF_AD_OFF + SKF_AD_PKTTYPE of linux/filter.h: the filter's way to
// ask for a packet's direction.
const skfAdPktType = 0xfffff000 + 4

// mapTap maps the ring of a tap that OpenTap opened.
func mapTap(fd int) (*tap, error) {
	ring, err := unix.Mmap(fd, 0, tapFrame*tapFrames, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("forward: map the tap: %w", err)
	}
	return &tap{ring: ring}, nil
}

// stamp returns when the packet was given to the device, on CLOCK_REALTIME, and takes
// it and what precedes it off the ring: packets that the device then had no room
// for. ok is false when the ring does not have it, as it was full.
func (t *tap) stamp(packet []byte) (at time.Duration, ok bool) {
	head := packet[:min(len(packet), tapBytes)]
	for i := t.next; ; i = (i + 1) % tapFrames {
		frame := t.ring[i*tapFrame : (i+1)*tapFrame]
		h := (*unix.Tpacket2Hdr)(unsafe.Pointer(unsafe.SliceData(frame)))
		if atomic.LoadUint32(&h.Status)&unix.TP_STATUS_USER == 0 {
			return 0, false
		}
		if int(h.Len) != len(packet) || !bytes.Equal(frame[h.Net:int(h.Net)+len(head)], head) {
			if i+1 == t.next || t.next == 0 && i == tapFrames-1 {
				return 0, false // all around
			}
			continue
		}
		at = time.Duration(h.Sec)*time.Second + time.Duration(h.Nsec)
		for ; t.next != (i+1)%tapFrames; t.next = (t.next + 1) % tapFrames {
			skipped := (*unix.Tpacket2Hdr)(unsafe.Pointer(&t.ring[t.next*tapFrame]))
			atomic.StoreUint32(&skipped.Status, unix.TP_STATUS_KERNEL)
		}
		return at, true
	}
}

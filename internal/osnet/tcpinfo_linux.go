package osnet

import (
	"encoding/binary"
	"math"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/fullbore-net/fullbore/result"
)

// tcpInfoSize covers the fields up to tcpi_rcv_wnd (Linux 6.2) and beyond; the kernel
// copies what it has and says how much.
const tcpInfoSize = 280

func tcpInfo(fd uintptr) (result.TCPInfo, error) {
	var buf [tcpInfoSize]byte
	n := uint32(len(buf))
	_, _, e := unix.Syscall6(unix.SYS_GETSOCKOPT, fd, unix.IPPROTO_TCP, unix.TCP_INFO,
		uintptr(unsafe.Pointer(&buf)), uintptr(unsafe.Pointer(&n)), 0)
	if e != 0 {
		return result.TCPInfo{}, e
	}
	return decodeTCPInfo(buf[:n]), nil
}

// boxed holds the optional fields of one reading, so that a sample costs one allocation.
type boxed struct {
	ssthresh, sndWnd, minRTT, retransBytes, reordSeen, dsackDups, deliveryRate, pacingRate,
	busy, rwnd, sndbuf, deliveredCE, bytesSent, bytesAcked, bytesReceived, notSent int64
}

// decodeTCPInfo reads struct tcp_info (include/uapi/linux/tcp.h). Fields beyond the
// end of b stay nil.
func decodeTCPInfo(b []byte) result.TCPInfo {
	u32 := func(off int) int64 {
		if off+4 > len(b) {
			return 0
		}
		return int64(binary.NativeEndian.Uint32(b[off:]))
	}
	box := new(boxed)
	set := func(p **int64, at *int64, off, size int, factor int64, unlimited bool) {
		if off+size > len(b) {
			return
		}
		var v uint64
		var all uint64 = math.MaxUint32
		if size == 8 {
			v, all = binary.NativeEndian.Uint64(b[off:]), math.MaxUint64
		} else {
			v = uint64(binary.NativeEndian.Uint32(b[off:]))
		}
		if unlimited && v == all {
			return
		}
		if v > uint64(math.MaxInt64/factor) {
			v = uint64(math.MaxInt64 / factor)
		}
		*at = int64(v) * factor
		*p = at
	}
	var ti result.TCPInfo
	if len(b) < 104 { // Linux 2.6.x has this much
		return ti
	}
	opts := b[5]
	ti.Timestamps, ti.SACK, ti.ECN = opts&1 != 0, opts&2 != 0, opts&8 != 0
	ti.WScale = [2]uint8{b[6] & 15, b[6] >> 4}
	ti.AppLimited = b[7]&1 != 0
	ti.MSS, ti.PMTU = u32(16), u32(60)
	ti.Unacked, ti.Lost = u32(24), u32(32)
	ti.RTT, ti.RTTVar = u32(68), u32(72)
	ti.Cwnd = u32(80) * ti.MSS
	if s := u32(76); s < 0x7fffffff { // TCP_INFINITE_SSTHRESH
		box.ssthresh = s * ti.MSS
		ti.Ssthresh = &box.ssthresh
	}
	ti.Reordering, ti.RcvSpace, ti.Retransmits = u32(88), u32(96), u32(100)
	set(&ti.PacingRate, &box.pacingRate, 104, 8, 8, true)
	set(&ti.BytesAcked, &box.bytesAcked, 120, 8, 1, false)
	set(&ti.BytesReceived, &box.bytesReceived, 128, 8, 1, false)
	ti.SegsOut, ti.SegsIn = u32(136), u32(140)
	set(&ti.NotSent, &box.notSent, 144, 4, 1, false)
	set(&ti.MinRTT, &box.minRTT, 148, 4, 1, true)
	set(&ti.DeliveryRate, &box.deliveryRate, 160, 8, 8, false)
	set(&ti.BusyUS, &box.busy, 168, 8, 1, false)
	set(&ti.RwndLimitedUS, &box.rwnd, 176, 8, 1, false)
	set(&ti.SndbufLimUS, &box.sndbuf, 184, 8, 1, false)
	set(&ti.DeliveredCE, &box.deliveredCE, 196, 4, 1, false)
	set(&ti.BytesSent, &box.bytesSent, 200, 8, 1, false)
	set(&ti.RetransBytes, &box.retransBytes, 208, 8, 1, false)
	set(&ti.DSACKDups, &box.dsackDups, 216, 4, 1, false)
	set(&ti.ReordSeen, &box.reordSeen, 220, 4, 1, false)
	set(&ti.SndWnd, &box.sndWnd, 228, 4, 1, false)
	return ti
}

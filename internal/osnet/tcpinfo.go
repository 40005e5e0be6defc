package osnet

import (
	"encoding/binary"
	"math"

	"github.com/fullbore-net/fullbore/result"
)

// The decoders below are pure functions of what the kernel wrote, so that every one of
// them is tested on every system. A field beyond the end of the bytes is one that this
// kernel does not have: it stays nil.

// rawInfo reads fields of a kernel structure in native byte order. Its optional values
// live in one array, so that a reading costs one allocation for all of them.
type rawInfo struct {
	b    []byte
	vals *[16]int64
	used int
}

func (r *rawInfo) has(off, size int) bool { return off+size <= len(r.b) }

// u32 returns 0 for a field that is not there.
func (r *rawInfo) u32(off int) int64 {
	if !r.has(off, 4) {
		return 0
	}
	return int64(binary.NativeEndian.Uint32(r.b[off:]))
}

// opt32 and opt64 return nil for a field that is not there.
func (r *rawInfo) opt32(off int, factor int64) *int64 {
	if !r.has(off, 4) {
		return nil
	}
	return r.keep(uint64(binary.NativeEndian.Uint32(r.b[off:])), factor)
}

func (r *rawInfo) opt64(off int, factor int64) *int64 {
	if !r.has(off, 8) {
		return nil
	}
	return r.keep(binary.NativeEndian.Uint64(r.b[off:]), factor)
}

// keep stores times(v, factor).
func (r *rawInfo) keep(v uint64, factor int64) *int64 {
	if r.vals == nil {
		r.vals = new([16]int64)
	}
	p := &r.vals[r.used]
	r.used++
	*p = times(v, factor)
	return p
}

// times returns v × factor, or the largest int64 when that is beyond it; factor ≥ 0.
func times(v uint64, factor int64) int64 {
	if factor > 0 && v > uint64(math.MaxInt64/factor) {
		return math.MaxInt64
	}
	return int64(v) * factor
}

// The bits of tcpi_options, the same on Linux (linux/tcp.h), FreeBSD (netinet/tcp.h)
// and macOS (TCPCI_OPT_…).
const (
	tcpiTimestamps = 1 << iota
	tcpiSACK
	tcpiWScale
	tcpiECN
)

func options(ti *result.TCPInfo, bits uint32) {
	ti.Timestamps, ti.SACK, ti.ECN = bits&tcpiTimestamps != 0, bits&tcpiSACK != 0, bits&tcpiECN != 0
}

// linuxInfoSize is the size of struct tcp_info that decodeLinux reads at most; the
// kernel copies what it has of it and says how much.
const linuxInfoSize = 232

// minInfo is the end of tcpi_total_retrans, which every kernel in use has.
const minInfo = 104

// decodeLinux reads struct tcp_info (include/uapi/linux/tcp.h, as of 6.18; fields are
// only ever added at the end).
func decodeLinux(b []byte) result.TCPInfo {
	var ti result.TCPInfo
	if len(b) < minInfo {
		return ti
	}
	r := rawInfo{b: b}
	options(&ti, uint32(b[5]))
	if bigEndian {
		ti.WScale = [2]uint8{b[6] >> 4, b[6] & 15}
		ti.AppLimited = b[7]&0x80 != 0
	} else {
		ti.WScale = [2]uint8{b[6] & 15, b[6] >> 4}
		ti.AppLimited = b[7]&1 != 0
	}
	ti.MSS = r.u32(16)
	ti.Unacked, ti.Lost = r.u32(24), r.u32(32)
	ti.PMTU = r.u32(60)
	ti.RTT, ti.RTTVar = r.u32(68), r.u32(72)
	if s := r.u32(76); s < 0x7fffffff { // TCP_INFINITE_SSTHRESH (net/tcp.h)
		ti.Ssthresh = r.keep(uint64(s), max(ti.MSS, 1))
	}
	ti.Cwnd = times(uint64(r.u32(80)), ti.MSS)
	ti.AdvMSS = r.u32(84)
	ti.Reordering, ti.RcvSpace, ti.Retransmits = r.u32(88), r.u32(96), r.u32(100)
	if r.has(104, 8) && binary.NativeEndian.Uint64(b[104:]) != math.MaxUint64 {
		ti.PacingRate = r.opt64(104, 8)
	}
	ti.BytesAcked, ti.BytesReceived = r.opt64(120, 1), r.opt64(128, 1)
	ti.SegsOut, ti.SegsIn = r.u32(136), r.u32(140)
	ti.NotSent = r.opt32(144, 1)
	if r.u32(148) != math.MaxUint32 { // all ones: no sample yet
		ti.MinRTT = r.opt32(148, 1)
	}
	ti.DeliveryRate = r.opt64(160, 8)
	ti.BusyUS, ti.RwndLimitedUS, ti.SndbufLimUS = r.opt64(168, 1), r.opt64(176, 1), r.opt64(184, 1)
	ti.DeliveredCE = r.opt32(196, 1)
	ti.BytesSent, ti.RetransBytes = r.opt64(200, 1), r.opt64(208, 1)
	ti.DSACKDups, ti.ReordSeen = r.opt32(216, 1), r.opt32(220, 1)
	ti.SndWnd = r.opt32(228, 1)
	return ti
}

// freebsdInfoSize ends with tcpi_snd_zerowin.
const freebsdInfoSize = 132

// decodeFreeBSD reads FreeBSD's struct tcp_info (sys/netinet/tcp.h): Linux's names, but
// windows are in bytes, and what FreeBSD does not count is 0.
func decodeFreeBSD(b []byte) result.TCPInfo {
	var ti result.TCPInfo
	if len(b) < freebsdInfoSize {
		return ti
	}
	r := rawInfo{b: b}
	options(&ti, uint32(b[5]))
	ti.WScale = [2]uint8{b[6] & 15, b[6] >> 4}
	ti.MSS = r.u32(16)
	ti.RTT, ti.RTTVar = r.u32(68), r.u32(72)
	// TCP_MAXWIN << TCP_MAX_WINSHIFT stands for infinite (sys/netinet/tcp_subr.c).
	if s := r.u32(76); s < 65535<<14 {
		ti.Ssthresh = r.keep(uint64(s), 1)
	}
	ti.Cwnd, ti.RcvSpace = r.u32(80), r.u32(96)
	ti.SndWnd = r.opt32(100, 1)
	ti.Retransmits = r.u32(120)
	return ti
}

// windowsInfoSize is the size of TCP_INFO_v1 (mstcpip.h); version 0 ends at 88.
const (
	windowsInfoSize   = 136
	windowsInfoSizeV0 = 88
)

// decodeWindows reads TCP_INFO_v0 or _v1. Windows counts retransmitted bytes, not
// segments, so Retransmits stays 0 (Caps.Retransmits is false there).
func decodeWindows(b []byte) result.TCPInfo {
	var ti result.TCPInfo
	if len(b) < windowsInfoSizeV0 {
		return ti
	}
	r := rawInfo{b: b}
	ti.MSS = r.u32(4)
	ti.Timestamps = b[16] != 0
	ti.RTT = r.u32(20)
	if m := r.u32(24); m != math.MaxUint32 && m != 0 {
		ti.MinRTT = r.opt32(24, 1)
	}
	if ti.MSS > 0 {
		ti.Unacked = (r.u32(28) + ti.MSS - 1) / ti.MSS
	}
	ti.Cwnd = r.u32(32)
	ti.SndWnd = r.opt32(36, 1)
	ti.RcvSpace = r.u32(40)
	ti.BytesSent, ti.BytesReceived = r.opt64(48, 1), r.opt64(56, 1)
	ti.RetransBytes = r.opt32(68, 1)
	if r.has(windowsInfoSizeV0, windowsInfoSize-windowsInfoSizeV0) {
		// Milliseconds limited by the receiver's window and by the congestion window;
		// the third state is an application that does not write.
		rwnd, cwnd := r.u32(92), r.u32(108)
		ti.RwndLimitedUS = r.keep(uint64(rwnd), 1000)
		ti.BusyUS = r.keep(uint64(rwnd+cwnd), 1000)
	}
	return ti
}

var bigEndian = binary.NativeEndian.Uint16([]byte{1, 0}) != 1

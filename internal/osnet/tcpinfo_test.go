package osnet

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fullbore-net/fullbore/result"
)

// field is one value of a kernel structure.
type field struct {
	off  int
	size int
	v    uint64
}

func infoBytes(size int, fields ...field) []byte {
	b := make([]byte, size)
	for _, f := range fields {
		switch f.size {
		case 1:
			b[f.off] = byte(f.v)
		case 4:
			binary.NativeEndian.PutUint32(b[f.off:], uint32(f.v))
		case 8:
			binary.NativeEndian.PutUint64(b[f.off:], f.v)
		}
	}
	return b
}

func ptr(v int64) *int64 { return &v }

// linuxFields is a made-up busy connection. Offsets: include/uapi/linux/tcp.h.
var linuxFields = []field{
	{5, 1, 1 | 2 | 4 | 8}, // timestamps, SACK, window scale, ECN
	{16, 4, 1448},
	{24, 4, 20},
	{32, 4, 3},
	{60, 4, 1500},
	{68, 4, 28_000},
	{72, 4, 700},
	{76, 4, 50},
	{80, 4, 100},
	{88, 4, 5},
	{96, 4, 65_535},
	{100, 4, 7},
	{104, 8, 12_500_000},
	{120, 8, 1 << 40},
	{128, 8, 9},
	{136, 4, 1000},
	{140, 4, 500},
	{144, 4, 4096},
	{148, 4, 27_000},
	{160, 8, 6_250_000},
	{168, 8, 900},
	{176, 8, 100},
	{184, 8, 50},
	{196, 4, 11},
	{200, 8, 1<<40 + 5},
	{208, 8, 10_136},
	{216, 4, 2},
	{220, 4, 4},
	{228, 4, 3 << 20},
}

func TestDecodeLinux(t *testing.T) {
	scale, app := byte(0x97), byte(1) // send 7, receive 9
	if bigEndian {
		scale, app = 0x79, 0x80
	}
	full := infoBytes(280, linuxFields...)
	full[6], full[7] = scale, app
	want := result.TCPInfo{
		MSS: 1448, PMTU: 1500, Cwnd: 144_800, Ssthresh: ptr(72_400), SndWnd: ptr(3 << 20), RcvSpace: 65_535,
		RTT: 28_000, RTTVar: 700, MinRTT: ptr(27_000), Retransmits: 7, RetransBytes: ptr(10_136), Lost: 3, Unacked: 20,
		Reordering: 5, ReordSeen: ptr(4), DSACKDups: ptr(2), DeliveryRate: ptr(50_000_000), AppLimited: true,
		PacingRate: ptr(100_000_000), BusyUS: ptr(900), RwndLimitedUS: ptr(100), SndbufLimUS: ptr(50), DeliveredCE: ptr(11),
		BytesSent: ptr(1<<40 + 5), BytesAcked: ptr(1 << 40), BytesReceived: ptr(9), NotSent: ptr(4096),
		SegsOut: 1000, SegsIn: 500, ECN: true, SACK: true, WScale: [2]uint8{7, 9}, Timestamps: true,
	}
	if d := cmp.Diff(want, decodeLinux(full)); d != "" {
		t.Errorf("Linux 6.18 (-want +got):\n%s", d)
	}

	// Older kernels end earlier: what is missing is nil, the rest is the same.
	w419 := want
	w419.SndWnd = nil
	if d := cmp.Diff(w419, decodeLinux(full[:224])); d != "" {
		t.Errorf("Linux 4.19, without tcpi_snd_wnd (-want +got):\n%s", d)
	}
	w310 := result.TCPInfo{
		MSS: 1448, PMTU: 1500, Cwnd: 144_800, Ssthresh: ptr(72_400), RcvSpace: 65_535, RTT: 28_000, RTTVar: 700,
		Retransmits: 7, Lost: 3, Unacked: 20, Reordering: 5, AppLimited: true, ECN: true, SACK: true,
		WScale: [2]uint8{7, 9}, Timestamps: true,
	}
	if d := cmp.Diff(w310, decodeLinux(full[:104])); d != "" {
		t.Errorf("Linux 3.10, up to tcpi_total_retrans (-want +got):\n%s", d)
	}
	if d := cmp.Diff(result.TCPInfo{}, decodeLinux(full[:100])); d != "" {
		t.Errorf("too short (-want +got):\n%s", d)
	}
}

// Values that stand for "none", and values that do not fit.
func TestDecodeLinuxSpecial(t *testing.T) {
	got := decodeLinux(infoBytes(232,
		field{16, 4, 1448}, field{76, 4, 0x7fffffff}, field{104, 8, math.MaxUint64}, field{148, 4, math.MaxUint32}, field{160, 8, 1 << 62}))
	if got.Ssthresh != nil || got.PacingRate != nil || got.MinRTT != nil {
		t.Errorf("threshold %v, pacing %v, minimum %v: want nil for infinite, unlimited and unmeasured", got.Ssthresh, got.PacingRate, got.MinRTT)
	}
	if got.DeliveryRate == nil || *got.DeliveryRate != math.MaxInt64 {
		t.Errorf("delivery rate %v, want the largest number instead of an overflow", got.DeliveryRate)
	}
}

func TestDecodeFreeBSD(t *testing.T) {
	b := infoBytes(236,
		field{5, 1, 1 | 2 | 4}, field{6, 1, 0x68}, field{16, 4, 1448}, field{68, 4, 28_000}, field{72, 4, 700},
		field{76, 4, 70_000}, field{80, 4, 140_000}, field{96, 4, 65_000}, field{100, 4, 3 << 20}, field{120, 4, 7})
	want := result.TCPInfo{
		MSS: 1448, Cwnd: 140_000, Ssthresh: ptr(70_000), SndWnd: ptr(3 << 20), RcvSpace: 65_000, RTT: 28_000, RTTVar: 700,
		Retransmits: 7, SACK: true, Timestamps: true, WScale: [2]uint8{8, 6},
	}
	if d := cmp.Diff(want, decodeFreeBSD(b)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	binary.NativeEndian.PutUint32(b[76:], 65535<<14)
	if got := decodeFreeBSD(b); got.Ssthresh != nil {
		t.Errorf("infinite threshold came as %d", *got.Ssthresh)
	}
	if d := cmp.Diff(result.TCPInfo{}, decodeFreeBSD(b[:100])); d != "" {
		t.Errorf("too short (-want +got):\n%s", d)
	}
}

func TestDecodeWindows(t *testing.T) {
	b := infoBytes(136,
		field{4, 4, 1460}, field{16, 1, 1}, field{20, 4, 28_000}, field{24, 4, 27_000}, field{28, 4, 14_601}, field{32, 4, 140_000},
		field{36, 4, 3 << 20}, field{40, 4, 65_000}, field{48, 8, 1 << 40}, field{56, 8, 9}, field{68, 4, 10_220},
		field{92, 4, 100}, field{108, 4, 800})
	want := result.TCPInfo{
		MSS: 1460, Cwnd: 140_000, SndWnd: ptr(3 << 20), RcvSpace: 65_000, RTT: 28_000, MinRTT: ptr(27_000),
		RetransBytes: ptr(10_220), Unacked: 11, BytesSent: ptr(1 << 40), BytesReceived: ptr(9),
		BusyUS: ptr(900_000), RwndLimitedUS: ptr(100_000), Timestamps: true,
	}
	if d := cmp.Diff(want, decodeWindows(b)); d != "" {
		t.Errorf("version 1 (-want +got):\n%s", d)
	}
	v0 := want
	v0.BusyUS, v0.RwndLimitedUS = nil, nil
	if d := cmp.Diff(v0, decodeWindows(b[:88])); d != "" {
		t.Errorf("version 0 (-want +got):\n%s", d)
	}
	if d := cmp.Diff(result.TCPInfo{}, decodeWindows(b[:80])); d != "" {
		t.Errorf("too short (-want +got):\n%s", d)
	}
}

// Whatever a kernel writes, the decoders neither fail nor give a negative number.
func FuzzDecode(f *testing.F) {
	f.Add(infoBytes(280, linuxFields...))
	f.Add(make([]byte, 104))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		for name, decode := range map[string]func([]byte) result.TCPInfo{"linux": decodeLinux, "freebsd": decodeFreeBSD, "windows": decodeWindows} {
			ti := decode(b)
			for _, v := range []*int64{
				&ti.MSS, &ti.Cwnd, &ti.RTT, &ti.Retransmits, &ti.Unacked, ti.Ssthresh, ti.SndWnd, ti.MinRTT, ti.RetransBytes,
				ti.DeliveryRate, ti.PacingRate, ti.BusyUS, ti.RwndLimitedUS, ti.SndbufLimUS, ti.BytesSent, ti.BytesAcked, ti.BytesReceived,
			} {
				if v != nil && *v < 0 {
					t.Errorf("%s: %d", name, *v)
				}
			}
		}
	})
}

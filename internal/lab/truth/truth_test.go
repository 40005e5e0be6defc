package truth_test

import (
	"encoding/binary"
	"encoding/json"
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/fullbore-net/fullbore/internal/lab/truth"
)

const ms = time.Millisecond

var (
	a4 = netip.MustParseAddrPort("10.77.0.1:40000")
	b4 = netip.MustParseAddrPort("10.77.0.2:5201")
	a6 = netip.MustParseAddrPort("[fd77::1]:40000")
	b6 = netip.MustParseAddrPort("[fd77::2]:5201")
)

// tcp builds a segment between two addresses of one family. extensions are IPv6
// extension headers, each with its length field right and its "next" field empty.
func tcp(src, dst netip.AddrPort, seq uint32, syn bool, payload int, extensions ...[]byte) []byte {
	const tcpHeader = 32 // with 12 bytes of options, as every segment with timestamps has
	var p []byte
	if src.Addr().Is4() {
		p = make([]byte, 20, 60+payload)
		p[0] = 0x45
		binary.BigEndian.PutUint16(p[2:], uint16(20+tcpHeader+payload))
		p[9] = 6
		copy(p[12:], src.Addr().AsSlice())
		copy(p[16:], dst.Addr().AsSlice())
	} else {
		p = make([]byte, 40, 80+payload)
		p[0] = 0x60
		p[6] = 6
		copy(p[8:], src.Addr().AsSlice())
		copy(p[24:], dst.Addr().AsSlice())
		next := 6
		for _, e := range extensions {
			p[next] = e[0]
			next = len(p)
			p = append(p, e[1:]...)
			p[next] = 6
		}
		binary.BigEndian.PutUint16(p[4:], uint16(len(p)-40+tcpHeader+payload))
	}
	h := make([]byte, tcpHeader+payload)
	binary.BigEndian.PutUint16(h[0:], src.Port())
	binary.BigEndian.PutUint16(h[2:], dst.Port())
	binary.BigEndian.PutUint32(h[4:], seq)
	h[12] = tcpHeader / 4 << 4
	h[13] = 0x10
	if syn {
		h[13] = 0x02
	}
	return append(p, h...)
}

// one returns the only flow.
func one(t *testing.T, tr *truth.Tracker) truth.Flow {
	t.Helper()
	flows := tr.Freeze().Flows()
	if len(flows) != 1 {
		t.Fatalf("%d flows, want 1", len(flows))
	}
	return flows[0]
}

// TestFirstCopies sends segments given by offset into the payload, near every
// wrap of the sequence number.
func TestFirstCopies(t *testing.T) {
	type seg struct{ offset, size int }
	tests := []struct {
		name                              string
		segs                              []seg
		bytes, repeated, missing, inOrder int64
	}{
		{"in order", []seg{{0, 100}, {100, 100}}, 200, 0, 0, 200},
		{"repeated", []seg{{0, 100}, {0, 100}, {50, 100}}, 150, 150, 0, 150},
		{"a lost first copy counts when it comes", []seg{{0, 100}, {200, 100}, {100, 100}}, 300, 0, 0, 300},
		{"and only once", []seg{{0, 100}, {200, 100}, {100, 100}, {100, 100}}, 300, 100, 0, 300},
		{"missing", []seg{{0, 100}, {200, 100}}, 200, 0, 100, 100},
		{"hole at the very start", []seg{{100, 100}}, 100, 0, 100, 0},
		{"hole filled from its left", []seg{{0, 10}, {100, 10}, {10, 40}}, 60, 0, 50, 50},
		{"hole filled from its right", []seg{{0, 10}, {100, 10}, {50, 50}}, 70, 0, 40, 10},
		{"hole filled in its middle", []seg{{0, 10}, {100, 10}, {40, 20}}, 40, 0, 70, 10},
		{"one segment over several holes", []seg{{10, 10}, {30, 10}, {50, 10}, {5, 50}}, 55, 25, 5, 0},
		{"one segment over everything and more", []seg{{10, 10}, {30, 10}, {0, 100}}, 100, 20, 0, 100},
		{"keepalive probe before the first byte", []seg{{-1, 1}, {0, 10}}, 10, 1, 0, 10},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, isn := range []uint32{0, 1000, 1<<31 - 20, 1<<32 - 1, 1<<32 - 2, 1<<32 - 60} {
				tr := truth.NewTracker()
				tr.Observe(0, tcp(a4, b4, isn, true, 0))
				for _, s := range tt.segs {
					tr.Observe(0, tcp(a4, b4, isn+1+uint32(int32(s.offset)), false, s.size))
				}
				f := one(t, tr)
				got := []int64{f.Bytes, f.Repeated, f.Missing, f.Series.InOrder[len(f.Series.InOrder)-1]}
				if diff := cmp.Diff([]int64{tt.bytes, tt.repeated, tt.missing, tt.inOrder}, got); diff != "" {
					t.Errorf("isn %d: bytes, repeated, missing, in order (-want +got):\n%s", isn, diff)
				}
			}
		})
	}
}

// TestAgainstBitmap sends random segments around several wraps of the sequence
// number and compares with a byte-by-byte record.
func TestAgainstBitmap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		isn := rapid.Uint32().Draw(t, "isn")
		tr := truth.NewTracker()
		tr.Observe(0, tcp(a6, b6, isn, true, 0))
		seen := map[int]bool{}
		var repeated int64
		high := 0
		for range rapid.IntRange(1, 80).Draw(t, "segments") {
			start := max(0, high+rapid.IntRange(-3000, 1000).Draw(t, "offset"))
			size := rapid.IntRange(1, 1500).Draw(t, "size")
			tr.Observe(0, tcp(a6, b6, isn+1+uint32(start), false, size))
			for i := start; i < start+size; i++ {
				if seen[i] {
					repeated++
				}
				seen[i] = true
			}
			high = max(high, start+size)
		}
		inOrder := 0
		for seen[inOrder] {
			inOrder++
		}
		f := tr.Freeze().Flows()[0]
		want := []int64{int64(len(seen)), repeated, int64(high - len(seen)), int64(inOrder)}
		got := []int64{f.Bytes, f.Repeated, f.Missing, f.Series.InOrder[0]}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("bytes, repeated, missing, in order (-want +got):\n%s", diff)
		}
	})
}

// TestLongFlow: 10 GB pass through the 32-bit sequence space more than twice.
func TestLongFlow(t *testing.T) {
	tr := truth.NewTracker()
	tr.Observe(0, tcp(a4, b4, 77, true, 0))
	const size, n = 65_000, 153_847
	p := tcp(a4, b4, 0, false, size)
	for i := range n {
		binary.BigEndian.PutUint32(p[24:], 78+uint32(i*size))
		tr.Observe(time.Duration(i), p)
	}
	if f := one(t, tr); f.Bytes != size*n || f.Repeated != 0 || f.Missing != 0 {
		t.Errorf("counted %d, repeated %d, missing %d of %d", f.Bytes, f.Repeated, f.Missing, size*n)
	}
}

func TestSeries(t *testing.T) {
	tr := truth.NewTracker()
	send := func(at time.Duration, offset, size int) {
		tr.Observe(at, tcp(a4, b4, 1+uint32(offset), false, size))
	}
	tr.Observe(9*ms, tcp(a4, b4, 0, true, 0))
	send(10*ms+100_000, 0, 100)
	send(10*ms+900_000, 100, 100)
	send(13*ms, 300, 100)         // 200..300 is missing
	send(13*ms+1, 0, 100)         // nothing new
	frozen := tr.Freeze()         // an open bucket
	send(13*ms+500_000, 400, 100) // the same bucket goes on
	send(20*ms, 200, 100)         // the hole is filled
	send(21*ms, 0, 100)           // a bucket with nothing new

	want := truth.Flow{
		Src: a4, Dst: b4, First: 10*ms + 100_000, Last: 20 * ms, Bytes: 500, Repeated: 200,
		Series: truth.Series{
			Millis:  []int64{10, 13, 20, 21},
			Bytes:   []int64{200, 400, 500, 500},
			InOrder: []int64{200, 200, 500, 500},
		},
	}
	f := one(t, tr)
	opt := cmpopts.EquateComparable(netip.AddrPort{})
	if diff := cmp.Diff(want, f, opt); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	wantFrozen := truth.Flow{
		Src: a4, Dst: b4, First: 10*ms + 100_000, Last: 13 * ms, Bytes: 300, Repeated: 100, Missing: 100,
		Series: truth.Series{Millis: []int64{10, 13}, Bytes: []int64{200, 300}, InOrder: []int64{200, 200}},
	}
	if diff := cmp.Diff([]truth.Flow{wantFrozen}, frozen.Flows(), opt); diff != "" {
		t.Errorf("frozen earlier (-want +got):\n%s", diff)
	}

	for _, w := range []struct {
		t0, t1        time.Duration
		bytes, inside float64
	}{
		{0, time.Hour, 500, 500},
		{0, 10 * ms, 0, 0},
		{10 * ms, 11 * ms, 200, 200},
		{10*ms + 500_000, 11 * ms, 100, 100}, // half a bucket
		{11 * ms, 13 * ms, 0, 0},
		{11 * ms, 14 * ms, 200, 0},
		{14 * ms, 20*ms + 500_000, 50, 150},
		{20 * ms, 30 * ms, 100, 300},
		{30 * ms, 40 * ms, 0, 0},
	} {
		if got := f.Between(w.t0, w.t1); got != w.bytes {
			t.Errorf("Between(%v, %v) = %v, want %v", w.t0, w.t1, got, w.bytes)
		}
		if got := f.InOrderBetween(w.t0, w.t1); got != w.inside {
			t.Errorf("InOrderBetween(%v, %v) = %v, want %v", w.t0, w.t1, got, w.inside)
		}
	}
}

// TestConnections: flows are told apart by direction, family and SYN.
func TestConnections(t *testing.T) {
	tr := truth.NewTracker()
	tr.Observe(0, tcp(a4, b4, 100, true, 0))
	tr.Observe(0, tcp(a4, b4, 100, true, 0)) // a repeated SYN is not a new connection
	tr.Observe(0, tcp(a4, b4, 101, false, 10))
	tr.Observe(0, tcp(b4, a4, 900, true, 0))
	tr.Observe(0, tcp(b4, a4, 901, false, 20))
	tr.Observe(0, tcp(a6, b6, 5, true, 30)) // payload in the SYN (TCP Fast Open)
	tr.Observe(0, tcp(a6, b6, 6+30, false, 30, []byte{60, 0, 0, 1, 4, 0, 0, 0, 0}, []byte{0, 0, 1, 1, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}))
	tr.Observe(0, tcp(a4, b4, 7777, true, 0)) // the ports of the first again
	tr.Observe(0, tcp(a4, b4, 7778, false, 40))
	tr.Observe(0, tcp(a6, b4Mapped(), 1, true, 0)) // no payload ever: not listed
	tr.Observe(0, tcp(b6, a6, 1, false, 50))       // no SYN seen

	type row struct {
		Src, Dst netip.AddrPort
		Bytes    int64
	}
	var got []row
	for _, f := range tr.Freeze().Flows() {
		got = append(got, row{f.Src, f.Dst, f.Bytes})
		if f.Repeated != 0 || f.Missing != 0 {
			t.Errorf("%v → %v: repeated %d, missing %d", f.Src, f.Dst, f.Repeated, f.Missing)
		}
	}
	want := []row{{a4, b4, 10}, {b4, a4, 20}, {a6, b6, 60}, {a4, b4, 40}}
	if diff := cmp.Diff(want, got, cmpopts.EquateComparable(netip.AddrPort{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if tr.Untracked() != 50 {
		t.Errorf("untracked %d, want 50", tr.Untracked())
	}
}

func b4Mapped() netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom16(b4.Addr().As16()), b4.Port())
}

// TestNotCounted: none of these is a TCP segment with payload of a known flow.
func TestNotCounted(t *testing.T) {
	good := func() []byte { return tcp(a4, b4, 1, false, 10) }
	edit := func(f func(p []byte) []byte) []byte { return f(good()) }
	packets := map[string][]byte{
		"empty":              {},
		"version 5":          edit(func(p []byte) []byte { p[0] = 0x55; return p }),
		"UDP":                edit(func(p []byte) []byte { p[9] = 17; return p }),
		"first fragment":     edit(func(p []byte) []byte { p[6] = 0x20; return p }),
		"later fragment":     edit(func(p []byte) []byte { p[7] = 1; return p }),
		"cut short":          edit(func(p []byte) []byte { return p[:len(p)-1] }),
		"IP header too long": edit(func(p []byte) []byte { p[0] = 0x4f; p[3] = 59; return p }),
		"TCP header too long": edit(func(p []byte) []byte {
			p[32] = 0xf0
			return p
		}),
		"TCP header too short": edit(func(p []byte) []byte { p[32] = 0x40; return p }),
		"IPv6 fragment":        tcp(a6, b6, 1, false, 10, []byte{44, 0, 0, 0, 0, 0, 0, 0, 0}),
		"IPv6 cut short":       tcp(a6, b6, 1, false, 10)[:81],
		"IPv6 extension longer than the packet": tcp(a6, b6, 1, false, 0,
			[]byte{60, 0, 255, 0, 0, 0, 0, 0, 0}),
	}
	for name, p := range packets {
		t.Run(name, func(t *testing.T) {
			tr := truth.NewTracker()
			tr.Observe(0, tcp(a4, b4, 0, true, 0))
			tr.Observe(0, tcp(a6, b6, 0, true, 0))
			tr.Observe(0, p)
			if flows := tr.Freeze().Flows(); len(flows) != 0 || tr.Untracked() != 0 {
				t.Errorf("counted: %+v, untracked %d", flows, tr.Untracked())
			}
		})
	}
	// Bytes after the IP packet's own length (padding) are not payload.
	tr := truth.NewTracker()
	tr.Observe(0, tcp(a4, b4, 0, true, 0))
	tr.Observe(0, append(good(), 1, 2, 3))
	if f := one(t, tr); f.Bytes != 10 {
		t.Errorf("counted %d, want 10", f.Bytes)
	}
}

func TestJSON(t *testing.T) {
	tr := truth.NewTracker()
	tr.Observe(0, tcp(a6, b6, 0, true, 0))
	tr.Observe(5*ms, tcp(a6, b6, 1, false, 10))
	want := tr.Freeze().Flows()
	doc, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	var got []truth.Flow
	if err := json.Unmarshal(doc, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateComparable(netip.AddrPort{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// FuzzObserve: no packet makes the tracker count more than the packet holds.
func FuzzObserve(f *testing.F) {
	f.Add(tcp(a4, b4, 1, false, 10))
	f.Add(tcp(a4, b4, 1, true, 0))
	f.Add(tcp(a6, b6, 1, false, 10, []byte{60, 0, 0, 1, 4, 0, 0, 0, 0}))
	f.Fuzz(func(t *testing.T, p []byte) {
		tr := truth.NewTracker()
		tr.Observe(0, tcp(a4, b4, 0, true, 0))
		tr.Observe(0, p)
		total := tr.Untracked()
		for _, fl := range tr.Freeze().Flows() {
			total += fl.Bytes + fl.Repeated
		}
		if total < 0 || total > int64(max(0, len(p)-40)) {
			t.Errorf("counted %d payload bytes in a packet of %d", total, len(p))
		}
	})
}

func BenchmarkObserve(b *testing.B) {
	tr := truth.NewTracker()
	tr.Observe(0, tcp(a4, b4, 0, true, 0))
	p := tcp(a4, b4, 1, false, 1448)
	seq := uint32(1)
	var now time.Duration
	for b.Loop() {
		binary.BigEndian.PutUint32(p[24:], seq)
		seq += 1448
		now += 24 * time.Microsecond
		tr.Observe(now, p)
	}
}

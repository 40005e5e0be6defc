package truth_test

import (
	"encoding/binary"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/fullbore-net/fullbore/internal/lab/truth"
)

// udp builds a datagram between two addresses of one family.
func udp(src, dst netip.AddrPort, payload []byte) []byte {
	size := 8 + len(payload)
	var p []byte
	if src.Addr().Is4() {
		p = make([]byte, 20, 20+size)
		p[0], p[9] = 0x45, 17
		binary.BigEndian.PutUint16(p[2:], uint16(20+size))
		p[6] = 0x40 // DF
		copy(p[12:], src.Addr().AsSlice())
		copy(p[16:], dst.Addr().AsSlice())
	} else {
		p = make([]byte, 40, 40+size)
		p[0], p[6] = 0x60, 17
		binary.BigEndian.PutUint16(p[4:], uint16(size))
		copy(p[8:], src.Addr().AsSlice())
		copy(p[24:], dst.Addr().AsSlice())
	}
	h := make([]byte, 8)
	binary.BigEndian.PutUint16(h[0:], src.Port())
	binary.BigEndian.PutUint16(h[2:], dst.Port())
	binary.BigEndian.PutUint16(h[4:], uint16(size))
	return append(append(p, h...), payload...)
}

func TestIsData(t *testing.T) {
	data := make([]byte, 100)
	first := udp(a4, b4, data)
	first[6] = 0x20 // more fragments
	later := udp(a4, b4, data)
	later[7] = 1
	longer := udp(a4, b4, data)
	binary.BigEndian.PutUint16(longer[24:], 109)
	extended := append(append(udp(a6, b6, nil)[:40:40], 17, 0, 0, 0, 0, 0, 0, 0), udp(a6, b6, data)[40:]...)
	extended[6] = 60
	binary.BigEndian.PutUint16(extended[4:], 8+108)
	tests := []struct {
		name string
		p    []byte
		want bool
	}{
		{"data", udp(a4, b4, data), true},
		{"data over IPv6", udp(a6, b6, data), true},
		{"behind destination options", extended, true},
		{"the least", udp(a4, b4, data[:16]), true},
		{"greeting", udp(a4, b4, data[:4]), false},
		{"greeting with an index", udp(a6, b6, data[:45]), false},
		{"probe", udp(a4, b4, append([]byte("FBP1"), data...)), false},
		{"first fragment", first, false},
		{"later fragment", later, false},
		{"TCP", tcp(a4, b4, 1, false, 100), false},
		{"cut short", udp(a4, b4, data)[:60], false},
		{"longer than its packet", longer, false},
		{"no header", udp(a4, b4, data)[:26], false},
		{"nothing", nil, false},
		{"no IP", []byte{0}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := truth.IsData(tt.p); got != tt.want {
				t.Errorf("data %v, want %v", got, tt.want)
			}
			tr := truth.NewTracker()
			if got := tr.Enter(0, tt.p).Counts(); got != tt.want {
				t.Errorf("counted %v, want %v", got, tt.want)
			}
			if got, want := tr.Fragments(), int64(0); (got > want) != (tt.name == "first fragment" || tt.name == "later fragment") {
				t.Errorf("%d fragments", got)
			}
		})
	}
	v6 := udp(a6, b6, append([]byte{17, 0, 0, 1, 0, 0, 0, 0}, data...))
	copy(v6[40:], v6[48:56]) // the fragment header comes first
	v6[6] = 44
	tr := truth.NewTracker()
	if tr.Enter(0, v6).Counts() || tr.Fragments() != 1 {
		t.Errorf("an IPv6 fragment: %d fragments", tr.Fragments())
	}
}

// TestArrivals gives orders of leaving that can be checked by hand.
func TestArrivals(t *testing.T) {
	tests := []struct {
		name  string
		order []int
		lost  []int // what is below the greatest number and neither left nor lost is on its way
		want  truth.Arrivals
	}{
		{"in order", []int{0, 1, 2, 3}, nil, truth.Arrivals{Distinct: 4}},
		{"lost", []int{0, 3}, []int{1, 2}, truth.Arrivals{Distinct: 2}},
		{"on the way", []int{0, 3}, []int{1}, truth.Arrivals{Distinct: 2, OnTheWay: 1}},
		{"copies", []int{0, 0, 1, 2, 1, 2, 3}, nil, truth.Arrivals{Distinct: 4, Duplicates: 3}},
		{"one is late by one", []int{0, 2, 1, 3}, nil, truth.Arrivals{Distinct: 4, Reordered: 1, MaxExtent: 1}},
		{"one is late by three", []int{0, 2, 3, 4, 1}, nil, truth.Arrivals{Distinct: 5, Reordered: 1, MaxExtent: 3}},
		{"one is early: all that it passes are reordered", []int{0, 4, 1, 2, 3}, nil, truth.Arrivals{Distinct: 5, Reordered: 3, MaxExtent: 3}},
		{"a copy that is late is no reordering", []int{0, 1, 2, 3, 0}, nil, truth.Arrivals{Distinct: 4, Duplicates: 1}},
		{"copies do not count in the extent", []int{1, 1, 2, 2, 0}, nil, truth.Arrivals{Distinct: 3, Duplicates: 2, Reordered: 1, MaxExtent: 2}},
		{"the first copy decides", []int{0, 2, 1, 1}, nil, truth.Arrivals{Distinct: 3, Duplicates: 1, Reordered: 1, MaxExtent: 1}},
		{"nothing left", nil, []int{0}, truth.Arrivals{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tr := truth.NewTracker()
			n := max(len(tt.lost), 1)
			for _, k := range tt.order {
				n = max(n, k+1)
			}
			for _, k := range tt.lost {
				n = max(n, k+1)
			}
			refs := make([]truth.Ref, n)
			for i := range refs {
				refs[i] = tr.Enter(time.Duration(i)*ms, udp(a4, b4, make([]byte, 100)))
			}
			for _, k := range tt.lost {
				tr.Lost(refs[k])
			}
			seen := map[int]bool{}
			for i, k := range tt.order {
				tr.Left(time.Duration(100+i)*ms, refs[k], seen[k])
				seen[k] = true
			}
			flows := tr.Freeze().Datagrams()
			if len(flows) != 1 {
				t.Fatalf("%d flows", len(flows))
			}
			f := flows[0]
			if diff := cmp.Diff(tt.want, f.Arrivals()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if f.In != int64(n) || f.InBytes != int64(100*n) || f.Lost != int64(len(tt.lost)) || f.Src != a4 || f.Dst != b4 {
				t.Errorf("flow %+v", f)
			}
			if got, want := f.Between(0, time.Hour), float64(100*tt.want.Distinct); got != want {
				t.Errorf("%v bytes left, want %v", got, want)
			}
		})
	}
}

// TestArrivalsAgainstDefinition compares random orders with RFC 4737's definitions,
// taken literally.
func TestArrivalsAgainstDefinition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 60).Draw(t, "datagrams")
		var d truth.Datagrams
		d.In = int64(n)
		for range rapid.IntRange(0, 100).Draw(t, "arrivals") {
			// Mostly near the one before, so that there is order to be disturbed.
			at := len(d.Order) * n / 100
			d.Order = append(d.Order, int64(max(0, min(n-1, at+rapid.IntRange(-5, 5).Draw(t, "off")))))
		}
		want := truth.Arrivals{}
		var distinct []int64
		for _, s := range d.Order {
			if slices.Contains(distinct, s) {
				want.Duplicates++
				continue
			}
			for j, other := range distinct {
				if other > s {
					want.Reordered++
					want.MaxExtent = max(want.MaxExtent, int64(len(distinct)-j))
					break
				}
			}
			distinct = append(distinct, s)
		}
		want.Distinct = int64(len(distinct))
		want.OnTheWay = d.In - want.Distinct
		if diff := cmp.Diff(want, d.Arrivals()); diff != "" {
			t.Fatalf("order %v (-want +got):\n%s", d.Order, diff)
		}
	})
}

// TestDatagramDelays: each flow's delays are its own, from when it was offered, and the
// variation is that of first copies.
func TestDatagramDelays(t *testing.T) {
	tr := truth.NewTracker()
	enter := func(at time.Duration, from netip.AddrPort) truth.Ref {
		return tr.Enter(at, udp(from, b4, make([]byte, 200)))
	}
	other := netip.AddrPortFrom(a4.Addr(), 1)
	r0, r1, o0 := enter(0, a4), enter(1*ms, a4), enter(1*ms, other)
	tr.Left(10*ms, r1, false)
	before := tr.Freeze()
	tr.Left(12*ms, r0, false)
	tr.Left(12*ms, r0, true)
	tr.Left(31*ms, o0, false)
	tr.Left(31*ms, truth.Ref{}, false) // a packet that does not count
	tr.Lost(truth.Ref{})
	flows := tr.Freeze().Datagrams()
	if len(flows) != 2 {
		t.Fatalf("%d flows", len(flows))
	}
	want := [][]int64{{int64(9 * ms), int64(12 * ms), int64(12 * ms)}, {int64(30 * ms)}}
	for i, f := range flows {
		if diff := cmp.Diff(want[i], f.Delay); diff != "" {
			t.Errorf("flow %d (-want +got):\n%s", i, diff)
		}
	}
	if diff := cmp.Diff([]time.Duration{0, 0, 3 * ms}, truth.PDV(flows)); diff != "" {
		t.Errorf("variation (-want +got):\n%s", diff)
	}
	a := &flows[0]
	if a.First != 10*ms || a.Last != 12*ms || a.Between(0, 11*ms) != 200 || a.Between(11*ms, 13*ms) != 200 || a.Between(13*ms, time.Hour) != 0 {
		t.Errorf("series %+v from %v to %v", a.Series, a.First, a.Last)
	}
	if was := before.Datagrams(); len(was[0].Order) != 1 || was[0].Between(0, time.Hour) != 200 || len(was[1].Order) != 0 || was[1].Between(0, time.Hour) != 0 {
		t.Errorf("a frozen state changed: %+v", was)
	}
}

func TestQuantile(t *testing.T) {
	var ten []time.Duration
	for i := range 10 {
		ten = append(ten, time.Duration(i+1))
	}
	for q, want := range map[float64]time.Duration{0: 1, 0.05: 1, 0.5: 5, 0.51: 6, 0.95: 10, 1: 10} {
		if got := truth.Quantile(ten, q); got != want {
			t.Errorf("%v: %d, want %d", q, got, want)
		}
	}
	if got := truth.Quantile(ten[:1], 0.5); got != 1 {
		t.Errorf("of one: %d", got)
	}
}

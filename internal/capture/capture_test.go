package capture_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/fullbore-net/fullbore/internal/capture"
)

var (
	a4, b4 = netip.MustParseAddrPort("192.0.2.1:40000"), netip.MustParseAddrPort("192.0.2.2:5201")
	a6, b6 = netip.MustParseAddrPort("[2001:db8::1]:40000"), netip.MustParseAddrPort("[2001:db8::2]:5201")
	up4    = capture.Flow{Proto: capture.TCP, Src: a4, Dst: b4}
	udp4   = capture.Flow{Proto: capture.UDP, Src: a4, Dst: b4}
	up6    = capture.Flow{Proto: capture.TCP, Src: a6, Dst: b6}
)

// ip makes a packet of a flow with so many bytes of payload.
func ip(f capture.Flow, seq uint32, flags byte, payload int) []byte {
	var l4 []byte
	l4 = binary.BigEndian.AppendUint16(l4, f.Src.Port())
	l4 = binary.BigEndian.AppendUint16(l4, f.Dst.Port())
	if f.Proto == capture.UDP {
		l4 = binary.BigEndian.AppendUint16(l4, uint16(8+payload))
		l4 = append(l4, 0, 0)
	} else {
		l4 = binary.BigEndian.AppendUint32(l4, seq)
		l4 = append(l4, 0, 0, 0, 0, 8<<4, flags, 0, 0, 0, 0, 0, 0)
		l4 = append(l4, make([]byte, 12)...) // timestamps
	}
	l4 = append(l4, make([]byte, payload)...)
	if f.Src.Addr().Is6() {
		h := []byte{0x60, 0, 0, 0}
		h = binary.BigEndian.AppendUint16(h, uint16(len(l4)))
		h = append(h, f.Proto, 64)
		s, d := f.Src.Addr().As16(), f.Dst.Addr().As16()
		return append(append(append(h, s[:]...), d[:]...), l4...)
	}
	h := []byte{0x45, 0}
	h = binary.BigEndian.AppendUint16(h, uint16(20+len(l4)))
	h = append(h, 0, 0, 0, 0, 64, f.Proto, 0, 0)
	s, d := f.Src.Addr().As4(), f.Dst.Addr().As4()
	return append(append(append(h, s[:]...), d[:]...), l4...)
}

func ether(p []byte, tags int) []byte {
	h := make([]byte, 12)
	for range tags {
		h = append(h, 0x81, 0, 0, 5)
	}
	kind := uint16(0x0800)
	if p[0]>>4 == 6 {
		kind = 0x86dd
	}
	return append(binary.BigEndian.AppendUint16(h, kind), p...)
}

// pcap writes the older format; snap cuts packets.
func pcap(order binary.AppendByteOrder, magic, link uint32, snap int, packets ...[]byte) []byte {
	b := order.AppendUint32(nil, magic)
	b = order.AppendUint16(b, 2)
	b = order.AppendUint16(b, 4)
	b = append(b, make([]byte, 8)...)
	b = order.AppendUint32(b, 65535)
	b = order.AppendUint32(b, link)
	for _, p := range packets {
		n := min(len(p), snap)
		b = append(b, make([]byte, 8)...)
		b = order.AppendUint32(b, uint32(n))
		b = order.AppendUint32(b, uint32(len(p)))
		b = append(b, p[:n]...)
	}
	return b
}

// pcapng writes the newer one.
func pcapng(order binary.AppendByteOrder, link uint16, simple bool, packets ...[]byte) []byte {
	block := func(b []byte, kind uint32, body []byte) []byte {
		for len(body)%4 != 0 {
			body = append(body, 0)
		}
		b = order.AppendUint32(b, kind)
		b = order.AppendUint32(b, uint32(len(body)+12))
		b = append(b, body...)
		return order.AppendUint32(b, uint32(len(body)+12))
	}
	head := order.AppendUint32(nil, 0x1a2b3c4d)
	head = order.AppendUint16(head, 1)
	head = append(order.AppendUint16(head, 0), 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff)
	b := block(nil, 0x0a0d0d0a, head)
	b = block(b, 1, append(order.AppendUint16(nil, link), 0, 0, 0, 0, 0, 0))
	b = block(b, 5, make([]byte, 12)) // statistics: skipped
	for _, p := range packets {
		if simple {
			b = block(b, 3, append(order.AppendUint32(nil, uint32(len(p))), p...))
			continue
		}
		body := make([]byte, 12)
		body = order.AppendUint32(body, uint32(len(p)))
		body = order.AppendUint32(body, uint32(len(p)))
		b = block(b, 6, append(body, p...))
	}
	return b
}

func counts(t *testing.T, file []byte, f capture.Flow) (capture.Counts, *capture.Summary) {
	t.Helper()
	s, err := capture.Read(bytes.NewReader(file), []capture.Flow{f})
	if err != nil {
		t.Fatal(err)
	}
	return *s.Flows[f], s
}

var counted = cmpopts.IgnoreUnexported(capture.Counts{})

// The same packets in every coat count the same.
func TestFormats(t *testing.T) {
	packets := func(f capture.Flow, wrap func([]byte) []byte) (out [][]byte) {
		back := capture.Flow{Proto: f.Proto, Src: f.Dst, Dst: f.Src}
		for _, p := range [][]byte{ip(f, 999, 2, 0), ip(f, 1000, 16, 1448), ip(back, 5, 16, 0), ip(f, 2448, 16, 1448), ip(f, 1000, 16, 1448), ip(back, 5, 16, 100)} {
			out = append(out, wrap(p))
		}
		return out
	}
	bare := func(p []byte) []byte { return p }
	sll := func(p []byte) []byte { return append(append(make([]byte, 14), 0x08, 0), p...) }
	sll2 := func(p []byte) []byte { return append(append([]byte{0x08, 0}, make([]byte, 18)...), p...) }
	null := func(p []byte) []byte { return append([]byte{2, 0, 0, 0}, p...) }
	tagged := func(p []byte) []byte { return ether(p, 2) }
	plain := func(p []byte) []byte { return ether(p, 0) }
	little, big := binary.LittleEndian, binary.BigEndian
	want := capture.Counts{Packets: 3, Payload: 4344, Unique: 2896, Again: 1}
	for name, c := range map[string]struct {
		file []byte
		f    capture.Flow
	}{
		"Ethernet, µs":        {pcap(little, 0xa1b2c3d4, 1, 65535, packets(up4, plain)...), up4},
		"Ethernet, ns, big":   {pcap(big, 0xa1b23c4d, 1, 65535, packets(up4, plain)...), up4},
		"two VLAN tags":       {pcap(little, 0xa1b2c3d4, 1, 65535, packets(up4, tagged)...), up4},
		"headers only":        {pcap(little, 0xa1b2c3d4, 1, 68, packets(up4, plain)...), up4},
		"raw":                 {pcap(little, 0xa1b2c3d4, 101, 65535, packets(up4, bare)...), up4},
		"cooked":              {pcap(little, 0xa1b2c3d4, 113, 65535, packets(up4, sll)...), up4},
		"cooked 2":            {pcap(little, 0xa1b2c3d4, 276, 65535, packets(up4, sll2)...), up4},
		"loopback":            {pcap(little, 0xa1b2c3d4, 0, 65535, packets(up4, null)...), up4},
		"IPv6":                {pcap(little, 0xa1b2c3d4, 1, 65535, packets(up6, plain)...), up6},
		"pcapng":              {pcapng(little, 1, false, packets(up4, plain)...), up4},
		"pcapng, big, simple": {pcapng(big, 1, true, packets(up4, plain)...), up4},
	} {
		got, s := counts(t, c.file, c.f)
		if diff := cmp.Diff(want, got, counted); diff != "" || s.Packets != 6 || s.Unread != 0 || s.Cut {
			t.Errorf("%s: %d packets, %d unread, cut %v (-want +got):\n%s", name, s.Packets, s.Unread, s.Cut, diff)
		}
	}
}

func TestUDPAndHoles(t *testing.T) {
	file := pcap(binary.LittleEndian, 0xa1b2c3d4, 101, 65535, ip(udp4, 0, 0, 1472), ip(udp4, 0, 0, 1472))
	if got, _ := counts(t, file, udp4); got.Packets != 2 || got.Unique != 2944 {
		t.Errorf("UDP: %+v", got)
	}
	// Numbers that wrap, and a segment that never came by.
	file = pcap(binary.LittleEndian, 0xa1b2c3d4, 101, 65535, ip(up4, 0xffffff00, 16, 256), ip(up4, 0, 16, 100), ip(up4, 300, 16, 100))
	if got, _ := counts(t, file, up4); got.Unique != 456 || got.Missing != 200 || got.Again != 0 {
		t.Errorf("wrapped: %+v", got)
	}
}

func TestDamage(t *testing.T) {
	whole := pcap(binary.LittleEndian, 0xa1b2c3d4, 101, 65535, ip(udp4, 0, 0, 100), ip(udp4, 0, 0, 100))
	got, s := counts(t, whole[:len(whole)-7], udp4)
	if !s.Cut || got.Packets != 1 {
		t.Errorf("cut: %+v %+v", s, got)
	}
	if _, err := capture.Read(bytes.NewReader([]byte("GIF89a, surely no capture")), nil); !errors.Is(err, capture.ErrFormat) {
		t.Errorf("a picture: %v", err)
	}
	if _, err := capture.Read(bytes.NewReader(nil), nil); !errors.Is(err, capture.ErrFormat) {
		t.Errorf("nothing: %v", err)
	}
	huge := pcap(binary.LittleEndian, 0xa1b2c3d4, 101, 65535, ip(udp4, 0, 0, 100))
	binary.LittleEndian.PutUint32(huge[32:], 1<<30)
	if _, err := capture.Read(bytes.NewReader(huge), nil); err == nil {
		t.Error("a packet of 1 GiB was believed")
	}
	fragment := ip(udp4, 0, 0, 100)
	fragment[7] = 10 // a later fragment has no ports
	if _, s := counts(t, pcap(binary.LittleEndian, 0xa1b2c3d4, 101, 65535, fragment, []byte{0x45}), udp4); s.Unread != 2 {
		t.Errorf("%d unread, want 2", s.Unread)
	}
}

// Against brute force: any order of segments, repeated or not, counts each byte once.
func TestUniqueBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		start := uint32(rapid.Uint32().Draw(t, "start"))
		passed := map[int]bool{}
		packets := [][]byte{ip(up4, start-1, 2, 0)}
		most, again := 0, int64(0)
		for range rapid.IntRange(1, 30).Draw(t, "segments") {
			at, n := rapid.IntRange(0, 300).Draw(t, "at"), rapid.IntRange(1, 60).Draw(t, "bytes")
			packets = append(packets, ip(up4, start+uint32(at), 16, n))
			fresh := 0
			for b := at; b < at+n; b++ {
				if !passed[b] {
					fresh++
				}
				passed[b] = true
			}
			if fresh == 0 {
				again++
			}
			most = max(most, at+n)
		}
		s, err := capture.Read(bytes.NewReader(pcap(binary.LittleEndian, 0xa1b2c3d4, 101, 65535, packets...)), []capture.Flow{up4})
		if err != nil {
			t.Fatal(err)
		}
		c := s.Flows[up4]
		if c.Unique != int64(len(passed)) || c.Missing != int64(most-len(passed)) || c.Again != again {
			t.Fatalf("unique %d missing %d again %d, want %d %d %d", c.Unique, c.Missing, c.Again, len(passed), most-len(passed), again)
		}
	})
}

func FuzzRead(f *testing.F) {
	f.Add(pcap(binary.LittleEndian, 0xa1b2c3d4, 1, 65535, ether(ip(up4, 1, 16, 10), 1)))
	f.Add(pcap(binary.BigEndian, 0xa1b23c4d, 113, 65535, make([]byte, 40)))
	f.Add(pcapng(binary.LittleEndian, 1, false, ether(ip(up6, 1, 16, 10), 0)))
	f.Add(pcapng(binary.BigEndian, 276, true, make([]byte, 60)))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := capture.Read(bytes.NewReader(data), []capture.Flow{up4, udp4, up6})
		if err != nil {
			return
		}
		for _, c := range s.Flows {
			if c.Unique > c.Payload || c.Unique < 0 || c.Missing < 0 || c.Packets > s.Packets {
				t.Errorf("%+v of %d packets", c, s.Packets)
			}
		}
	})
}

package forward

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// packet4 and packet6 build IP packets around a transport's bytes, with their checksums.
func packet4(proto byte, flags uint16, upper []byte) []byte {
	p := make([]byte, 20, 20+len(upper))
	p[0], p[1], p[8], p[9] = 0x45, 46<<2, 64, proto
	binary.BigEndian.PutUint16(p[2:], uint16(20+len(upper)))
	binary.BigEndian.PutUint16(p[4:], 0xbeef)
	binary.BigEndian.PutUint16(p[6:], flags)
	copy(p[12:], []byte{10, 77, 0, 1, 10, 77, 0, 2})
	binary.BigEndian.PutUint16(p[10:], fold(sum(p, 0)))
	return append(p, upper...)
}

func packet6(proto byte, upper []byte) []byte {
	p := make([]byte, 40, 40+len(upper))
	p[0], p[1], p[6], p[7] = 0x60|46>>2, 46&3<<6, proto, 64
	binary.BigEndian.PutUint16(p[4:], uint16(len(upper)))
	p[8], p[9], p[23] = 0xfd, 0x77, 1
	p[24], p[25], p[39] = 0xfd, 0x77, 2
	return append(p, upper...)
}

// syn builds a TCP header with options and some payload behind it.
func syn(flags byte, options ...byte) []byte {
	t := make([]byte, 20, 80)
	binary.BigEndian.PutUint16(t[0:], 40000)
	binary.BigEndian.PutUint16(t[2:], 5201)
	t[12], t[13] = byte(20+len(options))<<2, flags
	return append(append(t, options...), "abc"...)
}

// sealed fills in the TCP checksum.
func sealed(p []byte) []byte {
	h, ok := parseHeader(p)
	if !ok {
		panic("no packet")
	}
	binary.BigEndian.PutUint16(p[h.upper+16:], fold(sum(p[h.upper:h.end], h.pseudo(p))))
	return p
}

// valid reports whether a transport's checksum is right.
func valid(p []byte) bool {
	h, ok := parseHeader(p)
	return ok && fold(sum(p[h.upper:h.end], h.pseudo(p))) == 0
}

// What Linux sends: MSS 1460, SACK permitted, timestamps, no-op, window scale 7.
var linuxOptions = []byte{2, 4, 5, 0xb4, 4, 2, 8, 10, 1, 2, 3, 4, 0, 0, 0, 0, 1, 3, 3, 7}

func TestEdit(t *testing.T) {
	tests := []struct {
		name          string
		box           Box
		before, after []byte
	}{
		{"window scale", Box{WindowScale: true}, linuxOptions, []byte{2, 4, 5, 0xb4, 4, 2, 8, 10, 1, 2, 3, 4, 0, 0, 0, 0, 1, 1, 1, 1}},
		{"SACK", Box{SACK: true}, linuxOptions, []byte{2, 4, 5, 0xb4, 1, 1, 8, 10, 1, 2, 3, 4, 0, 0, 0, 0, 1, 3, 3, 7}},
		{"timestamps", Box{Timestamps: true}, linuxOptions, []byte{2, 4, 5, 0xb4, 4, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 3, 3, 7}},
		{"MSS", Box{MSS: 1200}, linuxOptions, []byte{2, 4, 4, 0xb0, 4, 2, 8, 10, 1, 2, 3, 4, 0, 0, 0, 0, 1, 3, 3, 7}},
		{"MSS that is small enough", Box{MSS: 1460}, linuxOptions, nil},
		{"all", Box{WindowScale: true, SACK: true, Timestamps: true, MSS: 536}, linuxOptions, []byte{2, 4, 2, 24, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}},
		{"none there", Box{WindowScale: true}, []byte{2, 4, 5, 0xb4}, nil},
		{"behind the end of options", Box{WindowScale: true}, []byte{0, 3, 3, 7}, nil},
		{"too long an option", Box{WindowScale: true}, []byte{3, 9, 7, 1}, nil},
		{"an option without length", Box{WindowScale: true}, []byte{1, 1, 1, 3}, nil},
		{"an option of length 0", Box{WindowScale: true}, []byte{3, 0, 3, 7}, nil},
	}
	for _, tt := range tests {
		for name, wrap := range map[string]func([]byte) []byte{
			"IPv4": func(u []byte) []byte { return packet4(protoTCP, 0x4000, u) },
			"IPv6": func(u []byte) []byte { return packet6(protoTCP, u) },
			"IPv6 with extensions": func(u []byte) []byte {
				return packet6(protoDestOpts, append([]byte{protoTCP, 0, 1, 4, 0, 0, 0, 0}, u...))
			},
		} {
			t.Run(tt.name+" "+name, func(t *testing.T) {
				p := sealed(wrap(syn(flagSYN|0x10, tt.before...)))
				want := bytes.Clone(p)
				if tt.after != nil {
					want = sealed(wrap(syn(flagSYN|0x10, tt.after...)))
				}
				if got := tt.box.edit(p); got != (tt.after != nil) {
					t.Errorf("edit says %v", got)
				}
				if diff := cmp.Diff(want, p); diff != "" || !valid(p) {
					t.Errorf("valid %v (-want +got):\n%s", valid(p), diff)
				}
			})
		}
	}
	all := Box{WindowScale: true, SACK: true, Timestamps: true, MSS: 536}
	for name, p := range map[string][]byte{
		"not a SYN": packet4(protoTCP, 0, syn(0x10, linuxOptions...)),
		"UDP":       packet4(protoUDP, 0, syn(flagSYN, linuxOptions...)),
		"fragment":  packet4(protoTCP, 0x2000, syn(flagSYN, linuxOptions...)),
		"cut short": packet4(protoTCP, 0, syn(flagSYN, linuxOptions...)[:30]),
		"nothing":   {},
	} {
		before := bytes.Clone(p)
		if all.edit(p) || !bytes.Equal(p, before) {
			t.Errorf("%s: was changed", name)
		}
	}
}

// reassemble puts fragments together again.
func reassemble(t *testing.T, pieces [][]byte, mtu int) []byte {
	t.Helper()
	var whole []byte
	for i, p := range pieces {
		h, ok := parseHeader(p)
		w := binary.BigEndian.Uint16(p[6:])
		if !ok || fold(sum(p[:h.upper], 0)) != 0 || len(p) > mtu || h.end != len(p) || int(w&0x1fff)*8 != len(whole) || w&0x2000 != 0 != (i < len(pieces)-1) {
			t.Fatalf("piece %d is wrong: % x", i, p[:20])
		}
		whole = append(whole, p[h.upper:]...)
	}
	return whole
}

func TestFragments(t *testing.T) {
	payload := make([]byte, 1477)
	for i := range payload {
		payload[i] = byte(i * 7)
	}
	p := packet4(protoUDP, 0, payload)
	for _, mtu := range []int{68, 576, 1300, 1496} {
		var pieces [][]byte
		fragments(p, mtu, make([]byte, 0, mtu), func(piece []byte) { pieces = append(pieces, bytes.Clone(piece)) })
		if got := reassemble(t, pieces, mtu); !bytes.Equal(got, payload) {
			t.Errorf("MTU %d: %d bytes of %d", mtu, len(got), len(payload))
		}
	}
	// A fragment can be cut again, and stays in its place.
	q := packet4(protoUDP, 0x2000|100, payload[:1400])
	offset := 100
	fragments(q, 576, make([]byte, 0, 576), func(piece []byte) {
		w := binary.BigEndian.Uint16(piece[6:])
		if int(w&0x1fff) != offset || w&0x2000 == 0 {
			t.Errorf("piece at %d has %#x", offset, w)
		}
		offset += (len(piece) - 20) / 8
	})
	for name, p := range map[string][]byte{"IPv6": packet6(protoUDP, payload), "nothing": nil} {
		fragments(p, 576, nil, func([]byte) { t.Errorf("%s was fragmented", name) })
	}
	if mayFragment(packet4(protoUDP, 0x4000, payload)) || mayFragment(packet6(protoUDP, payload)) || !mayFragment(p) {
		t.Error("who may be fragmented")
	}
}

func TestTooBig(t *testing.T) {
	payload := bytes.Repeat([]byte{7}, 1400)
	p := packet4(protoUDP, 0x4000, payload)
	a, ok := tooBig(p, 1300, make([]byte, 0, 1500))
	if !ok || len(a) != maxICMP || fold(sum(a[:20], 0)) != 0 || fold(sum(a[20:], 0)) != 0 {
		t.Fatalf("answer %v of %d bytes: % x", ok, len(a), a[:28])
	}
	if diff := cmp.Diff([]byte{10, 77, 0, 254, 10, 77, 0, 1, 3, 4}, a[12:22]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if binary.BigEndian.Uint16(a[26:]) != 1300 || !bytes.Equal(a[28:], p[:maxICMP-28]) {
		t.Errorf("% x", a[20:60])
	}
	q := packet6(protoTCP, payload)
	a, ok = tooBig(q, 1280, make([]byte, 0, 1500))
	h, parsed := parseHeader(a)
	if !ok || !parsed || len(a) != maxICMPv6 || h.key.Proto != protoICMPv6 || !valid(a) || h.key.Dst[15] != 1 || h.key.Src[15] != 0xfe {
		t.Fatalf("answer %v of %d bytes: % x", ok, len(a), a[:48])
	}
	if a[40] != 2 || binary.BigEndian.Uint32(a[44:]) != 1280 || !bytes.Equal(a[48:], q[:maxICMPv6-48]) {
		t.Errorf("% x", a[40:60])
	}
	for name, p := range map[string][]byte{
		"an ICMP error":   packet4(protoICMP, 0x4000, append([]byte{3, 4}, payload...)),
		"an ICMPv6 error": packet6(protoICMPv6, append([]byte{2, 0}, payload...)),
		"a later piece":   packet4(protoUDP, 0x4001, payload),
		"nothing":         nil,
	} {
		if _, ok := tooBig(p, 1300, make([]byte, 0, 1500)); ok {
			t.Errorf("%s was answered", name)
		}
	}
	for name, p := range map[string][]byte{
		"a ping":               packet4(protoICMP, 0x4000, append([]byte{8, 0}, payload...)),
		"an answer, version 6": packet6(protoICMPv6, append([]byte{129, 0}, payload...)),
	} {
		if _, ok := tooBig(p, 1300, make([]byte, 0, 1500)); !ok {
			t.Errorf("%s was not answered", name)
		}
	}
}

func TestHeader(t *testing.T) {
	tcp := syn(flagSYN)
	for name, tt := range map[string]struct {
		p        []byte
		ok       bool
		fragment bool
		port     uint16
	}{
		"IPv4":            {packet4(protoTCP, 0x4000, tcp), true, false, 40000},
		"IPv6":            {packet6(protoTCP, tcp), true, false, 40000},
		"a fragment":      {packet4(protoTCP, 1, tcp), true, true, 0},
		"IPv6 fragment":   {packet6(protoFragment, append([]byte{protoTCP, 0, 0, 1, 0, 0, 0, 0}, tcp...)), true, true, 0},
		"no ports":        {packet4(protoICMP, 0, tcp), true, false, 0},
		"shorter":         {packet4(protoTCP, 0, tcp)[:30], false, false, 0},
		"version 5":       {append([]byte{0x55}, packet4(protoTCP, 0, tcp)[1:]...), false, false, 0},
		"IPv6 too short":  {packet6(protoTCP, tcp)[:39], false, false, 0},
		"extension ends":  {packet6(protoDestOpts, []byte{protoTCP, 9, 0, 0, 0, 0, 0, 0}), false, false, 0},
		"extension begun": {packet6(protoDestOpts, []byte{protoTCP, 0}), false, false, 0},
	} {
		h, ok := parseHeader(tt.p)
		if ok != tt.ok || ok && (h.fragment != tt.fragment || h.key.SrcPort != tt.port || h.dscp != 46) {
			t.Errorf("%s: %v, %+v", name, ok, h)
		}
	}
}

func FuzzBox(f *testing.F) {
	f.Add(packet4(protoTCP, 0, syn(flagSYN, linuxOptions...)))
	f.Add(packet6(protoDestOpts, append([]byte{protoTCP, 0, 1, 4, 0, 0, 0, 0}, syn(flagSYN, linuxOptions...)...)))
	f.Add(packet6(protoFragment, []byte{protoUDP, 0, 0, 1, 0, 0, 0, 0, 1, 2, 3, 4}))
	f.Fuzz(func(t *testing.T, p []byte) {
		if len(p) > 65535 {
			return
		}
		if h, ok := parseHeader(p); ok && (h.upper > h.end || h.end > len(p) || h.dscp > 63) {
			t.Errorf("%+v of %d bytes", h, len(p))
		}
		q := bytes.Clone(p)
		changed := Box{WindowScale: true, SACK: true, Timestamps: true, MSS: 536}.edit(q)
		if len(q) != len(p) || !changed && !bytes.Equal(p, q) || changed && !valid(q) {
			t.Errorf("changed %v", changed)
		}
		if a, ok := tooBig(p, 1300, make([]byte, 0, 1500)); ok && len(a) > maxICMPv6 {
			t.Errorf("an answer of %d bytes", len(a))
		}
		fragments(p, 576, make([]byte, 0, 576), func(piece []byte) {
			if len(piece) > 576 {
				t.Errorf("a piece of %d bytes", len(piece))
			}
		})
	})
}

func TestBoxValidate(t *testing.T) {
	err := Config{MTU: 1500, Hash: 9, Boxes: [2]Box{{MSS: 1, MTU: 67}, {Silent: true}}}.Validate()
	if err == nil {
		t.Fatal("accepted")
	}
	want := []string{
		"forward: MSS 1 is outside 48..65535", "forward: MTU 67 of a hop is outside 68..65535",
		"forward: a hop is silent about an MTU that it does not have", "forward: unknown hash 9",
	}
	if diff := cmp.Diff(want, strings.Split(err.Error(), "\n")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

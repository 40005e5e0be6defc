package forward

import (
	"encoding/binary"

	"github.com/fullbore-net/fullbore/internal/lab/link"
)

// IP protocol numbers (IANA).
const (
	protoHopByHop = 0
	protoICMP     = 1
	protoTCP      = 6
	protoUDP      = 17
	protoRouting  = 43
	protoFragment = 44
	protoICMPv6   = 58
	protoDestOpts = 60
)

// header is what a router, or a middlebox, looks at.
type header struct {
	key      link.Key
	dscp     uint8
	version  uint8
	fragment bool // of a larger packet; then there are no ports
	upper    int  // where the transport's header begins
	end      int  // where the IP packet ends
}

// parseHeader reads an IP packet (RFC 791 §3.1, RFC 8200 §3–4); ok is false for what is
// none, or is cut short before its transport begins.
func parseHeader(p []byte) (h header, ok bool) {
	if len(p) < 20 {
		return h, false
	}
	h.version = p[0] >> 4
	switch h.version {
	case 4:
		h.upper, h.end = int(p[0]&15)*4, int(binary.BigEndian.Uint16(p[2:]))
		if h.upper < 20 || h.end < h.upper || h.end > len(p) {
			return h, false
		}
		h.dscp = p[1] >> 2
		h.key.Proto = p[9]
		h.fragment = binary.BigEndian.Uint16(p[6:])&0x3fff != 0
		for i, at := range [2]int{12, 16} {
			a := [2]*[16]byte{&h.key.Src, &h.key.Dst}[i]
			a[10], a[11] = 0xff, 0xff
			copy(a[12:], p[at:at+4])
		}
	case 6:
		if len(p) < 40 {
			return h, false
		}
		h.end = 40 + int(binary.BigEndian.Uint16(p[4:]))
		if h.end > len(p) {
			return h, false
		}
		h.dscp = (p[0]<<4 | p[1]>>4) >> 2
		copy(h.key.Src[:], p[8:24])
		copy(h.key.Dst[:], p[24:40])
		if !h.walk(p) {
			return h, false
		}
	default:
		return h, false
	}
	if proto := h.key.Proto; !h.fragment && (proto == protoTCP || proto == protoUDP) && h.end >= h.upper+4 {
		h.key.SrcPort = binary.BigEndian.Uint16(p[h.upper:])
		h.key.DstPort = binary.BigEndian.Uint16(p[h.upper+2:])
	}
	return h, true
}

// walk goes over IPv6 extension headers to the transport.
func (h *header) walk(p []byte) bool {
	h.key.Proto, h.upper = p[6], 40
	for {
		switch h.key.Proto {
		case protoHopByHop, protoRouting, protoDestOpts, protoFragment:
		default:
			return true
		}
		if h.end < h.upper+8 {
			return false
		}
		size := 8 + int(p[h.upper+1])*8
		if h.key.Proto == protoFragment {
			size, h.fragment = 8, true
		}
		if h.upper+size > h.end {
			return false
		}
		h.key.Proto, h.upper = p[h.upper], h.upper+size
	}
}

// sum is the ones' complement sum of RFC 1071, unfolded.
func sum(p []byte, to uint32) uint32 {
	for len(p) >= 2 {
		to += uint32(p[0])<<8 | uint32(p[1])
		p = p[2:]
	}
	if len(p) == 1 {
		to += uint32(p[0]) << 8
	}
	return to
}

// fold finishes a checksum.
func fold(s uint32) uint16 {
	for s > 0xffff {
		s = s&0xffff + s>>16
	}
	return ^uint16(s)
}

// pseudo is the sum of the pseudo header of a transport (RFC 9293 §3.1, RFC 8200 §8.1).
func (h *header) pseudo(p []byte) uint32 {
	addresses := p[12:20]
	if h.version == 6 {
		addresses = p[8:40]
	}
	return sum(addresses, uint32(h.key.Proto)+uint32(h.end-h.upper))
}

package capture

import (
	"encoding/binary"
	"net/netip"
)

// Link types (tcpdump.org/linktypes).
const (
	linkNull     = 0
	linkEthernet = 1
	linkRawBSD   = 12
	linkRawOpen  = 14
	linkRaw      = 101
	linkLoop     = 108
	linkSLL      = 113
	linkIPv4     = 228
	linkIPv6     = 229
	linkSLL2     = 276
)

// Types of what is in a frame.
const (
	typeIPv4  = 0x0800
	typeIPv6  = 0x86dd
	typeVLAN  = 0x8100
	typeQinQ  = 0x88a8
	typeOldQQ = 0x9100
)

// decode finds the flow of a packet, how much payload its headers tell, and TCP's sequence number.
// False for what is no TCP or UDP over IP, or is cut within the headers.
func decode(link uint32, p []byte) (f Flow, payload int, seq uint32, syn, ok bool) {
	p, ok = network(link, p)
	if !ok || len(p) < 1 {
		return f, 0, 0, false, false
	}
	var src, dst netip.Addr
	var rest int // bytes behind the IP headers, by their account
	switch p[0] >> 4 {
	case 4:
		src, dst, f.Proto, p, rest, ok = ipv4(p)
	case 6:
		src, dst, f.Proto, p, rest, ok = ipv6(p)
	default:
		return f, 0, 0, false, false
	}
	if !ok || len(p) < 8 {
		return f, 0, 0, false, false
	}
	f.Src = netip.AddrPortFrom(src, binary.BigEndian.Uint16(p))
	f.Dst = netip.AddrPortFrom(dst, binary.BigEndian.Uint16(p[2:]))
	switch f.Proto {
	case UDP:
		if n := int(binary.BigEndian.Uint16(p[4:])); n >= 8 && n < rest {
			rest = n
		}
		return f, rest - 8, 0, false, rest >= 8
	case TCP:
		if len(p) < 14 {
			return f, 0, 0, false, false
		}
		header := int(p[12]>>4) * 4
		if header < 20 || header > rest {
			return f, 0, 0, false, false
		}
		return f, rest - header, binary.BigEndian.Uint32(p[4:]), p[13]&2 != 0, true
	}
	return f, 0, 0, false, false
}

// network takes the link's header off; false when there is no IP behind it.
func network(link uint32, p []byte) ([]byte, bool) {
	skip, at := 0, -1
	switch link {
	case linkRaw, linkRawBSD, linkRawOpen, linkIPv4, linkIPv6:
		return p, true
	case linkNull, linkLoop:
		if len(p) < 4 {
			return nil, false
		}
		return p[4:], true
	case linkEthernet:
		skip, at = 14, 12
		for len(p) >= skip {
			switch binary.BigEndian.Uint16(p[at:]) {
			case typeVLAN, typeQinQ, typeOldQQ:
				skip, at = skip+4, at+4
				continue
			}
			break
		}
	case linkSLL:
		skip, at = 16, 14
	case linkSLL2:
		skip, at = 20, 0
	}
	if at < 0 || len(p) < skip {
		return nil, false
	}
	if t := binary.BigEndian.Uint16(p[at:]); t != typeIPv4 && t != typeIPv6 {
		return nil, false
	}
	return p[skip:], true
}

func ipv4(p []byte) (src, dst netip.Addr, proto uint8, rest []byte, size int, ok bool) {
	if len(p) < 20 {
		return src, dst, 0, nil, 0, false
	}
	header := int(p[0]&15) * 4
	total := int(binary.BigEndian.Uint16(p[2:]))
	if total == 0 {
		total = len(p) // segmentation offload left it open
	}
	if header < 20 || len(p) < header || total < header || binary.BigEndian.Uint16(p[6:])&0x1fff != 0 {
		return src, dst, 0, nil, 0, false // damaged, or a later fragment
	}
	return netip.AddrFrom4([4]byte(p[12:16])), netip.AddrFrom4([4]byte(p[16:20])), p[9], p[header:], total - header, true
}

func ipv6(p []byte) (src, dst netip.Addr, proto uint8, rest []byte, size int, ok bool) {
	if len(p) < 40 {
		return src, dst, 0, nil, 0, false
	}
	src, dst = netip.AddrFrom16([16]byte(p[8:24])), netip.AddrFrom16([16]byte(p[24:40]))
	next, size := p[6], int(binary.BigEndian.Uint16(p[4:]))
	if size == 0 {
		size = len(p) - 40
	}
	p = p[40:]
	for range 8 { // no honest packet has more extension headers
		n := 0
		switch next {
		case 0, 43, 60: // hop by hop, routing, destination options
			if len(p) < 8 {
				return src, dst, 0, nil, 0, false
			}
			n = 8 + 8*int(p[1])
		case 44: // fragment
			if len(p) < 8 || binary.BigEndian.Uint16(p[2:])&0xfff8 != 0 {
				return src, dst, 0, nil, 0, false
			}
			n = 8
		default:
			return src, dst, next, p, size, true
		}
		if len(p) < n || size < n {
			return src, dst, 0, nil, 0, false
		}
		next, p, size = p[0], p[n:], size-n
	}
	return src, dst, 0, nil, 0, false
}

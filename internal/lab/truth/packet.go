package truth

import (
	"encoding/binary"
	"net/netip"
)

// IP protocol numbers (IANA) and TCP header bits (RFC 9293 §3.1) used here.
const (
	protoHopByHop = 0
	protoTCP      = 6
	protoUDP      = 17
	protoRouting  = 43
	protoDestOpts = 60

	flagSYN = 0x02
)

// segment is what the tracker needs of a TCP packet.
type segment struct {
	flow    flowKey
	seq     uint32
	syn     bool
	payload int // bytes
}

// flowKey is one direction of a TCP connection or of a UDP flow. IPv4 addresses are
// stored mapped.
type flowKey struct {
	src, dst         [16]byte
	srcPort, dstPort uint16
}

func (k flowKey) addresses() (src, dst netip.AddrPort) {
	return netip.AddrPortFrom(netip.AddrFrom16(k.src).Unmap(), k.srcPort),
		netip.AddrPortFrom(netip.AddrFrom16(k.dst).Unmap(), k.dstPort)
}

// parse reads an IP packet. ok is false for anything but an unfragmented,
// complete TCP segment (RFC 791 §3.1, RFC 8200 §3–4, RFC 9293 §3.1).
func parse(p []byte) (s segment, ok bool) {
	tcp := payloadOf(p, protoTCP, &s.flow)
	if len(tcp) < 20 {
		return s, false
	}
	header := int(tcp[12]>>4) * 4
	if header < 20 || header > len(tcp) {
		return s, false
	}
	s.flow.srcPort = binary.BigEndian.Uint16(tcp[0:])
	s.flow.dstPort = binary.BigEndian.Uint16(tcp[2:])
	s.seq = binary.BigEndian.Uint32(tcp[4:])
	s.syn = tcp[13]&flagSYN != 0
	s.payload = len(tcp) - header
	return s, true
}

// parseUDP reads an IP packet. ok is false for anything but an unfragmented, complete
// UDP datagram (RFC 768).
func parseUDP(p []byte) (flow flowKey, payload []byte, ok bool) {
	udp := payloadOf(p, protoUDP, &flow)
	if len(udp) < 8 {
		return flow, nil, false
	}
	size := int(binary.BigEndian.Uint16(udp[4:]))
	if size < 8 || size > len(udp) {
		return flow, nil, false
	}
	flow.srcPort = binary.BigEndian.Uint16(udp[0:])
	flow.dstPort = binary.BigEndian.Uint16(udp[2:])
	return flow, udp[8:size], true
}

// payloadOf returns what an IP packet carries, nil when that is not of protocol proto.
func payloadOf(p []byte, proto byte, k *flowKey) []byte {
	if len(p) < 1 {
		return nil
	}
	switch p[0] >> 4 {
	case 4:
		return parseIPv4(p, proto, k)
	case 6:
		return parseIPv6(p, proto, k)
	}
	return nil
}

var mappedPrefix = [12]byte{10: 0xff, 11: 0xff}

// parseIPv4 returns what p carries of protocol proto, nil when there is none.
func parseIPv4(p []byte, proto byte, k *flowKey) []byte {
	if len(p) < 20 {
		return nil
	}
	header := int(p[0]&15) * 4
	total := int(binary.BigEndian.Uint16(p[2:]))
	const fragmentBits = 0x3fff // more fragments, or an offset
	if header < 20 || total < header || total > len(p) || p[9] != proto ||
		binary.BigEndian.Uint16(p[6:])&fragmentBits != 0 {
		return nil
	}
	copy(k.src[:], mappedPrefix[:])
	copy(k.src[12:], p[12:16])
	copy(k.dst[:], mappedPrefix[:])
	copy(k.dst[12:], p[16:20])
	return p[header:total]
}

// parseIPv6 is parseIPv4 for version 6; it walks over extension headers.
func parseIPv6(p []byte, proto byte, k *flowKey) []byte {
	if len(p) < 40 {
		return nil
	}
	total := 40 + int(binary.BigEndian.Uint16(p[4:]))
	if total > len(p) {
		return nil
	}
	copy(k.src[:], p[8:24])
	copy(k.dst[:], p[24:40])
	next, rest := p[6], p[40:total]
	for {
		switch next {
		case proto:
			return rest
		case protoHopByHop, protoRouting, protoDestOpts:
			if len(rest) < 8 {
				return nil
			}
			size := 8 + int(rest[1])*8
			if size > len(rest) {
				return nil
			}
			next, rest = rest[0], rest[size:]
		default:
			return nil
		}
	}
}

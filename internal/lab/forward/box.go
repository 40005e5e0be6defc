package forward

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/fullbore-net/fullbore/internal/lab/link"
)

// Box is what a device on the way does with the content of packets. The zero value is
// none.
type Box struct {
	// The options that it takes out of TCP's SYNs.
	WindowScale bool `json:"strip_window_scale"`
	SACK        bool `json:"strip_sack"`
	Timestamps  bool `json:"strip_timestamps"`
	// MSS is the largest maximum segment size that it lets a SYN announce; 0: any.
	MSS int `json:"mss"`
	// MTU is the largest packet that the hop behind the link takes; 0: any. A larger one of
	// IPv4 that may be fragmented is; any other one is dropped, and its sender told so (RFC
	// 1191, RFC 8201) unless Silent.
	MTU    int  `json:"mtu"`
	Silent bool `json:"silent"`
}

// minHop is the smallest MTU of a hop, which still fits any IP header and a piece of
// payload (RFC 791 §3.2).
const minHop = 68

// minMSS is the smallest clamp: the least that Linux accepts.
const minMSS = 48

func (b Box) validate() error {
	var errs []error
	if b.MSS != 0 && (b.MSS < minMSS || b.MSS > 65535) {
		errs = append(errs, fmt.Errorf("forward: MSS %d is outside %d..65535", b.MSS, minMSS))
	}
	if b.MTU != 0 && (b.MTU < minHop || b.MTU > MaxMTU) {
		errs = append(errs, fmt.Errorf("forward: MTU %d of a hop is outside %d..%d", b.MTU, minHop, MaxMTU))
	}
	if b.Silent && b.MTU == 0 {
		errs = append(errs, errors.New("forward: a hop is silent about an MTU that it does not have"))
	}
	return errors.Join(errs...)
}

// edits reports whether it changes SYNs.
func (b Box) edits() bool { return b.WindowScale || b.SACK || b.Timestamps || b.MSS > 0 }

// TCP options (IANA) and the bits of its header (RFC 9293 §3.1).
const (
	optEnd         = 0
	optNop         = 1
	optMSS         = 2
	optWindowScale = 3
	optSACK        = 4
	optTimestamps  = 8

	flagSYN = 0x02
)

// edit changes the options of a SYN in place, and its checksum. It reports whether it
// did.
func (b Box) edit(p []byte) bool {
	h, ok := parseHeader(p)
	if !ok || h.key.Proto != protoTCP || h.fragment || h.end-h.upper < 20 {
		return false
	}
	tcp := p[h.upper:h.end]
	size := int(tcp[12]>>4) * 4
	if tcp[13]&flagSYN == 0 || size < 20 || size > len(tcp) {
		return false
	}
	changed := false
	for options := tcp[20:size]; len(options) > 0; {
		kind := options[0]
		if kind == optEnd {
			break
		}
		if kind == optNop {
			options = options[1:]
			continue
		}
		if len(options) < 2 || options[1] < 2 || int(options[1]) > len(options) {
			break // nonsense, which is left alone
		}
		option := options[:options[1]]
		options = options[options[1]:]
		switch {
		case kind == optWindowScale && b.WindowScale, kind == optSACK && b.SACK, kind == optTimestamps && b.Timestamps:
			for i := range option {
				option[i] = optNop
			}
			changed = true
		case kind == optMSS && b.MSS > 0 && len(option) == 4 && int(binary.BigEndian.Uint16(option[2:])) > b.MSS:
			binary.BigEndian.PutUint16(option[2:], uint16(b.MSS))
			changed = true
		}
	}
	if changed {
		binary.BigEndian.PutUint16(tcp[16:], 0)
		binary.BigEndian.PutUint16(tcp[16:], fold(sum(tcp, h.pseudo(p))))
	}
	return changed
}

// The addresses of the hop, from which it says that a packet is too big. They are in the
// ends' subnets (package lab).
var (
	hopIPv4 = [4]byte{10, 77, 0, 254}
	hopIPv6 = [16]byte{0xfd, 0x77, 15: 0xfe}
)

// mayFragment reports whether a router may cut a packet into pieces.
func mayFragment(p []byte) bool {
	return len(p) >= 20 && p[0]>>4 == 4 && p[6]&0x40 == 0 // don't fragment
}

// fragments calls each with the pieces of an IPv4 packet that fit into mtu (RFC 791 §2.3),
// in order; buf holds one at a time.
func fragments(p []byte, mtu int, buf []byte, each func(piece []byte)) {
	h, ok := parseHeader(p)
	room := (mtu - h.upper) &^ 7
	if !ok || h.version != 4 || room < 8 {
		return
	}
	word := binary.BigEndian.Uint16(p[6:])
	const more, offset = 0x2000, 0x1fff
	payload := p[h.upper:h.end]
	for at := 0; at < len(payload); at += room {
		n := min(room, len(payload)-at)
		piece := append(append(buf[:0], p[:h.upper]...), payload[at:at+n]...)
		w := word&^offset | (word&offset + uint16(at/8))
		if at+n < len(payload) {
			w |= more
		}
		binary.BigEndian.PutUint16(piece[2:], uint16(len(piece)))
		binary.BigEndian.PutUint16(piece[6:], w)
		binary.BigEndian.PutUint16(piece[10:], 0)
		binary.BigEndian.PutUint16(piece[10:], fold(sum(piece[:h.upper], 0)))
		each(piece)
	}
}

// The longest answers about a packet, which quotes it (RFC 1812 §4.3.2.3, RFC 4443 §2.4).
const (
	maxICMP   = 576
	maxICMPv6 = 1280
)

// tooBig writes to buf what a router says to the sender of a packet that does not fit into
// mtu, and returns it. ok is false for packets about which nothing may be said: errors
// of ICMP itself, later fragments, and what is no IP.
func tooBig(p []byte, mtu int, buf []byte) (answer []byte, ok bool) {
	h, ok := parseHeader(p)
	if !ok {
		return nil, false
	}
	const ttl = 64
	if h.version == 4 {
		if p[6]&0x1f != 0 || p[7] != 0 || h.key.Proto == protoICMP && !echo(p[h.upper:h.end], 8, 0) {
			return nil, false
		}
		quote := min(h.end, maxICMP-28)
		a := append(buf[:0], 0x45, 0xc0, 0, 0, 0, 0, 0, 0, ttl, protoICMP, 0, 0)
		a = append(append(a, hopIPv4[:]...), p[12:16]...)
		a = append(a, 3, 4, 0, 0, 0, 0, byte(mtu>>8), byte(mtu)) // RFC 1191 §4
		a = append(a, p[:quote]...)
		binary.BigEndian.PutUint16(a[2:], uint16(len(a)))
		binary.BigEndian.PutUint16(a[10:], fold(sum(a[:20], 0)))
		binary.BigEndian.PutUint16(a[22:], fold(sum(a[20:], 0)))
		return a, true
	}
	if h.key.Proto == protoICMPv6 && !echo(p[h.upper:h.end], 128, 129) {
		return nil, false
	}
	quote := min(h.end, maxICMPv6-48)
	a := append(buf[:0], 0x60, 0, 0, 0, byte((quote+8)>>8), byte(quote+8), protoICMPv6, ttl)
	a = append(append(a, hopIPv6[:]...), p[8:24]...)
	a = append(a, 2, 0, 0, 0, 0, 0, byte(mtu>>8), byte(mtu)) // RFC 4443 §3.2
	a = append(a, p[:quote]...)
	binary.BigEndian.PutUint16(a[42:], fold(sum(a[40:], sum(a[8:40], uint32(quote+8)+protoICMPv6))))
	return a, true
}

// echo reports whether an ICMP message is a ping or its answer.
func echo(icmp []byte, request, reply byte) bool {
	return len(icmp) > 0 && (icmp[0] == request || icmp[0] == reply)
}

// BoxStats are what a Box has done.
type BoxStats struct {
	Edited     link.Count `json:"edited"`     // SYNs whose options it changed
	TooBig     link.Count `json:"too_big"`    // dropped, as they did not fit
	Told       int64      `json:"told"`       // how often it said so
	Fragmented link.Count `json:"fragmented"` // cut into pieces
	Fragments  int64      `json:"fragments"`  // the pieces
}

package units

import (
	"fmt"
	"math"
	"math/bits"
	"strings"
)

// Layer is where a rate is counted (methods §0). Every rate has one.
type Layer int

// The layers, from the payload down to the wire.
const (
	L7 Layer = iota // payload
	L4              // with the transport header
	L3              // with the IP header
	L2              // frame with check sum, at least 64 bytes
	L1              // with preamble and gap: what the line is busy with
)

var layerNames = [...]string{"l7", "l4", "l3", "l2", "l1"}

func (l Layer) String() string { return layerNames[l] }

// ParseLayer reads l1, l2, l3, l4 or l7, in lower or upper case.
func ParseLayer(s string) (Layer, error) {
	for i, name := range layerNames {
		if strings.EqualFold(s, name) {
			return Layer(i), nil
		}
	}
	return 0, &SyntaxError{"layer", s, fmt.Sprintf("must be one of %s", strings.Join(layerNames[:], ", "))}
}

// Sizes of Ethernet (IEEE 802.3), IP (RFC 791, 8200), UDP (RFC 768) and TCP (RFC 9293).
const (
	EthernetHeader = 14
	VLANTag        = 4
	FrameCheck     = 4
	MinFrame       = 64
	PreambleAndGap = 20 // 7 preamble, 1 start of frame, 12 gap
	IPv4Header     = 20
	IPv6Header     = 40
	UDPHeader      = 8
	TCPHeader      = 20
	TCPTimestamps  = 12 // RFC 7323 §3.2, with two bytes of padding
)

// Headers says what each packet carries besides its payload.
type Headers struct {
	Transport int // bytes
	IP        int // bytes
	VLANTags  int
}

// UDPHeaders returns the headers of UDP.
func UDPHeaders(ipv6 bool, vlanTags int) Headers {
	return Headers{UDPHeader, ipHeader(ipv6), vlanTags}
}

// TCPHeaders returns the headers of TCP, with the timestamp option (on by default on
// Linux) or without options.
func TCPHeaders(ipv6 bool, vlanTags int, timestamps bool) Headers {
	h := Headers{TCPHeader, ipHeader(ipv6), vlanTags}
	if timestamps {
		h.Transport += TCPTimestamps
	}
	return h
}

func ipHeader(ipv6 bool) int {
	if ipv6 {
		return IPv6Header
	}
	return IPv4Header
}

// Bytes returns the size on layer l of a packet with so many payload bytes, not
// fragmented.
func (h Headers) Bytes(payload int, l Layer) int {
	n := payload
	if l >= L4 {
		n += h.Transport
	}
	if l >= L3 {
		n += h.IP
	}
	if l >= L2 {
		n = max(n+EthernetHeader+VLANTag*h.VLANTags+FrameCheck, MinFrame)
	}
	if l >= L1 {
		n += PreambleAndGap
	}
	return n
}

// Convert turns a rate of packets with so many payload bytes from one layer to another:
// exact, rounded to the nearest bit/s, saturating. Payload must be positive, rate not
// negative.
func (h Headers) Convert(rate BitRate, from, to Layer, payload int) BitRate {
	have, want := uint64(h.Bytes(payload, from)), uint64(h.Bytes(payload, to))
	hi, lo := bits.Mul64(uint64(rate), want)
	lo, carry := bits.Add64(lo, have/2, 0)
	hi += carry
	if hi >= have {
		return math.MaxInt64
	}
	q, _ := bits.Div64(hi, lo, have)
	return BitRate(min(q, math.MaxInt64))
}

// ConvertRate turns a rate of UDP datagrams with so many payload bytes from one layer to
// another: ConvertRate(GbitPerSec, L1, L7, 1400, false, 0) is the most that such datagrams
// carry on a gigabit line. See Headers.Convert.
func ConvertRate(rate BitRate, from, to Layer, payload int, ipv6 bool, vlanTags int) BitRate {
	return UDPHeaders(ipv6, vlanTags).Convert(rate, from, to, payload)
}

package bdp

import (
	"math"
	"time"

	"github.com/fullbore-net/fullbore/internal/units"
)

// Layer is where a rate is counted (methods §0).
type Layer = units.Layer

// The layers, from the payload down to the wire.
const (
	L7 = units.L7
	L4 = units.L4
	L3 = units.L3
	L2 = units.L2
	L1 = units.L1
)

// Headers says what each packet carries besides its payload.
type Headers units.Headers

// UDP returns the headers of UDP over IPv4 or IPv6 in untagged Ethernet.
func UDP(family int) Headers { return Headers(units.UDPHeaders(family == 6, 0)) }

// TCP returns the headers of TCP with the timestamp option, which Linux and Windows
// Server agree on unless it was switched off, over IPv4 or IPv6 in untagged Ethernet.
func TCP(family int) Headers { return Headers(units.TCPHeaders(family == 6, 0, true)) }

// PlainTCP returns the headers of TCP without options.
func PlainTCP(family int) Headers { return Headers(units.TCPHeaders(family == 6, 0, false)) }

// Bytes returns the size on layer l of a packet with so many payload bytes. The packet
// is not fragmented.
func (h Headers) Bytes(payload int, l Layer) int { return units.Headers(h).Bytes(payload, l) }

// Convert turns a rate in bit/s of packets with so many payload bytes from one layer to
// another. Payload must be positive.
func (h Headers) Convert(rate float64, payload int, from, to Layer) float64 {
	return rate * float64(h.Bytes(payload, to)) / float64(h.Bytes(payload, from))
}

// Greatest returns the greatest payload rate in bit/s of a line: link on layer L1
// brought up to L7.
func (h Headers) Greatest(link units.BitRate, payload int) float64 {
	return h.Convert(float64(link), payload, L1, L7)
}

// Frames returns the greatest whole number of full frames a second on a line
// (RFC 6349 §4.1.1, FPS_max).
func (h Headers) Frames(link units.BitRate, mtu int) int64 {
	overhead := units.EthernetHeader + units.VLANTag*h.VLANTags + units.FrameCheck + units.PreambleAndGap
	return int64(link) / int64(8*(mtu+overhead))
}

// Ideal returns the greatest payload rate in bit/s with full frames of mtu bytes
// (RFC 6349 §4.1.1 counts whole frames a second).
func (h Headers) Ideal(link units.BitRate, mtu int) float64 {
	return float64(mtu-h.Transport-h.IP) * 8 * float64(h.Frames(link, mtu))
}

// Packets returns packets a second of a payload rate. Payload must be positive.
func Packets(rate units.BitRate, payload int) float64 {
	return float64(rate) / 8 / float64(payload)
}

// Average returns the rate in bit/s of bytes moved in d, 0 when d is not positive.
func Average(bytes int64, d time.Duration) float64 {
	if d <= 0 {
		return 0
	}
	return float64(bytes) * 8 / d.Seconds()
}

// Missing returns the share of what was sent that did not arrive, 0..1; 0 when nothing
// was sent.
func Missing(sent, received int64) float64 {
	if sent <= 0 {
		return 0
	}
	return math.Max(0, float64(sent-received)/float64(sent))
}

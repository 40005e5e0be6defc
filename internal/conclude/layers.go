package conclude

import (
	"fmt"
	"net/netip"

	"github.com/fullbore-net/fullbore/internal/units"
	"github.com/fullbore-net/fullbore/result"
)

// Codes of the notices that are known before the first datagram.
const (
	RateAboveLink = "rate-above-link"
	Fragments     = "fragments"
)

// Before returns the notices about a test that is about to run: its Test, its Hosts and its
// streams are known, nothing was measured yet.
func Before(run *result.Run) []result.Notice {
	if !isUDP(run) || run.Test.BlockSize <= 0 {
		return nil
	}
	var out []result.Notice
	if n := aboveLink(run); n != nil {
		out = append(out, *n)
	}
	if mtu := leastMTU(run); mtu > 0 && !loopback(run) {
		if k := packetsPer(run.Test.BlockSize, mtu, family(run)); k > 1 {
			out = append(out, result.Notice{
				Code: Fragments, End: run.End, Level: result.Info,
				Text: fmt.Sprintf("datagrams of %d bytes do not fit a packet of %d: each is sent in %d, and one lost packet loses all of them", run.Test.BlockSize, mtu, k),
			})
		}
	}
	return out
}

// aboveLink warns of a rate that no link of that speed can carry.
func aboveLink(run *result.Run) *result.Notice {
	speed := linkSpeed(run)
	want := float64(run.Test.Bitrate) * float64(max(run.Test.Streams, 1))
	if m := float64(run.Test.MaxRate); m > 0 && (want == 0 || m < want) {
		want = m
	}
	if speed <= 0 || want <= 0 || loopback(run) {
		return nil
	}
	wire := wireRate(run, want)
	if wire <= float64(speed) {
		return nil
	}
	fits := want * float64(speed) / wire
	n := &result.Notice{
		Code: RateAboveLink, End: run.End, Level: result.Warn,
		Text: fmt.Sprintf("%s of payload in datagrams of %d bytes are %s on the wire (l1), more than the link's %s: at most %s of payload fit, the rest is lost or never sent",
			mega(want), run.Test.BlockSize, mega(wire), units.BitRate(speed), mega(fits)),
	}
	n.Fix = again(run, "-b", units.BitRate(int64(fits/float64(max(run.Test.Streams, 1)))/1000*1000).Exact())
	return n
}

// mega prints a rate so exactly that the layers can be told apart.
func mega(bps float64) string { return fmt.Sprintf("%.2f Mbit/s", bps/1e6) }

// wireRate is a payload rate of this test on the wire (l1).
func wireRate(run *result.Run, payload float64) float64 {
	return payload * float64(layerBytes(run)[units.L1]) / float64(max(run.Test.BlockSize, 1))
}

// Layers returns the rate that arrived in each direction on every layer (M-BASE); nil
// unless the test is UDP.
func Layers(run *result.Run) []result.LayerRate {
	if !isUDP(run) || run.Test.BlockSize <= 0 {
		return nil
	}
	var out []result.LayerRate
	n := layerBytes(run)
	for _, s := range run.Sums {
		h := HeadlineOf(run, s.Direction)
		if !h.Basis.Arrived() || h.BPS <= 0 {
			continue
		}
		at := func(l units.Layer) float64 { return h.BPS * float64(n[l]) / float64(n[units.L7]) }
		out = append(out, result.LayerRate{Direction: s.Direction, L7: h.BPS, L4: at(units.L4), L3: at(units.L3), L2: at(units.L2), L1: at(units.L1)})
	}
	return out
}

// layerBytes is what one datagram of the test takes on each layer, its fragments together.
func layerBytes(run *result.Run) [5]int {
	return DatagramBytes(run.Test.BlockSize, leastMTU(run), family(run))
}

// DatagramBytes returns what a UDP datagram of so many payload bytes takes on each layer
// (index units.Layer) in untagged Ethernet. If it does not fit a packet of mtu bytes it counts as
// the fragments that IP makes of it (RFC 791 §3.2: pieces of a multiple of 8 bytes; RFC 8200
// §4.5: each with a header of 8 bytes more). An mtu of 0 is unknown and holds everything.
func DatagramBytes(payload, mtu, family int) [5]int {
	h := units.UDPHeaders(family == 6, 0)
	var out [5]int
	if packetsPer(payload, mtu, family) == 1 {
		for l := units.L7; l <= units.L1; l++ {
			out[l] = h.Bytes(payload, l)
		}
		return out
	}
	out[units.L7], out[units.L4] = payload, h.Bytes(payload, units.L4)
	ip := h
	ip.Transport = 0
	if family == 6 {
		ip.IP += fragmentHeader
	}
	room := (mtu - ip.IP) / 8 * 8
	for rest := out[units.L4]; rest > 0; rest -= room {
		for l := units.L3; l <= units.L1; l++ {
			out[l] += ip.Bytes(min(rest, room), l)
		}
	}
	return out
}

// fragmentHeader is IPv6's (RFC 8200 §4.5).
const fragmentHeader = 8

// Pieces is how many IP packets a datagram of so many bytes of payload becomes where a packet has at
// most mtu bytes: 1 = it is whole.
func Pieces(payload, mtu, family int) int { return packetsPer(payload, mtu, family) }

// packetsPer is how many IP packets a datagram becomes.
func packetsPer(payload, mtu, family int) int {
	h := units.UDPHeaders(family == 6, 0)
	if mtu <= 0 || h.Bytes(payload, units.L3) <= mtu {
		return 1
	}
	header := h.IP
	if family == 6 {
		header += fragmentHeader
	}
	room := (mtu - header) / 8 * 8
	if room <= 0 {
		return 1
	}
	return (payload + h.Transport + room - 1) / room
}

// leastMTU is the smaller one of the two interfaces, 0 when neither is known.
func leastMTU(run *result.Run) int {
	mtu := 0
	for _, e := range []result.End{result.Client, result.Server} {
		if h := run.Hosts.Of(e); h != nil && h.NIC != nil && h.NIC.MTU > 0 && (mtu == 0 || h.NIC.MTU < mtu) {
			mtu = h.NIC.MTU
		}
	}
	return mtu
}

// family is the IP version of the test's streams, 4 where they are not known.
func family(run *result.Run) int {
	if len(run.Streams) > 0 {
		if a, err := netip.ParseAddr(run.Streams[0].Remote.Host); err == nil && a.Is6() && !a.Is4In6() {
			return 6
		}
	}
	return 4
}

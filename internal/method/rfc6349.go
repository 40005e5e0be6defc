package method

import (
	"fmt"
	"math"

	"github.com/fullbore-net/fullbore/result"
)

// The formulas of RFC 6349 §3.3 and §4 (M-6349). Rates bit/s, times s, sizes bytes.

// frameOverhead is what Ethernet adds to a packet on layer 1: preamble 8, header 14, check 4, gap 12.
const frameOverhead = 38

// goodRatio is the largest transfer time ratio that counts as ideal.
const goodRatio = 1.05

// BDPBits is the bandwidth-delay product, bits.
func BDPBits(rtt, bb float64) float64 { return rtt * bb }

// MinWindow is the window that fills the path, bytes.
func MinWindow(rtt, bb float64) float64 { return BDPBits(rtt, bb) / 8 }

// WindowLimit is the most that a window lets through.
func WindowLimit(window int64, rtt float64) float64 { return float64(window) * 8 / rtt }

// FPSMax is the most frames a second, with tags more VLAN tags.
func FPSMax(bb float64, mtu, tags int) float64 {
	return math.Floor(bb / (float64(mtu+frameOverhead+4*tags) * 8))
}

// IdealThroughput is the most payload: headers are IP's and TCP's, 40 without options, 52 with
// timestamps, 20 more with IPv6.
func IdealThroughput(bb float64, mtu, headers, tags int) float64 {
	return float64(mtu-headers) * 8 * FPSMax(bb, mtu, tags)
}

// ConnectionsNeeded is how many connections with this window fill the path.
func ConnectionsNeeded(minWindow float64, window int64) int64 {
	if window <= 0 {
		return 0
	}
	return max(1, int64(math.Ceil(minWindow/float64(window))))
}

// IdealTime is how long bytes take at the ideal throughput.
func IdealTime(bytes int64, ideal float64) float64 { return float64(bytes) * 8 / ideal }

// TransferRatio is the TCP transfer time ratio; 1 is ideal.
func TransferRatio(actual, ideal float64) float64 { return actual / ideal }

// Efficiency is TCP's, percent; sent includes what was sent again.
func Efficiency(sent, again int64) float64 { return 100 * float64(sent-again) / float64(sent) }

// BufferDelay is by how much round trips grew, percent.
func BufferDelay(mean, base float64) float64 { return 100 * (mean - base) / base }

// judgeFramework words what a test's figures mean (M-6349), and whether it passed against the
// reference: what the path allows with this window, for a single connection, or what it allows at
// all. known is false where there is no reference.
func judgeFramework(t *result.TCPTest, single bool, most float64) (text string, pass, known bool) {
	ratio := t.Ratio
	if ratio == nil && t.Ideal != nil {
		return "not judged: what arrived is not known", false, false
	}
	if ratio == nil {
		return "not judged: the bottleneck's bandwidth is not known", false, false
	}
	if single && t.WindowRatio != nil {
		ratio = t.WindowRatio
	}
	if t.Held && *ratio > most {
		return "not judged: the rate that was allowed (--max-rate, or the server's) was reached", false, false
	}
	lossy := t.Efficiency != nil && *t.Efficiency < 99
	queue := t.BufferDelay != nil && *t.BufferDelay > 100
	switch {
	case *ratio <= most && *t.Ratio > most:
		return fmt.Sprintf("good with this window: the window, not the path, holds one connection (the path allows %.2f times as much)", *t.Ratio), true, true
	case *ratio <= most:
		return "good", true, true
	case lossy:
		return fmt.Sprintf("loss: %.2f %% of what was sent was sent again", 100-*t.Efficiency), false, true
	case queue:
		return fmt.Sprintf("a standing queue: round trips grew by %.0f %%", *t.BufferDelay), false, true
	}
	return "the window or an end: neither loss nor a queue explains it (fullbore diagnose goes on from here)", false, true
}

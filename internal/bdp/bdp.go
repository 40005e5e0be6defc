// Package bdp is the arithmetic of a long fat pipe: how many bytes must be on the
// way to fill it, what a window carries at most, which system settings allow such a
// window, and what a payload rate is on each layer below. It is pure; the golden
// values are those of RFC 6349 and of practitioners' recipes.
package bdp

import (
	"math"
	"math/bits"
	"time"

	"github.com/fullbore-net/fullbore/internal/units"
)

// MaxWindow is the largest window TCP can announce: 65535 shifted by at most 14
// (RFC 7323 §2.3 keeps it under 2^30).
const MaxWindow = units.GiB

// UnscaledWindow is the largest window without the window scale option (RFC 9293 §3.1).
const UnscaledWindow units.ByteSize = 65535

// Product returns the bandwidth-delay product: the bytes that must be unacknowledged
// for a sender to keep rate busy over rtt, rounded up to whole bytes. 0 when rate or
// rtt is not positive; saturates at the largest ByteSize.
func Product(rate units.BitRate, rtt time.Duration) units.ByteSize {
	if rate <= 0 || rtt <= 0 {
		return 0
	}
	return units.ByteSize(mulDiv(uint64(rate), uint64(rtt), 8*uint64(time.Second), true))
}

// WindowRate returns the most that one connection carries with this window, window/rtt,
// rounded down to whole bit/s. 0 when window or rtt is not positive; saturates.
func WindowRate(window units.ByteSize, rtt time.Duration) units.BitRate {
	if window <= 0 || rtt <= 0 {
		return 0
	}
	const perByte = 8 * uint64(time.Second)
	return units.BitRate(mulDiv(uint64(window), perByte, uint64(rtt), false))
}

// Streams returns how many connections of this window fill a pipe that needs need
// bytes in flight (RFC 6349 §4.1); 0 when either is not positive.
func Streams(need, window units.ByteSize) int64 {
	if need <= 0 || window <= 0 {
		return 0
	}
	return int64((need-1)/window) + 1
}

// mulDiv is a·b/c in 128 bits, rounded up or down, at most math.MaxInt64. c is not 0.
func mulDiv(a, b, c uint64, up bool) int64 {
	hi, lo := bits.Mul64(a, b)
	if up {
		var carry uint64
		lo, carry = bits.Add64(lo, c-1, 0)
		hi += carry
	}
	if hi >= c {
		return math.MaxInt64
	}
	q, _ := bits.Div64(hi, lo, c)
	return int64(min(q, math.MaxInt64))
}

// Carried is what one window does on a path.
type Carried struct {
	Window units.ByteSize `json:"window_bytes"`
	Rate   units.BitRate  `json:"rate_bps"`  // at most, payload
	Share  float64        `json:"share"`     // of the wanted rate, at most 1
	Needed int64          `json:"streams"`   // connections of this window that fill the path
	Asked  bool           `json:"asked_for"` // the user named this window
}

// Report answers `fullbore bdp RATE RTT`.
type Report struct {
	Rate    units.BitRate  `json:"rate_bps"`
	RTT     float64        `json:"rtt_s"`
	BDP     units.ByteSize `json:"bdp_bytes"`
	Twice   units.ByteSize `json:"twice_bdp_bytes"` // what a window should be: room for the round trip in which a loss is repaired
	Carried []Carried      `json:"windows"`         // ascending
	// MinStreams is more than 1 when no single window TCP can announce fills the path.
	MinStreams int64           `json:"min_streams"`
	Linux      LinuxSettings   `json:"linux"`
	WindowsOS  WindowsSettings `json:"windows_os"`
}

// usualWindows are the sizes people meet: no window scaling, the old socket default of
// Linux, and the powers between a LAN's and a WAN's.
var usualWindows = []units.ByteSize{
	UnscaledWindow, 212992, 512 * units.KiB, units.MiB, 2 * units.MiB, 4 * units.MiB,
	8 * units.MiB, 16 * units.MiB, 64 * units.MiB, 256 * units.MiB, MaxWindow,
}

// For computes the report. Rate and rtt must be positive. asked are windows to show
// besides the usual ones, which end with the first that fills the path.
func For(rate units.BitRate, rtt time.Duration, asked ...units.ByteSize) Report {
	need := Product(rate, rtt)
	twice := need
	if twice <= math.MaxInt64/2 {
		twice *= 2
	}
	r := Report{
		Rate: rate, RTT: rtt.Seconds(), BDP: need, Twice: twice,
		MinStreams: Streams(need, MaxWindow),
		Linux:      ForLinux(twice),
		WindowsOS:  ForWindows(twice),
	}
	r.Carried = windows(rate, rtt, need, asked)
	return r
}

func windows(rate units.BitRate, rtt time.Duration, need units.ByteSize, asked []units.ByteSize) []Carried {
	want := map[units.ByteSize]bool{}
	for _, w := range usualWindows {
		want[w] = false
		if w >= need {
			break
		}
	}
	for _, w := range asked {
		want[w] = true
	}
	var out []Carried
	for w, mine := range want {
		c := Carried{Window: w, Rate: WindowRate(w, rtt), Needed: Streams(need, w), Asked: mine}
		c.Share = math.Min(1, float64(c.Rate)/float64(rate))
		out = append(out, c)
	}
	sortByWindow(out)
	return out
}

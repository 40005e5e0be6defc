// Package iperf3view says what iperf3 would show of a run: which rows, with which
// times, rates and neighbours, computed by iperf3's own arithmetic. The text and the
// JSON of the drop-in are two spellings of these values, so they cannot disagree.
//
// Where iperf3's habits differ from what a Run knows better (the other end's half on
// a server, the swapped times of a bidirectional run), the habit is kept and the place
// says so: scripts compare these outputs with the original's. Behaviour that is not
// worth keeping (spec iperf3-cli §9) has no place here.
package iperf3view

import (
	"math"

	"github.com/fullbore-net/fullbore/result"
)

// Release is the iperf3 release whose layout is printed.
type Release string

// The layouts that exist. The empty Release means the newest.
const (
	R312 Release = "3.12"
	R321 Release = "3.21"
)

// Releases lists them, oldest first.
var Releases = []Release{R312, R321}

// Old reports whether r is the 3.12 layout.
func (r Release) Old() bool { return r == R312 }

// String returns the release's number.
func (r Release) String() string {
	if r == "" {
		return string(R321)
	}
	return string(r)
}

// Micros converts seconds to whole microseconds, the resolution of every time that
// iperf3 shows.
func Micros(s float64) int64 { return int64(math.Round(s * 1e6)) }

// Secs converts microseconds to seconds in two steps as iperf3 does
// (src/iperf_time.c, iperf_time_in_secs); the last bit of a rate depends on it.
func Secs(us int64) float64 {
	return float64(us/1_000_000) + float64(us%1_000_000)/1e6
}

// rate is bytes per second, 0 for an empty time.
func rate(bytes int64, seconds float64) float64 {
	if seconds <= 0 {
		return 0
	}
	return float64(bytes) / seconds
}

// Bidirectional reports whether r ran in both directions at once.
func Bidirectional(r *result.Run) bool { return r.Test.Direction == "both" }

// Datagrams reports whether r used UDP.
func Datagrams(r *result.Run) bool { return r.Test.Transport == "udp" }

// Directions returns the directions of r, the client's sending one first.
func Directions(r *result.Run) []result.Direction {
	switch r.Test.Direction {
	case "both":
		return []result.Direction{result.Up, result.Down}
	case "down":
		return []result.Direction{result.Down}
	}
	return []result.Direction{result.Up}
}

// Sends reports whether the recording end of r sends in direction d.
func Sends(r *result.Run, d result.Direction) bool { return d.Sender() == r.End }

// Stage is how far a test got, as far as the outputs show it.
type Stage int

// The stages in order.
const (
	Nothing    Stage = iota // no parameters: not connected, busy, an idle server
	Parameters              // parameters have been offered (client) or read (server)
	Streams                 // all data connections exist
	Started                 // the test began
)

// StageOf returns how far r got.
func StageOf(r *result.Run) Stage {
	switch {
	case r.Wire == nil:
		return Nothing
	case len(r.Streams) > 0 && r.Wire.TestStarted:
		return Started
	case len(r.Streams) > 0:
		return Streams
	case r.Wire.Cookie != "" || r.End == result.Server && r.Test.Bitrate > 0:
		return Parameters
	}
	return Nothing
}

// Version is the line with which this end introduces itself: "iperf 3.21".
func Version(r *result.Run, rel Release) string {
	if r.Wire != nil && r.Wire.Version != "" {
		return r.Wire.Version
	}
	return "iperf " + rel.String()
}

// SystemInfo is uname's line of the recording end, "" when unknown.
func SystemInfo(r *result.Run) string {
	if h := r.Hosts.Of(r.End); h != nil {
		return h.SystemInfo
	}
	return ""
}

// StartTime is when r began, in RFC 1123's form with the zone that most platforms print.
func StartTime(r *result.Run) string {
	return r.Started.UTC().Format("Mon, 02 Jan 2006 15:04:05 GMT")
}

// ControlMSS is the segment size of the control connection; a server shows 0.
func ControlMSS(r *result.Run) int {
	if r.Wire == nil || r.End == result.Server {
		return 0
	}
	return r.Wire.ControlMSS
}

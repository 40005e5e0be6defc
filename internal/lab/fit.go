package lab

import (
	"fmt"
	"time"

	"github.com/fullbore-net/fullbore/internal/lab/forward"
)

// LinkReport is the forwarder's report with what only the lab can know.
type LinkReport struct {
	forward.Report
	RTT time.Duration `json:"rtt_ns"` // of the empty path: both delays
	// Unasked counts packets per direction that were lost although the schedule did not
	// ask for it: a device's queue overflowed or the far device refused the write.
	Unasked [2]int64 `json:"unasked_drops"`
	// Steal is the share of all processors' time that the hypervisor gave to others.
	Steal float64 `json:"steal"`
}

// The limits of a fit run: beyond them the path was not what it claims to be, so
// nothing that was measured on it counts.
const (
	MaxSteal     = 0.05
	minLateness  = time.Millisecond
	latenessPart = 0.03 // of the round-trip time
)

// LatenessLimit is the 99th percentile of lateness that a path of this round-trip
// time still tolerates.
func LatenessLimit(rtt time.Duration) time.Duration {
	return max(minLateness, time.Duration(latenessPart*float64(rtt)))
}

// fewPackets is below what the 99th percentile is one packet's luck: so few are what goes
// the other way in a test of datagrams, and half of them are looked at instead.
const fewPackets = 100

// Void says why the run does not count; none means that it was fit.
func (r *LinkReport) Void() (reasons []string) {
	limit := LatenessLimit(r.RTT)
	for i, d := range r.Directions {
		what, late := "p99", d.Late.P99
		if d.Late.Packets < fewPackets {
			what, late = "p50", d.Late.P50
		}
		if late > limit {
			reasons = append(reasons, fmt.Sprintf("lateness %s %s %v > %v", directionName[i], what, late.Round(time.Microsecond), limit))
		}
	}
	for i, d := range r.Directions {
		// Lateness is counted from when the kernel had the packet; without that it is too low.
		if d.Unstamped*100 > d.Link.In.Packets {
			reasons = append(reasons, fmt.Sprintf("%s: %d of %d packets came at an unknown time", directionName[i], d.Unstamped, d.Link.In.Packets))
		}
	}
	if r.Steal > MaxSteal {
		reasons = append(reasons, stolen(r.Steal))
	}
	return reasons
}

func stolen(steal float64) string {
	return fmt.Sprintf("steal %.1f %% > %.0f %%", 100*steal, 100*MaxSteal)
}

// directionName names the directions of a link by how the client sees them.
var directionName = [2]string{"up", "down"}

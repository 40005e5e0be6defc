package conclude

import (
	"fmt"

	"github.com/fullbore-net/fullbore/result"
)

// A clock that falls by clockFall while a core is at least clockBusy busy was slowed down; below
// that a governor saves power that nobody misses.
const (
	clockFall = 0.1
	clockBusy = 0.5
)

// Clock is what the busiest core of an end ran at while it worked, MHz: the means of the first
// and of the last third of the readings of a run, the warm-up's included, since that is where a
// processor is still cool. False with fewer than three: nothing can be said to have changed.
func Clock(run *result.Run, e result.End) (first, last float64, known bool) {
	var seen []float64
	for i := range run.Rows {
		r := &run.Rows[i]
		if r.End != e || r.Host == nil || r.Host.MHz == nil || busiestShare(r.Host) < clockBusy {
			continue
		}
		seen = append(seen, float64(*r.Host.MHz))
	}
	if len(seen) < 3 {
		return 0, 0, false
	}
	third := len(seen) / 3
	return mean(seen[:third]), mean(seen[len(seen)-third:]), true
}

// busiestShare is how busy the busiest core of a sample was.
func busiestShare(h *result.HostSample) (busy float64) {
	for i := range h.Cores {
		busy = max(busy, 1-h.Cores[i].Idle-h.Cores[i].IOWait)
	}
	return busy
}

func mean(v []float64) (sum float64) {
	for _, x := range v {
		sum += x
	}
	return sum / float64(len(v))
}

// slowed says that an end's processor slowed down under the test's load.
func (c *conclusion) slowed(e result.End, name string) {
	first, last, known := Clock(c.run, e)
	if !known || last > (1-clockFall)*first {
		return
	}
	c.notice(result.Notice{
		Code: ClockFell, End: e, Level: result.Warn,
		Text: fmt.Sprintf("the busiest core of %s ran at %.0f MHz when this began and at %.0f MHz at its end: heat, a power limit or a governor slowed it down, and a longer test may be slower still", name, first, last),
		Fix:  "fullbore doctor",
	})
}

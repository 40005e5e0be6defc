package doctor

import (
	"fmt"
	"time"

	"github.com/fullbore-net/fullbore/internal/bdp"
	"github.com/fullbore-net/fullbore/internal/units"
)

// How long a receiving program may stand still before its UDP socket overflows: a scheduler
// that is busy pauses it for milliseconds, one with nothing else to do for a fraction of one.
const (
	udpPause = 10 * time.Millisecond
	udpLeast = time.Millisecond
)

// datagramBuffer is what a UDP socket holds at the goal's rate. A program gets at most
// net.core.rmem_max unless it is privileged; Linux doubles that and charges each packet
// about twice its bytes, so it is also the payload that fits.
func datagramBuffer(p *patient) []Check {
	if !p.linux() {
		return nil
	}
	if p.TCP.CoreReadMax == nil {
		return unseen("not visible in this network namespace; the host's value applies", "sysctl net.core.rmem_max")
	}
	most := units.ByteSize(*p.TCP.CoreReadMax)
	holds := time.Duration(float64(most) * 8 / float64(p.goal.Rate) * float64(time.Second))
	c := Check{Status: OK, Found: fmt.Sprintf("%s holds %s at %s", most, units.FormatDuration(holds.Round(time.Microsecond)), p.goal.Rate)}
	if holds < udpPause {
		c.Status = Info
		if holds < udpLeast {
			c.Status = Change
		}
		c.Why = fmt.Sprintf("A UDP receiver that waits longer for a core loses datagrams at its socket; %s is room for a busy host. A privileged program may take more.", units.FormatDuration(udpPause))
		c.Fix = fmt.Sprintf("sysctl -w net.core.rmem_max=%d", bdp.Product(p.goal.Rate, udpPause))
	}
	return one(c)
}

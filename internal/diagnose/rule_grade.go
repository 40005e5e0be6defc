package diagnose

import (
	"fmt"
	"strings"

	"github.com/fullbore-net/fullbore/internal/conclude"
	"github.com/fullbore-net/fullbore/result"
)

// leastProbes is how many answered probes a quantile of the delay needs.
const leastProbes = 50

// loadedDelay is the flow of a direction under whose load small packets waited longest, nil
// when no probe ran beside one, or the processors and not a queue made them wait.
func loadedDelay(l *leg) *flow {
	var worst *flow
	for _, f := range l.plain() {
		if f.rise == nil || f.rise.N < leastProbes || cpuFirst(f) {
			continue
		}
		if worst == nil || f.rise.P95 > worst.rise.P95 {
			worst = f
		}
	}
	return worst
}

// underLoad grades the delay that a load adds, each direction apart.
func underLoad(c *Case) []result.Verdict {
	if c.Idle.rtt <= 0 {
		return nil
	}
	v := draft(LoadedDelay, Likely, nil)
	v.Note = true
	worst := 0.0
	var parts []string
	for _, l := range c.legs() {
		f := loadedDelay(l)
		if f == nil {
			continue
		}
		v.Stages = append(v.Stages, f.name)
		rise, typical := max(f.rise.P95, 0), max(f.rise.P50, 0)
		rpm := 60 / (c.Idle.rtt + typical)
		put(&v, "rise_"+string(l.dir), rise, "s")
		put(&v, "rise_typical_"+string(l.dir), typical, "s")
		put(&v, "rise_bytes_"+string(l.dir), rise*f.wire(f.rate)/8, "bytes")
		put(&v, "rpm_"+string(l.dir), rpm, "1/min")
		say(&v, "%s: beside %s small packets waited %s (typical) and %s (p95) longer than on the empty path (round trip %s): %s, grade %s; %.0f round trips a minute, %s",
			l.dir, streamsText(f), ms(typical), ms(rise), ms(c.Idle.rtt), size(rise*f.wire(f.rate)/8), conclude.BloatGrade(rise), rpm, conclude.Responsive(rpm))
		parts = append(parts, fmt.Sprintf("+%s %s", ms(rise), l.dir))
		worst = max(worst, rise)
	}
	if len(parts) == 0 {
		return nil
	}
	put(&v, "rise", worst, "s")
	v.Summary = fmt.Sprintf("Delay under load: grade %s (%s at the 95th percentile).", conclude.BloatGrade(worst), strings.Join(parts, ", "))
	if worst >= 0.060 {
		advise(&v, "a managed queue at the bottleneck (fq_codel, cake), or a shaper just below its rate in front of it")
	}
	return []result.Verdict{v}
}

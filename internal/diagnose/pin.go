package diagnose

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/fullbore-net/fullbore/internal/method"
	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/result"
)

// Where the worker shares its core with the interrupts of the card, moving it to another one is
// what an engineer would try (M-CPU, M-DIAG 4).

// interruptsMatter is the share of a core's time in interrupts from which on moving the worker
// away from it can be felt.
const interruptsMatter = 0.15

// idlest is the core of an end that had most time left, other than one; false when rows of no
// other core are there.
func idlest(run *result.Run, e result.End, other int) (cpu int, known bool) {
	busy, time := map[int]float64{}, 0.0
	for i := range run.Rows {
		r := &run.Rows[i]
		if r.End != e || r.Omitted || r.Host == nil {
			continue
		}
		time += r.Stop - r.Start
		for _, k := range r.Host.Cores {
			if k.CPU != other {
				busy[k.CPU] += (r.Stop - r.Start) * (1 - k.Idle - k.IOWait)
			}
		}
	}
	for k, b := range busy {
		if !known || b < busy[cpu] || b == busy[cpu] && k < cpu {
			cpu, known = k, true
		}
	}
	return cpu, known && time > 0 && busy[cpu] < time/2
}

// pinned repeats the single stream with the worker of the end that was full on a core that is
// not the card's. A quota is not of a core, and a loopback has no card.
func (p Planner) pinned(c *Case, l *leg) *method.Step {
	one := l.one()
	end, load, bound := one.cpuBound()
	if !bound || load > 1 || c.loopback() || c.bare() || end == result.Server && !c.extended() {
		return nil
	}
	hot := hottest(one.run, end)
	if !hot.known || hot.soft < interruptsMatter {
		return nil
	}
	free, known := idlest(one.run, end, hot.cpu)
	if !known {
		return nil
	}
	title := fmt.Sprintf("single stream, %s on core %d,", end, free)
	return p.stage(l.dir, fmt.Sprintf("pin-%d", free), title, "does it get faster away from the core of the interrupts?", p.Budget.Short, func(pl *plan.Plan) {
		if end == result.Client {
			pl.Affinity = []int{free}
		} else {
			pl.RemoteAffinity = &free
		}
	})
}

// movedAway puts what pinning the worker did into a verdict on the processor; it gives the rate
// that was reached by it, 0 when it did not help, and the core that the stage's name tells.
func (l *leg) movedAway(v *result.Verdict, one *flow, hot hotCore) (reached float64, core int) {
	for i := range l.flows {
		f := &l.flows[i]
		word, pin := strings.CutPrefix(f.name, string(l.dir)+"-pin-")
		core, err := strconv.Atoi(word)
		if !pin || err != nil || !f.usable() || !hot.known {
			continue
		}
		v.Stages = append(v.Stages, f.name)
		say(v, "changed: the worker on core %d, away from the interrupts on core %d: %s, %+.0f %%", core, hot.cpu, rate(f.rate), 100*(f.rate/one.rate-1))
		if f.rate >= (1+moved)*one.rate {
			return f.rate, core
		}
	}
	return 0, 0
}

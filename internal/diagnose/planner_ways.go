package diagnose

import (
	"fmt"
	"slices"
	"time"

	"github.com/fullbore-net/fullbore/internal/method"
	"github.com/fullbore-net/fullbore/internal/plan"
)

// Stages that ask whether flows take different ways: a balancer (ECMP, a bond) chooses one by
// addresses and ports, so streams from other ports may meet another limit.

// scanStreams is how many source ports M-DIAG looks at.
const scanStreams = 16

// One stream alone finds its rate soon, and there are several of them.
const (
	oneShort = 1500 * time.Millisecond
	oneOmit  = 500 * time.Millisecond
)

// ports is the source-port scan. Sixteen streams at once show which ports fare worse, if several
// streams were unequal; one stream alone, from a port of each kind, shows whether that is the
// port's doing or their competition's. A deep diagnosis tries all ports alone.
func (p Planner) ports(c *Case, l *leg) (out []*method.Step) {
	if p.Budget.Name == "quick" || !l.uneven(c) && p.Budget.Name != "deep" {
		return nil
	}
	scan := l.scan()
	if scan == nil {
		if p.Most > 0 && p.Most < scanStreams {
			return nil
		}
		return []*method.Step{p.stage(l.dir, "ports", "16 streams, other ports,", "do streams of other source ports take another way?", p.Budget.Short, func(pl *plan.Plan) { pl.Streams = scanStreams })}
	}
	if !apart(scan) {
		return nil
	}
	for _, port := range p.chosen(scan) {
		out = append(out, p.stage(l.dir, fmt.Sprintf("port-%d", port), fmt.Sprintf("1 stream from port %d", port), "is it the port, or only the others beside it?", oneShort, func(pl *plan.Plan) {
			pl.ClientPort, pl.Omit = port, oneOmit
		}))
	}
	return out
}

// chosen are the source ports that are tried alone: the slowest and the fastest one, or all of
// them, a slow one and a fast one in turn.
func (p Planner) chosen(scan *flow) []int {
	ways := waysOf(scan)
	slices.SortFunc(ways, func(a, b way) int { return a.port - b.port })
	slow, fast := sorted(ways)
	if len(slow) == 0 || len(fast) == 0 {
		return nil
	}
	if p.Budget.Name != "deep" {
		return []int{slow[0].port, fast[len(fast)-1].port} // between them competition decides, too
	}
	var out []int
	for i := range max(len(slow), len(fast)) {
		for _, group := range [][]way{slow, fast} {
			if i < len(group) {
				out = append(out, group[i].port)
			}
		}
	}
	return out
}

// bothWays is both directions at once and, where they carry less than each alone, whether that is
// so for one connection each way, too, and with other ports: a medium that both ways share does
// not care for ports, a bond that puts both on one member does.
func (p Planner) bothWays(c *Case) []*method.Step {
	s := p.stage("both", "4", "both directions at once", "does each way keep its rate beside the other?", p.Budget.Short, func(pl *plan.Plan) { pl.Direction, pl.Streams = plan.Both, 4 })
	s.Title = "both directions at once"
	out := []*method.Step{s}
	if !shortBothWays(c, "both-4") {
		return out
	}
	ps, _ := c.pairs()
	if short, free := outcomes(ps); short > 0 && free > 0 {
		return out // both kinds were met: more tell nothing new
	}
	for i, base := range bothPorts {
		if i > c.pairsFor() {
			break
		}
		s := p.stage("both", fmt.Sprintf("ports-%d", i+1), "both directions at once, one stream each,", "does it depend on the ports?", oneShort, func(pl *plan.Plan) {
			pl.Direction, pl.ClientPort, pl.Omit = plan.Both, base, oneOmit
		})
		s.Title = fmt.Sprintf("both at once, ports %d, %d", base, base+1)
		out = append(out, s)
	}
	return out
}

// bothPorts are the first of two source ports each: below those that systems give away by
// themselves (RFC 6335: 49152 and above; Linux: 32768 and above), and chosen so that hashes that
// only look at the last bits, or at the parity, see different ones. With two members each finds
// its two streams on one or on two of them with a chance of a half, so that five of five alike are
// chance once in sixteen times.
var bothPorts = []int{21000, 21015, 21038, 21077, 21104}

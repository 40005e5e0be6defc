package diagnose

import (
	"slices"

	"github.com/fullbore-net/fullbore/internal/conclude"
	"github.com/fullbore-net/fullbore/result"
)

// Over loopback, and between namespaces or containers of one machine, there is no wire: what
// drops, delays or shares there is this machine. Only where somebody put a queueing discipline on
// the device is it a path like others; then it is slow, or late.
const (
	bareTrip = 0.001 // s, least round trip of such a device with a delay on it
	bareRate = 5e9   // bit/s; what is slower may have a rate set
	// pairTrip is less than a round trip through two cards and their interrupts takes: behind a
	// virtual pair it is probably this machine's other namespace, even if its end does not tell its name.
	pairTrip = 50e-6
)

// asked reports that a rule has something to look at. Over loopback there is one machine and nothing
// between its ends: that is asked here, once, for whole rules. What else the same machine looks like
// (namespaces, containers) is judged by what came of it: withoutPaths.
func (c *Case) asked(r rule) bool { return r.needs != wire || !c.loopback() }

// near reports that the other end is probably another namespace or container of this machine.
func (c *Case) near() bool {
	return c.Facts.Driver == "veth" && c.Idle.rtt > 0 && c.Idle.rtt < pairTrip
}

// bare reports that both ends are on one machine, as far as can be told, with nothing between them.
func (c *Case) bare() bool {
	run := c.first()
	if run == nil || !c.loopback() && !conclude.SharedCores(run) && !c.near() || c.Idle.rtt >= bareTrip {
		return false
	}
	for _, l := range c.legs() {
		if b := l.best(); b != nil && b.rate >= bareRate {
			return true
		}
	}
	return false
}

// ofPaths are the verdicts about a path, which there is none where nothing lies between the ends.
var ofPaths = []string{
	PathFull, LossRandom, LossBursty, ShallowBuffer, Policer, Shaper, PerFlow, Outage, Reordering, Competing, ControlUnfit, MTUHole,
	ECMP, ClassStarved, StandingQueue, Asymmetric, BothWays, SmallMTU, LAGCollision, SharedMedium, Unsteady,
}

// withoutPaths leaves out what cannot be true where there is no wire.
func (c *Case) withoutPaths(vs []result.Verdict) []result.Verdict {
	if !c.bare() {
		return vs
	}
	return slices.DeleteFunc(vs, func(v result.Verdict) bool { return slices.Contains(ofPaths, v.Code) })
}

// loopbackCPU picks the end whose worker was busier. full says that some core was busy all the
// time; else it is found by elimination: the ends take turns, and nothing else is between them.
func loopbackCPU(f *flow) (end result.End, load float64, full bool) {
	core := hottest(f.run, result.Client)
	end, load = f.dir.Sender(), f.load[0]
	if f.load[1] > f.load[0] {
		end, load = f.dir.Receiver(), f.load[1]
	}
	return end, load, core.known && core.busy >= busyWorker
}

package lab

import (
	"fmt"
	"strings"
	"time"

	"github.com/fullbore-net/fullbore/internal/lab/link"
)

// Verdict is how a scenario ended.
type Verdict string

// The verdicts. Unfit is neither right nor wrong: the machine never let the path be
// what it claims to be.
const (
	Right Verdict = "right"
	Wrong Verdict = "wrong"
	Unfit Verdict = "machine unfit"
	// Cannot: the machine cannot make what the scenario asks for, so it was not played.
	Cannot Verdict = "machine cannot"
)

// MaxReplays is how often a void play is repeated.
const MaxReplays = 5

// Outcome is what playing a scenario came to.
type Outcome struct {
	Verdict Verdict
	// Reasons say what was not as expected, when Wrong; what cannot be made, when Cannot.
	Reasons []string
	// Plays are all plays in order; only the last can have counted.
	Plays []Play
}

// Play is one run of a scenario's commands.
type Play struct {
	Void []string    // why it does not count; empty: it was fit
	Link *LinkReport // nil in a topology without a link
	// Steal is the share of all processors' time that the hypervisor gave to others.
	Steal          float64
	Client, Server Result
	// Killed says that the client did not end within the scenario's timeout.
	Killed bool
	// Missed says which pauses did not take place.
	Missed []string
	// NFT and SNMP are what Expect.NFT and Expect.SNMP ask for, in their order: a rule's
	// counter, and by how much a counter of the kernel grew.
	NFT  []link.Count
	SNMP []int64
	// Sampled are the counters of Expect.SNMP with a window while the play was on, every sampleEvery.
	Sampled [][]Sample
	// Throttle is what the kernel says about the processor quota of a host that has one.
	Throttle map[string]ThrottleStats
	// Traffic is what the scenario's competing flows did, in their order.
	Traffic []TrafficStats
}

// ThrottleStats are what the kernel says of a group with a quota (cpu.stat).
type ThrottleStats struct {
	Periods       int64         `json:"periods"`        // in which it wanted to run
	Throttled     int64         `json:"throttled"`      // of them, in which the quota was used up
	ThrottledTime time.Duration `json:"throttled_time"` // ns, summed over processors
}

// Right reports whether everything was as expected.
func (o Outcome) Right() bool { return o.Verdict == Right }

// Unfit reports whether no play counted.
func (o Outcome) Unfit() bool { return o.Verdict == Unfit }

// Cannot reports whether the machine cannot make what the scenario asks for.
func (o Outcome) Cannot() bool { return o.Verdict == Cannot }

// Result is what a finished program left.
type Result struct {
	Code           int
	Stdout, Stderr string
}

// String describes a play in one line: whether it counts, and how true the path was.
func (p Play) String() string {
	var b strings.Builder
	if len(p.Void) == 0 {
		b.WriteString("fit")
	} else {
		b.WriteString("void: " + strings.Join(p.Void, "; "))
	}
	var facts []string
	if p.Link != nil {
		for i, d := range p.Link.Directions {
			facts = append(facts, fmt.Sprintf("%s: %d packets, late p50 %v p99 %v max %v, dropped %d queue %d loss %d unasked%s",
				directionName[i], d.Out.Packets, micros(d.Late.P50), micros(d.Late.P99), micros(d.Late.Max),
				d.Link.Queue.Packets, d.Link.Loss.Packets, p.Link.Unasked[i], faultCounts(d.Link)))
		}
	}
	facts = append(facts, fmt.Sprintf("steal %.1f %%", 100*p.Steal))
	return b.String() + " (" + strings.Join(facts, "; ") + ")"
}

// faultCounts says what else the link did to packets, each after a comma.
func faultCounts(s link.Stats) string {
	var b strings.Builder
	for _, c := range []struct {
		n    int64
		what string
	}{
		{s.Burst.Packets, "in bursts"},
		{s.Outage.Packets, "in the outage"},
		{s.Hole.Packets, "too large"},
		{s.Policer.Packets, "by the policer"},
		{s.Shaper.Packets, "by the shaper"},
		{s.Duplicated.Packets, "doubled"},
		{s.Reordered.Packets, "held back"},
	} {
		if c.n > 0 {
			fmt.Fprintf(&b, ", %d %s", c.n, c.what)
		}
	}
	return b.String()
}

func micros(d time.Duration) time.Duration { return d.Round(time.Microsecond) }

package lab

import (
	"fmt"
	"strings"
	"time"
)

// Verdict is how a scenario ended.
type Verdict string

// The verdicts. Unfit is neither right nor wrong: the machine never let the path be
// what it claims to be.
const (
	Right Verdict = "right"
	Wrong Verdict = "wrong"
	Unfit Verdict = "machine unfit"
)

// MaxReplays is how often a void play is repeated.
const MaxReplays = 5

// Outcome is what playing a scenario came to.
type Outcome struct {
	Verdict Verdict
	// Reasons say what was not as expected, when Wrong.
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
}

// Right reports whether everything was as expected.
func (o Outcome) Right() bool { return o.Verdict == Right }

// Unfit reports whether no play counted.
func (o Outcome) Unfit() bool { return o.Verdict == Unfit }

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
			facts = append(facts, fmt.Sprintf("%s: %d packets, late p50 %v p99 %v max %v, dropped %d queue %d loss %d unasked",
				directionName[i], d.Out.Packets, micros(d.Late.P50), micros(d.Late.P99), micros(d.Late.Max),
				d.Link.Queue.Packets, d.Link.Loss.Packets, p.Link.Unasked[i]))
		}
	}
	facts = append(facts, fmt.Sprintf("steal %.1f %%", 100*p.Steal))
	return b.String() + " (" + strings.Join(facts, "; ") + ")"
}

func micros(d time.Duration) time.Duration { return d.Round(time.Microsecond) }

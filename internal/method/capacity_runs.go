package method

import (
	"fmt"
	"strings"
	"time"

	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/result"
)

// CapacityTest plays M-CAP: one steered test a direction; where the other end cannot be steered
// with, short tests at rates that double until something gives, and then a few at the rate that
// came through.
type CapacityTest struct {
	Directions []plan.Direction // up, down; both at once cannot be steered
	TypeC      bool
	Duration   time.Duration // 0 = 10 s
	Sub        time.Duration // sub-interval; 0 = 1 s
	Max        float64       // payload bit/s that is never exceeded; 0 = none is known
	Bimodal    int           // so many first sub-intervals are told apart; 0 = none
	UDP        plan.Plan     // what every test has
}

// What a capacity test does to a peer that cannot be steered with.
const (
	capFirst   = 10e6 // payload bit/s of the first test; a steered one ignores it
	capGives   = 0.01 // loss at which the path gives
	capOver    = 1.1  // of what came through: enough to keep the bottleneck busy
	capRepeats = 4    // tests then
	capMost    = 24   // doublings: more than any rate takes
)

func (c CapacityTest) filled() CapacityTest {
	if c.Duration == 0 {
		c.Duration = 10 * time.Second
	}
	if c.Sub == 0 {
		c.Sub = time.Second
	}
	return c
}

// first is the steered step, which to another peer is the first short test.
func (c CapacityTest) first(d plan.Direction) Step {
	p := c.UDP
	p.Transport, p.Direction, p.Streams, p.RateSet = plan.UDP, d, 1, true
	p.Bitrate = int64(c.bound(capFirst))
	p.Duration, p.Interval = c.Duration, c.Sub
	kind := "b"
	if c.TypeC {
		kind = "c"
	}
	p.Steer = &plan.Steer{Type: kind, Max: int64(c.Max)}
	p.Probe = &plan.Probe{Spacing: plan.SteerEvery, Size: 128, Profile: "steering"}
	return Step{
		Name: string(d) + "-steered", Title: fmt.Sprintf("UDP %s, steered", d),
		Why: fmt.Sprintf("the receiver's feedback moves the rate, 20 times a second, by type %s of the search and the table %q", strings.ToUpper(kind), CapTableName), Plan: p,
	}
}

func (c CapacityTest) bound(bps float64) float64 {
	if c.Max > 0 && bps > c.Max {
		return c.Max
	}
	return bps
}

// short is a short test at a rate, payload bit/s.
func (c CapacityTest) short(d plan.Direction, k int, bps float64) Step {
	p := c.UDP
	p.Transport, p.Direction, p.Streams, p.RateSet = plan.UDP, d, 1, true
	p.Bitrate, p.Duration, p.Interval, p.Steady = int64(bps), plan.SteerPlain, plan.SteerPlain, true
	return Step{
		Name: fmt.Sprintf("%s-%d", d, k), Title: fmt.Sprintf("UDP %s at %s", d, mbits(bps)),
		Why: "the other end cannot be steered with: short tests instead", Plan: p, Volume: int64(bps / 8),
	}
}

// Steered reports that a run was steered while it ran.
func Steered(run *result.Run) bool { return run != nil && run.Test.Steered }

// Next implements Method.
func (c CapacityTest) Next(history []Done) (Step, bool) {
	c = c.filled()
	if n := len(history); n > 0 && (history[n-1].Run == nil || history[n-1].Err != nil) {
		return Step{}, false
	}
	for _, d := range c.Directions {
		mine := Of(history, d)
		if len(mine) == 0 {
			return c.first(d), true
		}
		if Steered(mine[0].Run) {
			continue
		}
		if s, more := c.plain(d, mine); more {
			return s, true
		}
	}
	return Step{}, false
}

// plain is the next short test of a direction.
func (c CapacityTest) plain(d plan.Direction, mine []Done) (Step, bool) {
	best, gave := 0.0, -1
	for i, m := range mine {
		t, _ := TrialOf(m.Run, float64(m.Step.Plan.Bitrate), plan.SteerPlain.Seconds(), 0)
		best = max(best, t.Received)
		if gave < 0 && (t.Ratio() > capGives || t.Short || c.Max > 0 && t.Load >= c.Max*0.999) {
			gave = i
		}
	}
	switch {
	case best <= 0:
		return Step{}, false
	case gave >= 0 && len(mine)-gave > capRepeats || len(mine) > capMost+capRepeats:
		return Step{}, false
	case gave >= 0:
		return c.short(d, len(mine), c.bound(capOver*best)), true
	}
	return c.short(d, len(mine), c.bound(2*float64(mine[len(mine)-1].Step.Plan.Bitrate))), true
}

// CapacityFound is what was found in a direction.
type CapacityFound struct {
	Direction plan.Direction
	Steered   bool
	CapacityAnswer
	Run *result.Run // the steered one, or that with the maximum
	// HostLimited: the receiver's socket dropped what had arrived, or, Sender, the sender of the short tests
	// did not reach their rates.
	HostLimited, Sender bool
}

// Answer reads the history; a direction of which nothing is known is left out.
func (c CapacityTest) Answer(history []Done) (out []CapacityFound) {
	c = c.filled()
	for _, d := range c.Directions {
		mine := Of(history, d)
		f := CapacityFound{Direction: d}
		for i, m := range mine {
			if i == 0 && Steered(m.Run) {
				a, ok := CapacityOf(m.Run, result.Direction(d), c.Sub.Seconds(), c.Bimodal)
				if ok {
					f.Steered, f.CapacityAnswer, f.Run = true, a, m.Run
				}
				break
			}
			f.short(m)
		}
		if f.Run == nil {
			continue
		}
		if !f.Steered {
			half := f.Subs[len(f.Subs)-min(capRepeats, len(f.Subs)):]
			for _, s := range half {
				f.Sustained += s.L3 / float64(len(half))
			}
		}
		if s := f.Run.Sum(result.Direction(d)); !f.HostLimited && s != nil && s.UDP != nil && s.UDP.Loss != nil && s.UDP.Loss.Socket != nil {
			f.HostLimited = *s.UDP.Loss.Socket > 0
		}
		out = append(out, f)
	}
	return out
}

// short takes a short test into the answer: all of it is one sub-interval, by its totals, for a plain
// receiver tells nothing else.
func (f *CapacityFound) short(m Done) {
	d := result.Direction(f.Direction)
	l := layersOf(m.Run, d)
	good, ok := Goodput(m.Run, d)
	if l == nil || !ok {
		return
	}
	x := SubInterval{Stop: m.Step.Plan.Duration.Seconds(), L3: good * l.L3 / l.L7}
	if m.Step.Plan.Steer != nil {
		x.Stop = plan.SteerPlain.Seconds()
	}
	t, _ := TrialOf(m.Run, float64(m.Step.Plan.Bitrate), x.Stop, 0)
	x.Sent, x.Lost = t.Sent, t.Lost
	f.Subs = append(f.Subs, x)
	if f.Run == nil || x.L3 > f.Max.L3 {
		f.Max, f.Run, f.L7, f.L2, f.L1 = x, m.Run, l.L7/l.L3, l.L2/l.L3, l.L1/l.L3
	}
	f.HostLimited = t.Ratio() <= capGives && t.Short // the last one's word counts
	f.Sender = f.HostLimited
}

// layersOf is the layers' rates of a direction; nil = not known.
func layersOf(run *result.Run, d result.Direction) *result.LayerRate {
	if run == nil {
		return nil
	}
	for i := range run.Layers {
		if l := &run.Layers[i]; l.Direction == d && l.L7 > 0 {
			return l
		}
	}
	return nil
}

// Possible are the steps for whoever wants to know before.
func (c CapacityTest) Possible() (out []Step) {
	c = c.filled()
	for _, d := range c.Directions {
		out = append(out, c.first(d))
	}
	return out
}

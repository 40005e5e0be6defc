package method

import (
	"fmt"
	"slices"
	"time"

	"github.com/fullbore-net/fullbore/internal/conclude"
	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/result"
)

// NDR plays M-NDR's search with UDP tests, one direction after the other. A direction of both
// ways at once counts by the worse of the two.
type NDR struct {
	Preset     RatePreset
	Directions []plan.Direction
	// Max is the greatest load, payload bit/s, all streams of a direction; 0 = what TCP reaches,
	// which is then measured first.
	Max float64
	// Told: Max is the user's word. Else the other end's link may be slower than this one's, and
	// bounds it too, once it is known.
	Told    bool
	Streams int       // 0 = 1
	UDP     plan.Plan // what every trial has: BlockSize, Pacing, Offload, TOS, Window …
	TCP     plan.Plan // what the test for Max has
}

// tcpStreams and tcpTime are of the test that finds the greatest load.
const (
	tcpStreams = 4
	tcpTime    = 2 * time.Second
	tcpWarm    = time.Second
)

func (n NDR) streams() int { return max(n.Streams, 1) }

// Of are the steps of a direction.
func Of(history []Done, d plan.Direction) []Done {
	return slices.DeleteFunc(slices.Clone(history), func(x Done) bool { return x.Step.Plan.Direction != d })
}

// Next implements Method.
func (n NDR) Next(history []Done) (Step, bool) {
	if len(history) > 0 && !usable(history[len(history)-1]) {
		return Step{}, false // what keeps one trial from happening keeps the next
	}
	for _, d := range n.Directions {
		mine := Of(history, d)
		if n.Max <= 0 && len(mine) == 0 {
			return n.tcp(d), true
		}
		search := n.search(mine)
		if search.Max <= 0 {
			continue
		}
		trials, again := n.trials(mine)
		if again != nil {
			return *again, true
		}
		if ask, more := search.Next(trials); more {
			return n.step(d, ask, len(trials)), true
		}
	}
	return Step{}, false
}

// usable reports that a step was measured to its end.
func usable(d Done) bool { return d.Run != nil && d.Err == nil && d.Run.Err == nil && !Cut(d) }

// cutShare is how much of its time a step must have had to count.
const cutShare = 0.8

// Cut reports that a step ended before its time, for a budget: what it shows of rates is nothing.
func Cut(d Done) bool {
	if d.Run == nil || d.Step.Plan.Duration <= 0 {
		return false
	}
	for i := range d.Run.Sums {
		s := &d.Run.Sums[i]
		for _, t := range []*result.Total{s.Sender, s.Receiver} {
			if t != nil && t.Seconds() > 0 && t.Seconds() < cutShare*d.Step.Plan.Duration.Seconds() {
				return true
			}
		}
	}
	return false
}

func (n NDR) tcp(d plan.Direction) Step {
	p := n.TCP
	p.Transport, p.Direction, p.Streams, p.Duration, p.Omit = plan.TCP, d, tcpStreams, tcpTime, tcpWarm
	return Step{
		Name: string(d) + "-tcp", Title: fmt.Sprintf("TCP %s, %d streams", d, tcpStreams),
		Why: "what it reaches is the greatest load: the link's speed is not known", Plan: p,
	}
}

// search is that of a direction, whose steps are given.
func (n NDR) search(mine []Done) RateSearch {
	s := RateSearch{RatePreset: n.Preset, Max: n.Max}
	if len(mine) == 0 {
		return s
	}
	first := mine[0].Run
	if s.Max <= 0 {
		for i := range first.Sums { // the slower way of two
			if g, ok := Goodput(first, first.Sums[i].Direction); ok && (s.Max <= 0 || g < s.Max) {
				s.Max = g
			}
		}
	}
	if most := linkPayload(mine); !n.Told && most > 0 && most < s.Max {
		s.Max = most
	}
	return s
}

// linkPayload is what the slower one of both ends' links carries of the UDP steps' payload, bit/s;
// 0 = not known.
func linkPayload(mine []Done) (most float64) {
	for i := range mine {
		run := mine[i].Run
		if mine[i].Step.Plan.Transport != plan.UDP || len(run.Layers) == 0 || run.Layers[0].L1 <= 0 {
			continue
		}
		for _, e := range []result.End{result.Client, result.Server} {
			h := run.Hosts.Of(e)
			if h == nil || h.NIC == nil || h.NIC.SpeedBPS == nil || *h.NIC.SpeedBPS <= 0 {
				continue
			}
			if bps := float64(*h.NIC.SpeedBPS) * run.Layers[0].L7 / run.Layers[0].L1; most == 0 || bps < most {
				most = bps
			}
		}
		return most // always the same step's, so that a search stays what it is
	}
	return 0
}

// step is the UDP test of an Ask.
func (n NDR) step(d plan.Direction, a Ask, k int) Step {
	p := n.UDP
	p.Transport, p.Direction, p.Streams, p.RateSet = plan.UDP, d, n.streams(), true
	p.Steady = true
	p.Bitrate = max(int64(a.Load/float64(n.streams())+0.5), 1)
	p.Duration = time.Duration(a.Seconds * float64(time.Second)).Round(time.Millisecond)
	if p.Interval > p.Duration || p.Interval == 0 {
		p.Interval = max(min(p.Duration, time.Second), plan.MinInterval)
	}
	s := Step{
		Name: fmt.Sprintf("%s-%d", d, k), Title: fmt.Sprintf("UDP %s at %s", d, mbits(a.Load)), Pause: a.Pause,
		Why: "is this rate carried?", Plan: p, Volume: int64(a.Load / 8 * a.Seconds),
	}
	if a.Warm {
		s.Name, s.Why = string(d)+"-warm", "thrown away: it warms caches and neighbours"
	}
	return s
}

func mbits(bps float64) string {
	switch {
	case bps >= 1e9:
		return fmt.Sprintf("%.4g Gbit/s", bps/1e9)
	case bps >= 1e6:
		return fmt.Sprintf("%.4g Mbit/s", bps/1e6)
	}
	return fmt.Sprintf("%.4g kbit/s", bps/1e3)
}

// warm reports that a step is thrown away.
func warm(s Step) bool { return s.Name == string(s.Plan.Direction)+"-warm" }

// trials reads the UDP steps of a direction. A step whose losses may be the receiver's or the
// network's, because the kernel merged datagrams, is to be made again without that: then again
// is what to do now.
func (n NDR) trials(mine []Done) (out []Trial, again *Step) {
	for i := range mine {
		d := &mine[i]
		if d.Step.Plan.Transport != plan.UDP {
			continue
		}
		load := float64(d.Step.Plan.Bitrate) * float64(max(d.Step.Plan.Streams, 1))
		t, clear := TrialOf(d.Run, load, d.Step.Plan.Duration.Seconds(), n.least())
		t.Warm = warm(d.Step)
		if !clear && !t.Warm && d.Step.Plan.Offload != plan.OffloadOff {
			if i == len(mine)-1 {
				s := d.Step
				s.Pause = max(s.Pause, n.Preset.Residue+n.Preset.Calm)
				s.Plan.Offload, s.Why = plan.OffloadOff, "once more without coalescing: who dropped is not clear"
				return out, &s
			}
			continue
		}
		out = append(out, t)
	}
	return out, nil
}

// least is the strictest loss goal.
func (n NDR) least() float64 {
	least := 1.0
	for _, g := range n.Preset.Goals {
		least = min(least, g.Loss)
	}
	return least
}

// mergedMost is how many datagrams one drop of a coalescing socket can be (M-UDP).
const mergedMost = 64

// TrialOf reads a UDP run as a trial at load; of several directions the worst counts. clear is
// false when more was lost than goal and who lost it cannot be told, since the kernel merged
// datagrams: such a trial is to be made again with offload off.
func TrialOf(run *result.Run, load, seconds, goal float64) (t Trial, clear bool) {
	t, clear = Trial{Load: load, Seconds: seconds}, true
	worst := -1.0
	for i := range run.Sums {
		s := &run.Sums[i]
		one, sure := directionTrial(run, s, load, seconds, goal)
		weight := one.Ratio()
		if one.Short {
			weight += 2
		}
		if weight > worst {
			worst, t, clear = weight, one, sure
		}
	}
	t.Took = run.Elapsed
	return t, clear
}

func directionTrial(run *result.Run, s *result.Sum, load, seconds, goal float64) (t Trial, clear bool) {
	t = Trial{Load: load, Seconds: seconds}
	if s.Sender != nil {
		t.Offered = s.Sender.Rate()
		t.Short = conclude.SenderShort(run, s, t.Offered, load)
	}
	if s.Goodput != nil {
		t.Received = *s.Goodput
	}
	l := conclude.LossOf(run, s.Direction)
	if l == nil || l.Sent == 0 {
		return t, true // Ratio is 1 then
	}
	t.Sent, t.Lost, t.Path = l.Sent, l.Lost, l.Lost
	if l.Lost > 0 && slices.Contains(run.Flags, conclude.FlagSenderCPU) {
		t.Short = true
	}
	if l.Socket == nil || *l.Socket <= 0 {
		return t, true
	}
	if l.Network != nil && !merged(s) {
		t.Path = *l.Network
		return t, true
	}
	t.Path = max(l.Lost-mergedMost**l.Socket, 0) // surely not the socket's
	return t, t.Ratio() <= goal || float64(t.Path) > goal*float64(t.Sent)
}

// NDRAnswer is what was found in one direction.
type NDRAnswer struct {
	Direction plan.Direction
	Max       float64 // greatest load, payload bit/s
	ByTCP     bool    // Max is what TCP reached
	Trials    []Trial
	Answers   []RateAnswer // one a goal; empty when nothing was tried
	Again     int          // trials that were repeated without coalescing
}

// Answer reads the history, one answer for each direction that was tried.
func (n NDR) Answer(history []Done) []NDRAnswer {
	var out []NDRAnswer
	for _, d := range n.Directions {
		mine := slices.DeleteFunc(Of(history, d), func(x Done) bool { return !usable(x) })
		if len(mine) == 0 {
			continue
		}
		s := n.search(mine)
		trials, _ := n.trials(mine)
		a := NDRAnswer{Direction: d, Max: s.Max, ByTCP: n.Max <= 0, Trials: trials}
		for _, x := range mine {
			if x.Step.Plan.Transport == plan.UDP {
				a.Again++
			}
		}
		a.Again -= len(trials)
		if len(trials) > 1 {
			a.Answers = s.Answers(trials)
		}
		out = append(out, a)
	}
	return out
}

// Possible are the first steps of each direction, for whoever wants to know before: the others
// depend on what those show.
func (n NDR) Possible() (out []Step) {
	for _, d := range n.Directions {
		if n.Max <= 0 {
			out = append(out, n.tcp(d))
			continue
		}
		first := n.Preset.Goals[0].Initial.Seconds()
		out = append(out, n.step(d, Ask{Load: n.Max, Seconds: first, Warm: true}, 0), n.step(d, Ask{Load: n.Max, Seconds: first}, 1))
	}
	return out
}

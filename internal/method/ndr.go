package method

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/fullbore-net/fullbore/internal/stats"
)

// M-NDR: the highest rate within a loss goal, by MLRsearch (draft-ietf-bmwg-mlrsearch).

// RateGoal is what a rate has to fulfil to count as carried.
type RateGoal struct {
	Loss    float64       // ratio that is still good
	Trial   time.Duration // of the trials that decide
	Sum     time.Duration // of good trials that a rate needs
	Exceed  float64       // share of Sum that may be bad: what a noisy path is granted
	Width   float64       // (upper − lower)/upper at which the search ends
	Initial time.Duration // of the first trials
}

// Validate reports every fault of g.
func (g RateGoal) Validate() error {
	var errs []error
	bad := func(cond bool, what string, v any) {
		if cond {
			errs = append(errs, fmt.Errorf("rate goal: %s: %v", what, v))
		}
	}
	bad(!(g.Loss >= 0 && g.Loss < 1), "loss must be 0 … less than 1", g.Loss)
	bad(!(g.Exceed >= 0 && g.Exceed < 1), "exceed ratio must be 0 … less than 1", g.Exceed)
	bad(!(g.Width > 0 && g.Width < 1), "width must be between 0 and 1", g.Width)
	bad(g.Initial <= 0 || g.Trial < g.Initial, "trials must not be shorter than the first ones", g.Trial)
	bad(g.Sum < g.Trial, "the sum must hold a trial", g.Sum)
	return errors.Join(errs...)
}

// RatePreset is a procedure with a name.
type RatePreset struct {
	Name  string
	Goals []RateGoal
	// Residue and Calm follow a lossy trial: what is still on its way arrives, and what
	// filled up runs empty.
	Residue, Calm time.Duration
	Limit         time.Duration // the search ends then, wherever it is; with what the tests take beside their trials
	About         string        // how long it takes
	// Verify is how often a lossy trial is repeated at once; a repeat that is clean takes its place (loss
	// verification, ETSI GS NFV-TST 009).
	Verify int
}

// RatePresets are the presets of M-NDR, each time anew.
func RatePresets() []RatePreset {
	const s = time.Second
	return []RatePreset{
		{
			Name: "quick", Goals: []RateGoal{{Trial: s, Sum: 3 * s, Width: 0.02, Initial: s}},
			Residue: 200 * time.Millisecond, Calm: 500 * time.Millisecond, Limit: 2 * time.Minute, About: "30 s",
		},
		{
			Name: "default", Goals: []RateGoal{{Trial: 2 * s, Sum: 10 * s, Exceed: 0.5, Width: 0.01, Initial: s}},
			Residue: 2 * s, Calm: 5 * s, Limit: 10 * time.Minute, About: "2 min",
		},
		{
			Name: "csit", Goals: []RateGoal{
				{Trial: s, Sum: 21 * s, Exceed: 0.5, Width: 0.005, Initial: s},
				{Loss: 0.005, Trial: s, Sum: 21 * s, Exceed: 0.5, Width: 0.005, Initial: s},
			},
			Residue: 2 * s, Calm: 5 * s, Limit: 30 * time.Minute, About: "5 to 8 min",
		},
		{
			Name: "rfc2544", Goals: []RateGoal{{Trial: 60 * s, Sum: 60 * s, Width: 0.005, Initial: s}},
			Residue: 2 * s, Calm: 5 * s, Limit: time.Hour, About: "10 to 15 min",
		},
	}
}

// RatePresetOf finds a preset by name.
func RatePresetOf(name string) (RatePreset, bool) {
	for _, p := range RatePresets() {
		if p.Name == name {
			return p, true
		}
	}
	return RatePreset{}, false
}

// Trial is one measurement at one rate. Rates in bit/s of payload, all streams of a direction.
type Trial struct {
	Load     float64 // that was to be offered
	Seconds  float64 // how long
	Took     float64 // s, from connecting to closing; 0 = not known
	Offered  float64 // what the sender reached; 0 = not known
	Received float64
	Sent     int64 // datagrams
	Lost     int64
	// Path is how many of the lost are surely not a host's own: all of them, where the receiver
	// does not tell or dropped none itself.
	Path int64
	// Short: the sender did not reach the rate, or was at its processor's limit while datagrams
	// were lost.
	Short bool
	Warm  bool // thrown away
}

// Ratio is how much of what was sent was lost.
func (t Trial) Ratio() float64 {
	if t.Sent <= 0 {
		return 1
	}
	return float64(t.Lost) / float64(t.Sent)
}

// showing is what a trial is evidence of.
type showing int

const (
	showsGood showing = iota
	showsBad
	showsHost // something other than the path was the limit
)

// shows judges a trial by a loss goal.
func (t Trial) shows(goal float64) showing {
	switch {
	case t.Short:
		return showsHost
	case t.Ratio() <= goal:
		return showsGood
	case t.Sent > 0 && float64(t.Path)/float64(t.Sent) <= goal:
		return showsHost
	}
	return showsBad
}

// LoadClass is what the trials at one load say of it.
type LoadClass int

// The classes of a load.
const (
	LoadOpen LoadClass = iota
	LoadLower
	LoadUpper
)

// Classify is M-NDR's decision about a load: the seconds of its good and bad trials, long
// ones (at least as long as the target's) and shorter ones, against a duration sum and an
// exceed ratio. It is decided as soon as whatever comes cannot change it.
func Classify(goodLong, badLong, goodShort, badShort, sum, exceed float64) LoadClass {
	excess := badLong + math.Max(0, badShort-goodShort*exceed/(1-exceed))
	whole := math.Max(goodLong+excess, sum)
	optimist := excess <= exceed*whole
	pessimist := whole-goodLong <= exceed*whole
	switch {
	case optimist && pessimist:
		return LoadLower
	case !optimist && !pessimist:
		return LoadUpper
	}
	return LoadOpen
}

// target is one stage of a search, from coarse to final.
type target struct {
	loss       float64
	trial, sum float64 // s
	exceed     float64
	width      float64
	final      bool
}

// targetStages is how many targets a goal has; widths shrink by 2 from one to the next.
const targetStages = 3

// targets are the stages of a goal: duration sums in a geometric row from the first trial's to
// the goal's, widths four and two times the goal's before it.
func (g RateGoal) targets() []target {
	var out []target
	first, last := g.Initial.Seconds(), g.Sum.Seconds()
	for i := range targetStages {
		sum := first * math.Pow(last/first, float64(i)/(targetStages-1))
		out = append(out, target{
			loss: g.Loss, trial: math.Min(g.Trial.Seconds(), sum), sum: sum, exceed: g.Exceed,
			width: g.Width * math.Pow(2, float64(targetStages-1-i)), final: i == targetStages-1,
		})
	}
	return out
}

// loadState is the trials at one load.
type loadState struct {
	load   float64
	trials []Trial
}

// hostTrials is how many trials, and more than half of them, an end must have limited for that to
// be its limit: one may be a moment in which it was busy with something else.
const hostTrials = 3

// class judges the load for a target; host: what makes it an upper bound is not the path. What an
// end limited is no evidence against the path, so such trials do not count for it.
func (l *loadState) class(t target) (b LoadClass, host bool) {
	var good, bad [2]float64 // long, short
	limited := 0
	for _, x := range l.trials {
		i := 0
		if x.Seconds < t.trial-1e-9 {
			i = 1
		}
		switch x.shows(t.loss) {
		case showsGood:
			good[i] += x.Seconds
		case showsBad:
			bad[i] += x.Seconds
		case showsHost:
			limited++
		}
	}
	b = Classify(good[0], bad[0], good[1], bad[1], t.sum, t.exceed)
	if b != LoadUpper && limited >= hostTrials && 2*limited > len(l.trials) {
		return LoadUpper, true
	}
	return b, false
}

// loads are the trials so far, by load; ascending.
type loads []*loadState

func (ls *loads) add(t Trial) {
	i, found := slices.BinarySearchFunc(*ls, t.Load, func(l *loadState, load float64) int {
		switch {
		case l.load < load:
			return -1
		case l.load > load:
			return 1
		}
		return 0
	})
	if !found {
		*ls = slices.Insert(*ls, i, &loadState{load: t.Load})
	}
	(*ls)[i].trials = append((*ls)[i].trials, t)
}

// bounds are the relevant bounds for a target: the least load that is an upper bound, and the
// greatest lower bound below it. 0 = none.
func (ls loads) bounds(t target) (lower, upper float64, host bool) {
	for _, l := range ls {
		switch b, h := l.class(t); b {
		case LoadLower:
			lower = l.load
		case LoadUpper:
			return lower, l.load, h
		case LoadOpen:
		}
	}
	return lower, 0, false
}

func (ls loads) at(load float64) *loadState {
	for _, l := range ls {
		if l.load == load {
			return l
		}
	}
	return nil
}

// inconsistent counts trials that are bad although one at a higher load was good.
func (ls loads) inconsistent(goal float64) (n int) {
	best := 0.0
	for _, l := range ls {
		for _, t := range l.trials {
			if t.shows(goal) == showsGood {
				best = math.Max(best, l.load)
			}
		}
	}
	for _, l := range ls {
		for _, t := range l.trials {
			if l.load < best && t.shows(goal) == showsBad {
				n++
			}
		}
	}
	return n
}

// offered is what of the load was sent, on average over the trials that count: a sender that was
// not scheduled for a moment gives up what it would have sent, and proves that much less.
func (l *loadState) offered() float64 {
	sum, weight := 0.0, 0.0
	for _, t := range l.trials {
		if t.Offered > 0 && !t.Short {
			sum, weight = sum+t.Offered*t.Seconds, weight+t.Seconds
		}
	}
	if weight <= 0 {
		return l.load
	}
	return math.Min(l.load, sum/weight)
}

// conditional is M-NDR's conditional throughput of a load: load·(1−q), q the loss ratio at the
// exceed-ratio quantile of the long trials. Time that was not measured counts as lost.
func (l *loadState) conditional(t target) float64 {
	var long []Trial
	var good, bad, goodShort, badShort float64
	for _, x := range l.trials {
		if x.shows(t.loss) == showsHost {
			continue
		}
		isGood := x.shows(t.loss) == showsGood
		switch isLong := x.Seconds >= t.trial-1e-9; {
		case isLong && isGood:
			good += x.Seconds
		case isLong:
			bad += x.Seconds
		case isGood:
			goodShort += x.Seconds
		default:
			badShort += x.Seconds
		}
		if x.Seconds >= t.trial-1e-9 {
			long = append(long, x)
		}
	}
	excess := bad + math.Max(0, badShort-goodShort*t.exceed/(1-t.exceed))
	left := math.Max(good+excess, t.sum) * (1 - t.exceed)
	slices.SortFunc(long, func(a, b Trial) int {
		switch {
		case a.Ratio() < b.Ratio():
			return -1
		case a.Ratio() > b.Ratio():
			return 1
		}
		return 0
	})
	q := 1.0
	for _, x := range long {
		left -= x.Seconds
		if left <= 1e-9 {
			q = x.Ratio()
			break
		}
	}
	return l.load * (1 - q)
}

// RateAnswer is what a search found for one goal. Rates in bit/s of payload; 0 = none.
type RateAnswer struct {
	Goal        RateGoal
	Load        float64 // greatest load that meets the goal, as it was asked for
	Lower       float64 // what of Load was offered, on average: that much the path carried for certain
	Upper       float64 // least that does not; 0 = none was found
	Conditional float64 // throughput that may be counted on at Lower
	Width       float64 // (Upper − Lower)/Upper
	AtMax       bool    // the greatest load allowed meets the goal: the path may carry more
	Irregular   bool    // the time was over, or trials broke off, before Width was reached
	// HostLimited is the load from which on an end, not the path, was the limit: the upper
	// bound then says nothing about the path. 0 = it does.
	HostLimited float64
	Sender      bool // it was the sending end

	Trials, Lossy int     // of the whole search, the thrown-away one left out
	Seconds       float64 // with pauses
	Inconsistent  int     // bad trials although a higher load was good
	Forgiven      int     // lossy trials of the whole search that a clean repeat took the place of
	// At the lower bound, all trials together; High bounds the loss ratio at 95 %.
	Sent, Lost int64
	High       float64
}

// answer reads the trials for a goal.
func (ls loads) answer(g RateGoal) RateAnswer {
	a := RateAnswer{Goal: g}
	var used target
	for _, t := range slices.Backward(g.targets()) { // the finest first
		lower, upper, host := ls.bounds(t)
		if a.Load == 0 && lower > 0 && (a.Upper == 0 || lower < a.Upper) {
			a.Load, used = lower, t
			a.Lower = ls.at(lower).offered()
		}
		if a.Upper == 0 && upper > a.Load {
			a.Upper = upper
			if host {
				a.HostLimited, a.Sender = upper, ls.at(upper).short()
			}
		}
	}
	if a.Upper > 0 {
		a.Width = (a.Upper - a.Lower) / a.Upper
	}
	if l := ls.at(a.Load); l != nil {
		a.Conditional = l.conditional(used) * a.Lower / a.Load
		for _, t := range l.trials {
			if t.shows(g.Loss) != showsHost {
				a.Sent, a.Lost = a.Sent+t.Sent, a.Lost+t.Lost
			}
		}
		a.High = upperLoss(a.Lost, a.Sent)
	}
	a.Inconsistent = ls.inconsistent(g.Loss)
	for _, l := range ls {
		for _, t := range l.trials {
			a.Trials++
			if t.Lost > 0 {
				a.Lossy++
			}
		}
	}
	return a
}

// short reports that the sender was the limit at this load in most of what the host limited.
func (l *loadState) short() bool {
	n := 0
	for _, t := range l.trials {
		if t.Short {
			n++
		}
	}
	return 2*n >= len(l.trials)
}

// upperLoss is the upper end of the 95 % interval of a loss ratio (M-UDP).
func upperLoss(lost, sent int64) float64 {
	switch {
	case sent <= 0:
		return 1
	case lost == 0:
		return stats.RuleOfThree(sent)
	}
	_, high, _ := stats.ClopperPearson(min(lost, sent), sent, 0.95)
	return high
}

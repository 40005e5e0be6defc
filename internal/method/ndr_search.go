package method

import (
	"math"
	"time"
)

// RateSearch is the search of M-NDR in itself: which rate to try next, given all trials so
// far, in their order. It is pure.
type RateSearch struct {
	RatePreset
	Max   float64 // greatest load that may be tried, payload bit/s
	Least float64 // below it no search goes; 0 = leastLoad
}

// leastLoad is where a search without success ends, payload bit/s.
const leastLoad = 64e3

// Ask is the next trial of a search.
type Ask struct {
	Load    float64
	Seconds float64
	Pause   time.Duration // of silence before it
	Warm    bool
}

// Next tells the next trial; false when the search is over.
func (s RateSearch) Next(trials []Trial) (Ask, bool) {
	p := s.play(trials)
	return p.ask, p.asked
}

// Answers are the findings so far, one a goal. They are final when Next has nothing more.
func (s RateSearch) Answers(trials []Trial) []RateAnswer {
	p := s.play(trials)
	var out []RateAnswer
	for _, g := range s.Goals {
		a := p.loads.answer(g)
		a.Seconds, a.Forgiven = p.spent, p.forgiven
		a.AtMax = a.Upper == 0 && a.Load >= math.Floor(s.Max)
		a.Irregular = !p.settled(g)
		out = append(out, a)
	}
	return out
}

func (s RateSearch) least() float64 {
	if s.Least > 0 {
		return math.Min(s.Least, s.Max)
	}
	return math.Min(leastLoad, s.Max)
}

// player goes through a search with the trials that are there, until one is missing.
type player struct {
	s      RateSearch
	trials []Trial // not yet used
	loads  loads
	last   *Trial
	spent  float64 // s

	forgiven int // lossy trials that do not count

	ask   Ask
	asked bool // a trial is missing
	late  bool // the time is over
}

func (s RateSearch) play(trials []Trial) *player {
	p := &player{s: s, trials: trials}
	p.run()
	return p
}

// trial takes the next trial that counts; ok is false when the search ends here.
func (p *player) trial(load, seconds float64, warm bool) (t Trial, ok bool) {
	t, ok = p.take(load, seconds, warm)
	if warm || !ok {
		return t, ok
	}
	goal := p.s.Goals[0].Loss
	for n := 1; n <= p.s.Verify && t.shows(goal) == showsBad; n++ {
		again, ok := p.take(load, seconds, false)
		if !ok {
			return t, false
		}
		if again.shows(goal) == showsGood {
			t = again
			p.forgiven += n
		}
	}
	p.loads.add(t)
	return t, true
}

// take takes the next trial, or asks for it; ok is false when the search ends here.
func (p *player) take(load, seconds float64, warm bool) (t Trial, ok bool) {
	var pause time.Duration
	if p.last != nil && p.last.Lost > 0 {
		pause = p.s.Residue + p.s.Calm
	}
	if limit := p.s.Limit.Seconds(); limit > 0 && p.spent+pause.Seconds()+seconds > limit {
		p.late = true
		return t, false
	}
	if len(p.trials) == 0 {
		p.ask, p.asked = Ask{Load: load, Seconds: seconds, Pause: pause, Warm: warm}, true
		return t, false
	}
	t = p.trials[0]
	t.Load = load // it was asked for like this; a plan's rounding does not matter
	p.trials = p.trials[1:]
	p.spent += pause.Seconds() + math.Max(t.Seconds, t.Took)
	p.last = &t
	return t, true
}

// whole is a load as the plan takes it.
func whole(load float64) float64 { return math.Round(load) }

func (p *player) clamp(load float64) float64 {
	return math.Min(whole(math.Max(load, p.s.least())), math.Floor(p.s.Max))
}

// run is the search.
func (p *player) run() {
	if len(p.s.Goals) == 0 {
		return
	}
	first := p.s.Goals[0].Initial.Seconds()
	top := math.Floor(p.s.Max)
	if _, ok := p.trial(top, first, true); !ok {
		return
	}
	start := top
	for range 2 { // what got through is the best guess of what can
		t, ok := p.trial(start, first, false)
		if !ok {
			return
		}
		if t.shows(p.s.Goals[0].Loss) == showsGood {
			break
		}
		start = p.clamp(t.Received)
	}
	for _, g := range p.s.Goals {
		from, to := start, 0.0
		for _, t := range g.targets() {
			if !p.reach(t, from, to) {
				return
			}
			if lower, upper, _ := p.loads.bounds(t); lower > 0 || upper > 0 {
				from, to = lower, upper
			}
			if from == 0 {
				from, to = to, 0
			}
		}
		start = from
	}
}

// settled reports that the search for a goal came to its end, whatever came later.
func (p *player) settled(g RateGoal) bool {
	ts := g.targets()
	t := ts[len(ts)-1]
	lower, upper, _ := p.loads.bounds(t)
	return p.closed(t, lower, upper)
}

func (p *player) closed(t target, lower, upper float64) bool {
	switch {
	case upper == 0:
		return lower >= math.Floor(p.s.Max)
	case lower == 0:
		return upper <= p.clamp(p.s.least())
	}
	middle := p.clamp(math.Sqrt(lower * upper))
	return (upper-lower)/upper <= t.width || middle <= lower || middle >= upper
}

// reach narrows the bounds to the target's width, beginning at from and, where that is a lower
// bound, at to. false = the search ends here.
func (p *player) reach(t target, from, to float64) bool {
	load, step := from, 2*t.width
	for {
		if !p.decide(t, load) {
			return false
		}
		lower, upper, _ := p.loads.bounds(t)
		if p.closed(t, lower, upper) {
			return true
		}
		switch {
		case upper == 0 && to > lower:
			load, to = to, 0 // the coarser target's upper bound comes first
		case upper == 0:
			load = p.clamp(lower * (1 + step))
			step *= 2
		case lower == 0:
			load = p.clamp(upper / (1 + step))
			step *= 2
		default:
			load = p.clamp(math.Sqrt(lower * upper))
		}
	}
}

// decide repeats trials at a load until it is a bound for the target.
func (p *player) decide(t target, load float64) bool {
	for {
		if l := p.loads.at(load); l != nil {
			if b, _ := l.class(t); b != LoadOpen {
				return true
			}
		}
		if _, ok := p.trial(load, t.trial, false); !ok {
			return false
		}
	}
}

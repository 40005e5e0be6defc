package method

import (
	"time"

	"github.com/fullbore-net/fullbore/result"
)

// Repeat is M-ROUNDS over steps: each is played once a round, in a random order that follows
// from the seed, so that what drifts meanwhile meets all of them alike.
type Repeat struct {
	Steps []Step // with names that differ
	// Rounds is how many; 0 = LeastRounds. Auto goes on from LeastRounds until the figures of
	// each step have settled, to MostRounds at most; Rounds is not read then.
	Rounds int
	Auto   bool
	Seed   uint64
	// Pause of silence before every step but the first; less than a step's own is not made.
	Pause time.Duration
	// Figure is what Auto judges; nil = the goodput of all directions.
	Figure func(Done) (float64, bool)
}

// Next implements Method. It ends early when a step could not even begin: the next would fail
// alike.
func (r Repeat) Next(history []Done) (Step, bool) {
	if failed(history) {
		return Step{}, false
	}
	for round := range r.most() {
		for _, i := range Order(r.Seed, round, len(r.Steps)) {
			s := r.Steps[i]
			if r.count(history, s.Name) > round || r.Auto && round >= LeastRounds && r.enough(history, s.Name, round) {
				continue
			}
			s.Round = round + 1
			if len(history) > 0 {
				s.Pause = max(s.Pause, r.Pause)
			}
			return s, true
		}
	}
	return Step{}, false
}

func (r Repeat) most() int {
	switch {
	case r.Auto:
		return MostRounds
	case r.Rounds > 0:
		return r.Rounds
	}
	return LeastRounds
}

func (r Repeat) count(history []Done, name string) (n int) {
	for i := range history {
		if history[i].Step.Name == name {
			n++
		}
	}
	return n
}

// enough reports that a step needs no round after so many.
func (r Repeat) enough(history []Done, name string, rounds int) bool {
	figure := r.Figure
	if figure == nil {
		figure = func(d Done) (float64, bool) { return total(d.Run) }
	}
	var x []float64
	for _, d := range history {
		if d.Step.Name != name || d.Step.Round > rounds {
			continue
		}
		if v, ok := figure(d); ok {
			x = append(x, v)
		}
	}
	enough, _ := EnoughRounds(x)
	return enough
}

// Possible are the steps of all rounds, at most, in order.
func (r Repeat) Possible() (out []Step) {
	for round := range r.most() {
		for _, i := range Order(r.Seed, round, len(r.Steps)) {
			s := r.Steps[i]
			s.Round = round + 1
			out = append(out, s)
		}
	}
	return out
}

// failed reports that the last step could not begin: no stream of it ever was.
func failed(history []Done) bool {
	if len(history) == 0 {
		return false
	}
	d := &history[len(history)-1]
	return d.Err != nil && (d.Run == nil || len(d.Run.Streams) == 0 && len(d.Run.Probes) == 0)
}

// Again is M-ROUNDS over a whole method: it is played from its beginning to its end so often.
type Again struct {
	Method Method
	Rounds int // 0 = LeastRounds
	Auto   bool
	Pause  time.Duration // of silence before each round but the first
	// Figure is what Auto judges of a round that is over.
	Figure func(round []Done) (float64, bool)
}

// Next implements Method. It ends early when a step of a round could not begin.
func (a Again) Next(history []Done) (Step, bool) {
	if failed(history) {
		return Step{}, false
	}
	rounds, open := a.Split(history)
	if open {
		last := rounds[len(rounds)-1]
		s, _ := a.Method.Next(last)
		s.Round = len(rounds)
		return s, true
	}
	if a.enough(rounds) {
		return Step{}, false
	}
	s, more := a.Method.Next(nil)
	s.Round = len(rounds) + 1
	if len(rounds) > 0 {
		s.Pause = max(s.Pause, a.Pause)
	}
	return s, more
}

func (a Again) enough(rounds [][]Done) bool {
	most := a.Rounds
	if most == 0 {
		most = LeastRounds
	}
	if !a.Auto {
		return len(rounds) >= most
	}
	if len(rounds) >= MostRounds {
		return true
	}
	var x []float64
	for _, r := range rounds {
		if v, ok := a.Figure(r); ok {
			x = append(x, v)
		}
	}
	enough, _ := EnoughRounds(x)
	return enough
}

// Split cuts a history into its rounds; open reports that the last one is not over.
func (a Again) Split(history []Done) (rounds [][]Done, open bool) {
	for i := range history {
		n := history[i].Step.Round
		if n < 1 || n > len(rounds) {
			rounds = append(rounds, nil)
		}
		at := len(rounds) - 1
		rounds[at] = append(rounds[at], history[i])
	}
	if len(rounds) == 0 {
		return nil, false
	}
	_, open = a.Method.Next(rounds[len(rounds)-1])
	return rounds, open
}

// Settled reports, of Auto's figures, whether they settled before the rounds ended; nil for a
// number of rounds that was given.
func Settled(auto bool, r *result.Rounds) *bool {
	if !auto {
		return nil
	}
	var x []float64
	for _, v := range r.Values {
		if v != nil {
			x = append(x, *v)
		}
	}
	_, ok := EnoughRounds(x)
	return &ok
}

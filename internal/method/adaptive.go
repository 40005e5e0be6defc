package method

import (
	"slices"
	"time"

	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/result"
)

// LongRTT is the round trip from which windows are looked at before streams: there the system's
// own window is what many streams would only paper over.
const LongRTT = 20 * time.Millisecond

// Adaptive is the sweep in two dimensions (M-KNEE): the knee of the streams at the system's own
// window, the windows at that number, the streams once more at that window. On a long round trip
// the order is window, streams, length of a write. The full grid is never measured.
type Adaptive struct {
	Direction result.Direction
	Base      plan.Plan
	Rounds    int
	Auto      bool
	Seed      uint64
	Pause     time.Duration
	Most      int64   // streams
	Rate      float64 // as in Sweep
}

// Next implements Method.
func (a Adaptive) Next(history []Done) (Step, bool) {
	if failed(history) {
		return Step{}, false
	}
	if !slices.ContainsFunc(history, func(d Done) bool { return d.Step.Name == idleName }) {
		return IdleStep(time.Second), true
	}
	for at := 0; ; at++ {
		s, more := a.part(history, at)
		if !more {
			return Step{}, false
		}
		if step, more := s.Next(history); more {
			return step, true
		}
	}
}

// Parts are the sweeps so far, in order.
func (a Adaptive) Parts(history []Done) (out []Sweep) {
	for at := 0; ; at++ {
		s, more := a.part(history, at)
		if !more || len(s.Points(history)) == 0 {
			return out
		}
		out = append(out, s)
	}
}

// part is the sweep number at, whose settings follow from the ones before.
func (a Adaptive) part(history []Done, at int) (Sweep, bool) {
	s := Sweep{Direction: a.Direction, Base: a.Base, Rounds: a.Rounds, Auto: a.Auto, Seed: a.Seed + uint64(at), Pause: a.Pause, Rate: a.Rate} //nolint:gosec // small
	before := func(n int) SweepAnswer {
		p, _ := a.part(history, n)
		return p.Answer(history)
	}
	long := BaseRTT(history) >= LongRTT
	axis := []Axis{Streams, Window, Streams}
	if long {
		axis = []Axis{Window, Streams, Length}
	}
	if at >= len(axis) {
		return Sweep{}, false
	}
	s.Axis = axis[at]
	if s.Axis == Streams {
		s.Most = a.Most
	}
	switch {
	case at == 0:
		s.Base.Window, s.Base.Streams = 0, 1
	case at == 1 && !long: // the windows at the knee's streams
		first := before(0)
		s.Base.Streams, s.Rate = max(int(first.Recommended), 1), max(first.Rate, a.Rate)
	case at == 2 && !long: // the streams around it, at the window
		first, second := before(0), before(1)
		if second.Recommended == 0 { // the system's own window does as well: it is what the first part had
			return Sweep{}, false
		}
		s.Series, s.Base.Window, s.Fixed = "streams-again", second.Recommended, true
		n := max(first.Recommended, 1)
		s.Settings = []int64{max(n/2, 1), n, min(2*n, max(s.Most, plan.MaxStreams))}
	case at == 1: // the streams at the window
		s.Base.Window = before(0).Recommended
	default: // the length of a write at both
		s.Base.Window = before(0).Recommended
		s.Base.Streams = max(int(before(1).Recommended), 1)
	}
	return s, true
}

// AdaptiveAnswer is the setting to take.
type AdaptiveAnswer struct {
	Streams, Window, Length int64 // 0 = the system's own, or not looked at
	Carries                 float64
	Known                   bool
}

// Answer is what follows from all parts so far.
func (a Adaptive) Answer(history []Done) (out AdaptiveAnswer) {
	for _, s := range a.Parts(history) {
		x := s.Answer(history)
		if !x.Known {
			continue
		}
		switch s.Axis {
		case Streams:
			out.Streams = x.Recommended
		case Window:
			out.Window = x.Recommended
		case Length:
			out.Length = x.Recommended
		}
		out.Carries, out.Known = x.Carries, true
	}
	return out
}

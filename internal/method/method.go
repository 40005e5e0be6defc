// Package method holds the measurement methods that are made of several tests: what to
// do next, given what has been done, and what it all means in the end.
//
// A method is pure. Next reads the history and answers with a Step, until there is none;
// its answer is a function of the same history. It does not know how a test is made,
// nor how long that took by the wall: whoever drives it (runner.Drive) carries the steps
// out. So a method is tested with made-up runs, and replayed from stored ones.
//
// The methods, with the spec's names: M-KNEE (Knee, Sweep), M-WSCAN (WindowScan), M-POLICE
// (Police), M-ROUNDS (Rounds, Repeat, Again, Compare).
package method

import (
	"time"

	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/result"
)

// Step is the next test of a method. Its Plan says nothing of the host: that is the
// driver's.
type Step struct {
	Name  string        // stable word, e.g. "up-4"; a name may come again (rounds)
	Title string        // for people: "4 streams up"
	Why   string        // what it is to show, a clause
	Pause time.Duration // of silence before it
	Plan  plan.Plan
	// Volume is about how many payload bytes it will move; 0 = not known before.
	Volume int64
	// Round is which of several rounds it belongs to, from 1; 0 = there are none.
	Round int
	// With are further tests that run at the same time; the step is over when all are.
	With []plan.Plan
}

// Length is how long a step takes, about: pause, warm-up, measured part, and what setting
// up and ending cost.
func (s Step) Length() time.Duration {
	return s.Pause + s.Plan.Omit + s.Plan.Duration + 300*time.Millisecond
}

// Done is a step with what came of it. Run is nil when the test could not even begin;
// then Err says why. A run that broke off is there, with its error in it, too.
type Done struct {
	Step Step
	Run  *result.Run
	Err  *result.Error
	With []*result.Run // of Step.With, in its order; nil = it could not begin
}

// Method is what a driver plays. Next returns false when there is nothing more to do.
type Method interface {
	Next(history []Done) (Step, bool)
}

// Once is the method of a single step.
type Once Step

// Next implements Method.
func (o Once) Next(history []Done) (Step, bool) { return Step(o), len(history) == 0 }

// Goodput is the receiver's rate of direction d in a run, payload bit/s; false where it is
// not known.
func Goodput(run *result.Run, d result.Direction) (float64, bool) {
	if run == nil {
		return 0, false
	}
	s := run.Sum(d)
	if s == nil || s.Goodput == nil {
		return 0, false
	}
	return *s.Goodput, true
}

// total is the goodput of all directions of a run.
func total(run *result.Run) (sum float64, known bool) {
	if run == nil {
		return 0, false
	}
	for i := range run.Sums {
		g, ok := Goodput(run, run.Sums[i].Direction)
		if !ok {
			return 0, false
		}
		sum += g
	}
	return sum, len(run.Sums) > 0
}

// RetransmitRatio is retransmitted segments over segments sent, of direction d; false
// where the sending end did not tell.
func RetransmitRatio(run *result.Run, d result.Direction) (ratio float64, known bool) {
	var again, segments float64
	for i := range run.Streams {
		s := &run.Streams[i]
		if s.Direction != d {
			continue
		}
		mss := int64(0)
		for _, t := range []*result.TCPSummary{s.TCP, s.RemoteTCP} {
			if t != nil && t.Last.MSS > 0 {
				mss = t.Last.MSS
			}
		}
		if mss == 0 && run.Wire != nil {
			mss = int64(run.Wire.ControlMSS)
		}
		if s.Sender == nil || s.Sender.Retransmits == nil || mss <= 0 {
			return 0, false
		}
		again += float64(*s.Sender.Retransmits)
		segments += float64(s.Sender.Bytes) / float64(mss)
	}
	if segments+again <= 0 {
		return 0, false
	}
	return again / (segments + again), true
}

package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fullbore-net/fullbore/internal/conclude"
	"github.com/fullbore-net/fullbore/internal/pause"
	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/internal/runner"
	"github.com/fullbore-net/fullbore/internal/units"
	"github.com/fullbore-net/fullbore/result"
)

// Bounds of the search that -b auto makes. Rates are of payload, all streams of a direction.
const (
	findStart = 10e6  // first rate
	findLeast = 64e3  // below it no search goes down
	findLoss  = 0.001 // more is loss (spec recipes §4: above 0.1 to 0.5 % is line or buffers)
	findShort = 0.95  // a sender that offered less of a step's rate can do no more
	findTake  = 0.8   // of the last good rate: a first guess that leaves room (spec recipes §4)
	findSteps = 24    // 10 Mbit/s doubled so often is beyond any host
	findStep  = 500 * time.Millisecond
)

// rateSearch finds a first rate for a UDP test by doubling until something gives. It is not
// M-NDR's search, which proves a bound with repeated trials and takes half a minute at best: a test
// that somebody waits for needs a baseline in seconds, 80 % of what went through once (spec recipes
// §4), and the notice about it says that it is no more. It is pure:
// next tells the rate to try, add takes what came of it.
type rateSearch struct {
	cap   float64 // never above; 0 = no bound
	next  float64 // to be tried
	good  float64 // largest offered without loss so far; 0 = none
	rate  float64 // the answer, when done
	steps int
	why   string // what ended it
}

func newRateSearch(limit float64) *rateSearch {
	s := &rateSearch{cap: limit, next: findStart}
	if limit > 0 {
		s.next = min(s.next, limit)
	}
	return s
}

// trial is what came of one step.
type trial struct {
	offered float64 // bit/s that the sender reached
	loss    float64 // ratio
	own     bool    // the receiving host's socket dropped of what had arrived
}

// by says who lost, where that is known.
func (t trial) by() string {
	if t.own {
		return ", by the receiving host's socket at least in part"
	}
	return ""
}

// add takes the result of the step at s.next; more says that there is another.
func (s *rateSearch) add(t trial) (more bool) {
	s.steps++
	at := s.next
	end := func(good float64, why string) bool {
		s.rate, s.why = findTake*good, why
		return false
	}
	switch {
	case t.loss > findLoss && s.good > 0:
		return end(s.good, fmt.Sprintf("%s went through, of %s %.2g %% were lost%s", units.BitRate(s.good), units.BitRate(at), 100*t.loss, t.by()))
	case t.loss > findLoss && at/4 < findLeast:
		s.why = fmt.Sprintf("%.2g %% were lost even at %s%s", 100*t.loss, units.BitRate(at), t.by())
		return false
	case t.loss > findLoss:
		s.next = at / 4
	case t.offered < findShort*at:
		return end(t.offered, fmt.Sprintf("the sender reached %s of %s, and nothing was lost", units.BitRate(t.offered), units.BitRate(at)))
	case s.cap > 0 && at >= s.cap:
		return end(at, fmt.Sprintf("%s, the most that may be sent, went through", units.BitRate(at)))
	default:
		s.good, s.next = at, at*2
		if s.cap > 0 {
			s.next = min(s.next, s.cap)
		}
	}
	if s.steps >= findSteps {
		return end(max(s.good, findLeast), "the search took too long")
	}
	return true
}

// findRate runs the search for the rate of p over real runs and puts it into p. It returns
// the notice that the run carries.
func (e *env) findRate(ctx context.Context, r *runner.Runner, p *plan.Plan, known []*result.Run, say func(string)) (*result.Notice, error) {
	w := pathTo(ctx, p.Host, p.Family)
	size := *p
	if size.BlockSize == 0 {
		size.BlockSize = w.payload()
	}
	limit := float64(p.MaxRate)
	if speed := slowest(w.speed, known); speed > 0 {
		n := w.bytes(&size)
		if most := float64(speed) * float64(n[units.L7]) / float64(n[units.L1]); limit == 0 || most < limit {
			limit = most
		}
	}
	search := newRateSearch(limit)
	for more := true; more; {
		step := *p
		step.Duration, step.Bytes, step.Blocks, step.Omit, step.OneRow = findStep, 0, 0, 0, true
		step.Bitrate = perStream(search.next, p.Streams)
		run, err := r.Run(ctx, step, nil)
		if err != nil {
			return nil, err
		}
		t, ok := trialOf(run)
		if !ok {
			return nil, &result.Error{Code: "results", Text: "no rate was found: the other end did not tell what it received"}
		}
		say(fmt.Sprintf("finding a rate: %s, %s", rateWords(p, search.next), lossWords(run)))
		more = search.add(t)
		if more && !run.Wire.Extension && !pause.For(ctx, 200*time.Millisecond) { // an iperf3 needs a moment before it listens again
			return nil, context.Cause(ctx)
		}
	}
	if search.rate <= 0 {
		return nil, &result.Error{Code: "failed", Text: "no rate was found: " + search.why}
	}
	p.Bitrate = perStream(search.rate, p.Streams)
	return &result.Notice{
		Code: "rate-found", End: result.Client, Level: result.Info,
		Text: fmt.Sprintf("-b auto chose %s: %s in steps of %s; 80 %% of that is a first guess that leaves room, not the path's capacity (fullbore udpmax %s finds that)", rateWords(p, search.rate), search.why, units.FormatDuration(findStep), p.Host),
	}, nil
}

// trialOf sums up a step: the worst direction counts.
func trialOf(run *result.Run) (trial, bool) {
	t := trial{}
	for i, s := range run.Sums {
		l := conclude.LossOf(run, s.Direction)
		if s.Sender == nil || l == nil {
			return trial{}, false
		}
		if i == 0 || s.Sender.Rate() < t.offered {
			t.offered = s.Sender.Rate()
		}
		t.loss = max(t.loss, l.Ratio)
		t.own = t.own || l.Socket != nil && *l.Socket > 0
	}
	return t, len(run.Sums) > 0
}

func lossWords(run *result.Run) string {
	var parts []string
	for _, s := range run.Sums {
		if l := conclude.LossOf(run, s.Direction); l != nil {
			parts = append(parts, conclude.LossText(l))
		}
	}
	return strings.Join(parts, "; ")
}

func sorted(words []string) []string {
	slices.Sort(words)
	return words
}

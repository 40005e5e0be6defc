package cli

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/fullbore-net/fullbore/internal/conclude"
	"github.com/fullbore-net/fullbore/internal/method"
	"github.com/fullbore-net/fullbore/internal/pause"
	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/internal/render/screen"
	"github.com/fullbore-net/fullbore/internal/units"
	"github.com/fullbore-net/fullbore/result"
)

// drawSeed is the seed of a random order where none was given: small enough that every reader of
// JSON keeps it whole.
func drawSeed(given int64) int64 {
	if given != 0 {
		return given
	}
	return 1 + rand.Int64N(1<<31-1)
}

// roundsOf is the method over the steps that count, and the others, which come before it once.
func (o *testOptions) roundsOf(steps []testStep, seed int64) (before []*testStep, m method.Repeat) {
	m = method.Repeat{Rounds: o.rounds.n, Auto: o.rounds.auto, Seed: uint64(seed), Pause: o.pause} //nolint:gosec // any bits will do
	for i := range steps {
		s := &steps[i]
		if !s.judge {
			before = append(before, s)
			continue
		}
		m.Steps = append(m.Steps, method.Step{Name: string(s.plan.Direction), Title: stageWords(&s.plan), Plan: s.plan})
	}
	return before, m
}

// inRounds measures a host several times.
func (t *hostTest) inRounds(ctx context.Context, steps []testStep) {
	seed := drawSeed(t.o.seed)
	out := t.out
	out.inRounds, out.seed = true, &seed
	before, m := t.o.roundsOf(steps, seed)
	out.say(roundsHead(&t.o.rounds, t.host, m, seed))
	for _, s := range before {
		if !t.one(ctx, s) || !pause.For(ctx, t.o.pause) {
			return
		}
	}
	var history []method.Done
	for {
		next, more := m.Next(history)
		if !more || next.Pause > 0 && !pause.For(ctx, next.Pause) {
			break
		}
		step := stepNamed(steps, next.Name)
		step.round = next.Round
		runs, failures := len(t.runs), len(t.errs)
		goOn := t.one(ctx, step)
		d := method.Done{Step: next}
		if len(t.runs) > runs {
			d.Run = t.runs[len(t.runs)-1]
			d.Run.Label = roundLabel(step)
			d.Err = d.Run.Err
			out.line(step, d.Run)
		}
		if len(t.errs) > failures && d.Err == nil {
			var broke *result.Error
			if errors.As(t.errs[len(t.errs)-1], &broke) {
				d.Err = broke
			}
		}
		history = append(history, d)
		if !goOn {
			break
		}
	}
	t.sumUp(history)
}

// roundLabel is what a round's run is called.
func roundLabel(s *testStep) string {
	if s.stage != nil {
		return s.stage.name
	}
	return fmt.Sprintf("%s-round-%d", s.plan.Direction, s.round)
}

func stepNamed(steps []testStep, direction string) *testStep {
	for i := range steps {
		if steps[i].judge && string(steps[i].plan.Direction) == direction {
			return &steps[i]
		}
	}
	panic("a step that is none")
}

// roundsHead says what begins.
func roundsHead(f *roundsFlag, host string, m method.Repeat, seed int64) string {
	var long time.Duration
	for i, s := range m.Possible() {
		s.Plan = s.Plan.Filled()
		if i > 0 {
			s.Pause = m.Pause
		}
		long += s.Length()
	}
	var parts []string
	for _, s := range m.Steps {
		parts = append(parts, s.Title)
	}
	text := fmt.Sprintf("%s to %s: %s", f.words(), screen.Clean(host), strings.Join(parts, "; "))
	if len(m.Steps) > 1 {
		text += ", in random order"
	}
	limit := "about"
	if f.auto {
		limit = "at most about"
	}
	return fmt.Sprintf("%s (seed %d), %s %s.\n", text, seed, limit, units.FormatDuration(long.Round(time.Second)))
}

// line is that of one round.
func (out *output) line(step *testStep, run *result.Run) {
	if !out.ends() || !tells(run) {
		return
	}
	for i := range run.Sums {
		s := &run.Sums[i]
		h := conclude.HeadlineOf(run, s.Direction)
		text := fmt.Sprintf("  round %-3d %-5s %12s", step.round, s.Direction, units.BitRate(h.BPS+0.5))
		if !h.Basis.Arrived() {
			text += "  (sent; what arrived is not told)"
		}
		if l := conclude.LossOf(run, s.Direction); l != nil && run.Test.Transport == "udp" {
			text += fmt.Sprintf("  lost %s", share(l.Ratio))
		} else if r, ok := method.RetransmitRatio(run, s.Direction); ok {
			text += fmt.Sprintf("  sent again %s", share(r))
		}
		if run.Err != nil {
			text += "  broke off"
		}
		fmt.Fprintln(out.e.Out, text)
	}
}

// sumUp makes the accounts of the rounds and judges their medians.
func (t *hostTest) sumUp(history []method.Done) {
	out := t.out
	offset := len(out.runs) - len(t.runs)
	index := map[*result.Run]int{}
	for i, r := range t.runs {
		index[r] = offset + i
	}
	for _, name := range []plan.Direction{plan.Up, plan.Down, plan.Both} {
		for _, dir := range []result.Direction{result.Up, result.Down} {
			out.rounds = append(out.rounds, t.roundsIn(history, string(name), dir, index)...)
		}
	}
	for i := range out.rounds {
		r := &out.rounds[i]
		if r.Settled != nil && !*r.Settled {
			n := unsettled(len(r.Values))
			n.Text = r.Of + ": " + n.Text
			out.notices = append(out.notices, n)
		}
	}
}

// roundsIn are the accounts of the steps of one name in one direction, goodput first; thresholds
// are judged by them.
func (t *hostTest) roundsIn(history []method.Done, name string, dir result.Direction, index map[*result.Run]int) (rounds []result.Rounds) {
	of := name
	if t.out.many {
		of = t.host + " " + name
	}
	if name == "both" {
		of += " " + string(dir)
	}
	for _, word := range []string{"rate", "loss", "jitter", "pdv"} {
		f := figures[word]
		if f.udp && !t.o.udp.udp {
			continue
		}
		var values []*float64
		var runs []int
		var last *result.Sum
		for _, d := range history {
			if d.Step.Name != name {
				continue
			}
			var v *float64
			at := -1
			if d.Run != nil && d.Run.Sum(dir) != nil {
				at, last = index[d.Run], d.Run.Sum(dir)
				if x, ok := f.of(d.Run, last); ok && d.Err == nil { // what broke off is no round
					v = &x
				}
			}
			values, runs = append(values, v), append(runs, at)
		}
		if last == nil {
			continue
		}
		figure := word
		if word == "rate" {
			figure = "goodput"
		}
		r := method.RoundsOf(of, figure, dir, map[string]string{"rate": "bit/s", "loss": "ratio", "jitter": "s", "pdv": "s"}[word], values, runs)
		r.Settled = method.Settled(t.o.rounds.auto && word == "rate" && name != "both", &r)
		for _, want := range t.want.thresholds {
			if want.figure == word {
				t.judge(want, &r, last)
			}
		}
		if r.Median != nil {
			rounds = append(rounds, r)
		}
	}
	return rounds
}

// judge holds a median against a threshold.
func (t *hostTest) judge(want threshold, r *result.Rounds, s *result.Sum) {
	f := figures[want.figure]
	item := result.Item{ID: "expect", Result: result.Pass}
	told := 0
	for _, v := range r.Values {
		if v != nil {
			told++
		}
	}
	switch {
	case r.Median == nil:
		item.Result = result.Inconclusive
		item.Reasons = []string{fmt.Sprintf("expected %s: %s %s → %s is not known", want.text, f.name, s.From, s.To)}
		t.errs = append(t.errs, &codeError{code: exitInconclusive})
	case want.met(*r.Median):
		item.Reasons = []string{fmt.Sprintf("expected %s, the median of %s is %s %s → %s", want.text, counted(told, "round"), f.print(*r.Median), s.From, s.To)}
	default:
		item.Result = result.Fail
		item.Reasons = []string{fmt.Sprintf("missed: expected %s, the median of %s is %s %s → %s", want.text, counted(told, "round"), f.print(*r.Median), s.From, s.To)}
		t.errs = append(t.errs, &codeError{code: exitMissed})
	}
	if item.Result != result.Pass {
		fmt.Fprintf(t.e.Err, "fullbore: %s\n", item.Reasons[0])
	}
	t.out.items = append(t.out.items, item)
}

// closeRounds prints the table and the closing sentence.
func (out *output) closeRounds() error {
	w := out.e.Out
	if out.o.stream || out.o.csv {
		return nil
	}
	text := out.sentence()
	if out.o.quiet {
		_, err := fmt.Fprintln(w, text)
		return err
	}
	paint := func(code, s string) string {
		if !out.e.Terminal || out.e.NoColor {
			return s
		}
		return "\x1b[" + code + "m" + s + "\x1b[0m"
	}
	fmt.Fprintln(w)
	for from := 0; from < len(out.rounds); from += 4 {
		printRounds(w, paint, out.rounds[from:min(from+4, len(out.rounds))])
	}
	width := diagnoseWidth
	if out.e.Terminal && out.e.Size != nil {
		if n, _ := out.e.Size(); n > 0 {
			width = min(n, width)
		}
	}
	fmt.Fprintln(w)
	for _, l := range screen.Wrap(screen.Clean(text), width) {
		fmt.Fprintln(w, paint("1", l))
	}
	for _, n := range out.notices {
		fmt.Fprintln(w, "note: "+screen.Clean(n.Text))
	}
	return nil
}

// roundsSentence is the answer: each median with its range, what stands out, how sure it is.
func roundsSentence(rs []result.Rounds, runs []*result.Run) string {
	var parts []string
	few := false
	for i := range rs {
		r := &rs[i]
		if r.Figure != "goodput" || r.Median == nil {
			continue
		}
		ends := r.Of
		for _, at := range r.Runs {
			if at >= 0 && at < len(runs) {
				from, to := conclude.Label(runs[at], result.Direction(r.Direction))
				ends = from + " → " + to
				break
			}
		}
		told := 0
		for _, v := range r.Values {
			if v != nil {
				told++
			}
		}
		text := fmt.Sprintf("%s %s, median of %s", unitText(r.Unit, *r.Median), ends, counted(told, "round"))
		switch {
		case r.Low != nil:
			text += fmt.Sprintf(" (%.1f %% interval %s … %s)", 100**r.Level, unitText(r.Unit, *r.Low), unitText(r.Unit, *r.High))
		case *r.Min != *r.Max:
			text += fmt.Sprintf(" (range %s … %s)", unitText(r.Unit, *r.Min), unitText(r.Unit, *r.Max))
		}
		if len(r.Marked) > 0 {
			text += ", round " + strings.Trim(strings.Join(strings.Fields(fmt.Sprint(r.Marked)), ", "), "[]") + " far from the others"
		}
		if told < method.LeastRounds {
			few = true
		}
		parts = append(parts, text)
	}
	text := strings.Join(parts, "; ")
	if text == "" {
		return ""
	}
	if few {
		text += "; fewer than three rounds tell little of the spread"
	}
	return text + "."
}

// sentence is what several runs say together.
func (out *output) sentence() string {
	switch {
	case out.summary != "":
		return out.summary
	case len(out.rounds) > 0:
		return roundsSentence(out.rounds, out.runs)
	}
	return out.together(out.runs)
}

// roundsFrom are the accounts of one of several hosts, whose runs are kept apart from that one on.
func roundsFrom(rs []result.Rounds, host string, first int) (out []result.Rounds) {
	for _, r := range rs {
		of, mine := strings.CutPrefix(r.Of, host+" ")
		if !mine {
			continue
		}
		r.Of, r.Runs = of, slices.Clone(r.Runs)
		for i, at := range r.Runs {
			if at >= 0 {
				r.Runs[i] = at - first
			}
		}
		out = append(out, r)
	}
	return out
}

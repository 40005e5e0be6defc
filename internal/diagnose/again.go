package diagnose

import (
	"slices"
	"time"

	"github.com/fullbore-net/fullbore/internal/method"
	"github.com/fullbore-net/fullbore/internal/stats"
	"github.com/fullbore-net/fullbore/result"
)

// The single stream once more, after a pause (M-DIAG 10): what others did, or what came and went by
// itself, is another thing a while later; a property of the path is the same.

// later is the pause before the single stream is repeated.
const later = 3 * time.Second

// again repeats the single stream where others were seen on an interface, or the rate wavered.
func (p Planner) again(c *Case, l *leg) *method.Step {
	one := l.one()
	if p.Budget.Name == "quick" || one == nil || !one.usable() || c.loopback() {
		return nil
	}
	here := func(v result.Verdict) bool { return v.Direction == string(l.dir) }
	if !slices.ContainsFunc(competing(c), here) && !slices.ContainsFunc(unsteady(c), here) {
		return nil
	}
	s := p.stage(l.dir, "again", "single stream, later,", "is what disturbed it still there?", p.Budget.Short, nil)
	s.Pause = max(later, p.Budget.Quiet)
	return s
}

// repeated is the single stream of later, and how long after the first one it began; nil = none was
// made.
func (l *leg) repeated() (f *flow, after float64) {
	one, f := l.one(), l.find("again")
	if one == nil || f == nil || !f.usable() || f.run.Started.Before(one.run.Started) {
		return nil, 0
	}
	return f, f.run.Started.Sub(one.run.Started).Seconds()
}

// goneLater compares what an interface carried of others with what it carries later. The rate that
// grew into the room that they left proves that they were in the way.
func (c *Case) goneLater(v *result.Verdict, l *leg, one *flow, e result.End, foreign float64) {
	f, after := l.repeated()
	if f == nil {
		return
	}
	v.Stages = append(v.Stages, f.name)
	_, now, known := foreignTraffic(f, e)
	switch {
	case !known:
	case now < foreign/3 && f.rate >= (1+moved)*one.rate:
		v.Certainty = Proven
		say(v, "changed: the same %s later: the interface of %s carried %s of others, and 1 stream %s, %.1f times as much", ms(after), c.host(e), rate(now), rate(f.rate), f.rate/one.rate)
		reach(v, f.rate)
	case now < foreign/3:
		say(v, "the same %s later: the interface of %s carried %s of others, and 1 stream %s all the same", ms(after), c.host(e), rate(now), rate(f.rate))
		v.Certainty = weaker(v.Certainty, Possible)
	default:
		say(v, "the same %s later: 1 stream %s, beside %s of others: they are still there", ms(after), rate(f.rate), rate(now))
	}
}

// steadyLater says of an unsteady stream how it was later.
func (c *Case) steadyLater(v *result.Verdict, l *leg) {
	f, after := l.repeated()
	if f == nil {
		return
	}
	var x []float64
	for _, r := range whole(f.rates()) {
		x = append(x, r.BPS)
	}
	cov, ok := stats.CoV(x)
	if !ok || len(x) < leastRows/2 {
		return
	}
	v.Stages = append(v.Stages, f.name)
	put(v, "variation_later", cov, "ratio")
	text := "still unsteady"
	if cov < unsteadyCoV/2 {
		text = "steady: what moved it comes and goes"
	}
	say(v, "the same %s later: %s, from %s to %s (coefficient of variation %s): %s", ms(after), rate(f.rate), rate(slices.Min(x)), rate(slices.Max(x)), percent(cov), text)
}

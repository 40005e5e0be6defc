package suite

import (
	"fmt"

	"github.com/fullbore-net/fullbore/internal/conclude"
	"github.com/fullbore-net/fullbore/internal/method"
	"github.com/fullbore-net/fullbore/internal/units"
	"github.com/fullbore-net/fullbore/result"
)

// lossFree is what the search for the highest loss-free rate came to.
func (j *Judge) lossFree(it Item, d result.Direction, out result.Item) result.Item {
	prefix := stepName(it, d) + "-"
	sub := cut(j.history, prefix)
	for _, s := range sub {
		if at, ok := j.at[prefix+s.Step.Name]; ok {
			out.From = append(out.From, at)
		}
	}
	open := func(why string) result.Item {
		out.Result, out.Reasons = result.Inconclusive, []string{sentence(why)}
		return out
	}
	if len(sub) == 0 {
		return open("it was not measured: the acceptance ended before")
	}
	answers := j.Method.search(it, d).Answer(sub)
	if len(answers) == 0 || len(answers[0].Answers) == 0 {
		return open("the search did not come to an answer: " + lastError(sub))
	}
	a := answers[0].Answers[0]
	text := rateText(answers[0], a)
	if a.Lower <= 0 && a.HostLimited > 0 {
		return open(text)
	}
	for _, dm := range it.Demands {
		lower := a.Lower
		c := result.Criterion{Figure: dm.Figure, Op: dm.Op, Unit: figures[dm.Figure].unit, Value: &lower, Reason: text}
		if a.Upper > 0 {
			c.Low, c.High = &lower, &a.Upper
		}
		limit, basis, ok := j.bound(it, d, dm)
		switch {
		case dm.Op == "":
		case !ok:
			c.Result = result.Inconclusive
			c.Reason += " The limit is a share of " + dm.Of + ", which is not known."
		case lower >= limit:
			c.Bound, c.Basis, c.Result = &limit, basis, result.Pass
			c.Reason += " Demanded: at least " + spell("bit/s", limit) + "."
		case a.HostLimited > 0 || a.Irregular:
			c.Bound, c.Basis, c.Result = &limit, basis, result.Inconclusive
			c.Reason += " Demanded: at least " + spell("bit/s", limit) + "; it is not the link that kept it lower."
		case a.AtMax || a.Upper > limit:
			c.Bound, c.Basis, c.Result = &limit, basis, result.Inconclusive
			c.Reason += " Demanded: at least " + spell("bit/s", limit) + ", which is neither met nor missed: the search does not tell rates so close apart."
		default:
			c.Bound, c.Basis, c.Result = &limit, basis, result.Fail
			c.Reason += " That misses at least " + spell("bit/s", limit) + "."
		}
		out.Criteria = append(out.Criteria, c)
		out.Result = worse(out.Result, c.Result)
		out.Reasons = append(out.Reasons, c.Reason)
	}
	return out
}

// rateText says what a search found.
func rateText(n method.NDRAnswer, a method.RateAnswer) string {
	took := fmt.Sprintf(" (%d trials, %s)", a.Trials, units.FormatDuration(seconds(float64(int(a.Seconds+0.5)))))
	rate := func(v float64) string { return units.BitRate(v + 0.5).String() }
	switch {
	case a.Lower <= 0 && a.HostLimited > 0:
		return "An end, not the link, was the limit at " + rate(a.HostLimited) + took + "."
	case a.Lower <= 0:
		return "No rate went through without loss, down to " + rate(a.Upper) + took + "."
	}
	text := rate(a.Lower) + " of payload went through without loss"
	if a.Sent > 0 {
		text += fmt.Sprintf(": %s datagrams, so at 95 %% less than %s are lost", conclude.Grouped(a.Sent), shareText(a.High))
	}
	switch {
	case a.AtMax:
		text += "; that is the whole link"
	case a.HostLimited > 0:
		text += "; from " + rate(a.HostLimited) + " on an end, not the link, was the limit"
	case a.Upper > 0:
		text += "; " + rate(a.Upper) + " did not"
	}
	if a.Irregular {
		text += "; the search ended before its width was reached"
	}
	return text + took + "."
}

// lastError is why the last step of a history did not come to its end.
func lastError(h []method.Done) string {
	d := h[len(h)-1]
	switch {
	case d.Err != nil:
		return d.Err.Text
	case d.Run != nil && d.Run.Err != nil:
		return d.Run.Err.Text
	}
	return "too few trials"
}

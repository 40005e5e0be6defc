package suite

import (
	"fmt"
	"strings"

	"github.com/fullbore-net/fullbore/internal/conclude"
	"github.com/fullbore-net/fullbore/internal/method"
	"github.com/fullbore-net/fullbore/internal/stats"
	"github.com/fullbore-net/fullbore/result"
)

// criterion judges one demand over an item's rounds.
func (j *Judge) criterion(it Item, d result.Direction, dm Demand, names []string, doubts []doubt) result.Criterion {
	f := figures[dm.Figure]
	c := result.Criterion{Figure: dm.Figure, Op: dm.Op, Unit: f.unit}
	rounds, how := j.readings(it, d, dm.Figure, names)
	why := ""
	var known []reading
	for _, r := range rounds {
		if r.known {
			known = append(known, r)
			c.Rounds = append(c.Rounds, r.value)
		} else {
			why = r.unknown
		}
	}
	limit, basis, have := j.bound(it, d, dm)
	if dm.Op != "" && have {
		c.Bound, c.Basis = &limit, basis
	}
	a, ok := method.Rounds(c.Rounds)
	if !ok {
		c.Result, c.Reason = result.Inconclusive, sentence(f.name+" is not known: "+why)
		if dm.Op == "" {
			c.Result = ""
		}
		return c
	}
	c.Value = &a.Median
	if a.N > 1 {
		c.Low, c.High = &a.Low, &a.High
	}
	if dm.Figure == "throughput" {
		j.medians[it.ID+"-"+string(d)] = a.Median
	}
	said := f.name + " " + spell(f.unit, a.Median) + j.spread(f, a)
	if counted(known) {
		said = j.counted(&c, f, known)
	}
	if how != "" {
		said += " (" + how + ")"
	}
	switch {
	case dm.Op == "":
		c.Reason = sentence(said)
		return c
	case !have:
		c.Result, c.Reason = result.Inconclusive, sentence(said+"; the limit is a share of "+dm.Of+", which is not known")
		return c
	}
	limitText := map[string]string{">=": "at least ", "<=": "at most "}[dm.Op] + spell(f.unit, limit)
	if basis != "" {
		limitText += " (" + basis + ")"
	}
	c.Result, why = j.verdict(dm, f, limit, a, known, doubts)
	if _, restless := j.settling(it, d, names); restless && dm.Figure == "throughput" {
		c.Result, why = unsettled(c.Result, why, limit, a)
	}
	switch c.Result {
	case result.Pass:
		c.Reason = said + "; demanded " + limitText
	case result.Fail:
		c.Reason = said + " misses " + limitText
	default:
		c.Reason = said + "; demanded " + limitText
	}
	if why != "" {
		c.Reason += "; " + why
	}
	if len(known) < len(rounds) && c.Result == result.Pass {
		c.Result = result.Inconclusive
		c.Reason += fmt.Sprintf("; only %d of %d rounds tell it", len(known), len(rounds))
	}
	c.Reason = sentence(c.Reason)
	return c
}

// spread says how far rounds lie apart.
func (j *Judge) spread(f figure, a method.RoundsAnswer) string {
	if a.N < 2 {
		return ""
	}
	text := fmt.Sprintf(" (median of %d; %s … %s", a.N, spell(f.unit, a.Min), spell(f.unit, a.Max))
	if a.Interval {
		text += fmt.Sprintf(", the median itself %s … %s at %.0f %%", spell(f.unit, a.Low), spell(f.unit, a.High), 100*a.Level)
	}
	if len(a.Outliers) > 0 {
		text += fmt.Sprintf(", round %d far off", a.Outliers[0]+1)
	}
	return text + ")"
}

// unsettled is the verdict over rounds that did not settle: only what the interval of their median lies
// wholly on one side of is decided.
func unsettled(verdict, why string, limit float64, a method.RoundsAnswer) (newVerdict, newWhy string) {
	if why != "" {
		why += "; "
	}
	why += fmt.Sprintf("after %d rounds it had not settled", a.N)
	if a.Interval && (a.Low >= limit || a.High < limit) {
		return verdict, why
	}
	return result.Inconclusive, why + ", and the limit lies within what its median may be"
}

// counted reports that each round is a count of how many of how many.
func counted(rs []reading) bool {
	for _, r := range rs {
		if r.of == 0 {
			return false
		}
	}
	return true
}

// counted tells a share with its counts and bounds, over all rounds together.
func (j *Judge) counted(c *result.Criterion, f figure, rs []reading) string {
	var k, n int64
	for _, r := range rs {
		k, n = k+r.lost, n+r.of
	}
	low, high := bounds(k, n)
	c.Low, c.High = &low, &high
	v := float64(k) / float64(n)
	c.Value = &v
	if k == 0 {
		return fmt.Sprintf("%s: 0 of %s (≤ %s at 95 %%)", f.name, conclude.Grouped(n), shareText(high))
	}
	return fmt.Sprintf("%s: %s of %s, %s (%s … %s at 95 %%)", f.name, conclude.Grouped(k), conclude.Grouped(n), shareText(v), shareText(low), shareText(high))
}

func bounds(k, n int64) (low, high float64) {
	if k == 0 {
		return 0, stats.RuleOfThree(n)
	}
	low, high, _ = stats.ClopperPearson(k, n, 0.95)
	return low, high
}

// verdict holds a figure against its limit. A doubt excuses what missed it; one that voids takes
// the worth of what met it, too.
func (j *Judge) verdict(dm Demand, f figure, limit float64, a method.RoundsAnswer, rs []reading, doubts []doubt) (verdict, why string) {
	var bear []string
	voids := false
	for _, d := range doubts {
		if d.bears(dm.Figure) {
			bear = append(bear, d.text)
			voids = voids || d.voids
		}
	}
	met := a.Median >= limit
	if !f.more {
		met = a.Median <= limit
	}
	var k, n int64
	if counted(rs) {
		for _, r := range rs {
			k, n = k+r.lost, n+r.of
		}
		met = float64(k)/float64(n) <= limit
	}
	switch {
	case met && voids:
		return result.Inconclusive, "it says nothing: " + strings.Join(bear, ", and ")
	case met && len(bear) > 0:
		return result.Pass, "met although " + strings.Join(bear, ", and ")
	case met && n > 0 && dm.Figure != "reordering":
		if _, high := bounds(k, n); high > limit && k == 0 {
			return result.Pass, fmt.Sprintf("so few packets cannot show less than %s", shareText(high))
		}
		return result.Pass, ""
	case met:
		return result.Pass, ""
	case n > 0 && networkAlone(rs, limit) && !foreign(doubts):
		return result.Fail, "the network alone lost more than that"
	case len(bear) > 0:
		return result.Inconclusive, "it is not the link that is judged: " + strings.Join(bear, ", and ")
	case n > 0:
		if low, _ := bounds(k, n); low <= limit {
			return result.Inconclusive, "so few packets do not prove it"
		}
	case dm.Figure == "throughput" && a.N == 1 && rs[0].peak >= limit:
		// One round, part of which did reach it: something came and went.
		return result.Fail, "the best interval reached " + spell("bit/s", rs[0].peak)
	case a.N > 1 && (f.more && a.Max >= limit || !f.more && a.Min <= limit):
		return result.Fail, "some round met it: it is not steady"
	}
	return result.Fail, ""
}

func foreign(ds []doubt) bool {
	for _, d := range ds {
		if strings.HasPrefix(d.text, "other traffic") {
			return true
		}
	}
	return false
}

// networkAlone: what the hosts cannot have dropped is more than the limit allows.
func networkAlone(rs []reading, limit float64) bool {
	var k, n int64
	for _, r := range rs {
		if r.network == nil || !r.exact {
			return false
		}
		k, n = k+*r.network, n+r.of
	}
	if n == 0 || k == 0 {
		return false
	}
	low, _ := bounds(k, n)
	return low > limit
}

package importer

import (
	"math"
	"strconv"
	"strings"
)

// span is what is known of a number: it lies between lo and hi.
type span struct{ lo, hi float64 }

func anything() span { return span{0, math.Inf(1)} }

func (s span) and(o span) span          { return span{max(s.lo, o.lo), min(s.hi, o.hi)} }
func (s span) empty() bool              { return s.lo > s.hi }
func (s span) mid() float64             { return (s.lo + s.hi) / 2 }
func (s span) times(f float64) span     { return span{s.lo * f, s.hi * f} }
func (s span) plus(o span) span         { return span{s.lo + o.lo, s.hi + o.hi} }
func (s span) clamp(v float64) float64  { return min(max(v, s.lo), s.hi) }
func (s span) share(at float64) float64 { return s.lo + at*(s.hi-s.lo) }

// printed is what a decimal number says of the one that it was rounded from. It stays clear of the
// very ends, where rounding could go either way.
func printed(s string) span {
	_, frac, _ := strings.Cut(s, ".")
	half := 0.4999 * math.Pow10(-len(frac))
	v := flt(s)
	if v == 0 {
		return span{0, half}
	}
	return span{v - half, v + half}
}

// numbers that cannot be read are 0: every caller has matched them with a pattern.
func flt(s string) float64 {
	f, _ := strconv.ParseFloat(strings.TrimSpace(s), 64)
	return f
}

func num(s string) int {
	n, _ := strconv.Atoi(strings.TrimSpace(s))
	return n
}

func num64(s string) int64 {
	n, _ := strconv.ParseInt(strings.TrimSpace(s), 10, 64)
	return n
}

// group is a set of amounts over one time, with what a text says of them: each amount, each rate
// (amounts per second), and of their sum.
type group struct {
	nominal, slack float64 // s: the time, and how far it may be off
	amounts, rates []span
	sum, sumRate   *span // nil = the text says nothing
}

// solve finds a time and amounts (whole numbers) that agree with all. ok is false when there are none; then
// the amounts are the middles of what the text says.
func (g *group) solve() (seconds float64, amounts []int64, ok bool) {
	for _, t := range g.times() {
		if out, ok := g.at(t); ok {
			return t, out, true
		}
	}
	return g.nominal, g.middles(), false
}

// times are those to try: the nominal one, those that follow from amounts and rates, then further and further from
// the nominal one.
func (g *group) times() []float64 {
	out := []float64{g.nominal}
	follow := func(a, r span) {
		if t := a.mid() / r.mid(); r.mid() > 0 && math.Abs(t-g.nominal) <= g.slack {
			out = append(out, math.Floor(t*1e6)/1e6, math.Ceil(t*1e6)/1e6)
		}
	}
	if g.sum != nil && g.sumRate != nil {
		follow(*g.sum, *g.sumRate)
	}
	for i := range g.amounts {
		follow(g.amounts[i], g.rates[i])
	}
	for k := range 2 * solveSteps {
		if t := g.time(k + 1); t >= 0 {
			out = append(out, t)
		}
	}
	return out
}

// solveSteps is into how many parts each side of the slack is cut.
const solveSteps = 400

// time is the k-th by distance from the nominal one.
func (g *group) time(k int) float64 {
	off := float64((k+1)/2) / solveSteps * g.slack
	if k%2 == 1 {
		off = -off
	}
	return math.Round((g.nominal+off)*1e6) / 1e6 // iperf3 counts µs
}

func (g *group) middles() (amounts []int64) {
	for _, a := range g.amounts {
		amounts = append(amounts, int64(math.Round(a.mid())))
	}
	return amounts
}

// solveTogether is solve for groups that share one time.
func solveTogether(groups []group) (seconds float64, amounts [][]int64) {
	if len(groups) == 0 {
		return 0, nil
	}
	var times []float64
	for i := range groups {
		times = append(times, groups[i].times()...)
	}
	for _, t := range times {
		all := true
		amounts = nil
		for i := range groups {
			out, ok := groups[i].at(t)
			amounts, all = append(amounts, out), all && ok
		}
		if all {
			return t, amounts
		}
	}
	amounts = nil
	for i := range groups { // no time fits them all
		_, out, _ := groups[i].solve()
		amounts = append(amounts, out)
	}
	return groups[0].nominal, amounts
}

// at finds amounts for one time.
func (g *group) at(t float64) ([]int64, bool) {
	each := make([]span, len(g.amounts))
	all := span{}
	for i, a := range g.amounts {
		each[i] = a.and(g.rates[i].times(t))
		each[i] = span{math.Ceil(each[i].lo), math.Floor(each[i].hi)}
		if each[i].empty() {
			return nil, false
		}
		all = all.plus(each[i])
	}
	want := all
	if g.sum != nil {
		want = want.and(*g.sum)
	}
	if g.sumRate != nil {
		want = want.and(g.sumRate.times(t))
	}
	want = span{math.Ceil(want.lo), math.Floor(want.hi)}
	if want.empty() {
		return nil, false
	}
	at := 0.5
	if all.hi > all.lo {
		at = (want.mid() - all.lo) / (all.hi - all.lo)
	}
	out := make([]int64, len(each))
	var total int64
	for i, s := range each {
		out[i] = int64(s.clamp(math.Round(s.share(at))))
		total += out[i]
	}
	for i, s := range each { // rounding may have left the sum beside its bounds
		switch {
		case float64(total) < want.lo && float64(out[i]) < s.hi:
			d := int64(min(want.lo-float64(total), s.hi-float64(out[i])))
			out[i], total = out[i]+d, total+d
		case float64(total) > want.hi && float64(out[i]) > s.lo:
			d := int64(min(float64(total)-want.hi, float64(out[i])-s.lo))
			out[i], total = out[i]-d, total-d
		}
	}
	return out, float64(total) >= want.lo && float64(total) <= want.hi
}

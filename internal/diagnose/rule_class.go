package diagnose

import (
	"fmt"
	"math"

	"github.com/fullbore-net/fullbore/internal/method"
	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/result"
)

// Classes of traffic (DSCP): one starves while another does not.

// The classes that are probed beside the load, which itself has none (best effort): one that is
// meant to be better, one that is meant to be worse. RFC 3246, RFC 8622's elder (RFC 3662).
const (
	tosEF  = 46 << 2
	tosCS1 = 8 << 2
)

func probedClasses() []int { return []int{tosEF, tosCS1} }

var classNames = map[int]string{0: "best effort", tosEF: "EF", tosCS1: "CS1"}

// classed is what probes of one class met in one direction under load.
type classed struct {
	tos  int
	n    int64   // sent
	lost float64 // share; of both directions, which is what the answers tell
	p50  float64 // rise above the class's own least, s
	p95  float64
	ok   bool // enough came back to tell the delay
}

// classesOf are those of a flow's direction: best effort, then the others.
func classesOf(f *flow) (out []classed) {
	if f == nil || f.run == nil {
		return nil
	}
	for i := range f.run.Probes {
		p := &f.run.Probes[i]
		if p.Kind != "udp-class" && p.Kind != "udp-echo" || p.Sent < 20 {
			continue
		}
		way := p.Up
		if f.dir == result.Down {
			way = p.Down
		}
		k := classed{tos: p.TOS, n: p.Sent, lost: 1 - float64(p.Answered)/float64(p.Sent)}
		if way != nil && way.PDV != nil && way.PDV.N >= 10 {
			k.p50, k.p95, k.ok = way.PDV.P50, way.PDV.P95, true
		}
		out = append(out, k)
	}
	return out
}

// When a class starves and when it fares well.
const (
	starvedLoss  = 0.1
	starvedDelay = 0.1 // s; a queue behind which nobody calls
	wellLoss     = 0.02
	wellTimes    = 5 // the other waits at most so much less
)

func (k classed) starved() bool { return k.lost >= starvedLoss || k.ok && k.p50 >= starvedDelay }

func (k classed) well() bool { return k.lost <= wellLoss && k.ok }

// better reports that k fares well where the other starves.
func (k classed) better(than classed) bool {
	return k.well() && than.starved() && (than.lost >= starvedLoss || than.p50 > wellTimes*math.Max(k.p50, 0.001))
}

// contrast finds the class that starves most, and the one that fares best beside it.
func contrast(f *flow) (good, bad classed, found bool) {
	all := classesOf(f)
	for _, a := range all {
		for _, b := range all {
			if !a.better(b) {
				continue
			}
			worse := b.lost > bad.lost || b.lost == bad.lost && b.p50 > bad.p50
			if !found || worse || b.tos == bad.tos && a.p50 < good.p50 {
				good, bad, found = a, b, true
			}
		}
	}
	return good, bad, found
}

// behind reports that best effort itself waits or is lost where EF is not: a stream marked EF
// tells how much others' priority traffic takes from it.
func behind(f *flow) bool {
	all := classesOf(f)
	for _, a := range all {
		for _, b := range all {
			if a.tos == tosEF && b.tos == 0 && a.well() && (b.lost > wellLoss+a.lost || b.ok && b.p50 > 0.002+3*a.p50) {
				return true
			}
		}
	}
	return false
}

// classStage is a stream of the better class, at no more than twice what best effort got: it must
// not take from others what it is to find out about.
func (p Planner) classStage(l *leg) *method.Step {
	one := l.one()
	if one == nil || !one.usable() || !behind(one) || p.Budget.Name == "quick" {
		return nil
	}
	each := int64(2 * one.rate)
	if each < 64e3 {
		return nil
	}
	return p.stage(l.dir, "ef", "1 stream marked EF, twice the rate,", "does a better class get what best effort does not?", p.Budget.Short, func(pl *plan.Plan) {
		pl.TOS, pl.Bitrate, pl.RateSet, pl.FQRate, pl.BlockSize = tosEF, each, true, each*5/4, blockFor(each)
	})
}

// classStarved: a class is lost or waits while another, beside it, is not. Where it is the class of
// the streams themselves a stream of the better class is the proof, and it is what holds them.
func classStarved(c *Case) (out []result.Verdict) {
	for _, l := range c.legs() {
		one := l.one()
		if one == nil || !one.usable() {
			continue
		}
		ef := l.find("ef")
		ours := ef != nil && ef.usable() && behind(one) && ef.rate >= 1.4*one.rate
		good, bad, found := contrast(one)
		if !found && !ours {
			continue
		}
		v := draft(ClassStarved, Likely, l, one)
		for _, k := range classesOf(one) {
			say(&v, "probes beside the stream, %s: %s", classNames[k.tos], k.text())
		}
		if ours {
			v.Certainty = Proven
			v.Stages = append(v.Stages, ef.name)
			put(&v, "rate", one.rate, "bit/s")
			put(&v, "rate_ef", ef.rate, "bit/s")
			put(&v, "dscp", 0, "")
			say(&v, "1 stream, best effort: %s", rate(one.rate))
			say(&v, "changed: 1 stream marked EF, at most %s: %s, %.1f times as much", rate(2*one.rate), rate(ef.rate), ef.rate/one.rate)
			reach(&v, ef.rate)
			v.Summary = fmt.Sprintf("%s: best effort starves beside traffic of a better class: a stream gets %s, and at least %s when it is marked EF.", c.way(l.dir), rate(one.rate), rate(ef.rate))
			advise(&v,
				"find who fills the priority class, and police it where it enters (RFC 3246 asks for that), or give best effort a share of its own (weighted queues in place of strict priority)",
				"per class, on the hop before the bottleneck: tc -s class show dev DEV; show policy-map interface")
			out = append(out, v)
			continue
		}
		if bad.tos == 0 {
			continue // our own load's queue: a better class passes it, as it should
		}
		v.Note = true
		put(&v, "dscp", float64(bad.tos>>2), "")
		put(&v, "dscp_better", float64(good.tos>>2), "")
		put(&v, "loss", bad.lost, "ratio")
		if bad.ok {
			put(&v, "delay", bad.p50, "s")
		}
		say(&v, "the stream itself, best effort: %s, %s retransmitted: it looks fine", rate(one.rate), percent(one.ratio))
		v.Summary = fmt.Sprintf("%s: class %s starves under load (%s) while TCP looks fine and %s passes (%s): a strict priority below the load's.", c.way(l.dir), classNames[bad.tos], bad.text(), classNames[good.tos], good.text())
		advise(&v,
			fmt.Sprintf("look at where class %s is queued: strict priority lets it starve; weighted queues give it a share", classNames[bad.tos]),
			c.again(l.dir, fmt.Sprintf("-u -b 1M -l 200 --tos %d", bad.tos)))
		out = append(out, v)
	}
	return out
}

func (k classed) text() string {
	if !k.ok {
		return percent(k.lost) + " lost"
	}
	return fmt.Sprintf("%s lost, %s longer than the least (p95 %s)", percent(max(k.lost, 0)), ms(k.p50), ms(k.p95))
}

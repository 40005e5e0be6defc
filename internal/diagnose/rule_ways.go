package diagnose

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/fullbore-net/fullbore/internal/stats"
	"github.com/fullbore-net/fullbore/result"
)

// Flows that take different ways: ECMP, a bond.

// way is what one stream met.
type way struct {
	port int // of the client, where the server's is fixed
	rate float64
	rtt  float64 // least, s; 0 = not known
}

// waysOf are the streams of a flow, one each.
func waysOf(f *flow) (out []way) {
	if f == nil || f.run == nil {
		return nil
	}
	for i := range f.run.Streams {
		s := &f.run.Streams[i]
		if s.Direction != f.dir {
			continue
		}
		total := s.Receiver
		if total == nil {
			total = s.Sender
		}
		if total == nil || total.Seconds() <= 0 {
			continue
		}
		w := way{port: s.Local.Port, rate: total.Rate()}
		if f.run.End == result.Server {
			w.port = s.Remote.Port
		}
		t := s.TCP
		if f.run.End != f.dir.Sender() {
			t = s.RemoteTCP
		}
		if t != nil && t.Last.MinRTT != nil {
			w.rtt = float64(*t.Last.MinRTT) / 1e6
		}
		out = append(out, w)
	}
	return out
}

// What two groups of streams must differ by to be looked into. Streams that compete for one queue
// share it unequally, within about the factor unequalRates over a few seconds.
const (
	groupRates   = 1.5
	unequalRates = 2.5
	groupRTT     = 1.2
	// wayDiffers is what M-DIAG asks of single streams.
	wayDiffers = 0.2
)

// groups splits streams by their rates, or else by their round trips; gap is the gap statistic.
func groups(ways []way) (slow, fast []way, gap float64, byRTT, ok bool) {
	var rates, trips []float64
	for _, w := range ways {
		if w.rate <= 0 {
			rates = append(rates, 0) // it starved: log of a bit a second
		} else {
			rates = append(rates, math.Log(w.rate))
		}
		if w.rtt > 0 {
			trips = append(trips, w.rtt)
		}
	}
	if len(trips) == len(ways) {
		if c, two := stats.TwoClusters(trips); two && c.Gap() > 2 && c.High > groupRTT*c.Low && c.High-c.Low > 0.001 {
			for _, w := range ways {
				if w.rtt >= c.Above {
					slow = append(slow, w)
				} else {
					fast = append(fast, w)
				}
			}
			return slow, fast, c.Gap(), true, true
		}
	}
	c, two := stats.TwoClusters(rates)
	if !two || c.High-c.Low < math.Log(groupRates) {
		return nil, nil, 0, false, false
	}
	for i, w := range ways {
		if rates[i] >= c.Above {
			fast = append(fast, w)
		} else {
			slow = append(slow, w)
		}
	}
	return slow, fast, c.Gap(), false, true
}

// sorted is groups' slow and fast ones, each by their rates.
func sorted(ways []way) (slow, fast []way) {
	slow, fast, _, _, _ = groups(ways)
	for _, g := range [][]way{slow, fast} {
		slices.SortStableFunc(g, func(a, b way) int { return cmp.Compare(a.rate, b.rate) })
	}
	return slow, fast
}

// apart reports a flow whose streams fall apart into two groups.
func apart(f *flow) bool {
	if f == nil || !f.usable() || f.streams < 4 {
		return false
	}
	_, _, _, _, ok := groups(waysOf(f))
	return ok
}

// uneven reports that several streams of a direction were more unequal than competition makes
// them, or unequal where one alone does not fill the path.
func (l *leg) uneven(c *Case) bool {
	one := l.one()
	for _, what := range []string{"4", "16"} {
		f := l.find(what)
		if !apart(f) {
			continue
		}
		slow, fast, gap, byRTT, _ := groups(waysOf(f))
		grew := one != nil && one.usable() && !atTheEnds(c, l, one) && f.rate >= (1+moved)*one.rate
		if byRTT || grew || gap > 0 && middle(fast).rate >= unequalRates*middle(slow).rate {
			return true
		}
	}
	return false
}

// scan is the flow of sixteen streams, nil when none was made.
func (l *leg) scan() *flow {
	for _, what := range []string{"ports", "16"} {
		if f := l.find(what); f != nil && f.usable() {
			return f
		}
	}
	return nil
}

// alone are the single streams from chosen ports.
func (l *leg) alone() (out []way) {
	for i := range l.flows {
		f := &l.flows[i]
		if strings.HasPrefix(f.name, string(l.dir)+"-port-") && f.run != nil && f.arrived {
			out = append(out, waysOf(f)...)
		}
	}
	return out
}

// twoWays compares single streams from ports that the scan called slow and fast: differ says
// that their ways do.
func (l *leg) twoWays() (slow, fast []way, differ bool) {
	scan := l.scan()
	if scan == nil {
		return nil, nil, false
	}
	low, _ := sorted(waysOf(scan))
	for _, w := range l.alone() {
		if slices.ContainsFunc(low, func(s way) bool { return s.port == w.port }) {
			slow = append(slow, w)
		} else {
			fast = append(fast, w)
		}
	}
	if len(slow) == 0 || len(fast) == 0 {
		return slow, fast, false
	}
	s, f := middle(slow), middle(fast)
	switch {
	case f.rate > 0 && s.rate < (1-wayDiffers)*f.rate:
		// Where losses hold single streams, their rates differ by chance: a few events more or less.
		// Where its buffer holds the sender, by how much depends on how its packets fell into it.
		lossy, one := l.lossy(), l.one()
		differ = (lossy == nil || !l.lossesStay(lossy)) && (one == nil || !one.bufferBound())
	case s.rtt > 0 && f.rtt > 0 && s.rtt > (1+wayDiffers)*f.rtt && s.rtt-f.rtt > 0.001:
		differ = true
	}
	return slow, fast, differ
}

// middle is the median of some ways.
func middle(ways []way) way {
	var rates, trips []float64
	for _, w := range ways {
		rates = append(rates, w.rate)
		trips = append(trips, w.rtt)
	}
	rate1, _ := stats.Median(rates)
	rtt, _ := stats.Median(trips)
	return way{rate: rate1, rtt: rtt}
}

// ecmp: streams of some source ports are slower than those of others, also alone.
func ecmp(c *Case) (out []result.Verdict) {
	for _, l := range c.legs() {
		scan := l.scan()
		slow, fast, differ := l.twoWays()
		if !differ {
			continue
		}
		low, high, gap, byRTT, _ := groups(waysOf(scan))
		s, f := middle(slow), middle(fast)
		v := draft(ECMP, Proven, l, scan)
		for _, w := range append(slices.Clone(slow), fast...) {
			v.Stages = append(v.Stages, fmt.Sprintf("%s-port-%d", l.dir, w.port))
		}
		r := s.rate
		v.Measured = &r
		put(&v, "slow", s.rate, "bit/s")
		put(&v, "fast", f.rate, "bit/s")
		put(&v, "ports_slow", float64(len(low)), "")
		put(&v, "ports", float64(len(low)+len(high)), "")
		what := "rates"
		if byRTT {
			what = "round trips"
		}
		say(&v, "%d streams at once: by their %s two groups (gap %.1f): %s and %s", len(low)+len(high), what, min(gap, 99), groupText(low), groupText(high))
		say(&v, "slow from source ports %s", portsText(low))
		say(&v, "changed: one stream alone from port %s: %s; from port %s: %s", portsText(slow), wayText(s), portsText(fast), wayText(f))
		if s.rtt > 0 && f.rtt > 0 {
			put(&v, "rtt_slow", s.rtt, "s")
			put(&v, "rtt_fast", f.rtt, "s")
		}
		v.Note = s.rate >= (1-wayDiffers)*f.rate // only the delay differs
		if !v.Note {
			reach(&v, f.rate)
		}
		advise(&v,
			"look at the members of the bundle (ECMP, bond, SD-WAN) for the one that is slower, longer or full: its speed, duplex, errors and load; take it out and repeat",
			fmt.Sprintf("the same port again: %s, and %s", c.again(l.dir, fmt.Sprintf("--cport %d", slow[0].port)), c.again(l.dir, fmt.Sprintf("--cport %d", fast[0].port))))
		v.Summary = fmt.Sprintf("%s: flows take ways that are not alike: from some source ports one stream gets %s, from others %s; %d of %d ports are on the slow way.", c.way(l.dir), wayText(s), wayText(f), len(low), len(low)+len(high))
		out = append(out, v)
	}
	return out
}

func groupText(ways []way) string {
	m := middle(ways)
	return fmt.Sprintf("%d of about %s", len(ways), wayText(m))
}

func wayText(w way) string {
	if w.rtt > 0 {
		return fmt.Sprintf("%s (round trip %s)", rate(w.rate), ms(w.rtt))
	}
	return rate(w.rate)
}

// portsText lists ports, the first few.
func portsText(ways []way) string {
	var out []string
	for i, w := range ways {
		if i == 8 {
			out = append(out, "…")
			break
		}
		out = append(out, fmt.Sprint(w.port))
	}
	return strings.Join(out, ", ")
}

// mostMembers is up to how many ways of a bundle one stream's share of the sum tells.
const mostMembers = 4

// bundle: one stream fills one of some ways that are alike, several streams fill all of them.
func bundle(c *Case) (out []result.Verdict) {
	for _, l := range c.legs() {
		one, m := l.one(), l.many()
		n := l.members(c)
		if _, _, differ := l.twoWays(); differ || n == 0 || policed(c, l) {
			continue
		}
		v := draft(PerFlow, Likely, l, one, l.find("4"), l.scan())
		put(&v, "rate", one.rate, "bit/s")
		put(&v, "rate_l3", one.wire(one.rate), "bit/s")
		put(&v, "sum", m.rate, "bit/s")
		put(&v, "ways", n, "")
		say(&v, "1 stream: %s, steady; neither window, buffer nor processor held it", rate(one.rate))
		say(&v, "changed: %s: %.2f times as much, and more streams carry no more", streamsText(m), m.rate/one.rate)
		if alone := l.alone(); len(alone) > 0 {
			say(&v, "changed: 1 stream from other source ports: the same, %s", rate(middle(alone).rate))
			v.Certainty = Proven
		}
		reach(&v, m.rate)
		advise(&v, "one flow uses one member of the bundle (ECMP, LAG), that is how it is made: several streams use all", fmt.Sprintf("several streams (%s)", c.again(l.dir, "-P 8")))
		v.Summary = fmt.Sprintf("%s: each flow takes one of %.0f ways that are alike, of %s each; several together reach %s.", c.way(l.dir), n, rate(one.rate), rate(m.rate))
		out = append(out, v)
	}
	return out
}

// bundleSlack is how far the sum may be off a whole multiple of one stream.
const bundleSlack = 0.04

// members is how many ways that are alike a direction seems to have, 0 when it has not: what
// several streams carry, however many, is a whole multiple of what one does.
func (l *leg) members(c *Case) float64 {
	one, m := l.one(), l.many()
	if one == nil || m == nil || !one.usable() || linear(l) || !saturated(l) || atTheEnds(c, l, one) || !steady(one) {
		return 0
	}
	if f := l.lossy(); f != nil && l.lossesStay(f) {
		return 0
	}
	n := math.Round(m.rate / one.rate)
	if n < 2 || n > mostMembers || math.Abs(m.rate-n*one.rate) > bundleSlack*m.rate {
		return 0
	}
	// However few streams hash into however few of the ways, each way carries what one stream does.
	if few := l.find("4"); few != nil && few.usable() {
		k := math.Max(1, math.Round(few.rate/one.rate))
		if math.Abs(few.rate-k*one.rate) > fewSlack*few.rate {
			return 0
		}
	}
	return n
}

// fewSlack is how far the sum of a few streams may be off a whole multiple of one: streams that share
// a way take longer to fill it than many do.
const fewSlack = 0.12

// spread reports that flows take several ways: then probes beside a stream may have met another
// queue than its own, and more streams carry more because there are more ways.
func (l *leg) spread(c *Case) bool {
	_, _, differ := l.twoWays()
	return differ || l.members(c) > 0
}

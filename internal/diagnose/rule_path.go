package diagnose

import (
	"fmt"
	"math"

	"github.com/fullbore-net/fullbore/internal/conclude"
	"github.com/fullbore-net/fullbore/internal/stats"
	"github.com/fullbore-net/fullbore/result"
)

// atTheEnds reports that something at the ends, not the path, holds the single stream.
func atTheEnds(c *Case, l *leg, f *flow) bool {
	if serverLimited(f) || ownLimit(f) {
		return true
	}
	if filled(c, l) {
		return false // whatever the counters say: it keeps a queue full
	}
	return cpuFirst(f) || f.windowBound() || f.bufferBound() || heldUnseen(c, l) || idleSender(f) ||
		c.loopback() && hottest(f.run, result.Client).busy >= busyWorker
}

// full: more streams carry no more, the sender waits for the path, and a queue or losses
// that vanish at half the rate say that its bottleneck is busy. Nothing is wrong.
func full(c *Case) (out []result.Verdict) {
	for _, l := range c.legs() {
		one, best := l.one(), l.best()
		if one == nil || !one.usable() || best == nil || stuck(one) {
			continue
		}
		ideal, rated := conclude.Ideal(one.run, l.dir)
		if rated && best.rate >= idealShare*ideal {
			if !atTheEnds(c, l, one) || best.rate < (1+moved)*one.rate {
				out = append(out, c.fullVerdict(l, one, LinkFull, ideal))
			}
			continue
		}
		if atTheEnds(c, l, one) {
			continue
		}
		if f := l.lossy(); f != nil && (unqueued(c, one) && l.lossesStay(f) && !saturated(l) || l.flat() && c.lossHolds(l, f)) {
			continue
		}
		// Several streams that carry no more than one, with nothing at the ends to hold them, are
		// held together: by the path. A queue or losses that vanish below it prove it.
		m := l.many()
		if m != nil && m.rate >= (1+moved)*one.rate {
			// One stream does not fill it; several may.
			if !saturated(l) || !queued(c, m) && !vanishedAt(l) {
				// Under a queue that stands the bottleneck never rests, though the last streams
				// may still have taken from the first one's pauses.
				if !levelled(l, moved) || !queued(c, m) {
					continue
				}
			}
		} else if !queued(c, one) && !vanishedAt(l) && (m == nil || !queued(c, m) && !l.flat()) {
			continue
		}
		if policed(c, l) || bucketless(c, l) || slowReader(c, l) || unqueued(c, one) && carried(c, l) > best.rate*(1+moved) {
			continue // something else holds TCP below it
		}
		out = append(out, c.fullVerdict(l, one, PathFull, 0))
	}
	return out
}

const idealShare = 0.95

// saturated reports that the last step to more streams gained nothing.
func saturated(l *leg) bool { return levelled(l, same) }

// levelled reports that the last step to four times the streams gained less than a share.
func levelled(l *leg, gain float64) bool {
	a, b := l.find("4"), l.find("16")
	if b == nil {
		b = l.find("ports") // sixteen, too
	}
	if c := l.find("64"); c != nil && b != nil {
		a, b = b, c
	}
	return a != nil && b != nil && a.usable() && b.usable() && b.rate < (1+gain)*a.rate
}

// vanishedAt reports that the losses of a direction were gone at half the rate.
func vanishedAt(l *leg) bool {
	if f := l.lossy(); f != nil && l.lossesVanish(f) {
		return true
	}
	// One stream's losses come in few events; several at the same rate show them more often.
	m := l.many()
	return m != nil && l.flat() && l.lossesVanish(m)
}

func (c *Case) fullVerdict(l *leg, one *flow, code string, ideal float64) result.Verdict {
	best, m, half := l.best(), l.many(), l.find("half")
	v := draft(code, Likely, l, one, m, half)
	top := one
	if m != nil && m.rate > one.rate*(1+same) {
		top = m
	}
	r := best.rate
	v.Measured = &r
	put(&v, "rate", best.rate, "bit/s")
	put(&v, "rate_l3", best.line(), "bit/s")
	put(&v, "rtt", c.Idle.rtt, "s")
	say(&v, "1 stream: %s (%s with IP headers)", rate(one.rate), rate(one.wire(one.rate)))
	flat := false
	if m != nil {
		say(&v, "changed: %s, %+.0f %%", streamsText(m), 100*(m.rate/one.rate-1))
		flat = m.rate < (1+same)*one.rate || saturated(l)
	}
	c.queueValues(&v, top)
	if half != nil && half.ratioKnown && half.usable() {
		text := fmt.Sprintf("changed: half the rate (%s): %s retransmitted instead of %s", rate(half.rate), percent(half.ratio), percent(one.ratio))
		if t, _, ok := half.queue(c); ok {
			text += fmt.Sprintf(", delay of the queue %s", ms(t))
		}
		say(&v, "%s", text)
	}
	if flat && (queued(c, top) || vanishedAt(l)) {
		v.Certainty = Proven
	}
	efficiency := 1 - one.ratio
	if one.ratioKnown {
		put(&v, "efficiency", efficiency, "ratio")
		say(&v, "%s of what was sent was sent again (efficiency %.2f %%, RFC 6349)", percent(one.ratio), 100*efficiency)
	}
	if ideal > 0 {
		put(&v, "ideal", ideal, "bit/s")
		put(&v, "of_ideal", best.rate/ideal, "ratio")
		say(&v, "the slower interface carries at most %s of TCP payload: %s of it reached", rate(ideal), percent(best.rate/ideal))
	}
	c.headRoom(&v, l, one)
	c.meaning(&v, l, one, best)
	what := "the path is full"
	if code == LinkFull {
		what = fmt.Sprintf("the link is full (%s of what TCP can reach on it)", percent(best.rate/ideal))
	}
	if best.rate >= (1+moved)*one.rate {
		v.Summary = fmt.Sprintf("%s: with several streams %s: %s; one alone gets %s.", c.way(l.dir), what, rate(best.rate), rate(one.rate))
	} else {
		v.Summary = fmt.Sprintf("%s: nothing is wrong, %s: %s; a copy that is slower is limited by its program or disk.", c.way(l.dir), what, rate(best.rate))
	}
	advise(&v, "for more: a faster link or less traffic beside it; for a copy that is slower than this, look at its program and disks")
	return v
}

// headRoom says how much processor time was left.
func (c *Case) headRoom(v *result.Verdict, l *leg, f *flow) {
	for i, e := range []result.End{l.dir.Sender(), l.dir.Receiver()} {
		if f.load[i] >= 0 {
			put(v, map[int]string{0: "sender_load", 1: "receiver_load"}[i], f.load[i], "ratio")
			say(v, "the busiest worker on %s was %s busy", c.host(e), percent(min(f.load[i], 1)))
		}
	}
}

// queueValues tells the queue that stood under a flow.
func (c *Case) queueValues(v *result.Verdict, f *flow) {
	typical, most, known := f.queue(c)
	if !known {
		return
	}
	put(v, "queue", most, "s")
	put(v, "queue_bytes", most*f.wire(f.rate)/8, "bytes")
	put(v, "queue_typical", typical, "s")
	if f.rise == nil {
		say(v, "under this load TCP's round trip was %s longer than the empty path's (%s): a queue of about %s", ms(most), ms(c.Idle.rtt), size(most*f.wire(f.rate)/8))
		return
	}
	say(v, "under this load small packets waited %s (typical) to %s (p99) longer than on the empty path (round trip %s): a queue of up to %s", ms(typical), ms(most), ms(c.Idle.rtt), size(most*f.wire(f.rate)/8))
}

// standingQueue: the typical packet waits as long as the whole empty path takes, and more
// (RFC 6349: buffer delay above 100 %).
func standingQueue(c *Case) (out []result.Verdict) {
	for _, l := range c.legs() {
		f := l.one()
		if f == nil || !f.usable() || cpuFirst(f) {
			continue
		}
		if m := l.many(); m != nil {
			if a, _, ok := m.queue(c); ok {
				if b, _, ok := f.queue(c); !ok || a > b {
					f = m
				}
			}
		}
		typical, most, known := f.queue(c)
		if !known || typical < max(0.01, c.Idle.rtt) {
			continue
		}
		v := draft(StandingQueue, Likely, l, f, l.find("half"))
		v.Note = true
		c.queueValues(&v, f)
		put(&v, "rtt", c.Idle.rtt, "s")
		if half := l.find("half"); half != nil && half.usable() {
			if t, _, ok := half.queue(c); ok {
				say(&v, "changed: at half the rate they wait %s", ms(t))
				if t < typical/3 {
					v.Certainty = Proven
				}
			}
		}
		advise(&v,
			"a managed queue at the bottleneck (fq_codel, cake), or a shaper just below its rate in front of it",
			"on a host of yours before it: tc qdisc replace dev DEV root cake bandwidth "+roundedRate(0.95*f.wire(f.rate)))
		v.Summary = fmt.Sprintf("%s: a queue of %s stands under load (%s): calls and games suffer while the rate looks fine.", c.way(l.dir), ms(typical), size(typical*f.wire(f.rate)/8))
		_ = most
		out = append(out, v)
	}
	return out
}

// shallow: losses that vanish below it and no queue before them: the buffer of the bottleneck
// is too short for one stream. A bottleneck's own buffer, however short, delays what it does
// not drop; where nothing is delayed at all it is a policer with a small bucket.
func shallow(c *Case) (out []result.Verdict) {
	for _, l := range c.legs() {
		one, best, f := l.one(), l.best(), l.lossy()
		if one == nil || f == nil || !one.usable() || atTheEnds(c, l, one) || !unqueued(c, one) || policed(c, l) || l.spread(c) {
			continue
		}
		proof := Proven
		if m := l.many(); f == one && m != nil && lossMatters(m) && !l.lossesVanish(one) && (l.lossesVanish(m) || l.spared(m)) {
			f, proof = m, Likely // one event is too few to tell by itself; those of many streams are gone below
		}
		if !l.lossesVanish(f) && !(f != one && l.spared(f)) || c.repairsSlowly(l) {
			continue
		}
		thin, told := c.thin(l)
		if told && !thin {
			continue
		}
		began := one.began()
		if one.ratioKnown && one.ratio == 0 {
			if !told || began == 0 {
				continue // it overflowed nothing, and climbs
			}
			proof = Likely
		}
		most := max(best.rate, carried(c, l))
		if most < (1+same)*one.rate || linear(l) && steady(one) {
			continue // one stream fills it, or each is held to the same
		}
		if bucketless(c, l) {
			out = append(out, c.smallBucket(l, one, l.wide()))
			continue
		}
		v := draft(ShallowBuffer, Likely, l, one, l.many(), l.find("half"), l.udp, l.find("bbr"))
		put(&v, "rate", one.rate, "bit/s")
		put(&v, "loss", f.ratio, "ratio")
		c.queueValues(&v, f)
		say(&v, "1 stream: %s, %s retransmitted", rate(one.rate), percent(one.ratio))
		if one.ratio == 0 && began > 0 {
			say(&v, "its start, before that was measured, lost %d segments, and it climbs since", began)
		}
		if m := l.many(); m != nil {
			say(&v, "changed: %s, %s retransmitted", streamsText(m), percent(m.ratio))
		}
		if half := l.find("half"); half != nil && half.usable() && half.rate < one.rate*(1-same) {
			say(&v, "changed: half the rate (%s): %s retransmitted", rate(half.rate), percent(half.ratio))
		}
		if u := udpLoss(l); u != nil {
			say(&v, "changed: one paced flow of UDP (%s): %d of %d lost: what is lost is congestion", rate(l.udp.rate), u.Lost, u.Sent)
		}
		if b := l.find("bbr"); b != nil && b.usable() {
			say(&v, "changed: 1 stream with bbr, which paces: %s", rate(b.rate))
		}
		v.Certainty = proof
		reach(&v, most)
		advise(&v, fmt.Sprintf("a deeper queue at the bottleneck: a bandwidth-delay product is %s", size(f.wire(most)/8*c.Idle.rtt)))
		advise(&v, c.on(l.dir.Sender(), []string{"senders that pace: sysctl -w net.core.default_qdisc=fq net.ipv4.tcp_congestion_control=bbr"}, []string{"netsh interface tcp set supplemental template=internet congestionprovider=bbr2"})...)
		advise(&v, fmt.Sprintf("several streams (%s)", c.again(l.dir, "-P 4")))
		v.Summary = fmt.Sprintf("%s: the bottleneck's buffer is too short for one stream: it overflows before TCP has filled the path (%s of at least %s).", c.way(l.dir), rate(one.rate), rate(most))
		out = append(out, v)
	}
	return out
}

// thin reports that the queue that several streams overflow is too short for one: CUBIC gives up three
// tenths of its window when it overflows (RFC 9438, β = 0.7), so with a queue of a fifth of the
// bandwidth-delay product one stream still has 0.7 × 1.2 = 84 % of the path at its worst. Each flow
// that overflowed it bounds it from above: by what small packets waited, else by TCP's longest round
// trip. told is false where no flow did.
func (c *Case) thin(l *leg) (thin, told bool) {
	least := math.Inf(1)
	for _, f := range append(l.plain(), l.scan()) {
		if f == nil || f.streams < 2 || !f.usable() || !lossMatters(f) {
			continue
		}
		if f.rise != nil {
			_, most, _ := f.queue(c)
			least = min(least, most)
		} else if f.rttMax > 0 && c.Idle.rtt > 0 {
			least = min(least, max(f.rttMax-c.Idle.rtt, 0))
		}
	}
	return least < thinQueue*c.Idle.rtt, !math.IsInf(least, 1)
}

// thinQueue is in round trips of the empty path.
const thinQueue = 0.15

// began counts the segments that a flow sent again before it was measured.
func (f *flow) began() (n int64) {
	for _, iv := range f.run.Intervals(f.dir.Sender()) {
		for i := range iv.Streams {
			if r := iv.Streams[i].Retransmits; iv.Omitted && iv.Streams[i].Sender && r != nil {
				n += *r
			}
		}
	}
	return n
}

// bucketless reports a policer whose bucket is too small for a burst to show: losses that vanish
// below a rate that nothing passes, and no packet waits.
func bucketless(c *Case, l *leg) bool {
	one, m, f := l.one(), l.wide(), l.lossy()
	if one == nil || m == nil || f == nil || !one.usable() || atTheEnds(c, l, one) || linear(l) {
		return false
	}
	if !l.lossesVanish(f) && !(f != one && l.spared(f)) {
		return false
	}
	return m.rate >= (1+same)*one.rate && delayless(c, one, false) && delayless(c, m, false) && max(l.best().rate, carried(c, l)) <= (1+same)*m.rate
}

// linear reports that the sum grew with the number of streams, and no faster: a limit of each flow
// gives no more than that.
func linear(l *leg) bool {
	one, m := l.one(), l.find("4")
	return one != nil && m != nil && m.usable() && m.rate >= 0.75*float64(m.streams)*one.rate && m.rate <= (1+moved)*float64(m.streams)*one.rate
}

// steady reports a flow that kept its rate: the rows of its last half vary by little.
func steady(f *flow) bool {
	rows := f.rates()
	var late []float64
	for i, r := range rows {
		if i >= len(rows)/2 {
			late = append(late, r.BPS)
		}
	}
	cov, ok := stats.CoV(late)
	return ok && cov < 0.1
}

// perFlow: each stream gets the same, and nothing at the ends explains it.
func perFlow(c *Case) (out []result.Verdict) {
	for _, l := range c.legs() {
		one, m := l.one(), l.find("4")
		if one == nil || m == nil || !one.usable() || !linear(l) || atTheEnds(c, l, one) || !steady(one) && !policed(c, l) {
			continue
		}
		if lossMatters(one) && !l.lossesVanish(one) && !ownQueue(c, one) {
			continue // losses may be what holds each of them
		}
		best := l.best()
		v := draft(PerFlow, Proven, l, one, m, l.find("16"))
		put(&v, "rate", one.rate, "bit/s")
		put(&v, "rate_l3", one.wire(one.rate), "bit/s")
		put(&v, "sum", best.rate, "bit/s")
		say(&v, "1 stream: %s, steady; neither window, buffer nor processor held it", rate(one.rate))
		say(&v, "changed: %s, %.1f times as much", streamsText(m), m.rate/one.rate)
		if s := l.find("16"); s != nil {
			say(&v, "changed: %s", streamsText(s))
		}
		if one.ratioKnown {
			say(&v, "1 stream: %s retransmitted", percent(one.ratio))
		}
		reach(&v, best.rate)
		advise(&v, "something on the way limits each flow (a policer or shaper per flow, a firewall's or cloud's flow limit): raise it there", fmt.Sprintf("several streams (%s)", c.again(l.dir, "-P 8")))
		v.Summary = fmt.Sprintf("%s: each flow is limited to %s on the way; several together reach %s.", c.way(l.dir), rate(one.rate), rate(best.rate))
		out = append(out, v)
	}
	return out
}

// asymmetric: the directions differ by more than 20 %, each as fast as the path lets it.
func asymmetric(c *Case) []result.Verdict {
	up, down := c.Up.best(), c.Down.best()
	if c.Up.many() == nil || c.Down.many() == nil {
		up, down = c.Up.one(), c.Down.one() // as many streams both ways
	}
	if up == nil || down == nil || !up.usable() || !down.usable() {
		return nil
	}
	fast, slow := up, down
	if down.rate > up.rate {
		fast, slow = down, up
	}
	if fast.rate < 1.2*slow.rate {
		return nil
	}
	for _, l := range c.legs() {
		if one := l.one(); one != nil && one.usable() && (cpuFirst(one) || (one.windowBound() || one.bufferBound()) && l.many() == nil) {
			return nil // that is the ends' doing
		}
	}
	v := draft(Asymmetric, Likely, nil, up, down)
	v.Note, v.Direction = true, "both"
	put(&v, "up", up.rate, "bit/s")
	put(&v, "down", down.rate, "bit/s")
	say(&v, "up %s, down %s: %.1f times", rate(up.rate), rate(down.rate), fast.rate/slow.rate)
	v.Summary = fmt.Sprintf("The path is not the same both ways: %s %s, %s %s.", c.way(result.Up), rate(up.rate), c.way(result.Down), rate(down.rate))
	advise(&v, "if the contract is symmetric: compare shapers, routes and duplex of the two directions")
	return []result.Verdict{v}
}

// bothWays: each way keeps its rate alone, not beside the other.
func bothWays(c *Case) []result.Verdict {
	up, down := c.Up.best(), c.Down.best()
	var u, d *flow
	for i := range c.Up.flows {
		if c.Up.flows[i].name == "both-4" {
			u = &c.Up.flows[i]
		}
	}
	for i := range c.Down.flows {
		if c.Down.flows[i].name == "both-4" {
			d = &c.Down.flows[i]
		}
	}
	if up == nil || down == nil || u == nil || d == nil || !u.usable() || !d.usable() || cpuFirst(u) || cpuFirst(d) || serverLimited(u) || serverLimited(up) || serverLimited(down) {
		return nil
	}
	alone, together := up.rate+down.rate, u.rate+d.rate
	if together >= 0.7*alone || conclude.SharedCores(u.run) && max(u.load[0], u.load[1], d.load[0], d.load[1]) > 0.6 {
		return nil
	}
	v := draft(BothWays, Proven, nil, u)
	v.Note, v.Direction = true, "both"
	put(&v, "alone", alone, "bit/s")
	put(&v, "together", together, "bit/s")
	say(&v, "alone: up %s, down %s", rate(up.rate), rate(down.rate))
	say(&v, "changed: both at once: up %s, down %s, %s of that", rate(u.rate), rate(d.rate), percent(together/alone))
	why := "one medium for both ways (Wi-Fi, half duplex), one member of a bond, or acknowledgements that wait behind the other way's data"
	v.Summary = fmt.Sprintf("Both ways at once carry %s of what they carry alone (%s of %s): %s.", percent(together/alone), rate(together), rate(alone), why)
	advise(&v, "look at duplex, at the bond's hash policy (layer3+4), and at the queues of both directions")
	return []result.Verdict{v}
}

// policed reports that a policer was found in a direction.
func policed(c *Case, l *leg) bool {
	for _, v := range police(c) {
		if v.Direction == string(l.dir) && v.Code == Policer {
			return true
		}
	}
	return false
}

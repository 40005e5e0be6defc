package diagnose

import (
	"fmt"

	"github.com/fullbore-net/fullbore/internal/method"
	"github.com/fullbore-net/fullbore/result"
)

// police: something lets a burst through and then holds a rate: by dropping (policer) or by
// queueing (shaper). The stages of M-POLICE decide; without them TCP's own run may tell.
func police(c *Case) (out []result.Verdict) {
	for _, l := range c.legs() {
		one := l.one()
		if one == nil || !one.usable() || cpuFirst(one) {
			continue
		}
		h := policeHistory(l)
		if a, ok := (method.Police{Direction: l.dir}).Answer(h, c.Idle.rtt); ok {
			if a.Verdict == method.Policer || a.Verdict == method.Shaper {
				out = append(out, c.policed(l, one, a, h))
			}
			if a.Verdict != method.Unclear {
				continue
			}
		}
		if v, ok := c.passive(l, one); ok {
			out = append(out, v)
		}
	}
	return out
}

func (c *Case) policed(l *leg, one *flow, a method.PoliceAnswer, h []method.Done) result.Verdict {
	v := draft(a.Verdict, Proven, l, one)
	payload := 1448.0
	for i, d := range h {
		v.Stages = append(v.Stages, d.Step.Name)
		payload = float64(d.Run.Test.BlockSize)
		p, _ := method.PhaseOf(d.Run, l.dir)
		word := "changed: UDP"
		if i == 0 {
			word = "UDP"
		}
		lost := "nothing lost"
		if p.FirstLoss >= 0 {
			lost = fmt.Sprintf("first loss after %s, then %s lost", ms(p.FirstLoss), percent(p.Loss))
		}
		say(&v, "%s at %s after %s of silence: %s received in the end, %s, delay rise %s", word, rate(p.Offered), d.Step.Pause, rate(p.Received), lost, ms(p.Rise))
	}
	header := 28.0
	if one.ipv6() {
		header = 48
	}
	put(&v, "rate", a.Rate, "bit/s")
	put(&v, "rate_l3", a.Rate*(payload+header)/payload, "bit/s")
	put(&v, "rtt", c.Idle.rtt, "s")
	say(&v, "1 stream of TCP: %s, %s retransmitted", rate(one.rate), percent(one.ratio))
	if a.Verdict == method.Policer {
		bucket := a.Bucket * (payload + header) / payload // whole packets, as policers count
		put(&v, "bucket", bucket, "bytes")
		v.Summary = fmt.Sprintf("%s: a policer drops what is above %s (bucket about %s): TCP gets %s.", c.way(l.dir), rate(a.Rate), size(bucket), rate(one.rate))
		if a.Rate > one.rate*(1+same) {
			reach(&v, a.Rate)
		}
		advise(&v,
			"shape to just below it before it drops: tc qdisc replace dev DEV root tbf rate "+roundedRate(0.97*a.Rate)+" burst 32k latency 50ms (or cake bandwidth …)",
			"have the contract's policer replaced by a shaper, or its bucket made larger (rate × RTT at least)")
		return v
	}
	put(&v, "queue_bytes", a.Queue, "bytes")
	put(&v, "queue", a.Queue*8/a.Rate, "s")
	v.Summary = fmt.Sprintf("%s: a shaper holds %s, with a queue of %s.", c.way(l.dir), rate(a.Rate), size(a.Queue))
	advise(&v, "the rate is somebody's setting: raise it where it is set (tc, the provider's profile, the cloud's instance class)")
	return v
}

// earlyTimes is how much faster the beginning of a flow must be than its plateau to be a
// bucket being emptied.
const earlyTimes = 1.3

// passive is M-POLICE's form on a TCP run: fast rows first, then a plateau. With losses and
// no queue it is a policer, with a queue a shaper.
func (c *Case) passive(l *leg, one *flow) (result.Verdict, bool) {
	rate1, _ := plateau(l)
	rows := one.rates()
	if rate1 <= 0 || len(rows) < 10 || atTheEnds(c, l, one) {
		return result.Verdict{}, false
	}
	bucket, peak := 0.0, 0.0
	for i, r := range rows {
		if i >= len(rows)/2 || r.BPS < earlyTimes*rate1 {
			if bucket > 0 {
				break
			}
			continue
		}
		bucket += (r.BPS - rate1) * (r.Stop - r.Start) / 8
		peak = max(peak, r.BPS)
	}
	if bucket < 64<<10 {
		bucket = 0
	}
	// A bottleneck with a short buffer lets several streams carry more than one; a policer
	// gives one and four the same, and neither has a queue.
	m := l.many()
	flat := m != nil && m.rate < (1+same)*one.rate && unqueued(c, m)
	code := ""
	switch {
	case vanishedAt(l) && unqueued(c, one) && (bucket > 0 || flat):
		code = Policer
	case bucket > 0 && queued(c, one) && steady(one):
		code = Shaper
	default:
		return result.Verdict{}, false
	}
	v := draft(code, Likely, l, one, l.find("half"))
	put(&v, "rate", rate1, "bit/s")
	put(&v, "rate_l3", one.wire(rate1), "bit/s")
	put(&v, "rtt", c.Idle.rtt, "s")
	burst := "a burst goes through"
	if bucket > 0 {
		put(&v, "bucket", bucket, "bytes")
		say(&v, "1 stream began with %s and settled at %s: about %s went through before", rate(peak), rate(rate1), size(bucket))
		burst = fmt.Sprintf("a burst of %s goes through", size(bucket))
	}
	if flat {
		say(&v, "changed: %s, %+.0f %%: one limit for all, and no queue under it", streamsText(m), 100*(m.rate/one.rate-1))
	}
	if code == Policer {
		say(&v, "losses vanish at half the rate, and no queue stands before them")
		v.Summary = fmt.Sprintf("%s: it looks like a policer: %s, then packets are dropped above %s, without delay.", c.way(l.dir), burst, rate(rate1))
		advise(&v, "shape to just below it: tc qdisc replace dev DEV root tbf rate "+roundedRate(0.97*rate1)+" burst 32k latency 50ms")
		return v, true
	}
	c.queueValues(&v, one)
	v.Summary = fmt.Sprintf("%s: a shaper holds %s after a burst of %s.", c.way(l.dir), rate(rate1), size(bucket))
	advise(&v, "the rate is somebody's setting: raise it where it is set (tc, the provider's profile, the cloud's instance class)")
	return v, true
}

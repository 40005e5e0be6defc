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

// arrivals are the rows of a flow by what its receiver's interface took in, where that counts
// no more than this flow.
func (f *flow) arrivals(rows []result.IntervalSum) ([]result.IntervalSum, bool) {
	if f.mss <= 0 {
		return nil, false
	}
	header := f.wire(f.mss) - f.mss + 14
	var out []result.IntervalSum
	nic, own := 0.0, 0.0
	for i := range f.run.Rows {
		r := &f.run.Rows[i]
		if r.End != f.dir.Receiver() || r.Partial || r.Host == nil || r.Host.NIC == nil || r.Stop <= r.Start {
			continue
		}
		bytes := float64(r.Host.NIC.RxBytes) - header*float64(r.Host.NIC.RxPackets)
		nic += bytes
		out = append(out, result.IntervalSum{Start: r.Start, Stop: r.Stop, BPS: bytes * 8 / (r.Stop - r.Start)})
	}
	for _, r := range rows {
		own += r.BPS * (r.Stop - r.Start) / 8
	}
	if len(out) != len(rows) || nic > 1.05*own || nic < 0.95*own {
		return nil, false
	}
	return out, true
}

// burst is how many bytes went through above the plateau before it began: a bucket that fills at
// the plateau's rate, and was full. Where only the program's reading is known, all counts from the
// beginning: bytes are conserved, so what is read in a lump when a hole is filled is missing
// before.
func burst(f *flow, rows []result.IntervalSum, plateau float64) (bytes, peak float64) {
	sum, fast := 0.0, false
	exact, known := f.arrivals(rows)
	if known {
		rows = exact
	}
	for i, r := range rows {
		if i >= len(rows)/2 {
			break
		}
		sum += (r.BPS - plateau) * (r.Stop - r.Start) / 8
		if known {
			sum = max(sum, 0) // a full bucket gets no fuller in slow start
		}
		fast = fast || r.BPS >= earlyTimes*plateau
		bytes, peak = max(bytes, sum), max(peak, r.BPS)
	}
	if !fast || bytes < leastBucket(plateau) {
		return 0, peak
	}
	return bytes, peak
}

// leastBucket is the smallest bucket that a stream's rows show, bytes: a reader that is late by a
// tenth of a row is none, and slow start is slow to empty one (M-POLICE: 64 KiB).
func leastBucket(plateau float64) float64 {
	return max(64<<10, plateau/8*rowLength.Seconds()/10)
}

// bounded says of a policer whose burst was not seen how large its bucket is at most.
func bounded(v *result.Verdict, plateau float64) {
	most := leastBucket(plateau)
	put(v, "bucket_most", most, "bytes")
	say(v, "no burst went through before the losses: the bucket is smaller than %s", size(most))
}

// smallBucket words a policer whose bucket is too small for a burst to show: packets are lost
// above a rate, and none is delayed.
func (c *Case) smallBucket(l *leg, one, m *flow) result.Verdict {
	v := draft(Policer, Likely, l, one, m, l.find("half"), l.udp)
	put(&v, "rate", m.rate, "bit/s")
	put(&v, "rate_l3", m.wire(m.rate), "bit/s")
	put(&v, "rtt", c.Idle.rtt, "s")
	say(&v, "1 stream: %s, %s retransmitted; small packets beside it waited %s (typical) to %s (p95)", rate(one.rate), percent(one.ratio), ms(one.rise.P50), ms(one.rise.P95))
	say(&v, "changed: %s, %s retransmitted, delay %s (p95): a line would have delayed before it dropped", streamsText(m), percent(m.ratio), ms(m.rise.P95))
	if half := l.find("half"); half != nil && half.usable() {
		say(&v, "changed: half the rate (%s): %s retransmitted: it was the rate", rate(half.rate), percent(half.ratio))
	}
	bounded(&v, m.rate)
	reach(&v, m.rate)
	advise(&v, "shape to just below it: tc qdisc replace dev DEV root tbf rate "+roundedRate(0.97*m.rate)+" burst 32k latency 50ms",
		"have the contract's policer replaced by a shaper, or its bucket made larger (rate × RTT at least)")
	v.Summary = fmt.Sprintf("%s: it looks like a policer with a small bucket (below %s): packets are dropped above about %s, without delay; one stream gets %s.", c.way(l.dir), size(leastBucket(m.rate)), rate(m.rate), rate(one.rate))
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
	bucket, peak := burst(one, rows, rate1)
	code := ""
	switch {
	case unqueued(c, one) && vanishedAt(l) && (bucket > 0 || l.flat()) && delayless(c, one, bucket > 0):
		code = Policer
	case bucket > 0 && queued(c, one) && steady(one):
		code = Shaper
	default:
		return result.Verdict{}, false
	}
	flat := l.flat()
	m := l.many()
	v := draft(code, Likely, l, one, l.find("half"))
	put(&v, "rate", rate1, "bit/s")
	put(&v, "rate_l3", one.wire(rate1), "bit/s")
	put(&v, "rtt", c.Idle.rtt, "s")
	through := "a burst goes through"
	if bucket > 0 {
		put(&v, "bucket", bucket, "bytes")
		say(&v, "1 stream began with %s and settled at %s: about %s went through before", rate(peak), rate(rate1), size(bucket))
		through = fmt.Sprintf("a burst of %s goes through", size(bucket))
	} else {
		bounded(&v, rate1)
		through = "hardly a burst goes through"
	}
	if flat {
		say(&v, "changed: %s, %+.0f %%: one limit for all, and no queue under it", streamsText(m), 100*(m.rate/one.rate-1))
	}
	if code == Policer {
		say(&v, "losses vanish at half the rate, and no queue stands before them")
		v.Summary = fmt.Sprintf("%s: it looks like a policer: %s, then packets are dropped above %s, without delay.", c.way(l.dir), through, rate(rate1))
		advise(&v, "shape to just below it: tc qdisc replace dev DEV root tbf rate "+roundedRate(0.97*rate1)+" burst 32k latency 50ms")
		return v, true
	}
	c.queueValues(&v, one)
	v.Summary = fmt.Sprintf("%s: a shaper holds %s after a burst of %s.", c.way(l.dir), rate(rate1), size(bucket))
	advise(&v, "the rate is somebody's setting: raise it where it is set (tc, the provider's profile, the cloud's instance class)")
	return v, true
}

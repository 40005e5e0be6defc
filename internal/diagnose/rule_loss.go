package diagnose

import (
	"fmt"
	"math"

	"github.com/fullbore-net/fullbore/internal/conclude"
	"github.com/fullbore-net/fullbore/internal/stats"
	"github.com/fullbore-net/fullbore/result"
)

// bursty is from which mean length of a run of lost packets on they are no longer lost one
// by one: chance alone makes 1/(1−p).
const bursty = 1.5

// loss: packets are lost at any rate: errors on the way, not congestion. The intervention is
// half the rate: what vanishes was congestion, what stays is errors. Where too few packets went
// to tell, a stream that loses without a queue and far below what several carry tells it.
func loss(c *Case) (out []result.Verdict) {
	for _, l := range c.legs() {
		f := l.lossy()
		if f == nil || queuedAtHalf(c, l.find("half")) {
			continue
		}
		stay := l.lossesStay(f)
		if filled(c, l) && !c.lossHolds(l, f) {
			// One stream keeps the queue full: what is lost besides holds nobody, but calls do not
			// like it.
			if n, _ := l.below(); stay && lower(n.lost, n.packets) >= audible {
				v := c.lossVerdict(l, f, stay)
				v.Note, v.Reach = true, nil
				out = append(out, v)
			}
			continue
		}
		if cpuFirst(f) || !stay && !belowItsShare(c, l) {
			continue
		}
		if one := l.one(); !stay && linear(l) && one != nil && ownQueue(c, one) {
			continue // each flow has a queue of its own that overflows
		}
		out = append(out, c.lossVerdict(l, f, stay))
	}
	return out
}

// inRuns reports that datagrams were lost one after another more often than chance has it: in runs of
// bursty on average, with several that followed a lost one, or in short ones that are many.
func inRuns(p *result.LossPeriods, u *result.UDPLoss) bool {
	long := p.MeanLength >= bursty && (p.Runs >= 3 || p.Runs > 0 && u.Lost-p.Runs >= 4)
	return long || p.Runs >= 10 && p.Conditional >= max(0.2, 4*u.Ratio)
}

// audible is the least ratio of errors that is worth a note where they hold nobody.
const audible = 5e-4

// ownQueue reports that TCP's packets wait and the small ones beside them do not: the queue is
// the flow's own.
func ownQueue(c *Case, f *flow) bool {
	return c.Idle.rtt > 0 && f.rise != nil && unqueued(c, f) && f.rttMean-c.Idle.rtt > max(0.002, c.Idle.rtt/4)+f.rise.P50
}

// queuedAtHalf: a queue stands even then, so what stays may still be congestion of others.
func queuedAtHalf(c *Case, half *flow) bool {
	if half == nil || half.rise == nil {
		return false
	}
	return half.rise.P50 > max(0.01, c.Idle.rtt/2)
}

func (c *Case) lossVerdict(l *leg, f *flow, stay bool) result.Verdict {
	half, u := l.find("half"), udpLoss(l)
	if l.datagramLosses().packets == 0 {
		u = nil // held to a rate of its own: it says nothing of errors
	}
	v := draft(LossRandom, Likely, l, f, half, l.udp)
	ratio, low, high := f.ratio, 0.0, 0.0
	say(&v, "%s; %s retransmitted (%d segments)", streamsText(f), percent(f.ratio), f.retransmits)
	switch {
	case stay && half != nil && half.ratioKnown:
		v.Certainty = Proven
		say(&v, "changed: paced at half the rate (%s): %s retransmitted: they stay, so they are errors", rate(half.rate), percent(half.ratio))
	case half != nil && half.ratioKnown:
		say(&v, "changed: paced at half the rate (%s): %s retransmitted, too few packets to tell", rate(half.rate), percent(half.ratio))
	}
	if b := l.best(); !stay && b != nil {
		say(&v, "it loses regularly while no queue stands, at a rate that is %s of what this direction carries: one that fills a bottleneck keeps 0.7 of it (RFC 9438)", percent(f.rate/b.rate))
	}
	if n, ok := l.below(); ok && n.lost > 0 {
		ratio = n.ratio()
		low, high, _ = stats.ClopperPearson(int64(n.lost), int64(n.packets), 0.95)
	}
	pattern, length := "", 1.0
	if u != nil && u.Sent > 0 && u.Lost > 0 {
		say(&v, "UDP at half of TCP's rate: %d of %d lost (%s; %s to %s at 95 %%)", u.Lost, u.Sent, percent(u.Ratio), percent(u.Low), percent(u.High))
		if p := periodsOf(l); p != nil {
			put(&v, "burst", p.MeanLength, "packets")
			put(&v, "longest", float64(p.Longest), "packets")
			pattern = fmt.Sprintf("in runs of %.1f, the longest %d", p.MeanLength, p.Longest)
			say(&v, "lost %s; after a lost one the next is lost with %s", pattern, percent(p.Conditional))
			if inRuns(p, u) {
				v.Code = LossBursty
			}
			if p.Runs > 0 {
				length = max(length, p.MeanLength)
			}
		}
	}
	if together := f.clustered(); v.Code == LossRandom && together >= 2*bursty && half != nil && half.streams == 1 {
		v.Code, length = LossBursty, max(length, together)
		put(&v, "burst", together, "packets")
		pattern = fmt.Sprintf("about %.0f together", together)
		rows, hit := f.hits()
		say(&v, "the %d lost segments came in %.0f of %.0f rows: chance would have spread them over %.0f", f.retransmits, hit, rows, rows*(1-math.Exp(-float64(f.retransmits)/rows)))
	}
	if half != nil && half.rise != nil && v.Code == LossBursty && half.rise.N >= 100 && half.rise.P99 >= max(0.001, 10*half.rise.P50) {
		say(&v, "at half the rate the typical small packet waited %s, one in a hundred %s: a queue may fill for moments with what others send", ms(half.rise.P50), ms(half.rise.P99))
	}
	low, high = spread(low, high, ratio, length)
	put(&v, "loss", ratio, "ratio")
	if high > 0 {
		put(&v, "loss_low", low, "ratio")
		put(&v, "loss_high", high, "ratio")
	}
	put(&v, "rate", f.rate, "bit/s")
	put(&v, "rtt", c.Idle.rtt, "s")
	if conclude.LossBased(f.cc) && f.mss > 0 && f.ratio > 0 && f.rttMean > 0 {
		say(&v, "with such loss %s reaches about %s (Mathis)", f.cc, rate(float64(f.streams)*conclude.Mathis(int64(f.mss), int64(f.rttMean*1e6), f.ratio)))
	}
	if b := l.best(); b != nil && b.rate > f.rate*(1+moved) {
		reach(&v, b.rate)
	}
	advise(&v,
		"look for errors where the path is copper, fibre or radio: ethtool -S DEV | grep -i -e err -e crc -e drop (Get-NetAdapterStatistics on Windows), at both ends and on every switch between",
		"exchange cable and optic of the hop whose counter rises while this runs: "+c.again(l.dir, fmt.Sprintf("-b %s -t 60", roundedRate(f.rate/2))))
	if v.Code == LossBursty {
		advise(&v, "where no counter of errors rises: look for what sends in bursts over the same hop, and for its queue's drops (tc -s qdisc; show interface … | include output drops)")
		v.Summary = fmt.Sprintf("%s: packets are lost in bursts (%s, %s) whatever the rate: errors or outages of a hop, or bursts of others into a short buffer, not this load; TCP gets %s.", c.way(l.dir), percent(ratio), pattern, rate(f.rate))
	} else {
		v.Summary = fmt.Sprintf("%s: %s of the packets are lost at random, whatever the rate: errors of a hop, not congestion; TCP gets %s.", c.way(l.dir), percent(ratio), rate(f.rate))
	}
	return v
}

// spread widens an interval to what runs of losses leave of it: with runs of geometric length m
// a count varies by the root of 2m−1 times more than if each packet were lost on its own.
func spread(low, high, ratio, length float64) (float64, float64) {
	if length <= 1 {
		return low, high
	}
	by := math.Sqrt(2*length - 1)
	return max(ratio-by*(ratio-low), 0), min(ratio+by*(high-ratio), 1)
}

// udpLoss is what the UDP stage of a direction says, nil without.
func udpLoss(l *leg) *result.UDPLoss {
	if l.udp == nil || l.udp.run == nil {
		return nil
	}
	return conclude.LossOf(l.udp.run, l.dir)
}

// networkLost is what of it was not the receiving host's.
func networkLost(u *result.UDPLoss) int64 {
	if u.Network != nil {
		return *u.Network
	}
	return u.Lost
}

func periodsOf(l *leg) *result.LossPeriods {
	for i := range l.udp.run.Streams {
		s := &l.udp.run.Streams[i]
		if s.Direction == l.dir && s.UDP != nil && s.UDP.Received != nil {
			return s.UDP.Received.Periods
		}
	}
	return nil
}

// controlUnfit: another congestion control does much better on this loss.
func controlUnfit(c *Case) (out []result.Verdict) {
	for _, l := range c.legs() {
		one, bbr := l.one(), l.find("bbr")
		if one == nil || bbr == nil || !one.usable() || !bbr.usable() || bbr.rate < 1.5*one.rate || !lossMatters(one) || !l.lossesStay(one) && !belowItsShare(c, l) {
			continue // without losses that stay it is its pacing that helps: a short buffer's sign
		}
		v := draft(ControlUnfit, Proven, l, one, bbr)
		v.Host = l.dir.Sender()
		put(&v, "rate", one.rate, "bit/s")
		put(&v, "rate_other", bbr.rate, "bit/s")
		say(&v, "1 stream with %s: %s, %s retransmitted", one.cc, rate(one.rate), percent(one.ratio))
		say(&v, "changed: 1 stream with bbr: %s, %.1f times as much", rate(bbr.rate), bbr.rate/one.rate)
		reach(&v, bbr.rate)
		advise(&v, c.on(v.Host, []string{"sysctl -w net.ipv4.tcp_congestion_control=bbr"}, []string{"netsh interface tcp set supplemental template=internet congestionprovider=bbr2"})...)
		v.Summary = fmt.Sprintf("%s: %s takes this path's loss for congestion: with bbr a stream reaches %s instead of %s.", c.way(l.dir), one.cc, rate(bbr.rate), rate(one.rate))
		out = append(out, v)
	}
	return out
}

// socketLoss: datagrams had arrived and the receiving program's socket was full.
func socketLoss(c *Case) (out []result.Verdict) {
	for _, l := range c.legs() {
		u := udpLoss(l)
		if u == nil || u.Socket == nil || *u.Socket < 3 || u.Ratio < 0.0005 {
			continue
		}
		v := draft(SocketLoss, Likely, l, l.udp)
		v.Note, v.Host = true, l.dir.Receiver()
		put(&v, "lost", float64(*u.Socket), "datagrams")
		say(&v, "of %d datagrams %d were dropped at the socket of %s, %d at most on the way", u.Sent, *u.Socket, c.host(v.Host), max(u.Lost-*u.Socket, 0))
		enlarge := "the program has to ask for a larger buffer (-w), and the system to allow it: sysctl -w net.core.rmem_max=16777216"
		if s := c.settings(v.Host); s != nil && s.CoreRead != nil {
			put(&v, "setting", float64(*s.CoreRead), "bytes")
			enlarge = fmt.Sprintf("net.core.rmem_max is %d now, and the program has to ask for more (-w): sysctl -w net.core.rmem_max=16777216", *s.CoreRead)
			if *s.CoreRead >= 16<<20 {
				enlarge = fmt.Sprintf("net.core.rmem_max is %d, which is enough: a program that asks for more of it (-w)", *s.CoreRead)
			}
		}
		advise(&v, c.on(v.Host, []string{enlarge}, []string{"a program that asks for a larger SO_RCVBUF"})...)
		v.Summary = fmt.Sprintf("%s: UDP is lost at the receiving program's socket on %s, not on the way.", c.way(l.dir), c.host(v.Host))
		out = append(out, v)
	}
	return out
}

// reordering: packets overtake each other so that TCP takes them for lost.
func reordering(c *Case) (out []result.Verdict) {
	for _, l := range c.legs() {
		ratio, extent, known := reordered(l)
		one := l.one()
		if !known || ratio < 0.01 {
			continue
		}
		v := draft(Reordering, Likely, l, one, l.udp)
		put(&v, "reordered", ratio, "ratio")
		put(&v, "extent", extent, "packets")
		say(&v, "UDP at half of TCP's rate: %s of the datagrams were overtaken, by up to %.0f", percent(ratio), extent)
		// It is a cause where it shows in TCP: retransmissions of what was not lost.
		hurts := one != nil && one.ratioKnown && one.ratio > 0.001 && one.reorder > 0
		if one != nil {
			say(&v, "TCP saw %d times that a packet was late, not lost; %s was retransmitted, %d of them for nothing", one.reorder, percent(one.ratio), one.dsack)
		}
		if b, m := l.best(), l.many(); hurts && b != nil && m != nil && m.rate > one.rate*(1+moved) {
			reach(&v, b.rate)
		}
		v.Note = !hurts
		advise(&v,
			"find the balancer that spreads the packets of one flow: it must go by address and port (bond: xmit_hash_policy layer3+4, mode 802.3ad, not balance-rr; ECMP: per flow, not per packet)",
			c.again(l.dir, "-u -b 10M -t 30"))
		v.Summary = fmt.Sprintf("%s: %s of the packets overtake others (by up to %.0f)", c.way(l.dir), percent(ratio), extent)
		if hurts {
			v.Summary += ", which TCP takes for loss: " + rate(one.rate)
		}
		v.Summary += "."
		out = append(out, v)
	}
	return out
}

func reordered(l *leg) (ratio, extent float64, known bool) {
	if l.udp == nil || l.udp.run == nil {
		return 0, 0, false
	}
	s := l.udp.run.Sum(l.dir)
	if s == nil || s.UDP == nil || s.UDP.Received == nil || s.UDP.Received.Packets == 0 {
		return 0, 0, false
	}
	r := s.UDP.Received
	return float64(r.Reordered) / float64(r.Packets), float64(r.MaxExtent), true
}

// roundedRate keeps two digits, for a command that reads well.
func roundedRate(bps float64) string {
	if bps <= 0 {
		return "1M"
	}
	unit := math.Pow(10, math.Floor(math.Log10(bps))-1)
	v := math.Round(bps/unit) * unit
	switch {
	case v >= 1e9:
		return fmt.Sprintf("%gG", v/1e9)
	case v >= 1e6:
		return fmt.Sprintf("%gM", v/1e6)
	}
	return fmt.Sprintf("%gK", v/1e3)
}

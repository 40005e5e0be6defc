package diagnose

import (
	"fmt"
	"math"

	"github.com/fullbore-net/fullbore/internal/conclude"
	"github.com/fullbore-net/fullbore/result"
)

// bursty is from which mean length of a run of lost packets on they are no longer lost one
// by one: chance alone makes 1/(1−p).
const bursty = 1.5

// loss: packets are lost at any rate: errors on the way, not congestion. The intervention is
// half the rate: what vanishes was congestion, what stays is errors.
func loss(c *Case) (out []result.Verdict) {
	for _, l := range c.legs() {
		f, half := l.lossy(), l.find("half")
		if f == nil || cpuFirst(f) {
			continue
		}
		u := udpLoss(l)
		switch {
		case half != nil && half.ratioKnown:
			if !stays(half, f) {
				continue
			}
		case u != nil && u.Lost >= 3 && networkLost(u) >= 3:
		default:
			continue
		}
		if queuedAtHalf(c, half) {
			continue // not even half the rate emptied the queue: it is no proof of errors
		}
		out = append(out, c.lossVerdict(l, f, half, u))
	}
	return out
}

// queuedAtHalf: a queue stands even then, so what stays may still be congestion of others.
func queuedAtHalf(c *Case, half *flow) bool {
	if half == nil || half.rise == nil {
		return false
	}
	return half.rise.P50 > max(0.01, c.Idle.rtt/2)
}

func (c *Case) lossVerdict(l *leg, f, half *flow, u *result.UDPLoss) result.Verdict {
	v := draft(LossRandom, Likely, l, f, half, l.udp)
	ratio, low, high := f.ratio, 0.0, 0.0
	say(&v, "%s; %s retransmitted (%d segments)", streamsText(f), percent(f.ratio), f.retransmits)
	if half != nil && half.ratioKnown {
		v.Certainty = Proven
		say(&v, "changed: paced at half the rate (%s): %s retransmitted: they stay, so they are errors", rate(half.rate), percent(half.ratio))
		ratio = half.ratio
	}
	pattern := ""
	if u != nil && u.Sent > 0 && u.Lost > 0 {
		ratio, low, high = u.Ratio, u.Low, u.High
		say(&v, "UDP at half of TCP's rate: %d of %d lost (%s; %s to %s at 95 %%)", u.Lost, u.Sent, percent(u.Ratio), percent(low), percent(high))
		if p := periodsOf(l); p != nil {
			put(&v, "burst", p.MeanLength, "packets")
			put(&v, "longest", float64(p.Longest), "packets")
			pattern = fmt.Sprintf("in runs of %.1f, the longest %d", p.MeanLength, p.Longest)
			say(&v, "lost %s; after a lost one the next is lost with %s", pattern, percent(p.Conditional))
			if p.Runs >= 3 && p.MeanLength >= bursty {
				v.Code = LossBursty
			}
		}
	}
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
		v.Summary = fmt.Sprintf("%s: packets are lost in bursts (%s, %s) whatever the rate: errors or outages of a hop, not congestion; TCP gets %s.", c.way(l.dir), percent(ratio), pattern, rate(f.rate))
	} else {
		v.Summary = fmt.Sprintf("%s: %s of the packets are lost at random, whatever the rate: errors of a hop, not congestion; TCP gets %s.", c.way(l.dir), percent(ratio), rate(f.rate))
	}
	return v
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
		if one == nil || bbr == nil || !one.usable() || !bbr.usable() || bbr.rate < 1.5*one.rate {
			continue
		}
		v := draft(ControlUnfit, Proven, l, one, bbr)
		v.Host = l.dir.Sender()
		put(&v, "rate", one.rate, "bit/s")
		put(&v, "rate_other", bbr.rate, "bit/s")
		say(&v, "1 stream with %s: %s, %s retransmitted", one.cc, rate(one.rate), percent(one.ratio))
		say(&v, "changed: 1 stream with bbr: %s, %.1f times as much", rate(bbr.rate), bbr.rate/one.rate)
		reach(&v, bbr.rate)
		advise(&v, c.on(v.Host, []string{"sysctl -w net.ipv4.tcp_congestion_control=bbr"}, []string{"Set-NetTCPSetting -SettingName InternetCustom -CongestionProvider BBR2"})...)
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
		advise(&v, c.on(v.Host, []string{"sysctl -w net.core.rmem_max=16777216, and a program that asks for it"}, []string{"a program that asks for a larger SO_RCVBUF"})...)
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

package diagnose

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fullbore-net/fullbore/internal/bdp"
	"github.com/fullbore-net/fullbore/internal/conclude"
	"github.com/fullbore-net/fullbore/internal/method"
	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/internal/units"
	"github.com/fullbore-net/fullbore/result"
)

// interventions are the stages for one direction: those that decide between what is still
// possible, and those that confirm.
func (p Planner) interventions(c *Case, l *leg) (decide, confirm []*method.Step) {
	one := l.one()
	if one == nil {
		return nil, nil
	}
	if stuck(one) {
		return p.unstick(l), nil
	}
	if !one.usable() {
		return nil, nil
	}
	four := p.streams(l, 4)
	_, _, cpu := one.cpuBound()
	switch {
	case cpu:
		decide = append(decide, p.copied(l), four, p.pinned(c, l))
	case one.windowBound() || one.bufferBound() || heldUnseen(c, l):
		decide = append(decide, four)
		decide = append(decide, p.grow(l)...)
		decide = append(decide, p.scan(c, l)...)
	case one.retransmits > 0 && lossMatters(one):
		decide = append(decide, p.half(l, one), four)
		decide = append(decide, p.afterHalf(c, l)...)
	default:
		decide = append(decide, four)
	}
	decide = append(decide, p.ports(c, l)...)
	decide = append(decide, p.classStage(l))
	confirm = append(confirm, p.grow(l)...)
	// Whoever is fast only with several streams may meet another limit there.
	if m := l.many(); m != nil && m.retransmits > 0 && lossMatters(m) {
		confirm = append(confirm, p.half(l, m))
		confirm = append(confirm, p.afterHalf(c, l)...)
	}
	confirm = append(confirm, p.datagrams(l), p.half(l, one), p.fragments(c, l), p.again(c, l))
	if p.Budget.Name == "deep" {
		confirm = append(confirm, p.copied(l))
	}
	return decide, confirm
}

// streams is a stage of several streams.
func (p Planner) streams(l *leg, n int) *method.Step {
	if n > p.most() {
		return nil
	}
	return p.stage(l.dir, fmt.Sprint(n), fmt.Sprintf("%d streams", n), "does the sum grow with the streams?", p.Budget.Short, func(pl *plan.Plan) { pl.Streams = n })
}

func (p Planner) most() int {
	if p.Most == 0 {
		return 64
	}
	return p.Most
}

// grow goes on to more streams while the sum grows.
func (p Planner) grow(l *leg) (out []*method.Step) {
	before := l.one()
	for _, n := range []int{4, 16, 64} {
		f := l.find(fmt.Sprint(n))
		if f == nil && n == scanStreams {
			f = l.find("ports") // it is the same
		}
		if f == nil {
			return append(out, p.streams(l, n))
		}
		if !f.usable() || f.rate < (1+moved)*before.rate {
			return out
		}
		before = f
	}
	return out
}

// copied repeats the single stream the way an application moves data: if that is slower,
// our own cost matters, so the processor is in the way.
func (p Planner) copied(l *leg) *method.Step {
	return p.stage(l.dir, "copy", "single stream, copied,", "does it get slower when each byte costs more?", p.Budget.Short, func(pl *plan.Plan) {
		pl.Send, pl.Receive, pl.RemoteDiscard = plan.SendCopy, plan.Copy, false
		pl.BlockSize = 16 << 10
	})
}

// half repeats a flow paced at half of its rate: retransmits that vanish were congestion,
// ones that stay are errors.
func (p Planner) half(l *leg, f *flow) *method.Step {
	each := int64(f.rate / 2 / float64(f.streams))
	if each < 64e3 {
		return nil
	}
	// As long as it takes for chance to show a few, if they stay: a slow stream sends few packets.
	length := p.Budget.Short
	if n := f.losses(); n.runs >= 1 && f.mss > 0 {
		events := n.expected(f.rate / 2 / 8 / f.mss) // a second
		length = min(max(length, seconds(2*enough/events)), 5*p.Budget.Short/2)
	}
	s := p.stage(l.dir, "half", "half the rate", "retransmits that vanish were congestion, ones that stay are errors", length, func(pl *plan.Plan) {
		pl.Streams, pl.Bitrate, pl.RateSet, pl.FQRate = f.streams, each, true, each*5/4
		pl.BlockSize = blockFor(each)
	})
	s.Volume = int64(f.rate / 16 * (length + p.Budget.Omit).Seconds())
	return s
}

// blockFor keeps a paced sender's writes small: a large block is a burst of its own.
func blockFor(bps int64) int {
	b := int(bps / 8 / 500)
	return min(max(b, 1<<10), 32<<10)
}

// datagrams is UDP at half of what TCP reached: loss with its owner and pattern.
func (p Planner) datagrams(l *leg) *method.Step {
	b := l.best()
	if b == nil || b.rate < 128e3 || udpDead(l.case_) {
		return nil
	}
	rate := int64(b.rate / 2)
	if one := l.one(); one != nil && one.usable() && linear(l) && (!lossMatters(one) || l.lossesVanish(one) || ownQueue(l.case_, one)) {
		rate = int64(one.rate / 2) // each flow seems to be held: one of UDP would be, too
	}
	s := p.stage(l.dir, "udp", "UDP at half of TCP's rate", "loss and delay that TCP hides", max(p.Budget.Short, 2*time.Second), func(pl *plan.Plan) {
		pl.Transport, pl.Bitrate, pl.RateSet, pl.Congestion, pl.Probe = plan.UDP, rate, true, "", nil
		pl.Send, pl.Receive, pl.RemoteDiscard, pl.Omit = plan.SendCopy, plan.Copy, false, 0
	})
	s.Volume = int64(float64(rate) / 8 * s.Plan.Duration.Seconds())
	return s
}

// afterHalf is what to ask when it is known whether loss depends on the rate.
func (p Planner) afterHalf(c *Case, l *leg) (out []*method.Step) {
	f := l.find("half")
	if f == nil || !f.ratioKnown {
		return nil
	}
	of := l.lossy()
	if of == nil {
		return nil
	}
	if l.lossesStay(of) || belowItsShare(c, l) {
		out = append(out, p.datagrams(l))
		if conclude.LossBased(of.cc) && slices.Contains(c.Facts.Available, "bbr") && p.Congestion != "bbr" {
			out = append(out, p.stage(l.dir, "bbr", "single stream with BBR", "a congestion control that does not take loss for congestion", p.Budget.Short, func(pl *plan.Plan) { pl.Congestion = "bbr" }))
		}
		return out
	}
	if p.Budget.Police > 0 && unqueued(c, of) {
		out = append(out, p.police(l)...)
	}
	return out
}

// police is M-POLICE in its short form, unless Deep. It does not send above what TCP was
// seen to reach in a row of 200 ms, except in a deep diagnosis.
func (p Planner) police(l *leg) (out []*method.Step) {
	rate, peak := plateau(l)
	if rate <= 0 || l.dir == result.Up && !l.case_.extended() {
		return nil // a plain iperf3 tells no rows of what arrived: when losses began is not known
	}
	m := method.Police{Direction: l.dir, Rate: rate, Factors: [2]float64{1.5, 2}, Silence: p.Budget.Quiet, Each: p.Budget.Police}
	if !p.Budget.Above && peak < 2*rate {
		m.Factors = [2]float64{0.8 * peak / rate, peak / rate}
		if m.Factors[0] < 1.1 {
			return nil
		}
	}
	s, more := m.Next(policeHistory(l))
	if !more {
		return nil
	}
	s.Plan.RemoteDiscard = false
	return []*method.Step{&s}
}

func policeHistory(l *leg) (out []method.Done) {
	for _, d := range l.case_.History {
		if strings.HasPrefix(d.Step.Name, string(l.dir)+"-police-") {
			out = append(out, d)
		}
	}
	return out
}

// scans is how many windows the short form of M-WSCAN tries.
const scans = 3

// scan is M-WSCAN in its short form: windows up to what the path needs, as far as this host
// may set them. One that is within a quarter of another tells nothing new.
func (p Planner) scan(c *Case, l *leg) []*method.Step {
	need, one := float64(neededWindow(c, l)), l.one()
	made := l.windows()
	if need == 0 || len(made) >= scans {
		return nil
	}
	// A first one that only doubles what there is fits under most limits.
	now := one.window
	if !one.windowBound() {
		now = one.onTheWay(c)
	}
	for _, w := range []float64{2 * now, need, 2 * need} {
		for _, most := range []*int64{c.Facts.CoreRead, c.Facts.CoreWrite} {
			if most != nil {
				w = min(w, float64(*most))
			}
		}
		w = min(w, plan.MaxWindow)
		if w < 4096 || w < 1.2*now || slices.ContainsFunc(made, func(f *flow) bool { return w < 1.25*float64(f.run.Test.Window) }) {
			continue
		}
		n := int64(w)
		return []*method.Step{p.stage(l.dir, fmt.Sprintf("window-%d", n), fmt.Sprintf("single stream, window %s,", units.ByteSize(n).IEC()), "does the rate follow the window?", p.Budget.Short, func(pl *plan.Plan) { pl.Window = n })}
	}
	return nil
}

// neededWindow is the bandwidth-delay product of the most that the direction is known to
// carry, bytes; 0 when the round trip is not known.
func neededWindow(c *Case, l *leg) int64 {
	b := l.best()
	if b == nil || c.Idle.rtt == 0 {
		return 0
	}
	rate := b.wire(b.rate)
	if one := l.one(); one != nil && one.usable() && b.rate < (1+moved)*one.rate {
		rate *= 2 // nothing faster was seen yet
	}
	return int64(bdp.Product(units.BitRate(rate), time.Duration(c.Idle.rtt*1e9)))
}

// unstick tries small segments where nothing comes through, and then looks for the largest
// that do.
func (p Planner) unstick(l *leg) (out []*method.Step) {
	low, high := 1000, 1448
	if f := l.find("mss-1000"); f != nil && !stuck(f) && f.usable() {
		for high-low > 16 {
			mid := (low + high) / 2
			g := l.find(fmt.Sprintf("mss-%d", mid))
			if g == nil {
				return []*method.Step{p.small(l, mid)}
			}
			if g.usable() && !stuck(g) {
				low = mid
			} else {
				high = mid
			}
		}
		return nil
	}
	return []*method.Step{p.small(l, low)}
}

func (p Planner) small(l *leg, mss int) *method.Step {
	return p.stage(l.dir, fmt.Sprintf("mss-%d", mss), fmt.Sprintf("segments of %d bytes", mss), "do smaller packets come through?", time.Second, func(pl *plan.Plan) {
		pl.MSS, pl.Omit = mss, 0
		pl.Bitrate, pl.RateSet, pl.BlockSize = 2e6, true, 4096
		pl.ReceiveTimeout = 4 * time.Second
	})
}

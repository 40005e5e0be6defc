package method

import (
	"math"
	"slices"
	"time"

	"github.com/fullbore-net/fullbore/internal/conclude"
	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/result"
)

// A service of several frame sizes is several streams at the same time, since a stream's datagrams have
// one size; its bursts are those of one.

// servicePart is a frame size of a service, bytes, and its share of the service's bytes.
type servicePart struct {
	frame int
	share float64
}

// parts are the sizes of a service, ascending: each is sent as often as the mix names it.
func (s Service) parts() []servicePart {
	if len(s.Mix) == 0 {
		return []servicePart{{s.Frame, 1}}
	}
	var out []servicePart
	whole := 0
	for _, frame := range slices.Sorted(slices.Values(s.Mix)) {
		whole += frame
		if n := len(out); n == 0 || out[n-1].frame != frame {
			out = append(out, servicePart{frame: frame})
		}
		out[len(out)-1].share += float64(frame)
	}
	for i := range out {
		out[i].share /= float64(whole)
	}
	return out
}

// Streams is how many streams the service is.
func (s Service) Streams() int { return len(s.parts()) }

// plans are the tests of a service at an offered rate, one a frame size; the first has the probes.
func (s Service) plans(offered float64, d time.Duration, burst int) (out []plan.Plan) {
	for i, part := range s.parts() {
		one := s
		one.Frame = part.frame
		p := one.testPlan(offered*part.share, d)
		p.Burst, p.Steady = burst, burst == 0 // what a late sender makes up in a burst would be the policer's
		if i > 0 {
			p.Probe = nil
		}
		out = append(out, p)
	}
	return out
}

// burstApart is by how much longer than a bucket needs to fill up bursts are apart: each finds it full.
const burstApart = 2

// burstSteps are the steps of CBS and EBS: bursts at the sender's line rate, so far apart that the
// service's buckets are full before each. Of a committed burst nothing may be lost; of one that is
// longer by EBS the committed part may not.
func (s Service) burstSteps(keep float64) (out []ActivationStep) {
	bytes := float64(s.Frame)
	committed := math.Floor(s.CBS / bytes)
	if committed >= 1 && s.CIR > 0 {
		offered := s.CIR / burstApart
		out = append(out, ActivationStep{Name: "cbs", Offered: offered, Least: offered * keep, Burst: int(committed)})
	}
	if whole := math.Floor((s.CBS + s.EBS) / bytes); s.EBS > 0 && s.EIR > 0 && whole > committed {
		fill := 8 * s.EBS / s.EIR
		if s.CIR > 0 {
			fill = max(fill, 8*s.CBS/s.CIR)
		}
		offered := whole * bytes * 8 / (burstApart * fill)
		out = append(out, ActivationStep{Name: "ebs", Offered: offered, Least: offered * committed / whole * keep, Burst: int(whole)})
	}
	return out
}

// burstStep reports that a step's figures are of bursts: their mean rate, delay and its variation are
// the tester's doing, and only what arrives of them counts.
func burstStep(name string) bool { return name == "cbs" || name == "ebs" }

// partFigures are what a run says of one frame size of a service; nil = not known.
type partFigures struct {
	sent, ir *float64          // bit/s of frames
	flr      *float64          // ratio of frames
	path     *float64          // the part of it that is surely not the receiving host's own
	own      int64             // frames that the receiving host's socket dropped at least
	frames   float64           // sent, per second
	fdv      *float64          // s: p99.9 less the least
	fdvMost  *float64          // the most less the least
	ifdv     *float64          // p99.9
	ftd      *result.Quantiles // one way; half of the round trip where clocks are not related
}

// figuresOf reads a direction of a run whose frames are as long as s says; half: its delay is half of the
// round trip.
func figuresOf(run *result.Run, s Service, d result.Direction, half bool) (f partFigures) {
	if run == nil {
		return f
	}
	sum := run.Sum(d)
	if sum == nil {
		return f
	}
	scale := float64(s.Frame) / float64(s.payload())
	if g, ok := Goodput(run, d); ok {
		ir := g * scale
		f.ir = &ir
	}
	if sum.Sender != nil && sum.Sender.Seconds() > 0 {
		sent := sum.Sender.Rate() * scale
		f.sent, f.frames = &sent, sent/float64(8*s.Frame)
	}
	switch {
	case sum.UDP != nil && sum.UDP.Loss != nil:
		v := sum.UDP.Loss.Ratio
		f.flr = &v
	case sum.Receiver != nil && sum.Receiver.Packets != nil && sum.Receiver.Lost != nil && *sum.Receiver.Packets > 0:
		v := float64(*sum.Receiver.Lost) / float64(*sum.Receiver.Packets)
		f.flr = &v
	}
	if l := conclude.LossOf(run, d); l != nil && l.Sent > 0 {
		own, path := ownDrops(run, d)
		v := float64(path) / float64(l.Sent)
		f.own, f.path = own, &v
	}
	if f.sent != nil && f.flr != nil { // over one time, the sender's: no edge of the other's is in it
		ir := *f.sent * (1 - *f.flr)
		f.ir = &ir
	}
	if sum.UDP != nil && sum.UDP.Received != nil {
		if q := sum.UDP.Received.PDV; q != nil {
			f.fdv, f.fdvMost = &q.P999, &q.Max
		}
		if q := sum.UDP.Received.IPDV; q != nil {
			f.ifdv = &q.P999
		}
	}
	if p := probesOf(run, "udp-echo"); p != nil && p.RoundTrip != nil {
		q := *p.RoundTrip
		if one := oneWay(p, d); one != nil && !half {
			q = *one
		} else {
			for _, v := range []*float64{&q.Min, &q.Mean, &q.P50, &q.P95, &q.P99, &q.P999, &q.Max} {
				*v /= 2
			}
		}
		f.ftd = &q
	}
	return f
}

// together makes one of the sizes' figures: rates add up, losses weigh by frames, of delays' variation the
// worst counts. What one of them does not tell is not known of the whole.
func together(all []partFigures) partFigures {
	f := all[0]
	rate := func(v *float64, _ partFigures) float64 { return *v }
	f.sent = added(all, func(x partFigures) *float64 { return x.sent }, rate)
	f.ir = added(all, func(x partFigures) *float64 { return x.ir }, rate)
	lost := added(all, func(x partFigures) *float64 { return x.flr }, func(v *float64, x partFigures) float64 { return *v * x.frames })
	path := added(all, func(x partFigures) *float64 { return x.path }, func(v *float64, x partFigures) float64 { return *v * x.frames })
	f.frames, f.own = 0, 0
	for _, x := range all {
		f.frames += x.frames
		f.own += x.own
	}
	if f.flr = nil; lost != nil && f.frames > 0 {
		ratio := *lost / f.frames
		f.flr = &ratio
	}
	if f.path = nil; path != nil && f.frames > 0 {
		ratio := *path / f.frames
		f.path = &ratio
	}
	f.fdv = worst(all, func(x partFigures) *float64 { return x.fdv })
	f.fdvMost = worst(all, func(x partFigures) *float64 { return x.fdvMost })
	f.ifdv = worst(all, func(x partFigures) *float64 { return x.ifdv })
	return f
}

// added adds up what weigh makes of a figure of each size; nil where one is not known.
func added(all []partFigures, get func(partFigures) *float64, weigh func(*float64, partFigures) float64) *float64 {
	sum := 0.0
	for _, x := range all {
		v := get(x)
		if v == nil {
			return nil
		}
		sum += weigh(v, x)
	}
	return &sum
}

// worst is the largest of a figure; nil where one is not known.
func worst(all []partFigures, get func(partFigures) *float64) (most *float64) {
	for _, x := range all {
		v := get(x)
		if v == nil {
			return nil
		}
		if most == nil || *v > *most {
			most = v
		}
	}
	return most
}

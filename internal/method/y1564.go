package method

import (
	"fmt"
	"time"

	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/result"
)

// Activation is a service activation test (M-1564; ITU-T Y.1564): each service alone in steps, then
// all together.
type Activation struct {
	Services []Service
	Step     time.Duration // of each step of phase 1
	Phase2   time.Duration
	Margin   float64 // of the policing step's upper bound, as a share of CIR + EIR
	MEF      bool    // MEF 48: mean delay and inter-frame variation in place of FTD and FDV
	GoOn     bool    // phase 1 of a service goes on after a failed step
	Short    bool    // the times are shortened
}

// Service is one of them. Rates are information rates: bit/s of Ethernet frames with check.
type Service struct {
	Name      string
	CIR, EIR  float64
	Frame     int // bytes, with Ethernet's header and check
	TOS       int
	Direction plan.Direction
	Policing  bool
	Limits    ServiceLimits
}

// ServiceLimits are what it must keep to; below zero = no limit.
type ServiceLimits struct {
	FLR, FTD, FDV, Avail float64
}

// frameOf is what an IPv4 datagram's frame has beside the payload: Ethernet 14, check 4, IP 20, UDP 8.
const frameOf = 46

// payload is the datagram's, bytes.
func (s Service) payload() int { return s.Frame - frameOf }

// l7 is an information rate as payload rate.
func (s Service) l7(ir float64) float64 { return ir * float64(s.payload()) / float64(s.Frame) }

// ActivationStep is a step of phase 1 with its bounds of the received rate (0 = none).
type ActivationStep struct {
	Name        string
	Offered     float64
	Least, Most float64
}

// severe is the frame loss ratio above which a second is severely errored, and severeRun how many
// in a row begin and end unavailability (Y.1563, Y.1564).
const (
	severe    = 0.5
	severeRun = 10
)

// Steps are those of phase 1 for a service: 25, 50, 75 and 100 % of CIR, CIR + EIR, and where it
// is policed above that.
func (a Activation) Steps(s Service) []ActivationStep {
	keep := 1 - max(s.Limits.FLR, 0)
	var out []ActivationStep
	for _, share := range []int{25, 50, 75, 100} {
		r := s.CIR * float64(share) / 100
		out = append(out, ActivationStep{Name: fmt.Sprintf("cir-%d", share), Offered: r, Least: r * keep})
	}
	if s.EIR > 0 {
		out = append(out, ActivationStep{Name: "eir", Offered: s.CIR + s.EIR, Least: s.CIR * keep, Most: s.CIR + s.EIR})
	}
	if s.Policing {
		out = append(out, ActivationStep{Name: "policing", Offered: PolicingRate(s.CIR, s.EIR), Least: s.CIR * keep, Most: (s.CIR + s.EIR) * (1 + a.Margin)})
	}
	return out
}

// PolicingRate is what the policing step offers: CIR + 1.25 EIR, or 1.25 CIR + EIR where EIR is less
// than a fifth of CIR.
func PolicingRate(cir, eir float64) float64 {
	if eir < 0.2*cir {
		return 1.25*cir + eir
	}
	return cir + 1.25*eir
}

// Availability counts seconds by their frame loss ratios: unavailability begins with ten severely
// errored seconds in a row, which are part of it, and ends with ten others in a row, which are not.
func Availability(flr []float64) (avail float64, severeSeconds int) {
	if len(flr) == 0 {
		return 1, 0
	}
	down := make([]bool, len(flr))
	unavailable, run := false, 0
	for i, v := range flr {
		bad := v > severe
		if bad {
			severeSeconds++
		}
		if bad != unavailable {
			run++
		} else {
			run = 0
		}
		if run == severeRun {
			unavailable = !unavailable
			for k := i - severeRun + 1; k <= i; k++ {
				down[k] = unavailable
			}
			run = 0
			continue
		}
		down[i] = unavailable
	}
	n := 0
	for _, d := range down {
		if !d {
			n++
		}
	}
	return float64(n) / float64(len(flr)), severeSeconds
}

// senderShort is how much of its rate a sender may leave away.
const senderShort = 0.02

// activateTolerance is what counts of a received rate may be off by.
const activateTolerance = 0.005

// JudgeActivation compares a step with its limits.
func JudgeActivation(t *result.ActivateStep, l ServiceLimits, mef bool) {
	t.Conformed, t.Why = result.Pass, []string{}
	fail := func(format string, args ...any) {
		t.Conformed = result.Fail
		t.Why = append(t.Why, fmt.Sprintf(format, args...))
	}
	unknown := func(what string) {
		if t.Conformed == result.Pass {
			t.Conformed = result.Inconclusive
		}
		t.Why = append(t.Why, what+" is not known")
	}
	over := func(what string, v *float64, limit, scale float64, unit string) {
		switch {
		case limit < 0:
		case v == nil:
			unknown(what)
		case *v > limit:
			fail("%s %.4g%s is above %.4g%s", what, *v*scale, unit, limit*scale, unit)
		}
	}
	switch {
	case t.IR == nil:
		unknown("the received rate")
	case t.Sent != nil && *t.Sent < (1-senderShort)*t.Offered:
		t.Conformed = result.Inconclusive
		t.Why = append(t.Why, fmt.Sprintf("the sender sent %.4g Mbit/s of %.4g: the host, not the service, was tested", *t.Sent/1e6, t.Offered/1e6))
	default:
		if t.LeastIR != nil && *t.IR < *t.LeastIR*(1-activateTolerance) {
			fail("received %.4g Mbit/s, at least %.4g are wanted", *t.IR/1e6, *t.LeastIR/1e6)
		}
		if t.MostIR != nil && *t.IR > *t.MostIR*(1+activateTolerance) {
			fail("received %.4g Mbit/s, at most %.4g should pass: it is not policed", *t.IR/1e6, *t.MostIR/1e6)
		}
	}
	if t.Step == "eir" || t.Step == "policing" {
		return // frames above CIR may be lost, and wait
	}
	over("FLR", t.FLR, l.FLR, 100, " %")
	over("FTD", t.FTD, l.FTD, 1000, " ms")
	if mef {
		over("IFDV", t.IFDV, l.FDV, 1000, " ms")
	} else {
		over("FDV", t.FDV, l.FDV, 1000, " ms")
	}
	if t.Phase == 2 && l.Avail >= 0 {
		switch {
		case t.Avail == nil:
			unknown("availability")
		case *t.Avail < l.Avail:
			fail("availability %.4f %% is below %.4f %%", 100**t.Avail, 100*l.Avail)
		}
	}
}

// testPlan is a UDP test of a service at an offered rate, with probes of its class beside it.
func (s Service) testPlan(offered float64, d time.Duration) plan.Plan {
	return plan.Plan{
		Transport: plan.UDP, Direction: s.Direction, Streams: 1, Duration: d, BlockSize: s.payload(), TOS: s.TOS,
		Bitrate: int64(s.l7(offered)), RateSet: true, Probe: &plan.Probe{Spacing: loadSpacing, Size: loadSize, Profile: "beside"},
	}
}

// Next implements Method.
func (a Activation) Next(history []Done) (Step, bool) {
	if len(history) > 0 && history[0].Run == nil {
		return Step{}, false
	}
	at := 0
	for _, s := range a.Services {
		for _, st := range a.Steps(s) {
			name := s.Name + "/" + st.Name
			if at < len(history) && history[at].Step.Name == name {
				at++
				if !a.GoOn && a.failed(&history[at-1], s, st) {
					break // phase 1 of this service is over
				}
				continue
			}
			return Step{
				Name: name, Title: fmt.Sprintf("%s: %s", s.Name, st.Name), Why: "does the service conform, alone?",
				Plan: s.testPlan(st.Offered, a.Step), Volume: int64(st.Offered / 8 * a.Step.Seconds()),
			}, true
		}
	}
	if at < len(history) {
		return Step{}, false
	}
	step := Step{Name: "together", Title: "all services together", Why: "do they conform beside each other?"}
	for i, s := range a.Services {
		p := s.testPlan(s.CIR, a.Phase2)
		step.Volume += int64(s.CIR / 8 * a.Phase2.Seconds())
		if i == 0 {
			step.Plan = p
		} else {
			step.With = append(step.With, p)
		}
	}
	return step, true
}

// failed reports that a step of phase 1 was not passed.
func (a Activation) failed(d *Done, s Service, st ActivationStep) bool {
	for _, t := range a.read(d.Run, s, st, 1) {
		if t.Conformed == result.Fail {
			return true
		}
	}
	return d.Run == nil
}

// Answer reads a history.
func (a Activation) Answer(history []Done) *result.Activation {
	out := &result.Activation{MEF: a.MEF, Short: a.Short, Software: true, Steps: []result.ActivateStep{}}
	for i := range history {
		d := &history[i]
		if d.Step.Name == "together" {
			for k, run := range append([]*result.Run{d.Run}, d.With...) {
				if k < len(a.Services) {
					s := a.Services[k]
					out.Steps = append(out.Steps, a.read(run, s, ActivationStep{Name: "together", Offered: s.CIR, Least: s.CIR * (1 - max(s.Limits.FLR, 0))}, 2)...)
				}
			}
			continue
		}
		for _, s := range a.Services {
			for _, st := range a.Steps(s) {
				if d.Step.Name == s.Name+"/"+st.Name {
					out.Steps = append(out.Steps, a.read(d.Run, s, st, 1)...)
				}
			}
		}
	}
	for i := range history {
		if run := history[i].Run; run != nil && out.Basis == "" {
			if p := probesOf(run, "udp-echo"); p != nil && p.RoundTrip != nil {
				out.Basis = "half-round-trip"
				if oneWay(p, result.Up) != nil {
					out.Basis = "one-way"
				}
			}
		}
	}
	return out
}

// oneWay is a direction's delay where the clocks are related well enough: the bound is less than a
// tenth of it. nil = it is not.
func oneWay(p *result.Probes, d result.Direction) *result.Quantiles {
	w := p.Up
	if d == result.Down {
		w = p.Down
	}
	if w == nil || w.Delay == nil || w.BoundS == nil || p.Clock == nil || !p.Clock.Causal || *w.BoundS > 0.1*w.Delay.Mean {
		return nil
	}
	return w.Delay
}

// read makes the figures of a run, one entry a direction.
func (a Activation) read(run *result.Run, s Service, st ActivationStep, phase int) (out []result.ActivateStep) {
	dirs := []result.Direction{result.Up, result.Down}
	if s.Direction != plan.Both {
		dirs = []result.Direction{result.Direction(s.Direction)}
	}
	for _, d := range dirs {
		t := result.ActivateStep{Phase: phase, Service: s.Name, Step: st.Name, Way: d, Offered: st.Offered}
		if st.Least > 0 {
			t.LeastIR = &st.Least
		}
		if st.Most > 0 {
			t.MostIR = &st.Most
		}
		if run != nil {
			a.measure(&t, run, s, d, phase)
		}
		JudgeActivation(&t, s.Limits, a.MEF)
		switch { // why nothing is known comes first
		case run == nil:
			t.Why = append([]string{"the test could not begin"}, t.Why...)
		case run.Err != nil:
			t.Why = append([]string{run.Err.Text}, t.Why...)
		}
		out = append(out, t)
	}
	return out
}

func (a Activation) measure(t *result.ActivateStep, run *result.Run, s Service, d result.Direction, phase int) {
	sum := run.Sum(d)
	if sum == nil {
		return
	}
	frames := float64(s.Frame) / float64(s.payload())
	if g, ok := Goodput(run, d); ok {
		ir := g * frames
		t.IR = &ir
	}
	if sum.Sender != nil && sum.Sender.Seconds() > 0 {
		sent := sum.Sender.Rate() * frames
		t.Sent = &sent
	}
	switch {
	case sum.UDP != nil && sum.UDP.Loss != nil:
		v := sum.UDP.Loss.Ratio
		t.FLR = &v
	case sum.Receiver != nil && sum.Receiver.Packets != nil && sum.Receiver.Lost != nil && *sum.Receiver.Packets > 0:
		v := float64(*sum.Receiver.Lost) / float64(*sum.Receiver.Packets)
		t.FLR = &v
	}
	if t.Sent != nil && t.FLR != nil { // over one time, the sender's: no edge of the other's is in it
		ir := *t.Sent * (1 - *t.FLR)
		t.IR = &ir
		if t.LeastIR != nil && t.Step != "eir" && t.Step != "policing" { // what the sender left away did not get lost
			least := *t.LeastIR * min(1, *t.Sent/t.Offered)
			t.LeastIR = &least
		}
	}
	if sum.UDP != nil && sum.UDP.Received != nil {
		if q := sum.UDP.Received.PDV; q != nil {
			t.FDV, t.FDVMax = &q.P999, &q.Max
		}
		if q := sum.UDP.Received.IPDV; q != nil {
			t.IFDV = &q.P999
		}
	}
	if p := probesOf(run, "udp-echo"); p != nil && p.RoundTrip != nil {
		q := *p.RoundTrip
		if one := oneWay(p, d); one != nil {
			q = *one
		} else {
			q.Min, q.Mean, q.Max = q.Min/2, q.Mean/2, q.Max/2
		}
		t.FTDMin, t.FTD, t.FTDMax = &q.Min, &q.Mean, &q.Max
	}
	if phase == 2 {
		if flr := secondLosses(run, d); len(flr) > 0 {
			avail, bad := Availability(flr)
			t.Avail, t.Severe = &avail, &bad
		}
	}
}

// secondLosses are the loss ratios of a direction's intervals, from what both ends counted in each;
// nil where one of them does not tell.
func secondLosses(run *result.Run, d result.Direction) (out []float64) {
	sent, got := map[int]int64{}, map[int]int64{}
	most := -1
	for i := range run.Rows {
		row := &run.Rows[i]
		if row.Omitted || row.Partial {
			continue
		}
		for _, s := range row.Sums {
			if s.Direction != d {
				continue
			}
			if s.Sender && row.End == d.Sender() {
				sent[row.Index] = s.Bytes
			}
			if !s.Sender && row.End == d.Receiver() {
				got[row.Index] = s.Bytes
				most = max(most, row.Index)
			}
		}
	}
	for i := 0; i <= most; i++ {
		if sent[i] <= 0 {
			continue
		}
		out = append(out, max(0, 1-float64(got[i])/float64(sent[i])))
	}
	return out
}

var _ Method = Activation{}

// All are the steps if every one is passed, and the payload that they move in both directions.
func (a Activation) All() (steps []Step, bytes int64) {
	a.GoOn = true
	var history []Done
	for {
		s, more := a.Next(history)
		if !more {
			return steps, bytes
		}
		steps = append(steps, s)
		for _, p := range append([]plan.Plan{s.Plan}, s.With...) {
			n := int64(float64(p.Bitrate) / 8 * p.Duration.Seconds())
			if p.Direction == plan.Both {
				n *= 2
			}
			bytes += n
		}
		history = append(history, Done{Step: s, Run: &result.Run{}})
	}
}

package method

import (
	"fmt"
	"slices"
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

// activationReader reads the figures of a test's runs.
type activationReader struct {
	Activation
	half bool // the delays are half round trips, of all steps
}

// Service is one of them. Rates are information rates: bit/s of Ethernet frames with check.
type Service struct {
	Name     string
	CIR, EIR float64
	Frame    int // bytes, with Ethernet's header and check
	// Mix are the frame sizes of an EMIX, each as often as it is sent; Frame then is their mean and
	// nothing is sent with it. Empty = all frames are Frame long.
	Mix []int
	// CBS and EBS are the burst sizes, bytes of frames; 0 = not tested.
	CBS, EBS  float64
	TOS       int
	Direction plan.Direction
	Policing  bool
	IPv6      bool // its datagrams are IPv6's, whose header is longer
	Limits    ServiceLimits
}

// ServiceLimits are what it must keep to; below zero = no limit. FD is MEF 48's frame delay, a percentile of
// what FTD is the mean of.
type ServiceLimits struct {
	FLR, FTD, FDV, Avail, FD float64
}

// What a datagram's frame has beside the payload: Ethernet 14, check 4, IP 20, UDP 8; IPv6's header is longer.
const (
	frameOf    = 46
	frameOfSix = frameOf + 20
)

// LeastFrame is the shortest frame of a service: its datagrams carry 44 bytes of figures.
func LeastFrame(ipv6 bool) int { return Service{IPv6: ipv6}.beside() + 44 }

// beside is what a frame has beside the payload, bytes.
func (s Service) beside() int {
	if s.IPv6 {
		return frameOfSix
	}
	return frameOf
}

// payload is the datagram's, bytes.
func (s Service) payload() int { return s.Frame - s.beside() }

// l7 is an information rate as payload rate.
func (s Service) l7(ir float64) float64 { return ir * float64(s.payload()) / float64(s.Frame) }

// ActivationStep is a step of phase 1 with its bounds of the received rate (0 = none).
type ActivationStep struct {
	Name        string
	Offered     float64
	Least, Most float64
	Burst       int // frames back to back; 0 = evenly paced
}

// severe is the frame loss ratio above which a second is severely errored, and severeRun how many
// in a row begin and end unavailability (Y.1563, Y.1564).
const (
	severe    = 0.5
	severeRun = 10
)

// Steps are those of phase 1 for a service: 25, 50, 75 and 100 % of CIR, CIR + EIR, where it is policed
// above that, and where burst sizes are given bursts.
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
	return append(out, s.burstSteps(keep)...)
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

// senderShort is how much of its rate a sender may leave away: what it does send leaves at the rate, and what must
// arrive is reckoned by what was sent.
const senderShort = 0.02

// HostTested reports that a step's sender left away so much that it says nothing of the service.
func HostTested(t *result.ActivateStep) bool {
	return t.Sent != nil && *t.Sent < (1-senderShort)*t.Offered && !burstStep(t.Step)
}

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
	case HostTested(t):
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
	if t.Step == "ebs" {
		return // the excess part may be lost
	}
	over("FLR", t.FLR, l.FLR, 100, " %")
	if burstStep(t.Step) {
		return
	}
	over("FTD", t.FTD, l.FTD, 1000, " ms")
	if mef {
		over("FD", t.FD, l.FD, 1000, " ms")
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
	if n := len(history); n > 0 && broke(&history[n-1]) {
		return Step{}, false // what keeps one test from its end keeps the next
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
			plans := s.plans(st.Offered, a.Step, st.Burst)
			return Step{
				Name: name, Title: fmt.Sprintf("%s: %s", s.Name, st.Name), Why: "does the service conform, alone?",
				Plan: plans[0], With: plans[1:], Volume: int64(st.Offered / 8 * a.Step.Seconds()),
			}, true
		}
	}
	if at < len(history) {
		return Step{}, false
	}
	step := Step{Name: "together", Title: "all services together", Why: "do they conform beside each other?"}
	var plans []plan.Plan
	for _, s := range a.Services {
		plans = append(plans, s.plans(s.CIR, a.Phase2, 0)...)
		step.Volume += int64(s.CIR / 8 * a.Phase2.Seconds())
	}
	step.Plan, step.With = plans[0], plans[1:]
	return step, true
}

// failed reports that a step of phase 1 was not passed.
func (a Activation) failed(d *Done, s Service, st ActivationStep) bool {
	for _, t := range (activationReader{Activation: a}).read(d.runs(), s, st, 1) {
		if t.Conformed == result.Fail {
			return true
		}
	}
	return d.Run == nil
}

// Answer reads a history.
func (a Activation) Answer(history []Done) *result.Activation {
	out := &result.Activation{MEF: a.MEF, Short: a.Short, Software: true, Steps: []result.ActivateStep{}, Basis: delayBasis(history)}
	reader := activationReader{a, out.Basis != "one-way"}
	for i := range history {
		d := &history[i]
		if d.Step.Name == "together" {
			runs := d.runs()
			for _, s := range a.Services {
				n := s.Streams()
				if n <= len(runs) {
					out.Steps = append(out.Steps, reader.read(runs[:n], s, ActivationStep{Name: "together", Offered: s.CIR, Least: s.CIR * (1 - max(s.Limits.FLR, 0))}, 2)...)
					runs = runs[n:]
				}
			}
			continue
		}
		for _, s := range a.Services {
			for _, st := range a.Steps(s) {
				if d.Step.Name == s.Name+"/"+st.Name {
					out.Steps = append(out.Steps, reader.read(d.runs(), s, st, 1)...)
				}
			}
		}
	}
	for i := range history {
		out.Floor = floorOf(out.Floor, &history[i])
	}
	return out
}

// delayBasis is what all delays of a history are: one-way where each run's clocks were related well
// enough, so that no step's figure is of another kind than the next one's; "" = nothing answered.
func delayBasis(history []Done) string {
	basis := ""
	for i := range history {
		for _, run := range history[i].runs() {
			if run == nil {
				continue
			}
			p := probesOf(run, "udp-echo")
			if p == nil || p.RoundTrip == nil {
				continue
			}
			for j := range run.Sums {
				if oneWay(p, run.Sums[j].Direction) == nil {
					return "half-round-trip"
				}
				basis = "one-way"
			}
		}
	}
	return basis
}

// floorOf is the worst of floor and how late the senders of a step's datagrams were, where they are to be evenly
// paced; nil = not known.
func floorOf(floor *float64, d *Done) *float64 {
	if d.Step.Plan.Burst > 0 {
		return floor
	}
	for _, run := range d.runs() {
		if run == nil {
			continue
		}
		for i := range run.Sums {
			u := run.Sums[i].UDP
			if u == nil || u.Sent == nil || u.Sent.Late == nil {
				continue
			}
			if late := u.Sent.Late.P999; floor == nil || late > *floor {
				floor = &late
			}
		}
	}
	return floor
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

// runs are all of a step's, of the plans in their order.
func (d *Done) runs() []*result.Run {
	out := append([]*result.Run{d.Run}, d.With...)
	for len(out) < 1+len(d.Step.With) {
		out = append(out, nil)
	}
	return out
}

// read makes the figures of a service's runs, one a frame size; an entry a direction.
func (a activationReader) read(runs []*result.Run, s Service, st ActivationStep, phase int) (out []result.ActivateStep) {
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
		f := a.measure(&t, runs, s, d)
		JudgeActivation(&t, s.Limits, a.MEF)
		a.excuse(&t, s, f)
		for _, run := range runs { // why nothing is known comes first, and once
			why := ""
			switch {
			case run == nil:
				why = "the test could not begin"
			case run.Err != nil:
				why = run.Err.Text
			}
			if why != "" && !slices.Contains(t.Why, why) {
				t.Why = append([]string{why}, t.Why...)
			}
		}
		out = append(out, t)
	}
	return out
}

// excuse takes back a failure that the receiving host's own drops may be the cause of: it stays one where what the
// path lost for sure is too much by itself.
func (a activationReader) excuse(t *result.ActivateStep, s Service, f partFigures) {
	if t.Conformed != result.Fail || f.own <= 0 || f.sent == nil || f.path == nil {
		return
	}
	sure := *t
	flr := *f.path
	ir := *f.sent * (1 - flr)
	sure.FLR, sure.IR = &flr, &ir
	if f.flr != nil && flr < *f.flr/2 { // its seconds are mostly the host's, too
		sure.Avail = nil
	}
	if JudgeActivation(&sure, s.Limits, a.MEF); sure.Conformed == result.Fail {
		return
	}
	t.Conformed = result.Inconclusive
	t.Why = append(t.Why, fmt.Sprintf("the receiving host's socket dropped %d frames at least: the host, not the service, may be the limit", f.own))
}

func (a activationReader) measure(t *result.ActivateStep, runs []*result.Run, s Service, d result.Direction) partFigures {
	var all []partFigures
	for i, part := range s.parts() {
		one := s
		one.Frame = part.frame
		if i < len(runs) {
			all = append(all, figuresOf(runs[i], one, d, a.half))
		} else {
			all = append(all, partFigures{})
		}
	}
	f := together(all)
	t.IR, t.Sent, t.FLR, t.FDV, t.FDVMax, t.IFDV = f.ir, f.sent, f.flr, f.fdv, f.fdvMost, f.ifdv
	if f.ftd != nil {
		t.FTDMin, t.FTD, t.FTDMax, t.FD = &f.ftd.Min, &f.ftd.Mean, &f.ftd.Max, &f.ftd.P999
	}
	if f.own > 0 {
		t.Dropped = &f.own
	}
	if t.Sent != nil && t.FLR != nil && t.LeastIR != nil && t.Step != "eir" && t.Step != "policing" { // what the sender left away did not get lost
		least := *t.LeastIR * min(1, *t.Sent/t.Offered)
		t.LeastIR = &least
	}
	if t.Phase == 2 {
		if flr := secondLosses(runs, s, d); len(flr) > 0 {
			avail, bad := Availability(flr)
			t.Avail, t.Severe = &avail, &bad
		}
	}
	return f
}

// secondLosses are the loss ratios of a direction's intervals, by the frames that both ends counted in each,
// of all sizes together; nil where one of them does not tell.
func secondLosses(runs []*result.Run, s Service, d result.Direction) (out []float64) {
	sent, got := map[int]float64{}, map[int]float64{}
	most := -1
	for i, part := range s.parts() {
		if i >= len(runs) || runs[i] == nil {
			return nil
		}
		payload := float64(part.frame - s.beside())
		told := false
		for k := range runs[i].Rows {
			row := &runs[i].Rows[k]
			if row.Omitted || row.Partial {
				continue
			}
			for _, x := range row.Sums {
				switch {
				case x.Direction != d:
				case x.Sender && row.End == d.Sender():
					sent[row.Index] += float64(x.Bytes) / payload
				case !x.Sender && row.End == d.Receiver():
					got[row.Index] += float64(x.Bytes) / payload
					most, told = max(most, row.Index), true
				}
			}
		}
		if !told {
			return nil
		}
	}
	for i := 0; i <= most; i++ {
		if sent[i] <= 0 {
			continue
		}
		out = append(out, max(0, 1-got[i]/sent[i]))
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

package method

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/result"
)

func repeatLoss(parts ...[2]float64) (out []float64) {
	for _, p := range parts {
		for range int(p[0]) {
			out = append(out, p[1])
		}
	}
	return out
}

func TestAvailability(t *testing.T) {
	for name, c := range map[string]struct {
		flr    []float64
		avail  float64
		severe int
	}{
		"nothing":                    {nil, 1, 0},
		"clean":                      {repeatLoss([2]float64{60, 0}), 1, 0},
		"half is not severe":         {repeatLoss([2]float64{60, 0.5}), 1, 0},
		"nine are not enough":        {repeatLoss([2]float64{40, 0}, [2]float64{9, 1}, [2]float64{51, 0}), 1, 9},
		"ten are unavailable":        {repeatLoss([2]float64{40, 0}, [2]float64{10, 1}, [2]float64{50, 0}), 0.9, 10},
		"nine good do not end it":    {repeatLoss([2]float64{40, 0}, [2]float64{10, 1}, [2]float64{9, 0}, [2]float64{1, 1}, [2]float64{40, 0}), 0.8, 11},
		"from the begin":             {repeatLoss([2]float64{20, 1}, [2]float64{80, 0}), 0.8, 20},
		"to the end":                 {repeatLoss([2]float64{80, 0}, [2]float64{15, 1}, [2]float64{5, 0}), 0.8, 15},
		"never":                      {repeatLoss([2]float64{30, 1}), 0, 30},
		"a good second starts again": {repeatLoss([2]float64{9, 1}, [2]float64{1, 0}, [2]float64{9, 1}, [2]float64{81, 0}), 1, 18},
	} {
		avail, severe := Availability(c.flr)
		if diff := avail - c.avail; diff > 1e-9 || diff < -1e-9 || severe != c.severe {
			t.Errorf("%s: %v, %d severe; want %v, %d", name, avail, severe, c.avail, c.severe)
		}
	}
}

func TestActivationSteps(t *testing.T) {
	a := Activation{Margin: 0.01}
	s := Service{CIR: 100e6, EIR: 40e6, Policing: true, Limits: ServiceLimits{FLR: 0.01}}
	want := []ActivationStep{
		{"cir-25", 25e6, 24.75e6, 0, 0},
		{"cir-50", 50e6, 49.5e6, 0, 0},
		{"cir-75", 75e6, 74.25e6, 0, 0},
		{"cir-100", 100e6, 99e6, 0, 0},
		{"eir", 140e6, 99e6, 140e6, 0},
		{"policing", 150e6, 99e6, 141.4e6, 0},
	}
	if diff := cmp.Diff(want, a.Steps(s)); diff != "" {
		t.Error(diff)
	}
	if PolicingRate(100e6, 10e6) != 135e6 || PolicingRate(100e6, 20e6) != 125e6 || PolicingRate(100e6, 0) != 125e6 {
		t.Error("policing rates")
	}
}

func TestActivationVerdicts(t *testing.T) {
	f := func(v float64) *float64 { return &v }
	l := ServiceLimits{FLR: 0.001, FTD: 0.010, FDV: 0.002, Avail: 0.99, FD: -1}
	good := func() result.ActivateStep {
		return result.ActivateStep{Phase: 2, Step: "together", IR: f(10e6), LeastIR: f(9.99e6), FLR: f(0), FTD: f(.005), FDV: f(.001), IFDV: f(.001), Avail: f(1)}
	}
	for name, c := range map[string]struct {
		change func(*result.ActivateStep)
		mef    bool
		want   string
	}{
		"good":                    {func(*result.ActivateStep) {}, false, result.Pass},
		"too slow":                {func(t *result.ActivateStep) { t.IR = f(9e6) }, false, result.Fail},
		"lost":                    {func(t *result.ActivateStep) { t.FLR = f(.002) }, false, result.Fail},
		"late":                    {func(t *result.ActivateStep) { t.FTD = f(.02) }, false, result.Fail},
		"varies":                  {func(t *result.ActivateStep) { t.FDV = f(.02) }, false, result.Fail},
		"varies, but MEF":         {func(t *result.ActivateStep) { t.FDV = f(.02) }, true, result.Pass},
		"changes, MEF":            {func(t *result.ActivateStep) { t.IFDV = f(.02) }, true, result.Fail},
		"slow percentile, MEF":    {func(t *result.ActivateStep) { t.FD = f(.02) }, true, result.Fail},
		"no delay known":          {func(t *result.ActivateStep) { t.FTD = nil }, false, result.Inconclusive},
		"not policed":             {func(t *result.ActivateStep) { t.Step, t.MostIR = "policing", f(9e6) }, false, result.Fail},
		"above CIR frames may go": {func(t *result.ActivateStep) { t.Step, t.FLR = "eir", f(.2) }, false, result.Pass},
		"not available":           {func(t *result.ActivateStep) { t.Avail = f(.9) }, false, result.Fail},
		"nothing arrived":         {func(t *result.ActivateStep) { t.IR = nil }, false, result.Inconclusive},
	} {
		s := good()
		c.change(&s)
		limits := l
		if c.mef && s.FD != nil {
			limits.FD = 0.010
		}
		JudgeActivation(&s, limits, c.mef)
		if s.Conformed != c.want || (c.want == result.Pass) != (len(s.Why) == 0) {
			t.Errorf("%s: %s %v", name, s.Conformed, s.Why)
		}
	}
}

func TestActivationOrder(t *testing.T) {
	a := Activation{Services: []Service{
		{Name: "a", CIR: 1e6, Frame: 1518, Direction: plan.Up, Limits: ServiceLimits{-1, -1, -1, -1, -1}},
		{Name: "b", CIR: 2e6, EIR: 1e6, Frame: 200, Direction: plan.Both, Policing: true, Limits: ServiceLimits{-1, -1, -1, -1, -1}},
	}, Step: 1e9, Phase2: 3e9}
	steps, bytes := a.All()
	var names []string
	for _, s := range steps {
		names = append(names, s.Name)
	}
	want := []string{"a/cir-25", "a/cir-50", "a/cir-75", "a/cir-100", "b/cir-25", "b/cir-50", "b/cir-75", "b/cir-100", "b/eir", "b/policing", "together"}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Error(diff)
	}
	if last := steps[len(steps)-1]; len(last.With) != 1 || last.With[0].BlockSize != 154 || bytes <= 0 {
		t.Errorf("%+v, %d bytes", last, bytes)
	}
}

// Bursts are so far apart that buckets are full, and what must arrive of them is the committed part.
func TestActivationBursts(t *testing.T) {
	s := Service{CIR: 8e6, EIR: 4e6, Frame: 1000, CBS: 30e3, EBS: 16e3, Limits: ServiceLimits{FLR: 0.01}}
	steps := Activation{}.Steps(s)
	want := []ActivationStep{
		{"cbs", 4e6, 3.96e6, 0, 30},
		// 46 frames each 64 ms, twice what EBS needs at EIR; of them 30 are committed
		{"ebs", 5.75e6, 5.75e6 * 30 / 46 * 0.99, 0, 46},
	}
	if diff := cmp.Diff(want, steps[5:]); diff != "" {
		t.Error(diff)
	}
	plans := s.plans(4e6, time.Second, 30)
	if len(plans) != 1 || plans[0].Burst != 30 || plans[0].BlockSize != 954 || plans[0].Bitrate != 3816000 {
		t.Errorf("%+v", plans)
	}
	f := func(v float64) *float64 { return &v }
	l := ServiceLimits{FLR: 0.001, FTD: 0.001, FDV: 0.001, Avail: -1, FD: -1}
	for name, c := range map[string]struct {
		step result.ActivateStep
		want string
	}{
		"taken, though late": {result.ActivateStep{Step: "cbs", Offered: 4e6, Sent: f(3e6), IR: f(3e6), LeastIR: f(2.97e6), FLR: f(0), FTD: f(.02), FDV: f(.02)}, result.Pass},
		"lost":               {result.ActivateStep{Step: "cbs", Offered: 4e6, Sent: f(4e6), IR: f(3.99e6), LeastIR: f(3.96e6), FLR: f(.0025)}, result.Fail},
		"excess lost":        {result.ActivateStep{Step: "ebs", Offered: 6e6, Sent: f(6e6), IR: f(4e6), LeastIR: f(3.9e6), FLR: f(.33)}, result.Pass},
		"committed lost":     {result.ActivateStep{Step: "ebs", Offered: 6e6, Sent: f(6e6), IR: f(3e6), LeastIR: f(3.9e6), FLR: f(.5)}, result.Fail},
	} {
		if JudgeActivation(&c.step, l, false); c.step.Conformed != c.want {
			t.Errorf("%s: %s %v", name, c.step.Conformed, c.step.Why)
		}
	}
}

// A mix is a stream a size, and its figures are those of all of them.
func TestActivationMix(t *testing.T) {
	s := Service{Name: "m", CIR: 10e6, Frame: 500, Mix: []int{128, 128, 512, 1024}, Direction: plan.Up, Limits: ServiceLimits{FLR: 0.01, FTD: -1, FDV: 0.1, Avail: 0.99, FD: -1}}
	a := Activation{Services: []Service{s, {Name: "n", CIR: 1e6, Frame: 1000, Direction: plan.Up, Limits: ServiceLimits{-1, -1, -1, -1, -1}}}, Step: time.Second, Phase2: 2 * time.Second}
	steps, _ := a.All()
	last := steps[len(steps)-1]
	if len(steps[3].With) != 2 || len(last.With) != 3 || steps[3].Plan.Probe == nil || steps[3].With[0].Probe != nil || last.With[2].Probe == nil {
		t.Fatalf("%d and %d tests beside the first", len(steps[3].With), len(last.With))
	}
	// Of 128 twice as many frames come as of the others.
	rates := map[int]float64{}
	for _, p := range append([]plan.Plan{last.Plan}, last.With[:2]...) {
		rates[p.BlockSize+frameOf] = float64(p.Bitrate) / float64(8*p.BlockSize)
	}
	if r := rates[128] / rates[512]; r < 1.99 || r > 2.01 || rates[512]/rates[1024] > 1.01 || rates[512]/rates[1024] < 0.99 {
		t.Errorf("frames a second: %v", rates)
	}
	run := func(p plan.Plan, lost float64, fdv float64) *result.Run {
		n := float64(p.Bitrate) * p.Duration.Seconds() / float64(8*p.BlockSize)
		sent, gone := int64(n), int64(n*lost)
		r := &result.Run{Test: result.Test{Transport: "udp"}, Sums: []result.Sum{{
			Direction: result.Up, Sender: &result.Total{End: p.Duration.Seconds(), Bytes: sent * int64(p.BlockSize)},
			UDP: &result.UDPStream{Loss: &result.UDPLoss{Sent: sent, Lost: gone, Ratio: lost}, Received: &result.UDPReceived{PDV: &result.Quantiles{P999: fdv, Max: 2 * fdv}}},
		}}}
		for i := range 2 {
			r.Rows = append(r.Rows,
				result.Interval{Index: i, End: result.Client, Sums: []result.IntervalSum{{Direction: result.Up, Sender: true, Bytes: sent * int64(p.BlockSize) / 2}}},
				result.Interval{Index: i, End: result.Server, Sums: []result.IntervalSum{{Direction: result.Up, Bytes: (sent - gone) * int64(p.BlockSize) / 2}}})
		}
		return r
	}
	history := []Done{{Step: last, Run: run(last.Plan, 0.02, 0.01), With: []*result.Run{run(last.With[0], 0, 0.2), run(last.With[1], 0, 0.03), run(last.With[2], 0, 0)}}}
	got := a.Answer(history).Steps
	if len(got) != 2 {
		t.Fatalf("%+v", got)
	}
	m := got[0]
	if m.FLR == nil || *m.FLR < 0.0099 || *m.FLR > 0.0101 { // half of the frames, 2 % of them
		t.Errorf("FLR %v", m.FLR)
	}
	if m.Sent == nil || *m.Sent < 9.98e6 || *m.Sent > 10.001e6 || m.IR == nil || *m.IR >= *m.Sent || *m.IR < 0.99*9.98e6 {
		t.Errorf("sent %v, received %v", *m.Sent, *m.IR)
	}
	if m.FDV == nil || *m.FDV != 0.2 || m.Avail == nil || *m.Avail != 1 || m.Conformed != result.Fail {
		t.Errorf("%+v", m)
	}
	if got[1].Service != "n" || got[1].Conformed != result.Pass {
		t.Errorf("%+v", got[1])
	}
	// A size that could not begin leaves the whole open.
	history[0].With[1] = nil
	if m := a.Answer(history).Steps[0]; m.IR != nil || m.Conformed == result.Pass || len(m.Why) == 0 {
		t.Errorf("without one of the sizes: %+v", m)
	}
}

// What the receiving host's socket dropped fails no service, unless what the path lost for sure does.
func TestActivationLeavesOutTheReceiversDrops(t *testing.T) {
	s := Service{Name: "a", CIR: 10e6, Frame: 1000, Direction: plan.Up, Limits: ServiceLimits{FLR: 0.001, FTD: -1, FDV: -1, Avail: -1, FD: -1}}
	a := Activation{Services: []Service{s}, Step: time.Second, Phase2: time.Second}
	step, _ := a.Next(nil)
	judge := func(socket, others int64, merged bool) result.ActivateStep {
		sent := int64(float64(step.Plan.Bitrate) * step.Plan.Duration.Seconds() / float64(8*step.Plan.BlockSize))
		lost := socket + others
		l := &result.UDPLoss{Sent: sent, Lost: lost, Ratio: float64(lost) / float64(sent), Socket: &socket}
		if merged {
			counted := max(socket/64, 1)
			l.Socket = &counted
		}
		run := &result.Run{Test: result.Test{Transport: "udp"}, Sums: []result.Sum{{
			Direction: result.Up, Sender: &result.Total{End: step.Plan.Duration.Seconds(), Bytes: sent * int64(step.Plan.BlockSize)},
			UDP: &result.UDPStream{Loss: l, Received: &result.UDPReceived{Coalesced: merged}},
		}}}
		return a.Answer([]Done{{Step: step, Run: run}}).Steps[0]
	}
	for name, c := range map[string]struct {
		socket, others int64
		merged         bool
		want           string
	}{
		"nothing lost":             {0, 0, false, result.Pass},
		"by the path":              {0, 20, false, result.Fail},
		"by the host":              {20, 0, false, result.Inconclusive},
		"by both":                  {20, 20, false, result.Fail},
		"merged":                   {20, 0, true, result.Inconclusive},
		"merged, more than it can": {10, 100, true, result.Fail},
	} {
		got := judge(c.socket, c.others, c.merged)
		if got.Conformed != c.want || (c.socket > 0) != (got.Dropped != nil) {
			t.Errorf("%s: %s %v, dropped %v", name, got.Conformed, got.Why, got.Dropped)
		}
	}
}

// All delays of an activation are of one kind: one step whose clocks were related less well makes all of
// them half round trips, each of their figures.
func TestActivationDelaysAreOfOneKind(t *testing.T) {
	s := Service{Name: "a", CIR: 10e6, Frame: 1000, Direction: plan.Up, Limits: ServiceLimits{FLR: -1, FTD: -1, FDV: -1, Avail: -1, FD: -1}}
	a := Activation{Services: []Service{s}, Step: time.Second, Phase2: time.Second}
	quantiles := func(base float64) *result.Quantiles {
		return &result.Quantiles{N: 100, Min: base, Mean: base + 0.001, P50: base + 0.001, P95: base + 0.002, P99: base + 0.003, P999: base + 0.004, Max: base + 0.005}
	}
	answer := func(bounds ...float64) *result.Activation {
		var history []Done
		for _, bound := range bounds {
			step, more := a.Next(history)
			if !more {
				t.Fatal("no further step")
			}
			rate := float64(step.Plan.Bitrate)
			history = append(history, Done{Step: step, Run: &result.Run{
				Test: result.Test{Transport: "udp"},
				Sums: []result.Sum{{Direction: result.Up, Goodput: &rate}},
				Probes: []result.Probes{{
					Kind: "udp-echo", RoundTrip: quantiles(0.030), Clock: &result.Clock{Causal: true},
					Up: &result.OneWay{Delay: quantiles(0.010), BoundS: &bound},
				}},
			}})
		}
		return a.Answer(history)
	}
	for name, c := range map[string]struct {
		bounds           []float64
		basis            string
		least, mean, p99 float64 // p99.9
	}{
		"related":  {[]float64{0.0001, 0.0001}, "one-way", 0.010, 0.011, 0.014},
		"one less": {[]float64{0.0001, 0.002}, "half-round-trip", 0.015, 0.0155, 0.017},
		"none":     {[]float64{0.002, 0.002}, "half-round-trip", 0.015, 0.0155, 0.017},
	} {
		got := answer(c.bounds...)
		if got.Basis != c.basis {
			t.Errorf("%s: %s, want %s", name, got.Basis, c.basis)
		}
		for _, step := range got.Steps {
			if math.Abs(*step.FTDMin-c.least) > 1e-9 || math.Abs(*step.FTD-c.mean) > 1e-9 || math.Abs(*step.FD-c.p99) > 1e-9 {
				t.Errorf("%s, %s: least %v, mean %v, p99.9 %v", name, step.Step, *step.FTDMin, *step.FTD, *step.FD)
			}
		}
	}
	if got := (Activation{}).Answer(nil); got.Basis != "" {
		t.Errorf("nothing: %q", got.Basis)
	}
}

// Over IPv6 a frame of the same size has room for less, and its rate is that of frames all the same.
func TestActivationOverIPv6(t *testing.T) {
	s := Service{Name: "a", CIR: 10e6, Frame: 1000, IPv6: true, Direction: plan.Up}
	step, _ := Activation{Services: []Service{s}, Step: time.Second}.Next(nil)
	p := step.Plan
	if frames := float64(p.Bitrate) / float64(8*p.BlockSize); p.BlockSize != 934 || frames < 312.4 || frames > 312.6 {
		t.Errorf("datagrams of %d, %v a second", p.BlockSize, frames)
	}
	if LeastFrame(false) != 90 || LeastFrame(true) != 110 {
		t.Errorf("least frames %d and %d", LeastFrame(false), LeastFrame(true))
	}
}

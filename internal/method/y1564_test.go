package method

import (
	"testing"

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
		{"cir-25", 25e6, 24.75e6, 0},
		{"cir-50", 50e6, 49.5e6, 0},
		{"cir-75", 75e6, 74.25e6, 0},
		{"cir-100", 100e6, 99e6, 0},
		{"eir", 140e6, 99e6, 140e6},
		{"policing", 150e6, 99e6, 141.4e6},
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
	l := ServiceLimits{FLR: 0.001, FTD: 0.010, FDV: 0.002, Avail: 0.99}
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
		"no delay known":          {func(t *result.ActivateStep) { t.FTD = nil }, false, result.Inconclusive},
		"not policed":             {func(t *result.ActivateStep) { t.Step, t.MostIR = "policing", f(9e6) }, false, result.Fail},
		"above CIR frames may go": {func(t *result.ActivateStep) { t.Step, t.FLR = "eir", f(.2) }, false, result.Pass},
		"not available":           {func(t *result.ActivateStep) { t.Avail = f(.9) }, false, result.Fail},
		"nothing arrived":         {func(t *result.ActivateStep) { t.IR = nil }, false, result.Inconclusive},
	} {
		s := good()
		c.change(&s)
		JudgeActivation(&s, l, c.mef)
		if s.Conformed != c.want || (c.want == result.Pass) != (len(s.Why) == 0) {
			t.Errorf("%s: %s %v", name, s.Conformed, s.Why)
		}
	}
}

func TestActivationOrder(t *testing.T) {
	a := Activation{Services: []Service{
		{Name: "a", CIR: 1e6, Frame: 1518, Direction: plan.Up, Limits: ServiceLimits{-1, -1, -1, -1}},
		{Name: "b", CIR: 2e6, EIR: 1e6, Frame: 200, Direction: plan.Both, Policing: true, Limits: ServiceLimits{-1, -1, -1, -1}},
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

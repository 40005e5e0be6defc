package activation

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fullbore-net/fullbore/internal/method"
	"github.com/fullbore-net/fullbore/internal/plan"
)

func TestParse(t *testing.T) {
	a, err := Parse("s.yaml", []byte(`profile: mef
step: 2s
phase2: 2h
margin: 5%
services:
  - name: voice
    cir: 2M
    eir: 500k
    frame: 200
    dscp: ef
    policing: true
    direction: up
    limits: {flr: 0.1%, ftd: 10ms, fdv: 2ms, avail: 0.9999}
  - {name: bulk, cir: 20M}
`))
	if err != nil {
		t.Fatal(err)
	}
	want := method.Activation{MEF: true, Step: 2 * time.Second, Phase2: 2 * time.Hour, Margin: 0.05, Services: []method.Service{
		{Name: "voice", CIR: 2e6, EIR: 5e5, Frame: 200, TOS: 184, Policing: true, Direction: plan.Up, Limits: method.ServiceLimits{FLR: 0.001, FTD: 0.010, FDV: 0.002, Avail: 0.9999}},
		{Name: "bulk", CIR: 20e6, Frame: 1518, Direction: plan.Both, Limits: method.ServiceLimits{FLR: -1, FTD: -1, FDV: -1, Avail: -1}},
	}}
	if diff := cmp.Diff(want, a); diff != "" {
		t.Error(diff)
	}
}

// Each fault has its line and its word.
func TestFaults(t *testing.T) {
	for name, c := range map[string][2]string{
		"no services":   {"step: 1s\n", "f:1: services: there is none"},
		"unknown key":   {"services:\n  - name: a\n    cri: 1M\n", "f:3: services[0].cri: unknown key; there are: cir, "},
		"what it meant": {"services:\n  - name: a\n    cri: 1M\n", "; did you mean cir?"},
		"key twice":     {"step: 1s\nstep: 2s\nservices: [{name: a, cir: 1M}]\n", "f:2: step: given twice"},
		"no truth":      {"go_on: yes\nservices: [{name: a, cir: 1M}]\n", "f:1: go_on: \"yes\" is neither true nor false"},
		"no number":     {"services:\n  - name: a\n    cir: 1M\n    frame: big\n", "f:4: services[0].frame: \"big\" is not a whole number"},
		"alias":         {"step: &a 1s\nphase2: *a\nservices: [{name: a, cir: 1M}]\n", "f:1: step: want one value, found an anchor"},
		"no YAML":       {"services: [", "f:1: "},
		"profile":       {"profile: mfe\nservices: [{name: a, cir: 1M}]\n", "f:1: profile \"mfe\": there are y1564 and mef"},
		"margin":        {"services: [{name: a, cir: 1M}]\nmargin: 2\n", "f:2: margin \"2\": a share"},
		"phase 2":       {"services: [{name: a, cir: 1M}]\nphase2: 25h\n", "f:2: phase2 \"25h\""},
		"twice":         {"services:\n  - {name: a, cir: 1M}\n  - {name: a, cir: 1M}\n", "f:3: name \"a\": there is another"},
		"no rate":       {"services:\n  - name: a\n", "f:2: cir is missing"},
		"DSCP":          {"services:\n  - name: a\n    cir: 1M\n    dscp: af44\n", "f:4: dscp \"af44\""},
		"direction":     {"services:\n  - name: a\n    cir: 1M\n    direction: left\n", "f:4: direction \"left\""},
		"frame":         {"services:\n  - name: a\n    cir: 1M\n    frame: 64\n", "f:4: frame 64"},
		"limit":         {"services:\n  - name: a\n    cir: 1M\n    limits:\n      ftd: 10\n", "f:5: ftd \"10\""},
		"negative rate": {"services:\n  - name: a\n    cir: 1M\n    eir: -1M\n", "f:4: eir \"-1M\""},
	} {
		_, err := Parse("f", []byte(c[0]))
		if err == nil || !strings.Contains(err.Error(), c[1]) {
			t.Errorf("%s: %v; want %q", name, err, c[1])
		}
	}
}

// Whatever the file holds, it is told, and nothing falls over.
func FuzzParse(f *testing.F) {
	f.Add([]byte("services: [{name: a, cir: 1M}]\n"))
	f.Add([]byte("step: 1s\nservices:\n  - limits: {flr: x}\n"))
	f.Add([]byte("- 1\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		a, err := Parse("f", data)
		if err == nil && len(a.Services) == 0 {
			t.Error("no services, and no fault")
		}
	})
}

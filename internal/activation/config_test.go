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
    limits: {flr: 0.1%, ftd: 10ms, fd: 15ms, fdv: 2ms, avail: 0.9999}
  - {name: bulk, cir: 20M}
  - {name: mixed, cir: 5M, emix: gbbe}
  - {name: bursty, cir: 8M, eir: 4M, frame: 1000, cbs: 30kB, ebs: 16K}
`))
	if err != nil {
		t.Fatal(err)
	}
	want := method.Activation{MEF: true, Step: 2 * time.Second, Phase2: 2 * time.Hour, Margin: 0.05, Services: []method.Service{
		{Name: "voice", CIR: 2e6, EIR: 5e5, Frame: 200, TOS: 184, Policing: true, Direction: plan.Up, Limits: method.ServiceLimits{FLR: 0.001, FTD: 0.010, FDV: 0.002, Avail: 0.9999, FD: 0.015}},
		{Name: "bulk", CIR: 20e6, Frame: 1518, Direction: plan.Both, Limits: method.ServiceLimits{FLR: -1, FTD: -1, FDV: -1, Avail: -1, FD: -1}},
		{Name: "mixed", CIR: 5e6, Frame: 699, Mix: []int{128, 128, 1024, 1518}, Direction: plan.Both, Limits: method.ServiceLimits{FLR: -1, FTD: -1, FDV: -1, Avail: -1, FD: -1}},
		{Name: "bursty", CIR: 8e6, EIR: 4e6, Frame: 1000, CBS: 30000, EBS: 16384, Direction: plan.Both, Limits: method.ServiceLimits{FLR: -1, FTD: -1, FDV: -1, Avail: -1, FD: -1}},
	}}
	if diff := cmp.Diff(want, a); diff != "" {
		t.Error(diff)
	}
}

// Each fault has its line and its word.
func TestFaults(t *testing.T) {
	for name, c := range map[string][2]string{
		"no services":      {"step: 1s\n", "f:1: services: there is none"},
		"unknown key":      {"services:\n  - name: a\n    cri: 1M\n", "f:3: services[0].cri: unknown key; there are: cbs, cir, "},
		"what it meant":    {"services:\n  - name: a\n    cri: 1M\n", "; did you mean cir?"},
		"key twice":        {"step: 1s\nstep: 2s\nservices: [{name: a, cir: 1M}]\n", "f:2: step: given twice"},
		"no truth":         {"go_on: yes\nservices: [{name: a, cir: 1M}]\n", "f:1: go_on: \"yes\" is neither true nor false"},
		"no number":        {"services:\n  - name: a\n    cir: 1M\n    frame: big\n", "f:4: services[0].frame: \"big\" is not a whole number"},
		"alias":            {"step: &a 1s\nphase2: *a\nservices: [{name: a, cir: 1M}]\n", "f:1: step: want one value, found an anchor"},
		"no YAML":          {"services: [", "f:1: "},
		"profile":          {"profile: mfe\nservices: [{name: a, cir: 1M}]\n", "f:1: profile \"mfe\": there are y1564 and mef"},
		"margin":           {"services: [{name: a, cir: 1M}]\nmargin: 2\n", "f:2: margin \"2\": a share"},
		"phase 2":          {"services: [{name: a, cir: 1M}]\nphase2: 25h\n", "f:2: phase2 \"25h\""},
		"twice":            {"services:\n  - {name: a, cir: 1M}\n  - {name: a, cir: 1M}\n", "f:3: name \"a\": there is another"},
		"no rate":          {"services:\n  - name: a\n", "f:2: cir is missing"},
		"DSCP":             {"services:\n  - name: a\n    cir: 1M\n    dscp: af44\n", "f:4: dscp \"af44\""},
		"direction":        {"services:\n  - name: a\n    cir: 1M\n    direction: left\n", "f:4: direction \"left\""},
		"frame":            {"services:\n  - name: a\n    cir: 1M\n    frame: 64\n", "f:4: frame 64"},
		"limit":            {"services:\n  - name: a\n    cir: 1M\n    limits:\n      ftd: 10\n", "f:5: ftd \"10\""},
		"FD without MEF":   {"services:\n  - name: a\n    cir: 1M\n    limits: {fd: 10ms}\n", "f:4: fd \"10ms\": frame delay as a percentile is of profile mef"},
		"EMIX and frame":   {"services:\n  - name: a\n    cir: 1M\n    frame: 200\n    emix: bg\n", "f:5: emix \"bg\": frame says"},
		"EMIX letter":      {"services:\n  - name: a\n    cir: 1M\n    emix: bz\n", "f:4: emix \"bz\": 'z': there are a to g"},
		"EMIX too small":   {"services:\n  - name: a\n    cir: 1M\n    emix: ab\n", "f:4: emix \"ab\": frames of 64: must be 90"},
		"EMIX no size":     {"services:\n  - name: a\n    cir: 1M\n    emix: 128 x9\n", "f:4: emix \"128 x9\": \"x9\" is no size"},
		"EMIX of nothing":  {"services:\n  - name: a\n    cir: 1M\n    emix: \",\"\n", "f:4: emix \",\": there is no size"},
		"burst no size":    {"services:\n  - name: a\n    cir: 1M\n    cbs: 3X\n", "f:4: cbs \"3X\": a size such as"},
		"burst of a mix":   {"services:\n  - name: a\n    cir: 1M\n    emix: bg\n    cbs: 30kB\n", "f:5: cbs: a burst has frames of one size"},
		"burst too small":  {"services:\n  - name: a\n    cir: 1M\n    cbs: 1000\n", "f:4: cbs \"1000\": less than a frame"},
		"burst too long":   {"services:\n  - name: a\n    cir: 1M\n    cbs: 2MB\n", "f:4: cbs: a burst of 1317 frames"},
		"excess burst":     {"services:\n  - name: a\n    cir: 1M\n    ebs: 30kB\n", "f:4: ebs without eir"},
		"too many streams": {"services:\n" + strings.Repeat("  - {name: a, cir: 1M, emix: bcdefg}\n", 6), "services: with each size of a mix a stream of its own, 36 streams"},
		"negative rate":    {"services:\n  - name: a\n    cir: 1M\n    eir: -1M\n", "f:4: eir \"-1M\""},
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

package main

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestMedian(t *testing.T) {
	for _, c := range []struct {
		in   []float64
		want float64
	}{{[]float64{3}, 3}, {[]float64{4, 1}, 2.5}, {[]float64{9, 1, 5}, 5}} {
		if got := median(c.in); got != c.want {
			t.Errorf("median(%v) = %v, want %v", c.in, got, c.want)
		}
	}
}

func TestOutcome(t *testing.T) {
	r := outcome{bytes: 5e9, seconds: 2, cpu: time.Second}
	if r.perGB() != 0.2 || math.Abs(r.gbit()-20) > 1e-9 {
		t.Errorf("%v CPU-s/GB, %v Gbit/s; want 0.2, 20", r.perGB(), r.gbit())
	}
}

func TestStatusBytes(t *testing.T) {
	status := []byte("Name:\tx\nVmHWM:\t    5216 kB\nRssAnon:\t     812 kB\n")
	if got := statusBytes(status, "VmHWM:"); got != 5216<<10 {
		t.Errorf("VmHWM %d", got)
	}
	if got := statusBytes(status, "VmPeak:"); got != 0 {
		t.Errorf("an absent key is %d", got)
	}
}

// Each row has an id of its own, a gate under its goal, and says what it compares.
func TestRows(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range rows() {
		if seen[r.id] {
			t.Errorf("%s twice", r.id)
		}
		seen[r.id] = true
		if r.title == "" || r.streams < 1 || r.ours.tool != "fullbore" || r.gate > r.goal || r.must && r.gate == 0 {
			t.Errorf("%+v", r)
		}
	}
	must := map[string]bool{}
	for _, r := range rows() {
		must[r.id] = r.must
	}
	for _, id := range []string{"T1", "T2", "T3", "T4", "T5/64", "T6/4", "T6z/16", "T6s/64", "T7a", "T7b", "N1", "U1", "U2", "U3", "U3g", "U4", "U5/1", "U5/5", "U5/10", "NT1", "NT2", "NT3", "NT3d"} {
		if !seen[id] {
			t.Errorf("no row %s", id)
		}
	}
	for _, id := range []string{"T2", "T5/4", "T7a", "U1", "U5/1", "U5/5", "U5/10", "NT1", "NT2", "NT3", "NT3d"} {
		if !must[id] {
			t.Errorf("row %s need not reach its gate", id)
		}
	}
}

// The words of ntttcp's rows: as many streams as the row has, in both shapes.
func TestNTTTCPRows(t *testing.T) {
	p := params{host: "h", seconds: 1, streams: 64}
	for _, c := range []struct {
		id, receiver, sender string
	}{
		{"NT1", "ntttcp -rh -P 64 -p 7 -t 1 -W 0 -C 0", "ntttcp -sh -n 1 -P 64 -p 7 -t 1 -W 0 -C 0"},
		{"NT2", "ntttcp -rh -P 16 -p 7 -t 1 -W 0 -C 0", "ntttcp -sh -n 4 -P 16 -p 7 -t 1 -W 0 -C 0"},
		{"NT3", "ntttcp -rh -P 64 -p 7 -t 1 -W 0 -C 0", "test h --via ntttcp:64 -p 7 -t 1s -P 64 --json --no-store"},
		{"NT3d", "ntttcp -rh -P 16 -p 7 -t 1 -W 0 -C 0", "test h --via ntttcp:16 -p 7 -t 1s -P 64 --json --no-store"},
	} {
		i := slices.IndexFunc(rows(), func(r row) bool { return r.id == c.id })
		r := rows()[i]
		if got := strings.Join(r.ours.server(6, p), " "); got != c.receiver {
			t.Errorf("%s: receiver %q", c.id, got)
		}
		if got := strings.Join(r.ours.client(6, p), " "); got != c.sender {
			t.Errorf("%s: sender %q", c.id, got)
		}
		if !r.peer.hangs || r.ours.hangs || r.ours.listens(6) != 7 {
			t.Errorf("%s: %+v, %+v", c.id, r.ours, r.peer)
		}
	}
}

func TestReport(t *testing.T) {
	r := report{o: options{nets: "lo,veth", seconds: 1}}
	good := line{row: row{id: "T2", title: "x", must: true, gate: 1.3, goal: 1.5}, net: "lo", ratio: 1.4, low: 1.2, high: 1.7}
	bad := good
	bad.ratio = 1.2
	r.lines = []line{good}
	if r.code() != 0 {
		t.Error("a passed gate fails")
	}
	elsewhere := bad
	elsewhere.net = "veth"
	r.lines = append(r.lines, elsewhere)
	if r.code() != 0 {
		t.Error("gates are of loopback")
	}
	r.lines = append(r.lines, bad)
	if r.code() != 1 {
		t.Error("a missed gate passes")
	}
	missing := line{row: row{id: "T4", title: "y", gate: 1.1, goal: 1.5}, net: "lo", note: "iperf3 3.12 has no\n--skip-rx-copy | sorry"}
	r.lines = append(r.lines, missing)
	r.figures = []figure{{id: "S1", title: "z", value: 0.5, gate: 0.98, atLeast: true}}
	doc := r.markdown()
	for _, want := range []string{
		"| **T2** | x |", "1.40 (1.20–1.70)", "1.20 (1.20–1.70) below the gate",
		"not measured: iperf3 3.12 has no --skip-rx-copy / sorry", "0.5 (≥ 0.98: MISSED)",
	} {
		if !strings.Contains(doc, want) {
			t.Errorf("no %q in\n%s", want, doc)
		}
	}
}

func TestMissingOption(t *testing.T) {
	tools := toolset{
		path:    map[string]string{"iperf3": "/x", "fullbore": "/y"},
		version: map[string]string{"iperf3": "3.12"},
		help:    map[string]string{"iperf3": "  -Z, --zerocopy"},
	}
	for _, c := range []struct {
		c    command
		want string
	}{
		{iperf3("a", "-Z"), ""},
		{iperf3("a", "--skip-rx-copy"), "iperf3 3.12 has no --skip-rx-copy"},
		{ours("a", "--skip-rx-copy"), ""},
		{nuttcp(), "nuttcp not found"},
	} {
		if got := tools.missing(c.c); got != c.want {
			t.Errorf("%s %v: %q, want %q", c.c.name, c.c.needs, got, c.want)
		}
	}
}

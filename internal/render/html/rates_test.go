package html_test

import (
	"strings"
	"testing"

	"github.com/fullbore-net/fullbore/result"
)

// The figures of the searches and the standards' tests are on the page, each direction by itself, with what is
// worth typing next.
func TestRatesPage(t *testing.T) {
	v := func(name string, value float64, unit string) result.Value {
		return result.Value{Name: name, Value: value, Unit: unit}
	}
	f := func(v float64) *float64 { return &v }
	base := func(kind string) *result.Report {
		return &result.Report{
			Schema: result.Schema, Kind: kind, Tool: result.Tool{Name: "fullbore", Version: "1"}, Inputs: []string{"host", "--x"}, Summary: "So it is.",
			Next: &result.Step{Command: "fullbore diagnose host", Why: "what loses <datagrams>?"},
		}
	}
	found := base("udpmax")
	for i, d := range []string{"up", "down"} {
		found.Findings = append(found.Findings, result.Finding{
			Name: "loss-free-rate", Direction: d, Flags: []string{"at_max_load"}[:i],
			Values: []result.Value{v("lower", 48e6, "bit/s"), v("trials", 1234, ""), v("width", 0.0123, "ratio"), v("time", 0.25, "s")},
		})
		for k := range 3 {
			found.Curve = append(found.Curve, result.Point{X: float64(k+1) * 1e6, Y: float64(k+1) * 9e5, Label: "offered bit/s, " + d})
		}
	}
	goodput := 4e7
	for i := range 2 { // steps are numbered as those of a diagnosis are by streams: no knee follows
		found.Runs = append(found.Runs, &result.Run{Test: result.Test{Transport: "udp", Streams: 1 + i}, Sums: []result.Sum{{Direction: result.Up, Goodput: &goodput}}})
		found.Stages = append(found.Stages, result.Stage{Name: []string{"up-0", "up-1"}[i], Title: "UDP up", Run: &i})
	}
	frames := base("rfc2544")
	frames.Findings = []result.Finding{{Name: "frame-1518", Direction: "up", Values: []result.Value{v("throughput_frames", 81274.4, "frames/s"), v("burst_mean", 257.5, "frames")}}}
	tcp := base("rfc6349")
	tcp.Items = []result.Item{{ID: "single-up", Result: result.Fail, Reasons: []string{"slow"}}}
	tcp.TCPFramework = &result.TCPFramework{
		RTT: f(0.02), BB: [2]*result.Rated{{BPS: 1e9, Source: "given"}, nil}, MTU: [2]int{1500, 1500},
		Tests: []result.TCPTest{{Name: "single-up", Connections: 1, Goodput: f(400e6), Ideal: f(941e6), Reference: f(500e6), Ratio: f(2.35), Efficiency: f(99.5), BufferDelay: f(12)}},
	}
	services := base("y1564")
	services.Items = []result.Item{{ID: "voice", Result: result.Fail, Reasons: []string{"together, up: too <late>"}}}
	services.Activation = &result.Activation{Basis: "one-way", Floor: f(5e-5), Steps: []result.ActivateStep{
		{Phase: 1, Service: "voice", Step: "cir-25", Way: result.Up, Offered: 5e5, IR: f(5e5), FLR: f(0), FTD: f(.01), FDV: f(.001), Conformed: result.Pass},
		{Phase: 2, Service: "voice", Step: "together", Way: result.Up, Offered: 2e6, Avail: f(0.9), Conformed: result.Fail, Why: []string{"too <late>"}},
	}}
	for _, c := range []struct {
		rep  *result.Report
		want []string
	}{
		{found, []string{"Found: loss free rate", "<td>48 Mbit/s</td>", "<td>1 234</td>", "<td>1.23 %</td>", "<td>250 ms</td>", "<td>at_max_load</td>", "up: 3 figures, the most is 2.7 Mbit/s at 3 Mbit/s; down: 3 figures", "Highest UDP rate of the path"}},
		{frames, []string{"By frame size", "1518 bytes up", "<td>81 274 frames/s</td>", "<td>257.5 frames</td>"}},
		{tcp, []string{"Transfers (RFC 6349)", "<td>2.350</td>", "<td>99.50 %</td>", "<td>500 Mbit/s</td>", "bandwidth-delay product", "Down: the bottleneck is not known."}},
		{services, []string{"Phase 1: each service alone", "voice cir-25 up", "Phase 2: all services together", "too &lt;late&gt;", "<td>90 %</td>", "FTD is one-way.", "to their times within 50"}},
	} {
		s := page(t, c.rep)
		sound(t, c.rep.Kind, s)
		if strings.Contains(s, "where is the knee") {
			t.Errorf("%s: a knee is looked for where streams were not varied", c.rep.Kind)
		}
		for _, want := range append(c.want, "<code class=\"cmd\">fullbore diagnose host</code>", "what loses &lt;datagrams&gt;?") {
			if !strings.Contains(s, want) {
				t.Errorf("%s: no %q on the page", c.rep.Kind, want)
			}
		}
	}
}

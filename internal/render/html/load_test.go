package html_test

import (
	"strings"
	"testing"

	"github.com/fullbore-net/fullbore/result"
)

func quantiles(mid float64) *result.Quantiles {
	return &result.Quantiles{N: 500, Min: mid / 2, Mean: mid, P50: mid, P95: mid * 1.5, P99: mid * 1.6, P999: mid * 1.7, Max: mid * 2}
}

// The pages of load and mtu have their own figures, not only those of the runs.
func TestLoadAndMTU(t *testing.T) {
	t.Parallel()
	p := func(v float64) *float64 { return &v }
	n := func(v int64) *int64 { return &v }
	load := &result.Report{
		Schema: result.Schema, Kind: "load", Inputs: []string{"192.0.2.2"}, Summary: "Delay under load: grade C.",
		Load: &result.Load{
			Idle: quantiles(0.01), After: quantiles(0.011), IdleMin: p(0.005), Source: "probe", Worst: p(0.15), Grade: "C",
			Ways: []result.LoadedWay{
				{Load: "up", Direction: result.Up, Rate: p(20e6), RoundTrip: quantiles(0.11), Rise: quantiles(0.1), QueueBytes: p(250e3), Grade: "C", RPM: &result.RPM{Value: 412, Class: "fair", Confidence: "high"}},
				{Load: "both", Direction: result.Down, Grade: ""},
			},
		},
	}
	text := page(t, load)
	sound(t, "load", text)
	for _, want := range []string{
		"Delay under load of the path to 192.0.2.2", "150 ms longer when full (p95)", "full up, up", "<td>20 Mbit/s</td>", "100 ms</td>", "150 ms</td>", "<td>250 kB</td>",
		"412 (fair, confidence high)", "empty, before", "empty, after", "full both, down",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("load: no %q", want)
		}
	}
	hole, mtu := true, 1400
	text = page(t, &result.Report{
		Schema: result.Schema, Kind: "mtu", Inputs: []string{"192.0.2.2"}, Summary: "Path MTU: 1400 bytes up.",
		Paths: []result.PathMTU{
			{Direction: result.Up, MTU: &mtu, Exact: true, BlackHole: &hole, Segment: n(1460), Trials: make([]result.MTUTrial, 24)},
			{Direction: result.Down, Announced: n(1460), Seen: n(1360)},
		},
	})
	sound(t, "mtu", text)
	for _, want := range []string{"Packet sizes of the path to 192.0.2.2", "1400 bytes", "larger ones vanish", "a black hole", "<td>24</td>", "at most 1460 bytes", "rewritten from 1460 to 1360", "down nothing passed"} {
		if !strings.Contains(text, want) {
			t.Errorf("mtu: no %q", want)
		}
	}
}

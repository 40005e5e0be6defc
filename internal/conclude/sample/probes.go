package sample

import "github.com/fullbore-net/fullbore/result"

// probeRun is what all runs of probes have in common.
func probeRun(transport string) *result.Run {
	t := New()
	return &result.Run{
		Schema: result.Schema, ID: "01PROBES", Tool: *t.Client.Tool, End: result.Client, Protocol: "iperf3",
		Test: result.Test{
			Transport: transport, Direction: "up", Streams: 1, Target: "10.0.0.2", Port: 5201, Duration: 10, Interval: 1, BlockSize: 64, ProbeOnly: true,
		},
		Hosts: result.Hosts{Client: &result.Host{Name: "a", Tool: t.Client.Tool}, Server: &result.Host{Name: "b", Tool: t.Server.Tool}},
		Wire:  &result.Wire{TestStarted: true, Extension: true, ControlMSS: 1448}, Elapsed: 10.2,
		Streams: []result.Stream{}, Rows: []result.Interval{}, Notices: []result.Notice{},
	}
}

// spread is a distribution of n times around mid.
func spread(n int64, least, mid, most float64) *result.Quantiles {
	return &result.Quantiles{N: n, Min: least, Mean: mid * 1.1, P50: mid, P95: mid + (most-mid)*0.3, P99: mid + (most-mid)*0.6, P999: mid + (most-mid)*0.9, Max: most}
}

func ptr[T any](v T) *T { return &v }

// Probes is a run of `fullbore delay` with a fullbore at the other end: voice for 10 s,
// two requests lost on the way up and one answer on the way down.
func Probes() *result.Run {
	run := probeRun("udp")
	way := func(mid float64) *result.OneWay {
		return &result.OneWay{
			PDV: spread(497, 0, mid/5, mid), IPDV: spread(490, 0, mid/10, mid/2), Delay: spread(497, mid*0.8, mid, mid*1.8), BoundS: ptr(0.0006),
			Jitter: &result.Jitter{N: 490, Final: mid / 20, Mean: mid / 15, Max: mid / 8},
		}
	}
	run.Probes = []result.Probes{{
		Kind: "udp-echo", Profile: "voice", Spacing: 0.02, Size: 64, Sent: 500, Answered: 497, LostUp: ptr(int64(2)), LostDown: ptr(int64(1)),
		RoundTrip: spread(497, 0.0012, 0.0021, 0.0075), Up: way(0.0011), Down: way(0.001),
		Clock:     &result.Clock{Source: "exchange", OffsetS: 1234.5678, BoundS: 0.0006, SkewPPM: ptr(3.25), Exchanges: 48, Causal: true},
		Histogram: []result.Bucket{{From: 0.0012, To: 0.008, Count: 497}}, Stamps: "kernel",
	}}
	return run
}

// Pings is a run of `fullbore delay --tcp` with a fullbore at the other end.
func Pings() *result.Run {
	run := probeRun("tcp")
	run.Probes = []result.Probes{
		{Kind: "tcp-connect", Profile: "back-to-back", Sent: 21, Answered: 21, Connect: spread(21, 0.0003, 0.0004, 0.002), Stamps: "user"},
		{
			Kind: "tcp-rr", Profile: "back-to-back", Size: 64, Sent: 25001, Answered: 25000, RoundTrip: spread(25000, 0.0003, 0.00038, 0.004), Rate: ptr(2500.4),
			Histogram: []result.Bucket{{From: 0.0003, To: 0.004, Count: 25000}}, Stamps: "user",
		},
	}
	return run
}

// PlainProbes are the two runs of `fullbore delay` with an iperf3 server at the other end.
func PlainProbes() []*result.Run {
	var out []*result.Run
	for _, d := range []result.Direction{result.Up, result.Down} {
		run := probeRun("udp")
		run.Test.Direction = string(d)
		run.Wire.Extension, run.Hosts.Server = false, nil
		total := func() *result.Total {
			return &result.Total{End: 10, Bytes: 32000, Packets: ptr(int64(500)), Lost: ptr(int64(1)), Jitter: ptr(0.0004)}
		}
		run.Streams = []result.Stream{{ID: 1, Direction: d, Sender: total(), Receiver: total()}}
		run.Sums = []result.Sum{{Direction: d, From: "10.0.0.1", To: "10.0.0.2", Sender: total(), Receiver: total()}}
		p := result.Probes{
			Kind: "udp-test", Profile: "voice", Spacing: 0.02, Size: 64, Sent: 500, LostUp: ptr(int64(1)), TCPRTT: ptr(0.0007), TCPMinRTT: ptr(0.0005),
		}
		if d == result.Down {
			p.LostUp, p.LostDown = nil, ptr(int64(1))
			p.Down = &result.OneWay{PDV: spread(499, 0, 0.0002, 0.0011), IPDV: spread(497, 0, 0.0001, 0.001), Jitter: &result.Jitter{N: 497, Final: 0.0001, Mean: 0.00012, Max: 0.0003}}
		}
		run.Probes = []result.Probes{p}
		out = append(out, run)
	}
	return out
}

// PlainPings is a run of `fullbore delay --tcp` with an iperf3 server at the other end.
func PlainPings() *result.Run {
	run := probeRun("tcp")
	run.Wire.Extension, run.Hosts.Server = false, nil
	run.Test.Streams, run.Test.Duration = 3, 1
	for i := range 3 {
		total := &result.Total{End: 1, Bytes: 128}
		run.Streams = append(run.Streams, result.Stream{ID: i + 1, Direction: result.Up, Sender: total, Receiver: total})
	}
	run.Probes = []result.Probes{{
		Kind: "tcp-connect", Profile: "back-to-back", Sent: 4, Answered: 4, Connect: spread(4, 0.0003, 0.0004, 0.002), Stamps: "user", TCPRTT: ptr(0.0007), TCPMinRTT: ptr(0.0005),
	}}
	return run
}

package diagnose_test

import (
	"strings"
	"testing"

	"github.com/fullbore-net/fullbore/internal/conclude/sample"
	"github.com/fullbore-net/fullbore/internal/diagnose"
	"github.com/fullbore-net/fullbore/internal/method"
	"github.com/fullbore-net/fullbore/result"
)

// opened gives both ends of a made-up stage's streams a round trip (µs) and what they know of the
// connection's beginning.
func opened(d method.Done, least int64, syn *result.SYN, change func(client, server *result.TCPInfo)) method.Done {
	for i := range d.Run.Streams {
		s := &d.Run.Streams[i]
		for _, t := range []*result.TCPSummary{s.TCP, s.RemoteTCP} {
			t.MinRTT = least
			t.Last.MinRTT = &least
			t.Last.SACK, t.Last.Timestamps, t.Last.WScale, t.Last.AdvMSS, t.Last.PMTU = true, true, [2]uint8{7, 7}, 1448, 1500
		}
		s.RemoteTCP.SYN = syn
		if change != nil {
			change(&s.TCP.Last, &s.RemoteTCP.Last)
		}
	}
	return d
}

// lossyOf is a made-up stage that retransmits a share of its segments.
func lossyOf(name string, n int, rate, share float64) method.Done {
	return stage(name, with(func(t *sample.Test) {
		t.Streams, t.Rates, t.RTT, t.IdleRTT, t.LossShare = n, sample.Flat(rate, 10), 10500, 10100, share
	}))
}

func TestTCPSplit(t *testing.T) {
	for _, c := range []struct {
		name    string
		idle    float64
		least   int64
		split   bool
		percent string
	}{
		{name: "the same way", idle: 0.04, least: 40000},
		{name: "a third of the way", idle: 0.04, least: 13000, split: true, percent: "32"},
		{name: "a little shorter", idle: 0.04, least: 27000},
		{name: "too short to tell", idle: 0.001, least: 300},
	} {
		t.Run(c.name, func(t *testing.T) {
			vs := diagnose.Judge([]method.Done{idleStage(c.idle), opened(several("up-1", 1, 48e6), c.least, nil, nil)}, nil)
			v := find(vs, diagnose.TCPSplit)
			if (v != nil) != c.split {
				t.Fatalf("%+v", vs)
			}
			if v == nil {
				return
			}
			if !v.Note || v.Certainty != diagnose.Likely || value(v, "rtt_tcp_client") != float64(c.least)/1e6 || !strings.Contains(strings.Join(v.Evidence, "\n"), c.percent+" %") {
				t.Errorf("%+v", v)
			}
		})
	}
}

func TestOptionsAltered(t *testing.T) {
	on := true
	facts := &result.Facts{SACK: &on, Timestamps: &on, Scaling: &on}
	whole := &result.SYN{MSS: 1460, WindowScale: true, SACK: true, Timestamps: true}
	noSACK := &result.SYN{MSS: 1460, WindowScale: true, Timestamps: true}
	without := func(client, server *result.TCPInfo) { client.SACK, server.SACK = false, false }
	for _, c := range []struct {
		name   string
		stages []method.Done
		says   string // "" = no such verdict
		cause  bool
	}{
		{name: "as it was sent", stages: []method.Done{opened(several("up-1", 1, 48e6), 10100, whole, nil)}},
		{name: "clamped", stages: []method.Done{opened(several("up-1", 1, 48e6), 10100, &result.SYN{MSS: 1200, WindowScale: true, SACK: true, Timestamps: true}, nil)}, says: "clamped to 1200"},
		{
			name: "SACK is gone, and nothing is lost",
			stages: []method.Done{
				opened(several("up-1", 1, 48e6), 10100, noSACK, without),
				opened(several("up-4", 4, 48e6), 10100, noSACK, without),
			}, says: "no selective",
		},
		{
			name: "SACK is gone, and holds a stream that loses",
			stages: []method.Done{
				opened(lossyOf("up-1", 1, 30e6, 0.004), 10100, noSACK, without), opened(lossyOf("up-half", 1, 15e6, 0), 10100, noSACK, without),
				opened(lossyOf("up-4", 4, 48e6, 0.004), 10100, noSACK, without), opened(lossyOf("up-16", 16, 48e6, 0.01), 10100, noSACK, without),
			}, says: "repairs its losses slowly", cause: true,
		},
		{
			name: "errors that stay hold it, with SACK or without",
			stages: []method.Done{
				opened(lossyOf("up-1", 1, 30e6, 0.004), 10100, noSACK, without), opened(lossyOf("up-half", 1, 15e6, 0.004), 10100, noSACK, without),
				opened(lossyOf("up-4", 4, 48e6, 0.004), 10100, noSACK, without),
			}, says: "no selective",
		},
		{
			name:   "the answer was changed",
			stages: []method.Done{opened(several("up-1", 1, 48e6), 10100, whole, func(client, _ *result.TCPInfo) { client.Timestamps = false })}, says: "no timestamps",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			vs := diagnose.Judge(append([]method.Done{idleStage(0.01)}, c.stages...), facts)
			v := find(vs, diagnose.OptionsAltered)
			if (v != nil) != (c.says != "") {
				t.Fatalf("%+v", vs)
			}
			if v == nil {
				return
			}
			if !strings.Contains(v.Summary, c.says) || v.Note == c.cause || c.cause && (v.Reach == nil || v.Direction != "up" || vs[0].Code != v.Code) {
				t.Errorf("%+v", v)
			}
			if c.cause && find(vs, diagnose.ShallowBuffer) != nil {
				t.Error("and it blames the queue")
			}
		})
	}
}

// probed puts probes of classes beside a stage: TOS, answered of a hundred, delay above the least.
func probed(d method.Done, classes ...[3]float64) method.Done {
	d.Run.Probes = nil
	for _, k := range classes {
		kind := "udp-class"
		if k[0] == 0 {
			kind = "udp-echo"
		}
		d.Run.Probes = append(d.Run.Probes, result.Probes{
			Kind: kind, TOS: int(k[0]), Sent: 100, Answered: int64(k[1]),
			Up: &result.OneWay{PDV: &result.Quantiles{N: int64(k[1]), P50: k[2], P95: 1.5 * k[2], P99: 2 * k[2]}},
		})
	}
	return d
}

func TestClassStarved(t *testing.T) {
	const ef, cs1 = 46 << 2, 8 << 2
	marked := func(rate float64) method.Done {
		return several("up-ef", 1, rate)
	}
	for _, c := range []struct {
		name    string
		stages  []method.Done
		says    bool
		cause   bool
		certain string
	}{
		{name: "all alike", stages: []method.Done{probed(several("up-1", 1, 48e6), [3]float64{0, 100, 0.01}, [3]float64{ef, 100, 0.01}, [3]float64{cs1, 100, 0.01})}},
		{
			name:   "our own queue, which EF passes", // as it should
			stages: []method.Done{probed(several("up-1", 1, 48e6), [3]float64{0, 100, 0.15}, [3]float64{ef, 100, 0.0001}, [3]float64{cs1, 100, 0.15}), marked(49e6)},
		},
		{
			name:   "the class below starves",
			stages: []method.Done{probed(several("up-1", 1, 48e6), [3]float64{0, 100, 0.005}, [3]float64{ef, 100, 0.001}, [3]float64{cs1, 20, 0.4})}, says: true, certain: diagnose.Likely,
		},
		{
			name:   "best effort starves",
			stages: []method.Done{probed(several("up-1", 1, 10e6), [3]float64{0, 80, 0.05}, [3]float64{ef, 100, 0.0005}, [3]float64{cs1, 80, 0.05}), marked(20e6)}, says: true, cause: true, certain: diagnose.Proven,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			vs := diagnose.Judge(append([]method.Done{idleStage(0.01)}, c.stages...), nil)
			v := find(vs, diagnose.ClassStarved)
			if (v != nil) != c.says {
				t.Fatalf("%+v", vs)
			}
			if v != nil && (v.Note == c.cause || v.Certainty != c.certain || v.Direction != "up") {
				t.Errorf("%+v", v)
			}
		})
	}
}

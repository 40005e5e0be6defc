package diagnose_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/fullbore-net/fullbore/internal/conclude"
	"github.com/fullbore-net/fullbore/internal/conclude/sample"
	"github.com/fullbore-net/fullbore/internal/diagnose"
	"github.com/fullbore-net/fullbore/internal/method"
	"github.com/fullbore-net/fullbore/result"
)

// stage is a stage of a made-up test.
func stage(name string, t sample.Test) method.Done {
	run := t.Run()
	conclude.Conclude(run)
	d := method.Done{Step: method.Step{Name: name, Title: name, Why: "made up"}, Run: run, Err: run.Err}
	d.Step.Plan.Streams = t.Streams
	return d
}

// idleStage is the empty path with that round trip, s.
func idleStage(rtt float64) method.Done {
	run := sample.Probes()
	scale := rtt / run.Probes[0].RoundTrip.Min
	q := *run.Probes[0].RoundTrip
	q.Min, q.P50, q.P95, q.P99, q.Max, q.Mean, q.P999 = q.Min*scale, q.P50*scale, q.P95*scale, q.P99*scale, q.Max*scale, q.Mean*scale, q.P999*scale
	run.Probes[0].RoundTrip = &q
	return method.Done{Step: method.Step{Name: "idle"}, Run: run}
}

func find(vs []result.Verdict, code string) *result.Verdict {
	if i := slices.IndexFunc(vs, func(v result.Verdict) bool { return v.Code == code }); i >= 0 {
		return &vs[i]
	}
	return nil
}

func value(v *result.Verdict, name string) float64 {
	for _, x := range v.Values {
		if x.Name == name {
			return x.Value
		}
	}
	return -1
}

// with returns a sample test, changed.
func with(change func(*sample.Test)) sample.Test {
	t := sample.New()
	change(&t)
	return t
}

// The rules on made-up runs: what must be said, and of the quiet test what must not.
func TestRules(t *testing.T) {
	speed, slow := int64(1e9), int64(100e6)
	gigabit := func(t *sample.Test) {
		t.Client.NIC = &result.NIC{Name: "eth0", SpeedBPS: &speed, MTU: 1500, Duplex: "full"}
	}
	one, eight := 1, 8
	cores := func(busy bool) func(result.End, int) *result.HostSample {
		return func(e result.End, _ int) *result.HostSample {
			h := sample.Cores(60, "5/40/5/50", "5/10/5/80")
			if e == result.Server && busy {
				h = sample.Cores(97, "7/20/72/1", "5/4/5/86")
				load := 0.98
				h.WorkerLoad = &load
			}
			return h
		}
	}
	for _, c := range []struct {
		name    string
		history []method.Done
		facts   result.Facts
		code    string
		first   bool
		check   func(*result.Verdict) bool
	}{
		{
			name: "receiver's processor", code: diagnose.ReceiverCPU, first: true,
			history: []method.Done{idleStage(0.0005), stage("up-1", with(func(t *sample.Test) { t.Hosts = cores(true) }))},
			check: func(v *result.Verdict) bool {
				return v.Host == result.Server && value(v, "core") == 0 && value(v, "softirq") > 0.7 && v.Certainty == diagnose.Likely
			},
		},
		{
			name: "receiver's processor, proven by streams", code: diagnose.ReceiverCPU, first: true,
			history: []method.Done{
				idleStage(0.0005), stage("up-1", with(func(t *sample.Test) { t.Hosts = cores(true) })),
				stage("up-4", with(func(t *sample.Test) { t.Streams, t.Rates = 4, sample.Flat(2e9, 10) })),
			},
			check: func(v *result.Verdict) bool { return v.Certainty == diagnose.Proven && *v.Reach > 1.9e9 },
		},
		{
			name: "a CPU quota", code: diagnose.SenderCPU, first: true,
			history: []method.Done{idleStage(0.0005), stage("up-1", with(func(t *sample.Test) {
				t.Hosts = func(e result.End, _ int) *result.HostSample {
					h := sample.Cores(30, "5/20/5/70")
					if e == result.Client {
						held := 0.4
						h.Throttled = &held
					}
					return h
				}
			}))},
			check: func(v *result.Verdict) bool {
				return value(v, "throttled") > 0.39 && strings.Contains(v.Summary, "quota")
			},
		},
		{
			name: "link full", code: diagnose.LinkFull, first: true,
			history: []method.Done{idleStage(0.0005), stage("up-1", with(gigabit))},
			check:   func(v *result.Verdict) bool { return value(v, "of_ideal") > 0.99 },
		},
		{
			name: "half duplex", code: diagnose.HalfDuplex, first: true,
			history: []method.Done{idleStage(0.0005), stage("up-1", with(func(t *sample.Test) {
				gigabit(t)
				t.Client.NIC.SpeedBPS, t.Client.NIC.Duplex, t.Rates = &slow, "half", sample.Flat(38e6, 10)
			}))},
			check: func(v *result.Verdict) bool { return v.Host == result.Client },
		},
		{
			name: "negotiated low", code: diagnose.LinkSlow, first: true, facts: result.Facts{MaxBPS: &speed, Recorded: true},
			history: []method.Done{idleStage(0.0005), stage("up-1", with(func(t *sample.Test) {
				gigabit(t)
				t.Client.NIC.SpeedBPS, t.Rates = &slow, sample.Flat(94e6, 10)
			}))},
			check: func(v *result.Verdict) bool {
				return strings.Contains(v.Evidence[0], "recorded facts") && *v.Reach > 9e8
			},
		},
		{
			name: "single queue", code: diagnose.SingleQueue, facts: result.Facts{QueuesNow: &one, QueuesMax: &eight},
			history: []method.Done{idleStage(0.0005), stage("up-1", sample.New())},
			check:   func(v *result.Verdict) bool { return v.Note && value(v, "possible") == 8 },
		},
		{
			name: "wireless", code: diagnose.Wireless, facts: result.Facts{Kind: "wireless"},
			history: []method.Done{idleStage(0.004), stage("up-1", sample.New())}, check: func(v *result.Verdict) bool { return v.Note },
		},
		{
			name: "stolen time", code: diagnose.Steal,
			history: []method.Done{idleStage(0.0005), stage("up-1", with(func(t *sample.Test) {
				t.Hosts = func(e result.End, _ int) *result.HostSample { return sample.Cores(20, "5/10/5/60", "5/10/5/79") }
			}))},
			check: func(v *result.Verdict) bool { return v.Note && value(v, "steal") > 0.1 },
		},
		{
			name: "window of a plain iperf3's path, by this host's buffer", code: diagnose.ReceiveWindow, first: true,
			facts: result.Facts{TCPRead: &[3]int64{4096, 65536, 131072}},
			history: []method.Done{idleStage(0.05), stage("down-1", func() sample.Test {
				f := sample.Foreign("3.12")
				f.Direction, f.Rates, f.RTT, f.IdleRTT = "down", sample.Flat(65536*8/0.05, 10), 50000, 50000
				return f
			}())},
			check: func(v *result.Verdict) bool { return v.Certainty == diagnose.Possible && v.Host == result.Client },
		},
		{
			name: "autotuning limit", code: diagnose.Autotuning, first: true,
			history: []method.Done{
				idleStage(0.1), stage("up-1", with(func(t *sample.Test) {
					t.Rates, t.RTT, t.IdleRTT, t.Window, t.RwndLim = sample.Flat(251e6, 10), 100000, 99800, 3<<20, 0.93
				})),
				stage("up-4", with(func(t *sample.Test) {
					t.Streams, t.Rates, t.RTT, t.IdleRTT, t.Window, t.RwndLim = 4, sample.Flat(930e6, 10), 100000, 99800, 3<<20, 0.9
				})),
			},
			check: func(v *result.Verdict) bool {
				return v.Certainty == diagnose.Proven && value(v, "needed") > 11e6 && slices.ContainsFunc(v.Advice, func(s string) bool { return strings.Contains(s, "tcp_rmem") })
			},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			vs := diagnose.Judge(c.history, &c.facts)
			v := find(vs, c.code)
			if v == nil || c.first && vs[0].Code != c.code {
				var all []string
				for _, x := range vs {
					all = append(all, x.Code+" "+x.Certainty+": "+x.Summary)
				}
				t.Fatalf("wanted %s, it says %s", c.code, strings.Join(all, "\n"))
			}
			if !c.check(v) {
				t.Errorf("%+v", *v)
			}
		})
	}
}

// With a plain iperf3 at the other end nothing is invented: no cause that only the other
// end's counters could tell, and what could not be seen is said.
func TestForeignPeer(t *testing.T) {
	up, down := sample.Foreign("3.12"), sample.Foreign("3.12")
	down.Direction = "down"
	history := []method.Done{idleStage(0.0005), stage("up-1", up), stage("down-1", down)}
	history[0].Run.Wire.Extension = false
	vs := diagnose.Judge(history, nil)
	if len(vs) == 0 || vs[0].Code != diagnose.Inconclusive || diagnose.Conclusive(vs) {
		t.Errorf("%+v", vs)
	}
	unseen := strings.Join(diagnose.Unseen(history, nil), "\n")
	for _, want := range []string{"no fullbore", "what the sender waited for, down"} {
		if !strings.Contains(unseen, want) {
			t.Errorf("no %q in %s", want, unseen)
		}
	}
}

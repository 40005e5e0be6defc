package conclude_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/fullbore-net/fullbore/internal/conclude"
	"github.com/fullbore-net/fullbore/internal/conclude/sample"
	"github.com/fullbore-net/fullbore/result"
)

// Golden values of methods §15.
func TestMathis(t *testing.T) {
	for _, c := range []struct {
		mss, rtt int64
		p, want  float64
	}{
		{1448, 50_000, 1e-4, 28.3e6},
		{1448, 10_000, 1e-5, 447e6},
		{1448, 100_000, 1e-3, 4.47e6},
	} {
		if got := conclude.Mathis(c.mss, c.rtt, c.p); math.Abs(got-c.want) > 0.005*c.want {
			t.Errorf("Mathis(%d, %d µs, %g) = %g, want %g", c.mss, c.rtt, c.p, got, c.want)
		}
	}
	if got := conclude.Mathis(1448, 50_000, 0); !math.IsInf(got, 1) {
		t.Errorf("without loss: %g", got)
	}
}

func load(v float64) func(result.End, int) *result.HostSample {
	return func(e result.End, _ int) *result.HostSample {
		h := &result.HostSample{Process: &result.CPU{Total: 100 * v}}
		if e == result.Client {
			h.WorkerLoad = &v
		}
		return h
	}
}

func TestLimit(t *testing.T) {
	gig := int64(1e9)
	link := func(t *sample.Test) { t.Client.NIC = &result.NIC{Name: "eth0", SpeedBPS: &gig, MTU: 1500} }
	lossy := func(t *sample.Test) {
		t.Rates, t.RTT, t.IdleRTT, t.LossShare = sample.Flat(26e6, 30), 50000, 49000, 1e-4
	}
	for _, c := range []struct {
		name   string
		test   sample.Test
		change func(*sample.Test)
		want   string
	}{
		{"nothing stands out", sample.New(), nil, "unknown"},
		{"worker at 90 %", sample.New(), func(t *sample.Test) { t.Hosts = load(0.9) }, "cpu-sender"},
		{"worker below", sample.New(), func(t *sample.Test) { t.Hosts = load(0.89) }, "unknown"},
		{"worker busy but the set rate was reached", sample.New(), func(t *sample.Test) {
			t.Hosts = load(1)
			t.Tune = func(head *result.Run, _ *[]result.Event) { head.Test.Bitrate = 941e6 }
		}, "set-rate"},
		{"a process of two streams needs two cores to be full", sample.New(), func(t *sample.Test) { t.Streams, t.CPU = 2, [2]float64{120, 30} }, "unknown"},
		{"two full cores", sample.New(), func(t *sample.Test) { t.Streams, t.CPU = 2, [2]float64{185, 30} }, "cpu-sender"},
		{"more streams than cores", sample.New(), func(t *sample.Test) { t.Streams, t.CPU, t.Server.Cores = 16, [2]float64{100, 370}, 4 }, "cpu-receiver"},
		{"the busier end is named", sample.New(), func(t *sample.Test) { t.CPU = [2]float64{92, 98} }, "cpu-receiver"},
		{"quota", sample.New(), func(t *sample.Test) {
			t.Hosts = func(e result.End, _ int) *result.HostSample {
				h, share := &result.HostSample{}, 0.4
				if e == result.Server {
					h.Throttled = &share
				}
				return h
			}
		}, "cpu-receiver"},
		{"one thread of iperf3 3.12 is full", sample.Foreign("3.12"), func(t *sample.Test) { t.Streams, t.CPU = 8, [2]float64{30, 97} }, "cpu-receiver"},
		{"the same of a threaded iperf3 is little", sample.Foreign("3.21"), func(t *sample.Test) { t.Streams, t.CPU = 8, [2]float64{30, 97} }, "unknown"},
		{"one thread cannot use 300 %", sample.Foreign("3.12"), func(t *sample.Test) { t.Streams, t.CPU = 8, [2]float64{30, 300} }, "unknown"},
		{"idle sender", sample.New(), func(t *sample.Test) { t.Busy = 0.79 }, "application"},
		{"hardly idle", sample.New(), func(t *sample.Test) { t.Busy = 0.81 }, "unknown"},
		{"idle while a core is full of others' work", sample.New(), func(t *sample.Test) {
			t.Busy = 0.5
			t.Hosts = func(e result.End, _ int) *result.HostSample { return sample.Cores(20, "98/2/0/0", "4/16/0/80") }
		}, "unknown"},
		{"file", sample.New(), func(t *sample.Test) {
			t.Busy = 0.3
			t.Tune = func(head *result.Run, _ *[]result.Event) { head.Test.File = "in" }
		}, "application"},
		{"paced by the kernel: always busy", sample.New(), func(t *sample.Test) {
			t.Tune = func(head *result.Run, _ *[]result.Event) { head.Test.FQRate = 950e6 }
		}, "set-rate"},
		{"a rate that was not reached limits nothing", sample.New(), func(t *sample.Test) {
			t.Tune = func(head *result.Run, _ *[]result.Event) { head.Test.Bitrate = 2e9 }
		}, "unknown"},
		{"the rate is per stream", sample.New(), func(t *sample.Test) {
			t.Streams = 4
			t.Tune = func(head *result.Run, _ *[]result.Event) { head.Test.Bitrate = 500e6 }
		}, "unknown"},
		{"rate budget", sample.New(), func(t *sample.Test) {
			t.Streams = 4
			t.Tune = func(head *result.Run, _ *[]result.Event) { head.Test.MaxRate = 945e6 }
		}, "set-rate"},
		{"the server's limit, foreign sender", sample.Foreign("3.12"), func(t *sample.Test) {
			t.Direction = "down"
			t.Tune = func(head *result.Run, _ *[]result.Event) {
				head.Test.ServerLimit = &result.Limit{BitrateBPS: 942e6}
			}
		}, "set-rate"},
		{"udp at its rate", sample.New(), func(t *sample.Test) {
			t.UDP = true
			t.Tune = func(head *result.Run, _ *[]result.Event) { head.Test.Bitrate = 941e6 }
		}, "set-rate"},
		{"udp below its rate", sample.New(), func(t *sample.Test) {
			t.UDP = true
			t.Tune = func(head *result.Run, _ *[]result.Event) { head.Test.Bitrate = 2e9 }
		}, "sender-limited"},
		{"window above 30 %", sample.New(), func(t *sample.Test) { t.RwndLim = 0.31 }, "receive-window"},
		{"window at 30 %", sample.New(), func(t *sample.Test) { t.RwndLim = 0.3 }, "unknown"},
		{"window before buffer", sample.New(), func(t *sample.Test) { t.RwndLim, t.SndLim = 0.4, 0.5 }, "receive-window"},
		{"buffer above 30 %", sample.New(), func(t *sample.Test) { t.SndLim = 0.31 }, "send-buffer"},
		{"loss", sample.New(), lossy, "loss"},
		{"loss, rate above Mathis × 2", sample.New(), func(t *sample.Test) { lossy(t); t.Rates = sample.Flat(60e6, 30) }, "unknown"},
		{"loss, rate below Mathis / 2", sample.New(), func(t *sample.Test) { lossy(t); t.Rates = sample.Flat(13e6, 30) }, "unknown"},
		{"Mathis is per flow", sample.New(), func(t *sample.Test) { lossy(t); t.Streams, t.Rates = 4, sample.Flat(104e6, 30) }, "loss"},
		{"bbr does not follow Mathis", sample.New(), func(t *sample.Test) { lossy(t); t.CC = "bbr" }, "unknown"},
		{"a standing queue makes loss ambiguous", sample.New(), func(t *sample.Test) { lossy(t); t.IdleRTT = 30000 }, "unknown"},
		{"full link", sample.New(), func(t *sample.Test) { link(t); t.RTT = 2000 }, "path-capacity"},
		{"full link with overflow", sample.New(), func(t *sample.Test) { link(t); t.RTT, t.LossShare = 2000, 2e-5 }, "path-capacity"},
		{"full link, no queue seen", sample.New(), link, "unknown"},
		{"queue, link not full", sample.New(), func(t *sample.Test) { link(t); t.RTT, t.Rates = 2000, sample.Flat(880e6, 10) }, "unknown"},
		{"foreign sender", sample.Foreign("3.12"), func(t *sample.Test) { t.Direction = "down" }, "unknown"},
		{"no counters in this kernel", sample.New(), func(t *sample.Test) { t.NoShares = true }, "unknown"},
		{"too short to judge", sample.New(), func(t *sample.Test) { t.Rates, t.Step, t.RwndLim = sample.Flat(941e6, 4), 0.2, 0.9 }, "unknown"},
		{"others on the server", sample.New(), func(t *sample.Test) {
			t.RwndLim = 0.9
			t.Tune = func(head *result.Run, _ *[]result.Event) { head.Flags = []string{"overlap"} }
		}, "unknown"},
		{"nothing arrived", sample.New(), func(t *sample.Test) { t.Rates, t.Sent = []float64{0, 0}, []float64{312000, 0} }, ""},
		{"broken off: shares from the rows", sample.New(), func(t *sample.Test) { t.Broken, t.RwndLim = true, 0.8 }, "receive-window"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.change != nil {
				c.change(&c.test)
			}
			run := c.test.Run()
			conclude.Conclude(run)
			if got := run.Sums[0].Limit; got != c.want {
				t.Errorf("limit %q, want %q (%s)", got, c.want, run.Summary)
			}
			if w := conclude.LimitWord(c.want); c.want != "" && c.want != "unknown" && w == "" {
				t.Errorf("%q has no words", c.want)
			}
		})
	}
}

// The two directions are judged by their own senders.
func TestLimitBothWays(t *testing.T) {
	test := sample.New()
	test.Direction, test.RwndLim = "both", 0.9
	run := test.Run()
	for i := range run.Streams {
		if s := &run.Streams[i]; s.Direction == result.Down {
			s.TCP, s.RemoteTCP = nil, nil
		}
	}
	for i := range run.Rows {
		for j := range run.Rows[i].Streams {
			run.Rows[i].Streams[j].TCP = nil
		}
	}
	conclude.Conclude(run)
	if up, down := run.Sums[0].Limit, run.Sums[1].Limit; up != "receive-window" || down != "unknown" {
		t.Errorf("up %q, down %q", up, down)
	}
	if run.Sums[1].Shares != nil {
		t.Error("shares of a sender that told nothing")
	}
	if !strings.Contains(run.Summary, "to 10.0.0.1 what limited it is not known") {
		t.Error(run.Summary)
	}
}

// Window arithmetic is shown only where it explains the measurement (recipes §3:
// 65,536 B over 50 ms and 28 ms carry 10.486 and 18.725 Mbit/s).
func TestWindowWords(t *testing.T) {
	for _, c := range []struct {
		window, rtt int64
		rate        float64
		want        string
	}{
		{65536, 50_000, 10.4e6, "(64.0 KiB per round trip of 50 ms carry 10.5 Mbit/s)"},
		{65536, 28_000, 18.5e6, "(64.0 KiB per round trip of 28 ms carry 18.7 Mbit/s)"},
		{65536, 50_000, 20e6, "(90 % of the time)"},
		{-1, 50_000, 20e6, "(90 % of the time)"},
	} {
		test := sample.New()
		test.Rates, test.RTT, test.IdleRTT, test.Window, test.RwndLim = sample.Flat(c.rate, 30), c.rtt, c.rtt, c.window, 0.9
		run := test.Run()
		conclude.Conclude(run)
		if !strings.Contains(run.Summary, c.want) {
			t.Errorf("window %d, RTT %d: %s", c.window, c.rtt, run.Summary)
		}
	}
}

// Whatever the counters say, the shares of the sender's time are shares, the figure is
// the receiver's, and conclusions are made of finite numbers.
func TestSharesProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		test := sample.New()
		f := rapid.Float64Range(-0.1, 1.1)
		test.Busy, test.RwndLim, test.SndLim = f.Draw(t, "busy"), f.Draw(t, "rwnd"), f.Draw(t, "snd")
		test.Streams = rapid.IntRange(1, 5).Draw(t, "streams")
		test.Direction = rapid.SampledFrom([]string{"up", "down", "both"}).Draw(t, "direction")
		test.Broken = rapid.Bool().Draw(t, "broken")
		test.Omit = rapid.IntRange(0, 2).Draw(t, "omit")
		test.Rates = rapid.SliceOfN(rapid.Float64Range(0, 1e11), 3, 12).Draw(t, "rates")
		test.RTT = rapid.Int64Range(0, 1e6).Draw(t, "rtt")
		test.IdleRTT = rapid.Int64Range(0, 1e6).Draw(t, "idle rtt")
		test.LossShare = rapid.Float64Range(0, 1).Draw(t, "loss")
		run := test.Run()
		conclude.Conclude(run)
		for _, bad := range []string{"NaN", "Inf", "%!", "-"} {
			if strings.Contains(strings.ReplaceAll(run.Summary, "cc-", ""), bad) {
				t.Fatalf("%q in %q", bad, run.Summary)
			}
		}
		for _, s := range run.Sums {
			if h := conclude.HeadlineOf(run, s.Direction); !h.Basis.Arrived() {
				t.Fatalf("headline from %v", h.Basis)
			}
			if s.Shares == nil {
				continue
			}
			for _, v := range []float64{s.Shares.Idle, s.Shares.Window, s.Shares.Buffer, s.Shares.Network} {
				if !(v >= 0 && v <= 1) {
					t.Fatalf("share %g of %+v", v, s.Shares)
				}
			}
			if sum := s.Shares.Idle + s.Shares.Window + s.Shares.Buffer + s.Shares.Network; math.Abs(sum-1) > 1e-9 {
				t.Fatalf("shares add up to %g: %+v", sum, s.Shares)
			}
		}
	})
}

// M-CPU: hot is 95 % of a core in a fifth of the intervals, by whom is a matter of the
// whole host's books.
func TestHotCores(t *testing.T) {
	hot := func(rows int, process float64, cores ...string) func(result.End, int) *result.HostSample {
		return func(e result.End, i int) *result.HostSample {
			if e == result.Client && i < rows {
				return sample.Cores(process, cores...)
			}
			return sample.Cores(10, "1/9/0/90", "0/0/0/100")
		}
	}
	for _, c := range []struct {
		name  string
		hosts func(result.End, int) *result.HostSample
		same  bool
		flag  bool
		note  bool
	}{
		{"ours in 2 of 10", hot(2, 95, "5/90/0/5", "0/2/0/98"), false, true, false},
		{"ours in 1 of 10", hot(1, 95, "5/90/0/5", "0/2/0/98"), false, false, false},
		{"at 94 %", hot(10, 60, "5/89/0/6", "0/2/0/98"), false, false, false},
		{"full of our packets", hot(10, 40, "5/35/58/2", "0/2/0/98"), false, true, false},
		{"somebody else's", hot(10, 20, "98/2/0/0", "4/16/0/80"), false, false, true},
		{"the other end on this machine", hot(10, 95, "50/48/0/2", "50/48/0/2"), true, true, false},
	} {
		test := sample.New()
		test.Hosts = c.hosts
		if c.same {
			test.Client.Name, test.Server.Name = "one", "one"
			test.CPU = [2]float64{95, 95}
		}
		run := test.Run()
		conclude.Conclude(run)
		if got := slices.Contains(run.Flags, "sender_cpu"); got != c.flag {
			t.Errorf("%s: flags %v", c.name, run.Flags)
		}
		note := slices.ContainsFunc(run.Notices, func(n result.Notice) bool { return n.Code == conclude.CompetingLoad })
		if note != c.note {
			t.Errorf("%s: competing load %v, want %v", c.name, note, c.note)
		}
		if slices.Contains(run.Flags, "receiver_cpu") && run.Sums[0].Limit != "cpu-receiver" {
			t.Errorf("%s: the receiver was not hot: %v", c.name, run.Flags)
		}
	}
}

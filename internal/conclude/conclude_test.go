package conclude_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fullbore-net/fullbore/internal/conclude"
	"github.com/fullbore-net/fullbore/internal/conclude/sample"
	"github.com/fullbore-net/fullbore/result"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// cases are runs as people meet them; their conclusions are in testdata/<name>.txt.
func cases() map[string]sample.Test {
	out := map[string]sample.Test{}
	add := func(name string, t sample.Test, change func(*sample.Test)) {
		if change != nil {
			change(&t)
		}
		out[name] = t
	}
	stop := func(e result.Error) func(*result.Finish, **result.Error) {
		return func(_ *result.Finish, err **result.Error) { *err = &e }
	}
	interrupt := stop(result.Error{Code: "interrupted", Text: "interrupted by signal Interrupt(2)", Interrupted: true, Signal: "Interrupt(2)"})
	lost := stop(result.Error{Code: "peer-closed", Text: "the server closed the control connection", Remote: true})

	add("one-direction-30s", sample.New(), func(t *sample.Test) { t.Rates = sample.Flat(941e6, 30) })
	add("one-direction-10s", sample.New(), nil)
	add("down-8-streams", sample.New(), func(t *sample.Test) { t.Direction, t.Streams, t.Rates = "down", 8, sample.Flat(9.41e9, 60) })
	add("both", sample.New(), func(t *sample.Test) {
		t.Direction, t.Rates, t.Back = "both", sample.Flat(1.9e6, 30), sample.Flat(7.6e6, 30)
	})
	add("server-recorded", sample.New(), func(t *sample.Test) { t.Recorder = result.Server })
	add("named-hosts", sample.New(), func(t *sample.Test) { t.Client.Name, t.Server.Name = "web1", "db2" })
	add("same-name", sample.New(), func(t *sample.Test) { t.Client.Name, t.Server.Name = "laptop", "laptop" })
	add("foreign-receiver", sample.Foreign("3.12"), nil)
	add("foreign-sender", sample.Foreign("3.12"), func(t *sample.Test) { t.Direction = "down" })
	add("foreign-nameless-both", sample.Foreign(""), func(t *sample.Test) { t.Direction = "both" })
	add("interrupted-foreign", sample.Foreign("3.21"), func(t *sample.Test) {
		t.Rates, t.NoPeer, t.Finishing = t.Rates[:3], true, interrupt
	})
	add("interrupted-fullbore", sample.New(), func(t *sample.Test) { t.Rates, t.NoPeer, t.Finishing = t.Rates[:3], true, interrupt })
	add("peer-lost", sample.New(), func(t *sample.Test) { t.Rates, t.Broken, t.Finishing = t.Rates[:4], true, lost })
	add("peer-lost-foreign", sample.Foreign("3.21"), func(t *sample.Test) { t.Rates, t.Broken, t.Finishing = t.Rates[:4], true, lost })
	add("never-started", sample.New(), func(t *sample.Test) {
		t.Rates, t.Broken = nil, true
		t.Finishing = stop(result.Error{Code: "busy", Text: "the server is busy running a test", Remote: true})
	})
	add("interrupted-at-once", sample.New(), func(t *sample.Test) { t.Rates, t.Broken, t.Finishing = nil, true, interrupt })
	add("nothing-arrived", sample.New(), func(t *sample.Test) { t.Rates, t.Sent = []float64{0, 0}, []float64{312000, 0} })
	add("nothing-arrived-foreign", sample.Foreign("3.12"), func(t *sample.Test) {
		t.Rates, t.Sent = []float64{0, 0}, []float64{312000, 0}
	})
	add("data-left-in-buffer", sample.New(), func(t *sample.Test) {
		t.Rates, t.Sent = sample.Flat(1.9e6, 10), append([]float64{6.9e6}, sample.Flat(1.9e6, 9)...)
	})
	add("warm-up-arrives-late", sample.New(), func(t *sample.Test) {
		t.Omit, t.Rates, t.Sent = 2, sample.Flat(2e6, 12), append([]float64{6e6, 2e6}, sample.Flat(1.9e6, 10)...)
	})
	add("slow-start", sample.New(), func(t *sample.Test) {
		t.Rates = append([]float64{100e6, 400e6, 800e6}, sample.Flat(941e6, 7)...)
	})
	add("still-rising", sample.New(), func(t *sample.Test) {
		t.Rates = nil
		for i := range 40 {
			t.Rates = append(t.Rates, 20e6*float64(i+1))
		}
	})
	add("swinging", sample.New(), func(t *sample.Test) {
		t.Rates = []float64{900e6, 200e6, 700e6, 100e6, 900e6, 150e6, 800e6, 120e6, 600e6, 90e6}
	})
	add("outage", sample.New(), func(t *sample.Test) {
		t.Rates = sample.Flat(941e6, 30)
		t.Rates[12], t.Rates[13], t.Rates[20] = 0, 0, 0
	})
	add("receive-window", sample.New(), func(t *sample.Test) {
		t.Rates, t.RTT, t.IdleRTT, t.Window, t.RwndLim = sample.Flat(10.4e6, 30), 50000, 49800, 65536, 0.93
	})
	add("receive-window-known-link", sample.New(), func(t *sample.Test) {
		speed := int64(1e9)
		t.Client.NIC = &result.NIC{Name: "eth0", SpeedBPS: &speed, MTU: 1500}
		t.Streams, t.Rates, t.RTT, t.IdleRTT, t.Window, t.RwndLim = 4, sample.Flat(41.5e6, 30), 50000, 49800, 65536, 0.93
	})
	add("random-loss", sample.New(), func(t *sample.Test) {
		t.Rates, t.RTT, t.IdleRTT, t.LossShare = sample.Flat(26e6, 30), 50000, 49000, 1e-4
	})
	add("loss-at-a-full-queue", sample.New(), func(t *sample.Test) {
		t.Rates, t.RTT, t.IdleRTT, t.LossShare = sample.Flat(26e6, 30), 50000, 20000, 1e-4
	})
	add("set-rate", sample.New(), func(t *sample.Test) {
		t.Streams, t.Rates, t.Busy = 2, sample.Flat(99.8e6, 30), 0.1
		t.Tune = func(head *result.Run, _ *[]result.Event) { head.Test.Bitrate = 50e6 }
	})
	add("competing-load", sample.New(), func(t *sample.Test) {
		t.Hosts = func(e result.End, _ int) *result.HostSample {
			if e == result.Server {
				return sample.Cores(20, "99/1/0/0", "5/10/5/80")
			}
			return sample.Cores(20, "5/10/5/80", "5/10/5/80")
		}
	})
	add("hypervisor", sample.New(), func(t *sample.Test) {
		t.Hosts = func(e result.End, _ int) *result.HostSample { return sample.Cores(20, "5/10/5/68", "5/10/5/79") }
	})
	add("receiver-cpu", sample.New(), func(t *sample.Test) {
		t.Hosts = func(e result.End, _ int) *result.HostSample {
			h := sample.Cores(60, "5/40/5/50", "5/10/5/80")
			if e == result.Server {
				h = sample.Cores(97, "7/88/5/0", "5/4/5/86")
				load := 0.98
				h.WorkerLoad = &load
			}
			return h
		}
	})
	add("host-drops", sample.New(), func(t *sample.Test) {
		t.Hosts = func(e result.End, row int) *result.HostSample {
			h := sample.Cores(20, "5/10/5/80")
			if e == result.Server && row < 2 {
				h.NIC, h.Softnet = &result.NICDelta{Name: "eth0", RxMissed: 40}, &result.Softnet{Dropped: 3}
			}
			return h
		}
	})
	add("versions-differ", sample.New(), func(t *sample.Test) { t.Server.Tool = &result.Tool{Name: "fullbore", Version: "0.2.0"} })
	return out
}

// describe prints everything that Conclude decides.
func describe(run *result.Run) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n", run.Summary)
	for _, s := range run.Sums {
		fmt.Fprintf(&b, "%s limit: %s\n", s.Direction, s.Limit)
		if s.Shares != nil {
			fmt.Fprintf(&b, "%s sender's time: idle %.2f, window %.2f, buffer %.2f, network %.2f\n", s.Direction, s.Shares.Idle, s.Shares.Window, s.Shares.Buffer, s.Shares.Network)
		}
	}
	for _, l := range run.Layers {
		fmt.Fprintf(&b, "%s layers: l7 %.2f, l4 %.2f, l3 %.2f, l2 %.2f, l1 %.2f Mbit/s\n", l.Direction, l.L7/1e6, l.L4/1e6, l.L3/1e6, l.L2/1e6, l.L1/1e6)
	}
	for _, s := range run.Sums {
		if text := conclude.GradeText(s.Grades); text != "" {
			fmt.Fprintf(&b, "%s grades: %s\n", s.Direction, text)
		}
	}
	fmt.Fprintf(&b, "flags: %s\n", strings.Join(run.Flags, " "))
	for _, n := range run.Notices {
		fmt.Fprintf(&b, "%s %s (%s): %s\n", n.Level, n.Code, n.End, n.Text)
		if n.Fix != "" {
			fmt.Fprintf(&b, "  fix: %s\n", n.Fix)
		}
	}
	if run.Next != nil {
		fmt.Fprintf(&b, "next: %s  # %s\n", run.Next.Command, run.Next.Why)
	}
	return b.String()
}

// every is cases and udpCases.
func every() map[string]sample.Test {
	out := cases()
	maps.Copy(out, udpCases())
	return out
}

func TestGolden(t *testing.T) {
	for name, test := range every() {
		t.Run(name, func(t *testing.T) {
			run := test.Run()
			conclude.Conclude(run)
			got := describe(run)
			file := filepath.Join("testdata", name+".txt")
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestSentence holds for every run: one sentence, no infinities, no figure that the
// receiver did not count without saying so.
func TestSentence(t *testing.T) {
	for name, test := range every() {
		run := test.Run()
		conclude.Conclude(run)
		s := run.Summary
		if s == "" || !strings.HasSuffix(s, ".") || strings.Contains(s, "\n") {
			t.Errorf("%s: not one line with a full stop: %q", name, s)
		}
		for _, bad := range []string{"NaN", "Inf", "%!", "  ", "..", "unknown"} {
			if strings.Contains(s, bad) {
				t.Errorf("%s: %q in %q", name, bad, s)
			}
		}
		for _, sum := range run.Sums {
			if h := conclude.HeadlineOf(run, sum.Direction); h.Basis != conclude.None && !h.Basis.Arrived() && !strings.Contains(s, "how much arrived is not known") {
				t.Errorf("%s: what was sent passes for a result: %q", name, s)
			}
		}
	}
}

func TestTwiceIsOnce(t *testing.T) {
	for name, test := range every() {
		once, twice := test.Run(), test.Run()
		conclude.Conclude(once)
		conclude.Conclude(twice)
		conclude.Conclude(twice)
		if diff := cmp.Diff(once, twice); diff != "" {
			t.Errorf("%s: -once +twice:\n%s", name, diff)
		}
	}
}

// TestEventsFold: the conclusions as events are the conclusions in the run.
func TestEventsFold(t *testing.T) {
	for name, test := range every() {
		events := test.Events()
		run := result.Fold(events)
		added := conclude.Events(run)
		if last := added[len(added)-1]; last.Kind != result.KindConclusion {
			t.Errorf("%s: the last event is %s", name, last.Kind)
		}
		folded := result.Fold(append(events, added...))
		if diff := cmp.Diff(run, folded); diff != "" {
			t.Errorf("%s: -run +folded:\n%s", name, diff)
		}
		if _, err := json.Marshal(run); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestNoticesAndFlags(t *testing.T) {
	want := map[string]struct{ notices, flags []string }{
		"one-direction-30s":    {nil, nil},
		"one-direction-10s":    {[]string{"short-run"}, nil},
		"foreign-receiver":     {[]string{"foreign-peer", "short-run"}, nil},
		"interrupted-foreign":  {[]string{"foreign-peer", "no-receiver-count", "short-run"}, []string{"counter_missing"}},
		"interrupted-fullbore": {[]string{"short-run"}, nil},
		"nothing-arrived":      {[]string{"nothing-arrived"}, nil},
		"data-left-in-buffer":  {[]string{"sent-not-received", "short-run"}, nil},
		"warm-up-arrives-late": {[]string{"received-more-than-sent", "short-run"}, nil},
		"still-rising":         {[]string{"short-run", "unsteady"}, []string{"unsteady"}},
		"swinging":             {[]string{"short-run", "unsteady"}, []string{"unsteady"}},
		"outage":               {[]string{"stalled", "unsteady"}, []string{"unsteady"}},
		"competing-load":       {[]string{"competing-load", "short-run"}, nil},
		"hypervisor":           {[]string{"short-run", "steal", "steal"}, []string{"steal"}},
		"receiver-cpu":         {[]string{"short-run"}, []string{"receiver_cpu"}},
		"host-drops":           {[]string{"local-drops", "short-run"}, []string{"local_drops"}},
		"versions-differ":      {[]string{"short-run", "version-differs"}, nil},
	}
	all := cases()
	for name, w := range want {
		run := all[name].Run()
		conclude.Conclude(run)
		var codes []string
		for _, n := range run.Notices {
			codes = append(codes, n.Code)
		}
		slices.Sort(codes)
		if diff := cmp.Diff(w.notices, codes); diff != "" {
			t.Errorf("%s notices -want +got:\n%s", name, diff)
		}
		if diff := cmp.Diff(w.flags, run.Flags); diff != "" {
			t.Errorf("%s flags -want +got:\n%s", name, diff)
		}
	}
}

func TestTogether(t *testing.T) {
	up, down := sample.New(), sample.New()
	down.Direction, down.Rates, down.RTT, down.Window, down.RwndLim = "down", sample.Flat(10.4e6, 30), 50000, 65536, 0.9
	a, b := up.Run(), down.Run()
	conclude.Conclude(a)
	conclude.Conclude(b)
	want := "10.0.0.1 → 10.0.0.2: 941 Mbit/s received; 10.0.0.2 → 10.0.0.1: 10.4 Mbit/s received (limited by the receiver's window)."
	if got := conclude.Together([]*result.Run{a, b}); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got := conclude.Together(nil); got != "Nothing was measured." {
		t.Errorf("no runs: %q", got)
	}
}

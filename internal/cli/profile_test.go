package cli

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fullbore-net/fullbore/internal/explain"
	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/result"
)

// profileSteps parses the options of `fullbore test` and returns its steps.
func profileSteps(t *testing.T, words string) ([]testStep, *testOptions, error) {
	t.Helper()
	o := &testOptions{}
	cmd := newTestCmd(&env{})
	cmd.ResetFlags()
	o.addFlags(cmd)
	if err := cmd.ParseFlags(strings.Fields(words)); err != nil {
		t.Fatal(err)
	}
	if err := cmd.ValidateFlagGroups(); err != nil {
		t.Fatal(err)
	}
	if err := o.useProfile(cmd.Flags()); err != nil {
		return nil, o, err
	}
	if err := o.useVia(cmd.Flags(), []string{"192.0.2.1"}); err != nil {
		return nil, o, err
	}
	s, err := o.steps("192.0.2.1")
	return s, o, err
}

// stepText is a step in one line.
func stepText(s testStep) string {
	text := fmt.Sprintf("%s: %s", s.label(), stageWords(&s.plan))
	if s.judge {
		text += ", judged"
	}
	if n := s.plan.NTTTCP; n != nil {
		text += fmt.Sprintf(", %d ports", n.Ports)
		text = strings.Replace(text, ", 1 ports", ", 1 port", 1)
	}
	return text
}

func TestProfileVM(t *testing.T) {
	all := fmt.Sprintf("%d streams", 2*runtime.NumCPU())
	for _, c := range []struct {
		words string
		want  []string
	}{
		{"--profile vm", []string{"check: 1 stream, up, 10 s", "record: " + all + ", up, 300 s, judged"}},
		{"--profile vm -t 60 -P 3", []string{"check: 1 stream, up, 10 s", "record: 3 streams, up, 60 s, judged"}},
		{"--profile vm -t 5", []string{"check: 1 stream, up, 5 s", "record: " + all + ", up, 5 s, judged"}},
		{"--profile vm -t 0", []string{"check: 1 stream, up, 10 s", "record: " + all + ", up, 10 s, judged"}},
		{"--profile vm -n 8M", []string{"check: 1 stream, up, 8.00 MiB", "record: " + all + ", up, 8.00 MiB, judged"}},
		{"--profile vm --down", []string{"check: 1 stream, down, 10 s", "record: " + all + ", down, 300 s, judged"}},
		{"--profile vm --both -P 1", []string{"check: 1 stream, both ways, 10 s", "record: 1 stream, both ways, 300 s, judged"}},
		{"--profile vm --via ntttcp -P 20", []string{"check: 1 stream, up, 10 s, 1 port", "record: 20 streams, up, 300 s, judged, 10 ports"}},
		{"--profile vm --via ntttcp:4 -P 8", []string{"check: 1 stream, up, 10 s, 1 port", "record: 8 streams, up, 300 s, judged, 4 ports"}},
		{"--profile vm --via ntttcp-windows -P 20", []string{"check: 1 stream, up, 10 s, 1 port", "record: 20 streams, up, 300 s, judged, 20 ports"}},
		{"-t 4", []string{": 1 stream, up, 4 s, judged", ": 1 stream, down, 4 s, judged"}},
	} {
		steps, _, err := profileSteps(t, c.words)
		if err != nil {
			t.Errorf("%s: %v", c.words, err)
			continue
		}
		var got []string
		for _, s := range steps {
			got = append(got, stepText(s))
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", c.words, diff)
		}
	}
	_, _, err := profileSteps(t, "--profile lan")
	var usage *UsageError
	if !errors.As(err, &usage) || !strings.Contains(strings.Join(usage.Hints, ""), "vm") {
		t.Errorf("an unknown profile: %v", err)
	}
}

// TestProfiles holds the list together: every flag exists and takes its value, names are told
// apart, the last stage is the one that counts.
func TestProfiles(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range testProfiles {
		if seen[p.name] || p.title == "" || len(p.stages) == 0 {
			t.Errorf("profile %q: the name twice, no title or no stage", p.name)
		}
		seen[p.name] = true
		if len(explain.Lookup("profile-"+p.name)) == 0 {
			t.Errorf("profile %s has no topic profile-%s in package explain", p.name, p.name)
		}
		o := &testOptions{}
		cmd := newTestCmd(&env{})
		cmd.ResetFlags()
		o.addFlags(cmd)
		for _, cores := range []int{1, 4, 100_000} {
			for _, f := range p.flags(profileHost{cores: cores, most: plan.MaxStreamsExt}) {
				if flag := cmd.Flags().Lookup(f.name); flag == nil {
					t.Errorf("profile %s: no flag --%s", p.name, f.name)
				} else if err := flag.Value.Set(f.value); err != nil {
					t.Errorf("profile %s: --%s %s: %v", p.name, f.name, f.value, err)
				}
			}
			if o.plan.Streams > plan.MaxStreamsExt {
				t.Errorf("profile %s: %d streams on %d cores", p.name, o.plan.Streams, cores)
			}
		}
	}
}

func TestProfileFits(t *testing.T) {
	iperf3, own := &result.Run{Wire: &result.Wire{}}, &result.Run{Wire: &result.Wire{Extension: true}}
	for _, c := range []struct {
		name   string
		step   testStep
		before []*result.Run
		want   int
	}{
		{"an iperf3", testStep{spare: true, plan: plan.Plan{Streams: 192}}, []*result.Run{iperf3}, 128},
		{"a fullbore", testStep{spare: true, plan: plan.Plan{Streams: 192}}, []*result.Run{own}, 192},
		{"the user's own number", testStep{plan: plan.Plan{Streams: 192}}, []*result.Run{iperf3}, 192},
		{"few", testStep{spare: true, plan: plan.Plan{Streams: 8}}, []*result.Run{iperf3}, 8},
		{"nothing known", testStep{spare: true, plan: plan.Plan{Streams: 192}}, nil, 192},
		{"NTTTCP", testStep{spare: true, plan: plan.Plan{Streams: 192, NTTTCP: &plan.NTTTCP{}}}, []*result.Run{iperf3}, 192},
	} {
		was := c.step.plan.Streams
		n := c.step.fit(c.before)
		if c.step.plan.Streams != c.want || (n != nil) != (c.want != was) {
			t.Errorf("%s: %d streams, notice %v, want %d", c.name, c.step.plan.Streams, n, c.want)
		}
		if n != nil && !strings.Contains(n.Text, "192") {
			t.Errorf("%s: %q does not say what was wanted", c.name, n.Text)
		}
	}
}

func TestTraffic(t *testing.T) {
	for _, c := range []struct {
		words string
		speed float64
		want  string
	}{
		// 10 s and 300 s at 10 Gbit/s
		{"--profile vm", 10e9, "Traffic at the speed of this host's link (10.0 Gbit/s): up to 388 GB in all."},
		{"--profile vm --both", 10e9, "up to 775 GB in all."},
		{"--profile vm", 0, "Traffic: as much as the path carries for 310 s; a path of 1 Gbit/s: up to 38.8 GB in all."},
		{"--profile vm --max-rate 100M", 10e9, "Traffic at the speed of this host's link (10.0 Gbit/s): up to 3.88 GB in all."},
		{"--profile vm --max-bytes 1G", 10e9, "up to 2.15 GB in all."}, // GiB, each stage
		{"--profile vm -n 1G", 0, "Traffic: up to 2.15 GB in all."},
		{"--profile vm -P 2 -b 100K -t 80s", 10e9, "Traffic: up to 2.12 MB in all."}, // 12500 B/s × 10 s, 25000 × 80
		{"--profile vm -t 10 -O 5", 8e9, "up to 30.0 GB in all."},
	} {
		steps, _, err := profileSteps(t, c.words)
		if err != nil {
			t.Fatalf("%s: %v", c.words, err)
		}
		if got := trafficText(steps, c.speed); !strings.HasPrefix(got, c.want) && !strings.Contains(got, "): "+c.want) {
			t.Errorf("%s at %g: %q, want %q", c.words, c.speed, got, c.want)
		}
	}
}

func TestAnnounce(t *testing.T) {
	for _, c := range []struct {
		out         outputOptions
		person, log bool
	}{{outputOptions{}, true, false}, {outputOptions{plain: true}, true, false}, {outputOptions{json: true}, false, true}, {outputOptions{csv: true}, false, true}, {outputOptions{quiet: true}, false, false}} {
		var person, log strings.Builder
		e := &env{Std: Std{Out: &person, Err: &log, Now: time.Now, In: strings.NewReader(""), Getenv: func(string) string { return "" }}}
		steps, o, err := profileSteps(t, "--profile vm -P 6")
		if err != nil {
			t.Fatal(err)
		}
		out, err := e.newOutput(c.out, nil, []string{"self"}, 1, len(steps))
		if err != nil {
			t.Fatal(err)
		}
		out.announce(t.Context(), o, []string{"self"}, steps)
		for _, w := range []struct {
			given bool
			text  string
		}{{c.person, person.String()}, {c.log, log.String()}} {
			if !w.given && w.text != "" || w.given && !(strings.HasPrefix(w.text, "Profile vm, Azure's procedure") &&
				strings.Contains(w.text, "check ") && strings.Contains(w.text, "6 streams, up, 300 s") && strings.Contains(w.text, "Traffic")) {
				t.Errorf("%+v: stdout %q, stderr %q", c.out, person.String(), log.String())
			}
		}
	}
}

func TestReceiverText(t *testing.T) {
	for words, want := range map[string]string{
		"--profile vm":                           "",
		"--profile vm --via ntttcp":              "ntttcp -r -H.",
		"--profile vm --via ntttcp-windows -P 8": "ntttcp -r with -m 1,*,192.0.2.1, then -m 8,*,192.0.2.1.",
		"--via ntttcp":                           "",
	} {
		steps, o, err := profileSteps(t, words)
		if err != nil {
			t.Fatal(err)
		}
		if got := receiverText(o, steps); (got == "") != (want == "") || !strings.HasSuffix(got, want) {
			t.Errorf("%s: %q, want %q", words, got, want)
		}
	}
	if h := (&testOptions{viaWord: "ntttcp-windows:4"}).profileHost(); h.most != plan.MaxNTTTCPTokens {
		t.Errorf("%+v", h)
	}
}

func TestProfileSummary(t *testing.T) {
	run := func(label string, streams int, bps float64, err *result.Error) *result.Run {
		sum := result.Sum{Direction: result.Up, Receiver: &result.Total{End: 10, Bytes: int64(bps / 8 * 10)}}
		return &result.Run{Label: label, Test: result.Test{Transport: "tcp", Streams: streams}, Sums: []result.Sum{sum}, Err: err}
	}
	for _, c := range []struct {
		name string
		runs []*result.Run
		want string
	}{
		{"both", []*result.Run{run(checkStage, 1, 4e9, nil), run(recordStage, 8, 9e9, nil)}, "client → server: 9.00 Gbit/s received; one stream alone carried 4.00 Gbit/s (44 % of it)."},
		{"one stream in both", []*result.Run{run(checkStage, 1, 4e9, nil), run(recordStage, 1, 4e9, nil)}, "client → server: 4.00 Gbit/s received."},
		{"only the check", []*result.Run{run(checkStage, 1, 4e9, &result.Error{Text: "the network went away"})}, "client → server: 4.00 Gbit/s received; the network went away."},
	} {
		if got := profileSummary(c.runs); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

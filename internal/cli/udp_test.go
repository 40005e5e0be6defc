package cli

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/fullbore-net/fullbore/internal/conclude"
	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/internal/units"
	"github.com/fullbore-net/fullbore/result"
)

func TestRateSpec(t *testing.T) {
	for text, want := range map[string]rateSpec{
		"1G":       {bps: 1e9},
		"1G@l1":    {bps: 1e9, layer: units.L1, layered: true},
		"100M@L3":  {bps: 100e6, layer: units.L3, layered: true},
		"10M @ l7": {bps: 10e6, layer: units.L7, layered: true},
		"95%":      {share: 0.95, layer: units.L1},
		"50 %@l7":  {share: 0.5, layered: true},
		"0":        {},
		"auto":     {auto: true},
	} {
		want.text = text
		got, err := parseRateSpec(text)
		if err != nil || got != want {
			t.Errorf("%q: %+v, %v, want %+v", text, got, err, want)
		}
	}
	for _, bad := range []string{"", "fast", "1G@l5", "1G@", "@l1", "0%", "-5%", "NaN%", "9999%", "auto@l1", "1G%", "1Q"} {
		if got, err := parseRateSpec(bad); err == nil {
			t.Errorf("%q was read as %+v", bad, got)
		}
	}
}

// words parses the options of `fullbore test` and returns its plans.
func words(t *testing.T, args ...string) ([]plan.Plan, *testOptions, error) {
	t.Helper()
	o := &testOptions{}
	cmd := newTestCmd(&env{})
	cmd.ResetFlags()
	o.addFlags(cmd)
	if err := cmd.ParseFlags(args); err != nil {
		return nil, o, err
	}
	if err := o.udp.check("h", o.tcpOnly(cmd.Flags().Changed)); err != nil {
		return nil, o, err
	}
	ps, err := o.plans("192.0.2.1")
	return ps, o, err
}

func TestUDPPlans(t *testing.T) {
	for _, c := range []struct {
		args string
		want plan.Plan
	}{
		{"-u -b 100M", plan.Plan{Bitrate: 100e6, DontFragment: true}},
		{"-u -b 100M -P 4", plan.Plan{Bitrate: 100e6, Streams: 4, DontFragment: true}},
		{"-u --total-bitrate 100M -P 4", plan.Plan{Bitrate: 25e6, Streams: 4, DontFragment: true}},
		{"-u -b 0 -l 64 --pacing precise --offload off", plan.Plan{BlockSize: 64, Pacing: plan.PacingPrecise, Offload: plan.OffloadOff, DontFragment: true}},
		{"-u --pps 1000 -l 64", plan.Plan{BlockSize: 64, Bitrate: 512000, DontFragment: true}},
		{"-u --pps 0.5 -l 200", plan.Plan{BlockSize: 200, Bitrate: 800, DontFragment: true}},
		{"-u -b 5M -l 4000 --allow-fragments", plan.Plan{BlockSize: 4000, Bitrate: 5e6, AllowFragments: true}},
	} {
		ps, _, err := words(t, append(strings.Fields(c.args), "--up")...)
		if err != nil {
			t.Errorf("%s: %v", c.args, err)
			continue
		}
		c.want.Host, c.want.Port, c.want.Direction, c.want.Transport, c.want.RateSet = "192.0.2.1", plan.DefaultPort, plan.Up, plan.UDP, true
		c.want.Streams = max(c.want.Streams, 1)
		if diff := cmp.Diff(c.want, ps[0]); diff != "" {
			t.Errorf("%s -want +got:\n%s", c.args, diff)
		}
	}
	for args, want := range map[string]string{
		"-u":                          "needs a rate",
		"-u -b 1M --pps 5":            "only one of",
		"-u -b 1M --total-bitrate 1M": "only one of",
		"-u -b 1M --copy":             "--copy: has no meaning for UDP",
		"-u -b 1M -C bbr -N":          "--no-delay, --cc",
		"-u -b 1M --pacing slow":      "frugal or precise",
		"-u -b 1M --offload maybe":    "on or off",
		"-u -b 1M -l 70000":           "block",
		"-u --pps -1":                 "more than 0",
		"-b 1G@l1":                    "-b 1G@l1: only for UDP",
		"-b auto":                     "only for UDP",
		"--pps 5 --grade voice=1/2":   "--grade, --pps: only for UDP",
	} {
		_, _, err := words(t, strings.Fields(args)...)
		var usage *UsageError
		if !errors.As(err, &usage) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", args, err, want)
		}
	}
}

// A refusal of -u without a rate says what to type.
func TestNeedRate(t *testing.T) {
	var usage *UsageError
	if !errors.As(needRate("db2"), &usage) {
		t.Fatal("no usage error")
	}
	text := usage.Msg + "\n" + strings.Join(usage.Hints, "\n")
	for _, want := range []string{"1 Mbit/s", "fullbore test db2 -u -b 100M", "-b 95%", "-b auto", "--pps", "@l1"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in %s", want, text)
		}
	}
}

// Golden values of spec recipes §3, backwards: rates on the wire to payload.
func TestResolve(t *testing.T) {
	speed := int64(1e9)
	known := []*result.Run{{Hosts: result.Hosts{Server: &result.Host{NIC: &result.NIC{SpeedBPS: &speed}}}}}
	for _, c := range []struct {
		args string
		want float64 // Mbit/s of payload per stream
	}{
		{"-u -b 1047.142857M@l1 -l 1400", 1000},
		{"-u -b 1020M@l3 -l 1400", 1000},
		{"-u -b 1032.857143M@l2 -l 1400", 1000},
		{"-u -b 100% -l 1400", 954.98},
		{"-u -b 100% -l 1472", 957.09},
		{"-u -b 50% -l 1472", 957.09 / 2},
		{"-u -b 50%@l7 -l 1472", 500},
		{"-u --total-bitrate 100% -l 1472 -P 2", 957.09 / 2},
	} {
		ps, o, err := words(t, strings.Fields(c.args)...)
		if err != nil {
			t.Errorf("%s: %v", c.args, err)
			continue
		}
		p := ps[0]
		if err := o.udp.resolve(context.Background(), &p, known); err != nil {
			t.Errorf("%s: %v", c.args, err)
		}
		if got := float64(p.Bitrate) / 1e6; math.Abs(got-c.want) > 0.005 {
			t.Errorf("%s: %.3f Mbit/s, want %.2f", c.args, got, c.want)
		}
	}
	ps, o, err := words(t, "-u", "-b", "95%")
	if err != nil {
		t.Fatal(err)
	}
	p := ps[0]
	p.Host = "127.0.0.1" // loopback has no speed
	var usage *UsageError
	if err := o.udp.resolve(context.Background(), &p, nil); !errors.As(err, &usage) || len(usage.Hints) == 0 {
		t.Errorf("an unknown speed: %v", err)
	}
}

func TestGradeWords(t *testing.T) {
	got, err := gradeProfiles([]string{"voice=30ms/1%", "games=5ms/0.1%,20ms/0.5%"})
	if err != nil {
		t.Fatal(err)
	}
	want := conclude.Profiles()
	want[0] = conclude.Profile{Name: "voice", Good: conclude.Bounds{Variation: 0.03, Loss: 0.01}, Usable: conclude.Bounds{Variation: 0.03, Loss: 0.01}}
	want = append(want, conclude.Profile{Name: "games", Good: conclude.Bounds{Variation: 0.005, Loss: 0.001}, Usable: conclude.Bounds{Variation: 0.02, Loss: 0.005}})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for _, bad := range []string{"voice", "=1ms/1%", "voice=30ms", "voice=30/1%", "voice=30ms/1%,10ms/1%", "v=1ms/1%,2ms/2%,3ms/3%", "v=1ms/x"} {
		if _, err := gradeProfiles([]string{bad}); err == nil {
			t.Errorf("%q was read", bad)
		}
	}
}

// madeUp is a made-up path: it loses what is above its rate; a sender may be slower.
type madeUp struct{ rate, sender float64 }

func (l madeUp) try(bps float64) trial {
	offered := min(bps, l.sender)
	return trial{offered: offered, loss: max(0, 1-l.rate/offered)}
}

func search(l madeUp, limit float64) *rateSearch {
	s := newRateSearch(limit)
	for s.add(l.try(s.next)) {
	}
	return s
}

func TestRateSearch(t *testing.T) {
	inf := math.Inf(1)
	for _, c := range []struct {
		name  string
		l     madeUp
		limit float64
		want  float64
		why   string
	}{
		{"between two steps", madeUp{100e6, inf}, 0, 0.8 * 80e6, "of 160 Mbit/s 38 % were lost"},
		{"exactly a step", madeUp{160e6, inf}, 0, 0.8 * 160e6, "were lost"},
		{"slow path", madeUp{1e6, inf}, 0, 0.8 * 625e3, "were lost"},
		{"slower than any", madeUp{10e3, inf}, 0, 0, "even at"},
		{"the sender gives up", madeUp{inf, 3e9}, 0, 0.8 * 3e9, "the sender reached 3.00 Gbit/s"},
		{"a known link", madeUp{inf, inf}, 957e6, 0.8 * 957e6, "the most that may be sent"},
		{"a budget below the start", madeUp{inf, inf}, 1e6, 0.8e6, "the most that may be sent"},
	} {
		s := search(c.l, c.limit)
		if math.Abs(s.rate-c.want) > 1 || !strings.Contains(s.why, c.why) {
			t.Errorf("%s: %.0f (%s), want %.0f (%s)", c.name, s.rate, s.why, c.want, c.why)
		}
	}
}

// Whatever the path: the search ends, never asks for more than it may, and what it finds
// fits the path.
func TestRateSearchProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := madeUp{
			rate:   math.Pow(10, rapid.Float64Range(3, 12).Draw(t, "rate")),
			sender: math.Pow(10, rapid.Float64Range(3, 12).Draw(t, "sender")),
		}
		limit := 0.0
		if rapid.Bool().Draw(t, "limited") {
			limit = math.Pow(10, rapid.Float64Range(4, 11).Draw(t, "limit"))
		}
		s := newRateSearch(limit)
		steps := 0
		for more := true; more; steps++ {
			if limit > 0 && s.next > limit {
				t.Fatalf("tries %v above %v", s.next, limit)
			}
			more = s.add(l.try(s.next))
		}
		if steps > findSteps || s.why == "" {
			t.Fatalf("%d steps, %q", steps, s.why)
		}
		if s.rate > l.rate || limit > 0 && s.rate > limit {
			t.Fatalf("found %v on a path of %v, limit %v", s.rate, l.rate, limit)
		}
	})
}

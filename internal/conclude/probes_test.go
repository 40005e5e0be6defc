package conclude

import (
	"slices"
	"strings"
	"testing"

	"github.com/fullbore-net/fullbore/internal/conclude/sample"
	"github.com/fullbore-net/fullbore/result"
)

func TestProbesSentence(t *testing.T) {
	change := func(f func(*result.Probes)) *result.Run {
		run := sample.Probes()
		f(&run.Probes[0])
		return run
	}
	none := change(func(p *result.Probes) {
		p.Answered, p.RoundTrip, p.Up, p.Down, p.Clock, p.Histogram = 0, nil, nil, nil, nil, nil
		*p.LostUp, *p.LostDown = 500, 0
	})
	broke := sample.Probes()
	broke.Err = &result.Error{Code: "interrupted", Text: "stop", Interrupted: true}
	gone := sample.Probes()
	gone.Err = &result.Error{Code: "peer-closed", Remote: true, Text: "the server closed the connection."}
	for name, c := range map[string]struct {
		run  *result.Run
		want string
	}{
		"probes": {sample.Probes(), "b: round trip 2.10 ms (p50; p99 5.34 ms) of 497 probes each 20 ms (voice), of 500 sent 2 lost up and 1 down; jitter 73.3 µs up, 66.7 µs down; one way 1.10 ms up, 1.00 ms down (± 600 µs)."},
		"one clock": {
			change(func(p *result.Probes) { p.Clock.Source = "same-host" }),
			"b: round trip 2.10 ms (p50; p99 5.34 ms) of 497 probes each 20 ms (voice), of 500 sent 2 lost up and 1 down; jitter 73.3 µs up, 66.7 µs down; one way 1.10 ms up, 1.00 ms down (both ends on one clock).",
		},
		"no clock, nothing lost": {change(func(p *result.Probes) {
			p.Clock, p.Up.Delay, p.Down.Delay, p.Profile = nil, nil, nil, "20ms"
			p.Answered, *p.LostUp, *p.LostDown = 500, 0, 0
		}), "b: round trip 2.10 ms (p50; p99 5.34 ms) of 500 probes each 20 ms, none lost; jitter 73.3 µs up, 66.7 µs down."},
		"which way is not known": {
			change(func(p *result.Probes) { p.LostUp, p.LostDown, p.Up, p.Down = nil, nil, nil, nil }),
			"b: round trip 2.10 ms (p50; p99 5.34 ms) of 497 probes each 20 ms (voice), 3 of 500 lost (on which way is not known).",
		},
		"none":        {none, "b: none of 500 probes was answered, of 500 sent 500 lost up and 0 down."},
		"interrupted": {broke, "Interrupted: b: round trip 2.10 ms (p50; p99 5.34 ms) of"},
		"gone":        {gone, "Broke off (the server closed the connection): b: round trip"},
		"tcp":         {sample.Pings(), "b: connecting takes 400 µs (p50 of 21, p95 880 µs); request and response 380 µs (p50; p99 2.55 ms) with 64 bytes, 2 500 a second."},
		"plain tcp":   {sample.PlainPings(), "10.0.0.2: connecting takes 400 µs (p50 of 4, p95 880 µs); the time of a request and its answer is not known: the other end answers none (fullbore serve there would)."},
		"plain up":    {sample.PlainProbes()[0], "10.0.0.2: up jitter 400 µs (by its count), 1 of 500 lost."},
		"plain down":  {sample.PlainProbes()[1], "10.0.0.2: down jitter 120 µs, variation p99 740 µs, 1 of 500 lost."},
	} {
		Conclude(c.run)
		if got := c.run.Summary; !strings.HasPrefix(got, c.want) || !strings.HasSuffix(got, ".") {
			t.Errorf("%s:\n got %s\nwant %s", name, got, c.want)
		}
	}
	// Probes beside a load say nothing about what carried.
	load := sample.New().Run()
	load.Probes = sample.Probes().Probes
	Conclude(load)
	if strings.Contains(load.Summary, "round trip") {
		t.Errorf("with a load: %s", load.Summary)
	}
}

func TestProbesNext(t *testing.T) {
	next := func(run *result.Run) string {
		Conclude(run)
		if run.Next == nil {
			return ""
		}
		return run.Next.Command
	}
	fast := sample.Probes()
	fast.Probes[0].Spacing = 0.001
	mute := sample.Probes()
	mute.Probes[0].RoundTrip = nil
	port := sample.Probes()
	port.Test.Port = 6000
	self := sample.Probes()
	self.Test.Target, self.Test.Port, self.Test.Own = "127.0.0.1", 40123, true
	typed := sample.Probes()
	typed.Test.Target, typed.Test.Port = "127.0.0.1", 40123
	broke := sample.Probes()
	broke.Err = &result.Error{Code: "peer-closed"}
	for name, c := range map[string]struct {
		run  *result.Run
		want string
	}{
		"voice": {sample.Probes(), "fullbore delay 10.0.0.2 --profile 1ms"}, "1ms": {fast, "fullbore test 10.0.0.2"},
		"unanswered": {mute, "fullbore delay 10.0.0.2 --tcp"}, "port": {port, "fullbore delay 10.0.0.2 -p 6000 --profile 1ms"},
		"self": {self, "fullbore delay self --profile 1ms"}, "a port of one's own on this host": {typed, "fullbore delay 127.0.0.1 -p 40123 --profile 1ms"}, "tcp": {sample.Pings(), "fullbore test 10.0.0.2"},
		"plain": {sample.PlainProbes()[1], "fullbore serve"}, "broke": {broke, ""},
	} {
		if got := next(c.run); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// Delays below zero are left as they are, and flagged.
func TestProbesFlags(t *testing.T) {
	fine, negative, acausal := sample.Probes(), sample.Probes(), sample.Probes()
	negative.Probes[0].Up.Delay.Min = -0.0001
	acausal.Probes[0].Clock.Causal = false
	for name, c := range map[string]struct {
		run  *result.Run
		want bool
	}{"fine": {fine, false}, "negative": {negative, true}, "not causal": {acausal, true}} {
		Conclude(c.run)
		if got := slices.Contains(c.run.Flags, FlagClock); got != c.want {
			t.Errorf("%s: flags %v", name, c.run.Flags)
		}
	}
	if negative.Probes[0].Up.Delay.Min != -0.0001 {
		t.Error("a delay below zero was changed")
	}
}

func TestTogetherProbes(t *testing.T) {
	runs := sample.PlainProbes()
	want := "10.0.0.2: up jitter 400 µs (by its count), 1 of 500 lost; down jitter 120 µs, variation p99 740 µs, 1 of 500 lost; round trip 500 µs (least that TCP saw on the control connection); " +
		"one-way delay, and the round trip of datagrams, are not known: the other end does not answer probes (fullbore serve there would)."
	if got := TogetherProbes(runs); got != want {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
	if got := TogetherProbes(runs[:1]); got != "" {
		t.Errorf("of one run: %s", got)
	}
	if got := TogetherProbes([]*result.Run{{}, {}}); got != "Nothing was measured." {
		t.Errorf("of nothing: %s", got)
	}
}

func TestTime(t *testing.T) {
	for s, want := range map[float64]string{
		0: "0 µs", 1e-9: "0.00 µs", 23.44e-6: "23.4 µs", 9.994e-6: "9.99 µs", 999e-6: "999 µs", 999.6e-6: "1.00 ms", 0.0123: "12.3 ms", 0.9996: "1.00 s", 12.34: "12.3 s", -3e-6: "-3.00 µs",
	} {
		if got := Time(s); got != want {
			t.Errorf("%v: %q, want %q", s, got, want)
		}
	}
}

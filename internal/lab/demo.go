package lab

import (
	"context"
	"embed"
	"fmt"
	"path"
	"strings"
)

//go:embed demo/*.scenario
var demoFiles embed.FS

// Demo is a stop of the tour for newcomers (`fullbore lab demo`): a path, what somebody who
// works over it would notice, and what there is to learn from it.
type Demo struct {
	Name, Title string
	// Path says what is built, Feels what its users complain of, Learn what to take home.
	Path, Feels, Learn string
	// Try is a command that goes on from here.
	Try string
	// Truth are figures of the path beside which what was found is shown.
	Truth []DemoTruth
	*Scenario
}

// DemoTruth is a figure of the path, and the value of a verdict that must be it.
type DemoTruth struct {
	What        string // for people
	Code, Value string // the verdict, and the name of its value
	Is          float64
	Unit        string // "bit/s", "s", "bytes", "ratio"
}

// demos is the tour, in its order. The texts of the scenarios are files in demo/, so that
// the program carries them.
var demos = []Demo{
	{
		Name: "clean", Title: "a path on which nothing is wrong",
		Path:  "50 Mbit/s each way, a round trip of 20 ms, a queue as long as one round trip.",
		Feels: "Copies run at about 6 MB/s, and nobody complains.",
		Truth: []DemoTruth{
			{"rate of the line", "path-full", "rate_l3", 50e6, "bit/s"},
			{"round trip", "path-full", "rtt", 0.020, "s"},
		},
		Learn: "A full path is an answer, too. What a line of 50 Mbit/s carries for you is less (48): each packet of 1500 bytes has 52 of headers. " +
			"A copy that is slower than this is held up by its program or its disk, and no network change mends that.",
		Try: "fullbore lab shell --rate 50M --rtt 20ms",
	},
	{
		Name: "window", Title: "a receiver that grants too little",
		Path:  "100 Mbit/s, a round trip of 28 ms; the server's TCP has a buffer of 64 KiB (net.ipv4.tcp_rmem).",
		Feels: "One copy crawls at a fifth of the rate, ten at a time are fine: \"the provider throttles us\".",
		Truth: []DemoTruth{
			{"round trip", "receive-window", "rtt", 0.028, "s"},
		},
		Learn: "At most one window is on the way at any time, so rate = window / round trip: 64 KiB each 28 ms are 19 Mbit/s, however fast the line is. " +
			"What this line needs is 100 Mbit/s times 28 ms = 350 kB. Several streams have several windows: that they are faster is the proof.",
		Try: "fullbore explain receive-window",
	},
	{
		Name: "bloat", Title: "a queue that is too deep",
		Path:  "20 Mbit/s, a round trip of 20 ms, and a queue that holds 250 kB: a tenth of a second.",
		Feels: "Speed tests look fine. Calls and games break up whenever somebody uploads.",
		Truth: []DemoTruth{
			{"rate of the line", "path-full", "rate_l3", 20e6, "bit/s"},
			{"depth of the queue", "standing-queue", "queue", 0.1, "s"},
		},
		Learn: "TCP fills whatever queue it finds before it slows down, and everybody else waits behind it. The rate says nothing of that: measure the delay under load. " +
			"The mend is a managed queue (fq_codel, cake), not a faster line.",
		Try: "fullbore explain standing-queue",
	},
	{
		Name: "loss", Title: "a line that loses one packet in a hundred",
		Path:  "50 Mbit/s, a round trip of 20 ms; 1 % of the packets towards the server are lost, at random.",
		Feels: "Downloads are fine, uploads run at a tenth of the rate, ping shows next to nothing.",
		Learn: "TCP takes every loss for a full path and slows down, so 1 % costs nine tenths of the rate. Slowing down to half is the question that tells: " +
			"losses of congestion vanish then, errors stay. Look for a bad cable, optic or radio hop.",
		Try: "fullbore explain loss-random",
	},
	{
		Name: "hole", Title: "a path that swallows large packets",
		Path:  "50 Mbit/s, a round trip of 10 ms; packets above 1400 bytes towards the server vanish, and nobody says so.",
		Feels: "Ping works, connecting works, logging in works, and then everything hangs.",
		Truth: []DemoTruth{
			{"largest packet", "mtu-hole", "mtu", 1400, "bytes"},
		},
		Learn: "Small packets come through, full ones do not: a tunnel on the way with a smaller MTU, and a firewall that drops the messages which would say so. " +
			"That smaller segments come through is the proof; the mend is to let \"packet too big\" through, or to clamp the MSS.",
		Try: "fullbore explain mtu-hole",
	},
}

// Demos returns the tour's stops by their names, all of them when none is named.
func Demos(names ...string) ([]Demo, error) {
	var out []Demo
	var known []string
	for _, d := range demos {
		known = append(known, d.Name)
	}
	if len(names) == 0 {
		names = known
	}
	for _, name := range names {
		at := -1
		for i, d := range demos {
			if d.Name == name {
				at = i
			}
		}
		if at < 0 {
			return nil, fmt.Errorf("lab demo: there is no %q; there are: %s", name, strings.Join(known, ", "))
		}
		d := demos[at]
		text, err := demoFiles.ReadFile(path.Join("demo", name+".scenario"))
		if err != nil {
			return nil, fmt.Errorf("lab demo: %w", err)
		}
		if d.Scenario, err = ParseScenario(name+".scenario", text); err != nil {
			return nil, fmt.Errorf("lab demo: %w", err)
		}
		out = append(out, d)
	}
	return out, nil
}

// Once plays a scenario one time, and judges it even if the play is void: wrong is what was
// not as expected. An error means that it could not be played.
func Once(ctx context.Context, s *Scenario, o RunOptions) (p Play, wrong []string, err error) {
	if p, err = play(ctx, s, o); err != nil {
		return p, nil, fmt.Errorf("lab: %s: %w", s.Name, err)
	}
	return p, s.Expect.judge(&p), nil
}

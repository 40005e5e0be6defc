package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/fullbore-net/fullbore/internal/method"
)

// The kinds of paths.
const (
	kindLink = "link" // the emulated link's rate and queue
	kindTBF  = "tbf"  // the kernel's token bucket on a router
	kindHost = "host" // a receiver with too little of a processor on a path that is faster
)

func kinds() []string { return []string{kindLink, kindTBF, kindHost} }

// preset is the procedure that is played: ten searches of it take about five minutes.
const preset = "quick"

// Headers of a datagram beside its payload, bytes: IPv4 and UDP, and Ethernet's, which a token
// bucket of the kernel counts and the emulated link does not.
const (
	ipUDP    = 20 + 8
	ethernet = 14
)

// pathCase is a path and a search over it. Rates in bit/s.
type pathCase struct {
	kind    string
	seed    uint64
	rate    int64         // of the path: IP packets, or frames without check where a token bucket counts them
	rtt     time.Duration // 0: that of virtual devices
	queue   int64         // bytes that wait at most; of a token bucket: its bucket
	latency time.Duration // of a token bucket: the longest wait
	size    int           // of a datagram's payload
	most    int64         // greatest load, payload
}

// draw makes the case of a seed.
func draw(kind string, seed uint64) (pathCase, error) {
	i := slices.Index(kinds(), kind)
	if i < 0 {
		return pathCase{}, fmt.Errorf("-kinds %q: there are %s", kind, strings.Join(kinds(), ", "))
	}
	rng := rand.New(rand.NewPCG(seed, uint64(i)))
	between := func(least, most int64) int64 { return least + rng.Int64N(most-least+1) }
	c := pathCase{kind: kind, seed: seed, rate: 1000 * between(30_000, 90_000), size: int(between(700, 1400))}
	c.most = int64(float64(c.rate) * (1.2 + 1.3*rng.Float64()))
	switch kind {
	case kindLink:
		c.rtt, c.queue = time.Duration(between(2, 40))*time.Millisecond, 1000*between(16, 64)
	case kindTBF:
		c.queue, c.latency = 1024*between(16, 48), time.Duration(between(2, 6))*time.Millisecond
	case kindHost:
		c.rate, c.rtt, c.queue = 400e6, time.Duration(between(50, 100))*time.Millisecond, 1_000_000
		c.size, c.most = int(between(500, 650)), 1000*between(140_000, 170_000)
	}
	return c, nil
}

// scenario is the file that the lab plays. It expects nothing but what an answer is: what
// counts is judged here.
func (c pathCase) scenario() string {
	way, path, flags, exit := "--up", "", "", 0
	topology := "link"
	switch c.kind {
	case kindLink, kindHost:
		path = fmt.Sprintf("path:\n  rtt: %s\n  seed: %d\n  both: {rate: %d, queue: %dB}\n", c.rtt, c.seed, c.rate, c.queue)
	case kindTBF:
		topology, way = "routed", "--down"
		path = fmt.Sprintf("devices:\n  ra: {tbf: {rate: %d, burst: %dB, latency: %s}}\n", c.rate, c.queue, c.latency)
	}
	if c.kind == kindHost {
		path, flags, exit = path+"hosts: {server: {cpu: 2%}}\n", "--offload off ", 2
	}
	return fmt.Sprintf("name: ndr %s, seed %d\ntopology: %s\ncc: cubic\n%sserver: fullbore serve --json\n"+
		"client: fullbore udpmax $SERVER %s %s-l %d --preset %s --max-rate %d --no-store --json\ntimeout: 3m\nexpect: {exit: %d}\n",
		c.kind, c.seed, topology, path, way, flags, c.size, preset, c.most, exit)
}

// truth is what the path carries of payload, bit/s: from its rate to what its queue makes of that
// in a trial, since what waits there at the end was sent in the trial and is lost by nobody.
func (c pathCase) truth() (least, most float64) {
	frame, room := c.size+ipUDP, float64(c.queue)
	if c.kind == kindTBF {
		frame += ethernet
		room += float64(c.queue) + float64(c.rate)/8*c.latency.Seconds() // a full bucket, and what waits for the next
	}
	p, _ := method.RatePresetOf(preset)
	share := float64(c.size) / float64(frame)
	least = float64(c.rate) * share
	return least, least + 8*room*share/p.Goals[0].Trial.Seconds()
}

// row is a case with what came of it. Rates in bit/s of payload.
type row struct {
	pathCase
	lower, upper, width float64
	load                float64 // what was asked of the sender at the lower bound
	trials, voids       int
	seconds             float64
	flags               []string
	unfit               bool   // no play counted: nothing is said
	why                 string // what is wrong; "" = nothing
}

// near is what the figures of a paced sender and of a link in software may be off by, beside the width.
const near = 0.003

// pauses is the share of the time that a sender may have been kept from sending: the lower bound is
// what it sent.
const pauses = 0.05

// fault says what is wrong with an answer.
func (r *row) fault() string {
	limited := slices.Contains(r.flags, "host_limited")
	least, most := r.truth()
	p, _ := method.RatePresetOf(preset)
	switch {
	case r.kind == kindHost && !limited:
		return "the receiver's limit was taken for the path's"
	case r.kind == kindHost:
		return ""
	case limited:
		return "the path's limit was taken for a host's"
	case len(r.flags) > 0:
		return "flagged " + strings.Join(r.flags, ", ")
	case r.lower <= 0 || r.upper <= 0:
		return "there are no two bounds"
	case (r.upper-r.load)/r.upper > p.Goals[0].Width+1e-9:
		return fmt.Sprintf("the loads lie %.2f %% apart", 100*(r.upper-r.load)/r.upper)
	case r.lower < r.load*(1-pauses):
		return fmt.Sprintf("the sender paused for %.1f %% of the time", 100*(1-r.lower/r.load))
	case r.lower > most*(1+near):
		return fmt.Sprintf("the lower bound is %.2f %% above the truth", 100*(r.lower/most-1))
	case r.upper < least*(1-near):
		return fmt.Sprintf("the upper bound is %.2f %% below the truth", 100*(1-r.upper/least))
	}
	return ""
}

// inside is the word of the table.
func (r *row) inside() string {
	switch {
	case r.unfit:
		return "unfit"
	case r.why != "":
		return "**no**: " + r.why
	case r.kind == kindHost:
		return "told apart"
	}
	return "yes"
}

func mbits(v float64) string {
	if v <= 0 || math.IsNaN(v) {
		return "–"
	}
	return fmt.Sprintf("%.2f", v/1e6)
}

// line is a row for people who wait.
func (r *row) line() string {
	least, most := r.truth()
	return fmt.Sprintf("%s seed %d: %s … %s, truth %s … %s Mbit/s: %s (%d trials, %.0f s, %d void plays)",
		r.kind, r.seed, mbits(r.lower), mbits(r.upper), mbits(least), mbits(most), r.inside(), r.trials, r.seconds, r.voids)
}

func misses(rows []row) (n int) {
	for i := range rows {
		if rows[i].why != "" && !rows[i].unfit {
			n++
		}
	}
	return n
}

// page is the document.
func page(rows []row, took time.Duration, where string) string {
	var b strings.Builder
	inside, unfit, most := 0, 0, 0.0
	for i := range rows {
		switch {
		case rows[i].unfit:
			unfit++
		case rows[i].why == "":
			inside++
		}
		most = max(most, rows[i].seconds)
	}
	p, _ := method.RatePresetOf(preset)
	fmt.Fprintf(&b, `# Highest loss-free rate against the truth

Written by `+"`make ndr`"+` (root, Linux, a machine that nobody else uses): `+"`fullbore udpmax --preset %s`"+` over paths that a seed draws.
From the seed come the path's rate, round trip, queue (of a token bucket: bucket and latency), the datagrams' size and the
greatest load tried; the search itself draws nothing. *link* is the emulated link, towards the server; *tbf* the kernel's
token bucket on a router, towards the client; *host* a receiver with 2 %% of a processor behind a link of 400 Mbit/s, where the
answer must be that the host, not the path, was the limit.

Rates are Mbit/s of payload. The truth is an interval: from the path's rate to that plus what its queue keeps of a trial of %s.
An answer is right when its bounds meet the truth, with %.1f %% for the sender's and the link's clocks, and the loads that were
asked for are at most %.0f %% apart. The lower bound is what the sender really offered: what it could not send in time, because it
was not scheduled, it gives up (*paused*), since made up in a burst it would be lost in a short queue.
Seconds are of the search, pauses included; void plays (the machine was late) are repeated and do not count.

%s **%d of %d searches are right; %d could not be played; the longest took %.0f s, all together %s.**

| path | seed | truth | lower | upper | width | paused | inside? | trials | s | void plays |
|---|--:|--:|--:|--:|--:|--:|---|--:|--:|--:|
`, preset, p.Goals[0].Trial, 100*near, 100*p.Goals[0].Width, where, inside, len(rows)-unfit, unfit, most, took.Round(time.Second))
	for i := range rows {
		r := &rows[i]
		least, most := r.truth()
		truth, width, paused := mbits(least)+" … "+mbits(most), "–", "–"
		if r.kind == kindHost {
			truth = "> " + mbits(float64(r.most))
		}
		if r.width > 0 {
			width = fmt.Sprintf("%.2f %%", 100*r.width)
		}
		if r.load > 0 {
			paused = fmt.Sprintf("%.2f %%", 100*(1-r.lower/r.load))
		}
		fmt.Fprintf(&b, "| %s | %d | %s | %s | %s | %s | %s | %s | %d | %.0f | %d |\n",
			r.kind, r.seed, truth, mbits(r.lower), mbits(r.upper), width, paused, r.inside(), r.trials, r.seconds, r.voids)
	}
	return b.String()
}

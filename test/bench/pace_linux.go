package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/fullbore-net/fullbore/result"
	"github.com/fullbore-net/fullbore/test/pacing"
)

const (
	// paceRounds are the fit rounds that a claim about time needs, paceVoid how many void
	// ones are replayed before the machine is called unfit.
	paceRounds = 3
	paceVoid   = 5
	// paceSeconds: an end that is late by 1 ms is 0.02 % of it.
	paceSeconds = 5
	// The claims: rate, and datagrams above the planned burst.
	rateErrorMost = 0.001
	burstMore     = 1
	stallMargin   = int64(2e6)
	// foreignMost is what others may use of the machine while lateness to the µs is measured:
	// a sender that spins shares its processor with them, which one that sleeps hardly feels.
	foreignMost = 0.1
)

// pace is one line of the pacing table.
type pace struct {
	net  string
	load load
	name string

	planned             int64
	rateError           float64 // the worst of the fit rounds
	largest, outside    int64   // by the kernel's stamps
	excess              int     // bursts of more than the planned one and 1, outside of stalls
	told, stalls        int64   // largest burst and stalls that the sender reported
	unsent              int64
	peerError           float64
	peerMost, peerUsual int64 // the largest burst, that of the median
	machine             float64
	rounds, voids       int
	unfit               string // why no round was fit; the figures are then of the least unfit
	note                string // why it was not measured
}

func (p pace) passed() bool {
	return p.note == "" && (p.unfit != "" || math.Abs(p.rateError) <= rateErrorMost && p.excess == 0)
}

// paces are the rates whose schedule is proved.
func paces() []pace {
	return []pace{
		{name: "1 Mbit/s, 1400 bytes", load: load{true, 1400, 1e6}},
		{name: "10 Mbit/s, 1400 bytes", load: load{true, 1400, 10e6}},
		{name: "100 Mbit/s, 1400 bytes", load: load{true, 1400, 100e6}},
		{name: "500 Mbit/s, 1400 bytes", load: load{true, 1400, 500e6}},
		{name: "1000 a second, 64 bytes", load: load{true, 64, 512_000}},
	}
}

// pace plays p in rounds, ours then iperf3's, until enough were fit.
func (b *runner) pace(p pace) pace {
	p.net = b.net.name
	usual := math.Inf(1)
	var worst []string
	for p.rounds < paceRounds && p.voids <= paceVoid {
		a, r, err := b.paced(nativeUDP("fullbore test -u", "-i", "100ms"), p.load)
		var peer outcome
		var o *pacing.Report
		if err == nil {
			peer, o, err = b.pacedPeer(p.load)
		}
		if err != nil {
			p.note = err.Error()
			return p
		}
		why := a.seen.void()
		if why == "" && o != nil {
			why = peer.seen.void()
		}
		late := a.seen.machine.Late.P99
		if why != "" {
			p.voids++
			worst = append(worst, why)
			if p.rounds > 0 || late >= usual {
				continue
			}
			q := pace{net: p.net, load: p.load, name: p.name, voids: p.voids} // the least unfit is shown
			p = q
		} else if p.rounds++; p.rounds == 1 {
			p = pace{net: p.net, load: p.load, name: p.name, rounds: 1, voids: p.voids}
		}
		usual = min(usual, late)
		p.take(r, o)
		p.machine = max(p.machine, late)
	}
	if p.rounds == 0 {
		p.unfit = strings.Join(worst, "; ")
	}
	return p
}

// take adds a round: the worst counts.
func (p *pace) take(r ourPace, o *pacing.Report) {
	worse := func(into *float64, v float64) {
		if math.Abs(v) > math.Abs(*into) {
			*into = v
		}
	}
	worse(&p.rateError, r.report.RateError)
	p.planned = r.sent.PlannedBurst
	p.largest, p.outside = max(p.largest, r.report.Largest), max(p.outside, r.report.Outside)
	p.excess += r.report.Excess
	p.told = max(p.told, r.sent.LargestBurst)
	p.stalls += r.sent.Stalls
	p.unsent += r.sent.Unsent
	if o != nil {
		worse(&p.peerError, o.RateError)
		p.peerMost, p.peerUsual = max(p.peerMost, o.Largest), max(p.peerUsual, o.Median)
	}
}

// ourPace is one run of ours: the stamps and the sender's word.
type ourPace struct {
	report pacing.Report
	sent   *result.UDPSent
}

// paced runs one of our commands under a capture.
func (b *runner) paced(c command, l load) (outcome, ourPace, error) {
	r, err := b.play(c, b.pacedParams(l))
	if err != nil {
		return r, ourPace{}, err
	}
	p, err := r.ourPace(l)
	return r, p, err
}

func (b *runner) pacedParams(l load) params {
	return params{host: b.net.host, seconds: max(paceSeconds, b.o.seconds), streams: 1, load: l, capture: true}
}

// pacedPeer is the same with iperf3, if it is here; nil = it is not.
func (b *runner) pacedPeer(l load) (outcome, *pacing.Report, error) {
	c := iperf3UDP("iperf3 -u")
	if b.tools.missing(c) != "" {
		return outcome{}, nil, nil
	}
	r, err := b.play(c, b.pacedParams(l))
	if err != nil {
		return r, nil, err
	}
	rep, ok := pacing.Look(r.seen.arrivals, pacing.Schedule{Rate: l.rate, Size: int64(l.size)}, nil)
	if !ok {
		return r, nil, errors.New("iperf3's datagrams were not seen")
	}
	return r, &rep, nil
}

// ourPace reads our client's document and holds it against the stamps.
func (r outcome) ourPace(l load) (p ourPace, err error) {
	var run result.Run
	if err := json.Unmarshal(r.clientOut, &run); err != nil {
		return p, fmt.Errorf("read the client's document: %w", err)
	}
	if len(run.Streams) != 1 || run.Streams[0].UDP == nil || run.Streams[0].UDP.Sent == nil || run.Zero == nil {
		return p, errors.New("the client's document has no account of the sender")
	}
	p.sent = run.Streams[0].UDP.Sent
	if p.sent.Late == nil {
		return p, errors.New("the client's document does not say how late it sent")
	}
	if p.sent.PlannedBurst < 1 {
		return p, errors.New("the client's document plans no burst")
	}
	s := pacing.Schedule{Rate: l.rate, Size: int64(l.size), Planned: p.sent.PlannedBurst}
	if p.sent.Unsent == 0 {
		s.Begun = pacing.Begins(r.seen.arrivals, s, p.sent.Late.Min)
	}
	rep, ok := pacing.Look(r.seen.arrivals, s, stalls(&run))
	if !ok {
		return p, errors.New("our datagrams were not seen")
	}
	p.report = rep
	return p, nil
}

// stalls are the rows in which the sender reports that a burst was more than 1 ms late.
func stalls(run *result.Run) (out []pacing.Span) {
	for _, iv := range run.Intervals(result.Client) {
		for _, s := range iv.Streams {
			if s.Sender && s.UDP != nil && s.UDP.Late != nil && s.UDP.Late.Max > 1e-3 {
				out = append(out, pacing.Span{
					From: *run.Zero + int64(s.Start*1e9) - stallMargin,
					To:   *run.Zero + int64(s.Stop*1e9) + stallMargin,
				})
			}
		}
	}
	return out
}

// frugal is P1, precise P2: how late bursts are, by the sender's word and by the stamps.
func frugal(b *runner) []figure {
	c := nativeUDP("fullbore test -u --pacing frugal", "--pacing", "frugal")
	return slices.Concat(
		b.lateness("P1", "frugal", c, load{true, 1400, 10e6}, 100, 500),
		b.lateness("P1", "frugal", c, load{true, 1400, 100e6}, 100, 500))
}

func precise(b *runner) []figure {
	c := nativeUDP("fullbore test -u --pacing precise", "--pacing", "precise")
	return slices.Concat(
		b.lateness("P2", "precise", c, load{true, 1400, 10e6}, 1, 100),
		b.lateness("P2", "precise", c, load{true, 1400, 100e6}, 1, 100),
		b.lateness("P2", "precise", c, load{true, mtuSize, 1e9}, 1, 100))
}

// lateness measures one command in fit runs; gates in µs.
func (b *runner) lateness(id, mode string, c command, l load, p50, p99 float64) []figure {
	var own, stamp [2][]float64
	var machine []float64
	var voids []string
	fit := 0
	var failed error
	for fit < paceRounds && len(voids) <= paceVoid {
		r, p, err := b.paced(c, l)
		if err != nil {
			failed = err
			break
		}
		why := r.seen.void()
		if why == "" && r.foreign > foreignMost {
			why = fmt.Sprintf("others used %.0f %% of the machine", 100*r.foreign)
		}
		if why != "" {
			voids = append(voids, why)
			if fit > 0 {
				continue
			}
		} else if fit++; fit == 1 {
			own, stamp, machine = [2][]float64{}, [2][]float64{}, nil
		}
		own[0], own[1] = append(own[0], 1e6*p.sent.Late.P50), append(own[1], 1e6*p.sent.Late.P99)
		if at := p.report.Schedule; at != nil && p.sent.Unsent == 0 {
			stamp[0], stamp[1] = append(stamp[0], 1e6*at.P50), append(stamp[1], 1e6*at.P99)
		}
		machine = append(machine, 1e6*r.seen.machine.Late.P99)
	}
	out := make([]figure, 2)
	for i, q := range []string{"p50", "p99"} {
		f := &out[i]
		*f = figure{id: id, title: fmt.Sprintf("bursts late, %s, %s, %s", mode, mbit(l.rate), q), unit: "µs", gate: []float64{p50, p99}[i]}
		if failed != nil {
			f.note = failed.Error()
			continue
		}
		f.value = median(own[i])
		f.title += fmt.Sprintf(" (%.3g–%.3g", slices.Min(own[i]), slices.Max(own[i]))
		if len(stamp[i]) > 0 {
			f.title += fmt.Sprintf("; at the receiver's kernel %.3g", median(stamp[i]))
		}
		f.title += fmt.Sprintf("; a sleeping thread's p99 %.3g; %d void)", median(machine), len(voids))
		if fit == 0 {
			f.unfit = strings.Join(voids, "; ")
		}
	}
	return out
}

func mbit(rate int64) string { return fmt.Sprintf("%g Mbit/s", float64(rate)/1e6) }

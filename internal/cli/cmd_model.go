package cli

import (
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fullbore-net/fullbore/internal/conclude"
	"github.com/fullbore-net/fullbore/internal/method"
	"github.com/fullbore-net/fullbore/internal/units"
	"github.com/fullbore-net/fullbore/result"
)

// modelOptions are the words of `fullbore model`.
type modelOptions struct {
	methodOptions
	udpSteps
	rate     int64
	rtt      time.Duration
	limit    time.Duration
	noBursts bool
}

const modelLong = `Would the path to HOST carry TCP at --rate over a round trip of --rtt (M-8337, RFC
8337)? The path's own round trip does not matter: what a long connection would need
is judged by how rare losses are at that rate.

UDP is paced at the rate; a sequential test decides as soon as it can whether losses
are as rare as a window of that size needs (pass) or four times as frequent (fail).
Then the same in bursts of a whole window, which a queue on the path must take. What
the receiver's socket dropped does not count. The answer names the greatest rate
that would pass with the loss that was seen.

Exit code 0: passed; 1: failed; 2: not decided within the time (60 s a test).

Traffic: at the rate until it is decided: three windows squared of packets when
nothing is lost (10 Mbit/s at 50 ms: 11 MB a test; 100 Mbit/s at 50 ms is not decided
in 60 s). Bound it with --max-bytes.`

const modelExample = `  fullbore model self --rate 2.5M --rtt 50ms --up
  fullbore model 192.0.2.2 --rate 10M --rtt 80ms
  fullbore model 192.0.2.2 --rate 50M --rtt 20ms --down --json`

func newModelCmd(e *env) *cobra.Command {
	o := &modelOptions{}
	cmd := &cobra.Command{
		Use:     "model HOST --rate R --rtt T",
		Short:   "Would this path carry TCP at rate R over round trip T?",
		Long:    modelLong,
		Example: modelExample,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return e.runModel(cmd.Context(), o, args[0])
		},
	}
	o.methodOptions.addFlags(cmd)
	o.udpSteps.addFlags(cmd)
	f := cmd.Flags()
	f.Var(rateFlag{&o.rate}, "rate", "TCP rate that the path should carry, payload")
	f.Var(durationFlag{&o.rtt}, "rtt", "round trip of the connection that is to carry it")
	f.Var(durationFlag{&o.limit}, "limit", "longest time of a test (default 60s)")
	f.BoolVar(&o.noBursts, "no-bursts", false, "leave out the test with bursts of a window")
	return cmd
}

// A packet of a loopback, of 64 KiB, is none that a connection elsewhere would send: such a path is
// judged with Ethernet's.
const (
	ethernetPayload = 1460
	largestFrame    = 9216
)

// tcpBeyondUDP is by how much a TCP header is longer than UDP's: a TCP packet carries less.
const tcpBeyondUDP = 12

func (o *modelOptions) method(ctx context.Context, host string) (m method.Model, err error) {
	switch {
	case o.rate <= 0 || o.rtt <= 0:
		return m, &UsageError{Msg: "model needs --rate and --rtt", Hints: []string{"for example: fullbore model " + host + " --rate 10M --rtt 50ms"}}
	case o.both:
		return m, usagef("--both: the directions are judged one after the other")
	case o.streams > 1:
		return m, usagef("-P %d: one stream is judged", o.streams)
	case o.limit < 0 || o.limit > time.Hour:
		return m, usagef("--limit %s: must be at most an hour", units.FormatDuration(o.limit))
	}
	if o.maxRate > 0 && o.rate > o.maxRate {
		return m, usagef("--rate %s is above --max-rate %s", units.BitRate(o.rate), units.BitRate(o.maxRate))
	}
	if o.size == 0 {
		o.size = ethernetPayload
		if w := pathTo(ctx, host, o.family()); host != "self" && w.mtu <= largestFrame {
			o.size = w.payload() - tcpBeyondUDP
		}
	}
	if err := o.check(host); err != nil {
		return m, err
	}
	return method.Model{
		Rate: float64(o.rate), RTT: o.rtt, Directions: o.directions(), Limit: o.limit, Bursts: !o.noBursts, UDP: o.udpSteps.plan(),
	}, nil
}

func (e *env) runModel(ctx context.Context, o *modelOptions, host string) error {
	m, err := o.method(ctx, host)
	if err != nil {
		return err
	}
	w := m.Window()
	need := method.ModelTest(w).PassAfter(0)
	return e.runMethod(ctx, &o.methodOptions, methodJob{
		kind: "model", host: host,
		head: fmt.Sprintf("Would the path to %s carry %s over a round trip of %s? A window is %d packets, a loss may come every %.0f", host, units.BitRate(o.rate),
			units.FormatDuration(o.rtt), w, method.RunLength(w)),
		volume: fmt.Sprintf("Traffic: %s at %s for each test that loses nothing (%s packets).", units.ByteSize(need*int64(o.size)), units.BitRate(o.rate), conclude.Grouped(need)),
		method: m, possible: m.Possible(), stops: true,
		lasts: fmt.Sprintf("These come first; each test goes on until it is decided, for %s at most.", longText(defaultTo(o.limit, time.Minute))),
		fill: func(rep *result.Report, h []method.Done) {
			fillModel(rep, m, h)
			rep.Next = o.next(host, m, h)
			rep.Notices = append(rep.Notices, cutNotice(o.maxBytes, h)...)
		},
		final:    finalFindings,
		figures:  map[string]figureKind{"greatest": rateKind},
		figure:   "greatest",
		measured: leastFindings(map[string]string{"greatest": "greatest"}),
		failed:   func(rep *result.Report) bool { return hasItem(rep, "model", result.Fail) },
		answered: func(rep *result.Report) bool {
			return len(rep.Findings) > 0 && !hasItem(rep, "model", result.Inconclusive)
		},
	})
}

// next is what is worth typing then.
func (o *modelOptions) next(host string, m method.Model, history []method.Done) *result.Step {
	parts := m.Answer(history)
	for _, p := range parts {
		switch {
		case p.Short:
			return fitness(result.Direction(p.Direction).Sender(), host)
		case p.Result == result.Fail && p.Bursts:
			return o.step(host, "a queue on the way does not take a whole window at once: how deep is it, and who polices?", "diagnose", "HOST")
		case p.Result == result.Fail:
			return o.step(host, "what loses datagrams at this rate?", "diagnose", "HOST")
		}
	}
	for _, p := range parts {
		if need := method.ModelTest(m.Window()).PassAfter(p.Lost); p.Result == result.Inconclusive && p.Packets > 0 {
			long := math.Ceil(1.2 * float64(need) * float64(8*m.UDP.BlockSize) / m.Rate) // s
			if long > time.Hour.Seconds() {
				return nil
			}
			words := []string{"model", "HOST", "--rate", units.BitRate(m.Rate).Exact(), "--rtt", secondsWord(m.RTT), "--limit", fmt.Sprintf("%.0fs", long)}
			return o.step(host, fmt.Sprintf("it takes %s packets to decide, if no more is lost", conclude.Grouped(need)), words...)
		}
	}
	if len(parts) == 0 {
		return nil
	}
	return o.step(host, "losses are rare enough: does TCP reach it over this path's own round trip?", "test", "HOST")
}

// hasItem reports that a check of that name came to that result.
func hasItem(rep *result.Report, id, want string) bool {
	for _, i := range rep.Items {
		if i.ID == id && i.Result == want {
			return true
		}
	}
	return false
}

// fillModel makes the report.
func fillModel(rep *result.Report, m method.Model, history []method.Done) {
	var sentences []string
	for _, p := range m.Answer(history) {
		f := modelFinding(m, p)
		rep.Findings = append(rep.Findings, f)
		rep.Items = append(rep.Items, result.Item{ID: "model", Result: p.Result, Reasons: []string{f.Summary}})
		sentences = append(sentences, f.Summary)
	}
	rep.Summary = strings.Join(sentences, " ")
	if rep.Summary == "" {
		rep.Summary = "The test ended before anything was measured."
	}
	if m.Bursts && m.Window() > method.MaxModelBurst {
		rep.Notices = append(rep.Notices, result.Notice{
			Code: "no-bursts", End: result.Client, Level: result.Info,
			Text: fmt.Sprintf("a window is %d packets, more than one burst can be (%d): whether a queue takes a whole window was not tested", m.Window(), method.MaxModelBurst),
		})
	}
	rep.Notices = append(rep.Notices, ownerNotice(history)...)
}

func modelFinding(m method.Model, p method.ModelPart) result.Finding {
	f := result.Finding{Name: "model", Direction: string(p.Direction), Values: []result.Value{}}
	how := "paced"
	if p.Bursts {
		f.Name, how = "model-bursts", fmt.Sprintf("in bursts of %d", m.Window())
	}
	add := func(name string, v float64, unit string) {
		f.Values = append(f.Values, result.Value{Name: name, Value: v, Unit: unit})
	}
	add("rate", m.Rate, "bit/s")
	add("rtt", m.RTT.Seconds(), "s")
	add("window", float64(m.Window()), "packets")
	add("run_length", method.RunLength(m.Window()), "packets")
	add("packets", float64(p.Packets), "packets")
	add("lost", float64(p.Lost), "packets")
	add("greatest", p.Greatest, "bit/s")
	add("time", p.Seconds, "s")
	if p.Host > 0 {
		add("dropped_by_host", float64(p.Host), "packets")
	}
	verdict := map[string]string{
		result.Pass: "passes", result.Fail: "fails", result.Inconclusive: "is not decided in " + secondsText(p.Seconds),
	}[p.Result]
	f.Summary = fmt.Sprintf("%s, %s: %s at %s %s (%s of %s packets lost).", titleCase(string(p.Direction)), how, units.BitRate(m.Rate), units.FormatDuration(m.RTT), verdict,
		conclude.Grouped(p.Lost), conclude.Grouped(p.Packets))
	switch {
	case p.Short:
		f.Flags = append(f.Flags, "sender_limited")
		f.Summary += " The sender did not reach the rate."
	case p.Packets == 0 && p.Unclear > 0:
		f.Summary += " The receiving host's socket dropped of what had arrived: nothing is said about the path."
	case p.Packets == 0:
	case p.Greatest > 0:
		f.Summary += fmt.Sprintf(" With that loss up to %s would pass.", units.BitRate(p.Greatest))
	default:
		f.Summary += " With that loss no rate would pass."
	}
	return f
}

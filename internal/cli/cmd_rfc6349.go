package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fullbore-net/fullbore/internal/conclude"
	"github.com/fullbore-net/fullbore/internal/method"
	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/internal/render/screen"
	"github.com/fullbore-net/fullbore/internal/units"
	"github.com/fullbore-net/fullbore/result"
)

// frameworkOptions are the words of `fullbore rfc6349`.
type frameworkOptions struct {
	methodOptions
	method.Framework
	link, up, down int64
	quick          bool
}

const frameworkLong = `Test TCP throughput by RFC 6349: path MTU, baseline round trip, bottleneck bandwidth, then one
and several connections up, down and both ways, each against what the path allows.

Per test and direction: transfer time ratio (actual over ideal time; 1 is ideal, passed up to
1.05, with both ways full 1.10, since the acknowledgements share the way), TCP efficiency (what
was not sent again), buffer delay (by how much round trips grew). A single connection is held
against what its window allows (the column "with window"), several against the path ("ideal").

The bottleneck's bandwidth is that of layer 1 (Ethernet frames with preamble and gap): a contract
or link speed given with --link, or --bb-up and --bb-down; else it is measured with datagrams a
fifth above what TCP reached. Where frames have VLAN tags there, --vlan says how many.

HOST runs "fullbore serve" or an iperf3 server; with the latter the baseline is TCP's, and
figures of its kernel are missing. HOST may be "self".

Time: 4 min (each test 30 s, as the RFC wants at least), with --quick 30 s (marked in the report).
Traffic: as much as the path carries for that long, 1 Gbit/s: 30 GB (--quick: 4 GB).
Exit codes: 0 all tests passed, 1 one failed, 2 not to be judged.`

const frameworkExample = `  fullbore rfc6349 192.0.2.2 --link 1G
  fullbore rfc6349 192.0.2.2 --bb-up 50M --bb-down 200M --quick
  fullbore rfc6349 192.0.2.2 --link 1G -w 256K     with this window for each connection
  fullbore rfc6349 self --quick --json`

func newRFC6349Cmd(e *env) *cobra.Command {
	o := &frameworkOptions{}
	cmd := &cobra.Command{
		Use:     "rfc6349 HOST",
		Short:   "TCP throughput by RFC 6349: transfer time ratio, efficiency, buffer delay",
		Long:    frameworkLong,
		Example: frameworkExample,
		Args:    cobra.ExactArgs(1),
		RunE:    func(cmd *cobra.Command, args []string) error { return e.runRFC6349(cmd.Context(), o, args[0]) },
	}
	f := cmd.Flags()
	o.addFlags(cmd)
	f.Var(rateFlag{&o.link}, "link", "bottleneck bandwidth of both directions, e.g. 1G")
	f.Var(rateFlag{&o.up}, "bb-up", "bottleneck bandwidth up")
	f.Var(rateFlag{&o.down}, "bb-down", "bottleneck bandwidth down")
	f.VarP(sizeFlag{&o.Window}, "window", "w", "socket buffers of each connection (default: auto-tuning)")
	f.IntVarP(&o.Framework.Streams, "streams", "P", 0, "connections of the tests with several (default: as many as --window needs, else 4)")
	f.VarP(durationFlag{&o.Time}, "time", "t", "length of each test (default 30s)")
	f.IntVar(&o.Tags, "vlan", 0, "VLAN tags of each frame on the bottleneck, 4 bytes each")
	f.StringVarP(&o.plan.Congestion, "cc", "C", "", "congestion control (default: the systems' own)")
	f.BoolVar(&o.quick, "quick", false, "each test 3 s")
	cmd.MarkFlagsMutuallyExclusive("link", "bb-up")
	cmd.MarkFlagsMutuallyExclusive("link", "bb-down")
	return cmd
}

// maxTags is how many VLAN tags a frame may have: more than two is nobody's network.
const maxTags = 4

func (e *env) runRFC6349(ctx context.Context, o *frameworkOptions, host string) error {
	f := &o.Framework
	if f.Streams < 0 || f.Streams > plan.MaxStreams {
		return usagef("--streams %d: must be 1…%d", f.Streams, plan.MaxStreams)
	}
	if f.Tags < 0 || f.Tags > maxTags {
		return usagef("--vlan %d: must be 0…%d", f.Tags, maxTags)
	}
	f.BB = [2]float64{float64(max(o.link, o.up)), float64(max(o.link, o.down))}
	f.Quick = o.quick
	if f.Omit = 2 * time.Second; o.quick {
		f.Omit = time.Second
	}
	if f.Time == 0 {
		if f.Time = 30 * time.Second; o.quick {
			f.Time = 3 * time.Second
		}
	}
	steps := f.Steps()
	busy := 0.0
	for _, s := range steps {
		if s.Plan.Transport == plan.TCP && s.Plan.Bytes == 0 || strings.HasPrefix(s.Name, "bb-") {
			busy += (s.Plan.Duration + s.Plan.Omit).Seconds()
		}
	}
	speed := f.BB[0]
	if speed == 0 {
		speed = 1e9
	}
	failed := false
	err := e.runMethod(ctx, &o.methodOptions, methodJob{
		kind: "rfc6349", host: host, method: *f, possible: steps, stops: true,
		head:   fmt.Sprintf("TCP throughput to %s by RFC 6349", host),
		volume: fmt.Sprintf("Traffic: as much as the path carries for %.0f s (%s: %s).", busy, units.BitRate(speed), units.ByteSize(speed/8*busy)),
		complete: func(p plan.Plan) plan.Plan {
			if p.Transport == plan.TCP {
				p.Congestion = o.plan.Congestion
			}
			return p
		},
		fill: func(rep *result.Report, history []method.Done) {
			rep.TCPFramework = f.Answer(history)
			rep.Items = append(rep.Items, method.FrameworkItems(rep.TCPFramework)...)
			failed = fillFramework(rep)
			rep.Next = o.next(host, rep, failed)
		},
		final:    func(v *stageView, rep *result.Report) { v.frameworkTable(rep) },
		answered: func(rep *result.Report) bool { return judgedItems(rep) },
	})
	if err == nil && failed {
		return &codeError{code: exitMissed}
	}
	return err
}

// next is what is worth typing then.
func (o *frameworkOptions) next(host string, rep *result.Report, failed bool) *result.Step {
	held := slices.ContainsFunc(rep.TCPFramework.Tests, func(t result.TCPTest) bool { return t.Held })
	switch {
	case len(rep.Items) == 0:
		return nil
	case failed:
		return o.step(host, "what takes the rest: a window, losses, or an end?", "diagnose", "HOST")
	case held:
		return o.step(host, "without the bound that was reached: what does the path do?", "rfc6349", "HOST")
	case o.quick:
		return o.step(host, "transfers of 30 s, as RFC 6349 wants them: figures for a record", "rfc6349", "HOST")
	}
	return o.step(host, "TCP reaches what it should: what does a full path do to delay?", "load", "HOST")
}

// judgedItems reports that every test could be judged.
func judgedItems(rep *result.Report) bool {
	for _, i := range rep.Items {
		if i.Result == result.Inconclusive {
			return false
		}
	}
	return len(rep.Items) > 0
}

// fillFramework makes the sentence; failed = a test did not pass.
func fillFramework(rep *result.Report) (failed bool) {
	a := rep.TCPFramework
	passed := 0
	var bad []string
	for _, i := range rep.Items {
		switch i.Result {
		case result.Pass:
			passed++
		case result.Fail:
			failed = true
			bad = append(bad, i.ID)
		}
	}
	if len(a.Tests) == 0 {
		rep.Summary = "RFC 6349: no test was made."
		return false
	}
	rep.Summary = fmt.Sprintf("RFC 6349: %d of %d tests passed", passed, len(rep.Items))
	if len(bad) > 0 {
		rep.Summary += "; not: " + strings.Join(bad, ", ")
	}
	if a.RTT != nil && a.BB[0] != nil && a.BB[1] != nil {
		rep.Summary += fmt.Sprintf(". Bottleneck %s up, %s down (layer 1), round trip %s", units.BitRate(a.BB[0].BPS), units.BitRate(a.BB[1].BPS), conclude.Time(*a.RTT))
	}
	rep.Summary += "."
	rep.Notices = append(rep.Notices, moreThanGiven(a)...)
	if !a.FullLength {
		rep.Notices = append(rep.Notices, result.Notice{Code: "short-tests", Level: result.Info, Text: "RFC 6349 wants each transfer to take 30 s at least; these took less"})
	}
	if a.ByTCP {
		rep.Notices = append(rep.Notices, result.Notice{
			Code: "rtt-by-tcp", End: result.Server, Level: result.Warn,
			Text: "the other end answers no probes: the baseline round trip is the least that TCP saw (fullbore serve there would tell it from 100 probes)",
		})
	}
	return failed
}

// beyondGiven is by how much a transfer may be above the ideal of a bottleneck: edges of a short one.
const beyondGiven = 1.1

// moreThanGiven says that more went through than the bottleneck that was given lets: it is not this path's.
func moreThanGiven(a *result.TCPFramework) []result.Notice {
	var most *result.TCPTest
	for i := range a.Tests {
		t := &a.Tests[i]
		b := a.BB[0]
		if t.Direction == result.Down {
			b = a.BB[1]
		}
		if b == nil || b.Source != "given" || t.Goodput == nil || t.Ideal == nil || *t.Goodput <= beyondGiven**t.Ideal {
			continue
		}
		if most == nil || *t.Goodput / *t.Ideal > *most.Goodput / *most.Ideal {
			most = t
		}
	}
	if most == nil {
		return nil
	}
	return []result.Notice{{
		Code: "bottleneck-exceeded", Level: result.Warn,
		Text: fmt.Sprintf("%s brought %s through a bottleneck that was said to let %s: the path is faster than that, so a test that passed shows that the figure given is reached, and no more",
			most.Name, units.BitRate(*most.Goodput), units.BitRate(*most.Ideal)),
	}}
}

// frameworkTable prints a line for each test.
func (v *stageView) frameworkTable(rep *result.Report) {
	a := rep.TCPFramework
	for i, d := range []string{"up", "down"} {
		text := "bottleneck not known"
		if b := a.BB[i]; b != nil {
			text = fmt.Sprintf("bottleneck %s on layer 1 (%s), MTU %d", units.BitRate(b.BPS), b.Source, a.MTU[i])
			if a.RTT != nil {
				text += fmt.Sprintf(", bandwidth-delay product %s", units.ByteSize(method.MinWindow(*a.RTT, b.BPS)))
			}
		}
		v.line(fmt.Sprintf("  %-6s", d), text)
	}
	fmt.Fprintln(v.e.Out)
	row := func(cells ...string) {
		text := "  " + screen.Left(cells[0], 18)
		for _, c := range cells[1:] {
			text += screen.Right(c, 13)
		}
		fmt.Fprintln(v.e.Out, strings.TrimRight(text, " "))
	}
	row("", "goodput", "ideal", "with window", "time ratio", "efficiency", "buffer delay", "")
	num := func(p *float64, format string) string {
		if p == nil {
			return screen.Unknown
		}
		return fmt.Sprintf(format, *p)
	}
	rate := func(p *float64) string {
		if p == nil {
			return screen.Unknown
		}
		return units.BitRate(*p).String()
	}
	for i := range a.Tests {
		t := &a.Tests[i]
		word := ""
		if i < len(rep.Items) {
			word = rep.Items[i].Result
		}
		row(t.Name, rate(t.Goodput), rate(t.Ideal), rate(t.Reference), num(t.Ratio, "%.3f"), num(t.Efficiency, "%.2f %%"), num(t.BufferDelay, "%.0f %%"), word)
	}
	for i := range a.Tests {
		if t := &a.Tests[i]; t.Verdict != "good" {
			v.line("  "+t.Name+": ", t.Verdict)
		}
	}
}

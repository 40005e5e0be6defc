package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fullbore-net/fullbore/internal/conclude"
	"github.com/fullbore-net/fullbore/internal/method"
	"github.com/fullbore-net/fullbore/internal/pause"
	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/internal/render/screen"
	"github.com/fullbore-net/fullbore/internal/runner"
	"github.com/fullbore-net/fullbore/result"
)

// delayOptions are the words of `fullbore delay`.
type delayOptions struct {
	plan     plan.Plan
	profile  string
	spacing  time.Duration
	size     int
	tcp      bool
	connects int
	maxBytes int64
	expect   []string
	rounds   roundsFlag
	peerFlags
	keep keepOptions
	out  outputOptions
}

const delayLong = `Measure delay and its variation towards HOST on an otherwise idle path: small datagrams
at even times, each answered by the other end with its own time stamps.

With a fullbore at the other end (fullbore serve): round trip, variation and jitter of
each direction, loss of each direction, and one-way delay with the bound of the clocks'
difference. With an iperf3 server, which answers no probes, two plain UDP tests of the
same datagrams, up and then down, tell what they can; what is not known is said.

--tcp measures the round trip of a request and its answer over one TCP connection, one
after the other, and how long connecting takes.

Profiles: voice (each 20 ms) and 1ms. HOST may be "self". --expect knows rtt (median; the
default), rtt_p99, pdv (variation, p99) and jitter (mean), of two directions the worse,
loss (share of the probes without an answer), and with --tcp connect (median).
--rounds 5 measures five times and takes the medians.

Traffic: a profile's datagrams of 64 bytes are 26 kbit/s (voice) or 512 kbit/s (1ms) of
payload each way, 32 or 640 kB each way in 10 s; --tcp sends as fast as the answers come,
and -l makes messages longer. Bound it with --max-bytes.`

const delayExample = `  fullbore delay self
  fullbore delay 192.0.2.2                     voice: 64 bytes each 20 ms, 10 s
  fullbore delay 192.0.2.2 --profile 1ms -t 60
  fullbore delay 192.0.2.2 --spacing 5ms --length 1200
  fullbore delay 192.0.2.2 --tcp               request and response, connect times
  fullbore delay 192.0.2.2 --rounds 5          is it always so?
  fullbore delay 192.0.2.2 --expect 'rtt <= 20ms, loss <= 0.1%'   exit code 1 when missed
  fullbore delay 192.0.2.2 --json > delay.json`

func newDelayCmd(e *env) *cobra.Command {
	o := &delayOptions{}
	cmd := &cobra.Command{
		Use:     "delay HOST",
		Short:   "Round trip, one-way delay, jitter and loss of small packets",
		Long:    delayLong,
		Example: delayExample,
		Args:    cobra.ExactArgs(1),
		RunE:    func(cmd *cobra.Command, args []string) error { return e.runDelay(cmd.Context(), o, args[0]) },
	}
	f := cmd.Flags()
	p := &o.plan
	o.peerFlags.addFlags(cmd, p)
	f.StringVar(&o.profile, "profile", "voice", "spacing of the probes: voice (20 ms) or 1ms")
	f.Var(durationFlag{&o.spacing}, "spacing", "time between probes instead of a profile's, 1ms … 1m")
	f.VarP(sizeFlagInt{&o.size}, "length", "l", "payload bytes of a probe (default 64; 44 or more, with --tcp 1 or more)")
	f.Var(sizeFlagInt{&o.size}, "size", "older word for --length")
	_ = f.MarkHidden("size")
	f.VarP(durationFlag{&p.Duration}, "time", "t", "how long to probe (default 10s)")
	f.BoolVar(&o.tcp, "tcp", false, "request and response over one TCP connection, and connect times")
	f.IntVar(&o.connects, "connects", 20, "with --tcp: how many connections are timed")
	f.IntVarP(&p.TOS, "tos", "S", 0, "TOS byte (DSCP × 4) of the probes from here")
	f.Var(sizeFlag{&o.maxBytes}, "max-bytes", "stop when probes and their answers have moved so many payload bytes")
	f.StringArrayVar(&o.expect, "expect", nil, "thresholds, e.g. 'rtt <= 20ms, loss <= 0.1%': exit code 1 when missed (repeatable)")
	f.Var(&o.rounds, "rounds", roundsHelp)
	o.keep.addFlags(f)
	o.out.addFlags(f)
	cmd.MarkFlagsMutuallyExclusive("profile", "spacing")
	cmd.MarkFlagsMutuallyExclusive("length", "size")
	return cmd
}

// profiles are the spacings that have a name (M-DELAY).
var profiles = map[string]time.Duration{"voice": 20 * time.Millisecond, "1ms": time.Millisecond}

// thePlan is the measurement that the words ask for.
func (o *delayOptions) thePlan(host string) (plan.Plan, error) {
	p := o.plan
	p.Host, p.Direction = host, plan.Up
	o.peerFlags.apply(&p)
	spacing, ok := profiles[o.profile]
	if !ok {
		return p, &UsageError{Msg: "--profile " + o.profile + ": there are voice (20 ms) and 1ms", Hints: []string{"any other spacing: --spacing 5ms"}}
	}
	p.Probe = &plan.Probe{Spacing: spacing, Size: o.size, Profile: o.profile, Idle: true, TCP: o.tcp}
	if o.spacing != 0 {
		p.Probe.Spacing, p.Probe.Profile = o.spacing, o.spacing.String()
	}
	if o.size == 0 {
		p.Probe.Size = 64
	}
	if o.tcp {
		o.overTCP(&p)
	} else {
		// To a server that answers no probes: a UDP test of the same datagrams.
		p.Transport, p.Streams, p.BlockSize, p.RateSet = plan.UDP, 1, p.Probe.Size, true
		p.Bitrate = int64(float64(p.Probe.Size) * 8 / p.Probe.Spacing.Seconds())
	}
	switch {
	case o.connects < 2 || o.connects > plan.MaxStreams:
		return p, usagef("--connects %d: must be 2…%d", o.connects, plan.MaxStreams)
	case o.tcp && o.spacing != 0:
		return p, usagef("--spacing: with --tcp each request follows the answer to the one before")
	}
	if err := p.Validate(); err != nil {
		return p, &UsageError{Msg: strings.ReplaceAll(err.Error(), "\n", "; "), Hints: []string{"see: fullbore delay --help"}}
	}
	return p, nil
}

// overTCP makes p a measurement over TCP. To a server that does not answer requests it is a
// short test whose streams, nearly idle, are there to time their connecting: a connection
// that says nothing would hold an iperf3 server up.
func (o *delayOptions) overTCP(p *plan.Plan) {
	p.Transport, p.Streams, p.NoDelay = plan.TCP, o.connects-1, true
	p.BlockSize, p.Bitrate, p.RateSet = 128, 128*8, true
	p.Probe.Profile = "back-to-back"
}

func (e *env) runDelay(ctx context.Context, o *delayOptions, host string) error {
	p, err := o.thePlan(host)
	if err != nil {
		return err
	}
	job := methodJob{kind: "delay", figures: delayFigures, figure: "rtt"}
	wishes, err := job.thresholds(o.expect)
	if err != nil {
		return err
	}
	o.out.plain = o.out.plain || !o.out.json && !o.out.stream && !o.out.csv && !o.out.quiet // lines, also on a terminal
	out, err := e.newOutput(o.out, &o.keep, []string{host}, 1, 1)
	if err != nil {
		return err
	}
	out.kind, out.together, out.host = "delay", conclude.TogetherProbes, host
	ctx, stop := e.interruptible(ctx)
	defer stop()
	o.keep.look(ctx, e, host, o.family())
	if host == "self" {
		srv, err := e.startSelf(ctx)
		if err != nil {
			return err
		}
		defer srv.stop()
		p.Host, p.Port, p.Own = srv.host, srv.port, true
	}
	d := &delaying{e: e, p: p, budget: plan.Budget{Most: o.maxBytes}, out: out}
	var errs []error
	if o.rounds.asked() {
		errs = append(errs, d.inRounds(ctx, &o.rounds))
	} else {
		errs = append(errs, d.measure(ctx))
	}
	errs = append(errs, d.judge(&job, wishes))
	if err := out.Close(ctx); err != nil {
		errs = append(errs, err)
	}
	return worst(errs)
}

// delaying is a command on its way.
type delaying struct {
	e      *env
	p      plan.Plan
	budget plan.Budget
	out    *output
}

// measure measures once, or, where nothing answers probes, each direction once.
func (d *delaying) measure(ctx context.Context) error {
	for _, way := range []plan.Direction{plan.Up, plan.Down} {
		p := d.p
		p.Direction, p.MaxBytes = way, d.budget.Share(1)
		run, err := d.out.measure(ctx, &runner.Runner{Version: Version, Now: d.e.Now, Log: d.e.logger()}, p)
		if run != nil {
			d.budget.Moved += runner.Moved(run)
		}
		if err != nil {
			var broke *result.Error
			if run != nil && errors.As(err, &broke) {
				return &codeError{code: runExit(broke)}
			}
			return err
		}
		if p.Probe.TCP || answersProbes(run) {
			return silence(run)
		}
		d.out.plans = 2
		if d.budget.Used() {
			break
		}
	}
	return nil
}

// delayFigures are what --expect can ask of a delay, and what --rounds takes the medians of.
var delayFigures = map[string]figureKind{
	"rtt": timeKind, "rtt_p99": timeKind, "pdv": timeKind, "jitter": timeKind, "connect": timeKind, "loss": shareKind,
}

// delayOrder is that of the table of rounds and of the sentence below it.
var delayOrder = []string{"rtt", "rtt_p99", "pdv", "jitter", "connect", "loss"}

// delayMeasured are the figures of runs that belong together: of two directions the worse.
func delayMeasured(runs []*result.Run) map[string]*float64 {
	out := map[string]*float64{}
	worse := func(name string, v float64) {
		if old := out[name]; old == nil || v > *old {
			out[name] = &v
		}
	}
	for _, run := range runs {
		for i := range run.Probes {
			p := &run.Probes[i]
			if q := p.RoundTrip; q != nil {
				worse("rtt", q.P50)
				worse("rtt_p99", q.P99)
			}
			if p.Connect != nil {
				worse("connect", p.Connect.P50)
			}
			for _, w := range []*result.OneWay{p.Up, p.Down} {
				if w != nil && w.PDV != nil {
					worse("pdv", w.PDV.P99)
				}
				if w != nil && w.Jitter != nil {
					worse("jitter", w.Jitter.Mean)
				}
			}
			for _, lost := range delayLosses(p) {
				worse("loss", lost)
			}
		}
		for _, s := range run.Sums { // of a plain test the server tells its jitter alone
			if r := s.Receiver; r != nil && r.Jitter != nil && out["jitter"] == nil {
				worse("jitter", *r.Jitter)
			}
		}
	}
	return out
}

// delayLosses are the shares that were lost of probes: of those without an answer, or, where none was asked
// for, of each direction.
func delayLosses(p *result.Probes) (out []float64) {
	if p.Sent == 0 {
		return nil
	}
	switch p.Kind {
	case "udp-echo":
		return []float64{1 - float64(p.Answered)/float64(p.Sent)}
	case "udp-test":
		for _, lost := range []*int64{p.LostUp, p.LostDown} {
			if lost != nil {
				out = append(out, float64(*lost)/float64(p.Sent))
			}
		}
	}
	return out
}

// inRounds measures several times.
func (d *delaying) inRounds(ctx context.Context, f *roundsFlag) error {
	out := d.out
	out.inRounds = true
	out.say(f.words() + " to " + screen.Clean(out.host) + ":")
	values := map[string][]*float64{}
	var first []int // run of each round
	var errs []error
	for round := range f.most() {
		if round > 0 && !pause.For(ctx, method.RoundsPause) || d.budget.Used() {
			break
		}
		from := len(out.runs)
		err := d.measure(ctx)
		errs = append(errs, err)
		if len(out.runs) == from {
			break
		}
		for _, run := range out.runs[from:] {
			run.Label = fmt.Sprintf("round-%d", round+1)
			if tells(run) {
				out.say(fmt.Sprintf("  round %-3d %s", round+1, run.Summary))
			}
		}
		if err == nil || exitCode(err) == exitInconclusive { // what broke off is no round
			first = append(first, from)
			known := delayMeasured(out.runs[from:])
			for name := range delayFigures {
				values[name] = append(values[name], known[name])
			}
		} else {
			break
		}
		if f.auto && round+1 >= method.LeastRounds && enoughRounds(values["rtt"]) {
			break
		}
	}
	d.sumUp(values, first, f.auto)
	return worst(errs)
}

// sumUp makes the accounts of the rounds, and the sentence.
func (d *delaying) sumUp(values map[string][]*float64, first []int, auto bool) {
	out := d.out
	var parts []string
	for _, name := range delayOrder {
		r := method.RoundsOf("", name, "", delayFigures[name].unit, values[name], first)
		if r.Median == nil {
			continue
		}
		r.Settled = method.Settled(auto && name == "rtt", &r)
		if r.Settled != nil && !*r.Settled {
			out.notices = append(out.notices, unsettled(len(first)))
		}
		out.rounds = append(out.rounds, r)
		if words := map[string]string{"rtt": "round trip", "rtt_p99": "p99", "pdv": "variation p99", "connect": "connecting", "loss": "lost"}[name]; words != "" {
			parts = append(parts, words+" "+roundsText(&r))
		}
	}
	if len(parts) == 0 {
		return
	}
	out.summary = fmt.Sprintf("%s: %s; medians of %s.", out.host, strings.Join(parts, ", "), counted(len(first), "round"))
	if len(first) < method.LeastRounds {
		out.summary = strings.TrimSuffix(out.summary, ".") + "; fewer than three rounds tell little of the spread."
	}
}

// judge holds what was measured against the thresholds.
func (d *delaying) judge(job *methodJob, wishes []threshold) error {
	out := d.out
	if len(out.runs) == 0 || len(wishes) == 0 {
		return nil
	}
	job.measured = func(rep *result.Report) map[string]*float64 {
		if out.inRounds {
			return medians(rep)
		}
		return delayMeasured(rep.Runs)
	}
	rep := &result.Report{Runs: out.runs, Rounds: out.rounds}
	missed, unknown := job.judge(rep, wishes)
	out.items = rep.Items
	for _, i := range rep.Items {
		if i.Result != result.Pass {
			fmt.Fprintf(d.e.Err, "fullbore: %s\n", i.Reasons[0])
		}
	}
	switch {
	case missed:
		return &codeError{code: exitMissed}
	case unknown:
		return &codeError{code: exitInconclusive}
	}
	return nil
}

// answersProbes reports that the other end is one that answers probes.
func answersProbes(run *result.Run) bool {
	for _, p := range run.Probes {
		if p.Kind == "udp-echo" {
			return true
		}
	}
	return false
}

// silence is the exit code of a run in which nothing that was sent came back: measured,
// but no answer.
func silence(run *result.Run) error {
	for _, p := range run.Probes {
		if p.Answered > 0 {
			return nil
		}
	}
	return &codeError{code: exitInconclusive}
}

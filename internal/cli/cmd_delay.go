package cli

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fullbore-net/fullbore/internal/conclude"
	"github.com/fullbore-net/fullbore/internal/plan"
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

Profiles: voice (each 20 ms) and 1ms. HOST may be "self". Traffic: a profile's datagrams
of 64 bytes are 26 kbit/s (voice) or 512 kbit/s (1ms) of payload each way; --tcp sends as
fast as the answers come.`

const delayExample = `  fullbore delay self
  fullbore delay 192.0.2.2                     voice: 64 bytes each 20 ms, 10 s
  fullbore delay 192.0.2.2 --profile 1ms -t 60
  fullbore delay 192.0.2.2 --spacing 5ms --length 1200
  fullbore delay 192.0.2.2 --tcp               request and response, connect times
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
	errs := []error{e.measureDelay(ctx, p, out)}
	if err := out.Close(ctx); err != nil {
		errs = append(errs, err)
	}
	return worst(errs)
}

// measureDelay measures once, or, where nothing answers probes, each direction once.
func (e *env) measureDelay(ctx context.Context, p plan.Plan, out *output) error {
	for _, d := range []plan.Direction{plan.Up, plan.Down} {
		p.Direction = d
		run, err := out.measure(ctx, &runner.Runner{Version: Version, Now: e.Now, Log: e.logger()}, p)
		if err != nil {
			var broke *result.Error
			if run != nil && errors.As(err, &broke) {
				return &codeError{code: runExit(broke)}
			}
			return err
		}
		if p.Probe.TCP || answers(run) {
			return silence(run)
		}
		out.plans = 2
	}
	return nil
}

// answers reports that the other end is one that answers probes.
func answers(run *result.Run) bool {
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

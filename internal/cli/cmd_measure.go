package cli

import (
	"context"
	"errors"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fullbore-net/fullbore/internal/conclude"
	"github.com/fullbore-net/fullbore/internal/pause"
	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/internal/runner"
	"github.com/fullbore-net/fullbore/result"
)

// testOptions are the words of `fullbore test`. (The file is not called cmd_test.go
// because Go would take that for a test.)
type testOptions struct {
	up, down, both bool
	plan           plan.Plan
	udp            udpOptions
	copyMode       bool
	window         string
	affinity       []int
	peerFlags
	expect  []string
	pause   time.Duration // between hosts, and between stages of a profile
	keep    keepOptions
	viaWord string
	via     *via // nil = iperf3's protocol
	out     outputOptions

	profileName  string
	profile      *testProfile // nil = none
	reasons      []string     // why the profile chose what it did
	streamsTyped bool

	rounds roundsFlag
	seed   int64  // of their random order; 0 = drawn
	preset string // kind of path; "" = none
}

const testLong = `Measure TCP (or UDP: -u) towards HOST, up and then down, and say how fast it is.

HOST is a name, an address, an IPv6 address with a zone, or "self". Several hosts,
or @FILE with one a line, are measured one after the other and end in one table.
The peer may be an iperf3 server (3.1 … 3.21) or "fullbore serve"; a fullbore peer
lets both ends' counters be shown while the test runs.

Traffic: as much as the path carries for 10 s in each direction (a 10 Gbit/s path:
about 25 GB in all). Bound it with -t, -n, -b, --max-bytes or --max-rate.

UDP needs a rate, since it does not find one by itself: -b 100M is payload per
stream (as iperf3's -b; --total-bitrate is for all of them), -b 1G@l1 counts headers
and gaps, -b 95% is of the link's speed, --pps counts datagrams, -b auto finds a rate
that loses nothing first. The result is what was delivered; loss is told with its
bound and with who lost it.

--profile vm is Azure's procedure for virtual machines: two streams for each core of
this host, upwards; 10 s with one stream, then 300 s. A flag that is given wins.

--rounds 5 measures five times, up and down in random order, and takes the median:
one run is an anecdote. --expect then judges the median. From six rounds on there is
a confidence interval; with fewer only a range.

--expect takes terms separated by commas: rate (the default), and of UDP loss,
jitter (RFC 3550, mean) and pdv (delay variation, p99).`

const testExample = `  fullbore test self
  fullbore test 192.0.2.2
  fullbore test 192.0.2.2 --down -P 8 -t 60
  fullbore test 192.0.2.2 --window 8M --cc bbr
  fullbore test 192.0.2.2 --via ntttcp -P 8        the peer is an NTTTCP receiver
  fullbore test fe80::1%eth0 --json > run.json
  fullbore test @hosts.txt -t 30 --csv
  fullbore test 192.0.2.2 --profile vm             10 s with one stream, then 300 s
  fullbore test 192.0.2.2 --expect '>= 9 Gbit/s'   exit code 1 when missed
  fullbore test 192.0.2.2 --rounds 5               five rounds: median, range, what stands out
  fullbore test 192.0.2.2 -u -b 100M               UDP, 100 Mbit/s of payload
  fullbore test 192.0.2.2 -u -b 95% --down         95 % of the link's speed
  fullbore test 192.0.2.2 -u --pps 50 -l 200 -t 60 --grade voice=30ms/1%
  fullbore test 192.0.2.2 -u -b 10M --expect 'loss <= 0.1%, jitter <= 5ms'`

func newTestCmd(e *env) *cobra.Command {
	o := &testOptions{}
	cmd := &cobra.Command{
		Use:     "test HOST…",
		Short:   "Measure one path: rate, both ends' numbers, what limits it",
		Long:    testLong,
		Example: testExample,
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.usePreset(cmd.Flags()); err != nil {
				return err
			}
			if err := o.useProfile(cmd.Flags()); err != nil {
				return err
			}
			if err := o.useVia(cmd.Flags(), args); err != nil {
				return err
			}
			return e.runTest(cmd.Context(), o, args, cmd.Flags().Changed)
		},
	}
	o.addFlags(cmd)
	return cmd
}

func (o *testOptions) addFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	p := &o.plan
	o.peerFlags.addFlags(cmd, p)
	f.BoolVar(&o.up, "up", false, "only from here to HOST")
	f.BoolVar(&o.down, "down", false, "only from HOST to here")
	f.BoolVar(&o.both, "both", false, "both directions at the same time")
	f.VarP(durationFlag{&p.Duration}, "time", "t", "length of each direction (default 10s)")
	f.VarP(sizeFlag{&p.Bytes}, "bytes", "n", "move so many payload bytes instead of a time")
	f.IntVarP(&p.Streams, "streams", "P", 1, "streams per direction (iperf3 peers: up to 128; fullbore: 10000)")
	f.VarP(durationFlag{&p.Omit}, "omit", "O", "warm-up that is not counted")
	f.VarP(durationFlag{&p.Interval}, "interval", "i", "time between reports (default 1s)")
	f.BoolVarP(&o.udp.udp, "udp", "u", false, "UDP instead of TCP; needs a rate")
	f.VarP(rateSpecFlag{&o.udp.rate}, "bitrate", "b", "payload rate per stream, e.g. 100M; 0 = as fast as possible (TCP's default); UDP also 1G@l1, 95%, auto")
	f.Var(rateSpecFlag{&o.udp.total}, "total-bitrate", "rate of all streams together, as -b")
	f.Float64Var(&o.udp.pps, "pps", 0, "UDP: datagrams per second and stream, instead of a bit rate")
	f.StringVar(&o.udp.pacing, "pacing", "", "UDP: how closely due times are kept: frugal (bursts of 0.5 ms, least CPU) or precise (spins, a core per sender) (default: bursts of 50 µs)")
	f.StringVar(&o.udp.offload, "offload", "", "UDP: segmentation offload here, on or off (default: where it can be had; off makes the count of drops exact)")
	f.BoolVar(&o.udp.frag, "allow-fragments", false, "UDP: let datagrams be larger than the path's packet")
	f.StringArrayVar(&o.udp.grades, "grade", nil, "UDP: bounds of a grade, e.g. voice=30ms/1%, or good and usable: voice=10ms/0.5%,30ms/1% (repeatable)")
	f.IntVar(&p.Burst, "burst", 0, "blocks sent back to back when paced")
	f.Var(rateFlag{&p.FQRate}, "fq-rate", "let the kernel pace each stream at this rate")
	f.StringVarP(&o.window, "window", "w", "", "socket buffers on both ends, e.g. 8M; 2x = twice the system's autotuning maximum")
	f.VarP(sizeFlagInt{&p.BlockSize}, "length", "l", "bytes per write (default 128K); UDP: payload of a datagram (default: what fills a packet of the path)")
	f.IntVarP(&p.MSS, "mss", "M", 0, "maximum segment size")
	f.BoolVarP(&p.NoDelay, "no-delay", "N", false, "set TCP_NODELAY")
	f.StringVarP(&p.Congestion, "cc", "C", "", "congestion control on both ends, e.g. cubic, bbr")
	f.IntVarP(&p.TOS, "tos", "S", 0, "TOS byte (DSCP × 4)")
	f.IntVarP(&p.FlowLabel, "flow-label", "L", 0, "IPv6 flow label")
	f.BoolVar(&p.MPTCP, "mptcp", false, "use MPTCP for the streams")
	f.IntVar(&p.ClientPort, "cport", 0, "first local data port")
	f.IntSliceVarP(&o.affinity, "affinity", "A", nil, "CPUs for the workers of this end, e.g. 2,3")
	f.BoolVar(&o.copyMode, "copy", false, "read and write payload as an application does, instead of the cheapest honest path")
	f.Var(durationFlag{&p.ReceiveTimeout}, "receive-timeout", "give up when no data arrives for this long (default 2m)")
	f.Var(sizeFlag{&p.MaxBytes}, "max-bytes", "stop when so many payload bytes have moved")
	f.Var(rateFlag{&p.MaxRate}, "max-rate", "never go above this rate, all streams together")
	f.StringArrayVar(&o.expect, "expect", nil, "thresholds for every direction, e.g. '>= 5 Gbit/s' or 'loss <= 0.1%, jitter <= 5ms'; exit code 1 when missed (repeatable)")
	f.StringVar(&o.profileName, "profile", "", "a procedure that others agreed on, with its settings and stages: "+profileNames()+"; flags that are given win")
	f.Var(durationFlag{&o.pause}, "pause", "pause between hosts, and between stages of a profile (default 2s)")
	f.StringVar(&o.preset, "preset", "", "streams, window and time for a kind of path: "+presetNames()+"; flags that are given win")
	f.Var(&o.rounds, "rounds", roundsHelp+"; directions in random order inside each round; of a profile its last stage")
	f.Int64Var(&o.seed, "seed", 0, "number from which the random order of --rounds follows (default: drawn, and told)")
	f.StringVar(&o.viaWord, "via", "", viaHelp)
	o.keep.addFlags(f)
	o.out.addFlags(f)
	cmd.MarkFlagsMutuallyExclusive("up", "down", "both")
	cmd.MarkFlagsMutuallyExclusive("time", "bytes")
}

// plans are the measurements of one host in order.
func (o *testOptions) plans(host string) ([]plan.Plan, error) {
	p := o.plan
	if p.Streams < 1 {
		return nil, usagef("streams: %d: must be at least 1", p.Streams)
	}
	p.Host = host
	p.Affinity = o.affinity
	o.peerFlags.apply(&p)
	if err := o.udp.apply(&p); err != nil {
		return nil, err
	}
	if !o.copyMode && !o.udp.udp {
		p.Send, p.Receive = plan.SendCheapest, plan.Discard
		p.RemoteDiscard = true
	}
	if o.window != "" {
		w, err := parseWindow(o.window)
		if err != nil {
			return nil, err
		}
		p.Window = w
	}
	dirs := []plan.Direction{plan.Up, plan.Down}
	switch {
	case o.up:
		dirs = dirs[:1]
	case o.down:
		dirs = dirs[1:]
	case o.both:
		dirs = []plan.Direction{plan.Both}
	}
	var out []plan.Plan
	for _, d := range dirs {
		p.Direction = d
		if o.via != nil {
			var err error
			if p, err = o.via.plan(p); err != nil {
				return nil, err
			}
		}
		if err := p.Validate(); err != nil {
			return nil, &UsageError{Msg: strings.ReplaceAll(err.Error(), "\n", "; "), Hints: []string{"see: fullbore test --help"}}
		}
		out = append(out, p)
	}
	return out, nil
}

func (e *env) runTest(ctx context.Context, o *testOptions, args []string, given func(flag string) bool) error {
	hosts, err := hostList(args)
	if err != nil {
		return err
	}
	if err := o.udp.check(hosts[0], o.tcpOnly(given)); err != nil {
		return err
	}
	if o.udp.rate.auto && (o.plan.Bytes > 0 || o.plan.MaxBytes > 0) {
		return usagef("-b auto finds a rate by sending: it does not go with -n or --max-bytes")
	}
	var want wishes
	for _, w := range o.expect {
		ts, err := parseThresholds(w, o.udp.udp)
		if err != nil {
			return err
		}
		want.thresholds = append(want.thresholds, ts...)
	}
	if want.profiles, err = gradeProfiles(o.udp.grades); err != nil {
		return err
	}
	var steps [][]testStep
	for _, h := range hosts {
		s, err := o.steps(h)
		if err != nil {
			return err
		}
		steps = append(steps, s)
	}
	out, err := e.newOutput(o.out, &o.keep, args, len(hosts), len(hosts)*len(steps[0]))
	if err != nil {
		return err
	}
	out.announce(ctx, o, hosts, steps[0])
	ctx, stop := e.interruptible(ctx)
	defer stop()
	if o.pause == 0 {
		o.pause = 2 * time.Second
	}
	var errs []error
	for i := range steps {
		if i > 0 && !pause.For(ctx, o.pause) {
			break
		}
		errs = append(errs, e.testHost(ctx, hosts[i], steps[i], o, want, out)...)
		if ctx.Err() != nil {
			break
		}
	}
	if err := out.Close(ctx); err != nil {
		errs = append(errs, err)
	}
	return worst(errs)
}

// tcpOnly are the options given that mean nothing for UDP.
func (o *testOptions) tcpOnly(given func(flag string) bool) []string {
	var out []string
	for _, flag := range []string{"copy", "mss", "no-delay", "cc", "mptcp", "fq-rate"} {
		if given(flag) {
			out = append(out, "--"+flag)
		}
	}
	return out
}

// wishes are what the reader wants a run to be judged by.
type wishes struct {
	thresholds []threshold
	profiles   []conclude.Profile
}

// testHost makes the measurements of one host; "self" gets a server of its own.
func (e *env) testHost(ctx context.Context, host string, steps []testStep, o *testOptions, want wishes, out *output) []error {
	out.host = host
	o.keep.look(ctx, e, host, o.family())
	if host == "self" {
		srv, err := e.startSelf(ctx)
		if err != nil {
			return []error{err}
		}
		defer srv.stop()
		for i := range steps {
			steps[i].plan.Host, steps[i].plan.Port, steps[i].plan.Own = srv.host, srv.port, true
		}
	}
	t := &hostTest{e: e, host: host, o: o, want: want, out: out}
	if o.rounds.asked() {
		t.inRounds(ctx, steps)
		return t.errs
	}
	for i := range steps {
		if steps[i].first && i > 0 && !pause.For(ctx, o.pause) {
			break
		}
		if !t.one(ctx, &steps[i]) {
			break
		}
	}
	return t.errs
}

// hostTest is the measuring of one host.
type hostTest struct {
	e    *env
	host string
	o    *testOptions
	want wishes
	out  *output
	runs []*result.Run // so far
	errs []error
}

// one makes one measurement; false when the next one would fail alike.
func (t *hostTest) one(ctx context.Context, step *testStep) bool {
	e, udp := t.e, &t.o.udp
	r := &runner.Runner{Version: Version, Now: e.Now, Log: e.logger(), Profiles: t.want.profiles}
	if n := step.fit(t.runs); n != nil {
		r.Notices = append(r.Notices, *n)
	}
	p := step.plan
	err := udp.resolve(ctx, &p, t.runs)
	if err == nil && udp.udp && udp.spec().auto && step.found == nil {
		var found *result.Notice
		if found, err = e.findRate(ctx, r, &p, t.runs, t.out.say); found != nil {
			r.Notices = append(r.Notices, *found)
		}
		if err == nil && step.round > 0 { // all rounds are at the rate that was found
			step.found = &p
		}
	}
	if step.found != nil {
		p = *step.found
	}
	if err != nil {
		e.printError(err)
		t.errs = append(t.errs, &codeError{code: exitCode(err)})
		return false
	}
	run, err := t.out.step(ctx, r, step, p)
	if err != nil && run == nil {
		t.errs = append(t.errs, err)
		return false
	}
	t.runs = append(t.runs, run)
	var broke *result.Error
	switch {
	case errors.As(err, &broke):
		t.errs = append(t.errs, &codeError{code: runExit(broke)})
	case len(t.want.thresholds) > 0 && step.judge && step.round == 0:
		t.errs = append(t.errs, checkAll(t.want.thresholds, e, run, t.out))
	}
	// The next direction or stage would fail alike, unless this one broke off by itself.
	return ctx.Err() == nil && (broke == nil || runExit(broke) == exitBroken && step.stage == nil)
}

// hostList expands @FILE words: one host a line, blank lines and # comments skipped.
func hostList(args []string) ([]string, error) {
	var hosts []string
	for _, a := range args {
		if !strings.HasPrefix(a, "@") {
			hosts = append(hosts, a)
			continue
		}
		data, err := os.ReadFile(a[1:])
		if err != nil {
			return nil, usagef("host list: %v", err)
		}
		for line := range strings.SplitSeq(string(data), "\n") {
			if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
				hosts = append(hosts, line)
			}
		}
	}
	if len(hosts) == 0 {
		return nil, usagef("no host given")
	}
	return hosts, nil
}

// worst picks the error whose exit code says most: higher codes win.
func worst(errs []error) error {
	var out error
	code := -1
	for _, err := range errs {
		if err == nil {
			continue
		}
		if c := exitCode(err); c > code {
			out, code = err, c
		}
	}
	return out
}

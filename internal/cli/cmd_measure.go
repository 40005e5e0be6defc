package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/internal/runner"
	"github.com/fullbore-net/fullbore/internal/units"
	"github.com/fullbore-net/fullbore/result"
)

// testOptions are the words of `fullbore test`. (The file is not called cmd_test.go
// because Go would take that for a test.)
type testOptions struct {
	up, down, both bool
	plan           plan.Plan
	copyMode       bool
	window         string
	affinity       []int
	ipv4, ipv6     bool
	expect         string
	pause          time.Duration
	plain          bool // no extension: behave as a plain iperf3 client
	noStore        bool
	out            outputOptions
}

const testLong = `Measure TCP towards HOST, up and then down, and say how fast it is.

HOST is a name, an address, an IPv6 address with a zone, or "self". Several hosts,
or @FILE with one a line, are measured one after the other and end in one table.
The peer may be an iperf3 server (3.1 … 3.21) or "fullbore serve"; a fullbore peer
lets both ends' counters be shown while the test runs.

Traffic: as much as the path carries for 10 s in each direction (a 10 Gbit/s path:
about 25 GB in all). Bound it with -t, -n, -b, --max-bytes or --max-rate.`

const testExample = `  fullbore test self
  fullbore test 192.0.2.2
  fullbore test 192.0.2.2 --down -P 8 -t 60
  fullbore test 192.0.2.2 --window 8M --cc bbr
  fullbore test fe80::1%eth0 --json > run.json
  fullbore test @hosts.txt -t 30 --csv
  fullbore test 192.0.2.2 --expect '>= 9 Gbit/s'   exit code 1 when missed`

func newTestCmd(e *env) *cobra.Command {
	o := &testOptions{}
	cmd := &cobra.Command{
		Use:     "test HOST…",
		Short:   "Measure one path: rate, both ends' numbers, what limits it",
		Long:    testLong,
		Example: testExample,
		Args:    cobra.MinimumNArgs(1),
		RunE:    func(cmd *cobra.Command, args []string) error { return e.runTest(cmd.Context(), o, args) },
	}
	o.addFlags(cmd)
	return cmd
}

func (o *testOptions) addFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	p := &o.plan
	f.BoolVar(&o.up, "up", false, "only from here to HOST")
	f.BoolVar(&o.down, "down", false, "only from HOST to here")
	f.BoolVar(&o.both, "both", false, "both directions at the same time")
	f.IntVarP(&p.Port, "port", "p", plan.DefaultPort, "port of the server")
	f.VarP(durationFlag{&p.Duration}, "time", "t", "length of each direction (default 10s)")
	f.VarP(sizeFlag{&p.Bytes}, "bytes", "n", "move so many payload bytes instead of a time")
	f.IntVarP(&p.Streams, "streams", "P", 1, "streams per direction (iperf3 peers: up to 128; fullbore: 10000)")
	f.VarP(durationFlag{&p.Omit}, "omit", "O", "warm-up that is not counted")
	f.VarP(durationFlag{&p.Interval}, "interval", "i", "time between reports (default 1s)")
	f.VarP(rateFlag{&p.Bitrate}, "bitrate", "b", "payload rate per stream, e.g. 100M (default: unlimited)")
	f.IntVar(&p.Burst, "burst", 0, "blocks sent back to back when paced")
	f.Var(rateFlag{&p.FQRate}, "fq-rate", "let the kernel pace each stream at this rate")
	f.StringVarP(&o.window, "window", "w", "", "socket buffers on both ends, e.g. 8M; 2x = twice the system's autotuning maximum")
	f.VarP(sizeFlagInt{&p.BlockSize}, "length", "l", "bytes per write (default 128K)")
	f.IntVarP(&p.MSS, "mss", "M", 0, "maximum segment size")
	f.BoolVarP(&p.NoDelay, "no-delay", "N", false, "set TCP_NODELAY")
	f.StringVarP(&p.Congestion, "cc", "C", "", "congestion control on both ends, e.g. cubic, bbr")
	f.IntVarP(&p.TOS, "tos", "S", 0, "TOS byte (DSCP × 4)")
	f.IntVarP(&p.FlowLabel, "flow-label", "L", 0, "IPv6 flow label")
	f.BoolVar(&p.MPTCP, "mptcp", false, "use MPTCP for the streams")
	f.StringVarP(&p.BindHost, "bind", "B", "", "local address")
	f.StringVar(&p.BindDev, "bind-dev", "", "local interface")
	f.IntVar(&p.ClientPort, "cport", 0, "first local data port")
	f.BoolVarP(&o.ipv4, "ipv4", "4", false, "use IPv4 only")
	f.BoolVarP(&o.ipv6, "ipv6", "6", false, "use IPv6 only")
	f.IntSliceVarP(&o.affinity, "affinity", "A", nil, "CPUs for the workers of this end, e.g. 2,3")
	f.BoolVar(&o.copyMode, "copy", false, "read and write payload as an application does, instead of the cheapest honest path")
	f.Var(durationFlag{&p.ConnectTimeout}, "connect-timeout", "give up connecting after this time")
	f.Var(durationFlag{&p.ReceiveTimeout}, "receive-timeout", "give up when no data arrives for this long (default 2m)")
	f.Var(sizeFlag{&p.MaxBytes}, "max-bytes", "stop when so many payload bytes have moved")
	f.Var(rateFlag{&p.MaxRate}, "max-rate", "never go above this rate, all streams together")
	f.BoolVar(&p.Queue, "queue", false, "wait when the server is busy (fullbore servers)")
	f.StringVar(&o.expect, "expect", "", "threshold for every direction, e.g. '>= 5 Gbit/s'; exit code 1 when missed")
	f.Var(durationFlag{&o.pause}, "pause", "pause between hosts (default 2s)")
	f.BoolVar(&o.plain, "no-extension", false, "speak plain iperf3 even to a fullbore server")
	f.BoolVar(&o.noStore, "no-store", false, "do not keep the run in the history")
	o.out.addFlags(f)
	cmd.MarkFlagsMutuallyExclusive("up", "down", "both")
	cmd.MarkFlagsMutuallyExclusive("ipv4", "ipv6")
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
	switch {
	case o.ipv4:
		p.Family = 4
	case o.ipv6:
		p.Family = 6
	}
	if o.plain {
		p.Extension = "off"
	}
	if !o.copyMode {
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
		if err := p.Validate(); err != nil {
			return nil, &UsageError{Msg: strings.ReplaceAll(err.Error(), "\n", "; "), Hints: []string{"see: fullbore test --help"}}
		}
		out = append(out, p)
	}
	return out, nil
}

func (e *env) runTest(ctx context.Context, o *testOptions, args []string) error {
	hosts, err := hostList(args)
	if err != nil {
		return err
	}
	var want *threshold
	if o.expect != "" {
		if want, err = parseThreshold(o.expect); err != nil {
			return err
		}
	}
	var plans [][]plan.Plan
	for _, h := range hosts {
		ps, err := o.plans(h)
		if err != nil {
			return err
		}
		plans = append(plans, ps)
	}
	out, err := e.newOutput(o.out, args, len(hosts), len(hosts)*len(plans[0]))
	if err != nil {
		return err
	}
	ctx, stop := e.interruptible(ctx)
	defer stop()
	pause := o.pause
	if pause == 0 {
		pause = 2 * time.Second
	}
	var errs []error
	for i := range plans {
		if i > 0 && !sleep(ctx, pause) {
			break
		}
		errs = append(errs, e.testHost(ctx, hosts[i], plans[i], want, out)...)
		if ctx.Err() != nil {
			break
		}
	}
	if err := out.Close(); err != nil {
		errs = append(errs, err)
	}
	return worst(errs)
}

// testHost runs the plans of one host; "self" gets a server of its own.
func (e *env) testHost(ctx context.Context, host string, plans []plan.Plan, want *threshold, out *output) []error {
	if host == "self" {
		srv, err := e.startSelf(ctx)
		if err != nil {
			return []error{err}
		}
		defer srv.stop()
		for i := range plans {
			plans[i].Host, plans[i].Port = srv.host, srv.port
		}
	}
	var errs []error
	for _, p := range plans {
		r := &runner.Runner{Version: Version, Now: e.Now, Log: e.logger()}
		run, err := out.measure(ctx, r, p)
		if err != nil && run == nil {
			return append(errs, err)
		}
		var broke *result.Error
		switch {
		case errors.As(err, &broke):
			errs = append(errs, &codeError{code: runExit(broke)})
		case want != nil:
			errs = append(errs, want.check(e, run, out))
		}
		if ctx.Err() != nil || broke != nil && runExit(broke) != exitBroken {
			break // the next direction would fail alike
		}
	}
	return errs
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

// sleep waits d or until ctx ends; it reports whether the time was full.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// threshold is an --expect: a comparison with a rate.
type threshold struct {
	op   string
	rate units.BitRate
	text string
}

func parseThreshold(s string) (*threshold, error) {
	t := &threshold{text: s}
	rest := strings.TrimSpace(s)
	for _, op := range []string{">=", "<=", ">", "<"} {
		if strings.HasPrefix(rest, op) {
			t.op, rest = op, strings.TrimSpace(rest[len(op):])
			break
		}
	}
	if t.op == "" {
		return nil, &UsageError{Msg: fmt.Sprintf("--expect %q: begin with >=, >, <= or <", s), Hints: []string{"for example: --expect '>= 5 Gbit/s'"}}
	}
	r, err := units.ParseRate(rest)
	if err != nil {
		return nil, usagef("--expect: %v", err)
	}
	t.rate = r
	return t, nil
}

// check compares every direction's goodput; an unknown one is inconclusive. What came
// of it goes to stderr and into the report.
func (t *threshold) check(e *env, run *result.Run, out *output) error {
	worst := exitOK
	for _, s := range run.Sums {
		item := result.Item{ID: "expect", Result: result.Pass}
		switch {
		case s.Goodput == nil:
			item.Result = result.Inconclusive
			item.Reasons = []string{fmt.Sprintf("expected %s: the receiver's rate %s → %s is not known", t.text, s.From, s.To)}
			worst = max(worst, exitInconclusive)
		case t.met(*s.Goodput):
			item.Reasons = []string{fmt.Sprintf("expected %s, measured %s %s → %s", t.text, units.BitRate(*s.Goodput), s.From, s.To)}
		default:
			item.Result = result.Fail
			item.Reasons = []string{fmt.Sprintf("missed: expected %s, measured %s %s → %s", t.text, units.BitRate(*s.Goodput), s.From, s.To)}
			worst = max(worst, exitMissed)
		}
		if item.Result != result.Pass {
			fmt.Fprintf(e.Err, "fullbore: %s\n", item.Reasons[0])
		}
		if out != nil {
			out.items = append(out.items, item)
		}
	}
	if worst == exitOK {
		return nil
	}
	return &codeError{code: worst}
}

// met reports whether a rate satisfies the comparison.
func (t *threshold) met(g float64) bool {
	want := float64(t.rate)
	switch t.op {
	case ">=":
		return g >= want
	case ">":
		return g > want
	case "<=":
		return g <= want
	}
	return g < want
}

package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fullbore-net/fullbore/internal/conclude"
	"github.com/fullbore-net/fullbore/internal/connrate"
	"github.com/fullbore-net/fullbore/internal/method"
	"github.com/fullbore-net/fullbore/internal/oshost"
	"github.com/fullbore-net/fullbore/internal/osnet"
	"github.com/fullbore-net/fullbore/internal/pause"
	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/internal/proto/iperf3"
	"github.com/fullbore-net/fullbore/internal/render/screen"
	"github.com/fullbore-net/fullbore/internal/store"
	"github.com/fullbore-net/fullbore/internal/units"
	"github.com/fullbore-net/fullbore/result"
)

// connrateOptions are the words of `fullbore connrate`.
type connrateOptions struct {
	peerFlags
	plan            plan.Plan
	from, most      float64
	each            time.Duration
	refine          int
	connections     int64
	exchange, abort bool
	expect          []string
	dryRun          bool
	json, silent    bool
	report          string
	rounds          roundsFlag
	keep            keepOptions
}

const connrateLong = `Open and close TCP connections to HOST, more every second, until new ones fail; say
how many were reached and what the next ones fail by: refused, dropped SYNs (on the way
or by a full queue of the listener), this host's ports or files, a reset.

HOST's port is that of a fullbore or iperf3 server, or any other with -p (a web server,
a proxy). Opening a connection shows the kernels and what lies between: the program
there need not have taken it. With --exchange each connection greets the server as an
iperf3 client does and waits for its byte, so that the program is measured too: fullbore
servers take as many at one time as their policy allows (serve --max-tests); an iperf3
takes one after the other and prints an error for each, so its figure is its own, not
the path's.

Closed connections keep their local port for a minute. About 28,000 connections in that
time use up Linux' usual range, here as in an application that does not keep its
connections open: it is told as local-ports. --abort closes with a reset instead.

Traffic: seven or eight small packets for each connection, about 0.5 kB; with the
defaults at most 100,000 connections (50 MB). Bound it with --most and
--max-connections. Firewalls may take it for an attack: ask before measuring through
somebody else's.`

const connrateExample = `  fullbore connrate self --most 2000
  fullbore connrate 192.0.2.2
  fullbore connrate 192.0.2.2 --exchange --most 500
  fullbore connrate www.example.net -p 443 --from 10 --most 200
  fullbore connrate 192.0.2.2 --abort --expect '>= 1000' --json`

func newConnRateCmd(e *env) *cobra.Command {
	o := &connrateOptions{}
	cmd := &cobra.Command{
		Use:     "connrate HOST",
		Short:   "How many new connections a second, and where the next ones fail",
		Long:    connrateLong,
		Example: connrateExample,
		Args:    cobra.ExactArgs(1),
		RunE:    func(cmd *cobra.Command, args []string) error { return e.runConnRate(cmd.Context(), o, args[0]) },
	}
	f := cmd.Flags()
	f.IntVarP(&o.plan.Port, "port", "p", plan.DefaultPort, "port of the server")
	f.StringVarP(&o.plan.BindHost, "bind", "B", "", "local address")
	f.BoolVarP(&o.ipv4, "ipv4", "4", false, "use IPv4 only")
	f.BoolVarP(&o.ipv6, "ipv6", "6", false, "use IPv6 only")
	f.Var(durationFlag{&o.plan.ConnectTimeout}, "connect-timeout", "a connection has failed after this time (default 3s)")
	f.Float64Var(&o.from, "from", 50, "connections a second of the first step")
	f.Float64Var(&o.most, "most", 20000, "never more connections a second than this")
	f.VarP(durationFlag{&o.each}, "time", "t", "length of a step (default 1s)")
	f.IntVar(&o.refine, "refine", 3, "steps between the last rate that went well and the first that did not")
	f.Int64Var(&o.connections, "max-connections", 100000, "stop when so many were begun, all steps together")
	f.BoolVar(&o.exchange, "exchange", false, "greet the server as an iperf3 client does and wait for its byte")
	f.BoolVar(&o.abort, "abort", false, "close with a reset: no port is left waiting")
	f.StringArrayVar(&o.expect, "expect", nil, "thresholds of connections a second, e.g. '>= 1000': exit code 1 when missed (repeatable)")
	f.BoolVar(&o.dryRun, "dry-run", false, "say what would be tried and how much traffic it makes; do nothing")
	f.Var(&o.rounds, "rounds", roundsHelp)
	f.BoolVar(&o.json, "json", false, "print one JSON document (schema: docs/schema/run-1.json, Report)")
	f.BoolVarP(&o.silent, "quiet", "q", false, "only the closing sentence")
	f.StringVar(&o.report, "report", "", "write the result to FILE.html, too")
	o.keep.addFlags(f)
	cmd.MarkFlagsMutuallyExclusive("ipv4", "ipv6")
	cmd.MarkFlagsMutuallyExclusive("json", "quiet")
	return cmd
}

func (o *connrateOptions) check() error {
	if o.each == 0 {
		o.each = time.Second
	}
	switch {
	case o.from < 1 || o.most < o.from || o.most > 1e6:
		return usagef("--from %g, --most %g: from 1 on, and --most at least --from, at most 1000000", o.from, o.most)
	case o.each < 10*time.Millisecond || o.each > time.Minute:
		return usagef("--time %s: 10 ms to 1 min for a step", units.FormatDuration(o.each))
	case o.refine < 0 || o.refine > 20:
		return usagef("--refine %d: 0…20", o.refine)
	case o.connections < 1:
		return usagef("--max-connections %d: at least 1", o.connections)
	case o.plan.Port < 1 || o.plan.Port > 65535:
		return usagef("--port %d: 1…65535", o.plan.Port)
	}
	if err := checkReport(o.report); err != nil {
		return err
	}
	return o.keep.check()
}

// connFigures are what --expect judges.
var connFigures = map[string]figureKind{"rate": numberKind}

func (e *env) runConnRate(ctx context.Context, o *connrateOptions, host string) error {
	if err := o.check(); err != nil {
		return err
	}
	var wishes []threshold
	for _, w := range o.expect {
		t, err := parseTerm(strings.TrimSpace(w), connFigures, "rate", []string{"for example: --expect '>= 1000'"})
		if err != nil {
			return err
		}
		wishes = append(wishes, t)
	}
	if o.dryRun {
		o.dry(e.Out, host)
		return nil
	}
	ctx, stop := e.interruptible(ctx)
	defer stop()
	target, port := host, o.plan.Port
	if host == "self" {
		srv, err := e.startSelf(ctx)
		if err != nil {
			return err
		}
		defer srv.stop()
		target, port = srv.host, srv.port
	}
	addrs, err := osnet.Resolve(ctx, target, o.family())
	if err != nil || len(addrs) == 0 {
		return &result.Error{Code: "resolve", Text: fmt.Sprintf("%s: no address is known of it: %v", target, err)}
	}
	address := net.JoinHostPort(addrs[0].String(), strconv.Itoa(port))
	if !o.json && !o.silent {
		fmt.Fprintf(e.Out, "Opening connections to %s, from %g a second on, at most %g a second and %d in all\n\n", screen.Clean(address), o.from, o.most, o.connections)
		fmt.Fprintln(e.Out, connHead())
	}
	rep := &result.Report{
		Schema: result.Schema, Kind: "connrate", Tool: result.Tool{Name: "fullbore", Version: Version}, Started: result.Now(e.Now()),
		Inputs: e.words, Runs: []*result.Run{}, Verdicts: []result.Verdict{}, Items: []result.Item{}, Notices: []result.Notice{},
	}
	e.connRounds(ctx, o, address, rep)
	a := rep.ConnRate
	rep.Summary = connText(a)
	if len(rep.Rounds) > 0 && rep.Rounds[0].Median != nil {
		rep.Summary = strings.TrimSuffix(rep.Summary, ".") + fmt.Sprintf("; median of %s: %s.", counted(len(rep.Rounds[0].Values), "round"), roundsText(&rep.Rounds[0]))
	}
	rep.Notices = append(rep.Notices, connRetries(a)...)
	rep.Next = o.next(host, a)
	var broke *result.Error
	if errors.As(context.Cause(ctx), &broke) {
		rep.Err, rep.Next = broke, nil
	}
	return e.closeConnRate(ctx, o, host, rep, wishes)
}

// dry says what would be tried.
func (o *connrateOptions) dry(w io.Writer, host string) {
	m := method.ConnRate{From: o.from, Most: o.most, Refine: o.refine}
	fmt.Fprintf(w, "Opening connections to %s, %s a step\n\n", screen.Clean(host), units.FormatDuration(o.each))
	var steps []result.ConnRateStep
	total, last := 0.0, 0.0
	for {
		rate, more := m.Next(steps)
		n := math.Ceil(rate * o.each.Seconds())
		if !more || total+n > float64(o.connections) {
			break
		}
		total, last = total+n, n
		fmt.Fprintf(w, "  %8.0f a second  %8.0f connections\n", rate, n)
		steps = append(steps, result.ConnRateStep{Asked: rate, Seconds: 1, Tried: int64(math.Ceil(rate)), Opened: int64(math.Ceil(rate)), Rate: rate})
	}
	total = min(total+float64(o.refine)*last, float64(o.connections))
	fmt.Fprintf(w, "\nUntil new ones fail, then up to %d steps between; at most %.0f connections in all, about %s of packets of handshakes.\n",
		o.refine, total, units.ByteSize(connBytes*total))
}

// connBytes is about what opening and closing a connection takes on the wire, bytes.
const connBytes = 500

// connRounds plays the method so often as --rounds says, and puts what came of it into rep: of several
// rounds the one in the middle.
func (e *env) connRounds(ctx context.Context, o *connrateOptions, address string, rep *result.Report) {
	left := o.connections
	var all []result.ConnRate
	var values []*float64
	for len(all) < o.rounds.most() {
		if len(all) > 0 {
			if o.rounds.auto && enoughRounds(values) {
				break
			}
			if !pause.For(ctx, method.RoundsPause) {
				break
			}
		}
		if o.rounds.asked() && !o.json && !o.silent {
			fmt.Fprintf(e.Out, "  round %d\n", len(all)+1)
		}
		steps := e.connSteps(ctx, o, address, rep, &left)
		a := method.ConnRate{From: o.from, Most: o.most, Refine: o.refine}.Answer(steps)
		a.Target, a.Exchange = address, o.exchange
		if len(steps) == 0 && len(all) > 0 { // cut off at its beginning, or no connection is left
			break
		}
		all, values = append(all, a), append(values, a.Reached)
	}
	at := 0
	if o.rounds.asked() {
		at = typicalRound(values, len(all))
		r := method.RoundsOf("", "rate", "", connFigures["rate"].unit, values, nil)
		r.Settled = method.Settled(o.rounds.auto, &r)
		rep.Rounds = []result.Rounds{r}
		if r.Settled != nil && !*r.Settled {
			rep.Notices = append(rep.Notices, unsettled(len(all)))
		}
	}
	rep.ConnRate = &all[at]
}

// connSteps plays the method once and prints each step; left is how many connections may still be begun.
func (e *env) connSteps(ctx context.Context, o *connrateOptions, address string, rep *result.Report, left *int64) (steps []result.ConnRateStep) {
	totals := oshost.NewTotals(oshost.TotalsOptions{Retransmits: true})
	defer totals.Close()
	m := method.ConnRate{From: o.from, Most: o.most, Refine: o.refine}
	for ctx.Err() == nil {
		rate, more := m.Next(steps)
		if !more {
			return steps
		}
		length := o.each
		if rate*length.Seconds() > float64(*left) {
			rep.Notices = append(rep.Notices, result.Notice{
				Code: "budget-used", End: result.Client, Level: result.Warn,
				Text: fmt.Sprintf("%g a second were not tried: that would go above --max-connections %d", rate, o.connections),
			})
			return steps
		}
		read := totals.Begin()
		s := connrate.Run(ctx, connrate.Options{
			Network: "tcp", Address: address, Local: o.plan.BindHost, Rate: rate, Length: length, Timeout: o.plan.ConnectTimeout,
			Exchange: o.exchange, Denied: 0xff, Abort: o.abort,
			Greeting: func() []byte { c := iperf3.NewCookie(); return c[:] },
		})
		if t := read(); t != nil && t.TCP != nil {
			s.SYNAgain = &t.TCP.SynRetrans
		}
		if ctx.Err() != nil && s.Seconds < 0.5*length.Seconds() { // cut off: it says nothing
			return steps
		}
		steps = append(steps, s)
		*left -= s.Tried
		if !o.json && !o.silent {
			fmt.Fprintln(e.Out, connRow(&m, &s))
		}
	}
	return steps
}

func connLine(asked, opened, failed, connect, p99, rest string) string {
	return strings.TrimRight("  "+screen.Right(asked, 10)+screen.Right(opened, 12)+screen.Right(failed, 9)+screen.Right(connect, 11)+screen.Right(p99, 11)+"  "+rest, " ")
}

func connHead() string { return connLine("asked", "opened", "failed", "connect", "p99", "") }

func connRow(m *method.ConnRate, s *result.ConnRateStep) string {
	failed := int64(0)
	var why []string
	for _, f := range s.Failed {
		failed += f.Count
		why = append(why, f.Code)
	}
	switch {
	case m.Good(s):
	case m.Starved(s):
		why = append(why, fmt.Sprintf("this host was late: it began %d in %.2g s", s.Tried, s.Seconds))
	case s.Held > 0:
		why = append(why, fmt.Sprintf("for %.2g s thousands waited for answers", s.Held))
	}
	connect, p99 := "–", "–"
	if s.Connect != nil {
		connect, p99 = millisText(s.Connect.P50), millisText(s.Connect.P99)
	}
	return connLine(fmt.Sprintf("%.0f/s", s.Asked), fmt.Sprintf("%.0f/s", s.Rate), fmt.Sprint(failed), connect, p99, strings.Join(why, ", "))
}

// connText is the sentence.
func connText(a *result.ConnRate) string {
	what := "connections a second"
	if a.Exchange {
		what = "connections a second, each with an answer of the program,"
	}
	switch {
	case len(a.Steps) == 0:
		return "Nothing was measured."
	case a.Reached == nil:
		return fmt.Sprintf("Not even %.0f %s went well: %s.", a.Steps[0].Asked, what, a.Why)
	case a.Limit == "":
		return fmt.Sprintf("%.0f %s were opened and none failed; more were not tried.", *a.Reached, what)
	}
	return fmt.Sprintf("%.0f %s were opened without a failure; beyond that: %s.", *a.Reached, what, a.Why)
}

// synWait is about how long a SYN waits before it is sent again, s (RFC 6298).
const synWait = 0.9

// connRetries says from which rate on connections came about only because their SYNs were sent again: the first
// sign of a queue that overflows, before any fails.
func connRetries(a *result.ConnRate) []result.Notice {
	var first *result.ConnRateStep
	for i := range a.Steps {
		s := &a.Steps[i]
		if s.SYNAgain == nil || *s.SYNAgain <= 0 || len(s.Failed) > 0 || s.Connect == nil || s.Connect.Max < synWait {
			continue
		}
		if first == nil || s.Asked < first.Asked {
			first = s
		}
	}
	if first == nil {
		return nil
	}
	return []result.Notice{{
		Code: "syn-retries", Level: result.Warn,
		Text: fmt.Sprintf("at %.0f a second %d SYNs had to be sent again, and connecting took up to %s: some were dropped on the way or by a full queue of the listener, before any connection failed",
			first.Asked, *first.SYNAgain, conclude.Time(first.Connect.Max)),
	}}
}

// ownLimit reports that new connections fail by what this host can do, which says nothing of the other end.
func ownLimit(a *result.ConnRate) bool { return a.Limit != "" && a.Where == result.Client }

// next is what is worth typing then.
func (o *connrateOptions) next(host string, a *result.ConnRate) *result.Step {
	to := func(why string, words ...string) *result.Step {
		return stepTo(host, o.plan.Port, &o.peerFlags, why, words...)
	}
	switch {
	case len(a.Steps) == 0:
		return nil
	case a.Limit == method.ConnCPU:
		return fitness(result.Client, host)
	case a.Limit == connrate.LocalPorts && !o.abort:
		return to("without ports that wait: how many does the other end take?", "connrate", "HOST", "--abort")
	case a.Reached == nil && a.Limit == connrate.Refused:
		return to("what refuses connections: is it a filter?", "diagnose", "HOST", "--quick")
	case a.Reached == nil:
		return nil
	case a.Limit == "" && !o.exchange:
		return to("its kernel opens them: does its program take them, too?", "connrate", "HOST", "--exchange")
	case a.Limit == connrate.NoAnswer:
		return &result.Step{Command: "fullbore doctor", Why: "at the other end: how full is its table of connections (conntrack), and how long may its queue of new ones be (net.core.somaxconn)?"}
	case a.Limit == "" && *a.Reached >= 0.9*o.most:
		return to("none failed up to the most that was to be tried: where do they?", "connrate", "HOST", "--most", strconv.FormatFloat(min(10*o.most, 1e6), 'f', -1, 64))
	}
	return nil
}

func (e *env) closeConnRate(ctx context.Context, o *connrateOptions, host string, rep *result.Report, wishes []threshold) error {
	a, reached := rep.ConnRate, rep.ConnRate.Reached
	if len(rep.Rounds) > 0 {
		reached = rep.Rounds[0].Median
	}
	missed, unknown := false, false
	for _, t := range wishes {
		item := result.Item{ID: "expect", Result: result.Pass}
		switch {
		case reached == nil:
			item.Result, unknown = result.Inconclusive, true
			item.Reasons = []string{fmt.Sprintf("expected %s connections a second: no rate went well", t.text)}
		case t.met(*reached):
			item.Reasons = []string{fmt.Sprintf("expected %s, %.0f connections a second were reached", t.text, *reached)}
		case ownLimit(a):
			item.Result, unknown = result.Inconclusive, true
			item.Reasons = []string{fmt.Sprintf("expected %s, %.0f connections a second were reached; not missed for sure: this host was the limit (%s)", t.text, *reached, a.Limit)}
		default:
			item.Result, missed = result.Fail, true
			item.Reasons = []string{fmt.Sprintf("missed: expected %s, %.0f connections a second were reached", t.text, *reached)}
		}
		rep.Items = append(rep.Items, item)
	}
	o.keep.host = host
	if reached != nil {
		o.keep.headline = []result.Value{{Name: "connections", Value: *reached, Unit: ""}}
	}
	o.keep.mark(rep)
	if err := e.writeReport(o.report, rep); err != nil {
		return err
	}
	err := e.printReport(rep, reportForm{json: o.json, silent: o.silent}, true, func() {
		v := e.newStageView(true, true)
		fmt.Fprintln(e.Out)
		for _, l := range screen.Wrap(screen.Clean(rep.Summary), v.width) {
			fmt.Fprintln(e.Out, v.paint("1", l))
		}
		if !a.Exchange && len(a.Steps) > 0 {
			v.line("note: ", "the other end's kernel opens connections; --exchange shows whether its program takes them")
		}
		for _, n := range rep.Notices {
			v.line("note: ", n.Text)
		}
		if len(rep.Rounds) > 0 {
			fmt.Fprintln(e.Out)
			printRounds(e.Out, v.paint, rep.Rounds)
		}
		v.next(rep.Next)
	})
	if err != nil {
		return err
	}
	if len(a.Steps) > 0 {
		if err := e.keepEntry(ctx, &o.keep, store.Of(rep)); err != nil { // it has no runs, and is kept all the same
			return err
		}
	}
	for _, i := range rep.Items {
		if i.Result != result.Pass {
			fmt.Fprintf(e.Err, "fullbore: %s\n", i.Reasons[0])
		}
	}
	switch {
	case rep.Err != nil:
		e.printError(rep.Err)
		return &codeError{code: runExit(rep.Err)}
	case a.Reached == nil && a.Limit == connrate.Busy:
		return &codeError{code: exitRefused}
	case a.Reached == nil && !ownLimit(a):
		return &codeError{code: exitConnect}
	case missed:
		return &codeError{code: exitMissed}
	case unknown, a.Reached == nil, a.Limit == method.ConnCPU && len(wishes) == 0:
		return &codeError{code: exitInconclusive}
	}
	return nil
}

package cli

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fullbore-net/fullbore/internal/diagnose"
	"github.com/fullbore-net/fullbore/internal/method"
	"github.com/fullbore-net/fullbore/internal/oshost"
	"github.com/fullbore-net/fullbore/internal/osnet"
	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/internal/render/jsonstream"
	"github.com/fullbore-net/fullbore/internal/runner"
	"github.com/fullbore-net/fullbore/internal/units"
	"github.com/fullbore-net/fullbore/result"
)

// diagnoseOptions are the words of `fullbore diagnose`.
type diagnoseOptions struct {
	quick, deep       bool
	up, down          bool
	plan              plan.Plan // what all stages share
	maxBytes, maxRate int64
	most              int
	peerFlags
	dryRun             bool
	expect             []string
	facts, replay      string
	json, stream       bool
	plainLines, silent bool
	keep               keepOptions
	viaWord            string
	via                *via // nil = iperf3's protocol
	report             string
}

const diagnoseLong = `Find out what limits the path to HOST: measure, change one thing, measure again, and
say in one sentence what it is, with the evidence of both ends and what mends it.

The stages depend on what is found: round trip and loss of the empty path; one stream
in each direction; then more streams, other windows, half the rate, another congestion
control, UDP at half of TCP's rate, or a probe for policers, whatever decides between
what is still possible. HOST runs "fullbore serve", or any iperf3 server; then what one
end alone can know is said, and what could not be seen. "self" is this machine.

Certainty: proven (a change moved the number as it must), likely, possible.

Time: about 15 s with --quick, a minute by default, five minutes with --deep.
Traffic: as much as the path carries for about two thirds of that time (--dry-run says
how much that is at the speed of the link); bound it with --max-bytes or --max-rate.
UDP never goes above what TCP was seen to reach, except with --deep.

Exit codes: 0 a proven or likely verdict, 2 none, 1 --expect was missed.`

const diagnoseExample = `  fullbore diagnose self
  fullbore diagnose 192.0.2.2
  fullbore diagnose 192.0.2.2 --quick          same as: fullbore 192.0.2.2
  fullbore diagnose 192.0.2.2 --deep --cc cubic
  fullbore diagnose 192.0.2.2 --dry-run        what would be done, and how much traffic
  fullbore diagnose 192.0.2.2 --json > diagnosis.json
  fullbore diagnose --replay diagnosis.json    judge a stored one again
  fullbore diagnose 192.0.2.2 --report out.html   a page to read, print and send
  fullbore diagnose 192.0.2.2 --expect path-full,link-full   exit code 1 when it is not that`

func newDiagnoseCmd(e *env) *cobra.Command {
	o := &diagnoseOptions{}
	cmd := &cobra.Command{
		Use:     "diagnose HOST",
		Short:   "What limits this path? Measure, change, prove, and say what mends it",
		Long:    diagnoseLong,
		Example: diagnoseExample,
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if (len(args) == 0) == (o.replay == "") {
				return usagef("diagnose: name one host (or a stored diagnosis with --replay)")
			}
			if err := o.useVia(cmd.Flags(), args); err != nil {
				return err
			}
			return e.runDiagnose(cmd.Context(), o, strings.Join(args, ""))
		},
	}
	f := cmd.Flags()
	p := &o.plan
	o.peerFlags.addFlags(cmd, p)
	f.BoolVar(&o.quick, "quick", false, "15 seconds")
	f.BoolVar(&o.deep, "deep", false, "five minutes, longer stages")
	f.BoolVar(&o.up, "up", false, "only from here to HOST")
	f.BoolVar(&o.down, "down", false, "only from HOST to here")
	f.StringVarP(&p.Congestion, "cc", "C", "", "congestion control of all streams (default: the systems' own)")
	f.IntVar(&p.ClientPort, "cport", 0, "first local port of the streams of every stage, so that a balancer on the way treats them alike (default: the system's choice)")
	f.IntVar(&o.most, "most-streams", 64, "never more streams than this")
	f.Var(sizeFlag{&o.maxBytes}, "max-bytes", "stop when so many payload bytes have moved, all stages together")
	f.Var(rateFlag{&o.maxRate}, "max-rate", "never go above this rate")
	f.StringVar(&o.viaWord, "via", "", viaHelp)
	f.BoolVar(&o.dryRun, "dry-run", false, "say what would be done and how much traffic it makes; do nothing")
	f.StringArrayVar(&o.expect, "expect", nil, "codes of verdicts, separated by commas: exit code 1 unless the first verdict is one of them (repeatable: all must hold)")
	f.StringVar(&o.facts, "facts", "", "host facts from a recorded tree or a document of doctor --json, instead of this host's")
	f.StringVar(&o.replay, "replay", "", "judge a stored document of --json again; nothing is sent")
	f.StringVar(&o.report, "report", "", "write the whole diagnosis to FILE.html, too: one page with evidence, plots and reasoning")
	f.BoolVar(&o.json, "json", false, "print one JSON document: stages, runs, verdicts (schema: docs/schema/run-1.json, Report)")
	f.BoolVar(&o.stream, "json-stream", false, "print events as they happen, one JSON object a line")
	f.BoolVar(&o.plainLines, "plain", false, "plain lines even on a terminal")
	f.BoolVarP(&o.silent, "quiet", "q", false, "only the closing sentence")
	o.keep.addFlags(f)
	cmd.MarkFlagsMutuallyExclusive("quick", "deep")
	cmd.MarkFlagsMutuallyExclusive("up", "down")
	cmd.MarkFlagsMutuallyExclusive("json", "json-stream", "plain", "quiet")
	return cmd
}

func (o *diagnoseOptions) budget() diagnose.Budget {
	switch {
	case o.quick:
		return diagnose.Quick()
	case o.deep:
		return diagnose.Deep()
	}
	return diagnose.Default()
}

func (o *diagnoseOptions) planner(facts *result.Facts) diagnose.Planner {
	p := diagnose.Planner{Budget: o.budget(), Facts: facts, Congestion: o.plan.Congestion, Most: o.most, SendOnly: o.via != nil}
	switch {
	case o.up:
		p.Directions = []result.Direction{result.Up}
	case o.down:
		p.Directions = []result.Direction{result.Down}
	}
	return p
}

// complete puts the user's words into a stage's plan.
func (o *diagnoseOptions) complete(p plan.Plan) plan.Plan {
	b := &o.plan
	p.Host, p.Port, p.Own, p.BindHost, p.BindDev = b.Host, b.Port, b.Own, b.BindHost, b.BindDev
	if p.ClientPort == 0 {
		p.ClientPort = b.ClientPort
	}
	p.ConnectTimeout, p.Queue = b.ConnectTimeout, b.Queue
	o.peerFlags.apply(&p)
	if o.via != nil {
		if v, err := o.via.plan(p); err == nil { // else the runner's own check says what is wrong
			p = v
		}
	}
	return p
}

// notDiagnoseVia are the flags that a diagnosis by way of NTTTCP has nothing for.
var notDiagnoseVia = []string{"down", "cc", "queue", "connect-timeout"}

// useVia checks what goes with --via.
func (o *diagnoseOptions) useVia(flags *pflag.FlagSet, hosts []string) error {
	if o.viaWord == "" {
		return nil
	}
	if slices.Contains(hosts, "self") {
		return &UsageError{
			Msg:   "--via: \"self\" is a server for this program's own protocol",
			Hints: []string{"to try it here: fullbore ntttcp -r -H, and in another window: fullbore diagnose 127.0.0.1 --via " + o.viaWord},
		}
	}
	v, err := parseVia(o.viaWord)
	if err != nil {
		return err
	}
	if v.ports > 1 || v.dialect == plan.NTTTCPWindows {
		return &UsageError{
			Msg:   fmt.Sprintf("--via %s: a diagnosis changes the number of streams, and such a receiver takes one number of them only", o.viaWord),
			Hints: []string{"use --via ntttcp with a receiver of the Linux dialect (ntttcp -r -H, fullbore serve), or measure once: fullbore test HOST --via " + o.viaWord},
		}
	}
	for _, flag := range notDiagnoseVia {
		if flags.Changed(flag) {
			return &UsageError{
				Msg:   fmt.Sprintf("--via %s: NTTTCP has nothing for --%s", o.viaWord, flag),
				Hints: []string{"it sends from here to HOST; fullbore and iperf3 servers do more"},
			}
		}
	}
	if !flags.Changed("port") {
		o.plan.Port = plan.NTTTCPPort
	}
	o.up, o.via = true, v
	return nil
}

func (e *env) runDiagnose(ctx context.Context, o *diagnoseOptions, host string) error {
	for _, list := range o.expect {
		for code := range strings.SplitSeq(list, ",") {
			if !slices.Contains(diagnose.Codes(), strings.TrimSpace(code)) {
				return &UsageError{Msg: fmt.Sprintf("--expect: no verdict is called %q", code), Hints: []string{"there are: " + strings.Join(diagnose.Codes(), ", ")}}
			}
		}
	}
	if err := checkReport(o.report); err != nil {
		return err
	}
	if err := o.keep.check(); err != nil {
		return err
	}
	if o.replay != "" {
		return e.replayDiagnosis(o)
	}
	o.plan.Host = host
	facts, err := e.diagnoseFacts(ctx, o, host)
	if err != nil {
		return err
	}
	if o.dryRun {
		return e.dryDiagnosis(ctx, o, host)
	}
	ctx, stop := e.interruptible(ctx)
	defer stop()
	if host == "self" {
		srv, err := e.startSelf(ctx)
		if err != nil {
			return err
		}
		defer srv.stop()
		o.plan.Host, o.plan.Port, o.plan.Own = srv.host, srv.port, true
	}
	view := e.newDiagnoseView(o, host)
	view.head(ctx)
	var events result.Sink = view
	if o.stream {
		events = jsonstream.New(e.Out)
	}
	r := &runner.Runner{Version: Version, Now: e.Now, Log: e.logger()}
	started := result.Now(e.Now())
	outcome := r.Drive(ctx, runner.Drive{
		Method: o.planner(facts), Complete: o.complete, MaxBytes: o.maxBytes, MaxRate: o.maxRate,
		Begin: view.begin, Events: events, End: view.end,
	})
	rep := &result.Report{
		Schema: result.Schema, Tool: result.Tool{Name: "fullbore", Version: Version}, Started: started, Inputs: []string{host},
		Items: []result.Item{}, Notices: outcome.Notices, Err: outcome.Err,
	}
	if rep.Notices == nil {
		rep.Notices = []result.Notice{}
	}
	if outcome.Err == nil && o.maxBytes == 0 && host != "self" {
		outcome.History = append(outcome.History, e.measureSelf(ctx, r, view, events, outcome.History, facts)...)
	}
	diagnose.Fill(rep, outcome.History, facts)
	o.keep.mark(rep)
	o.keep.host = host
	err = e.closeDiagnosis(o, view, rep)
	if kerr := e.keep(ctx, &o.keep, rep); kerr != nil {
		return worst([]error{err, kerr})
	}
	return err
}

// selfTime is how long this machine alone is measured.
const selfTime = time.Second

// measureSelf measures this machine alone where the path's rate is so high that the tool may be
// what limits it (M-SELF). Without a server of its own there is nothing to compare with, and
// nothing is said.
func (e *env) measureSelf(ctx context.Context, r *runner.Runner, view *diagnoseView, events result.Sink, history []method.Done, facts *result.Facts) []method.Done {
	step, worth := diagnose.SelfStep(history, facts, selfTime)
	if !worth {
		return nil
	}
	srv, err := e.startSelf(ctx)
	if err != nil {
		return nil
	}
	defer srv.stop()
	return r.Drive(ctx, runner.Drive{
		Method: method.Once(step), Complete: func(p plan.Plan) plan.Plan {
			p.Host, p.Port = srv.host, srv.port
			return p
		},
		Begin: view.begin, Events: events, End: view.end,
	}).History
}

// closeDiagnosis prints the report and chooses the exit code.
func (e *env) closeDiagnosis(o *diagnoseOptions, view *diagnoseView, rep *result.Report) error {
	missed := o.check(rep)
	fatal := rep.Err
	if fatal == nil && len(rep.Verdicts) == 0 && len(rep.Stages) > 0 {
		fatal = rep.Stages[len(rep.Stages)-1].Err
		rep.Err = fatal
	}
	code := runExit(fatal)
	if fatal != nil && len(rep.Verdicts) > 0 && code != exitInterrupted {
		code = exitBroken // what was measured is there
	}
	if err := e.writeReport(o.report, rep); err != nil {
		return err
	}
	form := reportForm{json: o.json, stream: o.stream, silent: o.silent}
	if err := e.printReport(rep, form, true, func() { view.final(rep) }); err != nil {
		return err
	}
	switch {
	case fatal != nil:
		if len(rep.Verdicts) == 0 || o.json || o.stream {
			e.printError(fatal)
		}
		return &codeError{code: code}
	case missed:
		for _, i := range rep.Items {
			if i.Result != result.Pass {
				fmt.Fprintf(e.Err, "fullbore: %s\n", i.Reasons[0])
			}
		}
		return &codeError{code: exitMissed}
	case len(o.expect) == 0 && !diagnose.Conclusive(rep.Verdicts):
		return &codeError{code: exitInconclusive}
	}
	return nil
}

// check compares the first verdict with what was expected.
func (o *diagnoseOptions) check(rep *result.Report) (missed bool) {
	for _, list := range o.expect {
		item := result.Item{ID: "expect", Result: result.Fail}
		first := "nothing"
		if len(rep.Verdicts) > 0 {
			first = rep.Verdicts[0].Code
		}
		for code := range strings.SplitSeq(list, ",") {
			if strings.TrimSpace(code) == first {
				item.Result = result.Pass
			}
		}
		item.Reasons = []string{fmt.Sprintf("expected %s, the first verdict is %s", list, first)}
		if item.Result != result.Pass {
			missed = true
			item.Reasons[0] = "missed: " + item.Reasons[0]
		}
		rep.Items = append(rep.Items, item)
	}
	return missed
}

// diagnoseFacts are those of this host, or recorded ones.
func (e *env) diagnoseFacts(ctx context.Context, o *diagnoseOptions, host string) (*result.Facts, error) {
	var peer netip.Addr
	if host == "self" {
		peer = netip.AddrFrom4([4]byte{127, 0, 0, 1})
	} else if addrs, err := osnet.Resolve(ctx, host, o.family()); err == nil && len(addrs) > 0 {
		peer = addrs[0]
	}
	if o.facts == "" {
		return oshost.Settings(oshost.Take(ctx, peer)), nil
	}
	inv, err := doctorFacts(ctx, &doctorOptions{facts: o.facts}, peer)
	if err != nil {
		return nil, err
	}
	f := oshost.Settings(inv)
	f.Recorded = true
	return f, nil
}

// replayDiagnosis judges a stored document again.
func (e *env) replayDiagnosis(o *diagnoseOptions) error {
	in := e.In
	if o.replay != "-" {
		f, err := os.Open(o.replay)
		if err != nil {
			return usagef("--replay: %v", err)
		}
		defer f.Close() //nolint:errcheck // read only
		in = f
	}
	rep, err := result.ReadReport(in)
	if err != nil {
		return usagef("--replay %s: %v", o.replay, err)
	}
	if rep.Kind != "diagnose" || len(rep.Stages) == 0 {
		return usagef("--replay %s: it is no document of diagnose --json", o.replay)
	}
	facts := rep.Facts
	if o.facts != "" {
		if facts, err = e.diagnoseFacts(context.Background(), o, ""); err != nil {
			return err
		}
	}
	rep.Items = []result.Item{}
	diagnose.Fill(rep, diagnose.History(rep), facts)
	view := e.newDiagnoseView(o, strings.Join(rep.Inputs, " "))
	return e.closeDiagnosis(o, view, rep)
}

// dryDiagnosis says what would be done.
func (e *env) dryDiagnosis(ctx context.Context, o *diagnoseOptions, host string) error {
	b := o.budget()
	w := e.Out
	fmt.Fprintf(w, "%s would be diagnosed within %s (%s):\n\n", host, units.FormatDuration(b.Total), b.Name)
	for _, s := range o.planner(nil).Possible() {
		fmt.Fprintf(w, "  %-34s %6s   %s\n", s.Title, units.FormatDuration(s.Plan.Omit+s.Plan.Duration), s.Why)
	}
	fmt.Fprintf(w, "\nWhich of the stages after the single streams are made depends on what is found.\n%s\n", e.volumeText(ctx, o, host))
	return nil
}

// volumeText says how much a diagnosis moves.
func (e *env) volumeText(ctx context.Context, o *diagnoseOptions, host string) string {
	speed, what := 0.0, ""
	if o.maxRate > 0 {
		speed, what = float64(o.maxRate), "at --max-rate"
	} else if host != "self" {
		if s := pathTo(ctx, host, 0).speed; s > 0 {
			speed, what = float64(s), "at the speed of this host's link"
		}
	}
	text := "Traffic: as much as the path carries for about two thirds of the time; a path of 1 Gbit/s: up to "
	if speed > 0 {
		text = fmt.Sprintf("Traffic %s (%s): up to ", what, units.BitRate(speed))
	} else {
		speed = 1e9
	}
	v := diagnose.Volume(o.budget(), speed)
	if o.maxBytes > 0 {
		v = min(v, o.maxBytes)
	}
	return text + units.ByteSize(v).String() + " in all."
}

var _ method.Method = diagnose.Planner{}

// isHost reports that the only word of a command line is meant as a host, not as a command
// mistyped: an address, a name with a dot, "self", or a name that resolves.
func isHost(ctx context.Context, word string) bool {
	if word == "self" || strings.ContainsAny(word, ".:") {
		return true
	}
	addrs, err := osnet.Resolve(ctx, word, 0)
	return err == nil && len(addrs) > 0
}

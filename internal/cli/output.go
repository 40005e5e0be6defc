package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/spf13/pflag"

	"github.com/fullbore-net/fullbore/internal/conclude"
	"github.com/fullbore-net/fullbore/internal/pause"
	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/internal/render/csv"
	"github.com/fullbore-net/fullbore/internal/render/json"
	"github.com/fullbore-net/fullbore/internal/render/jsonstream"
	"github.com/fullbore-net/fullbore/internal/render/live"
	"github.com/fullbore-net/fullbore/internal/render/plain"
	"github.com/fullbore-net/fullbore/internal/runner"
	"github.com/fullbore-net/fullbore/result"
)

// outputOptions choose how a measuring command shows its runs.
type outputOptions struct {
	json, stream, csv, plain, quiet bool

	report string // file of the page; "" = none
}

func (o *outputOptions) addFlags(f *pflag.FlagSet) {
	f.BoolVar(&o.json, "json", false, "print one JSON document: a run, or a report where there are several (schema: docs/schema/run-1.json)")
	f.BoolVar(&o.stream, "json-stream", false, "print events as they happen, one JSON object a line")
	f.BoolVar(&o.csv, "csv", false, "print intervals and totals as CSV")
	f.BoolVar(&o.plain, "plain", false, "plain lines even on a terminal")
	f.BoolVarP(&o.quiet, "quiet", "q", false, "only the closing sentence")
	f.StringVar(&o.report, "report", "", "write the result to FILE.html, too: one page with plots")
}

// output is the place where runs are shown. One is made per command.
type output struct {
	e     *env
	o     outputOptions
	args  []string // the user's words
	plans int      // runs that were asked for
	runs  []*result.Run
	items []result.Item // what thresholds said
	many  bool          // hosts
	csv   *csv.Writer

	kind     string                     // of the report
	together func([]*result.Run) string // the sentence over several runs
	profile  string                     // "" = none
	stages   []result.Stage             // of a profile, as they are made

	keep  *keepOptions // nil = the command keeps nothing
	host  string       // as the user named it: whose runs are being made
	hosts []string     // of runs

	inRounds bool            // each run is one line, and the table of rounds follows
	rounds   []result.Rounds // what came of them
	seed     *int64          // of their order
	notices  []result.Notice // about the whole
	summary  string          // the sentence, where a command makes it itself; "" = the runs or the rounds say it
}

// newOutput checks what can be checked before anything is sent. keep may be nil.
func (e *env) newOutput(o outputOptions, keep *keepOptions, args []string, hosts, plans int) (*output, error) {
	n := 0
	for _, set := range []bool{o.json, o.stream, o.csv, o.plain, o.quiet} {
		if set {
			n++
		}
	}
	if n > 1 {
		return nil, usagef("give only one of --json, --json-stream, --csv, --plain, --quiet")
	}
	if err := checkReport(o.report); err != nil {
		return nil, err
	}
	if keep != nil {
		if err := keep.check(); err != nil {
			return nil, err
		}
	}
	return &output{e: e, o: o, keep: keep, args: args, plans: plans, many: hosts > 1, kind: "test", together: conclude.Together}, nil
}

// measure runs p and shows it. The error is that of runner.Run.
func (out *output) measure(ctx context.Context, r *runner.Runner, p plan.Plan) (*result.Run, error) {
	e := out.e
	var run *result.Run
	var err error
	if n := len(out.runs); n > 0 && out.hosts[n-1] == out.host && out.runs[n-1].Wire != nil && !out.runs[n-1].Wire.Extension {
		pause.For(ctx, plan.PlainPause) // an interrupt is the run's to tell
	}
	switch {
	case out.o.json:
		run, err = r.Run(ctx, p, nil) // Close prints the document
	case out.o.stream:
		s := jsonstream.New(e.Out)
		run, err = r.Run(ctx, p, s)
	case out.o.csv:
		if out.csv == nil {
			out.csv = csv.New(e.Out)
		}
		run, err = r.Run(ctx, p, out.csv)
		if run != nil {
			out.csv.Finish(run)
		}
	case out.o.quiet:
		run, err = r.Run(ctx, p, nil)
		if run != nil && tells(run) && !out.inRounds {
			fmt.Fprintln(e.Out, run.Summary)
		}
	case !out.o.plain && out.e.canLive():
		run, err = out.liveRun(ctx, r, p)
	case out.inRounds:
		run, err = r.Run(ctx, p, nil) // its line follows
	default:
		if len(out.runs) > 0 && out.profile == "" { // a stage has a heading
			fmt.Fprintln(e.Out)
		}
		lines := plain.New(e.Out, out.plainOptions())
		run, err = r.Run(ctx, p, lines)
		if run != nil && tells(run) {
			lines.End(run)
		}
	}
	if run != nil {
		if out.keep != nil {
			out.keep.markRun(run)
			run.Hops = out.keep.way(out.host, 0)
		}
		out.runs, out.hosts = append(out.runs, run), append(out.hosts, out.host)
		if err != nil && (!out.ends() || !tells(run) || out.inRounds) {
			e.printError(err)
		}
	}
	return run, err
}

// tells reports that a run got as far as to have something to tell.
func tells(run *result.Run) bool { return len(run.Streams) > 0 || len(run.Probes) > 0 }

// say tells what happens before a run, to people only.
func (out *output) say(text string) {
	if out.ends() {
		fmt.Fprintln(out.e.Out, text)
	}
}

// liveRun shows the run on the terminal while it goes on, then leaves the plain end
// block behind.
func (out *output) liveRun(ctx context.Context, r *runner.Runner, p plan.Plan) (*result.Run, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	view := live.New(live.Options{
		In: out.e.In, Out: out.e.Out,
		Interrupt: func() {
			cancel(&result.Error{Code: "interrupted", Text: "interrupted at the keyboard", Interrupted: true, Signal: "Interrupt(2)"})
		},
	})
	done := make(chan error, 1)
	go func() { done <- view.Run(ctx) }()
	run, err := r.Run(ctx, p, view)
	view.Close()
	if verr := <-done; verr != nil && err == nil {
		out.e.logger().Warn("live view", "err", verr)
	}
	if run != nil && len(run.Streams) > 0 && !out.inRounds {
		lines := plain.New(out.e.Out, out.plainOptions())
		lines.End(run)
	}
	return run, err
}

// ends reports whether the form of output tells a person how a run ended.
func (out *output) ends() bool { return !out.o.json && !out.o.stream && !out.o.csv && !out.o.quiet }

func (out *output) plainOptions() plain.Options {
	o := plain.Options{Color: out.e.Terminal && !out.e.NoColor}
	if out.e.Terminal && out.e.Size != nil {
		o.Width, _ = out.e.Size()
	}
	return o
}

// canLive reports whether the live view can be drawn on the terminal.
func (e *env) canLive() bool {
	if !e.Terminal || e.Dumb || e.Size == nil {
		return false
	}
	w, h := e.Size()
	return live.Usable(e.Getenv("TERM"), w, h)
}

// Close prints what several runs say together: a sentence over both directions, a
// table over several hosts. Then it keeps them.
func (out *output) Close(ctx context.Context) error {
	if err := out.print(); err != nil {
		return err
	}
	return out.store(ctx)
}

// store keeps what was measured: one document, or one for each of several hosts.
func (out *output) store(ctx context.Context) error {
	k := out.keep
	if k == nil || len(out.runs) == 0 {
		return nil
	}
	if out.many {
		var errs []error
		for i, run := range out.runs {
			if i > 0 && out.hosts[i-1] == out.hosts[i] {
				continue
			}
			one, each := *out, *k
			one.runs, one.stages, one.items, one.args = nil, nil, nil, []string{out.hosts[i]}
			one.rounds = roundsFrom(out.rounds, out.hosts[i], i)
			for j := i; j < len(out.runs) && out.hosts[j] == out.hosts[i]; j++ {
				one.runs = append(one.runs, out.runs[j])
			}
			each.id, each.host = "", out.hosts[i]
			one.keep = &each
			if len(one.runs) == 1 {
				errs = append(errs, out.e.keepRun(ctx, &each, run))
			} else {
				errs = append(errs, out.e.keep(ctx, &each, one.all()))
			}
		}
		return errors.Join(errs...)
	}
	k.host = out.host
	if out.single() {
		return out.e.keepRun(ctx, k, out.runs[0])
	}
	return out.e.keep(ctx, k, out.all())
}

// single reports that the document is the run itself, not a report.
func (out *output) single() bool { return out.plans == 1 && len(out.items) == 0 && !out.inRounds }

func (out *output) print() error {
	if out.o.report != "" && len(out.runs) > 0 {
		if err := out.e.writeReport(out.o.report, out.all()); err != nil {
			return err
		}
	}
	switch {
	case out.o.json:
		return out.document()
	case out.inRounds && len(out.rounds) > 0:
		return out.closeRounds()
	case !out.ends():
		return nil
	case out.many:
		return plain.Table(out.e.Out, judged(out.runs), out.plainOptions())
	}
	if text := out.sentence(); len(out.runs) > 1 && text != "" {
		_, err := fmt.Fprintf(out.e.Out, "\n%s\n", text)
		return err
	}
	return nil
}

// document prints the one document of --json: the run, where one was asked for, else a
// report over all of them.
func (out *output) document() error {
	if out.single() {
		if len(out.runs) == 0 {
			return nil // nothing was begun; the reason is on stderr
		}
		return json.Write(out.e.Out, out.runs[0])
	}
	return json.WriteReport(out.e.Out, out.all())
}

// all is the report over the runs so far.
func (out *output) all() *result.Report {
	rep := &result.Report{
		Schema: result.Schema, Kind: out.kind, Tool: result.Tool{Name: "fullbore", Version: Version}, Started: result.Now(out.e.Now()),
		Inputs: out.args, Runs: out.runs, Verdicts: []result.Verdict{}, Items: out.items, Notices: out.notices,
		Summary: out.sentence(), Profile: out.profile, Stages: out.stages,
		Rounds: out.rounds, Seed: out.seed,
	}
	if rep.Notices == nil {
		rep.Notices = []result.Notice{}
	}
	if rep.Runs == nil {
		rep.Runs = []*result.Run{}
	}
	if rep.Items == nil {
		rep.Items = []result.Item{}
	}
	if len(out.runs) > 0 {
		rep.Started = out.runs[0].Started
	}
	for _, run := range out.runs {
		if run.Err != nil {
			rep.Err = run.Err
		}
	}
	if out.keep != nil {
		out.keep.mark(rep)
	}
	return rep
}

// logger writes warnings of the inner works to stderr, without time stamps.
func (e *env) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(e.Err, &slog.HandlerOptions{
		Level: slog.LevelWarn,
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		},
	}))
}

package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fullbore-net/fullbore/internal/method"
	"github.com/fullbore-net/fullbore/internal/plan"
	jsonrender "github.com/fullbore-net/fullbore/internal/render/json"
	"github.com/fullbore-net/fullbore/internal/render/jsonstream"
	"github.com/fullbore-net/fullbore/internal/render/screen"
	"github.com/fullbore-net/fullbore/internal/runner"
	"github.com/fullbore-net/fullbore/internal/units"
	"github.com/fullbore-net/fullbore/result"
)

// A command that plays a method (sweep, udpmax, load, …) is an options struct that embeds
// methodOptions, a function that makes a methodJob of it, and runMethod, which does the rest:
// checks, --dry-run, "self", signals, the view while it goes on, budget, report, thresholds, exit
// code. Where it lacks something it is extended, not copied.

// methodOptions are the words of every such command.
type methodOptions struct {
	plan plan.Plan // what the words fix for every step: host, port, addresses, timeouts
	peerFlags
	maxBytes, maxRate                int64
	dryRun                           bool
	expect                           []string
	json, stream, plainLines, silent bool
	report                           string
	keep                             keepOptions
	rounds                           roundsFlag
}

func (o *methodOptions) addFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	o.peerFlags.addFlags(cmd, &o.plan)
	f.Var(sizeFlag{&o.maxBytes}, "max-bytes", "stop when so many payload bytes have moved, all steps together")
	f.Var(rateFlag{&o.maxRate}, "max-rate", "never go above this rate")
	f.BoolVar(&o.dryRun, "dry-run", false, "say what would be done and how much traffic it makes; do nothing")
	f.StringArrayVar(&o.expect, "expect", nil, "thresholds, e.g. '>= 5 Gbit/s': exit code 1 when missed (repeatable, or separated by commas)")
	f.StringVar(&o.report, "report", "", "write the result to FILE.html, too: one page with plots")
	f.BoolVar(&o.json, "json", false, "print one JSON document (schema: docs/schema/run-1.json, Report)")
	f.BoolVar(&o.stream, "json-stream", false, "print events as they happen, one JSON object a line")
	f.BoolVar(&o.plainLines, "plain", false, "plain lines even on a terminal")
	f.BoolVarP(&o.silent, "quiet", "q", false, "only the closing sentence")
	f.Var(&o.rounds, "rounds", roundsHelp)
	o.keep.addFlags(f)
	cmd.MarkFlagsMutuallyExclusive("json", "json-stream", "plain", "quiet")
}

// expectExample says what can be expected of a command whose first figure is no rate.
func (o *methodOptions) expectExample(cmd *cobra.Command, example string) {
	f := cmd.Flags().Lookup("expect")
	f.Usage = strings.Replace(f.Usage, "'>= 5 Gbit/s'", example, 1)
}

// complete puts what the words fix into a step's plan.
func (o *methodOptions) complete(p plan.Plan) plan.Plan {
	b := &o.plan
	p.Host, p.Port, p.Own, p.BindHost, p.BindDev = b.Host, b.Port, b.Own, b.BindHost, b.BindDev
	p.ConnectTimeout, p.Queue = b.ConnectTimeout, b.Queue
	o.peerFlags.apply(&p)
	return p
}

// methodJob is what one command has to say to runMethod.
type methodJob struct {
	kind   string // of the report: the command's name
	host   string // the user's word
	head   string // first line on the screen: "Sweeping the number of streams to HOST, about 2 min"
	volume string // how much traffic, a sentence: said before the start and by --dry-run
	// meeting is the first line of a method whose first step moves next to nothing: head and volume are said
	// when that showed that somebody is there, as met tells them then, from what was done so far. "" = head
	// and volume are said before anything.
	meeting string
	met     func(history []method.Done) (head, volume string)
	method  method.Method
	// possible are the steps for --dry-run, in order; which of them are made may depend on what is found.
	possible []method.Step
	// times is how often each of them is made; 0 = once.
	times int
	// complete puts the command's own options into a step's plan, after the common ones; nil = none.
	complete func(plan.Plan) plan.Plan
	// row prints a finished step; nil = the table of stages (title, rate, change, lost, delay).
	row func(v *stageView, d *method.Done)
	// fill makes the report of the history: curve, items, verdicts, notices, Summary. Runs and
	// Stages are there already. It is called with what was measured even if that broke off.
	fill func(rep *result.Report, history []method.Done)
	// final prints what follows the closing sentence: tables, plots, advice; nil = nothing.
	final func(v *stageView, rep *result.Report)
	// figures are what --expect can ask for, and figure which of them is meant without a word. A nil
	// pointer in the map that measured gives is a figure that is not known.
	figures  map[string]figureKind
	figure   string
	measured func(rep *result.Report) map[string]*float64
	// answered reports that the method came to an answer; nil = it did when it did not break off.
	// Without one the exit code is 2.
	answered func(rep *result.Report) bool
	// ownRounds: the method makes the rounds of --rounds itself; else it is played so often, fill
	// and measured are asked for each round (they must not keep anything), and the document's own
	// figures are those of the round in the middle.
	ownRounds bool
	// failed reports that the method itself judged and found something wanting: exit code 1; nil = it
	// does not judge.
	failed func(rep *result.Report) bool
	// earlier are steps that were made before this command began (a resumed one): they stand first in
	// the report.
	earlier []method.Done
	// ended hears of everything done so far after each step; nil = nobody does.
	ended func(history []method.Done)
	// excused says why a threshold that was missed says nothing of the path (an end was the limit, the search did not
	// come to its end), "" = nothing excuses it: it is then not known whether it would be met; nil = nothing ever does.
	excused func(rep *result.Report, t threshold) string
	// lasts says how long all of it takes, a sentence for --dry-run, where possible are only the first steps; "" = they
	// are all.
	lasts string
	// ownRate: the method itself keeps to --max-rate; as the engine's bound it would only pace what is below.
	ownRate bool
	// stops: the method ends with a step that broke off, whose error is then the report's.
	stops bool
	// extra makes steps after the method's own, against other hosts than its; nil = none. It is not
	// called when the method broke off.
	extra func(ctx context.Context, r *runner.Runner, view *stageView, events result.Sink, history []method.Done) []method.Done
	// write puts the report into further files; nil = none.
	write func(rep *result.Report) error
}

// runMethod plays a job. Its error carries the exit code.
func (e *env) runMethod(ctx context.Context, o *methodOptions, job methodJob) error {
	wishes, err := job.thresholds(o.expect)
	if err != nil {
		return err
	}
	if err := o.checkJob(&job); err != nil {
		return err
	}
	if o.dryRun {
		job.dry(e.Out)
		return nil
	}
	o.plan.Host = job.host
	ctx, stop := e.interruptible(ctx)
	defer stop()
	o.keep.look(ctx, e, job.host, o.family())
	if job.host == "self" {
		srv, err := e.startSelf(ctx)
		if err != nil {
			return err
		}
		defer srv.stop()
		o.plan.Host, o.plan.Port, o.plan.Own = srv.host, srv.port, true
	}
	view := e.newStageView(!o.json && !o.stream && !o.silent, o.plainLines)
	view.row = job.row
	met := view.open(job)
	var events result.Sink = view
	if o.stream {
		events = jsonstream.New(e.Out)
	}
	rep := &result.Report{
		Schema: result.Schema, Kind: job.kind, Tool: result.Tool{Name: "fullbore", Version: Version}, Started: result.Now(e.Now()),
		Inputs: e.words, Runs: []*result.Run{}, Verdicts: []result.Verdict{}, Items: []result.Item{}, Notices: []result.Notice{},
	}
	r := &runner.Runner{Version: Version, Now: e.Now, Log: e.logger()}
	made := slices.Clone(job.earlier)
	maxRate := o.maxRate
	if job.ownRate {
		maxRate = 0
	}
	outcome := r.Drive(ctx, runner.Drive{
		Method: job.method, Complete: o.completeFor(job),
		MaxBytes: o.maxBytes, MaxRate: maxRate,
		Begin: view.beginRound(o.rounds.asked() && !job.ownRounds), Events: events, End: func(d *method.Done) {
			view.end(d)
			made = append(made, *d)
			met(d, made)
			if job.ended != nil {
				job.ended(made)
			}
		},
	})
	rep.Err = outcome.Err
	if n := len(outcome.History); job.stops && rep.Err == nil && n > 0 {
		rep.Err = brokeOff(&outcome.History[n-1])
	}
	rep.Notices = append(rep.Notices, outcome.Notices...)
	history := append(slices.Clone(job.earlier), outcome.History...)
	if job.extra != nil && outcome.Err == nil {
		history = append(history, job.extra(ctx, r, view, events, history)...)
	}
	addStages(rep, history)
	job.fill(rep, history)
	if rep.Err != nil { // that is what is to be mended first
		rep.Next = nil
	}
	o.keep.mark(rep)
	err = e.closeMethod(o, job, view, rep, wishes)
	o.keep.host, o.keep.headline = job.host, job.headline(rep)
	if kerr := e.keep(ctx, &o.keep, rep); kerr != nil {
		return worst([]error{err, kerr})
	}
	return err
}

// checkJob finds what is wrong with the words before anything is sent, and has the job play rounds where some
// were asked for.
func (o *methodOptions) checkJob(job *methodJob) error {
	if err := checkReport(o.report); err != nil {
		return err
	}
	if err := o.keep.check(); err != nil {
		return err
	}
	if o.rounds.asked() && !job.ownRounds {
		return job.inRounds(&o.rounds)
	}
	return nil
}

// completeFor fills in what each step has by the words, and by the job.
func (o *methodOptions) completeFor(job methodJob) func(plan.Plan) plan.Plan {
	return func(p plan.Plan) plan.Plan {
		p = o.complete(p)
		if job.complete != nil {
			p = job.complete(p)
		}
		return p
	}
}

// open announces a job: what it does and moves or, where that hangs on the peer, only that the peer is to be
// met first; then met tells the rest once a step showed that it is there.
func (v *stageView) open(job methodJob) (met func(d *method.Done, made []method.Done)) {
	announced := job.meeting == "" || len(job.earlier) > 0
	if announced {
		v.announce(job.head, job.volume)
	} else {
		v.announce(job.meeting, "")
	}
	return func(d *method.Done, made []method.Done) {
		if announced || d.Run == nil || d.Err != nil {
			return
		}
		announced = true
		if v.shows {
			fmt.Fprintln(v.e.Out)
		}
		v.announce(job.met(made))
	}
}

// brokeOff is why a step did not come to its end; nil = it did.
func brokeOff(d *method.Done) *result.Error {
	if d.Err == nil && d.Run != nil {
		return d.Run.Err
	}
	return d.Err
}

// announce says what is about to be done, and how much traffic it makes; "" = nothing is said of that.
func (v *stageView) announce(head, volume string) {
	if !v.shows {
		return
	}
	fmt.Fprintf(v.e.Out, "%s\n", v.paint("1", screen.Clean(head)))
	if volume != "" {
		v.line("", volume)
	}
	fmt.Fprintln(v.e.Out)
	v.table.headed = false
}

// headline are the figures for the history: the one that --expect means without a word, then the
// others, as far as they are known; nil when the job has none.
func (job *methodJob) headline(rep *result.Report) (out []result.Value) {
	if job.measured == nil {
		return nil
	}
	out = []result.Value{} // none of it known is no reason to show the runs' own
	known := job.measured(rep)
	names := slices.Sorted(maps.Keys(known))
	slices.SortStableFunc(names, func(a, b string) int {
		switch job.figure {
		case a:
			return -1
		case b:
			return 1
		}
		return 0
	})
	for _, name := range names {
		if v := known[name]; v != nil {
			out = append(out, result.Value{Name: name, Value: *v, Unit: job.figures[name].unit})
		}
	}
	return out
}

// addStages puts what was done into the report.
func addStages(rep *result.Report, history []method.Done) {
	for i := range history {
		d := &history[i]
		st := result.Stage{Name: d.Step.Name, Title: d.Step.Title, Why: d.Step.Why, Pause: d.Step.Pause.Seconds(), Round: d.Step.Round, Err: d.Err}
		if d.Run != nil {
			at := len(rep.Runs)
			st.Run = &at
			rep.Runs = append(rep.Runs, d.Run)
		}
		rep.Stages = append(rep.Stages, st)
	}
}

// closeMethod prints the report and chooses the exit code.
func (e *env) closeMethod(o *methodOptions, job methodJob, view *stageView, rep *result.Report, wishes []threshold) error {
	// A method whose every step failed has the first one's reason.
	told := rep.Soak != nil && len(rep.Soak.Ways) > 0
	for _, run := range rep.Runs {
		told = told || tells(run)
	}
	if rep.Err == nil && !told && len(rep.Stages) > 0 {
		rep.Err = rep.Stages[0].Err
	}
	missed, unknown := job.judge(rep, wishes)
	if err := e.writeReport(o.report, rep); err != nil {
		return err
	}
	if job.write != nil {
		if err := job.write(rep); err != nil {
			return err
		}
	}
	form := reportForm{json: o.json, stream: o.stream, silent: o.silent}
	if err := e.printReport(rep, form, told, func() { view.closing(rep, told, job.final) }); err != nil {
		return err
	}
	if rep.Err != nil {
		e.printError(rep.Err)
		code := runExit(rep.Err)
		if told && code != exitInterrupted {
			code = exitBroken // what was measured is there
		}
		return &codeError{code: code}
	}
	for _, i := range rep.Items {
		if i.ID == "expect" && i.Result != result.Pass {
			fmt.Fprintf(e.Err, "fullbore: %s\n", i.Reasons[0])
		}
	}
	switch {
	case missed, job.failed != nil && job.failed(rep):
		return &codeError{code: exitMissed}
	case unknown, job.answered != nil && !job.answered(rep):
		return &codeError{code: exitInconclusive}
	}
	return nil
}

// reportForm is how a report is printed; the zero value: for people.
type reportForm struct{ json, stream, silent bool }

// printReport prints a report at a command's end: a document, the last line of a stream, only the closing
// sentence (where there is something to tell), or what people prints.
func (e *env) printReport(rep *result.Report, form reportForm, told bool, people func()) (err error) {
	switch {
	case form.json:
		return jsonrender.WriteReport(e.Out, rep)
	case form.stream:
		return json.NewEncoder(e.Out).Encode(map[string]any{"kind": "report", "report": rep})
	case form.silent && told:
		_, err = fmt.Fprintln(e.Out, rep.Summary)
	case !form.silent:
		people()
	}
	return err
}

// closing is the last screen: the sentence first, then the command's own part, then notices.
func (v *stageView) closing(rep *result.Report, told bool, final func(*stageView, *result.Report)) {
	w := v.e.Out
	fmt.Fprintln(w)
	if !told {
		fmt.Fprintln(w, v.paint("1", "Nothing was measured.")) // why follows on stderr
		return
	}
	for _, l := range screen.Wrap(screen.Clean(rep.Summary), v.width) {
		fmt.Fprintln(w, v.paint("1", l))
	}
	if final != nil {
		fmt.Fprintln(w)
		final(v, rep)
	}
	if notices := noticesOf(rep); len(notices) > 0 {
		fmt.Fprintln(w)
		for _, n := range notices {
			v.line("note: ", n)
		}
	}
	v.next(rep.Next)
}

// noticesOf are the report's notices and those of its runs, warnings only, the first of each kind.
func noticesOf(rep *result.Report) (out []string) {
	for _, n := range rep.Notices {
		out = append(out, n.Text)
	}
	type kind struct {
		code string
		end  result.End
	}
	seen := map[kind]bool{} // many runs of one kind say the same with other figures
	for _, run := range rep.Runs {
		for _, n := range run.Notices {
			if k := (kind{n.Code, n.End}); n.Level == result.Warn && !seen[k] {
				seen[k] = true
				out = append(out, n.Text)
			}
		}
	}
	return out
}

// thresholds reads the words of --expect.
func (job *methodJob) thresholds(words []string) (out []threshold, err error) {
	if len(words) > 0 && len(job.figures) == 0 {
		return nil, usagef("--expect: %s judges by itself", job.kind)
	}
	for _, w := range words {
		for term := range strings.SplitSeq(w, ",") {
			hints := []string{"figures of " + job.kind + ": " + strings.Join(slices.Sorted(maps.Keys(job.figures)), ", ") + "; without a word " + job.figure + " is meant"}
			t, err := parseTerm(strings.TrimSpace(term), job.figures, job.figure, hints)
			if err != nil {
				return nil, err
			}
			out = append(out, t)
		}
	}
	return out, nil
}

// judge compares the report's figures with the thresholds; each becomes an item.
func (job *methodJob) judge(rep *result.Report, wishes []threshold) (missed, unknown bool) {
	if len(wishes) == 0 {
		return false, false
	}
	figures := job.measured(rep)
	for _, t := range wishes {
		item := result.Item{ID: "expect", Result: result.Pass}
		why := ""
		if job.excused != nil {
			why = job.excused(rep, t)
		}
		switch v := figures[t.figure]; {
		case v == nil:
			item.Result, unknown = result.Inconclusive, true
			item.Reasons = []string{fmt.Sprintf("expected %s: %s is not known", t.text, t.figure)}
		case t.met(*v):
			item.Reasons = []string{fmt.Sprintf("expected %s, %s is %s", t.text, t.figure, job.figures[t.figure].print(*v))}
		case why != "":
			item.Result, unknown = result.Inconclusive, true
			item.Reasons = []string{fmt.Sprintf("expected %s, %s is %s; not missed for sure: %s", t.text, t.figure, job.figures[t.figure].print(*v), why)}
		default:
			item.Result, missed = result.Fail, true
			item.Reasons = []string{fmt.Sprintf("missed: expected %s, %s is %s", t.text, t.figure, job.figures[t.figure].print(*v))}
		}
		rep.Items = append(rep.Items, item)
	}
	return missed, unknown
}

// dry says what would be done.
func (job *methodJob) dry(w io.Writer) {
	fmt.Fprintf(w, "%s\n\n", job.head)
	var total time.Duration
	for _, s := range job.possible {
		total += s.Length()
		fmt.Fprintf(w, "  %-34s %6s   %s\n", s.Title, units.FormatDuration(s.Plan.Omit+s.Plan.Duration), s.Why)
	}
	if job.times > 1 {
		total *= time.Duration(job.times)
		fmt.Fprintf(w, "\nEach of them %d times.\n", job.times)
	}
	switch {
	case job.lasts != "":
		fmt.Fprintf(w, "\n%s\n", job.lasts)
	case len(job.possible) > 0:
		fmt.Fprintf(w, "\nAt most about %s in all.\n", units.FormatDuration(total.Round(time.Second)))
	}
	fmt.Fprintf(w, "%s\n", job.volume)
}

package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fullbore-net/fullbore/internal/method"
	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/internal/render/screen"
	"github.com/fullbore-net/fullbore/internal/units"
	"github.com/fullbore-net/fullbore/result"
)

// compareOptions are the words of `fullbore compare`.
type compareOptions struct {
	methodOptions
	threshold string
	share     float64
	ab        []string
	time      time.Duration
	pause     time.Duration
	seed      int64
}

const compareLong = `Hold side B against side A: is it faster, slower, the same, or can that not be told?

A side is a run of the history (its ID, the beginning of one, "last", "last~1"), a file
(fullbore's documents, iperf3's JSON, NTTTCP's XML or JSON), a folder of such files, or
several of them separated by commas. The runs of a document of --rounds count as the
rounds that they are. With --ab two ways of testing HOST are measured in turn instead,
in random order inside each round, five rounds by default: what drifts meanwhile meets
both alike.

Each figure that both sides have (goodput of each direction, loss, jitter, round trip,
retransmits, CPU time per gigabyte) gets the shift (median of all differences) with its
interval and an exact test; the verdict needs both p < 0.05, corrected for the number of
figures, and a shift above the threshold. Fewer than four rounds a side cannot reach
5 %: then the threshold decides alone, and that is said. The directions of goodput, which
decide, are corrected for each other only, what it cost (all other figures) apart.
Where documents tell only what was sent (a sender of NTTTCP), that is compared, and
said. Settings, hosts, drivers and hops that differ are named; sides whose settings
differ do not compare like with like.

Exit codes: 0 same or faster, 1 slower, 2 undecided.

Traffic: none, unless --ab: then both tests' rounds; 10 rounds of 10 s on a path of
1 Gbit/s are about 12.5 GB. Bound it with -t, --max-bytes or --max-rate.`

const compareExample = `  fullbore compare before.json after.json
  fullbore compare last~1 last
  fullbore compare may1.json,may2.json,may3.json june/ --threshold 5%
  fullbore compare iperf3-old.json iperf3-new.json --json
  fullbore compare --ab '--cc cubic' '--cc bbr' 192.0.2.2
  fullbore compare --ab '-P 1' '-P 4' self -t 1 --rounds 4`

func newCompareCmd(e *env) *cobra.Command {
	o := &compareOptions{}
	cmd := &cobra.Command{
		Use:     "compare A B | compare --ab 'ARGS' 'ARGS' HOST",
		Short:   "Is B faster than A? Stored runs, files, or two ways of testing, in turn",
		Long:    compareLong,
		Example: compareExample,
		Args:    cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			if o.share, err = parseShare(o.threshold); err != nil || o.share <= 0 {
				return usagef("--threshold %q: a share such as 3%%", o.threshold)
			}
			if len(o.ab) > 0 {
				if len(args) != 1 || len(o.ab) != 2 {
					return &UsageError{Msg: "compare --ab: name two lists of flags and a host", Hints: []string{"for example: fullbore compare --ab '--cc cubic' '--cc bbr' HOST"}}
				}
				return e.runAB(cmd.Context(), o, args[0], cmd.Flags())
			}
			if len(args) != 2 {
				return &UsageError{Msg: "compare: name two sides", Hints: []string{"several runs of a side are separated by commas: compare a1.json,a2.json b1.json,b2.json"}}
			}
			return e.runCompare(cmd.Context(), o, args)
		},
	}
	o.methodOptions.addFlags(cmd)
	f := cmd.Flags()
	f.StringArrayVar(&o.ab, "ab", nil, "measure: two lists of flags of fullbore test, and a host")
	f.StringVar(&o.threshold, "threshold", "3%", "share by which a figure must differ to count")
	f.VarP(durationFlag{&o.time}, "time", "t", "--ab: length of each direction, unless a list has -t or -n (default 10s)")
	f.Var(durationFlag{&o.pause}, "pause", "--ab: silence between runs (default 2s)")
	f.Int64Var(&o.seed, "seed", 0, "--ab: number from which the random order follows (default: drawn, and told)")
	return cmd
}

// side loads one side: words separated by commas.
func (e *env) side(ctx context.Context, word string) (result.ComparedSide, []*result.Run, error) {
	s := result.ComparedSide{Name: word, Inputs: []string{}}
	var runs []*result.Run
	for part := range strings.SplitSeq(word, ",") {
		part = strings.TrimSpace(part)
		files := []string{part}
		if st, err := os.Stat(part); err == nil && st.IsDir() {
			if files, err = documentsIn(part); err != nil {
				return s, nil, err
			}
		}
		for _, f := range files {
			l, err := e.load(ctx, f)
			if err != nil {
				return s, nil, err
			}
			from := f
			if l.Record.ID != "" && f == part && !strings.ContainsAny(f, `/\.`) {
				from = l.Record.ID
			}
			s.Inputs = append(s.Inputs, from)
			runs = append(runs, countedRuns(l)...)
		}
	}
	runs = slices.DeleteFunc(runs, func(r *result.Run) bool { return r.Err != nil })
	if len(runs) == 0 {
		return s, nil, usagef("%s: no run in it came to its end", word)
	}
	sideTimes(&s, runs)
	return s, runs, nil
}

// sideTimes notes when a side was measured.
func sideTimes(s *result.ComparedSide, runs []*result.Run) {
	first, last := runs[0].Started, runs[0].Started
	for _, r := range runs {
		if r.Started.Before(first) {
			first = r.Started
		}
		if r.Started.After(last) {
			last = r.Started
		}
	}
	if !first.IsZero() {
		s.From, s.To = first.UTC().Format(time.RFC3339), last.UTC().Format(time.RFC3339)
	}
}

// countedRuns are those that a document rests on: of one with rounds, the runs of the rounds; of a
// test by a profile, its last stage.
func countedRuns(l *loaded) []*result.Run {
	if l.Report == nil || len(l.Report.Rounds) == 0 {
		return judged(l.Runs)
	}
	var out []*result.Run
	for _, r := range l.Report.Rounds {
		for _, at := range r.Runs {
			if at >= 0 && at < len(l.Report.Runs) && !slices.Contains(out, l.Report.Runs[at]) {
				out = append(out, l.Report.Runs[at])
			}
		}
	}
	if len(out) == 0 {
		return judged(l.Runs)
	}
	return out
}

// documentsIn are the files of a folder that may hold runs.
func documentsIn(dir string) ([]string, error) {
	list, err := os.ReadDir(dir)
	if err != nil {
		return nil, usagef("%v", err)
	}
	var out []string
	for _, f := range list {
		switch strings.ToLower(filepath.Ext(f.Name())) {
		case ".json", ".xml":
			if f.Type().IsRegular() {
				out = append(out, filepath.Join(dir, f.Name()))
			}
		}
	}
	if len(out) == 0 {
		return nil, usagef("%s: no .json or .xml file is in it", dir)
	}
	return out, nil
}

// runCompare compares what was measured before.
func (e *env) runCompare(ctx context.Context, o *compareOptions, args []string) error {
	if len(o.expect) > 0 || o.rounds.asked() || o.dryRun {
		return usagef("compare A B: nothing is measured: --expect, --rounds and --dry-run go with --ab")
	}
	if err := checkReport(o.report); err != nil {
		return err
	}
	a, runsA, err := e.side(ctx, args[0])
	if err != nil {
		return err
	}
	b, runsB, err := e.side(ctx, args[1])
	if err != nil {
		return err
	}
	rep := &result.Report{
		Schema: result.Schema, Kind: "compare", Tool: result.Tool{Name: "fullbore", Version: Version}, Started: result.Now(e.Now()),
		Inputs: args, Runs: append(slices.Clone(runsA), runsB...), Verdicts: []result.Verdict{}, Items: []result.Item{}, Notices: []result.Notice{},
	}
	o.fill(rep, a, b, runsA, runsB)
	if err := e.writeReport(o.report, rep); err != nil {
		return err
	}
	form := reportForm{json: o.json, stream: o.stream, silent: o.silent}
	err = e.printReport(rep, form, true, func() {
		v := e.newStageView(true, true)
		for _, l := range screen.Wrap(screen.Clean(rep.Summary), v.width) {
			fmt.Fprintln(e.Out, v.paint("1", l))
		}
		fmt.Fprintln(e.Out)
		compareFinal(v, rep)
	})
	if err != nil {
		return err
	}
	return compareExit(rep)
}

// compareExit is the error of a verdict.
func compareExit(rep *result.Report) error {
	if rep.Comparison == nil {
		return &codeError{code: exitInconclusive}
	}
	switch rep.Comparison.Verdict {
	case method.Slower:
		return &codeError{code: exitMissed}
	case method.Undecided:
		return &codeError{code: exitInconclusive}
	}
	return nil
}

// fill makes the comparison of both sides.
func (o *compareOptions) fill(rep *result.Report, a, b result.ComparedSide, runsA, runsB []*result.Run) {
	c := method.CompareRuns(runsA, runsB, o.share)
	c.A, c.B = a, b
	c.A.Runs, c.B.Runs = len(runsA), len(runsB)
	rep.Comparison = &c
	rep.Summary = compareText(&c)
	for _, m := range c.Metrics {
		rep.Items = append(rep.Items, comparedItem(&m))
	}
	if len(o.ab) == 0 { // of two ways of testing the settings differ by intent
		var names []string
		for _, d := range c.Differences {
			if d.Setting {
				names = append(names, d.What)
			}
		}
		if len(names) > 0 {
			rep.Notices = append(rep.Notices, result.Notice{
				Code: "not-alike", End: result.Client, Level: result.Warn,
				Text: "the sides were not measured alike (" + strings.Join(names, ", ") + "): what differs between the figures may be that",
			})
		}
	}
	ways := 0
	for _, m := range c.Metrics {
		if method.Decides(m.Metric) {
			ways++
		}
	}
	if ways > 1 && slices.ContainsFunc(c.Metrics[:ways], func(m result.Compared) bool {
		return !m.TooFew && m.Verdict == method.Undecided && !method.Reachable(len(m.A.Values), len(m.B.Values), ways)
	}) {
		rep.Notices = append(rep.Notices, result.Notice{
			Code: "too-few-rounds", End: result.Client, Level: result.Warn,
			Text: "too few rounds for a test of both directions: four a side can show a change of one direction alone, five of both; --rounds 5 makes enough",
		})
	}
	if slices.ContainsFunc(c.Metrics, func(m result.Compared) bool { return m.TooFew }) {
		rep.Notices = append(rep.Notices, result.Notice{
			Code: "too-few-rounds", End: result.Client, Level: result.Warn,
			Text: "too few rounds for a test: fewer than four a side cannot reach p < 0.05, so the threshold decides alone; --rounds 5 makes enough",
		})
	}
}

// comparedItem is a figure as something that was checked, for pages and pipelines.
func comparedItem(m *result.Compared) result.Item {
	item := result.Item{ID: strings.TrimSuffix(m.Metric+"-"+m.Direction, "-"), Result: result.Pass}
	switch m.Verdict {
	case method.Slower, method.Worse:
		item.Result = result.Fail
	case method.Undecided:
		item.Result = result.Inconclusive
	}
	text := fmt.Sprintf("%s: A %s, B %s", m.Verdict, roundsText(&m.A), roundsText(&m.B))
	if m.Low != nil {
		text += fmt.Sprintf("; shift %s, %.1f %% interval %s … %s", unitText(m.Unit, m.Shift), 100**m.Level, unitText(m.Unit, *m.Low), unitText(m.Unit, *m.High))
	}
	if !m.TooFew {
		text += "; p " + probability(m.Holm)
	}
	item.Reasons = []string{text}
	return item
}

// compareText is the sentence: the verdict of each direction's goodput, and what else changed.
func compareText(c *result.Comparison) string {
	var parts, others []string
	for _, m := range c.Metrics {
		if method.Decides(m.Metric) {
			parts = append(parts, goodputText(c, &m))
			continue
		}
		if m.Verdict == method.Worse || m.Verdict == method.Better {
			others = append(others, fmt.Sprintf("%s %s is %s (%s → %s)", m.Metric, m.Direction, m.Verdict, unitText(m.Unit, *m.A.Median), unitText(m.Unit, *m.B.Median)))
		}
	}
	if len(parts) == 0 {
		return "The sides have no figure of goodput in common, nor of what was sent: nothing can be said."
	}
	text := "B is " + strings.Join(parts, "; ") + "."
	if len(others) > 0 {
		text += " " + strings.ToUpper(others[0][:1]) + strings.Join(others, ", ")[1:] + "."
	}
	return text
}

func goodputText(c *result.Comparison, m *result.Compared) string {
	change := ""
	if m.Share != nil {
		change = fmt.Sprintf("%+.1f %%", 100**m.Share)
	}
	sure := fmt.Sprintf("p %s", probability(m.Holm))
	if m.TooFew {
		sure = "too few rounds for a test"
	}
	text := fmt.Sprintf("%s %s: %s against %s (%s, %s)", m.Verdict, m.Direction, unitText(m.Unit, *m.B.Median), unitText(m.Unit, *m.A.Median), change, sure)
	if m.Metric != "goodput" {
		text += ", by what was sent: what arrived is not told"
	}
	if m.Verdict == method.Same && m.Low != nil && m.A.Median != nil && *m.A.Median > 0 {
		if far := max(-*m.Low, *m.High) / *m.A.Median; far > c.Threshold {
			text += fmt.Sprintf(", though a change of %.1f %% cannot be ruled out", 100*far)
		}
	}
	return text
}

// probability prints a p that people can compare with 0.05.
func probability(p float64) string {
	switch {
	case p < 0.001:
		return "< 0.001"
	case p >= 0.9995:
		return "1"
	}
	return strings.TrimRight(fmt.Sprintf("%.3f", p), "0")
}

// compareFinal is the table of figures and what is not alike.
func compareFinal(v *stageView, rep *result.Report) {
	w := v.e.Out
	c := rep.Comparison
	if c == nil {
		return
	}
	v.line("A: ", fmt.Sprintf("%s, %s", c.A.Name, counted(c.A.Runs, "run")))
	v.line("B: ", fmt.Sprintf("%s, %s", c.B.Name, counted(c.B.Runs, "run")))
	fmt.Fprintln(w)
	row := func(name, a, b, shift, interval, p, verdict string) string {
		return strings.TrimRight("  "+screen.Left(name, 16)+screen.Right(a, 13)+screen.Right(b, 13)+screen.Right(shift, 9)+"  "+screen.Left(interval, 19)+screen.Right(p, 8)+"  "+verdict, " ")
	}
	fmt.Fprintln(w, v.paint("2", row("figure", "A", "B", "shift", "interval", "p", "B is")))
	for _, m := range c.Metrics {
		shift, interval, p := unitText(m.Unit, m.Shift), "–", probability(m.Holm)
		if m.Share != nil {
			shift = fmt.Sprintf("%+.1f %%", 100**m.Share)
			if m.Low != nil {
				interval = fmt.Sprintf("%+.1f … %+.1f %%", 100**m.Low / *m.A.Median, 100**m.High / *m.A.Median)
			}
		}
		if m.TooFew {
			p = "–"
		}
		verdict := m.Verdict
		if v.color {
			if code := map[string]string{method.Slower: "31", method.Worse: "31", method.Faster: "32", method.Better: "32", method.Undecided: "33"}[verdict]; code != "" {
				verdict = v.paint(code, verdict)
			}
		}
		fmt.Fprintln(w, row(strings.TrimSpace(m.Metric+" "+m.Direction), unitText(m.Unit, *m.A.Median), unitText(m.Unit, *m.B.Median), shift, interval, p, verdict))
	}
	fmt.Fprintf(w, "  medians; a shift counts from %.3g %% on; p corrected for the number of figures, goodput apart\n", 100*c.Threshold)
	if len(c.Differences) > 0 {
		fmt.Fprintf(w, "\n%s\n", v.paint("1", "what differs besides"))
		for _, d := range c.Differences {
			name := d.What
			if d.End != "" {
				name = string(d.End) + " " + name
			}
			v.line("  · ", fmt.Sprintf("%s: %s → %s", name, d.A, d.B))
		}
	}
	for _, n := range rep.Notices {
		v.line("note: ", n.Text)
	}
}

// abWords makes two flags of the two lists that follow --ab: as words of their own they would be
// taken for flags of compare.
func abWords(args []string) []string {
	at := slices.Index(args, "--ab")
	if len(args) == 0 || args[0] != "compare" || at < 0 || at+2 >= len(args) {
		return args
	}
	out := append(slices.Clone(args[:at]), "--ab="+args[at+1], "--ab="+args[at+2])
	return append(out, args[at+3:]...)
}

// abArgs reads one list of flags of fullbore test into the plans of its directions.
func (e *env) abArgs(words, host string, o *compareOptions) ([]plan.Plan, error) {
	t := &testOptions{}
	cmd := &cobra.Command{Use: "test", SilenceErrors: true, SilenceUsage: true}
	t.addFlags(cmd)
	if err := cmd.ParseFlags(strings.Fields(words)); err != nil {
		return nil, &UsageError{Msg: fmt.Sprintf("--ab %q: %v", words, err), Hints: []string{"flags of fullbore test: see fullbore test --help"}}
	}
	if left := cmd.Flags().Args(); len(left) > 0 {
		return nil, usagef("--ab %q: %q is no flag", words, left[0])
	}
	var odd []string
	cmd.Flags().Visit(func(f *pflag.Flag) {
		switch f.Name {
		case "rounds", "seed", "profile", "expect", "json", "json-stream", "csv", "plain", "quiet", "report", "pause", "no-store", "label", "note", "tag", "out", "via", "grade":
			odd = append(odd, "--"+f.Name)
		}
	})
	if len(odd) > 0 {
		return nil, usagef("--ab %q: %s is for the whole comparison, not for one side", words, strings.Join(odd, ", "))
	}
	if t.udp.udp && t.udp.spec().auto {
		return nil, usagef("--ab %q: give a rate; -b auto would find one for each side", words)
	}
	if !cmd.Flags().Changed("time") && t.plan.Bytes == 0 {
		t.plan.Duration = o.time
	}
	if !cmd.Flags().Changed("up") && !cmd.Flags().Changed("down") && !cmd.Flags().Changed("both") {
		t.up = true // one direction, so that a round is two runs
	}
	if err := t.udp.check(host, t.tcpOnly(cmd.Flags().Changed)); err != nil {
		return nil, err
	}
	plans, err := t.plans(host)
	if err != nil {
		return nil, err
	}
	for i := range plans {
		if err := t.udp.resolve(context.Background(), &plans[i], nil); err != nil {
			return nil, err
		}
	}
	return plans, nil
}

// The sides of compare --ab, as the names of their steps.
var abSides = []string{"a", "b"}

// abSteps are the steps of both sides: one direction each, the same.
func (e *env) abSteps(o *compareOptions, host string) (steps []method.Step, err error) {
	target := host
	if host == "self" {
		target = "127.0.0.1"
	}
	for i, words := range o.ab {
		plans, err := e.abArgs(words, target, o)
		if err != nil {
			return nil, err
		}
		if len(plans) != 1 {
			return nil, usagef("--ab %q: one direction for each side: --up, --down or --both", words)
		}
		steps = append(steps, method.Step{Name: abSides[i], Title: strings.ToUpper(abSides[i]) + ": " + words, Why: "against the other", Plan: plans[0]})
	}
	if steps[0].Plan.Direction != steps[1].Plan.Direction {
		return nil, usagef("--ab: both sides must have the same direction")
	}
	return steps, nil
}

// fillAB makes the comparison of what was measured in turn.
func (o *compareOptions) fillAB(rep *result.Report, history []method.Done) {
	var runs [2][]*result.Run
	for _, d := range history {
		if d.Run == nil || d.Err != nil {
			continue
		}
		i := slices.Index(abSides, d.Step.Name)
		runs[i] = append(runs[i], d.Run)
	}
	var cs [2]result.ComparedSide
	for i := range cs {
		cs[i] = result.ComparedSide{Name: o.ab[i], Inputs: []string{}}
		if len(runs[i]) == 0 {
			return
		}
		sideTimes(&cs[i], runs[i])
	}
	o.fill(rep, cs[0], cs[1], runs[0], runs[1])
}

// runAB measures two ways of testing in turn.
func (e *env) runAB(ctx context.Context, o *compareOptions, host string, f *pflag.FlagSet) error {
	if !f.Changed("rounds") {
		o.rounds = roundsFlag{n: 5}
	}
	if !f.Changed("pause") {
		o.pause = method.RoundsPause
	}
	seed := drawSeed(o.seed)
	steps, err := e.abSteps(o, host)
	if err != nil {
		return err
	}
	m := method.Repeat{Steps: steps, Rounds: o.rounds.n, Auto: o.rounds.auto, Seed: uint64(seed), Pause: o.pause} //nolint:gosec // any bits will do
	var long time.Duration
	for _, s := range m.Possible() {
		s.Plan, s.Pause = s.Plan.Filled(), o.pause
		long += s.Length()
	}
	var kept *result.Report
	job := methodJob{
		kind: "compare", host: host, method: m, possible: m.Possible(), ownRounds: true, row: sweepRow,
		head:   fmt.Sprintf("Comparing A (%s) with B (%s) %s, %s in random order (seed %d), about %s", o.ab[0], o.ab[1], hostWords(host), o.rounds.words(), seed, units.FormatDuration(long.Round(time.Second))),
		volume: "Traffic: as much as the path carries for that time; a path of 1 Gbit/s: about " + units.ByteSize(1e9/8*long.Seconds()).String() + ". Bound it with -t, --max-bytes or --max-rate.",
		fill: func(rep *result.Report, history []method.Done) {
			rep.Seed = &seed
			o.fillAB(rep, history)
			kept = rep
		},
		final: func(v *stageView, rep *result.Report) {
			notices := rep.Notices // closing prints them
			rep.Notices = nil
			compareFinal(v, rep)
			rep.Notices = notices
		},
		figure:  "rate",
		figures: map[string]figureKind{"rate": rateKind},
		measured: func(rep *result.Report) map[string]*float64 {
			if rep.Comparison == nil || len(rep.Comparison.Metrics) == 0 {
				return nil
			}
			return map[string]*float64{"rate": rep.Comparison.Metrics[0].B.Median}
		},
	}
	if err := e.runMethod(ctx, &o.methodOptions, job); err != nil || kept == nil {
		return err
	}
	return compareExit(kept)
}

package cli

import (
	"cmp"
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
	"github.com/fullbore-net/fullbore/internal/stats"
	"github.com/fullbore-net/fullbore/internal/units"
	"github.com/fullbore-net/fullbore/result"
)

// udpSteps are the words of commands whose steps are UDP tests.
type udpSteps struct {
	up, down, both bool
	size           int
	streams, tos   int
	pacing         string
	offload        string
	frag           bool
}

func (o *udpSteps) addFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.BoolVar(&o.up, "up", false, "only from here to HOST")
	f.BoolVar(&o.down, "down", false, "only from HOST to here")
	f.BoolVar(&o.both, "both", false, "both directions at the same time")
	f.VarP(sizeFlagInt{&o.size}, "length", "l", "payload of a datagram (default: what fills a packet of the path)")
	f.IntVarP(&o.streams, "streams", "P", 1, "streams per direction that share the rate")
	f.IntVarP(&o.tos, "tos", "S", 0, "TOS byte (DSCP × 4)")
	f.StringVar(&o.pacing, "pacing", "", "how closely due times are kept: frugal or precise (default: bursts of 50 µs)")
	f.StringVar(&o.offload, "offload", "", "segmentation offload, on or off (default: where it can be had; off makes the count of drops exact)")
	f.BoolVar(&o.frag, "allow-fragments", false, "let datagrams be larger than the path's packet")
	cmd.MarkFlagsMutuallyExclusive("up", "down", "both")
}

// directions are those that were asked for, in order.
func (o *udpSteps) directions() []plan.Direction {
	switch {
	case o.up:
		return []plan.Direction{plan.Up}
	case o.down:
		return []plan.Direction{plan.Down}
	case o.both:
		return []plan.Direction{plan.Both}
	}
	return []plan.Direction{plan.Up, plan.Down}
}

// plan is what the steps have in common.
func (o *udpSteps) plan() plan.Plan {
	return plan.Plan{
		Transport: plan.UDP, Streams: max(o.streams, 1), RateSet: true, BlockSize: o.size, TOS: o.tos, Pacing: plan.Pacing(o.pacing),
		Offload: plan.Offload(o.offload), AllowFragments: o.frag, DontFragment: !o.frag,
	}
}

// check finds faults before anything is sent.
func (o *udpSteps) check(host string) error {
	p := o.plan()
	p.Host, p.Bitrate, p.Duration = host, 1, time.Second
	if err := p.Validate(); err != nil {
		return &UsageError{Msg: strings.ReplaceAll(err.Error(), "\n", "; ")}
	}
	return nil
}

// most is the greatest rate of payload that may be offered to host, and where it is from; 0 =
// nothing is known of the link and nothing was said.
func (o *udpSteps) most(ctx context.Context, m *methodOptions, host string) (bps float64, told bool, from string) {
	if m.maxRate > 0 {
		return float64(m.maxRate), true, "--max-rate"
	}
	if host == "self" {
		return 0, false, ""
	}
	w := pathTo(ctx, host, m.family())
	if w.speed <= 0 {
		return 0, false, ""
	}
	p := o.plan()
	if p.BlockSize == 0 {
		p.BlockSize = w.payload()
	}
	n := w.bytes(&p)
	return float64(w.speed) * float64(n[units.L7]) / float64(n[units.L1]), false, "the speed of " + cmp.Or(w.nic, "the link")
}

// udpmaxOptions are the words of `fullbore udpmax`.
type udpmaxOptions struct {
	methodOptions
	udpSteps
	preset string
	loss   string
	limit  time.Duration
	verify int
}

const udpmaxLong = `Find the highest UDP rate that HOST's path carries without loss (M-NDR), up and
then down.

Trials at fixed rates close in on it from both sides (MLRsearch): a rate counts as
carried when its trials together last long enough and lost no more than the goal.
The answer has a lower bound (carried), an upper bound (not carried) and the
certainty that the trials at the lower bound give. What an end could not do itself,
because its sender was too slow or its socket was full, is told apart: it says
nothing about the path.

Presets: quick (about 30 s a direction, width 2 %), default (2 min, 1 %, half of the
trials may be bad), csit (5 to 8 min, no loss and 0.5 %), rfc2544 (10 to 15 min,
60-s trials). The greatest rate that is tried is that of the slower link or
--max-rate; where no link speed is known it is what four TCP streams reach.

Traffic: trials of 1 s and more near the path's rate, the first two at the greatest
rate: quick on a 1 Gbit/s path about 3 GB a direction. Bound it with --max-bytes and
--max-rate. Others on the path lose packets meanwhile.`

const udpmaxExample = `  fullbore udpmax self --up --preset quick --max-rate 200M
  fullbore udpmax 192.0.2.2
  fullbore udpmax 192.0.2.2 --down --loss 0.1%
  fullbore udpmax 192.0.2.2 --preset quick -l 200 --expect '>= 100M'
  fullbore udpmax 192.0.2.2 --both --json > ndr.json`

func newUDPMaxCmd(e *env) *cobra.Command {
	o := &udpmaxOptions{}
	cmd := &cobra.Command{
		Use:     "udpmax HOST",
		Short:   "The highest UDP rate without loss: bounds, width, who dropped",
		Long:    udpmaxLong,
		Example: udpmaxExample,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return e.runUDPMax(cmd.Context(), o, args[0])
		},
	}
	o.methodOptions.addFlags(cmd)
	o.udpSteps.addFlags(cmd)
	f := cmd.Flags()
	f.StringVar(&o.preset, "preset", "default", "procedure: quick, default, csit or rfc2544")
	f.StringVar(&o.loss, "loss", "", "share of the datagrams that may be lost, e.g. 0.1% (default: the preset's, none)")
	f.IntVar(&o.verify, "verify", 0, verifyHelp)
	f.Var(durationFlag{&o.limit}, "max-time", "end the search of a direction after this time (default: the preset's)")
	return cmd
}

// verifyHelp is of rfc2544, too.
const verifyHelp = "repeat a lossy trial so many times; a clean repeat takes its place (loss verification of ETSI TST 009)"

// mostVerify bounds the repeats: each is a whole trial.
const mostVerify = 10

func checkVerify(n int) error {
	if n < 0 || n > mostVerify {
		return usagef("--verify %d: must be 0…%d", n, mostVerify)
	}
	return nil
}

// thePreset is the procedure that the words ask for.
func (o *udpmaxOptions) thePreset() (method.RatePreset, error) {
	p, ok := method.RatePresetOf(o.preset)
	if !ok {
		return p, usagef("--preset %q: there are quick, default, csit and rfc2544", o.preset)
	}
	if o.loss != "" {
		share, err := parseShare(o.loss)
		if err != nil {
			return p, usagef("--loss: %v", err)
		}
		p.Goals = p.Goals[:1]
		p.Goals[0].Loss = share
	}
	if o.limit > 0 {
		p.Limit = o.limit
	}
	p.Verify = o.verify
	if err := checkVerify(o.verify); err != nil {
		return p, err
	}
	for _, g := range p.Goals {
		if err := g.Validate(); err != nil {
			return p, usagef("%v", err)
		}
	}
	return p, nil
}

func (e *env) runUDPMax(ctx context.Context, o *udpmaxOptions, host string) error {
	preset, err := o.thePreset()
	if err != nil {
		return err
	}
	if err := o.check(host); err != nil {
		return err
	}
	m := method.NDR{Preset: preset, Directions: o.directions(), Streams: max(o.streams, 1), UDP: o.udpSteps.plan()}
	var from string
	m.Max, m.Told, from = o.most(ctx, &o.methodOptions, host)
	most := "what four TCP streams reach, since the link's speed is not known"
	if m.Max > 0 {
		most = fmt.Sprintf("%s of payload (%s)", units.BitRate(m.Max), from)
	}
	volume := "Traffic: trials of seconds near the path's rate; the first two go at " + most + "."
	if m.Max > 0 {
		volume += fmt.Sprintf(" That is %s for those two.", units.ByteSize(int64(2*m.Max/8*preset.Goals[0].Initial.Seconds())))
	}
	return e.runMethod(ctx, &o.methodOptions, methodJob{
		kind: "udpmax", host: host,
		head:   fmt.Sprintf("Highest UDP rate within the loss goal to %s, preset %s: about %s a direction", host, preset.Name, preset.About),
		volume: volume, method: m, possible: m.Possible(), stops: true, ownRate: true,
		lasts: fmt.Sprintf("These come first, in each direction; what follows hangs on what they show. It takes about %s a direction, %s at most.", preset.About, longText(preset.Limit)),
		fill: func(rep *result.Report, h []method.Done) {
			fillUDPMax(rep, m, h)
			rep.Next = o.next(host, m, h)
			rep.Notices = append(rep.Notices, cutNotice(o.maxBytes, h)...)
		},
		final: finalFindings,
		figures: map[string]figureKind{
			"rate": rateKind, "upper": rateKind, "conditional": rateKind, "width": shareKind,
		},
		figure:   "rate",
		measured: leastFindings(udpmaxFigures()),
		excused:  excuse(udpmaxFigures()),
		answered: func(rep *result.Report) bool {
			for _, f := range rep.Findings {
				if slices.Contains(f.Flags, "irregular") || slices.Contains(f.Flags, "host_limited") {
					return false
				}
			}
			return len(rep.Findings) > 0
		},
	})
}

// udpmaxFigures are the values that --expect's words mean.
func udpmaxFigures() map[string]string {
	return map[string]string{"rate": "lower", "upper": "upper", "conditional": "conditional", "width": "width"}
}

// next is what is worth typing then, by the worst of the answers.
func (o *udpmaxOptions) next(host string, m method.NDR, history []method.Done) (step *result.Step) {
	top := 0.0
	for _, d := range m.Answer(history) {
		way := result.Direction(d.Direction)
		for _, a := range d.Answers {
			switch {
			case a.HostLimited > 0 && a.Sender:
				return fitness(way.Sender(), host)
			case a.HostLimited > 0:
				return fitness(way.Receiver(), host)
			case a.Irregular && o.maxBytes > 0:
				return nil // the budget was the user's word
			case a.Irregular:
				return o.step(host, "the search ended before its bounds were close: give it more time", "udpmax", "HOST", "--max-time", secondsWord(2*m.Preset.Limit))
			case a.AtMax:
				top = max(top, d.Max)
			default:
				step = o.step(host, "what loses datagrams above that: a queue, a policer, or the line?", "diagnose", "HOST")
			}
		}
	}
	switch {
	case step != nil || top <= 0:
		return step
	case m.Told || m.Max <= 0:
		return o.step(host, "all that was to be tried went through: where does loss begin?", "udpmax", "HOST", "--max-rate", units.BitRate(2*top).Exact())
	}
	return o.step(host, "the path carries what its links can: what does it do to delay when it is full?", "load", "HOST")
}

// leastFindings gives, for each figure, the least value of that name over all findings.
func leastFindings(names map[string]string) func(*result.Report) map[string]*float64 {
	return func(rep *result.Report) map[string]*float64 {
		out := map[string]*float64{}
		for figure, name := range names {
			for _, f := range rep.Findings {
				for _, v := range f.Values {
					if v.Name == name && (out[figure] == nil || v.Value < *out[figure]) {
						out[figure] = &v.Value
					}
				}
			}
		}
		return out
	}
}

// fillUDPMax makes the report.
func fillUDPMax(rep *result.Report, m method.NDR, history []method.Done) {
	var sentences []string
	for _, d := range m.Answer(history) {
		for _, t := range d.Trials {
			rep.Curve = append(rep.Curve, result.Point{X: t.Load, Y: t.Received, Label: "offered bit/s, " + string(d.Direction)})
		}
		factor := layerFactors(method.Of(history, d.Direction))
		for _, a := range d.Answers {
			f := rateFinding(d, a, factor, plainPeer(history))
			rep.Findings = append(rep.Findings, f)
			sentences = append(sentences, f.Summary)
		}
		rep.Notices = append(rep.Notices, rateNotices(d)...)
	}
	rep.Summary = strings.Join(sentences, " ")
	if rep.Summary == "" {
		rep.Summary = "The search ended before anything was found."
	}
	rep.Notices = append(rep.Notices, ownerNotice(history)...)
}

// layerFactors are what a payload bit/s is on l3 and l1, by the first UDP run that tells.
func layerFactors(history []method.Done) *result.LayerRate {
	for _, d := range history {
		if d.Step.Plan.Transport == plan.UDP && d.Run != nil && len(d.Run.Layers) > 0 && d.Run.Layers[0].L7 > 0 {
			l := d.Run.Layers[0]
			return &result.LayerRate{L7: 1, L4: l.L4 / l.L7, L3: l.L3 / l.L7, L2: l.L2 / l.L7, L1: l.L1 / l.L7}
		}
	}
	return nil
}

// rateFinding words an answer; plain: the other end does not tell what its host dropped.
func rateFinding(d method.NDRAnswer, a method.RateAnswer, factor *result.LayerRate, plain bool) result.Finding {
	f := result.Finding{Name: "loss-free-rate", Direction: string(d.Direction), Values: []result.Value{}}
	add := func(name string, v float64, unit string) {
		f.Values = append(f.Values, result.Value{Name: name, Value: v, Unit: unit})
	}
	add("goal", a.Goal.Loss, "ratio")
	goal := "without loss"
	if a.Goal.Loss > 0 {
		f.Name = "rate-within-loss"
		goal = fmt.Sprintf("with at most %.3g %% of loss", 100*a.Goal.Loss)
	}
	if a.Lower > 0 {
		add("lower", a.Lower, "bit/s")
		add("conditional", a.Conditional, "bit/s")
		add("sent", float64(a.Sent), "")
		add("lost", float64(a.Lost), "")
		add("loss_high_95", a.High, "ratio")
		if factor != nil {
			add("lower_l3", a.Lower*factor.L3, "bit/s")
			add("lower_l1", a.Lower*factor.L1, "bit/s")
		}
	}
	if a.Upper > 0 {
		add("upper", a.Upper, "bit/s")
		if a.Lower > 0 {
			add("width", a.Width, "ratio")
		}
	}
	add("max_load", d.Max, "bit/s")
	add("trials", float64(a.Trials), "")
	add("lossy_trials", float64(a.Lossy), "")
	add("inconsistent", float64(a.Inconsistent), "")
	add("time", a.Seconds, "s")
	if a.Forgiven > 0 {
		add("forgiven_trials", float64(a.Forgiven), "")
	}
	if a.Lower > 0 { // further figures stand at the end, so that those before keep their places
		add("load", a.Load, "bit/s")
	}
	if factor != nil && a.Lower > 0 {
		add("lower_l2", a.Lower*factor.L2, "bit/s")
	}
	if factor != nil && a.Upper > 0 {
		add("upper_l1", a.Upper*factor.L1, "bit/s")
	}
	wire := ""
	if factor != nil {
		wire = fmt.Sprintf(" (%s on layer 1)", units.BitRate(a.Lower*factor.L1))
	}
	who := "the path loses"
	if plain && d.Direction != plan.Down {
		who = "the path, or the host there, loses"
	}
	f.Flags, f.Summary = rateFlags(a), rateSentence(d, a, goal, wire, who)
	return f
}

func rateFlags(a method.RateAnswer) (out []string) {
	for _, x := range []struct {
		on   bool
		flag string
	}{{a.AtMax, "at_max_load"}, {a.HostLimited > 0, "host_limited"}, {a.HostLimited > 0 && a.Sender, "sender_limited"}, {a.Irregular, "irregular"}} {
		if x.on {
			out = append(out, x.flag)
		}
	}
	return out
}

// certainty says how sure the absence of loss is.
func certainty(a method.RateAnswer) string {
	l := result.UDPLoss{Sent: a.Sent, Lost: a.Lost, High: a.High}
	if a.Sent > 0 {
		l.Ratio = float64(a.Lost) / float64(a.Sent)
	}
	if a.Lost > 0 {
		l.Low, _, _ = stats.ClopperPearson(a.Lost, a.Sent, 0.95)
	}
	return conclude.LossText(&l)
}

// rateSentence is the answer; wire is the lower bound on another layer, loser who loses above it.
func rateSentence(d method.NDRAnswer, a method.RateAnswer, goal, wire, loser string) string {
	head := titleCase(string(d.Direction)) + ": "
	took := fmt.Sprintf(" %d trials, %s.", a.Trials, units.FormatDuration(time.Duration(a.Seconds*float64(time.Second)).Round(time.Second)))
	rate := func(v float64) string { return units.BitRate(v).String() }
	who := "the receiving end's socket dropped what arrived"
	if a.Sender {
		who = "the sending end did not reach it"
	}
	switch {
	case a.Lower == 0 && a.Upper == 0:
		return head + "the search ended before a rate was decided." + took
	case a.Lower == 0 && a.HostLimited > 0:
		return head + fmt.Sprintf("host-limited at %s: %s. Nothing is said about the path.", rate(a.HostLimited), who) + took
	case a.Lower == 0:
		return head + fmt.Sprintf("no rate was carried %s, down to %s.", goal, rate(a.Upper)) + took
	}
	text := head + fmt.Sprintf("%s of payload%s go through %s: %s", rate(a.Lower), wire, goal, certainty(a))
	switch {
	case a.AtMax:
		text += "; that is the most that was to be tried, so the path may carry more."
	case a.HostLimited > 0:
		text += fmt.Sprintf("; host-limited at %s: %s. Nothing is said about the path above that.", rate(a.HostLimited), who)
	case a.Upper > 0:
		text += fmt.Sprintf("; %s do not (width %.2g %%): there %s.", rate(a.Upper), 100*a.Width, loser)
	default:
		text += "; no rate that is too high was found in the time."
	}
	if a.Irregular {
		text += " The search ended before its width was reached."
	}
	return text + took
}

func titleCase(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

// leftOut is from which share of its rate on it is told that a sender paused.
const leftOut = 0.005

// rateNotices are what is to be known beside an answer.
func rateNotices(d method.NDRAnswer) (out []result.Notice) {
	if d.ByTCP && d.Max > 0 {
		out = append(out, result.Notice{
			Code: "max-load", End: result.Client, Level: result.Info,
			Text: fmt.Sprintf("%s: the link's speed is not known, so what TCP reached, %s, was the greatest rate tried; --max-rate names another", d.Direction, units.BitRate(d.Max)),
		})
	}
	for _, a := range d.Answers {
		if left := 1 - a.Lower/a.Load; a.Load > 0 && left >= leftOut {
			out = append(out, result.Notice{
				Code: "sender-paused", End: result.Direction(d.Direction).Sender(), Level: result.Info,
				Text: fmt.Sprintf("%s: the sender was not scheduled in time for %.2g %% of what it was to send, and left that out: the lower bound, %s of the %s that were asked for, is what it did send",
					d.Direction, 100*left, units.BitRate(a.Lower), units.BitRate(a.Load)),
			})
			break
		}
	}
	for _, a := range d.Answers {
		if a.Inconsistent > 0 {
			out = append(out, result.Notice{
				Code: "inconsistent-trials", End: result.Client, Level: result.Info,
				Text: fmt.Sprintf("%s: %d trials lost more than the goal although a higher rate did not: expected where others use the path", d.Direction, a.Inconsistent),
			})
			break
		}
	}
	return out
}

// plainPeer reports that the other end does not tell what its own host dropped.
func plainPeer(history []method.Done) bool {
	return slices.ContainsFunc(history, func(h method.Done) bool {
		return h.Run != nil && h.Step.Plan.Transport == plan.UDP && h.Run.Wire != nil && !h.Run.Wire.Extension
	})
}

// ownerNotice says so.
func ownerNotice(history []method.Done) []result.Notice {
	if !plainPeer(history) {
		return nil
	}
	return []result.Notice{{
		Code: "loss-owner", End: result.Server, Level: result.Warn,
		Text: "the other end is no fullbore: where it receives, what its own host dropped cannot be told from what the path lost",
	}}
}

// cutNotice says that the budget ended the last step.
func cutNotice(budget int64, history []method.Done) []result.Notice {
	if n := len(history); budget <= 0 || n == 0 || !method.Cut(history[n-1]) {
		return nil
	}
	return []result.Notice{{
		Code: "budget-used", End: result.Client, Level: result.Warn,
		Text: fmt.Sprintf("the budget of %d bytes is used up: it ended %q, which does not count", budget, history[len(history)-1].Step.Title),
	}}
}

// finalFindings prints the figures of all findings as a table.
func finalFindings(v *stageView, rep *result.Report) {
	for _, f := range rep.Findings {
		fmt.Fprintf(v.e.Out, "  %s %s\n", f.Name, f.Direction)
		for _, x := range f.Values {
			fmt.Fprintf(v.e.Out, "    %s %s\n", screen.Left(strings.ReplaceAll(x.Name, "_", " "), 22), valueText(x))
		}
		if len(f.Flags) > 0 {
			fmt.Fprintf(v.e.Out, "    %s %s\n", screen.Left("flags", 22), strings.Join(f.Flags, ", "))
		}
	}
}

// valueText is a figure for people.
func valueText(x result.Value) string {
	switch x.Unit {
	case "bit/s":
		return units.BitRate(x.Value).String()
	case "s":
		return conclude.Time(x.Value)
	case "ratio":
		return fmt.Sprintf("%.3g %%", 100*x.Value)
	case "bytes":
		return units.ByteSize(x.Value).String()
	}
	if x.Value == float64(int64(x.Value)) {
		return strings.TrimSpace(conclude.Grouped(int64(x.Value)) + " " + x.Unit)
	}
	return strings.TrimSpace(fmt.Sprintf("%.5g %s", x.Value, x.Unit))
}

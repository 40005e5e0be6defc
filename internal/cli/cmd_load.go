package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fullbore-net/fullbore/internal/conclude"
	"github.com/fullbore-net/fullbore/internal/method"
	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/internal/render/screen"
	"github.com/fullbore-net/fullbore/internal/units"
	"github.com/fullbore-net/fullbore/result"
)

// loadOptions are the words of `fullbore load`.
type loadOptions struct {
	methodOptions
	method.Load
	quick, up, down bool
}

const loadLong = `How long do small packets wait while the path is full? A call, a game or a shell beside a
copy feels this, not the rate.

A stream of small packets (64 bytes each 20 ms) runs on the empty path, then beside a load up,
down and both ways, then on the empty path again. Told: round trips before, meanwhile and
after; how much longer each direction takes, and so how deep its standing queue is, in time
and bytes; a grade (A+ … F: below 5, 30, 60, 200, 400 ms at the 95th percentile); and
responsiveness as round trips per minute.

The load begins with one connection and adds one each second (--interval; 5s is what the
responsiveness draft has) until its rate has settled or -P are sending; it ends when the
responsiveness has settled, too, at the latest after -t. Beside it ten new connections a second
are opened, each with a request of one byte. Responsiveness is the mean of theirs and of what the
senders' kernels (TCP_INFO) measured on the load's own connections: those carry payload alone, as
iperf3's do, and have no room for requests. It is called rpm-raw: no HTTP and no TLS is in it, so
do not compare it with numbers of tools that use them. Its confidence is low when the rate could
not be judged (fewer than four intervals), medium when rate or responsiveness did not settle.

HOST runs "fullbore serve". An iperf3 server answers no probes, and sends on all connections
from the start: then TCP's own round trips are told where this end sends, and the way back is not
known. With --max-rate all connections send from the start, each with its share. HOST may be
"self".

Time: at most 50 s; with --quick 30 s. Traffic: as much as the path carries, at most 6 GB on a
path of 1 Gbit/s (--quick: 4 GB), mostly two thirds of that. Bound it with --max-bytes or
--max-rate.`

const loadExample = `  fullbore load self --quick
  fullbore load 192.0.2.2
  fullbore load 192.0.2.2 --down -P 8
  fullbore load 192.0.2.2 --interval 5s        responsiveness by the draft's times: 3 min
  fullbore load 192.0.2.2 --max-rate 20M       what a limit just below the line would do
  fullbore load 192.0.2.2 --expect 'rise <= 30ms'`

func newLoadCmd(e *env) *cobra.Command {
	o := &loadOptions{}
	cmd := &cobra.Command{
		Use:     "load HOST",
		Short:   "Delay on the empty path against the full one: queues, grade, responsiveness",
		Long:    loadLong,
		Example: loadExample,
		Args:    cobra.ExactArgs(1),
		RunE:    func(cmd *cobra.Command, args []string) error { return e.runLoad(cmd.Context(), o, args[0]) },
	}
	f := cmd.Flags()
	o.addFlags(cmd)
	o.expectExample(cmd, "'rise <= 30ms' or 'rpm >= 1000'")
	f.BoolVar(&o.quick, "quick", false, "2 s before and after, 8 intervals of each load at most")
	f.BoolVar(&o.up, "up", false, "only from here to HOST")
	f.BoolVar(&o.down, "down", false, "only from HOST to here")
	f.VarP(durationFlag{&o.Time}, "time", "t", "length of each load at most (default 12 intervals)")
	f.Var(durationFlag{&o.Idle}, "idle", "how long the empty path is looked at, before and after (default 5s)")
	f.Var(durationFlag{&o.Interval}, "interval", "after which one more connection begins to send, and rate and responsiveness are looked at (default 1s)")
	f.IntVarP(&o.Load.Streams, "streams", "P", loadStreams, "connections of the load at most, each direction")
	f.StringVarP(&o.plan.Congestion, "cc", "C", "", "congestion control of the load (default: the systems' own)")
	cmd.MarkFlagsMutuallyExclusive("up", "down")
	return cmd
}

// loadStreams is M-RPM's most connections, and loadSteps and quickSteps how many of its intervals a load
// lasts at most: with four until the rate is known to have settled and as many for the responsiveness.
const (
	loadStreams = 16
	loadSteps   = 12
	quickSteps  = 8
)

func (e *env) runLoad(ctx context.Context, o *loadOptions, host string) error {
	if o.Load.Streams < 1 || o.Load.Streams > plan.MaxStreams {
		return usagef("--streams %d: must be 1…%d", o.Load.Streams, plan.MaxStreams)
	}
	if o.Interval == 0 {
		o.Interval = time.Second
	}
	if o.Interval < plan.MinInterval || o.Interval > plan.MaxInterval {
		return usagef("--interval %v: must be 0.1…60 s", o.Interval)
	}
	rest, each := 5*time.Second, loadSteps*o.Interval
	if o.quick {
		rest, each = 2*time.Second, quickSteps*o.Interval
	}
	if o.Idle == 0 {
		o.Idle = rest
	}
	if o.Time == 0 {
		o.Time = each
	}
	if o.maxRate > 0 {
		o.First = o.Load.Streams // each has its share of the bound: one alone would never reach it
	}
	switch {
	case o.up:
		o.Directions = []plan.Direction{plan.Up}
	case o.down:
		o.Directions = []plan.Direction{plan.Down}
	}
	steps := o.Load.Steps()
	loads := time.Duration(0) // of each direction
	for _, s := range steps[1 : len(steps)-1] {
		loads += o.Time
		if s.Plan.Direction == plan.Both {
			loads += o.Time
		}
	}
	return e.runMethod(ctx, &o.methodOptions, methodJob{
		kind: "load", host: host, method: o.Load, possible: steps,
		head:   fmt.Sprintf("Delay of small packets to %s, empty and full", host),
		volume: fmt.Sprintf("Traffic: as much as the path carries one way for at most %s (1 Gbit/s: %s).", units.FormatDuration(loads), units.ByteSize(1e9/8*loads.Seconds())),
		complete: func(p plan.Plan) plan.Plan {
			if p.Transport == plan.TCP {
				p.Congestion = o.plan.Congestion
			}
			return p
		},
		fill: func(rep *result.Report, history []method.Done) {
			rep.Load = o.Load.Answer(history)
			fillLoad(rep)
		},
		final:   func(v *stageView, rep *result.Report) { v.loadTable(rep.Load) },
		figures: map[string]figureKind{"rise": timeKind, "rise_up": timeKind, "rise_down": timeKind, "rpm": numberKind}, figure: "rise",
		measured: loadFigures,
		answered: func(rep *result.Report) bool { return rep.Load.Worst != nil },
	})
}

// loadFigures are what --expect can ask for: the worst of a kind.
func loadFigures(rep *result.Report) map[string]*float64 {
	out := map[string]*float64{"rise": rep.Load.Worst, "rise_up": nil, "rise_down": nil, "rpm": nil}
	for i := range rep.Load.Ways {
		w := &rep.Load.Ways[i]
		word := "rise_" + string(w.Direction)
		if wait := w.Wait(); wait != nil && (out[word] == nil || *wait > *out[word]) {
			out[word] = wait
		}
		if w.RPM != nil && (out["rpm"] == nil || w.RPM.Value < *out["rpm"]) {
			out["rpm"] = &w.RPM.Value
		}
	}
	return out
}

// fillLoad makes the sentence and what is to be known beside it.
func fillLoad(rep *result.Report) {
	l := rep.Load
	if l.Worst == nil {
		rep.Summary = "Delay under load: not known; nothing that was sent beside a load came back."
		return
	}
	var parts, unknown []string
	for _, w := range l.Ways {
		if w.Load == "both" {
			continue
		}
		if w.Rise == nil {
			unknown = append(unknown, string(w.Direction))
			continue
		}
		text := fmt.Sprintf("%s longer %s", conclude.Time(*w.Wait()), w.Direction)
		if w.RPM != nil {
			text += fmt.Sprintf(" (%.0f round trips a minute, %s)", w.RPM.Value, w.RPM.Class)
		}
		parts = append(parts, text)
	}
	for _, w := range l.Ways {
		if wait := w.Wait(); wait != nil && w.Load == "both" && *wait == *l.Worst {
			parts = append(parts, fmt.Sprintf("%s longer %s with both ways full", conclude.Time(*wait), w.Direction))
		}
	}
	what := "small packets take"
	if l.Source == "tcp-info" {
		what = "the load's own round trips take"
	}
	rep.Summary = fmt.Sprintf("Delay under load: grade %s: %s %s (95th percentile).", l.Grade, what, strings.Join(parts, ", "))
	if len(unknown) > 0 {
		rep.Summary += fmt.Sprintf(" The way %s is not known.", strings.Join(unknown, " and "))
	}
	switch {
	case l.Idle != nil:
		rep.Summary += fmt.Sprintf(" Empty path: %s round trip.", conclude.Time(l.Idle.P50))
	case l.IdleMin != nil:
		rep.Summary += fmt.Sprintf(" Empty path: %s round trip (the least that TCP saw).", conclude.Time(*l.IdleMin))
	}
	if l.Source == "tcp-info" {
		rep.Notices = append(rep.Notices, result.Notice{
			Code: "load-by-tcp", End: result.Server, Level: result.Warn,
			Text: "the other end answers no probes: told is how much longer the load's own round trips took, by this end's kernel, where this end sends; the way back is not known (fullbore serve there would tell)",
		})
	}
	if *l.Worst >= 0.060 {
		rep.Notices = append(rep.Notices, result.Notice{
			Code: "deep-queue", Level: result.Info,
			Text: "the queue in front of the bottleneck is deep: a managed one there (fq_codel, cake), or a shaper just below its rate in front of it, takes the wait away",
		})
	}
}

// loadTable prints a line for each direction of each load.
func (v *stageView) loadTable(l *result.Load) {
	row := func(cells ...string) {
		text := "  " + screen.Left(cells[0], 16)
		for _, c := range cells[1:] {
			text += screen.Right(c, 12)
		}
		fmt.Fprintln(v.e.Out, strings.TrimRight(text, " "))
	}
	row("", "p50", "p95", "p99", "queue", "round trip", "rpm-raw", "grade")
	trip := func(name string, q *result.Quantiles) {
		if q != nil {
			row(name, conclude.Time(q.P50), conclude.Time(q.P95), conclude.Time(q.P99), "", "", "", "")
		}
	}
	trip("empty, before", l.Idle)
	for _, w := range l.Ways {
		name := string(w.Direction)
		if w.Load == "both" {
			name += ", both full"
		}
		cells := []string{name, screen.Unknown, screen.Unknown, screen.Unknown, screen.Unknown, screen.Unknown, screen.Unknown, w.Grade}
		if r := w.Rise; r != nil {
			cells[1], cells[2], cells[3] = "+"+conclude.Time(r.P50), "+"+conclude.Time(r.P95), "+"+conclude.Time(r.P99)
		}
		if w.QueueBytes != nil {
			cells[4] = units.ByteSize(*w.QueueBytes).String()
		}
		if w.RoundTrip != nil {
			cells[5] = conclude.Time(w.RoundTrip.P50)
		}
		if w.RPM != nil {
			cells[6] = fmt.Sprintf("%.0f", w.RPM.Value)
		}
		row(cells...)
	}
	trip("empty, after", l.After)
	v.responsiveness(l)
}

// responsiveness says by what the round trips a minute were measured, and how much they are worth.
func (v *stageView) responsiveness(l *result.Load) {
	by := map[string]bool{}
	for _, w := range l.Ways {
		r := w.RPM
		if r == nil {
			continue
		}
		if text := rpmBy(r); text != "" && !by[text] {
			by[text] = true
			v.line("  ", "rpm-raw: "+text)
		}
	}
	for _, w := range l.Ways {
		r := w.RPM
		if r == nil || r.Confidence == "high" {
			continue
		}
		why := "the load's rate or responsiveness did not settle"
		if r.Confidence == "low" {
			why = "too few intervals to judge whether the load's rate settled"
		}
		v.line("  ", fmt.Sprintf("rpm-raw %s: confidence %s (%s; a longer -t may tell)", w.Direction, r.Confidence, why))
		break
	}
}

// rpmBy is what a responsiveness was measured by.
func rpmBy(r *result.RPM) string {
	var parts []string
	switch r.ForeignBy {
	case "tcp-connect":
		parts = append(parts, "new connections with a request of one byte")
	case "udp-echo":
		parts = append(parts, "small packets beside the load")
	}
	if r.SelfBy == "tcp-info" {
		parts = append(parts, "the load's own round trips as its sender's kernel saw them")
	}
	return strings.Join(parts, ", and ")
}

package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/fullbore-net/fullbore/internal/conclude"
	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/internal/render/screen"
	"github.com/fullbore-net/fullbore/internal/runner"
	"github.com/fullbore-net/fullbore/internal/units"
	"github.com/fullbore-net/fullbore/result"
)

// announce says what a profile will do and how much traffic that makes: to people on stdout, and
// on stderr where stdout is for programs.
func (out *output) announce(ctx context.Context, o *testOptions, hosts []string, steps []testStep) {
	p := o.profile
	if p == nil {
		return
	}
	out.profile, out.together = p.name, profileSummary
	var w io.Writer = out.e.Out
	switch {
	case out.o.quiet:
		return
	case !out.ends():
		w = out.e.Err
	}
	to := hosts[0]
	if len(hosts) > 1 {
		to = fmt.Sprintf("each of %d hosts", len(hosts))
	}
	fmt.Fprintf(w, "Profile %s, %s, to %s:\n", p.name, p.title, screen.Clean(to))
	for _, s := range steps {
		why := s.stage.why
		if why == "" {
			why = strings.Join(o.reasons, "; ")
		}
		fmt.Fprintln(w, strings.TrimRight(fmt.Sprintf("  %s %s %s", screen.Left(s.stage.name, 8), screen.Left(stageWords(&s.plan), 30), why), " "))
	}
	if text := receiverText(o, steps); text != "" {
		fmt.Fprintln(w, text)
	}
	fmt.Fprintf(w, "%s\n\n", trafficText(steps, linkSpeed(ctx, hosts[0], steps)))
}

// receiverText says what an NTTTCP receiver must be for several stages.
func receiverText(o *testOptions, steps []testStep) string {
	if o.via == nil || len(steps) < 2 {
		return ""
	}
	if o.via.dialect == plan.NTTTCPLinux {
		return "The receiver takes one test after the other: fullbore serve, or ntttcp -r -H."
	}
	var words []string
	for _, s := range steps {
		words = append(words, fmt.Sprintf("-m %d,*,%s", s.plan.Streams, s.plan.Host))
	}
	return fmt.Sprintf("The receiver takes one test after the other: fullbore serve; an ntttcp.exe takes one, of its own number of threads, and is started anew in the pause (--pause 60s): ntttcp -r with %s.", strings.Join(words, ", then "))
}

// linkSpeed is that of this host's interface towards host, bit/s; 0 = not known.
func linkSpeed(ctx context.Context, host string, steps []testStep) float64 {
	if host == "self" {
		return 0
	}
	return float64(pathTo(ctx, host, steps[0].plan.Family).speed)
}

// trafficText says how much the steps move.
func trafficText(steps []testStep, speed float64) string {
	const bound = "Bound it with -t, -b, --max-bytes or --max-rate."
	var long time.Duration
	for _, s := range steps {
		p := s.plan.Filled()
		long += p.Omit + p.Duration
	}
	amount := func(bps float64) string { return "up to " + units.ByteSize(volume(steps, bps)).String() }
	const anyPath = 1e15 // bit/s, above every path
	switch {
	case volume(steps, 1e6) == volume(steps, anyPath):
		return "Traffic: " + amount(anyPath) + " in all."
	case speed > 0:
		return fmt.Sprintf("Traffic at the speed of this host's link (%s): %s in all. %s", units.BitRate(speed), amount(speed), bound)
	}
	return fmt.Sprintf("Traffic: as much as the path carries for %s; a path of 1 Gbit/s: %s in all. %s", units.FormatDuration(long), amount(1e9), bound)
}

// volume is about how many payload bytes the steps move on a path of bps, at most.
func volume(steps []testStep, bps float64) (bytes int64) {
	for _, s := range steps {
		p := s.plan.Filled()
		ways := 1.0
		if p.Direction == plan.Both {
			ways = 2
		}
		b := float64(p.Bytes)
		if p.Bytes == 0 {
			rate := ways * bps
			if asked := ways * float64(p.StreamRate()) * float64(p.Streams); asked > 0 {
				rate = min(rate, asked)
			}
			if p.MaxRate > 0 {
				rate = min(rate, float64(p.MaxRate))
			}
			b = rate / 8 * (p.Omit + p.Duration).Seconds()
		}
		if p.MaxBytes > 0 {
			b = min(b, float64(p.MaxBytes))
		}
		bytes += int64(b)
	}
	return bytes
}

// stageWords says what a step does.
func stageWords(p *plan.Plan) string {
	n := fmt.Sprintf("%d streams", p.Streams)
	if p.Streams == 1 {
		n = "1 stream"
	}
	way := map[plan.Direction]string{plan.Up: "up", plan.Down: "down", plan.Both: "both ways"}[p.Direction]
	long := units.FormatDuration(p.Filled().Duration)
	if p.Bytes > 0 {
		long = units.ByteSize(p.Bytes).IEC()
	}
	return fmt.Sprintf("%s, %s, %s", n, way, long)
}

// step measures one step and keeps it as a stage where there is a profile.
func (out *output) step(ctx context.Context, r *runner.Runner, s *testStep, p plan.Plan) (*result.Run, error) {
	if s.stage == nil {
		return out.measure(ctx, r, p)
	}
	if len(out.stages) > 0 {
		out.say("")
	}
	out.say(fmt.Sprintf("%s: %s", s.stage.name, stageWords(&p)))
	before := len(out.runs)
	run, err := out.measure(ctx, r, p)
	st := result.Stage{Name: s.stage.name, Title: stageWords(&p), Why: s.stage.why}
	if run != nil {
		run.Label, st.Err = s.stage.name, run.Err
	}
	if len(out.runs) > before {
		st.Run = &before
	}
	out.stages = append(out.stages, st)
	return run, err
}

// judged are the runs that count: of a profile those of its last stage.
func judged(runs []*result.Run) []*result.Run {
	var out []*result.Run
	for _, r := range runs {
		if r.Label != checkStage {
			out = append(out, r)
		}
	}
	if len(out) == 0 { // nothing came after the checks: they tell why
		return runs
	}
	return out
}

// profileSummary is the sentence over the runs of a profile: what counts, and beside it what one
// stream carried.
func profileSummary(runs []*result.Run) string {
	text := conclude.Together(judged(runs))
	if len(runs) != 2 || runs[0].Label != checkStage || runs[1].Label != recordStage {
		return text
	}
	check, record := runs[0], runs[1]
	for _, s := range check.Sums {
		one, all := conclude.HeadlineOf(check, s.Direction), conclude.HeadlineOf(record, s.Direction)
		if one.Basis == conclude.None || all.Basis == conclude.None || one.Basis.Arrived() != all.Basis.Arrived() || all.BPS <= 0 || record.Test.Streams <= 1 {
			continue
		}
		to := ""
		if len(check.Sums) > 1 {
			_, name := conclude.Label(check, s.Direction)
			to = " to " + name
		}
		text = strings.TrimSuffix(text, ".") + fmt.Sprintf("; one stream alone%s carried %s (%.0f %% of it).", to, units.BitRate(one.BPS+0.5), 100*one.BPS/all.BPS)
	}
	return text
}

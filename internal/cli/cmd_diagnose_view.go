package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/fullbore-net/fullbore/internal/conclude"
	"github.com/fullbore-net/fullbore/internal/method"
	"github.com/fullbore-net/fullbore/internal/render/screen"
	"github.com/fullbore-net/fullbore/internal/units"
	"github.com/fullbore-net/fullbore/result"
)

// diagnoseView shows the stages as they go on and the report at the end. On a terminal the
// line of the running stage is drawn again with each report; piped, each stage is one line.
type diagnoseView struct {
	e     *env
	host  string
	o     *diagnoseOptions
	shows bool // stages are shown
	draws bool // the running line may be drawn again
	color bool
	width int

	step method.Step
	from time.Time
}

const (
	diagnoseWidth = 100
	titleWidth    = 34
)

func (e *env) newDiagnoseView(o *diagnoseOptions, host string) *diagnoseView {
	v := &diagnoseView{e: e, o: o, host: host, width: diagnoseWidth, color: e.Terminal && !e.NoColor}
	v.shows = !o.json && !o.stream && !o.silent
	v.draws = v.shows && e.Terminal && !o.plainLines
	if e.Terminal && e.Size != nil {
		if w, _ := e.Size(); w > 40 {
			v.width = min(w, diagnoseWidth)
		}
	}
	return v
}

func (v *diagnoseView) paint(code, s string) string {
	if !v.color || s == "" {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

// head says what begins and how much traffic it makes.
func (v *diagnoseView) head(ctx context.Context) {
	if !v.shows {
		return
	}
	b := v.o.budget()
	fmt.Fprintf(v.e.Out, "%s\n%s\n\n", v.paint("1", fmt.Sprintf("Diagnosing the path to %s, at most %s", screen.Clean(v.host), units.FormatDuration(b.Total))), v.e.volumeText(ctx, v.o, v.host))
}

func (v *diagnoseView) begin(s method.Step) {
	v.step, v.from = s, v.e.Now()
	if v.draws {
		fmt.Fprintf(v.e.Out, "  %s %s", screen.Left(s.Title, titleWidth), v.paint("2", s.Why))
	}
}

// Event draws the running line again with the last interval's rate.
func (v *diagnoseView) Event(ev result.Event) {
	if !v.draws || ev.Kind != result.KindInterval || ev.End != result.Client {
		return
	}
	var parts []string
	for _, s := range ev.Interval.Sums {
		parts = append(parts, fmt.Sprintf("%s %s", s.Direction, units.BitRate(s.BPS)))
	}
	fmt.Fprintf(v.e.Out, "\r\x1b[K  %s %s", screen.Left(v.step.Title, titleWidth), strings.Join(parts, "   "))
}

func (v *diagnoseView) end(d *method.Done) {
	if !v.shows {
		return
	}
	if v.draws {
		fmt.Fprint(v.e.Out, "\r\x1b[K")
	}
	fmt.Fprintf(v.e.Out, "  %s %s\n", screen.Left(d.Step.Title, titleWidth), screen.Clean(stageText(d)))
}

// stageText is what one stage found, in a line.
func stageText(d *method.Done) string {
	run := d.Run
	if run == nil || len(run.Sums) == 0 && len(run.Probes) == 0 {
		if d.Err != nil {
			return "– " + d.Err.Text
		}
		return "– nothing"
	}
	var parts []string
	for i := range run.Sums {
		s := &run.Sums[i]
		h := conclude.HeadlineOf(run, s.Direction)
		text := units.BitRate(h.BPS + 0.5).String()
		if len(run.Sums) > 1 {
			text = string(s.Direction) + " " + text
		}
		if !h.Basis.Arrived() {
			text += " sent"
		}
		if run.Test.Transport == "udp" {
			if l := conclude.LossOf(run, s.Direction); l != nil {
				text += ", " + conclude.LossText(l)
			}
		} else if s.Sender != nil && s.Sender.Retransmits != nil {
			text += fmt.Sprintf(", %s retransmitted", conclude.Grouped(*s.Sender.Retransmits))
		}
		parts = append(parts, text)
	}
	if t := roundTripText(run); t != "" {
		parts = append(parts, t)
	}
	if d.Err != nil {
		parts = append(parts, "broke off: "+d.Err.Text)
	}
	return strings.Join(parts, "; ")
}

// roundTripText is what small packets saw.
func roundTripText(run *result.Run) string {
	for i := range run.Probes {
		p := &run.Probes[i]
		switch {
		case p.Kind == "udp-echo" && p.RoundTrip != nil:
			return fmt.Sprintf("round trip %s (p99 %s)", conclude.Time(p.RoundTrip.P50), conclude.Time(p.RoundTrip.P99))
		case p.Kind == "udp-echo":
			return fmt.Sprintf("none of %d probes answered", p.Sent)
		case p.Connect != nil:
			return fmt.Sprintf("connecting %s", conclude.Time(p.Connect.P50))
		case p.TCPMinRTT != nil:
			return fmt.Sprintf("round trip %s (control connection)", conclude.Time(*p.TCPMinRTT))
		}
	}
	return ""
}

// final is the closing screen: the sentence, the evidence, what to do, what could not be
// seen.
func (v *diagnoseView) final(rep *result.Report) {
	w := v.e.Out
	line := func(head, text string) {
		room := max(v.width-screen.Width(head), 30)
		for i, l := range screen.Wrap(screen.Clean(text), room) {
			if i > 0 {
				head = screen.Left("", screen.Width(head))
			}
			fmt.Fprintln(w, strings.TrimRight(head+l, " "))
		}
	}
	fmt.Fprintln(w)
	for _, l := range screen.Wrap(screen.Clean(rep.Summary), v.width) {
		fmt.Fprintln(w, v.paint("1", l))
	}
	notes := 0
	for i, x := range rep.Verdicts {
		if x.Note {
			notes++
			continue
		}
		head := fmt.Sprintf("%s (%s)", x.Code, x.Certainty)
		fmt.Fprintf(w, "\n%s\n", v.paint("1", head))
		if i > 0 {
			line("  ", x.Summary)
		}
		for _, ev := range x.Evidence {
			line("  · ", ev)
		}
		if x.Reach != nil && x.Measured != nil && *x.Reach > *x.Measured {
			line("  → ", fmt.Sprintf("mended, it would carry about %s instead of %s", units.BitRate(*x.Reach+0.5), units.BitRate(*x.Measured+0.5)))
		}
	}
	if notes > 0 {
		fmt.Fprintf(w, "\n%s\n", v.paint("1", "worth knowing"))
		for _, x := range rep.Verdicts {
			if x.Note {
				line("  · ", fmt.Sprintf("%s (%s, %s)", strings.TrimSuffix(x.Summary, "."), x.Code, x.Certainty))
			}
		}
	}
	v.todo(rep, line)
	if len(rep.Unseen) > 0 {
		fmt.Fprintf(w, "\n%s\n", v.paint("1", "what I could not see"))
		for _, u := range rep.Unseen {
			line("  · ", u)
		}
	}
	for _, n := range rep.Notices {
		line("note: ", n.Text)
	}
	if rep.Err != nil {
		line("broke off: ", rep.Err.Text)
	}
}

// todo lists advice, of causes first, each once.
func (v *diagnoseView) todo(rep *result.Report, line func(head, text string)) {
	seen := map[string]bool{}
	first := true
	for _, x := range rep.Verdicts {
		for _, a := range x.Advice {
			if seen[a] {
				continue
			}
			seen[a] = true
			if first {
				fmt.Fprintf(v.e.Out, "\n%s\n", v.paint("1", "what to do"))
				first = false
			}
			line("  · ", a)
		}
	}
}

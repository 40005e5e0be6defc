package cli

import (
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/fullbore-net/fullbore/internal/diagnose"
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
	table stageTable

	step method.Step
	from time.Time
	rate string // of the running stage's last interval
}

// diagnoseWidth is of lines that nobody's terminal bounds; longer ones read badly.
const diagnoseWidth = 100

func (e *env) newDiagnoseView(o *diagnoseOptions, host string) *diagnoseView {
	v := &diagnoseView{e: e, o: o, host: host, width: diagnoseWidth, color: e.Terminal && !e.NoColor}
	v.shows = !o.json && !o.stream && !o.silent
	v.draws = v.shows && e.Terminal && !o.plainLines
	if e.Terminal && e.Size != nil {
		if w, _ := e.Size(); w > 0 {
			v.width = min(max(w, 40), diagnoseWidth)
		}
	}
	v.table = newStageTable(v.width)
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
	v.step, v.from, v.rate = s, v.e.Now(), ""
	v.running()
}

// Event draws the running line again with the last interval's rate.
func (v *diagnoseView) Event(ev result.Event) {
	if !v.draws || ev.Kind != result.KindInterval || ev.End != result.Client {
		return
	}
	var parts []string
	for _, s := range ev.Interval.Sums {
		text := units.BitRate(s.BPS).String()
		if len(ev.Interval.Sums) > 1 {
			text = string(s.Direction) + " " + text
		}
		parts = append(parts, text)
	}
	v.rate = strings.Join(parts, ", ")
	v.running()
}

// running draws the line of the stage that goes on: its name, what comes through now, how long it
// still takes, and why it is made, as far as there is room.
func (v *diagnoseView) running() {
	if !v.draws {
		return
	}
	p := v.step.Plan
	left := v.step.Pause + p.Omit + p.Duration - v.e.Now().Sub(v.from)
	text := "  " + screen.Left(screen.Cut(v.step.Title, v.table.titles), v.table.titles) + " "
	switch {
	case v.rate != "":
		text += screen.Right(v.rate, rateWidth) + "  "
	case v.step.Pause > 0:
		text += screen.Right("silence", rateWidth) + "  "
	default:
		text += screen.Right("…", rateWidth) + "  "
	}
	text += screen.Left(fmt.Sprintf("%.0f s left", math.Ceil(max(left, 0).Seconds())), 10)
	if room := v.width - screen.Width(text) - 1; room > 12 {
		fmt.Fprintf(v.e.Out, "\r\x1b[K%s %s", text, v.paint("2", screen.Cut(v.step.Why, room-1)))
		return
	}
	fmt.Fprintf(v.e.Out, "\r\x1b[K%s", screen.Cut(text, v.width-1))
}

func (v *diagnoseView) end(d *method.Done) {
	if !v.shows {
		return
	}
	if v.draws {
		fmt.Fprint(v.e.Out, "\r\x1b[K")
	}
	v.table.print(v, d)
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
	if len(rep.Verdicts) == 0 && rep.Err != nil {
		fmt.Fprintln(w, v.paint("1", "Nothing was measured.")) // why follows on stderr
		return
	}
	for _, l := range screen.Wrap(screen.Clean(rep.Summary), v.width) {
		fmt.Fprintln(w, v.paint("1", l))
	}
	if v.o.replay != "" { // else it stands above, as it grew
		fmt.Fprintf(w, "\n%s\n", v.paint("1", "what was measured"))
		for _, d := range diagnose.History(rep) {
			v.table.print(v, &d)
		}
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
	if len(rep.Unseen) > 0 && len(rep.Verdicts) > 0 {
		fmt.Fprintf(w, "\n%s\n", v.paint("1", "what I could not see"))
		for _, u := range rep.Unseen {
			line("  · ", u)
		}
	}
	for _, n := range rep.Notices {
		line("note: ", n.Text)
	}
	if rep.Err != nil && diagnose.Conclusive(rep.Verdicts) {
		line("broke off: ", rep.Err.Text)
	}
}

// todo lists advice, of causes first, each once.
func (v *diagnoseView) todo(rep *result.Report, line func(head, text string)) {
	seen := map[string]bool{}
	first := true
	for _, x := range rep.Verdicts {
		if x.Code == diagnose.Inconclusive && rep.Err != nil {
			continue // first of all it must not break off
		}
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

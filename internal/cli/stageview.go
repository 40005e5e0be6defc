package cli

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/fullbore-net/fullbore/internal/method"
	"github.com/fullbore-net/fullbore/internal/render/screen"
	"github.com/fullbore-net/fullbore/internal/units"
	"github.com/fullbore-net/fullbore/result"
)

// stageView shows the steps of a method as they go on: on a terminal the line of the running one
// is drawn again with each report; piped, each is one line when it is over.
type stageView struct {
	e     *env
	shows bool // steps are shown
	draws bool // the running line may be drawn again
	color bool
	width int
	table stageTable
	// row prints a finished step instead of the table; nil = the table does.
	row func(v *stageView, d *method.Done)

	step method.Step
	from time.Time
	rate string // of the running step's last interval
}

// diagnoseWidth is of lines that nobody's terminal bounds; longer ones read badly.
const diagnoseWidth = 100

// newStageView makes the view; shows is whether a person reads it, plainLines that nothing may be
// drawn again.
func (e *env) newStageView(shows, plainLines bool) *stageView {
	v := &stageView{e: e, width: diagnoseWidth, color: e.Terminal && !e.NoColor}
	v.shows = shows
	v.draws = v.shows && e.Terminal && !plainLines
	if e.Terminal && e.Size != nil {
		if w, _ := e.Size(); w > 0 {
			v.width = min(max(w, 40), diagnoseWidth)
		}
	}
	v.table = newStageTable(v.width)
	return v
}

func (v *stageView) paint(code, s string) string {
	if !v.color || s == "" {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

// line prints text behind head, wrapped, the following lines under the first.
func (v *stageView) line(head, text string) {
	room := max(v.width-screen.Width(head), 30)
	for i, l := range screen.Wrap(screen.Clean(text), room) {
		if i > 0 {
			head = screen.Left("", screen.Width(head))
		}
		fmt.Fprintln(v.e.Out, strings.TrimRight(head+l, " "))
	}
}

func (v *stageView) begin(s method.Step) {
	v.step, v.from, v.rate = s, v.e.Now(), ""
	v.running()
}

// Event draws the running line again with the last interval's rate.
func (v *stageView) Event(ev result.Event) {
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
func (v *stageView) running() {
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

func (v *stageView) end(d *method.Done) {
	if !v.shows {
		return
	}
	if v.draws {
		fmt.Fprint(v.e.Out, "\r\x1b[K")
	}
	if v.row != nil {
		v.row(v, d)
		return
	}
	v.table.print(v, d)
}

package cli

import (
	"fmt"
	"strings"

	"github.com/guptarohit/asciigraph"

	"github.com/fullbore-net/fullbore/internal/conclude"
	"github.com/fullbore-net/fullbore/internal/method"
	"github.com/fullbore-net/fullbore/internal/render/screen"
	"github.com/fullbore-net/fullbore/internal/units"
	"github.com/fullbore-net/fullbore/result"
)

// sweepAside is the room behind a rate: "  sent again 0.02 %".
const sweepAside = 19

// sweepRow is the line of one step: the order is random, so each says its round.
func sweepRow(v *stageView, d *method.Done) {
	text := "  " + screen.Left("", 9)
	if d.Step.Round > 0 {
		text = "  " + screen.Left(fmt.Sprintf("round %d", d.Step.Round), 9)
	}
	title := min(max(v.width-len(text)-rateWidth-sweepAside, 16), 34)
	text += screen.Left(screen.Cut(d.Step.Title, title), title)
	switch {
	case d.Run == nil || !tells(d.Run):
		text += "not made"
	case len(d.Run.Sums) == 0 || d.Run.Test.ProbeOnly:
		delay, words := roundTripText(d.Run)
		text += screen.Right("", rateWidth) + "  " + strings.TrimSpace("round trip "+delay+" "+words)
	default:
		s := &d.Run.Sums[0]
		h := conclude.HeadlineOf(d.Run, s.Direction)
		text += screen.Right(units.BitRate(h.BPS+0.5).String(), rateWidth)
		if r, ok := method.RetransmitRatio(d.Run, s.Direction); ok && r > 0 {
			text += "  sent again " + share(r)
		}
		if !h.Basis.Arrived() {
			text += "  (sent; what arrived is not told)"
		}
	}
	if d.Err != nil {
		text += ": " + screen.Clean(d.Err.Text)
	}
	fmt.Fprintln(v.e.Out, strings.TrimRight(text, " "))
}

// sweepFinal is the table and the plot of each part, both knees, and what to set.
func sweepFinal(v *stageView, rep *result.Report) {
	w := v.e.Out
	if rep.Sweep == nil {
		return
	}
	for i, part := range rep.Sweep.Parts {
		var ps []result.Point
		for _, p := range rep.Curve {
			if p.Series == part.Series && p.Direction == part.Direction {
				ps = append(ps, p)
			}
		}
		if i > 0 {
			fmt.Fprintln(w)
		}
		sweepTable(v, &part, ps)
		sweepPlot(v, ps)
		axis := method.Axis(part.Axis)
		var knees []string
		name := func(what string, x float64, none string) {
			if x == 0 {
				knees = append(knees, what+" "+none)
				return
			}
			knees = append(knees, what+" "+settingText(axis, x))
		}
		name("knee (Kneedle)", part.Knee, "none")
		name("a doubling gains less than 5 % from", part.Marginal, "nowhere")
		name("best", part.Best, "none")
		name("cheapest within 3 %", part.Cheapest, "none")
		v.line("  ", strings.Join(knees, " · "))
		if part.HostKnee != "" {
			v.line("  ", "Of the knee: "+part.HostKnee+".")
		}
	}
	sweepAdvice(v, rep.Sweep)
}

const (
	sweepName = 17    // columns of a setting
	taken     = "  ←" // behind the setting to take
)

// fitting are the columns that a line of so much room has, of all that a sweep's table knows: the
// first in order always, and of the others first those that decide.
func fitting(widths, order []int, room int) []bool {
	shown := make([]bool, len(widths))
	for i, at := range order {
		if room -= 1 + widths[at]; room < 0 && i > 0 {
			break
		}
		shown[at] = true
	}
	return shown
}

// sweepTable has a line for each setting. On a narrow terminal it has fewer columns.
func sweepTable(v *stageView, part *result.SweepPart, ps []result.Point) {
	w := v.e.Out
	window := part.Axis == string(method.Window)
	columns := []string{"median", "range", "peak", "gain", "sent again", "CPU", "hot core"}
	widths := []int{11, 11, 11, 7, 10, 6, 8}
	order := []int{0, 4, 1, 3, 2, 6, 5}
	if window { // M-WSCAN's row; the rest where there is room
		columns = []string{"median", "range", "granted", "predicted", "of it", "sent again", "delay", "peak", "CPU"}
		widths = []int{11, 11, 10, 11, 7, 10, 7, 11, 6}
		order = []int{0, 5, 1, 3, 4, 6, 2, 7, 8}
	}
	shown := fitting(widths, order, v.width-sweepName-len("  ")-screen.Width(taken))
	line := func(first string, cells []string, mark string) string {
		text := "  " + screen.Left(first, sweepName)
		for i, c := range cells {
			if shown[i] {
				text += " " + screen.Right(c, widths[i])
			}
		}
		return strings.TrimRight(text+mark, " ")
	}
	heading := map[string]string{"streams": "streams", "window": "window", "length": "bytes per write"}[part.Axis]
	fmt.Fprintln(w, v.paint("2", line(heading, columns, "")))
	rate := func(p *float64) string {
		if p == nil {
			return "–"
		}
		return units.BitRate(*p + 0.5).String()
	}
	for _, p := range ps {
		spread := "–"
		if p.Low != nil && len(p.Values) > 1 && p.Y > 0 {
			spread = fmt.Sprintf("±%.1f %%", 50*(*p.High-*p.Low)/p.Y)
		}
		again, cpu, hot, gain, delay, granted, ofIt := "–", "–", "–", "–", "–", "–", "–"
		if p.Retransmits != nil {
			again = share(*p.Retransmits)
		}
		if p.CPU != nil {
			cpu = fmt.Sprintf("%.2f", *p.CPU)
		}
		if p.HotCore != nil {
			hot = fmt.Sprintf("%.0f %%", 100**p.HotCore)
		}
		if p.Gain != nil {
			gain = fmt.Sprintf("%+.0f %%", 100**p.Gain)
		}
		if p.BufferDelay != nil {
			delay = fmt.Sprintf("%+.0f %%", 100**p.BufferDelay)
		}
		if p.Granted != nil {
			granted = units.ByteSize(*p.Granted).IEC()
		}
		if p.Predicted != nil && *p.Predicted > 0 {
			ofIt = fmt.Sprintf("%.0f %%", 100*p.Y / *p.Predicted)
		}
		cells := []string{rate(&p.Y), spread, rate(p.Peak), gain, again, cpu, hot}
		if window {
			cells = []string{rate(&p.Y), spread, granted, rate(p.Predicted), ofIt, again, delay, rate(p.Peak), cpu}
		}
		mark := ""
		if p.X == part.Recommended {
			mark = taken
		}
		fmt.Fprintln(w, line(p.Setting, cells, mark))
	}
}

// sweepPlot draws the medians over the settings, which stand at equal distances.
func sweepPlot(v *stageView, ps []result.Point) {
	var y []float64
	var names []string
	most := 0.0
	for _, p := range ps {
		if p.X > 0 {
			y, names, most = append(y, p.Y), append(names, strings.TrimSuffix(strings.TrimSuffix(p.Setting, "s"), " stream")), max(most, p.Y)
		}
	}
	if len(y) < 3 || v.width < 60 {
		return
	}
	unit, word := 1e6, "Mbit/s"
	switch {
	case most >= 1e9:
		unit, word = 1e9, "Gbit/s"
	case most < 1e6:
		unit, word = 1e3, "kbit/s"
	}
	for i := range y {
		y[i] /= unit
	}
	step := min(10, (v.width-14)/len(y))
	width := step*(len(y)-1) + 1
	plot := asciigraph.Plot(y, asciigraph.Height(8), asciigraph.Width(width), asciigraph.LowerBound(0), asciigraph.Precision(precision(most/unit)))
	left := 0 // column of the first point: behind the axis
	fmt.Fprintln(v.e.Out)
	for l := range strings.SplitSeq(plot, "\n") {
		if at := strings.IndexAny(l, "┤┼"); at >= 0 {
			left = screen.Width(l[:at]) + 1
		}
		fmt.Fprintln(v.e.Out, strings.TrimRight("  "+l, " "))
	}
	labels := ""
	for i, n := range names {
		at := 2 + left + i*step - screen.Width(n)/2
		if pad := at - screen.Width(labels); pad > 0 || i == 0 {
			labels += strings.Repeat(" ", max(pad, 0)) + n
		}
	}
	fmt.Fprintf(v.e.Out, "%s  (%s)\n", labels, word)
}

func precision(most float64) uint {
	if most >= 100 {
		return 0
	}
	return 1
}

// sweepAdvice says what to take and which lines allow it.
func sweepAdvice(v *stageView, sw *result.Sweep) {
	w := v.e.Out
	var take []string
	if sw.Streams > 0 {
		take = append(take, counted(int(sw.Streams), "stream"))
	}
	if sw.Window > 0 {
		take = append(take, "a window of "+units.ByteSize(sw.Window).IEC())
	} else {
		for _, p := range sw.Parts {
			if p.Axis == string(method.Window) {
				take = append(take, "the system's own window")
				break
			}
		}
	}
	if sw.Length > 0 {
		take = append(take, "writes of "+units.ByteSize(sw.Length).IEC())
	}
	if len(take) == 0 {
		return
	}
	fmt.Fprintf(w, "\n%s\n", v.paint("1", "what to do"))
	v.line("  · ", "take "+strings.Join(take, ", "))
	if sw.Needs == 0 {
		return
	}
	if len(sw.Linux) == 0 {
		v.line("  · ", fmt.Sprintf("nothing need be set for it: each stream needs a window of %s, which systems as they come allow", units.ByteSize(sw.Needs).IEC()))
		return
	}
	text := fmt.Sprintf("allow windows of %s on both ends (least values; keep larger ones)", units.ByteSize(sw.Needs).IEC())
	if sw.Window == 0 {
		text = fmt.Sprintf("allow windows of %s, twice what is on the way, on both ends (least values; keep larger ones)", units.ByteSize(sw.Needs).IEC())
	}
	v.line("  · ", text+". Linux:")
	for _, l := range sw.Linux {
		fmt.Fprintln(w, "      "+l)
	}
	v.line("  · ", "Windows: "+strings.Join(sw.Windows, "; "))
}

package cli

import (
	"fmt"
	"strings"

	"github.com/fullbore-net/fullbore/internal/conclude"
	"github.com/fullbore-net/fullbore/internal/diagnose"
	"github.com/fullbore-net/fullbore/internal/method"
	"github.com/fullbore-net/fullbore/internal/render/screen"
	"github.com/fullbore-net/fullbore/internal/units"
	"github.com/fullbore-net/fullbore/result"
)

// stageTable is what a diagnosis measured, a line for each stage and direction: the evidence as
// figures. It grows while the stages are made.
type stageTable struct {
	titles int // width of the first column
	width  int
	headed bool
	lines  int                          // stages so far
	one    map[result.Direction]float64 // rate of the single stream, which others are held against
	// rate is what the command's own verdicts go by; nil = the run's headline.
	rate func(*method.Done, result.Direction) float64
}

// Widths of the columns behind the first.
const (
	rateWidth   = 11
	changeWidth = 7
	lostWidth   = 8
	delayWidth  = 9
	restWidth   = rateWidth + changeWidth + lostWidth + delayWidth + 4 + 2 // blanks before each, and the margin
)

func newStageTable(width int) stageTable {
	return stageTable{titles: min(max(width-restWidth, 16), 42), width: width, one: map[result.Direction]float64{}}
}

func (t *stageTable) line(title, rate, change, lost, delay string) string {
	title = screen.Left(screen.Cut(title, t.titles), t.titles)
	return strings.TrimRight("  "+title+" "+screen.Right(rate, rateWidth)+" "+screen.Right(change, changeWidth)+" "+screen.Right(lost, lostWidth)+" "+screen.Right(delay, delayWidth), " ")
}

// print writes the lines of a stage.
func (t *stageTable) print(v *stageView, d *method.Done) {
	w := v.e.Out
	if !t.headed {
		t.headed = true
		fmt.Fprintln(w, v.paint("2", t.line("stage", "rate", "change", "lost", "delay")))
	}
	defer func() { t.lines++ }()
	run := d.Run
	var remarks []string
	if d.Err != nil && (t.lines > 0 || run != nil && len(run.Sums) > 0) { // of the first stage the error itself says it
		what := "not made: "
		if run != nil && len(run.Sums) > 0 {
			what = "broke off: "
		}
		remarks = append(remarks, what+d.Err.Text)
	}
	if run == nil || len(run.Sums) == 0 || run.Test.ProbeOnly || strings.HasPrefix(d.Step.Name, "idle") {
		delay, text := roundTripText(run)
		if text != "" {
			remarks = append([]string{text}, remarks...)
		}
		lost := ""
		if delay == "" && len(remarks) == 0 {
			delay = "–"
		}
		fmt.Fprintln(w, t.line(d.Step.Title, "", "", lost, delay))
	} else {
		for i := range run.Sums {
			t.direction(v, d, &run.Sums[i], i == 0, &remarks)
		}
	}
	for _, r := range remarks {
		for _, l := range screen.Wrap(screen.Clean(r), max(t.width-6, 30)) {
			fmt.Fprintln(w, "      "+v.paint("2", l))
		}
	}
}

// direction writes the line of a direction of a stage.
func (t *stageTable) direction(v *stageView, d *method.Done, s *result.Sum, first bool, remarks *[]string) {
	run := d.Run
	h := conclude.HeadlineOf(run, s.Direction)
	if t.rate != nil {
		h.BPS = t.rate(d, s.Direction)
	}
	title := d.Step.Title
	if len(run.Sums) > 1 {
		title = "… " + string(s.Direction)
		if first {
			title = d.Step.Title + ", " + string(s.Direction)
		}
	}
	change := ""
	switch one := t.one[s.Direction]; {
	case strings.HasSuffix(d.Step.Name, "-1") && !strings.Contains(d.Step.Name, "police"):
		t.one[s.Direction] = h.BPS
	case one > 0 && h.BPS >= 2*one:
		change = fmt.Sprintf("×%.1f", h.BPS/one)
	case one > 0:
		change = fmt.Sprintf("%+.0f %%", 100*(h.BPS/one-1))
		if change == "-0 %" || change == "+0 %" {
			change = "="
		}
	}
	lost := ""
	if run.Test.Transport == "udp" {
		if l := conclude.LossOf(run, s.Direction); l != nil {
			lost = share(l.Ratio)
		} else if !h.Basis.Arrived() {
			*remarks = append(*remarks, "sent; what arrived is not told")
		}
	} else if r, ok := method.RetransmitRatio(run, s.Direction); ok {
		lost = share(r)
	} else if s.Sender != nil && s.Sender.Retransmits != nil {
		lost = conclude.Grouped(*s.Sender.Retransmits)
	}
	rate := units.BitRate(h.BPS + 0.5).String()
	switch {
	case h.BPS != 0:
	case d.Err != nil && d.Err.Interrupted:
		rate, change, lost = "–", "", ""
	case d.Err == nil && budgetUsed(run):
		rate, change, lost = "–", "", ""
		*remarks = append(*remarks, "not made: the bytes that were allowed (--max-bytes) were used up before its measured part began")
	}
	fmt.Fprintln(v.e.Out, t.line(title, rate, change, lost, delayText(run, s.Direction)))
}

// budgetUsed reports that a run's bytes were used up before its measured part began.
func budgetUsed(run *result.Run) bool {
	return run.Test.MaxBytes > 0 && run.Elapsed > 0 && run.Elapsed < run.Test.Omit+run.Test.Duration
}

// share is a ratio in a column of eight.
func share(r float64) string {
	switch p := 100 * r; {
	case r == 0:
		return "0"
	case p < 0.01:
		return fmt.Sprintf("%.0e", r)
	case p < 9.95:
		return fmt.Sprintf("%.2g %%", p)
	default:
		return fmt.Sprintf("%.0f %%", p)
	}
}

// delayText is what a load costs small packets (with a sign), else TCP's round trip; "" where nothing
// told.
func delayText(run *result.Run, dir result.Direction) string {
	s, above, known := diagnose.Delay(run, dir)
	switch {
	case !known:
		return ""
	case above:
		return "+" + conclude.Time(s)
	}
	return conclude.Time(s)
}

// roundTripText is what small packets on the empty path saw: for the column, and in words.
func roundTripText(run *result.Run) (delay, text string) {
	if run == nil {
		return "", ""
	}
	for i := range run.Probes {
		p := &run.Probes[i]
		switch {
		case p.Kind == "udp-echo" && p.RoundTrip != nil:
			return conclude.Time(p.RoundTrip.P50), ""
		case p.Kind == "udp-echo":
			return "", fmt.Sprintf("none of %d probes was answered", p.Sent)
		case p.Connect != nil:
			return conclude.Time(p.Connect.P50), ""
		case p.TCPMinRTT != nil:
			return conclude.Time(*p.TCPMinRTT), ""
		}
	}
	return "", ""
}

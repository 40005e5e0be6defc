package html

import (
	"fmt"

	"github.com/fullbore-net/fullbore/internal/render/svg"
	"github.com/fullbore-net/fullbore/result"
)

// sweepRows is how many settings a page shows of each curve; the document has all.
const sweepRows = 60

// sweepTables are the settings of each curve with what they carried and took.
func sweepTables(rep *result.Report) (out []table) {
	if rep.Sweep == nil {
		return nil
	}
	for i := range rep.Sweep.Parts {
		if t := sweepTable(rep, i); len(t.Rows) > 0 {
			out = append(out, t)
		}
	}
	return out
}

func sweepTable(rep *result.Report, at int) table {
	part := &rep.Sweep.Parts[at]
	window := part.Axis == "window"
	t := table{ID: fmt.Sprintf("settings-%d", at+1), Heading: fmt.Sprintf("Settings: %s, %s", partName(part.Axis), clean(part.Direction))}
	t.Head = []string{"setting", "median", "least … most", "best interval", "gain", "sent again", "CPU, cores", "busiest core"}
	if window {
		t.Head = []string{"window", "granted", "median", "least … most", "it allows", "of that", "sent again", "longer round trip", "best interval", "CPU, cores"}
	}
	for _, q := range rep.Curve {
		if q.Series != part.Series || q.Direction != part.Direction {
			continue
		}
		if len(t.Rows) == sweepRows {
			t.Text = "More settings are in the document."
			break
		}
		name := clean(q.Setting)
		if q.X == part.Recommended {
			name += " ← take"
		}
		span := "–"
		if q.Low != nil && q.High != nil && len(q.Values) > 1 {
			span = svg.BitRate.Format(*q.Low) + " … " + svg.BitRate.Format(*q.High)
		}
		cpu, again := "–", percent(q.Retransmits, "%.2g %%")
		if q.CPU != nil {
			cpu = fmt.Sprintf("%.2f", *q.CPU)
		}
		if !window {
			t.Rows = append(t.Rows, []string{name, svg.BitRate.Format(q.Y), span, rateOr(q.Peak), percent(q.Gain, "%+.0f %%"), again, cpu, percent(q.HotCore, "%.0f %%")})
			continue
		}
		granted, ofIt := "–", "–"
		if q.Granted != nil {
			granted = svg.Bytes.Format(float64(*q.Granted))
		}
		if q.Predicted != nil && *q.Predicted > 0 {
			ofIt = fmt.Sprintf("%.0f %%", 100*q.Y / *q.Predicted)
		}
		t.Rows = append(t.Rows, []string{name, granted, svg.BitRate.Format(q.Y), span, rateOr(q.Predicted), ofIt, again, percent(q.BufferDelay, "%+.0f %%"), rateOr(q.Peak), cpu})
	}
	if window && t.Text == "" {
		t.Text = "Granted is what the ends’ buffers hold at most. What a window allows is window × 8 ÷ round trip of the empty path, at most what the path was seen to carry."
	}
	return t
}

func partName(axis string) string {
	if name := map[string]string{"streams": "streams", "window": "window of a stream", "length": "bytes of a write"}[axis]; name != "" {
		return name
	}
	return clean(axis)
}

func rateOr(v *float64) string {
	if v == nil {
		return "–"
	}
	return svg.BitRate.Format(*v)
}

func percent(v *float64, format string) string {
	if v == nil {
		return "–"
	}
	return fmt.Sprintf(format, 100**v)
}

// sweepTodo is what to take and the lines that allow it, as the terminal has them.
func sweepTodo(s *result.Sweep) (out []adviceGroup) {
	var take []adviceLine
	add := func(format string, args ...any) { take = append(take, adviceLine{Text: fmt.Sprintf(format, args...)}) }
	scanned := false
	for _, p := range s.Parts {
		scanned = scanned || p.Axis == "window"
	}
	if s.Streams > 0 {
		add("Take %s.", plural(float64(s.Streams), "stream"))
	}
	switch {
	case s.Window > 0:
		add("Take a window of %s.", svg.Bytes.Format(float64(s.Window)))
	case scanned:
		add("Leave the window to the system.")
	}
	if s.Length > 0 {
		add("Write %s at a time.", svg.Bytes.Format(float64(s.Length)))
	}
	if len(take) == 0 {
		return nil
	}
	out = append(out, adviceGroup{Lines: take})
	if len(s.Linux) > 0 {
		g := adviceGroup{Where: "On both ends (Linux)", Lines: []adviceLine{{Text: fmt.Sprintf("Allow windows of %s; these are least values, keep larger ones.", svg.Bytes.Format(float64(s.Needs)))}}}
		g.Lines[0].Commands = cleaned(s.Linux)
		out = append(out, g)
	}
	if len(s.Windows) > 0 {
		out = append(out, adviceGroup{Where: "On both ends (Windows)", Lines: []adviceLine{{Commands: cleaned(s.Windows)}}})
	}
	return out
}

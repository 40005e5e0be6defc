package soak

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/fullbore-net/fullbore/internal/stats"
	"github.com/fullbore-net/fullbore/internal/units"
	"github.com/fullbore-net/fullbore/result"
)

// A limit that came late: the level fell by at least a tenth, stayed there, and both sides of it
// lasted at least lateLeast seconds.
const (
	lateRatio = 0.9
	lateLeast = 30.0
)

// findLate names the last shift of each direction when it is one to a lower level for good.
func (b *Book) findLate(s *result.Soak) {
	for i := range s.Ways {
		w := &s.Ways[i]
		n := len(w.Shifts)
		if n == 0 {
			continue
		}
		last := w.Shifts[n-1]
		length := float64(len(w.Rates)) * w.Step
		if last.Ratio <= 0 || last.Ratio > lateRatio || last.At < lateLeast || length-last.At < lateLeast {
			continue
		}
		last.Bytes = b.ways[w.Direction].series.before(last.At)
		last.Cause = b.machine.cause(last.At)
		w.Late = &last
	}
}

// before is the payload up to second at.
func (s *series) before(at float64) int64 {
	sum := 0.0
	for i, v := range s.bytes {
		if float64(i)*float64(s.step) >= at {
			break
		}
		sum += v
	}
	return int64(sum)
}

// cause compares this host on both sides of a time: "quota" when a CPU quota held the program
// only behind it, "thermal" when cores were slowed for their heat only then, "clock" when the clock
// fell by more than a twentieth; "" when the host tells of nothing.
func (m *machine) cause(at float64) string {
	var quota, mhz [2][]float64
	var slowed [2][2]*int64
	for i := range m.samples {
		x := &m.samples[i]
		side := 0
		if x.t > at {
			side = 1
		}
		if !math.IsNaN(x.throttled) {
			quota[side] = append(quota[side], x.throttled)
		}
		if !math.IsNaN(x.mhz) {
			mhz[side] = append(mhz[side], x.mhz)
		}
		if !math.IsNaN(x.throttles) {
			n := int64(x.throttles)
			count(&slowed[side], &n)
		}
	}
	before, ok1 := stats.Mean(quota[0])
	after, ok2 := stats.Mean(quota[1])
	if ok1 && ok2 && after > 0.05 && before < 0.02 {
		return "quota"
	}
	n, more := grown(slowed[0]), grown(slowed[1])
	if more != nil && *more > 0 && (n == nil || *n == 0) {
		return "thermal"
	}
	fast, ok1 := stats.Median(mhz[0])
	slow, ok2 := stats.Median(mhz[1])
	if ok1 && ok2 && slow < 0.95*fast {
		return "clock"
	}
	return ""
}

// Judge says whether the soak passed, by the rules of its head.
func (b *Book) Judge(s *result.Soak) []result.Item {
	items := []result.Item{}
	add := func(id string, ok bool, format string, args ...any) {
		i := result.Item{ID: id, Result: result.Pass, Reasons: []string{fmt.Sprintf(format, args...)}}
		if !ok {
			i.Result = result.Fail
		}
		items = append(items, i)
	}
	rules := b.Head.Judge
	for i := range s.Ways {
		w := &s.Ways[i]
		a := w.Figures.Availability
		if a == nil {
			items = append(items, result.Item{ID: "availability", Result: result.Inconclusive, Reasons: []string{fmt.Sprintf("%s: nothing was measured for long enough", w.Direction)}})
			continue
		}
		add("availability", *a >= rules.Availability, "%s: %s of the seconds carried at least 90 %% of the usual rate, wanted %s", w.Direction, percent(*a), percent(rules.Availability))
	}
	longest := 0.0
	for _, o := range s.Outages {
		longest = max(longest, o.Length)
	}
	if len(s.Outages) == 0 {
		add("outages", true, "no outage of a second or more")
	} else {
		add("outages", longest <= rules.Outage, "%s, the longest of %s, allowed are %s", counted(len(s.Outages), "outage"), seconds(longest), seconds(rules.Outage))
	}
	for i := range s.Ways {
		w := &s.Ways[i]
		if w.Trend == nil {
			continue
		}
		t := w.Trend
		days := s.Length / 86400
		falls := t.P <= 0.05 && math.Abs(t.Slope) > rules.Slope
		// A slope for each day that a soak of minutes shows is no change of a percent yet.
		if falls && math.Abs(t.Slope)*min(days, 1) <= rules.Slope {
			add("trend", true, "%s: it changes by %s over the soak (p = %.2g): too little to call it a trend", w.Direction, signed(t.Slope*days), t.P)
			continue
		}
		add("trend", !falls, "%s: %s a day (p = %.2g), allowed are %s", w.Direction, signed(t.Slope), t.P, percent(rules.Slope))
	}
	if m := s.Machine; m != nil && m.Growth != nil {
		add("memory", *m.Growth <= rules.Growth, "this program's memory changed by %s, from %s to %s, allowed are +%s", signed(*m.Growth), units.ByteSize(*m.FirstMemory), units.ByteSize(*m.LastMemory), percent(rules.Growth))
	}
	return items
}

func percent(share float64) string {
	text := fmt.Sprintf("%.3f", 100*share)
	return strings.TrimRight(strings.TrimRight(text, "0"), ".") + " %"
}

func signed(share float64) string { return fmt.Sprintf("%+.2g %%", 100*share) }

func counted(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%d %ss", n, word)
}

// seconds prints a length: 2.34 s, 1h3m5s.
func seconds(s float64) string {
	if s < 60 {
		return fmt.Sprintf("%.1f s", s)
	}
	return time.Duration(math.Round(s) * float64(time.Second)).String()
}

// Seconds is how texts about a soak print a length.
func Seconds(s float64) string { return seconds(s) }

// Percent is how they print a share.
func Percent(share float64) string { return percent(share) }

// Notices are what the reader must know: those of the tests, each kind once, and what follows from
// the whole.
func (b *Book) Notices(s *result.Soak) []result.Notice {
	out := []result.Notice{}
	times := map[string]int{}
	for _, n := range b.notes {
		times[n.Notice.Code]++
	}
	for _, n := range b.notes {
		k := times[n.Notice.Code]
		if k == 0 {
			continue
		}
		times[n.Notice.Code] = 0
		x := n.Notice
		if k > 1 {
			x.Text += fmt.Sprintf(" (%d times, first after %s)", k, seconds(n.T))
		}
		out = append(out, x)
	}
	for i := range s.Ways {
		w := &s.Ways[i]
		if l := w.Late; l != nil {
			out = append(out, result.Notice{Code: "late-rate-limit", Level: result.Warn, Text: lateText(w, l)})
		}
		if p := w.Period; p != nil {
			out = append(out, result.Notice{Code: "periodic-rate", Level: result.Info, Text: fmt.Sprintf(
				"%s: the rate has a pattern that repeats each %s (autocorrelation %.2f): look for a job, a backup or a poller with that period", w.Direction, seconds(p.Period), p.R)})
		}
	}
	if b.left > 0 {
		out = append(out, result.Notice{Code: "soak-list-full", Level: result.Warn, Text: fmt.Sprintf(
			"%d outages, gaps or notices are in the record only: the lists hold %d", b.left, maxList)})
	}
	return out
}

func lateText(w *result.SoakWay, l *result.SoakShift) string {
	usual := w.Levels[0].Reference
	text := fmt.Sprintf("%s: after %s and %s of payload the rate fell to %s of what it was (about %s → %s) and stayed there: ",
		w.Direction, seconds(l.At), units.ByteSize(l.Bytes), percent(round(l.Ratio, 100)), units.BitRate(usual*l.Before), units.BitRate(usual*l.After))
	switch l.Cause {
	case "quota":
		return text + "a CPU quota holds this program since then"
	case "thermal":
		return text + "cores of this host are slowed for their heat since then"
	case "clock":
		return text + "this host's processor runs at a lower clock since then"
	}
	return text + "a credit that was used up (burst credits of a cloud instance, a token bucket, a volume quota), or the other end's heat; this host tells of nothing"
}

// Summary is the closing sentence.
func (b *Book) Summary(s *result.Soak, items []result.Item) string {
	if len(s.Ways) == 0 {
		return "Nothing was measured."
	}
	var parts []string
	for i := range s.Ways {
		w := &s.Ways[i]
		f := &w.Figures
		text := string(w.Direction)
		if f.Median != nil {
			text += fmt.Sprintf(" %s typical", units.BitRate(*f.Median))
		}
		if f.Availability != nil {
			text += fmt.Sprintf(", %s available", percent(*f.Availability))
		}
		parts = append(parts, text)
	}
	text := fmt.Sprintf("In %s: %s; ", seconds(s.Length), strings.Join(parts, ", "))
	switch n := len(s.Outages); n {
	case 0:
		text += "no outage"
	default:
		longest := s.Outages[0]
		for _, o := range s.Outages {
			if o.Length > longest.Length {
				longest = o
			}
		}
		text += fmt.Sprintf("%s, the longest of %s after %s", counted(n, "outage"), seconds(longest.Length), seconds(longest.Start))
	}
	for i := range s.Ways {
		if l := s.Ways[i].Late; l != nil {
			text += fmt.Sprintf("; %s fell to %s after %s and stayed there", s.Ways[i].Direction, percent(round(l.Ratio, 100)), seconds(l.At))
		}
	}
	var failed []string
	for _, i := range items {
		if i.Result == result.Fail && (len(failed) == 0 || failed[len(failed)-1] != i.ID) {
			failed = append(failed, i.ID)
		}
	}
	if len(failed) > 0 {
		return text + ". Not passed: " + strings.Join(failed, ", ") + "."
	}
	return text + ". Passed."
}

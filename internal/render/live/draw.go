package live

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"charm.land/lipgloss/v2"

	"github.com/fullbore-net/fullbore/internal/conclude"
	"github.com/fullbore-net/fullbore/internal/render/screen"
	"github.com/fullbore-net/fullbore/internal/stats"
	"github.com/fullbore-net/fullbore/internal/units"
	"github.com/fullbore-net/fullbore/result"
)

// theme colours the view; the zero one leaves text alone.
type theme struct {
	strong, figure, faint, bar, warn, fault lipgloss.Style
}

// colors uses the terminal's own sixteen, which suit its ground. Terminals with none get
// none: bubbletea drops what they cannot show.
func colors() theme {
	s := lipgloss.NewStyle
	return theme{
		strong: s().Bold(true), figure: s().Bold(true).Foreground(lipgloss.Cyan), faint: s().Faint(true),
		bar: s().Foreground(lipgloss.Cyan), warn: s().Foreground(lipgloss.Yellow), fault: s().Bold(true).Foreground(lipgloss.Red),
	}
}

// span is text in one style; line is spans side by side. rank says how dear a line is: when
// the screen is too low, the highest ranks go first. 0 stays.
type span struct {
	text  string
	style lipgloss.Style
}

type line struct {
	rank  int
	spans []span
}

// Ranks, from the dearest to the first to go.
const (
	always = iota
	rankWarning
	rankTCP
	rankCPU
	rankStreams
	rankNote
	rankPath
	rankBlank
)

// chartHeight is the most lines a direction's chart grows to.
const chartHeight = 8

// draw returns the lines of a screen of that size. It is pure: same arguments, same lines.
func draw(s state, width, height int, now time.Time, stops int, th theme) []string {
	if width <= 0 || height <= 0 {
		return nil
	}
	var lines []line
	add := func(rank int, spans ...span) { lines = append(lines, line{rank, spans}) }
	blank := func() { add(rankBlank) }

	add(always, span{title(&s), th.strong})
	add(always, progress(&s, width, now, stops, th)...)
	charts := 0
	for i := range s.ways {
		if w := &s.ways[i]; w.used && (s.phase >= running) {
			blank()
			lines = append(lines, wayLines(&s, w, th)...)
			charts++
		}
	}
	blank()
	lines = append(lines, cpuLines(&s, th)...)
	if s.path != "" {
		add(rankPath, span{"path  " + s.path, th.faint})
	}
	if len(s.notices) > 0 {
		blank()
		lines = append(lines, noticeLines(&s, th)...)
	}
	if s.err != nil {
		add(always, span{screen.Clean(s.err.Text), th.fault})
	}
	foot := line{rankPath, []span{{footer(s.phase, stops), th.faint}}}

	lines = fit(lines, height-1)
	free := height - 1 - len(lines)
	out := make([]string, 0, height)
	for _, l := range lines {
		if l.chart() {
			out = append(out, l.draw(s, width, 1+min(free/charts, chartHeight-1), th)...)
			continue
		}
		out = append(out, render(l, width))
	}
	for len(out) < height-1 {
		out = append(out, "")
	}
	return append(out, render(foot, width))
}

// chartMark stands in a line's first span for the chart of a direction, whose height is
// known only when all other lines are.
const chartMark = "\x00chart"

func (l line) chart() bool { return len(l.spans) > 0 && strings.HasPrefix(l.spans[0].text, chartMark) }

// draw draws the chart that a mark stands for: the greatest value at its top left.
func (l line) draw(s state, width, height int, th theme) []string {
	w := &s.ways[l.spans[0].text[len(chartMark)]-'0']
	t := w.best()
	values := slices.Clone(t.history.values)
	if t.history.n > 0 {
		values = append(values, t.history.sum/float64(t.history.n))
	}
	top := 0.0
	for _, v := range values {
		top = max(top, v)
	}
	const gutter = 2 + 11 + 1
	cells := width - gutter - 1
	out := screen.Chart(stretch(values, cells, s.head.Test), cells, height, top)
	for i := range out {
		scale := ""
		switch {
		case i == 0:
			scale = rate(top)
		case i == height-1:
			scale = "0"
		}
		out[i] = render(line{spans: []span{{"  " + screen.Right(scale, 11) + " ", th.faint}, {out[i], th.bar}}}, width)
	}
	if len(out) == 0 {
		out = []string{""}
	}
	return out
}

// stretch widens each interval so that a run of known length fills the cells when it ends.
func stretch(values []float64, cells int, t result.Test) []float64 {
	if t.Duration <= 0 || t.Interval <= 0 {
		return values
	}
	each := int(float64(cells) * t.Interval / (t.Duration + t.Omit))
	if each < 2 {
		return values
	}
	out := make([]float64, 0, len(values)*each)
	for _, v := range values {
		for range each {
			out = append(out, v)
		}
	}
	return out
}

// fit drops the least dear lines, the lowest on the screen first, until n are left.
func fit(lines []line, n int) []line {
	for len(lines) > max(n, 1) {
		worst := len(lines) - 1
		for i := len(lines) - 1; i >= 0; i-- {
			if lines[i].rank > lines[worst].rank {
				worst = i
			}
		}
		lines = slices.Delete(lines, worst, worst+1)
	}
	return lines
}

// render styles a line and cuts it to width.
func render(l line, width int) string {
	var b strings.Builder
	for _, s := range l.spans {
		text := screen.Cut(s.text, width)
		if text == "" {
			continue
		}
		width -= screen.Width(text)
		b.WriteString(s.style.Render(text))
	}
	return b.String()
}

// best is the track that stands for a direction: the receiver's where it is known.
func (w *way) best() *track {
	if w.received.known || !w.sent.known {
		return &w.received
	}
	return &w.sent
}

func title(s *state) string {
	if s.phase == connecting {
		return "fullbore"
	}
	t := s.head.Test
	name := strings.ToUpper(t.Transport)
	if t.MPTCP {
		name = "MPTCP"
	}
	text := fmt.Sprintf("fullbore  %s  %s, %s", conclude.EndName(&s.head, s.head.End.Other()), name, count(max(t.Streams, 1), "stream"))
	if s.ways[0].used && s.ways[1].used {
		text += " each way"
	}
	if t.Bitrate > 0 {
		text += " at " + rate(float64(t.Bitrate))
	}
	return screen.Clean(text)
}

// progress is the bar with what is left of the test.
func progress(s *state, width int, now time.Time, stops int, th theme) []span {
	switch {
	case s.phase == connecting:
		return []span{{"connecting", th.faint}}
	case s.phase == agreed:
		return []span{{"opening streams", th.faint}}
	case s.phase == broken:
		return []span{{"broke off", th.fault}}
	case s.phase == collecting:
		return []span{{"done", th.faint}}
	case stops > 0:
		return []span{{"stopping", th.warn}}
	}
	t := s.head.Test
	elapsed := s.elapsed
	if !s.at.IsZero() {
		elapsed += max(now.Sub(s.at).Seconds(), 0)
	}
	total := t.Duration + t.Omit
	var share float64
	var text string
	switch {
	case t.Duration > 0:
		elapsed = min(elapsed, total)
		share = elapsed / total
		text = fmt.Sprintf("%s of %s, %s left", clock(elapsed), clock(total), clock(total-elapsed))
	case t.Bytes > 0:
		share = float64(s.bytes) / float64(t.Bytes)
		text = fmt.Sprintf("%s of %s, %s", units.ByteSize(s.bytes), units.ByteSize(t.Bytes), clock(elapsed))
	case t.Blocks > 0 && t.BlockSize > 0:
		all := t.Blocks * int64(t.BlockSize)
		share = float64(s.bytes) / float64(all)
		text = fmt.Sprintf("%s of %s, %s", units.ByteSize(s.bytes), units.ByteSize(all), clock(elapsed))
	default:
		return []span{{clock(elapsed) + ", until you stop it", th.faint}}
	}
	if s.warming {
		text = "warm-up, " + text
	}
	return []span{{screen.Bar(share, max(width-screen.Width(text)-3, 0)), th.bar}, {"  " + text, th.faint}}
}

// clock prints seconds as people read them on a bar: 8.4 s, 2:05, 1:02:03.
func clock(s float64) string {
	if s < 100 {
		return fmt.Sprintf("%.1f s", s)
	}
	n := int(s)
	if n < 3600 {
		return fmt.Sprintf("%d:%02d", n/60, n%60)
	}
	return fmt.Sprintf("%d:%02d:%02d", n/3600, n/60%60, n%60)
}

// wayLines are the lines of one direction.
func wayLines(s *state, w *way, th theme) []line {
	i := 0
	if w == &s.ways[1] {
		i = 1
	}
	lines := []line{{always, []span{{screen.Clean(w.from + " → " + w.to), th.strong}}}}
	t := w.best()
	if !t.known {
		return append(lines, line{always, []span{{"  waiting for the first interval", th.faint}}})
	}
	sent, received := "sent", "received"
	udp := s.head.Test.Transport == "udp"
	if udp {
		sent, received = "offered", "delivered"
	}
	spans := []span{}
	if w.received.known {
		spans = append(spans, span{"  " + rate(w.received.now), th.figure}, span{" " + received, lipgloss.Style{}})
	}
	if w.sent.known {
		spans = append(spans, span{"  " + rate(w.sent.now), th.strong}, span{" " + sent, lipgloss.Style{}})
	}
	if !w.received.known {
		spans = append(spans, span{", " + received + " is told at the end", th.faint})
	}
	if t.seconds > 0 && t.countedAny {
		spans = append(spans, span{fmt.Sprintf("   mean %s (%s)", rate(result.Rate(t.bytes, t.seconds)), conclude.Span(t.least, t.most)), th.faint})
	}
	lines = append(lines, line{always, spans}, line{always, []span{{fmt.Sprintf("%s%d", chartMark, i), lipgloss.Style{}}}})
	if text := transportText(w, udp); text != "" {
		style := lipgloss.Style{}
		if w.burst != nil && *w.burst > 0 || w.losing {
			style = th.warn
		}
		lines = append(lines, line{rankTCP, []span{{"  " + text, style}}})
	}
	if len(w.streams) > 1 {
		q, _ := stats.Quantiles(w.streams, 0, 0.5, 1)
		text := fmt.Sprintf("  streams %s  %s, median %s", screen.Spark(w.streams, 24, q[2]), conclude.Span(q[0], q[2]), rate(q[1]))
		lines = append(lines, line{rankStreams, []span{{text, lipgloss.Style{}}}})
	}
	return lines
}

// transportText is retransmits, round trip and window, or loss and jitter.
func transportText(w *way, udp bool) string {
	var parts []string
	if udp {
		if w.lost != nil && w.packets != nil {
			part := "0 %"
			if *w.packets > 0 {
				part = fmt.Sprintf("%.3g %%", 100*float64(*w.lost)/float64(*w.packets))
			}
			parts = append(parts, fmt.Sprintf("lost %d of %d (%s)", *w.lost, *w.packets, part))
		}
		if w.jitter != nil {
			parts = append(parts, fmt.Sprintf("jitter %.3g ms", *w.jitter*1000))
		}
		if w.pdv != nil {
			parts = append(parts, fmt.Sprintf("PDV p99 %.3g ms", *w.pdv*1000))
		}
		return strings.Join(parts, "   ")
	}
	if w.retrans != nil && w.burst != nil {
		parts = append(parts, fmt.Sprintf("retransmits %d (+%d)", *w.retrans, *w.burst))
	}
	if w.rtt > 0 {
		parts = append(parts, "RTT "+micros(w.rtt))
	}
	if w.cwnd > 0 {
		parts = append(parts, "cwnd "+units.ByteSize(w.cwnd).IEC())
	}
	return strings.Join(parts, "   ")
}

// cpuLines show both ends' processor use, with a bar of the fullest core.
func cpuLines(s *state, th theme) []line {
	var out []line
	wide := 0
	for _, e := range []result.End{result.Client, result.Server} {
		wide = max(wide, screen.Width(screen.Clean(conclude.EndName(&s.head, e))))
	}
	for i, e := range []result.End{result.Client, result.Server} {
		l := s.cpu[i]
		if l.process == nil && l.cores == 0 {
			continue
		}
		label := "      "
		if len(out) == 0 {
			label = "CPU   "
		}
		spans := []span{{label + screen.Left(screen.Clean(conclude.EndName(&s.head, e)), wide), lipgloss.Style{}}}
		if l.process != nil {
			spans = append(spans, span{fmt.Sprintf("  %4.0f %% of a core", *l.process), lipgloss.Style{}})
		}
		if l.cores > 0 {
			style := th.bar
			if l.busy >= 0.95 {
				style = th.warn
			}
			text := fmt.Sprintf(" core %d at %.0f %%", l.core, 100*l.busy)
			if l.softirq >= 0.1 {
				text += fmt.Sprintf(" (softirq %.0f)", 100*l.softirq)
			}
			if l.steal >= 0.01 {
				text += fmt.Sprintf(" steal %.0f %%", 100*l.steal)
			}
			spans = append(spans, span{"  " + screen.Bar(l.busy, 10), style}, span{text, lipgloss.Style{}})
		}
		out = append(out, line{rankCPU, spans})
	}
	return out
}

// noticeLines lists the warnings first, the newest of each on top.
func noticeLines(s *state, th theme) []line {
	var out []line
	for _, level := range []result.Level{result.Warn, result.Info} {
		for _, n := range slices.Backward(s.notices) {
			if n.Level != level {
				continue
			}
			if level == result.Warn {
				out = append(out, line{rankWarning, []span{{"! " + screen.Clean(n.Code+": "+n.Text), th.warn}}})
			} else {
				out = append(out, line{rankNote, []span{{"· " + screen.Clean(n.Code+": "+n.Text), th.faint}}})
			}
		}
	}
	if s.hidden > 0 {
		out = append(out, line{rankNote, []span{{fmt.Sprintf("· and %d earlier ones, listed at the end", s.hidden), th.faint}}})
	}
	return out
}

func footer(p phase, stops int) string {
	switch {
	case p >= collecting:
		return ""
	case stops > 0:
		return "once more: leave without waiting for the other end"
	}
	return "q or Ctrl-C ends the test and prints what was measured"
}

func pathText(t *result.TCPInfo, sender bool) string {
	var parts []string
	if t.MSS > 0 {
		parts = append(parts, fmt.Sprintf("MSS %d", t.MSS))
	}
	if t.PMTU > 0 {
		parts = append(parts, fmt.Sprintf("path MTU %d", t.PMTU))
	}
	if !sender { // the rest describes what this socket would send
		return strings.Join(parts, ", ")
	}
	if t.MinRTT != nil && *t.MinRTT > 0 {
		parts = append(parts, "least RTT "+micros(*t.MinRTT))
	}
	if t.SndWnd != nil && *t.SndWnd > 0 {
		parts = append(parts, "peer's window "+units.ByteSize(*t.SndWnd).IEC())
	}
	return strings.Join(parts, ", ")
}

func rate(bps float64) string { return units.BitRate(bps + 0.5).String() }

func micros(us int64) string { return units.FormatDuration(time.Duration(us) * time.Microsecond) }

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

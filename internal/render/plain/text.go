package plain

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/fullbore-net/fullbore/internal/render/screen"
	"github.com/fullbore-net/fullbore/internal/units"
	"github.com/fullbore-net/fullbore/result"
)

// SGR codes (ECMA-48 §8.3.117) that read well on dark and light grounds.
const (
	bold   = "1"
	dim    = "2"
	red    = "31"
	yellow = "33"
)

// printer writes whole lines until the first error.
type printer struct {
	w     io.Writer
	color bool
	width int // where prose is wrapped; 0 = never
	err   error
}

func newPrinter(w io.Writer, o Options) printer { return printer{w: w, color: o.Color, width: o.Width} }

// prose prints text after head, wrapped to the width with the following lines indented
// below the text's beginning. code colours head, or the text where there is no head.
func (p *printer) prose(head, code, text string) {
	lines := []string{text}
	if room := p.width - screen.Width(head); p.width > 0 && room > 0 {
		lines = screen.Wrap(text, max(room, 20))
	}
	for i, l := range lines {
		switch {
		case head == "" && code != "":
			l = p.paint(code, l)
		case i == 0 && code != "":
			l = p.paint(code, head) + l
		case i == 0:
			l = head + l
		default:
			l = screen.Left("", screen.Width(head)) + l
		}
		p.line(l)
	}
}

func (p *printer) line(s string) {
	if p.err == nil {
		_, p.err = io.WriteString(p.w, strings.TrimRight(s, " ")+"\n")
	}
}

func (p *printer) paint(code, s string) string {
	if !p.color || s == "" {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

func rate(bps float64) string { return units.BitRate(bps + 0.5).String() }

func size(bytes int64) string { return units.ByteSize(bytes).String() }

func iec(bytes int64) string { return units.ByteSize(bytes).IEC() }

func duration(s float64) string { return units.FormatDuration(time.Duration(s * 1e9)) }

// millis prints a round trip: always in ms, so that a column can be compared at a glance.
func millis(us int64) string { return number(float64(us)/1000) + " ms" }

func number(ms float64) string {
	switch {
	case ms > 0 && ms < 0.0995:
		return fmt.Sprintf("%.3f", ms)
	case ms < 9.995:
		return fmt.Sprintf("%.2f", ms)
	case ms < 99.95:
		return fmt.Sprintf("%.1f", ms)
	}
	return fmt.Sprintf("%.0f", ms)
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// optional prints a figure, or the dash of an unknown one.
func optional[T any](v *T, format func(T) string) string {
	if v == nil {
		return screen.Unknown
	}
	return format(*v)
}

func whole(v int64) string { return fmt.Sprintf("%d", v) }

// share prints part of whole in per cent: two digits, more where it is small.
func share(part, of int64) string {
	if of <= 0 {
		return screen.Unknown
	}
	p := 100 * float64(part) / float64(of)
	switch {
	case p == 0:
		return "0 %"
	case p < 0.001:
		return "< 0.001 %"
	case p < 0.0995:
		return fmt.Sprintf("%.2g %%", p)
	case p < 9.95:
		return fmt.Sprintf("%.1f %%", p)
	}
	return fmt.Sprintf("%.0f %%", p)
}

// table prints rows of cells in columns as wide as their widest cell. Columns named in
// left are aligned to the left.
type table struct {
	rows [][]string
	left map[int]bool
}

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

func (t *table) lines() []string {
	var widths []int
	for _, row := range t.rows {
		for i, c := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], screen.Width(c))
		}
	}
	out := make([]string, len(t.rows))
	for k, row := range t.rows {
		cells := make([]string, len(row))
		for i, c := range row {
			if t.left[i] {
				cells[i] = screen.Left(c, widths[i])
			} else {
				cells[i] = screen.Right(c, widths[i])
			}
		}
		out[k] = strings.TrimRight(strings.Join(cells, "  "), " ")
	}
	return out
}

// pathOf describes the path as the kernel of a sending end sees it in its first row.
func pathOf(rows ...*result.Interval) string {
	for _, row := range rows {
		if row == nil {
			continue
		}
		for _, s := range row.Streams {
			if s.Sender && s.TCP != nil {
				return pathText(s.TCP.MSS, s.TCP.PMTU, s.TCP.RTT, s.TCP.MinRTT)
			}
		}
	}
	for _, row := range rows {
		if row == nil {
			continue
		}
		for _, s := range row.Streams {
			if s.TCP != nil { // a receiver knows its sizes; its round trip is the handshake's
				return pathText(s.TCP.MSS, s.TCP.PMTU, 0, nil)
			}
		}
	}
	return ""
}

func pathText(mss, pmtu, rtt int64, least *int64) string {
	var parts []string
	if mss > 0 {
		parts = append(parts, fmt.Sprintf("MSS %d", mss))
	}
	if pmtu > 0 {
		parts = append(parts, fmt.Sprintf("path MTU %d", pmtu))
	}
	if rtt > 0 {
		text := "RTT " + millis(rtt)
		if least != nil && *least > 0 {
			text += fmt.Sprintf(" (least %s)", millis(*least))
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, ", ")
}

// windowText tells the socket buffers in use at the recording end: what the kernel
// granted, and what of it holds payload.
func windowText(run *result.Run) string {
	if len(run.Streams) == 0 || run.Streams[0].Buffers == nil {
		return ""
	}
	b := run.Streams[0].Buffers
	parts := []string{}
	if b.SndGranted > 0 {
		parts = append(parts, fmt.Sprintf("send %s granted, %s usable", iec(b.SndGranted), iec(b.SndUsable)))
	}
	if b.RcvGranted > 0 {
		parts = append(parts, fmt.Sprintf("receive %s granted, %s usable", iec(b.RcvGranted), iec(b.RcvUsable)))
	}
	if len(parts) == 0 {
		return ""
	}
	text := strings.Join(parts, "; ")
	if b.RequestedBytes > 0 {
		return fmt.Sprintf("%s asked for; here: %s", iec(b.RequestedBytes), text)
	}
	return "here: " + text
}

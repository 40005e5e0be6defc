// Package screen has the small tools that outputs for people share: making foreign text
// harmless, cutting and padding it to columns, bars made of characters.
package screen

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Unknown stands where a figure is not known.
const Unknown = "–"

// Clean makes text from elsewhere (peers, files, the environment) safe to print on a
// terminal and in one line: control characters, escape sequences' first bytes, line
// and paragraph separators, direction overrides and bytes that are no UTF-8 become
// U+FFFD; tabs and line ends become blanks.
func Clean(s string) string {
	if isClean(s) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		switch {
		case r == '\n' || r == '\r' || r == '\t':
			b.WriteByte(' ')
		case harmful(r):
			b.WriteRune(utf8.RuneError)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

func isClean(s string) bool {
	if !utf8.ValidString(s) {
		return false
	}
	for _, r := range s {
		if harmful(r) {
			return false
		}
	}
	return true
}

// harmful: C0, DEL, C1, separators, and format characters (bidi overrides, zero width).
func harmful(r rune) bool {
	return unicode.IsControl(r) || r == '\u2028' || r == '\u2029' || unicode.Is(unicode.Cf, r)
}

// Width is the number of characters of s. Host names, numbers and our own words have one
// column each.
func Width(s string) int { return utf8.RuneCountInString(s) }

// Left pads s on the right to n columns.
func Left(s string, n int) string { return s + blanks(n-Width(s)) }

// Right pads s on the left to n columns.
func Right(s string, n int) string { return blanks(n-Width(s)) + s }

func blanks(n int) string { return strings.Repeat(" ", max(n, 0)) }

// Cut shortens s to n columns, an ellipsis in place of what is missing.
func Cut(s string, n int) string {
	if Width(s) <= n {
		return s
	}
	if n <= 0 {
		return ""
	}
	r := []rune(s)
	return string(r[:n-1]) + "…"
}

// Wrap breaks s at blanks into lines of at most width columns; a longer word has a line
// of its own, uncut.
func Wrap(s string, width int) []string {
	var lines []string
	line := ""
	for word := range strings.FieldsSeq(s) {
		switch {
		case line == "":
			line = word
		case Width(line)+1+Width(word) <= width:
			line += " " + word
		default:
			lines = append(lines, line)
			line = word
		}
	}
	if line != "" {
		lines = append(lines, line)
	}
	return lines
}

// levels of a spark line, an eighth of a cell each.
var levels = []rune("▁▂▃▄▅▆▇█")

// Spark draws values as one line of at most width cells, 0 at the bottom and top as a
// full cell. More values than cells are shown as the mean of those that share a cell, so
// the whole run stays in view. A top that is not positive means the largest value.
func Spark(values []float64, width int, top float64) string {
	if len(values) == 0 || width <= 0 {
		return ""
	}
	return Chart(values, width, 1, top)[0]
}

// Chart is Spark with several lines, the top one first, all as wide as there are values to
// show. The lowest line is never blank, so that a time without anything stays visible.
func Chart(values []float64, width, height int, top float64) []string {
	if width <= 0 || height <= 0 {
		return nil
	}
	values = Shrink(values, width)
	if top <= 0 {
		for _, v := range values {
			top = max(top, v)
		}
	}
	lines := make([]string, height)
	for row := range height {
		floor := (height - 1 - row) * len(levels) // eighths below this line
		var b strings.Builder
		for _, v := range values {
			eighths := 0
			if top > 0 && v > 0 {
				eighths = min(int(v/top*float64(height*len(levels)))+1, height*len(levels))
			}
			switch n := eighths - floor; {
			case n > 0:
				b.WriteRune(levels[min(n, len(levels))-1])
			case row == height-1:
				b.WriteRune(levels[0])
			default:
				b.WriteByte(' ')
			}
		}
		lines[row] = b.String()
	}
	return lines
}

// Shrink returns at most n values: means over stretches of nearly equal length.
func Shrink(values []float64, n int) []float64 {
	if len(values) <= n {
		return values
	}
	out := make([]float64, n)
	for i := range out {
		part := values[i*len(values)/n : (i+1)*len(values)/n]
		for _, v := range part {
			out[i] += v / float64(len(part))
		}
	}
	return out
}

// Bar draws a share, 0..1, as width cells.
func Bar(share float64, width int) string {
	if width <= 0 {
		return ""
	}
	n := int(min(max(share, 0), 1)*float64(width) + 0.5)
	return strings.Repeat("━", n) + strings.Repeat("─", width-n)
}

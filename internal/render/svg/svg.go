// Package svg draws plots as SVG text: panels of lines, steps, columns and points above one
// another over a common axis, heat maps, horizontal bars.
//
// The same input gives the same bytes. Colours are classes and CSS variables (CSS), so that
// one drawing serves light, dark and print; series differ in dash and colour, of a palette
// that colour-blind readers tell apart. Text is never laid over text: what does not fit is
// left out (ticks), shortened (labels) or wrapped (legends). Each drawing has a title and a
// description for those who cannot see it.
package svg

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode"
)

// DefaultWidth is the width of a drawing in its own units. It is meant to be shown at
// 350 to 700 CSS pixels; text of fontSize is legible at both.
const DefaultWidth = 460

const (
	fontSize   = 13.0
	lineHeight = 17.0
	edge       = 8.0 // free space at the right
)

// CSS is the style sheet of all drawings: put it into the page once. Variables are set on
// :root for light, and for dark screens where the reader asks for that; print is light.
const CSS = `:root{--fg:#1b2430;--dim:#54606e;--grid:#d7dde5;--plot:#ffffff;--s1:#0a58b5;--s2:#b34700;--s3:#00745a;--s4:#8a3aa0;--s5:#6b5b00;--s6:#555f6b;
--h0:#eef2f7;--h1:#dce7f3;--h2:#c3d8ec;--h3:#a3c5e3;--h4:#7dabd6;--h5:#5790c5;--h6:#3a74b1;--h7:#245998;--h8:#123f7a;--h9:#07265a}
@media screen and (prefers-color-scheme:dark){:root{--fg:#e6ebf1;--dim:#a3afbd;--grid:#37424f;--plot:#161c24;--s1:#6cb2ff;--s2:#ffa24d;--s3:#46d3a3;--s4:#dd9bf2;--s5:#e3cf57;--s6:#aab4c0;
--h0:#1d2530;--h1:#25354a;--h2:#2b4766;--h3:#2f5b85;--h4:#3171a5;--h5:#3f89c2;--h6:#61a3d3;--h7:#8dbcdc;--h8:#bcd6e3;--h9:#f3efd0}}
.fb-svg{display:block;width:100%;height:auto;font:13px system-ui,"Segoe UI","Liberation Sans",Arial,sans-serif}
.fb-svg text{fill:var(--fg)}.fb-svg text.dim{fill:var(--dim)}.fb-svg text.head{font-weight:600}.fb-svg text.lab{paint-order:stroke;stroke:var(--plot);stroke-width:3.5px;stroke-linejoin:round}
.fb-svg .grid{stroke:var(--grid);stroke-width:1;fill:none}.fb-svg .axis{stroke:var(--dim);stroke-width:1;fill:none}.fb-svg .band{fill:var(--grid);opacity:.55}
.fb-svg .ln{fill:none;stroke-width:1.8;stroke-linejoin:round;stroke-linecap:round}.fb-svg .dash{stroke-dasharray:5 4}.fb-svg .dot{stroke-dasharray:1.5 4}
.fb-svg .s1{stroke:var(--s1)}.fb-svg .s2{stroke:var(--s2)}.fb-svg .s3{stroke:var(--s3)}.fb-svg .s4{stroke:var(--s4)}.fb-svg .s5{stroke:var(--s5)}.fb-svg .s6{stroke:var(--s6)}
.fb-svg .f1{fill:var(--s1)}.fb-svg .f2{fill:var(--s2)}.fb-svg .f3{fill:var(--s3)}.fb-svg .f4{fill:var(--s4)}.fb-svg .f5{fill:var(--s5)}.fb-svg .f6{fill:var(--s6)}
.fb-svg .h0{fill:var(--h0)}.fb-svg .h1{fill:var(--h1)}.fb-svg .h2{fill:var(--h2)}.fb-svg .h3{fill:var(--h3)}.fb-svg .h4{fill:var(--h4)}.fb-svg .h5{fill:var(--h5)}.fb-svg .h6{fill:var(--h6)}.fb-svg .h7{fill:var(--h7)}.fb-svg .h8{fill:var(--h8)}.fb-svg .h9{fill:var(--h9)}
`

// Colors is how many colours of series there are; others begin again.
const Colors = 6

// Standalone makes a file of its own of a drawing: the style sheet inside.
func Standalone(drawing string) string {
	at := strings.Index(drawing, "<title")
	if at < 0 {
		return drawing
	}
	return drawing[:at] + "<style>" + CSS + "</style>" + drawing[at:] + "\n"
}

// box is the space that a text takes.
type box struct{ x0, y0, x1, y1 float64 }

func (b box) hits(o box) bool { return b.x0 < o.x1 && o.x0 < b.x1 && b.y0 < o.y1 && o.y0 < b.y1 }

// canvas collects elements, and where text was put.
type canvas struct {
	body  strings.Builder
	texts []box
	w, h  float64
}

func (c *canvas) add(format string, args ...any) { fmt.Fprintf(&c.body, format, args...) }

// bold is how much wider text of class "head" is.
const bold = 1.12

// extent is the box of a text whose base line is at y.
func extent(x, y float64, anchor, text string) box {
	w := Width(text)
	switch anchor {
	case "end":
		x -= w
	case "middle":
		x -= w / 2
	}
	return box{x, y - fontSize*0.82, x + w, y + fontSize*0.24}
}

// free reports that a text would lie within the drawing and over no other.
func (c *canvas) free(x, y float64, anchor, text string) bool {
	b := extent(x, y, anchor, text)
	if b.x0 < 0 || b.x1 > c.w || b.y0 < 0 {
		return false
	}
	for _, o := range c.texts {
		if b.hits(o) {
			return false
		}
	}
	return true
}

func (c *canvas) text(x, y float64, anchor, class, text string) {
	if text == "" {
		return
	}
	b := extent(x, y, anchor, text)
	if class == "head" && anchor == "start" {
		b.x1 = x + bold*(b.x1-b.x0)
	}
	c.texts = append(c.texts, b)
	attrs := ""
	if class != "" {
		attrs += ` class="` + class + `"`
	}
	if anchor != "start" {
		attrs += ` text-anchor="` + anchor + `"`
	}
	c.add(`<text x="%s" y="%s"%s>%s</text>`, num(x), num(y), attrs, Escape(text))
}

// document closes a drawing.
func (c *canvas) document(id, title, desc string) string {
	t, d := "fb-"+id+"-t", "fb-"+id+"-d"
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" class="fb-svg" viewBox="0 0 %s %s" role="img" aria-labelledby="%s" aria-describedby="%s"><title id="%s">%s</title><desc id="%s">%s</desc>%s</svg>`,
		num(c.w), num(c.h), Escape(t), Escape(d), Escape(t), Escape(title), Escape(d), Escape(desc), c.body.String())
}

// num spells a coordinate: a tenth of a unit is less than a reader sees.
func num(v float64) string {
	s := strconv.FormatFloat(math.Round(v*10)/10, 'f', -1, 64)
	if s == "-0" {
		return "0"
	}
	return s
}

// Escape makes text of XML out of any string: what XML or HTML cannot carry (control
// characters, halves of surrogate pairs, bytes that are no UTF-8) becomes U+FFFD, and so do the
// marks that turn the direction of the text around.
func Escape(s string) string {
	var b strings.Builder
	for _, r := range s {
		switch {
		case r == '&':
			b.WriteString("&amp;")
		case r == '<':
			b.WriteString("&lt;")
		case r == '>':
			b.WriteString("&gt;")
		case r == '"':
			b.WriteString("&#34;")
		case r == '\'':
			b.WriteString("&#39;")
		case r == '\n' || r == '\t':
			b.WriteByte(' ')
		case unicode.IsControl(r), unicode.Is(unicode.Bidi_Control, r), r == 0xFFFE, r == 0xFFFF:
			b.WriteRune('\uFFFD')
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// Width is about how wide a text is, on the wide side (as DejaVu Sans is), so that what fits
// by it fits in any usual face.
func Width(s string) float64 {
	w := 0.0
	for _, r := range s {
		switch {
		case strings.ContainsRune("iljt.,:;|!'()[]", r):
			w += 0.38
		case r == ' ':
			w += 0.33
		case strings.ContainsRune("mwMW@%→…\uFFFD", r):
			w += 0.98
		case r >= '0' && r <= '9', r == '+', r == '=', r == '−':
			w += 0.64
		case unicode.IsUpper(r):
			w += 0.72
		case r >= 0x1100:
			w += 1.05
		default:
			w += 0.61
		}
	}
	return w * fontSize
}

// shorten cuts a text to a width, with an ellipsis.
func shorten(s string, width float64) string {
	if Width(s) <= width {
		return s
	}
	rs := []rune(s)
	for len(rs) > 0 && Width(string(rs))+Width("…") > width {
		rs = rs[:len(rs)-1]
	}
	return strings.TrimRight(string(rs), " ") + "…"
}

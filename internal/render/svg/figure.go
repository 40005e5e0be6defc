package svg

import (
	"math"
	"strings"
)

// Figure is panels above one another that share their X axis.
type Figure struct {
	ID    string // unique on its page; letters, digits, "-"
	Title string // for readers who do not see it; the page has its own heading
	Desc  string // what it shows, in a sentence or two with the figures that matter
	Width float64
	X     Axis
	// Panels from top to bottom. One without any value says so.
	Panels []Panel
}

// Panel is one plot of a figure.
type Panel struct {
	Y      Axis
	Height float64 // of the plot without its texts; 0 = 120
	Series []Series
	Rules  []Rule // horizontal lines to compare with
	Bands  []Band // spans of X that are set apart
}

// Kind is how the points of a series are drawn.
type Kind int

// The kinds.
const (
	Line     Kind = iota // joined, at X
	Steps                // level from X to To, joined
	Columns              // bars from 0 up, from X to To
	Points               // dots at X
	LineDots             // both
)

// Series is one set of points.
type Series struct {
	Name   string
	Kind   Kind
	Points []Point // in order of X
	Color  int     // 1…Colors; 0 = by its place
	Dash   bool
	// Labels writes each value at its point, as far as there is room.
	Labels bool
}

// Point is one value. NaN as Y leaves a gap.
type Point struct {
	X, To float64 // To is used by Steps and Columns
	Y     float64
}

// Rule is a horizontal line.
type Rule struct {
	Name  string
	Y     float64
	Color int
}

// Band is a span of the X axis.
type Band struct {
	Name     string
	From, To float64
}

// XY makes points of pairs.
func XY(pairs ...[2]float64) []Point {
	out := make([]Point, len(pairs))
	for i, p := range pairs {
		out[i] = Point{X: p[0], To: p[0], Y: p[1]}
	}
	return out
}

// Draw returns the drawing.
func (f *Figure) Draw() string {
	c := &canvas{w: f.Width}
	if c.w <= 0 {
		c.w = DefaultWidth
	}
	lo, hi := f.rangeX()
	frames := make([]frame, len(f.Panels))
	left := 20.0
	for i := range f.Panels {
		p := &f.Panels[i]
		a, b := p.rangeY()
		frames[i] = p.Y.settle(a, b, max(int(p.height()/26), 2), true)
		for _, t := range frames[i].ticks {
			left = max(left, Width(t.text)+10)
		}
	}
	x := f.X.settle(lo, hi, max(int((c.w-left)/50), 2), false)
	x.from, x.to = left, c.w-edge
	if x.axis.Scale != Linear || hasDots(f) { // room for dots and their labels at both sides
		x.from, x.to = left+16, c.w-edge-16
	}
	at := 0.0
	for i := range f.Panels {
		at = f.Panels[i].draw(c, &x, &frames[i], at, left)
	}
	f.axisX(c, &x, at)
	return c.document(f.ID, f.Title, f.Desc)
}

func hasDots(f *Figure) bool {
	for _, p := range f.Panels {
		for _, s := range p.Series {
			if s.Kind == Points || s.Kind == LineDots {
				return true
			}
		}
	}
	return false
}

func (p *Panel) height() float64 {
	if p.Height <= 0 {
		return 120
	}
	return p.Height
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

func (f *Figure) rangeX() (lo, hi float64) {
	lo, hi = math.Inf(1), math.Inf(-1)
	take := func(v float64) {
		if finite(v) && (f.X.Scale == Linear || v > 0) {
			lo, hi = min(lo, v), max(hi, v)
		}
	}
	for _, p := range f.Panels {
		for _, s := range p.Series {
			for _, q := range s.Points {
				take(q.X)
				if s.Kind == Steps || s.Kind == Columns {
					take(q.To)
				}
			}
		}
		for _, b := range p.Bands {
			take(b.From)
			take(b.To)
		}
	}
	if lo > hi {
		return 0, 0
	}
	return lo, hi
}

func (p *Panel) rangeY() (lo, hi float64) {
	lo, hi = math.Inf(1), math.Inf(-1)
	take := func(v float64) {
		if finite(v) && (p.Y.Scale == Linear || v > 0) {
			lo, hi = min(lo, v), max(hi, v)
		}
	}
	for _, s := range p.Series {
		for _, q := range s.Points {
			take(q.Y)
		}
	}
	for _, r := range p.Rules {
		take(r.Y)
	}
	if lo > hi {
		return 0, 0
	}
	return lo, hi
}

// entry is a line of a legend.
type entry struct{ class, name, shape string }

func (p *Panel) legend() (out []entry) {
	for i, s := range p.Series {
		if s.Name == "" || !s.any() {
			continue
		}
		e := entry{class: s.stroke(i), name: s.Name, shape: "line"}
		switch s.Kind {
		case Columns:
			e.class, e.shape = s.fill(i), "box"
		case Points:
			e.class, e.shape = s.fill(i), "dot"
		}
		out = append(out, e)
	}
	for _, r := range p.Rules {
		if finite(r.Y) {
			out = append(out, entry{"ln dot s" + colour(r.Color, 5), r.Name, "line"})
		}
	}
	for i, b := range p.Bands {
		if b.Name != "" && (i == 0 || p.Bands[i-1].Name != b.Name) {
			out = append(out, entry{"band", b.Name, "box"})
		}
	}
	if len(out) == 1 && out[0].shape != "band" && len(p.Series) == 1 && p.Series[0].Name == p.Y.Label {
		return nil // the axis says it
	}
	return out
}

func (s *Series) any() bool {
	for _, q := range s.Points {
		if finite(q.Y) {
			return true
		}
	}
	return false
}

func colour(n, place int) string {
	if n <= 0 {
		n = place + 1
	}
	return string(rune('1' + (n-1)%Colors))
}

func (s *Series) stroke(place int) string {
	class := "ln s" + colour(s.Color, place)
	if s.Dash {
		class += " dash"
	}
	return class
}

func (s *Series) fill(place int) string { return "f" + colour(s.Color, place) }

// draw puts a panel below y and returns where it ends.
func (p *Panel) draw(c *canvas, x, f *frame, y, left float64) float64 {
	if y > 0 {
		y += 8 // the lowest tick of the panel above needs it
	}
	y += lineHeight
	c.text(0, y-3, "start", "head", shorten(f.title(), c.w/bold))
	y = legend(c, p.legend(), y)
	top, bottom := y+8, y+8+p.height()
	f.from, f.to = bottom, top
	drawn := false
	for i := range p.Series {
		drawn = drawn || p.Series[i].any()
	}
	for _, b := range p.Bands {
		a, ok1 := x.clamped(b.From)
		z, ok2 := x.clamped(b.To)
		if ok1 && ok2 && z > a {
			c.add(`<rect class="band" x="%s" y="%s" width="%s" height="%s"/>`, num(a), num(top), num(z-a), num(bottom-top))
		}
	}
	if !drawn {
		c.add(`<path class="axis" d="M%s %sH%s"/>`, num(left), num(bottom), num(c.w-edge))
		c.text((left+c.w-edge)/2, (top+bottom)/2, "middle", "dim", "no values")
		return bottom
	}
	for _, t := range f.ticks {
		pos, _ := f.at(t.at)
		c.add(`<path class="grid" d="M%s %sH%s"/>`, num(left), num(pos), num(c.w-edge))
		if c.free(left-5, pos+4, "end", t.text) {
			c.text(left-5, pos+4, "end", "dim", t.text)
		}
	}
	for _, r := range p.Rules {
		if pos, ok := f.at(r.Y); ok {
			c.add(`<path class="ln dot s%s" d="M%s %sH%s"/>`, colour(r.Color, 5), num(left), num(pos), num(c.w-edge))
		}
	}
	for i := range p.Series {
		p.Series[i].draw(c, x, f, i, bottom)
	}
	c.add(`<path class="axis" d="M%s %sH%s"/>`, num(left), num(bottom), num(c.w-edge))
	for i := range p.Series {
		p.Series[i].labels(c, x, f)
	}
	return bottom
}

// legend lays out entries in lines below y and returns where they end.
func legend(c *canvas, es []entry, y float64) float64 {
	if len(es) == 0 {
		return y
	}
	at := 0.0
	y += lineHeight
	for _, e := range es {
		name := shorten(e.name, c.w-24)
		w := 22 + Width(name)
		if at > 0 && at+w > c.w {
			at = 0
			y += lineHeight
		}
		switch e.shape {
		case "line":
			c.add(`<path class="%s" d="M%s %sh16"/>`, e.class, num(at+1), num(y-7))
		case "dot":
			c.add(`<circle class="%s" cx="%s" cy="%s" r="4"/>`, e.class, num(at+9), num(y-7))
		default:
			c.add(`<rect class="%s" x="%s" y="%s" width="12" height="10"/>`, e.class, num(at+3), num(y-12))
		}
		c.text(at+22, y-3, "start", "", name)
		at += w + 14
	}
	return y
}

func (s *Series) draw(c *canvas, x, f *frame, place int, bottom float64) {
	var d, dots strings.Builder
	open := false
	for _, q := range s.Points {
		a, ok := x.clamped(q.X)
		v, okY := f.clamped(q.Y)
		if !ok || !okY || !finite(q.Y) || !finite(q.X) || f.axis.Scale != Linear && q.Y <= 0 || x.axis.Scale != Linear && q.X <= 0 {
			open = false
			continue
		}
		switch s.Kind {
		case Columns:
			z, _ := x.clamped(q.To)
			if q.Y != 0 && finite(q.To) {
				d.WriteString("M" + num(a) + " " + num(bottom) + "V" + num(min(v, bottom-1)) + "H" + num(max(z, a+1)) + "V" + num(bottom) + "z")
			}
		case Steps:
			if open {
				d.WriteString("V" + num(v))
			} else {
				d.WriteString("M" + num(a) + " " + num(v))
			}
			z, _ := x.clamped(q.To)
			d.WriteString("H" + num(z))
		case Line, LineDots:
			if open {
				d.WriteString("L")
			} else {
				d.WriteString("M")
			}
			d.WriteString(num(a) + " " + num(v))
		}
		if s.Kind == Points || s.Kind == LineDots {
			dots.WriteString(`<circle class="` + s.fill(place) + `" cx="` + num(a) + `" cy="` + num(v) + `" r="3.6"/>`)
		}
		open = true
	}
	if d.Len() > 0 {
		class := s.stroke(place)
		if s.Kind == Columns {
			class = s.fill(place)
		}
		c.add(`<path class="%s" d="%s"/>`, class, d.String())
	}
	c.body.WriteString(dots.String())
}

// labels writes values beside their points where there is room.
func (s *Series) labels(c *canvas, x, f *frame) {
	if !s.Labels {
		return
	}
	for _, q := range s.Points {
		a, ok := x.clamped(q.X)
		v, okY := f.clamped(q.Y)
		if !ok || !okY || !finite(q.Y) {
			continue
		}
		text := f.axis.Unit.Format(q.Y)
		for _, at := range []struct {
			x, y   float64
			anchor string
		}{{a, v - 8, "middle"}, {a - 4, v - 8, "start"}, {a + 4, v - 8, "end"}, {a, v + 17, "middle"}, {a - 4, v + 17, "start"}, {a + 4, v + 17, "end"}, {a + 7, v + 5, "start"}, {a - 7, v + 5, "end"}} {
			if at.y < f.from && at.y-fontSize > f.to-8 && c.free(at.x, at.y, at.anchor, text) {
				c.text(at.x, at.y, at.anchor, "lab", text)
				break
			}
		}
	}
}

// axisX writes the ticks of the common axis below the last panel.
func (f *Figure) axisX(c *canvas, x *frame, y float64) {
	for _, t := range x.ticks {
		pos, ok := x.at(t.at)
		if !ok {
			continue
		}
		c.add(`<path class="axis" d="M%s %sv4"/>`, num(pos), num(y))
		w := Width(t.text) / 2
		pos = min(max(pos, w), c.w-w)
		if c.free(pos-4, y+lineHeight+2, "middle", t.text) && c.free(pos+4, y+lineHeight+2, "middle", t.text) || w*2 > c.w-8 {
			c.text(pos, y+lineHeight+2, "middle", "dim", t.text)
		} else if c.free(pos, y+lineHeight+2, "middle", t.text) {
			c.text(pos, y+lineHeight+2, "middle", "dim", t.text)
		}
	}
	c.h = y + lineHeight + 7
	if title := x.title(); title != "" {
		c.h += lineHeight
		c.text(c.w-edge, c.h-5, "end", "dim", shorten(title, c.w-edge))
	}
}

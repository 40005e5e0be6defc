package svg

import "math"

// Bars compares a few values by horizontal bars, each under its label.
type Bars struct {
	ID, Title, Desc string
	Width           float64
	Unit            Unit
	Rows            []Bar
}

// Bar is one value. NaN says that it is not known.
type Bar struct {
	Label string
	Value float64
	Color int // 1…Colors; 0 = 1
}

// Draw returns the drawing.
func (b *Bars) Draw() string {
	c := &canvas{w: b.Width}
	if c.w <= 0 {
		c.w = DefaultWidth
	}
	most := 0.0
	for _, r := range b.Rows {
		if finite(r.Value) {
			most = max(most, r.Value)
		}
	}
	const tall = 16.0
	room := c.w - edge - Width("000.5 Mbit/s ")
	y := 0.0
	for _, r := range b.Rows {
		y += lineHeight
		c.text(0, y-3, "start", "", shorten(r.Label, c.w))
		w := 0.0
		if most > 0 && finite(r.Value) {
			w = max(room*math.Max(r.Value, 0)/most, 1)
		}
		c.add(`<rect class="f%s" x="0" y="%s" width="%s" height="%s"/>`, colour(r.Color, 0), num(y+1), num(w), num(tall))
		c.text(w+6, y+tall-3, "start", "head", b.Unit.Format(r.Value))
		y += tall + 8
	}
	c.h = y
	return c.document(b.ID, b.Title, b.Desc)
}

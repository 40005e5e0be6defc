package svg

import (
	"math"
	"strings"
)

// Levels is how many shades a heat map has.
const Levels = 10

// Heat is a map of shares: rows of cells in sections side by side. Rows are grouped.
type Heat struct {
	ID, Title, Desc string
	Width           float64
	Label           string // of the X axis
	Scale           string // of the colours, e.g. "busy"
	Sections        []Section
	Groups          []HeatGroup
}

// Section is a span of columns with a name, set apart from its neighbours.
type Section struct {
	Label   string
	Columns int
}

// HeatGroup is rows under a heading.
type HeatGroup struct {
	Name string
	Rows []HeatRow
}

// HeatRow has one cell for each column of all sections: a share 0…1, NaN = not known.
type HeatRow struct {
	Label string
	Cells []float64
}

// Draw returns the drawing.
func (h *Heat) Draw() string {
	c := &canvas{w: h.Width}
	if c.w <= 0 {
		c.w = DefaultWidth
	}
	left, columns := 0.0, 0
	for _, g := range h.Groups {
		for _, r := range g.Rows {
			left = max(left, Width(r.Label)+8)
		}
	}
	for _, s := range h.Sections {
		columns += s.Columns
	}
	const gap = 3.0
	cell := 0.0
	if columns > 0 {
		cell = (c.w - edge - left - gap*float64(len(h.Sections)-1)) / float64(columns)
	}
	starts := make([]float64, 0, columns) // of each column
	x := left
	var middles []float64
	for _, s := range h.Sections {
		middles = append(middles, x+cell*float64(s.Columns)/2)
		for range s.Columns {
			starts = append(starts, x)
			x += cell
		}
		x += gap
	}
	y := 0.0
	for _, g := range h.Groups {
		y += lineHeight
		c.text(0, y-3, "start", "head", shorten(g.Name, c.w/bold))
		y += 3
		tall := 16.0
		if len(g.Rows) > 16 {
			tall = 9
		}
		heatRows(c, g.Rows, starts, cell, y, tall, left)
		y += tall*float64(len(g.Rows)) + 6
	}
	for i, s := range h.Sections {
		if c.free(middles[i], y+lineHeight-4, "middle", s.Label) {
			c.text(middles[i], y+lineHeight-4, "middle", "dim", s.Label)
		}
	}
	y += lineHeight
	c.text(c.w-edge, y+lineHeight-3, "end", "dim", shorten(h.Label, c.w-edge))
	y += lineHeight + 6
	y = h.key(c, y)
	c.h = y
	return c.document(h.ID, h.Title, h.Desc)
}

// heatRows draws the cells of rows, one path for each shade, neighbours of one shade together.
func heatRows(c *canvas, rows []HeatRow, starts []float64, cell, y, tall, left float64) {
	var paths [Levels]strings.Builder
	for i, r := range rows {
		top := y + tall*float64(i)
		if c.free(left-6, top+tall/2+4.5, "end", r.Label) {
			c.text(left-6, top+tall/2+4.5, "end", "dim", r.Label)
		}
		for k := 0; k < len(starts) && k < len(r.Cells); {
			level := levelOf(r.Cells[k])
			end := k + 1
			for end < len(starts) && end < len(r.Cells) && levelOf(r.Cells[end]) == level && starts[end]-starts[end-1] < cell+0.5 {
				end++
			}
			if level >= 0 {
				paths[level].WriteString("M" + num(starts[k]) + " " + num(top) + "h" + num(starts[end-1]+cell-starts[k]) + "v" + num(tall-1) + "H" + num(starts[k]) + "z")
			}
			k = end
		}
	}
	for level := range paths {
		if paths[level].Len() > 0 {
			c.add(`<path class="h%d" d="%s"/>`, level, paths[level].String())
		}
	}
}

func levelOf(share float64) int {
	if math.IsNaN(share) {
		return -1
	}
	return min(max(int(share*Levels), 0), Levels-1)
}

// key explains the shades.
func (h *Heat) key(c *canvas, y float64) float64 {
	y += lineHeight
	text := "0 % " + h.Scale
	c.text(0, y-3, "start", "", text)
	x := Width(text) + 6
	for i := range Levels {
		c.add(`<rect class="h%d" x="%s" y="%s" width="14" height="11"/>`, i, num(x), num(y-13))
		x += 14
	}
	c.text(x+6, y-3, "start", "", "100 % · blank: not known")
	return y + 4
}

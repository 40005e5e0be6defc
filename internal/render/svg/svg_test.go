package svg

import (
	"encoding/xml"
	"flag"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files anew")

type drawing interface{ Draw() string }

// samples are drawings of every kind.
func samples() map[string]drawing {
	wave := func(n int, f func(i int) float64) (out []Point) {
		for i := range n {
			x := float64(i) / 5
			out = append(out, Point{X: x, To: x + 0.2, Y: f(i)})
		}
		return out
	}
	nan := math.NaN()
	empty := 0.02
	return map[string]drawing{
		"stage": &Figure{
			ID: "stage", Title: "Throughput <over> time", Desc: "95 & more", X: Axis{Label: "time", Unit: Seconds},
			Panels: []Panel{
				{
					Y:     Axis{Label: "throughput", Unit: BitRate},
					Bands: []Band{{"warm-up, not counted", 0, 1}},
					Series: []Series{
						{Name: "arrived", Kind: Steps, Points: wave(25, func(i int) float64 { return 9e7 + 1e6*float64(i%7) })},
						{Name: "sent", Kind: Steps, Dash: true, Points: wave(25, func(i int) float64 { return 9.2e7 + 2e6*float64(i%5) })},
					},
				},
				{Y: Axis{Label: "sent again"}, Height: 50, Series: []Series{{Name: "sent again", Kind: Columns, Color: 2, Points: wave(25, func(i int) float64 { return float64(i % 4) })}}},
				{
					Y: Axis{Label: "round trip", Unit: Seconds}, Height: 80, Rules: []Rule{{Name: "empty path", Y: empty}},
					Series: []Series{{Name: "smoothed", Kind: Line, Color: 3, Points: wave(25, func(i int) float64 {
						if i == 12 {
							return nan // not known: a gap
						}
						return 0.02 + 0.001*float64(i)
					})}},
				},
			},
		},
		"knee": &Figure{
			ID: "knee", Title: "Streams", X: Axis{Label: "streams", Scale: Log2},
			Panels: []Panel{{Y: Axis{Label: "sum", Unit: BitRate}, Series: []Series{{Name: "up", Kind: LineDots, Labels: true, Points: XY([2]float64{1, 22.4e6}, [2]float64{4, 85.8e6}, [2]float64{16, 91.9e6}, [2]float64{64, 92e6})}}}},
		},
		"window": &Figure{
			ID: "window", Title: "Window", X: Axis{Label: "window", Unit: Bytes, Scale: Log2},
			Panels: []Panel{{Y: Axis{Label: "rate", Unit: BitRate, Scale: Log10}, Series: []Series{
				{Name: "measured", Kind: Points, Labels: true, Points: XY([2]float64{65536, 18e6}, [2]float64{262144, 70e6}, [2]float64{1 << 20, 95e6})},
				{Name: "window × 8 ÷ 28 ms", Kind: Line, Dash: true, Points: XY([2]float64{65536, 18.7e6}, [2]float64{1 << 20, 299e6})},
			}}},
		},
		"cdf": &Figure{
			ID: "cdf", Title: "Delay", X: Axis{Label: "round trip", Unit: Seconds, Scale: Log10},
			Panels: []Panel{{Y: Axis{Label: "as fast", Unit: Share}, Series: []Series{{Name: "idle", Kind: Steps, Points: CDF([]float64{0.001, 0.002, 0.004, 0.050}, []int64{50, 40, 9, 1})}}}},
		},
		"empty":    &Figure{ID: "empty", Title: "Nothing", X: Axis{Label: "time", Unit: Seconds}, Panels: []Panel{{Y: Axis{Label: "rate", Unit: BitRate}}}},
		"constant": &Figure{ID: "constant", Title: "Zero", X: Axis{Label: "time", Unit: Seconds}, Panels: []Panel{{Y: Axis{Label: "rate", Unit: BitRate}, Series: []Series{{Name: "r", Kind: Line, Points: XY([2]float64{0, 0}, [2]float64{0, 0})}}}}},
		"heat": &Heat{
			ID: "heat", Title: "Cores", Desc: "two ends", Label: "stage", Scale: "busy", Sections: []Section{{"1", 3}, {"2", 2}},
			Groups: []HeatGroup{
				{"client", []HeatRow{{"core 0", []float64{0, 0.09, 0.5, 0.99, 1}}, {"core 1", []float64{nan, nan, 0.3, 0.3, 0.3}}}},
				{"server", []HeatRow{{"core 0", []float64{1, 1, 1, 1, 1}}}},
			},
		},
		"bars": &Bars{ID: "bars", Title: "Reach", Unit: BitRate, Rows: []Bar{{"now", 22.4e6, 6}, {"with a very long label that cannot possibly fit into the width of this drawing", 95.3e6, 1}, {"not known", nan, 2}}},
	}
}

// TestGolden compares every kind of drawing, byte by byte.
func TestGolden(t *testing.T) {
	t.Parallel()
	for name, d := range samples() {
		file := filepath.Join("testdata", name+".svg")
		got := Standalone(d.Draw())
		if *update {
			if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), got); diff != "" {
			t.Errorf("%s (-want +got; look at it in a browser, then -update):\n%s", name, diff)
		}
	}
}

// sound checks what holds of every drawing: it is XML, has a title, no number is missing, and
// no text lies over another or outside.
func sound(t *testing.T, name, s string) {
	t.Helper()
	for d := xml.NewDecoder(strings.NewReader(s)); ; {
		_, err := d.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatalf("%s: no XML: %v\n%s", name, err, s)
		}
	}
	for _, bad := range []string{"NaN", "Inf", "%!"} {
		if strings.Contains(s, bad) {
			t.Errorf("%s: %s in it:\n%s", name, bad, s)
		}
	}
	if !strings.Contains(s, "<title id=") || !strings.Contains(s, `role="img"`) {
		t.Errorf("%s: no title", name)
	}
	var boxes []box
	var words []string
	var w, h float64
	if _, err := fmt.Sscanf(s[strings.Index(s, "viewBox"):], `viewBox="0 0 %f %f"`, &w, &h); err != nil {
		t.Fatal(err)
	}
	for d := xml.NewDecoder(strings.NewReader(s)); ; {
		tok, err := d.Token()
		if err != nil {
			break
		}
		el, ok := tok.(xml.StartElement)
		if !ok || el.Name.Local != "text" {
			continue
		}
		anchor, x, y := "start", 0.0, 0.0
		for _, a := range el.Attr {
			switch a.Name.Local {
			case "x":
				fmt.Sscan(a.Value, &x) //nolint:errcheck // made by num
			case "y":
				fmt.Sscan(a.Value, &y) //nolint:errcheck // made by num
			case "text-anchor":
				anchor = a.Value
			}
		}
		text, err := d.Token()
		if err != nil {
			break
		}
		words = append(words, string(text.(xml.CharData)))
		boxes = append(boxes, extent(x, y, anchor, words[len(words)-1]))
	}
	for i, b := range boxes {
		if b.x0 < -0.2 || b.x1 > w+0.2 || b.y0 < -0.2 || b.y1 > h+0.2 {
			t.Errorf("%s: %q lies outside: %v of %v × %v", name, words[i], b, w, h)
		}
		for k := range i {
			o := boxes[k]
			if b.x0+0.3 < o.x1 && o.x0+0.3 < b.x1 && b.y0+0.6 < o.y1 && o.y0+0.6 < b.y1 {
				t.Errorf("%s: %q over %q", name, words[i], words[k])
			}
		}
	}
}

func TestSound(t *testing.T) {
	t.Parallel()
	for name, d := range samples() {
		s := d.Draw()
		sound(t, name, s)
		if again := samples()[name].Draw(); again != s {
			t.Errorf("%s: not the same twice", name)
		}
	}
}

// TestAnyValues draws figures of every size and scale with whatever values.
func TestAnyValues(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // reproducible on purpose
	value := func() float64 {
		switch r.IntN(12) {
		case 0:
			return math.NaN()
		case 1:
			return 0
		case 2:
			return -r.Float64() * 1e3
		case 3:
			return math.Inf(1)
		}
		return math.Pow(10, r.Float64()*16-6)
	}
	for n := range 400 {
		f := &Figure{
			ID: fmt.Sprint("f", n), Title: "t", Desc: "d", Width: 300 + 400*r.Float64(),
			X: Axis{Label: "x axis", Unit: Unit(r.IntN(5)), Scale: Scale(r.IntN(3))},
		}
		top := math.Pow(10, r.Float64()*12-6)
		for range 1 + r.IntN(3) {
			p := Panel{Y: Axis{Label: "a label that is rather long for a panel of that width, really", Unit: Unit(r.IntN(5)), Scale: Scale(r.IntN(3))}, Height: 30 + 200*r.Float64()}
			for k := range r.IntN(4) {
				s := Series{Name: strings.Repeat("name ", 1+r.IntN(20)), Kind: Kind(r.IntN(5)), Labels: r.IntN(2) == 0, Color: k}
				for x := range r.IntN(40) {
					y := value()
					if r.IntN(2) == 0 {
						y = top * r.Float64()
					}
					s.Points = append(s.Points, Point{X: float64(x), To: float64(x + 1), Y: y})
				}
				p.Series = append(p.Series, s)
			}
			if r.IntN(3) == 0 {
				p.Rules = []Rule{{Name: "rule", Y: value()}}
				p.Bands = []Band{{Name: "band", From: value(), To: value()}}
			}
			f.Panels = append(f.Panels, p)
		}
		sound(t, fmt.Sprint("figure ", n), f.Draw())
		if t.Failed() {
			return
		}
	}
}

func TestTicks(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		axis   Axis
		lo, hi float64
		most   int
		y      bool
		want   string
	}{
		{Axis{Unit: BitRate}, 0, 95.3e6, 5, true, "0 25 50 75 100 Mbit/s"},
		{Axis{Unit: BitRate}, 0, 940e6, 6, true, "0 200 400 600 800 1000 Mbit/s"},
		{Axis{Unit: BitRate}, 0, 0, 5, true, "0 0.25 0.5 0.75 1 kbit/s"},
		{Axis{Unit: Seconds}, 0.028, 0.031, 4, true, "0 20 40 ms"},
		{Axis{Unit: Seconds}, -1, 4, 6, false, "-1 0 1 2 3 4 s"},
		{Axis{Unit: Plain}, 0, 3, 4, true, "0 1 2 3 "},
		{Axis{Unit: Bytes, Scale: Log2}, 70e3, 650e3, 8, false, "64 KiB 128 KiB 256 KiB 512 KiB 1 MiB "},
		{Axis{Unit: Bytes, Scale: Log2}, 1024, 1 << 30, 5, false, "1 KiB 32 KiB 1 MiB 32 MiB 1 GiB "},
		{Axis{Unit: Seconds, Scale: Log10}, 0.0011, 0.09, 6, false, "1 ms 3 ms 10 ms 30 ms 100 ms "},
		{Axis{Unit: Share}, 0, 1, 6, true, "0 20 40 60 80 100 %"},
		{Axis{Scale: Log2}, 1, 16, 8, false, "1 2 4 8 16 "},
	} {
		f := c.axis.settle(c.lo, c.hi, c.most, c.y)
		var got []string
		for _, k := range f.ticks {
			got = append(got, k.text)
		}
		if s := strings.Join(got, " ") + " " + f.unit; s != c.want {
			t.Errorf("%+v %g…%g: %q, want %q", c.axis, c.lo, c.hi, s, c.want)
		}
		if f.lo > c.lo || f.hi < c.hi {
			t.Errorf("%+v: %g…%g is not within %g…%g", c.axis, c.lo, c.hi, f.lo, f.hi)
		}
	}
}

func TestEscape(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`<script>"&'`: "&lt;script&gt;&#34;&amp;&#39;",
		"a\x00b\x1bc": "a\uFFFDb\uFFFDc",
		"bad \xff":    "bad \uFFFD",
		"x\u202ey":    "x\uFFFDy",
		"two\nlines":  "two lines",
		"größer → µ":  "größer → µ",
		"]]>":         "]]&gt;",
		"\u2028":      "\u2028",
	} {
		if got := Escape(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

// TestThin: extremes, ends and totals stay.
func TestThin(t *testing.T) {
	t.Parallel()
	var ps []Point
	for i := range 10000 {
		p := Point{X: float64(i), To: float64(i + 1), Y: 5}
		switch i {
		case 4321:
			p.Y = 99
		case 7777:
			p.Y = -3
		case 5000:
			p.Y = math.NaN()
		}
		ps = append(ps, p)
	}
	thin := Thin(ps, 100)
	lo, hi := math.Inf(1), math.Inf(-1)
	for i, p := range thin {
		if !math.IsNaN(p.Y) {
			lo, hi = min(lo, p.Y), max(hi, p.Y)
		}
		if i > 0 && p.X <= thin[i-1].X {
			t.Fatalf("out of order at %d", i)
		}
	}
	if lo != -3 || hi != 99 || len(thin) > 104 || thin[0].X != 0 || thin[len(thin)-1].X != 9999 {
		t.Errorf("%d points, %g…%g", len(thin), lo, hi)
	}
	sum := 0.0
	for _, p := range ThinSum(ps, 60) {
		sum += p.Y
	}
	if want := 9997*5 + 99 - 3.0; sum != want {
		t.Errorf("total %g, want %g", sum, want)
	}
}

package svg

import (
	"math"
	"strconv"
)

// Unit says what the figures of an axis are, and so how they are spelled.
type Unit int

// The units. Values are always in the base unit: bit/s, bytes, seconds, a share of 1.
const (
	Plain   Unit = iota // a number without unit
	BitRate             // bit/s: kbit/s, Mbit/s, …
	Bytes               // KiB, MiB, …
	Seconds             // µs, ms, s, min, h
	Share               // per cent
)

// Scale is how an axis is divided.
type Scale int

// The scales. Log2 has ticks at powers of two, Log10 at 1, 2, 5, 10, …; both leave out what
// is not above 0.
const (
	Linear Scale = iota
	Log2
	Log10
)

// Axis is one axis of a plot.
type Axis struct {
	Label string // what is shown; the unit is added
	Unit  Unit
	Scale Scale
	// From and To bound it; nil = the data does, with 0 included on a linear Y axis.
	From, To *float64
	Whole    bool // ticks of a linear scale at whole numbers only: things that are counted
}

type prefix struct {
	factor float64
	name   string
}

var prefixes = map[Unit][]prefix{
	Plain:   {{1, ""}, {1e3, "thousand"}, {1e6, "million"}, {1e9, "billion"}},
	BitRate: {{1, "bit/s"}, {1e3, "kbit/s"}, {1e6, "Mbit/s"}, {1e9, "Gbit/s"}, {1e12, "Tbit/s"}},
	Bytes:   {{1, "bytes"}, {1 << 10, "KiB"}, {1 << 20, "MiB"}, {1 << 30, "GiB"}, {1 << 40, "TiB"}},
	Seconds: {{1e-6, "µs"}, {1e-3, "ms"}, {1, "s"}, {60, "min"}, {3600, "h"}},
	Share:   {{0.01, "%"}},
}

// prefixOf picks the prefix in which the largest value is legible.
func prefixOf(u Unit, most float64) prefix {
	ps := prefixes[u]
	p := ps[0]
	for _, q := range ps[1:] {
		from := q.factor
		switch {
		case u == Seconds && q.factor >= 60:
			from = 3 * q.factor // 100 s is easier than 1.67 min
		case u == Plain:
			from = 10 * q.factor
		}
		if most >= from {
			p = q
		}
	}
	return p
}

// Format spells one value with its unit, in three digits.
func (u Unit) Format(v float64) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return "unknown"
	}
	p := prefixOf(u, math.Abs(v))
	text := digits(v / p.factor)
	if p.name == "" {
		return text
	}
	return text + " " + p.name
}

// digits spells a number in three significant digits, without zeros at its end.
func digits(v float64) string {
	if v == 0 {
		return "0"
	}
	places := 2 - int(math.Floor(math.Log10(math.Abs(v))))
	places = min(max(places, 0), 6)
	s := strconv.FormatFloat(v, 'f', places, 64)
	f, _ := strconv.ParseFloat(s, 64)
	return strconv.FormatFloat(f, 'f', -1, 64)
}

// tick is one mark of an axis.
type tick struct {
	at   float64
	text string
}

// frame is an axis with its bounds settled, mapped to a range of the drawing.
type frame struct {
	axis   Axis
	lo, hi float64
	from   float64 // position of lo
	to     float64 // position of hi
	ticks  []tick
	unit   string // for the label; "" where each tick has its own
}

// settle chooses bounds and at most most ticks (2 or more).
func (a Axis) settle(lo, hi float64, most int, y bool) frame {
	f := frame{axis: a}
	if a.From != nil {
		lo = *a.From
	}
	if a.To != nil {
		hi = *a.To
	}
	most = max(most, 2)
	if a.Scale == Linear {
		f.linear(lo, hi, most, y)
	} else {
		f.log(lo, hi, most)
	}
	return f
}

func (f *frame) linear(lo, hi float64, most int, y bool) {
	if y && f.axis.From == nil {
		lo = min(lo, 0)
	}
	if y && f.axis.To == nil {
		hi = max(hi, 0)
	}
	if !(hi > lo) {
		hi = lo + smallest(f.axis.Unit)
	}
	p := prefixOf(f.axis.Unit, max(math.Abs(lo), math.Abs(hi)))
	f.unit = p.name
	step := niceStep((hi-lo)/p.factor, most) * p.factor
	if f.axis.Whole {
		step = max(math.Ceil(step), 1)
	}
	if y { // the top tick is at or above the largest value
		if f.axis.To == nil {
			hi = math.Ceil(hi/step-1e-9) * step
		}
		if f.axis.From == nil {
			lo = math.Floor(lo/step+1e-9) * step
		}
	}
	f.lo, f.hi = lo, hi
	for k := math.Ceil(lo/step - 1e-9); k*step <= hi*(1+1e-12)+1e-9*step; k++ {
		f.ticks = append(f.ticks, tick{k * step, digits(k * step / p.factor)})
		if len(f.ticks) > 50 {
			break
		}
	}
}

// smallest is the span of an axis on which nothing happened.
func smallest(u Unit) float64 {
	switch u {
	case BitRate:
		return 1e3
	case Seconds:
		return 1e-3
	case Bytes:
		return 1 << 10
	case Share:
		return 0.01
	}
	return 1
}

// niceStep is the least of 1, 2, 2.5, 5 × 10ⁿ that divides a span into less than most parts.
func niceStep(span float64, most int) float64 {
	raw := span / float64(most-1)
	base := math.Pow(10, math.Floor(math.Log10(raw)))
	for _, m := range []float64{1, 2, 2.5, 5, 10} {
		if m*base >= raw*(1-1e-9) {
			return m * base
		}
	}
	return 10 * base
}

func (f *frame) log(lo, hi float64, most int) {
	if !(lo > 0) {
		lo = 1
	}
	if !(hi > lo) {
		hi = 2 * lo
	}
	var all []float64
	if f.axis.Scale == Log2 {
		a, b := math.Floor(math.Log2(lo)+1e-9), math.Ceil(math.Log2(hi)-1e-9)
		if f.axis.From != nil || f.axis.To != nil {
			a, b = math.Ceil(math.Log2(lo)-1e-9), math.Floor(math.Log2(hi)+1e-9)
		} else {
			lo, hi = math.Exp2(a), math.Exp2(b)
		}
		every := max(math.Ceil((b-a+1)/float64(most)), 1)
		for e := a; e <= b; e += every {
			all = append(all, math.Exp2(e))
		}
	} else {
		all = tens(lo, hi, most)
		if f.axis.From == nil {
			lo = min(lo, all[0])
		}
		if f.axis.To == nil {
			hi = max(hi, all[len(all)-1])
		}
	}
	f.lo, f.hi = lo, hi
	for _, v := range all {
		f.ticks = append(f.ticks, tick{v, f.axis.Unit.Format(v)})
	}
}

// tens are ticks at 1, 2, 5 × 10ⁿ, or fewer, that enclose a range.
func tens(lo, hi float64, most int) (out []float64) {
	for _, ms := range [][]float64{{1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8}, {1, 1.5, 2, 3, 5, 7}, {1, 2, 5}, {1, 3}, {1}} {
		out = nil
		for e := math.Floor(math.Log10(lo)) - 1; e <= math.Ceil(math.Log10(hi))+1; e++ {
			for _, m := range ms {
				out = append(out, m*math.Pow(10, e))
			}
		}
		for len(out) > 2 && out[1] <= lo*(1+1e-9) {
			out = out[1:]
		}
		for len(out) > 2 && out[len(out)-2] >= hi*(1-1e-9) {
			out = out[:len(out)-1]
		}
		if len(out) <= most {
			return out
		}
	}
	every := (len(out) + most - 1) / most
	var few []float64
	for i := 0; i < len(out); i += every {
		few = append(few, out[i])
	}
	if last := out[len(out)-1]; few[len(few)-1] < last {
		few = append(few, last*math.Pow(10, float64((every-(len(out)-1)%every)%every)))
	}
	return few
}

// at is the position of a value; ok is false where the scale has none.
func (f *frame) at(v float64) (pos float64, ok bool) {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return 0, false
	}
	share := 0.0
	if f.axis.Scale == Linear {
		share = (v - f.lo) / (f.hi - f.lo)
	} else {
		if v <= 0 {
			return 0, false
		}
		share = math.Log(v/f.lo) / math.Log(f.hi/f.lo)
	}
	return f.from + share*(f.to-f.from), true
}

// clamped is at with what lies outside put on the edge.
func (f *frame) clamped(v float64) (pos float64, ok bool) {
	return f.at(min(max(v, f.lo), f.hi))
}

// title is the label with the unit.
func (f *frame) title() string {
	switch {
	case f.unit == "":
		return f.axis.Label
	case f.axis.Label == "":
		return f.unit
	}
	return f.axis.Label + ", " + f.unit
}

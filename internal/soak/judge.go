package soak

import (
	"cmp"
	"math"
	"slices"

	"github.com/fullbore-net/fullbore/internal/stats"
	"github.com/fullbore-net/fullbore/result"
)

// Result is what the record adds up to so far.
func (b *Book) Result() *result.Soak {
	out := &result.Soak{
		Asked: b.Head.Asked, Length: round(b.At, 1e3), Tests: b.tests, Restarts: b.restarts,
		Ways: []result.SoakWay{}, Outages: b.merged(), Gaps: []result.SoakGap{}, Hours: []result.SoakHour{},
	}
	for _, g := range b.gaps {
		out.Gaps = append(out.Gaps, result.SoakGap{Start: round(g.From, 1e3), Length: round(g.To-g.From, 1e3), Why: g.Why})
	}
	for _, d := range b.directions() {
		out.Ways = append(out.Ways, b.wayResult(d))
	}
	out.Hours = b.hourResults(out)
	out.Machine = b.machine.result()
	b.findLate(out)
	return out
}

func round(v, per float64) float64 { return math.Round(v*per) / per }

// merged are the outages of both directions, those that overlap as one.
func (b *Book) merged() []result.Outage {
	list := slices.Clone(b.outages)
	slices.SortStableFunc(list, func(x, y Outage) int { return cmp.Compare(x.From, y.From) })
	out := []result.Outage{}
	end := math.Inf(-1) // of the payload's absence in the last of out
	for _, o := range list {
		x := result.Outage{
			Direction: string(o.Direction), Start: round(o.From, 1e3), Length: round(o.To-o.From, 1e3), Stalled: round(o.Back-o.From, 1e3),
			Basis: o.Basis, Restarted: o.Restarted, Open: o.Open, Why: o.Why,
		}
		if n := len(out); n > 0 && o.From < end {
			join(&out[n-1], x)
			end = max(end, o.Back)
			continue
		}
		out, end = append(out, x), o.Back
	}
	return out
}

// join puts y, which begins while x lasts, into x.
func join(x *result.Outage, y result.Outage) {
	if x.Direction != y.Direction {
		x.Direction = "both"
	}
	xEnd, yEnd := x.Start+x.Length, y.Start+y.Length
	switch {
	case x.Basis == y.Basis:
		x.Length = round(max(xEnd, yEnd)-x.Start, 1e3)
	case y.Basis == "reach": // it was asked, the other one only waited
		x.Length, x.Basis = round(yEnd-x.Start, 1e3), "reach"
	}
	x.Stalled = round(max(x.Start+x.Stalled, y.Start+y.Stalled)-x.Start, 1e3)
	x.Restarted, x.Open = x.Restarted || y.Restarted, x.Open || y.Open
	if x.Why == "" {
		x.Why = y.Why
	}
}

// references are the usual rates of the steps: named by the user, or the medians.
func (b *Book) references(w *way) []float64 {
	out := make([]float64, len(b.Head.Steps))
	for i := range out {
		if r := b.Head.Judge.Reference; r > 0 {
			out[i] = r * b.Head.Steps[i].Share
		} else if i < len(w.levels) {
			out[i], _ = w.levels[i].Quantile(0.5)
		}
	}
	return out
}

func (b *Book) wayResult(d result.Direction) result.SoakWay {
	w := b.ways[d]
	refs := b.references(w)
	out := result.SoakWay{Direction: d, Basis: w.mainBasis(), Figures: figuresResult(d, &w.figs, refs), Shifts: []result.SoakShift{}, Levels: []result.SoakLevel{}}
	for i, s := range b.Head.Steps {
		out.Levels = append(out.Levels, result.SoakLevel{Share: s.Share, Reference: math.Round(refs[i])})
	}
	for _, o := range b.outages {
		if o.Direction == d {
			out.Figures.Outages++
			out.Figures.OutageTime += o.To - o.From
		}
	}
	out.Figures.OutageTime = round(out.Figures.OutageTime, 1e3)
	out.Step = float64(max(w.series.step, 1))
	out.Rates = make([]*float64, len(w.series.bytes))
	for i := range out.Rates {
		if r := w.series.rate(i); !math.IsNaN(r) {
			r = math.Round(r)
			out.Rates[i] = &r
		}
	}
	out.Minutes = w.mins.result()
	rel := w.relative(refs)
	out.Trend = trendOf(rel, out.Step)
	out.Shifts = shiftsOf(rel, out.Step)
	out.Period = periodOf(rel, out.Step)
	return out
}

// mainBasis is where most of the seconds come from.
func (w *way) mainBasis() string {
	best, most := "", -1.0
	for _, by := range []string{ByReceiver, ByAcknowledged, BySender} {
		if s, ok := w.basis[by]; ok && s > most {
			best, most = by, s
		}
	}
	return best
}

// relative are the rates as shares of their step's reference, NaN where nothing was measured.
func (w *way) relative(refs []float64) []float64 {
	out := make([]float64, len(w.series.bytes))
	for i := range out {
		out[i] = math.NaN()
		if l := int(w.series.level[i]); l < len(refs) && refs[l] > 0 {
			out[i] = w.series.rate(i) / refs[l]
		}
	}
	return out
}

// figuresResult sums a time up. Outages are added by who knows them.
func figuresResult(d result.Direction, f *figures, refs []float64) result.SoakFigures {
	out := result.SoakFigures{
		Direction: d, Measured: round(f.measured, 1e3), Bytes: f.bytes, Packets: f.packets, Lost: f.lost, Retransmits: f.retransmits,
	}
	rates := f.rates()
	for _, q := range []struct {
		into **float64
		q    float64
	}{{&out.Median, 0.5}, {&out.P1, 0.01}, {&out.P5, 0.05}} {
		if v, ok := rates.Quantile(q.q); ok {
			v = math.Round(v)
			*q.into = &v
		}
	}
	if rates.N() > 0 {
		least, most := math.Round(rates.min), math.Round(rates.max)
		out.Min, out.Max = &least, &most
	}
	good, all := 0.0, int64(0)
	for i := range f.levels {
		if n := f.levels[i].N(); n > 0 && i < len(refs) && refs[i] > 0 {
			good += f.levels[i].AtLeast(0.9*refs[i]) * float64(n)
			all += n
		}
	}
	if all > 0 {
		a := good / float64(all)
		out.Availability = &a
	}
	out.PDV = f.p99
	if f.pdv != nil {
		if q := f.pdv.Quantiles(); q != nil {
			out.PDV = &q.P99
		}
	}
	return out
}

func (b *Book) hourResults(s *result.Soak) []result.SoakHour {
	out := []result.SoakHour{}
	n := len(b.machine.hours)
	for _, d := range b.directions() {
		n = max(n, len(b.ways[d].hours))
	}
	for h := range n {
		x := result.SoakHour{Start: float64(h) * 3600, Ways: []result.SoakFigures{}}
		if h < len(b.machine.hours) {
			m := &b.machine.hours[h]
			x.CPU, x.Busiest, x.Memory, x.MinMHz, x.MaxCelsius, x.Throttles = m.cpu.value(), m.busiest, m.memory, m.minMHz, m.celsius, grown(m.throttles)
		}
		for _, d := range b.directions() {
			w := b.ways[d]
			if h >= len(w.hours) {
				continue
			}
			f := figuresResult(d, &w.hours[h], b.references(w))
			for _, o := range b.outages {
				// An outage counts in the hour in which it began; its time in each that it reaches into.
				if o.Direction != d {
					continue
				}
				if hour(o.From) == h {
					f.Outages++
				}
				f.OutageTime += max(0, min(o.To, x.Start+3600)-max(o.From, x.Start))
			}
			f.OutageTime = round(f.OutageTime, 1e3)
			x.Ways = append(x.Ways, f)
		}
		if len(x.Ways) > 0 || x.CPU != nil {
			out = append(out, x)
		}
	}
	return out
}

// The memory of the program is judged by its first tenth, without the first minute, and its last.
// Of less than an hour nothing is said: the series of samples are still filling, and the heap of a
// program of a few tens of megabytes takes minutes to settle (27 % in a quarter of an hour were that).
const memoryLeast = 360 // tens of seconds

func (m *machine) result() *result.SoakMachine {
	out := &result.SoakMachine{CPU: m.cpu.value(), MaxCelsius: m.celsius, MinMHz: m.minMHz, MaxMHz: m.maxMHz, Throttles: grown(m.throttles)}
	memory := m.memory()
	if len(memory) > 0 && m.seen >= memoryLeast {
		skip := min(int(6/max(m.keep, 1)), len(memory)-1)
		tenth := min(max(len(memory)/10, 3), len(memory)-skip)
		first, _ := stats.Median(memory[skip : skip+tenth])
		last, _ := stats.Median(memory[len(memory)-tenth:])
		f, l := int64(first), int64(last)
		out.FirstMemory, out.LastMemory = &f, &l
		if first > 0 {
			g := last/first - 1
			out.Growth = &g
		}
	} else if len(memory) > 0 {
		l := int64(memory[len(memory)-1])
		out.LastMemory = &l
	}
	if *out == (result.SoakMachine{}) {
		return nil
	}
	return out
}

// blocks are medians of equal blocks of a series, at least least seconds long and at most most
// blocks; blocks of which less than half is known are left out (NaN). size is in values.
func blocks(rel []float64, step float64, least float64, most int) (out []float64, size int) {
	size = max(int(math.Ceil(least/step)), (len(rel)+most-1)/most, 1)
	for from := 0; from+size <= len(rel); from += size {
		part := make([]float64, 0, size)
		for _, v := range rel[from : from+size] {
			if !math.IsNaN(v) {
				part = append(part, v)
			}
		}
		m := math.NaN()
		if 2*len(part) >= size {
			m, _ = stats.Median(part)
		}
		out = append(out, m)
	}
	return out, size
}

// The blocks of trend and shifts: at most 200. A trend needs ten seconds to be more than noise; a shift is looked
// for between eight blocks a side, so that those of four seconds show what stayed for half a minute (lateLeast).
const (
	blockLeast = 10.0
	shiftBlock = 4.0
	blockMost  = 200
)

func known(x []float64) (values []float64, index []int) {
	for i, v := range x {
		if !math.IsNaN(v) {
			values, index = append(values, v), append(index, i)
		}
	}
	return values, index
}

func trendOf(rel []float64, step float64) *result.SoakTrend {
	all, size := blocks(rel, step, blockLeast, blockMost)
	x, _ := known(all)
	d, ok := stats.DriftOf(x)
	if !ok {
		return nil
	}
	block := float64(size) * step
	perDay := 86400 / block
	return &result.SoakTrend{Slope: d.Slope * perDay, Low: d.Low * perDay, High: d.High * perDay, P: d.P, Block: block, N: d.N}
}

// shiftLeast is how much the level must change for a shift to be named.
const shiftLeast = 0.03

// seed of the permutation test: the same record always gives the same answer.
const seed = 20

func shiftsOf(rel []float64, step float64) []result.SoakShift {
	out := []result.SoakShift{}
	all, size := blocks(rel, step, shiftBlock, blockMost)
	x, index := known(all)
	cuts := stats.Splits(x, seed)
	// Cuts that move the level by nothing worth naming are taken out, the least first.
	for {
		weak, least := -1, shiftLeast
		for i, c := range cuts {
			if r := change(c.Before, c.After); r < least {
				weak, least = i, r
			}
		}
		if weak < 0 {
			break
		}
		cuts = slices.Delete(cuts, weak, weak+1)
		levelsBetween(x, cuts)
	}
	for i, c := range cuts {
		s := result.SoakShift{Before: c.Before, After: c.After, P: c.P, Stays: true}
		if c.Before > 0 {
			s.Ratio = c.After / c.Before
		}
		from, to := 0, len(x)
		if i > 0 {
			from = cuts[i-1].At
		}
		if i+1 < len(cuts) {
			to = cuts[i+1].At
		}
		s.Alarm = alarms(x[from:c.At], x[c.At:to])
		for _, later := range cuts[i+1:] {
			if math.Abs(later.After-c.Before) < math.Abs(c.After-c.Before)/2 {
				s.Stays = false
			}
		}
		s.At = cutTime(rel, step, index[c.At]*size, size, c.Before, c.After)
		out = append(out, s)
	}
	return out
}

// alarms reports that a CUSUM that knows the level and the spread before a change alarms behind it.
func alarms(before, after []float64) bool {
	m, _ := stats.Median(before)
	spread, _ := stats.MAD(before)
	spread = max(spread, 1e-6*math.Abs(m)) / 0.6745
	z := make([]float64, len(after))
	for i, v := range after {
		if spread > 0 {
			z[i] = (v - m) / spread
		}
	}
	return len(stats.CUSUM(z)) > 0
}

// change is by what share of the larger the smaller is less.
func change(a, b float64) float64 {
	most := max(math.Abs(a), math.Abs(b))
	if most == 0 {
		return 0
	}
	return math.Abs(a-b) / most
}

// levelsBetween computes the medians on both sides of each cut anew.
func levelsBetween(x []float64, cuts []stats.Split) {
	for i := range cuts {
		from, to := 0, len(x)
		if i > 0 {
			from = cuts[i-1].At
		}
		if i+1 < len(cuts) {
			to = cuts[i+1].At
		}
		cuts[i].Before, _ = stats.Median(x[from:cuts[i].At])
		cuts[i].After, _ = stats.Median(x[cuts[i].At:to])
	}
}

// cutTime finds the moment of a change near value at: where the values before fit the one level
// best and those behind it the other.
func cutTime(rel []float64, step float64, at, size int, before, after float64) float64 {
	from, to := max(0, at-size), min(len(rel), at+size)
	sum := 0.0
	for _, v := range rel[from:to] {
		if !math.IsNaN(v) {
			sum += math.Abs(v - after)
		}
	}
	best, where := sum, from
	for i := from; i < to; i++ { // value i goes over to the side before
		if v := rel[i]; !math.IsNaN(v) {
			sum += math.Abs(v-before) - math.Abs(v-after)
		}
		if sum < best {
			best, where = sum, i+1
		}
	}
	return float64(where) * step
}

// A period is looked for between a minute and an hour, in means of ten seconds.
const (
	periodStep  = 10.0
	periodLeast = 60.0
	periodMost  = 3600.0
)

func periodOf(rel []float64, step float64) *result.SoakPeriod {
	size := max(1, int(periodStep/step))
	var x []float64
	for from := 0; from+size <= len(rel); from += size {
		v, _ := known(rel[from : from+size])
		m := math.NaN()
		if 2*len(v) >= size {
			m, _ = stats.Mean(v)
		}
		x = append(x, m)
	}
	flatten(x)
	unit := float64(size) * step
	c, ok := stats.Period(x, int(math.Ceil(periodLeast/unit)), int(periodMost/unit))
	if !ok {
		return nil
	}
	return &result.SoakPeriod{Period: float64(c.Lag) * unit, R: round(c.R, 1e3)}
}

// flatten takes out values so far from the rest that a single one would decide everything: what
// deviates by more than ten times the usual counts as ten times.
func flatten(x []float64) {
	v, _ := known(x)
	m, ok := stats.Median(v)
	if !ok {
		return
	}
	mean := 0.0
	for _, a := range v {
		mean += math.Abs(a-m) / float64(len(v))
	}
	for i, a := range x {
		x[i] = min(max(a, m-10*mean), m+10*mean) // NaN stays NaN
	}
}

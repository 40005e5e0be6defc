package soak

import (
	"math"
	"slices"

	"github.com/fullbore-net/fullbore/internal/delay"
	"github.com/fullbore-net/fullbore/result"
)

// MaxSeries is the most values of a direction's series. When it is full, neighbours are put
// together and the step doubles.
const MaxSeries = 90000

// maxList bounds the lists of outages, gaps and notes: a path that fails all day long is told
// by its first 10000 outages, and its availability.
const maxList = 10000

// Book adds up a record, line by line. Live and read from a file it is the same. It is not safe
// for concurrent use.
type Book struct {
	Head  Head
	At    float64 // end of the last line's time
	Ended *End    // nil = the record does not say why it ends

	ways     map[result.Direction]*way
	outages  []Outage
	openAt   map[openKey]int // index in outages of those that are open
	gaps     []Gap
	notes    []Note
	tests    int
	restarts int
	machine  machine
	errors   int // tests that broke off
	plain    bool
	left     int // list entries that found no room
}

type openKey struct {
	dir  result.Direction
	from float64
}

// way is one direction.
type way struct {
	dir    result.Direction
	basis  map[string]float64 // seconds by each
	levels []Rates            // 1-s rates of each step
	figs   figures
	hours  []figures // by number of the hour
	mins   minutes
	series series
	// quick is the usual rate per step, refreshed with each second.
	quick []float64
}

// figures add up a time.
type figures struct {
	levels      []Rates // by step
	measured    float64
	bytes       int64
	packets     *int64
	lost        *int64
	retransmits *int64
	pdv         *delay.Histogram
	over        bool     // nothing of weight comes any more: see seal
	p99         *float64 // of pdv, when it is over
}

func (f *figures) add(s *Second) {
	f.bytes += s.Bytes
	f.measured += s.Cover
	add(&f.packets, s.Packets)
	add(&f.lost, s.Lost)
	add(&f.retransmits, s.Retransmits)
	f.addPDV(s.PDV)
	if s.Cover < leastCover {
		return
	}
	rate := result.Rate(s.Bytes, s.Cover)
	for len(f.levels) <= s.Level {
		f.levels = append(f.levels, Rates{})
	}
	f.levels[s.Level].Add(rate)
}

// rates are those of all steps together.
func (f *figures) rates() *Rates {
	if len(f.levels) == 1 {
		return &f.levels[0]
	}
	all := &Rates{}
	for i := range f.levels {
		all.Merge(&f.levels[i])
	}
	return all
}

// seal makes figures small that are over: hours add up, and memory must not.
func (f *figures) seal() {
	f.over = true
	if f.pdv != nil {
		if q := f.pdv.Quantiles(); q != nil {
			f.p99 = &q.P99
		}
		f.pdv = nil
	}
	for i := range f.levels {
		f.levels[i].pack()
	}
}

func (f *figures) addPDV(p *PDVPart) {
	if p == nil || p.N <= 0 || f.over {
		return
	}
	if f.pdv == nil {
		f.pdv = &delay.Histogram{}
	}
	addPDV(f.pdv, *p)
}

// leastCover is how much of a second must be measured for its rate to count.
const leastCover = 0.5

// series are the rates over time.
type series struct {
	step  int64 // s
	bytes []float64
	cover []float64
	level []uint8
}

// newSeries has the room for a soak of so many seconds from the beginning: what grew meanwhile would look like
// a leak, by which the soak is judged.
func newSeries(asked float64) series {
	n := int(min(max(asked, 0)+1, MaxSeries))
	return series{step: 1, bytes: room(n, 1.0), cover: room(n, 1.0), level: room(n, uint8(1))}
}

// room is a slice without values that has place for n. The system gives memory only when something is written.
func room[T any](n int, v T) []T {
	s := make([]T, n)
	for i := range s {
		s[i] = v
	}
	return s[:0]
}

func (s *series) add(x *Second) {
	if s.step == 0 {
		s.step = 1
	}
	for x.T/s.step >= MaxSeries {
		s.halve()
	}
	i := int(x.T / s.step)
	for len(s.bytes) <= i {
		s.bytes, s.cover, s.level = append(s.bytes, 0), append(s.cover, 0), append(s.level, uint8(x.Level))
	}
	s.bytes[i] += float64(x.Bytes)
	s.cover[i] += x.Cover
	s.level[i] = uint8(x.Level)
}

// halve doubles the step.
func (s *series) halve() {
	n := (len(s.bytes) + 1) / 2
	for i := range n {
		b, c, l := s.bytes[2*i], s.cover[2*i], s.level[2*i]
		if k := 2*i + 1; k < len(s.bytes) {
			b, c, l = b+s.bytes[k], c+s.cover[k], s.level[k]
		}
		s.bytes[i], s.cover[i], s.level[i] = b, c, l
	}
	s.bytes, s.cover, s.level = s.bytes[:n], s.cover[:n], s.level[:n]
	s.step *= 2
}

// rate is that of value i, NaN when too little of it was measured.
func (s *series) rate(i int) float64 {
	if s.cover[i] < leastCover*float64(s.step) {
		return math.NaN()
	}
	return s.bytes[i] * 8 / s.cover[i]
}

// machine adds up what is known of this host.
type machine struct {
	samples   []sample // one of each keep that were seen
	keep      int64
	seen      int64
	cpu       mean
	celsius   *float64
	minMHz    *int
	maxMHz    *int
	throttles [2]*int64 // first, last
	hours     []machineHour
}

// sample is what of a Machine is looked at again; NaN = not known.
type sample struct {
	t, throttled, mhz, memory, throttles float64
}

func sampleOf(x *Machine) sample {
	s := sample{t: x.T, throttled: math.NaN(), mhz: math.NaN(), memory: math.NaN(), throttles: math.NaN()}
	if x.Throttled != nil {
		s.throttled = *x.Throttled
	}
	if x.MHz != nil {
		s.mhz = float64(*x.MHz)
	}
	if x.Memory != nil {
		s.memory = float64(*x.Memory)
	}
	if x.Throttles != nil {
		s.throttles = float64(*x.Throttles)
	}
	return s
}

type machineHour struct {
	cpu       mean
	busiest   *float64
	throttled *float64
	memory    *int64
	minMHz    *int
	celsius   *float64
	throttles [2]*int64
}

type mean struct {
	sum float64
	n   int64
}

func (m *mean) add(v *float64) {
	if v != nil {
		m.sum += *v
		m.n++
	}
}

func (m *mean) value() *float64 {
	if m.n == 0 {
		return nil
	}
	v := m.sum / float64(m.n)
	return &v
}

// NewBook is an empty one.
func NewBook(h Head) *Book {
	return &Book{Head: h, ways: map[result.Direction]*way{}, openAt: map[openKey]int{}}
}

// Add takes a line.
func (b *Book) Add(l Line) {
	switch {
	case l.Second != nil:
		b.second(l.Second)
		b.At = max(b.At, float64(l.Second.T)+l.Second.Cover)
	case l.Machine != nil:
		b.machine.add(l.Machine)
		b.At = max(b.At, l.Machine.T)
	case l.Outage != nil:
		b.outage(*l.Outage)
		b.At = max(b.At, l.Outage.To)
	case l.Gap != nil:
		if len(b.gaps) < maxList {
			b.gaps = append(b.gaps, *l.Gap)
		} else {
			b.left++
		}
		b.At = max(b.At, l.Gap.To)
	case l.Test != nil:
		b.tests++
		if l.Test.Restart {
			b.restarts++
		}
		if l.Test.Err != "" {
			b.errors++
		}
		b.plain = b.plain || !l.Test.Extension
		b.At = max(b.At, l.Test.To)
	case l.Note != nil:
		if len(b.notes) < maxList {
			b.notes = append(b.notes, *l.Note)
		} else {
			b.left++
		}
	case l.Total != nil:
		b.total(l.Total)
	case l.End != nil:
		b.Ended = l.End
		b.At = max(b.At, l.End.T)
	}
	if l.End == nil {
		b.Ended = nil // it was gone on with
	}
}

// directions are those that have seconds, up first.
func (b *Book) directions() (out []result.Direction) {
	for _, d := range []result.Direction{result.Up, result.Down} {
		if b.ways[d] != nil {
			out = append(out, d)
		}
	}
	return out
}

func (b *Book) way(d result.Direction) *way {
	w := b.ways[d]
	if w == nil {
		w = &way{dir: d, basis: map[string]float64{}, mins: newMinutes(b.Head.Asked), series: newSeries(b.Head.Asked)}
		b.ways[d] = w
	}
	return w
}

// hour is the index of the hour of second t; a record of centuries would be a mistake.
func hour(t float64) int { return int(min(max(t, 0)/3600, 1e6)) }

func (w *way) hour(t float64) *figures {
	h := hour(t)
	for len(w.hours) <= h {
		if n := len(w.hours); n > 1 { // of the last one a second may still come
			w.hours[n-2].seal()
		}
		w.hours = append(w.hours, figures{})
	}
	return &w.hours[h]
}

func (b *Book) second(s *Second) {
	if s.T < 0 || s.T > 1<<40 || s.Level < 0 || s.Level > math.MaxUint8 || !one(s.Direction) {
		return
	}
	w := b.way(s.Direction)
	if s.Basis != "" {
		w.basis[s.Basis] += s.Cover
	}
	w.figs.add(s)
	w.hour(float64(s.T)).add(s)
	if f := w.mins.at(s.T); f != nil {
		f.add(s)
	}
	w.series.add(s)
	w.levels = w.figs.levels
	if s.Cover >= leastCover {
		for len(w.quick) < len(w.levels) {
			w.quick = append(w.quick, 0)
		}
		w.quick[s.Level], _ = w.levels[s.Level].Quantile(0.5)
	}
}

// Usual is the median of a direction's rates in a step of the load so far; ok is false before
// the first seconds of it are known.
func (b *Book) Usual(d result.Direction, level int) (bps float64, ok bool) {
	w := b.ways[d]
	if w == nil || level >= len(w.levels) || w.levels[level].N() < settle {
		return 0, false
	}
	return w.quick[level], w.quick[level] > 0
}

// one reports that d is a direction, and not a mistake in a file.
func one(d result.Direction) bool { return d == result.Up || d == result.Down }

func (b *Book) total(t *Total) {
	if !one(t.Direction) {
		return
	}
	w := b.way(t.Direction)
	for _, f := range []*figures{&w.figs, w.hour(t.T), w.mins.at(int64(max(t.T, 0)))} {
		if f == nil {
			continue
		}
		add(&f.packets, t.Packets)
		add(&f.lost, t.Lost)
		f.addPDV(t.PDV)
	}
}

func (b *Book) outage(o Outage) {
	key := openKey{o.Direction, o.From}
	at, known := b.openAt[key]
	switch {
	case known:
		b.outages[at] = o
	case len(b.outages) >= maxList:
		b.left++
		return
	default:
		at = len(b.outages)
		b.outages = append(b.outages, o)
	}
	if o.Open {
		b.openAt[key] = at
	} else {
		delete(b.openAt, key)
	}
}

// Outages are those so far, of both directions apart, in the order in which they began to be told.
func (b *Book) Outages() []Outage { return slices.Clone(b.outages) }

func (m *machine) add(x *Machine) {
	m.cpu.add(x.CPU)
	raise(&m.celsius, x.Celsius)
	lower(&m.minMHz, x.MHz)
	raise(&m.maxMHz, x.MHz)
	count(&m.throttles, x.Throttles)
	m.sample(x)
	i := hour(x.T - 1)
	for len(m.hours) <= i {
		m.hours = append(m.hours, machineHour{})
	}
	h := &m.hours[i]
	h.cpu.add(x.CPU)
	raise(&h.busiest, x.Busiest)
	raise(&h.throttled, x.Throttled)
	raise(&h.memory, x.Memory)
	raise(&h.celsius, x.Celsius)
	lower(&h.minMHz, x.MHz)
	if h.throttles[0] == nil && i > 0 {
		h.throttles[0] = m.hours[i-1].throttles[1]
	}
	count(&h.throttles, x.Throttles)
}

// maxSamples bounds the samples; of longer soaks each second, fourth, … is kept.
const maxSamples = 10000

func (m *machine) sample(x *Machine) {
	m.keep = max(m.keep, 1)
	if m.samples == nil {
		m.samples = room(maxSamples+1, sample{t: 1})
	}
	if m.seen%m.keep == 0 {
		m.samples = append(m.samples, sampleOf(x))
	}
	m.seen++
	if len(m.samples) > maxSamples {
		for i := range len(m.samples) / 2 {
			m.samples[i] = m.samples[2*i]
		}
		m.samples = m.samples[:len(m.samples)/2]
		m.keep *= 2
	}
}

// memory are the samples' memory.
func (m *machine) memory() (out []float64) {
	for i := range m.samples {
		if v := m.samples[i].memory; !math.IsNaN(v) {
			out = append(out, v)
		}
	}
	return out
}

type number interface{ ~int | ~int64 | ~float64 }

func raise[T number](into **T, v *T) {
	if v != nil && (*into == nil || *v > **into) {
		c := *v
		*into = &c
	}
}

func lower[T number](into **T, v *T) {
	if v != nil && (*into == nil || *v < **into) {
		c := *v
		*into = &c
	}
}

// count keeps the first and the last reading of a counter that grows.
func count(c *[2]*int64, v *int64) {
	if v == nil {
		return
	}
	if c[0] == nil {
		c[0] = v
	}
	c[1] = v
}

// grown is how much a counter grew; nil when it was not read twice.
func grown(c [2]*int64) *int64 {
	if c[0] == nil || c[1] == nil || *c[1] < *c[0] {
		return nil
	}
	n := *c[1] - *c[0]
	return &n
}

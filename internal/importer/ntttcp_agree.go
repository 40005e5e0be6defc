package importer

import (
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/fullbore-net/fullbore/result"
)

// An output of NTTTCP shows the same few counts in many ways, each rounded by itself. Here the
// counts are found that give all of them again.

// narrow takes what another figure says of the time; what contradicts the others is left out.
func (f *ntttcp) narrow(s span) {
	if math.IsNaN(s.lo) || math.IsNaN(s.hi) {
		return
	}
	if both := f.seconds.and(s); !both.empty() {
		f.seconds = both
	}
}

// during narrows the time by an amount that was also shown per second.
func (f *ntttcp) during(amount, rate span) {
	if amount.lo > 0 && amount.hi < math.Inf(1) && rate.lo > 0 && rate.hi < math.Inf(1) {
		f.narrow(span{amount.lo / rate.hi, amount.hi / rate.lo})
	}
}

// counts narrows the time by a rate that was made of a whole number.
func (f *ntttcp) counts(rate span) {
	n := math.Round(rate.mid() * f.seconds.mid())
	f.during(span{n, n}, rate)
}

// agree narrows the time to what all figures allow, and finds the ticks of the processors.
func (f *ntttcp) agree() {
	f.during(f.bytes, f.rate)
	f.during(f.buffers, f.bufferRate)
	for _, r := range f.cut { // of whole MB
		f.during(span{f.whole, f.whole}, r)
	}
	if f.interrupts != nil && f.interruptRate != nil {
		n := float64(*f.interrupts)
		f.during(span{n, n}, *f.interruptRate)
	}
	if f.seconds.hi == math.Inf(1) {
		return
	}
	if f.interrupts == nil && f.interruptRate != nil {
		f.counts(*f.interruptRate)
	}
	if f.dpcRate != nil {
		f.counts(*f.dpcRate)
	}
	for _, name := range slices.Sorted(maps.Keys(f.tcp)) {
		f.counts(f.tcp[name])
	}
	f.ticks()
}

// ticks finds counts of 10 ms, the unit in which Linux counts a processor's time, that give the
// shares and the cycles as they were shown. There are as many as the time and the processors give,
// or a few more or less, since the two readings are not of the same moment as the others.
func (f *ntttcp) ticks() {
	const most = 400 // off
	if f.windows || f.cores <= 0 || len(f.shown) == 0 {
		return
	}
	near := math.Round(f.seconds.mid() * 100 * float64(f.cores))
	for off := range most {
		for _, n := range []float64{near - float64(off), near + float64(off)} {
			if n <= 0 || n > 1e12 {
				continue
			}
			if c, ok := f.split(n); ok && f.cycled(c) {
				f.counted = c
				return
			}
		}
	}
}

// split deals n ticks out as the shares say.
func (f *ntttcp) split(n float64) (*result.CPUTime, bool) {
	c := &result.CPUTime{}
	for name, to := range map[string]*int64{"user": &c.User, "system": &c.System, "idle": &c.Idle, "iowait": &c.IOWait, "softirq": &c.SoftIRQ} {
		shown, ok := f.shown[name]
		if !ok {
			return nil, false
		}
		k := math.Round(flt(shown) * n / 100)
		if strconv.FormatFloat(k/n*100, 'f', 2, 64) != shown {
			return nil, false
		}
		*to = int64(k) * 1e7
	}
	c.Nice = int64(n)*1e7 - c.Total() // what is in none of them
	return c, c.Nice >= 0
}

// cycled reports that c can have given the cycles for each byte that were shown, and narrows the time by
// them.
func (f *ntttcp) cycled(c *result.CPUTime) bool {
	if f.cycles == nil || f.mhz == nil || f.bytes.hi == math.Inf(1) {
		return true
	}
	h := &result.HostTotal{Cores: f.cores, MHz: f.mhz, CPU: c}
	each := h.CyclesPerByte(int64(math.Round(f.bytes.mid())), 1)
	if each <= 0 {
		return true
	}
	both := f.seconds.and(f.cycles.times(1 / each))
	if both.empty() {
		return false
	}
	f.seconds = both
	return true
}

// quantum is the size of the calls where all of them were full: amounts are whole calls then. 1 = it
// is not known.
func (f *ntttcp) quantum() float64 {
	q := 1.0
	for i := range f.threads {
		s := f.threads[i].perCompletion
		v := math.Round(s.mid())
		if s.hi == math.Inf(1) || v < 2 || v < s.lo || v > s.hi || i > 0 && v != q {
			return 1
		}
		q = v
	}
	if math.Mod(math.Round(f.bytes.mid()), q) != 0 {
		return 1
	}
	return q
}

// amounts is what is known of the amounts, in units of q bytes: of each thread, or of all together
// where the threads were not shown.
func (f *ntttcp) amounts(q float64) *group {
	in := func(s span) span { return s.times(1 / q) }
	g := &group{nominal: f.seconds.mid(), slack: (f.seconds.hi - f.seconds.lo) / 2}
	bytes, rate := in(f.bytes), in(f.rate)
	if len(f.threads) == 0 {
		g.amounts, g.rates = []span{bytes}, []span{rate}
		return g
	}
	for _, t := range f.threads {
		own := t.rate
		switch {
		case !f.perThreadTime:
		case t.seconds.lo == 0: // 5.40 shows no time, and so no rate
			own = anything()
		case t.seconds.hi < math.Inf(1) && own.hi < math.Inf(1): // the console divides by each thread's own time
			own = span{own.lo * t.seconds.lo / f.seconds.hi, own.hi * t.seconds.hi / f.seconds.lo}
		}
		g.amounts, g.rates = append(g.amounts, span{0, bytes.hi}), append(g.rates, in(own))
	}
	g.sum, g.sumRate = &bytes, &rate
	return g
}

// solve finds the time and the bytes of each thread. Threads whose figures do not add up get equal
// shares of the whole.
func (f *ntttcp) solve() (seconds float64, bytes []int64) {
	if f.seconds.hi == math.Inf(1) {
		f.seconds = span{0, 0}
	}
	for _, q := range []float64{f.quantum(), 1} {
		if f.seconds.mid() <= 0 {
			break
		}
		t, units, ok := f.amounts(q).solve()
		if !ok {
			continue
		}
		for _, n := range units {
			bytes = append(bytes, n*int64(q))
		}
		return t, bytes
	}
	n := int64(max(len(f.threads), 1))
	total := int64(math.Round(f.bytes.mid()))
	for range n {
		bytes = append(bytes, total/n)
	}
	bytes[0] += total - total/n*n
	return f.seconds.mid(), bytes
}

// ownTime is how long thread i worked, by the console of Windows: what its rate was divided by.
func (f *ntttcp) ownTime(i int, bytes int64) float64 {
	t := f.threads[i]
	if f.perThreadTime && t.rate.lo > 0 && t.rate.hi < math.Inf(1) {
		if s := float64(bytes) / t.rate.mid(); s >= t.seconds.lo && s <= t.seconds.hi {
			return s
		}
	}
	return t.seconds.mid()
}

// countOf is the count that a rate over so many seconds was made of.
func countOf(rate span, seconds float64) *int64 {
	n := int64(0)
	if rate.lo > 0 { // else 0.00 was shown
		n = int64(math.Round(rate.mid() * seconds))
	}
	return &n
}

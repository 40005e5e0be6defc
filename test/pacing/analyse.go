// Package pacing looks at how evenly a sender of datagrams sends, from what the
// receiving kernel noted: the time of every datagram, which no program at either end
// has a say in. Its tests prove the schedule of fullbore's engine; test/bench uses it on
// whole programs, fullbore's and others'.
//
// Every time is in ns of CLOCK_MONOTONIC, on one machine.
package pacing

import (
	"cmp"
	"math"
	"slices"

	"github.com/fullbore-net/fullbore/internal/stats"
)

// Arrival is what the kernel had at one instant: a datagram, or several of one length
// that left as one super-packet and that nobody has cut.
type Arrival struct {
	At    int64 // the kernel's stamp
	Sent  int64 // what the sender wrote into the first datagram; 0 = another clock's
	Seq   int64 // number of the first datagram
	Count int64 // datagrams
}

// Schedule is what the sender was asked for.
type Schedule struct {
	Rate    int64 // payload bit/s
	Size    int64 // payload bytes of a datagram
	Planned int64 // datagrams a burst, as the sender plans; 0 = it has no plan
	Begun   int64 // when datagram 1 was due; 0 = not known
}

// TimeOf is how long n datagrams take at the rate, ns.
func (s Schedule) TimeOf(n int64) float64 {
	return float64(n) * float64(s.Size) * 8e9 / float64(s.Rate)
}

// Span is a time that is looked at apart.
type Span struct{ From, To int64 }

// Report is what the stamps say.
type Report struct {
	Datagrams int64   // in the first arrival to the last
	Missing   int64   // numbers between them that did not come, or did not by the capture
	Seconds   float64 // from the first arrival to the last
	// RateError is the rate by number and stamp, from the first datagram to the first of
	// the last burst, over the rate that was asked for, less 1.
	RateError float64
	// A burst are datagrams that follow each other within half of their mean spacing.
	Bursts   int
	Median   int64 // datagrams of the median burst
	Largest  int64
	Outside  int64 // the largest that has no part in the spans apart
	Excess   int   // bursts outside of more than the planned one and 1; 0 without a plan
	Apart    int   // bursts in the spans apart
	Delivery *Late // from the sender's stamp to the kernel's; nil without the sender's
	// Schedule is how late the first of each planned burst was; of an unknown beginning
	// beyond the most punctual. nil without a plan.
	Schedule *Late
	first    int64
}

// Late sums up times, in seconds.
type Late struct{ Least, P50, P99, Most float64 }

// late sums up ns; nil for none.
func late(ns []float64) *Late {
	q, ok := stats.Quantiles(ns, 0, 0.5, 0.99, 1)
	if !ok {
		return nil
	}
	return &Late{q[0] / 1e9, q[1] / 1e9, q[2] / 1e9, q[3] / 1e9}
}

// Look sums up the arrivals of one stream, in any order. Bursts that touch a span of
// apart count for Largest alone. ok is false for fewer than two bursts: they have no
// rate.
func Look(arrivals []Arrival, s Schedule, apart []Span) (r Report, ok bool) {
	if len(arrivals) == 0 {
		return r, false
	}
	in := slices.Clone(arrivals)
	slices.SortStableFunc(in, func(a, b Arrival) int { return cmp.Compare(a.At, b.At) })
	bursts := group(in, s)
	if len(bursts) < 2 {
		return r, false
	}
	first, last := bursts[0], bursts[len(bursts)-1]
	r.Bursts, r.first = len(bursts), in[0].Seq
	r.Seconds = float64(in[len(in)-1].At-in[0].At) / 1e9
	r.RateError = s.TimeOf(last.seq-first.seq)/float64(last.from-first.from) - 1
	sizes := make([]float64, len(bursts))
	for i, b := range bursts {
		sizes[i] = float64(b.count)
		r.Datagrams += b.count
		r.Largest = max(r.Largest, b.count)
		if b.touches(apart) {
			r.Apart++
			continue
		}
		r.Outside = max(r.Outside, b.count)
		if s.Planned > 0 && b.count > s.Planned+1 {
			r.Excess++
		}
	}
	middle, _ := stats.Median(sizes)
	r.Median = int64(math.Round(middle))
	r.Missing = missing(in)
	r.times(in, s)
	return r, true
}

// burst is a group of datagrams.
type burst struct{ from, to, seq, count int64 }

func (b burst) touches(spans []Span) bool {
	return slices.ContainsFunc(spans, func(s Span) bool { return b.from <= s.To && b.to >= s.From })
}

func group(in []Arrival, s Schedule) (out []burst) {
	near := s.TimeOf(1) / 2
	for _, a := range in {
		if n := len(out); n > 0 && float64(a.At-out[n-1].to) < near {
			out[n-1].to = a.At
			out[n-1].count += a.Count
			continue
		}
		out = append(out, burst{a.At, a.At, a.Seq, a.Count})
	}
	return out
}

// missing counts the numbers that did not come between the least and the highest.
func missing(in []Arrival) (n int64) {
	bySeq := slices.Clone(in)
	slices.SortFunc(bySeq, func(a, b Arrival) int { return cmp.Compare(a.Seq, b.Seq) })
	next := bySeq[0].Seq
	for _, a := range bySeq {
		n += max(0, a.Seq-next)
		next = max(next, a.Seq+a.Count)
	}
	return n
}

// Begins is when datagram 1 was due by what the sender wrote into the datagrams, given
// how late, in seconds, it says that its most punctual burst was. It holds where nothing
// was given up.
func Begins(in []Arrival, s Schedule, least float64) int64 {
	begun := int64(math.MaxInt64)
	for _, a := range in {
		if (a.Seq-1)%s.Planned == 0 {
			begun = min(begun, a.Sent-int64(s.TimeOf(a.Seq-1)))
		}
	}
	return begun - int64(least*1e9)
}

// times compares the stamps with each other and with the schedule.
func (r *Report) times(in []Arrival, s Schedule) {
	var delivery, schedule []float64
	least := math.Inf(1)
	if s.Begun != 0 {
		least = float64(s.Begun-in[0].At) + s.TimeOf(r.first-1)
	}
	for _, a := range in {
		if a.Sent != 0 {
			delivery = append(delivery, float64(a.At-a.Sent))
		}
		if s.Planned > 0 && (a.Seq-1)%s.Planned == 0 {
			l := float64(a.At-in[0].At) - s.TimeOf(a.Seq-r.first)
			schedule = append(schedule, l)
			if s.Begun == 0 {
				least = min(least, l)
			}
		}
	}
	for i := range schedule {
		schedule[i] -= least
	}
	r.Delivery, r.Schedule = late(delivery), late(schedule)
}

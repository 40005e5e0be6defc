package soak

import (
	"math"

	"github.com/fullbore-net/fullbore/internal/delay"
	"github.com/fullbore-net/fullbore/result"
)

// What is known of a slot.
type Known int

// Measured: a report tells its bytes. Silent: no test could carry anything, because the path or the
// peer did not answer. Unmeasured: nothing is known, and nothing is wrong.
const (
	Measured Known = iota
	Silent
	Unmeasured
)

// Slot is what a report says of one direction: usually a tenth of a second.
type Slot struct {
	From, To    float64 // s since the start of the soak
	Bytes       int64
	Packets     *int64
	Lost        *int64
	Retransmits *int64
	PDV         []PDVPart
	Known       Known
	Basis       string
}

// An outage (M-SOAK): at least a second below a tenth of the usual rate. Of a load of few blocks a
// second at least so many blocks are missing in it.
const (
	outageLeast  = 1.0
	outageShare  = 0.1
	outageBlocks = 5
)

// settle is how many seconds of a step must be known before its outages are looked for.
const settle = 3

// Lane puts the slots of one direction together: seconds, and outages with ends finer than a
// second. Slots come in order of time and do not overlap; what lies between two is unmeasured.
type Lane struct {
	dir   result.Direction
	level int
	usual func(level int) (bps float64, ok bool) // median so far
	emit  func(Line)
	least float64 // s: shorter ones are no outages

	at  float64 // up to where slots came
	sec open    // the second that is being filled

	last  *Slot // the last measured one, for the beginning of an outage
	out   *Outage
	told  bool    // out was written, open
	reach []reach // times in which the path did not answer, the newest last
}

// reach is a time in which the path did not answer.
type reach struct {
	from, back float64
	why        string
	// restarted: the test was begun again after it. only: nothing but that is known; the path answered.
	restarted, only bool
}

// open is a second that is not over.
type open struct {
	Second
	any     bool
	slowest float64
	pdv     *delay.Histogram
}

// newLane begins at time at; spacing is how far apart blocks of the load are, s.
func newLane(d result.Direction, at, spacing float64, usual func(int) (float64, bool), emit func(Line)) *Lane {
	return &Lane{dir: d, at: at, usual: usual, emit: emit, least: max(outageLeast, outageBlocks*spacing)}
}

// Level says that from now on slots belong to another step of the load.
func (l *Lane) Level(level int) {
	if level == l.level {
		return
	}
	l.flush()
	l.level, l.last = level, nil
}

// Add takes a slot. Of one that begins before the end of the last only the rest counts.
func (l *Lane) Add(s Slot) {
	if s.To <= l.at || !(s.To > s.From) {
		return
	}
	if s.From < l.at {
		share := (s.To - l.at) / (s.To - s.From)
		s.From, s.Bytes = l.at, int64(math.Round(float64(s.Bytes)*share))
	}
	l.at = s.To
	if s.Known == Unmeasured {
		l.advance(s.To)
		return
	}
	l.watch(s)
	l.fill(s)
}

// advance ends the second that is being filled when time t lies behind it.
func (l *Lane) advance(t float64) {
	if l.sec.any && t >= float64(l.sec.T+1) {
		l.flush()
	}
}

// fill spreads a slot over the seconds that it touches.
func (l *Lane) fill(s Slot) {
	length, rate := s.To-s.From, result.Rate(s.Bytes, s.To-s.From)
	left := s.Bytes
	for from := s.From; from < s.To; {
		t := int64(math.Floor(from))
		if l.sec.any && l.sec.T != t {
			l.flush()
		}
		if !l.sec.any {
			l.sec = open{Second: Second{Direction: l.dir, T: t, Level: l.level, Basis: s.Basis}, any: true, slowest: rate}
		}
		to := min(s.To, float64(t+1))
		part := left
		if to < s.To {
			part = min(left, int64(math.Round(float64(s.Bytes)*(to-from)/length)))
		}
		left -= part
		l.sec.Bytes += part
		l.sec.Cover += to - from
		l.sec.slowest = min(l.sec.slowest, rate)
		if s.Basis != "" {
			l.sec.Basis = s.Basis
		}
		if from == s.From { // counts are whole: they belong to where the slot begins
			add(&l.sec.Packets, s.Packets)
			add(&l.sec.Lost, s.Lost)
			add(&l.sec.Retransmits, s.Retransmits)
			for _, p := range s.PDV {
				if l.sec.pdv == nil {
					l.sec.pdv = &delay.Histogram{}
				}
				addPDV(l.sec.pdv, p)
			}
		}
		from = to
	}
	l.advance(s.To)
}

// Retransmits adds what the sender sent again, as it became known.
func (l *Lane) Retransmits(n int64) {
	if !l.sec.any {
		t := int64(math.Floor(l.at))
		l.sec = open{Second: Second{Direction: l.dir, T: t, Level: l.level}, any: true, slowest: math.Inf(1)}
	}
	add(&l.sec.Retransmits, &n)
}

func add(sum **int64, n *int64) {
	if n == nil {
		return
	}
	v := *n
	if *sum != nil {
		v += **sum
	}
	*sum = &v
}

// flush writes the second that is being filled.
func (l *Lane) flush() {
	if !l.sec.any {
		return
	}
	s := l.sec.Second
	s.Cover = math.Round(math.Min(s.Cover, 1)*1e6) / 1e6
	if !math.IsInf(l.sec.slowest, 0) {
		s.Slowest = math.Round(l.sec.slowest)
	}
	if l.sec.pdv != nil {
		s.PDV = partOf(l.sec.pdv)
	}
	l.sec = open{}
	l.emit(Line{Second: &s})
}

// watch looks for outages.
func (l *Lane) watch(s Slot) {
	usual, ok := l.usual(l.level)
	rate := result.Rate(s.Bytes, s.To-s.From)
	below := s.Known == Silent || ok && rate < outageShare*usual
	switch {
	case below && l.out == nil:
		l.begin(s, usual, rate)
	case below:
	case l.out != nil:
		// The slot in which payload came again was not a whole one.
		back := s.From
		if ok && rate < usual {
			back += (1 - rate/usual) * (s.To - s.From)
		}
		l.close(back)
	}
	if l.out != nil && !l.told && s.To-l.out.From >= l.least {
		l.told = true
		o := *l.out
		o.To, o.Back, o.Open = s.To, s.To, true
		l.emit(Line{Outage: &o})
	}
	if s.Known == Measured && !below {
		l.last = &s
	}
}

// begin opens what may become an outage: within the last slot that had less than usual, else
// within this one.
func (l *Lane) begin(s Slot, usual, rate float64) {
	from := s.From
	if usual > 0 {
		if p := l.last; p != nil && p.To >= s.From-1e-3 {
			if r := result.Rate(p.Bytes, p.To-p.From); r < 0.9*usual {
				from = p.To - (1-r/usual)*(p.To-p.From)
			}
		}
		if from == s.From {
			from += min(rate/usual, 1) * (s.To - s.From)
		}
	}
	l.out, l.told = &Outage{Direction: l.dir, From: from, Basis: "payload"}, false
}

// close ends it: payload came again at back.
func (l *Lane) close(back float64) {
	o := *l.out
	l.out = nil
	if back-o.From < l.least {
		return
	}
	o.To, o.Back = back, back
	l.explain(&o)
	l.emit(Line{Outage: &o})
}

// explain puts in what asking the path showed.
func (l *Lane) explain(o *Outage) {
	for i := len(l.reach) - 1; i >= 0; i-- {
		r := l.reach[i]
		if r.back > o.From && r.from <= o.Back {
			o.Restarted = o.Restarted || r.restarted
			if o.Why == "" {
				o.Why = r.why
			}
			if r.back <= o.Back && !r.only && o.Basis != "reach" {
				o.To, o.Basis = r.back, "reach"
			}
		}
	}
}

// Reached notes that the path did not answer from…back. One that came and went is out until the
// last time that it came back.
func (l *Lane) Reached(from, back float64, why string) {
	const most = 64
	if len(l.reach) == most {
		l.reach = append(l.reach[:0], l.reach[1:]...)
	}
	l.reach = append(l.reach, reach{from: from, back: back, why: why})
}

// Restarted notes that the test was begun again at that time; asked is whether that followed a
// time in which the path did not answer.
func (l *Lane) Restarted(at float64, asked bool) {
	if n := len(l.reach); asked && n > 0 {
		l.reach[n-1].restarted = true
		return
	}
	l.Reached(at, at, "")
	r := &l.reach[len(l.reach)-1]
	r.restarted, r.only = true, true
}

// Finish writes what is not over.
func (l *Lane) Finish() {
	l.flush()
	if l.out != nil && l.at-l.out.From >= l.least {
		o := *l.out
		o.To, o.Back, o.Open = l.at, l.at, true
		l.explain(&o)
		l.emit(Line{Outage: &o})
	}
	l.out = nil
}

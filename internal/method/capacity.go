package method

import (
	"time"

	"github.com/fullbore-net/fullbore/result"
)

// M-CAP: UDP capacity with a rate that follows the receiver's feedback (RFC 9097, TR-471,
// Y.1540 Annex B).

// CapTable is the table of sending rates.
type CapTable struct {
	// Last is the highest row.
	Last int
	// Knee is the row of 1 Gbit/s ("hs"): from there on rows are 100 Mbit/s apart.
	Knee int
}

// Rows of the table: up to 1 Gbit/s by 1 Mbit/s, to 10 Gbit/s by 100 Mbit/s, and, beyond what
// TR-471 has, to 100 Gbit/s by 1 Gbit/s.
const (
	capKnee = 1000
	capTen  = capKnee + 90
	capLast = capTen + 90
)

// CapTables is our table; its name goes into results.
func CapTables() CapTable { return CapTable{Last: capLast, Knee: capKnee} }

// CapTableName says which table was used.
const CapTableName = "TR-471 to 10 Gbit/s, then 1 Gbit/s a row to 100 Gbit/s"

// capMonitor is row 0 as TR-471 has it: one packet of random size every 50 ms, IP-layer bit/s.
const capMonitor = 0.12e6

// Rate is the IP-layer rate of a row, bit/s.
func (t CapTable) Rate(row int) float64 {
	switch {
	case row <= 0:
		return capMonitor
	case row <= capKnee:
		return float64(row) * 1e6
	case row <= capTen:
		return 1e9 + float64(row-capKnee)*1e8
	}
	return 10e9 + float64(min(row, t.Last)-capTen)*1e9
}

// CapSteering is the rule by which a row follows from the one before and the feedback.
type CapSteering struct {
	Table      CapTable
	Low, Upper time.Duration // of delay above the least
	Errors     int64         // of sequence in one feedback interval that are borne
	Slow       int           // congested feedbacks after which the fast ramp is over
	Fast       int           // rows of a fast step
	Backup     int           // fast steps that the first real congestion takes back
	TypeC      bool          // double on every second good feedback, and try the ramp again
}

// CapDefaults are M-CAP's parameters.
func CapDefaults(typeC bool) CapSteering {
	return CapSteering{
		Table: CapTables(), Low: 30 * time.Millisecond, Upper: 90 * time.Millisecond, Errors: 10, Slow: 3, Fast: 10, Backup: 3, TypeC: typeC,
	}
}

// CapFeedback is what the receiver reported of one interval.
type CapFeedback struct {
	Lost  int64         // datagrams; reordered and duplicate ones are none
	Delay time.Duration // round trip above the least
}

// CapState is where a steered sender is.
type CapState struct {
	Row  int
	Slow int // congested feedbacks in the ramp

	good    int // type C: good feedbacks since the last doubling
	steps   int // type C: slow steps since the ramp was over
	retries int // type C: ramps after the first
}

// capRetry is after how many slow steps type C tries the ramp again; after each retry it takes as
// many more.
const capRetry = 5

// Next is the state after a feedback.
func (c CapSteering) Next(s CapState, f CapFeedback) CapState {
	ramp := s.Row < c.Table.Knee && s.Slow < c.Slow
	switch {
	case f.Lost <= c.Errors && f.Delay < c.Low:
		if c.TypeC {
			return c.upC(s, ramp)
		}
		if ramp {
			s.Row, s.Slow = min(s.Row+c.Fast, c.Table.Knee), 0
		} else {
			s.Row = min(s.Row+1, c.Table.Last)
		}
	case f.Lost > c.Errors || f.Delay > c.Upper:
		s.Slow++
		s.good = 0
		if s.Row < c.Table.Knee && s.Slow == c.Slow {
			s.Row = max(s.Row-c.Fast*c.Backup, 0)
		} else {
			s.Row = max(s.Row-1, 0)
		}
	}
	return s
}

// upC is type C's step after a good feedback.
func (c CapSteering) upC(s CapState, ramp bool) CapState {
	if ramp {
		s.Slow = 0
		if s.good++; s.good%2 == 0 {
			s.Row = min(max(2*s.Row, 1), c.Table.Knee)
		}
		return s
	}
	s.Row = min(s.Row+1, c.Table.Last)
	if s.steps++; s.steps >= capRetry*(s.retries+1) {
		s.steps, s.good, s.Slow = 0, 0, 0
		s.retries++
	}
	return s
}

// SubInterval is one of a capacity test's sub-intervals. Times in s, rates in bit/s of the IP
// layer.
type SubInterval struct {
	Start, Stop float64
	L3          float64
	Sent, Lost  int64    // datagrams, by the receiver's count
	Variation   *float64 // greatest delay above the least of the test's last second, s; nil = not known
	// Delay is the distribution of that of the stream that fared worst, Reordered and Duplicates are of all.
	Delay                 *result.Quantiles
	Reordered, Duplicates int64
}

// Ratio is the share that was lost.
func (s SubInterval) Ratio() float64 {
	if s.Sent <= 0 {
		return 0
	}
	return float64(s.Lost) / float64(s.Sent)
}

// CapacityAnswer is M-CAP's result of one direction.
type CapacityAnswer struct {
	Max       SubInterval // the sub-interval of the maximum IP-layer capacity
	Sustained float64     // mean over the last half, bit/s of the IP layer
	Subs      []SubInterval
	// Bimodal: the maxima of the first sub-intervals and of the rest; nil = not asked for.
	First, Rest *SubInterval
	// Factor is what a bit/s of the IP layer is in payload and on l2, l1.
	L7, L2, L1 float64
}

// CapacityOf reads a steered run by its receiver's rows of about sub seconds; bimodal > 0 tells the
// maxima of so many first ones and of the rest apart. false = the rows are not there.
func CapacityOf(run *result.Run, d result.Direction, sub float64, bimodal int) (CapacityAnswer, bool) {
	var a CapacityAnswer
	if run == nil {
		return a, false
	}
	l := layersOf(run, d)
	if l == nil {
		return a, false
	}
	a.L7, a.L2, a.L1 = l.L7/l.L3, l.L2/l.L3, l.L1/l.L3
	a.Subs = subIntervals(run, d, sub, l.L3/l.L7)
	if len(a.Subs) == 0 {
		return a, false
	}
	a.Max = greatest(a.Subs)
	var bits, time float64
	for _, s := range a.Subs[len(a.Subs)/2:] {
		bits += s.L3 * (s.Stop - s.Start)
		time += s.Stop - s.Start
	}
	a.Sustained = bits / time
	if bimodal > 0 && bimodal < len(a.Subs) {
		first, rest := greatest(a.Subs[:bimodal]), greatest(a.Subs[bimodal:])
		a.First, a.Rest = &first, &rest
	}
	return a, true
}

// shortestSub is the share of a sub-interval's time below which a row is not one: the rest at the
// end of a test that broke off.
const shortestSub = 0.5

func subIntervals(run *result.Run, d result.Direction, sub, factor float64) (out []SubInterval) {
	for i := range run.Rows {
		r := &run.Rows[i]
		if r.End != d.Receiver() || r.Omitted {
			continue
		}
		for _, s := range r.Sums {
			if s.Direction != d || s.Sender || s.Stop-s.Start < shortestSub*sub || run.Test.Duration > 0 && s.Start >= run.Test.Duration-1e-3 {
				continue
			}
			x := SubInterval{Start: s.Start, Stop: s.Stop, L3: s.BPS * factor}
			if s.Packets != nil {
				x.Sent = *s.Packets
			}
			if s.Lost != nil {
				x.Lost = max(*s.Lost, 0)
			}
			for _, st := range r.Streams {
				if st.Sender || st.UDP == nil {
					continue
				}
				x.Reordered, x.Duplicates = x.Reordered+st.UDP.Reordered, x.Duplicates+st.UDP.Duplicates
				if q := st.UDP.PDV; q != nil && (x.Delay == nil || q.Max > x.Delay.Max) {
					x.Delay, x.Variation = q, &q.Max
				}
			}
			out = append(out, x)
		}
	}
	return out
}

func greatest(subs []SubInterval) SubInterval {
	best := subs[0]
	for _, s := range subs[1:] {
		if s.L3 > best.L3 {
			best = s
		}
	}
	return best
}

package method

import (
	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/result"
)

// Ramping is M-RPM's load: it begins with few streams and adds some after each interval until the rate
// has settled (Saturated); from there on the same rule on the responsiveness of the intervals ends the
// test.
type Ramping struct {
	add, most int
	open      int
	rates     []float64 // of each interval
	values    []float64 // responsiveness of those since the rate settled, as far as it is known
	full      bool
}

// NewRamping returns the ramp of a test of so many streams each direction.
func NewRamping(r plan.Ramp, streams int) *Ramping {
	first := max(r.First, 1)
	return &Ramping{add: max(r.Add, 1), most: max(streams, first), open: first}
}

// Next hears of a finished interval and fills in its PerMinute and Saturated. open is how many streams of
// each direction send from now on; over = the test has told enough.
func (r *Ramping) Next(iv *result.RampInterval) (open int, over bool) {
	if v := responsiveness(foreignOf([]result.RampInterval{*iv}), selfOf(iv.Trips)); v != nil {
		iv.PerMinute = v
	}
	r.rates = append(r.rates, iv.BPS)
	if !r.full {
		r.full, _ = Saturated(r.rates)
	}
	if !r.full {
		r.open = min(r.open+r.add, r.most)
		return r.open, false
	}
	iv.Saturated = true
	if iv.PerMinute != nil {
		r.values = append(r.values, *iv.PerMinute)
	}
	over, _ = Saturated(r.values)
	return r.open, over
}

// foreignOf is the round trips per minute of the new connections in intervals; nil = there were none.
func foreignOf(ivs []result.RampInterval) *float64 {
	var connects, requests []float64
	for i := range ivs {
		connects = append(connects, ivs[i].Connects...)
		requests = append(requests, ivs[i].Requests...)
	}
	c, ok := TrimmedMean(connects)
	q, both := TrimmedMean(requests)
	if !ok || !both || c+q <= 0 {
		return nil
	}
	v := ForeignRPM(c, 0, q)
	return &v
}

// selfOf is that of the load's own round trips, s; nil = there are none.
func selfOf(trips []float64) *float64 {
	tm, ok := TrimmedMean(trips)
	if !ok || tm <= 0 {
		return nil
	}
	v := LoadedRPM(tm)
	return &v
}

// responsiveness is the mean of the known ones; nil = neither is.
func responsiveness(foreign, self *float64) *float64 {
	var v float64
	switch {
	case foreign != nil && self != nil:
		v = (*foreign + *self) / 2
	case foreign != nil:
		v = *foreign
	case self != nil:
		v = *self
	default:
		return nil
	}
	return &v
}

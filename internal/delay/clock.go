package delay

import (
	"math"
	"slices"

	"github.com/fullbore-net/fullbore/result"
)

// Exchange is one question and answer between two clocks, ns: T1 the client sends, T2
// the server receives, T3 the server sends, T4 the client receives.
type Exchange struct{ T1, T2, T3, T4 int64 }

// Offset returns θ, the server's clock less the client's. It is wrong by at most half of
// Delay.
func (x Exchange) Offset() int64 {
	// Half of the sum, without its overflow.
	a, b := x.T2-x.T1, x.T3-x.T4
	return a/2 + b/2 + (a%2+b%2)/2
}

// Delay returns δ, the round trip without the server's time.
func (x Exchange) Delay() int64 { return (x.T4 - x.T1) - (x.T3 - x.T2) }

// Phase is when an exchange was made: M-CLOCK has 20 before the test, one a second
// during it on a stream without load, and 20 after.
type Phase int

// The phases of a test.
const (
	Before Phase = iota
	During
	After
)

const (
	// unknownSkew is by how much two uncorrected clocks are taken to run apart (M-CLOCK 3).
	unknownSkew = 50e-6
	// maxSkew: clocks that seem to differ by more did not run, one of them was set.
	maxSkew = 1000e-6
	// maxExchanges of the test are kept; then of each two the one with the shorter delay.
	maxExchanges = 4096
)

// ClockEstimator finds out how the server's clock relates to the client's (M-CLOCK 1–4).
// The zero value is ready. It is not safe for concurrent use.
type ClockEstimator struct {
	exchanges [3][]Exchange
	n         int64
}

// Add takes an exchange; false when its stamps cannot be: an answer before the question,
// or a server that took longer than the whole.
func (c *ClockEstimator) Add(x Exchange, p Phase) bool {
	if x.T4 < x.T1 || x.T3 < x.T2 || x.Delay() < 0 || p < Before || p > After {
		return false
	}
	c.n++
	list := append(c.exchanges[p], x)
	if len(list) >= maxExchanges {
		half := len(list) / 2
		for i := range half {
			a, b := list[2*i], list[2*i+1]
			if b.Delay() < a.Delay() {
				a = b
			}
			list[i] = a
		}
		list = list[:half]
	}
	c.exchanges[p] = list
	return true
}

// Estimate is how the server's clock relates to the client's.
type Estimate struct {
	Offset    int64 // server less client, ns, at Ref
	Ref       int64 // by the client's clock, ns
	Bound     int64 // Offset is right within it, ns
	Skew      float64
	Corrected bool  // Skew is known and part of OffsetAt
	Until     int64 // client's time of the last exchange
	Exchanges int64
	Causal    bool  // no delay corrected by it was below zero by more than the bound
	roundTrip int64 // the least: no one-way delay need be longer
}

// OffsetAt returns the server's clock less the client's when the client's shows this.
func (e Estimate) OffsetAt(client int64) int64 {
	return e.Offset + int64(math.Round(e.Skew*float64(client-e.Ref)))
}

// BoundAt returns within what OffsetAt is right then.
func (e Estimate) BoundAt(client int64) int64 {
	if e.Corrected {
		return e.Bound
	}
	return e.Bound + int64(math.Ceil(unknownSkew*math.Abs(float64(client-e.Ref))))
}

// Check tells e the least one-way delay, ns, that came out with it, of either direction.
// Below zero by more than the bound it cannot be: the bound is widened to that and the
// least round trip, which the true delay may have been, and Causal becomes false
// (M-CLOCK 4).
func (e *Estimate) Check(leastDelay int64) {
	if bound := e.BoundAt(e.Until); leastDelay < -bound {
		e.Causal = false
		e.Bound += -leastDelay - bound + e.roundTrip
	}
}

// Prefer puts an offset that the operating systems' time services stand for, right within bound,
// in the place of e's, where it is closer (M-CLOCK 5). It reports whether it did: not when the two
// contradict each other, for then one of the services is wrong, and the exchanges are seen.
func (e *Estimate) Prefer(offset, bound int64) bool {
	own := e.BoundAt(e.Until)
	apart := offset - e.OffsetAt(e.Until)
	if bound <= 0 || bound >= own || apart > own+bound || apart < -own-bound {
		return false
	}
	e.Offset, e.Ref, e.Bound, e.Skew, e.Corrected = offset, e.Until, bound, 0, true
	return true
}

// Clock returns e for the result, with the bound of the last exchange, the widest.
func (e Estimate) Clock() *result.Clock {
	c := &result.Clock{
		Source: "exchange", OffsetS: float64(e.Offset) / 1e9, BoundS: float64(e.BoundAt(e.Until)) / 1e9,
		Exchanges: e.Exchanges, Causal: e.Causal,
	}
	if e.Corrected && e.Skew != 0 {
		ppm := e.Skew * 1e6
		c.SkewPPM = &ppm
	}
	return c
}

// Estimate returns what the exchanges so far say; ok is false when there are none.
//
// With exchanges before and after, the skew follows from the lower convex hulls of both
// directions' delays, and all exchanges are brought to one time with it. Without those
// after, only those before count (if there are any), and the bound grows by 50 ppm from
// then on. Of what counts the third with the least δ is kept: its mean is the offset. The
// bound is half the least δ, which holds for one exchange, and the greatest distance of one
// from the mean: half their spread where they lie evenly, more where they do not.
func (c *ClockEstimator) Estimate() (e Estimate, ok bool) {
	all := slices.Concat(c.exchanges[Before], c.exchanges[During], c.exchanges[After])
	if len(all) == 0 {
		return Estimate{}, false
	}
	slices.SortStableFunc(all, func(a, b Exchange) int {
		switch {
		case a.T1 < b.T1:
			return -1
		case a.T1 > b.T1:
			return 1
		}
		return 0
	})
	e = Estimate{Exchanges: c.n, Causal: true}
	for _, x := range all {
		e.Until = max(e.Until, x.T4)
	}
	used := all
	if len(c.exchanges[Before]) > 0 && len(c.exchanges[After]) > 0 {
		if skew, ok := skew(all); ok && math.Abs(skew) <= maxSkew {
			e.Skew, e.Corrected = skew, true
		}
	} else if before := c.exchanges[Before]; len(before) > 0 {
		used = before
	}
	e.settle(used)
	for _, x := range all {
		e.Check(x.T2 - x.T1 - e.OffsetAt(x.T1))
		e.Check(x.T4 - x.T3 + e.OffsetAt(x.T4))
	}
	return e, true
}

// settle sets reference time, offset and bound from the best third of the exchanges.
func (e *Estimate) settle(used []Exchange) {
	best := slices.Clone(used)
	slices.SortStableFunc(best, func(a, b Exchange) int {
		switch da, db := a.Delay(), b.Delay(); {
		case da < db:
			return -1
		case da > db:
			return 1
		}
		return 0
	})
	best = best[:(len(best)+2)/3]
	// Middle of each exchange by the client's clock: there its θ holds.
	middle := func(x Exchange) int64 { return x.T1 + (x.T4-x.T1)/2 }
	first, base := middle(best[0]), best[0].Offset()
	sum := 0.0
	for _, x := range best {
		sum += float64(middle(x) - first)
	}
	e.Ref = first + int64(sum/float64(len(best)))
	lo, hi, mean := math.Inf(1), math.Inf(-1), 0.0
	for _, x := range best {
		theta := float64(x.Offset()-base) - e.Skew*float64(middle(x)-e.Ref)
		lo, hi = min(lo, theta), max(hi, theta)
		mean += theta / float64(len(best))
	}
	e.Offset = base + int64(math.Round(mean))
	e.roundTrip = best[0].Delay()
	e.Bound = int64(math.Ceil(float64(e.roundTrip)/2 + max(hi-mean, mean-lo)))
}

// skew is by how much faster the server's clock runs, from both directions' least delays.
func skew(all []Exchange) (float64, bool) {
	first := all[0]
	there := make([]point, len(all))
	back := make([]point, len(all))
	sumThere, sumBack := 0.0, 0.0
	for i, x := range all {
		there[i] = point{x.T1 - first.T1, (x.T2 - x.T1) - (first.T2 - first.T1)}
		back[i] = point{x.T3 - first.T3, (x.T4 - x.T3) - (first.T4 - first.T3)}
		sumThere += float64(there[i].time)
		sumBack += float64(back[i].time)
	}
	n := float64(len(all))
	up, ok1 := slopeBelow(there, sumThere/n)
	down, ok2 := slopeBelow(back, sumBack/n)
	// Down it is by the server's clock, which differs in the second order only.
	return (up - down) / 2, ok1 && ok2
}

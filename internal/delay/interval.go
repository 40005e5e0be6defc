package delay

import (
	"math"
	"sync/atomic"

	"github.com/fullbore-net/fullbore/result"
)

// interval is the PDV of rows: delay less the least delay of the last one to two
// seconds, so that drifting clocks and a run's best moment do not matter. The counts only
// grow; a row is the difference of two looks at them.
type interval struct {
	from        int64 // when the current base began
	least       int64 // delay, since from
	leastBefore int64 // in the second before

	counts [classes]atomic.Uint64 // written by the worker alone
	before [classes]uint64        // at the last call of Interval; its caller's
	now    [classes]uint64        // room for Interval
}

// forget starts anew at time: delays before it are of another clock.
func (v *interval) forget(time int64) {
	v.from, v.least, v.leastBefore = time, math.MaxInt64, math.MaxInt64
}

func (v *interval) add(time, d int64) {
	if time-v.from >= baseTime {
		v.leastBefore, v.least, v.from = v.least, math.MaxInt64, time
	}
	v.least = min(v.least, d)
	c := &v.counts[class(d-min(v.least, v.leastBefore))]
	c.Store(c.Load() + 1) // one writer: no need for a locked add
}

// Interval returns the PDV of the delays since the last call, in seconds, with the
// classes' 1 % also in its extremes and mean; nil when there were none. Each delay is
// taken relative to the least of the second it is in and the one before. It may be called
// while the worker runs, by one goroutine.
func (m *Meter) Interval() *result.Quantiles {
	v := &m.interval
	n := uint64(0)
	for i := range v.counts {
		c := v.counts[i].Load()
		v.now[i] = c - v.before[i]
		v.before[i] = c
		n += v.now[i]
	}
	if n == 0 {
		return nil
	}
	return quantiles(v.now[:], int64(n))
}

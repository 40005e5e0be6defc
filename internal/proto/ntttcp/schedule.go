package ntttcp

import "time"

// schedule is one end's use of a cycle: warm-up, the measured time, and the rest, in which
// traffic goes on and nothing counts (linux §3.3, §4). Each end uses its own warm-up and time
// inside the agreed cycle.
type schedule struct {
	warmup   time.Duration
	measured time.Duration // 0 = until interrupted
	cooldown time.Duration
}

// scheduleOf divides a cycle; 0 = until interrupted. own = the time that this end wants to
// measure, 0 = all that is left after the warm-up. A cycle that leaves nothing to measure has
// measured < 0.
func scheduleOf(cycle, warmup, own time.Duration) schedule {
	if cycle == 0 {
		return schedule{warmup: warmup}
	}
	left := cycle - warmup
	if left <= 0 {
		return schedule{warmup: cycle, measured: -1}
	}
	if own <= 0 || own > left {
		own = left
	}
	return schedule{warmup: warmup, measured: own, cooldown: left - own}
}

// endless: there is no end but an interrupt.
func (s schedule) endless() bool { return s.measured == 0 }

// cycle is the length of the whole; 0 = endless.
func (s schedule) cycle() time.Duration {
	if s.endless() {
		return 0
	}
	return s.warmup + max(0, s.measured) + s.cooldown
}

// stretched is d where a second of the protocol has another length, as in tests. (The product of
// two durations leaves 64 bits above 9 s.)
func stretched(d, second time.Duration) time.Duration {
	if second == time.Second {
		return d
	}
	return time.Duration(float64(d) * second.Seconds())
}

// late is s for a test that begins that much after its cycle began: the end stays.
func (s schedule) late(by time.Duration) schedule {
	if s.endless() || by <= 0 {
		return s
	}
	for _, part := range []*time.Duration{&s.cooldown, &s.warmup} { // what is not counted goes first
		cut := min(by, *part)
		*part -= cut
		by -= cut
	}
	if s.measured -= by; s.measured <= 0 {
		s.measured = -1
	}
	return s
}

// margin is how long before a cycle's end its senders may already be gone: they run on timers
// of their own, that began a little earlier or later.
func (s schedule) margin() time.Duration {
	return min(500*time.Millisecond, s.cycle()/5)
}

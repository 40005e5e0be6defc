package osnet

import (
	"sync"
	"time"
)

// The Go runtime's own monotonic clock is CLOCK_MONOTONIC read without a system call
// (about 30 ns), but it shows differences only. epoch is a moment on both.
type epoch struct {
	at   time.Time
	mono int64 // CLOCK_MONOTONIC at at, ns
}

var clockEpoch = sync.OnceValue(newEpoch)

// Monotonic returns the time in ns of a clock that is never set, and that all
// processes of this machine share where the system has one (CLOCK_MONOTONIC,
// QueryPerformanceCounter).
func Monotonic() int64 { return monotonic() }

// RealOffset returns what to add to Monotonic to get the time of day (CLOCK_REALTIME, in
// ns since 1970) as both are now, within about a microsecond: the tightest of a few readings.
func RealOffset() int64 {
	best, width := int64(0), int64(-1)
	for range 5 {
		before := monotonic()
		real := realtime()
		after := monotonic()
		if w := after - before; width < 0 || w < width {
			best, width = real-before-w/2, w
		}
	}
	return best
}

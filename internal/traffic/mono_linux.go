package traffic

import "golang.org/x/sys/unix"

// monotonic reads CLOCK_MONOTONIC, the clock that time.Time carries inside and does not
// show. The two readings of Start lie less than a microsecond apart.
func monotonic() *int64 {
	var ts unix.Timespec
	if unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts) != nil {
		return nil
	}
	ns := ts.Nano()
	return &ns
}

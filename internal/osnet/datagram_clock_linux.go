package osnet

import (
	"time"

	"golang.org/x/sys/unix"
)

func newEpoch() epoch {
	var e epoch
	width := time.Duration(-1)
	for range 5 {
		t := time.Now()
		var ts unix.Timespec
		// It cannot fail: the clock exists since Linux 2.5 and the memory is ours.
		_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts)
		if w := time.Since(t); width < 0 || w < width {
			e, width = epoch{at: t.Add(w / 2), mono: ts.Nano()}, w
		}
	}
	return e
}

func monotonic() int64 {
	e := clockEpoch()
	return e.mono + int64(time.Since(e.at))
}

func realtime() int64 { return time.Now().UnixNano() }

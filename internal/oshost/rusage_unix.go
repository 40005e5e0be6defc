//go:build unix && !linux

package oshost

import (
	"time"

	"golang.org/x/sys/unix"
)

func processUse() (processTimes, error) {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		return processTimes{}, err
	}
	return processTimes{user: time.Duration(u.Utime.Nano()), system: time.Duration(u.Stime.Nano())}, nil
}

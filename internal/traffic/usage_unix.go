//go:build unix

package traffic

import (
	"syscall"
	"time"
)

func readUsage() usage {
	u := usage{at: time.Now(), peak: peakRSS()}
	var ru syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &ru) != nil {
		return u
	}
	u.ok = true
	u.user = time.Duration(ru.Utime.Nano())
	u.sys = time.Duration(ru.Stime.Nano())
	return u
}

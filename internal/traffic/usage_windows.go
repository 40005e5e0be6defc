package traffic

import (
	"time"

	"golang.org/x/sys/windows"
)

func readUsage() usage {
	u := usage{at: time.Now()}
	var created, exited, kernel, user windows.Filetime
	if windows.GetProcessTimes(windows.CurrentProcess(), &created, &exited, &kernel, &user) != nil {
		return u
	}
	u.ok = true
	u.user = filetime(user)
	u.sys = filetime(kernel)
	return u
}

// filetime converts a span counted in 100 ns.
func filetime(f windows.Filetime) time.Duration {
	return time.Duration(uint64(f.HighDateTime)<<32|uint64(f.LowDateTime)) * 100
}

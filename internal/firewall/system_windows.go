package firewall

import (
	"time"

	"golang.org/x/sys/windows"
)

func privileged() bool { return windows.GetCurrentProcessToken().IsElevated() }

func alive(pid int, at time.Time) bool {
	h, err := windows.OpenProcess(windows.PROCESS_QUERY_LIMITED_INFORMATION, false, uint32(pid))
	if err != nil {
		return err == windows.ERROR_ACCESS_DENIED
	}
	defer windows.CloseHandle(h) //nolint:errcheck // a handle that was opened closes
	var code uint32
	const stillActive = 259
	if windows.GetExitCodeProcess(h, &code) == nil && code != stillActive {
		return false
	}
	var created, exited, kernel, user windows.Filetime
	if windows.GetProcessTimes(h, &created, &exited, &kernel, &user) != nil {
		return true
	}
	return !time.Unix(0, created.Nanoseconds()).After(at.Add(slack))
}

package process

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/windows"
)

func alive(pid int) bool {
	h, err := windows.OpenProcess(windows.PROCESS_QUERY_LIMITED_INFORMATION, false, uint32(pid))
	if err != nil {
		return false
	}
	defer windows.CloseHandle(h) //nolint:errcheck // a handle that was opened closes
	var code uint32
	const stillActive = 259
	return windows.GetExitCodeProcess(h, &code) == nil && code == stillActive
}

func nameOf(int) string { return "" }

// Detach is not available: a Windows server runs as a service or in a window of its own.
func Detach(string, []string, []*os.File, ...string) (int, error) {
	return 0, fmt.Errorf("background mode (-D): %w", errors.ErrUnsupported)
}

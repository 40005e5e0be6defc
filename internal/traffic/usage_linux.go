package traffic

import (
	"bytes"
	"os"
	"strconv"
)

// peakRSS returns VmHWM of this process. ru_maxrss would do but for one thing: it
// starts at the parent's value across fork and exec.
func peakRSS() int64 {
	data, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for line := range bytes.Lines(data) {
		if f := bytes.Fields(line); len(f) == 3 && string(f[0]) == "VmHWM:" {
			kb, err := strconv.ParseInt(string(f[1]), 10, 64)
			if err != nil {
				return 0
			}
			return kb << 10
		}
	}
	return 0
}

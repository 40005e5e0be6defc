package lab

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
)

// cpuTimes are the first line of /proc/stat: all processors' time since boot in
// USER_HZ (proc(5)).
type cpuTimes struct{ steal, total uint64 }

func readCPUTimes() (cpuTimes, error) {
	b, err := os.ReadFile("/proc/stat")
	if err != nil {
		return cpuTimes{}, fmt.Errorf("lab: read processor times: %w", err)
	}
	return parseCPUTimes(b)
}

func parseCPUTimes(stat []byte) (c cpuTimes, err error) {
	line, _, _ := bytes.Cut(stat, []byte("\n"))
	words := bytes.Fields(line)
	// cpu user nice system idle iowait irq softirq steal guest guest_nice; the guests' time is
	// part of user and nice.
	if len(words) < 9 || string(words[0]) != "cpu" {
		return c, fmt.Errorf("lab: /proc/stat begins with %q", line)
	}
	for i, w := range words[1:9] {
		v, err := strconv.ParseUint(string(w), 10, 64)
		if err != nil {
			return c, fmt.Errorf("lab: /proc/stat: %w", err)
		}
		c.total += v
		if i == 7 {
			c.steal = v
		}
	}
	return c, nil
}

// stealSince returns steal's share of the time from begin to c, 0 to 1.
func (c cpuTimes) stealSince(begin cpuTimes) float64 {
	if c.total <= begin.total {
		return 0
	}
	return float64(c.steal-begin.steal) / float64(c.total-begin.total)
}

package oshost

import (
	"os"
	"runtime"
	"strconv"
	"strings"
)

// Climate is how warm a host is and what that does to it. nil = not known: most virtual machines
// have no sensors, and other systems than Linux are not asked.
type Climate struct {
	MHz       *int     // clock of the fastest core now (cpufreq)
	Celsius   *float64 // hottest thermal zone
	Throttles *int64   // times that a core was slowed because of its heat, since boot, all cores
}

// ReadClimate looks at the tree below root; "" = this machine.
func ReadClimate(root string) Climate {
	t := tree{root}
	var out Climate
	const cpus = "sys/devices/system/cpu"
	for _, name := range t.list(cpus) {
		if n, ok := strings.CutPrefix(name, "cpu"); !ok || n == "" || strings.Trim(n, "0123456789") != "" {
			continue
		}
		out.MHz = maxMHz(out.MHz, t.int(cpus+"/"+name+"/cpufreq/scaling_cur_freq"))
		if n := t.int(cpus + "/" + name + "/thermal_throttle/core_throttle_count"); n != nil {
			sum := *n
			if out.Throttles != nil {
				sum += *out.Throttles
			}
			out.Throttles = &sum
		}
	}
	const zones = "sys/class/thermal"
	for _, name := range t.list(zones) {
		if !strings.HasPrefix(name, "thermal_zone") {
			continue
		}
		milli := t.int(zones + "/" + name + "/temp")
		if milli == nil || *milli < -40_000 || *milli > 150_000 { // sensors that are off tell such values
			continue
		}
		if c := float64(*milli) / 1000; out.Celsius == nil || c > *out.Celsius {
			out.Celsius = &c
		}
	}
	return out
}

// OwnMemory is the memory that this program has in use: resident pages where the system tells
// (Linux /proc/self/statm), else what the Go runtime took from the system and has not given back.
func OwnMemory() int64 { return ownMemory(tree{}) }

func ownMemory(t tree) int64 {
	if f := strings.Fields(t.text("proc/self/statm")); len(f) > 1 {
		if pages, err := strconv.ParseInt(f[1], 10, 64); err == nil && pages > 0 {
			return pages * int64(os.Getpagesize())
		}
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.Sys - m.HeapReleased)
}

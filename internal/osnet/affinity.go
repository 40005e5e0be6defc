package osnet

import (
	"fmt"
	"slices"
	"strings"
)

// AffinityError says that a CPU cannot be used and which can.
type AffinityError struct {
	CPU    int
	Usable []int
}

func (e *AffinityError) Error() string {
	return fmt.Sprintf("CPU %d cannot be used here; usable: %s", e.CPU, CPUList(e.Usable))
}

// CPUList prints CPU numbers as the kernel does: "0-3,8".
func CPUList(cpus []int) string {
	s := slices.Clone(cpus)
	slices.Sort(s)
	s = slices.Compact(s)
	var parts []string
	for i := 0; i < len(s); {
		j := i
		for j+1 < len(s) && s[j+1] == s[j]+1 {
			j++
		}
		if j == i {
			parts = append(parts, fmt.Sprint(s[i]))
		} else {
			parts = append(parts, fmt.Sprintf("%d-%d", s[i], s[j]))
		}
		i = j + 1
	}
	return strings.Join(parts, ",")
}

// UsableCPUs lists the CPUs on which this process may run, in order. Where the system
// does not tell, the error wraps errors.ErrUnsupported.
func UsableCPUs() ([]int, error) {
	cpus, err := usableCPUs()
	if err != nil {
		return nil, fmt.Errorf("osnet: usable CPUs: %w", err)
	}
	return slices.Clone(cpus), nil
}

// SetAffinity pins the calling OS thread (runtime.LockOSThread first) to cpus; nil
// allows all usable ones again. A CPU that cannot be used is an *AffinityError, and then
// nothing is changed. A thread that a goroutine leaves locked ends with it, so a worker
// need not take its pin back.
func SetAffinity(cpus []int) error {
	usable, err := usableCPUs()
	if err != nil {
		return fmt.Errorf("osnet: affinity: %w", err)
	}
	if len(cpus) == 0 {
		cpus = usable
	}
	for _, c := range cpus {
		if !slices.Contains(usable, c) {
			return &AffinityError{CPU: c, Usable: usable}
		}
	}
	if err := setAffinity(cpus); err != nil {
		return fmt.Errorf("osnet: affinity %s: %w", CPUList(cpus), err)
	}
	return nil
}

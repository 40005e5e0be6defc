package osnet

import (
	"sync"

	"golang.org/x/sys/unix"
)

// usableCPUs is read once, before this process pins a thread of its own.
var usableCPUs = sync.OnceValues(func() ([]int, error) {
	set := unix.NewCPUSet(8192)
	if err := unix.SchedGetaffinityDynamic(0, set); err != nil {
		return nil, err
	}
	var cpus []int
	for i := range 8192 {
		if set.IsSet(i) {
			cpus = append(cpus, i)
		}
	}
	return cpus, nil
})

func setAffinity(cpus []int) error {
	set := unix.NewCPUSet(8192)
	for _, c := range cpus {
		set.Set(c)
	}
	return unix.SchedSetaffinityDynamic(0, set)
}

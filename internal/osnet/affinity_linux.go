package osnet

import (
	"sync"

	"golang.org/x/sys/unix"
)

// maxCPUs is the largest CONFIG_NR_CPUS of any architecture.
const maxCPUs = 8192

// usableCPUs reads the calling thread's mask the first time it is asked, which is
// before this process pins a thread of its own: SetAffinity asks first.
var usableCPUs = sync.OnceValues(func() ([]int, error) {
	set := unix.NewCPUSet(maxCPUs)
	if err := unix.SchedGetaffinityDynamic(0, set); err != nil {
		return nil, err
	}
	var cpus []int
	for i := range maxCPUs {
		if set.IsSet(i) {
			cpus = append(cpus, i)
		}
	}
	return cpus, nil
})

func setAffinity(cpus []int) error {
	set := unix.NewCPUSet(maxCPUs)
	for _, c := range cpus {
		set.Set(c)
	}
	return unix.SchedSetaffinityDynamic(0, set)
}

package osnet

import (
	"testing"

	"golang.org/x/sys/unix"
)

// threadCPUs is the calling thread's mask as the kernel has it.
func threadCPUs(t *testing.T) []int {
	t.Helper()
	set := unix.NewCPUSet(maxCPUs)
	if err := unix.SchedGetaffinityDynamic(0, set); err != nil {
		t.Fatal(err)
	}
	var cpus []int
	for i := range maxCPUs {
		if set.IsSet(i) {
			cpus = append(cpus, i)
		}
	}
	return cpus
}

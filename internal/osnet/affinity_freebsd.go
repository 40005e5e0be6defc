package osnet

import (
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// From sys/cpuset.h. The kernel refuses masks that are shorter than its own and takes
// longer ones whose excess is zero, up to its CPU_MAXSIZE of 1024 in current releases.
const (
	cpuLevelWhich = 3
	cpuWhichTID   = 1
	maskWords     = 1024 / 64
)

var usableCPUs = sync.OnceValues(func() ([]int, error) {
	var mask [maskWords]uint64
	if err := cpuset(unix.SYS_CPUSET_GETAFFINITY, &mask); err != nil {
		return nil, err
	}
	var cpus []int
	for i := range maskWords * 64 {
		if mask[i/64]>>(i%64)&1 != 0 {
			cpus = append(cpus, i)
		}
	}
	return cpus, nil
})

func setAffinity(cpus []int) error {
	var mask [maskWords]uint64
	for _, c := range cpus {
		mask[c/64] |= 1 << (c % 64)
	}
	return cpuset(unix.SYS_CPUSET_SETAFFINITY, &mask)
}

// cpuset calls cpuset_getaffinity or _setaffinity for the calling thread (id −1).
func cpuset(call uintptr, mask *[maskWords]uint64) error {
	_, _, e := unix.Syscall6(call, cpuLevelWhich, cpuWhichTID, ^uintptr(0), unsafe.Sizeof(*mask), uintptr(unsafe.Pointer(mask)), 0)
	if e != 0 {
		return e
	}
	return nil
}

package osnet

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/windows"
)

// The processor group calls; x/sys lacks them. All are in kernel32 since Windows 7.
var (
	kernel32                     = windows.NewLazySystemDLL("kernel32.dll")
	procGetActiveProcessorGroups = kernel32.NewProc("GetActiveProcessorGroupCount")
	procGetActiveProcessorCount  = kernel32.NewProc("GetActiveProcessorCount")
	procSetThreadGroupAffinity   = kernel32.NewProc("SetThreadGroupAffinity")
	procGetProcessAffinityMask   = kernel32.NewProc("GetProcessAffinityMask")
)

// groupAffinity is GROUP_AFFINITY (winnt.h).
type groupAffinity struct {
	mask     uintptr
	group    uint16
	reserved [3]uint16
}

// cpuPlace is where a CPU number is found: Windows counts CPUs within groups of at most 64.
type cpuPlace struct{ cpu, group, bit int }

// places numbers the CPUs through all groups, as Task Manager does. In a machine with
// one group the process's own mask decides which may be used.
func places() ([]cpuPlace, error) {
	if err := procGetActiveProcessorGroups.Find(); err != nil {
		return nil, err
	}
	groups, _, _ := procGetActiveProcessorGroups.Call()
	var all []cpuPlace
	for g := range int(groups) {
		n, _, err := procGetActiveProcessorCount.Call(uintptr(g))
		if n == 0 {
			return nil, err
		}
		for b := range int(n) {
			all = append(all, cpuPlace{cpu: len(all), group: g, bit: b})
		}
	}
	if groups != 1 {
		return all, nil
	}
	var process, system uintptr
	ok, _, err := procGetProcessAffinityMask.Call(uintptr(windows.CurrentProcess()),
		uintptr(unsafe.Pointer(&process)), uintptr(unsafe.Pointer(&system)))
	if ok == 0 {
		return nil, err
	}
	var usable []cpuPlace
	for _, p := range all {
		if process>>p.bit&1 != 0 {
			usable = append(usable, p)
		}
	}
	return usable, nil
}

func usableCPUs() ([]int, error) {
	ps, err := places()
	if err != nil {
		return nil, err
	}
	cpus := make([]int, len(ps))
	for i, p := range ps {
		cpus[i] = p.cpu
	}
	return cpus, nil
}

func setAffinity(cpus []int) error {
	ps, err := places()
	if err != nil {
		return err
	}
	want := groupAffinity{}
	first := true
	for _, c := range cpus {
		for _, p := range ps {
			if p.cpu != c {
				continue
			}
			if !first && int(want.group) != p.group {
				return fmt.Errorf("a thread can run in one processor group only, and CPU %d is in group %d, not %d", c, p.group, want.group)
			}
			first = false
			want.group = uint16(p.group)
			want.mask |= 1 << p.bit
		}
	}
	ok, _, err := procSetThreadGroupAffinity.Call(uintptr(windows.CurrentThread()), uintptr(unsafe.Pointer(&want)), 0)
	if ok == 0 {
		return err
	}
	return nil
}

package lab

import (
	"fmt"
	"runtime"
	"strconv"

	"golang.org/x/sys/unix"
)

// busyMain keeps one processor busy until it is killed.
func busyMain(cpu int) error {
	runtime.LockOSThread()
	var set unix.CPUSet
	set.Set(cpu)
	if err := unix.SchedSetaffinity(0, &set); err != nil {
		return fmt.Errorf("lab: run on processor %d: %w", cpu, err)
	}
	for x := uint64(1); ; {
		x = x*6364136223846793005 + 1442695040888963407
		if x == 0 { // never: the generator of Knuth's MMIX, from 1, does not come by 0 for ages
			return nil
		}
	}
}

// keepBusy starts a program in the namespace that keeps a processor busy.
func (ns *Namespace) keepBusy(fullbore string, cpu int) error {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return fmt.Errorf("lab: %w", err)
	}
	if !set.IsSet(cpu) {
		return cannot("keep processor %d busy: it may not run there", cpu)
	}
	_, err := ns.start(Command{Args: []string{fullbore, "lab", helperBusy, strconv.Itoa(cpu)}}, nil)
	return err
}

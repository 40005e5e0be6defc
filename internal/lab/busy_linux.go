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
	for {
		// One that did only this could not be told from one that hangs; and it must let the
		// runtime stop it.
		spin(1 << 20)
	}
}

//go:noinline
func spin(n int) (x uint64) {
	for range n {
		x = x*6364136223846793005 + 1442695040888963407
	}
	return x
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

package forward

import (
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"
)

// places keeps the workers on different processors. With more than two the scheduler
// finds a free one better than we could; with two it would, when neither is free,
// leave both workers on the one where they were last.
type places struct {
	cpus [2]int
	pin  bool
	// Which thread is pinned to which of them. A goroutine may change threads, so each
	// worker looks, at each round, whether it is still on its own.
	tids [2]atomic.Int64
}

// find returns how many processors this process may use.
func (p *places) find() int {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return 1
	}
	n := set.Count()
	p.pin = n == len(p.cpus)
	for cpu, found := 0, 0; p.pin && found < n; cpu++ {
		if set.IsSet(cpu) {
			p.cpus[found] = cpu
			found++
		}
	}
	return n
}

// take puts the calling thread on the processor of worker i.
func (p *places) take(i int) {
	if !p.pin {
		return
	}
	id, _, _ := syscall.RawSyscall(unix.SYS_GETTID, 0, 0, 0)
	tid := int64(id)
	if p.tids[i].Load() == tid {
		return
	}
	var set unix.CPUSet
	set.Set(p.cpus[i])
	// A refusal costs punctuality only, and the report shows it.
	_ = unix.SchedSetaffinity(0, &set)
	p.tids[1-i].CompareAndSwap(tid, 0)
	p.tids[i].Store(tid)
}

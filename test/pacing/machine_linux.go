package pacing

import (
	"bytes"
	"os"
	"runtime"
	"strconv"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/fullbore-net/fullbore/internal/osnet"
)

// Machine is what a thread that only sleeps saw of the machine while something was
// measured on it: what it was late by, no program beside it can promise to avoid.
type Machine struct {
	Late  Late    // of its wake-ups
	Steal float64 // share of all processors' time that the hypervisor gave to others
}

// machineBeat is how often it wakes: 1000 times a second, for a few µs.
const machineBeat = int64(1e6)

// Observer measures a Machine.
type Observer struct {
	stop  atomic.Bool
	ended chan struct{}
	late  []float64
	err   error
	steal [2]int64 // at the start: stolen, all
}

// Observe starts one on processor cpu, −1 = any.
func Observe(cpu int) *Observer {
	o := &Observer{ended: make(chan struct{})}
	o.steal[0], o.steal[1], o.err = stolen()
	go o.run(cpu)
	return o
}

// run sleeps until Stop. It keeps its thread: that ends with it.
func (o *Observer) run(cpu int) {
	defer close(o.ended)
	runtime.LockOSThread()
	if err := bind(cpu); err != nil {
		o.err = err
		return
	}
	due := osnet.Monotonic()
	for !o.stop.Load() {
		due += machineBeat
		ts := unix.NsecToTimespec(due)
		for unix.ClockNanosleep(unix.CLOCK_MONOTONIC, unix.TIMER_ABSTIME, &ts, nil) == unix.EINTR {
		}
		now := osnet.Monotonic()
		o.late = append(o.late, float64(now-due))
		// After a long one the beats in between are the same delay, not delays of their own.
		due += (now - due) / machineBeat * machineBeat
	}
}

// Stop ends it.
func (o *Observer) Stop() (m Machine, err error) {
	o.stop.Store(true)
	<-o.ended
	if o.err != nil {
		return m, o.err
	}
	if l := late(o.late); l != nil {
		m.Late = *l
	}
	steal, all, err := stolen()
	if d := all - o.steal[1]; d > 0 {
		m.Steal = float64(steal-o.steal[0]) / float64(d)
	}
	return m, err
}

// stolen reads the ticks of all processors: what was stolen, and all.
func stolen() (steal, all int64, err error) {
	data, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, 0, err
	}
	line, _, _ := bytes.Cut(data, []byte("\n"))
	for i, f := range bytes.Fields(line)[1:9] { // user … steal; guest time is part of user
		n, err := strconv.ParseInt(string(f), 10, 64)
		if err != nil {
			return 0, 0, err
		}
		all += n
		if i == 7 {
			steal = n
		}
	}
	return steal, all, nil
}

package traffic

import (
	"runtime"
	"sync"
)

// procs is the one place that changes GOMAXPROCS, which belongs to the process: it is
// raised while workers occupy processors and put back when the last engine is gone.
var procs struct {
	sync.Mutex
	base    int // before the first engine; 0 = none lives
	workers int // of all living engines
}

// maxProcs bounds it: a processor costs memory, and more workers than this are never
// runnable at once.
const maxProcs = 130

// raiseProcs makes room for so many workers and two more (sampler, control connection);
// the result takes it back. Changing GOMAXPROCS stops the world for some µs, so it only
// grows while engines live.
func raiseProcs(workers int) (lower func()) {
	procs.Lock()
	defer procs.Unlock()
	if procs.base == 0 {
		procs.base = runtime.GOMAXPROCS(0)
	}
	procs.workers += workers
	if want := min(procs.workers+2, maxProcs); want > runtime.GOMAXPROCS(0) {
		runtime.GOMAXPROCS(want)
	}
	var once sync.Once
	return func() {
		once.Do(func() {
			procs.Lock()
			defer procs.Unlock()
			procs.workers -= workers
			if procs.workers == 0 {
				if runtime.GOMAXPROCS(0) != procs.base {
					runtime.GOMAXPROCS(procs.base)
				}
				procs.base = 0
			}
		})
	}
}

//go:build !linux

package traffic

import (
	"runtime"

	"github.com/fullbore-net/fullbore/internal/osnet"
	"github.com/fullbore-net/fullbore/result"
)

// shared is what the workers of one engine share: where only the portable worker exists,
// nothing.
type shared struct {
	blocking int    // workers that wait in the system, each in a processor's place
	procs    func() // gives GOMAXPROCS back
}

// buildFast makes movers for the flows that may have several calls under way, and returns
// the others.
func (e *Engine) buildFast(flows []*stream) ([]*stream, error) {
	rest := e.buildOverlapped(flows)
	e.shared.blocking = len(flows) - len(rest)
	return rest, nil
}

// pin binds the calling goroutine's thread to the CPU of worker i, until unpin.
func (e *Engine) pin(i int, _ bool) (unpin func()) {
	runtime.LockOSThread()
	cpus := e.cfg.Affinity
	_ = osnet.SetAffinity(cpus[i%len(cpus) : i%len(cpus)+1]) // checked in New
	return func() {
		if osnet.SetAffinity(nil) == nil { // else the thread ends with its goroutine
			runtime.UnlockOSThread()
		}
	}
}

func (sh *shared) acquire(int) {
	if sh.blocking > 0 {
		sh.procs = raiseProcs(sh.blocking)
	}
}

func (sh *shared) release() {
	if sh.procs != nil {
		sh.procs()
	}
}

func (e *Engine) txPath() string                 { return "copy" }
func (e *Engine) paceInKernel(int64) bool        { return false }
func (e *Engine) fallbackNotice() *result.Notice { return nil }

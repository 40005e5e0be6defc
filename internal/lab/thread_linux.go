package lab

import (
	"fmt"
	"runtime"

	"github.com/vishvananda/netns"
)

// inNamespace runs f on a thread of its own that is in the network namespace ns, and
// returns when f has. f must not start goroutines that rely on the namespace: they
// would run on other threads.
func inNamespace(ns netns.NsHandle, f func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		home, err := netns.Get()
		if err != nil {
			runtime.UnlockOSThread()
			done <- fmt.Errorf("lab: read the thread's namespace: %w", err)
			return
		}
		defer home.Close()
		if err = netns.Set(ns); err != nil {
			err = fmt.Errorf("lab: enter namespace: %w", err)
		} else {
			err = f()
		}
		// A thread that cannot go home stays locked, so that it dies with its goroutine.
		if netns.Set(home) == nil {
			runtime.UnlockOSThread()
		}
		done <- err
	}()
	return <-done
}

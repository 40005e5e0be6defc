// Package thread runs functions on operating-system threads that are changed for good.
package thread

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// Doomed runs f on a locked thread that dies with f, for changes that cannot be undone
// or must not spread. It is never the process's main thread, whose namespaces are what
// /proc/self shows and which outlives its goroutine. The caller does not wait.
func Doomed(f func()) {
	go func() {
		runtime.LockOSThread()
		if unix.Gettid() == unix.Getpid() {
			// While this goroutine holds the main thread, another one cannot get it.
			ended := make(chan struct{})
			Doomed(func() { defer close(ended); f() })
			<-ended
			runtime.UnlockOSThread()
			return
		}
		f()
	}()
}

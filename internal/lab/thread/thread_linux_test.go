package thread_test

import (
	"testing"

	"golang.org/x/sys/unix"

	"github.com/fullbore-net/fullbore/internal/lab/thread"
)

// TestDoomed: each call has a thread of its own, never the main one, and what it
// changed does not come back with a thread that another goroutine gets.
func TestDoomed(t *testing.T) {
	const runs = 50
	slack := func() int {
		// The raw call's result, which unix.Prctl does not return.
		v, err := unix.PrctlRetInt(unix.PR_GET_TIMERSLACK, 0, 0, 0, 0)
		if err != nil {
			t.Error(err)
		}
		return v
	}
	release, ids := make(chan struct{}), make(chan int, runs)
	for range runs {
		thread.Doomed(func() {
			if err := unix.Prctl(unix.PR_SET_TIMERSLACK, 12345, 0, 0, 0); err != nil {
				t.Error(err)
			}
			ids <- unix.Gettid()
			<-release
		})
	}
	seen := map[int]bool{}
	for range runs {
		id := <-ids
		if id == unix.Getpid() {
			t.Error("ran on the main thread")
		}
		seen[id] = true
	}
	if len(seen) != runs {
		t.Errorf("%d threads for %d functions", len(seen), runs)
	}
	close(release)
	found := make(chan int)
	for range runs {
		go func() { found <- slack() }()
	}
	for range runs {
		if got := <-found; got == 12345 {
			t.Error("a changed thread is in use again")
		}
	}
}

package ntttcp

import (
	"testing"
	"time"
)

// Every length that a command line can ask for keeps its length.
func TestStretched(t *testing.T) {
	for _, d := range []time.Duration{0, time.Second, 9 * time.Second, 10 * time.Second, time.Minute, 3 * time.Hour, (1<<31 - 1) * time.Second} {
		if got := stretched(d, time.Second); got != d {
			t.Errorf("%v became %v", d, got)
		}
		if got, want := stretched(d, time.Second/10), d/10; got < want-time.Second || got > want+time.Second {
			t.Errorf("%v with tenths of seconds became %v", d, got)
		}
	}
}

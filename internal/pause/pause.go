// Package pause is the wait that a context may end.
package pause

import (
	"context"
	"time"
)

// For waits d, or until ctx ends; it reports whether the time was full. Where there is nothing to wait for,
// it reports whether ctx has not ended yet.
func For(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

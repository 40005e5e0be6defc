package iperf3

import (
	"time"

	"github.com/fullbore-net/fullbore/internal/oshost"
	"github.com/fullbore-net/fullbore/internal/osnet"
	"github.com/fullbore-net/fullbore/internal/proto/ext"
	"github.com/fullbore-net/fullbore/internal/proto/probe"
)

// syncedClock reads the clocks for the hello, with what the system says of its time of day.
func syncedClock(wall time.Time) ext.Clock {
	c := ext.ReadClock(wall)
	if synced, most, _, err := oshost.ClockSync(); err == nil {
		at := osnet.RealOffset()
		c.RealOffset, c.Synced, c.MaxError = &at, &synced, &most
	}
	return c
}

// kept relates the ends' clocks by what their time services stand for (M-CLOCK 5); nil = one of
// them is not kept, or does not tell.
func (r *clientRun) kept() *probe.Kept {
	c := r.hello.Clock
	if c.RealOffset == nil || c.Synced == nil || !*c.Synced || c.MaxError == nil || *c.MaxError <= 0 {
		return nil
	}
	synced, most, _, err := oshost.ClockSync()
	if err != nil || !synced || most <= 0 {
		return nil
	}
	return &probe.Kept{Offset: osnet.RealOffset() - *c.RealOffset, Bound: int64((most + *c.MaxError) * 1e9)}
}

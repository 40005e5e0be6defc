//go:build !linux

package traffic

import (
	"errors"

	"github.com/fullbore-net/fullbore/internal/osnet"
	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/result"
)

// buildOverlapped makes movers for the flows that are to have several calls under way where
// the system can, and returns the others.
func (e *Engine) buildOverlapped(flows []*stream) (rest []*stream) {
	var refused error
	for i, s := range flows {
		o := newOverlapped(s, i, e.overlapDepth(s))
		if o.depth > 1 {
			r, err := osnet.NewOverlapped(s.Conn, s.Send, o.depth, o.size, s.Send || e.looksAtNothing(), o.payload())
			if err == nil {
				o.ring = r
				e.movers = append(e.movers, o)
				e.path.Worker = "overlapped"
				continue
			}
			refused = err
		}
		rest = append(rest, s)
	}
	if refused != nil && e.cfg.Outstanding > 1 {
		text := "this system has no overlapped calls"
		if !errors.Is(refused, errors.ErrUnsupported) {
			text = refused.Error()
		}
		e.notice("overlap-off", result.Info, "one call is under way at a time on each connection: "+text)
	}
	return rest
}

// looksAtNothing: what is received may be put over what was received before.
func (e *Engine) looksAtNothing() bool { return e.cfg.Receive == plan.Discard && !e.cfg.Verify }

func (o *overlapped) payload() func([]byte) {
	if o.s.Send {
		return o.s.e.cfg.fill
	}
	return nil
}

package cli

import (
	"context"
	"fmt"

	"github.com/fullbore-net/fullbore/internal/runner"
	"github.com/fullbore-net/fullbore/result"
)

// receive is the receiver: one test, or all until it is interrupted.
func (n *ntttcpRun) receive(ctx context.Context) int {
	ctx, stop := n.interruptibleAs(ctx, 1)
	defer stop()
	s := *n.inv.Serve
	r := n.runner()
	k, _, err := r.ListenNTTTCP(ctx, s)
	if err != nil {
		fmt.Fprintln(n.Err, err)
		return 1
	}
	idle := n.newConsole()
	idle.Event(result.Event{Kind: result.KindMilestone, End: result.Server, Milestone: &result.Milestone{
		Code: result.MilestoneThreads, Time: n.Now(), Count: int64(len(k.Data()) + 1),
	}})
	if err := r.ServeNTTTCP(ctx, s, k, func(result.Addr) runner.Hooks {
		v := n.newConsole()
		return runner.Hooks{Sink: v, Done: func() { _ = v.Close() }}
	}); err != nil {
		return 1
	}
	return 0
}

package cli

import (
	"context"
	"errors"

	"github.com/fullbore-net/fullbore/internal/runner"
	"github.com/fullbore-net/fullbore/result"
)

// runner makes what runs the tests of the drop-in.
func (n *ntttcpRun) runner() *runner.Runner {
	return &runner.Runner{Version: Version, Now: n.Now, Plain: true}
}

// send is the sender: one test.
func (n *ntttcpRun) send(ctx context.Context) int {
	ctx, stop := n.interruptibleAs(ctx, 1)
	defer stop()
	v := n.newConsole()
	_, err := n.runner().Run(ctx, n.inv.Plan, v)
	_ = v.Close()
	var broke *result.Error
	if errors.As(err, &broke) && !broke.Interrupted {
		return 24
	}
	return 0
}

package cli

import (
	"context"
	"errors"
	"log/slog"

	"github.com/fullbore-net/fullbore/internal/oshost"
	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/internal/runner"
	"github.com/fullbore-net/fullbore/result"
)

// runner makes what runs the tests of the drop-in.
func (n *ntttcpRun) runner() *runner.Runner {
	return &runner.Runner{
		Version: Version, Now: n.Now, Plain: true,
		Totals: n.counted(n.inv.Plan),
		Log:    slog.New(&lineHandler{program: "ntttcp", out: n.Err, debug: n.out.Verbose}),
	}
}

// counted is what of this machine the outputs show.
func (n *ntttcpRun) counted(p plan.Plan) oshost.TotalsOptions {
	udp := p.Transport == plan.UDP
	return oshost.TotalsOptions{
		Interface: n.out.Interface, Interrupts: n.out.Interrupts, Stack: n.windows, IdleCycles: n.out.CPUFromIdle, Now: n.Now,
		UDP: udp, IPv6: p.Family == 6, Retransmits: !udp,
	}
}

// send is the sender: one test.
func (n *ntttcpRun) send(ctx context.Context) int {
	v := n.newTest()
	_, err := n.runner().Run(ctx, n.inv.Plan, v)
	v.Close()
	var broke *result.Error
	if err != nil && !errors.As(err, &broke) {
		broke = &result.Error{Code: "failed", Text: err.Error()}
	}
	if broke != nil && v.err == nil { // it did not come as far as to have events
		v.Event(result.Event{Kind: result.KindError, End: result.Client, Err: broke})
	}
	code := n.exitCode(broke, v.began)
	if v.lost && code == exitOK {
		code = exitBroken
	}
	return code
}

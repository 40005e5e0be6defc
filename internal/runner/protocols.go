package runner

import (
	"context"
	"net"
	"net/netip"

	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/internal/proto/iperf3"
	"github.com/fullbore-net/fullbore/result"
)

// protocol is one way to run a Plan.
type protocol struct {
	name string
	run  func(ctx context.Context, r *Runner, p plan.Plan, host *hostView, out result.Sink) error
}

// protocols is the registry: a new protocol is a line here.
var protocols = []protocol{
	{"iperf3", runIperf3},
}

func runIperf3(ctx context.Context, r *Runner, p plan.Plan, host *hostView, out result.Sink) error {
	if r.Plain && p.Extension == "" {
		p.Extension = "quiet" // the drop-in shows nothing of the other end's events
	}
	c := &iperf3.Client{
		Plan: p, Tool: r.tool(), Version: r.Release, SocketBase: r.SocketBase, Host: host.sample, Facts: host.facts, Now: r.Now,
	}
	return c.Run(ctx, out)
}

func serveIperf3(ctx context.Context, r *Runner, s plan.Serve, lns []net.Listener, newTest func(result.Addr) Hooks) error {
	srv := &iperf3.Server{
		Policy: s, Tool: r.tool(), Version: r.Release, SocketBase: r.SocketBase, Facts: r.facts(ctx), Now: r.Now, Log: r.Log,
		NewTest: func(remote result.Addr) iperf3.TestHooks {
			peer, err := netip.ParseAddr(remote.Host)
			if err != nil {
				peer = netip.Addr{}
			}
			host := hostViewTo(ctx, peer)
			h := newTest(remote)
			rec := &recorder{sink: h.Sink, id: r.newID(), tool: r.tool(), started: result.Now(r.now())}
			return iperf3.TestHooks{
				Sink: rec, Output: h.Output, Host: host.sample,
				Done: func() {
					host.close()
					if h.Done != nil {
						h.Done()
					}
				},
			}
		},
	}
	return srv.Serve(ctx, lns)
}

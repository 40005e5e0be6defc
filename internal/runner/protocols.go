package runner

import (
	"context"
	"net"
	"net/netip"

	"github.com/fullbore-net/fullbore/internal/osnet"
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
	{plan.ProtocolNTTTCP, runNTTTCP},
}

func runIperf3(ctx context.Context, r *Runner, p plan.Plan, host *hostView, out result.Sink) error {
	if r.Plain && p.Extension == "" {
		p.Extension = "quiet" // the drop-in shows nothing of the other end's events
	}
	c := &iperf3.Client{
		Plan: p, Tool: r.tool(), Version: r.Release, SocketBase: r.SocketBase, Plain: r.Plain, Host: host.sample, Facts: host.facts, Now: r.Now,
		Steering: steeringOf, Ramping: rampingOf,
	}
	return c.Run(ctx, out)
}

func serveIperf3(ctx context.Context, r *Runner, s plan.Serve, lns []net.Listener, newTest func(result.Addr) Hooks) error {
	packets, err := r.packets(ctx, s, lns)
	srv := &iperf3.Server{
		Policy: s, Tool: r.tool(), Version: r.Release, SocketBase: r.SocketBase, Facts: r.facts(ctx), FactsTo: r.factsTo(ctx), Now: r.Now, Log: r.Log,
		Packets: packets, NoPackets: err, Plain: r.Plain, OneSocket: r.OneSocket, Slots: r.Slots,
		NewTest: func(remote result.Addr) iperf3.TestHooks {
			peer, err := netip.ParseAddr(remote.Host)
			if err != nil {
				peer = netip.Addr{}
			}
			host := hostViewTo(ctx, peer)
			h := newTest(remote)
			rec := &recorder{sink: h.Sink, id: r.newID(), tool: r.tool(), started: result.Now(r.now())}
			rec.folder.Keep = 1 // nobody asks it for the Run: who wants one folds in the sink
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

// packets binds a UDP socket beside each listener. Where that fails the listener serves
// without UDP, which is logged, and told to each client that wants it.
func (r *Runner) packets(ctx context.Context, s plan.Serve, lns []net.Listener) (out []*osnet.PacketConn, why error) {
	out = make([]*osnet.PacketConn, len(lns))
	for i, ln := range lns {
		pc, err := packetsBeside(ctx, s, ln)
		if err != nil {
			if r.Log != nil {
				r.Log.Warn("no UDP here: UDP tests will be refused", "listener", ln.Addr().String(), "err", err)
			}
			why = err
			continue
		}
		out[i] = pc
	}
	return out, why
}

func packetsBeside(ctx context.Context, s plan.Serve, ln net.Listener) (*osnet.PacketConn, error) {
	addr, err := netip.ParseAddrPort(ln.Addr().String())
	if err != nil {
		return nil, err
	}
	u, _, err := osnet.ListenUDP(ctx, addr, osnet.Options{Family: s.Family, BindDev: s.BindDev})
	if err != nil {
		return nil, err
	}
	pc, err := osnet.NewPacketConn(u)
	if err != nil {
		_ = u.Close()
		return nil, err
	}
	return pc, nil
}

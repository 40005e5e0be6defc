package cli

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/internal/runner"
	"github.com/fullbore-net/fullbore/result"
)

// ntttcpPlan is the receiver's side of s; nil = NTTTCP senders are not served.
func (o *serveOptions) ntttcpPlan(s plan.Serve) (*plan.Plan, error) {
	if o.noNTTTCP || len(s.PrivateKey) > 0 {
		return nil, nil
	}
	p := &plan.Plan{
		Protocol: plan.ProtocolNTTTCP, Port: o.ntttcpBase, Family: s.Family, BindDev: s.BindDev, Receive: s.Receive, Interval: time.Second,
		NTTTCP: &plan.NTTTCP{Dialect: plan.NTTTCPLinux, Role: plan.NTTTCPReceiver, Ports: o.ntttcpPorts, Public: true},
	}
	last := o.ntttcpBase + o.ntttcpPorts - 1
	switch {
	case o.ntttcpPorts < 1 || o.ntttcpPorts > plan.MaxNTTTCPPorts:
		return nil, usagef("--ntttcp-ports %d: must be 1…%d", o.ntttcpPorts, plan.MaxNTTTCPPorts)
	case o.ntttcpBase < 2 || last+plan.NTTTCPTokenOffset > 65535:
		return nil, usagef("--ntttcp-base %d: the port below it and those up to %d are needed: they must lie in 1…65535", o.ntttcpBase, last+plan.NTTTCPTokenOffset)
	}
	return p, nil
}

// ntttcpDoor is what serves NTTTCP senders at one address.
type ntttcpDoor struct {
	serve plan.Serve
	ports *runner.NTTTCPSockets
}

// listenNTTTCP opens NTTTCP's ports at each address of s, and says in a line each where that
// failed: the rest is served all the same.
func (e *env) listenNTTTCP(ctx context.Context, r *runner.Runner, s plan.Serve) (doors []ntttcpDoor, notes []string) {
	if s.NTTTCP == nil {
		return nil, nil
	}
	var addrs []netip.Addr
	for _, ap := range s.Listen {
		if !slices.Contains(addrs, ap.Addr()) {
			addrs = append(addrs, ap.Addr())
		}
	}
	for _, a := range addrs {
		at := s
		at.Listen = []netip.AddrPort{netip.AddrPortFrom(a, uint16(s.NTTTCP.Port))}
		k, notices, err := r.ListenNTTTCP(ctx, at)
		for _, n := range notices {
			notes = append(notes, n.Text)
		}
		if err != nil {
			notes = append(notes, fmt.Sprintf("NTTTCP senders are not served at %v: %v (--ntttcp-base takes other ports, --no-ntttcp none)", a, err))
			continue
		}
		doors = append(doors, ntttcpDoor{at, k})
	}
	return doors, notes
}

// ntttcpLine says where NTTTCP senders are served.
func ntttcpLine(doors []ntttcpDoor) string {
	var at []string
	for _, d := range doors {
		a := d.serve.Listen[0].Addr()
		if a.IsUnspecified() {
			at = append(at, "every address")
			continue
		}
		at = append(at, a.String())
	}
	p := doors[0].serve.NTTTCP
	last := p.Port + p.NTTTCP.Ports - 1
	return fmt.Sprintf("NTTTCP senders: %s, ports %d to %d (-P %d), synchronising at %d (Linux) and %d to %d (Windows)",
		strings.Join(at, ", "), p.Port, last, p.NTTTCP.Ports, plan.SyncPort(p.Port), p.Port+plan.NTTTCPTokenOffset, last+plan.NTTTCPTokenOffset)
}

// errServedOne ends a one-off server whose test is over.
var errServedOne = errors.New("the one test is done")

// serveAll serves iperf3, fullbore and NTTTCP clients until ctx ends, one of the servers breaks,
// or the one test is done.
func (e *env) serveAll(ctx context.Context, doors []ntttcpDoor, newTest func(result.Addr) runner.Hooks, r *runner.Runner, serve func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	for _, d := range doors {
		wg.Go(func() { // ends with ctx, or after a one-off's test
			switch err := r.ServeNTTTCP(ctx, d.serve, d.ports, newTest); {
			case ctx.Err() != nil:
			case err == nil:
				cancel(errServedOne)
			default:
				e.logger().Error("NTTTCP senders are no longer served", "at", d.serve.Listen[0].Addr(), "err", err)
			}
		})
	}
	err := serve(ctx)
	cancel(err)
	wg.Wait()
	if errors.Is(err, errServedOne) {
		return nil
	}
	return err
}

package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"

	compat "github.com/fullbore-net/fullbore/internal/cli/compat/ntttcp"
	"github.com/fullbore-net/fullbore/internal/osnet"
	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/internal/runner"
	"github.com/fullbore-net/fullbore/result"
)

// receive is the receiver: one test, or all until it is interrupted.
func (n *ntttcpRun) receive(ctx context.Context) int {
	s := *n.inv.Serve
	if err := n.resolveListen(ctx, &s); err != nil {
		n.fault(err.Error())
		return n.usageCode()
	}
	r := n.runner()
	k, notices, err := r.ListenNTTTCP(ctx, s)
	if err != nil {
		n.fault(err.Error())
		return n.listenCode()
	}
	if n.letIn {
		shut, err := n.openFirewall(ctx, s)
		if err != nil {
			k.Close()
			n.fault(err.Error())
			return n.exitCode(failure(ctx, err), false)
		}
		defer shut()
	}
	desk := &ntttcpDesk{n: n}
	desk.open(s, k, notices)
	n.detached.ready()
	return desk.finish(ctx, r.ServeNTTTCP(ctx, s, k, desk.newTest))
}

// failure is err as a test's error, or the signal that was the cause of it.
func failure(ctx context.Context, err error) *result.Error {
	var e *result.Error
	if errors.As(context.Cause(ctx), &e) || errors.As(err, &e) {
		return e
	}
	return &result.Error{Code: "failed", Text: err.Error()}
}

// listenCode is the exit code of a receiver that cannot have its ports. The originals stay, and
// wait for nobody.
func (n *ntttcpRun) listenCode() int {
	if n.windows {
		return exitConnect
	}
	return compat.ExitSync
}

// resolveListen puts the addresses of names into s.
func (n *ntttcpRun) resolveListen(ctx context.Context, s *plan.Serve) error {
	for i, host := range n.inv.ListenHosts {
		addrs, err := osnet.Resolve(ctx, host, s.Family)
		if err != nil {
			return err
		}
		s.Listen[i] = netip.AddrPortFrom(addrs[0], s.Listen[i].Port())
	}
	return nil
}

// ntttcpDesk keeps a receiver's tests, and what it says between them.
type ntttcpDesk struct {
	n *ntttcpRun

	mu     sync.Mutex
	last   *ntttcpView // the test that began last
	failed *result.Error
	lost   bool
}

// open tells that the receiver is there.
func (d *ntttcpDesk) open(s plan.Serve, k *runner.NTTTCPSockets, notices []result.Notice) {
	n := d.n
	c := n.newConsole()
	tell := func(m result.Milestone) {
		m.Time = n.Now()
		c.Event(result.Event{Kind: result.KindMilestone, End: result.Server, Milestone: &m})
	}
	if !n.windows {
		if name := interfaceOf(s.Listen[0].Addr()); name != "" {
			tell(result.Milestone{Code: result.MilestoneLine, Severity: "debug", Text: fmt.Sprintf("Interface:[%s]\tAddress: %s", name, s.Listen[0].Addr())})
		}
	}
	listening := k.Data()
	threads := len(listening)
	if at, ok := k.Sync(); ok && !n.windows {
		listening = append(listening, at)
		threads++
	}
	tell(result.Milestone{Code: result.MilestoneThreads, Count: int64(threads)})
	for _, at := range listening {
		tell(result.Milestone{Code: result.MilestoneListening, Local: &result.Addr{Host: at.Addr().Unmap().String(), Port: int(at.Port())}})
	}
	if n.out.Verbose {
		for _, note := range notices {
			fmt.Fprintf(n.Err, "ntttcp: %s\n", note.Text)
		}
	}
}

// interfaceOf is the name of the interface that has a, "" = none, or all.
func interfaceOf(a netip.Addr) string {
	all, err := net.Interfaces()
	if err != nil {
		return ""
	}
	for _, i := range all {
		addrs, err := i.Addrs()
		if err != nil {
			continue
		}
		for _, o := range addrs {
			if p, ok := o.(*net.IPNet); ok && p.IP.Equal(net.IP(a.WithZone("").AsSlice())) {
				return i.Name
			}
		}
	}
	return ""
}

// newTest makes the surroundings of one test.
func (d *ntttcpDesk) newTest(result.Addr) runner.Hooks {
	v := d.n.newTest()
	d.mu.Lock()
	d.last = v
	d.mu.Unlock()
	onMessage := v.keepArrivals()
	return runner.Hooks{Sink: v, OnMessage: onMessage, Done: func() {
		v.Close()
		d.mu.Lock()
		defer d.mu.Unlock()
		d.failed, d.lost = v.err, d.lost || v.lost
	}}
}

// finish is what the receiver says at its end, and its exit code.
func (d *ntttcpDesk) finish(ctx context.Context, err error) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := d.n
	began := d.last != nil && d.last.began
	var cause *result.Error
	if errors.As(context.Cause(ctx), &cause) && cause.Interrupted {
		if d.failed != nil && d.failed.Interrupted { // in a test, whose output has told it
			return n.exitCode(cause, began)
		}
		n.newTest().interrupted()
		return n.exitCode(cause, false)
	}
	if err != nil {
		n.fault(err.Error())
		return n.exitCode(failure(ctx, err), began)
	}
	code := n.exitCode(d.failed, true)
	if d.lost && code == exitOK {
		code = exitBroken
	}
	return code
}

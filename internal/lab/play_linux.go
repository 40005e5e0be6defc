package lab

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/fullbore-net/fullbore/internal/lab/link"
)

// play builds the path, runs the commands once and takes everything down again.
func play(ctx context.Context, s *Scenario, o RunOptions) (p Play, err error) {
	n, err := s.build(ctx, o)
	if err != nil {
		return p, err
	}
	defer func() { err = errors.Join(err, n.Close()) }()
	since, err := s.watchCounters(n)
	if err != nil {
		return p, err
	}
	sampled := s.sampleCounters(n)
	defer sampled()
	begin, err := readCPUTimes()
	if err != nil {
		return p, err
	}
	throttled, err := n.throttled()
	if err != nil {
		return p, err
	}
	var server *Process
	if len(s.Server) > 0 {
		if server, err = n.Far.serve(ctx, Command{Args: commandLine(s.Server, o.Fullbore, s.places())}); err != nil {
			return p, err
		}
	}
	if err := s.client(ctx, n, o, server, &p); err != nil {
		return p, err
	}
	if server != nil {
		if p.Server, err = server.end(ctx); err != nil {
			return p, err
		}
	}
	end, err := readCPUTimes()
	if err != nil {
		return p, err
	}
	p.Steal = end.stealSince(begin)
	if n.Link != nil {
		if p.Link, err = n.Link.Report(); err != nil {
			return p, err
		}
		p.Link.Steal = p.Steal // of the commands' time, as in any topology
		s.setApart(p.Link)
		p.Void = p.Link.Void()
	} else if p.Steal > MaxSteal {
		p.Void = []string{stolen(p.Steal)}
	}
	if p.Throttle, err = throttled(); err != nil {
		return p, err
	}
	g, err := since()
	if err != nil {
		return p, err
	}
	p.SNMP = g.asked
	if p.Sampled, err = sampled(); err != nil {
		return p, err
	}
	p.Void = append(p.Void, s.unfit(&p, g)...)
	for _, e := range s.Expect.NFT {
		c, err := n.host(e.Host).NFTCounter(ctx, e.Counter)
		if err != nil {
			return p, err
		}
		p.NFT = append(p.NFT, link.Count{Packets: c.Packets, Bytes: c.Bytes})
	}
	return p, nil
}

// host returns the namespace of "client", "server" or "router".
func (n *Network) host(role string) *Namespace {
	return map[string]*Namespace{"client": n.Near, "server": n.Far, "router": n.Router}[role]
}

// grown is by how much counters of the kernel grew during a play.
type grown struct {
	asked []int64  // those of Expect.SNMP, in their order
	full  [2]int64 // datagrams that a UDP socket of the client, of the server had no room for
}

// watchCounters reads the kernel's counters; since returns by how much they have grown.
func (s *Scenario) watchCounters(n *Network) (since func() (grown, error), err error) {
	read := func() (g grown, err error) {
		all := map[string]map[string]int64{}
		for _, host := range []string{"client", "server", "router"} {
			if n.host(host) == nil {
				continue
			}
			if all[host], err = n.host(host).Counters(); err != nil {
				return g, err
			}
		}
		for _, e := range s.Expect.SNMP {
			v, ok := all[e.Host][e.Counter]
			if !ok {
				return g, fmt.Errorf("the kernel has no counter %q", e.Counter)
			}
			g.asked = append(g.asked, v)
		}
		for i, host := range []string{"client", "server"} {
			g.full[i] = all[host]["Udp.RcvbufErrors"] + all[host]["Udp6RcvbufErrors"]
		}
		return g, nil
	}
	before, err := read()
	return func() (grown, error) {
		after, err := read()
		for i := range after.asked {
			after.asked[i] -= before.asked[i]
		}
		for i := range after.full {
			after.full[i] -= before.full[i]
		}
		return after, err
	}, err
}

// unfit says why a play does not count beyond what Void knows.
func (s *Scenario) unfit(p *Play, g grown) (reasons []string) {
	if p.Link != nil {
		reasons = s.unasked(p.Link)
	}
	// A machine that does not let a receiver run loses datagrams there, which is no fault
	// of the path's; unless the scenario is about just that.
	if len(s.Expect.UDP)+len(s.Expect.NFT) > 0 && len(s.Expect.SNMP) == 0 {
		for i, host := range []string{"client", "server"} {
			if g.full[i] > 0 {
				reasons = append(reasons, fmt.Sprintf("%d datagrams found no room in a socket of the %s", g.full[i], host))
			}
		}
	}
	if len(s.Fit) == 0 || p.Killed {
		return reasons
	}
	doc, err := p.document("client")
	if err != nil {
		return reasons // which is judged
	}
	for _, a := range s.Fit {
		if why := a.Check(doc); why != "" {
			reasons = append(reasons, why)
		}
	}
	return reasons
}

// unasked says why exact counts mean nothing: packets were lost without having been asked
// to be.
func (s *Scenario) unasked(r *LinkReport) (reasons []string) {
	for i, name := range directionName {
		counted := slices.ContainsFunc(s.Expect.UDP, func(u UDPExpect) bool { return u.Direction == name }) ||
			slices.ContainsFunc(s.Expect.Retransmits, func(e RetransmitExpect) bool { return e.Direction == name })
		if r.Unasked[i] > 0 && counted {
			reasons = append(reasons, fmt.Sprintf("%s: %d packets were lost unasked", name, r.Unasked[i]))
		}
	}
	return reasons
}

// client runs the client to its end. One that does not end in time is killed: that is
// a wrong behaviour, not a failure to play.
func (s *Scenario) client(ctx context.Context, n *Network, o RunOptions, server *Process, p *Play) error {
	limited, cancel := context.WithTimeoutCause(ctx, s.Timeout, errTimeout)
	defer cancel()
	stop, err := s.startTraffic(limited, n)
	if err != nil {
		return err
	}
	defer func() { p.Traffic = stop() }()
	c, err := n.Near.Start(Command{Args: commandLine(s.Client, o.Fullbore, s.places())})
	if err != nil {
		return err
	}
	missed := s.pauses(limited, map[string]*Process{"client": c, "server": server}, c.Done())
	code, err := c.Wait(limited)
	p.Missed = missed()
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, errTimeout):
		p.Killed, code = true, 128+int(syscall.SIGKILL)
	case err != nil:
		return err
	}
	p.Client = Result{Code: code, Stdout: c.Stdout(), Stderr: c.Stderr()}
	return nil
}

// pauses stops and continues programs at the times that the scenario has, until the
// client has ended. missed waits for that and says which pauses did not take place.
func (s *Scenario) pauses(ctx context.Context, who map[string]*Process, ended <-chan struct{}) (missed func() []string) {
	start := time.Now()
	wait := func(until time.Duration) bool {
		t := time.NewTimer(time.Until(start.Add(until)))
		defer t.Stop()
		select {
		case <-t.C:
			return true
		case <-ended:
		case <-ctx.Done():
		}
		return false
	}
	var all sync.WaitGroup
	reasons := make([]string, len(s.Pauses))
	for i, pause := range s.Pauses {
		all.Go(func() { // ends with its pause, or with the client
			p := who[pause.Who]
			if !wait(pause.At) {
				reasons[i] = fmt.Sprintf("the client ended before the pause of the %s at %v", pause.Who, pause.At)
				return
			}
			if err := p.Signal(syscall.SIGSTOP); err != nil {
				reasons[i] = fmt.Sprintf("the %s could not be paused at %v: %v", pause.Who, pause.At, err)
				return
			}
			wait(pause.At + pause.For)
			_ = p.Signal(syscall.SIGCONT) // it may have been killed meanwhile
		})
	}
	return func() []string {
		all.Wait()
		return slices.DeleteFunc(reasons, func(s string) bool { return s == "" })
	}
}

var errTimeout = errors.New("did not end within the scenario's timeout")

// build makes the topology and applies the settings.
func (s *Scenario) build(ctx context.Context, o RunOptions) (n *Network, err error) {
	switch s.Topology {
	case TopologyPair:
		n, err = NewPair(s.CC)
	case TopologyRouted:
		n, err = NewRouted(s.CC)
	case TopologyLink:
		n, err = NewLink(LinkOptions{Config: s.Path, CC: s.CC, Command: LinkCommand(o.Fullbore)})
	case TopologySplit:
		n, err = NewSplit(ctx, LinkOptions{Config: s.Path, CC: s.CC, Command: LinkCommand(o.Fullbore)}, o.Fullbore)
	default:
		err = fmt.Errorf("lab: unknown topology %q", s.Topology)
	}
	if err != nil {
		return nil, err
	}
	for _, role := range slices.Sorted(maps.Keys(s.Hosts)) {
		if err = n.apply(ctx, role, s.Hosts[role], o); err != nil {
			return nil, errors.Join(err, n.Close())
		}
	}
	for _, dev := range slices.Sorted(maps.Keys(s.Devices)) {
		ns := map[string]*Namespace{
			PairNear: n.Near, LinkNear: n.Near, PairFar: n.Far, LinkFar: n.Far,
			RouterNear: n.Router, RouterFar: n.Router, SplitMid: n.Router,
		}[dev]
		if s.Topology == TopologySplit && dev == LinkNear {
			ns = n.Router
		}
		if err = ns.applyDevice(dev, s.Devices[dev]); err != nil {
			return nil, errors.Join(err, n.Close())
		}
	}
	return n, nil
}

// apply applies the settings of a host.
func (n *Network) apply(ctx context.Context, role string, h HostSettings, o RunOptions) (err error) {
	ns := n.host(role)
	if err := ns.set(ctx, h); err != nil {
		return err
	}
	for _, cpu := range h.Busy {
		if err := ns.keepBusy(o.Fullbore, cpu); err != nil {
			return err
		}
	}
	if h.CPU > 0 {
		ns.group, err = newCgroup("/sys/fs/cgroup", ns.Name, h.CPU)
	}
	return err
}

// throttled reads what the kernel says of the hosts that have a processor quota; since
// returns by how much that has grown.
func (n *Network) throttled() (since func() (map[string]ThrottleStats, error), err error) {
	read := func() (map[string]ThrottleStats, error) {
		all := map[string]ThrottleStats{}
		for _, role := range []string{"client", "server", "router"} {
			ns := n.host(role)
			if ns == nil || ns.group == nil {
				continue
			}
			s, err := ns.group.stats()
			if err != nil {
				return nil, err
			}
			all[role] = s
		}
		return all, nil
	}
	before, err := read()
	return func() (map[string]ThrottleStats, error) {
		after, err := read()
		for role, s := range after {
			b := before[role]
			after[role] = ThrottleStats{s.Periods - b.Periods, s.Throttled - b.Throttled, s.ThrottledTime - b.ThrottledTime}
		}
		return after, err
	}, err
}

func (ns *Namespace) set(ctx context.Context, h HostSettings) error {
	for _, name := range slices.Sorted(maps.Keys(h.Sysctl)) {
		if err := ns.SetSysctl(name, h.Sysctl[name]); err != nil {
			return err
		}
	}
	ns.SetHosts(h.Hosts...)
	if h.NFT == "" {
		return nil
	}
	return ns.NFT(ctx, h.NFT)
}

func (ns *Namespace) applyDevice(dev string, d DeviceSettings) error {
	if d.MTU > 0 {
		if err := ns.SetMTU(dev, d.MTU); err != nil {
			return err
		}
	}
	for _, a := range d.Addresses {
		if err := ns.AddAddress(dev, a); err != nil {
			return err
		}
	}
	if d.TBF == nil {
		return nil
	}
	return ns.SetTBF(dev, *d.TBF)
}

// places returns what the placeholders stand for.
func (s *Scenario) places() map[string]string {
	m := map[string]string{"CLIENT": NearIPv4, "CLIENT6": NearIPv6, "SERVER": FarIPv4, "SERVER6": FarIPv6}
	switch s.Topology {
	case TopologyRouted:
		m = map[string]string{
			"CLIENT": RoutedNearIPv4, "CLIENT6": RoutedNearIPv6, "SERVER": RoutedFarIPv4, "SERVER6": RoutedFarIPv6,
		}
	case TopologySplit:
		m["CLIENT"], m["CLIENT6"] = RoutedNearIPv4, RoutedNearIPv6
	}
	m["FACTS"] = s.Facts
	return m
}

// commandLine fills in the program under test and the addresses.
func commandLine(words []string, fullbore string, place map[string]string) []string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = os.Expand(w, func(name string) string { return place[name] })
	}
	if out[0] == "fullbore" {
		out[0] = fullbore
	}
	return out
}

// serve starts a server and waits until something listens in its namespace.
func (ns *Namespace) serve(ctx context.Context, c Command) (*Process, error) {
	p, err := ns.Start(c)
	if err != nil {
		return nil, err
	}
	for deadline := time.Now().Add(10 * time.Second); ; {
		ok, err := ns.Listening()
		switch {
		case err != nil:
			return nil, err
		case ok:
			return p, nil
		case time.Now().After(deadline):
			return nil, fmt.Errorf("the server %q listens on no TCP port after 10 s", c.Args)
		}
		select {
		case <-p.Done():
			code, err := p.code()
			return nil, errors.Join(err, fmt.Errorf("the server %q ended with exit code %d before it listened: %s",
				c.Args, code, strings.TrimSpace(p.Stdout()+p.Stderr())))
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// end asks a server to end, if it has not done so by itself, and insists after 5 s.
func (p *Process) end(ctx context.Context) (Result, error) {
	select {
	case <-p.Done():
	default:
		_ = p.Signal(syscall.SIGTERM) // it may end just now
	}
	limited, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	code, err := p.Wait(limited)
	if err != nil && ctx.Err() != nil {
		return Result{}, context.Cause(ctx)
	}
	if errors.Is(err, context.DeadlineExceeded) {
		code, err = p.code()
	}
	return Result{Code: code, Stdout: p.Stdout(), Stderr: p.Stderr()}, err
}

package runner

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"

	"github.com/fullbore-net/fullbore/internal/oshost"
	"github.com/fullbore-net/fullbore/internal/osnet"
	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/internal/proto/ntttcp"
	"github.com/fullbore-net/fullbore/result"
)

func runNTTTCP(ctx context.Context, r *Runner, p plan.Plan, host *hostView, out result.Sink) error {
	if r.Plain && p.Extension == "" {
		p.Extension = "quiet" // the drop-in shows nothing of the other end's events
	}
	totals := r.totals(p)
	defer totals.Close()
	s := &ntttcp.Sender{Config: ntttcp.ConfigOf(p), Tool: r.tool(), Host: host.sample, Facts: host.facts, Now: r.Now, Machine: totals.Begin}
	err := s.Run(ctx, out)
	uncounted(out, result.Client, totals)
	return err
}

// totals counts what this machine does in the measured time of p.
func (r *Runner) totals(p plan.Plan) *oshost.Totals {
	o := r.Totals
	o.UDP, o.IPv6, o.Retransmits = p.Transport == plan.UDP, p.Family == 6, p.Transport != plan.UDP
	return oshost.NewTotals(o)
}

// uncounted says which of the counters this host does not have.
func uncounted(out result.Sink, end result.End, t *oshost.Totals) {
	for _, text := range t.Missing() {
		out.Event(result.Event{Kind: result.KindNotice, End: end, Notice: &result.Notice{
			Code: "counter-missing", End: end, Level: result.Info, Text: "not counted on this host: " + text,
		}})
	}
}

// NTTTCPSockets are the open ports of an NTTTCP receiver. ServeNTTTCP closes them; who does not
// come that far calls Close.
type NTTTCPSockets struct {
	own ntttcp.Listeners
	// linux are the ports of a second receiver, which a Windows receiver with -P n has for Linux
	// senders with -P n; no Data = none.
	linux ntttcp.Listeners
}

// Close closes all ports that are still open.
func (k *NTTTCPSockets) Close() {
	for _, l := range []ntttcp.Listeners{k.own, k.linux} {
		closePorts(l)
	}
}

func closePorts(l ntttcp.Listeners) {
	if l.Sync != nil {
		_ = l.Sync.Close()
	}
	for _, ln := range append(append([]net.Listener(nil), l.Data...), l.Tokens...) {
		_ = ln.Close()
	}
	for _, pc := range l.Packets {
		_ = pc.Close()
	}
}

// Data are the addresses of the data ports in order, of those that were asked for: TCP's, or
// UDP's for a receiver of datagrams.
func (k *NTTTCPSockets) Data() []netip.AddrPort {
	var out []netip.AddrPort
	for _, l := range []ntttcp.Listeners{k.own, k.linux} {
		for _, ln := range l.Data {
			out = append(out, addrPort(ln))
		}
		if len(l.Data) > 0 {
			continue
		}
		for _, pc := range l.Packets {
			out = append(out, pc.LocalAddr())
		}
	}
	return out
}

// Sync is the address of the sync port of the Linux dialect.
func (k *NTTTCPSockets) Sync() (netip.AddrPort, bool) {
	for _, l := range []ntttcp.Listeners{k.own, k.linux} {
		if l.Sync != nil {
			return addrPort(l.Sync), true
		}
	}
	return netip.AddrPort{}, false
}

func addrPort(ln net.Listener) netip.AddrPort {
	ap, err := netip.ParseAddrPort(ln.Addr().String())
	if err != nil {
		return netip.AddrPort{}
	}
	return ap
}

// ListenNTTTCP opens the ports of a receiver: those that its own dialect and transport need, of
// which each that cannot be had is an error, and those by which it serves senders of the other
// dialect and transport too, of which a missing one is a notice. s.Listen are its addresses, each
// at its first data port, one for each mapping where there are several; none = all of this
// machine's at s.NTTTCP.Port. What a test without synchronisation does not need is not opened.
func (r *Runner) ListenNTTTCP(ctx context.Context, s plan.Serve) (*NTTTCPSockets, []result.Notice, error) {
	if s.NTTTCP == nil || s.NTTTCP.NTTTCP == nil {
		return nil, nil, &result.Error{Code: "plan", Text: "no NTTTCP receiver was asked for"}
	}
	p := s.NTTTCP.Filled()
	k := &NTTTCPSockets{}
	notices, err := openPorts(ctx, s, p, &k.own)
	if err == nil && p.NTTTCP.LinuxPorts > 0 {
		var more []result.Notice
		more, err = openPorts(ctx, linuxServe(s), *linuxServe(s).NTTTCP, &k.linux)
		notices = append(notices, more...)
	}
	if err != nil {
		k.Close()
		return nil, notices, err
	}
	return k, notices, nil
}

// portSet is a run of ports at one address.
type portSet struct {
	addr  netip.Addr
	first int
	count int
}

// portSets are the data ports of a receiver, in the order of their threads.
func portSets(s plan.Serve, p plan.Plan) []portSet {
	n := p.NTTTCP
	if len(s.Listen) == 0 {
		return []portSet{{netip.IPv6Unspecified(), p.Port, n.Ports}}
	}
	var out []portSet
	for i, ap := range s.Listen {
		set := portSet{ap.Addr(), int(ap.Port()), n.Ports}
		if len(n.Mappings) == len(s.Listen) && len(s.Listen) > 1 {
			set.count = n.Mappings[i].Threads
		}
		out = append(out, set)
	}
	return out
}

// opener opens ports one after the other.
type opener struct {
	ctx     context.Context
	o       osnet.Options
	notices []result.Notice
}

func (o *opener) tcp(a netip.Addr, port int) (net.Listener, error) {
	ln, err := osnet.Listen(o.ctx, "tcp", netip.AddrPortFrom(a, uint16(port)), o.o)
	if err != nil {
		return nil, portError(err, port)
	}
	return ln, nil
}

func (o *opener) udp(a netip.Addr, port int) (*osnet.PacketConn, error) {
	u, _, err := osnet.ListenUDP(o.ctx, netip.AddrPortFrom(a, uint16(port)), o.o)
	if err != nil {
		return nil, portError(err, port)
	}
	pc, err := osnet.NewPacketConn(u)
	if err != nil {
		_ = u.Close()
		return nil, err
	}
	return pc, nil
}

// optional says that a port which is only for other senders is not open.
func (o *opener) optional(err error, whom string) {
	o.notices = append(o.notices, result.Notice{
		Code: "port-missing", End: result.Server, Level: result.Info, Text: fmt.Sprintf("%s are not served: %v", whom, err),
	})
}

// openPorts fills l.
func openPorts(ctx context.Context, s plan.Serve, p plan.Plan, l *ntttcp.Listeners) ([]result.Notice, error) {
	n := p.NTTTCP
	// The buffer is set before a connection comes: afterwards its window could not grow to it.
	o := &opener{ctx: ctx, o: osnet.Options{Family: s.Family, BindDev: s.BindDev, Window: ntttcp.ConfigOf(p).Window}}
	sets := portSets(s, p)
	udp, windows := p.Transport == plan.UDP, n.Dialect == plan.NTTTCPWindows
	data := func() error {
		return eachPort(sets, 0, func(a netip.Addr, port int) error { return keep(&l.Data)(o.tcp(a, port)) })
	}
	packets := func() error {
		return eachPort(sets, 0, func(a netip.Addr, port int) error { return keep(&l.Packets)(o.udp(a, port)) })
	}
	first, second, others := data, packets, "senders over UDP"
	if udp {
		first, second, others = packets, data, "senders over TCP"
	}
	if err := first(); err != nil {
		return o.notices, err
	}
	if err := second(); err != nil {
		o.optional(err, others)
		if udp {
			closePorts(ntttcp.Listeners{Data: l.Data})
			l.Data = nil
		} else {
			closePorts(ntttcp.Listeners{Packets: l.Packets})
			l.Packets = nil
		}
	}
	if n.NoSync {
		return o.notices, nil
	}
	ln, err := o.tcp(sets[0].addr, plan.SyncPort(sets[0].first))
	switch {
	case err == nil:
		l.Sync = ln
	case windows:
		o.optional(err, "senders of the Linux dialect that synchronise")
	default:
		return o.notices, err
	}
	err = eachPort(sets, plan.NTTTCPTokenOffset, func(a netip.Addr, port int) error { return keep(&l.Tokens)(o.tcp(a, port)) })
	switch {
	case err == nil:
	case windows:
		return o.notices, err
	default:
		o.optional(err, "senders of the Windows dialect that synchronise")
		closePorts(ntttcp.Listeners{Tokens: l.Tokens})
		l.Tokens = nil
	}
	return o.notices, nil
}

// keep appends what was opened to list.
func keep[T any](list *[]T) func(T, error) error {
	return func(v T, err error) error {
		if err == nil {
			*list = append(*list, v)
		}
		return err
	}
}

// eachPort calls open for each port of sets, moved by offset, until one fails.
func eachPort(sets []portSet, offset int, open func(netip.Addr, int) error) error {
	for _, s := range sets {
		for i := range s.count {
			if err := open(s.addr, s.first+i+offset); err != nil {
				return err
			}
		}
	}
	return nil
}

// portError words why a port cannot be had.
func portError(err error, port int) error {
	if port < 0 || port > 65535 {
		return &result.Error{Code: "port", Text: fmt.Sprintf("there is no port %d", port)}
	}
	e := &result.Error{Code: "port", Text: err.Error(), Errno: osnet.Errno(err)}
	var addr *osnet.AddrError
	if errors.As(err, &addr) && addr.Reason == osnet.PortPrivileged {
		e.Text += ", or let this program have it: setcap cap_net_bind_service=+ep, or sysctl net.ipv4.ip_unprivileged_port_start"
	}
	return e
}

// linuxServe is the receiver for Linux senders with -P n beside a Windows receiver with -P n.
func linuxServe(s plan.Serve) plan.Serve {
	own := *s.NTTTCP
	n := *own.NTTTCP
	ports := n.LinuxPorts
	own.NTTTCP = &plan.NTTTCP{Dialect: plan.NTTTCPLinux, Role: plan.NTTTCPReceiver, Ports: ports, Threads: 1, Connections: 1, CoolDown: n.CoolDown}
	own.Port, own.Streams, own.BlockSize = plan.NTTTCPPort, ports, 0
	if own.Duration == 0 { // it counts buffers: the sender's end is the end
		own.Endless = true
	}
	own = own.Filled()
	addr := netip.IPv4Unspecified()
	if s.Family == 6 {
		addr = netip.IPv6Unspecified()
	}
	if len(s.Listen) > 0 {
		addr = s.Listen[0].Addr()
	}
	s.Listen = []netip.AddrPort{netip.AddrPortFrom(addr, plan.NTTTCPPort)}
	s.NTTTCP = &own
	return s
}

// ServeNTTTCP serves senders at k's ports until ctx ends or a one-off test is over. newTest is
// called for each test that begins. It closes k.
func (r *Runner) ServeNTTTCP(ctx context.Context, s plan.Serve, k *NTTTCPSockets, newTest func(remote result.Addr) Hooks) error {
	if s.NTTTCP == nil {
		k.Close()
		return &result.Error{Code: "plan", Text: "no NTTTCP receiver was asked for"}
	}
	if err := errors.Join(s.Validate(), s.NTTTCP.Validate()); err != nil {
		k.Close()
		return &result.Error{Code: "plan", Text: err.Error()}
	}
	if len(k.linux.Data) == 0 && len(k.linux.Packets) == 0 {
		return r.receiveNTTTCP(ctx, s, k.own, newTest)
	}
	return r.serveBoth(ctx, s, k, newTest)
}

// receiveNTTTCP is one receiver.
func (r *Runner) receiveNTTTCP(ctx context.Context, s plan.Serve, l ntttcp.Listeners, newTest func(remote result.Addr) Hooks) error {
	if r.Plain && s.Extension == "" {
		s.Extension = "quiet"
	}
	totals := r.totals(*s.NTTTCP)
	defer totals.Close()
	recv := &ntttcp.Receiver{
		Config: ntttcp.ReceiverConfigOf(s), Tool: r.tool(), Facts: r.facts(ctx), Now: r.Now, Log: r.Log,
		NewTest: func(remote result.Addr) ntttcp.TestHooks {
			peer, err := netip.ParseAddr(remote.Host)
			if err != nil {
				peer = netip.Addr{}
			}
			host := hostViewTo(ctx, peer)
			h := newTest(remote)
			rec := &recorder{sink: h.Sink, id: r.newID(), tool: r.tool(), started: result.Now(r.now())}
			return ntttcp.TestHooks{
				Sink: rec, Host: host.sample, Machine: totals.Begin,
				Done: func() {
					uncounted(rec, result.Server, totals)
					host.close()
					if h.Done != nil {
						h.Done()
					}
				},
			}
		},
	}
	return recv.Serve(ctx, l)
}

// errOtherPorts ends the receiver at whose ports nobody came first.
var errOtherPorts = errors.New("the sender came at the other ports")

// serveBoth runs the receivers of both dialects. Where the first sender comes decides, if only
// one is to be served.
func (r *Runner) serveBoth(ctx context.Context, s plan.Serve, k *NTTTCPSockets, newTest func(remote result.Addr) Hooks) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var once sync.Once
	var wg sync.WaitGroup
	var errs [2]error
	var cancels [2]context.CancelCauseFunc
	var contexts [2]context.Context
	for i := range contexts {
		contexts[i], cancels[i] = context.WithCancelCause(ctx)
		defer cancels[i](nil)
	}
	for i, l := range []ntttcp.Listeners{k.own, k.linux} {
		serve := s
		if i == 1 {
			serve = linuxServe(s)
		}
		wg.Go(func() { // ends with its context, or its one test
			errs[i] = r.receiveNTTTCP(contexts[i], serve, l, func(remote result.Addr) Hooks {
				if s.OneOff {
					once.Do(func() { cancels[1-i](errOtherPorts) })
				}
				return newTest(remote)
			})
			if errs[i] != nil && !errors.Is(errs[i], errOtherPorts) {
				cancels[1-i](errs[i])
			}
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil && !errors.Is(err, errOtherPorts) {
			return err
		}
	}
	return nil
}

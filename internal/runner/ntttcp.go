package runner

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"

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
	c := ntttcp.ConfigOf(p)
	c.Brief = !r.Plain // what follows the measured time would be for nobody
	s := &ntttcp.Sender{Config: c, Tool: r.tool(), Host: host.sample, Facts: host.facts, Now: r.Now, Machine: totals.Begin}
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
type NTTTCPSockets struct{ ports ntttcp.Listeners }

// Close closes all ports that are still open.
func (k *NTTTCPSockets) Close() { k.ports.Close() }

// Data are the addresses of the data ports in order, of those that were asked for: TCP's, or
// UDP's for a receiver of datagrams alone.
func (k *NTTTCPSockets) Data() []netip.AddrPort {
	var out []netip.AddrPort
	for _, l := range []struct {
		data    []net.Listener
		packets []*osnet.PacketConn
	}{{k.ports.Data, k.ports.Packets}, {k.ports.LinuxData, k.ports.LinuxPackets}} {
		for _, ln := range l.data {
			out = append(out, addrPort(ln))
		}
		if len(l.data) > 0 {
			continue
		}
		for _, pc := range l.packets {
			out = append(out, pc.LocalAddr())
		}
	}
	return out
}

// Sync is the address of the sync port of the Linux dialect.
func (k *NTTTCPSockets) Sync() (netip.AddrPort, bool) {
	for _, ln := range []net.Listener{k.ports.Sync, k.ports.LinuxSync} {
		if ln != nil {
			return addrPort(ln), true
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
// A public receiver needs its data ports only.
func (r *Runner) ListenNTTTCP(ctx context.Context, s plan.Serve) (*NTTTCPSockets, []result.Notice, error) {
	if s.NTTTCP == nil || s.NTTTCP.NTTTCP == nil {
		return nil, nil, &result.Error{Code: "plan", Text: "no NTTTCP receiver was asked for"}
	}
	p := s.NTTTCP.Filled()
	k := &NTTTCPSockets{}
	o := r.opener(ctx, s, p)
	err := o.open(p, &k.ports)
	if err == nil && p.NTTTCP.LinuxPorts > 0 {
		err = o.openLinux(p, &k.ports)
	}
	if err != nil {
		k.Close()
		return nil, o.notices, err
	}
	return k, o.notices, nil
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
		s.Listen = []netip.AddrPort{netip.AddrPortFrom(netip.IPv6Unspecified(), uint16(p.Port))}
	}
	var out []portSet
	for i, ap := range s.Listen {
		set := portSet{ap.Addr(), int(ap.Port()), n.Ports}
		if n.PortSync { // the first port only tells the others
			set.first++
		}
		if len(n.Mappings) == len(s.Listen) && len(s.Listen) > 1 {
			set.count = n.Mappings[i].Threads
		}
		out = append(out, set)
	}
	return out
}

// opener opens the ports of a receiver.
type opener struct {
	ctx     context.Context
	o       osnet.Options
	sets    []portSet
	notices []result.Notice
}

func (r *Runner) opener(ctx context.Context, s plan.Serve, p plan.Plan) *opener {
	// The buffer is set before a connection comes: afterwards its window could not grow to it.
	return &opener{ctx: ctx, o: osnet.Options{Family: s.Family, BindDev: s.BindDev, Window: ntttcp.ConfigOf(p).Window}, sets: portSets(s, p)}
}

func (o *opener) tcp(a netip.Addr, port int) (net.Listener, error) {
	if port < 1 || port > 65535 {
		return nil, &result.Error{Code: "port", Text: fmt.Sprintf("there is no port %d", port)}
	}
	ln, err := osnet.Listen(o.ctx, "tcp", netip.AddrPortFrom(a, uint16(port)), o.o)
	if err != nil {
		return nil, portError(err)
	}
	return ln, nil
}

func (o *opener) udp(a netip.Addr, port int) (*osnet.PacketConn, error) {
	u, _, err := osnet.ListenUDP(o.ctx, netip.AddrPortFrom(a, uint16(port)), o.o)
	if err != nil {
		return nil, portError(err)
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

// dataPorts opens the data ports of both transports; only those of the plan's must be had.
func (o *opener) dataPorts(udp bool) (data []net.Listener, packets []*osnet.PacketConn, err error) {
	streams := func() error {
		return o.each(0, func(a netip.Addr, port int) error { return keep(&data)(o.tcp(a, port)) })
	}
	datagrams := func() error {
		return o.each(0, func(a netip.Addr, port int) error { return keep(&packets)(o.udp(a, port)) })
	}
	if udp {
		if err := datagrams(); err != nil {
			return data, packets, err
		}
		if err := streams(); err != nil {
			o.optional(err, "senders over TCP")
			ntttcp.Listeners{Data: data}.Close()
			data = nil
		}
		return data, packets, nil
	}
	if err := streams(); err != nil {
		return data, packets, err
	}
	if err := datagrams(); err != nil {
		o.optional(err, "senders over UDP")
		ntttcp.Listeners{Packets: packets}.Close()
		packets = nil
	}
	return data, packets, nil
}

// open fills l with the ports of a receiver with plan p, but those of openLinux.
func (o *opener) open(p plan.Plan, l *ntttcp.Listeners) (err error) {
	n := p.NTTTCP
	at := o.sets[0]
	if n.PortSync {
		if l.PortSync, err = o.tcp(at.addr, at.first-1); err != nil {
			return err
		}
	}
	if l.Data, l.Packets, err = o.dataPorts(p.Transport == plan.UDP); err != nil || n.NoSync {
		return err
	}
	windows := n.Dialect == plan.NTTTCPWindows
	if !n.PortSync { // whose port it would be
		l.Sync, err = o.tcp(at.addr, plan.SyncPort(at.first))
		switch {
		case err == nil:
		case windows || n.Public:
			l.Sync = nil
			o.optional(err, "senders of the Linux dialect that synchronise")
		default:
			return err
		}
	}
	err = o.each(plan.NTTTCPTokenOffset, func(a netip.Addr, port int) error { return keep(&l.Tokens)(o.tcp(a, port)) })
	if err != nil && (!windows || n.Public) {
		o.optional(err, "senders of the Windows dialect that synchronise")
		ntttcp.Listeners{Tokens: l.Tokens}.Close()
		l.Tokens, err = nil, nil
	}
	return err
}

// openLinux opens the ports of Linux senders with -P n beside those of a Windows receiver with
// -P n.
func (o *opener) openLinux(p plan.Plan, l *ntttcp.Listeners) (err error) {
	o.sets = []portSet{{o.sets[0].addr, plan.NTTTCPPort, p.NTTTCP.LinuxPorts}}
	if l.LinuxData, l.LinuxPackets, err = o.dataPorts(p.Transport == plan.UDP); err != nil || p.NTTTCP.NoSync {
		return err
	}
	l.LinuxSync, err = o.tcp(o.sets[0].addr, plan.SyncPort(plan.NTTTCPPort))
	return err
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

// each calls open for each data port, moved by offset, until one fails.
func (o *opener) each(offset int, open func(netip.Addr, int) error) error {
	for _, s := range o.sets {
		for i := range s.count {
			if err := open(s.addr, s.first+i+offset); err != nil {
				return err
			}
		}
	}
	return nil
}

// portError words why a port cannot be had.
func portError(err error) error {
	e := &result.Error{Code: "port", Text: err.Error(), Errno: osnet.Errno(err)}
	var addr *osnet.AddrError
	if errors.As(err, &addr) && addr.Reason == osnet.PortPrivileged {
		e.Text += ", or let this program have it: setcap cap_net_bind_service=+ep, or sysctl net.ipv4.ip_unprivileged_port_start"
	}
	return e
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
	if r.Plain && s.Extension == "" {
		s.Extension = "quiet"
	}
	totals := r.totals(*s.NTTTCP)
	defer totals.Close()
	recv := &ntttcp.Receiver{
		Config: ntttcp.ReceiverConfigOf(s), Tool: r.tool(), Facts: r.facts(ctx), FactsTo: r.factsTo(ctx), Now: r.Now, Log: r.Log, Slots: r.Slots,
		NewTest: func(remote result.Addr) ntttcp.TestHooks {
			peer, err := netip.ParseAddr(remote.Host)
			if err != nil {
				peer = netip.Addr{}
			}
			host := hostViewTo(ctx, peer)
			h := newTest(remote)
			rec := &recorder{sink: h.Sink, id: r.newID(), tool: r.tool(), started: result.Now(r.now())}
			return ntttcp.TestHooks{
				Sink: rec, Host: host.sample, Machine: totals.Begin, OnMessage: h.OnMessage,
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
	return recv.Serve(ctx, k.ports)
}

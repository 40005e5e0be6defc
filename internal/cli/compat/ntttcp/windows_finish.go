package ntttcp

import (
	"fmt"
	"math"
	"net/netip"
	"strings"
	"time"

	"github.com/fullbore-net/fullbore/internal/plan"
)

// finish is VerifyArgs, in its order, and what it leaves unchecked; then it builds the
// invocation.
func (p *windowsParser) finish() (*Invocation, *Exit) {
	if f := p.verify(); f != nil {
		return nil, p.exit(f)
	}
	if f := p.checkRunnable(); f != nil {
		return nil, p.exit(f)
	}
	p.remarks()
	inv := p.build()
	if err := p.plan.Validate(); err != nil { // the safety net below the checks above
		return nil, p.exit(&winFault{function: "VerifyArgs", text: strings.ReplaceAll(err.Error(), "\n", "; ")})
	}
	return inv, nil
}

// verify is VerifyArgs: the first that applies is reported.
func (p *windowsParser) verify() *winFault {
	n := &p.n
	spacing := p.spacing != 0
	for _, c := range []struct {
		bad  bool
		text string
	}{
		{n.WSA && !p.async, winWSASync},
		{n.WSA && p.packets, winWSAPackets},
		{!p.async && p.packets, winPacketsSync},
		{!p.send && p.packets, winPacketsRecv},
		{n.WaitAll && !(n.WSA || !p.async), winWaitAll},
		{len(p.mappings) == 0, winNoMapping},
		{p.nic != "" && !p.send, winNICReceive},
		{p.throughput > 0 && !p.send, winThrottle},
		{!n.NoSync && p.threads > plan.MaxNTTTCPTokens, winManyThreads},
		{p.udp && n.EStats, winEStatsUDP},
		{n.EStats && p.world.Windows && !p.world.Admin, winEStatsAdmin},
		{n.Sample > 0 && !p.timed, winSampleTime},
		{spacing && p.threads > 1, winSpacingOne},
		{spacing && p.async, winSpacingAsync},
		{spacing && !p.send, winSpacingRecv},
		{spacing && p.throughput > 0, winSpacingThr},
		{spacing && n.CPUBurn > 0, winSpacingBurn},
		{n.Jitter && p.block < 20, winJitterSize},
		{p.async && !p.icp && p.outstanding >= 64, winOutstanding},
		{n.RoundTrip && p.async, winRoundTrip},
		{n.SegmentSize != 0 && (!p.send || !p.udp), winUSO},
		{n.Coalesce && (p.send || !p.udp), winURO},
		{n.Unconnected && !p.udp, winUnconnected},
		{n.Unconnected && p.async, winUnconnectedA},
	} {
		if c.bad {
			p.foreign = c.text == winNoMapping
			return &winFault{function: "VerifyArgs", text: c.text}
		}
	}
	return nil
}

// checkRunnable refuses what ntttcp.exe takes and then fails at, or waits for ever.
func (p *windowsParser) checkRunnable() *winFault {
	last := int64(p.port) + int64(p.threads) - 1
	if p.n.PortSync {
		last++
	}
	if !p.n.NoSync {
		last += plan.NTTTCPTokenOffset
	}
	switch {
	case last > 65535:
		f := option("-p")
		f.hint = fmt.Sprintf("-p %d: %d threads need ports up to %d, and 65535 is the last", p.port, p.threads, last)
		return f
	case p.block > math.MaxInt32, p.udp && p.send && p.n.SegmentSize == 0 && p.block > plan.MaxUDPBlock:
		most := math.MaxInt32
		if p.udp && p.send && p.n.SegmentSize == 0 {
			most = plan.MaxUDPBlock
		}
		f := option("-l")
		f.hint = fmt.Sprintf("-l: at most %d bytes here", most)
		return f
	case p.n.HyperV && !p.world.Windows:
		f := option("-hv")
		f.hint = "-hv: AF_HYPERV is on Windows only"
		return f
	case p.n.HyperV && (p.udp || p.nic != ""):
		f := option("-hv")
		f.hint = "-hv: not with -u or -nic"
		return f
	}
	return nil
}

// remarks are lines about what is accepted and misread, repaired, or without effect.
func (p *windowsParser) remarks() {
	if p.upperP != "" {
		text := fmt.Sprintf("-P is -p here: the first data port is %d; for %d streams give -m %d,*,%s", p.port, p.port, p.port, p.mappings[0].Host)
		if p.port < 1024 {
			if !p.send {
				p.n.LinuxPorts = int(min(p.port, plan.MaxNTTTCPPorts))
				text += fmt.Sprintf("; Linux senders with -P %d are served too, at ports %d to %d", p.n.LinuxPorts, plan.NTTTCPPort, plan.NTTTCPPort+p.n.LinuxPorts-1)
			}
			if !p.world.Windows {
				text += "; ports below 1024 may need privilege"
			}
		}
		p.note(text)
	}
	if p.async && !p.world.Windows {
		p.note("-a: calls that overlap are Windows' way: no effect on this system")
	}
	if p.n.Sample > 0 && p.out.Tables {
		p.note("-sam without -xml: the tables are printed for each sample")
	}
	if p.n.Jitter && !p.send && p.out.JitterFile == "" {
		p.note("-jm without a file: the receiver writes no arrival times")
	}
	if p.buffersSet && (p.warmUp > 0 || p.coolDown > 0) {
		p.note("-wu and -cd have no effect with -n, as in the original")
		p.warmUp, p.coolDown = 0, 0
	}
	if !p.timed && !p.endless {
		p.warmUp, p.coolDown = 0, 0
	}
	if p.udp && p.plan.NoDelay {
		p.note("-ndl has no effect on UDP")
		p.plan.NoDelay = false
	}
}

// build writes the plan.
func (p *windowsParser) build() *Invocation {
	n, pl := &p.n, &p.plan
	n.Role = plan.NTTTCPReceiver
	if p.send {
		n.Role = plan.NTTTCPSender
		pl.Bitrate = p.throughput * 8000
		pl.BindHost = p.nic
	} else {
		n.QOS, pl.TOS = nil, 0
	}
	n.Ports, n.Threads, n.Connections = p.threads, 1, 1
	n.Mappings = p.mappings
	n.CoolDown = time.Duration(p.coolDown) * time.Second
	if p.async {
		n.Outstanding = int(p.outstanding)
	}
	if p.packets {
		n.TransmitPackets = int(p.packetCount)
	}
	if p.sendBuffer >= 0 {
		n.SendSocketBuffer = &p.sendBuffer
	}
	if p.recvBuffer >= 0 {
		n.ReceiveSocketBuffer = &p.recvBuffer
	}
	pl.Protocol, pl.Transport, pl.Direction = plan.ProtocolNTTTCP, plan.TCP, plan.Up
	if p.udp {
		pl.Transport = plan.UDP
	}
	if pl.Family == 0 && !n.HyperV {
		pl.Family = 4
	}
	pl.Port, pl.Streams, pl.BlockSize = int(p.port), p.threads, int(p.block)
	switch {
	case p.endless:
		pl.Endless = true
	case p.timed:
		pl.Duration = time.Duration(p.time) * time.Millisecond
	default:
		n.Buffers, n.TimeLimit = p.buffers, plan.NTTTCPTimeLimit
		if p.timeLimit > 0 {
			n.TimeLimit = time.Duration(p.timeLimit) * time.Millisecond
		}
	}
	pl.Omit, pl.Interval = time.Duration(p.warmUp)*time.Second, time.Second
	p.out.Realtime = p.progress
	inv := &Invocation{Output: p.out, Banner: windowsBanner()}
	inv.Settings = p.settings()
	if p.send {
		pl.Host = n.Mappings[0].Host
	} else {
		inv.Serve, inv.ListenHosts = p.serve()
		pl.Host = n.Mappings[0].Host
	}
	pl.NTTTCP = n
	inv.Plan = *pl
	return inv
}

// serve is the listener: an address for each mapping, at its first port. An address of
// another machine, which ntttcp.exe cannot bind, becomes all of one's own, for all.
func (p *windowsParser) serve() (*plan.Serve, map[int]string) {
	all := netip.IPv4Unspecified()
	if p.plan.Family == 6 {
		all = netip.IPv6Unspecified()
	}
	s := &plan.Serve{Family: p.plan.Family, OneOff: true, Exclusive: true, Interval: time.Second}
	var names map[int]string
	port := int(p.port)
	for i := range p.n.Mappings {
		m := &p.n.Mappings[i]
		addr, err := netip.ParseAddr(m.Host)
		switch {
		case err == nil && addr.IsUnspecified():
			m.Host = ""
		case p.world.notLocal(m.Host):
			p.note(notOurs(m.Host))
			m.Host, addr = "", all
		case err != nil:
			if names == nil {
				names = map[int]string{}
			}
			names[i], addr = m.Host, all
		}
		s.Listen = append(s.Listen, netip.AddrPortFrom(addr, uint16(port)))
		port += m.Threads
	}
	return s, names
}

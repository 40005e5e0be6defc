package cli

import (
	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/internal/render/ntttcplinux"
	"github.com/fullbore-net/fullbore/internal/render/ntttcpwin"
	"github.com/fullbore-net/fullbore/result"
)

func (n *ntttcpRun) end() result.End {
	if n.inv.Serve != nil {
		return result.Server
	}
	return result.Client
}

// newConsole makes the renderer of one test, or of what is said between tests.
func (n *ntttcpRun) newConsole() view {
	if n.windows {
		return ntttcpwin.New(n.stdout, n.windowsOptions())
	}
	return ntttcplinux.New(n.stdout, n.linuxOptions())
}

func (n *ntttcpRun) linuxOptions() ntttcplinux.Options {
	return ntttcplinux.Options{
		Settings: n.linuxSettings(), Verbose: n.out.Verbose, Quiet: !n.out.Realtime, NoThreads: !n.out.Threads,
		Terminal: n.Terminal && n.Getenv("TERM") != "dumb", Again: true, Now: n.Now, Log: n.log, Err: n.Err, End: n.end(),
		ErrorLines: n.errorLines,
	}
}

func (n *ntttcpRun) windowsOptions() ntttcpwin.Options {
	return ntttcpwin.Options{
		Settings: n.windowsSettings(), Verbose: n.out.Verbose, NoThreads: !n.out.Threads, XML: !n.out.Tables,
		Realtime: n.out.Realtime, Again: true, Now: n.Now, Err: n.Err, End: n.end(), ErrorLines: n.errorLines,
	}
}

// linuxSettings is what the outputs show of the command line beyond what is in the run.
func (n *ntttcpRun) linuxSettings() ntttcplinux.Settings {
	p := n.inv.Plan
	s := ntttcplinux.Settings{
		Address: p.Host, Client: p.BindHost, IPv6: p.Family == 6, SourcePort: p.ClientPort,
		Bandwidth: p.NTTTCP.Rate, FQRate: p.NTTTCP.FQRate, Daemon: n.inv.Daemon, Epoll: p.NTTTCP.Epoll,
		ShowRetransmits: n.out.TCPRetransmits, Interface: n.out.Interface, Interrupts: n.out.Interrupts,
		LogFile: n.out.Log, XMLFile: n.out.XML, JSONFile: n.out.JSON,
	}
	if n.inv.Serve != nil {
		s.Hold, s.RecvBuffer = !n.inv.Serve.OneOff, int64(p.BlockSize)
	} else {
		s.SendBuffer = int64(p.BlockSize)
	}
	if len(p.Affinity) > 0 {
		s.CPU = &p.Affinity[0]
	}
	if n.host != nil {
		s.Computer, s.System = n.host.Name, n.host.SystemInfo
	}
	return s
}

// windowsSettings is the same of the Windows dialect.
func (n *ntttcpRun) windowsSettings() ntttcpwin.Settings {
	p, t := n.inv.Plan, n.inv.Plan.NTTTCP
	s := ntttcpwin.Settings{
		BufferLength: int64(p.BlockSize), BufferCount: t.Buffers, SendBuffer: t.SendSocketBuffer, RecvBuffer: t.ReceiveSocketBuffer,
		SyncPort: t.PortSync, Async: t.Outstanding, WSA: t.WSA, UDPUnconnected: t.Unconnected, Verify: t.Verify, WaitAll: t.WaitAll,
		SenderName: p.BindHost, TransmitPackets: t.TransmitPackets > 0, HyperV: t.HyperV, NoStdioBuffer: n.out.Unbuffered,
		Throttle: p.Bitrate / 8000, Burn: t.CPUBurn, Latency: t.Latency, RoundTrip: t.RoundTrip, CPUFromIdle: n.out.CPUFromIdle,
		EStats: t.EStats, QoS: t.QOS != nil, Jitter: t.Jitter, PacketPeriod: int(t.Spacing.Milliseconds()), SegmentOffload: t.SegmentSize,
		ReceiveCoalesces: t.Coalesce, Node: t.NUMANode, IPv6: p.Family == 6,
	}
	if timeout := t.WaitTimeout.Milliseconds(); t.NoTimeout || timeout > 0 {
		if t.NoTimeout {
			timeout = -1
		}
		s.Timeout = &timeout
	}
	if t.ActiveThreads != nil {
		s.CompletionPorts, s.MaxActive = true, *t.ActiveThreads
	}
	for _, m := range t.Mappings {
		s.Mappings = append(s.Mappings, windowsMapping(m))
	}
	return s
}

func windowsMapping(m plan.NTTTCPMapping) ntttcpwin.Mapping {
	out := ntttcpwin.Mapping{Threads: m.Threads, CPU: -1, Host: m.Host}
	if m.CPU != nil {
		out.CPU = *m.CPU
	}
	return out
}

// errorLines is what the console says about an error.
func (n *ntttcpRun) errorLines(e *result.Error) []string {
	if e.Interrupted {
		return nil
	}
	return []string{e.Text}
}

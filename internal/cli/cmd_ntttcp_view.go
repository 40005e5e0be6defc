package cli

import (
	"fmt"
	"strings"

	"github.com/fullbore-net/fullbore/internal/cli/process"
	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/internal/render/ntttcplinux"
	"github.com/fullbore-net/fullbore/internal/render/ntttcpwin"
	"github.com/fullbore-net/fullbore/internal/traffic"
	"github.com/fullbore-net/fullbore/result"
)

func (n *ntttcpRun) end() result.End {
	if n.inv.Serve != nil {
		return result.Server
	}
	return result.Client
}

// newConsole makes what prints lines that belong to no test.
func (n *ntttcpRun) newConsole() view { return n.consoleWith(nil) }

// consoleWith makes what prints one test; errorLines words its error.
func (n *ntttcpRun) consoleWith(errorLines func(*result.Error) []string) view {
	if n.windows {
		o := n.windowsOptions()
		o.ErrorLines = errorLines
		return ntttcpwin.New(n.stdout, o)
	}
	o := n.linuxOptions()
	o.ErrorLines = errorLines
	return ntttcplinux.New(n.stdout, o)
}

// fault is an error line about what belongs to no test.
func (n *ntttcpRun) fault(text string) {
	c := n.newConsole()
	c.Event(result.Event{Kind: result.KindMilestone, End: n.end(), Milestone: &result.Milestone{
		Code: result.MilestoneLine, Severity: "error", Text: text, Time: n.Now(),
	}})
	n.detached.say(text)
}

func (n *ntttcpRun) linuxOptions() ntttcplinux.Options {
	return ntttcplinux.Options{
		Settings: n.linuxSettings(), Verbose: n.out.Verbose, Quiet: !n.out.Realtime, NoThreads: !n.out.Threads,
		Terminal: n.Terminal && n.Getenv("TERM") != "dumb", Again: true, Now: n.Now, Log: n.log, Err: n.Err, End: n.end(),
	}
}

// windowsOptions are for the console, whose writer makes the ends of lines.
func (n *ntttcpRun) windowsOptions() ntttcpwin.Options {
	return ntttcpwin.Options{
		Settings: n.windowsSettings(), Verbose: n.out.Verbose, NoThreads: !n.out.Threads, XML: !n.out.Tables,
		Realtime: n.out.Realtime, Again: true, Now: n.Now, Err: n.Err, End: n.end(),
	}
}

// documentOptions are for the XML, whose lines end as those of the system.
func (n *ntttcpRun) documentOptions() ntttcpwin.Options {
	o := n.windowsOptions()
	o.CRLF = process.Windows()
	return o
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
	if n.host != nil {
		name, _, _ := strings.Cut(n.host.Name, ".")
		name = strings.ToUpper(name)
		s.Computer = name[:min(len(name), 15)] // as NetBIOS has it
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

// ntttcpView shows one test: on the console while it runs, in files when it is over.
type ntttcpView struct {
	n       *ntttcpRun
	console view
	fold    result.Folder
	agreed  bool           // the other end is there, and wants this test
	began   bool           // payload flows, or did
	told    bool           // that a signal ended it
	nothing bool           // it ended before anything was measured
	endless bool           // until a signal comes
	samples *ntttcpSamples // nil = one result for all
	jitter  *arrivals      // nil = nobody wants them
	err     *result.Error  // why it broke off
	lost    bool           // some output is
}

func (n *ntttcpRun) newTest() *ntttcpView {
	v := &ntttcpView{n: n}
	v.console = n.consoleWith(v.errorLines)
	if length := n.inv.Plan.NTTTCP.Sample; length > 0 {
		v.samples = newNTTTCPSamples(length, n.end(), n.counted(n.inv.Plan))
	}
	return v
}

// Event implements result.Sink.
func (v *ntttcpView) Event(e result.Event) {
	v.fold.Event(e)
	if v.samples != nil {
		v.samples.Event(e)
	}
	switch e.Kind {
	case result.KindConnected:
		v.agreed = true
		n := e.Head.NTTTCP
		v.endless = e.Head.Test.Duration == 0 && e.Head.Test.Blocks == 0 && (n == nil || n.Cycle == nil || *n.Cycle == 0)
	case result.KindStart:
		v.began = true
		v.console.Event(e)
		if v.n.windows { // it says so without synchronising, too
			v.tell(result.MilestoneStarted)
		}
		return
	case result.KindInterval:
		if v.endless && !v.n.windows {
			return // the original has no line of them when it runs until it is stopped
		}
	case result.KindMilestone:
		v.told = v.told || e.Milestone.Code == result.MilestoneInterrupt
		v.nothing = v.nothing || e.Milestone.Code == result.MilestoneNoResult
	case result.KindFinish:
		if v.nothing { // "Test was interrupted." is all that the original says
			if v.n.windows {
				fmt.Fprintln(v.n.Err, "ntttcp: the test ended before anything was measured")
			}
			return
		}
		v.sayWhatCounts()
		if v.samples != nil { // each has its own tables
			return
		}
	case result.KindNotice:
		if !v.notice(e.Notice) {
			return
		}
	case result.KindError:
		v.err = e.Err
		if e.Err.Interrupted {
			v.interrupted()
			return
		}
		if hint := v.hint(e.Err); hint != "" {
			fmt.Fprintf(v.n.Err, "ntttcp: %s\n", hint)
		}
	}
	v.console.Event(e)
}

// sayWhatCounts says of datagrams whose figures are the result: the originals print what a sender
// offered as if it had arrived.
func (v *ntttcpView) sayWhatCounts() {
	switch {
	case v.n.inv.Plan.Transport != plan.UDP:
	case v.n.end() == result.Client:
		fmt.Fprintln(v.n.Err, "ntttcp: -u: this end's figures are the load that was offered; the result is what the receiver received")
	default:
		fmt.Fprintln(v.n.Err, "ntttcp: -u: the result is what was received here; a sender's own figures are the load that it offered")
	}
}

// notice reports whether the console is to deal with n.
func (v *ntttcpView) notice(n *result.Notice) bool {
	switch n.Code {
	case "counter-missing":
		if v.n.out.Interface != "" || v.n.out.Interrupts != "" { // one of them may be it
			fmt.Fprintf(v.n.Err, "ntttcp: %s\n", n.Text)
		}
		return false
	}
	return true
}

// interrupted tells of the signal where the test has not.
func (v *ntttcpView) interrupted() {
	if !v.told {
		v.tell(result.MilestoneInterrupt)
	}
}

func (v *ntttcpView) tell(code string) {
	v.console.Event(result.Event{Kind: result.KindMilestone, End: v.n.end(), Milestone: &result.Milestone{Code: code, Time: v.n.Now()}})
}

// Close ends the console's part and writes the files. It is called when no event follows.
func (v *ntttcpView) Close() {
	run := v.fold.Run()
	whole := run.Finished() && !v.nothing
	if v.samples != nil {
		defer v.samples.Close()
		if whole && v.n.out.Tables {
			v.keep(v.sampleTables(run))
		}
	}
	v.keep(v.console.Close())
	if v.jitter != nil {
		v.keep(v.jitter.Close())
	}
	if whole && !v.n.writeFiles(run, v.samples) {
		v.lost = true
	}
}

// keepArrivals opens the file of -jm, and returns what writes to it; nil = none is asked for.
func (v *ntttcpView) keepArrivals() func(traffic.Message) {
	if v.n.out.JitterFile == "" {
		return nil
	}
	end := "\n"
	if process.Windows() {
		end = "\r\n"
	}
	a, err := newArrivals(v.n.out.JitterFile, end)
	if err != nil {
		v.keep(err)
		return nil
	}
	v.jitter = a
	return a.message
}

// keep remembers that some output is lost.
func (v *ntttcpView) keep(err error) {
	if lost(err) {
		v.lost = true
		fmt.Fprintf(v.n.Err, "ntttcp: %v\n", err)
	}
}

// sampleTables prints a result for each sample.
func (v *ntttcpView) sampleTables(run *result.Run) error {
	for _, one := range v.samples.runs(run) {
		if err := ntttcpwin.WriteTables(v.n.stdout, one, v.n.windowsOptions()); err != nil {
			return err
		}
	}
	return nil
}

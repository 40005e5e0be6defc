package importer

import (
	"math"
	"strings"

	"github.com/fullbore-net/fullbore/result"
)

// run makes a run of the figures.
func (f *ntttcp) run() *result.Run {
	end := result.Server
	if f.sender {
		end = result.Client
	}
	r := &result.Run{
		Schema: result.Schema, End: end, Protocol: "ntttcp",
		Tool:     result.Tool{Name: "ntttcp", Version: f.version},
		Test:     result.Test{Transport: "tcp", Direction: "up"},
		NTTTCP:   &result.NTTTCP{Dialect: "linux", Cycle: f.cycle},
		Imported: &result.Imported{Figures: f.figures},
	}
	if f.windows {
		r.NTTTCP.Dialect = "windows"
	}
	host := &result.Host{Name: f.name, Tool: &r.Tool, SystemInfo: f.os, Cores: f.cores, OS: r.NTTTCP.Dialect}
	if words := strings.Fields(f.os); len(words) >= 3 && !f.windows {
		host.Release = words[2]
	}
	r.Hosts.Set(end, host)
	f.agree()
	f.settings(r)
	seconds := f.streams(r)
	n := int64(max(r.Test.Streams, 1)) // its limits are of all connections together
	r.Test.Bitrate, r.Test.FQRate = num64(f.params["bandwidth limit (bits/sec)"])/n, num64(f.params["fq rate limit (bits/sec)"])/n
	f.machine(r, seconds)
	f.rows(r)
	r.Milestones = f.milestones
	for i := range r.Milestones {
		r.Milestones[i].End = end
	}
	if f.failed != "" {
		r.Err = &result.Error{Code: "ntttcp", Text: f.failed, Interrupted: f.interrupted}
	}
	return result.Fold(result.Unfold(r))
}

// reportLength is the time between the real-time lines, s.
const reportLength = 0.5

// rows are the real-time lines. Time is counted from the end of the warm-up.
func (f *ntttcp) rows(r *result.Run) {
	for i, bps := range f.reports {
		start := float64(i-f.warm) * reportLength
		stop := start + reportLength
		r.Rows = append(r.Rows, result.Interval{
			End: r.End, Index: i, Start: start, Stop: stop, Omitted: i < f.warm,
			Sums: []result.IntervalSum{{Direction: result.Up, Sender: f.sender, Start: start, Stop: stop, Bytes: int64(math.Round(bps * reportLength / 8)), BPS: bps}},
		})
	}
}

// settings reads the parameters.
func (f *ntttcp) settings(r *result.Run) {
	p := f.params
	scale := 1.0
	if f.windows {
		scale = 1e-3 // its times are ms
	}
	r.Test.Duration, r.Test.Omit = flt(p["run_time"])*scale, flt(p["warmup_time"])*scale
	r.NTTTCP.Cooldown = flt(p["cooldown_time"]) * scale
	r.NTTTCP.NoSync = p["no_sync"] == "True"
	if p["udp"] == "True" {
		r.Test.Transport = "udp"
	}
	r.Test.Port = num(p["port"])
	r.NTTTCP.BasePort = r.Test.Port
	block := p["recv_socket_buff"]
	if f.sender {
		block = p["send_socket_buff"]
	}
	r.Test.BlockSize = num(block)
	if f.windows { // its buffers of the socket are set apart from those of a call
		r.Test.BlockSize, r.Test.Window = f.bufferLen, max(r.Test.BlockSize, 0)
		if r.Test.Port > 0 { // it is counted up for each thread
			r.NTTTCP.BasePort -= len(f.threads)
		}
	}
	r.Test.Target = p["server_address"]
	r.Test.NoDelay = p["tcp nodelay"] == "yes"
	r.NTTTCP.MultiClient, r.NTTTCP.LastClient = p["multiple clients"] == "yes", p["last client"] == "yes"
	f.connections(r)
}

// connections fills in how many there were, by the settings, else by the figures. Which connection
// carried how much is not told: there is one stream for each thread, and Test.Streams counts connections.
func (f *ntttcp) connections(r *result.Run) {
	n := max(len(f.threads), 1)
	to := r.NTTTCP
	switch {
	case f.ports > 0 && f.sender:
		to.Ports, to.Threads, to.Connections = f.ports, f.perPort, f.perThread
		r.Test.Streams = f.ports * f.perPort * f.perThread
		return
	case !f.sender: // a receiver is told of its ports alone
		to.Ports, r.Test.Streams = max(f.ports, n), max(f.ports, n, f.conns)
		return
	}
	to.Ports, to.Threads, to.Connections = n, 1, 1
	r.Test.Streams = n
	switch {
	case f.conns > n && f.conns%n == 0:
		r.Test.Streams, to.Connections = f.conns, f.conns/n
	case f.conns > 0:
		r.Test.Streams = f.conns
	}
}

// streams makes a stream of each thread, with amounts that agree with all figures, and returns the
// time.
func (f *ntttcp) streams(r *result.Run) float64 {
	if !f.known {
		return 0
	}
	seconds, bytes := f.solve()
	for i, n := range bytes {
		thread := i
		total := &result.Total{End: seconds, Bytes: n}
		s := result.Stream{ID: i + 1, Direction: result.Up, Thread: &thread}
		if i < len(f.threads) {
			t := f.threads[i]
			if f.windows && t.seconds.hi < math.Inf(1) && t.seconds.lo > 0 {
				total.End = f.ownTime(i, n)
			}
			s.IO = t.calls(n)
			s.EStats = t.estats
		}
		if f.sender {
			s.Sender = total
		} else {
			s.Receiver = total
		}
		if f.rtt != nil {
			s.TCP = &result.TCPSummary{MeanRTT: *f.rtt, Last: result.TCPInfo{RTT: *f.rtt}}
		}
		r.Streams = append(r.Streams, s)
	}
	return seconds
}

// calls are those of a thread that moved so many bytes; nil = they were not counted. Of a round trip
// test the XML divides by half of the calls and does not say that it was one: the sum is then half
// of the real one.
func (t *ntThread) calls(bytes int64) *result.IOCount {
	if t.perCompletion.hi == math.Inf(1) || t.perCompletion.mid() <= 1 {
		return nil
	}
	out := &result.IOCount{Completions: int64(math.Round(float64(bytes) / t.perCompletion.mid()))}
	if mean, ok := t.latency["avg_latency"]; ok {
		out.Latency = &result.CallLatency{
			Sum: int64(math.Round(mean.mid() * float64(out.Completions))),
			Min: int64(math.Round(t.latency["min_latency"].mid())), Max: int64(math.Round(t.latency["max_latency"].mid())),
		}
	}
	return out
}

// machine fills the counters of the host, chosen so that they give the figures that were printed.
func (f *ntttcp) machine(r *result.Run, seconds float64) {
	if !f.known || seconds <= 0 {
		return
	}
	h := &result.HostTotal{Seconds: seconds, Cores: f.cores, CoresAfter: f.cores, MHz: f.mhz, Interrupts: f.interrupts}
	if h.Interrupts == nil && f.interruptRate != nil {
		h.Interrupts = countOf(*f.interruptRate, seconds)
	}
	if f.dpcRate != nil && f.windows {
		h.DPCs = countOf(*f.dpcRate, seconds)
	}
	if f.isPackets {
		p := f.packets
		p.Interface = f.params["show packets for"]
		if f.windows && f.retransmits != nil {
			p.Retransmitted = *f.retransmits
		}
		h.Packets = &p
	}
	if !f.windows && !f.text { // the documents have a fixed shape: 0 stands for what was not asked for
		if h.Packets != nil && h.Packets.Sent+h.Packets.Received == 0 {
			h.Packets = nil
		}
		if h.Interrupts != nil && *h.Interrupts == 0 {
			h.Interrupts = nil
		}
		if h.Interrupts == nil && h.Packets != nil && f.perInterrupt != nil && f.perInterrupt.lo > 0 { // late 1.4.0 tells nothing else of them
			n := int64(math.Round(float64(h.Packets.Sent+h.Packets.Received) / f.perInterrupt.mid()))
			h.Interrupts = &n
		}
	}
	f.retransmissions(h, seconds)
	f.cpu(r, h, seconds)
	r.Machines = &result.HostTotals{}
	if f.sender {
		r.Machines.Client = h
	} else {
		r.Machines.Server = h
	}
}

// retransmissions fills TCP's counters (Linux).
func (f *ntttcp) retransmissions(h *result.HostTotal, seconds float64) {
	all, told := f.tcp["retrans_segments"]
	if f.windows || f.retransmits == nil && !told {
		return
	}
	h.TCP = &result.TCPCounters{}
	if f.retransmits != nil {
		h.TCP.RetransSegs = *f.retransmits
	} else {
		h.TCP.RetransSegs = *countOf(all, seconds)
	}
	for name, to := range map[string]*int64{
		"lost_retrans": &h.TCP.LostRetransmit, "syn_retrans": &h.TCP.SynRetrans, "fast_retrans": &h.TCP.FastRetrans,
		"forward_retrans": &h.TCP.ForwardRetrans, "slowStart_retrans": &h.TCP.SlowStart, "retrans_fail": &h.TCP.RetransmitFails,
	} {
		if s, ok := f.tcp[name]; ok {
			*to = *countOf(s, seconds)
		}
	}
}

// cpu fills the processor's times.
func (f *ntttcp) cpu(r *result.Run, h *result.HostTotal, seconds float64) {
	all := float64(max(f.cores, 1)) * seconds * 1e9
	var bytes int64
	for i := range r.Streams {
		for _, t := range []*result.Total{r.Streams[i].Sender, r.Streams[i].Receiver} {
			if t != nil {
				bytes += t.Bytes
			}
		}
	}
	switch {
	case f.counted != nil:
		h.CPU = f.counted
	case f.windows && f.busy != nil && f.cores > 0:
		busy := *f.busy
		h.CPU = &result.CPUTime{System: int64(busy.mid() / 100 * all)}
		h.CPU.Idle = int64(all) - h.CPU.System
		if f.cycles != nil && f.mhz == nil && busy.mid() > 0 { // the clock follows from the other figures
			mhz := f.cycles.mid() * float64(bytes) / seconds / (busy.mid() / 100 * float64(f.cores)) / 1e6
			h.MHz = &mhz
		}
	case len(f.share) > 0: // no ticks give them all: as near as it goes
		part := func(s span) int64 { return int64(s.mid() / 100 * all) }
		h.CPU = &result.CPUTime{User: part(f.share["user"]), System: part(f.share["system"]), Idle: part(f.share["idle"]), IOWait: part(f.share["iowait"]), SoftIRQ: part(f.share["softirq"])}
		h.CPU.Nice = max(int64(all)-h.CPU.Total(), 0)
	}
	if f.busy != nil && !f.windows {
		ns := int64(math.Round(f.busy.mid() / 100 * seconds * 1e9))
		h.Process = &ns
	}
}

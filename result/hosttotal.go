package result

// HostTotals are the counters of both machines over the measured part of a run, nil
// where they are not known.
type HostTotals struct {
	Client *HostTotal `json:"client"` // of the client's machine
	Server *HostTotal `json:"server"` // of the server's machine
}

// Of returns one end's counters; t may be nil.
func (t *HostTotals) Of(e End) *HostTotal {
	switch {
	case t == nil:
		return nil
	case e == Server:
		return t.Server
	}
	return t.Client
}

// HostTotal is one machine's counters over the measured part of a run: differences of
// two readings, of everything that ran there. nil = not asked for, or not known.
type HostTotal struct {
	Seconds    float64      `json:"span_s"`        // between the two readings
	Cores      int          `json:"cores"`         // logical CPUs online
	CoresAfter int          `json:"cores_after"`   // the same at the end; differs when CPUs came or went
	MHz        *float64     `json:"cpu_mhz"`       // clock of the first CPU (Linux /proc/cpuinfo, Windows registry ~MHz)
	CPU        *CPUTime     `json:"cpu_time"`      // of all cores together
	Process    *int64       `json:"process_ns"`    // CPU time of this program, user and system, all threads
	TCP        *TCPCounters `json:"tcp_counters"`  // retransmissions of the whole host or network namespace
	Packets    *PacketCount `json:"packet_counts"` // of one interface (Linux), or of the protocol on the whole machine (Windows)
	Interrupts *int64       `json:"interrupts"`    // of the lines that were asked for (Linux), of all (Windows)
	DPCs       *int64       `json:"dpcs"`          // deferred procedure calls (Windows)
}

// CPUTime is time of CPUs by what they did, ns, summed over the CPUs. On Linux it is
// /proc/stat's first line (10 ms ticks). On Windows: user, system (without idle and
// interrupts), interrupts as irq, DPCs as softirq.
type CPUTime struct {
	User    int64 `json:"user_ns"`    // programs
	Nice    int64 `json:"nice_ns"`    // programs of low priority
	System  int64 `json:"system_ns"`  // the kernel
	Idle    int64 `json:"idle_ns"`    // nothing to do
	IOWait  int64 `json:"iowait_ns"`  // nothing to do but to wait for a disk
	IRQ     int64 `json:"irq_ns"`     // interrupt handlers
	SoftIRQ int64 `json:"softirq_ns"` // their deferred part, where packets are processed
	Steal   int64 `json:"steal_ns"`   // taken by the hypervisor
}

// TCPCounters are TCP's retransmission counters of the host or network namespace
// (Linux /proc/net/snmp RetransSegs, /proc/net/netstat TcpExt). One that the kernel does
// not have is 0.
type TCPCounters struct {
	RetransSegs     int64 `json:"retrans_segs"`       // segments sent again (RetransSegs)
	LostRetransmit  int64 `json:"lost_retransmit"`    // of them lost again (TCPLostRetransmit)
	SynRetrans      int64 `json:"syn_retrans"`        // SYN and SYN-ACK sent again (TCPSynRetrans)
	FastRetrans     int64 `json:"fast_retrans"`       // after duplicate ACKs (TCPFastRetrans)
	ForwardRetrans  int64 `json:"forward_retrans"`    // TCPForwardRetrans; gone from current kernels
	SlowStart       int64 `json:"slow_start_retrans"` // in slow start after a timeout (TCPSlowStartRetrans)
	RetransmitFails int64 `json:"retrans_fail"`       // that could not be sent (TCPRetransFail)
}

// PacketCount is packets through an interface, or segments (UDP: datagrams) through the
// machine's protocol stack.
type PacketCount struct {
	Interface string `json:"interface,omitempty"` // "" = the whole machine
	Sent      int64  `json:"packets_sent"`        // what left
	Received  int64  `json:"packets_received"`    // what arrived
	// Retransmitted and Errors are the stack's; Errors are failed connection attempts
	// (TCP) or receive errors (UDP), as NTTTCP for Windows shows them.
	Retransmitted int64 `json:"packets_retransmitted,omitempty"`
	Errors        int64 `json:"packet_errors,omitempty"` // see Retransmitted
}

// Total is the sum of all kinds of time.
func (c CPUTime) Total() int64 {
	return c.User + c.Nice + c.System + c.Idle + c.IOWait + c.IRQ + c.SoftIRQ + c.Steal
}

// Percent is part as percent of the total, 0 for an empty total.
func (c CPUTime) Percent(part int64) float64 {
	total := c.Total()
	if total == 0 {
		return 0
	}
	return float64(part) / float64(total) * 100
}

// BusyPercent is the machine's use of its CPUs in percent of all of them over so many
// seconds: what was not idle, NTTTCP for Windows' "Avg. CPU %". It can fall below 0 when
// the readings are closer together than the clock that counts idle time.
func (h *HostTotal) BusyPercent(seconds float64) float64 {
	if h == nil || h.CPU == nil || seconds <= 0 || h.Cores == 0 {
		return 0
	}
	return float64(h.CPU.Total()-h.CPU.Idle) / 1e9 / seconds / float64(h.Cores) * 100
}

// CyclesPerByte is the CPU cycles that the whole machine spent for each of so many bytes
// in so many seconds: clock × time × cores × share not idle / bytes (NTTTCP's formula).
// 0 when a figure for it is not known.
func (h *HostTotal) CyclesPerByte(bytes int64, seconds float64) float64 {
	if h == nil || h.MHz == nil || h.CPU == nil || bytes == 0 || h.CPU.Total() == 0 {
		return 0
	}
	busy := 1 - float64(h.CPU.Idle)/float64(h.CPU.Total())
	return *h.MHz * 1e6 * seconds * float64(h.Cores) * busy / float64(bytes)
}

// ProcessPercent is this program's CPU time in percent of one core over so many seconds;
// it exceeds 100 when several cores worked. 0 when it is not known.
func (h *HostTotal) ProcessPercent(seconds float64) float64 {
	if h == nil || h.Process == nil || seconds <= 0 {
		return 0
	}
	return float64(*h.Process) / 1e9 / seconds * 100
}

// PacketsPerInterrupt is the packets both ways for each interrupt, 0 when there was none.
func (h *HostTotal) PacketsPerInterrupt() float64 {
	if h == nil || h.Packets == nil || h.Interrupts == nil || *h.Interrupts == 0 {
		return 0
	}
	return float64(h.Packets.Sent+h.Packets.Received) / float64(*h.Interrupts)
}

// PerSecond is count/seconds, 0 when seconds is not positive.
func PerSecond(count int64, seconds float64) float64 {
	if seconds <= 0 {
		return 0
	}
	return float64(count) / seconds
}

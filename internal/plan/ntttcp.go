package plan

import (
	"fmt"
	"math"
	"time"
)

// ProtocolNTTTCP is the registry name of NTTTCP's protocols.
const ProtocolNTTTCP = "ntttcp"

// NTTTCPDialect is one of the two programs called ntttcp: they share a name and the
// idea, not the protocol.
type NTTTCPDialect string

// Linux is ntttcp-for-linux 1.4: sync messages on the port below the data ports.
// Windows is ntttcp.exe 5.40: a token for each data connection, 1000 ports above.
const (
	NTTTCPLinux   NTTTCPDialect = "linux"
	NTTTCPWindows NTTTCPDialect = "windows"
)

// NTTTCPRole is the part that an end plays: payload only goes from sender to receiver.
type NTTTCPRole string

// The roles. A sender is the run's client, a receiver its server.
const (
	NTTTCPSender   NTTTCPRole = "sender"
	NTTTCPReceiver NTTTCPRole = "receiver"
)

// Limits and defaults of ntttcp-for-linux 1.4.3 (src/const.h) and ntttcp.exe 5.40.
const (
	NTTTCPPort           = 5001
	NTTTCPPorts          = 16
	NTTTCPThreads        = 4
	NTTTCPSendBlock      = 128 << 10
	NTTTCPReceiveBlock   = 64 << 10
	NTTTCPWindowsBlock   = 64 << 10
	NTTTCPWindowsUDP     = 128
	NTTTCPBuffers        = 20 << 10
	NTTTCPTokenOffset    = 1000 // token port − data port
	MaxNTTTCPPorts       = 512
	MaxNTTTCPThreads     = 25600
	MaxNTTTCPConnections = 1000
	MaxNTTTCPTokens      = 999  // threads of a synchronised Windows test
	MaxNTTTCPMappings    = 1024 // tuples behind one -m
)

// Times of the originals.
const (
	NTTTCPDuration    = 60 * time.Second
	NTTTCPInterval    = 500 * time.Millisecond
	NTTTCPTimeLimit   = 3 * time.Hour
	NTTTCPWaitTimeout = 10 * time.Minute
	MaxNTTTCPDuration = (1<<31 - 1) * time.Second
)

// NTTTCP is what only NTTTCP knows of a test; it hangs below the Plan of one end.
// Nothing but a cycle time (Linux) is agreed on the wire, so a receiver has a Plan too
// (Serve.NTTTCP).
//
// The Plan around it says the rest, in the words of every protocol: Host is the
// receiver's address for both roles ("" = all of one's own, receiver only); Port the
// first data port; Streams the connections in all (receiver: its data ports); Duration,
// Endless and Omit are -t and -W or -wu; BlockSize is bytes per call (-b, -l);
// ClientPort -f; BindHost -a and -nic; NoDelay, Family, TOS; Affinity the CPU of the
// whole process (Linux -m); Bitrate the rate of each connection (Windows -thr).
type NTTTCP struct {
	Dialect NTTTCPDialect `json:"dialect"`
	Role    NTTTCPRole    `json:"role"`

	// Ports is how many data ports the receiver has: Plan.Port, Plan.Port+1, … In the
	// Windows dialect it is the number of threads. Each port takes Threads × Connections
	// connections; a receiver of the Linux dialect is not told, and has 1 in both.
	Ports       int `json:"ports"`
	Threads     int `json:"threads_per_port,omitempty"`       // -n; default 1
	Connections int `json:"connections_per_thread,omitempty"` // -l; default 1
	// Mappings are the -m tuples in order, ports running on through them. The Linux
	// dialect has one at most, which Ports, Affinity and Host repeat.
	Mappings []NTTTCPMapping `json:"mappings,omitempty"`
	// LinuxPorts: a receiver of the Windows dialect that was given -P n, which means base
	// port n to the original, also listens as Linux -P n does: data ports 5001 … 5000+n,
	// sync port 5000. Where the first connection lands decides. 0 = it does not.
	LinuxPorts int `json:"linux_ports,omitempty"`
	// Public is a receiver to which nobody in particular is to come: each test takes the time
	// that its sender wants, and ports that cannot be had are notices.
	Public bool `json:"public,omitempty"`

	NoSync      bool          `json:"no_sync,omitempty"`       // -N, -ns
	MultiClient bool          `json:"multi_client,omitempty"`  // receiver -M: wait for the sender that is last
	Last        bool          `json:"last,omitempty"`          // sender -L: start everybody
	Epoll       bool          `json:"epoll,omitempty"`         // receiver -e: recorded only, the engine waits in its own way
	CoolDown    time.Duration `json:"cool_down,omitempty"`     // -C, -cd: traffic after the counted time
	Rate        int64         `json:"rate,omitempty"`          // -B: bit/s, all connections together; 0 = none
	FQRate      int64         `json:"fq_rate_total,omitempty"` // --fq-rate-limit: likewise, paced by the kernel

	// The socket buffers of -sb and -rb. nil = the system's own way (autotuning); 0 is
	// meant as 0, no buffering.
	SendSocketBuffer    *int64 `json:"send_socket_buffer,omitempty"`
	ReceiveSocketBuffer *int64 `json:"receive_socket_buffer,omitempty"`
	// WindowMultiple: both socket buffers are this many times the autotuning maximum;
	// what the system grants less is a notice. 0 = not asked for.
	WindowMultiple float64 `json:"window_multiple,omitempty"`

	// What follows is of the Windows dialect.

	// Buffers ends a connection after so many sends or receives (-n: calls, not bytes).
	// TimeLimit then bounds the run. 0 = the test is timed.
	Buffers     int64         `json:"buffers,omitempty"`
	TimeLimit   time.Duration `json:"time_limit,omitempty"`   // default 3 h
	PortSync    bool          `json:"port_sync,omitempty"`    // -sp: data ports are asked for at Plan.Port
	WaitTimeout time.Duration `json:"wait_timeout,omitempty"` // -to: for each wait in the set-up; 0 = default 10 min
	NoTimeout   bool          `json:"no_timeout,omitempty"`   // -to 0

	Outstanding     int  `json:"outstanding,omitempty"`      // -a: overlapped calls per connection; 0 = synchronous
	WSA             bool `json:"wsa,omitempty"`              // -w: recorded only
	TransmitPackets int  `json:"transmit_packets,omitempty"` // -x: buffers per TransmitPackets call; 0 = off
	ActiveThreads   *int `json:"active_threads,omitempty"`   // -icp: completion port with so many threads, 0 = one per CPU
	WaitAll         bool `json:"wait_all,omitempty"`         // receiver -wa: full buffers
	NUMANode        *int `json:"numa_node,omitempty"`        // -na: for threads without a CPU
	HyperV          bool `json:"hyper_v,omitempty"`          // -hv: AF_HYPERV; hosts are GUIDs

	Unconnected bool `json:"unconnected,omitempty"`  // -uc: sendto, recvfrom
	SegmentSize int  `json:"segment_size,omitempty"` // sender -uso: datagram size when BlockSize is one large send; 0 = off
	Coalesce    bool `json:"coalesce,omitempty"`     // receiver -uro
	QOS         *int `json:"qos_priority,omitempty"` // sender -qos: 0 … 5 of qWAVE; Plan.TOS carries its code point
	Verify      bool `json:"verify,omitempty"`       // receiver -d: a byte that is not 0x41 is an error
	RoundTrip   bool `json:"round_trip,omitempty"`   // -rt: each send is answered; implies Latency
	Latency     bool `json:"latency,omitempty"`      // -lm: time each call
	Jitter      bool `json:"jitter,omitempty"`       // -jm: number and time in the first 20 bytes of each buffer
	EStats      bool `json:"estats,omitempty"`       // -es: the system's own statistics per connection
	CPUBurn     int  `json:"cpu_burn,omitempty"`     // -brn: × 1000 loop turns after each call
	// Spacing: one send per period (-ps). Sender, one thread.
	Spacing time.Duration `json:"spacing,omitempty"`
	// Sample: the timed part is cut into so long slices, each with a result (-sam).
	Sample time.Duration `json:"sample,omitempty"`
}

// NTTTCPMapping is a -m tuple.
type NTTTCPMapping struct {
	Threads int    `json:"threads"`
	CPU     *int   `json:"cpu,omitempty"` // nil = any (*)
	Host    string `json:"host,omitempty"`
}

// Sends reports whether this end is the sender.
func (n *NTTTCP) Sends() bool { return n.Role == NTTTCPSender }

// SyncPort is where the Linux dialect agrees on a test whose first data port is port.
func SyncPort(port int) int { return port - 1 }

// each of rate over streams, at least 1 bit/s: a limit is never lost by division.
func each(rate int64, streams int) int64 {
	if rate <= 0 || streams <= 0 {
		return 0
	}
	return max(1, rate/int64(streams))
}

// StreamRate is the bit/s that one connection may send, 0 = no limit: Bitrate, or its
// share of NTTTCP's rate for all.
func (p Plan) StreamRate() int64 {
	if n := p.NTTTCP; n != nil && n.Rate > 0 {
		return each(n.Rate, p.Filled().Streams)
	}
	return p.Bitrate
}

// StreamFQRate is the same for pacing by the kernel.
func (p Plan) StreamFQRate() int64 {
	if n := p.NTTTCP; n != nil && n.FQRate > 0 {
		return each(n.FQRate, p.Filled().Streams)
	}
	return p.FQRate
}

// filledNTTTCP is Filled for a Plan of this protocol; p.NTTTCP is copied.
func (p Plan) filledNTTTCP() Plan {
	n := *p.NTTTCP
	p.NTTTCP = &n
	def := func(v *int, to int) {
		if *v == 0 {
			*v = to
		}
	}
	windows := n.Dialect == NTTTCPWindows
	if n.Dialect == "" {
		n.Dialect = NTTTCPLinux
	}
	p.Protocol = ProtocolNTTTCP
	if p.Transport == "" {
		p.Transport = TCP
	}
	p.Direction = Up
	def(&p.Port, NTTTCPPort)
	def(&n.Threads, 1)
	def(&n.Connections, 1)
	if n.Ports == 0 {
		for _, m := range n.Mappings {
			n.Ports += m.Threads
		}
	}
	def(&n.Ports, NTTTCPPorts)
	if n.Sends() {
		def(&p.Streams, n.Ports*n.Threads*n.Connections)
	} else {
		def(&p.Streams, n.Ports)
	}
	switch {
	case windows && p.Transport == UDP:
		def(&p.BlockSize, NTTTCPWindowsUDP)
	case windows:
		def(&p.BlockSize, NTTTCPWindowsBlock)
	case !n.Sends():
		def(&p.BlockSize, NTTTCPReceiveBlock)
	case p.Transport == UDP:
		def(&p.BlockSize, MaxUDPBlock)
	default:
		def(&p.BlockSize, NTTTCPSendBlock)
	}
	if p.Duration == 0 && !p.Endless && n.Buffers == 0 {
		if windows {
			n.Buffers = NTTTCPBuffers
		} else {
			p.Duration = NTTTCPDuration
		}
	}
	if n.Buffers > 0 && n.TimeLimit == 0 {
		n.TimeLimit = NTTTCPTimeLimit
	}
	if n.WaitTimeout == 0 && !n.NoTimeout {
		n.WaitTimeout = NTTTCPWaitTimeout
	}
	if p.Interval == 0 && !p.OneRow {
		p.Interval = NTTTCPInterval
		if windows {
			p.Interval = time.Second
		}
	}
	return p
}

// faults of the NTTTCP part of a filled Plan.
func (p Plan) faultsNTTTCP(bad func(cond bool, field string, v any, want string)) {
	n := p.NTTTCP
	sends, windows := n.Sends(), n.Dialect == NTTTCPWindows
	bad(n.Dialect != NTTTCPLinux && !windows, "ntttcp.dialect", n.Dialect, "must be linux or windows")
	bad(!sends && n.Role != NTTTCPReceiver, "ntttcp.role", n.Role, "must be sender or receiver")
	bad(sends && p.Host == "", "host", `""`, "name the receiver")
	bad(p.Transport != TCP && p.Transport != UDP, "transport", p.Transport, "must be tcp or udp")
	bad(p.Family != 0 && p.Family != 4 && p.Family != 6, "family", p.Family, "must be 4 or 6")

	most := MaxNTTTCPPorts
	if windows {
		most = 65535
	}
	bad(n.Ports < 1 || n.Ports > most, "ntttcp.ports", n.Ports, fmt.Sprintf("must be 1…%d", most))
	bad(n.Threads < 1 || n.Threads > MaxNTTTCPThreads, "ntttcp.threads_per_port", n.Threads, fmt.Sprintf("must be 1…%d", MaxNTTTCPThreads))
	bad(n.Connections < 1 || n.Connections > MaxNTTTCPConnections, "ntttcp.connections_per_thread", n.Connections, fmt.Sprintf("must be 1…%d", MaxNTTTCPConnections))
	product := n.Ports
	if sends {
		product *= n.Threads * n.Connections
	}
	bad(p.Streams != product, "streams", p.Streams, fmt.Sprintf("must be %d, what ports, threads and connections make", product))
	first, last := p.Port, p.Port+n.Ports-1
	if n.PortSync {
		last++ // the port itself only tells the others
	}
	bad(first < 1 || last > 65535, "port", p.Port, "must leave room for all data ports in 1…65535")
	if !n.NoSync {
		bad(!windows && first == 1, "port", p.Port, "the port below it is needed to synchronise")
		bad(windows && last+NTTTCPTokenOffset > 65535, "port", p.Port, "the ports 1000 above the data ports are needed to synchronise")
		bad(windows && n.Ports > MaxNTTTCPTokens, "ntttcp.ports", n.Ports, "must be less than 1000 when synchronising")
	}
	bad(n.LinuxPorts < 0 || n.LinuxPorts > MaxNTTTCPPorts, "ntttcp.linux_ports", n.LinuxPorts, fmt.Sprintf("must be 0…%d", MaxNTTTCPPorts))
	n.faultsMappings(bad)

	bad(p.Duration < 0 || p.Duration > MaxNTTTCPDuration, "duration", p.Duration, "must be 0…2147483647 s")
	bad(p.Omit < 0 || p.Omit > MaxNTTTCPDuration, "omit", p.Omit, "must be 0…2147483647 s")
	bad(n.CoolDown < 0 || n.CoolDown > MaxNTTTCPDuration, "ntttcp.cool_down", n.CoolDown, "must be 0…2147483647 s")
	bad(p.Endless && (p.Duration > 0 || n.Buffers > 0) || n.Buffers > 0 && p.Duration > 0, "duration", p.Duration, "give only one of duration, buffers, endless")
	bad(p.Bytes != 0 || p.Blocks != 0, "bytes", p.Bytes, "NTTTCP counts time, or buffers per connection")
	bad(n.Buffers < 0, "ntttcp.buffers", n.Buffers, "must not be negative")
	bad(n.TimeLimit < 0, "ntttcp.time_limit", n.TimeLimit, "must not be negative")
	bad(n.WaitTimeout < 0 || n.NoTimeout && n.WaitTimeout > 0, "ntttcp.wait_timeout", n.WaitTimeout, "must be positive, or no_timeout")
	bad(!p.OneRow && p.Interval < MinInterval, "interval", p.Interval, "must be at least 0.1 s")

	largest := math.MaxInt32 // what the engine does not move at once is cut there, with a notice
	if p.Transport == UDP && sends && n.SegmentSize == 0 {
		largest = MaxUDPBlock
	}
	bad(p.BlockSize < 1 || p.BlockSize > largest, "block_size", p.BlockSize, fmt.Sprintf("must be 1…%d", largest))
	bad(p.ClientPort < 0 || p.ClientPort > 0 && p.ClientPort+p.Streams-1 > 65535, "client_port", p.ClientPort, "must leave room for all connections below 65536")
	bad(p.Bitrate < 0 || p.Bitrate > 0 && n.Rate > 0, "bitrate", p.Bitrate, "must not be negative, nor given beside ntttcp.rate")
	bad(n.Rate < 0, "ntttcp.rate", n.Rate, "must not be negative")
	bad(n.FQRate < 0 || n.FQRate > 0 && n.Rate > 0, "ntttcp.fq_rate_total", n.FQRate, "must not be negative, nor given beside ntttcp.rate")
	for _, b := range []struct {
		name string
		size *int64
	}{{"send", n.SendSocketBuffer}, {"receive", n.ReceiveSocketBuffer}} {
		bad(b.size != nil && (*b.size < 0 || *b.size > 1<<31-1), "ntttcp."+b.name+"_socket_buffer", value(b.size), "must be 0…2147483647")
	}
	bad(n.WindowMultiple != 0 && !(n.WindowMultiple > 0 && n.WindowMultiple <= 1024), "ntttcp.window_multiple", n.WindowMultiple, "must be above 0, at most 1024")
	n.faultsRole(bad)
	n.faultsWindows(p, bad)
}

func (n *NTTTCP) faultsMappings(bad func(cond bool, field string, v any, want string)) {
	most, threads := MaxNTTTCPMappings, 0
	if n.Dialect == NTTTCPLinux {
		most = 1
	}
	bad(len(n.Mappings) > most, "ntttcp.mappings", len(n.Mappings), fmt.Sprintf("must be %d at most", most))
	for _, m := range n.Mappings {
		bad(m.Threads < 1, "ntttcp.mappings", m.Threads, "a mapping has at least one thread")
		bad(m.CPU != nil && *m.CPU < 0, "ntttcp.mappings", value(m.CPU), "a CPU is not negative")
		threads += m.Threads
	}
	bad(n.Dialect == NTTTCPWindows && threads > 0 && threads != n.Ports, "ntttcp.ports", n.Ports, "must be the threads of all mappings together")
}

// faultsRole: what belongs to the other role or the other dialect.
func (n *NTTTCP) faultsRole(bad func(cond bool, field string, v any, want string)) {
	sends, windows := n.Sends(), n.Dialect == NTTTCPWindows
	bad(n.MultiClient && (sends || windows), "ntttcp.multi_client", n.MultiClient, "is a Linux receiver's")
	bad(n.Last && (!sends || windows), "ntttcp.last", n.Last, "is a Linux sender's")
	bad(n.LinuxPorts > 0 && (sends || !windows), "ntttcp.linux_ports", n.LinuxPorts, "is a Windows receiver's")
	bad(windows && (n.Threads != 1 || n.Connections != 1), "ntttcp.threads_per_port", n.Threads, "must be 1, with 1 connection, in the Windows dialect")
	bad(n.Public && (sends || n.PortSync), "ntttcp.public", n.Public, "is a receiver's without port_sync")
	bad(n.PortSync && !windows, "ntttcp.port_sync", n.PortSync, "is of the Windows dialect")
	bad(n.Buffers > 0 && !windows, "ntttcp.buffers", n.Buffers, "is of the Windows dialect")
	bad(n.TransmitPackets > 0 && !sends, "ntttcp.transmit_packets", n.TransmitPackets, "is a sender's")
	bad(n.SegmentSize != 0 && !sends, "ntttcp.segment_size", n.SegmentSize, "is a sender's")
	bad(n.Spacing != 0 && !sends, "ntttcp.spacing", n.Spacing, "is a sender's")
	bad(n.Coalesce && sends, "ntttcp.coalesce", n.Coalesce, "is a receiver's")
}

func (n *NTTTCP) faultsWindows(p Plan, bad func(cond bool, field string, v any, want string)) {
	bad(n.Outstanding < 0, "ntttcp.outstanding", n.Outstanding, "must not be negative")
	bad(n.TransmitPackets < 0, "ntttcp.transmit_packets", n.TransmitPackets, "must not be negative")
	bad(n.NUMANode != nil && *n.NUMANode < 0, "ntttcp.numa_node", value(n.NUMANode), "must not be negative")
	bad(n.QOS != nil && (*n.QOS < 0 || *n.QOS > 5), "ntttcp.qos_priority", value(n.QOS), "must be 0…5")
	bad(n.Jitter && p.BlockSize < 20, "block_size", p.BlockSize, "must be 20 at least to carry number and times")
	bad(n.RoundTrip && n.Outstanding > 0, "ntttcp.round_trip", n.RoundTrip, "is synchronous")
	bad(n.Unconnected && (p.Transport != UDP || n.Outstanding > 0), "ntttcp.unconnected", n.Unconnected, "is for synchronous UDP")
	bad((n.SegmentSize != 0 || n.Coalesce) && p.Transport != UDP, "transport", p.Transport, "segmentation and coalescing are for udp")
	bad(n.SegmentSize < 0, "ntttcp.segment_size", n.SegmentSize, "must not be negative")
	bad(n.CPUBurn < 0, "ntttcp.cpu_burn", n.CPUBurn, "must not be negative")
	bad(n.Spacing != 0 && (n.Spacing < 5*time.Millisecond || n.Spacing > time.Second), "ntttcp.spacing", n.Spacing, "must be 5…1000 ms")
	bad(n.Sample < 0 || n.Sample > 0 && p.Duration == 0, "ntttcp.sample", n.Sample, "needs a timed test")
}

// value is what p points to, for a message.
func value[T any](p *T) any {
	if p == nil {
		return nil
	}
	return *p
}

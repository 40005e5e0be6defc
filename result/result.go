// Package result is the one model of what was measured: a Run (one test, both
// ends as far as they are known) and the Events from which Fold builds it.
//
// Everything that prints, stores, compares or exports a measurement reads these
// types and nothing else. The promise: fields are added, never removed and never
// given another meaning; Schema counts the incompatible changes (there are none).
//
// Conventions. Times are seconds as float64 on the clock of the end they belong
// to, counted from the start of the measured part (after the omitted one) unless a
// field says otherwise. Rates are payload bits per second (layer l7). Sizes are
// bytes. Unknown is a nil pointer and JSON null, never 0.
package result

import (
	"encoding/json"
	"errors"
	"time"
)

// Schema is the version of the JSON form of Run, Event and Report.
const Schema = 1

// End names one side of a test.
type End string

// The two ends. "Client" opened the control connection.
const (
	Client End = "client"
	Server End = "server"
)

// Other returns the opposite end.
func (e End) Other() End {
	if e == Client {
		return Server
	}
	return Client
}

// Direction says which way payload flows.
type Direction string

// Up is client to server, Down is server to client.
const (
	Up   Direction = "up"
	Down Direction = "down"
)

// Sender returns the end that sends in direction d.
func (d Direction) Sender() End {
	if d == Down {
		return Server
	}
	return Client
}

// Receiver returns the end that receives in direction d.
func (d Direction) Receiver() End { return d.Sender().Other() }

// Run is one test. It is the fold of the test's events: see Fold.
type Run struct {
	Schema   int       `json:"schema"`
	ID       string    `json:"id,omitempty"` // ULID; sorts by time
	Tool     Tool      `json:"tool"`         // the program that recorded this document
	End      End       `json:"end"`          // which end recorded it
	Protocol string    `json:"protocol"`     // "iperf3"
	Started  time.Time `json:"started"`      // wall clock, a label only; UTC
	Label    string    `json:"label,omitempty"`
	Note     string    `json:"note,omitempty"`

	Test     Test         `json:"test"`
	Hosts    Hosts        `json:"hosts"`
	Streams  []Stream     `json:"streams"`   // creation order
	Rows     []Interval   `json:"intervals"` // both ends, in order of arrival; omitted ones included
	Sums     []Sum        `json:"sums"`      // one per direction, up first
	CPU      CPUs         `json:"cpu"`
	Notices  []Notice     `json:"notices"`
	Verdicts []Verdict    `json:"verdicts,omitempty"`
	Flags    []string     `json:"flags,omitempty"` // validity flags of M-BASE, e.g. "unsteady"
	Probes   []Probes     `json:"probes,omitempty"`
	Layers   []LayerRate  `json:"layers,omitempty"` // UDP: the receiver's rate on every layer, up first
	Summary  string       `json:"summary,omitempty"`
	Next     *Step        `json:"next,omitempty"`  // nil = nothing worth doing follows from this run
	Err      *Error       `json:"error,omitempty"` // set when the run broke off; what was measured is kept
	Wire     *Wire        `json:"wire,omitempty"`  // facts of the protocol that a faithful renderer needs
	Elapsed  float64      `json:"elapsed_s"`       // wall time from connect to close
	Usage    *ProcessCost `json:"process,omitempty"`

	NTTTCP     *NTTTCP     `json:"ntttcp,omitempty"`      // nil = not an NTTTCP test
	Machines   *HostTotals `json:"host_totals,omitempty"` // both machines' counters over the measured part
	Milestones []Milestone `json:"milestones,omitempty"`  // in order of their telling

	// RowsLeft is how many of the oldest intervals were left out of Rows, because a very long run
	// would not fit into memory; 0 = none. Totals and peaks are of all of them.
	RowsLeft int64 `json:"intervals_left_out,omitempty"`

	// Zero is the reading of the recording end's own monotonic clock (Linux:
	// CLOCK_MONOTONIC), in ns, at which its time axis is 0: the end of the omitted part.
	// It lets a third point on the same machine be laid beside the run. nil = unknown.
	Zero *int64 `json:"zero_mono_ns,omitempty"`

	Hops     []Hop     `json:"hops,omitempty"`     // the way to the other end, nearest first; nil = not known
	Imported *Imported `json:"imported,omitempty"` // of a run that was read from another program's file
}

// Hop is one station of the way to the other end.
type Hop struct {
	TTL  int    `json:"ttl"`            // how many stations from here, from 1
	Addr string `json:"addr,omitempty"` // who answered; "" = nobody did
}

// Imported says where a run comes from that this program did not make.
type Imported struct {
	Format string `json:"format"`         // stable word, e.g. "iperf3-json", "ntttcp-xml"
	File   string `json:"file,omitempty"` // its name, without folder
	// Rounded: the file has rounded figures only (a text). Amounts and times of the run are
	// values that round to all of them, exact within half a unit of the last digit shown.
	Rounded bool `json:"rounded,omitempty"`
	// Figures are those of an output of NTTTCP, by the file's own names, as they stand there: those that
	// have a place elsewhere in the run, too, and those that have none.
	Figures []Figure `json:"figures,omitempty"`
}

// Figure is one line of a foreign document, as it stands there.
type Figure struct {
	Name  string `json:"name"`  // as the document says it
	Value string `json:"value"` // as it stands there
}

// Step is a command worth typing next.
type Step struct {
	Command string `json:"command"` // for a shell
	Why     string `json:"why"`     // what it would show or mend
}

// Tool names a program and its release.
type Tool struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// Test is what was agreed to be done. 0 or "" = not set, except where noted.
type Test struct {
	Transport   string   `json:"transport"`              // "tcp", "udp", "sctp"
	MPTCP       bool     `json:"mptcp,omitempty"`        // asked for
	Direction   string   `json:"direction"`              // "up", "down", "both"
	Streams     int      `json:"streams"`                // per direction
	Target      string   `json:"target,omitempty"`       // host as typed by the user (client)
	Port        int      `json:"port,omitempty"`         // control port
	Duration    float64  `json:"duration_s"`             // s; 0 = no time limit
	Bytes       int64    `json:"bytes,omitempty"`        // stop after so many payload bytes, all streams
	Blocks      int64    `json:"blocks,omitempty"`       // stop after so many blocks, all streams
	Omit        float64  `json:"omit_s,omitempty"`       // s of warm-up before Duration, not counted
	Interval    float64  `json:"interval_s"`             // s between reports of the recording end; 0 = one for the whole run
	BlockSize   int      `json:"block_bytes"`            // bytes per write or datagram
	Bitrate     int64    `json:"bitrate_bps,omitempty"`  // per stream, payload bit/s; 0 = unlimited
	Burst       int      `json:"burst,omitempty"`        // blocks sent back to back; 0 = off
	Steady      bool     `json:"steady,omitempty"`       // UDP: what is late is given up, not made up in a burst
	CatchUp     float64  `json:"catch_up,omitempty"`     // with Steady: share of the rate by which a late sender goes faster
	FQRate      int64    `json:"fq_rate_bps,omitempty"`  // SO_MAX_PACING_RATE per stream, bit/s
	Window      int      `json:"window_bytes,omitempty"` // requested socket buffer
	MSS         int      `json:"mss_bytes,omitempty"`    // requested
	NoDelay     bool     `json:"no_delay,omitempty"`
	TOS         int      `json:"tos,omitempty"` // whole TOS byte
	FlowLabel   int      `json:"flow_label,omitempty"`
	Congestion  string   `json:"congestion,omitempty"` // requested algorithm
	ZeroCopy    bool     `json:"zero_copy,omitempty"`
	SkipRxCopy  bool     `json:"skip_rx_copy,omitempty"`
	GSO         bool     `json:"gso,omitempty"`
	GRO         bool     `json:"gro,omitempty"`
	Counters64  bool     `json:"udp_counters_64bit,omitempty"`
	DF          bool     `json:"dont_fragment,omitempty"`
	Repeating   bool     `json:"repeating_payload,omitempty"`
	Title       string   `json:"title,omitempty"`
	ExtraData   string   `json:"extra_data,omitempty"`
	File        string   `json:"file,omitempty"` // local file source or sink
	MaxBytes    int64    `json:"max_bytes,omitempty"`
	MaxRate     int64    `json:"max_rate_bps,omitempty"` // all streams together
	Path        DataPath `json:"path"`
	Requested   []string `json:"options,omitempty"` // the user's words, for the record
	ServerLimit *Limit   `json:"server_limit,omitempty"`
	Steered     bool     `json:"steered,omitempty"`    // the rate followed the receiver's feedback; Bitrate was only its start
	Ramped      bool     `json:"ramped,omitempty"`     // the streams began one after the other; Duration is the most that it was to take
	Own         bool     `json:"own_server,omitempty"` // the peer was a server that this program started for the test: "self"
	ProbeOnly   bool     `json:"probe_only,omitempty"` // made for its probes: no load, or one that stands in for them
}

// Limit is a server's policy that applied to this test.
type Limit struct {
	BitrateBPS  int64   `json:"bitrate_bps,omitempty"`
	MaxDuration float64 `json:"max_duration_s,omitempty"`
}

// DataPath names how bytes were really moved at the recording end; R7: the result names the path taken.
type DataPath struct {
	Tx     string `json:"tx,omitempty"`     // "copy", "sendfile", "vmsplice", "zerocopy", "file"
	Rx     string `json:"rx,omitempty"`     // "copy", "discard" (MSG_TRUNC), "file"
	Pacing string `json:"pacing,omitempty"` // "none", "sleep", "kernel", "frugal" (0.5 ms bursts), "precise" (spins)
	Worker string `json:"worker,omitempty"` // "thread" (blocking, one per stream), "epoll", "shared" (many UDP senders by due time), "overlapped" (Windows: several calls under way), "goroutine"
	// UDP: how datagrams go through one call ("sendmmsg", "gso", "plain"; "recvmmsg", "gro",
	// "plain"); "gso/gro" for an end that sends and receives.
	Batch string `json:"batch,omitempty"`
	// Uncut: super-packets of segmentation offload reached the receiver whole (loopback, veth):
	// the per-datagram work of a real network card was not done.
	Uncut bool `json:"uncut,omitempty"`
}

// Hosts holds the facts about both machines. Unknown ones are nil.
type Hosts struct {
	Client *Host `json:"client"`
	Server *Host `json:"server"`
}

// Of returns the facts of one end, nil when unknown.
func (h Hosts) Of(e End) *Host {
	if e == Server {
		return h.Server
	}
	return h.Client
}

// Set stores the facts of one end.
func (h *Hosts) Set(e End, v *Host) {
	if e == Server {
		h.Server = v
	} else {
		h.Client = v
	}
}

// Host is what is known about one machine.
type Host struct {
	Name       string `json:"name,omitempty"`
	Tool       *Tool  `json:"tool,omitempty"`        // the program there
	OS         string `json:"os,omitempty"`          // "linux", "windows", …
	Release    string `json:"release,omitempty"`     // kernel or OS version
	SystemInfo string `json:"system_info,omitempty"` // uname -s -n -r -v -m
	Cores      int    `json:"cores,omitempty"`
	CPUModel   string `json:"cpu_model,omitempty"`
	MHz        *int   `json:"mhz,omitempty"`
	Memory     *int64 `json:"memory_bytes,omitempty"`
	Virtual    string `json:"virtual,omitempty"` // hypervisor; "" = unknown, "none" = bare metal
	NIC        *NIC   `json:"nic,omitempty"`     // the one the test leaves by
	Clock      string `json:"clock,omitempty"`   // clock source
	// Forwarding: it forwards packets between its interfaces; nil = unknown.
	Forwarding *bool `json:"ip_forward,omitempty"`
	// Settings are what the advice of a diagnosis needs to know of it; a server tells them
	// whom its operator trusts (serve --facts full, or a login). nil = unknown.
	Settings *Facts `json:"settings,omitempty"`
}

// NIC is a network interface's fixed facts.
type NIC struct {
	Name     string `json:"name"`
	Driver   string `json:"driver,omitempty"`
	Firmware string `json:"firmware,omitempty"`
	Model    string `json:"model,omitempty"`
	SpeedBPS *int64 `json:"speed_bps"` // nil = unknown or virtual
	Duplex   string `json:"duplex,omitempty"`
	MTU      int    `json:"mtu,omitempty"`
	Queues   *int   `json:"queues,omitempty"`
}

// Stream is one data connection.
type Stream struct {
	ID        int       `json:"id"`     // protocol's id, the same at both ends (iperf3: 1, 3, 4, …)
	Socket    int       `json:"socket"` // number shown by iperf3's outputs (its descriptor sequence: 5, 7, …)
	Direction Direction `json:"direction"`
	Local     Addr      `json:"local"` // at the recording end
	Remote    Addr      `json:"remote"`
	Sender    *Total    `json:"sender"`   // measured by the sending end; nil = not known
	Receiver  *Total    `json:"receiver"` // measured by the receiving end; nil = not known
	// TCP is the recording end's kernel view over the run, also on a receiving socket
	// (iperf3 prints it for both). RemoteTCP is the other end's when it is a fullbore.
	TCP       *TCPSummary `json:"tcp,omitempty"`
	RemoteTCP *TCPSummary `json:"remote_tcp,omitempty"`
	UDP       *UDPStream  `json:"udp,omitempty"`
	Buffers   *Buffers    `json:"buffers,omitempty"`
	Disk      *Disk       `json:"disk,omitempty"`
	Thread    *int        `json:"thread,omitempty"` // NTTTCP's number of the worker that serves it, from 0
	IO        *IOCount    `json:"io,omitempty"`     // nil = calls were not counted
	EStats    []EStats    `json:"estats,omitempty"` // Windows' statistics of the connection, when asked for
	Ended     *Error      `json:"ended,omitempty"`  // the stream died before the test's end
}

// Addr is a numeric address and port. IPv4-mapped addresses are shown as IPv4.
type Addr struct {
	Host string `json:"host"`
	Port int    `json:"port"`
}

// Total is one end's count for one stream over the measured time.
type Total struct {
	Start       float64  `json:"start_s"`
	End         float64  `json:"end_s"`
	Bytes       int64    `json:"bytes"`
	Retransmits *int64   `json:"retransmits,omitempty"` // TCP segments; sending end only
	Packets     *int64   `json:"packets,omitempty"`     // UDP: sent, or highest sequence number received
	Lost        *int64   `json:"lost,omitempty"`        // UDP receiver
	OutOfOrder  *int64   `json:"out_of_order,omitempty"`
	Jitter      *float64 `json:"jitter_s,omitempty"` // RFC 3550 §6.4.1 as iperf3 computes it
	// OmittedPackets and OmittedLost are what iperf3 counted before the omit period ended.
	OmittedPackets *int64 `json:"omitted_packets,omitempty"`
	OmittedLost    *int64 `json:"omitted_lost,omitempty"`
}

// Seconds is the length of the measured time.
func (t Total) Seconds() float64 { return t.End - t.Start }

// Rate is payload bit/s, 0 for an empty time.
func (t Total) Rate() float64 { return Rate(t.Bytes, t.Seconds()) }

// Rate returns payload bit/s for bytes moved in s seconds, 0 when s is not positive.
func Rate(bytes int64, s float64) float64 {
	if s <= 0 {
		return 0
	}
	return float64(bytes) * 8 / s
}

// Disk reports a file transfer (-F).
type Disk struct {
	Transferred int64  `json:"transferred_bytes"`
	Size        int64  `json:"size_bytes"`
	Percent     int    `json:"percent"`
	Name        string `json:"name"`
	Sending     bool   `json:"sending"`
}

// Interval is one report of one end.
type Interval struct {
	End     End              `json:"end"`
	Index   int              `json:"index"` // counts from 0 at each end, omitted ones too
	Start   float64          `json:"start_s"`
	Stop    float64          `json:"stop_s"`
	Omitted bool             `json:"omitted,omitempty"`
	Partial bool             `json:"partial,omitempty"` // cut short by the end of the test or an interrupt
	Streams []StreamInterval `json:"streams"`
	Sums    []IntervalSum    `json:"sums"` // one per direction, up first
	Host    *HostSample      `json:"host,omitempty"`
}

// StreamInterval is one stream within an Interval.
type StreamInterval struct {
	ID     int  `json:"id"`
	Socket int  `json:"socket"`
	Sender bool `json:"sender"` // this end sends
	// Start and Stop are the stream's own clock readings; they differ by µs from the interval's.
	Start       float64      `json:"start_s"`
	Stop        float64      `json:"stop_s"`
	Bytes       int64        `json:"bytes"`
	Retransmits *int64       `json:"retransmits,omitempty"` // in this interval
	TCP         *TCPInfo     `json:"tcp,omitempty"`         // at its end
	Packets     *int64       `json:"packets,omitempty"`     // UDP, in this interval
	Lost        *int64       `json:"lost,omitempty"`
	OutOfOrder  *int64       `json:"out_of_order,omitempty"`
	Jitter      *float64     `json:"jitter_s,omitempty"` // running value
	UDP         *UDPInterval `json:"udp,omitempty"`
	IO          *IOCount     `json:"io,omitempty"` // calls in this interval; nil = they were not counted
}

// Rate is payload bit/s over the stream's own time.
func (s StreamInterval) Rate() float64 { return Rate(s.Bytes, s.Stop-s.Start) }

// IntervalSum adds up one direction within an interval.
type IntervalSum struct {
	Direction   Direction `json:"direction"`
	Sender      bool      `json:"sender"` // this end sends
	Start       float64   `json:"start_s"`
	Stop        float64   `json:"stop_s"`
	Bytes       int64     `json:"bytes"`
	BPS         float64   `json:"bps"`
	Retransmits *int64    `json:"retransmits,omitempty"`
	Packets     *int64    `json:"packets,omitempty"`
	Lost        *int64    `json:"lost,omitempty"`
	OutOfOrder  *int64    `json:"out_of_order,omitempty"`
	Jitter      *float64  `json:"jitter_s,omitempty"` // mean over the streams
}

// Sum adds up one direction over the measured time. The receiver's rate is the
// result (M-BASE); the sender's is the cross-check.
type Sum struct {
	Direction Direction `json:"direction"`
	From      string    `json:"from"` // sending host, as text
	To        string    `json:"to"`
	Sender    *Total    `json:"sender"`
	Receiver  *Total    `json:"receiver"`
	// Goodput is the receiver's payload bit/s over the common window of the streams;
	// nil when the receiver's count is not known.
	Goodput *float64 `json:"goodput_bps"`
	// Peak and the quantiles are over the receiver's counted intervals, else the sender's.
	Peak *float64 `json:"peak_bps,omitempty"`
	Fair *float64 `json:"jain,omitempty"` // Jain's index over the streams' receiver rates
	// Limit is what held the direction back (M-LIMIT, `fullbore explain limit`); "unknown"
	// when the counters do not say, "" when it was not asked.
	Limit  string  `json:"limit,omitempty"`
	Shares *Shares `json:"sender_time,omitempty"` // nil = the sender's kernel did not tell
	// UDP sums up the streams' accounts; nil for TCP and where neither end told.
	UDP *UDPStream `json:"udp,omitempty"`
	// Grades say what UDP's loss and delay variation mean for uses such as voice.
	Grades []Grade `json:"grades,omitempty"`
}

// Grade is what a use of the path makes of a direction.
type Grade struct {
	Name      string  `json:"name"`        // of the use: "voice", "video"
	Grade     string  `json:"grade"`       // "good", "usable", "poor"
	Variation float64 `json:"variation_s"` // the delay variation that was judged
	Basis     string  `json:"basis"`       // what Variation is: "pdv-p99", or "jitter" where no more is known
	Loss      float64 `json:"ratio"`       // the loss that was judged
}

// Shares splits the sender's time by what its sockets waited for: fractions of the
// measured time, mean over the streams, adding up to 1 (M-LIMIT; Linux tcpi_busy_time,
// tcpi_rwnd_limited, tcpi_sndbuf_limited).
type Shares struct {
	Idle    float64 `json:"idle"`    // nothing to send: the application
	Window  float64 `json:"window"`  // the receiver's window was full
	Buffer  float64 `json:"buffer"`  // the send buffer was too small
	Network float64 `json:"network"` // the rest: congestion control and the path
}

// CPUs is the CPU cost at both ends over the test as the protocol reports it
// (percent of one core, whole process). nil = unknown.
type CPUs struct {
	Client *CPU `json:"client"`
	Server *CPU `json:"server"`
}

// Of returns one end's figure.
func (c CPUs) Of(e End) *CPU {
	if e == Server {
		return c.Server
	}
	return c.Client
}

// Set stores one end's figure.
func (c *CPUs) Set(e End, v *CPU) {
	if e == Server {
		c.Server = v
	} else {
		c.Client = v
	}
}

// CPU is a process's use of the processor, percent of one core.
type CPU struct {
	Total      float64 `json:"total_pct"`
	User       float64 `json:"user_pct"`
	System     float64 `json:"system_pct"`
	Congestion string  `json:"congestion,omitempty"` // algorithm that end's TCP streams used
}

// ProcessCost is what this process spent over the test.
type ProcessCost struct {
	CPUSeconds float64  `json:"cpu_s"`
	SecPerGB   *float64 `json:"cpu_s_per_gb"` // of the bytes of this end's role
	PeakRSS    *int64   `json:"peak_rss_bytes"`
}

// HostSample is the machine's counters over one interval, as differences.
type HostSample struct {
	Cores    []CoreShare `json:"cores"`             // per core, share of the interval 0..1
	Process  *CPU        `json:"process,omitempty"` // this program
	NIC      *NICDelta   `json:"nic,omitempty"`
	Softnet  *Softnet    `json:"softnet,omitempty"`
	StealMax float64     `json:"steal_max"` // largest steal share of a core
	// WorkerLoad is (running + waiting for a CPU)/interval of this program's busiest
	// thread, 0..1 (Linux /proc/self/task/*/schedstat); nil = unknown.
	WorkerLoad *float64 `json:"worker_load,omitempty"`
	// Throttled is the share of the interval in which a CPU quota (cgroup) held this
	// program; nil = unknown or no quota.
	Throttled *float64 `json:"throttled,omitempty"`
	// MHz is the clock of the interval's busiest core at its end (Linux cpufreq), read at most
	// once a second; nil = not read, or unknown.
	MHz *int `json:"mhz,omitempty"`
}

// CoreShare splits one core's time; the fields add up to 1.
type CoreShare struct {
	CPU     int     `json:"cpu"`
	User    float64 `json:"user"`
	System  float64 `json:"system"`
	SoftIRQ float64 `json:"softirq"`
	IRQ     float64 `json:"irq"`
	Steal   float64 `json:"steal"`
	IOWait  float64 `json:"iowait"`
	Idle    float64 `json:"idle"`
}

// NICDelta is an interface's counters over one interval.
type NICDelta struct {
	Name      string `json:"name"`
	RxBytes   int64  `json:"rx_bytes"`
	TxBytes   int64  `json:"tx_bytes"`
	RxPackets int64  `json:"rx_packets"`
	TxPackets int64  `json:"tx_packets"`
	RxErrors  int64  `json:"rx_errors"`
	TxErrors  int64  `json:"tx_errors"`
	RxDropped int64  `json:"rx_dropped"`
	TxDropped int64  `json:"tx_dropped"`
	RxMissed  int64  `json:"rx_missed"`
}

// Softnet is the kernel's per-CPU packet queue over one interval, summed
// (/proc/net/softnet_stat).
type Softnet struct {
	Processed int64 `json:"processed"`
	Dropped   int64 `json:"dropped"`
	Squeezed  int64 `json:"squeezed"`
}

// Notice is something the reader of the number must know: a refused option, a
// clamp, a fallback, a doubt. Codes are stable; `fullbore explain CODE` tells more.
type Notice struct {
	Code  string `json:"code"` // e.g. "window-clamped"
	End   End    `json:"end,omitempty"`
	Level Level  `json:"level"`
	Text  string `json:"text"` // one sentence: what, why, what to do
	// Fix is a command that mends it, "" when there is none.
	Fix string `json:"fix,omitempty"`
}

// Level ranks notices.
type Level string

// Info is worth knowing; Warn puts the number in doubt.
const (
	Info Level = "info"
	Warn Level = "warn"
)

// Error says why a run broke off.
type Error struct {
	Code   string `json:"code"`   // stable word, e.g. "peer-closed"
	Text   string `json:"text"`   // for people
	Remote bool   `json:"remote"` // the other end's doing
	// Number is the protocol's own code (iperf3's i_errno), 0 = none; Errno the
	// operating system's, 0 = none.
	Number int `json:"number,omitempty"`
	Errno  int `json:"errno,omitempty"`
	// Reported: the other end sent this reason itself (iperf3's SERVER_ERROR), in
	// contrast to what this end concluded from a closed connection or a state.
	Reported bool `json:"reported,omitempty"`
	// Interrupted: a signal ended it. Signal is its name as iperf3 prints it ("Interrupt(2)").
	Interrupted bool   `json:"interrupted,omitempty"`
	Signal      string `json:"signal,omitempty"`
}

// Error implements error.
func (e *Error) Error() string { return e.Text }

// AsError is err as a run's error: the *Error within it, else one of code "failed" with its text. nil
// stays nil.
func AsError(err error) *Error {
	var e *Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &e):
		return e
	}
	return &Error{Code: "failed", Text: err.Error()}
}

// Wire holds the facts of iperf3's conversation that its outputs print.
type Wire struct {
	Cookie       string          `json:"cookie,omitempty"`
	Version      string          `json:"version,omitempty"`       // version string this end shows, "iperf 3.21"
	PeerVersion  string          `json:"peer_version,omitempty"`  // client_version, or the extension's
	SeenAs       *Addr           `json:"seen_as,omitempty"`       // client: its control connection's address as a fullbore server sees it
	PeerLocal    *Addr           `json:"peer_local,omitempty"`    // client: the address at which that server answers, where it tells
	ConnectingTo *Addr           `json:"connecting_to,omitempty"` // client: as typed
	AcceptedFrom *Addr           `json:"accepted_from,omitempty"` // server: the client's control port
	ControlMSS   int             `json:"control_mss,omitempty"`   // TCP_MAXSEG of the control connection
	SndbufActual int             `json:"sndbuf_actual"`           // of the first stream, as getsockopt says
	RcvbufActual int             `json:"rcvbuf_actual"`
	TestStarted  bool            `json:"test_started"` // got as far as agreeing on parameters
	ServerText   *string         `json:"server_output_text,omitempty"`
	ServerJSON   json.RawMessage `json:"server_output_json,omitempty"` // the peer's document as received
	Extension    bool            `json:"extension"`                    // the peer is a fullbore
	HasRetrans   bool            `json:"sender_has_retransmits"`       // the sending end can read retransmits (sent or learned)
	TestNumber   int             `json:"test_number,omitempty"`        // server: counts from 1
}

package result

import "time"

// NTTTCP is what a test in NTTTCP's ways knows beyond Test. The end that opened the
// connections (Client) is NTTTCP's sender; it alone sends.
type NTTTCP struct {
	Dialect     string  `json:"dialect"`                // whose rules the recording end followed: "linux" (ntttcp-for-linux), "windows" (ntttcp.exe)
	Ports       int     `json:"ports"`                  // receiver ports, from BasePort upwards
	Threads     int     `json:"threads_per_port"`       // sender threads for each port; 0 = a receiver, which is not told
	Connections int     `json:"connections_per_thread"` // 0 = a receiver, which is not told
	BasePort    int     `json:"base_port"`              // first data port
	NoSync      bool    `json:"no_sync,omitempty"`      // started without agreement (-N, -ns)
	MultiClient bool    `json:"multi_client,omitempty"` // receiver that waits for the last of several senders (-M)
	LastClient  bool    `json:"last_client,omitempty"`  // the sender that starts everybody (-L)
	Cooldown    float64 `json:"cooldown_s,omitempty"`   // s of traffic after Duration, not counted
	// Cycle is the length of warm-up, test and cool-down together that both ends agreed on
	// (Linux sync), s; 0 = until stopped, nil = nothing was agreed.
	Cycle *float64 `json:"cycle_s"`
}

// IOCount is what a stream's sends or receives at the recording end were, over the
// measured time or an interval, for the outputs that show them (NTTTCP for Windows).
type IOCount struct {
	Completions int64        `json:"completions"`            // finished calls
	Latency     *CallLatency `json:"call_latency,omitempty"` // nil = not asked for; never of an interval
}

// CallLatency is how long calls took. In round trip tests it is how long a message and its
// answer took, which are two calls at either end.
type CallLatency struct {
	Sum int64 `json:"sum_ns"` // over Completions calls
	Min int64 `json:"min_ns"` // the shortest
	Max int64 `json:"max_ns"` // the longest
}

// EStats is what Windows tells of a TCP connection at one moment of a test
// (GetPerTcpConnectionEStats), for the output that shows it (NTTTCP for Windows, -es).
type EStats struct {
	Moment     string            `json:"moment"`     // "Measurement_Begin", "Measurement_End"
	Structures []EStatsStructure `json:"structures"` // in the order of the API
}

// EStatsStructure is one of the API's structures.
type EStatsStructure struct {
	Name       string           `json:"name"`       // "TCP_ESTATS_DATA_ROD_v0"
	Properties []EStatsProperty `json:"properties"` // in the order of the Windows SDK
}

// EStatsProperty is one field of a structure.
type EStatsProperty struct {
	Name  string `json:"name"`  // as in the Windows SDK
	Value string `json:"value"` // as NTTTCP writes it
}

// Milestone is a moment of a run that some output tells in words. Its place among the
// other events is kept, so that a replay tells it where it happened.
type Milestone struct {
	End   End    `json:"end"`   // whose moment it is
	Code  string `json:"code"`  // one of the Milestone constants
	Stage string `json:"stage"` // "before" (the settings were final), "run", "after" (the totals); set by Fold
	Rows  int    `json:"rows"`  // how many intervals of its end came before it; set by Fold
	// Time is the wall clock, a label only. Of a text that was read in it is the time of day alone, on the
	// first day of the year 1.
	Time     time.Time `json:"time"`
	Severity string    `json:"severity,omitempty"` // of MilestoneLine: "info", "error", "debug"
	Text     string    `json:"text,omitempty"`     // of MilestoneLine: words in the dialect's own way
	Count    int64     `json:"count,omitempty"`    // what the code counts
	Micros   int64     `json:"took_us,omitempty"`  // how long it took, µs
	Socket   int       `json:"socket,omitempty"`   // number shown for the socket
	Local    *Addr     `json:"local,omitempty"`    // of the connection or listener at that end
	Remote   *Addr     `json:"remote,omitempty"`   // of the connection
}

// The codes of milestones.
const (
	MilestoneLine       = "line"        // Severity and Text, printed as they are
	MilestoneThreads    = "threads"     // Count worker threads exist, the one for the sync channel included
	MilestoneListening  = "listening"   // on Local
	MilestoneSync       = "sync"        // sync connection (Linux) or token (Windows): Socket, Local, Remote
	MilestoneConnection = "connection"  // data connection (UDP: socket): Socket, Local, Remote
	MilestoneConnected  = "connected"   // all Count data connections, made in Micros
	MilestoneCycle      = "cycle"       // Count seconds were agreed on, 0 = until stopped
	MilestoneNoSync     = "no-sync"     // a sender begins without agreement
	MilestoneWaiting    = "waiting"     // for the last client of several
	MilestoneStarted    = "started"     // both ends agreed to start
	MilestoneWarmedUp   = "warmed-up"   // counting begins
	MilestoneMeasured   = "measured"    // counting ends
	MilestoneCooling    = "cooling"     // traffic goes on, not counted
	MilestoneCycleOver  = "cycle-over"  // traffic ends
	MilestonePeerDone   = "peer-done"   // the receiver said that it has ended the test
	MilestonePeerLeft   = "peer-left"   // the sender asked to end the test early
	MilestoneInterrupt  = "interrupt"   // a signal
	MilestoneNoResult   = "no-result"   // the test ended before counting began
	MilestoneClosed     = "closed"      // Socket was closed by the other end
	MilestoneBound      = "cpu-bound"   // the process was bound to a CPU
	MilestoneThreadDone = "thread-done" // thread Count has ended
)

package result

import "time"

// Report is the document of a command that makes several runs: both directions of a
// test, a sweep, a diagnosis, an acceptance. What it says follows from its runs.
type Report struct {
	Schema   int       `json:"schema"`            // version of the JSON form
	ID       string    `json:"id,omitempty"`      // ULID; sorts by time
	Label    string    `json:"label,omitempty"`   // the user's name for what was measured, e.g. a link
	Note     string    `json:"note,omitempty"`    // a remark of the user
	Tags     []string  `json:"tags,omitempty"`    // words of the user to find it by
	Kind     string    `json:"kind"`              // "test", "delay", "diagnose"; later "sweep", "accept"
	Tool     Tool      `json:"tool"`              // the program that made the document
	Started  time.Time `json:"started"`           // wall clock of the first run, a label only; UTC
	Inputs   []string  `json:"inputs"`            // the user's words: the command's arguments
	Runs     []*Run    `json:"runs"`              // in the order in which they were made
	Curve    []Point   `json:"curve,omitempty"`   // a sweep's figures, by X
	Verdicts []Verdict `json:"verdicts"`          // ranked; empty where the command judges nothing
	Items    []Item    `json:"items"`             // what was checked, passed or not
	Notices  []Notice  `json:"notices"`           // about the whole; those about one run are in it
	Summary  string    `json:"summary,omitempty"` // one sentence
	Next     *Step     `json:"next,omitempty"`    // the command worth typing next, and why
	Err      *Error    `json:"error,omitempty"`   // set when it broke off; the runs so far are kept
	Profile  string    `json:"profile,omitempty"` // of a test: the procedure that it followed, e.g. "vm"
	Stages   []Stage   `json:"stages,omitempty"`  // of a diagnosis, or a test by a profile: what was done, in order, and why
	Facts    *Facts    `json:"facts,omitempty"`   // of a diagnosis: settings of the recording host
	Unseen   []string  `json:"unseen,omitempty"`  // of a diagnosis: what could not be seen, one sentence each

	Rounds     []Rounds    `json:"rounds,omitempty"`     // figures measured several times (M-ROUNDS)
	Seed       *int64      `json:"seed,omitempty"`       // from which the random order of steps follows
	Sweep      *Sweep      `json:"sweep,omitempty"`      // of a sweep: what was varied and what came of it
	Comparison *Comparison `json:"comparison,omitempty"` // of a comparison
	ConnRate   *ConnRate   `json:"connrate,omitempty"`   // of a test of connections per second

	// Findings are what a method found, one for each direction and thing looked for; their figures
	// are for programs, what they mean is in Summary.
	Findings []Finding `json:"findings,omitempty"`

	// Paths are of mtu, rfc6349 and accept: the largest packet of each direction.
	Paths []PathMTU `json:"path_mtu,omitempty"`
	Soak  *Soak     `json:"soak,omitempty"` // of a soak
	// Load is of load: what a full path does to small packets.
	Load *Load `json:"load,omitempty"`
	// Asked is of a method what of the user's words bears on the measurement, by name: flags, and words
	// without the host; not the port, nor what only prints, keeps or judges.
	Asked []string `json:"asked_for,omitempty"`

	Acceptance *Acceptance `json:"acceptance,omitempty"` // of a hand-over
	// TCPFramework is of rfc6349: TCP throughput against what the path allows.
	TCPFramework *TCPFramework `json:"rfc6349,omitempty"`
	// Activation is of y1564: the steps of each service.
	Activation *Activation `json:"y1564,omitempty"`
}

// Finding is one answer of a method.
type Finding struct {
	Name      string   `json:"name"`                // stable word: "loss-free-rate", "capacity", "model", …
	Direction string   `json:"direction,omitempty"` // "up", "down", "both"
	Summary   string   `json:"summary"`             // a sentence
	Values    []Value  `json:"values"`              // those that are not known are left out
	Flags     []string `json:"flags,omitempty"`     // what bounds its truth, e.g. "at_max_load", "host_limited", "irregular"
}

// Stage is one step of a method.
type Stage struct {
	Name  string  `json:"name"`            // stable word, e.g. "up-4"
	Title string  `json:"title"`           // for people
	Why   string  `json:"why"`             // what it was to show
	Run   *int    `json:"run"`             // index in runs; nil = it could not begin
	Pause float64 `json:"pause_s"`         // of silence before it
	Err   *Error  `json:"error,omitempty"` // why it could not begin, or broke off

	Round int `json:"round,omitempty"` // which of several rounds it belongs to, from 1; 0 = there are none

	// Of a diagnosis: how the reasoning went on.
	Showed   string   `json:"showed,omitempty"`    // what was seen, in a line
	RuledIn  []string `json:"ruled_in,omitempty"`  // verdicts that it brought up or made surer, e.g. "receive-window, up: likely"
	RuledOut []string `json:"ruled_out,omitempty"` // what does not stand after it, with the reason
}

// Facts are settings of a host that bear on what it can carry. nil = not known.
type Facts struct {
	OS         string    `json:"os"`                             // "linux", "windows", …
	TCPRead    *[3]int64 `json:"tcp_rmem"`                       // Linux: least, initial, most bytes of a receive buffer
	TCPWrite   *[3]int64 `json:"tcp_wmem"`                       // Linux: least, initial, most bytes of a send buffer
	CoreRead   *int64    `json:"rmem_max"`                       // most bytes of a receive buffer that a program may ask for
	CoreWrite  *int64    `json:"wmem_max"`                       // most bytes of a send buffer that a program may ask for
	Moderate   *bool     `json:"moderate_rcvbuf"`                // receive buffers are tuned
	Scaling    *bool     `json:"window_scaling"`                 // windows above 64 KiB are offered
	SACK       *bool     `json:"sack"`                           // selective acknowledgements are offered
	Timestamps *bool     `json:"timestamps"`                     // TCP timestamps are offered
	Congestion string    `json:"congestion,omitempty"`           // algorithm of new connections
	Available  []string  `json:"congestion_available,omitempty"` // algorithms that can be chosen
	Autotuning string    `json:"autotuning_level,omitempty"`     // Windows: level of receive window auto-tuning
	Forwarding *bool     `json:"ip_forward"`                     // packets are forwarded between interfaces
	Kind       string    `json:"nic_kind,omitempty"`             // of the interface towards the peer
	MaxBPS     *int64    `json:"max_speed_bps"`                  // fastest mode of its hardware, bit/s
	QueuesNow  *int      `json:"queues_now"`                     // its queues in use
	QueuesMax  *int      `json:"queues_max"`                     // its queues at most
	Busiest    *float64  `json:"busiest"`                        // share of its busiest interrupt, 0..1
	Emulated   bool      `json:"emulated"`                       // it is a card that a hypervisor imitates in software
	Quota      *float64  `json:"cpu_quota"`                      // processors' worth of time that the control group allows
	Conntrack  *float64  `json:"conntrack_used"`                 // how full the connection table is, 0..1
	Governor   string    `json:"governor,omitempty"`             // of the clock frequency

	NIC         string   `json:"nic,omitempty"`                // name of the interface towards the peer, or of the card below it
	Driver      string   `json:"driver,omitempty"`             // of that interface
	SpeedBPS    *int64   `json:"speed_bps,omitempty"`          // as negotiated
	Duplex      string   `json:"duplex,omitempty"`             // as negotiated
	MTU         int      `json:"mtu,omitempty"`                // bytes
	RingNow     *int     `json:"ring_now,omitempty"`           // places of its receive ring
	RingMax     *int     `json:"ring_max,omitempty"`           // that the ring could have
	Missed      *int64   `json:"rx_missed,omitempty"`          // packets that found no place in it since it came up
	Off         []string `json:"offloads_off,omitempty"`       // offloads that matter, are off, and could be on; by ethtool's names
	RSS         *int     `json:"rss_queues,omitempty"`         // queues that received packets are spread over
	RPS         *int     `json:"rps_cpus,omitempty"`           // CPUs that receive packet steering spreads to; 0 = off
	NUMANode    *int     `json:"numa_node,omitempty"`          // of the card
	NUMANodes   *int     `json:"numa_nodes,omitempty"`         // of the host
	NearCPUs    string   `json:"near_cpus,omitempty"`          // processors of the card's node, as the kernel lists them
	Qdisc       string   `json:"qdisc,omitempty"`              // root queueing discipline of the interface
	MHz         *int     `json:"mhz,omitempty"`                // nominal clock of the processor
	NowMHz      *int     `json:"now_mhz,omitempty"`            // fastest core's clock when it was looked at
	OnBattery   *bool    `json:"on_battery,omitempty"`         // Windows
	Virtual     string   `json:"virtual,omitempty"`            // hypervisor; "none" = bare metal
	Steal       *float64 `json:"steal_since_boot,omitempty"`   // share of time since boot that the hypervisor gave to others
	Throttled   *float64 `json:"quota_throttled,omitempty"`    // share of the periods in which the quota held its group, ever
	TrackedMax  *int64   `json:"conntrack_max,omitempty"`      // places of the connection table
	ClockSource string   `json:"clock,omitempty"`              // clock source
	ClockSynced *bool    `json:"clock_synchronised,omitempty"` // a time service keeps the clock
	Listen      *int64   `json:"somaxconn,omitempty"`          // Linux: connections that may wait for a listener to take them
	Backlog     *int64   `json:"netdev_max_backlog,omitempty"` // Linux: packets that may wait for a processor
	PollBudget  *int64   `json:"netdev_budget,omitempty"`      // Linux: packets that one turn of receiving takes at most
	Recorded    bool     `json:"recorded,omitempty"`           // read from a recorded tree: replayed, not of this machine
}

// Point is one figure of a curve.
type Point struct {
	X     float64 `json:"x"`               // what was varied, in the unit that Label says
	Y     float64 `json:"y"`               // payload bit/s
	Label string  `json:"label,omitempty"` // what X is, e.g. "streams"

	// Of a sweep (M-KNEE), over the rounds of this setting; nil = not known.
	Series      string    `json:"series,omitempty"`            // which curve it belongs to, where there are several, e.g. "window"
	Direction   string    `json:"direction,omitempty"`         // "up", "down"
	Setting     string    `json:"setting,omitempty"`           // X for people, e.g. "2 MiB", "auto"
	Auto        bool      `json:"auto,omitempty"`              // the system's own choice; X is what that came to, or 0
	Values      []float64 `json:"rates_bps,omitempty"`         // payload bit/s of each round
	Low         *float64  `json:"low,omitempty"`               // least of the rounds, bit/s
	High        *float64  `json:"high,omitempty"`              // most of the rounds, bit/s
	Peak        *float64  `json:"best_interval_bps,omitempty"` // the best interval of all rounds, bit/s
	Retransmits *float64  `json:"retransmit_ratio,omitempty"`  // median share of segments sent again, 0..1
	HotCore     *float64  `json:"hot_core,omitempty"`          // median use of the busiest core or worker of either end, 0..1
	CPU         *float64  `json:"cpu_cores,omitempty"`         // median of the cores' worth of time that both ends' programs took
	Gain        *float64  `json:"gain,omitempty"`              // over the setting before it, per doubling: 0.5 = half as much again
	Predicted   *float64  `json:"predicted_bps,omitempty"`     // of a window: window × 8 ÷ round trip, at most what the path carries
	Granted     *int64    `json:"granted_bytes,omitempty"`     // of a window: what the ends' buffers hold at most
	BufferDelay *float64  `json:"buffer_delay,omitempty"`      // how much longer than on the empty path a round trip took, as a share of it
}

// Item is one thing that was checked.
type Item struct {
	ID      string   `json:"id"`      // stable word, e.g. "expect"
	Result  string   `json:"result"`  // "pass", "fail", "inconclusive"
	Reasons []string `json:"reasons"` // one sentence each

	// Of an acceptance.
	Title     string      `json:"title,omitempty"`       // for people
	Direction string      `json:"direction,omitempty"`   // "up", "down"; absent = of neither
	Criteria  []Criterion `json:"criteria,omitempty"`    // what was demanded, with what was measured
	Checks    []Check     `json:"checks,omitempty"`      // what else was looked at: other counters of the same bytes, the ends' fitness
	Flags     []string    `json:"flags,omitempty"`       // validity flags of its runs
	From      []int       `json:"measured_in,omitempty"` // indices in runs
}

// The results of an Item.
const (
	Pass         = "pass"
	Fail         = "fail"
	Inconclusive = "inconclusive"
)

// Verdict names what limits a path; see design §3. Filled by diagnosis.
type Verdict struct {
	Code      string   `json:"code"`
	Certainty string   `json:"certainty"` // "proven", "likely", "possible"
	Summary   string   `json:"summary"`
	Evidence  []string `json:"evidence"`
	Advice    []string `json:"advice"`

	Direction string `json:"direction,omitempty"` // "up", "down", "both"; absent = of neither
	Host      End    `json:"host,omitempty"`      // at which it is to be mended; absent = on the way, or not known
	// Note: worth knowing beside the limit; it is not what holds the rate back.
	Note bool `json:"note,omitempty"`
	// Values are the figures that the verdict names, for programs.
	Values   []Value  `json:"values,omitempty"`
	Measured *float64 `json:"measured_bps,omitempty"` // payload bit/s that this limit leaves
	Reach    *float64 `json:"reach_bps,omitempty"`    // payload bit/s with it mended
	// Stages are the names of the stages that it rests on.
	Stages []string `json:"stages,omitempty"`
}

// Value is a named figure.
type Value struct {
	Name  string  `json:"name"`  // stable word, e.g. "window"
	Value float64 `json:"value"` // in Unit
	Unit  string  `json:"unit"`  // "bit/s", "bytes", "s", "ratio", ""
}

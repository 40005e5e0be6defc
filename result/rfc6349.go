package result

// TCPFramework is a test of TCP throughput by RFC 6349 (M-6349). Rates in bit/s.
type TCPFramework struct {
	RTT        *float64  `json:"rtt_base_s"`         // baseline round trip: least of the unloaded probes
	Probes     int64     `json:"rtt_probes"`         // that it rests on; 0 = another source
	MTU        [2]int    `json:"mtus_bytes"`         // up, down
	BB         [2]*Rated `json:"bottleneck"`         // bottleneck bandwidth, up and down; nil = not known
	Window     int64     `json:"asked_window_bytes"` // asked for; 0 = auto-tuning
	Tests      []TCPTest `json:"transfers"`          // one a direction of each run
	ByTCP      bool      `json:"rtt_by_tcp"`         // the baseline is TCP's least round trip: nothing answered probes
	FullLength bool      `json:"full_length"`        // each test took the 30 s that RFC 6349 wants at least
	Tolerance  float64   `json:"transfer_ratio_max"` // largest transfer time ratio that passes
}

// Rated is a bandwidth and where it comes from.
type Rated struct {
	BPS    float64 `json:"bottleneck_bps"` // on layer 1, where Ethernet frames are counted with preamble and gap
	Source string  `json:"told_by"`        // "given", "measured"
}

// TCPTest is one direction of one run of it.
type TCPTest struct {
	Name        string    `json:"test_name"`              // "single-up", "multi-both-down", …
	Direction   Direction `json:"test_way"`               // which way the figures are of
	Both        bool      `json:"both"`                   // the other direction was full, too
	Connections int       `json:"test_connections"`       // that were used
	Needed      int64     `json:"connections_needed"`     // for the bandwidth-delay product at this window; 0 = not known
	Window      int64     `json:"offered_window_bytes"`   // of each connection, as far as it was offered; 0 = not known
	MinWindow   *float64  `json:"min_window_bytes"`       // the bandwidth-delay product
	Ideal       *float64  `json:"ideal_bps"`              // what the path allows
	Reference   *float64  `json:"window_allows_bps"`      // what the path allows with this window
	Goodput     *float64  `json:"arrived_bps"`            // what arrived
	Time        float64   `json:"actual_s"`               // transfer time
	IdealTime   *float64  `json:"ideal_s"`                // of as many bytes
	Ratio       *float64  `json:"transfer_time_ratio"`    // Time over IdealTime; 1 is ideal
	WindowRatio *float64  `json:"reference_ratio"`        // Reference over Goodput; 1 is all that this window allows
	Efficiency  *float64  `json:"efficiency_pct"`         // bytes that were not retransmissions, percent
	RTT         *float64  `json:"mean_rtt_s"`             // mean of the transfer's per-second round trips
	BufferDelay *float64  `json:"buffer_delay_pct"`       // by how much that is above the baseline, percent
	Verdict     string    `json:"framework_verdict"`      // what the figures mean, a sentence
	Headers     int       `json:"header_bytes,omitempty"` // IP's and TCP's of each packet
	Held        bool      `json:"held_back,omitempty"`    // a bound that somebody set (--max-rate, the server's) was reached, both directions together
}

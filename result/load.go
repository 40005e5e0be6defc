package result

// Load is what a load does to the delay (`fullbore load`; M-DELAY, M-RPM): round trips of small
// packets on the empty path, beside a load in each direction and in both, and afterwards.
type Load struct {
	Idle  *Quantiles `json:"empty"`       // round trip before the load; nil = nothing answers probes
	After *Quantiles `json:"empty_after"` // round trip after it
	// IdleMin is the least round trip of the empty path, s, from whatever tells it.
	IdleMin *float64    `json:"empty_least_s"`
	Source  string      `json:"told_by"`      // "probe": small packets answered by a fullbore; "tcp-info": the sender's kernel
	Ways    []LoadedWay `json:"ways"`         // one a direction of each loaded run
	Worst   *float64    `json:"worst_rise_s"` // p95 of the direction in which small packets waited longest
	Grade   string      `json:"letter"`       // of Worst: A+ … F; "" = not known
}

// LoadedWay is one direction of a path while it was full.
type LoadedWay struct {
	Load      string     `json:"loaded"`            // what was loaded: "up", "down", "both"
	Direction Direction  `json:"load_way"`          // which way the figures are of
	Rate      *float64   `json:"loaded_bps"`        // of payload that arrived
	RoundTrip *Quantiles `json:"loaded_round_trip"` // of small packets meanwhile
	// Rise is how much longer than on the empty path small packets took in this direction; without
	// probes how much longer TCP's own round trips took.
	Rise       *Quantiles `json:"rise"`
	Queue      *float64   `json:"queue_s"`     // depth of the queue: p99 of Rise, as RFC 5481 sizes buffers
	QueueBytes *float64   `json:"queue_bytes"` // the same at the rate on the wire, bytes of IP packets
	Grade      string     `json:"letter"`      // of Wait; "" = not known
	RPM        *RPM       `json:"rpm"`         // nil = not known
}

// Wait is what a small packet waits for when the path is full, seconds: p95 of Rise; nil = not known.
func (w *LoadedWay) Wait() *float64 {
	if w.Rise == nil {
		return nil
	}
	wait := max(w.Rise.P95, 0)
	return &wait
}

// RPM is responsiveness as round trips per minute (M-RPM), by the means that a test of this kind
// has: not comparable with numbers made over HTTP.
type RPM struct {
	Kind      string   `json:"rpm_kind"`             // "rpm-raw"
	Value     float64  `json:"per_minute"`           // mean of the known ones of Foreign and Self
	Foreign   *float64 `json:"foreign_per_minute"`   // of what is not the load's
	Self      *float64 `json:"self_per_minute"`      // of the load's own connections
	ForeignBy string   `json:"foreign_by,omitempty"` // "tcp-connect" (new connections with a request of one byte) or "udp-echo" (small packets)
	SelfBy    string   `json:"self_by,omitempty"`    // "tcp-info": what the sending kernel measured; "" = not known
	Class     string   `json:"class"`                // "poor", "fair", "good", "excellent"
	// Confidence is "low" (fewer than four intervals), "medium" (rate or round trip did not settle)
	// or "high".
	Confidence string `json:"confidence"`
	Streams    int    `json:"rpm_streams,omitempty"`   // of each direction that were sending in the end; 0 = all, from the start
	Intervals  int    `json:"rpm_intervals,omitempty"` // that the ramp took
}

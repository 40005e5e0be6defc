package result

// Sweep is what a sweep found (M-KNEE, M-WSCAN). Its figures are in Report.Curve.
type Sweep struct {
	Parts []SweepPart `json:"parts"` // one for each thing that was varied, in the order of measuring
	// RTT is the round trip of the empty path, s; nil = not known.
	RTT *float64 `json:"rtt_s"`
	// Recommended is what to set in the end; 0 and absent = leave it to the system.
	Streams int   `json:"recommended_streams,omitempty"` // streams
	Window  int64 `json:"recommended_window,omitempty"`  // bytes, of each stream
	Length  int64 `json:"recommended_length,omitempty"`  // bytes of one write
	// Carries is what the recommended setting carried, payload bit/s (median).
	Carries *float64 `json:"carries_bps"`
	// Settings are the lines that allow the windows that it needs, for both ends.
	Linux   []string `json:"linux,omitempty"`   // sysctl lines
	Windows []string `json:"windows,omitempty"` // netsh lines
	// Needs is the window of one stream that those lines are for, bytes.
	Needs int64 `json:"needs_window,omitempty"`
}

// SweepPart is one curve of a sweep with its answers. A setting of 0 means that there is none.
type SweepPart struct {
	Series      string    `json:"series"`              // as in the points of the curve
	Axis        string    `json:"axis"`                // "streams", "window", "length"
	Direction   string    `json:"direction"`           // "up", "down"
	Knee        float64   `json:"knee"`                // by Kneedle
	Marginal    float64   `json:"marginal"`            // the least setting after which no doubling gains 5 %
	Best        float64   `json:"best"`                // with the largest median
	Cheapest    float64   `json:"cheapest"`            // the least setting within 3 % of the best
	Recommended float64   `json:"recommended"`         // what to take; of windows 0 = the system's own
	Reached     bool      `json:"reached"`             // it no longer grew at the last setting
	HostKnee    string    `json:"host_knee,omitempty"` // what speaks against calling the knee the path's, and whose it is then; absent = nothing does
	D           []float64 `json:"kneedle_d,omitempty"` // Kneedle's differences, by setting
}

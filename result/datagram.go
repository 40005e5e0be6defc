package result

// Quantiles sums up a distribution of times, in seconds. N is how many values it is
// made of; with N = 0 there is no Quantiles, but nil.
type Quantiles struct {
	N    int64   `json:"n"`
	Min  float64 `json:"min_s"`
	Mean float64 `json:"mean_s"`
	P50  float64 `json:"p50_s"`
	P95  float64 `json:"p95_s"`
	P99  float64 `json:"p99_s"`
	P999 float64 `json:"p99_9_s"`
	Max  float64 `json:"max_s"`
}

// Bucket is one class of a histogram: Count values in [From, To), seconds.
type Bucket struct {
	From  float64 `json:"from_s"`
	To    float64 `json:"to_s"`
	Count int64   `json:"count"`
}

// UDPStream is what both ends know of a UDP stream beyond its Totals, over the measured
// time. nil = not known.
type UDPStream struct {
	Sent     *UDPSent     `json:"sent"`     // told by the sending end
	Received *UDPReceived `json:"received"` // told by the receiving end
	Loss     *UDPLoss     `json:"loss"`     // from both; nil when one of them is not known
}

// UDPSent is the sending end's account (M-UDP).
type UDPSent struct {
	Packets int64 `json:"packets"` // handed to the kernel
	Bytes   int64 `json:"bytes"`
	// Refused were not sent: the system said no (ENOBUFS, EAGAIN, a firewall). Never loss.
	Refused int64 `json:"refused"`
	// Unsent were due and given up, because this end was late by more than 100 ms; of a steady sender by more than 2 ms, less
	// what it made up.
	Unsent    int64 `json:"unsent"`
	BlockedNS int64 `json:"blocked_ns"` // time spent waiting in send calls
	// Bursts in datagrams: what the plan asks for, and the largest that left back to back
	// (scheduled together or made up after a stall).
	PlannedBurst int64 `json:"planned_burst"`
	LargestBurst int64 `json:"largest_burst"`
	// Late is how long after its due time each burst was sent; nil when not paced.
	Late    *Quantiles `json:"late"`
	Stalls  int64      `json:"stalls"`            // times that a burst was more than 1 ms late
	Segment int64      `json:"segment,omitempty"` // datagrams per call with segmentation offload; 0 = off
}

// UDPReceived is the receiving end's account (M-UDP, M-DELAY).
type UDPReceived struct {
	Packets    int64 `json:"packets"` // distinct datagrams ("first" of M-UDP)
	Bytes      int64 `json:"bytes"`
	Duplicates int64 `json:"duplicates"` // RFC 5560
	Reordered  int64 `json:"reordered"`  // RFC 4737, type-P-reordered
	MaxExtent  int64 `json:"max_extent"` // RFC 4737 §4.2.1, in arrivals
	Late       int64 `json:"late"`       // older than the window of 65536: new or duplicate is not known
	Foreign    int64 `json:"foreign"`    // not of this test: wrong size or nonce
	Highest    int64 `json:"highest"`    // largest sequence number, extended over wraps
	// Tail is how many datagrams were received after the measured time; part of Packets.
	Tail int64 `json:"tail"`
	// Early is how many arrived before the measured time, while this end was not yet at its
	// start; part of Packets, and like Tail not of Bytes.
	Early int64 `json:"early,omitempty"`

	Periods *LossPeriods `json:"loss_periods,omitempty"` // nil = nothing is missing

	// Jitter by RFC 3550 §6.4.1 with M-DELAY's rules: the final, mean and largest J, and
	// of how many pairs. CompatJitter is what iperf3 would print.
	Jitter       *Jitter    `json:"jitter"`
	CompatJitter float64    `json:"compat_jitter_s"`
	IPDV         *Quantiles `json:"ipdv"` // RFC 3393, absolute values
	PDV          *Quantiles `json:"pdv"`  // RFC 5481: delay − least delay; drift removed
	DriftPPM     *float64   `json:"drift_ppm,omitempty"`
	Histogram    []Bucket   `json:"pdv_histogram,omitempty"`
	Outliers     int64      `json:"outliers,omitempty"`  // time stamps that jumped (a clock was set); left out
	Stamps       string     `json:"stamps,omitempty"`    // "kernel" or "user": where arrivals were timed
	Climb        *float64   `json:"pdv_climb,omitempty"` // PDV p50 of the last quarter ÷ that of the first
	Coalesced    bool       `json:"coalesced,omitempty"` // the kernel handed over several datagrams at once (GRO)
	LargestRead  int64      `json:"largest_read"`        // most datagrams in one read
	SocketDrops  *int64     `json:"socket_drops"`        // SO_MEMINFO drops; with GRO one count is 1…64 datagrams; nil = unknown
	RcvbufErrors *int64     `json:"rcvbuf_errors"`       // host-wide UDP RcvbufErrors over the test; nil = unknown
}

// Jitter is RFC 3550's estimate over a stream.
type Jitter struct {
	N     int64   `json:"n"` // pairs of consecutive datagrams
	Final float64 `json:"final_s"`
	Mean  float64 `json:"mean_s"`
	Max   float64 `json:"max_s"`
}

// LossPeriods describes the pattern of loss (RFC 3357) and the Gilbert–Elliott
// probabilities that follow from the runs.
type LossPeriods struct {
	Runs        int64   `json:"runs"`
	Longest     int64   `json:"longest"`
	MeanLength  float64 `json:"mean_length"`
	Conditional float64 `json:"conditional"` // P(lost | the one before was lost)
	GoodToBad   float64 `json:"p_good_to_bad"`
	BadToGood   float64 `json:"p_bad_to_good"`
}

// UDPLoss says how much was lost, how sure that is, and where (M-UDP).
type UDPLoss struct {
	Sent  int64   `json:"sent"`
	Lost  int64   `json:"lost"`
	Ratio float64 `json:"ratio"`
	// Low and High bound the ratio at 95 % (Clopper–Pearson; rule of three for 0 lost).
	Low  float64 `json:"low_95"`
	High float64 `json:"high_95"`
	Tail int64   `json:"tail"` // of the lost: after the last that arrived

	// Who lost them. nil = unknown. Network is what is left; it is never more than
	// Attribution allows: "exact", "bounded" (Network is an upper bound) or "unknown".
	Socket      *int64 `json:"socket"`
	Softnet     *int64 `json:"softnet"`
	NIC         *int64 `json:"nic"`
	Network     *int64 `json:"network"`
	Attribution string `json:"attribution,omitempty"`
}

// UDPInterval is what a UDP row adds.
type UDPInterval struct {
	Duplicates  int64      `json:"duplicates,omitempty"`
	Reordered   int64      `json:"reordered,omitempty"`
	PDV         *Quantiles `json:"pdv,omitempty"`  // of this interval, receiver
	Late        *Quantiles `json:"late,omitempty"` // of this interval, sender
	Refused     int64      `json:"refused,omitempty"`
	Unsent      int64      `json:"unsent,omitempty"`
	SocketDrops *int64     `json:"socket_drops,omitempty"`
}

// Probes is what a probe stream measured (`fullbore delay`, latency under load). Times
// in seconds. A field that needs the other end's help is nil with a plain iperf3 peer.
type Probes struct {
	Kind      string     `json:"kind"`          // "udp-echo", "udp-class" (beside them, in another class), "udp-mtu", "udp-test", "tcp-rr", "tcp-connect", "rpm" (new connections beside a ramped load)
	TOS       int        `json:"tos,omitempty"` // whole TOS byte that they were sent, and answered, with
	Profile   string     `json:"profile"`       // "voice" (20 ms), "1ms", or the spacing
	Spacing   float64    `json:"spacing_s"`
	Size      int        `json:"payload_bytes"`
	Sent      int64      `json:"sent"`
	Answered  int64      `json:"answered"`
	LostUp    *int64     `json:"lost_up"` // did not reach the other end (RFC 6673)
	LostDown  *int64     `json:"lost_down"`
	RoundTrip *Quantiles `json:"round_trip"` // RFC 2681, the reflector's own time taken out
	Up        *OneWay    `json:"up"`
	Down      *OneWay    `json:"down"`
	Clock     *Clock     `json:"clock"`   // nil = no bound on one-way delay
	Connect   *Quantiles `json:"connect"` // TCP handshake
	Rate      *float64   `json:"transactions_per_s,omitempty"`
	Histogram []Bucket   `json:"round_trip_histogram,omitempty"`
	Stamps    string     `json:"stamps,omitempty"` // "kernel" or "user"
	// WakeUp is by how much this host was late with its probes: what a timer of it, and the wait for a core,
	// are wrong by. ClockStep is the least step of its clock that was seen, s. nil = not measured.
	WakeUp    *Quantiles `json:"wakeup_error,omitempty"`
	ClockStep *float64   `json:"clock_step_s,omitempty"` // see WakeUp
	// MTU is of kind "udp-mtu": what was found of each direction, up first.
	MTU []PathMTU `json:"path_mtu,omitempty"`
	// Ramp is of kind "rpm": what was seen in each interval.
	Ramp []RampInterval `json:"ramp,omitempty"`
	// Of the control connection's socket, where nothing answers: what its kernel says of the round trip.
	TCPRTT    *float64 `json:"tcp_rtt_s,omitempty"`     // smoothed
	TCPMinRTT *float64 `json:"tcp_min_rtt_s,omitempty"` // least so far
}

// RampInterval is one interval of a ramped test (M-RPM). Times are s; a list is empty where nothing of the
// kind came.
type RampInterval struct {
	Stop      float64   `json:"ramp_stop_s"`         // since the test began
	Open      int       `json:"open_streams"`        // of each direction, that were sending
	BPS       float64   `json:"ramp_bps"`            // payload of all directions, as this end counted it
	Connects  []float64 `json:"connect_times"`       // handshakes of new connections
	Requests  []float64 `json:"request_times"`       // requests of one byte over them, and their answers
	Trips     []float64 `json:"load_trips"`          // the load's own round trips, one of each sending stream
	PerMinute *float64  `json:"trips_per_minute"`    // of these; nil = nothing came
	Saturated bool      `json:"saturated,omitempty"` // the rate has settled: no further stream begins
}

// OneWay is one direction of a probe stream. Delay is only there with a Clock, and each
// of its values is right within BoundS.
type OneWay struct {
	PDV    *Quantiles `json:"pdv"`
	IPDV   *Quantiles `json:"ipdv"`
	Jitter *Jitter    `json:"jitter"`
	Delay  *Quantiles `json:"delay"`
	BoundS *float64   `json:"bound_s"`
}

// Clock is M-CLOCK's result: how the other end's clock relates to ours.
type Clock struct {
	Source    string   `json:"source"` // "exchange", "ptp", "ntp", "same-host"
	OffsetS   float64  `json:"offset_s"`
	BoundS    float64  `json:"bound_s"`
	SkewPPM   *float64 `json:"skew_ppm"` // nil = not corrected
	Exchanges int64    `json:"exchanges"`
	Causal    bool     `json:"causal"` // no corrected delay was below zero by more than the bound
}

// LayerRate is one direction's delivered rate on every layer (M-BASE), bit/s, and the
// bytes that each packet has there.
type LayerRate struct {
	Direction Direction `json:"direction"`
	L7        float64   `json:"l7_bps"`
	L4        float64   `json:"l4_bps"`
	L3        float64   `json:"l3_bps"`
	L2        float64   `json:"l2_bps"`
	L1        float64   `json:"l1_bps"`
}

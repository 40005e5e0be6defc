package result

// TCPSummary is the extremes of TCP_INFO over a run, from one sample per interval
// (and one at the end). Cwnd and windows in bytes, times in µs.
type TCPSummary struct {
	MaxCwnd    int64   `json:"max_cwnd_bytes"`
	MaxSndWnd  int64   `json:"max_snd_wnd_bytes"` // −1: the kernel does not report it
	MaxRTT     int64   `json:"max_rtt_us"`
	MinRTT     int64   `json:"min_rtt_us"`
	MeanRTT    int64   `json:"mean_rtt_us"` // truncated mean of the samples, as iperf3
	Reorder    int64   `json:"reorder"`     // reordering events (tcpi_reord_seen)
	Congestion string  `json:"congestion,omitempty"`
	Last       TCPInfo `json:"last"` // at the end of the measured time
	// Limited is the share of the measured time in which the sender was busy, and of
	// it held by the receiver's window or its own send buffer (tcpi_busy_time, …).
	BusyShare   *float64 `json:"busy_share,omitempty"`
	RwndShare   *float64 `json:"rwnd_limited_share,omitempty"`
	SndbufShare *float64 `json:"sndbuf_limited_share,omitempty"`
	// SYN is what opened the connection as it arrived; nil = this end dialled, or the kernel kept
	// none. What the other end sent may have been changed on the way.
	SYN *SYN `json:"syn,omitempty"`
}

// SYN is the options of a TCP connection's first segment.
type SYN struct {
	MSS         int  `json:"mss_bytes"`    // largest segment that its sender takes; 0 = not said
	WindowScale bool `json:"window_scale"` // windows above 64 KiB are offered
	SACK        bool `json:"sack"`         // selective acknowledgements are offered
	Timestamps  bool `json:"timestamps"`   // timestamps are offered
}

// TCPInfo is one reading of the kernel's TCP_INFO. Cumulative fields count from the
// connection's start. nil = the kernel does not have it.
type TCPInfo struct {
	MSS           int64    `json:"mss_bytes"`                      // tcpi_snd_mss
	PMTU          int64    `json:"pmtu_bytes"`                     // tcpi_pmtu
	AdvMSS        int64    `json:"advertised_mss_bytes,omitempty"` // tcpi_advmss: what this end announced; 0 = not told
	Cwnd          int64    `json:"cwnd_bytes"`                     // snd_cwnd × snd_mss
	Ssthresh      *int64   `json:"ssthresh_bytes"`                 // nil = infinite
	SndWnd        *int64   `json:"snd_wnd_bytes"`                  // Linux 5.4
	RcvSpace      int64    `json:"rcv_space_bytes"`
	RTT           int64    `json:"rtt_us"`
	RTTVar        int64    `json:"rttvar_us"`
	MinRTT        *int64   `json:"min_rtt_us"`
	Retransmits   int64    `json:"retransmits"`        // tcpi_total_retrans, segments
	RetransBytes  *int64   `json:"retransmit_bytes"`   // tcpi_bytes_retrans
	Lost          int64    `json:"lost_segments"`      // tcpi_lost, now
	Unacked       int64    `json:"unacked_segments"`   // tcpi_unacked, now
	Reordering    int64    `json:"reordering_degree"`  // tcpi_reordering
	ReordSeen     *int64   `json:"reordering_seen"`    // tcpi_reord_seen
	DSACKDups     *int64   `json:"dsack_dups"`         // tcpi_dsack_dups
	DeliveryRate  *int64   `json:"delivery_rate_bps"`  // tcpi_delivery_rate × 8
	AppLimited    bool     `json:"delivery_app_limit"` // delivery rate was limited by the sender's application
	PacingRate    *int64   `json:"pacing_rate_bps"`    // nil = unlimited
	BusyUS        *int64   `json:"busy_us"`
	RwndLimitedUS *int64   `json:"rwnd_limited_us"`
	SndbufLimUS   *int64   `json:"sndbuf_limited_us"`
	DeliveredCE   *int64   `json:"delivered_ce"`
	BytesSent     *int64   `json:"bytes_sent"`
	BytesAcked    *int64   `json:"bytes_acked"`
	BytesReceived *int64   `json:"bytes_received"`
	NotSent       *int64   `json:"not_sent_bytes"`
	SegsOut       int64    `json:"segments_out"`
	SegsIn        int64    `json:"segments_in"`
	ECN           bool     `json:"ecn"`
	SACK          bool     `json:"sack"`
	WScale        [2]uint8 `json:"window_scale"` // send, receive
	Timestamps    bool     `json:"timestamps"`
}

// Buffers are the socket buffers of a stream at the recording end. Linux reports
// twice what an application may use: Granted is what it reports, Usable half of it.
type Buffers struct {
	RequestedBytes int64 `json:"requested_bytes"` // 0 = left to the system
	SndGranted     int64 `json:"snd_granted_bytes"`
	RcvGranted     int64 `json:"rcv_granted_bytes"`
	SndUsable      int64 `json:"snd_usable_bytes"`
	RcvUsable      int64 `json:"rcv_usable_bytes"`
	MSS            int64 `json:"mss_bytes"`
}

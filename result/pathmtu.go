package result

// PathMTU is the largest IP packet that gets through one direction whole (M-PMTU), and what
// happens to larger ones. Sizes are of whole IP packets, bytes.
type PathMTU struct {
	Direction Direction `json:"direction"` // which way the packets went
	MTU       *int      `json:"mtu_bytes"` // nil = nothing passed, or it could not be tried
	// Exact: a packet of that size passed three times of three, and one of a byte more never, or
	// no larger one can leave this host.
	Exact bool `json:"exact"`
	// Link is the interface's MTU at the sending end; nil = not known.
	Link *int `json:"link_bytes"`
	// AtLink: an interface of one of the ends is what bounds the direction, nothing on the way does.
	AtLink bool `json:"at_link"`
	// Told is the MTU that the sending end's system has learned for the path, from an ICMP
	// "too big"; nil = it learned nothing, or does not tell.
	Told *int `json:"told_bytes"`
	// BlackHole: larger packets vanish and nobody says so; nil = not known.
	BlackHole *bool `json:"black_hole"`
	// Segment is the largest TCP segment that the sending end makes, bytes, without what options take;
	// nil = not known.
	Segment *int64 `json:"segment_bytes,omitempty"`
	// Announced is the largest segment (MSS) that the receiving end asked for in its SYN, and Seen what arrived
	// of that, where something on the way changed it; nil = nothing did, or it is not known.
	Announced *int64     `json:"mss_announced_bytes,omitempty"`
	Seen      *int64     `json:"mss_seen_bytes,omitempty"` // see Announced
	Method    string     `json:"method"`                   // "probe": each packet answered by a fullbore; "udp-test": runs of plain datagrams
	Trials    []MTUTrial `json:"trials"`                   // every packet, in order
}

// MTUTrial is one packet of a path MTU search.
type MTUTrial struct {
	Size   int  `json:"packet_bytes"` // of the whole IP packet
	Passed bool `json:"passed"`       // it arrived
	// TooLong: the sending end's own system refused to send it.
	TooLong bool `json:"too_long,omitempty"`
	Told    int  `json:"told_bytes,omitempty"` // MTU that this host's system had learned by then; 0 = none
}

package explain

// terms are words of the trade that outputs and texts use.
var terms = []Topic{
	{
		Word:   "bdp",
		Text:   "Bandwidth-delay product: rate × round-trip time / 8, the bytes that must be on the way to keep a path busy. 1 Gbit/s × 10 ms = 1,250,000 bytes. A window below it caps the rate at window/RTT.",
		Source: "RFC 6349 §3.4", Do: "fullbore bdp 10G 10ms", See: []string{"receive-window", "tcp-rmem"},
	},
	{Word: "bufferbloat", Text: "A queue on the path that is larger than it need be: under load every packet waits in it, the round trip grows to several times that of the empty path, and calls and games suffer while the rate looks fine.", Do: "fullbore load HOST measures it; by hand compare rtt_us under load with min_rtt_us. The cure is a short or managed queue at the bottleneck (fq_codel, cake), or a rate just below it.", See: []string{"rtt_us", "min_rtt_us"}},
	{Word: "window-rate", Text: "What one window carries: window × 8 / RTT. 64 KiB over 50 ms is 10.5 Mbit/s; 2 MiB over 15 ms 1118 Mbit/s.", Do: "fullbore bdp RATE RTT --window 2M does the sum.", See: []string{"bdp"}},
	{
		Word:   "layers",
		Text:   "Where a rate is counted. l7: payload. l4: with the TCP or UDP header. l3: with the IP header. l2: the Ethernet frame with its check sum, at least 64 bytes. l1: with preamble and gap, what the line is busy with. 1000 Mbit/s of 1400-byte UDP payload are 1047 Mbit/s on l1. All our rates are l7 unless they say otherwise.",
		Source: "M-BASE; IEEE 802.3",
	},
	{Word: "slow-start", Text: "A new TCP connection doubles what it has on the way each round trip until it meets loss or its threshold. On a long fast path that takes seconds, during which the rate is low.", Do: "Measure 30 s and longer, or leave the start out (-O 2).", Source: "RFC 9293, RFC 5681", See: []string{"short-run", "omit_s"}},
	{Word: "mser-5", Text: "The rule that finds where a run's warm-up ends: of all cuts within the first half, the one whose rest has the least variance of its mean, on groups of five samples. If that cut is at the very middle, the run is unsteady.", Source: "White 1997, Spratt 1998; M-STEADY", See: []string{"unsteady"}},
	{Word: "mathis", Text: "What loss allows a loss-based congestion control: about 1.22·MSS/(RTT·√p). 1448 bytes, 50 ms and one loss in 10,000 give 28 Mbit/s. It is Reno's; CUBIC gets more where rate × round trip is large, BBR does not go by loss.", Source: "Mathis, Semke, Mahdavi, Ott 1997", See: []string{"loss"}},
	{Word: "goodput", Text: "Payload that arrived, per second: without headers and without what was sent twice.", See: []string{"goodput_bps", "layers"}},
	{Word: "null", Text: "Unknown. A value that could not be measured is null in JSON and a dash on screen, never 0."},
	{Word: "exit-codes", Text: "0 done and passed · 1 a limit or threshold was missed · 2 inconclusive · 3 usage · 4 cannot connect · 5 refused or busy · 6 broke off after it had begun (partial result printed) · 130 interrupted. The drop-ins use their originals' codes."},
	{Word: "self", Text: "As HOST: fullbore starts a server of its own on loopback. It shows how a command works and what this machine can do without a network; it says nothing about any network."},
	{Word: "offload", Text: "Work that the card does instead of the CPU: cutting (TSO), merging (LRO), check sums. GSO and GRO are the kernel's own forms of the first two.", See: []string{"tso", "gro"}},
	{
		Word:   "grade",
		Text:   "What a UDP run's jitter and loss mean for calls: \"good\" within the first bounds, \"usable\" within the second, else \"poor\". Voice: delay variation 10/30 ms, loss 0.5/1 %. Video calls: 10/30 ms, loss 0.1/1 %. The variation is the 99th percentile of packet delay variation, what a playout buffer must hold; where the receiver tells no more (an iperf3), RFC 3550's jitter stands in.",
		Source: "30 ms and 1 %: Cisco's enterprise QoS design guides, voice and interactive video; 10 ms, 0.1 to 0.5 %: rule of thumb of those who run such networks. ITU-T Y.1541 class 0 asks for 50 ms and 0.1 %",
		Do:     "Your own bounds: --grade voice=30ms/1% (one pair: good within, else poor) or voice=10ms/0.5%,30ms/1%.",
		See:    []string{"jitter", "pdv"},
	},
	{Word: "autotuning", Text: "The kernel enlarges socket buffers as the rate grows, up to the third number of tcp_rmem and tcp_wmem. Setting a window (-w) switches it off for that socket. Windows tunes the receive window by its autotuning level.", Do: "Leave -w away, and raise the limits: fullbore bdp RATE RTT prints the lines.", See: []string{"tcp-rmem", "window_bytes"}},
}

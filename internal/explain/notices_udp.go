package explain

// udpNotices are those of UDP tests and probe streams.
var udpNotices = []Topic{
	{
		Word: "fragments",
		Text: "A datagram does not fit one packet of the path, and --allow-fragments lets it be cut into several. If one of them is lost the whole datagram is, so loss reads higher than the path's, and many firewalls drop fragments.",
		Do:   "Leave -l away: the default fills one packet.",
	},
	{
		Word: "icmp-refused",
		Text: "The other host answered a datagram with \"port unreachable\". Such sends are counted as refused, not as lost.",
		Do:   "Its program ended, or a filter rejects the port: fullbore firewall show, at that host.",
		See:  []string{"refused"},
	},
	{
		Word:   "jitter-climbs",
		Text:   "The delay variation grew through the run: the median of the last quarter is more than twice that of the first. A queue on the path filled all the while, because the rate is a little above what is served, or because this class of traffic is starved.",
		Do:     "Run at a lower rate (80 %): if the climb stays, other traffic starves this class; look at the queueing on the path and at the marking (--dscp).",
		Source: "M-DELAY, PDV of the run's quarters", See: []string{"pdv_climb", "bufferbloat"},
	},
	{
		Word: "loss-at-socket",
		Text: "Datagrams had reached the receiving host and were dropped there, because the program's receive buffer was full. The network is not to blame for those.",
		Do:   "At the receiver: a larger buffer (sysctl net.core.rmem_max, -w), more streams, or a lower rate. Then measure again.",
		See:  []string{"socket_drops", "rmem-max", "local_drops"},
	},
	{
		Word: "loss-unknown-owner",
		Text: "Datagrams are missing and the receiving host's own drops are not known (an iperf3 at that end, or a system without the counters): the loss may be the network's or that host's.",
		Do:   "Run `fullbore serve` there, or look at that host: nstat UdpRcvbufErrors.",
		See:  []string{"attribution"},
	},
	{
		Word: "offload-off",
		Text: "Segmentation or coalescing was asked for or planned and could not be used: the kernel, the card or the path does not take it. Datagrams go one by one; the figure is right and costs more CPU.",
		Do:   "Nothing for the figure. Linux has it from 4.18 (sending) and 5.0 (receiving), Windows from 10 2004; some drivers and tunnels refuse it.",
		See:  []string{"batch", "offload"},
	},
	{
		Word: "offload-uncut",
		Text: "Super-packets reached the receiver whole: no network card cut them (loopback, veth, two containers of a host). Rate and CPU cost are better than a path with a card allows.",
		Do:   "Give --offload off for the cost of one packet at a time.",
		See:  []string{"uncut"},
	},
	{
		Word: "pacing-coarse",
		Text: "The sender could not keep its spacing: bursts larger than planned left back to back, or many left more than 1 ms late, because the host ran other things. Short queues on the path lose such bursts.",
		Do:   "A quieter host, --pacing precise, or a lower rate. Loss and jitter of this run are partly the sender's doing.",
		See:  []string{"largest_burst", "late"},
	},
	{
		Word: "no-probes",
		Text: "Probes were wanted beside the load, and the other end does not answer any: it is no fullbore, or one without UDP. The load was measured; how the round trip behaved under it is not known.",
		Do:   "Start fullbore serve there.",
	},
	{
		Word: "probes-limited",
		Text: "The other end answers fewer probes than were asked for: it holds to 1,000 a second and to its test's budget, so that nobody can use it to flood others.",
		Do:   "A wider spacing.",
	},
	{
		Word: "rate-above-link",
		Text: "The rate that was asked for, with all headers, preamble and gaps, is more than the link carries: loss is certain before the test begins. The notice names the largest payload rate that fits.",
		Do:   "1 Gbit/s carries 957.09 Mbit/s of payload in 1472-byte datagrams, 954.98 in 1400-byte ones. Or give the rate on the wire: -b 1G@l1.",
		See:  []string{"layers", "l1_bps"},
	},
	{
		Word: "rate-found",
		Text: "-b auto: the rate of the run was found by a short search, which doubled the rate each half second until datagrams were lost or the sender could do no more, and took 80 % of the last good one. It is a first guess that leaves room, not the path's capacity.",
		Do:   "Raise -b step by step from there to find where loss begins.",
	},
	{
		Word: "sender-limited",
		Text: "The sender did not offer the rate that was asked for: its host, its kernel or its interface held it up. Delivered rate and loss hold for what was offered, and nothing is said about the path above it.",
		Do:   "More streams (-P), larger datagrams (-l), --offload on, or a lower rate. `fullbore doctor` on that host.",
		See:  []string{"sender_limited", "unsent", "refused"},
	},
	{
		Word: "stamps-user",
		Text: "Arrivals were timed by the program, because the kernel gives no time stamps: the program's own waiting for a CPU is part of jitter and delay variation.",
		Do:   "A quiet receiver; read the median and p95 rather than the largest value.",
		See:  []string{"stamps"},
	},
	{
		Word: "tail-uncounted",
		Text: "The other end counts gaps in the sequence numbers only: what was lost after the last datagram that it got is not in its figure. Where this end knows how many were sent, the difference is told.",
		Do:   "Run fullbore serve there: it compares with what was sent.",
		See:  []string{"tail"},
	},
	{
		Word: "udp-64bit-chosen",
		Text: "The test could send more datagrams than a 32-bit counter holds, so 64-bit counters were chosen. An iperf3 older than 3.1 does not know them.",
	},
}

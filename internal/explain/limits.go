package explain

// limits are the values of the field "limit": what held a direction back. The order of the rules is
// that of M-LIMIT: the first that applies names the limit.
var limits = []Topic{
	{
		Word:   "set-rate",
		Text:   "The rate that somebody set was reached: -b, --fq-rate, --max-rate or the server's limit. Nothing is said about the path beyond it.",
		Do:     "Run again without the rate to learn what the path carries.",
		Source: "the test's options",
	},
	{
		Word:   "cpu-sender",
		Text:   "The sending host's processor was the limit: its busiest worker ran or waited for a core 90 % of the time or more, or a quota held it.",
		Do:     "`fullbore doctor` there: offloads, governor, quota. More streams use more cores; -Z and larger blocks cost less.",
		Source: "/proc/self/task/*/schedstat, cgroup cpu.stat; the peer's CPU share where that is all it tells",
		See:    []string{"worker_load", "throttled"},
	},
	{
		Word:   "cpu-receiver",
		Text:   "The receiving host's processor was the limit: its busiest worker ran or waited for a core 90 % of the time or more, or a quota held it.",
		Do:     "`fullbore doctor` there: GRO, queues, interrupts, quota. More streams use more cores.",
		Source: "/proc/self/task/*/schedstat, cgroup cpu.stat; the peer's CPU share where that is all it tells",
		See:    []string{"worker_load", "throttled", "softirq"},
	},
	{
		Word: "application",
		Text: "The sending program was the limit: for a fifth of the time or more its sockets had nothing to send. With a file that is the disk.",
		Do:   "Larger blocks (-l), another disk; for a real application: look at it (top, iostat -x 1; resmon on Windows), not at the network.", Source: "1 − tcpi_busy_time/time",
	},
	{
		Word:   "receive-window",
		Text:   "The receiver's window was full for three tenths of the time or more: the sender had data and was not allowed to send it. The rate is about window/RTT.",
		Do:     "At the receiver: raise the third number of net.ipv4.tcp_rmem to four times the bandwidth-delay product (`fullbore bdp RATE RTT` prints the line), and leave -w away. Or use several streams.",
		Source: "tcpi_rwnd_limited", See: []string{"tcp-rmem", "bdp", "window-scaling"},
	},
	{
		Word:   "send-buffer",
		Text:   "The send buffer was too small for three tenths of the time or more: the path could have taken more than the kernel was allowed to hold.",
		Do:     "At the sender: raise the third number of net.ipv4.tcp_wmem to four times the bandwidth-delay product, and leave -w away.",
		Source: "tcpi_sndbuf_limited", See: []string{"tcp-wmem", "bdp"},
	},
	{
		Word: "sender-limited",
		Text: "UDP: the sender did not offer the rate that was asked for, though its processor was not seen to be full: a queue or buffer of its own, a card, a pause of the host.",
		Do:   "Several streams that share the rate (-P 4 --total-bitrate), larger datagrams, --offload on; `fullbore doctor` there.",
		See:  []string{"sender_limited", "unsent", "refused"}, Source: "sent rate below 99 % of the target (M-UDP)",
	},
	{
		Word: "receive-socket",
		Text: "UDP: datagrams had arrived at the receiving host and its program's socket was full. The path carried more than the program could read.",
		Do:   "At the receiver: a larger buffer (net.core.rmem_max, -w), more streams, larger datagrams.",
		See:  []string{"loss-at-socket", "socket_drops"}, Source: "SO_MEMINFO drops (M-UDP)",
	},
	{
		Word:   "loss",
		Text:   "TCP and UDP. UDP: more than 0.1 % of the datagrams were lost on the way, and not at the receiver's socket. TCP: packet loss was the limit: the measured rate is about what such loss allows a loss-based congestion control, 1.22·MSS/(RTT·√p).",
		Do:     "Lower the rate (-b): if the loss vanishes it is congestion or a policer, if it stays it is errors on the line. Compare with --cc bbr. fullbore diagnose HOST does all three.",
		Source: "Mathis et al. 1997; tcpi_total_retrans, tcpi_rtt", See: []string{"retransmits", "local-drops"},
	},
	{
		Word:   "path-capacity",
		Text:   "The path is full: the rate reaches 95 % of what the slowest known interface carries, and a queue stands (the round trip is half as long again as that of the empty path). That is the best outcome.",
		Do:     "More is not to be had without a faster link. To see how the standing queue hurts others, watch rtt_us, or fullbore load HOST.",
		Source: "interface speeds, tcpi_rtt against tcpi_min_rtt",
	},
	{
		Word: "unknown",
		Text: "The counters do not say what held the rate: no single limit stood out, or the sender's kernel does not tell (an iperf3 at the other end, not Linux, a run too short, other tests at the same time). The closing sentence gives the reason.",
		Do:   "fullbore diagnose HOST varies one thing after another. By hand: fullbore serve at the other end, a longer run, and -P, --window, --cc, direction.",
	},
}

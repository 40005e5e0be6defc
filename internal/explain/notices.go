package explain

// notices are the codes of notices.
var notices = []Topic{
	{Word: "budget-used", Text: "The payload that --max-bytes allows has been moved: further stages of the diagnosis were left out, and what they would have decided is open.", Do: "A larger budget, or --quick."},
	{
		Word: "address-fallback",
		Text: "The host's first address did not answer and the test went to another one. Both are named in the notice: they may be different paths, or different machines.",
		Do:   "Name the address you mean, or choose a family with -4 or -6.",
	},
	{
		Word: "affinity-unavailable",
		Text: "Workers were to be bound to certain CPUs (-A), and this system does not offer that: its scheduler places them.",
		Do:   "Bind the whole program from outside: start /affinity HEX on Windows, cpuset or cpulimit tools elsewhere.",
	},
	{
		Word: "competing-load",
		Text: "A core was full, but not with this test: other programs took the processor. In containers and namespaces both ends share the machine's cores.",
		Do:   "Find them (top; Task Manager), stop them or measure again when they are quiet. Compare the process's own share with the core's.",
		See:  []string{"worker_load", "cpu-sender", "cpu-receiver"},
	},
	{
		Word: "estats-missing",
		Text: "Windows' statistics of each connection (ntttcp -es) were asked for and are not in the result: only Windows keeps them, and only for administrators.",
		Do:   "Run it in an administrator's console.",
		See:  []string{"estats"},
	},
	{
		Word: "overlap-off",
		Text: "Several calls were to be under way at once on each connection (ntttcp -a n), and one at a time is: overlapped calls are Windows', of TCP alone. The next call begins when the one before it has ended; with a send buffer of 0 that is one block a round trip.",
		See:  []string{"worker"},
	},
	{
		Word: "congestion-unavailable",
		Text: "The congestion control that was asked for does not exist on that host; the one named in the notice was used instead.",
		Do:   "modprobe tcp_NAME there, or choose one of net.ipv4.tcp_available_congestion_control.",
	},
	{
		Word: "counter-missing",
		Text: "A counter that would explain the result cannot be read on that host: the kernel is too old, the system has none, or a container hides it. The values are null, not 0.",
		Do:   "Nothing, unless the value matters to you: a newer kernel, or the program outside the container.",
		See:  []string{"counter_missing"},
	},
	{
		Word: "details-thinned",
		Text: "With so many streams an interval carries the kernel's details (TCP_INFO) of the slowest streams only, because reading all of them would disturb the test. Bytes are complete, and so are the details at the end.",
		Do:   "Nothing; fewer streams give all details.",
	},
	{
		Word: "streams-lowered",
		Text: "A profile's number of streams is more than the other end takes: an iperf3 takes 128 in one direction. The test ran with that many.",
		Do:   "fullbore serve at the other end, or -P for a number of your own.",
		See:  []string{"profile-vm"},
	},
	{
		Word: "discard-unavailable",
		Text: "The receiver cannot drop payload inside the kernel and copies it into memory instead, as an application does. The figure is right; it costs about twice the CPU.",
		Do:   "Nothing; where the receiver's processor is full, that copy is part of the reason.",
		See:  []string{"rx"},
	},
	{
		Word: "drain-incomplete",
		Text: "The run was to end when everything sent had arrived (-n, -k, -F), but the receiver stopped acknowledging. What it confirmed is counted, the rest is not.",
		Do:   "Look at the receiver: frozen, out of memory, or the path cut.",
	},
	{
		Word: "events-dropped",
		Text: "Some of the other end's live reports were left out because the control connection was slow; at most one waits, so that reports never disturb the test. Totals are complete.",
		Do:   "Nothing, unless interval curves of the other end are needed: then a longer -i.",
	},
	{
		Word: "foreign-peer",
		Text: "The other end is an iperf3, which tells totals and CPU time only. Its intervals, its kernel's view of the connection and its host's counters are not known.",
		Do:   "Run `fullbore serve` there to see both ends.",
		See:  []string{"extension"},
	},
	{
		Word: "fq-rate-clamped",
		Text: "The kernel took another pacing rate than was asked for.",
		Do:   "Go by the rate in the notice. Older kernels (before Linux 5) end at 34 Gbit/s.",
		See:  []string{"fq_rate_bps"},
	},
	{Word: "ipv4-only", Text: "This system has no IPv6, so the server listens on IPv4 only: clients that dial an IPv6 address are refused.", Do: "Nothing, unless IPv6 is wanted: sysctl net.ipv6.conf.all.disable_ipv6=0, or the kernel's ipv6.disable=0."},
	{
		Word:   "local-drops",
		Text:   "The receiving host itself dropped packets that had arrived, in its card's ring or its kernel's queues. That part of the loss is not the network's. The counters are the whole host's: an upper bound.",
		Source: "interface rx_dropped and rx_missed, /proc/net/softnet_stat",
		Do:     "`fullbore doctor` on that host: ring, queues, backlog, quota.",
		See:    []string{"ring", "backlog", "queues"},
	},
	{
		Word: "mptcp-fallback",
		Text: "Multipath TCP was asked for, but streams run over plain TCP: the other end or a box between does not speak it.",
		Do:   "On Linux: sysctl net.mptcp.enabled=1, and the server must listen with MPTCP (fullbore serve does, iperf3 with -m).",
	},
	{
		Word: "mss-ignored",
		Text: "A segment size was asked for, but this end had agreed on another during the handshake before the option could be set.",
		Do:   "Set -M at the client: it bounds both directions.",
	},
	{
		Word: "no-receiver-count",
		Text: "The receiver's count never came, so the figure is what the sender wrote: it includes what still lay in its buffer or on the way.",
		Do:   "Run again; if it repeats, look why the control connection breaks at the end.",
		See:  []string{"counter_missing"},
	},
	{
		Word: "nothing-arrived",
		Text: "Payload was sent and none arrived, although the control connection works: small packets pass and full ones vanish.",
		Do:   "Suspect the path MTU or a filter: try -M 1200; if that works, a router swallows \"packet too big\". On the sender: sysctl net.ipv4.tcp_mtu_probing=1.",
		See:  []string{"mtu-probing"},
	},
	{Word: "omit-rounded", Text: "The peer knows whole seconds of warm-up only; the notice says what is left out instead of what was asked for.", Do: "Give -O in whole seconds, or run fullbore serve at the other end."},
	{
		Word: "option-refused",
		Text: "The system refused a socket option; the run goes on without it, and what it would have set is the system's default.",
		Do:   "The notice names the option and the reason. Often a privilege is missing (a device to bind to, a priority above 6).",
	},
	{
		Word: "overlap",
		Text: "The server ran other tests at the same time, so the rate is a share of what it and the path can do.",
		Do:   "Repeat alone, or start the server with fullbore serve --exclusive (others are told busy) or --queue (they wait).",
	},
	{Word: "queued", Text: "The server was busy and keeps this test waiting for its turn; the notice says the place in the queue and the expected time.", Do: "Wait, or Ctrl-C, which gives the place up. Without --queue a busy server refuses at once."},
	{
		Word: "rate-limit-exceeded",
		Text: "The test's average rate passed the limit that the server's operator set, so the server ended it.",
		Do:   "Hold the rate below it (-b per stream times streams), or ask the operator.",
	},
	{
		Word: "received-more-than-sent",
		Text: "The receiver counted more than the sender says it wrote in the measured time. With a warm-up that is data of the warm-up arriving after it; without one the ends did not count the same time.",
		Do:   "Take the receiver's figure, and distrust both if the gap is large.",
	},
	{
		Word: "sent-not-received",
		Text: "The sender wrote more than the receiver read before the test ended: it lay in the send buffer or was on its way. It was not lost, and the receiver's figure counts.",
		Do:   "Longer runs make the gap small; -n ends only when everything has arrived.",
	},
	{
		Word: "short-run",
		Text: "The run took less than 30 s, or the rate was still rising when it ended: slow start weighs on the mean, which reads low. The notice says how large slow start's share was, where the intervals show it.",
		Do:   "Run 30 s or longer, or leave the start out with -O. The longer the round trip, the longer the start.",
		See:  []string{"unsteady", "omit_s"},
	},
	{
		Word: "stalled",
		Text: "For half a second or more nothing moved, then it went on (or never did). That is an outage, a retransmission timeout or a host that stood still, not a slow path.",
		Do:   "Compare with the retransmits and the host's throttled and steal shares of those seconds. fullbore diagnose HOST sends small packets beside the load: they tell a path that was away from TCP that waited.",
		See:  []string{"outage", "throttled"},
	},
	{
		Word:   "steal",
		Text:   "The hypervisor gave the processor to others while this machine wanted to run: above 1 % of a core it is told, above 5 % the result is flagged.",
		Source: "/proc/stat steal",
		Do:     "Give the machine dedicated cores, or measure when its neighbours are quiet (vmstat 1, column st).",
		See:    []string{"stolen-time"},
	},
	{
		Word: "tos-altered",
		Text: "The system sends another TOS byte than was asked for: the two lowest bits of a TCP header belong to ECN.",
		Do:   "Give a value divisible by 4 (DSCP × 4).",
	},
	{
		Word: "tos-unsure",
		Text: "This system takes the TOS byte without an error and may still send another: Windows needs a QoS policy.",
		Do:   "Set it by a policy: New-NetQosPolicy -Name fullbore -AppPathNameMatchCondition fullbore.exe -DSCPAction 46. A capture at the other end shows what arrives.",
	},
	{
		Word: "unsteady",
		Text: "The rate kept changing, so its mean describes no lasting state of the path: no cut within the first half of the run leaves a steady rest, or (with few intervals) the intervals differ by more than 20 %.",
		Do:   "Run longer and look at the intervals. Rising to the end: slow start on a long path. Steps: another flow or a token bucket. Noise: radio or a shared host.",
		See:  []string{"short-run", "mser-5"}, Source: "M-STEADY, MSER-5",
	},
	{
		Word: "version-differs",
		Text: "The two ends run different releases. They work together; their figures may be made differently.",
		Do:   "Run the same release on both ends before comparing results.",
	},
	{
		Word: "window-clamped",
		Text: "The kernel gave a smaller socket buffer than was asked for, without a word. The notice names the sysctl that limits it, what was asked and what was given.",
		Do:   "Raise the limit as the notice says, or leave -w away: the kernel's own tuning has another, usually larger limit.",
		See:  []string{"rmem-max", "wmem-max", "window_clamped"},
	},
	{Word: "window-raised", Text: "The kernel gave a larger socket buffer than was asked for, because its least size is larger. So small a window cannot be tested on this system.", Do: "Read the size in the notice as the window that was tested. Linux never gives less than about 4.5 KB to send and 2.3 KB to receive.", See: []string{"snd_granted_bytes", "rcv_granted_bytes"}},
	{Word: "zerocopy-unavailable", Text: "This system cannot send without copying; payload is copied into the kernel as any application's. The figure is right, it costs more CPU.", Do: "Nothing; where the sender's processor is full, that copy is part of the reason.", See: []string{"tx"}},
}

package explain

// practice are the rules of thumb of people who measure for a living, and what they read in
// NTTTCP's tables.
var practice = []Topic{
	{
		Word: "rules", Text: "Rules of thumb for measuring, each a topic of its own.",
		See: []string{"rule-length", "rule-streams", "rule-window", "rule-udp", "rule-reading", "rule-order", "rule-records", "rule-traps"},
	},
	{
		Word: "rule-length",
		Text: "First ten seconds with one stream, to see that it works at all. Then at least 30 s, better 60 s, and 300 s for a record: a short run reads low because of slow start, and only a long one shows thermal throttling and limits that set in late. Three rounds, of which the median counts.",
		Do:   "fullbore test HOST --profile vm does the first and the last; fullbore test HOST -t 60 --rounds 3 what is between.", See: []string{"short-run", "slow-start", "profile-vm"},
	},
	{
		Word: "rule-streams",
		Text: "Streams that usually fill a path: 1 Gbit/s 2 to 8, 10 Gbit/s in a data centre 4 to 32, WAN 8 to 16, Internet 4 to 10, wireless 2 to 6; virtual machines two for each core. One stream gives the lower bound, many the upper. More is not better: each costs CPU time, and 64 often carry less than 16.",
		Do:   "Begin with 1 or with four for each core, double, keep the best, then look between its neighbours. fullbore sweep streams HOST draws the curve and says where its knee is; fullbore diagnose HOST tries more streams where that can tell something.", See: []string{"streams", "profile-vm"},
	},
	{
		Word: "rule-window",
		Text: "Usual socket buffers: LAN the default or 1 MiB, 10 Gbit/s 2 to 4 MiB, WAN 4 to 8 MiB, Internet 1 to 2 MiB; twice the bandwidth-delay product is right for any. The kernel's limits come first. On long paths in this order: sysctls, window, streams, block size. NTTTCP's -b and -l are no window: they are the bytes of one call; its socket buffers are -rb and -sb.",
		Do:   "fullbore bdp 10G 10ms says both numbers and the sysctl lines; fullbore sweep window HOST tries them.", See: []string{"bdp", "rmem-max", "tcp-rmem", "autotuning"},
	},
	{
		Word: "rule-udp",
		Text: "Never without a rate. First 80 % of the link as a baseline, then up to where loss begins; on 1 Gbit/s that is about 950 Mbit/s of payload. 1400 bytes where tunnels (VXLAN, IPsec) may be on the path; small packets (200 bytes) for what routers and firewalls can do. Loss above 0.1 to 0.5 % is the line or its buffers. Jitter above 10 ms is bad for voice; jitter that climbs while TCP looks fine is a starved queue class. NTTTCP sends UDP as fast as the host can unless it is given a rate (-B on Linux, -thr for each thread on Windows), and has no loss figure: its sender counts what the host took, and loss is what the two reports differ by.",
		Do:   "fullbore test HOST -u -b 80% says what was lost and by whom; fullbore udpmax HOST finds where loss begins.", See: []string{"layers", "grade", "loss"},
	},
	{
		Word: "rule-reading",
		Text: "Rate and CPU together: high rate and low CPU is healthy; low rate and high CPU is the host (offloads, driver, RSS, one core with all interrupts); low rate and low CPU is the network (policing, line quality, window). Retransmissions should be near 0: lower the rate, and if they vanish it was congestion, if they stay it is errors.",
		Do:   "fullbore diagnose HOST does this with both ends' counters, and proves it by changing one thing.", See: []string{"retransmits", "cpu-sender", "cpu-receiver", "policer"},
	},
	{
		Word: "rule-order",
		Text: "Where to look first: negotiated speed, CPU, window, then a rate limit in the middle; physical, system, protocol, policy. Layer 1 before all else: a cable that was changed may have left 100 Mbit/s behind. Switches and routers on the way: their counters of errors and drops, by interface.",
		Do:   "fullbore doctor looks at this host's part, at each end; fullbore diagnose HOST at the rest.", See: []string{"link-speed", "duplex", "link-negotiated-low"},
	},
	{
		Word: "rule-records",
		Text: "Keep what was measured with its surroundings: machines, settings, result, what was changed since; in file names the date, the link and the kind of test. Four groups before a hand-over: TCP single, TCP many, UDP full load, UDP small packets; both directions, both ends' reports. Compare month by month, and plan from the trend.",
		Do:   "Every result is kept with both ends' facts and settings (fullbore history; --label and --note name it); --out DIR writes files with date, link and test in their names.", See: []string{"label", "note"},
	},
	{
		Word: "rule-traps",
		Text: "What makes a measurement be about something else: a router or firewall as the other end (that is its management CPU: measure host, device, host); accelerators and proxies on the path; link aggregation that puts both directions on one member; two virtual machines on one host (that is the virtual switch); an imitated card (e1000) instead of virtio or VMXNET3; one queue that takes all interrupts; NUMA distance between card and CPU; a hypervisor that gives the CPU to others; jumbo frames at one side only; a backup at the same time; different tool versions at the ends; Wi-Fi, which is shared and half duplex; a receiver that is pinned to one CPU by the second field of NTTTCP's -m.",
		See:  []string{"same-machine", "emulated", "single-queue", "numa", "stolen-time", "competing-traffic", "version-differs"},
	},
	{
		Word: "profile-vm",
		Text: "Azure's procedure for virtual machines: one sender, two streams for each of its cores, ten seconds with one stream to see that it works, then 300 s. A flag that is given (-P, -t, --down …) wins over the profile's. Azure's limits are for what a machine sends, so the other direction is another test.",
		Do:   "fullbore test HOST --profile vm; with --down the other direction.", See: []string{"rule-length", "rule-streams"},
		Source: "learn.microsoft.com, \"Test VM network throughput by using NTTTCP\"",
	},
	{
		Word: "cycles-per-byte",
		Text: "NTTTCP's cost of the transfer: clock × cores × busy share × seconds / bytes. It counts the whole machine, at the nominal clock of its first CPU, so other programs and frequency scaling are in it. Lower is better; compare it on one machine only.",
		Do:   "cpu_s_per_gb is this program's own CPU time per 10⁹ bytes: nobody else's work is in it.", See: []string{"cpu_s_per_gb", "cpu_mhz", "host_totals"},
	},
	{
		Word: "frame-size",
		Text: "NTTTCP's \"Avg Frame Size\": bytes of payload divided by packets that the machine sent (sender) or received (receiver). Packets of all programs and bare acknowledgements count, and with segmentation offload a \"packet\" is up to 64 KiB: it is not the size of frames on the wire. A value far below the MSS at a receiver means small or many foreign packets.",
		Do:   "mss_bytes and pmtu_bytes are what the connection uses.", See: []string{"mss_bytes", "pmtu_bytes", "tso", "packet_counts"},
	},
	{
		Word: "packets-per-interrupt",
		Text: "Packets received (NTTTCP for Linux: received and sent) for each interrupt: how much the card and the driver moderate. Near 1 at a high rate, each packet wakes the CPU; hundreds, latency pays for throughput. It is of the whole machine, or of the interrupts whose name was given.",
		See:  []string{"interrupts", "interrupt-spread", "dpcs"},
	},
	{
		Word: "ntttcp-units",
		Text: "NTTTCP for Windows counts binary: KB/s and MB/s are 1024 and 1,048,576 bytes, Bytes(MEG) likewise; its XML's mbps is 10⁶ bits. NTTTCP for Linux counts decimal: Gbps is 10⁹ bits, MB in its XML 10⁶ bytes. 1119.729 MB/s on Windows is 9.393 Gbps on Linux.",
		See:  []string{"goodput_bps"},
	},
	{
		Word: "ntttcp-ports",
		Text: "What an NTTTCP receiver listens on. Data: 5001 upwards (-p), one port for each of -P or of -m's first number, TCP or UDP. Linux also 5000, one below, to agree on the test; Windows also 6001 upwards, 1000 above each data port, for one byte each way. Both are TCP for UDP tests too. On Windows -P is the base port, not a number of ports.",
		Do:   "fullbore firewall prints the rules that open them.", See: []string{"base_port", "port-missing", "no-data"},
	},
}

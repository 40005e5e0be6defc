package explain

// pathFields are the fields of the methods about delay and packets: mtu, load, rfc6349, y1564.
var pathFields = []Topic{
	{Word: "path_mtu", In: []string{"Probes", "Report"}, Text: "The largest IP packet that passes whole, each direction apart, up first.", Source: "M-PMTU (RFC 4821, RFC 8899)", See: []string{"mtu_bytes", "black_hole"}},
	{Word: "mtu_bytes", In: []string{"PathMTU"}, Unit: "bytes", Text: "The largest IP packet (headers counted, Ethernet's not) that passed whole; null = none of any size did. The payload of a UDP datagram is 28 less (IPv6: 48), TCP's segment 40 less (IPv6: 60)."},
	{Word: "exact", In: []string{"PathMTU"}, Text: "A packet of that size passed three times, and one of a byte more never did in three (or this host's interface takes no more).", Do: "False: many packets are lost, or the search was cut short. Search again."},
	{Word: "link_bytes", In: []string{"PathMTU"}, Unit: "bytes", Text: "MTU of the sending end's interface; null = not known."},
	{Word: "at_link", In: []string{"PathMTU"}, Text: "What bounds the direction is an interface of one of the ends; nothing on the way is narrower."},
	{Word: "told_bytes", In: []string{"PathMTU", "MTUTrial"}, Unit: "bytes", Text: "The MTU that the sending end's system has learned for the path from a router's ICMP \"too big\" (in the last ten minutes); null = nothing was said.", Source: "IP_MTU of a connected socket", See: []string{"black_hole"}},
	{
		Word: "black_hole", In: []string{"PathMTU"}, Text: "Larger packets vanish and no ICMP \"too big\" comes, so a sender does not learn of it: connections open, and hang with the first full segment.",
		Do: "Let ICMP through (type 3 code 4; ICMPv6 type 2) where it is filtered; or clamp the MSS on the router; or net.ipv4.tcp_mtu_probing=1 at the senders.", See: []string{"mtu-black-hole"},
	},
	{Word: "method", In: []string{"PathMTU"}, Text: "How it was found: \"probe\", single packets that a fullbore answered; \"udp-test\", one short UDP test a size, towards an iperf3."},
	{Word: "trials", In: []string{"PathMTU"}, Text: "Every packet of the search, in order (udp-test: every test)."},
	{Word: "packet_bytes", In: []string{"MTUTrial"}, Unit: "bytes", Text: "Size of the whole IP packet that was tried."},
	{Word: "passed", In: []string{"MTUTrial"}, Text: "It arrived: it was answered, or counted at the other end."},
	{Word: "too_long", In: []string{"MTUTrial"}, Text: "The sending end's own system refused to send it: its interface takes no more."},

	{Word: "load", In: []string{"Report"}, Text: "Of load: round trips of small packets on the empty path, beside a load, and afterwards.", Source: "M-DELAY, M-RPM"},
	{Word: "empty", In: []string{"Load"}, Text: "Round trip of small packets before the load; null = the other end answers no probes."},
	{Word: "empty_after", In: []string{"Load"}, Text: "The same after the load: it should have come back."},
	{Word: "empty_least_s", In: []string{"Load"}, Unit: "seconds", Text: "The least round trip of the empty path, from probes or, without them, as TCP saw it on the control connection."},
	{Word: "told_by", In: []string{"Load"}, Text: "Of load: \"probe\", small packets that a fullbore answered; \"tcp-info\", the sending kernel's round trips of the load itself. Of a bandwidth: \"given\" or \"measured\"."},
	{Word: "worst_rise_s", In: []string{"Load"}, Unit: "seconds", Text: "queue_s of the direction in which small packets waited longest.", See: []string{"queue_s"}},
	{Word: "letter", In: []string{"Load", "LoadedWay"}, Text: "Grade of the delay that a load adds (95th percentile): A+ below 5 ms, A 30, B 60, C 200, D 400, else F.", Source: "the classes of DSLReports' bufferbloat grades", See: []string{"bufferbloat"}},
	{Word: "loaded", In: []string{"LoadedWay"}, Text: "Which directions carried a load: \"up\", \"down\", \"both\"."},
	{Word: "way", In: []string{"LoadedWay"}, Text: "Which direction the figures are of: \"up\" from client to server, \"down\" the other."},
	{Word: "loaded_bps", In: []string{"LoadedWay"}, Unit: "bit/s of payload", Text: "What the load brought through in this direction."},
	{Word: "loaded_round_trip", In: []string{"LoadedWay"}, Text: "Round trips of small packets beside the load."},
	{Word: "rise", In: []string{"LoadedWay"}, Text: "How much longer small packets took in this direction than on the empty path: their delay variation, and what the least of it lies above the empty path's when one direction alone was full.", Source: "RFC 5481 PDV; without probes TCP_INFO's round trips less the least"},
	{Word: "queue_s", In: []string{"LoadedWay"}, Unit: "seconds", Text: "Depth of the standing queue in time: the 95th percentile of rise.", See: []string{"queue_bytes"}},
	{Word: "queue_bytes", In: []string{"LoadedWay"}, Unit: "bytes of IP packets", Text: "Depth of the standing queue: queue_s at the rate that came through, with headers."},
	{
		Word: "rpm", In: []string{"LoadedWay"}, Text: "Responsiveness while the path was full.", Source: "M-RPM, after draft-ietf-ippm-responsiveness-09",
		Do: "Do not compare it with numbers made over HTTP (networkQuality, Goresponsiveness): there is no TLS and no server's work in it.",
	},
	{Word: "rpm_kind", In: []string{"RPM"}, Text: "\"rpm-raw\": from round trips of datagrams and from what the sender's kernel measured on the load's connections, not from requests over HTTP, and with a fixed number of connections."},
	{Word: "per_minute", In: []string{"RPM"}, Unit: "round trips per minute", Text: "The mean of foreign and self, or the one that is known."},
	{Word: "foreign_per_minute", In: []string{"RPM"}, Unit: "round trips per minute", Text: "Of small packets that share the path with the load, not its connections: 60 s over the mean of the values at or below their 95th percentile."},
	{Word: "self_per_minute", In: []string{"RPM"}, Unit: "round trips per minute", Text: "Of the load's own connections, from the round trips that their sender's kernel measured (TCP_INFO). What waits in the sender's own send buffer is not in it."},
	{Word: "class", In: []string{"RPM"}, Text: "The draft's word: poor below 300, fair below 1,000, good below 6,000, else excellent."},
	{Word: "confidence", In: []string{"RPM"}, Text: "\"low\": fewer than four intervals; \"medium\": rate or round trip did not settle (standard deviation of the last four moving averages above 5 %); \"high\".", Do: "A longer load: -t 30."},
}

// pathNotices are theirs.
var pathNotices = []Topic{
	{Word: "mtu-unfinished", Text: "The search for the path MTU was cut short by its time: round trips are very long, or much is lost. The bounds so far are told, and exact is false.", See: []string{"exact"}},
	{Word: "mtu-one-way", Text: "The other end cannot send packets of its own for the search, so the path MTU is known for one direction only.", Do: "Run fullbore serve at the other end.", See: []string{"path_mtu"}},
	{Word: "mss-clamped", Text: "Something on the way rewrote the largest segment size in a SYN or its answer, as routers in front of a tunnel do. TCP is kept below the smaller MTU by it; UDP is not.", Source: "the SYN as it arrived (TCP_SAVE_SYN) against what was announced"},
	{
		Word: "mtu-black-hole", Text: "Packets above a size vanish without an ICMP \"too big\".",
		Do: "See black_hole.", See: []string{"black_hole", "mtu-hole"},
	},
	{Word: "load-by-tcp", Text: "Delay under load was told by TCP's own round trips where this end sends, because the other end answers no probes. They lack what other flows would feel, and nothing is known of the way back.", Do: "Run fullbore serve at the other end.", See: []string{"load"}},
	{Word: "deep-queue", Text: "A load adds 60 ms or more: the queue in front of the bottleneck is much deeper than TCP needs.", Do: "fq_codel or cake at the bottleneck, or a shaper just below its rate in front of it.", See: []string{"bufferbloat", "queue_bytes"}},
}

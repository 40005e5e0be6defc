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
}

package explain

// findingFields are those of what a method found.
var findingFields = []Topic{
	{Word: "steered", In: []string{"Test"}, Text: "The sender's rate followed the receiver's feedback while the test ran (fullbore capacity); bitrate_bps was only where it began."},
	{Word: "findings", In: []string{"Report"}, Text: "What a method found (udpmax, capacity, model, rfc2544), one entry for each direction and thing looked for, with its figures by name."},
}

// rateNotices are those of the searches for a rate.
var rateNotices = []Topic{
	{
		Word: "max-load",
		Text: "The greatest rate that the search tried is what TCP reached in a short test, because no link speed is known and none was given. A path that TCP cannot fill (losses, small windows) may carry more.",
		Do:   "Name the greatest rate with --max-rate.", See: []string{"at_max_load"},
	},
	{
		Word: "inconsistent-trials",
		Text: "A trial lost more than the goal although one at a higher rate did not. On a path that others use, or with a wireless part, that is expected; elsewhere something else disturbed the trial.",
		Do:   "Use a preset that grants bad trials (default, csit), or measure when the path is idle.",
	},
	{
		Word: "sender-paused",
		Text: "The sending host did not run the sender in time for a part of what it was to send. What is late by more than 2 ms is left out, not made up in a burst that a short queue would lose; so the lower bound of a search is what was really sent, and lies so much below the load that was asked for.",
		Do:   "Measure while the sending host has a core to spare: then both bounds are as close as the preset says.",
		See:  []string{"steady", "unsent"},
	},
	{
		Word: "no-bursts",
		Text: "Whether a queue on the path takes a whole TCP window at once was not tested, because the window is more datagrams than one burst can be.",
	},
	{
		Word: "shortened",
		Text: "The procedure was made with shorter times and fewer repeats than its standard asks for: good for a look, not for a record.",
		Do:   "Leave --quick away, or give it more time (-t).",
	},
	{
		Word: "syn-retries",
		Text: "Connections came about, but only because their first packets were sent again a second later: they were dropped on the way, or by the listener's full queue. Users of a service feel it as a second of waiting long before any connection fails.",
		Do:   "At the listener: net.core.somaxconn and the program's own backlog; nstat -az TcpExtListenOverflows TcpExtListenDrops.", See: []string{"syn_again"},
	},
	{
		Word: "sizes-left-out",
		Text: "Of RFC 2544's frame sizes the smallest was left out: IPv6's header is longer, and a datagram of this program does not fit into what is left.",
		Do:   "-4 measures it over IPv4.",
	},
	{
		Word: "recovery-unknown",
		Text: "How soon a path loses nothing any more after an overload was not measured: the overload has to end while other datagrams flow, and a server that takes one test at a time cannot have both.",
		Do:   "Run fullbore serve there.",
	},
	{
		Word: "not-steered",
		Text: "The rate of a capacity test follows the receiver's feedback only between two fullbores. To any other peer short tests at doubling rates, and a few just above what came through, stand in for it.",
		Do:   "Run fullbore serve there.",
	},
	{
		Word: "steering-silent",
		Text: "The end that steers, or the one whose feedback it needs, was not heard for a second while a steered test ran: the sender went down to one datagram every 50 ms, so that a dead path is not flooded.",
		Do:   "Look for an outage of the path; after three seconds the test ends.",
	},
	{
		Word: "loss-owner",
		Text: "The other end is not a fullbore: what its host dropped itself, at its socket or its card, cannot be told from what the path lost, so the rate that is found may be the host's.",
		Do:   "Run fullbore serve there.", See: []string{"loss-unknown-owner"},
	},
}

// rateFlags bound the truth of a finding.
var rateFlags = []Topic{
	{Word: "burst_unlimited", Text: "The longest burst that was tried lost nothing: the buffer is not what limits bursts."},
	{Word: "curve_host_limited", Text: "Part of a loss curve is the hosts': the sender did not reach the upper loads, or the receiving socket dropped what had arrived.", See: []string{"sender_limited", "local_drops"}},
	{Word: "not_steered", Text: "Short tests at fixed rates stood in for a steered one, since the other end cannot be steered with.", See: []string{"not-steered"}},
	{Word: "at_max_load", Text: "The greatest rate that was allowed was carried: the path may carry more.", See: []string{"max-load"}},
	{Word: "host_limited", Text: "The upper bound is that of an end, whose sender did not reach the rate or whose socket dropped what had arrived; it says nothing about the path.", See: []string{"sender_limited", "local_drops"}},
	{Word: "irregular", Text: "The search ended by time, by budget or by a failure before its bounds were as close as they should be: the bounds are those that were reached."},
}

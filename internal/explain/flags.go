package explain

// flags are the validity flags of M-BASE: a number with one is printed with it.
var flags = []Topic{
	{Word: "sender_limited", Text: "The sender did not offer the rate that was asked for, so the result says nothing about the path above it.", Do: "See the notice of that name.", See: []string{"sender-limited"}},
	{Word: "receiver_cpu", Text: "A core of the receiving host was full in a fifth of the intervals or more: the figure may be the host's, not the network's.", See: []string{"cpu-receiver"}},
	{Word: "sender_cpu", Text: "A core of the sending host was full in a fifth of the intervals or more: the figure may be the host's, not the network's.", See: []string{"cpu-sender"}},
	{Word: "local_drops", Text: "The receiving host dropped packets that had reached it: part of the loss is its own.", See: []string{"local-drops"}},
	{Word: "clock_unsynced", Text: "The clocks of the two ends have no common bound: one-way delays are not known.", Do: "Round trips and delay variation hold all the same. chrony or PTP at both ends gives a bound.", See: []string{"clock-sync"}},
	{Word: "clipped_interval", Text: "An interval was cut short or its report came late, and it is part of a figure.", Do: "A longer run, or longer intervals (-i)."},
	{Word: "too_few_rounds", Text: "Fewer rounds than the statement needs: there is a range, but no confidence interval.", Do: "--rounds 6 and more: fewer cannot reach 95 %.", See: []string{"rounds", "ci_low"}},
	{Word: "unsteady", Text: "The rate was not steady over the run, so its mean describes no lasting state.", Do: "fullbore diagnose HOST says what it moves with.", See: []string{"short-run"}},
	{Word: "tool_limit_near", Text: "The result is close to what this program reaches on this host without a network: the host may be the limit.", Do: "fullbore test self shows what this host reaches alone; several streams, or a faster machine.", See: []string{"tool-limit"}},
	{Word: "window_clamped", Text: "The kernel gave a smaller window than was asked for.", See: []string{"window-clamped"}},
	{Word: "counter_missing", Text: "A counter that the result rests on was not available: the receiver's count, or a kernel value.", Do: "The notices say which; fullbore serve at the other end brings its counters.", See: []string{"counter-missing", "no-receiver-count"}},
	{Word: "steal", Text: "A hypervisor took more than 5 % of a core from one of the machines: its figures are those of a machine that was not always running.", Do: "Reserved cores, or another host.", See: []string{"stolen-time"}},
	{Word: "overlap", Text: "Other tests ran at the server at the same time: the rate is a share.", Do: "Repeat alone, or serve --exclusive."},
}

package explain

// flags are the validity flags of M-BASE: a number with one is printed with it.
var flags = []Topic{
	{Word: "sender_limited", Text: "The sender did not offer the rate that was asked for, so the result says nothing about the path above it."},
	{Word: "receiver_cpu", Text: "A core of the receiving host was full in a fifth of the intervals or more: the figure may be the host's, not the network's.", See: []string{"cpu-receiver"}},
	{Word: "sender_cpu", Text: "A core of the sending host was full in a fifth of the intervals or more: the figure may be the host's, not the network's.", See: []string{"cpu-sender"}},
	{Word: "local_drops", Text: "The receiving host dropped packets that had reached it: part of the loss is its own.", See: []string{"local-drops"}},
	{Word: "clock_unsynced", Text: "The clocks of the two ends have no common bound: one-way delays are not known.", See: []string{"clock-sync"}},
	{Word: "clipped_interval", Text: "An interval was cut short or its report came late, and it is part of a figure."},
	{Word: "too_few_rounds", Text: "Fewer rounds than the statement needs: there is a range, but no confidence interval."},
	{Word: "unsteady", Text: "The rate was not steady over the run, so its mean describes no lasting state.", See: []string{"short-run"}},
	{Word: "tool_limit_near", Text: "The result is close to what this program reaches on this host without a network: the host may be the limit."},
	{Word: "window_clamped", Text: "The kernel gave a smaller window than was asked for.", See: []string{"window-clamped"}},
	{Word: "counter_missing", Text: "A counter that the result rests on was not available: the receiver's count, or a kernel value."},
	{Word: "steal", Text: "A hypervisor took more than 5 % of a core from one of the machines: its figures are those of a machine that was not always running."},
	{Word: "overlap", Text: "Other tests ran at the server at the same time: the rate is a share."},
}

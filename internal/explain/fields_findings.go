package explain

// findingFields are those of what a method found.
var findingFields = []Topic{
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
		Word: "loss-owner",
		Text: "The other end is not a fullbore: what its host dropped itself, at its socket or its card, cannot be told from what the path lost, so the rate that is found may be the host's.",
		Do:   "Run fullbore serve there.", See: []string{"loss-unknown-owner"},
	},
}

// rateFlags bound the truth of a finding.
var rateFlags = []Topic{
	{Word: "at_max_load", Text: "The greatest rate that was allowed was carried: the path may carry more.", See: []string{"max-load"}},
	{Word: "host_limited", Text: "The upper bound is that of an end, whose sender did not reach the rate or whose socket dropped what had arrived; it says nothing about the path.", See: []string{"sender_limited", "local_drops"}},
	{Word: "irregular", Text: "The search ended by time, by budget or by a failure before its bounds were as close as they should be: the bounds are those that were reached."},
}

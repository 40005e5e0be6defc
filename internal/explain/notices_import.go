package explain

// importNotices are those of documents of other programs that were read in.
var importNotices = []Topic{
	{
		Word: "iperf3-warning",
		Text: "A warning that iperf3 itself printed, from a text that was read in (fullbore import); its own words.",
		Do:   "Read it as iperf3's; the figures stand beside it as the file has them.",
		See:  []string{"imported"},
	},
}

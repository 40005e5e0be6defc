package explain

// eventFields are the fields of the lines of --json-stream.
var eventFields = []Topic{
	{Word: "kind", In: []string{"Event", "Report", "Probes"}, Text: "Of a report: the command that made it, \"test\" for both directions or several hosts. Of a probe stream: \"udp-echo\" (datagrams that the other end answers), \"udp-test\" (a plain UDP test, nothing comes back), \"tcp-rr\" (request and response on one connection) or \"tcp-connect\" (handshakes). Of an event: what the line tells: connected, start, host, interval, notice, probes, finish, error, conclusion. The object of that name on the line holds it (connected and start: \"head\")."},
	{Word: "seq", In: []string{"Event"}, Text: "Number of the event at its end, from 1. A gap means that lines were left out.", See: []string{"events-dropped"}},
	{Word: "t_s", In: []string{"Event"}, Unit: "seconds", Text: "That end's own monotonic clock since its test began. Clocks of two ends are not comparable."},
	{Word: "head", In: []string{"Event"}, Text: "Everything known so far about the run, without its intervals and notices."},
	{Word: "interval", In: []string{"Event"}, Text: "One report of one end; see \"intervals\"."},
	{Word: "notice", In: []string{"Event"}, Text: "One notice; see \"notices\"."},
	{Word: "probes", In: []string{"Event", "Run"}, Text: "What streams of small requests measured: round trips, and with a fullbore at the other end each direction for itself. In an event the figures of one stream, which replace earlier ones of its kind and profile."},
	{Word: "finish", In: []string{"Event"}, Text: "The end of the test: the totals of both ends."},
	{Word: "conclusion", In: []string{"Event"}, Text: "What looking at the whole run adds: summary, flags, limits, next step. The last line."},
}

package explain

// eventFields are the fields of the lines of --json-stream.
var eventFields = []Topic{
	{Word: "kind", In: []string{"Event", "Report"}, Text: "Of a report: the command that made it, \"test\" for both directions or several hosts. Of an event: what the line tells: connected, start, host, interval, notice, finish, error, conclusion. The object of that name on the line holds it (connected and start: \"head\")."},
	{Word: "seq", In: []string{"Event"}, Text: "Number of the event at its end, from 1. A gap means that lines were left out.", See: []string{"events-dropped"}},
	{Word: "t_s", In: []string{"Event"}, Unit: "seconds", Text: "That end's own monotonic clock since its test began. Clocks of two ends are not comparable."},
	{Word: "head", In: []string{"Event"}, Text: "Everything known so far about the run, without its intervals and notices."},
	{Word: "interval", In: []string{"Event"}, Text: "One report of one end; see \"intervals\"."},
	{Word: "notice", In: []string{"Event"}, Text: "One notice; see \"notices\"."},
	{Word: "finish", In: []string{"Event"}, Text: "The end of the test: the totals of both ends."},
	{Word: "conclusion", In: []string{"Event"}, Text: "What looking at the whole run adds: summary, flags, limits, next step. The last line."},
}

package explain

// reportFields are those of the document of several runs.
var reportFields = []Topic{
	{Word: "inputs", In: []string{"Report"}, Text: "The command's arguments as the user typed them."},
	{Word: "asked_for", In: []string{"Report"}, Text: "What of the user's words bears on the measurement, in the order of the names: flags and words without the host, the port, and what only prints or keeps. Reports of one command with the same list are one series of the history; absent where nothing was asked for, and of documents of others.", See: []string{"inputs"}},
	{Word: "runs", In: []string{"Report", "LossPeriods"}, Text: "Of a report: every run that it rests on, whole, in the order in which they were made. Of a pattern of loss: how many times one or more datagrams in a row were missing.", Source: "RFC 3357 loss periods"},
	{Word: "curve", In: []string{"Report"}, Text: "The figures of a sweep: what was varied against the rate it gave. Absent in other reports."},
	{Word: "x", In: []string{"Point"}, Text: "What was varied, in the unit that the point's label says."},
	{Word: "y", In: []string{"Point"}, Unit: "bit/s", Text: "Payload rate that was measured there."},
	{Word: "items", In: []string{"Report"}, Text: "What was checked against a limit (--expect), passed or not."},
	{Word: "result", In: []string{"Item", "Criterion", "Check", "Swap", "CaptureFlow"}, Text: "\"pass\", \"fail\" or \"inconclusive\"; the last when the figure to compare is not known.", Do: "Exit codes say the same: 0, 1 and 2."},
	{Word: "reasons", In: []string{"Item"}, Text: "What was expected and what was measured, one sentence each."},
}

// historyFields are those that the history and its importers fill.
var historyFields = []Topic{
	{Word: "tags", In: []string{"Report"}, Text: "Words of the user to find a result by (--tag, fullbore tag). One with the tag \"keep\" is never pruned."},
	{Word: "hops", In: []string{"Run"}, Text: "The way from the recording end to the other one: who answers for each station, the nearest first. Absent when it was not looked for or cannot be seen.", Source: "UDP datagrams with small TTL and the ICMP messages that they bring (Linux, IP_RECVERR; needs no rights)", Do: "Compare it with an earlier run's: a changed way explains a changed rate. A balancer may change single hops by itself."},
	{Word: "ttl", In: []string{"Hop"}, Text: "How many stations away, from 1."},
	{Word: "addr", In: []string{"Hop"}, Text: "Address that answered for the station; absent when none did, which is no fault of the path."},
	{Word: "imported", In: []string{"Run"}, Text: "The run was not made by this program but read from another one's file (fullbore import). Absent in runs of its own."},
	{Word: "format", In: []string{"Imported"}, Text: "What the file is: \"iperf3-json\", \"iperf3-stream\", \"iperf3-text\", \"ntttcp-xml\", \"ntttcp-json\", \"ntttcp-text\", \"ntttcp-windows-xml\", \"ntttcp-windows-text\"."},
	{Word: "rounded", In: []string{"Imported"}, Text: "The file has rounded figures only, as texts do: amounts and times of the run are values that round to every figure shown, exact within half a unit of the last digit there.", Do: "Compare it with care: 1.10 Gbit/s may be 1.095 or 1.105."},
	{Word: "figures", In: []string{"Imported"}, Text: "Of an output of NTTTCP: its figures by the file's own names, as they stand there. Nearly all have a place elsewhere in the run, too; what has none is here alone."},
}

// runFields are the fields of a run as a whole: its head, sums and conclusions.
var runFields = []Topic{
	{
		Word: "schema", In: []string{"Run", "Report"},
		Text: "Version of the JSON form. It counts incompatible changes only: fields are added without raising it, and never removed or given another meaning.",
		Do:   "A reader accepts any document whose schema it knows and ignores fields it does not know.",
	},
	{
		Word: "id", In: []string{"Run", "Report", "Stream", "StreamInterval", "Item"},
		Text:   "Of a run or report: its identifier, a ULID, which sorts by time. Of a stream: the protocol's number, the same at both ends (iperf3 counts 1, 3, 4, …). Of an item: a stable word for what was checked.",
		Source: "ULID specification; iperf3 iperf_add_stream (the second stream is number 3)",
	},
	{
		Word: "tool", In: []string{"Run", "Host", "Report"},
		Text: "The program and its release: of a run, the one that recorded the document; of a host, the one that ran there.",
		Do:   "Compare results of the same release only, or say that they differ.",
		See:  []string{"version-differs"},
	},
	{Word: "name", In: []string{"Tool", "Host", "NIC", "Disk", "NICDelta", "Grade", "EStatsStructure", "EStatsProperty", "Stage", "Value", "Figure", "Finding"}, Text: "Name of the program, host, interface, file, use (voice, video), structure or field that the surrounding object describes."},
	{Word: "version", In: []string{"Tool", "Wire"}, Text: "Release of the program. Under \"wire\" it is the whole string this end shows to iperf3 peers, for example \"iperf 3.21\"."},
	{
		Word: "end", In: []string{"Run", "Interval", "Notice", "Event", "Milestone", "Check", "InterfaceTotal"},
		Text: "Which side the surrounding object belongs to: \"client\" (it opened the control connection) or \"server\". Of a run: the side that recorded it.",
		Do:   "Times of two ends are on two clocks; compare differences, not readings.",
	},
	{Word: "protocol", In: []string{"Run"}, Text: "The conversation by which the test was agreed on: \"iperf3\" or \"ntttcp\". Between two fullbores it carries an extension, see \"extension\"."},
	{
		Word: "started", In: []string{"Run", "Report"}, Unit: "date and time, UTC",
		Text: "Wall clock when the test began. It is a label: no rate or duration is computed from it.",
	},
	{Word: "label", In: []string{"Run", "Report", "Point"}, Text: "A name for the run or report: the user's (--label), or of a run that of the stage of a diagnosis or profile. Of a point of a curve: what was varied and how far."},
	{Word: "note", In: []string{"Run", "Report", "Verdict"}, Text: "Of a run or report: a remark that the user added (--note, fullbore note). Of a verdict: true when it is worth knowing beside the limit, but is not what holds the rate back."},
	{Word: "test", In: []string{"Run"}, Text: "What was agreed to be done: transport, direction, streams, length and every option. 0, an empty word or absence means that the option was not set."},
	{Word: "hosts", In: []string{"Run"}, Text: "Facts about both machines. The other end's are known only when it is a fullbore and tells them.", See: []string{"foreign-peer"}},
	{
		Word: "client", In: []string{"Hosts", "CPUs", "HostTotals"},
		Text: "The end that opened the control connection; null when nothing is known about it.",
	},
	{
		Word: "server", In: []string{"Hosts", "CPUs", "HostTotals"},
		Text: "The end that was connected to; null when nothing is known about it.",
	},
	{
		Word: "streams", In: []string{"Test", "Run", "Interval", "Finish"},
		Text: "In \"test\": how many data connections per direction. Elsewhere: the data connections themselves, in the order in which they were made.",
		Do:   "One stream shows what a single copy gets, several what the path carries. Double until the sum stops growing; more than that costs CPU only.",
		See:  []string{"jain"},
	},
	{
		Word: "intervals", In: []string{"Run"},
		Text: "Reports of both ends in the order in which they arrived, warm-up (\"omitted\") included. The bytes of the counted reports of a stream add up to its total exactly.",
		See:  []string{"interval_s", "omitted", "partial"},
	},
	{
		Word: "sums", In: []string{"Interval", "Run"},
		Text: "All streams of one direction added up, one entry per direction, up first. The sum over a run takes the time that all streams have in common (latest start to earliest end).",
		See:  []string{"goodput_bps"},
	},
	{
		Word: "cpu", In: []string{"CoreShare", "Run", "Finish"},
		Text: "Of a run: what the test cost at each end, in percent of one core, as the protocol reports it. In a host's sample: the number of the core.",
		Do:   "Above about 90 % of one core per stream the program or kernel is the limit, not the path: use more streams, or look at offloads.",
		See:  []string{"total_pct", "cpu-sender", "cpu-receiver"},
	},
	{Word: "notices", In: []string{"Run", "Report"}, Text: "What the reader of the numbers must know: refused options, clamps, fallbacks, doubts. Each has a stable code that `fullbore explain` knows."},
	{Word: "verdicts", In: []string{"Run", "Report"}, Text: "What limits the path, ranked, each with its certainty, evidence and advice. Filled by a diagnosis, empty after a plain test."},
	{
		Word: "flags", In: []string{"Run", "Conclusion", "Finding", "Item"},
		Text: "Validity flags: short words that mark a result as doubtful for a known reason. A number with a flag is printed with the flag.",
		Do:   "Look each up with `fullbore explain`; an acceptance test counts a flagged result as inconclusive, not as failed.",
	},
	{Word: "summary", In: []string{"Verdict", "Run", "Conclusion", "Report", "Finding"}, Text: "One sentence that says the result: rate, direction, how sure it is and what was seen to limit it."},
	{Word: "next", In: []string{"Run", "Conclusion", "Report"}, Text: "The command worth typing next, and why; null or absent when nothing follows from what was measured."},
	{Word: "command", In: []string{"Step"}, Text: "A command line to type as it stands."},
	{Word: "why", In: []string{"Step", "Stage", "Outage", "SoakGap"}, Text: "What the command would show or mend."},
	{
		Word: "error", In: []string{"Run", "Event", "Report", "Stage"},
		Text: "Why the run broke off; absent when it did not. What was measured until then is kept in the same document.",
		See:  []string{"code", "remote"},
	},
	{Word: "wire", In: []string{"Run", "Finish"}, Text: "Facts of iperf3's conversation that its own outputs print: cookie, versions, buffer sizes, the server's report."},
	{
		Word: "elapsed_s", In: []string{"Run", "Finish"}, Unit: "seconds",
		Text: "Wall time from connecting to closing, set-up, warm-up and the exchange of results included. Longer than \"duration_s\" for that reason.",
	},
	{
		Word: "process", In: []string{"HostSample", "Run", "Finish"},
		Text: "What this program itself cost: over the run as CPU seconds and memory, over an interval in percent of one core.",
		See:  []string{"cpu_s_per_gb"},
	},
	{
		Word: "zero_mono_ns", In: []string{"Run", "Finish"}, Unit: "nanoseconds",
		Text:   "Reading of the recording end's monotonic clock at which the run's time axis is 0, the end of the warm-up. With it other recordings of the same machine can be laid beside the run.",
		Source: "Linux CLOCK_MONOTONIC",
	},
	{
		Word: "direction", In: []string{"Test", "Stream", "IntervalSum", "Sum", "DirectionLimit", "LayerRate", "Verdict", "Rounds", "Compared", "Point", "SweepPart", "Finding", "PathMTU", "Outage", "SoakFigures", "SoakWay", "Item", "CaptureFlow"},
		Text: "Which way payload flows: \"up\" from client to server, \"down\" from server to client, \"both\" (of a test) at the same time.",
		Do:   "Test both: routes, shapers and duplex faults differ by direction.",
	},
	{Word: "from", In: []string{"Sum"}, Text: "The sending host, as text."},
	{Word: "to", In: []string{"Sum"}, Text: "The receiving host, as text."},
	{
		Word: "goodput_bps", In: []string{"Sum"}, Unit: "bit/s of payload (layer l7)",
		Text:   "The result: what the receiver's program read, divided by the time all streams had in common. null when the receiver's count is not known; then only the sender's figure exists, and it includes what was still on its way.",
		Source: "receiving end's count; bulk transfer capacity of RFC 3148",
		Do:     "To compare with a link speed add the headers: 941 Mbit/s of TCP payload fill a gigabit Ethernet.",
		See:    []string{"layers", "no-receiver-count"},
	},
	{
		Word: "peak_bps", In: []string{"Sum"}, Unit: "bit/s of payload",
		Text: "Rate of the fastest counted interval, at the receiver where its intervals are known, else at the sender.",
		Do:   "A peak far above the mean points to bursts, a token bucket or a long slow start. The peak of a sender includes filling its send buffer.",
	},
	{
		Word: "jain", In: []string{"Sum"}, Unit: "1 = all streams equal, 1/n = one has everything",
		Text:   "Jain's fairness index over the streams' rates at the receiver: (Σx)²/(n·Σx²).",
		Source: "Jain, Chiu, Hawe 1984",
		Do:     "Below about 0.9 streams fare differently: hashing over unequal paths or queues, or a run too short to even out.",
	},
	{
		Word: "limit", In: []string{"Sum", "DirectionLimit"},
		Text:   "What held this direction back, as one word; \"unknown\" when the counters do not say, absent when it was not asked. `fullbore explain` knows each word.",
		Source: "M-LIMIT: the sender's TCP_INFO, both ends' processors, the options",
		See:    []string{"sender_time", "receive-window", "path-capacity"},
	},
	{Word: "limits", In: []string{"Conclusion"}, Text: "\"limit\", \"sender_time\" and, of UDP, \"loss\" of each direction."},
	{
		Word: "sender_time", In: []string{"Sum", "DirectionLimit"}, Unit: "shares of the measured time, adding up to 1",
		Text:   "What the sender's sockets waited for, mean over the streams: nothing to send (idle), the receiver's window, the send buffer, or the rest, which is congestion control and the path (network). null when the sender's kernel did not tell.",
		Source: "Linux TCP_INFO: tcpi_busy_time, tcpi_rwnd_limited, tcpi_sndbuf_limited (4.10)",
	},
	{Word: "window", In: []string{"Shares"}, Unit: "share, 0..1", Text: "Share of the time in which the receiver's window was full.", Do: "Raise net.ipv4.tcp_rmem at the receiver, or use more streams.", See: []string{"receive-window"}},
	{Word: "buffer", In: []string{"Shares"}, Unit: "share, 0..1", Text: "Share of the time in which the send buffer was too small to keep the path busy.", Do: "Raise net.ipv4.tcp_wmem at the sender.", See: []string{"send-buffer"}},
	{Word: "network", In: []string{"Shares", "UDPLoss"}, Unit: "share, 0..1; of a loss: datagrams", Text: "Of a loss: what is left for the network when the receiving host's own drops are taken off; never more than \"attribution\" allows, null when nothing is known of that host. Of a sender's time: share of the time in which data was there and allowed to go: the rate was set by congestion control and the path."},
	{
		Word: "idle", In: []string{"CoreShare", "Shares"}, Unit: "share, 0..1",
		Text:   "Of a core: the time it had nothing to do. Of a sender: the time its sockets had nothing to send, so the program or a set rate was the limit.",
		Source: "/proc/stat; TCP_INFO: 1 − tcpi_busy_time/time",
	},
	{Word: "code", In: []string{"Error", "Notice", "Verdict", "Milestone"}, Text: "Stable word for a notice, error, verdict or milestone: programs may test for it, texts may change. `fullbore explain WORD` tells more."},
	{Word: "text", In: []string{"Error", "Notice", "Milestone", "Check", "AdviceAt"}, Text: "The matter in one sentence, for people. Its wording may change from release to release; test for \"code\"."},
	{Word: "level", In: []string{"Notice"}, Text: "\"info\" is worth knowing, \"warn\" puts the number in doubt."},
	{Word: "fix", In: []string{"Notice"}, Text: "A command that mends the matter or makes a better run; absent when there is none."},
	{Word: "certainty", In: []string{"Verdict"}, Text: "How sure a verdict is. \"proven\": something was changed, and the number moved as the verdict says it must. \"likely\": the counters of both ends, or of the one that can know, point one way. \"possible\": it does not contradict what was seen.", Do: "Exit code 0 needs a proven or likely verdict. --deep, and fullbore serve at the other end, prove more."},
	{Word: "evidence", In: []string{"Verdict"}, Text: "The measurements a verdict rests on, one a line. Lines that begin with \"changed:\" are interventions: what was changed, and what came of it."},
	{Word: "advice", In: []string{"Verdict"}, Text: "What to change, one a line, the most promising first."},
	{
		Word: "remote", In: []string{"Stream", "Error", "Milestone"},
		Text: "Of a stream: the peer's address and port. Of an error: true when the other end caused it.",
	},
	{Word: "reported", In: []string{"Error"}, Text: "The other end sent this reason itself; otherwise this end concluded it from a closed connection or a silence."},
	{
		Word: "number", In: []string{"Error"},
		Text:   "The protocol's own error number; absent when there is none. For iperf3 it is the one its SERVER_ERROR message carries.",
		Source: "iperf3 iperf_api.h, i_errno",
	},
	{Word: "errno", In: []string{"Error"}, Text: "The operating system's error number, as Linux counts when it came over the wire; absent when there is none.", Source: "errno(3)"},
	{Word: "interrupted", In: []string{"Error"}, Text: "A signal or a key ended the run; what was measured until then is in the document."},
	{Word: "signal", In: []string{"Error"}, Text: "Name of the signal as iperf3 prints it, for example \"Interrupt(2)\"."},
}

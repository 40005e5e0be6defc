package explain

// ntttcpNotices are those of NTTTCP tests.
var ntttcpNotices = []Topic{
	{
		Word: "block-clamped",
		Text: "The buffer of a call (-b, -l) is longer than what is moved at once, 1 MiB: it is moved in pieces of that size. Larger calls would not be faster.",
	},
	{
		Word: "extension-fallback",
		Text: "The receiver answered as a fullbore does (state 70, or token 0x46), but did not go on as one. Real receivers answer so never; a box between the ends that answers in their place might. The test runs as with a real receiver: this run has the figures of its own end only.",
		Do:   "Look at what listens there; with a fullbore at the other end, at its log.",
	},
	{
		Word: "jitter-missing",
		Text: "The receiver was to note each message's number and sending time (-jm), but what came does not begin with them. The bytes are counted all the same.",
		Do:   "Give the sender -jm too, and both ends the same -l.",
	},
	{
		Word: "budget-reached",
		Text: "The receiver ended the test because no more may come: its server was started with a budget (--max-bytes, or --max-rate, to which nobody can hold a sender of datagrams).",
		Do:   "Send at a lower rate (-B), or start the receiver with a larger budget.",
	},
	{
		Word: "last-client-alone",
		Text: "A sender was started as the last of several (-L), but the receiver does not wait for several (-M). The original refuses such a sender; here its test runs, with it alone.",
		Do:   "Start the receiver with -M to run several senders at one time.",
	},
	{
		Word: "message-size",
		Text: "In a round trip test (-rt) the receiver answers each message when all of it is here. A part came and then nothing for a second, so the sender's messages seem to be shorter than the receiver's (-l), and are answered at the length that came.",
		Do:   "Give both ends the same -l; a short one, as messages of many packets say little about the path's round trip.",
	},
	{
		Word: "message-unanswered",
		Text: "A round trip test over UDP waits two seconds for an answer and then goes on with the next message: the message or its answer was lost. Such a message is in the count of bytes and not in the latency.",
		Do:   "Look whether the receiver was started with -rt; if it was, the path loses datagrams.",
	},
	{
		Word: "nothing-measured",
		Text: "The warm-up (-W) is as long as the whole test cycle that both ends agreed on, so that no time is left to measure.",
		Do:   "Give both ends the same -W, -t and -C: each end uses its own within the agreed cycle.",
	},
	{
		Word: "port-missing",
		Text: "A port by which the receiver would also serve senders of the other dialect, or of the other transport, cannot be opened: another program has it, or it needs privilege. What was asked for is served all the same. The text names the port.",
		Do:   "Only if such senders are to come: end the other program, or choose another base port (-p).",
	},
	{
		Word: "receiver-shorter",
		Text: "The receiver ended before this end's time was over, in good order: in the Windows dialect nothing is agreed on, so each end runs for its own time. The rates are over the time of the shorter one.",
		Do:   "Give both ends the same times (-t, -wu, -cd).",
	},
	{
		Word: "results-missing",
		Text: "Both ends are fullbores, which tell each other what they counted, and the other end's part did not come: its connection was closed, it did not answer in time, or what it said makes no sense. This run has the figures of its own end only.",
		Do:   "The text says why. Look at the other end's own run.",
	},
	{
		Word: "senders-merged",
		Text: "Several Windows senders at one address set up their tests at the same moment at the same ports. Their connections carry no name, and neither could begin without the other's tokens, so they were measured as one: the rate is what they reached together.",
		Do:   "Start them a moment apart, or give each ports of its own (-p).",
	},
	{
		Word: "sender-longer",
		Text: "The sender still sent when the receiver's time was over. Nothing is agreed without synchronising, so each end runs for its own time: the sender's figure is over a longer time, the end of which nobody received.",
		Do:   "Give both ends the same times (-t, -W, -C).",
	},
	{
		Word: "sender-shorter",
		Text: "The sender ended before the receiver's time was over, in good order: it is a fullbore that told what it counted, or does not synchronise. (An original Windows sender tells nothing: there an early end is the error peer-vanished.) Each end runs for its own time; the rate is over the time in which the sender was there, or over all of it where only silence tells (UDP).",
		Do:   "Give both ends the same times (-t, -W, -C).",
	},
	{
		Word: "streams-unpaired",
		Text: "The two ends know a connection by its ports, and a box between them changed some (address translation). Which figures of the one end belong to which connection of the other was decided by the order of the connections. The sums of all connections are right; single streams may be mixed up.",
	},
	{
		Word: "streams-refused",
		Text: "The sender's datagrams came from more sockets than a test may have at this receiver (--max-streams). Those of the further ones were not counted.",
		Do:   "Use fewer threads (-n, -P), or start the receiver with a larger --max-streams.",
	},
	{
		Word: "time-limited",
		Text: "The receiver holds tests to a longest time (--max-time), and the sender wanted more. A Linux sender that synchronises is told, and stops by itself; any other's connections are closed then.",
		Do:   "Ask for less, or start the receiver with a longer --max-time.",
	},
	{
		Word: "spacing-missed",
		Text: "One block was to be sent in each period (-ps). In some periods none was: the block before it took longer (a full socket buffer, in round trips an answer that was late), or the system did not let the program run. What is missed is not made up, so that no two blocks are closer together than asked for.",
		Do:   "A longer period, or a host with a free core.",
	},
	{
		Word: "times-differ",
		Text: "The two ends were given different times. Where they agree on a cycle it is the longer one, and each end measures its own time within it: the two results are over different stretches of the same traffic.",
		Do:   "Give both ends the same -t, -W and -C.",
	},
}

// ntttcpErrors are the codes of "error" that only NTTTCP tests have.
var ntttcpErrors = []Topic{
	{
		Word: "corrupt", Text: "The receiver was told to look at every byte (-d), and some were not what an NTTTCP sender sends. The connections that brought them were ended.",
		Do: "Is the sender an NTTTCP? If it is, something on the way changes payload: a proxy, a faulty offload or memory. Try without offloads (ethtool -K).",
	},
	{
		Word: "no-data", Text: "The test was agreed on and no payload came through: the data ports are filtered, or the ends differ in ports or transport (-P, -p, -u).",
		Do: "Open the data ports (5001 and up) as well as the one below them; give both ends the same -p, -P and -u.",
	},
	{
		Word: "peer-vanished", Text: "The other end disappeared in mid-test without a word: its connections ended, or nothing moved any more. What was measured until then is kept.",
		Do: "Look at that end's own messages; a stateful firewall that forgot the connections looks like this too.",
	},
	{
		Word: "port", Text: "A port that the receiver needs cannot be opened: another program has it, it is below 1024 and needs privilege, or the address is not this host's. The text names it.",
		Do: "Another receiver may still run: look with `ss -lntp`. Another base port: -p, at both ends.",
	},
	{
		Word: "ports-refused", Text: "The receiver listens on some of the data ports and not on others. The text lists those that refused.",
		Do: "Give both ends the same number of ports (-P, or the first number of -m).",
	},
	{
		Word: "sender-interrupted", Text: "The sender ended the test before its time, and told so: it was interrupted. What was measured until then is kept.",
	},
}

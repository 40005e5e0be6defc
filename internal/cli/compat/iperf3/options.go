package iperf3

import "github.com/fullbore-net/fullbore/internal/cli/getopt"

// Role says who may be given an option.
type Role string

// The roles. Unchecked options belong to one side but iperf3 accepts them on both.
const (
	Both   Role = "both"
	Client Role = "client"
	Server Role = "server"
)

// Status says how an option compares with iperf3's.
type Status string

// Done: as iperf3. Differs: see Why.
const (
	Done    Status = "done"
	Differs Status = "differs"
)

// Option is one option of iperf3: a row of the help text and of the compat table.
type Option struct {
	Key     string // unique; the long name
	Short   byte   // 0 = none
	Long    string
	Aliases []string   // older long names, accepted but not shown in the help
	Arg     getopt.Arg // of the long form
	Bare    bool       // the short form takes no value even if the long one may
	Meta    string     // the value's place holder
	Role    Role
	Checked bool   // the role is enforced
	Since   string // first release with it
	Help    string // one line
	Limits  string // range and default; "" = none
	Status  Status
	Why     string // for Differs
}

const whySCTP = "no build carries SCTP: such a test is refused before anybody is bothered, and a server refuses it with iperf3's code (202, protocol not supported)"

// Options is the table, in the order of iperf3's own: an ambiguous abbreviation lists
// its candidates in it.
var Options = []Option{
	{Key: "port", Short: 'p', Long: "port", Arg: getopt.Required, Meta: "#", Role: Both, Since: "3.0", Help: "port to listen on or to connect to", Limits: "1 to 65535, default 5201", Status: Done},
	{Key: "format", Short: 'f', Long: "format", Arg: getopt.Required, Meta: "[kmgtKMGT]", Role: Both, Since: "3.0", Help: "unit of the rate column: lower case bits, upper case bytes", Limits: "default: by size", Status: Done},
	{Key: "interval", Short: 'i', Long: "interval", Arg: getopt.Required, Meta: "#", Role: Both, Since: "3.0", Help: "seconds between reports", Limits: "0.1 to 60, 0 = once for the whole test; default 1", Status: Done},
	{Key: "daemon", Short: 'D', Long: "daemon", Role: Server, Checked: true, Since: "3.0", Help: "serve in the background", Status: Done},
	{Key: "one-off", Short: '1', Long: "one-off", Role: Server, Checked: true, Since: "3.0.11", Help: "serve one test, then exit", Status: Differs, Why: "a connection that does not get as far as a test, or fails to log in, is not the one test"},
	{Key: "verbose", Short: 'V', Long: "verbose", Role: Both, Since: "3.0", Help: "say more", Status: Differs, Why: "with -J nothing but the document is on stdout"},
	{Key: "json", Short: 'J', Long: "json", Role: Both, Since: "3.0", Help: "print one JSON document", Status: Differs, Why: "no key occurs twice in an object"},
	{Key: "json-stream", Long: "json-stream", Role: Both, Since: "3.17", Help: "print a line of JSON for each event", Status: Done},
	{Key: "json-stream-full-output", Long: "json-stream-full-output", Role: Both, Since: "3.20", Help: "with --json-stream: also the whole document at the end", Status: Done},
	{Key: "version", Short: 'v', Long: "version", Role: Both, Since: "3.0", Help: "print the release and what it can do, and exit", Status: Differs, Why: "the first line names fullbore in place of cJSON; the features are those of this build and system"},
	{Key: "server", Short: 's', Long: "server", Role: Server, Checked: true, Since: "3.0", Help: "be the server", Status: Done},
	{Key: "client", Short: 'c', Long: "client", Arg: getopt.Required, Meta: "<host>[%<dev>]", Role: Client, Checked: true, Since: "3.0", Help: "be the client and connect to host (dev: see --bind-dev)", Status: Done},
	{Key: "udp", Short: 'u', Long: "udp", Role: Client, Checked: true, Since: "3.0", Help: "use UDP", Status: Differs, Why: "datagrams that are missing at the end of the test count as lost; loss is never negative or above 100 %; no answer to UDP is an error within 10 s, not after 30"},
	{Key: "bitrate", Short: 'b', Long: "bitrate", Aliases: []string{"bandwidth"}, Arg: getopt.Required, Meta: "#[KMG][/#]", Role: Client, Checked: true, Since: "3.0 (as --bandwidth; --bitrate 3.2)", Help: "rate of each stream in bit/s; after a slash: blocks sent in one go", Limits: "0 = unlimited; default unlimited for TCP, 1 Mbit/s for UDP; 1 to 1000 blocks", Status: Done},
	{Key: "server-bitrate-limit", Long: "server-bitrate-limit", Arg: getopt.Required, Meta: "#[KMG][/#]", Role: Server, Checked: true, Since: "3.9", Help: "refuse tests that ask for more bit/s, end those that average more; after a slash: over how many seconds", Limits: "default none; 0 or 0.1 to 60 s, default 5", Status: Done},
	{Key: "server-max-duration", Long: "server-max-duration", Arg: getopt.Required, Meta: "#", Role: Server, Checked: true, Since: "3.20", Help: "refuse tests that are longer (seconds) or have no time limit", Limits: "0 to 86400, default 0 = none", Status: Done},
	{Key: "time", Short: 't', Long: "time", Arg: getopt.Required, Meta: "#", Role: Client, Checked: true, Since: "3.0", Help: "length of the test in seconds", Limits: "at most 86400, 0 = until stopped; default 10", Status: Differs, Why: "fractions count (iperf3 reads 0.5 as 0 = until stopped)"},
	{Key: "bytes", Short: 'n', Long: "bytes", Arg: getopt.Required, Meta: "#[KMG]", Role: Client, Checked: true, Since: "3.0", Help: "stop after so many bytes, all streams together", Status: Differs, Why: "ends at once; 3.16 to 3.21 end at the next report"},
	{Key: "blockcount", Short: 'k', Long: "blockcount", Arg: getopt.Required, Meta: "#[KMG]", Role: Client, Checked: true, Since: "3.0", Help: "stop after so many blocks, all streams together", Status: Differs, Why: "ends at once; 3.16 to 3.21 end at the next report"},
	{Key: "length", Short: 'l', Long: "length", Arg: getopt.Required, Meta: "#[KMG]", Role: Client, Checked: true, Since: "3.0", Help: "bytes per write or per datagram", Limits: "1 to 1M, default 128K; UDP 16 to 65507, default from the path", Status: Differs, Why: "0 is refused (iperf3: the default)"},
	{Key: "parallel", Short: 'P', Long: "parallel", Arg: getopt.Required, Meta: "#", Role: Client, Checked: true, Since: "3.0", Help: "number of streams, per direction", Limits: "1 to 128, default 1", Status: Differs, Why: "0 means 1, with a note (iperf3 runs an empty test)"},
	{Key: "reverse", Short: 'R', Long: "reverse", Role: Client, Checked: true, Since: "3.0", Help: "the server sends", Status: Done},
	{Key: "bidir", Long: "bidir", Role: Client, Checked: true, Since: "3.7", Help: "both ends send, on streams of their own", Status: Done},
	{Key: "window", Short: 'w', Long: "window", Arg: getopt.Required, Meta: "#[KMG]", Role: Client, Checked: true, Since: "3.0", Help: "socket buffers of both ends", Limits: "at most 512M, default 0 = the system's", Status: Done},
	{Key: "bind", Short: 'B', Long: "bind", Arg: getopt.Required, Meta: "<host>[%<dev>]", Role: Both, Since: "3.0", Help: "use this local address (dev: see --bind-dev)", Status: Done},
	{Key: "bind-dev", Long: "bind-dev", Arg: getopt.Required, Meta: "<dev>", Role: Both, Since: "3.10", Help: "use this network interface", Status: Done},
	{Key: "cport", Long: "cport", Arg: getopt.Required, Meta: "<port>", Role: Client, Since: "3.1", Help: "local port of the first stream, the others follow", Limits: "1 to 65535", Status: Done},
	{Key: "set-mss", Short: 'M', Long: "set-mss", Arg: getopt.Required, Meta: "#", Role: Client, Checked: true, Since: "3.0", Help: "TCP maximum segment size", Limits: "88 to 32767, default 0 = the system's", Status: Differs, Why: "below 88 is refused here, not by the kernel in the middle of the set-up"},
	{Key: "no-delay", Short: 'N', Long: "no-delay", Role: Client, Checked: true, Since: "3.0", Help: "send small blocks at once (no Nagle)", Status: Done},
	{Key: "version4", Short: '4', Long: "version4", Role: Both, Since: "3.0", Help: "IPv4 only", Status: Done},
	{Key: "version6", Short: '6', Long: "version6", Role: Both, Since: "3.0", Help: "IPv6 only", Status: Done},
	{Key: "tos", Short: 'S', Long: "tos", Arg: getopt.Required, Meta: "N", Role: Client, Checked: true, Since: "3.0", Help: "IP type-of-service byte: decimal, 0octal or 0xhex", Limits: "0 to 255", Status: Done},
	{Key: "dscp", Long: "dscp", Arg: getopt.Required, Meta: "N|name", Role: Client, Checked: true, Since: "3.2", Help: "the same by code point: a number as above, or a name such as ef, af41, cs1", Limits: "0 to 63", Status: Done},
	{Key: "extra-data", Long: "extra-data", Arg: getopt.Required, Meta: "str", Role: Client, Checked: true, Since: "3.6", Help: "text for the JSON of both ends", Status: Done},
	{Key: "flowlabel", Short: 'L', Long: "flowlabel", Arg: getopt.Required, Meta: "N", Role: Client, Checked: true, Since: "3.0", Help: "IPv6 flow label (Linux): a number as for --tos", Limits: "1 to 0xfffff", Status: Done},
	{Key: "zerocopy", Short: 'Z', Long: "zerocopy", Role: Client, Checked: true, Since: "3.0", Help: "the sender does not copy payload", Status: Done},
	{Key: "omit", Short: 'O', Long: "omit", Arg: getopt.Required, Meta: "N", Role: Client, Checked: true, Since: "3.0", Help: "seconds of warm-up before the test, not counted", Limits: "0 to 600", Status: Differs, Why: "fractions count"},
	{Key: "file", Short: 'F', Long: "file", Arg: getopt.Required, Meta: "name", Role: Both, Since: "3.0", Help: "send this file, or write what is received into it", Status: Done},
	{Key: "repeating-payload", Long: "repeating-payload", Role: Client, Checked: true, Since: "3.6", Help: "payload that repeats, not random", Status: Done},
	{Key: "timestamps", Long: "timestamps", Arg: getopt.Optional, Meta: "format", Role: Both, Since: "3.9", Help: "the time before each line, in a format of strftime(3)", Limits: "default '%c '", Status: Done},
	{Key: "affinity", Short: 'A', Long: "affinity", Arg: getopt.Required, Meta: "n[,m]", Role: Both, Since: "3.0", Help: "run on CPU n; the client may ask the server to use CPU m", Limits: "0 to 1024", Status: Differs, Why: "n may also be a set: 0-3, 0+2, 0-3+8"},
	{Key: "title", Short: 'T', Long: "title", Arg: getopt.Required, Meta: "str", Role: Client, Checked: true, Since: "3.0", Help: "text before each line", Status: Done},
	{Key: "congestion", Short: 'C', Long: "congestion", Aliases: []string{"linux-congestion"}, Arg: getopt.Required, Meta: "<algo>", Role: Client, Checked: true, Since: "3.0 (as --linux-congestion; --congestion 3.1)", Help: "TCP congestion control of both ends", Status: Done},
	{Key: "sctp", Long: "sctp", Role: Client, Checked: true, Since: "3.1", Help: "use SCTP", Status: Differs, Why: whySCTP},
	{Key: "nstreams", Long: "nstreams", Arg: getopt.Required, Meta: "#", Role: Client, Checked: true, Since: "3.1", Help: "SCTP streams in each association", Status: Differs, Why: whySCTP + "; in a test without SCTP it has no effect and says so (iperf3 also takes it for -b)"},
	{Key: "xbind", Short: 'X', Long: "xbind", Arg: getopt.Required, Meta: "<name>", Role: Both, Since: "3.1", Help: "local address of the SCTP association; may be repeated", Status: Differs, Why: whySCTP + "; in a test without SCTP it has no effect and says so"},
	{Key: "pidfile", Short: 'I', Long: "pidfile", Arg: getopt.Required, Meta: "file", Role: Both, Since: "3.1", Help: "write the process id into a file", Status: Done},
	{Key: "logfile", Long: "logfile", Arg: getopt.Required, Meta: "f", Role: Both, Since: "3.1", Help: "append the output to a file", Status: Done},
	{Key: "forceflush", Long: "forceflush", Role: Both, Since: "3.1.5", Help: "flush the output at each report", Status: Differs, Why: "needless: every line is written at once"},
	{Key: "get-server-output", Long: "get-server-output", Role: Client, Checked: true, Since: "3.0.10", Help: "also print what the server printed", Status: Done},
	{Key: "udp-counters-64bit", Long: "udp-counters-64bit", Role: Client, Checked: true, Since: "3.1", Help: "64-bit datagram counters", Status: Differs, Why: "also asked for by itself where a test could send more than 2^31 datagrams a stream"},
	{Key: "no-fq-socket-pacing", Long: "no-fq-socket-pacing", Role: Client, Checked: true, Since: "3.1.3", Help: "no effect, deprecated", Status: Differs, Why: "with -J its line is on stderr"},
	{Key: "dont-fragment", Long: "dont-fragment", Role: Client, Checked: true, Since: "3.10", Help: "set IPv4's don't-fragment bit (UDP)", Status: Differs, Why: "a block that does not fit is refused with the size that does; IPv6 datagrams are not fragmented either"},
	{Key: "skip-rx-copy", Long: "skip-rx-copy", Role: Client, Checked: true, Since: "3.19", Help: "the receiver discards payload in the kernel (MSG_TRUNC)", Status: Done},
	{Key: "username", Long: "username", Arg: getopt.Required, Meta: "name", Role: Client, Checked: true, Since: "3.2", Help: "user to log in as (password: IPERF3_PASSWORD, or asked for)", Status: Done},
	{Key: "rsa-public-key-path", Long: "rsa-public-key-path", Arg: getopt.Required, Meta: "file", Role: Client, Checked: true, Since: "3.2", Help: "the server's public key (PEM) that encrypts the login", Status: Differs, Why: "keys below 1024 bits are refused"},
	{Key: "rsa-private-key-path", Long: "rsa-private-key-path", Arg: getopt.Required, Meta: "file", Role: Server, Checked: true, Since: "3.2", Help: "private key (PEM) that decrypts logins", Status: Differs, Why: "keys below 1024 bits are refused"},
	{Key: "authorized-users-path", Long: "authorized-users-path", Arg: getopt.Required, Meta: "file", Role: Server, Checked: true, Since: "3.2", Help: "who may log in: lines of name,hash", Status: Done},
	{Key: "time-skew-threshold", Long: "time-skew-threshold", Arg: getopt.Required, Meta: "#", Role: Server, Checked: true, Since: "3.10", Help: "seconds by which the clocks may differ at login", Limits: "at least 1, default 10", Status: Done},
	{Key: "use-pkcs1-padding", Long: "use-pkcs1-padding", Role: Server, Since: "3.17", Help: "also take logins with the old padding, which can be attacked", Status: Differs, Why: "also on a client, for servers up to 3.16, with a note (iperf3 allowed it up to 3.19)"},
	{Key: "fq-rate", Long: "fq-rate", Arg: getopt.Required, Meta: "#[KMG]", Role: Client, Checked: true, Since: "3.1.5", Help: "let the kernel pace each stream at this rate in bit/s (Linux)", Status: Done},
	{Key: "pacing-timer", Long: "pacing-timer", Arg: getopt.Required, Meta: "#[KMG]", Role: Client, Checked: true, Since: "3.2", Help: "microseconds between rate checks of an old server; no effect here", Limits: "default 1000", Status: Done},
	{Key: "connect-timeout", Long: "connect-timeout", Arg: getopt.Required, Meta: "#", Role: Client, Checked: true, Since: "3.2", Help: "milliseconds to wait for the control connection", Limits: "default: the system's", Status: Done},
	{Key: "idle-timeout", Long: "idle-timeout", Arg: getopt.Required, Meta: "#", Role: Server, Checked: true, Since: "3.10", Help: "seconds without a client after which the server listens anew, or with -1 exits", Limits: "1 to 86400, default none", Status: Done},
	{Key: "rcv-timeout", Long: "rcv-timeout", Arg: getopt.Required, Meta: "#", Role: Both, Since: "3.10", Help: "milliseconds without data after which a receiver gives up", Limits: "100 to 86400000, default 120000; on a client only with -R or --bidir", Status: Done},
	{Key: "snd-timeout", Long: "snd-timeout", Arg: getopt.Required, Meta: "#", Role: Both, Since: "3.12", Help: "milliseconds that sent data may stay unacknowledged", Limits: "0 to 86400000, default 0 = the system's", Status: Done},
	{Key: "cntl-ka", Long: "cntl-ka", Arg: getopt.Optional, Meta: "#/#/#", Role: Both, Since: "3.19", Help: "keepalive on the control connection: idle and interval in seconds, number of probes; each may be left out", Limits: "idle > interval x number; default: the system's", Status: Done},
	{Key: "mptcp", Short: 'm', Long: "mptcp", Role: Both, Since: "3.19", Help: "use MPTCP for the streams (Linux)", Status: Done},
	{Key: "gsro", Long: "gsro", Role: Client, Checked: true, Since: "3.21", Help: "UDP segmentation and receive offload on both ends", Status: Done},
	{Key: "debug", Short: 'd', Long: "debug", Arg: getopt.Optional, Bare: true, Meta: "#", Role: Both, Since: "3.0.2 (level 3.12)", Help: "print what goes on inside", Limits: "1 to 4, default 4", Status: Differs, Why: "the lines are our own; with -J they are on stderr"},
	{Key: "help", Short: 'h', Long: "help", Role: Both, Since: "3.0", Help: "print this text and exit", Status: Differs, Why: "our own words, same layout"},
}

// Section is a part of the help text.
type Section struct {
	Title string
	Keys  []string
}

// Sections is the order in which options are shown. (--no-fq-socket-pacing is not.)
var Sections = []Section{
	{"Server or Client", []string{
		"port", "format", "interval", "pidfile", "file", "affinity", "bind", "bind-dev", "verbose", "json", "json-stream",
		"json-stream-full-output", "logfile", "forceflush", "timestamps", "rcv-timeout", "snd-timeout", "cntl-ka", "mptcp",
		"debug", "version", "help",
	}},
	{"Server specific", []string{
		"server", "daemon", "one-off", "server-bitrate-limit", "idle-timeout", "server-max-duration", "rsa-private-key-path",
		"authorized-users-path", "time-skew-threshold", "use-pkcs1-padding",
	}},
	{"Client specific", []string{
		"client", "sctp", "xbind", "nstreams", "udp", "connect-timeout", "bitrate", "pacing-timer", "fq-rate", "time", "bytes",
		"blockcount", "length", "cport", "parallel", "reverse", "bidir", "window", "congestion", "set-mss", "no-delay",
		"version4", "version6", "tos", "dscp", "flowlabel", "zerocopy", "skip-rx-copy", "omit", "title", "extra-data",
		"get-server-output", "udp-counters-64bit", "gsro", "repeating-payload", "dont-fragment", "username",
		"rsa-public-key-path",
	}},
}

// Find returns the option with the given key, nil if there is none.
func Find(key string) *Option {
	for i := range Options {
		if Options[i].Key == key {
			return &Options[i]
		}
	}
	return nil
}

// spellings is the table in the form that getopt reads.
func spellings() []getopt.Option {
	var out []getopt.Option
	for _, o := range Options {
		row := getopt.Option{Key: o.Key, Short: o.Short, Long: o.Long, Arg: o.Arg}
		if o.Bare {
			out = append(out, getopt.Option{Key: o.Key, Short: o.Short})
			row.Short = 0
		}
		out = append(out, row)
		for _, alias := range o.Aliases {
			out = append(out, getopt.Option{Key: o.Key, Long: alias, Arg: o.Arg})
		}
	}
	return out
}

package ntttcp

import (
	"strings"

	"github.com/fullbore-net/fullbore/internal/cli/getopt"
)

// Role says who may be given an option.
type Role string

// The roles. What is "only" is refused on the other side.
const (
	Both         Role = "both"
	Sender       Role = "sender"
	Receiver     Role = "receiver"
	SenderOnly   Role = "sender only"
	ReceiverOnly Role = "receiver only"
)

// Status says how an option compares with the original's.
type Status string

// Done: as the original. Differs: see Why.
const (
	Done    Status = "done"
	Differs Status = "differs"
)

// Option is one option: a row of the help text and of the compat table.
type Option struct {
	Name     string // with its dashes; unique in its table
	Meta     string // place holder of the value; "" = none
	Optional bool   // the value may be missing
	Role     Role
	Since    string // first release known to have it; "" = all that matter
	Help     string
	Limits   string // range and default; "" = none
	Status   Status
	Why      string // for Differs
	// WindowsOnly: without effect on other systems, which is said.
	WindowsOnly bool
}

// LinuxOptions is the table of ntttcp-for-linux 1.4.3, in the order of its help.
var LinuxOptions = []Option{
	{Name: "-r", Meta: "address", Optional: true, Role: Receiver, Help: "be the receiver, listening on address", Limits: "default all of this machine's", Status: Differs, Why: "an address of another machine: listens on all of its own and says so (original: exit 23)"},
	{Name: "-s", Meta: "address", Optional: true, Role: Sender, Help: "be the sender to the receiver at address", Limits: "default this machine", Status: Done},
	{Name: "-D", Role: Both, Help: "go to the background", Status: Differs, Why: "files are written where the program was started, not in /; a receiver that cannot have its ports says so and fails (original: 0); refused on Windows"},
	{Name: "-M", Role: ReceiverOnly, Since: "1.3.0", Help: "several senders: wait for the one with -L, then start all", Status: Differs, Why: "the last sender gets one start message, not two; with -N it is ignored and said"},
	{Name: "-L", Role: SenderOnly, Since: "1.3.0", Help: "this sender is the last: start all", Status: Done},
	{Name: "-e", Role: Receiver, Help: "wait with epoll instead of select", Status: Differs, Why: "accepted; waiting is done in one way, which has no limit of 1024 files; on a sender it is ignored and said"},
	{Name: "-H", Role: Receiver, Since: "1.3.1", Help: "take tests until Ctrl-C", Limits: "default one", Status: Differs, Why: "Ctrl-C in a test ends it with totals (original: that test only); on a sender it is ignored and said"},
	{Name: "-P", Meta: "ports", Role: Both, Help: "number of receiver ports", Limits: "1 to 512, default 16; clamped", Status: Done},
	{Name: "-a", Meta: "address", Role: SenderOnly, Since: "1.4.1", Help: "source address; also binds to its interface", Status: Differs, Why: "with a number, or nothing, it is Windows' -a: no effect, and said"},
	{Name: "-n", Meta: "threads", Role: Sender, Help: "sending threads per port", Limits: "1 to 25600, default 4; clamped", Status: Done},
	{Name: "-l", Meta: "connections", Role: Sender, Since: "1.3.2", Help: "connections per thread", Limits: "1 to 1000, default 1; clamped", Status: Differs, Why: "with a unit (-l 64K) it is Windows' length, as -b (original: 64 connections)"},
	{Name: "-6", Role: Both, Help: "IPv6", Limits: "default IPv4", Status: Differs, Why: "with -u too (original: hangs)"},
	{Name: "-u", Role: Both, Help: "UDP", Limits: "default TCP", Status: Done},
	{Name: "-p", Meta: "port", Role: Both, Help: "first data port; the one below it synchronises", Limits: "default 5001", Status: Differs, Why: "ports that do not fit into 1 to 65535 are refused, exit 255 (original: hangs); 65536 and more are reduced, as in the original, and said"},
	{Name: "-f", Meta: "port", Optional: true, Role: Sender, Since: "1.2.0", Help: "first source port, the others follow", Limits: "default any; 25001 without a value, or for one up to 1024", Status: Differs, Why: "where the ports do not suffice any are taken, and said (original: those connections never come); on a receiver it is ignored and said"},
	{Name: "-b", Meta: "size", Role: Both, Help: "bytes per call or datagram, n[KMG] of 1024", Limits: "default 64K for a receiver, 128K for a sender; UDP at most 65507", Status: Differs, Why: "0, a negative size and more than 2G are refused, exit 255; more than 1M is moved in pieces of 1M and said"},
	{Name: "-B", Meta: "rate", Role: Sender, Since: "1.4.0", Help: "limit of the rate in bit/s, all connections together, n[KMG] of 1000", Status: Differs, Why: "paced, not waited for with full CPU; a rate that cannot be read is refused; on a receiver it is ignored and said"},
	{Name: "-W", Meta: "seconds", Role: Both, Since: "1.3.4", Help: "warm-up, not counted", Limits: "default 0", Status: Done},
	{Name: "-t", Meta: "seconds", Role: Both, Help: "length of the test", Limits: "default 60; 0 = until Ctrl-C", Status: Differs, Why: "with 0, Ctrl-C prints totals and writes files (original: nothing)"},
	{Name: "-C", Meta: "seconds", Role: Both, Since: "1.3.4", Help: "cool-down, not counted", Limits: "default 0", Status: Done},
	{Name: "-N", Role: Both, Help: "no synchronisation: send as soon as the connections are up", Status: Differs, Why: "the receiver does not need it: it goes by where the first connection lands"},
	{Name: "-O", Meta: "file", Optional: true, Role: Both, Since: "1.4.0", Help: "write the log lines into a file too", Limits: "default " + linuxLog, Status: Done},
	{Name: "-x", Meta: "file", Optional: true, Role: Both, Since: "1.3.1", Help: "write the result as XML", Limits: "default " + linuxXML, Status: Differs, Why: "names are escaped; a file that cannot be written ends the program before the test"},
	{Name: "-j", Meta: "file", Optional: true, Role: Both, Since: "1.4.0", Help: "write the result as JSON", Limits: "default " + linuxJSON, Status: Differs, Why: "names are escaped; a file that cannot be written ends the program before the test"},
	{Name: "-Q", Role: Both, Since: "1.4.0", Help: "no real-time lines", Status: Done},
	{Name: "-V", Role: Both, Help: "say more", Status: Done},
	{Name: "-h", Role: Both, Help: "print this text; exit code 23", Status: Differs, Why: "our own words, same layout"},
	{Name: "-m", Meta: "mapping", Role: Both, Help: "ports,CPU,address in one, as for Windows' program", Limits: "default 16,*,*", Status: Differs, Why: "the address may be a name without a dot (original: refused)"},
	{Name: "--show-tcp-retrans", Role: Both, Since: "1.4.0", Help: "count the system's TCP retransmits by kind", Status: Done},
	{Name: "--show-nic-packets", Meta: "interface", Role: Both, Since: "1.4.0", Help: "count the packets of an interface", Status: Done},
	{Name: "--show-dev-interrupts", Meta: "text", Role: Both, Since: "1.4.0", Help: "count the interrupts whose line in /proc/interrupts has the text", Status: Done},
	{Name: "--fq-rate-limit", Meta: "rate", Role: Sender, Since: "1.4.0", Help: "limit of the rate as -B, paced by the kernel", Status: Differs, Why: "connections may have more than 34 Gbit/s; on a receiver it is ignored and said"},
	{Name: "--no-delay", Role: Both, Since: "1.4.2", Help: "TCP_NODELAY on the data connections", Status: Done},
}

const (
	whySizes = "sizes above 2147483647 are refused (original: 32 bits wrap); junk is said"
)

// WindowsOptions is the table of ntttcp.exe 5.40, in the order of its help.
var WindowsOptions = []Option{
	{Name: "-s", Role: Sender, Help: "be the sender", Limits: "default when called as ntttcps", Status: Done},
	{Name: "-r", Role: Receiver, Help: "be the receiver", Limits: "default", Status: Done},
	{Name: "-l", Meta: "size", Role: Both, Help: "bytes per call or datagram", Limits: "default 64K; UDP 128", Status: Differs, Why: whySizes + "; more than UDP's 65507 is refused; more than 1M is moved in pieces of 1M and said; a larger datagram than the receiver's -l is received"},
	{Name: "-n", Meta: "count", Role: Both, Help: "number of calls per thread, then stop", Limits: "default 20K", Status: Differs, Why: whySizes + "; a receiver ends with its sender, however many receives that took (original: after as many, also where the last bytes were still to come)"},
	{Name: "-p", Meta: "port", Role: Both, Help: "first data port; 1000 above it are the ports that synchronise", Limits: "default 5001", Status: Differs, Why: "ports that do not fit into 1 to 65535 are refused; written -P, a line says what it means"},
	{Name: "-sp", Role: Both, Help: "ask the receiver at the first port for data ports", Status: Differs, Why: "with -6 too"},
	{Name: "-ns", Role: Both, Help: "no synchronisation", Status: Differs, Why: "the receiver does not need it: it goes by where the first connection lands"},
	{Name: "-to", Meta: "ms", Role: Both, Help: "limit of each wait", Limits: "default 600000; 0 = none", Status: Differs, Why: "a sender without a receiver ends after its retries (original: hangs)"},
	{Name: "-a", Meta: "n", Optional: true, Role: Both, Help: "calls that overlap, per connection", Limits: "1 to 63, default 2", Status: Differs, Why: "on Windows alone, with SO_SNDBUF 0 as there; over UDP and with -jm one call at a time"},
	{Name: "-rb", Meta: "size", Role: Both, Help: "SO_RCVBUF", Limits: "default -1 = the system's", Status: Differs, Why: whySizes},
	{Name: "-sb", Meta: "size", Role: Both, Help: "SO_SNDBUF", Limits: "default -1 = the system's", Status: Differs, Why: whySizes},
	{Name: "-ndl", Role: Both, Help: "TCP_NODELAY", Status: Differs, Why: "no effect on UDP, and said (original: that thread fails)"},
	{Name: "-u", Role: Both, Help: "UDP", Limits: "default TCP", Status: Done},
	{Name: "-w", Role: Both, Help: "WSASend and WSARecv; needs -a", Status: Differs, Why: "recorded; they are used always (original: WriteFile, ReadFile)", WindowsOnly: true},
	{Name: "-rt", Role: Both, Help: "round trips: each send is answered", Status: Done},
	{Name: "-d", Role: Receiver, Help: "verify that every byte is right", Status: Differs, Why: "a wrong datagram is said at the end of the test (original: it ends that thread)"},
	{Name: "-t", Meta: "seconds", Role: Both, Help: "length of the test; with -n its limit", Limits: "at least 1; default with -n 3 hours", Status: Differs, Why: "0 runs until Ctrl-C (original: refused); more than 2147483 is refused (original: 32 bits wrap)"},
	{Name: "-cd", Meta: "seconds", Role: Both, Help: "cool-down, not counted", Limits: "default 0; only with -t", Status: Differs, Why: "a negative one is refused"},
	{Name: "-wu", Meta: "seconds", Role: Both, Help: "warm-up, not counted", Limits: "default 0; only with -t", Status: Differs, Why: "a negative one is refused"},
	{Name: "-v", Role: Both, Help: "say more", Status: Differs, Why: "mappings are shown whole"},
	{Name: "-6", Role: Both, Help: "IPv6", Limits: "default IPv4", Status: Done},
	{Name: "-wa", Role: Receiver, Help: "receive full buffers only", Status: Done},
	{Name: "-nic", Meta: "address", Role: SenderOnly, Help: "source address", Status: Done},
	{Name: "-xml", Meta: "file", Optional: true, Role: Both, Help: "append the result as XML instead of printing tables", Limits: "default " + windowsXML, Status: Differs, Why: "names are escaped; a file that cannot be written ends the program before the test"},
	{Name: "-na", Meta: "node", Role: Both, Help: "run the threads without a CPU on a NUMA node", Status: Differs, Why: "no effect, and said; CPUs are given in -m", WindowsOnly: true},
	{Name: "-hpt", Role: Both, Help: "no rows of single threads", Status: Done},
	{Name: "-uso", Meta: "bytes", Role: SenderOnly, Help: "UDP segmentation: datagrams of so many bytes; needs -s and -u", Status: Done},
	{Name: "-uro", Role: ReceiverOnly, Help: "UDP receive coalescing; needs -r and -u", Status: Differs, Why: "recorded; it is used wherever the system has it"},
	{Name: "-uc", Role: Both, Since: "5.39", Help: "unconnected UDP sockets; needs -u", Status: Differs, Why: "recorded; a sender's sockets are connected, a receiver's never are"},
	{Name: "-x", Meta: "n", Optional: true, Role: SenderOnly, Help: "TransmitPackets with n buffers per call; needs -a", Limits: "default 1", Status: Differs, Why: "recorded; sent with WSASend: the same bytes, one buffer per call", WindowsOnly: true},
	{Name: "-hv", Role: Both, Help: "Hyper-V sockets; hosts are GUIDs", Status: Differs, Why: "refused: packages net and x/sys have no addresses of AF_HYPERV, and nothing here could test it"},
	{Name: "-nsb", Role: Both, Help: "print at once", Status: Differs, Why: "needless: every line is written at once"},
	{Name: "-thr", Meta: "KB/s", Role: SenderOnly, Help: "limit of the rate of each thread", Status: Differs, Why: "64 bits (original: wraps above 2097151); 1 byte per ms at least"},
	{Name: "-brn", Meta: "n", Role: Both, Help: "turns of a loop after each call, in thousands", Limits: "default 0", Status: Done},
	{Name: "-lm", Role: Both, Help: "measure the latency of each call", Status: Done},
	{Name: "-icp", Meta: "threads", Role: Both, Help: "I/O completion port with so many threads; needs -a", Limits: "0 = one per CPU", Status: Differs, Why: "recorded; each connection waits for its own calls: a socket has one port, and that is the Go runtime's", WindowsOnly: true},
	{Name: "-cfi", Role: Both, Help: "CPU load from idle cycles", Status: Differs, Why: "no effect on systems other than Windows, and said", WindowsOnly: true},
	{Name: "-es", Role: Both, Help: "the system's TCP statistics of each connection, in the XML; administrator only", Status: Differs, Why: "on Windows alone; MaxAppWQueue is itself (original: MaxRetxQueue again)", WindowsOnly: true},
	{Name: "-sam", Meta: "seconds", Role: Both, Help: "a result for each part of the test of so many seconds; needs -t", Status: Differs, Why: "also before -t (original: no samples), and without -xml (original: crashes); the latency of calls (-lm) is of the whole test only"},
	{Name: "-qos", Meta: "priority", Role: Sender, Help: "0 best effort, 1 background, 2 excellent effort, 3 audio/video, 4 voice, 5 control", Status: Differs, Why: "sets the code point; no qWAVE flow"},
	{Name: "-jm", Meta: "file", Optional: true, Role: Both, Help: "number and time in each buffer; the receiver appends arrival times to a file", Status: Done},
	{Name: "-ps", Meta: "ms", Role: SenderOnly, Help: "one send per period; one thread, not with -a, -thr, -brn", Limits: "5 to 1000", Status: Done},
	{Name: "-m", Meta: "mapping…", Role: Both, Help: "threads,CPU,host, separated by blanks; required", Status: Differs, Why: "given twice, all mappings count (original: hangs); a receiver's host that is another machine: listens on all of its own and says so (original: error 10049)"},
}

func findLinux(name string) *Option   { return find(LinuxOptions, name) }
func findWindows(name string) *Option { return find(WindowsOptions, name) }

func find(table []Option, name string) *Option {
	for i := range table {
		if table[i].Name == name {
			return &table[i]
		}
	}
	return nil
}

// linuxSpellings is the Linux table in the form that getopt reads.
func linuxSpellings() []getopt.Option {
	var out []getopt.Option
	for _, o := range LinuxOptions {
		row := getopt.Option{Key: o.Name}
		switch {
		case o.Optional:
			row.Arg = getopt.Optional
		case o.Meta != "":
			row.Arg = getopt.Required
		}
		if long, isLong := strings.CutPrefix(o.Name, "--"); isLong {
			row.Long = long
		} else {
			row.Short = o.Name[1]
		}
		out = append(out, row)
	}
	return out
}

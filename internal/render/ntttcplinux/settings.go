package ntttcplinux

import (
	"fmt"
	"strings"

	"github.com/fullbore-net/fullbore/result"
)

// Settings are what the command line said and a run does not hold, for -V's block and for
// the documents. What is zero is taken from the run where it has it.
type Settings struct {
	CPU        *int   // the process is bound to it; nil = "*"
	Address    string // of the receiver
	Client     string // local address of a sender
	IPv6       bool
	SourcePort int // first local port of a sender, 0 = any

	// Sizes of the buffers given to one call; 0 = 131072 and 65536.
	SendBuffer, RecvBuffer int64
	// Bandwidth and FQRate are the limits of all connections together, bit/s.
	Bandwidth, FQRate int64

	Daemon, Epoll, Hold bool
	ShowRetransmits     bool
	Interface           string // whose packets are shown
	Interrupts          string // of which devices

	LogFile, XMLFile, JSONFile string // "" = none

	Computer string // name of this host
	System   string // uname -a
}

// fill takes over from r what the command line did not say.
func (s Settings) fill(r *result.Run) Settings {
	host := r.Hosts.Of(r.End)
	if s.Computer == "" && host != nil {
		s.Computer = host.Name
	}
	if s.System == "" && host != nil {
		s.System = host.SystemInfo
	}
	if s.Address == "" {
		s.Address = r.Test.Target
	}
	if s.Address == "" && s.IPv6 {
		s.Address = "::"
	}
	if s.Address == "" {
		s.Address = "0.0.0.0"
	}
	s.IPv6 = s.IPv6 || strings.Contains(s.Address, ":")
	if s.Client == "" && s.IPv6 {
		s.Client = "::"
	}
	if s.Client == "" {
		s.Client = "0.0.0.0"
	}
	block := int64(r.Test.BlockSize)
	if s.SendBuffer == 0 {
		s.SendBuffer = 128 << 10
		switch {
		case r.End == result.Client && block > 0:
			s.SendBuffer = block
		case r.Test.Transport == "udp":
			s.SendBuffer = 65507 // the longest datagram
		}
	}
	if s.RecvBuffer == 0 {
		s.RecvBuffer = 64 << 10
		if r.End == result.Server && block > 0 {
			s.RecvBuffer = block
		}
	}
	if n := int64(max(r.Test.Streams, 1)); s.Bandwidth == 0 {
		s.Bandwidth = r.Test.Bitrate * n
	}
	if n := int64(max(r.Test.Streams, 1)); s.FQRate == 0 {
		s.FQRate = r.Test.FQRate * n
	}
	return s
}

// ntttcp is what r says of itself; a run that is not NTTTCP's has the defaults.
func ntttcp(r *result.Run) result.NTTTCP {
	if r.NTTTCP != nil {
		return *r.NTTTCP
	}
	return result.NTTTCP{Dialect: "linux", Ports: max(r.Test.Streams, 1), Threads: 1, Connections: 1, BasePort: r.Test.Port}
}

const ruler = "---------------------------------------------------------\n"

// block is what -V prints of the settings.
func (s Settings) block(r *result.Run, o *Options) string {
	var b strings.Builder
	flag := func(on bool, text string) {
		if on {
			b.WriteString("*** " + text + "\n")
		}
	}
	line := func(label string, tabs int, value any) {
		fmt.Fprintf(&b, "%s:%s %v\n", label, strings.Repeat("\t", tabs), value)
	}
	n := ntttcp(r)
	sender := r.End == result.Client
	s = s.fill(r)
	flag(!sender, "receiver role")
	flag(sender, "sender role")
	flag(s.Daemon, "run as daemon")
	flag(!sender && s.Epoll, "use epoll()")
	flag(!sender && s.Hold, "hold receiver always running")
	if n.MultiClient {
		line("multiple clients", 2, "yes")
	}
	if n.LastClient {
		line("last client", 3, "yes")
	}
	flag(n.NoSync, "no sender/receiver synch")
	if sender {
		line("connections", 3, fmt.Sprintf("%d X %d X %d", n.Ports, n.Threads, n.Connections))
	} else {
		line("ports", 4, n.Ports)
	}
	cpu := "*"
	if s.CPU != nil {
		cpu = fmt.Sprint(*s.CPU)
	}
	line("cpu affinity", 3, cpu)
	line("server address", 3, s.Address)
	if sender && o.Release.since(R143) {
		line("client address", 3, s.Client)
	}
	line("domain", 4, choose(s.IPv6, "IPv6", "IPv4"))
	line("protocol", 3, strings.ToUpper(choose(r.Test.Transport == "udp", "udp", "tcp")))
	line("server port starting at", 1, n.BasePort)
	if sender && s.SourcePort > 0 {
		line("client source port starting at", 1, s.SourcePort)
	}
	if sender {
		line("sender socket buffer (bytes)", 1, s.SendBuffer)
	} else {
		line("receiver socket buffer (bytes)", 1, s.RecvBuffer)
	}
	if sender && s.Bandwidth != 0 {
		line("bandwidth limit (bits/sec)", 1, s.Bandwidth)
	}
	if sender && s.FQRate != 0 {
		line("fq rate limit (bits/sec)", 1, s.FQRate)
	}
	if o.Release.since(R143) {
		line("tcp nodelay", 1, choose(r.Test.NoDelay, "yes", "no"))
	}
	line("test warm-up (sec)", 2, secondsOr(r.Test.Omit, "no"))
	line("test duration (sec)", 2, secondsOr(r.Test.Duration, "continuous"))
	line("test cool-down (sec)", 2, secondsOr(n.Cooldown, "no"))
	line("show system tcp retransmit", 1, choose(s.ShowRetransmits, "yes", "no"))
	if s.Interface != "" {
		line("show packets for", 2, s.Interface)
	}
	if s.Interrupts != "" {
		line("show device interrupts for", 1, s.Interrupts)
	}
	if s.LogFile != "" {
		line("capture console output to:", 1, s.LogFile)
	}
	if s.XMLFile != "" {
		line("save output to xml file:", 1, s.XMLFile)
	}
	if s.JSONFile != "" {
		line("save output to json file:", 1, s.JSONFile)
	}
	if o.Release.since(R140) {
		line("quiet mode", 3, choose(o.Quiet, "enabled", "disabled"))
	}
	line("verbose mode", 3, choose(o.Verbose, "enabled", "disabled"))
	b.WriteString(ruler)
	return b.String()
}

func choose(on bool, yes, no string) string {
	if on {
		return yes
	}
	return no
}

func secondsOr(s float64, zero string) string {
	if s == 0 {
		return zero
	}
	return fmt.Sprint(s)
}

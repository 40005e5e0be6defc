package ntttcp

import (
	"fmt"
	"strings"
)

// settings is the block that -V shows, and that follows a conflict of arguments: labels,
// tabs and order as ntttcp-for-linux prints them.
func (p *linuxParser) settings() string {
	var b strings.Builder
	flag := func(on bool, text string) {
		if on {
			b.WriteString("*** " + text + "\n")
		}
	}
	row := func(on bool, label, tabs string, value any) {
		if on {
			fmt.Fprintf(&b, "%s:%s %v\n", label, tabs, value)
		}
	}
	either := func(is bool, yes, no string) string {
		if is {
			return yes
		}
		return no
	}
	seconds := func(n int32, zero string) any {
		if n == 0 {
			return zero
		}
		return n
	}
	flag(p.server, "receiver role")
	flag(p.client, "sender role")
	flag(p.daemon, "run as daemon")
	flag(p.server && p.n.Epoll, "use epoll()")
	flag(p.server && p.hold, "hold receiver always running")
	row(p.n.MultiClient, "multiple clients", "\t\t", "yes")
	row(p.n.Last, "last client", "\t\t\t", "yes")
	flag(p.n.NoSync, "no sender/receiver synch")
	row(p.client, "connections", "\t\t\t", fmt.Sprintf("%d X %d X %d", int32(p.ports), int32(p.threads), int32(p.conns)))
	row(!p.client, "ports", "\t\t\t\t", int32(p.ports))
	var cpu any = p.cpu
	if p.cpu == -1 {
		cpu = "*"
	}
	row(true, "cpu affinity", "\t\t\t", cpu)
	row(true, "server address", "\t\t\t", p.address)
	row(p.client, "client address", "\t\t\t", p.source)
	row(true, "domain", "\t\t\t\t", either(p.v6, "IPv6", "IPv4"))
	row(true, "protocol", "\t\t\t", either(p.udp, "UDP", "TCP"))
	row(true, "server port starting at", "\t", int32(p.basePort))
	row(p.client && p.sourcePort > 0, "client source port starting at", "\t", int32(p.sourcePort))
	row(p.server, "receiver socket buffer (bytes)", "\t", p.receiveBlock)
	row(p.client, "sender socket buffer (bytes)", "\t", p.sendBlock)
	row(p.client && p.rate != 0, "bandwidth limit (bits/sec)", "\t", p.rate)
	row(p.client && p.fqRate != 0, "fq rate limit (bits/sec)", "\t", p.fqRate)
	row(true, "tcp nodelay", "\t", either(p.noDelay, "yes", "no"))
	row(true, "test warm-up (sec)", "\t\t", seconds(p.warmUp, "no"))
	row(true, "test duration (sec)", "\t\t", seconds(p.time, "continuous"))
	row(true, "test cool-down (sec)", "\t\t", seconds(p.coolDown, "no"))
	row(true, "show system tcp retransmit", "\t", either(p.out.TCPRetransmits, "yes", "no"))
	row(p.out.Interface != "", "show packets for", "\t\t", p.out.Interface)
	row(p.out.Interrupts != "", "show device interrupts for", "\t", p.out.Interrupts)
	row(p.out.Log != "", "capture console output to:", "\t", p.out.Log)
	row(p.out.XML != "", "save output to xml file:", "\t", p.out.XML)
	row(p.out.JSON != "", "save output to json file:", "\t", p.out.JSON)
	row(true, "quiet mode", "\t\t\t", either(p.out.Realtime, "disabled", "enabled"))
	row(true, "verbose mode", "\t\t\t", either(p.out.Verbose, "enabled", "disabled"))
	b.WriteString(ruler)
	return b.String()
}

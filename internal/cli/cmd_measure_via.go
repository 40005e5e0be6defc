package cli

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/fullbore-net/fullbore/internal/plan"
)

// via is another protocol than iperf3's for `fullbore test`: what --via asks for.
type via struct {
	dialect plan.NTTTCPDialect
	noSync  bool
	ports   int // of the receiver; 0 = by the number of streams
}

// viaWindows is the word for a receiver of the Windows dialect.
const viaWindows = "ntttcp-windows"

const viaHelp = "the peer is an NTTTCP receiver: ntttcp (Linux sync, as ntttcp -r and fullbore serve), ntttcp-windows (tokens, as ntttcp.exe -r), ntttcp-nosync; with :N its number of ports (default: one for each stream, up to 16)"

// notVia are the flags that an NTTTCP test has nothing for.
var notVia = []string{
	"down", "both", "bytes", "burst", "mss", "cc", "flow-label", "mptcp", "queue", "pacing", "offload", "allow-fragments",
	"connect-timeout", "receive-timeout",
}

// useVia checks what goes with --via.
func (o *testOptions) useVia(flags *pflag.FlagSet, hosts []string) error {
	if o.viaWord == "" {
		return nil
	}
	if slices.Contains(hosts, "self") {
		return &UsageError{
			Msg:   "--via: \"self\" is a server for this program's own protocol",
			Hints: []string{"to try it here: fullbore ntttcp -r -H, and in another window: fullbore test 127.0.0.1 --via " + o.viaWord},
		}
	}
	v, err := parseVia(o.viaWord)
	if err != nil {
		return err
	}
	name, _, _ := strings.Cut(o.viaWord, ":")
	for _, flag := range notVia {
		if flags.Changed(flag) {
			return &UsageError{
				Msg:   fmt.Sprintf("--via %s: NTTTCP has nothing for --%s", name, flag),
				Hints: []string{"it sends from here to HOST, for a time; fullbore and iperf3 servers do more"},
			}
		}
	}
	if o.udp.rate.auto {
		return usagef("--via %s: -b auto needs a peer that tells what arrived; give a rate", name)
	}
	if !flags.Changed("port") {
		o.plan.Port = plan.NTTTCPPort
	}
	o.up, o.via = true, v
	return nil
}

// parseVia reads the word behind --via.
func parseVia(word string) (*via, error) {
	name, ports, counted := strings.Cut(word, ":")
	v := &via{}
	switch name {
	case "ntttcp":
		v.dialect = plan.NTTTCPLinux
	case viaWindows:
		v.dialect = plan.NTTTCPWindows
	case "ntttcp-nosync":
		v.dialect, v.noSync = plan.NTTTCPLinux, true
	default:
		return nil, usagef("--via %q: must be ntttcp, ntttcp-windows or ntttcp-nosync, with :N for the receiver's number of ports", word)
	}
	if counted {
		n, err := strconv.Atoi(ports)
		if err != nil || n < 1 || n > plan.MaxNTTTCPPorts {
			return nil, usagef("--via %q: the number of ports must be 1…%d", word, plan.MaxNTTTCPPorts)
		}
		v.ports = n
	}
	return v, nil
}

// plan makes an NTTTCP plan of p.
func (v *via) plan(p plan.Plan) (plan.Plan, error) {
	n := &plan.NTTTCP{Dialect: v.dialect, Role: plan.NTTTCPSender, NoSync: v.noSync, Threads: 1, Connections: 1}
	p.Protocol, p.NTTTCP = plan.ProtocolNTTTCP, n
	n.Ports = v.ports
	switch {
	case v.dialect == plan.NTTTCPWindows:
		if n.Ports != 0 && n.Ports != p.Streams {
			return p, usagef("--via ntttcp-windows:%d: it has a port for each stream, and -P is %d", n.Ports, p.Streams)
		}
		n.Ports = p.Streams
		n.Mappings = []plan.NTTTCPMapping{{Threads: p.Streams, Host: p.Host}}
	case n.Ports == 0:
		for n.Ports = min(p.Streams, plan.NTTTCPPorts); p.Streams%n.Ports != 0; n.Ports-- {
		}
		fallthrough
	default:
		if p.Streams%n.Ports != 0 {
			return p, usagef("--via ntttcp:%d: every port has equally many streams, and %d are not a multiple of that", n.Ports, p.Streams)
		}
		n.Threads = p.Streams / n.Ports
	}
	if p.Duration == 0 {
		p.Duration = plan.DefaultDuration
	}
	if p.Interval == 0 {
		p.Interval = time.Second
	}
	p.RateSet, p.DontFragment, p.RemoteDiscard, p.Receive = false, false, false, ""
	return p, nil
}

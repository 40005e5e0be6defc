package ntttcp

import (
	"fmt"
	"math"
	"net/netip"
	"strings"
	"time"

	"github.com/fullbore-net/fullbore/internal/plan"
)

// finish is verify_args, main's checks and the first of the receiver's, in the original's
// order, with what cannot be run beside them; then it builds the invocation.
func (p *linuxParser) finish() (*Invocation, *Exit) {
	if p.role != "" && !p.server && !p.client {
		p.server, p.client = p.role == plan.NTTTCPReceiver, p.role == plan.NTTTCPSender
	}
	for _, check := range []func() *Exit{p.checkAddresses, p.checkRoles} {
		if exit := check(); exit != nil {
			return nil, exit
		}
	}
	p.clampCounts()
	p.checkSender()
	p.clampSizes()
	p.clampTimes()
	if p.udp && p.noDelay {
		return nil, p.conflict(textNoDelayUDP, "")
	}
	if exit := p.checkRunnable(); exit != nil {
		return nil, exit
	}
	if exit := p.checkFiles(); exit != nil {
		return nil, exit
	}
	settings := p.settings()
	if p.server {
		if exit := p.checkLocal(settings); exit != nil {
			return nil, exit
		}
	}
	p.remarks()
	inv := p.build()
	inv.Settings = settings
	if err := p.plan.Validate(); err != nil { // the safety net below the checks above
		return nil, p.conflict(strings.ReplaceAll(err.Error(), "\n", "; "), "")
	}
	return inv, nil
}

func (p *linuxParser) checkAddresses() *Exit {
	switch {
	case p.server && p.client:
		return p.conflict(textBothRoles, "")
	case p.mapping == "":
		return p.conflict(textNoMapping, "")
	}
	if p.v6 && p.address == "0.0.0.0" {
		p.address = "::"
	}
	// The original takes no name without a dot; ntttcp.exe takes any as third field of -m.
	bare := p.named && isName(p.address)
	switch {
	case p.v6 && !strings.Contains(p.address, ":") && !bare:
		return p.conflict(textIPv6, fmt.Sprintf("'%s': -6 needs an address with a colon", p.address))
	case !p.v6 && !strings.Contains(p.address, ".") && !bare:
		hint := "'%s': give an IPv4 address or a name with a dot"
		if strings.Contains(p.address, ":") {
			hint = "'%s': for IPv6 give -6 too"
		}
		return p.conflict(textIPv4, fmt.Sprintf(hint, p.address))
	}
	if bare && !strings.Contains(p.address, ".") {
		p.note(fmt.Sprintf("'%s' is looked up as a name, as ntttcp.exe does", p.address))
	}
	if p.v6 && p.source == "0.0.0.0" {
		p.source = "::"
	}
	if p.sourceSet && p.server {
		return p.conflict(textSourceReceiver, "")
	}
	if addr, err := netip.ParseAddr(p.source); p.sourceSet && (err != nil || addr.Zone() != "") {
		return p.conflict(textSourceAddress, fmt.Sprintf("-a '%s': give an address of this machine", p.source))
	}
	return nil
}

// isName: s can be a host name without a dot.
func isName(s string) bool {
	for _, c := range []byte(s) {
		if !('a' <= c|0x20 && c|0x20 <= 'z' || '0' <= c && c <= '9' || c == '-' || c == '_') {
			return false
		}
	}
	return s != "" && ('a' <= s[0]|0x20 && s[0]|0x20 <= 'z')
}

func (p *linuxParser) checkRoles() *Exit {
	switch {
	case !p.server && !p.client:
		p.log(levelInfo, textNoRole)
		p.server = true
	case p.client && p.n.MultiClient:
		return p.conflict(textMultiSender, "")
	}
	if p.server && p.n.Last {
		return p.conflict(textLastReceiver, "")
	}
	return nil
}

func (p *linuxParser) clampCounts() {
	for _, c := range []struct {
		applies   bool
		n         *uint32
		most      uint32
		many, few string
	}{
		{true, &p.ports, plan.MaxNTTTCPPorts, textManyPorts, textFewPorts},
		{p.client, &p.threads, plan.MaxNTTTCPThreads, textManyThreads, textFewThreads},
		{p.client, &p.conns, plan.MaxNTTTCPConnections, textManyConns, textFewConns},
	} {
		if c.applies && *c.n > c.most {
			p.clamp(c.many)
			*c.n = c.most
		}
	}
	for _, c := range []struct {
		applies bool
		n       *uint32
		few     string
	}{{true, &p.ports, textFewPorts}, {p.client, &p.threads, textFewThreads}, {p.client, &p.conns, textFewConns}} {
		if c.applies && *c.n < 1 {
			p.clamp(c.few)
			*c.n = 1
		}
	}
}

// connections is how many there are in all, as far as this end knows.
func (p *linuxParser) connections() int64 {
	if p.client {
		return int64(p.ports) * int64(p.threads) * int64(p.conns)
	}
	return int64(p.ports)
}

// checkSender: source ports and limits of the rate.
func (p *linuxParser) checkSender() {
	if !p.client {
		return
	}
	if 0 < p.sourcePort && p.sourcePort <= 1024 {
		p.note(fmt.Sprintf("-f %d is too low: source ports begin at %d, as in the original", p.sourcePort, linuxSourcePort))
		p.sourcePort = linuxSourcePort
	}
	if int64(int32(65535-p.sourcePort)) < p.connections() {
		p.log(levelError, textSourcePorts)
		p.unclear = true
	}
	if p.rate != 0 {
		p.log(levelInfo, fmt.Sprintf(textLimited, "-B"))
	}
	if p.fqRate != 0 {
		p.log(levelInfo, fmt.Sprintf(textLimited, "--fq-rate-limit"))
	}
	if p.rate != 0 && p.fqRate != 0 {
		p.log(levelInfo, textFQIgnored)
		p.fqRate = 0
	}
}

func (p *linuxParser) clampSizes() {
	if p.udp && (p.sendBlock > plan.MaxUDPBlock || p.sendBlock < 0) {
		p.log(levelInfo, textUDPSize) // also for the default, so it is no sign of a mistake
		p.sendBlock = plan.MaxUDPBlock
		if p.client && !p.blockSet {
			p.note(fmt.Sprintf("-u without -b: datagrams of %d bytes, which the path cuts to pieces", plan.MaxUDPBlock))
		}
	}
	if strings.HasPrefix(p.out.Interface, "-") {
		p.clamp(textInterface)
		p.out.Interface = ""
	}
	if strings.HasPrefix(p.out.Interrupts, "-") {
		p.clamp(textInterrupts)
		p.out.Interrupts = ""
	}
}

func (p *linuxParser) clampTimes() {
	if p.time < 0 {
		p.time = 60
		p.clamp(textDuration)
	}
	if p.time == 0 {
		p.log(levelInfo, textContinuous)
	}
	if p.warmUp < 0 {
		p.warmUp = 0
		p.clamp(textWarmUp)
	}
	if p.coolDown < 0 {
		p.coolDown = 0
		p.clamp(textCoolDown)
	}
}

// checkRunnable refuses what the original takes and cannot do: it would wait for ever.
func (p *linuxParser) checkRunnable() *Exit {
	if p.basePort > 65535 {
		was := int32(p.basePort)
		p.basePort &= 0xffff
		p.unclear = true
		p.note(fmt.Sprintf("-p %d means port %d (mod 65536), as in the original", was, p.basePort))
	}
	last := p.basePort + p.ports - 1
	switch {
	case p.basePort < 1 || last > 65535 || p.basePort == 1 && !p.n.NoSync:
		return p.conflict(fmt.Sprintf(textPorts, p.basePort, last, int64(p.basePort)-1), "-p: the ports must lie in 1…65535, the one below too unless -N is given")
	case p.block() < 1 || p.block() > math.MaxInt32:
		return p.conflict(textBuffer, "-b: give 1 byte to 2 GiB")
	case p.rate < 0:
		return p.conflict(fmt.Sprintf(textRate, "-B"), "-B: give bits per second, such as 200M")
	case p.fqRate < 0:
		return p.conflict(fmt.Sprintf(textRate, "--fq-rate-limit"), "--fq-rate-limit: give bits per second, such as 200M")
	case p.connections() > 1<<31-1:
		return p.conflict(textManyConns, "-P × -n × -l is more than anybody has ports for")
	}
	return nil
}

// block is the bytes per call of this end.
func (p *linuxParser) block() int64 {
	if p.client {
		return p.sendBlock
	}
	return p.receiveBlock
}

// checkFiles is check_resource_limit: it needs to know the limit.
func (p *linuxParser) checkFiles() *Exit {
	if p.world.SoftFiles == 0 || uint64(p.connections()) <= p.world.SoftFiles {
		return nil
	}
	settings := ""
	if p.out.Verbose {
		settings = p.settings()
	}
	before := p.lines + settings
	p.lines = ""
	if p.out.Verbose {
		p.log(levelDebug, fmt.Sprintf(textFilesDebug, p.world.SoftFiles, p.world.HardFiles))
	}
	p.log(levelError, fmt.Sprintf(textFiles, p.world.SoftFiles, p.connections()))
	p.log(levelError, textResources)
	return &Exit{Code: ExitConflict, Stdout: linuxBanner() + before + p.lines, Stderr: p.stderr}
}

// checkLocal: an address of another machine makes the original give up. The articles
// give the receiver's peer its own, so all addresses are listened on; what is no address
// at all stays a fault.
func (p *linuxParser) checkLocal(settings string) *Exit {
	if !p.world.notLocal(p.address) {
		return nil
	}
	addr, err := netip.ParseAddr(p.address)
	if err == nil {
		if !addr.IsUnspecified() {
			p.note(notOurs(p.address))
		}
		p.address = "0.0.0.0"
		if p.v6 {
			p.address = "::"
		}
		return nil
	}
	if !p.out.Verbose {
		settings = ""
	}
	before := p.lines + settings
	p.lines = ""
	p.log(levelError, textNotLocal)
	return &Exit{Code: ExitUsage, Stdout: linuxBanner() + before + p.lines, Stderr: p.stderr}
}

func notOurs(address string) string {
	return address + " is not an address of this machine: listening on all of its own"
}

// remarks are lines about what is accepted and without effect, or often misread.
func (p *linuxParser) remarks() {
	ignored := func(given bool, what, whose string) {
		if given {
			p.note(fmt.Sprintf("%s is ignored: it is the %s's", what, whose))
		}
	}
	if p.client {
		ignored(p.n.Epoll, "-e", "receiver")
		ignored(p.hold, "-H", "receiver")
		if p.sourcePort > 0 && int64(p.sourcePort)+p.connections()-1 > 65535 {
			p.note(fmt.Sprintf("-f %d leaves no room for %d connections: free source ports are taken", int32(p.sourcePort), p.connections()))
			p.sourcePort = 0
		}
	} else {
		ignored(p.sourcePort > 0, "-f", "sender")
		ignored(p.rate != 0, "-B", "sender")
		ignored(p.fqRate != 0, "--fq-rate-limit", "sender")
		ignored(p.threadRate != 0, "-thr", "sender")
	}
	if p.n.NoSync && (p.n.MultiClient || p.n.Last) {
		p.note("-M and -L mean nothing with -N: nobody waits for the last sender")
		p.n.MultiClient, p.n.Last = false, false
	}
	if p.cpu >= 0 && p.connections() > 1 {
		p.note(pinned(fmt.Sprint(p.cpu), p.mapping))
	}
}

// pinned: the articles take the second field for a number of receivers.
func pinned(cpu, mapping string) string {
	return fmt.Sprintf("-m %s: the second field puts all of it on CPU %s; * leaves it to the system", mapping, cpu)
}

// build writes the plan.
func (p *linuxParser) build() *Invocation {
	n, pl := &p.n, &p.plan
	n.Role = plan.NTTTCPReceiver
	if p.client {
		n.Role = plan.NTTTCPSender
		n.Threads, n.Connections = int(p.threads), int(p.conns)
		n.Rate, n.FQRate = p.rate, p.fqRate
		if p.threadRate > 0 && p.rate == 0 {
			pl.Bitrate = max(1, p.threadRate/int64(p.conns))
		}
		pl.ClientPort = int(p.sourcePort)
		if p.sourceSet {
			pl.BindHost = p.source
		}
		n.Epoll, n.MultiClient = false, false
	} else {
		n.Threads, n.Connections = 1, 1
	}
	n.Ports = int(p.ports)
	n.CoolDown = time.Duration(p.coolDown) * time.Second
	if p.mapped != nil {
		m := *p.mapped
		m.Host = p.host()
		if p.cpu >= 0 {
			cpu := int(p.cpu)
			m.CPU = &cpu
		}
		n.Mappings = []plan.NTTTCPMapping{m}
	}
	pl.Protocol, pl.Transport, pl.Direction = plan.ProtocolNTTTCP, plan.TCP, plan.Up
	if p.udp {
		pl.Transport = plan.UDP
	}
	pl.Host, pl.Port, pl.Family = p.host(), int(p.basePort), 4
	if p.v6 {
		pl.Family = 6
	}
	pl.Streams = int(p.connections())
	pl.Duration, pl.Endless = time.Duration(p.time)*time.Second, p.time == 0
	pl.Omit, pl.Interval = time.Duration(p.warmUp)*time.Second, plan.NTTTCPInterval
	pl.BlockSize, pl.NoDelay = int(p.block()), p.noDelay
	if p.cpu >= 0 {
		pl.Affinity = []int{int(p.cpu)}
	}
	pl.NTTTCP = n
	p.out.Threads = p.out.Threads && !p.hideThreads
	inv := &Invocation{Output: p.out, Daemon: p.daemon, Banner: linuxBanner(), Lines: p.lines}
	if p.server {
		inv.Serve, inv.ListenHosts = p.serve()
	}
	inv.Plan = *pl
	return inv
}

// host is the receiver's address; "" = a receiver on all of its own. A sender without an
// address means this machine.
func (p *linuxParser) host() string {
	if addr, err := netip.ParseAddr(p.address); err != nil || !addr.IsUnspecified() {
		return p.address
	}
	switch {
	case p.server:
		return ""
	case p.v6:
		return "::1"
	}
	return "127.0.0.1"
}

func (p *linuxParser) serve() (*plan.Serve, map[int]string) {
	addr := netip.IPv4Unspecified()
	if p.v6 {
		addr = netip.IPv6Unspecified()
	}
	var names map[int]string
	if literal, err := netip.ParseAddr(p.address); err == nil {
		addr = literal
	} else {
		names = map[int]string{0: p.address}
	}
	return &plan.Serve{
		Listen: []netip.AddrPort{netip.AddrPortFrom(addr, uint16(p.basePort))}, Family: p.plan.Family,
		OneOff: !p.hold, Exclusive: true, Interval: plan.NTTTCPInterval, Affinity: p.plan.Affinity,
	}, names
}

package doctor

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fullbore-net/fullbore/internal/oshost"
)

// wantedQueues is how many a card should have in use: one per core, eight carry any link
// that a host fills.
func (p *patient) wantedQueues() int { return min(max(p.Host.Cores, 1), 8) }

func queues(p *patient) []Check {
	var out []Check
	for _, n := range p.hardware() {
		if n.Queues == nil || n.Kind == oshost.KindWireless {
			continue
		}
		if rss, known := n.Offloads[oshost.RSS]; known && !rss.On && p.windows() {
			continue // the line about receive hashing says it
		}
		now := *n.Queues
		c := Check{On: n.Name, Status: OK, Found: fmt.Sprintf("%s: %d %s for %d cores", n.Name, now, plural(now, "queue", "queues"), p.Host.Cores)}
		most := now
		if n.Channels != nil {
			most = n.Channels.Max
		}
		want := min(p.wantedQueues(), most)
		if p.windows() {
			c.Look = rssLook(n)
		}
		demanding := p.fast() || n.SpeedBPS == nil
		switch {
		case now < want && demanding:
			c.Status = Change
			c.Why = "One queue is one core: a few gigabits, then packets are dropped while other cores idle."
			c.Fix = p.command(fmt.Sprintf("ethtool -L %s combined %d", n.Name, want),
				fmt.Sprintf("Set-NetAdapterRss -Name %s -NumberOfReceiveQueues %d", psQuote(n.Name), want))
		case now == 1 && p.Host.Cores > 1 && n.RPSCPUs != nil && *n.RPSCPUs < 2 && demanding:
			c.Status = Change
			c.Found += ", and packets are not steered to other cores"
			c.Why = "One core does all receiving. This card has no more queues, but the kernel can spread the work (RPS)."
			c.Fix = fmt.Sprintf("echo %s > /sys/class/net/%s/queues/rx-0/rps_cpus", cpuMask(p.Host.Cores), n.Name)
		}
		out = append(out, c)
	}
	return out
}

// cpuMask is the mask of the first n CPUs as sysfs takes it, at most 32 of them: enough to
// spread one queue.
func cpuMask(n int) string { return fmt.Sprintf("%x", uint64(1)<<min(n, 32)-1) }

func receiveHashing(p *patient) []Check {
	if p.windows() {
		return windowsRSS(p)
	}
	var out []Check
	for _, n := range p.hardware() {
		if n.RSSQueues == nil || n.Queues == nil || *n.Queues < 2 {
			continue
		}
		c := Check{On: n.Name, Status: OK, Found: fmt.Sprintf("%s hashes to %d of %d queues", n.Name, *n.RSSQueues, *n.Queues)}
		if *n.RSSQueues < min(*n.Queues, p.wantedQueues()) {
			c.Status = Change
			c.Why = "The other queues and their cores receive nothing."
			c.Fix = fmt.Sprintf("ethtool -X %s equal %d", n.Name, *n.Queues)
		}
		out = append(out, c)
	}
	return out
}

// interruptSpread applies M-CPU: the busiest vector takes more than 0.6 of the interrupts
// although there are several queues, or all fell on one core.
func interruptSpread(p *patient) []Check {
	var out []Check
	balanced := p.Services != nil && slices.Contains(*p.Services, "irqbalance")
	for _, n := range p.hardware() {
		if n.IRQ == nil || n.Queues == nil || *n.Queues < 2 {
			continue
		}
		c := Check{On: n.Name, Status: OK, Found: fmt.Sprintf("%s: %d vectors on %d cores, the busiest takes %.0f %%", n.Name, n.IRQ.Vectors, n.IRQ.CPUs, 100*n.IRQ.Busiest)}
		if n.IRQ.Busiest > 0.6 || n.IRQ.CPUs < 2 {
			c.Status = Change
			c.Why = "One core takes nearly all interrupts of this card and becomes the limit, whatever the others do."
			c.Fix = "systemctl enable --now irqbalance"
			if balanced {
				c.Why += " irqbalance runs, so look at the card's hashing and at pinned interrupts."
				c.Fix = "grep " + n.Name + " /proc/interrupts"
			}
		}
		out = append(out, c)
	}
	return out
}

func receiveRing(p *patient) []Check {
	var out []Check
	for _, n := range p.hardware() {
		if n.Rings == nil {
			continue
		}
		r := n.Rings.Rx
		c := Check{On: n.Name, Status: OK, Found: fmt.Sprintf("%s: %d of at most %d descriptors", n.Name, r.Now, r.Max)}
		missed := int64(0)
		if n.Errors != nil {
			missed = n.Errors.RxMissed
		}
		switch {
		case r.Now >= r.Max:
		case missed > 0:
			c.Status = Change
			c.Found += fmt.Sprintf(", %d packets found no room", missed)
			c.Why = "Bursts overflow the ring before the core comes to empty it."
		case p.fast() && r.Now < 1024:
			c.Status = Change
			c.Why = "At this rate so small a ring fills within a few hundred microseconds."
		}
		if c.Status == Change {
			c.Fix = fmt.Sprintf("ethtool -G %s rx %d", n.Name, min(r.Max, 4096))
		}
		out = append(out, c)
	}
	return out
}

func transmitSteering(p *patient) []Check {
	var out []Check
	for _, n := range p.hardware() {
		if n.XPSQueues == nil || n.Queues == nil || *n.Queues < 2 || !p.fast() {
			continue
		}
		c := Check{On: n.Name, Status: OK, Found: fmt.Sprintf("%s: %d transmit queues have their cores", n.Name, *n.XPSQueues)}
		if *n.XPSQueues == 0 {
			c.Status = Info
			c.Why = "Cores share transmit queues and wait for each other's locks; drivers usually set this up."
			c.Fix = "cat /sys/class/net/" + n.Name + "/queues/tx-*/xps_cpus"
		}
		out = append(out, c)
	}
	return out
}

// offload judges one feature of every card. weight says what its absence costs.
func offload(p *patient, feature, word, cost string) []Check {
	var out []Check
	for _, n := range p.hardware() {
		f, ok := n.Offloads[feature]
		if !ok {
			continue
		}
		c := Check{On: n.Name, Status: OK, Found: n.Name + ": on"}
		switch {
		case f.On:
		case f.Fixed:
			c.Status, c.Found, c.Why = Info, n.Name+": this card or driver has none", cost
		default:
			c.Status, c.Found, c.Why = Change, n.Name+": off", cost
			c.Fix = p.command(fmt.Sprintf("ethtool -K %s %s on", n.Name, word), "Enable-NetAdapter"+word+" -Name "+psQuote(n.Name))
		}
		out = append(out, c)
	}
	return out
}

func segmentation(p *patient) []Check {
	if p.windows() {
		return windowsLSO(p)
	}
	out := offload(p, oshost.TSO, "tso", "The kernel cuts each packet itself: several times the CPU per byte when sending.")
	for i := range out {
		// Below a few gigabits the kernel's own segmentation is cheap enough, and some
		// drivers (r8169) leave TSO off because of faulty hardware.
		if n := p.nic(out[i].On); out[i].Status == Change && !p.fast() && n.Offloads[oshost.GSO].On {
			out[i].Status = Info
			out[i].Why = "The kernel segments in software instead, which is cheap enough at this rate; some drivers leave it off because of faulty cards."
		}
	}
	return out
}

func (p *patient) nic(name string) *oshost.NIC {
	for i := range p.NICs {
		if p.NICs[i].Name == name {
			return &p.NICs[i]
		}
	}
	return &oshost.NIC{}
}

func softwareSegmentation(p *patient) []Check {
	return offload(p, oshost.GSO, "gso", "Data passes the stack in packets of the MTU instead of 64 KiB: the sender is CPU bound early.")
}

func receiveMerging(p *patient) []Check {
	out := offload(p, oshost.GRO, "gro", "Each packet is handed up alone instead of up to 64 KiB at once: the receiver is CPU bound early.")
	for _, n := range p.hardware() {
		if n.Offloads[oshost.LRO].On && !p.windows() {
			out = append(out, Check{
				On: n.Name, Name: "hardware merging (LRO)", Status: Info, Found: n.Name + ": on",
				Why: "Fine on an end host; on a router or bridge it changes packets and must be off.",
				Fix: "ethtool -K " + n.Name + " lro off",
			})
		}
	}
	return out
}

func checksums(p *patient) []Check {
	rx := offload(p, oshost.RxChecksum, p.command("rx", "ChecksumOffload"), "The kernel sums every byte it receives, and GRO does not work without.")
	tx := offload(p, oshost.TxChecksum, p.command("tx", "ChecksumOffload"), "The kernel sums every byte it sends, and TSO does not work without.")
	for i := range rx {
		rx[i].Name = "check sums, receiving"
	}
	for i := range tx {
		tx[i].Name = "check sums, sending"
	}
	return append(rx, tx...)
}

// backlog matters where packets are queued to another core (RPS) or arrive without NAPI.
func backlog(p *patient) []Check {
	steered := false
	for _, n := range p.hardware() {
		steered = steered || n.RPSCPUs != nil && *n.RPSCPUs > 0
	}
	if p.TCP.Backlog == nil || !steered {
		return nil
	}
	c := Check{Status: OK, Found: fmt.Sprintf("%d packets per core", *p.TCP.Backlog)}
	if *p.TCP.Backlog < 4000 && p.fast() {
		c.Status = Change
		c.Why = "Packets that are steered to another core wait in this queue; what does not fit is dropped (softnet dropped)."
		c.Fix = "sysctl -w net.core.netdev_max_backlog=8000"
	}
	return one(c)
}

func firewall(p *patient) []Check {
	if p.Firewall == nil {
		return unseen("whether packets are filtered here is not visible", firewallLook(p))
	}
	if len(*p.Firewall) == 0 {
		return one(Check{Status: OK, Found: "no sign of a packet filter"})
	}
	c := Check{Status: Info, Found: strings.Join(*p.Firewall, ", ")}
	c.Why = "A server here needs its port open (5201 by default, TCP and UDP); filters that inspect packets also cost CPU."
	c.Fix = firewallOpen(p)
	return one(c)
}

func firewallLook(p *patient) string {
	return p.command("nft list ruleset | head", "netsh advfirewall show allprofiles state")
}

// firewallOpen is the command for the filter that was seen.
func firewallOpen(p *patient) string {
	hints := strings.Join(*p.Firewall, " ")
	switch {
	case p.windows():
		return `netsh advfirewall firewall add rule name="fullbore" program="C:\path\to\fullbore.exe" protocol=any dir=in action=allow profile=any`
	case strings.Contains(hints, "firewalld"):
		return "firewall-cmd --add-port=5201/tcp --add-port=5201/udp"
	case strings.Contains(hints, "ufw"):
		return "ufw allow 5201"
	}
	return firewallLook(p)
}

package doctor

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fullbore-net/fullbore/internal/bdp"
	"github.com/fullbore-net/fullbore/internal/oshost"
	"github.com/fullbore-net/fullbore/internal/units"
)

// The rules for what only Windows has, or keeps elsewhere. Each line carries the command
// that shows the setting (Look) besides the one that mends it.

// psQuote is a word for PowerShell, whatever is in it.
func psQuote(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// windowsTuning judges how far the receive window may grow.
func windowsTuning(p *patient) []Check {
	if !p.windows() {
		return nil
	}
	s := bdp.ForWindows(2 * p.goal.BDP())
	level, limit := p.TCP.AutotuningLevel, limitOf(p.TCP.AutotuningLevel)
	c := Check{Status: OK, Found: level, Look: s.Netsh[0], Fix: s.Netsh[1]}
	if p.TCP.AutotuningBy == "policy" {
		c.Found += ", set by a group policy"
		c.Fix = `gpedit.msc: Computer Configuration, Windows Settings, Policy-based QoS, Advanced QoS Settings, Inbound TCP Traffic`
		c.Look = s.PowerShell[0]
	}
	switch {
	case level == "":
		c.Status, c.Fix = Unknown, s.Netsh[0]
		c.Found = fmt.Sprintf("needs level %s for a window of %s", s.Level, 2*p.goal.BDP())
	case limit < p.goal.BDP():
		c.Status = Change
		c.Why = fmt.Sprintf("The window ends at %s, below the BDP of %s.", limit, p.goal.BDP())
		switch {
		case p.goal.BDP() > bdp.MaxWindow:
			c.Why += fmt.Sprintf(" No TCP window exceeds 1 GiB: at least %d streams.", bdp.Streams(p.goal.BDP(), bdp.MaxWindow))
		case level == "normal":
			c.Why += fmt.Sprintf(" %d streams fill the path without any change; Microsoft means the next level for tests.", bdp.Streams(p.goal.BDP(), limit))
		}
	case limit < limitOf("normal"):
		c.Status = Info
		c.Why = fmt.Sprintf("Enough for this goal, but a longer path is cut off at %s; levels below normal save nothing.", limit)
	case level == "experimental" && limitOf("normal") >= 2*p.goal.BDP():
		c.Status = Info
		c.Why = "More than this goal needs; Microsoft means it for tests, because some firewalls do not bear the large window scale."
	}
	out := one(c)
	if on := p.TCP.ScalingHeuristics; on != nil && *on {
		out = append(out, Check{
			Name: "window scaling heuristics", Status: Change, Found: "on",
			Why:  "Windows may narrow the window by itself, whatever the level says, when it takes a network for one that does not bear scaling.",
			Look: "netsh interface tcp show heuristics", Fix: "netsh interface tcp set heuristics disabled",
		})
	}
	return out
}

// limitOf is the largest window of a level, 0 for an unknown word.
func limitOf(level string) units.ByteSize {
	for _, l := range bdp.WindowsLevels {
		if l.Name == level {
			return l.Max
		}
	}
	return 0
}

// off reports that a switch over all cards is known to be off.
func (p *patient) off(which func(*oshost.GlobalOffloads) *bool) bool {
	if p.Offloads == nil {
		return false
	}
	on := which(p.Offloads)
	return on != nil && !*on
}

func rssLook(n *oshost.NIC) string {
	return "Get-NetAdapterRss -Name " + psQuote(n.Name) + " | Format-List Enabled,NumberOfReceiveQueues,MaxProcessors,Profile"
}

// windowsRSS judges receive side scaling: whether it is on, for all cards and for each, and
// whether its queues have CPUs of their own.
func windowsRSS(p *patient) []Check {
	var out []Check
	for _, n := range p.hardware() {
		if n.Kind == oshost.KindWireless {
			continue
		}
		f, known := n.Offloads[oshost.RSS]
		c := Check{On: n.Name, Name: "receive side scaling (RSS)", Status: OK, Look: rssLook(n), Found: n.Name + ": on"}
		if n.Queues != nil && n.RSSQueues != nil {
			c.Found += fmt.Sprintf(", %d of %d queues on CPUs of their own", *n.RSSQueues, *n.Queues)
		}
		const oneCore = "One core does all receiving: a few gigabits, then packets are dropped while other cores idle."
		switch {
		case !known:
			c.Status, c.Found, c.Fix = Unknown, n.Name+": not reported", c.Look
		case f.Fixed:
			c.Status, c.Found, c.Why = Info, n.Name+": this card or driver has none", oneCore
		case p.off(func(g *oshost.GlobalOffloads) *bool { return g.RSS }):
			c.Status, c.Found, c.Why = Change, n.Name+": switched off for all cards", oneCore
			c.Look, c.Fix = "netsh interface tcp show global", "netsh interface tcp set global rss=enabled"
		case !f.On && p.Host.Cores == 1:
			c.Found = n.Name + ": off, and there is one core"
		case !f.On:
			c.Status, c.Found, c.Why = Change, n.Name+": off", oneCore
			c.Fix = "Enable-NetAdapterRss -Name " + psQuote(n.Name)
		case n.Queues != nil && n.RSSQueues != nil && *n.RSSQueues < min(*n.Queues, p.wantedQueues()):
			c.Status = Change
			c.Why = "The queues share so few CPUs that the others receive nothing."
			c.Fix = fmt.Sprintf("Set-NetAdapterRss -Name %s -MaxProcessors %d", psQuote(n.Name), min(*n.Queues, p.wantedQueues()))
		}
		out = append(out, c)
	}
	return out
}

// families words those of the two families for which something holds, and the arguments
// that name them to a cmdlet; none for both, as the cmdlets take it.
func families(four, six bool) (words, args string) {
	switch {
	case four && six:
		return "IPv4 and IPv6", ""
	case four:
		return "IPv4", " -IPv4"
	}
	return "IPv6", " -IPv6"
}

// windowsLSO judges large send offload of both families.
func windowsLSO(p *patient) []Check {
	var out []Check
	for _, n := range p.hardware() {
		four, known4 := n.Offloads[oshost.TSO]
		six, known6 := n.Offloads[oshost.TSO6]
		c := Check{On: n.Name, Name: "segmentation (LSO)", Status: OK, Found: n.Name + ": on", Look: "Get-NetAdapterLso -Name " + psQuote(n.Name)}
		const cost = "The kernel cuts each packet itself: several times the CPU per byte when sending."
		off4, off6 := known4 && !four.On, known6 && !six.On
		switch {
		case !known4 && !known6:
			c.Status, c.Found, c.Fix = Unknown, n.Name+": not reported", c.Look
		case off4 && four.Fixed && (off6 && six.Fixed || !known6):
			c.Status, c.Found, c.Why = Info, n.Name+": this card or driver has none", cost
		case p.off(func(g *oshost.GlobalOffloads) *bool { return g.Tasks }):
			c.Status, c.Found, c.Why = Change, n.Name+": all task offloads are switched off", cost
			c.Look, c.Fix = "netsh interface ip show global", "netsh interface ip set global taskoffload=enabled"
		case off4 || off6:
			words, args := families(off4, off6)
			c.Status, c.Found, c.Why = Change, n.Name+": off for "+words, cost
			c.Fix = "Enable-NetAdapterLso -Name " + psQuote(n.Name) + args
		}
		out = append(out, c)
	}
	return out
}

// rscReasons are Windows' reasons for coalescing that was asked for and does not work, with
// what to do. %s is the card's name, quoted.
var rscReasons = map[string]struct{ text, fix string }{
	"NicPropertyDisabled":      {"it is off in the card's settings", "Enable-NetAdapterRsc -Name %s"},
	"WFPCompatibility":         {"a filter in the network stack (firewall product, VPN, virus scanner) does not bear it", "netsh wfp show state file=wfp.xml"},
	"NDISCompatibility":        {"a protocol or filter bound to the card is too old for it (NDIS before 6.30), or a virtual switch holds it", "Get-NetAdapterBinding -Name %s | Where-Object Enabled"},
	"ForwardingEnabled":        {"this host forwards packets, and merged ones cannot be forwarded", "Set-NetIPInterface -InterfaceAlias %s -Forwarding Disabled"},
	"NetOffloadGlobalDisabled": {"it is switched off for all cards", rscGlobal},
	"Capability":               {"the card cannot in its present state", ""},
}

const rscGlobal = "netsh interface tcp set global rsc=enabled"

// receiveCoalescing judges Windows' RSC, its form of merging what is received.
func receiveCoalescing(p *patient) []Check {
	if !p.windows() {
		return nil
	}
	var out []Check
	for _, n := range p.hardware() {
		c := coalescingOf(p, n)
		c.On = n.Name
		if c.Fix == "" && c.Status == Unknown {
			c.Fix = c.Look
		}
		if c.Status == Change && !p.fast() {
			c.Status = Info // cheap enough below
		}
		if c.Status != OK && c.Status != Unknown {
			c.Why = strings.TrimSpace(c.Why + " Each packet is handed up alone instead of up to 64 KiB at once: the receiver is CPU bound early.")
		}
		out = append(out, c)
	}
	return out
}

func coalescingOf(p *patient, n *oshost.NIC) Check {
	f, known := n.Offloads[oshost.LRO]
	c := Check{Status: OK, Found: n.Name + ": on", Look: "Get-NetAdapterRsc -Name " + psQuote(n.Name)}
	switch {
	case !known && n.RSC == nil:
		c.Status, c.Found = Unknown, n.Name+": not reported"
		return c
	case f.Fixed && n.RSC == nil:
		c.Status, c.Found = Info, n.Name+": this card or driver has none"
		return c
	case p.off(func(g *oshost.GlobalOffloads) *bool { return g.RSC }):
		c.Status, c.Found = Change, n.Name+": switched off for all cards"
		c.Look, c.Fix = "netsh interface tcp show global", rscGlobal
		return c
	case n.RSC == nil:
		if !f.On {
			c.Status, c.Found, c.Fix = Change, n.Name+": off", "Enable-NetAdapterRsc -Name "+psQuote(n.Name)
		}
		return c
	}
	not := func(b *bool) bool { return b != nil && !*b }
	four, six := n.RSC.IPv4, n.RSC.IPv6
	if off4, off6 := not(four.On), not(six.On); off4 || off6 {
		words, args := families(off4, off6)
		c.Status, c.Found, c.Fix = Change, n.Name+": off for "+words, "Enable-NetAdapterRsc -Name "+psQuote(n.Name)+args
		return c
	}
	if idle4, idle6 := not(four.Works), not(six.Works); idle4 || idle6 {
		words, _ := families(idle4, idle6)
		c.Status, c.Found = Change, n.Name+": on, but not at work for "+words
		name := four.Reason
		if name == "" || !idle4 {
			name = six.Reason
		}
		reason, told := rscReasons[name]
		c.Fix = c.Look
		if told {
			c.Found += " (" + name + ")"
			c.Why = "Windows' reason: " + reason.text + "."
			if reason.fix != "" {
				c.Fix = reason.fix
			}
			if strings.Contains(c.Fix, "%s") {
				c.Fix = fmt.Sprintf(c.Fix, psQuote(n.Name))
			}
		} else {
			c.Why = "Windows gives no reason."
		}
	}
	return c
}

// powerPlan judges Windows' power plan by what it does to the clock.
func powerPlan(p *patient) []Check {
	plan := p.CPU.Governor
	battery := p.CPU.OnBattery != nil && *p.CPU.OnBattery
	c := Check{Name: "power plan", Status: OK, Found: plan, Look: "powercfg /getactivescheme"}
	if plan == "" {
		c.Found = "not visible"
	}
	if p.CPU.Preference != "" {
		c.Found += ", power mode " + p.CPU.Preference
	}
	if p.CPU.MinState != nil {
		c.Found += fmt.Sprintf(", clock at least %d %%", *p.CPU.MinState)
	}
	full := slices.Contains([]string{"high performance", "ultimate performance"}, plan) ||
		p.CPU.MinState != nil && *p.CPU.MinState >= 100 || p.CPU.Preference == "best performance"
	switch {
	case p.virtual():
		c.Status, c.Why = Info, hostsClock
	case battery:
		c.Status, c.Why, c.Fix = Change, "On battery Windows saves energy, whatever the plan: cores and cards run slower, and results differ from run to run.", "plug the machine in"
		c.Found += ", on battery"
	case plan == "":
		c.Status, c.Fix = Unknown, c.Look
	case !full:
		c.Status, c.Why, c.Fix = Change, slowClock, "powercfg /setactive 8c5e7fda-e8bf-4a96-9a85-a6e23a8c635c"
	}
	return one(c)
}

package doctor

import (
	"strings"
	"testing"

	"github.com/fullbore-net/fullbore/internal/oshost"
)

// windowsHost makes the recorded Linux host a Windows one of which little is known.
func windowsHost(inv *oshost.Inventory) {
	inv.Host.OS = "windows"
	inv.TCP = oshost.TCP{}
	inv.Clock, inv.Files, inv.Services = nil, nil, nil
}

// windowsWell is a Windows host on which everything is as it should be, but for one change.
func windowsWell(change func(*oshost.Inventory)) func(*oshost.Inventory) {
	return func(inv *oshost.Inventory) {
		windowsHost(inv)
		works := oshost.FamilyCoalescing{On: p(true), Works: p(true)}
		n := &inv.NICs[0]
		n.Queues, n.RSSQueues, n.Channels = p(16), p(16), &oshost.Pair{Now: 16, Max: 64}
		n.Offloads = map[string]oshost.Offload{
			oshost.TSO: {On: true}, oshost.TSO6: {On: true}, oshost.LRO: {On: true}, oshost.RSS: {On: true},
		}
		n.RSC = &oshost.Coalescing{IPv4: works, IPv6: works}
		inv.Offloads = &oshost.GlobalOffloads{RSS: p(true), RSC: p(true), Tasks: p(true)}
		inv.TCP.AutotuningLevel, inv.TCP.AutotuningBy, inv.TCP.ScalingHeuristics = "normal", "local", p(false)
		inv.CPU.Governor, inv.CPU.MinState, inv.CPU.OnBattery = "high performance", p(100), p(false)
		change(inv)
	}
}

// card changes the card of windowsWell.
func card(change func(*oshost.NIC)) func(*oshost.Inventory) { return windowsWell(nic(change)) }

// idle is coalescing that was asked for and does not work.
func idle(reason string) func(*oshost.Inventory) {
	return card(func(n *oshost.NIC) { n.RSC.IPv4.Works, n.RSC.IPv4.Reason = p(false), reason })
}

// Windows users are told Windows' commands, whatever is found.
func TestWindowsCommands(t *testing.T) {
	foreign := []string{"ethtool", "sysctl", "ip link", "ip route", "/sys/", "/proc/", "lspci", "lscpu", "systemd", "journalctl", "cpupower", "nft", "tc -s", "ulimit", "numactl"}
	fixes := 0
	for docs, list := range cases {
		for _, c := range list {
			inv := load(t, "server-25g")
			inv.NICs[0].IRQ, inv.NICs[0].Rings, inv.NICs[0].RPSCPUs, inv.NICs[0].XPSQueues = nil, nil, nil, nil // Windows does not tell
			inv.NICs[0].Channels, inv.CPU.NUMANodes, inv.CPU.CurMHz, inv.Quota, inv.Conntrack = nil, nil, nil, nil, nil
			windowsHost(inv)
			if strings.Contains("link-speed duplex link-errors link-stability network-card pcie-slot mtu rss tso rsc checksum-offload processor governor virtual-machine firewall autotuning-level", docs) {
				c.change(inv)
				inv.Host.OS = "windows"
			}
			for _, got := range Examine(inv, c.goal) {
				if got.Fix != "" {
					fixes++
				}
				for _, word := range foreign {
					if strings.Contains(got.Fix+"\n"+got.Look, word) {
						t.Errorf("%s/%s: a Windows host is told %q, %q", docs, c.name, got.Fix, got.Look)
					}
				}
			}
		}
	}
	if fixes < 100 {
		t.Errorf("only %d commands were looked at", fixes)
	}
}

// Every line about what only Windows has says how to see it and, where it is not right, how to
// mend it; no command twice.
func TestWindowsCommandsToLookAndMend(t *testing.T) {
	look := map[string]bool{"autotuning-level": true, "rss": true, "queues": true, "tso": true, "rsc": true, "governor": true}
	seen := map[string]map[Status]bool{}
	for docs := range look {
		seen[docs] = map[Status]bool{}
	}
	for docs := range look {
		for _, c := range cases[docs] {
			inv := load(t, "server-25g")
			c.change(inv)
			if inv.Host.OS != "windows" {
				continue
			}
			for _, got := range Examine(inv, c.goal) {
				if !look[got.Docs] {
					continue
				}
				seen[got.Docs][got.Status] = true
				switch {
				case got.Look == "" && got.Fix == "", got.Status == OK && got.Look == "", got.Status == Change && got.Fix == "":
					t.Errorf("%s/%s: commands are lacking: %+v", docs, c.name, got)
				case got.Look == got.Fix:
					t.Errorf("%s/%s: the same twice: %+v", docs, c.name, got)
				}
			}
		}
	}
	for docs, outcomes := range seen {
		if !outcomes[OK] || !outcomes[Change] {
			t.Errorf("%s: only %v was looked at", docs, outcomes)
		}
	}
}

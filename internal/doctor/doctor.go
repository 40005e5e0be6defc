// Package doctor judges whether a host is fit to measure a given rate over a given
// round trip: pure rules over an oshost.Inventory. It reads nothing and changes
// nothing; every advice is a command for the user to type.
//
// Rules live in one file per topic and are listed once, in rules. A new rule is a function,
// a line there, a row in the tests with both outcomes, and a text in package explain under
// its Docs word.
package doctor

import (
	"fmt"
	"time"

	"github.com/fullbore-net/fullbore/internal/bdp"
	"github.com/fullbore-net/fullbore/internal/oshost"
	"github.com/fullbore-net/fullbore/internal/units"
)

// Status is the outcome of a check.
type Status string

// OK is fine as it is. Change is worth changing, with the command. Info cannot or need not
// be changed but must be known when numbers are read. Unknown could not be seen.
const (
	OK      Status = "ok"
	Change  Status = "change"
	Info    Status = "info"
	Unknown Status = "unknown"
)

// Check is one line of the report.
type Check struct {
	Topic  string `json:"topic"`          // "link", "queues", …, in the order of rules
	Name   string `json:"name"`           // for people
	Status Status `json:"status"`         //
	Found  string `json:"found"`          // what is there; for Unknown, why it cannot be seen
	Why    string `json:"why,omitempty"`  // what it does to a measurement; empty when OK
	Fix    string `json:"fix,omitempty"`  // a command; for Unknown, the one that shows it
	Look   string `json:"look,omitempty"` // the command that shows the setting, where it is not plain (Windows)
	Docs   string `json:"explain"`        // word for `fullbore explain`
	On     string `json:"on,omitempty"`   // the interface it is about
	Rank   int    `json:"rank,omitempty"` // 1 = mend first, among Change
}

// Goal is what the host is to carry.
type Goal struct {
	Rate    units.BitRate // 0 = the speed of the link, 1 Gbit/s when that is unknown
	RTT     time.Duration // 0 = 10 ms
	Streams int           // 0 = 128
}

// DefaultRTT is the round trip judged for when none is given: across a country.
const DefaultRTT = 10 * time.Millisecond

// Filled returns g with the defaults put in for this host.
func (g Goal) Filled(inv *oshost.Inventory) Goal {
	if g.Rate == 0 {
		g.Rate = units.GbitPerSec
		if s := speed(inv); s != nil {
			g.Rate = units.BitRate(*s)
		}
	}
	if g.RTT == 0 {
		g.RTT = DefaultRTT
	}
	if g.Streams == 0 {
		g.Streams = 128
	}
	return g
}

// BDP is what the goal keeps on the way.
func (g Goal) BDP() units.ByteSize { return bdp.Product(g.Rate, g.RTT) }

// speed is that of the first interface that has one, nil when none has.
func speed(inv *oshost.Inventory) *int64 {
	for i := range inv.NICs {
		if inv.NICs[i].SpeedBPS != nil {
			return inv.NICs[i].SpeedBPS
		}
	}
	return nil
}

// patient is what rules look at.
type patient struct {
	*oshost.Inventory
	goal Goal
}

// windows reports whether the commands must be Windows'.
func (p *patient) windows() bool { return p.Host.OS == "windows" }

// command chooses the one for this system.
func (p *patient) command(linux, windows string) string {
	if p.windows() {
		return windows
	}
	return linux
}

// hardware lists the interfaces that are cards, not software on top of them.
func (p *patient) hardware() []*oshost.NIC {
	var out []*oshost.NIC
	for i := range p.NICs {
		if k := p.NICs[i].Kind; k == oshost.KindPhysical || k == oshost.KindWireless {
			out = append(out, &p.NICs[i])
		}
	}
	return out
}

// fast reports whether the goal is one at which a single core or a small ring is in the way.
func (p *patient) fast() bool { return p.goal.Rate >= 10*units.GbitPerSec }

// rule looks at one thing. It returns nothing when the thing does not exist on this host.
type rule struct {
	topic string
	name  string
	docs  string
	look  func(*patient) []Check
}

// rules is the whole list, in the order of the report: the order in which to search, physical
// things first (recipes §4). rank orders the findings worth changing: lower is first.
var rules = []rule{
	{"link", "link speed", "link-speed", linkSpeed},
	{"link", "duplex", "duplex", duplex},
	{"link", "link errors", "link-errors", linkErrors},
	{"link", "link stability", "link-stability", linkStability},
	{"link", "network card", "network-card", networkCard},
	{"link", "PCIe slot", "pcie-slot", pcieSlot},
	{"link", "MTU", "mtu", mtu},
	{"queues", "queues", "queues", queues},
	{"queues", "receive hashing", "rss", receiveHashing},
	{"queues", "interrupts", "interrupt-spread", interruptSpread},
	{"queues", "receive ring", "ring", receiveRing},
	{"queues", "transmit steering", "xps", transmitSteering},
	{"offload", "segmentation (TSO)", "tso", segmentation},
	{"offload", "software segmentation (GSO)", "gso", softwareSegmentation},
	{"offload", "receive merging (GRO)", "gro", receiveMerging},
	{"offload", "receive coalescing (RSC)", "rsc", receiveCoalescing},
	{"offload", "check sums", "checksum-offload", checksums},
	{"tcp", "receive buffer limit", "tcp-rmem", readLimit},
	{"tcp", "send buffer limit", "tcp-wmem", writeLimit},
	{"tcp", "limit of -w, receiving", "rmem-max", coreReadLimit},
	{"tcp", "limit of -w, sending", "wmem-max", coreWriteLimit},
	{"tcp", "receive tuning", "moderate-rcvbuf", receiveTuning},
	{"tcp", "window scaling", "window-scaling", windowScaling},
	{"tcp", "selective acknowledgements", "sack-setting", selectiveAcks},
	{"tcp", "timestamps", "timestamps-setting", timestamps},
	{"tcp", "congestion control", "congestion-setting", congestion},
	{"tcp", "remembered metrics", "metrics-save", rememberedMetrics},
	{"tcp", "slow start after idle", "slow-start-after-idle", slowStartIdle},
	{"tcp", "path MTU probing", "mtu-probing", mtuProbing},
	{"tcp", "queueing discipline", "qdisc", queueingDiscipline},
	{"tcp", "auto-tuning", "autotuning-level", windowsTuning},
	{"udp", "receive buffer", "udp-buffer", datagramBuffer},
	{"cpu", "processor", "processor", processor},
	{"cpu", "frequency governor", "governor", governor},
	{"cpu", "frequency", "cpu-frequency", frequency},
	{"cpu", "CPU quota", "cpu-quota", cpuQuota},
	{"cpu", "machine", "virtual-machine", machine},
	{"cpu", "stolen time", "steal", stolen},
	{"cpu", "NUMA", "numa", numa},
	{"clock", "clock source", "clock-source", clockSource},
	{"clock", "clock synchronisation", "clock-sync", clockSync},
	{"limits", "open files", "descriptors", openFiles},
	{"limits", "local ports", "local-ports", localPorts},
	{"limits", "connection tracking", "conntrack", tracking},
	{"limits", "receive backlog", "backlog", backlog},
	{"limits", "firewall", "firewall", firewall},
}

// Examine applies every rule. The lines come in the order of the rules; those worth
// changing are ranked by that order too, so that rank 1 is what to mend first.
func Examine(inv *oshost.Inventory, g Goal) []Check {
	p := &patient{Inventory: inv, goal: g.Filled(inv)}
	if !p.linux() && !p.windows() {
		return one(Check{
			Topic: "host", Name: "this system", Status: Unknown, Docs: "doctor",
			Found: "the doctor knows Linux and Windows, not " + p.Host.OS,
		})
	}
	var out []Check
	rank := 0
	for _, r := range rules {
		for _, c := range r.look(p) {
			c.Topic, c.Docs = r.topic, r.docs
			if c.Name == "" {
				c.Name = r.name
			}
			if c.Status == OK {
				c.Why, c.Fix = "", ""
			}
			if c.Fix == c.Look {
				c.Look = "" // once is enough
			}
			if c.Status == Change {
				rank++
				c.Rank = rank
			}
			out = append(out, c)
		}
	}
	return out
}

// Summary is the closing sentence.
func Summary(checks []Check) string {
	n := map[Status]int{}
	var first *Check
	for i := range checks {
		n[checks[i].Status]++
		if checks[i].Rank == 1 {
			first = &checks[i]
		}
	}
	unseen := ""
	if n[Unknown] > 0 {
		unseen = fmt.Sprintf("; %d could not be seen", n[Unknown])
	}
	if first == nil {
		return fmt.Sprintf("Nothing is worth changing here (%d %s%s).", len(checks), plural(len(checks), "check", "checks"), unseen)
	}
	return fmt.Sprintf("%d of %d %s %s worth changing%s. Begin with: %s (%s).",
		n[Change], len(checks), plural(len(checks), "check", "checks"), plural(n[Change], "is", "are"), unseen, first.Name, first.Found)
}

func plural(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// one wraps a single finding.
func one(c Check) []Check { return []Check{c} }

// unseen is the finding for a fact that is not there.
func unseen(why, look string) []Check { return one(Check{Status: Unknown, Found: why, Fix: look}) }

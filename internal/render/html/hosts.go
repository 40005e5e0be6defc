package html

import (
	"fmt"
	"strings"

	"github.com/fullbore-net/fullbore/internal/render/svg"
	"github.com/fullbore-net/fullbore/internal/units"
	"github.com/fullbore-net/fullbore/result"
)

// hostTable lays both ends' facts side by side.
type hostTable struct {
	Client, Server string
	Rows           []hostRow
}

// hostRow is one fact. "" = not known.
type hostRow struct {
	Name, Client, Server string
	Differs              bool
}

// compare makes the table of what is known of either end; nil when nothing is.
func compare(rep *result.Report) *hostTable {
	if len(rep.Runs) == 0 {
		return nil
	}
	t := &hostTable{Client: endName(rep, result.Client), Server: endName(rep, result.Server)}
	var hosts [2]*result.Host
	var control [2]string
	for _, r := range rep.Runs {
		for i, e := range []result.End{result.Client, result.Server} {
			if h := r.Hosts.Of(e); h != nil && (hosts[i] == nil || hosts[i].NIC == nil && h.NIC != nil) {
				hosts[i] = h
			}
			if c := r.CPU.Of(e); c != nil && control[i] == "" {
				control[i] = c.Congestion
			}
		}
	}
	for _, f := range hostFacts {
		t.row(f.name, clean(f.value(hosts[0])), clean(f.value(hosts[1])))
	}
	t.row("congestion control used", clean(control[0]), clean(control[1]))
	facts := rep.Facts
	if facts == nil && rep.Acceptance != nil {
		facts = rep.Acceptance.Facts
	}
	var told *result.Facts
	if hosts[1] != nil {
		told = hosts[1].Settings
	}
	for _, s := range settings {
		t.row(s.name, clean(s.value(facts)), clean(s.value(told)))
	}
	if len(t.Rows) == 0 {
		return nil
	}
	return t
}

func (t *hostTable) row(name, client, server string) {
	if client == "" && server == "" {
		return
	}
	differs := client != "" && server != "" && client != server && !ownNames[name]
	t.Rows = append(t.Rows, hostRow{name, client, server, differs})
}

// ownNames are facts of which each end has its own: that they differ says nothing.
var ownNames = map[string]bool{"name": true, "interface": true}

// hostFact is something that an end tells of itself. of is asked of known hosts only.
type hostFact struct {
	name string
	of   func(*result.Host) string
}

func (f hostFact) value(h *result.Host) string {
	if h == nil {
		return ""
	}
	return f.of(h)
}

// ofNIC is a fact of the interface towards the other end.
func ofNIC(of func(*result.NIC) string) func(*result.Host) string {
	return func(h *result.Host) string {
		if h.NIC == nil {
			return ""
		}
		return of(h.NIC)
	}
}

var hostFacts = []hostFact{
	{"name", func(h *result.Host) string { return h.Name }},
	{"program", func(h *result.Host) string {
		if h.Tool == nil {
			return ""
		}
		return strings.TrimSpace(h.Tool.Name + " " + h.Tool.Version)
	}},
	{"system", func(h *result.Host) string { return strings.TrimSpace(h.OS + " " + h.Release) }},
	{"processor", func(h *result.Host) string { return h.CPUModel }},
	{"cores", func(h *result.Host) string { return count(h.Cores) }},
	{"clock rate", func(h *result.Host) string {
		if h.MHz == nil {
			return ""
		}
		return fmt.Sprintf("%d MHz", *h.MHz)
	}},
	{"memory", func(h *result.Host) string {
		if h.Memory == nil {
			return ""
		}
		return units.ByteSize(*h.Memory).IEC()
	}},
	{"virtual machine", func(h *result.Host) string { return h.Virtual }},
	{"clock source", func(h *result.Host) string { return h.Clock }},
	{"interface", ofNIC(func(n *result.NIC) string { return strings.TrimSpace(n.Name + " " + n.Model) })},
	{"driver", ofNIC(func(n *result.NIC) string { return strings.TrimSpace(n.Driver + " " + n.Firmware) })},
	{"link speed", ofNIC(func(n *result.NIC) string {
		if n.SpeedBPS == nil {
			return "does not tell"
		}
		return strings.TrimSpace(svg.BitRate.Format(float64(*n.SpeedBPS)) + " " + n.Duplex)
	})},
	{"MTU", ofNIC(func(n *result.NIC) string { return count(n.MTU) })},
	{"queues", ofNIC(func(n *result.NIC) string {
		if n.Queues == nil {
			return ""
		}
		return count(*n.Queues)
	})},
}

func count(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprint(n)
}

// setting is a fact of an end's configuration. of is asked of known facts only.
type setting struct {
	name string
	of   func(*result.Facts) string
}

func (s setting) value(f *result.Facts) string {
	if f == nil {
		return ""
	}
	return s.of(f)
}

// settings are known of the diagnosing host, and of the other end where that tells them.
var settings = []setting{
	{"tcp_rmem", func(f *result.Facts) string { return three(f.TCPRead) }},
	{"tcp_wmem", func(f *result.Facts) string { return three(f.TCPWrite) }},
	{"rmem_max", func(f *result.Facts) string { return number(f.CoreRead) }},
	{"wmem_max", func(f *result.Facts) string { return number(f.CoreWrite) }},
	{"receive buffer tuning", func(f *result.Facts) string { return onOff(f.Moderate) }},
	{"window scaling", func(f *result.Facts) string { return onOff(f.Scaling) }},
	{"selective acknowledgements", func(f *result.Facts) string { return onOff(f.SACK) }},
	{"TCP timestamps", func(f *result.Facts) string { return onOff(f.Timestamps) }},
	{"congestion control by default", func(f *result.Facts) string { return f.Congestion }},
	{"autotuning level", func(f *result.Facts) string { return f.Autotuning }},
	{"forwards packets", func(f *result.Facts) string { return onOff(f.Forwarding) }},
	{"kind of interface", func(f *result.Facts) string { return f.Kind }},
	{"processor quota", func(f *result.Facts) string {
		if f.Quota == nil {
			return ""
		}
		return svg.Plain.Format(*f.Quota) + " processors"
	}},
	{"connection table full to", func(f *result.Facts) string {
		if f.Conntrack == nil {
			return ""
		}
		return svg.Share.Format(*f.Conntrack)
	}},
	{"frequency governor", func(f *result.Facts) string { return f.Governor }},
	{"these settings are", func(f *result.Facts) string {
		if !f.Recorded {
			return ""
		}
		return "recorded facts, of another machine"
	}},
}

func three(v *[3]int64) string {
	if v == nil {
		return ""
	}
	return fmt.Sprintf("%d %d %d", v[0], v[1], v[2])
}

func number(v *int64) string {
	if v == nil {
		return ""
	}
	return fmt.Sprint(*v)
}

func onOff(v *bool) string {
	switch {
	case v == nil:
		return ""
	case *v:
		return "on"
	}
	return "off"
}

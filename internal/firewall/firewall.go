// Package firewall plans the rules that let a receiver's ports through the packet
// filters of this host: which ports a server uses, which filters stand in the way, and
// the exact commands for each of them. Planning is pure; looking at the host and running
// commands go through System, so that both can be played in tests.
//
// Rules are known by their names: Kept for rules that stay until they are removed, one
// that names the process (RunName) for rules of a single run. A run that was killed
// leaves its rule behind; the next one sees that its process is gone and removes it.
package firewall

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fullbore-net/fullbore/internal/plan"
)

// Kept is the name of rules that stay until they are removed.
const Kept = "fullbore"

const runPrefix = Kept + "-run-"

// RunName is the name of a rule that lives as long as process pid; at is when it was
// added, so that a later process of the same number is not taken for it.
func RunName(pid int, at time.Time) string {
	return fmt.Sprintf("%s%d-%d", runPrefix, pid, at.Unix())
}

// ParseRunName is the reverse of RunName.
func ParseRunName(name string) (pid int, at time.Time, ok bool) {
	rest, ok := strings.CutPrefix(name, runPrefix)
	if !ok {
		return 0, time.Time{}, false
	}
	p, t, ok := strings.Cut(rest, "-")
	pid, err := strconv.Atoi(p)
	sec, err2 := strconv.ParseInt(t, 10, 64)
	if !ok || err != nil || err2 != nil || pid <= 0 {
		return 0, time.Time{}, false
	}
	return pid, time.Unix(sec, 0), true
}

// ours reports whether a rule of this name is one of this package's.
func ours(name string) bool {
	_, _, run := ParseRunName(name)
	return run || name == Kept
}

// Ports is a range of ports of one transport.
type Ports struct {
	Transport plan.Transport `json:"transport"` // tcp or udp
	First     int            `json:"first"`
	Last      int            `json:"last"`
	For       string         `json:"for,omitempty"` // what arrives there
}

// String is 5001-5016/udp.
func (p Ports) String() string { return p.span("-") + "/" + string(p.Transport) }

// span is the numbers with the sign that a filter has between the ends of a range.
func (p Ports) span(sep string) string {
	if p.First == p.Last {
		return strconv.Itoa(p.First)
	}
	return strconv.Itoa(p.First) + sep + strconv.Itoa(p.Last)
}

// Of lists the ports that a server of this plan takes connections and datagrams on. A
// port of a loopback address needs no rule, and port 0 is not known before it is bound.
// An address of Listen with an NTTTCP data port is that receiver's own.
func Of(s plan.Serve) []Ports {
	var out []Ports
	add := func(transport plan.Transport, first, last int, what string) {
		first, last = max(first, 1), min(last, 65535)
		if first <= last {
			out = append(out, Ports{transport, first, last, what})
		}
	}
	var p plan.Plan
	if s.NTTTCP != nil && s.NTTTCP.NTTTCP != nil {
		p = s.NTTTCP.Filled()
	}
	local, elsewhere := false, false // where the NTTTCP receiver is, if Listen says so
	for _, ap := range s.Filled().Listen {
		port := int(ap.Port())
		if n := p.NTTTCP; n != nil && p.Port <= port && port < p.Port+n.Ports { // the receiver's own address
			local, elsewhere = local || ap.Addr().IsLoopback(), elsewhere || !ap.Addr().IsLoopback()
			continue
		}
		if port > 0 && !ap.Addr().IsLoopback() {
			add(plan.TCP, port, port, "iperf3, fullbore: control and TCP streams")
			add(plan.UDP, port, port, "iperf3, fullbore: UDP streams and probes")
		}
	}
	if p.NTTTCP != nil && (elsewhere || !local) {
		ntttcp(p, add)
	}
	return joined(out)
}

// ntttcp adds the ports of an NTTTCP receiver: it tells the dialects apart by where the
// first connection lands, so those of both are open.
func ntttcp(p plan.Plan, add func(plan.Transport, int, int, string)) {
	n := p.NTTTCP
	first, last := p.Port, p.Port+n.Ports-1
	if n.PortSync {
		last++ // the first only tells the others
	}
	add(plan.TCP, plan.SyncPort(first), plan.SyncPort(first), "NTTTCP: Linux senders agree here")
	add(plan.TCP, first, last, "NTTTCP: TCP streams")
	add(plan.UDP, first, last, "NTTTCP: UDP streams")
	add(plan.TCP, first+plan.NTTTCPTokenOffset, last+plan.NTTTCPTokenOffset, "NTTTCP: Windows senders agree here")
	if n.LinuxPorts > 0 {
		add(plan.TCP, plan.SyncPort(plan.NTTTCPPort), plan.SyncPort(plan.NTTTCPPort), "NTTTCP: Linux senders agree here")
		add(plan.TCP, plan.NTTTCPPort, plan.NTTTCPPort+n.LinuxPorts-1, "NTTTCP: TCP streams")
		add(plan.UDP, plan.NTTTCPPort, plan.NTTTCPPort+n.LinuxPorts-1, "NTTTCP: UDP streams")
	}
}

// joined sorts by transport and port and joins neighbours of one use.
func joined(in []Ports) []Ports {
	slices.SortStableFunc(in, func(a, b Ports) int {
		return cmp.Or(cmp.Compare(a.Transport, b.Transport), cmp.Compare(a.First, b.First), cmp.Compare(a.Last, b.Last))
	})
	var out []Ports
	for _, p := range in {
		if n := len(out) - 1; n >= 0 && out[n].Transport == p.Transport && out[n].For == p.For && p.First <= out[n].Last+1 {
			out[n].Last = max(out[n].Last, p.Last)
			continue
		}
		out = append(out, p)
	}
	return out
}

// Wanted is what should be let in.
type Wanted struct {
	Name    string         // of the rules
	Program string         // whole path of the program; Windows and macOS go by it
	Ports   []Ports        // as Of lists them
	Allow   []netip.Prefix // sources; empty = any
}

// ranges are the ports of one transport, joined without regard to their use.
func (w Wanted) ranges(transport plan.Transport) []Ports {
	var out []Ports
	for _, p := range w.Ports {
		if p.Transport == transport {
			out = append(out, Ports{transport, p.First, p.Last, ""})
		}
	}
	return joined(out)
}

// transports are those that have ports, TCP first.
func (w Wanted) transports() []plan.Transport {
	var out []plan.Transport
	for _, t := range []plan.Transport{plan.TCP, plan.UDP} {
		if len(w.ranges(t)) > 0 {
			out = append(out, t)
		}
	}
	return out
}

// sources are the allowed networks of a family (4, 6), as words. some is false when
// nothing of this family is allowed.
func (w Wanted) sources(family int) (words []string, some bool) {
	for _, p := range w.Allow {
		if p.Addr().Unmap().Is4() == (family == 4) {
			words = append(words, p.Masked().String())
		}
	}
	return words, len(words) > 0 || len(w.Allow) == 0
}

// lists renders ranges in lists of at most limit ports each, where a range counts as two
// (iptables' multiport, and ufw on top of it, take 15).
func lists(ranges []Ports, sep string, limit int) []string {
	var out, words []string
	used := 0
	for _, r := range ranges {
		cost := 1
		if r.First != r.Last {
			cost = 2
		}
		if used+cost > limit {
			out = append(out, strings.Join(words, ","))
			words, used = nil, 0
		}
		words = append(words, r.span(sep))
		used += cost
	}
	if len(words) > 0 {
		out = append(out, strings.Join(words, ","))
	}
	return out
}

package diagnose

import (
	"fmt"

	"github.com/fullbore-net/fullbore/internal/conclude"
	"github.com/fullbore-net/fullbore/result"
)

// deviceUnderTest: an end forwards packets for others, and its processor was the limit: what
// was measured is the management processor of a router or firewall, not what it forwards.
func deviceUnderTest(c *Case) (out []result.Verdict) {
	run := c.first()
	if run == nil {
		return nil
	}
	for _, e := range []result.End{result.Client, result.Server} {
		forwards := false
		if h := run.Hosts.Of(e); h != nil && h.Forwarding != nil {
			forwards = *h.Forwarding
		}
		if e == result.Client && c.Facts.Forwarding != nil {
			forwards = *c.Facts.Forwarding
		}
		if !forwards {
			continue
		}
		for _, l := range c.legs() {
			one := l.one()
			if one == nil || !one.usable() {
				continue
			}
			end, load, bound := one.cpuBound()
			if !bound || end != e {
				continue
			}
			v := draft(Forwarder, Possible, nil, one)
			v.Note, v.Host = true, e
			put(&v, "load", min(load, 1), "ratio")
			say(&v, "%s forwards packets between its interfaces (ip_forward), and its processor was the limit", c.host(e))
			if h := run.Hosts.Of(e); h != nil && h.Cores > 0 {
				cores := fmt.Sprintf("it has %d cores", h.Cores)
				if h.CPUModel != "" {
					cores += " (" + h.CPUModel + ")"
				}
				say(&v, "%s", cores)
			}
			advise(&v,
				"if it is a router or firewall: measure through it, not to it: [host] — [device] — [host]",
				"a host that only runs containers forwards, too: then it is an ordinary processor limit")
			v.Summary = fmt.Sprintf("%s forwards packets: a test to such a device measures its management processor, not what it forwards.", c.host(e))
			out = append(out, v)
			break
		}
	}
	return out
}

// nearTrip is the longest round trip between two machines under one hypervisor, s.
const nearTrip = 0.00015

// sameHypervisor: two virtual machines of the same kind on the same processor, nearer to each
// other than a switch lets two hosts be, or faster than the card between them would be.
func sameHypervisor(c *Case) []result.Verdict {
	run := c.first()
	if run == nil || run.Hosts.Client == nil || run.Hosts.Server == nil || conclude.SharedCores(run) {
		return nil
	}
	a, b := run.Hosts.Client, run.Hosts.Server
	kind := a.Virtual
	if c.Facts.Recorded && c.Facts.Virtual != "" {
		kind = c.Facts.Virtual
	}
	if kind == "" || kind == "none" || kind != b.Virtual || a.CPUModel == "" || a.CPUModel != b.CPUModel || c.Idle.rtt <= 0 || c.Idle.rtt > nearTrip {
		return nil
	}
	v := draft(SameHypervisor, Possible, nil)
	v.Note = true
	put(&v, "rtt", c.Idle.rtt, "s")
	say(&v, "both ends are virtual machines (%s) on %s, %s apart%s", kind, a.CPUModel, ms(c.Idle.rtt), replayed(&c.Facts))
	v.Summary = "Both ends may be virtual machines of one host: then its virtual switch was measured, and no wire."
	advise(&v, "move one of them to another host (anti-affinity), and repeat")
	return []result.Verdict{v}
}

package diagnose

import (
	"fmt"
	"strings"

	"github.com/fullbore-net/fullbore/internal/conclude"
	"github.com/fullbore-net/fullbore/result"
)

// hostNotes are what an end's settings and counters say that can hold a path back. The
// settings are this host's, where they are known; counters are of both ends.
func hostNotes(c *Case) (out []result.Verdict) {
	if c.first() == nil {
		return nil
	}
	out = append(out, c.backlog()...)
	if c.loopback() {
		return out // no interface is in the way
	}
	for _, look := range []func(*Case) []result.Verdict{offloads, ring, distance, tracked, slowClock, emulated} {
		out = append(out, look(c)...)
	}
	return out
}

// hostNote begins a note about this host.
func (c *Case) hostNote(code, certainty string) result.Verdict {
	v := draft(code, certainty, nil)
	v.Note, v.Host = true, result.Client
	return v
}

// busyHere reports that this host's processor held a single stream, or that a core of it was
// nearly full.
func (c *Case) busyHere() (share float64, busy bool) {
	for _, l := range c.legs() {
		one := l.one()
		if one == nil || one.run == nil {
			continue
		}
		share = max(share, hottest(one.run, result.Client).busy)
		if end, _, bound := one.cpuBound(); bound && end == result.Client {
			busy = true
		}
	}
	return share, busy || share >= busyWorker
}

// offloads: the card could cut and sum packets, and the kernel does it.
func offloads(c *Case) []result.Verdict {
	if len(c.Facts.Off) == 0 {
		return nil
	}
	v := c.hostNote(OffloadOff, Possible)
	name := c.nicName()
	share, busy := c.busyHere()
	put(&v, "busy", share, "ratio")
	say(&v, "%s on %s: off, though the driver could: %s%s", name, c.host(result.Client), strings.Join(c.Facts.Off, ", "), c.replayed())
	if busy {
		v.Certainty = Likely
		say(&v, "its busiest core was %s busy", percent(share))
	}
	short := map[string]string{"tx-tcp-segmentation": "tso", "tx-generic-segmentation": "gso", "rx-gro": "gro", "rx-checksum": "rx", "tx-checksum": "tx"}
	words := []string{}
	for _, o := range c.Facts.Off {
		if w := short[o]; w != "" {
			words = append(words, w+" on")
		}
	}
	if len(words) > 0 {
		advise(&v, c.on(result.Client, []string{"ethtool -K " + name + " " + strings.Join(words, " ")}, []string{"Enable-NetAdapterLso, Enable-NetAdapterRsc, Enable-NetAdapterChecksumOffload -Name *"})...)
	}
	v.Summary = fmt.Sprintf("Offloads of %s on %s are off (%s): each packet costs the processor what the card would do.", name, c.host(result.Client), strings.Join(c.Facts.Off, ", "))
	return []result.Verdict{v}
}

// ring: packets found no place in the receive ring, and it could be larger.
func ring(c *Case) []result.Verdict {
	now, most := c.Facts.RingNow, c.Facts.RingMax
	if now == nil || most == nil || *now >= *most {
		return nil
	}
	missed := int64(0)
	for _, d := range c.History {
		if d.Run == nil {
			continue
		}
		for i := range d.Run.Rows {
			if r := &d.Run.Rows[i]; r.End == result.Client && r.Host != nil && r.Host.NIC != nil {
				missed += r.Host.NIC.RxMissed
			}
		}
	}
	before := c.Facts.Missed
	if missed == 0 && (before == nil || *before == 0) {
		return nil // a small ring that never overflowed is large enough
	}
	v := c.hostNote(SmallRing, Possible)
	name := c.nicName()
	put(&v, "ring", float64(*now), "")
	put(&v, "possible", float64(*most), "")
	put(&v, "missed", float64(missed), "packets")
	if missed > 0 {
		v.Certainty = Likely
		say(&v, "%d packets found no place in the receive ring of %s while this ran", missed, name)
	}
	if before != nil {
		say(&v, "since it came up: %d%s", *before, c.replayed())
	}
	say(&v, "the ring has %d places of %d that it could have", *now, *most)
	advise(&v, c.on(result.Client, []string{fmt.Sprintf("ethtool -G %s rx %d", name, *most)}, []string{"Set-NetAdapterAdvancedProperty -Name * -RegistryKeyword *ReceiveBuffers -RegistryValue …"})...)
	v.Summary = fmt.Sprintf("The receive ring of %s on %s is smaller than it could be (%d of %d), and packets find no place in it.", name, c.host(result.Client), *now, *most)
	return []result.Verdict{v}
}

// distance: the core that did the work is on another NUMA node than the card.
func distance(c *Case) []result.Verdict {
	if c.Facts.NUMANodes == nil || *c.Facts.NUMANodes < 2 || c.Facts.NUMANode == nil || c.Facts.NearCPUs == "" {
		return nil
	}
	for _, l := range c.legs() {
		one := l.one()
		if one == nil || one.run == nil {
			continue
		}
		core := hottest(one.run, result.Client)
		if !core.known || core.busy < farBusy || inList(c.Facts.NearCPUs, core.cpu) {
			continue
		}
		v := c.hostNote(Distance, Possible)
		v.Stages = []string{one.name}
		put(&v, "core", float64(core.cpu), "")
		put(&v, "node", float64(*c.Facts.NUMANode), "")
		say(&v, "%s on %s is at NUMA node %d (cores %s)%s; %s", c.nicName(), c.host(result.Client), *c.Facts.NUMANode, c.Facts.NearCPUs, c.replayed(), core)
		if _, busy := c.busyHere(); busy {
			v.Certainty = Likely
		}
		first, _, _ := strings.Cut(c.Facts.NearCPUs, ",")
		advise(&v, c.on(result.Client, []string{fmt.Sprintf("numactl --cpunodebind=%d --membind=%d %s", *c.Facts.NUMANode, *c.Facts.NUMANode, c.again(l.dir, "")), "or pin it: taskset -c " + first}, []string{"start /node " + fmt.Sprint(*c.Facts.NUMANode) + " /affinity …"})...)
		v.Summary = fmt.Sprintf("The core that did the work on %s (%d) is on another NUMA node than the card (node %d): each byte crosses between them.", c.host(result.Client), core.cpu, *c.Facts.NUMANode)
		return []result.Verdict{v}
	}
	return nil
}

// farBusy is the least share of a core's time from which on it matters where it is; nearlyFull
// that of the connection table; slowShare the share of the nominal clock that is slow.
const (
	farBusy    = 0.2
	nearlyFull = 0.9
	slowShare  = 0.7
)

// tracked: the table of connections is nearly full; new ones are dropped when it is.
func tracked(c *Case) []result.Verdict {
	used := c.Facts.Conntrack
	if used == nil || *used < nearlyFull {
		return nil
	}
	v := c.hostNote(TableFull, Likely)
	put(&v, "used", *used, "ratio")
	places := ""
	if c.Facts.TrackedMax != nil {
		places = fmt.Sprintf(" of %d places", *c.Facts.TrackedMax)
		advise(&v, fmt.Sprintf("sysctl -w net.netfilter.nf_conntrack_max=%d", 2**c.Facts.TrackedMax))
	}
	say(&v, "%s%s are in use%s", percent(*used), places, c.replayed())
	advise(&v, "shorter time-outs (net.netfilter.nf_conntrack_tcp_timeout_established), or no tracking for what needs none (nft: notrack)")
	v.Summary = fmt.Sprintf("The connection table of %s is %s full: when it is full, new connections are dropped without a word.", c.host(result.Client), percent(*used))
	return []result.Verdict{v}
}

// slowClock: the processor was the limit, or its governor never lets it run faster, and it
// ran well below its nominal clock.
func slowClock(c *Case) []result.Verdict {
	now, nominal := c.Facts.NowMHz, c.Facts.MHz
	slow := now != nil && nominal != nil && *nominal > 0 && float64(*now) < slowShare*float64(*nominal)
	battery := c.Facts.OnBattery != nil && *c.Facts.OnBattery
	saving := strings.Contains(strings.ToLower(c.Facts.Governor), "saver") || c.Facts.Governor == "powersave"
	share, busy := c.busyHere()
	if !slow && !battery && !saving || !busy && !(slow && saving) {
		return nil // an idle processor may sleep, and a saving plan that nobody misses is none of ours
	}
	v := c.hostNote(SlowClock, Possible)
	if busy && slow {
		v.Certainty = Likely
	}
	put(&v, "busy", share, "ratio")
	if slow {
		put(&v, "mhz", float64(*now), "MHz")
		put(&v, "nominal", float64(*nominal), "MHz")
		say(&v, "fastest core: %d MHz of %d when it was looked at%s", *now, *nominal, c.replayed())
	}
	if c.Facts.Governor != "" {
		say(&v, "frequency governor or power plan: %s%s", c.Facts.Governor, c.replayed())
	}
	if battery {
		say(&v, "it runs on its battery%s", c.replayed())
	}
	if busy {
		say(&v, "its busiest core was %s busy", percent(share))
	}
	advise(&v, c.on(result.Client, []string{"cpupower frequency-set -g performance"}, []string{"powercfg /setactive SCHEME_MIN"})...)
	v.Summary = fmt.Sprintf("The processor of %s is kept slow (power saving): its rate is that of a slower machine.", c.host(result.Client))
	return []result.Verdict{v}
}

// emulated: a card that a hypervisor imitates in software.
func emulated(c *Case) []result.Verdict {
	if !c.Facts.Emulated {
		return nil
	}
	v := c.hostNote(EmulatedCard, Likely)
	say(&v, "%s on %s is a card that the hypervisor imitates (driver %s)%s", c.nicName(), c.host(result.Client), c.Facts.Driver, c.replayed())
	advise(&v, "give the virtual machine its hypervisor's own card: virtio-net (KVM), VMXNET3 (VMware), the synthetic adapter (Hyper-V)")
	v.Summary = fmt.Sprintf("The network card of %s is an imitated one (%s): slow, and costly for the host.", c.host(result.Client), c.Facts.Driver)
	return []result.Verdict{v}
}

// backlog: an end's kernel dropped packets between card and socket, since its queue per CPU
// was full.

func (c *Case) backlog() (out []result.Verdict) {
	for _, e := range []result.End{result.Client, result.Server} {
		var dropped, squeezed, processed int64
		for _, d := range c.History {
			if d.Run == nil {
				continue
			}
			for i := range d.Run.Rows {
				if r := &d.Run.Rows[i]; r.End == e && r.Host != nil && r.Host.Softnet != nil {
					s := r.Host.Softnet
					dropped, squeezed, processed = dropped+s.Dropped, squeezed+s.Squeezed, processed+s.Processed
				}
			}
		}
		if dropped == 0 {
			continue // squeezes alone lose nothing
		}
		v := draft(BacklogDropped, Likely, nil)
		v.Note, v.Host = true, e
		put(&v, "dropped", float64(dropped), "packets")
		put(&v, "squeezed", float64(squeezed), "")
		say(&v, "the kernel of %s dropped %d of %d packets before any socket: its queue of a CPU was full", c.host(e), dropped, processed)
		if squeezed > 0 {
			say(&v, "it left packets waiting %d times because its share of time was used up", squeezed)
		}
		advise(&v, c.on(e, []string{"sysctl -w net.core.netdev_max_backlog=10000 net.core.netdev_budget=600", "spread the packets over more cores: more queues (ethtool -L), or RPS"}, nil)...)
		v.Summary = fmt.Sprintf("%s dropped %d packets in its own kernel, between card and socket: that loss is not the network's.", c.host(e), dropped)
		out = append(out, v)
		if c.loopback() || conclude.SharedCores(c.first()) {
			break // one machine counts once
		}
	}
	return out
}

package diagnose

import (
	"fmt"
	"strings"

	"github.com/fullbore-net/fullbore/internal/conclude"
	"github.com/fullbore-net/fullbore/result"
)

// hostNotes are what the settings of an end say that can hold a path back: this host's, and the
// other end's where it tells them.
func hostNotes(c *Case) (out []result.Verdict) {
	if c.first() == nil {
		return nil
	}
	for _, e := range c.tellers() {
		for _, look := range []func(*Case, result.End, *result.Facts) []result.Verdict{offloads, ring, distance, tracked, slowClock, emulated} {
			out = append(out, look(c, e, c.settings(e))...)
		}
	}
	return out
}

// hostNote begins a note about an end.
func hostNote(code, certainty string, e result.End) result.Verdict {
	v := draft(code, certainty, nil)
	v.Note, v.Host = true, e
	return v
}

// busyAt reports that the processor of an end held a single stream, or that a core of it was
// nearly full.
func (c *Case) busyAt(e result.End) (share float64, busy bool) {
	for _, l := range c.legs() {
		one := l.one()
		if one == nil || one.run == nil {
			continue
		}
		share = max(share, hottest(one.run, e).busy)
		if end, _, bound := one.cpuBound(); bound && end == e {
			busy = true
		}
	}
	return share, busy || share >= busyWorker
}

// offloads: the card could cut and sum packets, and the kernel does it.
func offloads(c *Case, e result.End, f *result.Facts) []result.Verdict {
	if len(f.Off) == 0 {
		return nil
	}
	v := hostNote(OffloadOff, Possible, e)
	name := c.nicName(e)
	share, busy := c.busyAt(e)
	put(&v, "busy", share, "ratio")
	say(&v, "%s on %s: off, though the driver could: %s%s", name, c.host(e), strings.Join(f.Off, ", "), replayed(f))
	if busy {
		v.Certainty = Likely
		say(&v, "its busiest core was %s busy", percent(share))
	}
	short := map[string]string{"tx-tcp-segmentation": "tso", "tx-generic-segmentation": "gso", "rx-gro": "gro", "rx-checksum": "rx", "tx-checksum": "tx"}
	words := []string{}
	for _, o := range f.Off {
		if w := short[o]; w != "" {
			words = append(words, w+" on")
		}
	}
	if len(words) > 0 {
		advise(&v, c.on(e, []string{"ethtool -K " + name + " " + strings.Join(words, " ")}, []string{"Enable-NetAdapterLso, Enable-NetAdapterRsc, Enable-NetAdapterChecksumOffload -Name *"})...)
	}
	v.Summary = fmt.Sprintf("Offloads of %s on %s are off (%s): each packet costs the processor what the card would do.", name, c.host(e), strings.Join(f.Off, ", "))
	return []result.Verdict{v}
}

// ring: packets found no place in the receive ring, and it could be larger.
func ring(c *Case, e result.End, f *result.Facts) []result.Verdict {
	now, most := f.RingNow, f.RingMax
	if now == nil || most == nil || *now >= *most {
		return nil
	}
	missed := int64(0)
	for _, d := range c.History {
		if d.Run == nil {
			continue
		}
		for i := range d.Run.Rows {
			if r := &d.Run.Rows[i]; r.End == e && r.Host != nil && r.Host.NIC != nil {
				missed += r.Host.NIC.RxMissed
			}
		}
	}
	before := f.Missed
	if missed == 0 && (before == nil || *before == 0) {
		return nil // a small ring that never overflowed is large enough
	}
	v := hostNote(SmallRing, Possible, e)
	name := c.nicName(e)
	put(&v, "ring", float64(*now), "")
	put(&v, "possible", float64(*most), "")
	put(&v, "missed", float64(missed), "packets")
	if missed > 0 {
		v.Certainty = Likely
		say(&v, "%d packets found no place in the receive ring of %s while this ran", missed, name)
	}
	if before != nil {
		say(&v, "since it came up: %d%s", *before, replayed(f))
	}
	say(&v, "the ring has %d places of %d that it could have", *now, *most)
	advise(&v, c.on(e, []string{fmt.Sprintf("ethtool -G %s rx %d", name, *most)}, []string{"Set-NetAdapterAdvancedProperty -Name * -RegistryKeyword *ReceiveBuffers -RegistryValue …"})...)
	v.Summary = fmt.Sprintf("The receive ring of %s on %s is smaller than it could be (%d of %d), and packets find no place in it.", name, c.host(e), *now, *most)
	return []result.Verdict{v}
}

// distance: the core that did the work is on another NUMA node than the card.
func distance(c *Case, e result.End, f *result.Facts) []result.Verdict {
	if f.NUMANodes == nil || *f.NUMANodes < 2 || f.NUMANode == nil || f.NearCPUs == "" {
		return nil
	}
	for _, l := range c.legs() {
		one := l.one()
		if one == nil || one.run == nil {
			continue
		}
		core := hottest(one.run, e)
		if !core.known || core.busy < farBusy || inList(f.NearCPUs, core.cpu) {
			continue
		}
		v := hostNote(Distance, Possible, e)
		v.Stages = []string{one.name}
		put(&v, "core", float64(core.cpu), "")
		put(&v, "node", float64(*f.NUMANode), "")
		say(&v, "%s on %s is at NUMA node %d (cores %s)%s; %s", c.nicName(e), c.host(e), *f.NUMANode, f.NearCPUs, replayed(f), core)
		if _, busy := c.busyAt(e); busy {
			v.Certainty = Likely
		}
		program := "fullbore serve …"
		if e == result.Client {
			program = c.again(l.dir, "")
		}
		first, _, _ := strings.Cut(f.NearCPUs, ",")
		advise(&v, c.on(e, []string{fmt.Sprintf("numactl --cpunodebind=%d --membind=%d %s", *f.NUMANode, *f.NUMANode, program), "or pin it: taskset -c " + first}, []string{"start /node " + fmt.Sprint(*f.NUMANode) + " /affinity …"})...)
		v.Summary = fmt.Sprintf("The core that did the work on %s (%d) is on another NUMA node than the card (node %d): each byte crosses between them.", c.host(e), core.cpu, *f.NUMANode)
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
func tracked(c *Case, e result.End, f *result.Facts) []result.Verdict {
	used := f.Conntrack
	if used == nil || *used < nearlyFull {
		return nil
	}
	v := hostNote(TableFull, Likely, e)
	put(&v, "used", *used, "ratio")
	places := ""
	if f.TrackedMax != nil {
		places = fmt.Sprintf(" of %d places", *f.TrackedMax)
		advise(&v, c.on(e, []string{fmt.Sprintf("sysctl -w net.netfilter.nf_conntrack_max=%d", 2**f.TrackedMax)}, nil)...)
	}
	say(&v, "%s%s are in use on %s%s", percent(*used), places, c.host(e), replayed(f))
	advise(&v, c.on(e, []string{"shorter time-outs (net.netfilter.nf_conntrack_tcp_timeout_established), or no tracking for what needs none (nft: notrack)"}, nil)...)
	v.Summary = fmt.Sprintf("The connection table of %s is %s full: when it is full, new connections are dropped without a word.", c.host(e), percent(*used))
	return []result.Verdict{v}
}

// slowClock: the processor was the limit, or its governor never lets it run faster, and it
// ran well below its nominal clock.
func slowClock(c *Case, e result.End, f *result.Facts) []result.Verdict {
	now, loaded := c.clockNow(e, f)
	nominal := f.MHz
	slow := now > 0 && nominal != nil && *nominal > 0 && now < slowShare*float64(*nominal)
	battery := f.OnBattery != nil && *f.OnBattery
	saving := strings.Contains(strings.ToLower(f.Governor), "saver") || f.Governor == "powersave"
	share, busy := c.busyAt(e)
	if !slow && !battery && !saving || !busy && !(slow && saving) {
		return nil // an idle processor may sleep, and a saving plan that nobody misses is none of ours
	}
	v := hostNote(SlowClock, Possible, e)
	if busy && slow {
		v.Certainty = Likely
	}
	put(&v, "busy", share, "ratio")
	if slow {
		put(&v, "mhz", now, "MHz")
		put(&v, "nominal", float64(*nominal), "MHz")
		if loaded {
			say(&v, "the busiest core ran at %.0f MHz of %d when the load had lasted", now, *nominal)
		} else {
			say(&v, "fastest core: %.0f MHz of %d when it was looked at, before the load%s", now, *nominal, replayed(f))
		}
	}
	if f.Governor != "" {
		say(&v, "frequency governor or power plan: %s%s", f.Governor, replayed(f))
	}
	if battery {
		say(&v, "it runs on its battery%s", replayed(f))
	}
	if busy {
		say(&v, "its busiest core was %s busy", percent(share))
	}
	advise(&v, c.on(e, []string{"cpupower frequency-set -g performance"}, []string{"powercfg /setactive SCHEME_MIN"})...)
	v.Summary = fmt.Sprintf("The processor of %s is kept slow (power saving): its rate is that of a slower machine.", c.host(e))
	return []result.Verdict{v}
}

// clockNow is the clock of an end's processor, MHz; 0 = not known. Loaded: of its busiest core at
// the end of a loaded stage, the fastest of those, which accuses least. Else of the fastest core
// when the host was looked at before, when it may have slept.
func (c *Case) clockNow(e result.End, f *result.Facts) (mhz float64, loaded bool) {
	if !f.Recorded {
		for _, l := range c.legs() {
			if one := l.one(); one != nil && one.run != nil {
				if _, last, known := conclude.Clock(one.run, e); known {
					mhz, loaded = max(mhz, last), true
				}
			}
		}
	}
	if !loaded && f.NowMHz != nil {
		mhz = float64(*f.NowMHz)
	}
	return mhz, loaded
}

// emulated: a card that a hypervisor imitates in software.
func emulated(c *Case, e result.End, f *result.Facts) []result.Verdict {
	if !f.Emulated {
		return nil
	}
	v := hostNote(EmulatedCard, Likely, e)
	say(&v, "%s on %s is a card that the hypervisor imitates (driver %s)%s", c.nicName(e), c.host(e), f.Driver, replayed(f))
	advise(&v, fmt.Sprintf("give the virtual machine %s its hypervisor's own card: virtio-net (KVM), VMXNET3 (VMware), the synthetic adapter (Hyper-V)", c.host(e)))
	v.Summary = fmt.Sprintf("The network card of %s is an imitated one (%s): slow, and costly for the host.", c.host(e), f.Driver)
	return []result.Verdict{v}
}

// backlog: an end's kernel dropped packets between card and socket, since its queue per CPU
// was full. Counters are of both ends.
func backlog(c *Case) (out []result.Verdict) {
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
		length, budget := int64(10000), int64(600)
		now := ""
		if s := c.settings(e); s != nil && s.Backlog != nil {
			put(&v, "setting", float64(*s.Backlog), "packets")
			now = fmt.Sprintf("net.core.netdev_max_backlog is %d", *s.Backlog)
			length = max(length, 2**s.Backlog)
			if s.PollBudget != nil {
				now += fmt.Sprintf(" and netdev_budget %d", *s.PollBudget)
				budget = max(budget, 2**s.PollBudget)
			}
			now += " now: "
		}
		advise(&v, c.on(e, []string{
			fmt.Sprintf("%ssysctl -w net.core.netdev_max_backlog=%d net.core.netdev_budget=%d", now, length, budget),
			"spread the packets over more cores: more queues (ethtool -L), or RPS",
		}, nil)...)
		v.Summary = fmt.Sprintf("%s dropped %d packets in its own kernel, between card and socket: that loss is not the network's.", c.host(e), dropped)
		out = append(out, v)
		if c.loopback() || conclude.SharedCores(c.first()) {
			break // one machine counts once
		}
	}
	return out
}

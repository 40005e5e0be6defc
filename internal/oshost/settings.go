package oshost

import "github.com/fullbore-net/fullbore/result"

// Settings picks what the rules of a diagnosis look at from an inventory, and what their advice
// names.
func Settings(inv *Inventory) *result.Facts {
	t := &inv.TCP
	f := &result.Facts{
		OS: inv.Host.OS, TCPRead: t.ReadMem, TCPWrite: t.WriteMem, CoreRead: t.CoreReadMax, CoreWrite: t.CoreWriteMax,
		Moderate: t.ModerateRcv, Scaling: t.WindowScaling, SACK: t.SACK, Timestamps: t.Timestamps, Congestion: t.Congestion, Available: t.Available,
		Autotuning: t.AutotuningLevel, Forwarding: t.Forward, Recorded: inv.Recorded,
		Governor: inv.CPU.Governor, MHz: inv.Host.MHz, NowMHz: inv.CPU.CurMHz, OnBattery: inv.CPU.OnBattery,
		NUMANodes: inv.CPU.NUMANodes, Virtual: inv.Host.Virtual, Steal: inv.CPU.StealShare, ClockSource: inv.Host.Clock,
		Listen: t.Listen, Backlog: t.Backlog, PollBudget: t.Budget,
	}
	if len(inv.NICs) > 0 {
		readNIC(f, &inv.NICs[0])
		for i := range inv.NICs[1:] {
			if n := &inv.NICs[i+1]; f.Kind != KindPhysical && n.Kind == KindPhysical {
				readCard(f, n) // what the hardware below a bond or a VLAN says
				break
			}
		}
	}
	if q := inv.Quota; q != nil {
		f.Quota, f.Throttled = &q.CPUs, q.Throttled
	}
	if c := inv.Conntrack; c != nil && c.Max > 0 {
		used := float64(c.Count) / float64(c.Max)
		f.Conntrack, f.TrackedMax = &used, &c.Max
	}
	if inv.Clock != nil {
		f.ClockSynced = inv.Clock.Synced
	}
	return f
}

// readNIC takes the interface towards the peer.
func readNIC(f *result.Facts, n *NIC) {
	f.Kind, f.MaxBPS, f.Emulated, f.SpeedBPS, f.Duplex, f.MTU = n.Kind, n.MaxBPS, n.Emulated, n.SpeedBPS, n.Duplex, n.MTU
	if len(n.Qdiscs) > 0 {
		f.Qdisc = n.Qdiscs[0]
	}
	readCard(f, n)
}

// readCard takes what is the hardware's.
func readCard(f *result.Facts, n *NIC) {
	f.NIC, f.Driver = n.Name, n.Driver
	f.NUMANode, f.NearCPUs = n.NUMANode, n.NearCPUs
	f.RSS, f.RPS = n.RSSQueues, n.RPSCPUs
	if c := n.Channels; c != nil {
		f.QueuesNow, f.QueuesMax = &c.Now, &c.Max
	}
	if r := n.Rings; r != nil {
		f.RingNow, f.RingMax = &r.Rx.Now, &r.Rx.Max
	}
	if n.IRQ != nil {
		f.Busiest = &n.IRQ.Busiest
	}
	if n.Errors != nil {
		f.Missed = &n.Errors.RxMissed
	}
	f.Off = nil
	if n.Kind != KindPhysical {
		return // of software interfaces it says nothing
	}
	for _, name := range []string{TSO, GSO, GRO, TxChecksum, RxChecksum} {
		if o, ok := n.Offloads[name]; ok && !o.On && !o.Fixed {
			f.Off = append(f.Off, name)
		}
	}
}

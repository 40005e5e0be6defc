package doctor

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fullbore-net/fullbore/internal/bdp"
	"github.com/fullbore-net/fullbore/internal/units"
)

// linux reports whether the sysctls apply at all.
func (p *patient) linux() bool { return p.Host.OS == "linux" }

func readLimit(p *patient) []Check {
	return tuned(p, "tcp_rmem", p.TCP.ReadMem, "receive")
}

func writeLimit(p *patient) []Check {
	return tuned(p, "tcp_wmem", p.TCP.WriteMem, "send")
}

// tuned compares the third number of tcp_rmem or tcp_wmem with the goal: half of a buffer is
// window, so twice the BDP is the least that fills the path, and twice that leaves room to
// repair a loss (see bdp).
func tuned(p *patient, name string, have *[3]int64, verb string) []Check {
	if !p.linux() {
		return nil
	}
	if have == nil {
		return unseen("net.ipv4."+name+" cannot be read", "sysctl net.ipv4."+name)
	}
	need := p.goal.BDP()
	most := units.ByteSize(have[2])
	c := Check{Status: OK, Found: fmt.Sprintf("%s buffer up to %s, window about half; BDP %s", verb, most, need)}
	switch {
	case most < 2*need:
		c.Status = Change
		reach := bdp.WindowRate(most/2, p.goal.RTT)
		c.Why = fmt.Sprintf("One stream reaches about %s over %s; %s need a window of %s.",
			reach, units.FormatDuration(p.goal.RTT), p.goal.Rate, need)
		want := bdp.ForLinux(2 * need).TCPMax
		c.Fix = fmt.Sprintf("sysctl -w net.ipv4.%s='%d %d %d'", name, have[0], have[1], want)
		if need > bdp.MaxWindow {
			c.Why += fmt.Sprintf(" No TCP window exceeds 1 GiB: at least %d streams.", bdp.Streams(need, bdp.MaxWindow))
		}
	case most < 4*need:
		c.Status = Info
		c.Why = "Enough to fill the path, without room for the round trip in which a loss is repaired."
		c.Fix = fmt.Sprintf("sysctl -w net.ipv4.%s='%d %d %d'", name, have[0], have[1], bdp.ForLinux(2*need).TCPMax)
	}
	return one(c)
}

func coreReadLimit(p *patient) []Check  { return asked(p, "rmem_max", p.TCP.CoreReadMax) }
func coreWriteLimit(p *patient) []Check { return asked(p, "wmem_max", p.TCP.CoreWriteMax) }

// asked is the limit of what an application may set. It does not matter to tests without -w.
func asked(p *patient, name string, have *int64) []Check {
	if !p.linux() {
		return nil
	}
	look := "sysctl net.core." + name
	if have == nil {
		return unseen("not visible in this network namespace; the host's value applies", look)
	}
	need := p.goal.BDP()
	c := Check{Status: OK, Found: fmt.Sprintf("-w may ask for %s", units.ByteSize(*have))}
	if units.ByteSize(*have) < need {
		c.Status = Info
		c.Why = fmt.Sprintf("A window set by -w would be cut below the BDP of %s. Without -w the kernel tunes the buffers and this limit does not apply.", need)
		c.Fix = fmt.Sprintf("sysctl -w net.core.%s=%d", name, bdp.ForLinux(2*need).CoreMax)
	}
	return one(c)
}

// toggle judges a switch that must be on.
func toggle(p *patient, have *bool, name, why string) []Check {
	if !p.linux() {
		return nil
	}
	switch {
	case have == nil:
		return unseen("net.ipv4."+name+" cannot be read", "sysctl net.ipv4."+name)
	case *have:
		return one(Check{Status: OK, Found: "on"})
	}
	return one(Check{Status: Change, Found: "off", Why: why, Fix: "sysctl -w net.ipv4." + name + "=1"})
}

func receiveTuning(p *patient) []Check {
	return toggle(p, p.TCP.ModerateRcv, "tcp_moderate_rcvbuf", "The receive buffer stays at its initial size, and the window with it.")
}

func windowScaling(p *patient) []Check {
	return toggle(p, p.TCP.WindowScaling, "tcp_window_scaling",
		fmt.Sprintf("No window above 64 KiB: at most %s over %s.", bdp.WindowRate(bdp.UnscaledWindow, p.goal.RTT), units.FormatDuration(p.goal.RTT)))
}

func selectiveAcks(p *patient) []Check {
	return toggle(p, p.TCP.SACK, "tcp_sack", "After several losses in one window the sender repairs one a round trip.")
}

func timestamps(p *patient) []Check {
	return toggle(p, p.TCP.Timestamps, "tcp_timestamps", "No round-trip time from retransmitted data, and old segments are not told apart above a few gigabits (RFC 7323). They cost 12 bytes a packet.")
}

func congestion(p *patient) []Check {
	if !p.linux() {
		return nil
	}
	t := &p.TCP
	if t.Congestion == "" {
		return unseen("cannot be read", "sysctl net.ipv4.tcp_congestion_control")
	}
	c := Check{Status: OK, Found: t.Congestion}
	if len(t.Available) > 0 {
		c.Found += " (available: " + strings.Join(t.Available, ", ") + ")"
	}
	switch t.Congestion {
	case "cubic":
	case "bbr":
		c.Status = Info
		c.Why = "BBR does not slow down for moderate loss, so a test here says little about how other senders fare: compare with --cc cubic."
	case "reno":
		c.Status = Change
		c.Why = "Reno needs minutes to grow back on a fast long path."
		c.Fix = "sysctl -w net.ipv4.tcp_congestion_control=cubic"
		if len(t.Available) > 0 && !slices.Contains(t.Available, "cubic") {
			c.Fix = "modprobe tcp_cubic && " + c.Fix
		}
	default:
		c.Status = Info
		c.Why = "Not one of the usual two (cubic, bbr): name it with every result."
	}
	return one(c)
}

func rememberedMetrics(p *patient) []Check {
	if p.TCP.NoMetricsSave == nil {
		return nil
	}
	if *p.TCP.NoMetricsSave {
		return one(Check{Status: OK, Found: "each connection starts afresh"})
	}
	return one(Check{
		Status: Info, Found: "the kernel remembers a peer's slow-start threshold",
		Why: "A run that met loss makes the next one to the same peer start slower. For comparable runs switch it off or wait.",
		Fix: "sysctl -w net.ipv4.tcp_no_metrics_save=1",
	})
}

func slowStartIdle(p *patient) []Check {
	if p.TCP.SlowStartIdle == nil {
		return nil
	}
	if !*p.TCP.SlowStartIdle {
		return one(Check{Status: OK, Found: "off"})
	}
	return one(Check{
		Status: Info, Found: "on (the system's default)",
		Why: "Irrelevant to a stream that never pauses; paced and request-like traffic falls back to slow start after each pause.",
		Fix: "sysctl -w net.ipv4.tcp_slow_start_after_idle=0",
	})
}

func mtuProbing(p *patient) []Check {
	if p.TCP.MTUProbing == nil {
		return nil
	}
	if *p.TCP.MTUProbing > 0 {
		return one(Check{Status: OK, Found: "on"})
	}
	return one(Check{
		Status: Info, Found: "off (the system's default)",
		Why: "Where a router swallows \"packet too big\" a connection hangs after its first full packet; with 1 it recovers.",
		Fix: "sysctl -w net.ipv4.tcp_mtu_probing=1",
	})
}

// shapers are the disciplines that hold packets back on purpose.
var shapers = []string{"tbf", "htb", "hfsc", "cbq", "netem", "cake"}

func queueingDiscipline(p *patient) []Check {
	if !p.linux() || len(p.NICs) == 0 {
		return nil
	}
	var out []Check
	for i := range p.NICs {
		n := &p.NICs[i]
		if len(n.Qdiscs) == 0 {
			continue
		}
		c := Check{On: n.Name, Status: OK, Found: n.Name + ": " + strings.Join(n.Qdiscs, ", ")}
		for _, q := range n.Qdiscs {
			if slices.Contains(shapers, q) {
				c.Status = Change
				c.Why = "This host itself holds packets back or alters them: what is measured is this setting."
				c.Fix = "tc -s qdisc show dev " + n.Name
			}
		}
		if c.Status == OK && p.TCP.Congestion == "bbr" && i == 0 && !slices.Contains(n.Qdiscs, "fq") && n.Qdiscs[0] != "noqueue" {
			c.Status = Info
			c.Why = "BBR paces itself without fq too, with a timer per socket; fq is cheaper with many streams."
			c.Fix = "tc qdisc replace dev " + n.Name + " root fq"
		}
		out = append(out, c)
	}
	return out
}

package doctor

import (
	"fmt"

	"github.com/fullbore-net/fullbore/internal/oshost"
	"github.com/fullbore-net/fullbore/internal/units"
)

func processor(p *patient) []Check {
	if p.Host.CPUModel == "" && p.Host.Cores == 0 {
		return unseen("not readable", p.command("lscpu", "Get-CimInstance Win32_Processor"))
	}
	c := Check{Status: OK, Found: fmt.Sprintf("%s, %d %s", p.Host.CPUModel, p.Host.Cores, plural(p.Host.Cores, "core", "cores"))}
	if p.Host.CPUModel == "" {
		c.Found = fmt.Sprintf("%d %s", p.Host.Cores, plural(p.Host.Cores, "core", "cores"))
	}
	if p.Host.Cores == 1 && p.goal.Rate > units.GbitPerSec {
		c.Status = Info
		c.Why = "Kernel and program share one core: above a gigabit it is soon the limit."
	}
	return one(c)
}

const hostsClock = "The clock frequency is not this machine's to set; the host's governor matters."

const slowClock = "The clock follows the load with a delay: short runs, delay figures and paced rates suffer, and results differ from run to run."

func governor(p *patient) []Check {
	if p.windows() {
		return powerPlan(p)
	}
	g, pref := p.CPU.Governor, p.CPU.Preference
	found := g
	if pref != "" {
		found += ", energy preference " + pref
	}
	switch {
	case g == "" && p.virtual():
		return one(Check{Status: Info, Found: "the hypervisor decides", Why: hostsClock})
	case g == "":
		return unseen("no frequency control visible", "cpupower frequency-info")
	case g == "performance":
		return one(Check{Status: OK, Found: found})
	case g == "powersave" && (pref == "performance" || pref == "balance_performance"):
		// intel_pstate and amd-pstate in active mode call their own scaling so.
		return one(Check{Status: OK, Found: found})
	}
	return one(Check{Status: Change, Found: found, Why: slowClock, Fix: "cpupower frequency-set -g performance"})
}

// frequency applies M-DIAG: below 70 % of nominal. An idle core that a governor slowed down
// says nothing, so it counts only where the governor promises full speed.
func frequency(p *patient) []Check {
	if p.CPU.CurMHz == nil || p.Host.MHz == nil {
		return nil
	}
	cur, nominal := *p.CPU.CurMHz, *p.Host.MHz
	c := Check{Status: OK, Found: fmt.Sprintf("%d MHz now, nominal %d MHz", cur, nominal)}
	if float64(cur) < 0.7*float64(nominal) && p.CPU.Governor == "performance" {
		c.Status = Change
		c.Why = "The fastest core runs below 70 % of its nominal clock though asked for full speed: heat or a power limit."
		c.Fix = "turbostat --quiet --interval 1 --num_iterations 3"
	}
	return one(c)
}

func cpuQuota(p *patient) []Check {
	q := p.Quota
	if q == nil {
		return nil
	}
	c := Check{Status: Info, Found: fmt.Sprintf("%.3g of %d cores (control group %s)", q.CPUs, p.Host.Cores, q.Group)}
	c.Why = "When it is used up the program stands still for the rest of the period: gaps that look like a network's."
	if q.Throttled != nil {
		c.Found += fmt.Sprintf(", held back in %.0f %% of the periods", 100**q.Throttled)
	}
	if q.CPUs < 2 || q.Throttled != nil && *q.Throttled > 0.01 {
		c.Status = Change
		c.Fix = quotaAdvice(q, p.CPU.Container, max(p.Host.Cores, 1))
	}
	return one(c)
}

// quotaAdvice raises the limit to all cores where it was set.
func quotaAdvice(q *oshost.Quota, container string, cores int) string {
	switch {
	case container == "docker":
		return fmt.Sprintf("docker update --cpus %d CONTAINER", cores)
	case container == "podman", container == "libpod":
		return fmt.Sprintf("podman update --cpus %d CONTAINER", cores)
	case container == "kubepods":
		return "remove or raise resources.limits.cpu of the pod"
	case q.Version == 1:
		return "echo -1 > /sys/fs/cgroup/cpu" + q.Group + "/cpu.cfs_quota_us"
	}
	return "echo max > /sys/fs/cgroup" + q.Group + "/cpu.max"
}

func machine(p *patient) []Check {
	switch v := p.Host.Virtual; v {
	case "":
		return unseen("whether this is a virtual machine is not visible", p.command("systemd-detect-virt", "Get-CimInstance Win32_ComputerSystem | Format-List Manufacturer,Model"))
	case "none":
		c := Check{Status: OK, Found: "bare metal"}
		if p.CPU.Container != "" {
			c.Found += ", in a container (" + p.CPU.Container + ")"
		}
		return one(c)
	default:
		c := Check{Status: Info, Found: "virtual machine (" + v + ")"}
		if p.CPU.Container != "" {
			c.Found += ", in a container (" + p.CPU.Container + ")"
		}
		c.Why = "Other guests share its cores and its card; two guests on one host measure the virtual switch. Say it with every result."
		return one(c)
	}
}

// stolen applies M-CPU: above 1 % a note, above 5 % a number must be flagged.
func stolen(p *patient) []Check {
	s := p.CPU.StealShare
	if s == nil || !p.virtual() {
		return nil
	}
	c := Check{Status: OK, Found: fmt.Sprintf("%.1f %% since boot", 100**s)}
	const why = "The hypervisor ran others while this machine wanted to run: rates fall and delays jump without any network's doing."
	switch {
	case *s > 0.05:
		c.Status, c.Why, c.Fix = Change, why, "give the machine dedicated cores, or measure when its neighbours are quiet"
	case *s > 0.01:
		c.Status, c.Why = Info, why
	}
	return one(c)
}

func numa(p *patient) []Check {
	if p.CPU.NUMANodes == nil || *p.CPU.NUMANodes < 2 {
		return nil
	}
	for _, n := range p.hardware() {
		if n.NUMANode != nil {
			return one(Check{
				On: n.Name, Status: Info, Found: fmt.Sprintf("%d nodes; %s is on node %d", *p.CPU.NUMANodes, n.Name, *n.NUMANode),
				Why: "Work on the other node crosses the link between sockets with every packet: pin the test to the card's node.",
				Fix: fmt.Sprintf("numactl --cpunodebind=%d --membind=%d fullbore test HOST", *n.NUMANode, *n.NUMANode),
			})
		}
	}
	return unseen(fmt.Sprintf("%d nodes; the card's is not reported", *p.CPU.NUMANodes), "numactl --hardware")
}

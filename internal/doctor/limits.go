package doctor

import (
	"fmt"
	"slices"
	"strings"
)

// slowClocks are read through a device instead of a CPU register: a microsecond and more
// for each look at the time.
var slowClocks = []string{"hpet", "acpi_pm", "jiffies", "refined-jiffies", "pit"}

func clockSource(p *patient) []Check {
	if p.Clock == nil || p.Clock.Source == "" {
		if !p.linux() {
			return nil
		}
		return unseen("not readable", "cat /sys/devices/system/clocksource/clocksource0/current_clocksource")
	}
	c := Check{Status: OK, Found: p.Clock.Source}
	if slices.Contains(slowClocks, p.Clock.Source) {
		c.Status = Change
		c.Why = "Each look at the time leaves the CPU: pacing and time stamps cost twenty times as much, and are coarse."
		c.Fix = "dmesg | grep -i -e tsc -e clocksource"
		for _, better := range p.Clock.Available {
			if !slices.Contains(slowClocks, better) {
				c.Fix = "echo " + better + " > /sys/devices/system/clocksource/clocksource0/current_clocksource"
				break
			}
		}
	}
	return one(c)
}

func clockSync(p *patient) []Check {
	if p.windows() {
		return unseen("needs a query of the time service", "w32tm /query /status")
	}
	if p.Clock == nil || p.Clock.Synced == nil {
		return unseen("the kernel does not tell", "timedatectl")
	}
	k := p.Clock
	if !*k.Synced {
		c := Check{Status: Change, Found: "no time service keeps this clock"}
		c.Why = "Rates do not need it; one-way delay and the time of log lines do."
		c.Fix = "timedatectl set-ntp true"
		if len(k.Services) > 0 {
			c.Found = strings.Join(k.Services, ", ") + " runs, but the kernel counts the clock as not synchronised"
			c.Fix = "chronyc tracking || timedatectl timesync-status"
		}
		return one(c)
	}
	c := Check{Status: OK, Found: "synchronised"}
	if len(k.Services) > 0 {
		c.Found += " by " + strings.Join(k.Services, ", ")
	}
	if k.MaxError != nil {
		c.Found += fmt.Sprintf(", error at most %.3g ms", 1000**k.MaxError)
		if *k.MaxError > 0.01 {
			c.Status = Info
			c.Why = "Too coarse for one-way delay; enough for everything else."
			c.Fix = "chronyc tracking || timedatectl timesync-status"
		}
	}
	return one(c)
}

// openFiles: each stream is a descriptor; some more are the program's own.
func openFiles(p *patient) []Check {
	if p.Files == nil {
		if p.windows() {
			return nil
		}
		return unseen("not readable", "ulimit -n")
	}
	need := int64(2*p.goal.Streams + 64)
	c := Check{Status: OK, Found: fmt.Sprintf("%d per process, enough for %d streams", p.Files.Soft, max(0, (p.Files.Soft-64)/2))}
	switch {
	case p.Files.Soft < 0:
		c.Found = "unlimited"
	case p.Files.Soft < need:
		c.Status = Change
		c.Why = fmt.Sprintf("%d streams in both directions need about %d descriptors.", p.goal.Streams, need)
		c.Fix = fmt.Sprintf("ulimit -n %d", max(need, 65536))
		if p.Files.Hard >= 0 && p.Files.Hard < need {
			c.Fix = "raise nofile in /etc/security/limits.conf or LimitNOFILE= of the service"
		}
	}
	return one(c)
}

func localPorts(p *patient) []Check {
	if p.TCP.PortFirst == nil || p.TCP.PortLast == nil {
		return nil
	}
	n := *p.TCP.PortLast - *p.TCP.PortFirst + 1
	c := Check{Status: OK, Found: fmt.Sprintf("%d to %d", *p.TCP.PortFirst, *p.TCP.PortLast)}
	if n < int64(4*p.goal.Streams) || n < 4096 {
		c.Status = Change
		c.Found += fmt.Sprintf(", %d ports", n)
		c.Why = "Closed connections keep their port for a minute: tests in a row run out of ports."
		c.Fix = "sysctl -w net.ipv4.ip_local_port_range='32768 60999'"
	}
	return one(c)
}

func tracking(p *patient) []Check {
	if p.Conntrack == nil || p.Conntrack.Max == 0 {
		return nil
	}
	used := float64(p.Conntrack.Count) / float64(p.Conntrack.Max)
	c := Check{Status: OK, Found: fmt.Sprintf("%d of %d entries", p.Conntrack.Count, p.Conntrack.Max)}
	if used > 0.8 {
		c.Status = Change
		c.Why = "When the table is full new connections are dropped without a word: streams fail to open."
		c.Fix = fmt.Sprintf("sysctl -w net.netfilter.nf_conntrack_max=%d", 4*p.Conntrack.Max)
	}
	return one(c)
}

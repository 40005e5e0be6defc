package oshost

import (
	"errors"
	"slices"
	"strconv"
	"strings"
)

// tcp reads the sysctls.
func (c *collector) tcp() TCP {
	const v4 = "proc/sys/net/ipv4/"
	t := TCP{
		ReadMem: triple(c.ints(v4 + "tcp_rmem")), WriteMem: triple(c.ints(v4 + "tcp_wmem")),
		CoreReadMax: c.int("proc/sys/net/core/rmem_max"), CoreWriteMax: c.int("proc/sys/net/core/wmem_max"),
		Congestion:    c.text(v4 + "tcp_congestion_control"),
		Available:     c.words(v4 + "tcp_available_congestion_control"),
		Allowed:       c.words(v4 + "tcp_allowed_congestion_control"),
		WindowScaling: c.flag(v4 + "tcp_window_scaling"), SACK: c.flag(v4 + "tcp_sack"),
		Timestamps: c.flag(v4 + "tcp_timestamps"), ModerateRcv: c.flag(v4 + "tcp_moderate_rcvbuf"),
		MTUProbing: c.int(v4 + "tcp_mtu_probing"), SlowStartIdle: c.flag(v4 + "tcp_slow_start_after_idle"),
		NoMetricsSave: c.flag(v4 + "tcp_no_metrics_save"), ECN: c.int(v4 + "tcp_ecn"),
		DefaultQdisc: c.text("proc/sys/net/core/default_qdisc"), Forward: c.flag(v4 + "ip_forward"),
		Backlog: c.int("proc/sys/net/core/netdev_max_backlog"), Budget: c.int("proc/sys/net/core/netdev_budget"),
		Listen: c.int("proc/sys/net/core/somaxconn"),
	}
	if r := c.ints(v4 + "ip_local_port_range"); len(r) == 2 {
		t.PortFirst, t.PortLast = &r[0], &r[1]
	}
	if t.ReadMem == nil {
		c.miss("tcp_rmem", errors.New("cannot read it"))
	}
	return t
}

func triple(v []int64) *[3]int64 {
	if len(v) != 3 {
		return nil
	}
	return (*[3]int64)(v)
}

// knownServices are the helpers whose presence explains or mends something.
var knownServices = []string{
	"irqbalance", "tuned", "chronyd", "ntpd", "systemd-timesyn", "ptp4l", "phc2sys", "timemaster", "openntpd",
	"firewalld", "ufw", "fail2ban-server", "suricata", "snort", "vmtoolsd", "hv_kvp_daemon", "qemu-ga",
}

// services lists those of knownServices that run. nil when no process can be seen. The
// kernel cuts command names to 15 characters (TASK_COMM_LEN).
func (c *collector) services() *[]string {
	found := []string{}
	saw := false
	for _, pid := range c.list("proc") {
		if strings.Trim(pid, "0123456789") != "" {
			continue
		}
		comm := c.text("proc/" + pid + "/comm")
		saw = saw || comm != ""
		if slices.Contains(knownServices, comm) && !slices.Contains(found, comm) {
			found = append(found, comm)
		}
	}
	if !saw {
		c.miss("services", errors.New("no process can be seen"))
		return nil
	}
	slices.Sort(found)
	return &found
}

var timeServices = []string{"chronyd", "ntpd", "systemd-timesyn", "ptp4l", "phc2sys", "timemaster", "openntpd"}

func (c *collector) clockFacts(services *[]string) *Clock {
	const dir = "sys/devices/system/clocksource/clocksource0/"
	k := Clock{Source: c.text(dir + "current_clocksource"), Available: c.words(dir + "available_clocksource")}
	if state, err := c.clock(); err != nil {
		c.miss("clock state", err)
	} else {
		k.Synced, k.MaxError, k.EstError = &state.Synced, &state.MaxError, &state.EstError
	}
	if services != nil {
		for _, s := range *services {
			if slices.Contains(timeServices, s) {
				k.Services = append(k.Services, s)
			}
		}
	}
	if k.Source == "" && k.Synced == nil {
		return nil
	}
	return &k
}

// files reads /proc/self/limits: "Max open files   1024   524288   files".
func (c *collector) files() *Files {
	for line := range strings.Lines(c.text("proc/self/limits")) {
		rest, ok := strings.CutPrefix(line, "Max open files")
		f := strings.Fields(rest)
		if !ok || len(f) < 2 {
			continue
		}
		soft, err := limit(f[0])
		hard, err2 := limit(f[1])
		if err == nil && err2 == nil {
			return &Files{Soft: soft, Hard: hard}
		}
	}
	c.miss("descriptor limit", errors.New("not in proc/self/limits"))
	return nil
}

func limit(s string) (int64, error) {
	if s == "unlimited" {
		return -1, nil
	}
	return strconv.ParseInt(s, 10, 64)
}

func (c *collector) conntrack() *Conntrack {
	count := c.int("proc/sys/net/netfilter/nf_conntrack_count")
	most := c.int("proc/sys/net/netfilter/nf_conntrack_max")
	if count == nil || most == nil {
		return nil
	}
	return &Conntrack{Count: *count, Max: *most}
}

// filterModules are the kernel modules whose presence means that rules were loaded.
var filterModules = []string{"nf_tables", "iptable_filter", "ip6table_filter", "ebtables", "nft_chain_nat", "iptable_nat"}

// firewall collects hints; the rules themselves need privileges. nil when nothing could be
// looked at.
func (c *collector) firewall(services *[]string) *[]string {
	hints := []string{}
	looked := services != nil
	if services != nil {
		for _, s := range *services {
			if slices.Contains([]string{"firewalld", "ufw", "fail2ban-server", "suricata", "snort"}, s) {
				hints = append(hints, s+" runs")
			}
		}
	}
	if modules := c.read("proc/modules"); modules != nil {
		looked = true
		for line := range strings.Lines(string(modules)) {
			if name, _, _ := strings.Cut(line, " "); slices.Contains(filterModules, name) {
				hints = append(hints, "module "+name)
			}
		}
	}
	if tables := c.read("proc/net/ip_tables_names"); tables != nil {
		looked = true
		for _, t := range strings.Fields(string(tables)) {
			hints = append(hints, "iptables table "+t)
		}
	}
	if c.exists("proc/sys/net/netfilter/nf_conntrack_count") {
		looked = true
		hints = append(hints, "connections are tracked")
	}
	if !looked {
		return nil
	}
	return &hints
}

package oshost

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
)

// cpuinfoHead is enough of /proc/cpuinfo for the first processor. Reading all of it makes
// the kernel ask every core for its frequency.
const cpuinfoHead = 4096

// cpuModel names the processor from the beginning of /proc/cpuinfo: "model name" (x86,
// LoongArch), "cpu" (POWER), "cpu model" (MIPS), "uarch" (RISC-V), else ARM's part numbers, else the board.
func cpuModel(info []byte, board string) string {
	for _, key := range []string{"model name", "Model Name", "cpu model", "cpu", "uarch"} {
		if m := keyed(info, key, ':'); m != "" {
			return strings.Join(strings.Fields(m), " ")
		}
	}
	maker, part := keyed(info, "CPU implementer", ':'), keyed(info, "CPU part", ':')
	if name := armCores[maker+" "+part]; name != "" {
		return name
	}
	if maker != "" && part != "" {
		return "ARM implementer " + maker + " part " + part
	}
	return strings.TrimRight(board, "\x00")
}

// armCores are MIDR implementer and part numbers (ARM's technical reference manuals).
var armCores = map[string]string{
	"0x41 0xd03": "ARM Cortex-A53", "0x41 0xd05": "ARM Cortex-A55", "0x41 0xd07": "ARM Cortex-A57",
	"0x41 0xd08": "ARM Cortex-A72", "0x41 0xd0a": "ARM Cortex-A75", "0x41 0xd0b": "ARM Cortex-A76",
	"0x41 0xd0c": "ARM Neoverse N1", "0x41 0xd40": "ARM Neoverse V1", "0x41 0xd49": "ARM Neoverse N2",
	"0x41 0xd4f": "ARM Neoverse V2", "0x41 0xd83": "ARM Neoverse V3", "0x41 0xd8e": "ARM Neoverse N3",
	"0x43 0x0af": "Marvell ThunderX2", "0x48 0xd01": "HiSilicon Kunpeng 920", "0xc0 0xac3": "Ampere-1", "0xc0 0xac4": "Ampere-1A",
}

// nominalMHz is the frequency the processor is sold with: cpufreq's base frequency, else
// the one in its name, else what /proc/cpuinfo shows now.
func (c *collector) nominalMHz(info []byte, model string) *int {
	if khz := c.int("sys/devices/system/cpu/cpu0/cpufreq/base_frequency"); khz != nil {
		return whole(float64(*khz) / 1000)
	}
	if _, after, ok := strings.Cut(model, "@ "); ok {
		if ghz, err := strconv.ParseFloat(strings.TrimSuffix(after, "GHz"), 64); err == nil {
			return whole(ghz * 1000)
		}
	}
	if mhz, err := strconv.ParseFloat(keyed(info, "cpu MHz", ':'), 64); err == nil {
		return whole(mhz)
	}
	if khz := c.int("sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq"); khz != nil {
		return whole(float64(*khz) / 1000)
	}
	return nil
}

func whole(f float64) *int {
	v := int(f + 0.5)
	return &v
}

// cpu reads governor, frequencies, NUMA nodes and steal.
func (c *collector) cpu() CPU {
	out := CPU{Container: c.container()}
	const dir = "sys/devices/system/cpu/"
	for _, name := range c.list("sys/devices/system/cpu") {
		if n, ok := strings.CutPrefix(name, "cpu"); !ok || strings.Trim(n, "0123456789") != "" || n == "" {
			continue
		}
		freq := dir + name + "/cpufreq/"
		switch g := c.text(freq + "scaling_governor"); {
		case g == "" || g == out.Governor:
		case out.Governor == "":
			out.Governor = g
		default:
			out.Governor = "mixed"
		}
		out.CurMHz = maxMHz(out.CurMHz, c.int(freq+"scaling_cur_freq"))
		out.MaxMHz = maxMHz(out.MaxMHz, c.int(freq+"cpuinfo_max_freq"))
	}
	out.Preference = c.text(dir + "cpu0/cpufreq/energy_performance_preference")
	if n := countCPUs(c.text("sys/devices/system/node/online")); n > 0 {
		out.NUMANodes = &n
	}
	first, _, _ := bytes.Cut(c.head("proc/stat", 512), []byte("\n"))
	if f := strings.Fields(string(first)); len(f) > 8 && f[0] == "cpu" {
		var total, steal float64
		for i, w := range f[1:9] {
			v, _ := strconv.ParseFloat(w, 64) // the kernel writes numbers here
			total += v
			if i == 7 {
				steal = v
			}
		}
		if total > 0 {
			share := steal / total
			out.StealShare = &share
		}
	}
	return out
}

func maxMHz(have *int, khz *int64) *int {
	if khz == nil || have != nil && int64(*have) >= *khz/1000 {
		return have
	}
	v := int(*khz / 1000)
	return &v
}

// virtual names the hypervisor; "none" = bare metal, "" = unknown. By DMI, Xen's
// sysfs, the device tree, WSL's kernel name and the CPU flag.
func (c *collector) virtual(info []byte) string {
	vendor := c.text("sys/class/dmi/id/sys_vendor")
	product := c.text("sys/class/dmi/id/product_name")
	flags := " " + keyed(info, "flags", ':') + " "
	flagged := strings.Contains(flags, " hypervisor ")
	switch t := c.text("sys/hypervisor/type"); {
	case t != "":
		return t
	case strings.Contains(strings.ToLower(c.text("proc/sys/kernel/osrelease")), "microsoft"):
		return "wsl"
	}
	if t := strings.Trim(c.text("proc/device-tree/hypervisor/compatible"), "\x00"); t != "" {
		return strings.SplitN(t, "\x00", 2)[0]
	}
	x86 := len(strings.TrimSpace(flags)) > 0
	if name, bareToo := virtualByMaker(vendor, product); name != "" {
		if bareToo && x86 && !flagged {
			return "none"
		}
		return name
	}
	switch {
	case flagged && c.hasDriver("virtio"):
		return "kvm"
	case flagged:
		return "unknown hypervisor"
	case vendor != "" && x86:
		return "none"
	}
	return ""
}

// virtualByMaker names the hypervisor that writes such DMI strings, "" when none does.
func virtualByMaker(vendor, product string) (name string, bareToo bool) {
	for _, d := range dmiVendors {
		if strings.Contains(vendor, d.vendor) && strings.Contains(product, d.product) {
			return d.name, d.bareToo
		}
	}
	return "", false
}

// dmiVendors are what hypervisors write into the machine's DMI tables. bareToo: the maker
// also rents bare metal under that name, so the CPU flag decides.
var dmiVendors = []struct {
	vendor, product string
	name            string
	bareToo         bool
}{
	{"QEMU", "", "kvm", false},
	{"VMware", "", "vmware", false},
	{"Microsoft Corporation", "Virtual Machine", "hyperv", false},
	{"innotek GmbH", "", "virtualbox", false},
	{"Oracle Corporation", "VirtualBox", "virtualbox", false},
	{"Xen", "", "xen", false},
	{"Parallels", "", "parallels", false},
	{"Apple Inc.", "Apple Virtualization", "apple", false},
	{"Amazon EC2", "", "ec2", true},
	{"Google", "Google Compute Engine", "gce", true},
	{"Alibaba Cloud", "", "alibaba", true},
	{"Tencent Cloud", "", "tencent", true},
	{"DigitalOcean", "", "kvm", false},
	{"Hetzner", "vServer", "kvm", false},
	{"OpenStack Foundation", "", "openstack", false},
	{"Red Hat", "KVM", "kvm", false},
	{"Red Hat", "RHEV", "kvm", false},
	{"oVirt", "", "kvm", false},
	{"Nutanix", "AHV", "kvm", false},
	{"BHYVE", "", "bhyve", false},
}

// hasDriver reports whether devices of a bus exist.
func (c *collector) hasDriver(bus string) bool { return len(c.list("sys/bus/"+bus+"/devices")) > 0 }

// container names the kind of container this process is in, "" when none is seen.
func (c *collector) container() string {
	switch {
	case c.exists("run/.containerenv"):
		return "podman"
	case c.exists(".dockerenv"):
		return "docker"
	}
	groups := c.text("proc/self/cgroup")
	for _, k := range []string{"kubepods", "docker", "libpod", "lxc", "containerd"} {
		if strings.Contains(groups, k) {
			return k
		}
	}
	return ""
}

// quota finds the tightest CPU limit on the way from this process's control group up to
// the root, nil when there is none.
func (c *collector) quota() *Quota {
	groups, err := c.cgroups()
	if err != nil {
		c.miss("control groups", err)
		return nil
	}
	var tightest *Quota
	for _, g := range groups {
		if q := c.groupQuota(g); q != nil && (tightest == nil || q.CPUs < tightest.CPUs) {
			tightest = q
		}
	}
	return tightest
}

// cgroup is one folder of the CPU controller.
type cgroup struct {
	dir     string // below the root
	path    string // as /proc/self/cgroup words it
	version int
}

// cgroups lists the CPU controller's groups of this process, innermost first.
func (c tree) cgroups() ([]cgroup, error) {
	text := c.text("proc/self/cgroup")
	if text == "" {
		return nil, fmt.Errorf("cannot read proc/self/cgroup")
	}
	var out []cgroup
	for line := range strings.Lines(text) {
		f := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(f) != 3 {
			continue
		}
		var mounts []string
		version := 1
		switch {
		case f[0] == "0" && f[1] == "":
			mounts, version = []string{"sys/fs/cgroup", "sys/fs/cgroup/unified"}, 2
		case hasWord(f[1], "cpu"):
			mounts = []string{"sys/fs/cgroup/" + f[1], "sys/fs/cgroup/cpu", "sys/fs/cgroup/cpu,cpuacct"}
		default:
			continue
		}
		for _, m := range mounts {
			if version == 2 && !c.exists(m+"/cgroup.controllers") || !c.exists(m) {
				continue
			}
			out = append(out, c.upwards(m, f[2], version)...)
			break
		}
	}
	return out, nil
}

// upwards lists the group and its parents. A container that sees the host's path but only
// its own folder has the limits in the mount's root.
func (c tree) upwards(mount, path string, version int) []cgroup {
	var out []cgroup
	for p := strings.TrimRight(path, "/"); p != ""; p = p[:strings.LastIndexByte(p, '/')] {
		if c.exists(mount + p) {
			out = append(out, cgroup{dir: mount + p, path: p, version: version})
		}
	}
	return append(out, cgroup{dir: mount, path: "/", version: version})
}

func hasWord(list, word string) bool {
	for w := range strings.SplitSeq(list, ",") {
		if w == word {
			return true
		}
	}
	return false
}

// groupQuota reads one group's limit, nil when it sets none (cgroup v2: cpu.max, "max" =
// none; v1: cpu.cfs_quota_us, −1 = none).
func (c *collector) groupQuota(g cgroup) *Quota {
	q := Quota{Group: g.path, Version: g.version}
	var most, period float64
	if g.version == 2 {
		f := strings.Fields(c.text(g.dir + "/cpu.max"))
		if len(f) != 2 || f[0] == "max" {
			return nil
		}
		most, _ = strconv.ParseFloat(f[0], 64)
		period, _ = strconv.ParseFloat(f[1], 64)
		q.Weight = c.int(g.dir + "/cpu.weight")
	} else {
		us := c.int(g.dir + "/cpu.cfs_quota_us")
		if us == nil || *us < 0 {
			return nil
		}
		most, period = float64(*us), float64(deref(c.int(g.dir+"/cpu.cfs_period_us")))
		q.Weight = c.int(g.dir + "/cpu.shares")
	}
	if most <= 0 || period <= 0 {
		return nil
	}
	q.CPUs, q.PeriodSec = most/period, period/1e6
	stat := c.read(g.dir + "/cpu.stat")
	periods, err := strconv.ParseFloat(keyed(stat, "nr_periods", ' '), 64)
	throttled, err2 := strconv.ParseFloat(keyed(stat, "nr_throttled", ' '), 64)
	if err == nil && err2 == nil && periods > 0 {
		share := throttled / periods
		q.Throttled = &share
	}
	return &q
}

package oshost

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// meter reads the machine's counters from files that it keeps open.
type meter struct {
	rereader
	o       TotalsOptions
	stat    int // descriptors; −1 = not there, or not asked for
	vectors int // /proc/interrupts
	snmp    int
	snmp6   int
	netstat int
	devices int // /proc/net/dev
}

// userTick is what /proc/stat counts in: USER_HZ, 100 on every architecture that is left
// (include/asm-generic/param.h).
const userTick = 10 * time.Millisecond

func openMeter(o TotalsOptions, miss func(string, error)) *meter {
	m := &meter{rereader: newRereader(o.Root), o: o, vectors: -1, snmp: -1, snmp6: -1, netstat: -1, devices: -1}
	m.stat = m.open("proc/stat", 0, miss)
	if o.Retransmits || o.Stack {
		m.snmp = m.openNet("snmp", miss)
	}
	if o.Retransmits {
		m.netstat = m.openNet("netstat", miss)
	}
	switch {
	case o.Stack && o.UDP && o.IPv6:
		m.snmp6 = m.openNet("snmp6", miss)
	case o.Stack:
	case o.Interface != "":
		m.devices = m.openNet("dev", miss)
	}
	if o.Interrupts != "" && !o.Stack {
		m.vectors = m.open("proc/interrupts", 0, miss)
	}
	if o.Stack {
		miss("DPCs", fmt.Errorf("this system has none: %w", errors.ErrUnsupported))
	}
	return m
}

// openNet opens a file of the network namespace that the calling thread is in (/proc/net
// is that of the program's first thread); it stays the same file when the thread moves.
func (m *meter) openNet(name string, miss func(string, error)) int {
	if fd := m.open("proc/thread-self/net/"+name, 0, func(string, error) {}); fd >= 0 {
		return fd
	}
	return m.open("proc/net/"+name, 0, miss)
}

func (m *meter) close() {
	for _, fd := range []*int{&m.stat, &m.vectors, &m.snmp, &m.snmp6, &m.netstat, &m.devices} {
		shut(*fd)
		*fd = -1
	}
}

func (m *meter) read(s *snapshot, miss func(string, error)) {
	total := m.readStat(s)
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err == nil {
		sum := time.Duration(u.Utime.Nano() + u.Stime.Nano())
		s.process = &sum
	} else {
		miss("getrusage", err)
	}
	m.readNet(s, miss)
	switch {
	case m.o.Stack && total != nil:
		s.interrupts = []vectorCount{{label: "in all", count: *total}}
	case m.vectors >= 0:
		if s.interrupts = interruptLines(m.again(m.vectors, nil), m.o.Interrupts); s.interrupts == nil {
			miss("interrupts", fmt.Errorf("no line of /proc/interrupts contains %q", m.o.Interrupts))
		}
	}
}

// readStat reads /proc/stat: the CPUs' sum, how many there are, and the sum of all
// interrupts, which follows them. Guest time is already in user and nice (kernel
// fs/proc/stat.c).
func (m *meter) readStat(s *snapshot) (interrupts *uint64) {
	text := m.again(m.stat, func(b []byte) bool {
		i := bytes.Index(b, []byte("\nintr "))
		return i >= 0 && bytes.ContainsAny(b[i+len("\nintr "):], " \n")
	})
	for len(text) > 0 {
		var line []byte
		line, text, _ = bytes.Cut(text, []byte("\n"))
		if rest, ok := bytes.CutPrefix(line, []byte("intr ")); ok {
			n, _ := number(rest)
			interrupts = &n
			break
		}
		rest, ok := bytes.CutPrefix(line, []byte("cpu"))
		if !ok {
			continue
		}
		if len(rest) > 0 && rest[0] >= '0' && rest[0] <= '9' {
			if id, _ := number(rest); s.cores == 0 {
				s.firstCPU = int(id)
			}
			s.cores++
			continue
		}
		var v [8]uint64
		for i := range v {
			v[i], rest = number(rest)
		}
		s.cpu = &cpuTicks{
			user: int64(v[0]), nice: int64(v[1]), system: int64(v[2]), idle: int64(v[3]),
			iowait: int64(v[4]), irq: int64(v[5]), softirq: int64(v[6]), steal: int64(v[7]), unit: userTick,
		}
	}
	if s.cores == 0 {
		if s.cores = countCPUs(m.text("sys/devices/system/cpu/online")); s.cores == 0 && m.dir == "" {
			s.cores = runtime.NumCPU()
		}
	}
	return interrupts
}

// readNet reads the counters of the network namespace.
func (m *meter) readNet(s *snapshot, miss func(string, error)) {
	var snmp, netstat []byte
	if m.snmp >= 0 {
		snmp = bytes.Clone(m.again(m.snmp, nil))
	}
	if m.o.Retransmits {
		netstat = bytes.Clone(m.again(m.netstat, nil))
		s.tcp = tcpCounters(snmp, netstat)
		if s.tcp == nil && m.snmp >= 0 {
			miss("TCP counters", errors.New("no RetransSegs in /proc/net/snmp"))
		}
	}
	switch {
	case m.o.Stack:
		var six []byte
		if m.snmp6 >= 0 {
			six = m.again(m.snmp6, nil)
		}
		if s.packets = stackPackets(snmp, six, m.o); s.packets == nil {
			miss("packets of the protocol stack", errors.New("not in /proc/net/snmp"))
		}
	case m.devices >= 0:
		if s.packets = devicePackets(m.again(m.devices, nil), m.o.Interface); s.packets == nil {
			miss("packets of "+m.o.Interface, errors.New("there is no such interface here"))
		}
	}
}

// kernelCounter is a value of the kernel's tables, which are as wide as its words.
func kernelCounter(n uint64) counter { return counter{n, strconv.IntSize} }

// table reads one table of /proc/net/snmp or netstat: a line of names and a line of
// values, both behind "prefix:". nil when it is not there.
func table(text []byte, prefix string) map[string]uint64 {
	var names []string
	for line := range bytes.Lines(text) {
		rest, ok := bytes.CutPrefix(line, []byte(prefix+":"))
		if !ok {
			continue
		}
		f := strings.Fields(string(rest))
		if names == nil {
			names = f
			continue
		}
		out := make(map[string]uint64, len(names))
		for i, name := range names[:min(len(names), len(f))] {
			if v, err := strconv.ParseUint(f[i], 10, 64); err == nil { // MaxConn is −1
				out[name] = v
			}
		}
		return out
	}
	return nil
}

// tcpCounters picks those of tcpNames; what this kernel does not have stays 0. nil when
// there is not even RetransSegs.
func tcpCounters(snmp, netstat []byte) *[len(tcpNames)]counter {
	tcp, ext := table(snmp, "Tcp"), table(netstat, "TcpExt")
	if _, ok := tcp[tcpNames[0]]; !ok {
		return nil
	}
	out := [len(tcpNames)]counter{kernelCounter(tcp[tcpNames[0]])}
	for i, name := range tcpNames[1:] {
		out[i+1] = kernelCounter(ext[name])
	}
	return &out
}

// stackPackets reads what TCP (both families) or UDP (each family its own) moved; nil when
// the table is not there.
func stackPackets(snmp, snmp6 []byte, o TotalsOptions) *packetCounters {
	var t map[string]uint64
	p := [4]string{"OutSegs", "InSegs", "RetransSegs", "AttemptFails"}
	switch {
	case !o.UDP:
		t = table(snmp, "Tcp")
	case o.IPv6:
		t, p = pairs(snmp6), [4]string{"Udp6OutDatagrams", "Udp6InDatagrams", "", "Udp6InErrors"}
	default:
		t, p = table(snmp, "Udp"), [4]string{"OutDatagrams", "InDatagrams", "", "InErrors"}
	}
	if _, ok := t[p[0]]; !ok {
		return nil
	}
	return &packetCounters{
		sent: kernelCounter(t[p[0]]), received: kernelCounter(t[p[1]]),
		retransmitted: kernelCounter(t[p[2]]), failed: kernelCounter(t[p[3]]),
	}
}

// pairs reads /proc/net/snmp6: a name and a value on each line.
func pairs(text []byte) map[string]uint64 {
	out := map[string]uint64{}
	for line := range bytes.Lines(text) {
		if f := strings.Fields(string(line)); len(f) == 2 {
			if v, err := strconv.ParseUint(f[1], 10, 64); err == nil {
				out[f[0]] = v
			}
		}
	}
	return out
}

// devicePackets reads an interface's line of /proc/net/dev, nil when there is none: eight
// columns of what arrived (bytes, packets, …), then eight of what left, 64 bits
// wide (net/core/net-procfs.c, dev_seq_printf_stats).
func devicePackets(text []byte, name string) *packetCounters {
	for line := range bytes.Lines(text) {
		who, rest, ok := bytes.Cut(line, []byte(":"))
		if !ok || string(bytes.TrimSpace(who)) != name {
			continue
		}
		f := strings.Fields(string(rest))
		if len(f) < 10 {
			return nil
		}
		received, err := strconv.ParseUint(f[1], 10, 64)
		sent, err2 := strconv.ParseUint(f[9], 10, 64)
		if err != nil || err2 != nil {
			return nil
		}
		return &packetCounters{name: name, sent: counter{sent, 64}, received: counter{received, 64}}
	}
	return nil
}

// interruptLines reads the lines of /proc/interrupts that contain a text: the label, a
// count for each CPU that the first line names (fewer on lines like "ERR:"), and words. nil
// when no line does.
func interruptLines(text []byte, contains string) []vectorCount {
	var out []vectorCount
	var cpus []int
	for line := range bytes.Lines(text) {
		if cpus == nil {
			for _, w := range strings.Fields(string(line)) {
				if id, err := strconv.Atoi(strings.TrimPrefix(w, "CPU")); err == nil {
					cpus = append(cpus, id)
				}
			}
			continue
		}
		if !bytes.Contains(line, []byte(contains)) {
			continue
		}
		label, rest, _ := bytes.Cut(bytes.TrimSpace(line), []byte(":"))
		for i, w := range strings.Fields(string(rest)) {
			n, err := strconv.ParseUint(w, 10, 64)
			if err != nil || i >= len(cpus) {
				break
			}
			out = append(out, vectorCount{string(label), cpus[i], n})
		}
	}
	return out
}

// clockKeys are what /proc/cpuinfo calls a CPU's clock: x86 and RISC-V, LoongArch, POWER
// ("3425.000000MHz"), s390.
var clockKeys = []string{"cpu MHz", "CPU MHz", "clock", "cpu MHz static"}

// mhz is the clock of the first CPU: what NTTTCP takes from /proc/cpuinfo; on processors
// that do not say it there (ARM) cpufreq's, now or at most, or the firmware's nominal
// one. It uses none of the kept files and may be called at any time.
func (m *meter) mhz(firstCPU int) (float64, error) {
	info := m.head("proc/cpuinfo", cpuinfoHead)
	for _, key := range clockKeys {
		if v, err := strconv.ParseFloat(strings.TrimSuffix(keyed(info, key, ':'), "MHz"), 64); err == nil && v > 0 {
			return v, nil
		}
	}
	dir := fmt.Sprintf("sys/devices/system/cpu/cpu%d/", firstCPU)
	for _, f := range []struct {
		name string
		per  float64
	}{
		{"cpufreq/scaling_cur_freq", 1e3}, {"cpufreq/cpuinfo_max_freq", 1e3}, {"acpi_cppc/nominal_freq", 1},
	} {
		if v := m.int(dir + f.name); v != nil && *v > 0 {
			return float64(*v) / f.per, nil
		}
	}
	return 0, errors.New("neither in /proc/cpuinfo nor in cpufreq")
}

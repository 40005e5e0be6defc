package oshost

import (
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/fullbore-net/fullbore/result"
)

// Values as Linux 6.1 wrote them, shortened by what is not read.
const (
	snmpText = `Ip: Forwarding DefaultTTL InReceives InHdrErrors
Ip: 2 64 130033236 0
Tcp: RtoAlgorithm RtoMin RtoMax MaxConn ActiveOpens PassiveOpens AttemptFails EstabResets CurrEstab InSegs OutSegs RetransSegs InErrs OutRsts InCsumErrors
Tcp: 1 200 120000 -1 325002 321067 %d 54232 0 %d %d %d 0 41679 0
Udp: InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors SndbufErrors InCsumErrors IgnoredMulti MemErrors
Udp: %d 1978 %d %d 18986976 0 0 0 0
UdpLite: InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors SndbufErrors InCsumErrors IgnoredMulti MemErrors
UdpLite: 9 9 9 9 0 0 0 0 0
`
	netstatText = `TcpExt: SyncookiesSent TCPLostRetransmit TCPFastRetrans TCPSlowStartRetrans TCPTimeouts TCPRetransFail TCPSynRetrans TCPOrigDataSent
TcpExt: 0 %d %d %d 66122 %d %d 1084471
IpExt: InNoRoutes InTruncatedPkts
IpExt: 0 0
`
	devText = `Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo: 4280537240944 135899146    0  173    0     0          0         0 4280537240944 135899146    0    0    0     0       0          0
  eth0:%d %d    0    0    0     0          0         0   %d    %d    0    0    0     0       0          0
 eth01: 1 2 0 0 0 0 0 0 3 4 0 0 0 0 0 0
`
	cpuinfoText = "processor\t: 0\nvendor_id\t: GenuineIntel\nmodel name\t: Intel(R) Xeon(R) CPU E5-2683 v4 @ 2.10GHz\ncpu MHz\t\t: 2100.000\ncache size\t: 40960 KB\n\nprocessor\t: 1\ncpu MHz\t\t: 1200.000\n"
)

// stat makes /proc/stat of n CPUs: the sum as given, no CPU's own.
func stat(n int, sum string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "cpu  %s\n", sum)
	for i := range n {
		fmt.Fprintf(&b, "cpu%d 1 2 3 4 5 6 7 8 0 0\n", i)
	}
	fmt.Fprintf(&b, "intr %d 0 0 9\nctxt 5\n", 1_000_000+n)
	return b.String()
}

// machine begins a measurement of a made-up tree.
func machine(t *testing.T, files map[string]string, o TotalsOptions) (dir string, tot *Totals, clock *stepClock) {
	t.Helper()
	dir = t.TempDir()
	write(t, dir, files)
	clock = &stepClock{time.Unix(1000, 0)}
	o.Root, o.Now = dir, clock.now
	tot = NewTotals(o)
	t.Cleanup(tot.Close)
	return dir, tot, clock
}

var ignoreProcess = cmpopts.IgnoreFields(result.HostTotal{}, "Process")

// Every counter at once, and the golden of methods §14: 2100 MHz, 16 CPUs, 10 s, 10 % busy,
// 12.5 GB → 2.688 cycles a byte.
func TestTotals(t *testing.T) {
	dir, tot, clock := machine(t, map[string]string{
		"proc/stat":        stat(16, "1000 200 3000 40000 500 60 700 80 7 7"),
		"proc/cpuinfo":     cpuinfoText,
		"proc/net/snmp":    fmt.Sprintf(snmpText, 3815, 0, 0, 790749, 0, 0, 0),
		"proc/net/netstat": fmt.Sprintf(netstatText, 100, 200, 300, 400, 500),
		"proc/net/dev":     fmt.Sprintf(devText, 1, 5_000_000_000, 1, 7_000_000_000),
		"proc/interrupts": "           CPU0       CPU1       \n 24:         10         20   PCI-MSI 65536-edge      virtio0-input.0\n" +
			" 25:          5          6   PCI-MSI 65537-edge      virtio0-output.0 7\n 26:       1000       2000   PCI-MSI 65538-edge      virtio1-input.0\nERR:          3\n",
	}, TotalsOptions{Interface: "eth0", Interrupts: "virtio0", Retransmits: true})
	if m := tot.Missing(); m != nil {
		t.Fatalf("missing: %v", m)
	}
	end := tot.Begin()
	write(t, dir, map[string]string{
		// user 600, nice 100, system 500, iowait 0, irq 50, softirq 300, steal 50: 1600 of 16000 ticks.
		"proc/stat":        stat(16, "1600 300 3500 54400 500 110 1000 130 9 9"),
		"proc/net/snmp":    fmt.Sprintf(snmpText, 3900, 0, 0, 790849, 0, 0, 0),
		"proc/net/netstat": fmt.Sprintf(netstatText, 101, 202, 303, 404, 505),
		"proc/net/dev":     fmt.Sprintf(devText, 1, 5_000_001_000, 1, 7_000_002_000),
		"proc/interrupts": "           CPU0       CPU1       \n 24:        110         40   PCI-MSI 65536-edge      virtio0-input.0\n" +
			" 25:          6          9   PCI-MSI 65537-edge      virtio0-output.0 7\n 26:       9000       9000   PCI-MSI 65538-edge      virtio1-input.0\nERR:         99\n",
	})
	clock.t = clock.t.Add(10 * time.Second)
	got := end()
	mhz, interrupts := 2100.0, int64(100+20+1+3)
	want := &result.HostTotal{
		Seconds: 10, Cores: 16, CoresAfter: 16, MHz: &mhz, Interrupts: &interrupts,
		CPU:     &result.CPUTime{User: 6e9, Nice: 1e9, System: 5e9, Idle: 144e9, IRQ: 0.5e9, SoftIRQ: 3e9, Steal: 0.5e9},
		TCP:     &result.TCPCounters{RetransSegs: 100, LostRetransmit: 1, FastRetrans: 2, SlowStart: 3, RetransmitFails: 4, SynRetrans: 5},
		Packets: &result.PacketCount{Interface: "eth0", Received: 1000, Sent: 2000},
	}
	if diff := cmp.Diff(want, got, ignoreProcess); diff != "" {
		t.Error(diff)
	}
	if c := got.CyclesPerByte(12_500_000_000, got.Seconds); math.Abs(c-2.688) > 1e-12 {
		t.Errorf("cycles/byte = %v, want 2.688", c)
	}
	for part, percent := range map[int64]float64{got.CPU.User: 3.75, got.CPU.System: 3.125, got.CPU.Idle: 90, got.CPU.IOWait: 0, got.CPU.SoftIRQ: 1.875} {
		if p := got.CPU.Percent(part); math.Abs(p-percent) > 1e-12 {
			t.Errorf("%d ns are %v %%, want %v", part, p, percent)
		}
	}
	if p := got.PacketsPerInterrupt(); math.Abs(p-3000.0/124) > 1e-12 {
		t.Errorf("packets/interrupt = %v", p)
	}
	if got.Process == nil || *got.Process < 0 {
		t.Errorf("process: %v", got.Process)
	}
	if m := tot.Missing(); m != nil {
		t.Errorf("missing: %v", m)
	}
}

// What was not asked for is nil and not missed.
func TestTotalsAsksOnly(t *testing.T) {
	_, tot, clock := machine(t, map[string]string{"proc/stat": stat(2, "1 1 1 1 1 1 1 1"), "proc/cpuinfo": cpuinfoText}, TotalsOptions{})
	end := tot.Begin()
	clock.t = clock.t.Add(time.Second)
	got := end()
	if got.TCP != nil || got.Packets != nil || got.Interrupts != nil || got.DPCs != nil || got.CPU == nil || got.CPU.Total() != 0 {
		t.Errorf("%+v", got)
	}
	if m := tot.Missing(); m != nil {
		t.Errorf("missing: %v", m)
	}
}

// The stack's own packets and all interrupts, for NTTTCP's Windows outputs.
func TestTotalsStack(t *testing.T) {
	six := "Ip6InReceives                   \t12\nUdp6InDatagrams                 \t%d\nUdp6InErrors                    \t%d\nUdp6OutDatagrams                \t%d\n"
	for _, c := range []struct {
		name string
		o    TotalsOptions
		want result.PacketCount
	}{
		{"TCP", TotalsOptions{}, result.PacketCount{Sent: 20, Received: 10, Retransmitted: 30, Errors: 1}},
		{"TCP over IPv6 is in the same table", TotalsOptions{IPv6: true}, result.PacketCount{Sent: 20, Received: 10, Retransmitted: 30, Errors: 1}},
		{"UDP", TotalsOptions{UDP: true}, result.PacketCount{Sent: 60, Received: 40, Errors: 50}},
		{"UDP over IPv6", TotalsOptions{UDP: true, IPv6: true}, result.PacketCount{Sent: 9, Received: 7, Errors: 8}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.o.Stack, c.o.Interrupts, c.o.Interface = true, "nothing of that name", "nor that"
			dir, tot, clock := machine(t, map[string]string{
				"proc/stat": stat(4, "1 1 1 1 1 1 1 1"), "proc/cpuinfo": cpuinfoText,
				"proc/net/snmp":  fmt.Sprintf(snmpText, 1, 100, 200, 300, 400, 500, 600),
				"proc/net/snmp6": fmt.Sprintf(six, 1, 2, 3),
			}, c.o)
			end := tot.Begin()
			write(t, dir, map[string]string{
				"proc/stat":      strings.Replace(stat(4, "2 2 2 2 2 2 2 2"), "intr 1000004", "intr 1000504", 1),
				"proc/net/snmp":  fmt.Sprintf(snmpText, 2, 110, 220, 330, 440, 550, 660),
				"proc/net/snmp6": fmt.Sprintf(six, 8, 10, 12),
			})
			clock.t = clock.t.Add(time.Second)
			got := end()
			if diff := cmp.Diff(&c.want, got.Packets); diff != "" {
				t.Error(diff)
			}
			if got.Interrupts == nil || *got.Interrupts != 500 || got.DPCs != nil || got.TCP != nil {
				t.Errorf("%+v", got)
			}
			if m := strings.Join(tot.Missing(), "; "); !strings.HasPrefix(m, "DPCs: ") || strings.Contains(m, ";") {
				t.Errorf("missing: %s", m)
			}
		})
	}
}

// An interface that is gone, or was made anew, has no count; nor has one that never was.
func TestTotalsInterface(t *testing.T) {
	base := func(rx, tx int) map[string]string {
		return map[string]string{
			"proc/stat": stat(2, "1 1 1 1 1 1 1 1"), "proc/cpuinfo": cpuinfoText,
			"proc/net/dev": fmt.Sprintf(devText, 1, rx, 1, tx),
		}
	}
	header, _, _ := strings.Cut(devText, "  eth0")
	for _, c := range []struct {
		name, iface string
		after       string
		missing     string
	}{
		{"gone", "eth0", header, "there is no such interface here"},
		{"made anew", "eth0", fmt.Sprintf(devText, 1, 3, 1, 4), "began anew"},
		{"never there", "eth9", fmt.Sprintf(devText, 1, 200, 1, 200), "there is no such interface here"},
		{"cut short", "eth0", header + "  eth0: 1 2 3\n", "there is no such interface here"},
		{"no number", "eth0", header + "  eth0: 1 x 3 4 5 6 7 8 9 10\n", "there is no such interface here"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir, tot, clock := machine(t, base(100, 100), TotalsOptions{Interface: c.iface})
			end := tot.Begin()
			write(t, dir, map[string]string{"proc/net/dev": c.after})
			clock.t = clock.t.Add(time.Second)
			if got := end(); got.Packets != nil || got.CPU == nil {
				t.Errorf("%+v", got.Packets)
			}
			if m := strings.Join(tot.Missing(), "; "); !strings.Contains(m, "packets of "+c.iface+": ") || !strings.Contains(m, c.missing) {
				t.Errorf("missing: %s", m)
			}
		})
	}
}

func TestInterruptLines(t *testing.T) {
	const text = "           CPU0       CPU2       CPU3       \n" +
		"  8:          1          2          3  IR-IO-APIC    8-edge      rtc0\n" +
		"131:         10         20         30  IR-PCI-MSI 1572864-edge      mlx5_comp0@pci:0000:3b:00.0\n" +
		"132:         40         50         60  IR-PCI-MSI 1572865-edge      mlx5_comp1@pci:0000:3b:00.0\n" +
		"NMI:          7          8          9   Non-maskable interrupts\n" +
		"MIS:         99\n"
	for _, c := range []struct {
		contains string
		want     []vectorCount
	}{
		{"mlx5", []vectorCount{{"131", 0, 10}, {"131", 2, 20}, {"131", 3, 30}, {"132", 0, 40}, {"132", 2, 50}, {"132", 3, 60}}},
		{"mlx5_comp1@", []vectorCount{{"132", 0, 40}, {"132", 2, 50}, {"132", 3, 60}}},
		{"rtc0", []vectorCount{{"8", 0, 1}, {"8", 2, 2}, {"8", 3, 3}}},
		{"NMI", []vectorCount{{"NMI", 0, 7}, {"NMI", 2, 8}, {"NMI", 3, 9}}},
		{"MIS", []vectorCount{{"MIS", 0, 99}}},
		{"CPU2", nil}, // the heading is no interrupt
		{"eth0", nil},
	} {
		if diff := cmp.Diff(c.want, interruptLines([]byte(text), c.contains), cmp.AllowUnexported(vectorCount{})); diff != "" {
			t.Errorf("%s: %s", c.contains, diff)
		}
	}
	// 320 CPUs: a line longer than any buffer.
	var wide strings.Builder
	for i := range 320 {
		fmt.Fprintf(&wide, "       CPU%-3d", i)
	}
	wide.WriteString("\n 77:")
	for range 320 {
		fmt.Fprintf(&wide, " %12d", 1_000_000_000)
	}
	wide.WriteString("  PCI-MSI 1-edge  eth0-rx\n")
	_, tot, _ := machine(t, map[string]string{"proc/stat": stat(320, "1 1 1 1 1 1 1 1"), "proc/cpuinfo": cpuinfoText, "proc/interrupts": wide.String()}, TotalsOptions{Interrupts: "eth0"})
	s := tot.take()
	if s.cores != 320 || len(s.interrupts) != 320 || s.interrupts[319] != (vectorCount{"77", 319, 1_000_000_000}) {
		t.Errorf("%d CPUs, %d counts", s.cores, len(s.interrupts))
	}
}

func TestClockOfTheFirstCPU(t *testing.T) {
	const arm = "processor\t: 0\nBogoMIPS\t: 243.75\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c\n"
	for _, c := range []struct {
		name  string
		files map[string]string
		want  float64 // 0 = unknown
	}{
		{"x86", map[string]string{"proc/cpuinfo": cpuinfoText}, 2100},
		{"POWER", map[string]string{"proc/cpuinfo": "processor\t: 0\ncpu\t\t: POWER9\nclock\t\t: 3425.500000MHz\n"}, 3425.5},
		{"LoongArch", map[string]string{"proc/cpuinfo": "system type\t: generic\n\nprocessor\t\t: 0\nCPU MHz\t\t\t: 2500.00\n"}, 2500},
		{"ARM with cpufreq", map[string]string{
			"proc/cpuinfo": arm, "sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq": "2999998\n",
			"sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq": "3000000\n",
		}, 2999.998},
		{"ARM that tells only its most", map[string]string{"proc/cpuinfo": arm, "sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq": "3000000\n"}, 3000},
		{"ARM server without cpufreq", map[string]string{"proc/cpuinfo": arm, "sys/devices/system/cpu/cpu0/acpi_cppc/nominal_freq": "2600\n"}, 2600},
		{"ARM that tells nothing", map[string]string{"proc/cpuinfo": arm}, 0},
		{"first CPU offline", map[string]string{
			"proc/cpuinfo": arm, "proc/stat": "cpu  1 1 1 1 1 1 1 1\ncpu3 1 1 1 1 1 1 1 1\nintr 5\n",
			"sys/devices/system/cpu/cpu3/cpufreq/scaling_cur_freq": "1500000\n",
			"sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq": "9000000\n",
		}, 1500},
		{"not a number", map[string]string{"proc/cpuinfo": "cpu MHz\t: unknown\n"}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.files["proc/stat"] == "" {
				c.files["proc/stat"] = stat(1, "1 1 1 1 1 1 1 1")
			}
			_, tot, _ := machine(t, c.files, TotalsOptions{})
			got := tot.Begin()().MHz
			missing := strings.Contains(strings.Join(tot.Missing(), "; "), "CPU clock")
			switch {
			case c.want == 0 && (got != nil || !missing):
				t.Errorf("got %v, missing %q", got, tot.Missing())
			case c.want != 0 && (got == nil || math.Abs(*got-c.want) > 1e-9 || missing):
				t.Errorf("got %v, want %v; missing %q", got, c.want, tot.Missing())
			}
		})
	}
}

// CPUs that come or go are told; a counter that the kernel lacks is 0; a reading taken twice
// counts from the same beginning.
func TestTotalsOddMachines(t *testing.T) {
	dir, tot, clock := machine(t, map[string]string{
		"proc/stat": stat(4, "100 0 0 1000 50 0 0"), "proc/cpuinfo": cpuinfoText, // seven columns: an old kernel
		"proc/net/snmp": fmt.Sprintf(snmpText, 0, 0, 0, 10, 0, 0, 0), "proc/net/netstat": "TcpExt: SyncookiesSent\nTcpExt: 3\n",
	}, TotalsOptions{Retransmits: true})
	end := tot.Begin()
	write(t, dir, map[string]string{
		"proc/stat": stat(3, "150 0 0 1100 45 0 0"), "proc/net/snmp": fmt.Sprintf(snmpText, 0, 0, 0, 25, 0, 0, 0),
	})
	clock.t = clock.t.Add(time.Second)
	got := end()
	mhz := 2100.0
	want := &result.HostTotal{
		Seconds: 1, Cores: 4, CoresAfter: 3, MHz: &mhz,
		CPU: &result.CPUTime{User: 0.5e9, Idle: 1e9}, TCP: &result.TCPCounters{RetransSegs: 15},
	}
	if diff := cmp.Diff(want, got, ignoreProcess); diff != "" {
		t.Error(diff)
	}
	clock.t = clock.t.Add(time.Second)
	if got := end(); got.Seconds != 2 || got.TCP.RetransSegs != 15 {
		t.Errorf("again: %+v", got)
	}
}

// An empty root: nothing is made up, and all that was asked for is named once.
func TestTotalsWithoutCounters(t *testing.T) {
	_, tot, clock := machine(t, nil, TotalsOptions{Interface: "eth0", Interrupts: "eth0", Retransmits: true})
	end := tot.Begin()
	clock.t = clock.t.Add(time.Second)
	got := end()
	if diff := cmp.Diff(&result.HostTotal{Seconds: 1}, got, ignoreProcess); diff != "" {
		t.Error(diff)
	}
	all := strings.Join(tot.Missing(), "\n")
	for _, what := range []string{"proc/stat", "proc/net/snmp", "proc/net/netstat", "proc/net/dev", "proc/interrupts", "CPU clock"} {
		if strings.Count(all, what) != 1 {
			t.Errorf("%s: in\n%s", what, all)
		}
	}
}

// Measurements that overlap share one Totals, and one that outlives it knows nothing.
func TestTotalsConcurrent(t *testing.T) {
	tot := NewTotals(TotalsOptions{Interface: "lo", Interrupts: "CPU", Retransmits: true})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 20 {
				if got := tot.Begin()(); got.CPU == nil || got.Packets == nil || got.TCP == nil {
					t.Errorf("%+v; missing %q", got, tot.Missing())
				}
			}
		})
	}
	wg.Wait()
	end := tot.Begin()
	tot.Close()
	if got := end(); got.CPU != nil || got.Packets != nil || got.TCP != nil {
		t.Errorf("after Close: %+v", got)
	}
}

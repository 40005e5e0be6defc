package doctor

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fullbore-net/fullbore/internal/oshost"
	"github.com/fullbore-net/fullbore/internal/units"
)

var update = flag.Bool("update", false, "write the golden reports anew")

const hosts = "../oshost/testdata/hosts"

// load reads a recorded host's inventory.
func load(t *testing.T, name string) *oshost.Inventory {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(hosts, name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	var inv oshost.Inventory
	if err := json.Unmarshal(data, &inv); err != nil {
		t.Fatal(err)
	}
	return &inv
}

func text(checks []Check) string {
	var b bytes.Buffer
	for _, c := range checks {
		fmt.Fprintf(&b, "%-7s %-8s %s: %s\n", c.Status, c.Topic, c.Name, c.Found)
		if c.Why != "" {
			fmt.Fprintf(&b, "        why: %s\n", c.Why)
		}
		if c.Fix != "" {
			fmt.Fprintf(&b, "        fix: %s\n", c.Fix)
		}
		if c.Look != "" {
			fmt.Fprintf(&b, "        look: %s\n", c.Look)
		}
	}
	fmt.Fprintf(&b, "%s\n", Summary(checks))
	return b.String()
}

// Whole reports of the recorded hosts.
func TestReports(t *testing.T) {
	for _, c := range []struct {
		host string
		goal Goal
	}{
		{"server-25g", Goal{}},
		{"vm-e1000", Goal{Rate: 10 * units.GbitPerSec, RTT: 10 * time.Millisecond}},
		{"desktop-100m", Goal{}},
		{"bond-arm", Goal{}},
		{"laptop-wifi", Goal{}},
		{"windows-server", Goal{}},
		{"windows-laptop", Goal{RTT: 40 * time.Millisecond}},
	} {
		t.Run(c.host, func(t *testing.T) {
			got := text(Examine(load(t, c.host), c.goal))
			golden := filepath.Join("testdata", c.host+".golden")
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// ruleCase changes one thing of a recorded host and says what one rule must answer.
type ruleCase struct {
	name   string
	change func(*oshost.Inventory)
	goal   Goal
	status Status
	has    string // in Found, Why or Fix
}

func p[T any](v T) *T { return &v }

func nic(change func(*oshost.NIC)) func(*oshost.Inventory) {
	return func(inv *oshost.Inventory) { change(&inv.NICs[0]) }
}

func off(feature string, fixed bool) func(*oshost.Inventory) {
	return nic(func(n *oshost.NIC) { n.Offloads[feature] = oshost.Offload{Fixed: fixed} })
}

var (
	asIs  = func(*oshost.Inventory) {}
	tenG  = Goal{Rate: 10 * units.GbitPerSec, RTT: 10 * time.Millisecond}
	oneG  = Goal{Rate: units.GbitPerSec, RTT: 10 * time.Millisecond}
	long  = Goal{Rate: 10 * units.GbitPerSec, RTT: 100 * time.Millisecond}
	earth = Goal{Rate: 400 * units.GbitPerSec, RTT: 100 * time.Millisecond}
)

// cases holds every rule by its explain word, on the well kept server unless changed.
var cases = map[string][]ruleCase{
	"link-speed": {
		{"full speed", asIs, Goal{}, OK, "25.0 Gbit/s"},
		{"negotiated down", nic(func(n *oshost.NIC) { n.SpeedBPS = p(int64(100_000_000)) }), Goal{}, Change, "negotiated 100 Mbit/s, the card can do 25.0 Gbit/s"},
		{"slower than asked for", asIs, Goal{Rate: 100 * units.GbitPerSec}, Change, "less than the 100 Gbit/s asked for"},
		{"down", nic(func(n *oshost.NIC) { n.State = "down" }), Goal{}, Change, "ip link set ens1f0 up"},
		{"not reported", nic(func(n *oshost.NIC) { n.SpeedBPS = nil }), Goal{}, Unknown, "ethtool ens1f0"},
		{"virtual card", func(i *oshost.Inventory) { i.NICs[0].SpeedBPS = nil; i.Host.Virtual = "kvm" }, Goal{}, Info, "no fixed speed"},
		{"no interface", func(i *oshost.Inventory) { i.NICs = nil }, Goal{}, Unknown, "no interface"},
		{"loopback", nic(func(n *oshost.NIC) { n.Kind = oshost.KindLoopback }), Goal{}, Info, "no hardware"},
	},
	"duplex": {
		{"full", asIs, Goal{}, OK, "full"},
		{"half", nic(func(n *oshost.NIC) { n.Duplex = "half" }), Goal{}, Change, "autoneg on"},
		{"radio", nic(func(n *oshost.NIC) { n.Kind = oshost.KindWireless }), Goal{}, Info, "Wi-Fi"},
	},
	"link-errors": {
		{"none", asIs, Goal{}, OK, "0 receive errors"},
		{"one in a million is not yet a fault", nic(func(n *oshost.NIC) { n.Errors.RxErrors = 1 }), Goal{}, OK, ""},
		{"CRC", nic(func(n *oshost.NIC) { n.Errors.RxCRC = 500 }), Goal{}, Change, "ethtool -S ens1f0"},
		{"CRC on Windows", func(i *oshost.Inventory) { windowsHost(i); i.NICs[0].Errors.RxErrors = 500 }, Goal{}, Change, "netstat -e"},
		{"sending", nic(func(n *oshost.NIC) { n.Errors.TxErrors = 3 }), Goal{}, Info, "3 transmit errors"},
	},
	"link-stability": {
		{"flaps", nic(func(n *oshost.NIC) { n.Errors.Carrier = 14 }), Goal{}, Change, "14 times"},
		{"quiet", asIs, Goal{}, "", ""},
	},
	"network-card": {
		{"named", asIs, Goal{}, OK, "Mellanox ConnectX-4 Lx, driver mlx5_core, firmware 14.32"},
		{"unknown", nic(func(n *oshost.NIC) { n.Model, n.Driver, n.Firmware = "", "", "" }), Goal{}, Unknown, "lspci"},
		{"e1000 on VMware", nic(func(n *oshost.NIC) { n.Emulated = true; n.Model = "Intel 82545EM (e1000)" }), Goal{}, Change, "virtio"},
	},
	"pcie-slot": {
		{"wide enough", asIs, Goal{}, OK, "63.0 Gbit/s"},
		{"one lane", nic(func(n *oshost.NIC) { n.PCIeBPS = p(int64(7_876_923_076)) }), Goal{}, Change, "lspci -vv"},
		{"narrowed to about the link", nic(func(n *oshost.NIC) { n.PCIeBPS = p(int64(28_000_000_000)) }), Goal{}, Info, "about as fast"},
	},
	"mtu": {
		{"jumbo", asIs, Goal{}, Info, "ping -M do -s 8972"},
		{"jumbo on Windows", windowsHost, Goal{}, Info, "ping -f -l 8972"},
		{"usual", nic(func(n *oshost.NIC) { n.MTU = 1500 }), Goal{}, OK, "1500"},
		{"tunnel", nic(func(n *oshost.NIC) { n.MTU = 1400 }), Goal{}, Info, "tunnel"},
		{"tiny", nic(func(n *oshost.NIC) { n.MTU = 576 }), Goal{}, Change, "mtu 1500"},
		{"loopback", nic(func(n *oshost.NIC) { n.Kind = oshost.KindLoopback; n.MTU = 65536 }), Goal{}, OK, "65536"},
	},
	"queues": {
		{"enough", asIs, Goal{}, OK, "16 queues for 16 cores"},
		{"one of many", nic(func(n *oshost.NIC) { n.Queues = p(1); n.Channels = &oshost.Pair{Now: 1, Max: 63} }), Goal{}, Change, "ethtool -L ens1f0 combined 8"},
		{"one of many on Windows", func(i *oshost.Inventory) {
			windowsHost(i)
			i.NICs[0].Queues, i.NICs[0].Channels = p(2), &oshost.Pair{Now: 2, Max: 16}
		}, Goal{}, Change, "Set-NetAdapterRss -Name 'ens1f0' -NumberOfReceiveQueues 8"},
		{"no more to have: steer", nic(func(n *oshost.NIC) { n.Queues, n.Channels = p(1), &oshost.Pair{Now: 1, Max: 1} }), Goal{}, Change, "echo ffff > /sys/class/net/ens1f0/queues/rx-0/rps_cpus"},
		{"steered", nic(func(n *oshost.NIC) { n.Queues, n.Channels, n.RPSCPUs = p(1), &oshost.Pair{Now: 1, Max: 1}, p(16) }), Goal{}, OK, "1 queue"},
		{"one is enough for a gigabit", nic(func(n *oshost.NIC) { n.Queues, n.Channels = p(1), &oshost.Pair{Now: 1, Max: 4} }), oneG, OK, "1 queue"},
	},
	"rss": {
		{"all", asIs, Goal{}, OK, "16 of 16"},
		{"one", nic(func(n *oshost.NIC) { n.RSSQueues = p(1) }), Goal{}, Change, "ethtool -X ens1f0 equal 16"},
		{"Windows", windowsWell(asIs), Goal{}, OK, "on, 16 of 16 queues on CPUs of their own"},
		{"off on Windows", card(func(n *oshost.NIC) { n.Offloads[oshost.RSS] = oshost.Offload{} }), Goal{}, Change, "Enable-NetAdapterRss -Name 'ens1f0'"},
		{"a quoted name", card(func(n *oshost.NIC) { n.Name = "Bob's"; n.Offloads[oshost.RSS] = oshost.Offload{} }), Goal{}, Change, "-Name 'Bob''s'"},
		{"off, one core", windowsWell(func(i *oshost.Inventory) { i.NICs[0].Offloads[oshost.RSS] = oshost.Offload{}; i.Host.Cores = 1 }), Goal{}, OK, "one core"},
		{"off for all cards", windowsWell(func(i *oshost.Inventory) { i.Offloads.RSS = p(false) }), Goal{}, Change, "netsh interface tcp set global rss=enabled"},
		{"few CPUs on Windows", card(func(n *oshost.NIC) { n.RSSQueues = p(2) }), Goal{}, Change, "Set-NetAdapterRss -Name 'ens1f0' -MaxProcessors 8"},
		{"none on Windows", card(func(n *oshost.NIC) { n.Offloads[oshost.RSS] = oshost.Offload{Fixed: true} }), Goal{}, Info, "has none"},
		{"unknown on Windows", card(func(n *oshost.NIC) { delete(n.Offloads, oshost.RSS) }), Goal{}, Unknown, "Get-NetAdapterRss -Name 'ens1f0'"},
		{"radio on Windows", card(func(n *oshost.NIC) { n.Kind = oshost.KindWireless }), Goal{}, "", ""},
	},
	"interrupt-spread": {
		{"even", asIs, Goal{}, OK, "on 4 cores"},
		{"one vector", nic(func(n *oshost.NIC) { n.IRQ.Busiest = 0.61 }), Goal{}, Change, "grep ens1f0 /proc/interrupts"},
		{"one core, no irqbalance", func(i *oshost.Inventory) { i.NICs[0].IRQ.CPUs = 1; i.Services = &[]string{} }, Goal{}, Change, "systemctl enable --now irqbalance"},
	},
	"ring": {
		{"full size", asIs, Goal{}, OK, "8192"},
		{"small at 25G", nic(func(n *oshost.NIC) { n.Rings.Rx.Now = 256 }), Goal{}, Change, "ethtool -G ens1f0 rx 4096"},
		{"small at 1G", nic(func(n *oshost.NIC) { n.Rings.Rx.Now = 256 }), oneG, OK, "256"},
		{"overflowed", nic(func(n *oshost.NIC) { n.Rings.Rx.Now = 256; n.Errors.RxMissed = 7 }), oneG, Change, "7 packets found no room"},
	},
	"xps": {
		{"set up", asIs, Goal{}, OK, "2 transmit queues"},
		{"not", nic(func(n *oshost.NIC) { n.XPSQueues = p(0) }), Goal{}, Info, "xps_cpus"},
	},
	"tso": {
		{"on", asIs, Goal{}, OK, "on"},
		{"off", off(oshost.TSO, false), Goal{}, Change, "ethtool -K ens1f0 tso on"},
		{"Windows", windowsWell(asIs), Goal{}, OK, "on"},
		{"off on Windows", card(func(n *oshost.NIC) {
			n.Offloads[oshost.TSO], n.Offloads[oshost.TSO6] = oshost.Offload{}, oshost.Offload{}
		}), Goal{}, Change, "off for IPv4 and IPv6\n"},
		{"off for IPv4 on Windows", card(func(n *oshost.NIC) { n.Offloads[oshost.TSO] = oshost.Offload{} }), Goal{}, Change, "Enable-NetAdapterLso -Name 'ens1f0' -IPv4"},
		{"off for IPv6 on Windows", card(func(n *oshost.NIC) { n.Offloads[oshost.TSO6] = oshost.Offload{} }), Goal{}, Change, "Enable-NetAdapterLso -Name 'ens1f0' -IPv6"},
		{"task offload off on Windows", windowsWell(func(i *oshost.Inventory) { i.Offloads.Tasks = p(false) }), Goal{}, Change, "netsh interface ip set global taskoffload=enabled"},
		{"none on Windows", card(func(n *oshost.NIC) {
			n.Offloads[oshost.TSO], n.Offloads[oshost.TSO6] = oshost.Offload{Fixed: true}, oshost.Offload{Fixed: true}
		}), Goal{}, Info, "has none"},
		{"unknown on Windows", card(func(n *oshost.NIC) { n.Offloads = nil }), Goal{}, Unknown, "Get-NetAdapterLso"},
		{"off at a gigabit", off(oshost.TSO, false), oneG, Info, "cheap enough"},
		{"none", off(oshost.TSO, true), Goal{}, Info, "has none"},
	},
	"gso": {{"on", asIs, Goal{}, OK, "on"}, {"off", off(oshost.GSO, false), Goal{}, Change, "gso on"}},
	"gro": {
		{"on", asIs, Goal{}, OK, "on"},
		{"off", off(oshost.GRO, false), Goal{}, Change, "gro on"},
		{"LRO", nic(func(n *oshost.NIC) { n.Offloads[oshost.LRO] = oshost.Offload{On: true} }), Goal{}, Info, "router"},
	},
	"checksum-offload": {
		{"on", asIs, Goal{}, OK, "on"},
		{"receiving off", off(oshost.RxChecksum, false), Goal{}, Change, "ethtool -K ens1f0 rx on"},
		{"sending off", off(oshost.TxChecksum, false), Goal{}, Change, "ethtool -K ens1f0 tx on"},
	},
	"tcp-rmem": {
		{"enough", asIs, Goal{}, OK, "268 MB"},
		{"too small", func(i *oshost.Inventory) { i.TCP.ReadMem = &[3]int64{4096, 131072, 6291456} }, tenG, Change, "sysctl -w net.ipv4.tcp_rmem='4096 131072 50000000'"},
		{"says what it reaches", func(i *oshost.Inventory) { i.TCP.ReadMem = &[3]int64{4096, 131072, 6291456} }, tenG, Change, "One stream reaches about 2.52 Gbit/s over 10 ms"},
		{"just enough", func(i *oshost.Inventory) { i.TCP.ReadMem = &[3]int64{4096, 131072, 25_000_000} }, tenG, Info, "without room"},
		{"one byte less", func(i *oshost.Inventory) { i.TCP.ReadMem = &[3]int64{4096, 131072, 24_999_999} }, tenG, Change, ""},
		{"beyond one window", asIs, earth, Change, "at least 5 streams"},
		{"unknown", func(i *oshost.Inventory) { i.TCP.ReadMem = nil }, Goal{}, Unknown, "sysctl net.ipv4.tcp_rmem"},
	},
	"tcp-wmem": {
		{"enough", asIs, Goal{}, OK, "send buffer"},
		{"too small", func(i *oshost.Inventory) { i.TCP.WriteMem = &[3]int64{4096, 16384, 4194304} }, tenG, Change, "sysctl -w net.ipv4.tcp_wmem='4096 16384 50000000'"},
	},
	"rmem-max": {
		{"enough", asIs, Goal{}, OK, "268 MB"},
		{"small", func(i *oshost.Inventory) { i.TCP.CoreReadMax = p(int64(212992)) }, tenG, Info, "sysctl -w net.core.rmem_max=25000000"},
		{"in a namespace", func(i *oshost.Inventory) { i.TCP.CoreReadMax = nil }, Goal{}, Unknown, "namespace"},
	},
	"wmem-max": {
		{"enough", asIs, Goal{}, OK, "268 MB"},
		{"small", func(i *oshost.Inventory) { i.TCP.CoreWriteMax = p(int64(212992)) }, tenG, Info, "wmem_max=25000000"},
	},
	"udp-buffer": {
		{"enough", asIs, Goal{}, OK, "268 MB holds"},
		{"a quarter", func(i *oshost.Inventory) { i.TCP.CoreReadMax = p(int64(3_000_000)) }, tenG, Info, "sysctl -w net.core.rmem_max=12500000"},
		{"the usual default", func(i *oshost.Inventory) { i.TCP.CoreReadMax = p(int64(212992)) }, tenG, Change, "213 kB holds 170 µs at 10.0 Gbit/s"},
		{"in a namespace", func(i *oshost.Inventory) { i.TCP.CoreReadMax = nil }, Goal{}, Unknown, "namespace"},
	},
	"moderate-rcvbuf": {
		{"on", asIs, Goal{}, OK, "on"},
		{"off", func(i *oshost.Inventory) { i.TCP.ModerateRcv = p(false) }, Goal{}, Change, "tcp_moderate_rcvbuf=1"},
	},
	"window-scaling": {
		{"on", asIs, Goal{}, OK, "on"},
		{"off", func(i *oshost.Inventory) { i.TCP.WindowScaling = p(false) }, tenG, Change, "at most 52.4 Mbit/s over 10 ms"},
		{"unknown", func(i *oshost.Inventory) { i.TCP.WindowScaling = nil }, Goal{}, Unknown, "sysctl"},
	},
	"sack-setting": {
		{"on", asIs, Goal{}, OK, "on"},
		{"off", func(i *oshost.Inventory) { i.TCP.SACK = p(false) }, Goal{}, Change, "tcp_sack=1"},
	},
	"timestamps-setting": {
		{"on", asIs, Goal{}, OK, "on"},
		{"off", func(i *oshost.Inventory) { i.TCP.Timestamps = p(false) }, Goal{}, Change, "tcp_timestamps=1"},
	},
	"congestion-setting": {
		{"cubic", func(i *oshost.Inventory) { i.TCP.Congestion = "cubic" }, Goal{}, OK, "cubic (available"},
		{"bbr", asIs, Goal{}, Info, "--cc cubic"},
		{"reno", func(i *oshost.Inventory) { i.TCP.Congestion = "reno" }, Goal{}, Change, "sysctl -w net.ipv4.tcp_congestion_control=cubic"},
		{"reno, no cubic loaded", func(i *oshost.Inventory) { i.TCP.Congestion = "reno"; i.TCP.Available = []string{"reno"} }, Goal{}, Change, "modprobe tcp_cubic"},
		{"another", func(i *oshost.Inventory) { i.TCP.Congestion = "dctcp" }, Goal{}, Info, "dctcp"},
		{"unknown", func(i *oshost.Inventory) { i.TCP.Congestion = "" }, Goal{}, Unknown, ""},
	},
	"metrics-save": {
		{"off", asIs, Goal{}, OK, "afresh"},
		{"on", func(i *oshost.Inventory) { i.TCP.NoMetricsSave = p(false) }, Goal{}, Info, "tcp_no_metrics_save=1"},
	},
	"slow-start-after-idle": {
		{"off", asIs, Goal{}, OK, "off"},
		{"on", func(i *oshost.Inventory) { i.TCP.SlowStartIdle = p(true) }, Goal{}, Info, "=0"},
	},
	"mtu-probing": {
		{"on", asIs, Goal{}, OK, "on"},
		{"off", func(i *oshost.Inventory) { i.TCP.MTUProbing = p(int64(0)) }, Goal{}, Info, "tcp_mtu_probing=1"},
	},
	"qdisc": {
		{"fq", asIs, Goal{}, OK, "mq, fq"},
		{"bbr without fq", nic(func(n *oshost.NIC) { n.Qdiscs = []string{"pfifo_fast"} }), Goal{}, Info, "root fq"},
		{"a shaper", nic(func(n *oshost.NIC) { n.Qdiscs = []string{"tbf"} }), Goal{}, Change, "tc -s qdisc show dev ens1f0"},
		{"an emulator below", nic(func(n *oshost.NIC) { n.Qdiscs = []string{"mq", "netem"} }), Goal{}, Change, "holds packets back"},
	},
	"rsc": {
		{"not on Linux", asIs, Goal{}, "", ""},
		{"at work", windowsWell(asIs), Goal{}, OK, "ens1f0: on"},
		{"off", card(func(n *oshost.NIC) { n.RSC.IPv4.On, n.RSC.IPv6.On = p(false), p(false) }), Goal{}, Change, "Enable-NetAdapterRsc -Name 'ens1f0'"},
		{"off for IPv6", card(func(n *oshost.NIC) { n.RSC.IPv6.On = p(false) }), Goal{}, Change, "Enable-NetAdapterRsc -Name 'ens1f0' -IPv6"},
		{"off, and the link is slow", card(func(n *oshost.NIC) { n.RSC.IPv6.On = p(false) }), oneG, Info, "Enable-NetAdapterRsc"},
		{"off for all cards", windowsWell(func(i *oshost.Inventory) { i.Offloads.RSC = p(false) }), Goal{}, Change, "netsh interface tcp set global rsc=enabled"},
		{"a filter in the stack", idle("WFPCompatibility"), Goal{}, Change, "netsh wfp show state"},
		{"an old filter on the card", idle("NDISCompatibility"), Goal{}, Change, "Get-NetAdapterBinding -Name 'ens1f0'"},
		{"forwarding", idle("ForwardingEnabled"), Goal{}, Change, "Set-NetIPInterface -InterfaceAlias 'ens1f0' -Forwarding Disabled"},
		{"the card cannot", idle("Capability"), Goal{}, Change, "present state"},
		{"no reason", idle(""), Goal{}, Change, "no reason"},
		{"a reason of IPv6", card(func(n *oshost.NIC) { n.RSC.IPv6.Works, n.RSC.IPv6.Reason = p(false), "WFPCompatibility" }), Goal{}, Change, "not at work for IPv6 (WFPCompatibility)"},
		{"none", card(func(n *oshost.NIC) { n.RSC = nil; n.Offloads[oshost.LRO] = oshost.Offload{Fixed: true} }), Goal{}, Info, "has none"},
		{"on in the registry", card(func(n *oshost.NIC) { n.RSC = nil }), Goal{}, OK, "on"},
		{"off in the registry", card(func(n *oshost.NIC) { n.RSC = nil; n.Offloads[oshost.LRO] = oshost.Offload{} }), Goal{}, Change, "Enable-NetAdapterRsc"},
		{"unknown", card(func(n *oshost.NIC) { n.RSC, n.Offloads = nil, nil }), Goal{}, Unknown, "Get-NetAdapterRsc"},
	},
	"autotuning-level": {
		{"below normal, but enough", windowsWell(func(i *oshost.Inventory) { i.TCP.AutotuningLevel = "restricted" }), Goal{Rate: 100 * units.MbitPerSec, RTT: 10 * time.Millisecond}, Info, "autotuninglevel=normal"},
		{"more than needed", windowsWell(func(i *oshost.Inventory) { i.TCP.AutotuningLevel = "experimental" }), oneG, Info, "autotuninglevel=normal"},
		{"experimental is needed", windowsWell(func(i *oshost.Inventory) { i.TCP.AutotuningLevel = "experimental" }), long, OK, "experimental"},
		{"no level is enough", windowsWell(func(i *oshost.Inventory) { i.TCP.AutotuningLevel = "experimental" }), earth, Change, "at least 5 streams"},
		{"a policy's", windowsWell(func(i *oshost.Inventory) { i.TCP.AutotuningLevel, i.TCP.AutotuningBy = "restricted", "policy" }), oneG, Change, "gpedit.msc"},
		{"heuristics", windowsWell(func(i *oshost.Inventory) { i.TCP.ScalingHeuristics = p(true) }), oneG, Change, "netsh interface tcp set heuristics disabled"},
		{"not visible", windowsHost, tenG, Unknown, "netsh interface tcp show global"},
		{"normal is not enough", func(i *oshost.Inventory) { windowsHost(i); i.TCP.AutotuningLevel = "normal" }, long, Change, "autotuninglevel=experimental"},
		{"several streams are", func(i *oshost.Inventory) { windowsHost(i); i.TCP.AutotuningLevel = "normal" }, long, Change, "8 streams fill the path"},
		{"normal is enough", func(i *oshost.Inventory) { windowsHost(i); i.TCP.AutotuningLevel = "normal" }, tenG, OK, "normal"},
		{"disabled", func(i *oshost.Inventory) { windowsHost(i); i.TCP.AutotuningLevel = "disabled" }, oneG, Change, "autotuninglevel=normal"},
	},
	"processor": {
		{"named", asIs, Goal{}, OK, "Silver 4216"},
		{"one core", func(i *oshost.Inventory) { i.Host.Cores = 1 }, Goal{}, Info, "share one core"},
		{"unknown", func(i *oshost.Inventory) { i.Host.Cores, i.Host.CPUModel = 0, "" }, Goal{}, Unknown, "lscpu"},
		{"model unknown", func(i *oshost.Inventory) { i.Host.CPUModel = "" }, Goal{}, OK, "16 cores"},
	},
	"governor": {
		{"performance", asIs, Goal{}, OK, "performance"},
		{"powersave", func(i *oshost.Inventory) { i.CPU.Governor = "powersave" }, Goal{}, Change, "cpupower frequency-set -g performance"},
		{"mixed", func(i *oshost.Inventory) { i.CPU.Governor = "mixed" }, Goal{}, Change, "mixed"},
		{"pstate's own powersave", func(i *oshost.Inventory) { i.CPU.Governor, i.CPU.Preference = "powersave", "balance_performance" }, Goal{}, OK, "balance_performance"},
		{"virtual", func(i *oshost.Inventory) { i.CPU.Governor, i.Host.Virtual = "", "kvm" }, Goal{}, Info, "hypervisor"},
		{"unknown", func(i *oshost.Inventory) { i.CPU.Governor = "" }, Goal{}, Unknown, "cpupower"},
		{"Windows balanced", func(i *oshost.Inventory) { windowsHost(i); i.CPU.Governor = "balanced" }, Goal{}, Change, "powercfg /setactive"},
		{"Windows full clock", windowsWell(func(i *oshost.Inventory) { i.CPU.Governor = "custom" }), Goal{}, OK, "custom, clock at least 100 %"},
		{"Windows power mode", windowsWell(func(i *oshost.Inventory) {
			i.CPU.Governor, i.CPU.MinState, i.CPU.Preference = "balanced", p(5), "best performance"
		}), Goal{}, OK, "power mode best performance"},
		{"Windows on battery", windowsWell(func(i *oshost.Inventory) { i.CPU.OnBattery = p(true) }), Goal{}, Change, "plug the machine in"},
		{"Windows guest", windowsWell(func(i *oshost.Inventory) { i.CPU.Governor, i.CPU.MinState, i.Host.Virtual = "balanced", p(5), "hyperv" }), Goal{}, Info, "host's governor"},
		{"Windows unknown", windowsWell(func(i *oshost.Inventory) { i.CPU = oshost.CPU{} }), Goal{}, Unknown, "powercfg /getactivescheme"},
		{"Windows high performance", func(i *oshost.Inventory) { windowsHost(i); i.CPU.Governor = "high performance" }, Goal{}, OK, ""},
	},
	"cpu-frequency": {
		{"turbo", asIs, Goal{}, OK, "3100 MHz now"},
		{"throttled", func(i *oshost.Inventory) { i.CPU.CurMHz = p(1200) }, Goal{}, Change, "heat"},
		{"idle under another governor", func(i *oshost.Inventory) { i.CPU.CurMHz, i.CPU.Governor = p(1200), "schedutil" }, Goal{}, OK, ""},
	},
	"cpu-quota": {
		{"none", asIs, Goal{}, "", ""},
		{"wide", func(i *oshost.Inventory) { i.Quota = &oshost.Quota{CPUs: 8, Group: "/a", Version: 2} }, Goal{}, Info, "8 of 16 cores"},
		{"narrow", func(i *oshost.Inventory) { i.Quota = &oshost.Quota{CPUs: 0.5, Group: "/a", Version: 2} }, Goal{}, Change, "echo max > /sys/fs/cgroup/a/cpu.max"},
		{"used up", func(i *oshost.Inventory) {
			i.Quota = &oshost.Quota{CPUs: 8, Group: "/a", Version: 1, Throttled: p(0.25)}
		}, Goal{}, Change, "held back in 25 %"},
		{"docker", func(i *oshost.Inventory) { i.Quota, i.CPU.Container = &oshost.Quota{CPUs: 1}, "docker" }, Goal{}, Change, "docker update --cpus 16 CONTAINER"},
		{"podman", func(i *oshost.Inventory) { i.Quota, i.CPU.Container = &oshost.Quota{CPUs: 1}, "podman" }, Goal{}, Change, "podman update"},
		{"pod", func(i *oshost.Inventory) { i.Quota, i.CPU.Container = &oshost.Quota{CPUs: 1}, "kubepods" }, Goal{}, Change, "limits.cpu"},
	},
	"virtual-machine": {
		{"bare", asIs, Goal{}, OK, "bare metal"},
		{"container", func(i *oshost.Inventory) { i.CPU.Container = "docker" }, Goal{}, OK, "container (docker)"},
		{"guest", func(i *oshost.Inventory) { i.Host.Virtual = "kvm" }, Goal{}, Info, "kvm"},
		{"unknown", func(i *oshost.Inventory) { i.Host.Virtual = "" }, Goal{}, Unknown, "systemd-detect-virt"},
	},
	"steal": {
		{"little", func(i *oshost.Inventory) { i.Host.Virtual, i.CPU.StealShare = "kvm", p(0.002) }, Goal{}, OK, "0.2 %"},
		{"some", func(i *oshost.Inventory) { i.Host.Virtual, i.CPU.StealShare = "kvm", p(0.02) }, Goal{}, Info, "2.0 %"},
		{"much", func(i *oshost.Inventory) { i.Host.Virtual, i.CPU.StealShare = "kvm", p(0.3) }, Goal{}, Change, "30.0 %"},
		{"bare metal has none", asIs, Goal{}, "", ""},
	},
	"numa": {
		{"two nodes", asIs, Goal{}, Info, "numactl --cpunodebind=0"},
		{"card's node unknown", nic(func(n *oshost.NIC) { n.NUMANode = nil }), Goal{}, Unknown, "numactl --hardware"},
		{"one node", func(i *oshost.Inventory) { i.CPU.NUMANodes = p(1) }, Goal{}, "", ""},
	},
	"clock-source": {
		{"tsc", asIs, Goal{}, OK, "tsc"},
		{"hpet", func(i *oshost.Inventory) { i.Clock.Source = "hpet" }, Goal{}, Change, "echo tsc >"},
		{"hpet and nothing better", func(i *oshost.Inventory) { i.Clock.Source, i.Clock.Available = "hpet", []string{"hpet", "acpi_pm"} }, Goal{}, Change, "dmesg"},
		{"unknown", func(i *oshost.Inventory) { i.Clock = nil }, Goal{}, Unknown, "clocksource"},
	},
	"clock-sync": {
		{"kept", asIs, Goal{}, OK, "synchronised by chronyd, error at most 0.4 ms"},
		{"coarse", func(i *oshost.Inventory) { i.Clock.MaxError = p(0.12) }, Goal{}, Info, "120 ms"},
		{"not kept", func(i *oshost.Inventory) { i.Clock.Synced, i.Clock.Services = p(false), nil }, Goal{}, Change, "timedatectl set-ntp true"},
		{"service fails", func(i *oshost.Inventory) { i.Clock.Synced = p(false) }, Goal{}, Change, "chronyd runs, but"},
		{"unknown", func(i *oshost.Inventory) { i.Clock.Synced = nil }, Goal{}, Unknown, "timedatectl"},
		{"Windows", windowsHost, Goal{}, Unknown, "w32tm"},
	},
	"descriptors": {
		{"plenty", asIs, Goal{}, OK, "enough for 262112 streams"},
		{"unlimited", func(i *oshost.Inventory) { i.Files.Soft = -1 }, Goal{}, OK, "unlimited"},
		{"few", func(i *oshost.Inventory) { i.Files.Soft = 256 }, Goal{}, Change, "ulimit -n 65536"},
		{"few for ten thousand", func(i *oshost.Inventory) { i.Files.Soft, i.Files.Hard = 4096, 4096 }, Goal{Streams: 10000}, Change, "limits.conf"},
		{"unknown", func(i *oshost.Inventory) { i.Files = nil }, Goal{}, Unknown, "ulimit -n"},
	},
	"local-ports": {
		{"wide", asIs, Goal{}, OK, "1024 to 65000"},
		{"narrow", func(i *oshost.Inventory) { i.TCP.PortFirst = p(int64(64001)) }, Goal{}, Change, "1000 ports"},
	},
	"conntrack": {
		{"roomy", func(i *oshost.Inventory) { i.Conntrack = &oshost.Conntrack{Count: 100, Max: 65536} }, Goal{}, OK, "100 of 65536"},
		{"nearly full", func(i *oshost.Inventory) { i.Conntrack = &oshost.Conntrack{Count: 60000, Max: 65536} }, Goal{}, Change, "nf_conntrack_max=262144"},
	},
	"backlog": {
		{"steered, long", nic(func(n *oshost.NIC) { n.RPSCPUs = p(8) }), Goal{}, OK, "5000"},
		{"steered, short", func(i *oshost.Inventory) { i.NICs[0].RPSCPUs, i.TCP.Backlog = p(8), p(int64(1000)) }, Goal{}, Change, "netdev_max_backlog=8000"},
		{"not steered", asIs, Goal{}, "", ""},
	},
	"firewall": {
		{"none seen", func(i *oshost.Inventory) { i.Firewall = &[]string{} }, Goal{}, OK, "no sign"},
		{"nftables", asIs, Goal{}, Info, "nft list ruleset"},
		{"firewalld", func(i *oshost.Inventory) { i.Firewall = &[]string{"firewalld runs"} }, Goal{}, Info, "firewall-cmd --add-port=5201/tcp"},
		{"ufw", func(i *oshost.Inventory) { i.Firewall = &[]string{"ufw runs"} }, Goal{}, Info, "ufw allow 5201"},
		{"Windows", windowsHost, Goal{}, Info, "netsh advfirewall firewall add rule"},
		{"not visible", func(i *oshost.Inventory) { i.Firewall = nil }, Goal{}, Unknown, "nft"},
		{"not visible on Windows", func(i *oshost.Inventory) { windowsHost(i); i.Firewall = nil }, Goal{}, Unknown, "netsh"},
	},
}

func TestRules(t *testing.T) {
	for _, r := range rules {
		list := cases[r.docs]
		outcomes := map[Status]bool{}
		for _, c := range list {
			outcomes[c.status] = true
			t.Run(r.docs+"/"+c.name, func(t *testing.T) {
				inv := load(t, "server-25g")
				c.change(inv)
				var mine []Check
				for _, got := range Examine(inv, c.goal) {
					if got.Docs == r.docs {
						mine = append(mine, got)
					}
				}
				judge(t, c, mine)
			})
		}
		if len(outcomes) < 2 {
			t.Errorf("rule %s: its cases show only %d outcome(s)", r.docs, len(outcomes))
		}
	}
	if len(cases) != len(rules) {
		t.Errorf("%d rules, cases for %d", len(rules), len(cases))
	}
}

// judge wants one line of the wanted status and words; "" = no line at all.
func judge(t *testing.T, c ruleCase, got []Check) {
	t.Helper()
	if c.status == "" {
		if len(got) != 0 {
			t.Errorf("no line wanted, got:\n%s", text(got))
		}
		return
	}
	for _, g := range got {
		all := g.Found + "\n" + g.Why + "\n" + g.Fix
		if g.Status == c.status && strings.Contains(all, c.has) {
			if (g.Status == Change) != (g.Rank > 0) {
				t.Errorf("rank of a %s line: %d", g.Status, g.Rank)
			}
			return
		}
	}
	t.Errorf("want %s with %q, got:\n%s", c.status, c.has, text(got))
}

// Every line that is worth changing says why; every line is complete; unknown is never OK.
func TestLinesAreComplete(t *testing.T) {
	for _, docs := range cases {
		for _, c := range docs {
			inv := load(t, "server-25g")
			c.change(inv)
			for _, got := range Examine(inv, c.goal) {
				switch {
				case got.Topic == "" || got.Name == "" || got.Found == "" || got.Docs == "":
					t.Errorf("%s: incomplete: %+v", c.name, got)
				case got.Status == OK && got.Why+got.Fix != "":
					t.Errorf("%s: an OK line with advice: %+v", c.name, got)
				case (got.Status == Change || got.Status == Info) && got.Why == "":
					t.Errorf("%s: no reason given: %+v", c.name, got)
				case strings.Contains(got.Found+got.Why+got.Fix, "%!"):
					t.Errorf("%s: broken format: %+v", c.name, got)
				}
			}
		}
	}
}

// A host of which nothing is known: no panic, nothing OK that was not seen.
func TestEmptyInventory(t *testing.T) {
	for _, os := range []string{"linux", "windows"} {
		inv := &oshost.Inventory{}
		inv.Host.OS = os
		for _, c := range Examine(inv, Goal{}) {
			if c.Status == OK {
				t.Errorf("%s: nothing is known, yet: %+v", os, c)
			}
		}
	}
	inv := &oshost.Inventory{}
	inv.Host.OS = "darwin"
	if got := Examine(inv, Goal{}); len(got) != 1 || got[0].Status != Unknown || !strings.Contains(got[0].Found, "darwin") {
		t.Errorf("darwin: %+v", got)
	}
}

func TestGoalDefaults(t *testing.T) {
	inv := load(t, "server-25g")
	if got := (Goal{}).Filled(inv); got.Rate != 25*units.GbitPerSec || got.RTT != 10*time.Millisecond || got.BDP() != 31_250_000 {
		t.Errorf("goal of a 25G host: %+v, BDP %d", got, got.BDP())
	}
	if got := (Goal{}).Filled(&oshost.Inventory{}); got.Rate != units.GbitPerSec {
		t.Errorf("goal of an unknown host: %+v", got)
	}
	if got := (Goal{Rate: 5, RTT: 6, Streams: 7}).Filled(inv); got != (Goal{Rate: 5, RTT: 6, Streams: 7}) {
		t.Errorf("a given goal was changed: %+v", got)
	}
}

func TestSummary(t *testing.T) {
	fine := []Check{{Status: OK}, {Status: Info}}
	if got := Summary(fine); got != "Nothing is worth changing here (2 checks)." {
		t.Error(got)
	}
	bad := []Check{{Status: OK}, {Status: Unknown}, {Status: Change, Rank: 1, Name: "duplex", Found: "eth0 runs half duplex"}}
	if got := Summary(bad); got != "1 of 3 checks is worth changing; 1 could not be seen. Begin with: duplex (eth0 runs half duplex)." {
		t.Error(got)
	}
}

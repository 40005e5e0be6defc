package oshost

import (
	"github.com/fullbore-net/fullbore/result"
)

// Inventory is a host as far as it matters for measuring. nil = unknown.
// Its JSON form can be stored and judged on another machine.
type Inventory struct {
	Host     result.Host `json:"host"`
	Peer     string      `json:"peer,omitempty"` // address the first interface leads to; "" = default route
	Recorded bool        `json:"recorded"`       // read from a recorded tree, not from the running machine

	// NICs begins with the interface packets leave by; those below it (members of a
	// bond, the device under a VLAN) follow.
	NICs      []NIC      `json:"nics"`
	TCP       TCP        `json:"tcp"`
	CPU       CPU        `json:"cpu"`
	Quota     *Quota     `json:"cpu_quota"` // nil = none in force, or unknown (see Missing)
	Clock     *Clock     `json:"clock_sync"`
	Files     *Files     `json:"descriptors"`
	Conntrack *Conntrack `json:"conntrack"`
	// Offloads are Windows' switches over all cards.
	Offloads *GlobalOffloads `json:"global_offloads,omitempty"`
	// Firewall lists hints that packets are filtered here: modules, services. nil = could
	// not look.
	Firewall *[]string `json:"firewall_hints"`
	// Services are the known helpers that run: irqbalance, tuned, chronyd, … nil = could not look.
	Services *[]string `json:"services"`
	Missing  []string  `json:"missing,omitempty"` // what could not be read and why
}

// Kinds of interface.
const (
	KindPhysical = "physical" // PCI or USB hardware, or a virtual machine's card
	KindWireless = "wireless"
	KindBond     = "bond"
	KindBridge   = "bridge"
	KindVLAN     = "vlan"
	KindTunnel   = "tunnel" // tun, tap, WireGuard, VXLAN, GRE, …
	KindVeth     = "veth"
	KindLoopback = "loopback"
	KindVirtual  = "virtual" // software, of another kind
)

// NIC is one interface in full.
type NIC struct {
	result.NIC
	Kind     string   `json:"kind"`
	Lower    []string `json:"lower,omitempty"` // interfaces below it
	State    string   `json:"state,omitempty"` // operational state as the kernel words it: "up", "down", …
	PCI      string   `json:"pci,omitempty"`   // "vendor:device", hexadecimal
	Emulated bool     `json:"emulated"`        // a card that a hypervisor imitates in software (e1000, rtl8139, …)
	// Nominal: the speed is what the driver of a virtual card claims; nothing was negotiated.
	Nominal  bool   `json:"speed_nominal"`
	MaxBPS   *int64 `json:"max_speed_bps"` // fastest mode the hardware supports
	Autoneg  *bool  `json:"autoneg"`
	NUMANode *int   `json:"numa_node"`
	// NearCPUs are the processors of its NUMA node as the kernel lists them, "0-7,16-23"; "" = unknown.
	NearCPUs  string `json:"near_cpus,omitempty"`
	PCIeBPS   *int64 `json:"pcie_bps"`     // what the slot carries now, after line coding
	PCIeMax   *int64 `json:"pcie_max_bps"` // what the card could use
	Rings     *Rings `json:"rings"`
	Channels  *Pair  `json:"channels"` // queues in use and possible (ethtool -l)
	RSSQueues *int   `json:"rss_queues"`
	RPSCPUs   *int   `json:"rps_cpus"`   // CPUs that receive packet steering spreads to; 0 = off
	XPSQueues *int   `json:"xps_queues"` // transmit queues with a CPU map; 0 = off
	// Offloads by ethtool's names; absent = the kernel does not have it.
	Offloads map[string]Offload `json:"offloads,omitempty"`
	// RSC is what Windows' receive coalescing comes to; nil elsewhere, and where the card has none.
	RSC    *Coalescing `json:"rsc,omitempty"`
	IRQ    *IRQSpread  `json:"irq_spread"`
	Qdiscs []string    `json:"qdiscs,omitempty"` // root first
	Errors *NICErrors  `json:"errors_since_boot"`
}

// Offload is one of a driver's features.
type Offload struct {
	On    bool `json:"on"`
	Fixed bool `json:"fixed"` // the driver does not let it be changed
}

// The offloads that matter here, by ethtool's names (kernel net/ethtool/common.c, netdev_features_strings).
const (
	TSO        = "tx-tcp-segmentation"
	GSO        = "tx-generic-segmentation"
	GRO        = "rx-gro"
	LRO        = "rx-lro"
	RxChecksum = "rx-checksum"
	TxChecksum = "tx-checksum" // any of tx-checksum-ip-generic, -ipv4
	SG         = "tx-scatter-gather"
	UDPSegment = "tx-udp-segmentation"
	// Windows keeps them apart for each family, and lets RSS be switched.
	TSO6 = "tx-tcp6-segmentation"
	RSS  = "rx-hashing"
)

// GlobalOffloads are the switches that overrule every card's (Windows; nil = unknown).
type GlobalOffloads struct {
	RSS   *bool `json:"rss"`          // receive side scaling
	RSC   *bool `json:"rsc"`          // receive segment coalescing
	Tasks *bool `json:"task_offload"` // segmentation and check sums
}

// Coalescing is receive segment coalescing (RSC) of a card: asked for, and at work.
type Coalescing struct {
	IPv4 FamilyCoalescing `json:"ipv4"`
	IPv6 FamilyCoalescing `json:"ipv6"`
}

// FamilyCoalescing is that of one address family; nil = unknown.
type FamilyCoalescing struct {
	On    *bool `json:"enabled"`
	Works *bool `json:"operational"`
	// Reason is why it does not work, in PowerShell's words (Get-NetAdapterRsc): "WFPCompatibility", …;
	// "" = it does, or is not told.
	Reason string `json:"failure_reason,omitempty"`
}

// Pair is a setting and its maximum.
type Pair struct {
	Now int `json:"now"`
	Max int `json:"max"`
}

// Rings are the descriptor rings (ethtool -g).
type Rings struct {
	Rx Pair `json:"rx"`
	Tx Pair `json:"tx"`
}

// IRQSpread says over how many vectors and CPUs a card's interrupts fell since boot.
type IRQSpread struct {
	Vectors int     `json:"vectors"` // that fired at all
	Busiest float64 `json:"busiest"` // share of the busiest vector, 0..1
	CPUs    int     `json:"cpus"`    // that took at least 5 % of them
}

// NICErrors are counters since the interface came up, cumulative.
type NICErrors struct {
	RxErrors  int64 `json:"rx_errors"`
	RxCRC     int64 `json:"rx_crc_errors"`
	RxMissed  int64 `json:"rx_missed"` // no room in the ring
	RxDropped int64 `json:"rx_dropped"`
	TxErrors  int64 `json:"tx_errors"`
	Carrier   int64 `json:"carrier_changes"`
	RxPackets int64 `json:"rx_packets"`
}

// TCP are the system-wide settings of TCP (Linux: sysctls of the same names).
type TCP struct {
	ReadMem       *[3]int64 `json:"tcp_rmem"` // least, initial, most
	WriteMem      *[3]int64 `json:"tcp_wmem"`
	CoreReadMax   *int64    `json:"rmem_max"`
	CoreWriteMax  *int64    `json:"wmem_max"`
	Congestion    string    `json:"congestion,omitempty"`
	Available     []string  `json:"congestion_available,omitempty"`
	Allowed       []string  `json:"congestion_allowed,omitempty"` // without privileges
	WindowScaling *bool     `json:"window_scaling"`
	SACK          *bool     `json:"sack"`
	Timestamps    *bool     `json:"timestamps"`
	ModerateRcv   *bool     `json:"moderate_rcvbuf"` // receive buffers are tuned
	MTUProbing    *int64    `json:"mtu_probing"`     // 0 off, 1 after a black hole, 2 always
	SlowStartIdle *bool     `json:"slow_start_after_idle"`
	NoMetricsSave *bool     `json:"no_metrics_save"`
	ECN           *int64    `json:"ecn"`
	DefaultQdisc  string    `json:"default_qdisc,omitempty"`
	PortFirst     *int64    `json:"port_first"` // range of ephemeral ports
	PortLast      *int64    `json:"port_last"`
	Forward       *bool     `json:"ip_forward,omitempty"`
	Backlog       *int64    `json:"netdev_max_backlog"`
	Budget        *int64    `json:"netdev_budget"`
	Listen        *int64    `json:"somaxconn,omitempty"` // connections that may wait for a listener
	// AutotuningLevel is Windows' receive window auto-tuning, where it is known.
	AutotuningLevel string `json:"autotuning_level,omitempty"`
	// AutotuningBy is who set it: "local", or "policy" (a group policy, which a command cannot change).
	AutotuningBy string `json:"autotuning_by,omitempty"`
	// ScalingHeuristics is Windows' guess that a network does not bear large windows; it overrules the level.
	ScalingHeuristics *bool `json:"scaling_heuristics,omitempty"`
}

// CPU are the facts about processors beyond result.Host's.
type CPU struct {
	Governor   string `json:"governor,omitempty"`    // of CPU 0, "mixed" when they differ; Windows: the power plan
	Preference string `json:"energy_pref,omitempty"` // energy_performance_preference of CPU 0; Windows: the power mode
	// MinState is the least clock that Windows' power plan allows, in percent of the nominal one.
	MinState  *int  `json:"min_processor_state,omitempty"`
	OnBattery *bool `json:"on_battery,omitempty"` // Windows
	CurMHz    *int  `json:"cur_mhz"`              // highest of all CPUs, now
	MaxMHz    *int  `json:"max_mhz"`
	NUMANodes *int  `json:"numa_nodes"`
	// StealShare is the share of time since boot that the hypervisor gave to others.
	StealShare *float64 `json:"steal_since_boot"`
	// Container is the kind of container this process runs in; "" = none seen.
	Container string `json:"container,omitempty"`
}

// Quota is the tightest CPU limit of this process's control groups.
type Quota struct {
	CPUs      float64  `json:"cpus"`             // processors' worth of time
	Group     string   `json:"group"`            // path of the group that sets it
	Throttled *float64 `json:"throttled_share"`  // of the periods in which it ran, ever
	PeriodSec float64  `json:"period_s"`         // how often the quota is refilled
	Version   int      `json:"cgroup_version"`   // 1 or 2
	Weight    *int64   `json:"weight,omitempty"` // cpu.weight or cpu.shares
}

// Clock says how the wall clock is kept.
type Clock struct {
	Source    string   `json:"source,omitempty"`
	Available []string `json:"available,omitempty"`
	Synced    *bool    `json:"synchronised"` // the kernel was told so by a time service
	MaxError  *float64 `json:"max_error_s"`  // bound that the kernel keeps
	EstError  *float64 `json:"est_error_s"`
	Services  []string `json:"services,omitempty"` // time services seen running
}

// Files are this process's descriptor limits.
type Files struct {
	Soft int64 `json:"soft"` // −1 = unlimited
	Hard int64 `json:"hard"`
}

// Conntrack is the kernel's table of tracked connections.
type Conntrack struct {
	Count int64 `json:"count"`
	Max   int64 `json:"max"`
}

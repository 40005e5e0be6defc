package oshost

import (
	"fmt"
	"maps"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/fullbore-net/fullbore/result"
)

// nic reads one interface.
func (c *collector) nic(name, virtual string) NIC {
	dir := "sys/class/net/" + name
	n := NIC{NIC: result.NIC{Name: name, MTU: int(deref(c.int(dir + "/mtu")))}}
	n.State = c.text(dir + "/operstate")
	dev, err := c.device(name)
	if err != nil {
		c.miss("driver of "+name, err)
	}
	n.Driver, n.Firmware = dev.Driver, dev.Firmware
	if n.Driver == "" {
		n.Driver = c.target(dir + "/device/driver")
	}
	n.Autoneg, n.Rings, n.Channels, n.RSSQueues, n.Offloads = dev.Autoneg, dev.Rings, dev.Channels, dev.RSSQueues, dev.Offloads
	n.Kind = c.kind(name, n.Driver)
	for _, f := range c.list(dir) {
		if low, ok := strings.CutPrefix(f, "lower_"); ok {
			n.Lower = append(n.Lower, low)
		}
	}
	c.hardware(&n, dir, virtual)
	if dev.MaxMbit > 0 {
		max := int64(dev.MaxMbit) * 1_000_000
		n.MaxBPS = &max
	}
	if mbit := c.int(dir + "/speed"); mbit != nil && *mbit > 0 && *mbit < math.MaxInt32 && !madeUpSpeed[n.Kind] {
		bps := *mbit * 1_000_000
		n.SpeedBPS = &bps
		n.Nominal = n.Emulated || paravirtual[n.Driver]
	}
	if d := c.text(dir + "/duplex"); d != "unknown" && n.SpeedBPS != nil {
		n.Duplex = d
	}
	c.queues(&n, dir)
	if c.deep {
		if qs, err := c.qdiscs(name); err != nil {
			c.miss("queueing discipline of "+name, err)
		} else {
			n.Qdiscs = qs
		}
		n.IRQ = c.irqSpread(dir)
		n.Errors = c.nicErrors(dir)
	}
	return n
}

// madeUpSpeed are the kinds whose drivers report a constant that means nothing (veth
// and tun say 10 Gbit/s).
var madeUpSpeed = map[string]bool{KindVeth: true, KindTunnel: true, KindLoopback: true, KindBridge: true, KindVirtual: true}

// paravirtual are the drivers of cards that exist only towards a hypervisor.
var paravirtual = map[string]bool{
	"virtio_net": true, "vmxnet3": true, "hv_netvsc": true, "netvsc": true, "xen_netfront": true, "vif": true,
	"ena": true, "gve": true, "mana": true,
}

// kind classifies an interface (Linux: net/core/net-sysfs.c and the drivers' attributes).
func (c *collector) kind(name, driver string) string {
	dir := "sys/class/net/" + name
	devtype := keyed(c.read(dir+"/uevent"), "DEVTYPE", '=')
	arp := deref(c.int(dir + "/type"))
	switch {
	case arp == 772: // ARPHRD_LOOPBACK
		return KindLoopback
	case devtype == "wlan", c.exists(dir + "/wireless"), c.exists(dir + "/phy80211"):
		return KindWireless
	case c.exists(dir + "/bonding"), devtype == "bond", driver == "team":
		return KindBond
	case c.exists(dir + "/bridge"), driver == "openvswitch":
		return KindBridge
	case devtype == "vlan", c.exists("proc/net/vlan/" + name):
		return KindVLAN
	case c.exists(dir + "/tun_flags"), slices.Contains([]string{"vxlan", "geneve", "wireguard", "ppp"}, devtype),
		arp == 65534, arp == 768, arp == 776, arp == 778, arp == 512: // NONE, TUNNEL, SIT, IPGRE, PPP
		return KindTunnel
	case c.exists(dir + "/device"):
		return KindPhysical
	case driver == "veth":
		return KindVeth
	}
	return KindVirtual
}

// hardware fills what the bus says: model, NUMA node, PCIe link.
func (c *collector) hardware(n *NIC, dir, virtual string) {
	where := c.resolved(dir + "/device")
	if where == "" {
		return
	}
	if strings.HasPrefix(path.Base(where), "virtio") && isPCI(path.Dir(where)) {
		where = path.Dir(where) // the PCI function that carries the virtio device
	}
	vendor, device := pciID(c.text(where+"/vendor")), pciID(c.text(where+"/device"))
	if isPCI(where) && vendor != "" && device != "" {
		n.PCI = vendor + ":" + device
		n.Model = c.pciName(vendor, device)
	}
	if n.Model == "" {
		n.Model = driverModels[n.Driver]
	}
	if n.Model == "" { // USB: the interface's parent names itself
		if p := c.text(path.Dir(where) + "/product"); p != "" {
			n.Model = strings.TrimSpace(c.text(path.Dir(where)+"/manufacturer") + " " + p)
		}
	}
	n.Emulated = virtual != "" && virtual != "none" && (emulatedPCI[n.PCI] || emulatedDrivers[n.Driver])
	if node := c.int(where + "/numa_node"); node != nil && *node >= 0 {
		v := int(*node)
		n.NUMANode = &v
		n.NearCPUs = c.text(where + "/local_cpulist")
	}
	if virtual == "none" || virtual == "" {
		n.PCIeBPS = pcieRate(c.text(where+"/current_link_speed"), c.text(where+"/current_link_width"))
		n.PCIeMax = pcieRate(c.text(where+"/max_link_speed"), c.text(where+"/max_link_width"))
	}
}

// isPCI reports whether a device's folder is that of a PCI function, "0000:3b:00.0".
func isPCI(where string) bool {
	b := path.Base(where)
	return strings.Count(b, ":") == 2 && strings.Contains(b, ".")
}

func pciID(s string) string { return strings.TrimPrefix(strings.ToLower(s), "0x") }

// pcieRate is speed × width after line coding: 8b/10b up to 5 GT/s, 128b/130b above (PCI
// Express Base Specification 3.0 §4.2). nil when there is no such link.
func pcieRate(speed, width string) *int64 {
	gt, err := strconv.ParseFloat(strings.TrimSpace(strings.SplitN(speed+" ", " ", 2)[0]), 64)
	lanes, err2 := strconv.Atoi(width)
	if err != nil || err2 != nil || gt <= 0 || lanes <= 0 || lanes > 64 {
		return nil
	}
	coding := 128.0 / 130
	if gt <= 5 {
		coding = 0.8
	}
	bps := int64(gt * 1e9 * coding * float64(lanes))
	return &bps
}

// queues fills queue counts and the steering of packets to CPUs.
func (c *collector) queues(n *NIC, dir string) {
	rx, xps := 0, 0
	rps := map[int]bool{}
	sawRPS, sawXPS := false, false
	for _, q := range c.list(dir + "/queues") {
		if strings.HasPrefix(q, "rx-") {
			rx++
			if m := c.text(dir + "/queues/" + q + "/rps_cpus"); m != "" {
				sawRPS = true
				for _, cpu := range maskBits(m) {
					rps[cpu] = true
				}
			}
		} else if m := c.text(dir + "/queues/" + q + "/xps_cpus"); m != "" {
			sawXPS = true
			if len(maskBits(m)) > 0 {
				xps++
			}
		}
	}
	if rx > 0 {
		n.Queues = &rx
	}
	if n.Channels != nil && n.Channels.Now > 0 {
		now := n.Channels.Now
		n.Queues = &now
	}
	if sawRPS {
		cpus := len(rps)
		n.RPSCPUs = &cpus
	}
	if sawXPS {
		n.XPSQueues = &xps
	}
}

// maskBits lists the CPUs of a mask as sysfs prints it: hexadecimal words of 32 bits,
// highest first, "00000000,0000000f". nil when it is none.
func maskBits(mask string) []int {
	digits := strings.ReplaceAll(mask, ",", "")
	var out []int
	for i := range len(digits) {
		v, err := strconv.ParseUint(digits[len(digits)-1-i:len(digits)-i], 16, 8)
		if err != nil {
			return nil
		}
		for b := range 4 {
			if v&(1<<b) != 0 {
				out = append(out, 4*i+b)
			}
		}
	}
	return out
}

// irqSpread reads how the card's interrupts fell, nil when its vectors are not known.
func (c *collector) irqSpread(dir string) *IRQSpread {
	irqs := c.list(dir + "/device/msi_irqs")
	if irqs == nil {
		if where := c.resolved(dir + "/device"); strings.HasPrefix(path.Base(where), "virtio") {
			irqs = c.list(path.Dir(where) + "/msi_irqs")
		}
	}
	if irqs == nil {
		if one := c.text(dir + "/device/irq"); one != "" && one != "0" {
			irqs = []string{one}
		}
	}
	if len(irqs) == 0 {
		return nil
	}
	counts := interrupts(c.read("proc/interrupts"), irqs)
	if len(counts) == 0 {
		return nil
	}
	var s IRQSpread
	var total, busiest int64
	perCPU := map[int]int64{}
	for _, row := range counts {
		var sum int64
		for cpu, n := range row {
			sum += n
			perCPU[cpu] += n
		}
		if sum > 0 {
			s.Vectors++
		}
		total += sum
		busiest = max(busiest, sum)
	}
	if total == 0 {
		return nil
	}
	s.Busiest = float64(busiest) / float64(total)
	for n := range maps.Values(perCPU) {
		if float64(n) >= 0.05*float64(total) {
			s.CPUs++
		}
	}
	return &s
}

// interrupts returns the per-CPU counts of some lines of /proc/interrupts.
func interrupts(text []byte, irqs []string) map[string][]int64 {
	want := map[string]bool{}
	for _, n := range irqs {
		want[n] = true
	}
	out := map[string][]int64{}
	cpus := 0
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		if cpus == 0 {
			for _, w := range f {
				if strings.HasPrefix(w, "CPU") {
					cpus++
				}
			}
			continue
		}
		if len(f) < 1+cpus || !want[strings.TrimSuffix(f[0], ":")] {
			continue
		}
		row := make([]int64, cpus)
		for i := range row {
			row[i], _ = strconv.ParseInt(f[1+i], 10, 64) // a word that is no number counts nothing
		}
		out[strings.TrimSuffix(f[0], ":")] = row
	}
	return out
}

func (c *collector) nicErrors(dir string) *NICErrors {
	stat := func(name string) int64 { return deref(c.int(dir + "/statistics/" + name)) }
	if !c.exists(dir + "/statistics") {
		c.miss("counters of "+path.Base(dir), fmt.Errorf("no %s/statistics", dir))
		return nil
	}
	return &NICErrors{
		RxErrors: stat("rx_errors"), RxCRC: stat("rx_crc_errors"), RxMissed: stat("rx_missed_errors"),
		RxDropped: stat("rx_dropped"), TxErrors: stat("tx_errors"), RxPackets: stat("rx_packets"),
		Carrier: deref(c.int(dir + "/carrier_changes")),
	}
}

func deref(p *int64) int64 {
	if p == nil {
		return 0
	}
	return *p
}

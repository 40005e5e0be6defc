package oshost

import (
	"bufio"
	"io"
	"os"
	"strings"
)

// pciName names a network card. The cards that people meet are in the table; for the
// rest the doctor reads the distribution's pci.ids, and else the numbers are the name.
func (c *collector) pciName(vendor, device string) string {
	id := vendor + ":" + device
	if name, ok := pciNames[id]; ok {
		return name
	}
	if c.deep {
		for _, p := range []string{"usr/share/misc/pci.ids", "usr/share/hwdata/pci.ids"} {
			f, err := os.Open(c.path(p))
			if err != nil {
				continue
			}
			name := lookupPCI(f, vendor, device)
			_ = f.Close()
			if name != "" {
				return name
			}
		}
	}
	if v := pciVendors[vendor]; v != "" {
		return v + " " + id
	}
	return "PCI " + id
}

// lookupPCI reads a pci.ids file: a line "vvvv  Vendor", below it "\tdddd  Device".
func lookupPCI(r io.Reader, vendor, device string) string {
	s := bufio.NewScanner(r)
	maker := ""
	for s.Scan() {
		line := s.Text()
		switch {
		case strings.HasPrefix(line, "C "): // device classes follow
			return ""
		case maker == "":
			if name, ok := strings.CutPrefix(line, vendor+"  "); ok {
				maker = name
			}
		case line != "" && line[0] != '\t' && line[0] != '#': // the next vendor
			return ""
		default:
			if name, ok := strings.CutPrefix(line, "\t"+device+"  "); ok {
				return maker + " " + name
			}
		}
	}
	return ""
}

// emulatedPCI are the cards that hypervisors imitate in software, by PCI numbers: QEMU,
// VirtualBox and VMware's e1000 and e1000e, PCnet, RTL8139, Hyper-V's legacy DEC 21140.
var emulatedPCI = map[string]bool{
	"8086:100e": true, "8086:100f": true, "8086:1004": true, "8086:10d3": true, "8086:1209": true,
	"10ec:8139": true, "10ec:8029": true, "1022:2000": true, "1011:0009": true,
}

var emulatedDrivers = map[string]bool{
	"e1000": true, "8139cp": true, "8139too": true, "pcnet32": true, "ne2k-pci": true, "tulip": true,
}

// driverModels name cards that have no PCI function of their own.
var driverModels = map[string]string{
	"hv_netvsc":    "Microsoft Hyper-V synthetic network adapter",
	"xen_netfront": "Xen paravirtual network interface",
	"vif":          "Xen paravirtual network interface",
	"virtio_net":   "Virtio network device",
}

var pciVendors = map[string]string{
	"8086": "Intel", "15b3": "NVIDIA/Mellanox", "14e4": "Broadcom", "10ec": "Realtek", "1d6a": "Aquantia",
	"1077": "QLogic", "19a2": "Emulex", "1425": "Chelsio", "1924": "Solarflare", "177d": "Cavium", "1af4": "Red Hat Virtio",
	"15ad": "VMware", "1d0f": "Amazon", "1414": "Microsoft", "1ae0": "Google", "1dd8": "AMD Pensando", "19e5": "Huawei",
	"11ab": "Marvell", "1969": "Qualcomm Atheros", "168c": "Qualcomm Atheros", "14c3": "MediaTek", "1fc9": "Tehuti", "1022": "AMD",
}

// pciNames are the cards that people meet (names as the PCI ID repository has them, shortened).
var pciNames = map[string]string{
	"8086:1004": "Intel 82543GC (e1000)",
	"8086:100e": "Intel 82540EM (e1000)",
	"8086:100f": "Intel 82545EM (e1000)",
	"8086:10d3": "Intel 82574L (e1000e)",
	"8086:1209": "Intel 8255xER (e100)",
	"8086:1521": "Intel I350 1GbE",
	"8086:1520": "Intel I350 virtual function",
	"8086:1533": "Intel I210 1GbE",
	"8086:1539": "Intel I211 1GbE",
	"8086:153a": "Intel I217-LM 1GbE",
	"8086:15a1": "Intel I218-V 1GbE",
	"8086:15b8": "Intel I219-V 1GbE",
	"8086:15bb": "Intel I219-LM 1GbE",
	"8086:15f2": "Intel I225-LM 2.5GbE",
	"8086:15f3": "Intel I225-V 2.5GbE",
	"8086:125b": "Intel I226-LM 2.5GbE",
	"8086:125c": "Intel I226-V 2.5GbE",
	"8086:10fb": "Intel 82599ES 10GbE",
	"8086:10ed": "Intel 82599 virtual function",
	"8086:1528": "Intel X540-AT2 10GbE",
	"8086:1563": "Intel X550 10GBASE-T",
	"8086:15ab": "Intel X552 10GbE",
	"8086:15ad": "Intel X552/X557-AT 10GBASE-T",
	"8086:1572": "Intel X710 10GbE SFP+",
	"8086:15ff": "Intel X710 10GBASE-T",
	"8086:1581": "Intel X710 10GbE backplane",
	"8086:1583": "Intel XL710 40GbE QSFP+",
	"8086:1584": "Intel XL710 40GbE QSFP+",
	"8086:158b": "Intel XXV710 25GbE SFP28",
	"8086:154c": "Intel 700 Series virtual function",
	"8086:1889": "Intel Adaptive virtual function",
	"8086:1592": "Intel E810-C 100GbE QSFP",
	"8086:1593": "Intel E810-C 25GbE SFP",
	"8086:159b": "Intel E810-XXV 25GbE SFP",
	"8086:12d2": "Intel E830-CC 200GbE QSFP",
	"15b3:1003": "Mellanox ConnectX-3",
	"15b3:1007": "Mellanox ConnectX-3 Pro",
	"15b3:1013": "Mellanox ConnectX-4",
	"15b3:1014": "Mellanox ConnectX-4 virtual function",
	"15b3:1015": "Mellanox ConnectX-4 Lx",
	"15b3:1016": "Mellanox ConnectX-4 Lx virtual function",
	"15b3:1017": "Mellanox ConnectX-5",
	"15b3:1018": "Mellanox ConnectX-5 virtual function",
	"15b3:1019": "Mellanox ConnectX-5 Ex",
	"15b3:101b": "Mellanox ConnectX-6",
	"15b3:101d": "Mellanox ConnectX-6 Dx",
	"15b3:101e": "Mellanox ConnectX virtual function",
	"15b3:101f": "Mellanox ConnectX-6 Lx",
	"15b3:1021": "NVIDIA ConnectX-7",
	"15b3:1023": "NVIDIA ConnectX-8",
	"15b3:a2d6": "NVIDIA BlueField-2",
	"15b3:a2dc": "NVIDIA BlueField-3",
	"14e4:1657": "Broadcom BCM5719 1GbE",
	"14e4:165f": "Broadcom BCM5720 1GbE",
	"14e4:16a1": "Broadcom BCM57840 10GbE",
	"14e4:16d7": "Broadcom BCM57414 25GbE",
	"14e4:16d8": "Broadcom BCM57416 10GBASE-T",
	"14e4:1750": "Broadcom BCM57508 100GbE",
	"14e4:1751": "Broadcom BCM57504 25/50/100GbE",
	"10ec:8139": "Realtek RTL8139",
	"10ec:8029": "Realtek RTL8029 (ne2000)",
	"10ec:8136": "Realtek RTL810x Fast Ethernet",
	"10ec:8168": "Realtek RTL8111/8168 1GbE",
	"10ec:8125": "Realtek RTL8125 2.5GbE",
	"10ec:8126": "Realtek RTL8126 5GbE",
	"10ec:8127": "Realtek RTL8127 10GbE",
	"1d6a:07b1": "Aquantia AQC107 10GBASE-T",
	"1d6a:d107": "Aquantia AQC107 10GBASE-T",
	"1d6a:94c0": "Marvell AQC113CS 10GBASE-T",
	"1d6a:14c0": "Marvell AQC113 10GBASE-T",
	"1022:2000": "AMD PCnet (79C970)",
	"1011:0009": "DEC 21140 (Hyper-V legacy)",
	"1af4:1000": "Virtio network device",
	"1af4:1041": "Virtio network device",
	"15ad:07b0": "VMware VMXNET3",
	"1d0f:ec20": "Amazon Elastic Network Adapter",
	"1d0f:ec21": "Amazon Elastic Network Adapter",
	"1414:00ba": "Microsoft Azure Network Adapter virtual function",
	"1ae0:0042": "Google Virtual NIC",
	"1924:0b03": "Solarflare XtremeScale X2522 25GbE",
	"1dd8:1002": "AMD Pensando DSC",
}

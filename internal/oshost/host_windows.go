package oshost

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/windows"
	"golang.org/x/sys/windows/registry"

	"github.com/fullbore-net/fullbore/result"
)

// Everything here comes from the registry and from plain system calls: WMI is too slow
// for a start-up path. Calls that older systems (or Wine) lack are looked up first.

func facts(ctx context.Context, peer netip.Addr) *result.Host {
	w := winHost{}
	h := w.host()
	if ctx.Err() == nil {
		if nic, ok := w.nicTo(peer); ok {
			h.NIC = &nic.NIC
		}
	}
	return &h
}

func take(ctx context.Context, peer netip.Addr) *Inventory {
	w := winHost{}
	inv := &Inventory{Host: w.host()}
	if peer.IsValid() {
		inv.Peer = peer.String()
	}
	if nic, ok := w.nicTo(peer); ok && ctx.Err() == nil {
		nic.Emulated = inv.Host.Virtual != "" && inv.Host.Virtual != "none" && emulatedPCI[nic.PCI]
		nic.Nominal = nic.Emulated || virtualPCI[nic.PCI] || strings.Contains(nic.Model, "Hyper-V")
		base := nic.NIC
		inv.Host.NIC = &base
		inv.NICs = []NIC{nic}
	}
	inv.CPU.Governor = powerScheme()
	inv.Firewall = firewallProfiles()
	w.miss("TCP settings", errors.New("Windows keeps them where only WMI and netsh look: netsh interface tcp show global"))
	inv.Missing = w.missing
	return inv
}

// virtualPCI are the cards that exist only towards a hypervisor.
var virtualPCI = map[string]bool{"1af4:1000": true, "1af4:1041": true, "15ad:07b0": true, "1d0f:ec20": true, "1d0f:ec21": true, "1414:00ba": true, "1ae0:0042": true}

func autotuneMax() (int64, error) { return 65535 << 8, nil } // level "normal": scale factor 8

type winHost struct{ missing []string }

func (w *winHost) miss(what string, err error) {
	w.missing = append(w.missing, fmt.Sprintf("%s: %v", what, err))
}

func (w *winHost) host() result.Host {
	v := windows.RtlGetVersion()
	h := result.Host{OS: "windows", Release: fmt.Sprintf("%d.%d.%d", v.MajorVersion, v.MinorVersion, v.BuildNumber), Cores: runtime.NumCPU()}
	name, err := os.Hostname()
	if err != nil {
		w.miss("host name", err)
	}
	h.Name = name
	machine := map[string]string{"amd64": "x86_64", "386": "x86", "arm64": "ARM64"}[runtime.GOARCH]
	h.SystemInfo = strings.Join([]string{"Windows", name, h.Release, regString(`SOFTWARE\Microsoft\Windows NT\CurrentVersion`, "ProductName"), machine}, " ")
	count := windows.NewLazySystemDLL("kernel32.dll").NewProc("GetActiveProcessorCount")
	if count.Find() == nil {
		if n, _, _ := count.Call(windows.ALL_PROCESSOR_GROUPS); n > 0 {
			h.Cores = int(n) // all processor groups, where Go sees one
		}
	}
	const cpu = `HARDWARE\DESCRIPTION\System\CentralProcessor\0`
	h.CPUModel = strings.Join(strings.Fields(regString(cpu, "ProcessorNameString")), " ")
	if mhz, ok := regInt(cpu, "~MHz"); ok {
		v := int(mhz)
		h.MHz = &v
	}
	if bytes, err := physicalMemory(); err == nil {
		h.Memory = &bytes
	} else {
		w.miss("memory", err)
	}
	const bios = `HARDWARE\DESCRIPTION\System\BIOS`
	vendor := regString(bios, "SystemManufacturer")
	h.Virtual, _ = virtualByMaker(vendor, regString(bios, "SystemProductName"))
	if h.Virtual == "" && vendor != "" {
		h.Virtual = "none"
	}
	return h
}

// physicalMemory is GlobalMemoryStatusEx's ullTotalPhys.
func physicalMemory() (int64, error) {
	var m struct {
		length, load                                    uint32
		total, avail, pageTotal, pageAvail, vTotal, vAv uint64
		extended                                        uint64
	}
	m.length = uint32(unsafe.Sizeof(m))
	proc := windows.NewLazySystemDLL("kernel32.dll").NewProc("GlobalMemoryStatusEx")
	if err := proc.Find(); err != nil {
		return 0, err
	}
	if ok, _, err := proc.Call(uintptr(unsafe.Pointer(&m))); ok == 0 {
		return 0, err
	}
	return int64(m.total), nil
}

func interfaceTo(peer netip.Addr) (string, error) {
	index, err := interfaceIndex(peer)
	if err != nil {
		return "", err
	}
	i, err := net.InterfaceByIndex(int(index))
	if err != nil {
		return "", fmt.Errorf("route to %s: %w", peer, err)
	}
	return i.Name, nil
}

// interfaceIndex asks GetBestInterfaceEx; the default route is that to a documentation address.
func interfaceIndex(peer netip.Addr) (uint32, error) {
	if !peer.IsValid() {
		peer = netip.AddrFrom4([4]byte{192, 0, 2, 1})
	}
	peer = peer.Unmap()
	if err := windows.NewLazySystemDLL("iphlpapi.dll").NewProc("GetBestInterfaceEx").Find(); err != nil {
		return 0, fmt.Errorf("route to %s: %w", peer, err)
	}
	var sa windows.Sockaddr = &windows.SockaddrInet6{Addr: peer.As16()}
	if peer.Is4() {
		sa = &windows.SockaddrInet4{Addr: peer.As4()}
	}
	var index uint32
	if err := windows.GetBestInterfaceEx(sa, &index); err != nil {
		return 0, fmt.Errorf("route to %s: %w", peer, err)
	}
	return index, nil
}

// ifRow reads an interface with its counters (GetIfEntry2, Windows Vista).
func ifRow(index uint32) (*windows.MibIfRow2, error) {
	proc := windows.NewLazySystemDLL("iphlpapi.dll").NewProc("GetIfEntry2")
	if err := proc.Find(); err != nil {
		return nil, err
	}
	row := &windows.MibIfRow2{InterfaceIndex: index}
	if code, _, _ := proc.Call(uintptr(unsafe.Pointer(row))); code != 0 {
		return nil, windows.Errno(code)
	}
	return row, nil
}

func (w *winHost) nicTo(peer netip.Addr) (NIC, bool) {
	index, err := interfaceIndex(peer)
	if err != nil {
		w.miss("interface", err)
		return NIC{}, false
	}
	row, err := ifRow(index)
	if err != nil {
		w.miss("interface", err)
		return NIC{}, false
	}
	n := NIC{NIC: result.NIC{
		Name: windows.UTF16ToString(row.Alias[:]), Model: windows.UTF16ToString(row.Description[:]), MTU: int(row.Mtu),
	}}
	n.Kind = map[uint32]string{24: KindLoopback, 71: KindWireless, 131: KindTunnel, 6: KindPhysical}[row.Type] // IANAifType
	if n.Kind == "" {
		n.Kind = KindVirtual
	}
	n.State = map[uint32]string{1: "up", 2: "down"}[row.OperStatus]
	if s := row.TransmitLinkSpeed; s > 0 && s != ^uint64(0) && n.Kind != KindLoopback && n.Kind != KindTunnel {
		bps := int64(s)
		n.SpeedBPS = &bps
	}
	n.Errors = &NICErrors{
		RxErrors: int64(row.InErrors), RxDropped: int64(row.InDiscards), TxErrors: int64(row.OutErrors),
		RxPackets: int64(row.InUcastPkts + row.InNUcastPkts),
	}
	w.driver(&n, row.InterfaceGuid.String())
	return n, true
}

// netClass is the registry's list of network drivers; each instance has the standardised
// keywords of NDIS ("*RSS", "*LsoV2IPv4", …) as strings.
const netClass = `SYSTEM\CurrentControlSet\Control\Class\{4D36E972-E325-11CE-BFC1-08002BE10318}`

var pciMatch = regexp.MustCompile(`(?i)ven_([0-9a-f]{4})&dev_([0-9a-f]{4})`)

func (w *winHost) driver(n *NIC, guid string) {
	class, err := registry.OpenKey(registry.LOCAL_MACHINE, netClass, registry.ENUMERATE_SUB_KEYS)
	if err != nil {
		w.miss("network drivers", err)
		return
	}
	defer func() { _ = class.Close() }()
	subs, err := class.ReadSubKeyNames(-1)
	if err != nil {
		w.miss("network drivers", err)
		return
	}
	for _, sub := range subs {
		key := netClass + `\` + sub
		if !strings.EqualFold(regString(key, "NetCfgInstanceId"), guid) {
			continue
		}
		n.Driver = strings.TrimSuffix(regString(key, "ProviderName")+" "+regString(key, "DriverVersion"), " ")
		if m := pciMatch.FindStringSubmatch(regString(key, "MatchingDeviceId")); m != nil {
			n.PCI = strings.ToLower(m[1] + ":" + m[2])
		}
		n.Offloads = ndisOffloads(key)
		if on, ok := regWord(key, "*RSS"); ok && on == 0 {
			one := 1
			n.RSSQueues = &one
		} else if q, ok := regWord(key, "*NumRssQueues"); ok && q > 0 {
			n.RSSQueues, n.Queues = &q, &q
		}
		return
	}
	w.miss("driver of "+n.Name, errors.New("not in the registry"))
}

// ndisOffloads translates NDIS's keywords (Microsoft, "Standardized INF keywords for network
// devices"): checksum values are 0 none, 1 send, 2 receive, 3 both.
func ndisOffloads(key string) map[string]Offload {
	out := map[string]Offload{}
	if v, ok := regWord(key, "*LsoV2IPv4"); ok {
		out[TSO] = Offload{On: v != 0}
	}
	if v, ok := regWord(key, "*RscIPv4"); ok {
		out[LRO] = Offload{On: v != 0}
	}
	if v, ok := regWord(key, "*TCPChecksumOffloadIPv4"); ok {
		out[TxChecksum] = Offload{On: v&1 != 0}
		out[RxChecksum] = Offload{On: v&2 != 0}
	}
	if v, ok := regWord(key, "*UsoIPv4"); ok {
		out[UDPSegment] = Offload{On: v != 0}
	}
	return out
}

// powerScheme names the active power plan, "" when it is not a stock one.
func powerScheme() string {
	active := regString(`SYSTEM\CurrentControlSet\Control\Power\User\PowerSchemes`, "ActivePowerScheme")
	return map[string]string{
		"381b4222-f694-41f0-9685-ff5bb260df2e": "balanced",
		"8c5e7fda-e8bf-4a96-9a85-a6e23a8c635c": "high performance",
		"a1841308-3541-4fab-bc81-f71556f20b4a": "power saver",
		"e9a42b02-d5df-448d-aa00-03f14749eb61": "ultimate performance",
	}[strings.ToLower(active)]
}

func firewallProfiles() *[]string {
	hints := []string{}
	looked := false
	for _, p := range []string{"Domain", "Standard", "Public"} {
		on, ok := regInt(`SYSTEM\CurrentControlSet\Services\SharedAccess\Parameters\FirewallPolicy\`+p+"Profile", "EnableFirewall")
		looked = looked || ok
		if on != 0 {
			name := map[string]string{"Standard": "private"}[p]
			if name == "" {
				name = strings.ToLower(p)
			}
			hints = append(hints, "Windows Firewall is on in the "+name+" profile")
		}
	}
	if !looked {
		return nil
	}
	return &hints
}

func regString(path, name string) string {
	k, err := registry.OpenKey(registry.LOCAL_MACHINE, path, registry.QUERY_VALUE)
	if err != nil {
		return ""
	}
	defer func() { _ = k.Close() }()
	s, _, err := k.GetStringValue(name)
	if err != nil {
		return ""
	}
	return s
}

func regInt(path, name string) (uint64, bool) {
	k, err := registry.OpenKey(registry.LOCAL_MACHINE, path, registry.QUERY_VALUE)
	if err != nil {
		return 0, false
	}
	defer func() { _ = k.Close() }()
	v, _, err := k.GetIntegerValue(name)
	return v, err == nil
}

// regWord reads a number that is stored as a string.
func regWord(path, name string) (int, bool) {
	v, err := strconv.Atoi(regString(path, name))
	return v, err == nil
}

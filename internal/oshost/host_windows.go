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
	"strings"
	"unsafe"

	"golang.org/x/sys/windows"
	"golang.org/x/sys/windows/registry"

	"github.com/fullbore-net/fullbore/result"
)

// What a test's record says comes from the registry and from plain system calls: WMI is too
// slow for a start-up path, and only the doctor asks it. Calls that older systems (or Wine) lack are looked up first.

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

func brief(ctx context.Context, peer netip.Addr) *Inventory {
	w := winHost{}
	inv := &Inventory{Host: w.host()}
	if nic, ok := w.nicTo(peer); ok && ctx.Err() == nil {
		nic.Emulated = inv.Host.Virtual != "" && inv.Host.Virtual != "none" && emulatedPCI[nic.PCI]
		base := nic.NIC
		inv.Host.NIC = &base
		inv.NICs = []NIC{nic}
	}
	w.power(&inv.CPU)
	inv.Missing = w.missing
	return inv
}

func take(ctx context.Context, peer netip.Addr) *Inventory {
	w := winHost{}
	inv := &Inventory{Host: w.host()}
	if peer.IsValid() {
		inv.Peer = peer.String()
	}
	settings, err := wmiRead(ctx, `ROOT\StandardCimv2`, winClasses)
	if err != nil {
		w.miss("settings of TCP and of the card's offloads (WMI)", err)
	}
	if nic, ok := w.nicTo(peer); ok && ctx.Err() == nil {
		nic.Emulated = inv.Host.Virtual != "" && inv.Host.Virtual != "none" && emulatedPCI[nic.PCI]
		nic.Nominal = nic.Emulated || virtualPCI[nic.PCI] || strings.Contains(nic.Model, "Hyper-V")
		settings.nic(&nic, w.guid)
		base := nic.NIC
		inv.Host.NIC = &base
		inv.NICs = []NIC{nic}
	}
	settings.tcp(&inv.TCP)
	inv.Offloads = settings.global()
	w.power(&inv.CPU)
	inv.Firewall = firewallProfiles()
	inv.Missing = w.missing
	return inv
}

// virtualPCI are the cards that exist only towards a hypervisor.
var virtualPCI = map[string]bool{"1af4:1000": true, "1af4:1041": true, "15ad:07b0": true, "1d0f:ec20": true, "1d0f:ec21": true, "1414:00ba": true, "1ae0:0042": true}

func autotuneMax() (int64, error) { return 65535 << 8, nil } // level "normal": scale factor 8

type winHost struct {
	missing []string
	guid    string // of the interface that nicTo found
}

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
	w.guid = row.InterfaceGuid.String()
	w.driver(&n)
	return n, true
}

// netClass is the registry's list of network drivers; each instance has the standardised
// keywords of NDIS ("*RSS", "*LsoV2IPv4", …) as strings.
const netClass = `SYSTEM\CurrentControlSet\Control\Class\{4D36E972-E325-11CE-BFC1-08002BE10318}`

var pciMatch = regexp.MustCompile(`(?i)ven_([0-9a-f]{4})&dev_([0-9a-f]{4})`)

func (w *winHost) driver(n *NIC) {
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
		if !strings.EqualFold(regString(key, "NetCfgInstanceId"), w.guid) {
			continue
		}
		n.Driver = strings.TrimSuffix(regString(key, "ProviderName")+" "+regString(key, "DriverVersion"), " ")
		if m := pciMatch.FindStringSubmatch(regString(key, "MatchingDeviceId")); m != nil {
			n.PCI = strings.ToLower(m[1] + ":" + m[2])
		}
		ndisFacts(n, func(keyword string) *int { return keywordValue(key, keyword) }, func(keyword string) *int { return keywordMost(key, keyword) })
		return
	}
	w.miss("driver of "+n.Name, errors.New("not in the registry"))
}

// keywordValue is the one that the driver runs with, else its own default.
func keywordValue(key, keyword string) *int {
	if v := keywordNumber(regString(key, keyword)); v != nil {
		return v
	}
	return keywordNumber(regString(key+`\Ndi\params\`+keyword, "default"))
}

// keywordMost is the largest value that the driver's settings page offers: a range has "max",
// a list a value for each choice.
func keywordMost(key, keyword string) *int {
	params := key + `\Ndi\params\` + keyword
	if v := keywordNumber(regString(params, "max")); v != nil {
		return v
	}
	k, err := registry.OpenKey(registry.LOCAL_MACHINE, params+`\enum`, registry.QUERY_VALUE)
	if err != nil {
		return nil
	}
	defer func() { _ = k.Close() }()
	names, err := k.ReadValueNames(-1)
	if err != nil {
		return nil
	}
	var most *int
	for _, name := range names {
		if v := keywordNumber(name); v != nil && (most == nil || *v > *most) {
			most = v
		}
	}
	return most
}

// Power settings (winnt.h): the processor's subgroup and its least state in percent.
var (
	guidProcessor = windows.GUID{Data1: 0x54533251, Data2: 0x82be, Data3: 0x4824, Data4: [8]byte{0x96, 0xc1, 0x47, 0xb6, 0x0b, 0x74, 0x0d, 0x00}}
	guidLeast     = windows.GUID{Data1: 0x893dee8e, Data2: 0x2bef, Data3: 0x41e0, Data4: [8]byte{0x89, 0xc6, 0xb5, 0x5d, 0x09, 0x29, 0x96, 0x4c}}
)

// power asks for the active power plan and what it does to the clock.
func (w *winHost) power(c *CPU) {
	const user = `SYSTEM\CurrentControlSet\Control\Power\User\PowerSchemes`
	battery := onBattery()
	overlay, read := "ActiveOverlayAcPowerScheme", "PowerReadACValueIndex"
	if battery != nil && *battery {
		overlay, read = "ActiveOverlayDcPowerScheme", "PowerReadDCValueIndex"
	}
	scheme := regString(user, "ActivePowerScheme")
	var least *int
	dll := windows.NewLazySystemDLL("powrprof.dll")
	active, value := dll.NewProc("PowerGetActiveScheme"), dll.NewProc(read)
	var guid *windows.GUID
	if err := active.Find(); err != nil {
		w.miss("power plan", err)
	} else if code, _, _ := active.Call(0, uintptr(unsafe.Pointer(&guid))); uint32(code) == 0 && guid != nil {
		scheme = guid.String()
		least = leastState(value, guid)
		_, _ = windows.LocalFree(windows.Handle(unsafe.Pointer(guid))) // nothing can be done when it fails
	}
	c.power(scheme, regString(user, overlay), least, battery)
}

// leastState is the least processor state of a power plan in percent, nil when it is not told.
func leastState(read *windows.LazyProc, scheme *windows.GUID) *int {
	if read.Find() != nil {
		return nil
	}
	var percent uint32
	code, _, _ := read.Call(0, uintptr(unsafe.Pointer(scheme)), uintptr(unsafe.Pointer(&guidProcessor)), uintptr(unsafe.Pointer(&guidLeast)), uintptr(unsafe.Pointer(&percent)))
	if uint32(code) != 0 || percent > 100 {
		return nil
	}
	v := int(percent)
	return &v
}

// onBattery is GetSystemPowerStatus' ACLineStatus, nil when that is not known.
func onBattery() *bool {
	proc := windows.NewLazySystemDLL("kernel32.dll").NewProc("GetSystemPowerStatus")
	var s struct {
		line, flag, percent, saver uint8
		life, full                 uint32
	}
	if proc.Find() != nil {
		return nil
	}
	if ok, _, _ := proc.Call(uintptr(unsafe.Pointer(&s))); ok == 0 || s.line > 1 {
		return nil
	}
	battery := s.line == 0
	return &battery
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

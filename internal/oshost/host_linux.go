package oshost

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"unsafe"

	"github.com/safchain/ethtool"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/fullbore-net/fullbore/result"
)

func facts(ctx context.Context, peer netip.Addr) *result.Host {
	k := liveKernel{}
	defer k.close()
	c := collector{kernel: &k}
	return c.facts(ctx, peer)
}

func take(ctx context.Context, peer netip.Addr) *Inventory {
	k := liveKernel{}
	defer k.close()
	c := collector{kernel: &k}
	return c.inventory(ctx, peer)
}

func brief(ctx context.Context, peer netip.Addr) *Inventory {
	k := liveKernel{}
	defer k.close()
	c := collector{kernel: &k}
	return c.brief(ctx, peer)
}

func interfaceTo(peer netip.Addr) (string, error) { return new(liveKernel).route(peer) }

func autotuneMax() (int64, error) {
	var t tree
	most := int64(0)
	for _, name := range []string{"tcp_rmem", "tcp_wmem"} {
		v := t.ints("proc/sys/net/ipv4/" + name)
		if len(v) != 3 {
			return 0, fmt.Errorf("oshost: net.ipv4.%s cannot be read", name)
		}
		most = max(most, v[2])
	}
	return most, nil
}

// liveKernel asks the running one.
type liveKernel struct {
	ether *ethtool.Ethtool // opened on first use
}

func (k *liveKernel) close() {
	if k.ether != nil {
		k.ether.Close()
	}
}

// route asks the routing table (RTM_GETROUTE); no packet is sent.
func (k *liveKernel) route(peer netip.Addr) (string, error) {
	if !peer.IsValid() {
		if name := (tree{}).defaultInterface(); name != "" {
			return name, nil
		}
		return "", errNoRoute
	}
	peer = peer.Unmap()
	if zone := peer.Zone(); zone != "" { // a scoped address names its interface, or numbers it
		i, err := net.InterfaceByName(zone)
		if n, nerr := strconv.Atoi(zone); err != nil && nerr == nil {
			i, err = net.InterfaceByIndex(n)
		}
		if err != nil {
			return "", fmt.Errorf("route to %s: %w", peer, err)
		}
		return i.Name, nil
	}
	routes, err := netlink.RouteGet(peer.WithZone("").AsSlice())
	if err != nil {
		return "", fmt.Errorf("route to %s: %w", peer, err)
	}
	for _, r := range routes {
		if i, err := net.InterfaceByIndex(r.LinkIndex); err == nil {
			return i.Name, nil
		}
	}
	return "", fmt.Errorf("route to %s: %w", peer, errNoRoute)
}

// device asks the driver by ethtool's ioctls. Each answer is optional; an error means
// that the driver has no ethtool at all.
func (k *liveKernel) device(name string) (device, error) {
	var d device
	if k.ether == nil {
		e, err := ethtool.NewEthtool()
		if err != nil {
			return d, err
		}
		k.ether = e
	}
	e := k.ether
	if info, err := e.DriverInfo(name); err == nil {
		d.Driver = cstring(info.Driver)
		if fw := cstring(info.FwVersion); fw != "N/A" {
			d.Firmware = fw
		}
	}
	if r, err := e.GetRing(name); err == nil && r.RxMaxPending > 0 {
		d.Rings = &Rings{Rx: Pair{int(r.RxPending), int(r.RxMaxPending)}, Tx: Pair{int(r.TxPending), int(r.TxMaxPending)}}
	}
	if ch, err := e.GetChannels(name); err == nil {
		now, most := ch.CombinedCount+ch.RxCount, ch.MaxCombined
		if most == 0 {
			most = ch.MaxRx
		}
		if now > 0 && most > 0 {
			d.Channels = &Pair{int(now), int(most)}
		}
	}
	if ind, err := e.GetIndir(name); err == nil && ind.Size > 0 {
		used := map[uint32]bool{}
		for _, q := range ind.RingIndex[:min(int(ind.Size), len(ind.RingIndex))] {
			used[q] = true
		}
		n := len(used)
		d.RSSQueues = &n
	}
	if f, err := e.FeaturesWithState(name); err == nil {
		d.Offloads = offloads(f)
	}
	d.MaxMbit, d.Autoneg = linkModes(name)
	return d, nil
}

// offloads picks the features that matter. Names changed over the releases: the checksum
// ones are told apart by protocol.
func offloads(f map[string]ethtool.FeatureState) map[string]Offload {
	out := map[string]Offload{}
	for _, name := range []string{TSO, GSO, GRO, LRO, RxChecksum, SG, UDPSegment} {
		if s, ok := f[name]; ok {
			out[name] = Offload{On: s.Active, Fixed: s.NeverChanged || !s.Available}
		}
	}
	sum := Offload{Fixed: true}
	seen := false
	for _, name := range []string{"tx-checksum-ip-generic", "tx-checksum-ipv4"} {
		if s, ok := f[name]; ok {
			seen = true
			sum.On = sum.On || s.Active
			sum.Fixed = sum.Fixed && (s.NeverChanged || !s.Available)
		}
	}
	if seen {
		out[TxChecksum] = sum
	}
	return out
}

func cstring(s string) string {
	s, _, _ = strings.Cut(s, "\x00")
	return strings.TrimSpace(s)
}

// linkModes asks ETHTOOL_GLINKSETTINGS for the fastest supported mode in Mbit/s (0 = none
// reported) and whether the link negotiates. Own code: the library's call prints to
// standard output when the kernel's mask is longer than it knows.
func linkModes(name string) (mbit int, autoneg *bool) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, nil
	}
	defer func() { _ = unix.Close(fd) }()
	// struct ethtool_link_settings with room for the three masks (include/uapi/linux/ethtool.h).
	var req struct {
		cmd, speed                          uint32
		duplex, port, phy, autoneg          uint8
		mdixSupport, tpMdix, tpMdixCtrl     uint8
		words                               int8
		transceiver, master, state, matched uint8
		reserved                            [7]uint32
		masks                               [3 * 127]uint32
	}
	req.cmd = unix.ETHTOOL_GLINKSETTINGS
	if ethtoolIoctl(fd, name, unsafe.Pointer(&req)) != nil {
		return 0, nil
	}
	// The first call tells the mask's length as a negative number; the second wants it back.
	if req.words >= 0 {
		return 0, nil
	}
	req.cmd, req.words = unix.ETHTOOL_GLINKSETTINGS, -req.words
	if ethtoolIoctl(fd, name, unsafe.Pointer(&req)) != nil || req.words <= 0 {
		return 0, nil
	}
	if req.autoneg <= 1 {
		on := req.autoneg == 1
		autoneg = &on
	}
	return fastest(req.masks[:req.words]), autoneg
}

func ethtoolIoctl(fd int, name string, data unsafe.Pointer) error {
	var ifr struct {
		name [unix.IFNAMSIZ]byte
		data unsafe.Pointer
		_    [24 - unsafe.Sizeof(uintptr(0))]byte
	}
	if len(name) >= unix.IFNAMSIZ {
		return unix.EINVAL
	}
	copy(ifr.name[:], name)
	ifr.data = data
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&ifr)))
	runtime.KeepAlive(data)
	if errno != 0 {
		return errno
	}
	return nil
}

func (k *liveKernel) qdiscs(name string) ([]string, error) {
	link, err := netlink.LinkByName(name)
	if err != nil {
		return nil, err
	}
	list, err := netlink.QdiscList(link)
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(list, func(a, b netlink.Qdisc) int { // the root's handle parent is the largest number
		return int(int64(b.Attrs().Parent) - int64(a.Attrs().Parent))
	})
	var out []string
	for _, q := range list {
		if !slices.Contains(out, q.Type()) {
			out = append(out, q.Type())
		}
	}
	return out, nil
}

// clock reads adjtimex(2) without changing anything (modes = 0).
func (k *liveKernel) clock() (clockState, error) {
	var tx unix.Timex
	state, err := unix.Adjtimex(&tx)
	if err != nil {
		return clockState{}, err
	}
	return clockState{
		Synced:   state != unix.TIME_ERROR && tx.Status&unix.STA_UNSYNC == 0,
		MaxError: float64(tx.Maxerror) / 1e6, EstError: float64(tx.Esterror) / 1e6,
	}, nil
}

func (k *liveKernel) uname() (names, error) {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return names{}, err
	}
	return names{
		System: unix.ByteSliceToString(u.Sysname[:]), Node: unix.ByteSliceToString(u.Nodename[:]),
		Release: unix.ByteSliceToString(u.Release[:]), Version: unix.ByteSliceToString(u.Version[:]),
		Machine: unix.ByteSliceToString(u.Machine[:]),
	}, nil
}

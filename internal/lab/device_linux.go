package lab

import (
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// device looks a device of the namespace up and applies f to it.
func (ns *Namespace) device(name, doing string, f func(netlink.Link) error) error {
	dev, err := ns.nl.LinkByName(name)
	if err == nil {
		err = f(dev)
	}
	if err != nil {
		return fmt.Errorf("lab: %s: device %s: %s: %w", ns.Role, name, doing, err)
	}
	return nil
}

// AddAddress gives a device an address with its prefix length: 10.77.0.3/24. IPv6
// addresses can be used at once (no duplicate address detection).
func (ns *Namespace) AddAddress(dev string, prefix string) error {
	p, err := netip.ParsePrefix(prefix)
	if err != nil {
		return fmt.Errorf("lab: %w", err)
	}
	addr, err := netlink.ParseAddr(p.String())
	if err != nil {
		return fmt.Errorf("lab: address %s: %w", prefix, err)
	}
	if p.Addr().Is6() {
		addr.Flags = unix.IFA_F_NODAD
	}
	err = ns.device(dev, "add address "+prefix, func(l netlink.Link) error { return ns.nl.AddrAdd(l, addr) })
	if err != nil {
		return err
	}
	return ns.applyCongestionControl() // the address brought a route
}

// SetMTU sets a device's MTU, bytes.
func (ns *Namespace) SetMTU(dev string, mtu int) error {
	return ns.device(dev, fmt.Sprintf("set mtu %d", mtu), func(l netlink.Link) error { return ns.nl.LinkSetMTU(l, mtu) })
}

// SetUp switches a device on.
func (ns *Namespace) SetUp(dev string) error {
	err := ns.device(dev, "set up", func(l netlink.Link) error { return ns.nl.LinkSetUp(l) })
	if err != nil {
		return err
	}
	return ns.applyCongestionControl() // routes came back with it
}

// SetDown switches a device off: a cut cable. Its routes and IPv6 addresses go with it.
func (ns *Namespace) SetDown(dev string) error {
	return ns.device(dev, "set down", func(l netlink.Link) error { return ns.nl.LinkSetDown(l) })
}

// AddDefaultRoute routes everything else by way of a gateway.
func (ns *Namespace) AddDefaultRoute(gateway string) error {
	gw, err := netip.ParseAddr(gateway)
	if err == nil {
		route := &netlink.Route{Gw: gw.AsSlice(), Family: netlink.FAMILY_V4}
		if gw.Is6() {
			route.Family = netlink.FAMILY_V6
		}
		route.Congctl = ns.cc
		err = ns.nl.RouteAdd(route)
	}
	if err != nil {
		return fmt.Errorf("lab: %s: default route by way of %s: %w", ns.Role, gateway, err)
	}
	return nil
}

// SetTBF replaces a device's root queueing discipline by a token bucket filter.
func (ns *Namespace) SetTBF(dev string, t TBF) error {
	bytesPerSecond := uint64(t.BitsPerSecond) / 8
	return ns.device(dev, "set tbf", func(l netlink.Link) error {
		return ns.nl.QdiscReplace(&netlink.Tbf{
			QdiscAttrs: netlink.QdiscAttrs{
				LinkIndex: l.Attrs().Index, Handle: netlink.MakeHandle(1, 0), Parent: netlink.HANDLE_ROOT,
			},
			Rate: bytesPerSecond,
			// As tc computes them: the bucket as the time that it takes to send it, and
			// the queue as what that time of waiting holds, plus the bucket.
			Buffer: netlink.Xmittime(bytesPerSecond, uint32(t.BurstBytes)),
			Limit:  uint32(float64(bytesPerSecond)*t.Latency.Seconds()) + uint32(t.BurstBytes),
		})
	})
}

// DeviceStats are a device's counters since it was made (rtnl_link_stats64).
type DeviceStats struct {
	RxPackets uint64 `json:"rx_packets"`
	RxBytes   uint64 `json:"rx_bytes"`
	TxPackets uint64 `json:"tx_packets"`
	TxBytes   uint64 `json:"tx_bytes"`
	RxDropped uint64 `json:"rx_dropped"`
	TxDropped uint64 `json:"tx_dropped"`
	RxErrors  uint64 `json:"rx_errors"`
	TxErrors  uint64 `json:"tx_errors"`
}

// DeviceStats reads a device's counters.
func (ns *Namespace) DeviceStats(dev string) (s DeviceStats, err error) {
	err = ns.device(dev, "read statistics", func(l netlink.Link) error {
		st := l.Attrs().Statistics
		if st == nil {
			return fmt.Errorf("the kernel sent none")
		}
		s = DeviceStats{
			RxPackets: st.RxPackets, RxBytes: st.RxBytes, TxPackets: st.TxPackets, TxBytes: st.TxBytes,
			RxDropped: st.RxDropped, TxDropped: st.TxDropped, RxErrors: st.RxErrors, TxErrors: st.TxErrors,
		}
		return nil
	})
	return s, err
}

// QdiscDrops returns the packets that a device's queueing disciplines have dropped.
func (ns *Namespace) QdiscDrops(dev string) (drops int64, err error) {
	err = ns.device(dev, "read queueing disciplines", func(l netlink.Link) error {
		qdiscs, err := ns.nl.QdiscList(l)
		for _, q := range qdiscs {
			if st := q.Attrs().Statistics; st != nil && st.Queue != nil {
				drops += int64(st.Queue.Drops)
			}
		}
		return err
	})
	return drops, err
}

package lab

import (
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/fullbore-net/fullbore/internal/lab/forward"
)

// NewPair makes two namespaces joined by a veth pair: na with va (10.77.0.1,
// fd77::1), nb with vb (10.77.0.2, fd77::2). cc is the congestion control of both,
// "" the system's. It is as fast as the machine.
func NewPair(cc string) (*Network, error) {
	n, err := newNetwork(cc, "na", "nb")
	if err != nil {
		return nil, err
	}
	n.Near, n.Far = n.spaces[0], n.spaces[1]
	err = n.join(n.Near, PairNear, n.Far, PairFar)
	n, err = n.finish(err, []assign{
		{n.Near, PairNear, NearIPv4 + "/24"},
		{n.Far, PairFar, FarIPv4 + "/24"},
		{n.Near, PairNear, NearIPv6 + "/64"},
		{n.Far, PairFar, FarIPv6 + "/64"},
	})
	if err != nil {
		return nil, err
	}
	return n.finish(n.awaitPath(FarIPv4, FarIPv6), nil)
}

// NewRouted makes na (va, 10.77.1.2) — nr (ra 10.77.1.1, rb 10.77.2.1) — nb (vb,
// 10.77.2.2), likewise fd77:1::/64 and fd77:2::/64, with default routes to the router,
// which forwards: the place where a queue really drops.
func NewRouted(cc string) (*Network, error) {
	n, err := newNetwork(cc, "na", "nr", "nb")
	if err != nil {
		return nil, err
	}
	n.Near, n.Router, n.Far = n.spaces[0], n.spaces[1], n.spaces[2]
	err = errors.Join(
		n.join(n.Near, PairNear, n.Router, RouterNear),
		n.join(n.Router, RouterFar, n.Far, PairFar),
		n.Router.SetSysctl("net.ipv4.ip_forward", "1"),
		n.Router.SetSysctl("net.ipv6.conf.all.forwarding", "1"),
	)
	n, err = n.finish(err, []assign{
		{n.Near, PairNear, RoutedNearIPv4 + "/24"},
		{n.Router, RouterNear, "10.77.1.1/24"},
		{n.Router, RouterFar, "10.77.2.1/24"},
		{n.Far, PairFar, RoutedFarIPv4 + "/24"},
		{n.Near, PairNear, RoutedNearIPv6 + "/64"},
		{n.Router, RouterNear, "fd77:1::1/64"},
		{n.Router, RouterFar, "fd77:2::1/64"},
		{n.Far, PairFar, RoutedFarIPv6 + "/64"},
	})
	if err != nil {
		return nil, err
	}
	err = errors.Join(
		n.Near.AddDefaultRoute("10.77.1.1"), n.Far.AddDefaultRoute("10.77.2.1"),
		n.Near.AddDefaultRoute("fd77:1::1"), n.Far.AddDefaultRoute("fd77:2::1"),
	)
	if err == nil {
		err = n.awaitPath(RoutedFarIPv4, RoutedFarIPv6)
	}
	return n.finish(err, nil)
}

// awaitPath returns when the far end answers at each address: devices are up some time
// after they were switched on, and neighbours have to be found.
func (n *Network) awaitPath(addresses ...string) error {
	for _, a := range addresses {
		err := n.Near.Do(func() error {
			for deadline := time.Now().Add(5 * time.Second); ; {
				// Nothing listens there, so an answer is a refusal.
				c, err := net.DialTimeout("tcp", net.JoinHostPort(a, "9"), 100*time.Millisecond)
				if err == nil {
					return c.Close()
				}
				if errors.Is(err, syscall.ECONNREFUSED) {
					return nil
				}
				if time.Now().After(deadline) {
					return fmt.Errorf("lab: the new path does not carry packets: %w", err)
				}
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// joinIndex is the interface index of a pair's first device. It must differ from its
// peer's, which counts from 2: a veth device whose index equals its peer's is not
// taken for a virtual one (net/core/link_watch.c, linkwatch_urgent_event), and may
// drop packets for a second after it was switched on.
const joinIndex = 100

// join makes a veth pair between two namespaces.
func (n *Network) join(a *Namespace, devA string, b *Namespace, devB string) error {
	err := a.nl.LinkAdd(&netlink.Veth{
		LinkAttrs: netlink.LinkAttrs{Name: devA, Index: joinIndex, TxQLen: -1},
		PeerName:  devB, PeerNamespace: netlink.NsFd(int(b.h)),
	})
	if err != nil {
		return fmt.Errorf("lab: make veth pair %s–%s: %w", devA, devB, err)
	}
	return errors.Join(
		a.askNeighboursOften(devA), b.askNeighboursOften(devB),
		a.SetUp(devA), b.SetUp(devB),
	)
}

// askNeighboursOften keeps a first question for a neighbour's address that gets lost
// while a device comes up from costing a second.
func (ns *Namespace) askNeighboursOften(dev string) error {
	return errors.Join(
		ns.SetSysctl("net.ipv4.neigh."+dev+".retrans_time_ms", "100"),
		ns.SetSysctl("net.ipv6.neigh."+dev+".retrans_time_ms", "100"),
	)
}

// assign is an address to give.
type assign struct {
	ns     *Namespace
	dev    string
	prefix string
}

// finish gives addresses if nothing has failed yet, and closes n if anything has.
func (n *Network) finish(err error, addresses []assign) (*Network, error) {
	for _, a := range addresses {
		if err == nil {
			err = a.ns.AddAddress(a.dev, a.prefix)
		}
	}
	if err != nil {
		return nil, errors.Join(err, n.Close())
	}
	return n, nil
}

// LinkOptions describe an emulated path.
type LinkOptions struct {
	forward.Config
	CC string // congestion control of both ends; required, see Scenario
	// Command is the command line whose process calls LinkMain: see LinkCommand.
	Command []string
}

// Link is the emulated path of a Network.
type Link struct {
	near, far *Namespace    // that have its devices
	rtt       time.Duration // of an empty path
	proc      *forward.Process
	begin     cpuTimes
}

// tunQueue is how many packets a TUN device holds until the link process reads them.
// A sender's burst must fit, as what does not is lost unasked: this is some 25 MB.
const tunQueue = 16384

// NewLink makes two namespaces joined by an emulated link: na with ta (10.77.0.1,
// fd77::1), nb with tb (10.77.0.2, fd77::2).
func NewLink(o LinkOptions) (*Network, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	n, err := newNetwork(o.CC, "na", "nb")
	if err != nil {
		return nil, err
	}
	n.Near, n.Far = n.spaces[0], n.spaces[1]
	n.Link = &Link{near: n.Near, far: n.Far, rtt: o.RTT()}
	return n.finish(n.Link.start(o), []assign{
		{n.Near, LinkNear, NearIPv4 + "/24"},
		{n.Far, LinkFar, FarIPv4 + "/24"},
		{n.Near, LinkNear, NearIPv6 + "/64"},
		{n.Far, LinkFar, FarIPv6 + "/64"},
	})
}

// check finds what is missing or wrong.
func (o LinkOptions) check() error {
	if o.CC == "" {
		return errors.New("lab: an emulated path needs a congestion control, as the system's default may hide loss and queues")
	}
	if len(o.Command) == 0 {
		return errors.New("lab: an emulated path needs the command line of its link process")
	}
	return o.Validate()
}

func (l *Link) start(o LinkOptions) error {
	a, err := l.near.addTUN(LinkNear, o.MTU)
	if err != nil {
		return err
	}
	defer a.close() // the process has its own copies
	b, err := l.far.addTUN(LinkFar, o.MTU)
	if err != nil {
		return err
	}
	defer b.close()
	if l.proc, err = forward.Start(o.Command, a.End, b.End, o.Config); err != nil {
		return err
	}
	l.begin, err = readCPUTimes()
	return err
}

// linkEnd is a TUN device with its tap.
type linkEnd struct{ forward.End }

func (e linkEnd) close() {
	e.Device.Close()
	e.Tap.Close()
}

func (l *Link) stop() error {
	if l.proc == nil {
		return nil
	}
	return l.proc.Stop()
}

// addTUN makes a TUN device that carries bare IP packets and switches it on.
func (ns *Namespace) addTUN(name string, mtu int) (end linkEnd, err error) {
	err = ns.Do(func() (err error) {
		if end.Device, err = openTUN(name); err != nil {
			return err
		}
		if end.Tap, err = forward.OpenTap(name); err != nil {
			return err
		}
		// No link-local address: the device then sends nothing of its own (router
		// solicitations, multicast reports), which would take part in the seeded loss.
		return os.WriteFile("/proc/sys/net/ipv6/conf/"+name+"/addr_gen_mode", []byte("1"), 0)
	})
	if err == nil {
		err = errors.Join(
			ns.device(name, "set queue length", func(l netlink.Link) error { return ns.nl.LinkSetTxQLen(l, tunQueue) }),
			ns.SetMTU(name, mtu),
			ns.SetUp(name),
		)
	}
	if err != nil {
		end.close()
	}
	return end, err
}

// openTUN makes a TUN device in the calling thread's namespace.
func openTUN(name string) (*os.File, error) {
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	switch {
	case err == unix.ENOENT || err == unix.ENODEV || err == unix.ENXIO:
		return nil, fmt.Errorf("lab: /dev/net/tun: %w: the kernel has no TUN devices (try: modprobe tun)", err)
	case err != nil:
		return nil, fmt.Errorf("lab: open /dev/net/tun: %w", err)
	}
	ifr, err := unix.NewIfreq(name)
	if err == nil {
		ifr.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
		err = unix.IoctlIfreq(fd, unix.TUNSETIFF, ifr)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lab: make TUN device %s: %w", name, err), unix.Close(fd))
	}
	return os.NewFile(uintptr(fd), name), nil
}

// Report is what the link did, and whether it was fit.
func (l *Link) Report() (*LinkReport, error) {
	rep, err := l.proc.Report()
	if err != nil {
		return nil, err
	}
	r := &LinkReport{Report: *rep, RTT: l.rtt}
	for i, end := range []struct {
		ns  *Namespace
		dev string
	}{{l.near, LinkNear}, {l.far, LinkFar}} {
		st, err := end.ns.DeviceStats(end.dev)
		if err != nil {
			return nil, err
		}
		r.Unasked[i] += int64(st.TxDropped)   // before the link took it
		r.Unasked[1-i] += int64(st.RxDropped) // after the link wrote it
	}
	for i := range rep.Directions {
		for _, n := range rep.Directions[i].Failed {
			r.Unasked[i] += n
		}
	}
	now, err := readCPUTimes()
	if err != nil {
		return nil, err
	}
	r.Steal = now.stealSince(l.begin)
	return r, nil
}

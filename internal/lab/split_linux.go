package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// The middle of a split path: na – nm –(emulated)– nb. nm forwards packets, but ends each
// TCP connection of na's and opens another one to where it was going, as an accelerator or
// a proxy does that nobody is told of: both ends see each other's addresses. What na sends
// is acknowledged by nm.
const (
	splitPort = 7
	splitMark = 1
	splitRule = 100 // a routing table, and the priority of the rule for it
)

// NewSplit makes na (va, 10.77.1.2) – nm (vm 10.77.1.1, ta 10.77.0.1) –(emulated)– nb (tb,
// 10.77.0.2), likewise fd77:1::/64 and fd77::/64. fullbore is the program whose hidden
// command is the proxy.
func NewSplit(ctx context.Context, o LinkOptions, fullbore string) (*Network, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	n, err := newNetwork(o.CC, "na", "nm", "nb")
	if err != nil {
		return nil, err
	}
	n.Near, n.Router, n.Far = n.spaces[0], n.spaces[1], n.spaces[2]
	n.Link = &Link{near: n.Router, far: n.Far, rtt: o.RTT()}
	err = errors.Join(
		n.join(n.Near, PairNear, n.Router, SplitMid),
		n.Link.start(o),
		n.Router.SetSysctl("net.ipv4.ip_forward", "1"),
		n.Router.SetSysctl("net.ipv6.conf.all.forwarding", "1"),
		// What comes back for the client's address is for us, whichever way it came.
		n.Router.SetSysctl("net.ipv4.conf.all.rp_filter", "0"),
		n.Router.SetSysctl("net.ipv4.conf.default.rp_filter", "0"),
	)
	if n, err = n.finish(err, []assign{
		{n.Near, PairNear, RoutedNearIPv4 + "/24"},
		{n.Router, SplitMid, "10.77.1.1/24"},
		{n.Router, LinkNear, NearIPv4 + "/24"},
		{n.Far, LinkFar, FarIPv4 + "/24"},
		{n.Near, PairNear, RoutedNearIPv6 + "/64"},
		{n.Router, SplitMid, "fd77:1::1/64"},
		{n.Router, LinkNear, NearIPv6 + "/64"},
		{n.Far, LinkFar, FarIPv6 + "/64"},
	}); err != nil {
		return nil, err
	}
	err = errors.Join(
		n.Near.AddDefaultRoute("10.77.1.1"), n.Far.AddDefaultRoute(NearIPv4),
		n.Near.AddDefaultRoute("fd77:1::1"), n.Far.AddDefaultRoute(NearIPv6),
	)
	if err == nil {
		// Only as far as the middle: the link carries nothing but what it is made for.
		err = n.awaitPath("10.77.1.1", "fd77:1::1")
	}
	if err == nil {
		err = n.Router.split(ctx, fullbore)
	}
	return n.finish(err, nil)
}

// split starts the proxy and leads the client's connections to it (kernel document
// networking/tproxy).
func (ns *Namespace) split(ctx context.Context, fullbore string) error {
	for _, family := range []int{unix.AF_INET, unix.AF_INET6} {
		all := &net.IPNet{IP: net.IPv4zero, Mask: net.CIDRMask(0, 32)}
		if family == unix.AF_INET6 {
			all = &net.IPNet{IP: net.IPv6zero, Mask: net.CIDRMask(0, 128)}
		}
		rule := netlink.NewRule()
		rule.Family, rule.Mark, rule.Table, rule.Priority = family, splitMark, splitRule, splitRule
		lo, err := ns.nl.LinkByName("lo")
		if err == nil {
			err = ns.nl.RuleAdd(rule)
		}
		if err == nil {
			err = ns.nl.RouteAdd(&netlink.Route{
				LinkIndex: lo.Attrs().Index, Dst: all, Type: unix.RTN_LOCAL, Scope: netlink.SCOPE_HOST, Table: splitRule, Family: family,
			})
		}
		if err != nil {
			return fmt.Errorf("lab: %s: route to the proxy: %w", ns.Role, err)
		}
	}
	if _, err := ns.serve(ctx, Command{Args: []string{fullbore, "lab", helperProxy, strconv.Itoa(splitPort)}}); err != nil {
		return err
	}
	rules := fmt.Sprintf(`table inet fullbore_split {
	chain pre {
		type filter hook prerouting priority mangle; policy accept;
		meta l4proto tcp socket transparent 1 meta mark set %d accept
		iifname %s ip daddr %s meta l4proto tcp tproxy ip to :%d meta mark set %d accept
		iifname %s ip6 daddr %s meta l4proto tcp tproxy ip6 to :%d meta mark set %d accept
	}
}`, splitMark, SplitMid, FarIPv4, splitPort, splitMark, SplitMid, FarIPv6, splitPort, splitMark)
	if err := ns.NFT(ctx, rules); err != nil {
		if strings.Contains(err.Error(), "No such file or directory") || strings.Contains(err.Error(), "not supported") {
			return cannot("split connections: its kernel lacks nft's tproxy or socket expression: %w", err)
		}
		return err
	}
	return nil
}

// transparent lets a socket have addresses that are not this host's (ip(7)).
func transparent(_, _ string, c syscall.RawConn) error {
	var errs [3]error
	err := c.Control(func(fd uintptr) {
		errs[0] = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEADDR, 1)
		errs[1] = unix.SetsockoptInt(int(fd), unix.SOL_IP, unix.IP_TRANSPARENT, 1)
		if errs[1] == unix.ENOPROTOOPT {
			errs[1] = nil
		}
		if domain, e := unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_DOMAIN); e == nil && domain == unix.AF_INET6 {
			errs[2] = unix.SetsockoptInt(int(fd), unix.SOL_IPV6, unix.IPV6_TRANSPARENT, 1)
		}
	})
	return errors.Join(err, errs[0], errs[1], errs[2])
}

// proxyMain ends connections that are led to it and goes on with others of the same
// addresses. It ends when it is killed.
func proxyMain(port uint16) error {
	lc := net.ListenConfig{Control: transparent}
	lc.SetMultipathTCP(false)
	ln, err := lc.Listen(context.Background(), "tcp", fmt.Sprintf(":%d", port))
	if err != nil {
		return fmt.Errorf("lab: proxy: %w", err)
	}
	for {
		c, err := ln.Accept()
		if err != nil {
			return fmt.Errorf("lab: proxy: %w", err)
		}
		go splice(c.(*net.TCPConn)) // ends with both connections
	}
}

// splice opens the second half of a connection and joins the two.
func splice(near *net.TCPConn) {
	defer near.Close()
	d := net.Dialer{Control: transparent, LocalAddr: near.RemoteAddr(), Timeout: 10 * time.Second}
	d.SetMultipathTCP(false)
	c, err := d.Dial("tcp", near.LocalAddr().String())
	if err != nil {
		// The client is told what we were, as far as a proxy can: its connection is reset.
		_ = near.SetLinger(0)
		fmt.Fprintln(os.Stderr, "lab: proxy:", err)
		return
	}
	far := c.(*net.TCPConn)
	defer far.Close()
	var both sync.WaitGroup
	pump := func(to, from *net.TCPConn) {
		if _, err := io.Copy(to, from); err != nil {
			// One half is broken, so the other one is.
			_ = to.SetLinger(0)
			_ = from.SetLinger(0)
			_ = to.Close()
			_ = from.Close()
			return
		}
		_ = to.CloseWrite()
	}
	both.Go(func() { pump(far, near) })
	both.Go(func() { pump(near, far) })
	both.Wait()
}

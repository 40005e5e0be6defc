package oshost

import (
	"context"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"github.com/fullbore-net/fullbore/result"
)

// kernel answers what is in no file.
type kernel interface {
	route(peer netip.Addr) (string, error) // interface to peer; invalid = default route
	device(name string) (device, error)
	qdiscs(name string) ([]string, error) // root first
	clock() (clockState, error)
	uname() (names, error)
}

// device is what a driver says (ethtool's ioctls). The form of the recorded trees.
type device struct {
	Driver    string             `json:"driver,omitempty"`
	Firmware  string             `json:"firmware,omitempty"`
	MaxMbit   int                `json:"max_mbit,omitempty"` // fastest supported mode; 0 = none reported
	Autoneg   *bool              `json:"autoneg,omitempty"`
	Rings     *Rings             `json:"rings,omitempty"`
	Channels  *Pair              `json:"channels,omitempty"`
	RSSQueues *int               `json:"rss_queues,omitempty"`
	Offloads  map[string]Offload `json:"offloads,omitempty"`
}

// clockState is what adjtimex(2) reports.
type clockState struct {
	Synced   bool    `json:"synced"`
	MaxError float64 `json:"max_error_s"`
	EstError float64 `json:"est_error_s"`
}

// names is uname(2).
type names struct {
	System  string `json:"system"`
	Node    string `json:"node"`
	Release string `json:"release"`
	Version string `json:"version"`
	Machine string `json:"machine"`
}

// collector reads a Linux host: files below a root, and a kernel.
type collector struct {
	tree
	kernel
	missing []string
	deep    bool // the doctor's: spend milliseconds on names and lists
}

func (c *collector) miss(what string, err error) {
	c.missing = append(c.missing, fmt.Sprintf("%s: %v", what, err))
}

// facts fills the record of a test.
func (c *collector) facts(ctx context.Context, peer netip.Addr) *result.Host {
	h := c.host()
	if ctx.Err() != nil {
		return &h
	}
	name, err := c.route(peer)
	if err != nil {
		c.miss("interface", err)
		return &h
	}
	nic := c.nic(name, h.Virtual)
	h.NIC = &nic.NIC
	return &h
}

// host fills what does not depend on the interface.
func (c *collector) host() result.Host {
	h := result.Host{OS: "linux", Clock: c.text("sys/devices/system/clocksource/clocksource0/current_clocksource")}
	if u, err := c.uname(); err != nil {
		c.miss("uname", err)
	} else {
		h.OS = strings.ToLower(u.System)
		h.Name, h.Release = u.Node, u.Release
		h.SystemInfo = strings.Join([]string{u.System, u.Node, u.Release, u.Version, u.Machine}, " ")
	}
	h.Cores = countCPUs(c.text("sys/devices/system/cpu/online"))
	info := c.head("proc/cpuinfo", cpuinfoHead)
	if h.Cores == 0 {
		h.Cores = strings.Count("\n"+string(c.read("proc/cpuinfo")), "\nprocessor")
	}
	h.CPUModel = cpuModel(info, c.text("sys/firmware/devicetree/base/model"))
	h.MHz = c.nominalMHz(info, h.CPUModel)
	if kb, err := strconv.ParseInt(strings.TrimSuffix(keyed(c.read("proc/meminfo"), "MemTotal", ':'), " kB"), 10, 64); err == nil {
		bytes := kb << 10
		h.Memory = &bytes
	}
	h.Virtual = c.virtual(info)
	h.Forwarding = c.flag("proc/sys/net/ipv4/ip_forward")
	return h
}

// brief fills what the advice of a diagnosis needs (Settings): no services, for which all
// processes' names would have to be read.
func (c *collector) brief(ctx context.Context, peer netip.Addr) *Inventory {
	c.deep = true // of the interface: its errors, queueing discipline and interrupts
	inv := &Inventory{Host: c.host()}
	if name, err := c.route(peer); err != nil {
		c.miss("interface", err)
	} else {
		c.nics(ctx, inv, name)
	}
	inv.TCP, inv.CPU, inv.Quota, inv.Conntrack = c.tcp(), c.cpu(), c.quota(), c.conntrack()
	inv.Missing = c.missing
	return inv
}

// inventory fills everything.
func (c *collector) inventory(ctx context.Context, peer netip.Addr) *Inventory {
	c.deep = true
	inv := &Inventory{Host: c.host()}
	if peer.IsValid() {
		inv.Peer = peer.String()
	}
	if name, err := c.route(peer); err != nil {
		c.miss("interface", err)
	} else {
		c.nics(ctx, inv, name)
	}
	services := c.services()
	inv.TCP = c.tcp()
	inv.CPU = c.cpu()
	inv.Quota = c.quota()
	inv.Clock = c.clockFacts(services)
	inv.Files = c.files()
	inv.Conntrack = c.conntrack()
	inv.Firewall = c.firewall(services)
	inv.Services = services
	if ctx.Err() != nil {
		c.miss("inventory", context.Cause(ctx))
	}
	inv.Missing = c.missing
	return inv
}

// nics walks from the interface packets leave by down to the hardware.
func (c *collector) nics(ctx context.Context, inv *Inventory, name string) {
	todo := []string{name}
	seen := map[string]bool{}
	for len(todo) > 0 && ctx.Err() == nil {
		name, todo = todo[0], todo[1:]
		if seen[name] {
			continue
		}
		seen[name] = true
		n := c.nic(name, inv.Host.Virtual)
		inv.NICs = append(inv.NICs, n)
		todo = append(todo, n.Lower...)
	}
	if len(inv.NICs) > 0 {
		nic := inv.NICs[0].NIC
		inv.Host.NIC = &nic
	}
}

// defaultInterface finds the interface of the default route with the least metric, from
// /proc/net/route and /proc/net/ipv6_route; "" when there is none.
func (t tree) defaultInterface() string {
	best, name := int64(-1), ""
	for line := range strings.Lines(string(t.read("proc/net/route"))) {
		f := strings.Fields(line)
		if len(f) < 8 || f[1] != "00000000" || f[7] != "00000000" {
			continue
		}
		if m, err := strconv.ParseInt(f[6], 10, 64); err == nil && (best < 0 || m < best) {
			best, name = m, f[0]
		}
	}
	if name != "" {
		return name
	}
	zero := strings.Repeat("0", 32)
	for line := range strings.Lines(string(t.read("proc/net/ipv6_route"))) {
		f := strings.Fields(line)
		if len(f) < 10 || f[0] != zero || f[1] != "00" || f[9] == "lo" {
			continue
		}
		if m, err := strconv.ParseInt(f[5], 16, 64); err == nil && (best < 0 || m < best) {
			best, name = m, f[9]
		}
	}
	return name
}

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// network is two namespaces joined by a veth pair, or one with its loopback.
type network struct {
	name           string // "lo" or "veth"
	client, server string // namespaces
	host           string // the server's address
	dev            string // the server's interface
}

func splitNets(s string) []string { return strings.Split(s, ",") }

// newNetwork makes it. Congestion control is fixed by route, as the default of a
// machine may pace, which would be measured instead.
func newNetwork(name string) (*network, error) {
	id := fmt.Sprintf("bench%d", os.Getpid())
	switch name {
	case "lo":
		n := &network{name: name, client: id, server: id, host: "127.0.0.1", dev: "lo"}
		return n, n.ip(
			"netns add "+id,
			"-n "+id+" link set lo up",
			"-n "+id+" route replace local 127.0.0.0/8 dev lo table local proto kernel scope host src 127.0.0.1 congctl cubic",
			"-n "+id+" route replace local 127.0.0.1 dev lo table local proto kernel scope host src 127.0.0.1 congctl cubic",
		)
	case "veth":
		c, s := id+"c", id+"s"
		n := &network{name: name, client: c, server: s, host: "10.99.0.2", dev: "vb"}
		return n, n.ip(
			"netns add "+c, "netns add "+s,
			"link add va netns "+c+" type veth peer name vb netns "+s,
			"-n "+c+" addr add 10.99.0.1/24 dev va", "-n "+s+" addr add 10.99.0.2/24 dev vb",
			"-n "+c+" link set lo up", "-n "+s+" link set lo up",
			"-n "+c+" link set va up", "-n "+s+" link set vb up",
			"-n "+c+" route replace 10.99.0.0/24 dev va src 10.99.0.1 congctl cubic",
			"-n "+s+" route replace 10.99.0.0/24 dev vb src 10.99.0.2 congctl cubic",
		)
	}
	return nil, fmt.Errorf("no network %q: lo or veth", name)
}

func (n *network) ip(lines ...string) error {
	for _, l := range lines {
		out, err := exec.Command("ip", strings.Fields(l)...).CombinedOutput()
		if err != nil {
			return errors.Join(fmt.Errorf("ip %s: %w: %s", l, err, out), n.close())
		}
	}
	return nil
}

func (n *network) close() error {
	var errs []error
	for _, ns := range []string{n.client, n.server} {
		if _, err := os.Stat("/run/netns/" + ns); err == nil {
			if out, err := exec.Command("ip", "netns", "del", ns).CombinedOutput(); err != nil {
				errs = append(errs, fmt.Errorf("ip netns del %s: %w: %s", ns, err, out))
			}
		}
	}
	return errors.Join(errs...)
}

// What every packet carries beside payload: Ethernet (loopback has the same 14 bytes) and
// IPv4 with TCP and time stamps, or with UDP. A super-packet that was not cut counts as one.
const (
	frame    = 14 + 20 + 20 + 12
	frameUDP = 14 + 20 + 8
)

// counters are the kernel's, of the server's namespace.
type counters struct {
	bytes, packets int64 // in on the interface, with frames
	// UDP messages that a program read, and that none did: the socket was full or gone. A
	// message is a datagram, or a super-packet if the socket takes those.
	read, unread int64
}

func (c counters) since(b counters) counters {
	return counters{c.bytes - b.bytes, c.packets - b.packets, c.read - b.read, c.unread - b.unread}
}

// count takes over what arrived. What a UDP program read of it is known in messages: all
// data messages of a run are of one length.
func (r *outcome) count(c counters, l load) {
	if !l.udp {
		r.bytes = c.bytes - frame*c.packets
		return
	}
	arrived := c.bytes - frameUDP*c.packets
	if c.read+c.unread > 0 {
		r.dropped = float64(c.unread) / float64(c.read+c.unread)
	}
	r.bytes = int64(float64(arrived) * (1 - r.dropped))
	if l.size > 0 && c.packets > 0 {
		r.perPacket = float64(arrived) / float64(c.packets) / float64(l.size)
	}
}

// received reads the counters.
func (n *network) received() (c counters, err error) {
	var dev, snmp []byte
	err = inside(n.server, func() (err error) {
		if dev, err = os.ReadFile("/proc/thread-self/net/dev"); err != nil {
			return err
		}
		snmp, err = os.ReadFile("/proc/thread-self/net/snmp")
		return err
	})
	if err != nil {
		return c, err
	}
	if c.bytes, c.packets, err = interfaceCounters(dev, n.dev); err != nil {
		return c, err
	}
	c.read, c.unread, err = udpCounters(snmp)
	return c, err
}

// interfaceCounters reads /proc/net/dev.
func interfaceCounters(text []byte, dev string) (bytes, packets int64, err error) {
	for line := range strings.Lines(string(text)) {
		name, rest, ok := strings.Cut(strings.TrimSpace(line), ":")
		if !ok || name != dev {
			continue
		}
		f := strings.Fields(rest)
		if bytes, err = strconv.ParseInt(f[0], 10, 64); err != nil {
			return 0, 0, err
		}
		packets, err = strconv.ParseInt(f[1], 10, 64)
		return bytes, packets, err
	}
	return 0, 0, fmt.Errorf("no interface %s", dev)
}

// udpCounters reads the two Udp lines of /proc/net/snmp: names, then values.
func udpCounters(text []byte) (read, unread int64, err error) {
	var names []string
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		if len(f) == 0 || f[0] != "Udp:" {
			continue
		}
		if names == nil {
			names = f
			continue
		}
		for i, name := range names[:min(len(names), len(f))] {
			into := map[string]*int64{"InDatagrams": &read, "InErrors": &unread, "NoPorts": &unread}[name]
			if into == nil {
				continue
			}
			v, err := strconv.ParseInt(f[i], 10, 64)
			if err != nil {
				return 0, 0, err
			}
			*into += v
		}
		return read, unread, nil
	}
	return 0, 0, errors.New("no UDP counters")
}

// listening reports whether something in the server's namespace listens on the port.
func (n *network) listening(port int, udp bool) bool {
	want, found := fmt.Sprintf(":%04X", port), false
	files, state := []string{"tcp", "tcp6"}, "0A"
	if udp {
		files, state = []string{"udp", "udp6"}, "07"
	}
	_ = inside(n.server, func() error {
		for _, f := range files {
			data, err := os.ReadFile("/proc/thread-self/net/" + f)
			if err != nil {
				return err
			}
			for line := range strings.Lines(string(data)) {
				w := strings.Fields(line)
				found = found || len(w) > 3 && strings.HasSuffix(w[1], want) && w[3] == state
			}
		}
		return nil
	})
	return found
}

// inside runs f on a thread of the namespace.
func inside(ns string, f func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // not unlocked: the changed thread ends with this goroutine
		done <- func() error {
			file, err := os.Open("/run/netns/" + ns)
			if err != nil {
				return err
			}
			defer file.Close()
			if err := unix.Setns(int(file.Fd()), unix.CLONE_NEWNET); err != nil {
				return os.NewSyscallError("setns", err)
			}
			return f()
		}()
	}()
	return <-done
}

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

// frame is what every packet carries beside payload: Ethernet (loopback has the same
// 14 bytes), IPv4, TCP with timestamps. A super-packet that was not cut counts as one.
const frame = 14 + 20 + 20 + 12

// received reads the payload that came in on the server's interface so far.
func (n *network) received() (int64, error) {
	var data []byte
	err := inside(n.server, func() (err error) {
		data, err = os.ReadFile("/proc/thread-self/net/dev")
		return err
	})
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(data)) {
		dev, rest, ok := strings.Cut(strings.TrimSpace(line), ":")
		if !ok || dev != n.dev {
			continue
		}
		f := strings.Fields(rest)
		bytes, err := strconv.ParseInt(f[0], 10, 64)
		if err != nil {
			return 0, err
		}
		packets, err := strconv.ParseInt(f[1], 10, 64)
		if err != nil {
			return 0, err
		}
		return bytes - frame*packets, nil
	}
	return 0, fmt.Errorf("no interface %s", n.dev)
}

// listening reports whether something in the server's namespace listens on the port.
func (n *network) listening(port int) bool {
	want, found := fmt.Sprintf(":%04X", port), false
	_ = inside(n.server, func() error {
		for _, f := range []string{"tcp", "tcp6"} {
			data, err := os.ReadFile("/proc/thread-self/net/" + f)
			if err != nil {
				return err
			}
			for line := range strings.Lines(string(data)) {
				w := strings.Fields(line)
				found = found || len(w) > 3 && strings.HasSuffix(w[1], want) && w[3] == "0A"
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

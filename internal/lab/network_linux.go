package lab

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/fullbore-net/fullbore/internal/lab/thread"
)

// namePrefix starts the name of each namespace that a lab makes; the pid of the
// process that made it follows.
const namePrefix = "fullbore-lab-"

// ownName takes such a name apart. The pid says whether anybody still wants it.
var ownName = regexp.MustCompile(`^` + namePrefix + `(\d+)-[0-9a-f]+-[a-z]+$`)

// Network is a set of namespaces and what joins them. Close removes all of it. What
// a killed process left behind is removed by the next one that makes a Network.
type Network struct {
	// Near and Far are the ends: by convention the client's and the server's. Router is
	// nil but in a routed topology. They are called na, nb and nr.
	Near, Far, Router *Namespace
	// Link is the emulated path, nil in the other topologies.
	Link *Link

	id     string
	mu     sync.Mutex // guards closed and spaces
	spaces []*Namespace
	closed bool
}

// Namespace is one network namespace of a Network.
type Namespace struct {
	// Name is the full name, as `ip netns` shows it.
	Name string
	// Role is its short name: "na", "nb", "nr".
	Role string

	h     netns.NsHandle
	nl    *netlink.Handle
	cc    string   // congestion control of every route; "" leaves the system's
	hosts []string // lines of /etc/hosts for processes started here
	group *cgroup  // of processes started here from now on; nil: the lab's own
}

// Check reports whether this process can make namespaces, and what to do if not.
func Check() error {
	if os.Geteuid() != 0 {
		return errors.New("lab: emulated paths are made of network namespaces, which only root can make: run it again with sudo")
	}
	failed := make(chan error)
	thread.Doomed(func() { failed <- unix.Unshare(unix.CLONE_NEWNET | unix.CLONE_NEWNS) })
	if err := <-failed; err != nil {
		return fmt.Errorf("lab: make a network namespace: %w: this needs CAP_SYS_ADMIN and CAP_NET_ADMIN, which a container has only when it is given them (docker run --privileged)", err)
	}
	return nil
}

// newNetwork makes one namespace per role, each with its loopback up and the given
// congestion control ("" leaves the system's).
func newNetwork(cc string, roles ...string) (*Network, error) {
	if err := Check(); err != nil {
		return nil, err
	}
	if err := removeStale(); err != nil {
		return nil, err
	}
	var id [3]byte
	_, _ = rand.Read(id[:]) // never fails (crypto/rand)
	n := &Network{id: hex.EncodeToString(id[:])}
	for _, role := range roles {
		ns, err := n.addNamespace(role)
		if err == nil && cc != "" {
			err = ns.setCongestionControl(cc)
		}
		if err != nil {
			return nil, errors.Join(err, n.Close())
		}
	}
	return n, nil
}

func (n *Network) addNamespace(role string) (*Namespace, error) {
	ns := &Namespace{Name: fmt.Sprintf("%s%d-%s-%s", namePrefix, os.Getpid(), n.id, role), Role: role}
	home, err := netns.Get()
	if err != nil {
		return nil, fmt.Errorf("lab: read the namespace: %w", err)
	}
	defer home.Close()
	err = inNamespace(home, func() error {
		h, err := netns.NewNamed(ns.Name) // enters it; inNamespace leads back
		if err != nil {
			return fmt.Errorf("lab: make namespace %s: %w", ns.Name, err)
		}
		ns.h = h
		return nil
	})
	if err != nil {
		return nil, err
	}
	n.spaces = append(n.spaces, ns) // from here on Close removes it
	if ns.nl, err = netlink.NewHandleAt(ns.h, unix.NETLINK_ROUTE); err != nil {
		return nil, fmt.Errorf("lab: %s: open netlink: %w", role, err)
	}
	// Addresses, link-local ones too, can be used at once: nobody else is on these links.
	if err := ns.SetSysctl("net.ipv6.conf.default.accept_dad", "0"); err != nil {
		return nil, err
	}
	return ns, ns.SetUp("lo")
}

// Close ends the link process, kills every process that still runs in one of the
// namespaces, and removes them. It may be called more than once.
func (n *Network) Close() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return nil
	}
	n.closed = true
	var errs []error
	inodes := map[uint64]bool{}
	for _, ns := range n.spaces {
		if ino, err := inode(filepath.Join("/run/netns", ns.Name)); err == nil {
			inodes[ino] = true
		}
	}
	errs = append(errs, killIn(inodes))
	if n.Link != nil {
		errs = append(errs, n.Link.stop())
	}
	for _, ns := range n.spaces {
		if ns.nl != nil {
			ns.nl.Close()
		}
		if ns.group != nil {
			errs = append(errs, ns.group.remove())
		}
		errs = append(errs, netns.DeleteNamed(ns.Name), ns.h.Close())
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("lab: clean up: %w", err)
	}
	return nil
}

// removeStale removes the namespaces of labs whose process is gone.
func removeStale() error {
	entries, err := os.ReadDir("/run/netns")
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("lab: look for stale namespaces: %w", err)
	}
	for _, e := range entries {
		m := ownName.FindStringSubmatch(e.Name())
		if m == nil {
			continue
		}
		if _, err := os.Stat("/proc/" + m[1]); !errors.Is(err, os.ErrNotExist) {
			continue
		}
		path := filepath.Join("/run/netns", e.Name())
		if ino, err := inode(path); err == nil {
			if err := killIn(map[uint64]bool{ino: true}); err != nil {
				return err
			}
		}
		// Another lab may be removing the same one, or its maker died before the mount.
		if err := unix.Unmount(path, unix.MNT_DETACH); err != nil && err != unix.EINVAL && err != unix.ENOENT {
			return fmt.Errorf("lab: remove stale namespace %s: %w", e.Name(), err)
		}
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("lab: remove stale namespace: %w", err)
		}
	}
	return nil
}

func inode(path string) (uint64, error) {
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return 0, &os.PathError{Op: "stat", Path: path, Err: err}
	}
	return st.Ino, nil
}

// killIn kills every process whose network namespace is one of inodes, and waits
// until they are gone: a namespace lives on as long as anybody is in it. A daemon
// that a test started has left its parent, so it is found by where it runs.
func killIn(inodes map[uint64]bool) error {
	if len(inodes) == 0 {
		return nil
	}
	for deadline := time.Now().Add(5 * time.Second); ; {
		pids, err := processesIn(inodes)
		if err != nil || len(pids) == 0 {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("lab: processes %v do not end", pids)
		}
		for _, pid := range pids {
			_ = unix.Kill(pid, unix.SIGKILL) // it may have ended meanwhile
		}
		time.Sleep(2 * time.Millisecond)
	}
}

func processesIn(inodes map[uint64]bool) ([]int, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, fmt.Errorf("lab: list processes: %w", err)
	}
	var pids []int
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		target, err := os.Readlink("/proc/" + e.Name() + "/ns/net")
		if err != nil { // gone, or a zombie
			continue
		}
		digits, ok := strings.CutPrefix(strings.TrimSuffix(target, "]"), "net:[")
		if ino, err := strconv.ParseUint(digits, 10, 64); ok && err == nil && inodes[ino] {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}

// Do runs f on a thread that is in the namespace: sockets it opens and files under
// /proc/sys/net and /proc/thread-self/net it reads are the namespace's. f must not
// rely on other goroutines (net.Dial of a name resolves in one).
func (ns *Namespace) Do(f func() error) error {
	if err := inNamespace(ns.h, f); err != nil {
		return fmt.Errorf("%s: %w", ns.Role, err)
	}
	return nil
}

// SetHosts gives processes started here from now on these lines as their /etc/hosts.
func (ns *Namespace) SetHosts(lines ...string) { ns.hosts = lines }

// SetSysctl sets a kernel parameter of this namespace: name is as sysctl(8) has it,
// net.ipv4.tcp_rmem. The new value is read back, as the kernel clamps some silently. One
// that only the whole machine has and that differs (net.core.rmem_max) is a CannotError.
func (ns *Namespace) SetSysctl(name, value string) error {
	path := sysctlPath(name)
	return ns.Do(func() error {
		words := strings.Join(strings.Fields(value), " ")
		if got, err := os.ReadFile(path); err == nil && strings.Join(strings.Fields(string(got)), " ") == words {
			return nil
		}
		err := os.WriteFile(path, []byte(value), 0)
		if errors.Is(err, os.ErrPermission) || errors.Is(err, unix.EROFS) {
			return cannot("set sysctl %s to %q: it belongs to the whole machine: %w", name, value, err)
		}
		if err != nil {
			return fmt.Errorf("set sysctl %s to %q: %w", name, value, err)
		}
		got, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("read sysctl %s: %w", name, err)
		}
		if got := strings.Join(strings.Fields(string(got)), " "); words != got {
			return fmt.Errorf("set sysctl %s to %q: the kernel made it %q", name, value, got)
		}
		return nil
	})
}

// Sysctl reads a kernel parameter of this namespace, its words separated by blanks.
func (ns *Namespace) Sysctl(name string) (value string, err error) {
	err = ns.Do(func() error {
		b, err := os.ReadFile(sysctlPath(name))
		value = strings.Join(strings.Fields(string(b)), " ")
		return err
	})
	return value, err
}

// sysctlPath maps a dotted name to its file; a name with slashes may contain dots
// (sysctl(8)).
func sysctlPath(name string) string {
	if !strings.Contains(name, "/") {
		name = strings.ReplaceAll(name, ".", "/")
	}
	return filepath.Join("/proc/sys", name)
}

// setCongestionControl makes cc what TCP uses on the way to others, now and on devices
// that are switched on later.
//
// It is set on the routes (ip-route(8), congctl) and not by the namespace's sysctl:
// the kernel lets a namespace choose only among the algorithms that the whole machine
// allows to the unprivileged (tcp_set_default_congestion_control, EPERM), and the
// machine's settings are not ours to change. A socket that asks for another algorithm
// still gets it.
func (ns *Namespace) setCongestionControl(cc string) error {
	available, err := ns.Sysctl("net.ipv4.tcp_available_congestion_control")
	if err != nil {
		return err
	}
	if !slices.Contains(strings.Fields(available), cc) {
		return cannot("use congestion control %q, which is not available here; there are: %s", cc, available)
	}
	ns.cc = cc
	return ns.applyCongestionControl()
}

// applyCongestionControl puts the congestion control on all routes that there are.
func (ns *Namespace) applyCongestionControl() error {
	if ns.cc == "" {
		return nil
	}
	for _, family := range []int{netlink.FAMILY_V4, netlink.FAMILY_V6} {
		routes, err := ns.nl.RouteList(nil, family)
		if err != nil {
			return fmt.Errorf("lab: %s: list routes: %w", ns.Role, err)
		}
		for _, r := range routes {
			if r.Congctl == ns.cc || r.Table != unix.RT_TABLE_MAIN {
				continue
			}
			r.Congctl = ns.cc
			if err := ns.nl.RouteReplace(&r); err != nil {
				return fmt.Errorf("lab: %s: set congestion control of route %v: %w", ns.Role, r, err)
			}
		}
	}
	return nil
}

package lab

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// cgroup is a control group of ours that limits how much processor time the programs in
// it get (cgroups(7)): of version 1 or 2, whichever has the machine's cpu controller.
type cgroup struct {
	dir string
	v2  bool
	// enabled says that we switched the cpu controller on for the hierarchy's children.
	enabled bool
}

// quotaPeriod is the kernel's default: the time over which the quota counts.
const quotaPeriod = 100 * time.Millisecond

// ownGroup takes the name of a group of ours apart, as ownName does that of a namespace.
var ownGroup = regexp.MustCompile(`^` + namePrefix + `(\d+)-[0-9a-f]+-[a-z]+$`)

// newCgroup makes a group under root, which is /sys/fs/cgroup, with share processors'
// worth of time. A machine that has no such groups, or lets us make none, cannot.
func newCgroup(root, name string, share float64) (*cgroup, error) {
	quota := strconv.FormatInt(int64(share*float64(quotaPeriod/time.Microsecond)), 10)
	period := strconv.FormatInt(int64(quotaPeriod/time.Microsecond), 10)
	g := &cgroup{}
	switch v1 := filepath.Join(root, "cpu"); {
	case exists(filepath.Join(v1, "cpu.cfs_quota_us")):
		g.dir = filepath.Join(v1, name)
	case hasWord(filepath.Join(root, "cgroup.controllers"), "cpu"):
		g.dir, g.v2 = filepath.Join(root, name), true
		control := filepath.Join(root, "cgroup.subtree_control")
		if !hasWord(control, "cpu") {
			if err := os.WriteFile(control, []byte("+cpu"), 0); err != nil {
				return nil, cannot("limit processor time: %w", err)
			}
			g.enabled = true
		}
	default:
		return nil, cannot("limit processor time: %s has no cpu controller with quotas", root)
	}
	if err := removeStaleGroups(filepath.Dir(g.dir)); err != nil {
		return nil, err
	}
	if err := os.Mkdir(g.dir, 0o755); err != nil {
		return nil, cannot("limit processor time: %w", err)
	}
	var err error
	if g.v2 {
		err = g.write("cpu.max", quota+" "+period)
	} else {
		err = errors.Join(g.write("cpu.cfs_period_us", period), g.write("cpu.cfs_quota_us", quota))
	}
	if err != nil {
		return nil, errors.Join(err, g.remove())
	}
	return g, nil
}

func (g *cgroup) write(file, value string) error {
	if err := os.WriteFile(filepath.Join(g.dir, file), []byte(value), 0o644); err != nil {
		return cannot("limit processor time: %w", err)
	}
	return nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func hasWord(file, word string) bool {
	b, err := os.ReadFile(file)
	if err != nil {
		return false
	}
	for _, w := range strings.Fields(string(b)) {
		if w == word {
			return true
		}
	}
	return false
}

// removeStaleGroups removes the groups of labs whose process is gone, as removeStale does
// namespaces. One in which somebody still runs stays.
func removeStaleGroups(parent string) error {
	entries, err := os.ReadDir(parent)
	if err != nil {
		return fmt.Errorf("lab: look for stale control groups: %w", err)
	}
	for _, e := range entries {
		if m := ownGroup.FindStringSubmatch(e.Name()); m != nil && !exists("/proc/"+m[1]) {
			_ = unix.Rmdir(filepath.Join(parent, e.Name()))
		}
	}
	return nil
}

// remove removes the group; its programs have been killed.
func (g *cgroup) remove() error {
	var err error
	for deadline := time.Now().Add(2 * time.Second); ; {
		// A killed program leaves it a moment after it has become a zombie.
		if err = unix.Rmdir(g.dir); err != unix.EBUSY || time.Now().After(deadline) {
			break
		}
		time.Sleep(2 * time.Millisecond)
	}
	if err != nil && err != unix.ENOENT {
		err = fmt.Errorf("lab: remove control group %s: %w", g.dir, err)
	} else {
		err = nil
	}
	if g.enabled {
		g.enabled = false
		if e := os.WriteFile(filepath.Join(filepath.Dir(g.dir), "cgroup.subtree_control"), []byte("-cpu"), 0); e != nil {
			err = errors.Join(err, fmt.Errorf("lab: switch the cpu controller off again: %w", e))
		}
	}
	return err
}

// join puts the calling thread, and so what it starts, into a group of version 1, where
// threads have groups of their own.
func (g *cgroup) join() error {
	return os.WriteFile(filepath.Join(g.dir, "tasks"), []byte("0"), 0)
}

// open opens a group of version 2, into which a process can be started (clone3(2),
// CLONE_INTO_CGROUP).
func (g *cgroup) open() (*os.File, error) { return os.Open(g.dir) }

func (g *cgroup) stats() (ThrottleStats, error) {
	b, err := os.ReadFile(filepath.Join(g.dir, "cpu.stat"))
	if err != nil {
		return ThrottleStats{}, fmt.Errorf("lab: read control group: %w", err)
	}
	return parseThrottle(string(b))
}

// parseThrottle reads cpu.stat of either version (kernel documents
// scheduler/sched-bwc, admin-guide/cgroup-v2).
func parseThrottle(text string) (s ThrottleStats, err error) {
	all := map[string]int64{}
	if err := parsePairs(text, all); err != nil {
		return s, fmt.Errorf("lab: cpu.stat: %w", err)
	}
	s.Periods, s.Throttled = all["nr_periods"], all["nr_throttled"]
	s.ThrottledTime = time.Duration(all["throttled_time"])
	if us, ok := all["throttled_usec"]; ok {
		s.ThrottledTime = time.Duration(us) * time.Microsecond
	}
	if _, ok := all["nr_throttled"]; !ok {
		return s, errors.New("lab: cpu.stat says nothing about throttling")
	}
	return s, nil
}

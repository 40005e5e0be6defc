package lab

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// tree makes files with their contents.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		p := filepath.Join(root, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(p), 0o755), os.WriteFile(p, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// TestCgroup: of both versions the right files get the right words. A machine has one
// of them, so the other one is only a folder here; TestQuota is about the real one.
func TestCgroup(t *testing.T) {
	read := func(name string) string {
		t.Helper()
		b, err := os.ReadFile(name)
		if err != nil {
			t.Error(err)
		}
		return string(b)
	}
	for _, tt := range []struct {
		name  string
		files map[string]string
		dir   string
		want  map[string]string
	}{
		{"1", map[string]string{"cpu/cpu.cfs_quota_us": "-1"}, "cpu/g", map[string]string{"cpu.cfs_quota_us": "25000", "cpu.cfs_period_us": "100000"}},
		{"2", map[string]string{"cgroup.controllers": "cpuset cpu io", "cgroup.subtree_control": "cpu"}, "g", map[string]string{"cpu.max": "25000 100000", "../cgroup.subtree_control": "cpu"}},
		{"2, switched on", map[string]string{"cgroup.controllers": "cpu", "cgroup.subtree_control": ""}, "g", map[string]string{"cpu.max": "25000 100000", "../cgroup.subtree_control": "+cpu"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			root := tree(t, tt.files)
			g, err := newCgroup(root, "g", 0.25)
			if err != nil {
				t.Fatal(err)
			}
			for name, want := range tt.want {
				if got := read(filepath.Join(root, tt.dir, name)); got != want {
					t.Errorf("%s: %q, want %q", name, got, want)
				}
			}
			// The kernel's own files do not keep a folder from being removed; these do.
			for name := range tt.want {
				if !strings.HasPrefix(name, "..") {
					if err := os.Remove(filepath.Join(g.dir, name)); err != nil {
						t.Error(err)
					}
				}
			}
			if err := g.remove(); err != nil {
				t.Error(err)
			}
			if exists(filepath.Join(root, tt.dir)) {
				t.Error("the group is still there")
			}
			if tt.want["../cgroup.subtree_control"] == "+cpu" && read(filepath.Join(root, "cgroup.subtree_control")) != "-cpu" {
				t.Error("the controller is still on")
			}
		})
	}
	var c *CannotError
	if _, err := newCgroup(tree(t, map[string]string{"cgroup.controllers": "memory"}), "g", 1); !errors.As(err, &c) {
		t.Errorf("a machine without quotas: %v", err)
	}
	// What a killed lab left is removed; what is not ours stays.
	root := tree(t, map[string]string{"cpu/cpu.cfs_quota_us": "", "cpu/fullbore-lab-x/f": ""})
	stale := filepath.Join(root, "cpu", "fullbore-lab-999999999-0a-na")
	if err := os.Mkdir(stale, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := newCgroup(root, "g", 1); err != nil || exists(stale) || !exists(filepath.Join(root, "cpu", "fullbore-lab-x")) {
		t.Errorf("%v, stale %v", err, exists(stale))
	}
}

func TestParseThrottle(t *testing.T) {
	for text, want := range map[string]ThrottleStats{
		"nr_periods 12\nnr_throttled 7\nthrottled_time 90000000\nnr_bursts 0\n":            {12, 7, 90 * time.Millisecond},
		"usage_usec 5\nnr_periods 12\nnr_throttled 7\nthrottled_usec 90000\nnr_bursts 0\n": {12, 7, 90 * time.Millisecond},
	} {
		if got, err := parseThrottle(text); got != want || err != nil {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
	for _, bad := range []string{"", "nr_periods x\n", "usage_usec 5\n"} {
		if _, err := parseThrottle(bad); err == nil {
			t.Errorf("accepted %q", bad)
		}
	}
}

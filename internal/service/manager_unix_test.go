//go:build unix

package service

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestReady(t *testing.T) {
	if err := Ready(t.Context(), ""); err != nil {
		t.Error(err)
	}
	path := filepath.Join(t.TempDir(), "notify")
	c, err := net.ListenPacket("unixgram", path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close() //nolint:errcheck // a test's
	if err := Ready(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 100)
	n, _, err := c.ReadFrom(b)
	if err != nil || string(b[:n]) != "READY=1" {
		t.Errorf("%q %v", b[:n], err)
	}
	if err := Ready(t.Context(), path+".none"); err == nil {
		t.Error("a socket that is not there takes it")
	}
}

// recorder is a manager that only notes what it is told.
type recorder struct {
	ran  []string
	fail string // the command that fails
}

func (r *recorder) manager(root string) Manager {
	return Manager{Root: root, Privileged: true, Run: func(_ context.Context, args ...string) error {
		line := strings.Join(args, " ")
		r.ran = append(r.ran, line)
		if line == r.fail {
			return errors.New("exit status 1")
		}
		return nil
	}}
}

// booted is a root where systemd runs.
func booted(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	if err := os.MkdirAll(filepath.Join(root, "run/systemd/system"), 0o755); err != nil {
		t.Fatal(err)
	}
	return root
}

func TestSystemdInstall(t *testing.T) {
	root, r := booted(t), &recorder{}
	m := r.manager(root)
	for i := range 2 {
		done, err := m.systemdInstall(t.Context(), plain)
		if err != nil || len(done) != 3 || strings.HasSuffix(done[0], "anew") != (i == 1) {
			t.Fatalf("%q %v", done, err)
		}
	}
	unitText, err := os.ReadFile(filepath.Join(root, unitFile))
	if err != nil || string(unitText) != unit(plain) {
		t.Errorf("%s %v", unitText, err)
	}
	install := []string{"systemctl daemon-reload", "systemctl enable fullbore", "systemctl restart fullbore"}
	if diff := cmp.Diff(append(install[:3:3], install...), r.ran); diff != "" {
		t.Error(diff)
	}
	r.ran = nil
	for i := range 2 {
		done, err := m.systemdUninstall(t.Context())
		if err != nil || (i == 1) != strings.Contains(strings.Join(done, ";"), "nothing to remove") {
			t.Errorf("%q %v", done, err)
		}
	}
	if _, err := os.Stat(filepath.Join(root, unitFile)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the unit is still there: %v", err)
	}
	if diff := cmp.Diff([]string{"systemctl disable --now fullbore", "systemctl daemon-reload"}, r.ran); diff != "" {
		t.Error(diff)
	}
}

func TestSystemdRefusals(t *testing.T) {
	r := &recorder{}
	unprivileged := r.manager(booted(t))
	unprivileged.Privileged = false
	if _, err := unprivileged.systemdInstall(t.Context(), plain); !errors.Is(err, ErrPrint) {
		t.Errorf("without root: %v", err)
	}
	if _, err := r.manager(t.TempDir()).systemdInstall(t.Context(), plain); !errors.Is(err, ErrPrint) {
		t.Errorf("without systemd: %v", err)
	}
	for _, dir := range []string{"root", "home/me/bin", "tmp"} {
		s := plain
		s.Program = "/" + dir + "/fullbore"
		var where *LocationError
		if _, err := r.manager(booted(t)).systemdInstall(t.Context(), s); !errors.As(err, &where) {
			t.Errorf("%s: %v", s.Program, err)
		}
	}
	if len(r.ran) > 0 {
		t.Errorf("ran %q", r.ran)
	}
	r.fail = "systemctl restart fullbore"
	if done, err := r.manager(booted(t)).systemdInstall(t.Context(), plain); err == nil || len(done) != 2 {
		t.Errorf("a start that fails: %q %v", done, err)
	}
	root := booted(t)
	if _, err := (&recorder{}).manager(root).systemdInstall(t.Context(), plain); err != nil {
		t.Fatal(err)
	}
	m := r.manager(root)
	m.Privileged = false
	if _, err := m.systemdUninstall(t.Context()); !errors.Is(err, os.ErrPermission) {
		t.Errorf("removing without root: %v", err)
	}
}

// TestLaunchd: its file is printed, nothing is touched.
func TestLaunchd(t *testing.T) {
	r := &recorder{}
	m := r.manager(t.TempDir())
	_, err := m.launchdInstall(t.Context(), plain)
	_, err2 := m.launchdUninstall(t.Context())
	if !errors.Is(err, ErrPrint) || !errors.Is(err2, ErrPrint) || !strings.Contains(err2.Error(), "launchctl bootout") || len(r.ran) > 0 {
		t.Errorf("%v, %v, ran %q", err, err2, r.ran)
	}
}

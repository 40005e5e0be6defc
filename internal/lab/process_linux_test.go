package lab_test

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fullbore-net/fullbore/internal/lab"
)

// signalled: a program's output can be read while it runs; signals reach it.
func signalled(t *testing.T, n *lab.Network, s os.Signal) {
	t.Helper()
	p, err := n.Far.Start(lab.Command{
		Args: []string{"sh", "-c", `trap 'echo got it; exit 7' INT HUP; echo "$WORD"; while :; do sleep 0.01; done`},
		Env:  []string{"WORD=ready"},
	})
	if err != nil {
		t.Fatal(err)
	}
	until(t, "the program speaks", func() bool { return p.Stdout() == "ready\n" })
	if err := p.Signal(s); err != nil {
		t.Fatal(err)
	}
	limit, cancel := context.WithTimeout(testContext(t), 30*time.Second)
	defer cancel()
	if code, err := p.Wait(limit); code != 7 || err != nil || p.Stdout() != "ready\ngot it\n" {
		t.Errorf("%v: code %d, %v, output %q", s, code, err, p.Stdout())
	}
}

// TestIgnoredSignals: in a lab that was started with signals ignored (in the background of a
// script, by nohup) programs are reached by them as in any other; the lab itself is not.
func TestIgnoredSignals(t *testing.T) {
	needNamespaces(t)
	n := network(t)(lab.NewPair("cubic"))
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGHUP} {
		signal.Ignore(s)
		t.Cleanup(func() { signal.Reset(s) })
		for range 2 { // the first start must not change what holds for the second
			signalled(t, n, s)
			if !signal.Ignored(s) {
				t.Errorf("%v is no longer ignored here", s)
			}
		}
		if err := syscall.Kill(os.Getpid(), s); err != nil { // it would end this test
			t.Error(err)
		}
	}
}

func TestProcesses(t *testing.T) {
	needNamespaces(t)
	ctx := testContext(t)
	n := network(t)(lab.NewPair("cubic"))

	r, err := n.Near.Run(ctx, "sh", "-c", "echo out; echo err >&2; exit 3")
	if diff := cmp.Diff(lab.Result{Code: 3, Stdout: "out\n", Stderr: "err\n"}, r); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if _, err := n.Near.Run(ctx, "/nonexistent"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a program that is not there: %v", err)
	}

	// /sys and the names are the namespace's.
	if got := strings.Fields(must(t, n.Near, "ls", "/sys/class/net")); !cmp.Equal(got, []string{"lo", "va"}) {
		t.Errorf("devices in /sys: %q", got)
	}
	n.Near.SetHosts(lab.FarIPv6+" dualhost", lab.FarIPv4+" dualhost")
	if got := must(t, n.Near, "cat", "/etc/hosts"); got != "fd77::2 dualhost\n10.77.0.2 dualhost\n" {
		t.Errorf("hosts file: %q", got)
	}
	if got := must(t, n.Far, "cat", "/etc/hosts"); strings.Contains(got, "dualhost") {
		t.Errorf("the other end's hosts file: %q", got)
	}
	if leftovers, _ := filepath.Glob(filepath.Join(os.TempDir(), "fullbore-lab-hosts-*")); len(leftovers) != 0 {
		t.Errorf("left behind: %q", leftovers)
	}
	if b, err := os.ReadFile("/etc/hosts"); err != nil || strings.Contains(string(b), "dualhost") {
		t.Errorf("this process's hosts file: %q, %v", b, err)
	}

	signalled(t, n, os.Interrupt)
	p, err := n.Far.Start(lab.Command{Args: []string{"sleep", "600"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code, err := p.Wait(ctx); code != 128+15 || err != nil {
		t.Errorf("code %d, %v, want 143", code, err)
	}

	// A context that ends kills.
	short, cancel := context.WithCancelCause(ctx)
	p, err = n.Far.Start(lab.Command{Args: []string{"sleep", "600"}})
	if err != nil {
		t.Fatal(err)
	}
	cancel(errors.New("enough"))
	if _, err := p.Wait(short); err == nil || !strings.Contains(err.Error(), "enough") {
		t.Errorf("after the context's end: %v", err)
	}
}

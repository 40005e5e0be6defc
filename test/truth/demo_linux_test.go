package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/fullbore-net/fullbore/internal/lab"
)

// demo is the command `fullbore lab demo NAME…`.
func demo(t *testing.T, names ...string) *exec.Cmd {
	t.Helper()
	if err := lab.Check(); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	return exec.CommandContext(t.Context(), program(t), append([]string{"lab", "demo"}, names...)...)
}

// TestDemo: a stop of the tour, piped: what the path is, what was said, what is true, what to
// learn, and no control sequences. On a machine that is not fit it says so.
func TestDemo(t *testing.T) {
	out, err := demo(t, "window").CombinedOutput()
	text := strings.Join(strings.Fields(string(out)), " ") // lines break anywhere
	wants := []string{
		"1 of 1 window: a receiver that grants too little",
		"the path 100 Mbit/s, a round trip of 28 ms", "how it feels", "measuring fullbore diagnose 10.77.0.2 --quick --up",
		"it says 10.77.0.1 → 10.77.0.2:", "learn At most one window", "go on with fullbore explain receive-window",
	}
	if err == nil {
		wants = append(wants, "the receive window on 10.77.0.2 is the limit", "the truth round trip: 28.0 ms; found: 28.", "✓ right", "1 of 1 were named right.")
	} else if code := demoExit(err); code == 2 {
		wants = append(wants, "this machine was too busy to keep the path true")
	} else {
		t.Errorf("exit code %d", code)
	}
	for _, want := range wants {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
	if strings.ContainsAny(string(out), "\x1b\r") {
		t.Errorf("control sequences in %q", out)
	}
}

// TestDemoInterrupted: Ctrl-C ends the tour in its midst, with exit code 130 and a word, and
// nothing is left of the path.
func TestDemoInterrupted(t *testing.T) {
	cmd := demo(t)
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var stderr strings.Builder
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	in := bufio.NewScanner(pipe)
	for in.Scan() && !strings.Contains(in.Text(), "measuring") {
	}
	// The path is there once its namespaces are.
	left := func() []string {
		all, err := filepath.Glob(fmt.Sprintf("/run/netns/*-%d-*", cmd.Process.Pid))
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	for len(left()) == 0 && t.Context().Err() == nil && syscall.Kill(cmd.Process.Pid, 0) == nil {
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	for in.Scan() {
	}
	if code := demoExit(cmd.Wait()); code != 130 || !strings.Contains(stderr.String(), "interrupted by signal Interrupt(2)") {
		t.Errorf("exit code %d, stderr %q", code, &stderr)
	}
	if names := left(); len(names) > 0 {
		t.Errorf("still there: %v", names)
	}
}

func demoExit(err error) int {
	if err == nil {
		return 0
	}
	if e, ok := err.(*exec.ExitError); ok {
		return e.ExitCode()
	}
	return -1
}

//go:build linux && amd64

package wine

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// startOpen is start with an input that stays open until the test ends.
func startOpen(t *testing.T, env []string, limit time.Duration, name string, args ...string) *process {
	t.Helper()
	p := &process{t: t, cmd: exec.Command(name, args...), out: output(t), errs: output(t)}
	p.cmd.Env = env
	p.cmd.Stdout, p.cmd.Stderr = p.out, p.errs
	in, err := p.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { // ends with the program
		_ = p.cmd.Wait()
		close(done)
	}()
	t.Cleanup(func() {
		_ = in.Close()
		select {
		case <-done:
			if code := p.cmd.ProcessState.ExitCode(); code != 0 {
				t.Errorf("%v: exit code %d\n%s%s", args, code, contents(t, p.out), contents(t, p.errs))
			}
		case <-time.After(limit):
			_ = p.cmd.Process.Kill()
			<-done
			t.Errorf("%v did not end when its input was closed", args)
		}
	})
	return p
}

// TestService: installed, measured, given another command line, removed.
func TestService(t *testing.T) {
	env, exe, linux := prefix(t), release(t), native(t)
	dir := filepath.Join(driveC(), "Program Files", "fullbore")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "fullbore.exe")
	copyFile(t, program, exe)
	log := filepath.Join(driveC(), "fullbore-service.log")
	t.Cleanup(func() {
		_ = os.Remove(log)
		_ = os.RemoveAll(dir)
	})
	remove := func() string { return run(t, env, time.Minute, wine64, program, "serve", "--uninstall-service") }
	remove() // of a run that was broken off
	installed := false
	t.Cleanup(func() {
		if installed {
			remove()
		}
	})
	for i := range 2 { // the second time it is there already
		port := freePort(t)
		installed = true
		out := run(t, env, 2*time.Minute, wine64, program, "serve", "--install-service", "--listen", "127.0.0.1:"+port, "--no-ntttcp", "--service-log", `C:\fullbore-service.log`)
		if !strings.Contains(out, "it runs") || strings.Contains(out, "was created") != (i == 0) {
			t.Errorf("%d: %s", i, out)
		}
		if out := run(t, env, time.Minute, linux, "iperf3", "-c", "127.0.0.1", "-p", port, "-n", "1M"); !strings.Contains(out, "iperf Done.") {
			t.Errorf("%d: %s", i, out)
		}
	}
	out := remove()
	installed = false
	if !strings.Contains(out, "removed the service") {
		t.Error(out)
	}
	if out := remove(); !strings.Contains(out, "nothing to remove") {
		t.Error(out)
	}
	lines, err := os.ReadFile(log)
	if err != nil || strings.Count(string(lines), "listening on") != 2 || strings.Count(string(lines), "received 1.05 MB") != 2 {
		t.Errorf("the log: %v\n%s", err, lines)
	}
	// Last, since Wine lets it take the line to its service manager that a service which starts at the same time
	// needs: that one then fails, and the services' database is locked meanwhile.
	if code, _, errs := start(t, env, time.Minute, wine64, program, "serve", "--run-as-service").wait(); code != 5 || !strings.Contains(errs, "did not start this process") {
		t.Errorf("started by hand: exit code %d, %s", code, errs)
	}
}

func copyFile(t *testing.T, to, from string) {
	t.Helper()
	in, err := os.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close() //nolint:errcheck // read only
	out, err := os.Create(to)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(out, in); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
}

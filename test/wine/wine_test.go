//go:build linux && amd64

// Package wine runs the Windows build under Wine: it proves that it starts, that it
// measures with a native program on the other end, that it finds Windows' firewall and is
// a Windows service, and it runs the unit tests of the packages that talk to Windows. Its
// figures are never performance figures.
package wine

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fullbore-net/fullbore/result"
)

const (
	wine64     = "/usr/lib/wine/wine64"
	wineserver = "/usr/lib/wine/wineserver64"
)

// prefix makes (or finds) a Wine prefix with the DLL that Go needs.
func prefix(t *testing.T) []string {
	t.Helper()
	if _, err := os.Stat(wine64); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatalf("CI needs Wine: %v", err)
		}
		t.Skipf("no Wine on this machine: %v", err)
	}
	env := append(os.Environ(), "WINEPREFIX="+prefixDir(), "WINEDEBUG=-all", "WINEDLLOVERRIDES=mscoree,mshtml=d", "DISPLAY=")
	hold.Do(func() {
		settle := func() { run(t, env, time.Minute, wineserver, "-w") }
		_, _, _ = start(t, env, time.Minute, wineserver, "-k").wait() // of a run that was broken off; there is hardly ever one
		settle()
		dll := filepath.Join(driveC(), "windows", "system32", "bcryptprimitives.dll")
		if _, err := os.Stat(dll); err != nil {
			run(t, env, 5*time.Minute, wine64, "wineboot", "-i")
			settle()
			run(t, env, time.Minute, wine64, "reg", "add", `HKCU\Software\Wine`, "/v", "Version", "/d", "win10", "/f")
			settle()
			run(t, env, time.Minute, "x86_64-w64-mingw32-gcc", "-shared", "-o", dll, "testdata/processprng.c", "-ladvapi32")
		}
		cmd := exec.Command(wine64, "cmd", "/c", "set /p x=") // waits for a line
		cmd.Env = env
		in, err := cmd.StdinPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		held, holding = cmd, in
	})
	return env
}

// A program that waits keeps Wine's server, which ends its services with the last program that is none. Who
// comes while it does so starts a second manager of services, and the two take each other's lines: until the
// server has ended, nobody may come.
var (
	hold    sync.Once
	held    *exec.Cmd
	holding io.Closer
)

func TestMain(m *testing.M) {
	_ = os.Setenv("FULLBORE_HISTORY", "off") // not into the developer's own
	code := m.Run()
	if held != nil {
		_ = holding.Close()
		_ = held.Wait()
	}
	os.Exit(code)
}

func prefixDir() string { return filepath.Join(os.TempDir(), "fullbore-wine") }

func driveC() string { return filepath.Join(prefixDir(), "drive_c") }

// start starts a program with files for its output: Wine's server outlives it and would
// hold pipes open.
func start(t *testing.T, env []string, limit time.Duration, name string, args ...string) *process {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), limit) // clean-ups use it too
	t.Cleanup(cancel)
	p := &process{t: t, cmd: exec.CommandContext(ctx, name, args...), out: output(t), errs: output(t)}
	p.cmd.Env = env
	p.cmd.Stdout, p.cmd.Stderr = p.out, p.errs
	if err := p.cmd.Start(); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return p
}

type process struct {
	t         *testing.T
	cmd       *exec.Cmd
	out, errs *os.File
}

// wait returns the exit code and what was written.
func (p *process) wait() (code int, out, errs string) {
	p.t.Helper()
	err := p.cmd.Wait()
	out, errs = contents(p.t, p.out), contents(p.t, p.errs)
	if code = p.cmd.ProcessState.ExitCode(); code < 0 {
		p.t.Fatalf("%v: %v\n%s\n%s", p.cmd.Args, err, out, errs)
	}
	return code, out, errs
}

// run runs a program to its end, which must be a success.
func run(t *testing.T, env []string, limit time.Duration, name string, args ...string) string {
	t.Helper()
	code, out, errs := start(t, env, limit, name, args...).wait()
	if code != 0 {
		t.Fatalf("%s %v: exit code %d\n%s\n%s", name, args, code, out, errs)
	}
	return out
}

func output(t *testing.T) *os.File {
	t.Helper()
	f, err := os.CreateTemp(t.TempDir(), "out")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

func contents(t *testing.T, f *os.File) string {
	t.Helper()
	data, err := os.ReadFile(f.Name())
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// native is the Linux build.
func native(t *testing.T) string {
	t.Helper()
	if path := os.Getenv("FULLBORE"); path != "" {
		return path
	}
	path := filepath.Join(t.TempDir(), "fullbore")
	run(t, os.Environ(), 5*time.Minute, "go", "build", "-o", path, "../../cmd/fullbore")
	return path
}

// release is the Windows build as it is handed out.
func release(t *testing.T) string {
	t.Helper()
	exe := filepath.Join(t.TempDir(), "fullbore.exe")
	build(t, "-o", exe, "../../cmd/fullbore")
	return exe
}

// withUDP is the same over a copy of package net that does without a control code that
// Wine 8 lacks (SIO_UDP_NETRESET): without it no UDP socket opens there.
func withUDP(t *testing.T) string {
	t.Helper()
	exe := filepath.Join(t.TempDir(), "fullbore.exe")
	build(t, "-overlay", overlay(t), "-o", exe, "../../cmd/fullbore")
	return exe
}

func build(t *testing.T, args ...string) {
	t.Helper()
	env := append(os.Environ(), "GOOS=windows", "GOARCH=amd64", "CGO_ENABLED=0")
	run(t, env, 5*time.Minute, "go", append([]string{"build"}, args...)...)
}

// overlay writes that copy and returns the file that names it.
func overlay(t *testing.T) string {
	t.Helper()
	root := strings.TrimSpace(run(t, os.Environ(), time.Minute, "go", "env", "GOROOT"))
	file := filepath.Join(root, "src", "net", "fd_windows.go")
	source, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	at := bytes.Index(source, []byte("windows.SIO_UDP_NETRESET"))
	if at < 0 {
		t.Fatalf("%s does not use SIO_UDP_NETRESET any more: the overlay is not needed", file)
	}
	check := bytes.Index(source[at:], []byte("if err != nil {"))
	if check < 0 {
		t.Fatalf("%s is not as it was", file)
	}
	check += at + len("if err != nil")
	source = append(source[:check:check], append([]byte(" && err != syscall.Errno(10045)"), source[check:]...)...)
	dir := t.TempDir()
	replaced := filepath.Join(dir, "fd_windows.go")
	if err := os.WriteFile(replaced, source, 0o644); err != nil {
		t.Fatal(err)
	}
	list, err := json.Marshal(map[string]map[string]string{"Replace": {file: replaced}})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(path, list, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestRelease starts the build as it is handed out, with its resource.
func TestRelease(t *testing.T) {
	env := prefix(t)
	syso := "../../cmd/fullbore/rsrc_windows_amd64.syso"
	if _, err := os.Stat(syso); err != nil {
		t.Cleanup(func() { _ = os.Remove(syso) })
	}
	run(t, os.Environ(), 5*time.Minute, "go", "run", "../../packaging/winres", "-arch", "amd64", "-version", "v0.1.0", "-out", syso)
	exe := release(t)
	if shown := run(t, os.Environ(), 5*time.Minute, "go", "run", "../../packaging/winres", "-read", exe); !strings.Contains(shown, "file version 0.1.0.0\n") || !strings.Contains(shown, "longPathAware") {
		t.Errorf("the resource is not in it:\n%s", shown)
	}
	if out := run(t, env, time.Minute, wine64, exe, "version"); !strings.HasPrefix(out, "fullbore ") {
		t.Errorf("version printed %q", out)
	}
	if out := run(t, env, time.Minute, wine64, exe, "iperf3", "-v"); !strings.Contains(out, "iperf 3.21") {
		t.Errorf("iperf3 -v printed %q", out)
	}
	if out := run(t, env, time.Minute, wine64, exe, "--help"); !strings.Contains(out, "Available Commands") {
		t.Errorf("--help printed %q", out)
	}
	if out := run(t, env, 2*time.Minute, wine64, exe, "doctor"); !strings.Contains(out, "windows 10.0") || !strings.Contains(out, "worth changing") {
		t.Errorf("doctor printed %q", out)
	}
	loopback(t, env, exe)
}

// loopback measures TCP in both directions between two of them.
func loopback(t *testing.T, env []string, exe string) {
	t.Helper()
	out := run(t, env, 2*time.Minute, wine64, exe, "test", "self", "-n", "8M", "--json")
	var rep result.Report
	if err := json.Unmarshal([]byte(out), &rep); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if rep.Err != nil || len(rep.Runs) != 2 {
		t.Fatalf("%d runs, error %v\n%s", len(rep.Runs), rep.Err, out)
	}
	for i, direction := range []string{"up", "down"} {
		r := rep.Runs[i]
		if r.Err != nil || r.Test.Direction != direction || len(r.Sums) != 1 || r.Sums[0].Receiver == nil {
			t.Fatalf("%s: incomplete run: %+v", direction, r)
		}
		if got := r.Sums[0].Receiver.Bytes; got < 8<<20 {
			t.Errorf("%s: receiver counted %d bytes of %d", direction, got, 8<<20)
		}
	}
}

// unitTests are the packages that talk to Windows, with the tests that Wine 8 cannot do:
// it tells neither length nor sender of a datagram that is cut, and what one socket sends
// to 127.0.0.3 another bound to all addresses does not get. Of the engine it is what moves bytes
// in Windows' own way.
var unitTests = map[string]struct{ run, skip string }{
	"internal/oshost":      {},
	"internal/osnet":       {skip: "TestPacketReceiver|TestAnswersFromTheRightAddress|TestShared"},
	"internal/firewall":    {},
	"internal/service":     {},
	"internal/cli/process": {},
	"internal/traffic":     {run: "Overlap|TestBytesAreExact|TestStopWith|TestDrainOnStop|TestPeerCloses|TestBudget|TestReceiversByteRule|TestCloseAtAnyTime"},
}

func TestUnits(t *testing.T) {
	env := prefix(t)
	list := overlay(t)
	for pkg, tests := range unitTests {
		args := []string{"test", "-count=1", "-timeout", "4m", "-overlay", list, "-exec", wine64}
		if tests.run != "" {
			args = append(args, "-run", tests.run)
		}
		if tests.skip != "" {
			args = append(args, "-skip", tests.skip)
		}
		cross := append(env[:len(env):len(env)], "GOOS=windows", "GOARCH=amd64", "CGO_ENABLED=0")
		if out := run(t, cross, 8*time.Minute, "go", append(args, "../../"+pkg)...); !strings.HasPrefix(out, "ok ") {
			t.Errorf("%s: %s", pkg, out)
		}
	}
}

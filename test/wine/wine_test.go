//go:build linux && amd64

// Package wine runs the Windows build under Wine: it proves that it starts and that
// a TCP test over loopback completes. Its figures are never performance figures.
package wine

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/fullbore-net/fullbore/result"
)

const wine64 = "/usr/lib/wine/wine64"

// prefix makes (or finds) a Wine prefix with the DLL that Go needs.
func prefix(t *testing.T) []string {
	t.Helper()
	if _, err := os.Stat(wine64); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatalf("CI needs Wine: %v", err)
		}
		t.Skipf("no Wine on this machine: %v", err)
	}
	dir := filepath.Join(os.TempDir(), "fullbore-wine")
	env := append(os.Environ(), "WINEPREFIX="+dir, "WINEDEBUG=-all", "WINEDLLOVERRIDES=mscoree,mshtml=d", "DISPLAY=")
	system32 := filepath.Join(dir, "drive_c", "windows", "system32")
	dll := filepath.Join(system32, "bcryptprimitives.dll")
	if _, err := os.Stat(dll); err != nil {
		run(t, env, 5*time.Minute, wine64, "wineboot", "-i")
		run(t, env, time.Minute, wine64, "reg", "add", `HKCU\Software\Wine`, "/v", "Version", "/d", "win10", "/f")
		run(t, env, time.Minute, "x86_64-w64-mingw32-gcc", "-shared", "-o", dll, "testdata/processprng.c", "-ladvapi32")
	}
	return env
}

// run gives the program files for its output: Wine's server outlives it and would hold
// pipes open.
func run(t *testing.T, env []string, limit time.Duration, name string, args ...string) []byte {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = env
	out, errs := output(t), output(t)
	cmd.Stdout, cmd.Stderr = out, errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s %v: %v\n%s\n%s", name, args, err, contents(t, out), contents(t, errs))
	}
	return contents(t, out)
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

func contents(t *testing.T, f *os.File) []byte {
	t.Helper()
	data, err := os.ReadFile(f.Name())
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func build(t *testing.T) string {
	t.Helper()
	exe := filepath.Join(t.TempDir(), "fullbore.exe")
	env := append(os.Environ(), "GOOS=windows", "GOARCH=amd64", "CGO_ENABLED=0")
	run(t, env, 5*time.Minute, "go", "build", "-o", exe, "../../cmd/fullbore")
	return exe
}

func TestLoopback(t *testing.T) {
	env, exe := prefix(t), build(t)
	out := run(t, env, 2*time.Minute, wine64, exe, "test", "self", "-n", "8M", "--json")
	var rep result.Report
	if err := json.Unmarshal(out, &rep); err != nil {
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

func TestVersionAndHelp(t *testing.T) {
	env, exe := prefix(t), build(t)
	if out := run(t, env, time.Minute, wine64, exe, "version"); !bytes.HasPrefix(out, []byte("fullbore ")) {
		t.Errorf("version printed %q", out)
	}
	if out := run(t, env, time.Minute, wine64, exe, "iperf3", "-v"); !bytes.Contains(out, []byte("iperf 3.21")) {
		t.Errorf("iperf3 -v printed %q", out)
	}
}

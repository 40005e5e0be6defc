//go:build linux && amd64

// Package interop plays NTTTCP between the Windows build, under Wine, and the Linux build: the
// matrix of what the originals do with each other, the recipes, and ends that come too early. No
// rate and no time is looked at: the figures are Wine's.
package interop

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fullbore-net/fullbore/internal/lab"
	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/test/recipes"
)

const (
	wine64     = "/usr/lib/wine/wine64"
	wineserver = "/usr/lib/wine/wineserver"
	// limit is when a step has hung.
	limit = 2 * time.Minute
)

// machine is where the tests run: one namespace, because the sockets of Windows programs are the
// Wine server's, with one server in it. The tests follow one another, as the ports are the same.
type machine struct {
	*recipes.Space
	env   []string // of Wine
	linux string   // this program for Linux
	// windows is it for Windows, with a package net that does without a socket option which Wine
	// lacks (SIO_UDP_NETRESET): no UDP socket opens otherwise. For tests only.
	windows string
}

var (
	here  *machine
	cause error // why there is none
)

func TestMain(m *testing.M) { os.Exit(runAll(m)) }

func runAll(m *testing.M) int {
	if cause = needs(); cause == nil {
		dir, err := os.MkdirTemp("", "fullbore-wine-programs")
		if err == nil {
			defer os.RemoveAll(dir)
			var leave func()
			if here, leave, err = arrive(dir); leave != nil {
				defer leave()
			}
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	return m.Run()
}

// needs says what this machine lacks.
func needs() error {
	var errs []error
	for _, path := range []string{wine64, wineserver} {
		_, err := os.Stat(path)
		errs = append(errs, err)
	}
	for _, name := range []string{"x86_64-w64-mingw32-gcc", "xmllint"} {
		_, err := exec.LookPath(name)
		errs = append(errs, err)
	}
	if os.Getuid() != 0 {
		errs = append(errs, errors.New("network namespaces need root"))
	}
	return errors.Join(errs...)
}

// on gives a test the machine. CI must have one.
func on(t *testing.T) *machine {
	t.Helper()
	if here == nil {
		if os.Getenv("CI") != "" {
			t.Fatalf("CI needs Wine: %v", cause)
		}
		t.Skipf("no Wine on this machine: %v", cause)
	}
	return here
}

// arrive builds the programs and starts Wine's server in a namespace. leave ends it.
func arrive(dir string) (m *machine, leave func(), err error) {
	m = &machine{linux: os.Getenv("FULLBORE"), windows: filepath.Join(dir, "fullbore.exe")}
	if m.linux == "" {
		m.linux = filepath.Join(dir, "fullbore")
		if err := build(nil, m.linux); err != nil {
			return nil, nil, err
		}
	}
	overlay, err := overlay(dir)
	if err != nil {
		return nil, nil, err
	}
	if err := build([]string{"GOOS=windows", "GOARCH=amd64"}, m.windows, "-overlay", overlay); err != nil {
		return nil, nil, err
	}
	prefix := filepath.Join(os.TempDir(), "fullbore-wine-interop")
	m.env = []string{"WINEPREFIX=" + prefix, "WINEDEBUG=-all", "WINEDLLOVERRIDES=mscoree,mshtml=d", "DISPLAY=", "TZ=UTC", "TERM=dumb"}
	unlock, err := lock(prefix + ".lock")
	if err != nil {
		return nil, nil, err
	}
	if m.Space, err = recipes.NewSpace(); err != nil {
		unlock()
		return nil, nil, err
	}
	leave = func() {
		if err := errors.Join(m.run(wineserver, "-k"), m.Close()); err != nil {
			fmt.Fprintln(os.Stderr, "clean up:", err)
		}
		unlock()
	}
	return m, leave, m.boot(prefix)
}

// build builds this program.
func build(env []string, out string, args ...string) error {
	cmd := exec.Command("go", append(append([]string{"build", "-o", out}, args...), "../../../cmd/fullbore")...)
	cmd.Env = append(append(os.Environ(), "CGO_ENABLED=0"), env...)
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", filepath.Base(out), err, text)
	}
	return nil
}

// overlay writes the package net of the Windows build: a refused SIO_UDP_NETRESET is no error.
func overlay(dir string) (string, error) {
	out, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return "", err
	}
	source := filepath.Join(strings.TrimSpace(string(out)), "src", "net", "fd_windows.go")
	text, err := os.ReadFile(source)
	if err != nil {
		return "", err
	}
	const option, check = "windows.SIO_UDP_NETRESET, ", "if err != nil {"
	before, after, found := strings.Cut(string(text), option)
	call, rest, checked := strings.Cut(after, check)
	if !found || !checked || strings.Contains(rest, option) || strings.Count(call, "\n") > 2 {
		return "", fmt.Errorf("%s has changed: where does it set %s?", source, option)
	}
	const notsup = "if err != nil && err != syscall.Errno(10045) {" // WSAEOPNOTSUPP
	changed := filepath.Join(dir, "fd_windows.go")
	if err := os.WriteFile(changed, []byte(before+option+call+notsup+rest), 0o600); err != nil {
		return "", err
	}
	list, err := json.Marshal(map[string]map[string]string{"Replace": {source: changed}})
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "overlay.json")
	return path, os.WriteFile(path, list, 0o600)
}

// lock keeps other runs of these tests off the prefix until the returned function is called.
func lock(path string) (func(), error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), f.Close())
	}
	return func() { _ = f.Close() }, nil
}

// boot makes the prefix, if it is new, and starts the server. A server that a killed run left
// behind has its sockets in a namespace that is gone: it is ended first.
func (m *machine) boot(prefix string) error {
	if err := os.MkdirAll(prefix, 0o700); err != nil {
		return err
	}
	_ = m.run(wineserver, "-k") // there is hardly ever one
	dll := filepath.Join(prefix, "drive_c", "windows", "system32", "bcryptprimitives.dll")
	steps := [][]string{
		{wineserver, "-p"},
		{wine64, "wineboot", "-i"},
		{wine64, "reg", "add", `HKCU\Software\Wine`, "/v", "Version", "/d", "win10", "/f"},
		{"x86_64-w64-mingw32-gcc", "-shared", "-o", dll, "../testdata/processprng.c", "-ladvapi32"}, // last: it is the sign that all is done
	}
	if _, err := os.Stat(dll); err == nil {
		steps = steps[:1]
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, s := range steps {
		if err := m.run(s...); err != nil {
			return err
		}
	}
	return nil
}

// run runs a tool to its end.
func (m *machine) run(args ...string) error {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	p, err := m.Start(lab.Command{Args: args, Env: m.env})
	if err != nil {
		return err
	}
	code, err := p.Wait(ctx)
	if err == nil && code != 0 {
		err = fmt.Errorf("%v: exit %d: %s%s", args, code, p.Stdout(), p.Stderr())
	}
	return err
}

// ntttcp runs ntttcp of the Windows build and waits for it.
func (m *machine) ntttcp(t *testing.T, words string) lab.Result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	args := append([]string{wine64, m.windows, "ntttcp"}, strings.Fields(words)...)
	p, err := m.Start(lab.Command{Args: args, Env: m.env, Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	code, err := p.Wait(ctx)
	if err != nil {
		t.Fatalf("%v: %v\n%s%s", words, err, p.Stdout(), p.Stderr())
	}
	return lab.Result{Code: code, Stdout: p.Stdout(), Stderr: p.Stderr()}
}

// under is the Windows build as one side of a recipe, own the Linux build.
func (m *machine) under() recipes.Tool {
	return recipes.Tool{Name: "exe", Args: []string{wine64, m.windows, "ntttcp"}, Env: m.env, Dialect: plan.NTTTCPWindows, NoInterrupt: true}
}

func (m *machine) own() recipes.Tool {
	return recipes.Tool{Name: "linux", Args: []string{m.linux, "ntttcp"}, Dialect: plan.NTTTCPLinux}
}

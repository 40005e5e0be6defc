//go:build unix

package process

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

func TestPidfile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "p.pid")
	self := filepath.Base(os.Args[0])

	if err := CheckPidfile(path, self); err != nil {
		t.Fatalf("no file: %v", err)
	}
	p, err := WritePidfile(path, os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if data, _ := os.ReadFile(path); string(data) != strconv.Itoa(os.Getpid()) {
		t.Errorf("file holds %q", data)
	}
	if err := CheckPidfile(path, self); !errors.Is(err, ErrRunning) {
		t.Errorf("own live pid: got %v, want ErrRunning", err)
	}
	if err := CheckPidfile(path, "another-program"); err != nil {
		t.Errorf("live process of another name: %v", err)
	}
	p.Remove()
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("file is still there: %v", err)
	}

	dead := exec.Command("true")
	if err := dead.Run(); err != nil {
		t.Fatal(err)
	}
	if _, err := WritePidfile(path, dead.Process.Pid); err != nil {
		t.Fatal(err)
	}
	if err := CheckPidfile(path, "true"); err != nil {
		t.Errorf("stale file: %v", err)
	}
	unreaped := exec.Command("true")
	out, err := unreaped.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := unreaped.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(out); err != nil { // until it has ended
		t.Fatal(err)
	}
	if _, err := WritePidfile(path, unreaped.Process.Pid); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(10 * time.Second); CheckPidfile(path, "true") != nil; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("a process that has ended, but that nobody waited for, counts as running")
		}
	}
	if err := unreaped.Wait(); err != nil {
		t.Fatal(err)
	}
	// Somebody else took the file over: it is not ours to remove.
	if err := os.WriteFile(path, []byte("1"), 0o600); err != nil {
		t.Fatal(err)
	}
	AdoptPidfile(path, os.Getpid()).Remove()
	if _, err := os.Stat(path); err != nil {
		t.Errorf("a foreign pid file was removed: %v", err)
	}
	if err := CheckPidfile(filepath.Join(dir, "no", "such.pid"), self); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("folder missing: %v", err)
	}
}

func TestDetach(t *testing.T) {
	dir := t.TempDir()
	out := filepath.Join(dir, "out")
	extra, err := os.Create(out)
	if err != nil {
		t.Fatal(err)
	}
	defer extra.Close()
	pid, err := Detach("/bin/sh", []string{"sh", "-c", `echo "$MARK $$" >&3`}, []*os.File{extra}, "MARK=seen")
	if err != nil {
		t.Fatal(err)
	}
	want := "seen " + strconv.Itoa(pid) + "\n"
	for range 1_000_000 {
		if data, _ := os.ReadFile(out); string(data) == want {
			return
		}
	}
	data, _ := os.ReadFile(out)
	t.Errorf("the detached process wrote %q, want %q", data, want)
}

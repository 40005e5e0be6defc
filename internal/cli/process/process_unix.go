//go:build unix

package process

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
)

// alive reports whether the process runs. One that has ended and that nobody has waited
// for still takes signals, but proc(5) shows its state as Z or X.
func alive(pid int) bool {
	if err := syscall.Kill(pid, 0); err != nil && !errors.Is(err, syscall.EPERM) {
		return false
	}
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return true
	}
	rest := bytes.TrimSpace(stat[bytes.LastIndexByte(stat, ')')+1:]) // the name before may hold brackets
	return !bytes.HasPrefix(rest, []byte("Z")) && !bytes.HasPrefix(rest, []byte("X"))
}

// nameOf reads the program's name from /proc; "" where there is none. A program whose
// main thread was renamed still shows its own file name in the first word.
func nameOf(pid int) string {
	data, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline"))
	if err != nil || len(data) == 0 {
		return ""
	}
	word, _, _ := bytes.Cut(data, []byte{0})
	return filepath.Base(string(word))
}

// Detach starts the same command line again in a session of its own, with standard
// streams on /dev/null, extra as descriptors 3, 4, … and env added, and returns its
// process id. The folder stays the same, so relative names keep their meaning.
func Detach(exe string, argv []string, extra []*os.File, env ...string) (int, error) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return 0, err
	}
	defer null.Close()
	cmd := exec.Command(exe)
	cmd.Args = argv
	cmd.Env = append(os.Environ(), env...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = null, null, null
	cmd.ExtraFiles = extra
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	pid := cmd.Process.Pid
	return pid, cmd.Process.Release()
}

// Package process is what a server program does to its own process: pid files and
// going into the background. It prints nothing.
package process

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
)

// ErrRunning: the pid file names a live instance.
var ErrRunning = errors.New("another instance appears to be running")

// Pidfile is a file that holds a process id while the process lives.
type Pidfile struct {
	path string
	pid  int
}

// CheckPidfile reports ErrRunning (wrapped, with the pid) when path holds the id of a
// live process that may be an instance of this program, and any reason why the file
// could not be written later. A stale file, and one whose process is a program of
// another name, is no obstacle. The file is created when missing, else left alone.
func CheckPidfile(path string, names ...string) error {
	data, err := os.ReadFile(path)
	if err == nil {
		if pid, perr := strconv.Atoi(strings.TrimSpace(string(data))); perr == nil && pid > 0 && alive(pid) && mayBe(pid, names) {
			return fmt.Errorf("pid file %s: process %d: %w", path, pid, ErrRunning)
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	return f.Close()
}

// WritePidfile writes pid in decimal without a newline, as iperf3 does (mode 0600).
func WritePidfile(path string, pid int) (*Pidfile, error) {
	if err := os.WriteFile(path, []byte(strconv.Itoa(pid)), 0o600); err != nil {
		return nil, err
	}
	return &Pidfile{path, pid}, nil
}

// Remove deletes the file if it still holds our process id.
func (p *Pidfile) Remove() {
	if p == nil {
		return
	}
	data, err := os.ReadFile(p.path)
	if err == nil && strings.TrimSpace(string(data)) == strconv.Itoa(p.pid) {
		_ = os.Remove(p.path)
	}
}

// AdoptPidfile returns the handle of a file that another process (the parent) wrote.
func AdoptPidfile(path string, pid int) *Pidfile { return &Pidfile{path, pid} }

// mayBe reports whether the process could be one of the named programs; true when
// its name cannot be found out.
func mayBe(pid int, names []string) bool {
	name := nameOf(pid)
	if name == "" {
		return true
	}
	for _, n := range names {
		if strings.HasPrefix(name, n) {
			return true
		}
	}
	return false
}

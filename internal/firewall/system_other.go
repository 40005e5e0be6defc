//go:build unix && !linux

package firewall

import (
	"errors"
	"os"
	"syscall"
	"time"
)

func privileged() bool { return os.Geteuid() == 0 }

func alive(pid int, _ time.Time) bool {
	err := syscall.Kill(pid, 0)
	return err == nil || errors.Is(err, syscall.EPERM)
}

//go:build unix

package firewall

import (
	"os/exec"
	"syscall"
)

// apart keeps the terminal's signals from a command.
func apart(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

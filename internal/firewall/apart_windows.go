package firewall

import (
	"os/exec"
	"syscall"

	"golang.org/x/sys/windows"
)

// apart keeps the console's Ctrl-C from a command.
func apart(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: windows.CREATE_NEW_PROCESS_GROUP}
}

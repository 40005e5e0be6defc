package process

import "golang.org/x/sys/windows"

const isWindows = true

func files() (soft, hard uint64) { return 0, 0 }

func raiseFiles(uint64, uint64) {}

// admin: the token is elevated, or UAC is off and it is an administrator's.
func admin() bool { return windows.GetCurrentProcessToken().IsElevated() }

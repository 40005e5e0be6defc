//go:build unix

package process

import (
	"os"

	"golang.org/x/sys/unix"
)

const isWindows = false

func files() (soft, hard uint64) {
	var l unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &l) != nil {
		return 0, 0
	}
	return uint64(l.Cur), uint64(l.Max) //nolint:unconvert // signed on FreeBSD
}

func admin() bool { return os.Geteuid() == 0 }

//go:build unix && !freebsd && !dragonfly

package process

import "golang.org/x/sys/unix"

func raiseFiles(soft, hard uint64) {
	_ = unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: soft, Max: hard}) // files tells what became of it
}

//go:build freebsd || dragonfly

package process

import "golang.org/x/sys/unix"

func raiseFiles(soft, hard uint64) {
	_ = unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: int64(soft), Max: int64(hard)}) // files tells what became of it
}

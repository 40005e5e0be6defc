//go:build !linux

package osnet

func keepSYN(uintptr) {}

func savedSYN(uintptr, []byte) (int, error) { return 0, nil }

//go:build !linux

package oshost

func trimCode() {}

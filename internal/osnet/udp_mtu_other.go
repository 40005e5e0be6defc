//go:build !linux

package osnet

// setMTUProbing is setDontFragment where packets cannot be sent against the system's belief.
func setMTUProbing(fd uintptr, v6, on bool) error { return setDontFragment(fd, v6, on) }

package osnet

import "golang.org/x/sys/unix"

// setMTUProbing switches between IP_PMTUDISC_PROBE and the kernel's default.
func setMTUProbing(fd uintptr, v6, on bool) error {
	v := unix.IP_PMTUDISC_WANT
	if on {
		v = unix.IP_PMTUDISC_PROBE
	}
	if v6 { // the values are those of IPv4
		if err := optMTUDisc6.set(fd, v); err != nil {
			return err
		}
	}
	return optMTUDisc4.set(fd, v)
}

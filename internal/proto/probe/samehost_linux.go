package probe

import "os"

// hostIdentity is what two processes have in common exactly when they read the same
// CLOCK_MONOTONIC: the boot of the kernel (random(4)) and the time namespace
// (time_namespaces(7), Linux 5.6; nothing before). "" = not known.
func hostIdentity() string {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil || len(boot) == 0 {
		return ""
	}
	ns, err := os.Readlink("/proc/self/ns/time")
	if err != nil {
		ns = ""
	}
	return string(boot) + ns
}

//go:build darwin || freebsd

package oshost

import (
	"strings"

	"golang.org/x/sys/unix"

	"github.com/fullbore-net/fullbore/result"
)

// hardware asks uname(2) and sysctl(3).
func hardware(h *result.Host) {
	var u unix.Utsname
	if unix.Uname(&u) == nil {
		text := func(b []byte) string { return unix.ByteSliceToString(b) }
		h.Release = text(u.Release[:])
		h.SystemInfo = strings.Join([]string{text(u.Sysname[:]), text(u.Nodename[:]), h.Release, text(u.Version[:]), text(u.Machine[:])}, " ")
	}
	for _, key := range []string{"machdep.cpu.brand_string", "hw.model"} { // macOS, FreeBSD
		if m, err := unix.Sysctl(key); err == nil && h.CPUModel == "" {
			h.CPUModel = m
		}
	}
	for _, key := range []string{"hw.memsize", "hw.physmem"} {
		if m, err := unix.SysctlUint64(key); err == nil && h.Memory == nil {
			bytes := int64(m)
			h.Memory = &bytes
		}
	}
	if c, err := unix.Sysctl("kern.timecounter.hardware"); err == nil {
		h.Clock = c
	}
}

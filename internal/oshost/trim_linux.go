package oshost

import (
	"bytes"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

func trimCode() {
	exe, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return
	}
	data, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		return
	}
	for _, m := range codeMappings(data, exe) {
		_, _, _ = unix.Syscall(unix.SYS_MADVISE, m.start, m.end-m.start, unix.MADV_DONTNEED)
	}
}

type mapping struct{ start, end uintptr }

// codeMappings finds the mappings of the file exe in the text of /proc/self/smaps
// (proc_pid_smaps(5)) that hold nothing but what is in the file: not writable, and no
// page of theirs was ever changed (a position-independent build has some that were).
func codeMappings(smaps []byte, exe string) []mapping {
	var out []mapping
	var at mapping
	candidate := false
	for line := range bytes.Lines(smaps) {
		f := bytes.Fields(line)
		if len(f) >= 6 && !bytes.HasSuffix(f[0], []byte(":")) {
			lo, hi, _ := bytes.Cut(f[0], []byte("-"))
			start, err1 := strconv.ParseUint(string(lo), 16, strconv.IntSize)
			end, err2 := strconv.ParseUint(string(hi), 16, strconv.IntSize)
			at = mapping{uintptr(start), uintptr(end)}
			candidate = err1 == nil && err2 == nil && len(f[1]) == 4 && f[1][1] == '-' && f[1][3] == 'p' &&
				len(f) == 6 && string(f[5]) == exe
			continue
		}
		if candidate && len(f) == 3 && string(f[0]) == "Anonymous:" {
			if string(f[1]) == "0" {
				out = append(out, at)
			}
			candidate = false
		}
	}
	return out
}

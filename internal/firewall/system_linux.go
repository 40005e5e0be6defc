package firewall

import (
	"bytes"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// privileged: filters are changed with CAP_NET_ADMIN, which root usually has.
func privileged() bool {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return os.Geteuid() == 0
	}
	_, rest, _ := bytes.Cut(status, []byte("\nCapEff:"))
	word, _, _ := bytes.Cut(bytes.TrimSpace(rest), []byte("\n"))
	caps, err := strconv.ParseUint(string(word), 16, 64)
	if err != nil {
		return os.Geteuid() == 0
	}
	return caps&(1<<unix.CAP_NET_ADMIN) != 0
}

// alive goes by the process's start (field 22 of proc_pid_stat(5), clock ticks since the
// machine started).
func alive(pid int, at time.Time) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return false
	}
	f := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:]) // from field 3 on
	if len(f) < 20 || bytes.ContainsAny(f[0], "ZX") {
		return false
	}
	ticks, err := strconv.ParseInt(string(f[19]), 10, 64)
	var now unix.Timespec
	if err != nil || unix.ClockGettime(unix.CLOCK_BOOTTIME, &now) != nil {
		return true
	}
	const perSecond = 100 // USER_HZ, the same on all architectures that Go runs on
	age := time.Duration(now.Nano()) - time.Duration(ticks)*time.Second/perSecond
	return !time.Now().Add(-age).After(at.Add(slack))
}

package osnet

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A thread's slice is what was asked for on kernels that grant one (6.12 and later), and the
// system's again afterwards; nothing else of how it is scheduled changes.
func TestSetSlice(t *testing.T) {
	runtime.LockOSThread() // the thread ends with the test
	before, err := unix.SchedGetAttr(0, 0)
	if err != nil {
		t.Fatal(err)
	}
	slice := func() time.Duration {
		t.Helper()
		a, err := unix.SchedGetAttr(0, 0)
		if err != nil {
			t.Fatal(err)
		}
		if a.Policy != before.Policy || a.Nice != before.Nice || a.Priority != before.Priority {
			t.Errorf("scheduled as %+v, before as %+v", *a, *before)
		}
		return time.Duration(a.Runtime)
	}
	const want = 200 * time.Microsecond
	if err := SetSlice(want); err != nil {
		t.Fatal(err)
	}
	if got := slice(); grantsSlices(t) && before.Policy == unix.SCHED_NORMAL && got != want {
		t.Errorf("a slice of %v, want %v", got, want)
	}
	if err := SetSlice(0); err != nil {
		t.Fatal(err)
	}
	if got := slice(); got != time.Duration(before.Runtime) {
		t.Errorf("a slice of %v, before %v", got, time.Duration(before.Runtime))
	}
}

// grantsSlices reports that the kernel is 6.12 or later.
func grantsSlices(t *testing.T) bool {
	t.Helper()
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		t.Fatal(err)
	}
	var major, minor int
	if _, err := fmt.Sscanf(unix.ByteSliceToString(u.Release[:]), "%d.%d", &major, &minor); err != nil {
		t.Fatal(err)
	}
	return major > 6 || major == 6 && minor >= 12
}

package osnet

import (
	"errors"
	"runtime"
	"slices"
	"testing"
)

func TestCPUList(t *testing.T) {
	for _, tt := range []struct {
		in   []int
		want string
	}{
		{nil, ""},
		{[]int{0}, "0"},
		{[]int{3, 1, 2, 8}, "1-3,8"},
		{[]int{0, 0, 2, 4, 5}, "0,2,4-5"},
	} {
		if got := CPUList(tt.in); got != tt.want {
			t.Errorf("%v: %q, want %q", tt.in, got, tt.want)
		}
	}
}

func TestSetAffinity(t *testing.T) {
	usable, err := UsableCPUs()
	if !Capabilities().Affinity {
		if !errors.Is(err, errors.ErrUnsupported) || !errors.Is(SetAffinity([]int{0}), errors.ErrUnsupported) {
			t.Fatalf("without affinity: %v, want errors.ErrUnsupported", err)
		}
		return
	}
	if err != nil || len(usable) == 0 || !slices.IsSorted(usable) {
		t.Fatalf("usable: %v, %v", usable, err)
	}
	// Not unlocked: the thread ends with this test and takes its pin along.
	runtime.LockOSThread()
	for _, cpus := range [][]int{usable[len(usable)-1:], usable[:1], usable} {
		if err := SetAffinity(cpus); err != nil {
			t.Fatalf("%v: %v", cpus, err)
		}
		if got := threadCPUs(t); got != nil && !slices.Equal(got, cpus) {
			t.Errorf("pinned to %v, the system says %v", cpus, got)
		}
		// The set is that of the process, whatever this thread is pinned to.
		if again, err := UsableCPUs(); err != nil || !slices.Equal(again, usable) {
			t.Errorf("usable after pinning to %v: %v, %v; want %v", cpus, again, err, usable)
		}
	}
	// F37: CPU and usable set are named, and nothing changes.
	bad := usable[len(usable)-1] + 1000
	var ae *AffinityError
	if err := SetAffinity([]int{usable[0], bad}); !errors.As(err, &ae) || ae.CPU != bad || !slices.Equal(ae.Usable, usable) {
		t.Errorf("CPU %d: %v, want an AffinityError", bad, err)
	}
	if err := SetAffinity([]int{-1}); !errors.As(err, &ae) {
		t.Errorf("CPU -1: %v, want an AffinityError", err)
	}
	if got := threadCPUs(t); got != nil && !slices.Equal(got, usable) {
		t.Errorf("after a refusal the thread runs on %v, want %v", got, usable)
	}
	if err := SetAffinity(usable[:1]); err != nil {
		t.Fatal(err)
	}
	if err := SetAffinity(nil); err != nil {
		t.Fatal(err)
	}
	if got := threadCPUs(t); got != nil && !slices.Equal(got, usable) {
		t.Errorf("released, the thread runs on %v, want %v", got, usable)
	}
}

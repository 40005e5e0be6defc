package iperf3

import (
	"strings"
	"testing"

	"github.com/fullbore-net/fullbore/internal/plan"
)

// A window that the system does not grant is a notice, or the end of the test where it
// has to be as iperf3 does it (field case F34).
func TestWindowNotGranted(t *testing.T) {
	ts := startServer(t, &Server{})
	huge := plan.Plan{Bytes: 1000, Window: plan.MaxWindow} // above any limit that a kernel has by default
	run, err := runClient(t, ts.client(huge))
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, n := range run.Notices {
		found = found || n.Code == "window-clamped"
	}
	if !found {
		t.Skip("this system grants 512 MiB, so nothing is there to be said")
	}
	huge.StrictWindow = true
	_, err = runClient(t, ts.client(huge))
	wantError(t, err, codeBufferMismatch, "option")
	for _, w := range []string{"536870912", "net.core.wmem_max", "net.core.rmem_max"} {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("does not name %s: %v", w, err)
		}
	}
	ok := plan.Plan{Bytes: 1000, Window: 16 << 10, StrictWindow: true}
	if _, err := runClient(t, ts.client(ok)); err != nil {
		t.Error(err)
	}
}

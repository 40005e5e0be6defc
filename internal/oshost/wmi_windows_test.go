package oshost

import (
	"context"
	"errors"
	"testing"
)

// The classes of root\cimv2 are on every Windows, and Wine has this one.
func TestWMI(t *testing.T) {
	const class = "Win32_OperatingSystem"
	got, err := wmiRead(context.Background(), `ROOT\CIMV2`, []wmiQuery{{class, []string{"Version", "ProductType", "Primary", "NoSuchProperty"}}})
	if err != nil {
		t.Fatal(err)
	}
	rows := got[class]
	if len(rows) != 1 {
		t.Fatalf("%d systems", len(rows))
	}
	r := rows[0]
	if r["Version"].Text == "" || r.number("ProductType") == nil || *r.number("ProductType") < 1 || *r.number("ProductType") > 3 {
		t.Errorf("%+v", r)
	}
	if on := r.flag("Primary"); on != nil && !*on {
		t.Error("the running system is not the primary one")
	}
	if _, ok := r["NoSuchProperty"]; ok {
		t.Errorf("a property that does not exist: %+v", r)
	}
}

// What does not exist has no rows (Windows says why, Wine does not), and leaves the other
// answers.
func TestWMIErrors(t *testing.T) {
	got, err := wmiRead(context.Background(), `ROOT\CIMV2`, []wmiQuery{{"FullboreHasNoSuchClass", nil}, {"Win32_OperatingSystem", []string{"Version"}}})
	if len(got["FullboreHasNoSuchClass"]) != 0 || len(got["Win32_OperatingSystem"]) != 1 {
		t.Errorf("%v, %v", got, err)
	}
	got, err = wmiRead(context.Background(), `ROOT\FullboreHasNoSuchNamespace`, winClasses)
	for class, rows := range got {
		if len(rows) != 0 {
			t.Errorf("%s: %v, %v", class, rows, err)
		}
	}
	ended, cancel := context.WithCancelCause(context.Background())
	why := errors.New("no longer wanted")
	cancel(why)
	if _, err := wmiRead(ended, `ROOT\CIMV2`, nil); err != nil && !errors.Is(err, why) {
		t.Errorf("%v", err)
	}
}

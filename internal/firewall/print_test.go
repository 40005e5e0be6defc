package firewall

import (
	"flag"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fullbore-net/fullbore/internal/plan"
)

var update = flag.Bool("update", false, "write testdata/lines.golden anew")

// TestLines prints what each kind of filter is told, as a user would see it.
func TestLines(t *testing.T) {
	programs := map[string]string{"netsh": `C:\Program Files\fullbore\fullbore.exe`, "powershell": `C:\Program Files\fullbore\fullbore.exe`, "socketfilterfw": "/Users/me/my tools/fullbore"}
	all := Of(plan.Serve{NTTTCP: receiver(plan.Plan{}, plan.NTTTCP{})})
	var b strings.Builder
	for _, c := range []struct {
		title string
		w     Wanted
	}{
		{"all ports, anybody", Wanted{Name: Kept, Ports: all}},
		{"one run, some senders", Wanted{Name: "fullbore-run-12-1700000000", Ports: all, Allow: []netip.Prefix{netip.MustParsePrefix("10.1.2.3/8"), netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("2001:db8::/32")}}},
		{"one port of UDP, IPv6 senders", Wanted{Name: Kept, Ports: []Ports{{plan.UDP, 5201, 5201, ""}}, Allow: []netip.Prefix{netip.MustParsePrefix("2001:db8::/32")}}},
	} {
		for _, kind := range Kinds {
			c.w.Program = programs[kind]
			layers, err := Blank(kind, c.w.Program)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&b, "## %s: %s\n", kind, c.title)
			for _, l := range layers {
				if l.Kind() != kind {
					t.Errorf("a layer of %s says %s", kind, l.Kind())
				}
				for _, cmd := range append(l.Add(c.w), l.Remove(c.w.Name)...) {
					if cmd.Why != "" {
						fmt.Fprintf(&b, "# %s\n", cmd.Why)
					}
					fmt.Fprintln(&b, cmd.Line)
				}
			}
			fmt.Fprintln(&b)
		}
	}
	const golden = "testdata/lines.golden"
	if *update {
		if err := os.WriteFile(golden, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), b.String()); diff != "" {
		t.Error(diff)
	}
}

func TestBlankUnknown(t *testing.T) {
	if l, err := Blank("ipchains", ""); err == nil {
		t.Errorf("%v", l)
	}
}

func TestQuote(t *testing.T) {
	for in, want := range map[string]string{"a": "a", "": "''", "a b": "'a b'", "it's": `'it'\''s'`, "--dports": "--dports", "a,b:c": "a,b:c", "$x": "'$x'", "ä": "'ä'"} {
		if got := quote(in); got != want {
			t.Errorf("%q: %s, want %s", in, got, want)
		}
	}
	got := netsh([]string{"netsh", `program=C:\a b\c.exe`, "name=fullbore"}).Line
	if want := `netsh program="C:\a b\c.exe" name=fullbore`; got != want {
		t.Error(got)
	}
}

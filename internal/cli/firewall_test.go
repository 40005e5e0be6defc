package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os/exec"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fullbore-net/fullbore/internal/firewall"
)

// filtered is a machine with an iptables chain that drops, or lets in what -I added.
type filtered struct {
	rules  []string
	denied bool // every program says so
	ran    []string
}

func (f *filtered) run(_ context.Context, args ...string) ([]byte, error) {
	f.ran = append(f.ran, strings.Join(args, " "))
	switch {
	case args[0] != "iptables":
		return nil, exec.ErrNotFound
	case f.denied:
		return nil, errors.New("exit status 4: Permission denied (you must be root)")
	case args[1] == "-S":
		return []byte("-P INPUT DROP\n" + strings.Join(f.rules, "\n")), nil
	case args[1] == "-I":
		f.rules = append([]string{"-A INPUT " + strings.Join(args[4:], " ")}, f.rules...)
	case args[1] == "-D":
		line := "-A " + strings.Join(args[2:], " ")
		for i, r := range f.rules {
			if r == line {
				f.rules = append(f.rules[:i], f.rules[i+1:]...)
				return nil, nil
			}
		}
		return nil, errors.New("exit status 1: Bad rule (does a matching rule exist in that chain?)")
	}
	return nil, nil
}

// command runs a command line on that machine.
func (f *filtered) command(t *testing.T, args ...string) (code int, out, errs string) {
	t.Helper()
	var o, e bytes.Buffer
	std := Std{
		In: strings.NewReader(""), Out: &o, Err: &e, Getenv: func(string) string { return "" }, Now: time.Now,
		Executable: func() (string, error) { return "/opt/fullbore", nil },
		Firewall:   &firewall.System{Run: f.run, Files: fstest.MapFS{}, Alive: func(int, time.Time) bool { return false }, Privileged: !f.denied},
	}
	code = Main(t.Context(), append([]string{"fullbore", "firewall"}, args...), std)
	return code, o.String(), e.String()
}

const addLines = `iptables -I INPUT 1 -p tcp -m multiport --dports 5000:5016,5201,6001:6016 -m comment --comment fullbore -j ACCEPT
iptables -I INPUT 1 -p udp -m multiport --dports 5001:5016,5201 -m comment --comment fullbore -j ACCEPT
`

func TestFirewallAddPrints(t *testing.T) {
	f := &filtered{}
	code, out, errs := f.command(t, "add")
	if code != exitOK || !strings.Contains(errs, "Nothing is changed without --apply") {
		t.Errorf("%d %s", code, errs)
	}
	if diff := cmp.Diff(addLines, out); diff != "" {
		t.Error(diff)
	}
	for _, line := range f.ran {
		if strings.Contains(line, "-I") {
			t.Errorf("ran %s", line)
		}
	}
}

func TestFirewallApply(t *testing.T) {
	f := &filtered{rules: []string{"-A INPUT -p tcp -m multiport --dports 7000 -m comment --comment fullbore-run-9-1700000000 -j ACCEPT"}}
	code, out, errs := f.command(t, "show", "--fail")
	if code != exitMissed || !strings.Contains(out, "left behind by a run that is over") || !strings.Contains(out, "closed   5201/tcp") {
		t.Errorf("%d %s%s", code, out, errs)
	}
	for range 2 { // the second changes nothing
		if code, _, errs = f.command(t, "add", "--apply"); code != exitOK {
			t.Fatalf("%d %s", code, errs)
		}
		if len(f.rules) != 2 || strings.Contains(strings.Join(f.rules, "\n"), "run-9") {
			t.Errorf("rules: %q", f.rules)
		}
	}
	if code, out, _ = f.command(t, "show", "--fail"); code != exitOK || !strings.HasPrefix(out, "A receiver's ports look open here.\n") {
		t.Errorf("%d %s", code, out)
	}
	if code, out, _ = f.command(t, "show", "--fail", "--listen", ":9000"); code != exitMissed || !strings.Contains(out, "closed   9000/udp") {
		t.Errorf("%d %s", code, out)
	}
	if code, _, errs = f.command(t, "add", "--apply", "--ntttcp-ports", "20"); code != exitOK || len(f.rules) != 2 || !strings.Contains(f.rules[0]+f.rules[1], "5001:5020") {
		t.Errorf("%d %s %q", code, errs, f.rules)
	}
	if code, _, errs = f.command(t, "remove", "--apply"); code != exitOK || len(f.rules) != 0 {
		t.Errorf("%d %s %q", code, errs, f.rules)
	}
	if code, out, errs = f.command(t, "remove", "--apply"); code != exitOK || out != "" || !strings.Contains(errs, "Nothing is to be done") {
		t.Errorf("%d %s %s", code, out, errs)
	}
}

func TestFirewallDenied(t *testing.T) {
	f := &filtered{denied: true}
	for _, args := range [][]string{{"add", "--apply"}, {"remove", "--apply"}} {
		code, _, errs := f.command(t, args...)
		if code != exitRefused || !strings.Contains(errs, firewall.Privilege) || !strings.Contains(errs, "nothing was changed") {
			t.Errorf("%q: %d %s", args, code, errs)
		}
	}
	code, out, errs := f.command(t, "add")
	if code != exitOK || !strings.HasPrefix(out, "nft 'insert rule inet filter input ") || !strings.Contains(errs, "usual chain") {
		t.Errorf("%d %s %s", code, out, errs)
	}
	if code, out, _ = f.command(t, "remove"); code != exitOK || out != "" {
		t.Errorf("%d %s", code, out)
	}
	if code, out, _ = f.command(t, "show", "--fail"); code != exitInconclusive || !strings.Contains(out, "not read: iptables") {
		t.Errorf("%d %s", code, out)
	}
}

func TestFirewallUsage(t *testing.T) {
	for _, args := range [][]string{
		{},
		{"add", "--with", "ipchains"},
		{"add", "--with", "nft", "--apply"},
		{"remove", "--listen", ":5201"},
		{"add", "--listen", "5201"},
		{"add", "--listen", "127.0.0.1:5201", "--no-ntttcp"},
		{"add", "--ntttcp-base", "1"},
		{"add", "--ntttcp-base", "64600"},
		{"add", "--ntttcp-ports", "0"},
		{"add", "--ntttcp-ports", "513"},
		{"add", "--allow", "everybody"},
		{"open"},
	} {
		f := &filtered{}
		if code, _, errs := f.command(t, args...); code != exitUsage || errs == "" {
			t.Errorf("%q: %d %s", args, code, errs)
		}
		if len(f.ran) > 0 {
			t.Errorf("%q ran %q", args, f.ran)
		}
	}
}

func TestFirewallJSON(t *testing.T) {
	f := &filtered{}
	for _, args := range [][]string{{"show", "--json"}, {"add", "--json"}, {"add", "--apply", "--json"}, {"remove", "--json"}} {
		code, out, errs := f.command(t, args...)
		var d firewallDocument
		if err := json.Unmarshal([]byte(out), &d); err != nil || code != exitOK || errs != "" {
			t.Errorf("%q: %d %v %s %s", args, code, err, out, errs)
		}
		if len(d.Layers) != 1 || d.Layers[0].Kind != "iptables" || d.Summary == "" || d.Applied != strings.Contains(strings.Join(args, " "), "--apply") {
			t.Errorf("%q: %+v", args, d)
		}
		if args[0] != "show" && len(d.Layers[0].Commands) != 2 {
			t.Errorf("%q: %+v", args, d.Layers[0].Commands)
		}
	}
}

func TestFirewallWith(t *testing.T) {
	f := &filtered{}
	code, out, _ := f.command(t, "add", "--with", "netsh", "--program", `C:\t\fullbore.exe`)
	want := "netsh advfirewall firewall add rule name=fullbore dir=in action=allow program=C:\\t\\fullbore.exe protocol=any profile=any enable=yes\n"
	if code != exitOK || out != want || len(f.ran) > 0 {
		t.Errorf("%d %s %q", code, out, f.ran)
	}
}

package service

import (
	"context"
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files anew")

var (
	plain = Spec{Description: "fullbore: answers clients", Program: "/usr/local/bin/fullbore", Args: []Arg{{Text: "serve"}}}
	full  = Spec{
		Description: "100% of it", Program: "/opt/full bore/fullbore", LowPorts: true,
		Args: []Arg{{Text: "serve"}, {Text: "--listen=:801"}, {Text: "--allow=10.0.0.0/8"}, {Text: `--title=a "b" $c %d \e;`}, {Text: "--rsa-private-key=", File: "/etc/full%bore/key.pem"}, {Text: "--authorized-users=", File: "/etc/users & more.csv"}},
	}
)

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s: %s", name, diff)
	}
}

func TestTexts(t *testing.T) {
	for name, s := range map[string]Spec{"plain": plain, "full": full} {
		file, unit, steps, err := systemdText(s)
		if err != nil || file != "/etc/systemd/system/fullbore.service" || len(steps) != 2 {
			t.Errorf("%s %q %v", file, steps, err)
		}
		golden(t, name+".service", unit)
		file, plist, steps, err := launchdText(s)
		if err != nil || file != "/Library/LaunchDaemons/net.fullbore.serve.plist" || len(steps) != 3 {
			t.Errorf("%s %q %v", file, steps, err)
		}
		golden(t, name+".plist", plist)
		checkPlist(t, plist, append([]string{s.Program}, s.Words()...))
	}
}

// checkPlist reads the words back as an XML parser does.
func checkPlist(t *testing.T, text string, want []string) {
	t.Helper()
	var p struct {
		Words []string `xml:"dict>array>string"`
	}
	if err := xml.Unmarshal([]byte(text), &p); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, p.Words); diff != "" {
		t.Error(diff)
	}
}

func TestSystemdQuote(t *testing.T) {
	for in, want := range map[string]string{
		"serve": "serve", "": `""`, "a b": `"a b"`, "50%": "50%%", "$HOME": "$$HOME", `a"b\`: `"a\"b\\"`, "x;y": `"x;y"`, "a\tb": `"a\x09b"`, "it's": `"it's"`,
	} {
		if got := systemdQuote(in, false); got != want {
			t.Errorf("%q: %s, want %s", in, got, want)
		}
	}
}

// recorder is a manager that only notes what it is told.
type recorder struct {
	ran  []string
	fail string // the command that fails
}

func (r *recorder) manager(root string) Manager {
	return Manager{Root: root, Privileged: true, Run: func(_ context.Context, args ...string) error {
		line := strings.Join(args, " ")
		r.ran = append(r.ran, line)
		if line == r.fail {
			return errors.New("exit status 1")
		}
		return nil
	}}
}

// booted is a root where systemd runs.
func booted(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	if err := os.MkdirAll(filepath.Join(root, "run/systemd/system"), 0o755); err != nil {
		t.Fatal(err)
	}
	return root
}

func TestSystemdInstall(t *testing.T) {
	root, r := booted(t), &recorder{}
	m := r.manager(root)
	for i := range 2 {
		done, err := m.systemdInstall(t.Context(), plain)
		if err != nil || len(done) != 3 || strings.HasSuffix(done[0], "anew") != (i == 1) {
			t.Fatalf("%q %v", done, err)
		}
	}
	unitText, err := os.ReadFile(filepath.Join(root, unitFile))
	if err != nil || string(unitText) != unit(plain) {
		t.Errorf("%s %v", unitText, err)
	}
	install := []string{"systemctl daemon-reload", "systemctl enable fullbore", "systemctl restart fullbore"}
	if diff := cmp.Diff(append(install[:3:3], install...), r.ran); diff != "" {
		t.Error(diff)
	}
	r.ran = nil
	for i := range 2 {
		done, err := m.systemdUninstall(t.Context())
		if err != nil || (i == 1) != strings.Contains(strings.Join(done, ";"), "nothing to remove") {
			t.Errorf("%q %v", done, err)
		}
	}
	if _, err := os.Stat(filepath.Join(root, unitFile)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the unit is still there: %v", err)
	}
	if diff := cmp.Diff([]string{"systemctl disable --now fullbore", "systemctl daemon-reload"}, r.ran); diff != "" {
		t.Error(diff)
	}
}

func TestSystemdRefusals(t *testing.T) {
	r := &recorder{}
	unprivileged := r.manager(booted(t))
	unprivileged.Privileged = false
	if _, err := unprivileged.systemdInstall(t.Context(), plain); !errors.Is(err, ErrPrint) {
		t.Errorf("without root: %v", err)
	}
	if _, err := r.manager(t.TempDir()).systemdInstall(t.Context(), plain); !errors.Is(err, ErrPrint) {
		t.Errorf("without systemd: %v", err)
	}
	for _, program := range []string{"/root/fullbore", "/home/me/bin/fullbore", "/tmp/fullbore"} {
		s := plain
		s.Program = program
		var where *LocationError
		if _, err := r.manager(booted(t)).systemdInstall(t.Context(), s); !errors.As(err, &where) {
			t.Errorf("%s: %v", program, err)
		}
	}
	if len(r.ran) > 0 {
		t.Errorf("ran %q", r.ran)
	}
	r.fail = "systemctl restart fullbore"
	if done, err := r.manager(booted(t)).systemdInstall(t.Context(), plain); err == nil || len(done) != 2 {
		t.Errorf("a start that fails: %q %v", done, err)
	}
	root := booted(t)
	if _, err := (&recorder{}).manager(root).systemdInstall(t.Context(), plain); err != nil {
		t.Fatal(err)
	}
	m := r.manager(root)
	m.Privileged = false
	if _, err := m.systemdUninstall(t.Context()); !errors.Is(err, os.ErrPermission) {
		t.Errorf("removing without root: %v", err)
	}
}

func TestLines(t *testing.T) {
	var got []string
	l := &lines{line: func(s string) { got = append(got, s) }}
	for _, part := range []string{"one", " line\r\nsecond\n\n", "no end"} {
		if n, err := io.WriteString(l, part); n != len(part) || err != nil {
			t.Errorf("%d %v", n, err)
		}
	}
	l.flush()
	l.flush()
	if diff := cmp.Diff([]string{"one line", "second", "no end"}, got); diff != "" {
		t.Error(diff)
	}
	got = nil
	if _, err := io.WriteString(l, strings.Repeat("x", 3*longest)); err != nil {
		t.Fatal(err)
	}
	l.flush()
	if strings.Join(got, "") != strings.Repeat("x", 3*longest) || len(l.rest) > 0 {
		t.Errorf("%d pieces of a line without end", len(got))
	}
}

type memory struct{ strings.Builder }

func (*memory) Close() error { return nil }

func TestFileJournal(t *testing.T) {
	var m memory
	j := &fileJournal{w: &m, now: func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }}
	if err := errors.Join(j.Info("a word"), j.Info("2026-01-02 03:04:04 a test"), j.Warning("beware"), j.Close()); err != nil {
		t.Fatal(err)
	}
	if want := "2026-01-02 03:04:05 a word\r\n2026-01-02 03:04:04 a test\r\n2026-01-02 03:04:05 warning: beware\r\n"; m.String() != want {
		t.Errorf("%q", m.String())
	}
}

package service

import (
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

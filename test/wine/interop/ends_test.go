//go:build linux && amd64

package interop

import (
	"strings"
	"testing"

	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/test/recipes"
)

// TestKilled kills the Linux end in the middle of a long test: the Windows build ends by itself and
// has its part of the result. A receiver without synchronising cannot tell a sender that was killed
// from one that has ended; it says that this was before its time.
func TestKilled(t *testing.T) {
	m := on(t)
	const early = "ended after "
	for _, c := range []struct {
		name, receiver, sender string
		dialect                plan.NTTTCPDialect
		victim                 plan.NTTTCPRole
		exit                   int
		says                   string
	}{
		{"Windows", "-r -m 2,*,10.0.0.5 -t 600", "-s -m 2,*,10.0.0.5 -t 600", plan.NTTTCPWindows, plan.NTTTCPReceiver, 6, ""},
		{"Windows", "-r -m 2,*,10.0.0.5 -t 600", "-s -m 2,*,10.0.0.5 -t 600", plan.NTTTCPWindows, plan.NTTTCPSender, 6, "figures are missing"},
		{"Windows -ns", "-r -ns -m 2,*,10.0.0.5 -t 600", "-s -ns -m 2,*,10.0.0.5 -t 600", plan.NTTTCPWindows, plan.NTTTCPReceiver, 6, ""},
		{"Windows -ns", "-r -ns -m 2,*,10.0.0.5 -t 600", "-s -ns -m 2,*,10.0.0.5 -t 600", plan.NTTTCPWindows, plan.NTTTCPSender, 0, early},
		{"Linux", "-r -P 2 -t 600", "-s 10.0.0.5 -P 2 -n 1 -t 600", plan.NTTTCPLinux, plan.NTTTCPReceiver, 6, ""},
		{"Linux", "-r -P 2 -t 600", "-s 10.0.0.5 -P 2 -n 1 -t 600", plan.NTTTCPLinux, plan.NTTTCPSender, 6, ""},
		{"Linux -N", "-r -N -P 2 -t 600", "-s 10.0.0.5 -N -P 2 -n 1 -t 600", plan.NTTTCPLinux, plan.NTTTCPReceiver, 6, ""},
	} {
		t.Run(c.name+", "+string(c.victim)+" killed", func(t *testing.T) {
			r := recipes.Recipe{
				ID: c.name, Streams: 2,
				Receiver: recipes.Line{Dialect: c.dialect, Words: c.receiver}, Sender: recipes.Line{Dialect: c.dialect, Words: c.sender},
			}
			receiver, sender := m.own(), m.under()
			if c.victim == plan.NTTTCPSender {
				receiver, sender = sender, receiver
			}
			end := r.PlayKilled(t, m.Space, receiver, sender, c.victim)
			got, err := end.Totals()
			if err != nil || end.Exit != c.exit || got.Bytes <= 0 || got.Streams >= 0 && got.Streams != 2 || !strings.Contains(end.Stderr, c.says) {
				t.Errorf("%v, %+v\n%v", err, got, end)
			}
		})
	}
}

// TestNobody: there is nothing to talk to.
func TestNobody(t *testing.T) {
	m := on(t)
	for _, c := range []struct {
		name, words, says string
		exit              int
	}{
		{"no such host", "-s -m 1,*,nobody.invalid -t 1", "nobody.invalid", 4},
		{"no way there", "-s -m 1,*,10.0.0.9 -t 1", "10.0.0.9", 4},
		{"nobody listens", "-s -m 1,*,10.0.0.5 -t 1", "10.0.0.5", 4},
		{"nobody listens, Linux dialect", "--dialect linux -s 10.0.0.5 -P 1 -n 1 -t 1", "10.0.0.5", 24},
	} {
		t.Run(c.name, func(t *testing.T) {
			out := m.ntttcp(t, c.words)
			if out.Code != c.exit || strings.Contains(out.Stdout, "Totals") || !strings.Contains(out.Stdout+out.Stderr, c.says) {
				t.Errorf("exit %d\n%s%s", out.Code, out.Stdout, out.Stderr)
			}
		})
	}
}

// TestUsage: what is no command line.
func TestUsage(t *testing.T) {
	m := on(t)
	for _, c := range []struct {
		words, says string
		exit        int
	}{
		{"", "Version 5.40\n\nNTttcp: [-s|-r|", 9},
		{"-r -m 1,9999,10.0.0.5", "ERROR: ", 9},
		{"-s -m 1,*,10.0.0.5 -bogus", "ERROR: ", 9},
		{"-s -m 1,*,10.0.0.5 -uso 5", "ERROR: ", 9},
		{"--dialect linux -h", "NTTTCP for Linux 1.4.", 23},
	} {
		out := m.ntttcp(t, c.words)
		text, err := out.Stdout, error(nil)
		if c.exit == 9 {
			text, err = unixLines(text)
		}
		if err != nil || out.Code != c.exit || !strings.Contains(text, c.says) {
			t.Errorf("ntttcp %s: exit %d, %v\n%s%s", c.words, out.Code, err, out.Stdout, out.Stderr)
		}
	}
}

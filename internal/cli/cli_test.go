package cli

import (
	"errors"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/fullbore-net/fullbore/result"
)

func TestPersonality(t *testing.T) {
	for argv0, want := range map[string]string{
		"iperf3": "iperf3", "/usr/bin/iperf3": "iperf3", `C:\tools\IPERF3.EXE`: "iperf3", "./fullbore": "fullbore", "fullbore.exe": "fullbore",
	} {
		if got := personality(argv0); got != want {
			t.Errorf("personality(%q) = %q, want %q", argv0, got, want)
		}
	}
}

func TestParseListen(t *testing.T) {
	ap := netip.MustParseAddrPort
	for _, c := range []struct {
		word string
		v4   bool
		want []netip.AddrPort
		bad  bool
	}{
		{word: ":5201", want: []netip.AddrPort{ap("[::]:5201")}},
		{word: ":5201", v4: true, want: []netip.AddrPort{ap("0.0.0.0:5201")}},
		{word: "192.0.2.1:0", want: []netip.AddrPort{ap("192.0.2.1:0")}},
		{word: "[2001:db8::1]:5201-5203", want: []netip.AddrPort{ap("[2001:db8::1]:5201"), ap("[2001:db8::1]:5202"), ap("[2001:db8::1]:5203")}},
		{word: "5201", bad: true},
		{word: "somehost:5201", bad: true},
		{word: ":70000", bad: true},
		{word: ":5210-5201", bad: true},
		{word: ":0-3", bad: true},
		{word: ":", bad: true},
	} {
		got, err := parseListen(c.word, c.v4)
		var usage *UsageError
		if c.bad != errors.As(err, &usage) {
			t.Errorf("%q: error %v, want a usage error: %v", c.word, err, c.bad)
		}
		if diff := cmp.Diff(c.want, got, cmpopts.EquateComparable(netip.AddrPort{})); diff != "" {
			t.Errorf("%q: %s", c.word, diff)
		}
	}
}

func TestExitCodes(t *testing.T) {
	for _, c := range []struct {
		err  error
		want int
	}{
		{nil, exitOK},
		{usagef("x"), exitUsage},
		{&codeError{code: exitMissed}, exitMissed},
		{&result.Error{Code: "connect"}, exitConnect},
		{&result.Error{Code: "busy", Remote: true}, exitRefused},
		{&result.Error{Code: "interrupted", Interrupted: true}, exitInterrupted},
		{&result.Error{Code: "interrupted", Interrupted: true, Remote: true}, exitBroken},
		{&result.Error{Code: "peer-closed"}, exitBroken},
		{errors.New("anything else"), exitBroken},
	} {
		if got := exitCode(c.err); got != c.want {
			t.Errorf("exitCode(%v) = %d, want %d", c.err, got, c.want)
		}
	}
	errs := []error{nil, &codeError{code: exitMissed}, &codeError{code: exitBroken}, &codeError{code: exitInconclusive}}
	if got := exitCode(worst(errs)); got != exitBroken {
		t.Errorf("worst of %v gives %d", errs, got)
	}
}

func TestHostList(t *testing.T) {
	file := filepath.Join(t.TempDir(), "hosts")
	if err := os.WriteFile(file, []byte("# lab\na.example\n\n  b.example  \n"), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := hostList([]string{"first", "@" + file})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"first", "a.example", "b.example"}, got); diff != "" {
		t.Error(diff)
	}
	if _, err := hostList([]string{"@" + file + "x"}); exitCode(err) != exitUsage {
		t.Errorf("missing file: %v", err)
	}
}

func TestThreshold(t *testing.T) {
	for _, bad := range []string{"", "5G", ">= fast", "=> 5G", ">= 5 GB", "loss <= 2", "speed >= 1M", "jitter <= 5", "loss <= 0.1%,", "rate >= 1M loss <= 1%"} {
		if th, err := parseThresholds(bad, true); err == nil {
			t.Errorf("%q was read as %+v", bad, th)
		}
	}
	rate := func(v float64) *result.Run {
		return &result.Run{Sums: []result.Sum{{Direction: result.Up, Goodput: &v}}}
	}
	udp := func(loss, jitter, pdv float64) *result.Run {
		return &result.Run{Test: result.Test{Transport: "udp"}, Sums: []result.Sum{{Direction: result.Up, UDP: &result.UDPStream{
			Loss:     &result.UDPLoss{Sent: 1e6, Lost: int64(loss * 1e6)},
			Received: &result.UDPReceived{Jitter: &result.Jitter{Mean: jitter}, PDV: &result.Quantiles{P99: pdv}},
		}}}}
	}
	e := &env{Std: Std{Err: nopWriter{}}}
	for _, c := range []struct {
		text string
		run  *result.Run
		want int
	}{
		{">= 5 Gbit/s", rate(5e9), exitOK},
		{"> 5 Gbit/s", rate(5e9), exitMissed},
		{">=5G", rate(4.999e9), exitMissed},
		{"<= 1M", rate(1e6), exitOK},
		{"< 1M", rate(2e6), exitMissed},
		{">= 1M", &result.Run{Sums: []result.Sum{{Direction: result.Up}}}, exitInconclusive},
		{"loss <= 0.1%", udp(0.001, 0, 0), exitOK},
		{"loss <= 0.1%", udp(0.0011, 0, 0), exitMissed},
		{"loss<1e-3", udp(0.001, 0, 0), exitMissed},
		{"jitter <= 5ms", udp(0, 0.005, 0), exitOK},
		{"Jitter <= 5ms , loss <= 1%", udp(0, 0.006, 0), exitMissed},
		{"pdv < 10ms", udp(0, 0, 0.02), exitMissed},
		{"loss <= 1%, rate >= 1M", udp(0, 0, 0), exitInconclusive},
		{"rate >= 1M, loss <= 1%", udp(0.5, 0, 0), exitInconclusive},
		{"loss <= 1%", rate(1e6), exitInconclusive},
	} {
		th, err := parseThresholds(c.text, true)
		if err != nil {
			t.Errorf("%q: %v", c.text, err)
			continue
		}
		if got := exitCode(checkAll(th, e, c.run, nil)); got != c.want {
			t.Errorf("%q: exit %d, want %d", c.text, got, c.want)
		}
	}
}

type nopWriter struct{}

func (nopWriter) Write(p []byte) (int, error) { return len(p), nil }

// TestDumbTerminal: a console that shows control sequences as they are gets none.
func TestDumbTerminal(t *testing.T) {
	for _, dumb := range []bool{false, true} {
		e := &env{Std: Std{Terminal: true, Dumb: dumb, Getenv: func(string) string { return "" }, Size: func() (int, int) { return 100, 40 }}}
		if e.canLive() == dumb {
			t.Errorf("dumb: %v, live view: %v", dumb, e.canLive())
		}
	}
}

// TestRestore: the terminal's mode is put back at the end of the command.
func TestRestore(t *testing.T) {
	restored := 0
	std := Std{Out: io.Discard, Err: io.Discard, In: strings.NewReader(""), Getenv: func(string) string { return "" }, Now: time.Now, Restore: func() { restored++ }}
	if code := Main(t.Context(), []string{"fullbore", "version"}, std); code != exitOK || restored != 1 {
		t.Errorf("exit code %d, restored %d times", code, restored)
	}
}

package lab_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fullbore-net/fullbore/internal/lab"
	"github.com/fullbore-net/fullbore/internal/lab/link"
)

func options(t *testing.T) lab.RunOptions {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return lab.RunOptions{Fullbore: exe, Log: func(p lab.Play) { t.Log(p) }}
}

func parse(t *testing.T, text string) *lab.Scenario {
	t.Helper()
	s, err := lab.ParseScenario(t.Name(), []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestRunLink plays a transfer over a link with loss and compares it with the truth.
func TestRunLink(t *testing.T) {
	needNamespaces(t)
	s := parse(t, `
name: a link with loss
topology: link
cc: cubic
path: {rtt: 10ms, seed: 5, both: {rate: 50M, queue: 2 bdp, loss: 0.01%}}
server: fullbore sink
client: fullbore source $SERVER 1s
expect:
  exit: 0
  json: [sent > 1M]
  stderr: [source done]
  server:
    json: [bytes > 1M]
  goodput:
    - {direction: up, document: server, bytes: bytes, start: start_s, end: end_s, zero: zero_mono_ns, tolerance: 0.5%}
`)
	got, err := lab.Run(testContext(t), s, options(t))
	if err != nil {
		t.Fatal(err)
	}
	if got.Verdict == lab.Wrong {
		t.Errorf("wrong: %q", got.Reasons)
	}
	t.Logf("%s after %d plays", got.Verdict, len(got.Plays))
}

// TestRunSettings: what a scenario sets is set, in a topology without a link.
func TestRunSettings(t *testing.T) {
	needNamespaces(t)
	s := parse(t, `
name: settings
topology: routed
cc: reno
hosts:
  client: {sysctl: {net.ipv4.tcp_rmem: 4096 5000 6000}, hosts: ["10.77.2.2 far"]}
  server: {nft: add table inet lab_test}
  router: {sysctl: {net.ipv4.ip_default_ttl: 99}}
devices:
  rb: {mtu: 1300, tbf: {rate: 2M, burst: 16K, latency: 50ms}}
  va: {addresses: [10.77.1.11/24]}
client:
  - sh
  - -c
  - |
    set -e
    cat /proc/sys/net/ipv4/tcp_rmem /etc/hosts
    ip -br addr show va
    ip route get 10.77.2.2
    ip route show default
    echo $CLIENT $CLIENT6 $SERVER $SERVER6
expect:
  exit: 0
  stdout: ["4096\t5000\t6000", 10.77.2.2 far, 10.77.1.11/24, congctl reno, 10.77.1.2 fd77:1::2 10.77.2.2 fd77:2::2]
  stderr_lacks: [not found]
`)
	got, err := lab.Run(testContext(t), s, options(t))
	if err != nil {
		t.Fatal(err)
	}
	if got.Verdict == lab.Wrong {
		t.Errorf("%q\n%+v", got.Reasons, got.Plays)
	}
}

func TestRunTimeout(t *testing.T) {
	needNamespaces(t)
	s := parse(t, "{name: slow, topology: pair, cc: reno, client: sleep 600, timeout: 1s, expect: {exit: 0}}")
	got, err := lab.Run(testContext(t), s, options(t))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"client: did not end within the scenario's timeout and was killed"}
	if got.Verdict == lab.Wrong && !cmp.Equal(got.Reasons, want) || got.Right() {
		t.Errorf("%s: %q", got.Verdict, got.Reasons)
	}
}

// TestRunImpossible: what cannot be played is an error, and leaves nothing behind.
func TestRunImpossible(t *testing.T) {
	needNamespaces(t)
	cancelled, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("no more"))
	tests := []struct {
		name, text string
		ctx        context.Context
		want       string
	}{
		{"no such client", "client: /nonexistent", t.Context(), "no such file or directory"},
		{"no such server", "{server: /nonexistent, client: x}", t.Context(), "no such file or directory"},
		{"a server that ends", `{server: [sh, -c, "echo broken; exit 3"], client: x}`, t.Context(), "ended with exit code 3 before it listened: broken"},
		{"cancelled", "client: sleep 600", cancelled, "no more"},
		{"cancelled while the server starts", "{server: sleep 600, client: x}", cancelled, "no more"},
		{"a sysctl that is not there", "{client: x, hosts: {client: {sysctl: {net.nosuch: 1}}}}", t.Context(), "net.nosuch"},
		{"a counter that is not there", "{client: sh -c exit, expect: {exit: 0, nft: [{host: server, counter: c, claim: a}]}}", t.Context(), `no nft counter is called "c"`},
		{"a kernel counter that is not there", "{client: x, expect: {exit: 0, snmp: [{host: server, counter: Udp.X, claim: a, tolerance: 0%}]}}", t.Context(), `the kernel has no counter "Udp.X"`},
		{"bad nft rules", "{client: x, hosts: {server: {nft: nonsense}}}", t.Context(), "nft -f -: exit code 1"},
		{"an address that is none", "{client: x, devices: {va: {addresses: [1.2.3]}}}", t.Context(), "1.2.3"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			body := strings.Trim(tt.text, "{}")
			if strings.HasPrefix(tt.text, "{") {
				body = tt.text[1 : len(tt.text)-1]
			}
			if !strings.Contains(body, "expect:") {
				body += ", expect: {exit: 0}"
			}
			s := parse(t, "{name: impossible, topology: pair, cc: reno, "+body+"}")
			_, err := lab.Run(tt.ctx, s, options(t))
			if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.HasPrefix(err.Error(), "lab: impossible: ") {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
	left, err := filepath.Glob(fmt.Sprintf("/run/netns/fullbore-lab-%d-*", os.Getpid()))
	if err != nil || len(left) != 0 {
		t.Errorf("left behind: %q, %v", left, err)
	}
}

func TestRunFile(t *testing.T) {
	needNamespaces(t)
	file := filepath.Join(t.TempDir(), "x.scenario")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	o := options(t)
	var out bytes.Buffer
	write("{name: two is two, topology: pair, cc: reno, client: sh -c exit, expect: {exit: 2}}")
	got, err := lab.RunFile(testContext(t), file, o, &out)
	if err != nil {
		t.Fatal(err)
	}
	text := out.String()
	if !strings.HasPrefix(text, "two is two: play 1: ") || got.Verdict == lab.Wrong &&
		!strings.HasSuffix(text, "two is two: wrong\n  client: exit code 0, want 2\n") {
		t.Errorf("%s: %q", got.Verdict, text)
	}
	write("{name: x}")
	if _, err := lab.RunFile(testContext(t), file, o, &out); err == nil || !strings.Contains(err.Error(), "x.scenario: topology: is missing") {
		t.Errorf("a bad file: %v", err)
	}
}

// TestShell runs a script in place of the shell.
func TestShell(t *testing.T) {
	needNamespaces(t)
	dir := t.TempDir()
	script := filepath.Join(dir, "script")
	err := os.WriteFile(script, []byte(`#!/bin/sh
exec >>`+dir+`/said 2>&1
echo "$SERVER $SERVER6"
cat /sys/class/net/ta/mtu
ip route show | grep -c 'congctl reno'
case $PATH in "`+filepath.Dir(options(t).Fullbore)+`":*) echo path ;; esac
`+options(t).Fullbore+` source "$SERVER" 10ms >/dev/null
until grep -q zero_mono_ns "$SERVER_LOG"; do :; done
setsid sleep 600 &
exit 3
`), 0o700)
	if err != nil {
		t.Fatal(err)
	}
	out, err := os.Create(filepath.Join(dir, "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	o := lab.ShellOptions{
		Rate: 50e6, RTT: 4e6, CC: "reno", Faults: link.Faults{Hole: 1500}, Fullbore: options(t).Fullbore,
		Server: []string{options(t).Fullbore, "sink"}, Program: script,
	}
	if err := lab.Shell(testContext(t), o, lab.Stdio{In: out, Out: out, Err: out}); err != nil {
		t.Fatal(err)
	}
	said, err := os.ReadFile(filepath.Join(dir, "said"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("10.77.0.2 fd77::2\n1500\n1\npath\nsource done\n", string(said)); diff != "" {
		t.Errorf("the script said (-want +got):\n%s", diff)
	}
	text, err := os.ReadFile(out.Name())
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"emulated path: 50.0 Mbit/s each way, 4 ms round trip, queue 25.0 kB, no random loss, a hole above 1500 bytes, MTU 1500, reno\n",
		"  this shell  10.77.0.1  fd77::1  (namespace fullbore-lab-", "sink\n", "\nup    ", "\ndown  ", " 0 lost unasked",
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("printed\n%s\nwhich lacks %q", text, want)
		}
	}
	left, err := filepath.Glob(fmt.Sprintf("/run/netns/fullbore-lab-%d-*", os.Getpid()))
	if err != nil || len(left) != 0 {
		t.Errorf("left behind: %q, %v", left, err)
	}
	if logs, err := filepath.Glob(filepath.Join(os.TempDir(), "fullbore-lab-server-*")); err != nil || len(logs) != 0 {
		t.Errorf("left behind: %q, %v", logs, err)
	}

	for _, bad := range []struct {
		o    lab.ShellOptions
		want string
	}{
		{lab.ShellOptions{Rate: -1}, "rate -1"},
		{lab.ShellOptions{Queue: 100}, "holds no packet"},
		{lab.ShellOptions{Faults: link.Faults{Duplicate: 2}}, "duplicate 2"},
		{lab.ShellOptions{CC: "nosuch"}, "nosuch"},
		{lab.ShellOptions{Server: []string{"sh", "-c", "echo broken; exit 1"}}, "broken"},
	} {
		bad.o.Fullbore, bad.o.Program = o.Fullbore, "/bin/true"
		if err := lab.Shell(testContext(t), bad.o, lab.Stdio{In: out, Out: out, Err: out}); err == nil || !strings.Contains(err.Error(), bad.want) {
			t.Errorf("%+v: %v, want %q", bad.o, err, bad.want)
		}
	}
}

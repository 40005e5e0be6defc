//go:build linux && amd64

package wine

import (
	"net"
	"strconv"
	"strings"
	"testing"
	"time"
)

// freePort is one that nobody listens on, outside of the range from which systems take
// the ports of outgoing connections, and of that in which test/script looks, beside which this
// may run.
func freePort(t *testing.T) string {
	t.Helper()
	for port := 30001; port < 32000; port += 7 {
		ln, err := net.Listen("tcp4", "127.0.0.1:"+strconv.Itoa(port))
		if err != nil {
			continue
		}
		if err := ln.Close(); err != nil {
			t.Fatal(err)
		}
		return strconv.Itoa(port)
	}
	t.Fatal("no free port")
	return ""
}

// listening waits until a server says that it is there.
func (p *process) listening() {
	p.t.Helper()
	for deadline := time.Now().Add(time.Minute); !strings.Contains(contents(p.t, p.out), "listening on"); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			p.t.Fatalf("it does not listen: %s%s", contents(p.t, p.out), contents(p.t, p.errs))
		}
	}
}

// TestPairs: Windows and Linux, each as server and as client, both directions, TCP and UDP.
func TestPairs(t *testing.T) {
	env, exe, linux := prefix(t), withUDP(t), native(t)
	windows := func(args ...string) []string { return append([]string{wine64, exe}, args...) }
	plain := func(args ...string) []string { return append([]string{linux}, args...) }
	for _, pair := range []struct {
		name           string
		server, client func(...string) []string
	}{{"Windows serves", windows, plain}, {"Linux serves", plain, windows}} {
		t.Run(pair.name, func(t *testing.T) {
			port := freePort(t)
			words := pair.server("serve", "--listen", "127.0.0.1:"+port, "--no-ntttcp", "--until-stdin-closes")
			// Its input is /dev/null for Wine, which counts as closed: a pipe holds it open.
			server := startOpen(t, env, 5*time.Minute, words[0], words[1:]...)
			server.listening()
			for _, more := range [][]string{{"-n", "4M"}, {"-n", "4M", "-R", "-P", "2"}, {"-u", "-b", "2M", "-t", "1"}, {"-u", "-b", "2M", "-t", "1", "-R"}} {
				c := pair.client(append([]string{"iperf3", "-c", "127.0.0.1", "-p", port}, more...)...)
				if out := run(t, env, 2*time.Minute, c[0], c[1:]...); !strings.Contains(out, "iperf Done.") {
					t.Errorf("%q: %s", more, out)
				}
			}
		})
	}
}

// TestFirewall: the state of Windows' firewall is read where Windows keeps it.
func TestFirewall(t *testing.T) {
	env, exe := prefix(t), release(t)
	const key = `HKLM\SYSTEM\CurrentControlSet\Services\SharedAccess\Parameters\FirewallPolicy`
	reg := func(args ...string) {
		run(t, env, time.Minute, wine64, append([]string{"reg"}, args...)...)
	}
	for _, p := range []string{"Domain", "Standard", "Public"} {
		reg("add", key+`\`+p+"Profile", "/v", "EnableFirewall", "/t", "REG_DWORD", "/d", "1", "/f")
	}
	t.Cleanup(func() { reg("delete", key, "/f") })
	code, out, errs := start(t, env, time.Minute, wine64, exe, "firewall", "show", "--fail", "--no-ntttcp").wait()
	if code != 1 || !strings.Contains(out, "domain on, private on, public on") || !strings.Contains(out, "no rule lets this program in") {
		t.Errorf("exit code %d\n%s%s", code, out, errs)
	}
	add := run(t, env, time.Minute, wine64, exe, "firewall", "add")
	_, program, found := strings.Cut(strings.ReplaceAll(add, `"`, ""), "program=")
	program, _, _ = strings.Cut(program, " protocol=")
	if !found || !strings.HasPrefix(program, `Z:\`) {
		t.Fatalf("%s", add)
	}
	reg("add", key+`\FirewallRules`, "/v", "{1}", "/d", `v2.32|Action=Allow|Active=TRUE|Dir=In|App=`+program+`|Name=fullbore|`, "/f")
	reg("add", key+`\FirewallRules`, "/v", "{2}", "/d", `v2.32|Action=Allow|Active=TRUE|Dir=In|App=`+program+`|Name=fullbore-run-99999-1700000000|`, "/f")
	code, out, errs = start(t, env, time.Minute, wine64, exe, "firewall", "show", "--fail").wait()
	if code != 0 || !strings.Contains(out, "look open here") || !strings.Contains(out, "left behind by a run that is over") {
		t.Errorf("exit code %d\n%s%s", code, out, errs)
	}
	remove := run(t, env, time.Minute, wine64, exe, "firewall", "remove")
	for _, name := range []string{"fullbore", "fullbore-run-99999-1700000000"} {
		if line := "netsh advfirewall firewall delete rule name=" + name + " dir=in"; !strings.Contains(remove, line) {
			t.Errorf("no %q in:\n%s", line, remove)
		}
	}
	reg("add", key+`\FirewallRules`, "/v", "{3}", "/d", `v2.32|Action=Block|Active=TRUE|Dir=In|Protocol=6|App=`+program+`|Name=blocked|`, "/f")
	if code, out, errs = start(t, env, time.Minute, wine64, exe, "firewall", "show", "--fail").wait(); code != 1 || !strings.Contains(out, "rule “blocked” blocks this program") {
		t.Errorf("exit code %d\n%s%s", code, out, errs)
	}
}

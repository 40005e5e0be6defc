// Package firewall runs the command line between two namespaces, of which the far one
// drops what nobody let in: what `fullbore firewall` and `--open-firewall` promise must
// hold for real packets.
package firewall

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fullbore-net/fullbore/internal/lab"
)

var program string // the program under test

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	_ = os.Setenv("FULLBORE_HISTORY", "off") // not into the developer's own
	if program = os.Getenv("FULLBORE"); program != "" {
		return m.Run()
	}
	dir, err := os.MkdirTemp("", "firewall")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	program = filepath.Join(dir, "fullbore")
	if out, err := exec.Command("go", "build", "-o", program, "../../cmd/fullbore").CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}

const port = "5301"

// rules let in what belongs to a known flow, neighbours' questions, and nothing else.
const rules = `add table inet filter
add chain inet filter input { type filter hook input priority 0; policy drop; }
add rule inet filter input ct state established,related accept
add rule inet filter input meta l4proto ipv6-icmp accept
add rule inet filter input tcp dport 5301 reject with tcp reset`

type bench struct {
	*testing.T
	net *lab.Network
}

func newBench(t *testing.T) *bench {
	t.Helper()
	if os.Getuid() != 0 {
		if os.Getenv("CI") != "" {
			t.Fatal("CI runs as root: namespaces are needed")
		}
		t.Skip("needs root for network namespaces; make test runs as root in CI")
	}
	n, err := lab.NewPair("cubic")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	})
	b := &bench{t, n}
	b.far("nft", rules)
	return b
}

// far runs a program in the far namespace to its end and returns what it printed.
func (b *bench) far(args ...string) string {
	b.Helper()
	code, out := b.wait(b.start(b.net.Far, args...))
	if code != 0 {
		b.Fatalf("%q: exit code %d\n%s", args, code, out)
	}
	return out
}

func (b *bench) start(ns *lab.Namespace, args ...string) *lab.Process {
	b.Helper()
	p, err := ns.Start(lab.Command{Args: args})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = p.Signal(os.Kill) // it may have ended long ago
		<-p.Done()
	})
	return p
}

// wait waits for the end, a minute at most.
func (b *bench) wait(p *lab.Process) (code int, out string) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), time.Minute)
	defer cancel()
	code, err := p.Wait(ctx)
	out = p.Stdout() + p.Stderr()
	if err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	return code, out
}

// serve starts a receiver and waits until it says that it listens.
func (b *bench) serve(args ...string) *lab.Process {
	b.Helper()
	p := b.start(b.net.Far, append([]string{program, "serve", "--listen", ":" + port, "--no-ntttcp"}, args...)...)
	for deadline := time.Now().Add(time.Minute); !strings.Contains(p.Stdout(), "listening on"); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			b.Fatalf("it does not listen: %s%s", p.Stdout(), p.Stderr())
		}
	}
	return p
}

// ours are the lines of the far ruleset that bear our name.
func (b *bench) ours() []string {
	b.Helper()
	var out []string
	for line := range strings.Lines(b.far("nft", "-a", "list", "ruleset")) {
		if strings.Contains(line, `comment "fullbore`) {
			out = append(out, strings.TrimSpace(line))
		}
	}
	return out
}

// measure runs clients against the far end, all of which must do or none.
func (b *bench) measure(open bool) {
	b.Helper()
	clients := [][]string{{}, {"-R"}, {"-u", "-b", "20M"}}
	if !open {
		clients = clients[:1] // refused at once
	}
	for _, more := range clients {
		args := append([]string{program, "iperf3", "-c", lab.FarIPv4, "-p", port, "-n", "200K"}, more...)
		code, out := b.wait(b.start(b.net.Near, args...))
		if open != (code == 0) {
			b.Errorf("%q: exit code %d, open: %v\n%s", more, code, open, out)
		}
	}
}

func TestOpenFirewall(t *testing.T) {
	b := newBench(t)
	plain := b.serve()
	b.measure(false)
	b.stop(plain, os.Interrupt, 0)

	first := b.serve("--open-firewall")
	b.measure(true)
	if rules := b.ours(); len(rules) != 2 || !strings.Contains(rules[0]+rules[1], "fullbore-run-") {
		t.Errorf("rules of the run: %q", rules)
	}
	b.stop(first, os.Interrupt, 0)
	if rules := b.ours(); len(rules) > 0 {
		t.Errorf("after Ctrl-C there is left: %q", rules)
	}

	killed := b.serve("--open-firewall")
	left := b.ours()
	b.stop(killed, os.Kill, -1)
	if show := b.far(program, "firewall", "show", "--listen", ":"+port, "--no-ntttcp"); !strings.Contains(show, "left behind by a run that is over") {
		t.Errorf("show does not tell of the rule of the killed run:\n%s", show)
	}
	next := b.serve("--open-firewall", "--allow", "10.0.0.0/8,192.0.2.0/24,fd00::/8")
	for _, rule := range b.ours() {
		for _, old := range left {
			if name := strings.Fields(old[strings.Index(old, `comment "`):])[1]; strings.Contains(rule, name) {
				t.Errorf("the killed run's rule is still there: %s", rule)
			}
		}
	}
	if !strings.Contains(next.Stderr(), "left behind") {
		t.Errorf("nothing is said of the rule that was removed:\n%s", next.Stderr())
	}
	b.stop(next, syscall.SIGTERM, 0)
	if rules := b.ours(); len(rules) > 0 {
		t.Errorf("at the end there is left: %q", rules)
	}
}

// stop sends a signal and checks the exit code; -1 is any.
func (b *bench) stop(p *lab.Process, s os.Signal, want int) {
	b.Helper()
	if err := p.Signal(s); err != nil {
		b.Fatal(err)
	}
	if code, out := b.wait(p); want >= 0 && code != want {
		b.Errorf("exit code %d, want %d\n%s", code, want, out)
	}
}

func TestFirewallCommand(t *testing.T) {
	b := newBench(t)
	b.serve()
	b.measure(false)
	ports := []string{"--listen", ":" + port, "--no-ntttcp"}
	b.far(append([]string{program, "firewall", "add", "--apply"}, ports...)...)
	b.measure(true)
	if show := b.far(append([]string{program, "firewall", "show", "--fail"}, ports...)...); !strings.Contains(show, "look open here") {
		t.Error(show)
	}
	b.far(program, "firewall", "remove", "--apply")
	b.measure(false)
	// The printed lines do the same.
	b.far("sh", "-c", strings.Join(append([]string{program, "firewall", "add"}, ports...), " ")+" 2>/dev/null | sh -e")
	b.measure(true)
	b.far("sh", "-c", program+" firewall remove 2>/dev/null | sh -e")
	b.measure(false)
	if rules := b.ours(); len(rules) > 0 {
		t.Errorf("at the end there is left: %q", rules)
	}
}

package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/fullbore-net/fullbore/internal/lab"
)

// short is one scenario of each family and some more, a few seconds each (design §8, the tier
// that CI plays). `make truth` plays them all.
var short = []struct{ family, file string }{
	{"rate", "rate-50m-5ms"},
	{"bytes", "bytes-200m-28ms"},
	{"loss", "loss-50m-28ms"},
	{"a processor quota", "cpu-quota-server-up"},
	{"datagrams dropped by a rule", "udp-drop-10-up"},
	{"datagrams dropped by a rule, with offload", "udp-drop-1-down-offload"},
	{"bursts", "udp-bursts-up"},
	{"outage", "udp-outage-down"},
	{"order and copies", "udp-reorder-up"},
	{"delay variation", "udp-jitter-ordered-up"},
	{"starved receiver", "udp-starved-up"},
	{"NTTTCP of Linux", "ntttcp-linux-50m-5ms"},
	{"NTTTCP of Windows, bytes", "ntttcp-windows-bytes-200m-28ms"},
	{"NTTTCP, datagrams dropped by a rule", "ntttcp-windows-udp-drop-10"},
	{"iperf3 at the far end", "udp-iperf3-server-down"},
	{"iperf3 at the near end", "udp-iperf3-client-up"},
	{"diagnosis, nothing is wrong", "diagnose-clean-ipv6-80m-15ms"},
	{"diagnosis, window", "diagnose-quick-window"},
	{"diagnosis, loss", "diagnose-loss-1-ipv6"},
	{"diagnosis, a clean path", "diagnose-quick-clean"},
	{"diagnosis, much loss", "diagnose-quick-loss"},
	{"diagnosis, a smaller MTU", "diagnose-small-mtu-1300-down"},
	{"diagnosis, traffic beside it", "diagnose-competing-on-path"},
	{"diagnosis, iperf3 at the far end, window", "diagnose-plain-iperf3-window"},
	{"diagnosis, NTTTCP at the far end, window", "diagnose-ntttcp-window"},
}

// again is how often CI repeats a void play: the whole stage must end in minutes on a busy
// machine, too.
const again = 2

// program is the program under test.
func program(t *testing.T) string {
	t.Helper()
	if p := os.Getenv("FULLBORE"); p != "" {
		return p
	}
	p := filepath.Join(t.TempDir(), "fullbore")
	if out, err := exec.Command("go", "build", "-o", p, "../../cmd/fullbore").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	return p
}

// TestLive plays the short scenarios. A machine that is never fit proves nothing, which
// is logged and is no failure.
func TestLive(t *testing.T) {
	if err := lab.Check(); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	fullbore := program(t)
	for _, s := range short {
		t.Run(s.family, func(t *testing.T) {
			file := filepath.Join("../../testdata/scenarios", s.file+".scenario")
			sc, err := lab.LoadScenario(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, command := range [][]string{sc.Server, sc.Client} {
				if len(command) == 0 || command[0] == "fullbore" {
					continue
				}
				if _, err := exec.LookPath(command[0]); err != nil {
					if os.Getenv("CI") != "" {
						t.Fatal(err)
					}
					t.Skipf("%v: test/peers.sh installs it", err)
				}
			}
			var said bytes.Buffer
			o, err := lab.RunFile(t.Context(), file, lab.RunOptions{Fullbore: fullbore, Replays: again}, &said)
			if err != nil {
				t.Fatal(err)
			}
			t.Log(said.String())
			if o.Cannot() && os.Getenv("CI") == "" {
				t.Skip(o.Reasons)
			}
			if !o.Right() && !o.Unfit() {
				t.Errorf("%s: %q", s.file, o.Reasons)
			}
		})
	}
}

// TestShortExists: the list names files that are there.
func TestShortExists(t *testing.T) {
	for _, s := range short {
		if _, err := lab.LoadScenario(fmt.Sprintf("../../testdata/scenarios/%s.scenario", s.file)); err != nil {
			t.Error(err)
		}
	}
}

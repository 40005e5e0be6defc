package script

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fullbore-net/fullbore/result"
)

// againstIperf3 are the commands that measure, each as short as it gets, against an iperf3 server: it
// knows nothing of probes, steering or what its own host drops.
var againstIperf3 = []struct {
	name  string
	args  string   // HOST is the server
	codes []int    // an answer, or an honest "not known"; what a busy machine makes of the figures is not judged
	kind  string   // of the document; "" = a run
	says  []string // codes of notices
	words string   // what the document says beside
}{
	{name: "test", args: "test HOST -n 1M --both", codes: []int{0}, says: []string{"foreign-peer"}, words: "which tells its totals and CPU time only; not known: "},
	{name: "test-udp", args: "test HOST -u -b 2M -t 400ms --up", codes: []int{0}, says: []string{"foreign-peer"}},
	{name: "rounds", args: "test HOST -n 100K --up --rounds 2 --pause 10ms", codes: []int{0}, kind: "test", says: []string{"foreign-peer"}},
	{name: "delay", args: "delay HOST -t 1", codes: []int{0}, kind: "delay", says: []string{"foreign-peer"}, words: "the other end does not answer probes (fullbore serve there would)"},
	{name: "delay-tcp", args: "delay HOST --tcp -t 1", codes: []int{0}, words: "the time of a request and its answer is not known: the other end answers none"},
	{name: "load", args: "load HOST --up --idle 300ms -t 0.5 --max-rate 20M", codes: []int{0, 2}, kind: "load", says: []string{"no-probes", "foreign-peer"}},
	{name: "mtu", args: "mtu HOST", codes: []int{0}, kind: "mtu", says: []string{"mtu-one-way"}},
	{name: "sweep", args: "sweep streams HOST --over 1,2 -t 300ms -O 0 --pause 10ms --max-rate 20M", codes: []int{0, 2}, kind: "sweep", says: []string{"foreign-peer"}},
	{name: "connrate", args: "connrate HOST --from 5 --most 10 -t 200ms", codes: []int{0, 2, 4}, kind: "connrate", words: `"exchange": false`},
	{name: "udpmax", args: "udpmax HOST --down --preset quick --max-rate 1M -l 1400", codes: []int{0, 2}, kind: "udpmax", says: []string{"loss-owner"}},
	{name: "capacity", args: "capacity HOST --max-rate 1M -l 1000 --up -t 2", codes: []int{0, 2}, kind: "capacity", says: []string{"not-steered", "loss-owner"}},
	{name: "model", args: "model HOST --rate 2.5M --rtt 50ms --up --no-bursts", codes: []int{0, 1, 2}, kind: "model", says: []string{"loss-owner"}},
	{name: "rfc6349", args: "rfc6349 HOST --quick -t 200ms --link 10M", codes: []int{0, 1, 2}, kind: "rfc6349", says: []string{"rtt-by-tcp", "bottleneck-exceeded"}},
	{name: "y1564", args: "y1564 FILE HOST --quick", codes: []int{0, 1, 2}, kind: "y1564", says: []string{"ftd-unknown", "no-probes", "loss-owner"}},
	{name: "rfc2544", args: "rfc2544 HOST --isolated --quick --link 1M --sizes 1518 --up --parts throughput", codes: []int{0, 1, 2}, kind: "rfc2544", says: []string{"loss-owner"}},
	{name: "soak", args: "soak HOST -t 5s -b 2M", codes: []int{0, 1, 2}, kind: "soak", says: []string{"foreign-peer"}},
	{name: "accept", args: "accept HOST --suite FILE --quick --link 10M", codes: []int{1, 2}, kind: "accept", says: []string{"foreign-peer"}},
	{name: "diagnose", args: "diagnose HOST --quick --up --max-rate 20M", codes: []int{0, 2}, kind: "diagnose", says: []string{"foreign-peer", "no-probes"}},
	{name: "compare", args: "compare --ab -P1 -P2 HOST -t 200ms --rounds 1 --pause 10ms --max-rate 20M", codes: []int{0, 1, 2}, kind: "compare", says: []string{"foreign-peer", "too-few-rounds"}},
}

// TestAgainstIperf3: whatever measures does so with a plain iperf3 server, too, and says what it could
// not see there. Each has a server of its own, so that they wait side by side.
func TestAgainstIperf3(t *testing.T) {
	if realIperf3 == "" {
		if os.Getenv("CI") != "" {
			t.Fatal("CI needs iperf3")
		}
		t.Skip("iperf3 is not installed here (CI installs it)")
	}
	files := map[string]string{
		"y1564":  "services: [{name: a, cir: 1M, direction: up}]\n",
		"accept": "items:\n  - {test: tcp-single, directions: [up], rounds: 1}\n  - {test: udp-small, directions: [up], rounds: 1}\n",
	}
	gate := make(chan struct{}, 8) // more at once would only starve each other's servers
	for i, c := range againstIperf3 {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			gate <- struct{}{}
			defer func() { <-gate }()
			port := ownServer(t, i)
			var args []string
			for word := range strings.FieldsSeq(c.args) {
				switch word {
				case "HOST":
					args = append(args, "127.0.0.1", "-p", strconv.Itoa(port))
				case "FILE":
					file := filepath.Join(t.TempDir(), c.name+".yaml")
					if err := os.WriteFile(file, []byte(files[c.name]), 0o600); err != nil {
						t.Fatal(err)
					}
					args = append(args, file)
				default:
					args = append(args, strings.Replace(word, "-P", "-P ", 1))
				}
			}
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			cmd := exec.CommandContext(ctx, "fullbore", append(args, "--json")...)
			cmd.Env = append(os.Environ(), "FULLBORE_HISTORY=off")
			cmd.Dir = t.TempDir()
			var stdout, stderr bytes.Buffer
			cmd.Stdout, cmd.Stderr = &stdout, &stderr
			err := cmd.Run()
			var exit *exec.ExitError
			if err != nil && !errors.As(err, &exit) || ctx.Err() != nil {
				t.Fatalf("%v, %v\n%s", err, ctx.Err(), stderr.String())
			}
			if code := cmd.ProcessState.ExitCode(); !slices.Contains(c.codes, code) {
				t.Errorf("exit code %d, want one of %v\n%s", code, c.codes, stderr.String())
			}
			if strings.Contains(stderr.String(), "goroutine ") {
				t.Errorf("it crashed:\n%s", stderr.String())
			}
			told, kind, summary := said(t, stdout.Bytes())
			if kind != c.kind || summary == "" {
				t.Errorf("a document of kind %q that says %q; want %q", kind, summary, c.kind)
			}
			for _, code := range c.says {
				if !slices.Contains(told, code) {
					t.Errorf("no notice %s; there are %v", code, told)
				}
			}
			if !strings.Contains(stdout.String(), c.words) {
				t.Errorf("%q is not said: %s", c.words, summary)
			}
		})
	}
}

// ownServer starts the original on a port of its own; it ends with the test.
func ownServer(t *testing.T, i int) int {
	t.Helper()
	for try := range 5 {
		port, err := freePort(i + 20*try)
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(realIperf3, "-s", "-p", strconv.Itoa(port))
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan struct{})
		go func() { // ends with the server
			_ = cmd.Wait()
			close(ended)
		}()
		t.Cleanup(func() {
			_ = cmd.Process.Kill()
			<-ended
		})
		for range 1500 {
			select {
			case <-ended: // somebody else took the port
			default:
				if listening(port) {
					return port
				}
				time.Sleep(10 * time.Millisecond) // polls a condition of another process
				continue
			}
			break
		}
	}
	t.Fatal("no server came up")
	return 0
}

// said are the codes of a document's notices, its kind and its closing sentence.
func said(t *testing.T, doc []byte) (codes []string, kind, summary string) {
	t.Helper()
	var d struct {
		Kind    string          `json:"kind"`
		Summary string          `json:"summary"`
		Notices []result.Notice `json:"notices"`
		Runs    []struct {
			Notices []result.Notice `json:"notices"`
		} `json:"runs"`
	}
	if err := json.Unmarshal(doc, &d); err != nil {
		t.Fatalf("%v:\n%.500s", err, doc)
	}
	all := d.Notices
	for _, run := range d.Runs {
		all = append(all, run.Notices...)
	}
	for _, n := range all {
		codes = append(codes, n.Code)
	}
	return codes, d.Kind, d.Summary
}

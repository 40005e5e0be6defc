package main

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fullbore-net/fullbore/internal/lab"
)

// cpuKinds are the columns of /proc/stat that NTTTCP shows, by their place behind "cpu" (proc(5)).
var cpuKinds = map[string]int{"user": 0, "system": 2, "idle": 3, "iowait": 4, "softirq": 6}

// jiffies reads the first line of /proc/stat: all processors' time.
func jiffies(t *testing.T) (all [8]float64) {
	t.Helper()
	stat, err := os.ReadFile("/proc/stat")
	if err != nil {
		t.Fatal(err)
	}
	words := strings.Fields(strings.SplitN(string(stat), "\n", 2)[0])
	for i := range all {
		if all[i], err = strconv.ParseFloat(words[i+1], 64); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// shares are the kinds' percent of the time from a to b.
func shares(a, b [8]float64) map[string]float64 {
	total := 0.0
	for i := range a {
		total += b[i] - a[i]
	}
	out := map[string]float64{}
	for kind, i := range cpuKinds {
		out[kind] = (b[i] - a[i]) / total * 100
	}
	return out
}

// cpuLine is one of the console's: "	 user		:32.08%".
var cpuLine = regexp.MustCompile(`(?m)\t (user|system|idle|iowait|softirq)\s+:([0-9.]+)%$`)

// TestCPU: what both ends of an NTTTCP test say of the processors is what /proc/stat had between the
// moments at which the sender said that its test ran, and that it was over, within 5 points.
func TestCPU(t *testing.T) {
	if err := lab.Check(); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	fullbore := program(t)
	for range 1 + lab.MaxReplays {
		void := cpuPlay(t, fullbore)
		if t.Failed() || void == "" {
			return
		}
		t.Log("void: " + void)
	}
	t.Log("machine unfit: nothing was shown")
}

// cpuPlay is one play; void says why it does not count.
func cpuPlay(t *testing.T, fullbore string) (void string) {
	t.Helper()
	n, err := lab.NewPair("cubic")
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	start := func(ns *lab.Namespace, args ...string) *lab.Process {
		p, err := ns.Start(lab.Command{Args: append([]string{fullbore}, args...)})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = p.Signal(os.Kill) // it may have ended long ago
			<-p.Done()
		})
		return p
	}
	server := start(n.Far, "serve", "--json")
	// late is the longest pause between two looks: by so much a moment may be missed.
	var late time.Duration
	wait := func(what string, ok func() bool) {
		t.Helper()
		last, deadline := time.Now(), time.Now().Add(30*time.Second)
		for !ok() {
			if time.Now().After(deadline) {
				t.Fatalf("waited in vain until %s\n%s%s", what, server.Stdout(), server.Stderr())
			}
			time.Sleep(2 * time.Millisecond)
			late = max(late, time.Since(last))
			last = time.Now()
		}
	}
	wait("the server listens", func() bool {
		up, err := n.Far.Listening()
		if err != nil {
			t.Fatal(err)
		}
		return up
	})
	sender := start(n.Near, "ntttcp", "-s"+lab.FarIPv4, "-P", "2", "-n", "1", "-t", "3")
	says := func(text string) func() bool {
		return func() bool {
			select {
			case <-sender.Done():
				return true
			default:
				return strings.Contains(sender.Stdout(), text)
			}
		}
	}
	late = 0
	wait("the test runs", says("Network activity progressing"))
	before := jiffies(t)
	wait("the test is over", says("Test run completed"))
	after := jiffies(t)
	<-sender.Done()
	if late > 60*time.Millisecond { // 2 % of the test
		return fmt.Sprintf("this test was held up for %v", late)
	}
	_ = server.Signal(syscall.SIGTERM)
	<-server.Done()
	want := shares(before, after)
	for end, got := range map[string]map[string]float64{"sender": consoleCPU(t, sender.Stdout()), "receiver": documentCPU(t, server.Stdout())} {
		for kind := range cpuKinds {
			if off := got[kind] - want[kind]; math.Abs(off) > 5 {
				t.Errorf("%s: %s %.2f %%, /proc/stat has %.2f %%", end, kind, got[kind], want[kind])
			}
		}
	}
	return ""
}

// consoleCPU reads the sender's table.
func consoleCPU(t *testing.T, console string) map[string]float64 {
	t.Helper()
	out := map[string]float64{}
	for _, m := range cpuLine.FindAllStringSubmatch(console, -1) {
		v, err := strconv.ParseFloat(m[2], 64)
		if err != nil {
			t.Fatal(err)
		}
		out[m[1]] = v
	}
	if len(out) != len(cpuKinds) {
		t.Fatalf("the console has %v:\n%s", out, console)
	}
	return out
}

// documentCPU reads the receiver's figures of its own machine.
func documentCPU(t *testing.T, doc string) map[string]float64 {
	t.Helper()
	var run struct {
		Machines struct {
			Server struct {
				CPU map[string]float64 `json:"cpu_time"`
			} `json:"server"`
		} `json:"host_totals"`
	}
	if err := json.Unmarshal([]byte(doc), &run); err != nil {
		t.Fatalf("%v: %s", err, doc)
	}
	total := 0.0
	for _, v := range run.Machines.Server.CPU {
		total += v
	}
	if total <= 0 {
		t.Fatalf("no processor times in %s", doc)
	}
	out := map[string]float64{}
	for kind := range cpuKinds {
		out[kind] = run.Machines.Server.CPU[kind+"_ns"] / total * 100
	}
	return out
}

package lab_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fullbore-net/fullbore/internal/lab"
)

// playable plays a scenario that must be right, on a machine that can play it.
func playable(t *testing.T, text string) lab.Outcome {
	t.Helper()
	needNamespaces(t)
	got, err := lab.Run(testContext(t), parse(t, text), options(t))
	switch {
	case err != nil:
		t.Fatal(err)
	case got.Cannot():
		t.Logf("this machine cannot: %q", got.Reasons)
	case got.Verdict == lab.Wrong:
		t.Errorf("wrong: %q", got.Reasons)
	}
	return got
}

// TestQuota: a program gets no more of the processors than its share, sees so itself, and
// what it was held back is known.
func TestQuota(t *testing.T) {
	playable(t, `
name: quota
topology: pair
cc: reno
hosts: {client: {cpu: 10%}}
client:
  - sh
  - -c
  - |
    timeout 1 sh -c 'while :; do :; done'
    cat /proc/self/cgroup
    cat /sys/fs/cgroup/cpu/*fullbore-lab-*-na/cpu.cfs_quota_us /sys/fs/cgroup/*fullbore-lab-*-na/cpu.max 2>/dev/null
    true
expect:
  exit: 0
  stdout: [fullbore-lab-, "-na\n", "10000"]
  truth: [throttle.client.throttled > 0, throttle.client.throttled_time > 10000000, throttle.server missing]
`)
}

// TestBusy: the processor that was asked for is busy, with somebody else.
func TestBusy(t *testing.T) {
	playable(t, `
name: busy
topology: pair
cc: reno
hosts: {client: {busy: [0]}}
client: fullbore busywatch 0
expect:
  exit: 0
  stdout: [on processor 0 alone, it is busy]
`)
	got, err := lab.Run(testContext(t), parse(t, "{name: x, topology: pair, cc: reno, client: x, hosts: {server: {busy: [1023]}}, expect: {exit: 0}}"), options(t))
	if err != nil || !got.Cannot() || !strings.Contains(got.Reasons[0], "processor 1023") {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestCannot: what the machine keeps for itself is neither right nor wrong.
func TestCannot(t *testing.T) {
	needNamespaces(t)
	n := network(t)(lab.NewPair("reno"))
	most, err := n.Far.Sysctl("net.core.rmem_max")
	if err != nil {
		t.Fatal(err)
	}
	// The value that is there already is no change.
	if err := n.Far.SetSysctl("net.core.rmem_max", most); err != nil {
		t.Error(err)
	}
	var cannot *lab.CannotError
	if err := n.Far.SetSysctl("net.core.rmem_max", most+"0"); !errors.As(err, &cannot) {
		t.Errorf("another value: %v", err)
	}
	got, err := lab.Run(testContext(t), parse(t, "{name: x, topology: pair, cc: nosuch, client: x, expect: {exit: 0}}"), options(t))
	if err != nil || got.Verdict != lab.Cannot || len(got.Plays) != 0 || got.Right() || got.Unfit() {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestTraffic: the competing flows send what they are to, and are no part of the truth
// about the client's datagrams.
func TestTraffic(t *testing.T) {
	got := playable(t, `
name: traffic
topology: link
cc: reno
path: {rtt: 2ms, both: {}}
traffic:
  - {from: client, rate: 4M, size: 500, dscp: ef}
  - {from: server, rate: 4M, size: 500, at: 200ms, for: 100ms}
  - {from: client, rate: 1M, at: 1min}
client: sleep 1
expect:
  exit: 0
  truth:
    - traffic[0].sent.packets > 500
    - traffic[1].sent.packets == 100
    - traffic[2].sent.packets == 0
    - link.directions[0].datagrams missing
`)
	if got.Right() {
		p := got.Plays[len(got.Plays)-1]
		for i, f := range p.Traffic[:2] {
			if f.Received != f.Sent {
				t.Errorf("flow %d: %+v", i, f)
			}
		}
		if up := p.Link.Directions[0].Link.In; up != p.Traffic[0].Sent {
			t.Errorf("the link saw %+v, sent were %+v", up, p.Traffic[0].Sent)
		}
	}
}

// busywatch is a client: it looks for the program that keeps a processor busy in its
// namespace, and at what that does.
func busywatch(cpu string) error {
	own, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		return err
	}
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return err
	}
	for _, f := range files {
		dir := filepath.Dir(f)
		cmd, _ := os.ReadFile(f) // it may have ended
		if ns, _ := os.Readlink(dir + "/ns/net"); ns != own || !strings.HasSuffix(string(cmd), "\x00lab\x00busy\x00"+cpu+"\x00") {
			continue
		}
		return watchBusy(dir, cpu)
	}
	return errors.New("nothing keeps the processor busy")
}

// watchBusy returns when one of the process's threads, which may run on one processor
// alone, has used 50 ms of it.
func watchBusy(dir, cpu string) error {
	for {
		threads, err := filepath.Glob(dir + "/task/[0-9]*")
		if err != nil {
			return err
		}
		for _, thread := range threads {
			var tid int
			if _, err := fmt.Sscan(filepath.Base(thread), &tid); err != nil {
				return err
			}
			var set unix.CPUSet
			stat, err := os.ReadFile(thread + "/stat")
			if err != nil || unix.SchedGetaffinity(tid, &set) != nil {
				continue // it has ended
			}
			// After the name in parentheses, the 12th is its time in user mode, ticks of 10 ms.
			var ticks int
			fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
			if _, err := fmt.Sscan(fields[11], &ticks); err != nil {
				return err
			}
			var n int
			if _, err := fmt.Sscan(cpu, &n); err != nil {
				return err
			}
			if ticks >= 5 && set.Count() == 1 && set.IsSet(n) {
				fmt.Printf("on processor %d alone, it is busy\n", n)
				return nil
			}
		}
		time.Sleep(time.Millisecond)
	}
}

package lab_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fullbore-net/fullbore/internal/lab"
)

// TestKilledLab: a lab whose process is killed takes its programs and its link with it;
// the next lab removes the namespaces.
func TestKilledLab(t *testing.T) {
	needNamespaces(t)
	victim := exec.Command(options(t).Fullbore, "victim")
	victim.Stderr = os.Stderr // and its link's
	out, err := victim.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := victim.Start(); err != nil {
		t.Fatal(err)
	}
	var program int
	var near, far string
	if _, err := fmt.Fscan(out, &program, &near, &far); err != nil {
		t.Fatal(err)
	}
	// Taken while they are there for sure.
	theProgram, theLink := handle(t, program), handle(t, linkProcess(t, victim.Process.Pid))
	if err := victim.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = victim.Wait() // "signal: killed"
	for what, h := range map[string]int{"program": theProgram, "link": theLink} {
		if !ends(t, h) {
			// Its stacks, on standard error, say what it is at.
			_ = unix.PidfdSendSignal(h, unix.SIGQUIT, nil, 0)
			t.Fatalf("the %s lives on", what)
		}
	}
	network(t)(lab.NewPair("cubic"))
	for _, name := range []string{near, far} {
		if _, err := os.Stat("/run/netns/" + name); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is still there: %v", name, err)
		}
	}
}

// handle returns a descriptor of a process, which stays that one's when the pid is another's.
func handle(t *testing.T, pid int) (pidfd int) {
	t.Helper()
	pidfd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(pidfd) })
	return pidfd
}

// ends waits for a process's end, and not for whoever has to wait for it. false: it did not.
func ends(t *testing.T, pidfd int) bool {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); ; {
		fds := []unix.PollFd{{Fd: int32(pidfd), Events: unix.POLLIN}}
		n, err := unix.Poll(fds, int(max(0, time.Until(deadline).Milliseconds())))
		if err != nil && err != unix.EINTR { // the runtime's own signals
			t.Fatal(err)
		}
		if n > 0 || time.Now().After(deadline) {
			return n > 0
		}
	}
}

// TestCleanUp: nothing is left after Close, daemons included, nor after a killed lab.
func TestCleanUp(t *testing.T) {
	needNamespaces(t)
	n, err := lab.NewPair("cubic")
	if err != nil {
		t.Fatal(err)
	}
	daemon := must(t, n.Far, "sh", "-c", "setsid sleep 600 >/dev/null 2>&1 & echo $!")
	if _, err := n.Near.Start(lab.Command{Args: []string{"sleep", "600"}}); err != nil {
		t.Fatal(err)
	}
	names := []string{n.Near.Name, n.Far.Name}
	if err := n.Close(); err != nil {
		t.Fatal(err)
	}
	if err := n.Close(); err != nil {
		t.Errorf("second Close: %v", err)
	}
	// A zombie, which whoever is init may leave for a while, has no namespace any more.
	if ns, err := os.Readlink("/proc/" + strings.TrimSpace(daemon) + "/ns/net"); err == nil {
		t.Errorf("the daemon lives in %s", ns)
	}
	for _, name := range names {
		if _, err := os.Stat("/run/netns/" + name); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is still there: %v", name, err)
		}
	}

	// A lab whose process is gone: its namespaces carry the pid of an ended process.
	dead := exec.Command("true")
	if err := dead.Run(); err != nil {
		t.Fatal(err)
	}
	stale := fmt.Sprintf("fullbore-lab-%d-0a-na", dead.Process.Pid)
	foreign := fmt.Sprintf("fullbore-lab-x-%d", dead.Process.Pid)
	for _, name := range []string{stale, foreign} {
		if out, err := exec.Command("ip", "netns", "add", name).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	defer func() { _ = exec.Command("ip", "netns", "del", foreign).Run() }()
	orphan := exec.Command("ip", "netns", "exec", stale, "sleep", "600")
	if err := orphan.Start(); err != nil {
		t.Fatal(err)
	}
	until(t, "a program is in it", func() bool {
		out, err := exec.Command("ip", "netns", "pids", stale).Output()
		return err == nil && strings.TrimSpace(string(out)) != ""
	})
	network(t)(lab.NewPair("cubic"))
	if _, err := os.Stat("/run/netns/" + stale); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the stale namespace is still there: %v", err)
	}
	if _, err := os.Stat("/run/netns/" + foreign); err != nil {
		t.Errorf("somebody else's namespace was removed: %v", err)
	}
	if err := orphan.Wait(); err == nil || orphan.ProcessState.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Errorf("the orphan in it was not killed: %v", err)
	}
}

package lab_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/fullbore-net/fullbore/internal/lab"
)

// TestKilledLab: a lab whose process is killed takes its programs and its link with it;
// the next lab removes the namespaces.
func TestKilledLab(t *testing.T) {
	needNamespaces(t)
	victim := exec.Command(options(t).Fullbore, "victim")
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
	process := linkProcess(t, victim.Process.Pid)
	if err := victim.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = victim.Wait() // "signal: killed"
	for _, pid := range []int{program, process} {
		for {
			// Gone, or a zombie that nobody has waited for yet.
			stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
			if err != nil || strings.Contains(string(stat), ") Z ") {
				break
			}
			if err := testContext(t).Err(); err != nil {
				t.Fatalf("process %d lives on: %s", pid, stat)
			}
		}
	}
	network(t)(lab.NewPair("cubic"))
	for _, name := range []string{near, far} {
		if _, err := os.Stat("/run/netns/" + name); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is still there: %v", name, err)
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
	inside := func() bool {
		out, err := exec.Command("ip", "netns", "pids", stale).Output()
		return err == nil && strings.TrimSpace(string(out)) != ""
	}
	for !inside() {
		if err := t.Context().Err(); err != nil {
			t.Fatal(err)
		}
	}
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

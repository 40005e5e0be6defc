package lab_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fullbore-net/fullbore/internal/lab"
	"github.com/fullbore-net/fullbore/internal/lab/forward"
	"github.com/fullbore-net/fullbore/internal/lab/link"
)

// TestIdleLinkIsSilent: nothing but the tests' own packets takes part in the loss.
func TestIdleLinkIsSilent(t *testing.T) {
	needNamespaces(t)
	n := network(t)(lab.NewLink(lab.LinkOptions{Config: forward.Config{MTU: 1500}, CC: "reno", Command: linkCommand(t)}))
	// Router solicitations and multicast reports are sent in the first second of a
	// device's life, if at all; the link's own clock says how long that is.
	for {
		rep, err := n.Link.Report()
		if err != nil {
			t.Fatal(err)
		}
		for i, d := range rep.Directions {
			if d.Link.In.Packets != 0 {
				t.Fatalf("direction %d carried %d packets of its own", i, d.Link.In.Packets)
			}
		}
		if rep.Now > rep.Start+1500*time.Millisecond {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// TestLinkLoss: real packets meet the fate that the seed gives them.
func TestLinkLoss(t *testing.T) {
	needNamespaces(t)
	const packets = 2000
	cfg := link.Config{Loss: 0.05, Seed: 11}
	n := network(t)(lab.NewLink(lab.LinkOptions{
		Config: forward.Config{MTU: 1500, Links: [2]link.Config{cfg}}, CC: "cubic", Command: linkCommand(t),
	}))
	want := map[int]bool{}
	model, err := link.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	for i := range packets {
		if model.Enqueue(0, 128).Drop == link.Delivered {
			want[i] = true
		}
	}
	got := sendNumbered(t, n, packets, 100)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("arrived (-want +got):\n%s", diff)
	}
}

// TestUnasked: what a device drops because the link process does not read is reported
// as unasked, and the packets that it does read are still scheduled by their own times.
func TestUnasked(t *testing.T) {
	needNamespaces(t)
	const packets = 20_000
	n := network(t)(lab.NewLink(lab.LinkOptions{Config: forward.Config{MTU: 1500}, CC: "cubic", Command: linkCommand(t)}))
	process := linkProcess(t, os.Getpid())
	if err := syscall.Kill(process, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	near, _ := udpPair(t, n)
	for range packets {
		if _, err := near.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Kill(process, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	var rep *lab.LinkReport
	until(t, "every packet has arrived or is known to be dropped", func() bool {
		var err error
		if rep, err = n.Link.Report(); err != nil {
			t.Fatal(err)
		}
		up := rep.Directions[0]
		return up.Held.Packets == 0 && up.Out.Packets+rep.Unasked[0] >= packets
	})
	up := rep.Directions[0]
	if up.Out.Packets+rep.Unasked[0] != packets || rep.Unasked[0] < 1000 || up.Unstamped != 0 || rep.Unasked[1] != 0 {
		t.Errorf("%d arrived, %d dropped unasked, %d unstamped of %d", up.Out.Packets, rep.Unasked[0], up.Unstamped, packets)
	}
}

// linkProcess finds the link process among a process's children.
func linkProcess(t *testing.T, parent int) int {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		stat, err := os.ReadFile(filepath.Dir(f) + "/stat")
		cmd, err2 := os.ReadFile(f)
		if err != nil || err2 != nil {
			continue // ended meanwhile
		}
		// After the name in parentheses: state, parent.
		fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
		if fields[1] == fmt.Sprint(parent) && strings.HasSuffix(string(cmd), "\x00lab\x00link\x00") {
			var pid int
			if _, err := fmt.Sscanf(f, "/proc/%d/", &pid); err != nil {
				t.Fatal(err)
			}
			return pid
		}
	}
	t.Fatal("no link process")
	return 0
}

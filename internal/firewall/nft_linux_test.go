package firewall

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fullbore-net/fullbore/internal/plan"
)

// inNamespace moves the test to a thread in a network namespace of its own, where lo is
// up and nft has loaded the rules. What the test starts is in it too.
func inNamespace(t *testing.T, rules string) System {
	t.Helper()
	_, err := exec.LookPath("nft")
	if os.Geteuid() != 0 || err != nil {
		if os.Getenv("CI") != "" {
			t.Fatalf("CI needs root and nft: %v", err)
		}
		t.Skip("rules of a network namespace of its own need root and nft; CI has both")
	}
	// The runtime ends a thread whose goroutine ends while locked to it.
	runtime.LockOSThread()
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		t.Fatalf("unshare: %v", err)
	}
	s := This("/opt/fullbore")
	for _, args := range [][]string{{"ip", "link", "set", "lo", "up"}, {"nft", rules}} {
		if _, err := s.Run(t.Context(), args...); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// reaches reports whether a connection to a port of lo, where somebody listens, comes
// about. The rules refuse, so that both answers are sure.
func reaches(t *testing.T, port string) bool {
	t.Helper()
	c, err := net.DialTimeout("tcp4", "127.0.0.1:"+port, 20*time.Second)
	if err == nil {
		_ = c.Close()
		return true
	}
	if !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("port %s: %v", port, err)
	}
	return false
}

const refusing = `add table inet filter
add chain inet filter input { type filter hook input priority 0; policy accept; }
add rule inet filter input tcp sport { 5201, 7000 } accept
add rule inet filter input tcp dport { 5201, 7000 } reject with tcp reset
add chain inet filter other { type filter hook input priority 10; policy accept; }
add rule inet filter other meta mark 0x5201 drop
add rule inet filter other udp dport 5201 drop`

func TestNFT(t *testing.T) {
	s := inNamespace(t, refusing)
	ctx := t.Context()
	for _, port := range []string{"5201", "7000"} {
		ln, err := net.Listen("tcp4", "127.0.0.1:"+port)
		if err != nil {
			t.Fatal(err)
		}
		defer ln.Close() //nolint:errcheck // a test's
	}
	if reaches(t, "5201") {
		t.Error("the rules of the test refuse nothing")
	}
	h := found(t, s)
	if len(h.Layers) != 2 {
		t.Fatalf("layers: %+v", h)
	}
	w := onePort(Kept)
	if err := Apply(ctx, s, h.Opening(w), Kept); err != nil {
		t.Fatal(err)
	}
	if !reaches(t, "5201") || reaches(t, "7000") {
		t.Error("not exactly the wanted port was opened")
	}
	h = found(t, s)
	if n := len(h.Rules(s.Alive)); n != 4 { // TCP and UDP in both chains: neither let both in before
		t.Errorf("%d rules: %+v", n, h.Rules(s.Alive))
	}
	for _, l := range h.Layers {
		check(t, l, []asked{{plan.TCP, 5201, 5201, Open, ""}, {plan.UDP, 5201, 5201, Open, ""}})
	}
	if err := Apply(ctx, s, h.Closing(Kept), ""); err != nil {
		t.Fatal(err)
	}
	if reaches(t, "5201") || len(found(t, s).Rules(s.Alive)) > 0 {
		t.Error("the rules were not removed")
	}
	nftRun(t, s)
}

func found(t *testing.T, s System) *Host {
	t.Helper()
	h, err := Look(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// nftRun: a rule for one run, beside the one of a process that is gone.
func nftRun(t *testing.T, s System) {
	ctx := t.Context()
	dead := exec.Command("true")
	if err := dead.Run(); err != nil {
		t.Fatal(err)
	}
	left := onePort(RunName(dead.Process.Pid, time.Now()))
	if err := Apply(ctx, s, found(t, s).Adding(left), ""); err != nil {
		t.Fatal(err)
	}
	w := onePort(RunName(os.Getpid(), time.Now()))
	r, err := OpenForRun(ctx, s, w)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Removed) != 1 || r.Removed[0] != left.Name {
		t.Errorf("removed %q, want %s", r.Removed, left.Name)
	}
	if !reaches(t, "5201") {
		t.Error("the run's port is shut")
	}
	for _, rule := range found(t, s).Rules(s.Alive) {
		if rule.Name != w.Name || rule.Stale {
			t.Errorf("%+v", rule)
		}
	}
	if err := r.Close(ctx); err != nil {
		t.Fatal(err)
	}
	if reaches(t, "5201") || len(found(t, s).Rules(s.Alive)) > 0 {
		t.Error("the run left a rule")
	}
}

// TestNFTLines: what is printed for another host is right there, the removal too.
func TestNFTLines(t *testing.T) {
	s := inNamespace(t, refusing)
	layers, err := Blank("nft", s.Program)
	if err != nil {
		t.Fatal(err)
	}
	shell := func(commands []Command, left int) {
		for _, c := range commands {
			if _, err := s.Run(t.Context(), "sh", "-c", c.Line); err != nil {
				t.Errorf("%s: %v", c.Line, err)
			}
		}
		if n := len(found(t, s).Rules(s.Alive)); n != left {
			t.Errorf("%d rules of ours, want %d", n, left)
		}
	}
	shell(layers[0].Add(onePort(Kept)), 2)
	shell(layers[0].Remove(Kept), 0)
}

func TestAlive(t *testing.T) {
	if now := time.Now(); !alive(os.Getpid(), now) {
		t.Error("this process is not seen")
	}
	if alive(os.Getpid(), time.Now().Add(-time.Hour*24*365)) {
		t.Error("a rule that is older than this process is taken for its own")
	}
	gone := exec.Command("true")
	if err := gone.Run(); err != nil {
		t.Fatal(err)
	}
	if alive(gone.Process.Pid, time.Now()) {
		t.Error("a process that is gone is seen")
	}
}

func TestExecute(t *testing.T) {
	out, err := execute(t.Context(), "sh", "-c", "echo $LC_ALL")
	if err != nil || string(out) != "C\n" {
		t.Errorf("%q %v", out, err)
	}
	if _, err = execute(t.Context(), "sh", "-c", "echo no  way >&2; exit 3"); err == nil || err.Error() != "exit status 3: no way" {
		t.Errorf("%v", err)
	}
	if _, err = execute(t.Context(), "no-such-program-anywhere"); !missing(err) {
		t.Errorf("%v", err)
	}
	if _, err = execute(t.Context(), "/no/such/program"); !missing(err) {
		t.Errorf("%v", err)
	}
}

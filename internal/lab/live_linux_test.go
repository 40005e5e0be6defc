package lab_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
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

// needNamespaces skips a test that this user may not run. CI may run all of them, so
// there it is a failure.
func needNamespaces(t *testing.T) {
	t.Helper()
	if err := lab.Check(); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
}

// network closes n at the test's end.
func network(t *testing.T) func(n *lab.Network, err error) *lab.Network {
	return func(n *lab.Network, err error) *lab.Network {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := n.Close(); err != nil {
				t.Error(err)
			}
		})
		return n
	}
}

func linkCommand(t *testing.T) []string {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return lab.LinkCommand(exe)
}

// testContext ends with the test's time limit, so that a hanging child shows where.
func testContext(t *testing.T) context.Context {
	t.Helper()
	ctx := t.Context()
	if limit, ok := t.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, limit.Add(-5*time.Second))
		t.Cleanup(cancel)
	}
	return ctx
}

// must fails the test unless a program ended with 0.
func must(t *testing.T, ns *lab.Namespace, args ...string) string {
	t.Helper()
	r, err := ns.Run(testContext(t), args...)
	if err != nil {
		t.Fatal(err)
	}
	if r.Code != 0 {
		t.Fatalf("%s: %q: exit code %d\n%s%s", ns.Role, args, r.Code, r.Stdout, r.Stderr)
	}
	return r.Stdout
}

// exchange sends a message over TCP from one end to the other and returns the client's
// congestion control, as `ss` shows it.
func exchange(t *testing.T, from, to *lab.Namespace, address string) {
	t.Helper()
	var ln net.Listener
	err := to.Do(func() (err error) {
		ln, err = net.Listen("tcp", net.JoinHostPort(address, "0"))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	got := make(chan string, 1)
	go func() {
		c, err := ln.Accept()
		if err != nil {
			got <- err.Error()
			return
		}
		defer c.Close()
		b, err := io.ReadAll(c)
		got <- fmt.Sprint(string(b), err)
	}()
	var c net.Conn
	err = from.Do(func() (err error) {
		c, err = net.Dial("tcp", ln.Addr().String())
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Write([]byte("hello")); err != nil {
		t.Error(err)
	}
	if cc := congestionOf(t, c); cc != "reno" {
		t.Errorf("to %s: congestion control %q, want reno", address, cc)
	}
	c.Close()
	if g := <-got; g != "hello<nil>" {
		t.Errorf("to %s: received %q", address, g)
	}
}

func congestionOf(t *testing.T, c net.Conn) string {
	t.Helper()
	raw, err := c.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var name string
	if err := raw.Control(func(fd uintptr) { name, err = getCongestion(int(fd)) }); err != nil {
		t.Fatal(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return name
}

func TestTopologies(t *testing.T) {
	needNamespaces(t)
	wire := forward.Config{MTU: 1500}
	tests := []struct {
		name      string
		make      func() (*lab.Network, error)
		near, far []string
	}{
		{
			"pair", func() (*lab.Network, error) { return lab.NewPair("reno") },
			[]string{lab.NearIPv4, lab.NearIPv6},
			[]string{lab.FarIPv4, lab.FarIPv6},
		},
		{
			"routed", func() (*lab.Network, error) { return lab.NewRouted("reno") },
			[]string{lab.RoutedNearIPv4, lab.RoutedNearIPv6},
			[]string{lab.RoutedFarIPv4, lab.RoutedFarIPv6},
		},
		{"link", func() (*lab.Network, error) {
			return lab.NewLink(lab.LinkOptions{Config: wire, CC: "reno", Command: linkCommand(t)})
		}, []string{lab.NearIPv4, lab.NearIPv6}, []string{lab.FarIPv4, lab.FarIPv6}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			n := network(t)(tt.make())
			for i := range tt.near {
				exchange(t, n.Near, n.Far, tt.far[i])
				exchange(t, n.Far, n.Near, tt.near[i])
			}
		})
	}
}

// TestCutAndRestore: a device that comes back has its addresses, routes and
// congestion control again.
func TestCutAndRestore(t *testing.T) {
	needNamespaces(t)
	n := network(t)(lab.NewPair("reno"))
	if err := n.Far.SetDown(lab.PairFar); err != nil {
		t.Fatal(err)
	}
	before, err := n.Near.DeviceStats(lab.PairNear)
	if err != nil {
		t.Fatal(err)
	}
	near, _ := udpPair(t, n)
	_, _ = near.Write([]byte("x")) // the kernel may say that the cable is cut, or not
	if after, err := n.Near.DeviceStats(lab.PairNear); err != nil || after.TxPackets != before.TxPackets {
		t.Errorf("a packet went into a cut cable: before %+v, after %+v, %v", before, after, err)
	}
	if err := n.Far.SetUp(lab.PairFar); err != nil {
		t.Fatal(err)
	}
	exchange(t, n.Near, n.Far, lab.FarIPv4)
	if err := n.Near.AddAddress(lab.PairNear, "10.77.0.11/24"); err != nil {
		t.Fatal(err)
	}
	exchange(t, n.Far, n.Near, "10.77.0.11")
}

// TestRouterDrops: a token bucket on the router's device drops what exceeds it, and
// the counters of nft, the device and the receiver agree.
func TestRouterDrops(t *testing.T) {
	needNamespaces(t)
	ctx := testContext(t)
	n := network(t)(lab.NewRouted("cubic"))
	if err := n.Router.SetTBF(lab.RouterFar, lab.TBF{BitsPerSecond: 2_000_000, BurstBytes: 16384, Latency: 50 * time.Millisecond}); err != nil {
		t.Fatal(err)
	}
	// tc, which is not ours, reads back what was meant.
	if got := must(t, n.Router, "tc", "qdisc", "show", "dev", lab.RouterFar); !strings.Contains(got, "tbf 1: root") ||
		!strings.Contains(got, "rate 2Mbit") || !strings.Contains(got, "burst 16Kb") || !strings.Contains(got, "lat 50ms") {
		t.Errorf("tc shows %q", got)
	}
	rules := `add table inet t
		add counter inet t sent
		add chain inet t o { type filter hook output priority 0; }
		add rule inet t o udp dport 5301 counter name sent
		add chain inet t i { type filter hook input priority 0; }
		add rule inet t i udp dport 5301 counter comment "arrived"`
	for _, ns := range []*lab.Namespace{n.Near, n.Far} {
		if err := ns.NFT(ctx, rules); err != nil {
			t.Fatal(err)
		}
	}
	var c net.Conn
	if err := n.Near.Do(func() (err error) {
		c, err = net.Dial("udp", lab.RoutedFarIPv4+":5301")
		return err
	}); err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	const packets = 200 // of 1028 bytes: 205 kB at once into a bucket of 16 kB and a queue of 29 kB
	for range packets {
		// The far end has no such port and says so by ICMP, which a later write reports.
		if _, err := c.Write(make([]byte, 1000)); err != nil && !errors.Is(err, syscall.ECONNREFUSED) {
			t.Fatal(err)
		}
	}
	sent, err := n.Near.NFTCounter(ctx, "sent")
	if err != nil {
		t.Fatal(err)
	}
	drops, err := n.Router.QdiscDrops(lab.RouterFar)
	if err != nil {
		t.Fatal(err)
	}
	if drops < packets/2 || drops > packets-40 {
		t.Errorf("the token bucket dropped %d of %d", drops, packets)
	}
	var arrived lab.NFTCounter
	for arrived.Packets < sent.Packets-drops { // the queue empties within 50 ms
		if arrived, err = n.Far.NFTCounter(ctx, "arrived"); err != nil {
			t.Fatal(err)
		}
	}
	if arrived.Packets != sent.Packets-drops || arrived.Bytes != 1028*arrived.Packets {
		t.Errorf("sent %d, dropped %d, arrived %+v", sent.Packets, drops, arrived)
	}
	counters, err := n.Far.Counters()
	if err != nil {
		t.Fatal(err)
	}
	if got := counters["Udp.NoPorts"]; got != arrived.Packets {
		t.Errorf("Udp.NoPorts %d, arrived %d", got, arrived.Packets)
	}
	if _, ok := counters["TcpExt.TCPLostRetransmit"]; !ok {
		t.Error("no counters of /proc/net/netstat")
	}
	if _, ok := counters["Udp6InDatagrams"]; !ok {
		t.Error("no counters of /proc/net/snmp6")
	}
	if _, err := n.Far.NFTCounter(ctx, "nosuch"); err == nil {
		t.Error("a counter that does not exist was found")
	}
	if err := n.Far.NFT(ctx, "add rule inet nosuch"); err == nil || !strings.Contains(err.Error(), "exit code 1") {
		t.Errorf("bad rules: %v", err)
	}
}

// TestHole: packets above the router's MTU vanish without a word.
func TestHole(t *testing.T) {
	needNamespaces(t)
	n := network(t)(lab.NewRouted("cubic"))
	if err := n.Router.SetMTU(lab.RouterFar, 1300); err != nil {
		t.Fatal(err)
	}
	if err := n.Router.NFT(testContext(t), `add table ip t
		add chain ip t o { type filter hook output priority 0; }
		add rule ip t o icmp type destination-unreachable drop`); err != nil {
		t.Fatal(err)
	}
	near, far := udpPair(t, n)
	send := func(size int) {
		t.Helper()
		if _, err := near.Write(make([]byte, size)); err != nil {
			t.Fatal(err)
		}
	}
	// Packets stay in order, so when the second small one is there the large one is not coming.
	send(1000)
	send(1400)
	send(1001)
	buf := make([]byte, 2000)
	for _, want := range []int{1000, 1001} {
		if got, err := far.Read(buf); got != want || err != nil {
			t.Errorf("received %d bytes, %v, want %d", got, err, want)
		}
	}
	send(100) // the socket has not been told
}

func TestProcesses(t *testing.T) {
	needNamespaces(t)
	ctx := testContext(t)
	n := network(t)(lab.NewPair("cubic"))

	r, err := n.Near.Run(ctx, "sh", "-c", "echo out; echo err >&2; exit 3")
	if diff := cmp.Diff(lab.Result{Code: 3, Stdout: "out\n", Stderr: "err\n"}, r); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if _, err := n.Near.Run(ctx, "/nonexistent"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a program that is not there: %v", err)
	}

	// /sys and the names are the namespace's.
	if got := strings.Fields(must(t, n.Near, "ls", "/sys/class/net")); !cmp.Equal(got, []string{"lo", "va"}) {
		t.Errorf("devices in /sys: %q", got)
	}
	n.Near.SetHosts(lab.FarIPv6+" dualhost", lab.FarIPv4+" dualhost")
	if got := must(t, n.Near, "cat", "/etc/hosts"); got != "fd77::2 dualhost\n10.77.0.2 dualhost\n" {
		t.Errorf("hosts file: %q", got)
	}
	if got := must(t, n.Far, "cat", "/etc/hosts"); strings.Contains(got, "dualhost") {
		t.Errorf("the other end's hosts file: %q", got)
	}
	if leftovers, _ := filepath.Glob(filepath.Join(os.TempDir(), "fullbore-lab-hosts-*")); len(leftovers) != 0 {
		t.Errorf("left behind: %q", leftovers)
	}
	if b, err := os.ReadFile("/etc/hosts"); err != nil || strings.Contains(string(b), "dualhost") {
		t.Errorf("this process's hosts file: %q, %v", b, err)
	}

	// A program's output can be read while it runs; signals reach it.
	p, err := n.Far.Start(lab.Command{
		Args: []string{"sh", "-c", `trap 'echo got it; exit 7' INT; echo "$WORD"; while :; do sleep 0.01; done`},
		Env:  []string{"WORD=ready"},
	})
	if err != nil {
		t.Fatal(err)
	}
	for p.Stdout() != "ready\n" {
		if err := ctx.Err(); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if code, err := p.Wait(ctx); code != 7 || err != nil || p.Stdout() != "ready\ngot it\n" {
		t.Errorf("code %d, %v, output %q", code, err, p.Stdout())
	}
	p, err = n.Far.Start(lab.Command{Args: []string{"sleep", "600"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code, err := p.Wait(ctx); code != 128+15 || err != nil {
		t.Errorf("code %d, %v, want 143", code, err)
	}

	// A context that ends kills.
	short, cancel := context.WithCancelCause(ctx)
	p, err = n.Far.Start(lab.Command{Args: []string{"sleep", "600"}})
	if err != nil {
		t.Fatal(err)
	}
	cancel(errors.New("enough"))
	if _, err := p.Wait(short); err == nil || !strings.Contains(err.Error(), "enough") {
		t.Errorf("after the context's end: %v", err)
	}
}

func TestSettings(t *testing.T) {
	needNamespaces(t)
	n := network(t)(lab.NewPair(""))
	if err := n.Near.SetSysctl("net.ipv4.tcp_rmem", "4096 65536 1000000"); err != nil {
		t.Error(err)
	}
	if got, err := n.Near.Sysctl("net.ipv4.tcp_rmem"); got != "4096 65536 1000000" || err != nil {
		t.Errorf("tcp_rmem %q, %v", got, err)
	}
	if got, err := n.Far.Sysctl("net.ipv4.tcp_rmem"); got == "4096 65536 1000000" || err != nil {
		t.Errorf("the other end's tcp_rmem %q, %v", got, err)
	}
	for name, value := range map[string]string{
		"net.ipv4.nosuch":   "1",
		"net.ipv4.tcp_rmem": "lots",
	} {
		if err := n.Near.SetSysctl(name, value); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s = %q: %v", name, value, err)
		}
	}
	if err := n.Near.SetSysctl("net/ipv4/conf/va/forwarding", "1"); err != nil {
		t.Error(err)
	}
	if err := n.Near.AddAddress("va", "10.77.0.300/24"); err == nil {
		t.Error("an impossible address was taken")
	}
	if err := n.Near.SetUp("nosuch"); err == nil || !strings.Contains(err.Error(), "device nosuch") {
		t.Errorf("a device that is not there: %v", err)
	}
	if _, err := lab.NewPair("nosuch"); err == nil || !strings.Contains(err.Error(), "reno") {
		t.Errorf("unknown congestion control: %v", err)
	}
	if _, err := lab.NewLink(lab.LinkOptions{Config: forward.Config{MTU: 1500}, Command: []string{"x"}}); err == nil {
		t.Error("a link without a fixed congestion control was made")
	}
}

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
	for {
		rep, err := n.Link.Report()
		if err != nil {
			t.Fatal(err)
		}
		up := rep.Directions[0]
		if up.Held.Packets > 0 || up.Out.Packets+rep.Unasked[0] < packets {
			continue
		}
		if up.Out.Packets+rep.Unasked[0] != packets || rep.Unasked[0] < 1000 || up.Unstamped != 0 || rep.Unasked[1] != 0 {
			t.Errorf("%d arrived, %d dropped unasked, %d unstamped of %d", up.Out.Packets, rep.Unasked[0], up.Unstamped, packets)
		}
		return
	}
}

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

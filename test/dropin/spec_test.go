//go:build linux

package dropin

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fullbore-net/fullbore/internal/lab"
	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/internal/proto/iperf3"
	"github.com/fullbore-net/fullbore/internal/render/cjson"
)

// What follows is what spec iperf3-cli says and no recording shows.

// TestEndsAtTheCount: -n and -k count all streams together and end there, at both ends;
// what is sent are whole blocks.
func TestEndsAtTheCount(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		words []string
		want  float64
	}{
		{[]string{"-n", "5M"}, 5 << 20},
		{[]string{"-n", "5000001", "-P", "3"}, 39 * 131072},
		{[]string{"-k", "50", "-l", "10K"}, 50 * 10240},
		{[]string{"-k", "50", "-l", "10K", "-R"}, 50 * 10240},
	} {
		t.Run(strings.Join(c.words, " "), func(t *testing.T) {
			t.Parallel()
			b := newBench(t, "3.21")
			server := b.serve(nil, "-s", "-1", "-J")
			client := b.client(nil, append([]string{"-c", far4, "-J"}, c.words...)...)
			ends := map[string]outcome{"client": client, "server": b.wait(server)}
			for role, out := range ends {
				docs, err := readDocuments(out.stdout)
				if err != nil || len(docs) != 1 {
					t.Fatalf("%s: %v: %s", role, err, out)
				}
				sum := "sum_received"
				if role == "server" && strings.Contains(strings.Join(c.words, " "), "-R") {
					sum = "sum_sent" // a server shows only what it did itself
				}
				end, _ := docs[0].(*cjson.Object).Get("end").(*cjson.Object)
				total, _ := end.Get(sum).(*cjson.Object)
				if got := total.Get("bytes"); got != c.want {
					t.Errorf("%s: %s.bytes is %v, want %v", role, sum, got, c.want)
				}
			}
		})
	}
}

// TestNames: the host is shown as typed, its address where the connection is.
func TestNames(t *testing.T) {
	t.Parallel()
	b := ownBench(t, "3.21", gigabit)
	b.net.Near.SetHosts(far4 + " far.example")
	server := b.serve(nil, "-s")
	for _, host := range []string{"far.example", "far.example%" + lab.PairNear, far4} {
		got := b.client(nil, "-c", host, "-n", "64K")
		name, _, _ := strings.Cut(host, "%")
		if got.exit != 0 {
			t.Errorf("%s: %s", host, got)
		}
		b.says(got.stdout, "Connecting to host "+name+", port 5201\n", " connected to "+far4+" port 5201\n")
	}
	b.says(server.Stdout(), "Accepted connection from "+near4+", port ")
}

// TestLogfileTakesErrors: with --logfile errors of the run land in the file, behind what
// was there, and not on the error stream; the exit status stays.
func TestLogfileTakesErrors(t *testing.T) {
	t.Parallel()
	for _, doc := range []bool{false, true} {
		b := newBench(t, "3.21")
		b.check(os.WriteFile(filepath.Join(b.dir, "log"), []byte("before\n"), 0o600))
		words := []string{"-c", far4, "--logfile", "log"}
		want := `^before\niperf3: error - unable to connect to server - [^\n]*: Connection refused\n`
		if doc {
			words = append(words, "-J")
			want = `^before\n\{\n(?s:.*)\n\t"error":\t"unable to connect to server - [^\n]*\n\}\n$`
		}
		got := b.client(nil, words...)
		if got.exit != 1 || got.stdout != "" || got.stderr != "" {
			t.Errorf("%s", got)
		}
		if log := b.read("log"); !regexp.MustCompile(want).MatchString(log) {
			t.Errorf("log: %q", log)
		}
	}
}

// TestErrorsHaveTimestamps: but not the title.
func TestErrorsHaveTimestamps(t *testing.T) {
	t.Parallel()
	b := newBench(t, "3.21")
	got := b.client(nil, "-c", far4, "--timestamps=<%Y> ", "-T", "mytest")
	if got.exit != 1 || got.stdout != "" || !regexp.MustCompile(`^(<\d{4}> iperf3: [^\n]*\n)+$`).MatchString(got.stderr) {
		t.Errorf("%s", got)
	}
}

// TestSignals: HUP and TERM are INT with another name, on both ends.
func TestSignals(t *testing.T) {
	t.Parallel()
	for _, sig := range []struct {
		s    syscall.Signal
		name string
	}{{syscall.SIGHUP, "Hangup(1)"}, {syscall.SIGTERM, "Terminated(15)"}} {
		for _, client := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s client %v", sig.name, client), func(t *testing.T) {
				t.Parallel()
				b := newBench(t, "3.21")
				server := b.serve(nil, "-s")
				c := b.start(b.net.Near, nil, "-c", far4, "-t", "0", "-b", "10M")
				b.flowed(c, b.net.Near, 200_000)
				p, end := server, "server"
				if client {
					p, end = c, "client"
				}
				b.signal(p, sig.s)
				got := b.wait(p)
				if got.exit != 0 || got.stderr != "iperf3: interrupt - the "+end+" has terminated by signal "+sig.name+"\n" {
					t.Errorf("%s", got)
				}
				if !strings.Contains(got.stdout, "\n- - - ") { // timeout(1) expects what was measured so far
					t.Errorf("no closing report: %s", got)
				}
			})
		}
	}
}

// TestServerStays: a server without -1 outlives failed tests, numbers the banners, and
// restarts silently when idle.
func TestServerStays(t *testing.T) {
	t.Parallel()
	b := newBench(t, "3.21")
	server := b.serve(nil, "-s", "--idle-timeout", "1")
	killed := b.start(b.net.Near, nil, "-c", far4, "-t", "0", "-b", "10M")
	b.flowed(killed, b.net.Near, 200_000)
	b.signal(killed, os.Kill)
	b.wait(killed)
	b.until("the server waits again", func() bool { return strings.Contains(server.Stdout(), "(test #2)") })
	b.says(server.Stderr(), "iperf3: the client has unexpectedly closed the connection\n")
	before := server.Stdout()
	b.until("the idle timeout is over", func() bool {
		// Two of them fit into 2 s of the server's life on its own clock.
		age, err := processAge(server.Pid())
		b.check(err)
		return age > 3 || ended(server)
	})
	if now := server.Stdout(); now != before || ended(server) {
		t.Errorf("after idling: %q, before %q; %s", now, before, server.Stderr())
	}
	if got := b.client(nil, "-c", far4, "-n", "64K"); got.exit != 0 {
		t.Errorf("%s", got)
	}
	b.until("the server waits again", func() bool { return strings.Contains(server.Stdout(), "(test #3)") })
}

// processAge is how long ago a process was started, s.
func processAge(pid int) (float64, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	up, err := os.ReadFile("/proc/uptime")
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	var start, now float64
	fields := strings.Fields(rest)
	if len(fields) < 20 {
		return 0, errors.New("short stat")
	}
	if _, err := fmt.Sscan(fields[19], &start); err != nil { // field 22, ticks of 1/100 s
		return 0, err
	}
	_, err = fmt.Sscan(string(up), &now)
	return now - start/100, err
}

// TestCalledIperf3: the program called iperf3 is it, under whatever path, and getopt's
// line has the name as typed.
func TestCalledIperf3(t *testing.T) {
	t.Parallel()
	b := newBench(t, "3.21")
	b.check(os.Symlink(program, filepath.Join(b.dir, "iperf3")))
	server := b.startCmd(b.net.Far, lab.Command{Args: []string{filepath.Join(b.dir, "iperf3"), "-s", "-1"}})
	b.listens(server)
	run := func(words ...string) outcome {
		return b.wait(b.startCmd(b.net.Near, lab.Command{Args: append([]string{filepath.Join(b.dir, "iperf3")}, words...)}))
	}
	if got := run("-c", far4, "-n", "64K"); got.exit != 0 || !strings.HasSuffix(got.stdout, "\niperf Done.\n") {
		t.Errorf("%s", got)
	}
	got := run("--bogus")
	if got.exit != 1 || !strings.HasPrefix(got.stderr, b.dir+"/iperf3: unrecognized option '--bogus'\n\nUsage: iperf3 ") {
		t.Errorf("%s", got)
	}
}

// TestClientPidfile: a client may write one; it is gone when it ends.
func TestClientPidfile(t *testing.T) {
	t.Parallel()
	b := newBench(t, "3.21")
	b.serve(nil, "-s", "-1")
	client := b.start(b.net.Near, nil, "-c", far4, "-t", "0", "-b", "10M", "-I", "pid")
	b.flowed(client, b.net.Near, 200_000)
	if got := b.read("pid"); got != fmt.Sprint(client.Pid()) {
		t.Errorf("pid file %q, pid %d", got, client.Pid())
	}
	b.signal(client, os.Interrupt)
	b.wait(client)
	if _, err := os.Stat(filepath.Join(b.dir, "pid")); !os.IsNotExist(err) {
		t.Errorf("pid file after the end: %v", err)
	}
}

// TestUnknownCongestionAtServer: a congestion control that only the client knows is a
// warning at the server, and the test goes on.
func TestUnknownCongestionAtServer(t *testing.T) {
	t.Parallel()
	b := newBench(t, "3.21")
	server := b.serve(nil, "-s", "-1")
	p := iperf3.ParamsOf(plan.Plan{Host: far4, Duration: time.Second, Congestion: "nosuch"}.Filled(), "3.21")
	control := b.greet(p)
	defer control.Close()
	if got := b.state(control); got != iperf3.StateCreateStreams {
		t.Fatalf("the server says %v: %s", got, server.Stderr())
	}
	stream := b.dial()
	_, err := stream.Write(control.cookie[:])
	b.check(err)
	if got := b.state(control); got != iperf3.StateTestStart {
		t.Errorf("the server says %v: %s", got, server.Stderr())
	}
	b.says(server.Stderr(), "warning: congestion control nosuch is not available here")
}

// TestClientPorts: --cport is the first stream's port, the others follow; with --bidir
// the receiving ones come after the sending ones. -B is the address of all of them.
func TestClientPorts(t *testing.T) {
	t.Parallel()
	b := newBench(t, "3.21")
	server := b.serve(nil, "-s", "-1")
	got := b.client(nil, "-c", far4, "-n", "256K", "-P", "2", "--bidir", "-B", lab.NearIPv4, "--cport", "6001")
	if got.exit != 0 {
		t.Fatalf("%s", got)
	}
	for i, socket := range []int{5, 7, 9, 11} {
		b.says(got.stdout, fmt.Sprintf("\n[%3d] local %s port %d connected to %s port 5201\n", socket, lab.NearIPv4, 6001+i, far4))
	}
	b.says(b.wait(server).stdout, "Accepted connection from "+lab.NearIPv4+", port ")
}

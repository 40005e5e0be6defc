//go:build linux

package fieldcases

import (
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fullbore-net/fullbore/internal/lab"
)

// server runs LR -s with args to its end on the far side.
func (b *bench) server(args ...string) lab.Result {
	b.Helper()
	r, err := b.net.Far.Run(b.ctx(20*time.Second), append([]string{program, "iperf3", "-s", "-p", port}, args...)...)
	b.check(err)
	return r
}

// listening tells whether a server listens at the far end.
func (b *bench) listening() bool {
	b.Helper()
	ok, err := b.net.Far.Listening()
	b.check(err)
	return ok
}

func pidIn(b *bench, name string) int {
	b.Helper()
	var pid int
	b.until("the pid file is written", func() bool {
		data, err := os.ReadFile(name)
		if err != nil || len(data) == 0 {
			return false
		}
		_, err = fmt.Sscan(string(data), &pid)
		return err == nil
	})
	return pid
}

func oneLine(text string) bool {
	return strings.Count(text, "\n") == 1 && strings.HasSuffix(text, "\n")
}

// F41: the log file cannot be written.
func TestLogfileUnwritable(t *testing.T) {
	t.Parallel()
	b := pair(t)
	dir, err := os.MkdirTemp("", "fieldcases") // t.TempDir is closed to others
	b.check(err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	b.check(os.Chmod(dir, 0o755))
	ours := filepath.Join(dir, "fullbore")
	data, err := os.ReadFile(program)
	b.check(err)
	b.check(os.WriteFile(ours, data, 0o755))
	missing := filepath.Join(dir, "no", "x.log")
	for _, args := range [][]string{
		{"--logfile", missing}, {"-D", "--logfile", missing}, {"--logfile", dir}, {"-D", "--logfile", dir},
	} {
		r := b.server(args...)
		if r.Code != 1 || !oneLine(r.Stderr) {
			t.Errorf("%v: exit %d, stderr %q", args, r.Code, r.Stderr)
		}
		b.says(r.Stderr, args[len(args)-1])
	}
	theirs := filepath.Join(dir, "theirs.log")
	b.check(os.WriteFile(theirs, nil, 0o644))
	for _, d := range []string{"", " -D"} {
		r, err := b.net.Far.Run(b.ctx(20*time.Second), "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups",
			"sh", "-c", "exec "+ours+" iperf3 -s -p "+port+d+" --logfile "+theirs)
		b.check(err)
		if r.Code != 1 || !oneLine(r.Stderr) {
			t.Errorf("another's file%s: exit %d, stderr %q", d, r.Code, r.Stderr)
		}
		b.says(r.Stderr, theirs, "Permission denied")
	}
	if b.listening() {
		t.Error("a server without its log listens")
	}
}

// F41: a good log file has every line in time.
func TestLogfile(t *testing.T) {
	t.Parallel()
	for umask, want := range map[string]fs.FileMode{"022": 0o644, "027": 0o640} {
		b := pair(t)
		dir := t.TempDir()
		p := b.startCmd(b.net.Far, lab.Command{Dir: dir, Args: []string{
			"sh", "-c",
			"umask " + umask + "; exec " + program + " iperf3 -s -D -p " + port + " --logfile rel.log -I rel.pid",
		}})
		<-p.Done()
		pid := pidIn(b, filepath.Join(dir, "rel.pid"))
		log := filepath.Join(dir, "rel.log")
		lines := func(what string) int {
			data, _ := os.ReadFile(log) // not there yet
			return strings.Count(string(data), what)
		}
		c := b.start(b.net.Near, "-c", b.addr, "-p", port, "-t", "4", "-b", "1M")
		begin := time.Now()
		for second := range 3 {
			b.until("the row is there", func() bool { return lines("bits/sec") > second || ended(c) })
			if late := time.Since(begin).Seconds() - float64(second+1); late > 1.5 || ended(c) { // 1, and the start
				t.Errorf("row %d came %.1f s late", second+1, late)
			}
		}
		if code, err := c.Wait(b.ctx(20 * time.Second)); code != 0 || err != nil {
			t.Fatalf("client: exit %d, %v: %s", code, err, c.Stderr())
		}
		b.until("the log has the summary", func() bool { return lines("receiver") > 0 })
		fi, err := os.Stat(log)
		b.check(err)
		if fi.Mode().Perm() != want {
			t.Errorf("umask %s: mode of the log is %v, want %v", umask, fi.Mode().Perm(), want)
		}
		b.check(syscall.Kill(pid, syscall.SIGTERM))
	}
}

// F42: pid files.
func TestPidfile(t *testing.T) {
	t.Parallel()
	b := pair(t)
	dir := t.TempDir()
	pidfile := filepath.Join(dir, "p.pid")
	start := func(what string, args ...string) int {
		t.Helper()
		if r := b.server(append(args, "-D", "-I", pidfile)...); r.Code != 0 {
			t.Fatalf("%s: exit %d: %s", what, r.Code, r.Stderr)
		}
		return pidIn(b, pidfile)
	}
	removed := func() bool { _, err := os.Stat(pidfile); return os.IsNotExist(err) }
	pid := start("first start")
	b.good("-n", "64K")
	r := b.server("-D", "-I", pidfile)
	if r.Code != 1 {
		t.Errorf("second start: exit %d", r.Code)
	}
	b.says(r.Stderr, "Another instance")
	if got := pidIn(b, pidfile); got != pid {
		t.Errorf("the second start changed the file: %d, was %d", got, pid)
	}
	b.good("-n", "64K")
	b.check(syscall.Kill(pid, syscall.SIGKILL))
	b.until("the port is free", func() bool { return !b.listening() })
	second := start("after SIGKILL")
	if second == pid {
		t.Error("the file was not rewritten")
	}
	b.check(syscall.Kill(second, syscall.SIGTERM))
	b.until("the file is removed", removed)
	b.check(os.WriteFile(pidfile, []byte(itoa(os.Getpid())), 0o600)) // this test: alive, unrelated
	third := start("unrelated live pid")
	if third == os.Getpid() {
		t.Error("unrelated live pid: the file was not rewritten")
	}
	b.check(syscall.Kill(third, syscall.SIGTERM))
	b.until("the file is removed", removed)
	start("one-off", "-1")
	b.good("-n", "64K")
	b.until("the file is removed at the normal end", removed)
	b.until("the port is free", func() bool { return !b.listening() })

	bad := filepath.Join(dir, "no", "p.pid")
	r = b.server("-D", "-I", bad)
	if r.Code != 1 || !oneLine(r.Stderr) {
		t.Errorf("unwritable: exit %d, stderr %q", r.Code, r.Stderr)
	}
	b.says(r.Stderr, bad)
	if b.listening() {
		t.Error("unwritable: a server went into the background")
	}
}

// F43: an interrupted client.
func TestInterruptedClient(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		sig  syscall.Signal
		args []string
	}{
		{syscall.SIGINT, []string{"-J"}},
		{syscall.SIGTERM, []string{"-J"}},
		{syscall.SIGHUP, []string{"-J"}},
		{syscall.SIGTERM, []string{"-R", "-J"}},
		{syscall.SIGINT, []string{"-u", "-J"}},
		{syscall.SIGHUP, []string{"-u", "-R", "-J"}},
		{syscall.SIGTERM, []string{"-u"}},
		{syscall.SIGINT, nil},
		{syscall.SIGTERM, []string{"-R"}},
	} {
		t.Run(fmt.Sprint(c.sig, c.args), func(t *testing.T) {
			t.Parallel()
			b := pair(t)
			srv := b.serve()
			p := b.start(b.net.Near, append([]string{"-c", b.addr, "-p", port, "-b", "2M", "-t", "30"}, c.args...)...)
			begin := time.Now()
			b.until("2.3 s have passed", func() bool { return time.Since(begin) > 2300*time.Millisecond && srvRows(srv) >= 2 || ended(p) })
			b.check(p.Signal(c.sig))
			code, err := p.Wait(b.ctx(15 * time.Second))
			b.check(err)
			if code != 0 { // as iperf3 since 3.19
				t.Errorf("%v %v: exit %d", c.sig, c.args, code)
			}
			if slices.Contains(c.args, "-J") {
				d := b.parse(p.Stdout())
				b.says(d.at("error").(string), "interrupt")
				if len(d.list("intervals")) < 2 {
					t.Errorf("%v %v: %d intervals", c.sig, c.args, len(d.list("intervals")))
				}
				d.addUp(fmt.Sprint(c.sig, c.args), "bytes")
				if p.Stderr() != "" {
					t.Errorf("%v %v: stderr says %q", c.sig, c.args, p.Stderr())
				}
			} else {
				b.says(p.Stderr(), "iperf3: interrupt - the client has terminated by signal")
				b.says(p.Stdout(), "0.00-1.0", "0.00-2.")
			}
			b.promptly(time.Second)
			b.says(srv.Stderr(), "the client has terminated")
		})
	}
}

// F43: what was started by nohup, or in the background of a script, outlives its terminal, and can
// be interrupted all the same.
func TestHangupIgnored(t *testing.T) {
	t.Parallel()
	b := pair(t)
	nohup := func(ns *lab.Namespace, args ...string) *lab.Process {
		return b.startCmd(ns, lab.Command{Args: append([]string{"sh", "-c", `trap "" HUP INT; exec "$@"`, "sh", program}, args...)})
	}
	srv := nohup(b.net.Far, "iperf3", "-s", "-p", port)
	b.until("the server listens", func() bool { return b.listening() || ended(srv) })
	client := nohup(b.net.Near, "test", b.addr, "-p", port, "--no-store", "--up", "-b", "1M", "-t", "60")
	rows := func(n int) func() bool {
		return func() bool { return srvRows(srv) >= n || ended(srv) || ended(client) }
	}
	b.until("the test runs", rows(1))
	for _, p := range []*lab.Process{client, srv} {
		b.check(p.Signal(syscall.SIGHUP))
	}
	b.until("it goes on", rows(4))
	for _, c := range []struct {
		who  string
		p    *lab.Process
		exit int
		says string
	}{{"client", client, 130, "Interrupted after"}, {"server", srv, 0, "Interrupt(2)"}} {
		b.check(c.p.Signal(os.Interrupt))
		code, err := c.p.Wait(b.ctx(15 * time.Second))
		b.check(err)
		if said := c.p.Stdout() + c.p.Stderr(); code != c.exit || !strings.Contains(said, c.says) {
			t.Errorf("the %s: exit %d, %s", c.who, code, said)
		}
	}
}

// F43: who is interrupted twice does not wait for anybody.
func TestInterruptedTwice(t *testing.T) {
	t.Parallel()
	b := pair(t)
	srv := b.serve()
	p := b.start(b.net.Near, "-c", b.addr, "-p", port, "-b", "2M", "-t", "30", "-J")
	b.until("an interval is over", func() bool { return srvRows(srv) >= 1 || ended(p) })
	b.check(srv.Signal(syscall.SIGSTOP))
	b.check(p.Signal(os.Interrupt))
	begin := time.Now()
	// Two at once are one signal that was sent to the process and to its group.
	b.until("a while has passed", func() bool { return time.Since(begin) > 700*time.Millisecond || ended(p) })
	_ = p.Signal(os.Interrupt) // it may have ended after the first
	again := time.Now()
	code, err := p.Wait(b.ctx(15 * time.Second))
	b.check(err)
	if took := time.Since(again); took > time.Second {
		t.Errorf("ended %v after the second signal (exit %d)", took, code)
	}
	b.check(srv.Signal(syscall.SIGCONT))
}

// F43, the other side: the server is stopped in mid-test.
func TestInterruptedServer(t *testing.T) {
	t.Parallel()
	b := pair(t)
	srv := b.serve()
	p := b.start(b.net.Near, "-c", b.addr, "-p", port, "-b", "2M", "-t", "30", "-J")
	b.until("two intervals are over", func() bool { return srvRows(srv) >= 2 || ended(p) })
	b.check(srv.Signal(syscall.SIGTERM))
	code, err := srv.Wait(b.ctx(15 * time.Second))
	b.check(err)
	if code != 0 {
		t.Errorf("server: exit %d", code)
	}
	b.says(srv.Stderr(), "the server has terminated")
	code, err = p.Wait(b.ctx(15 * time.Second))
	b.check(err)
	if code != 1 {
		t.Errorf("client: exit %d", code)
	}
	d := b.parse(p.Stdout())
	b.says(d.at("error").(string), "the server has terminated")
	if len(d.list("intervals")) < 2 {
		t.Errorf("client: %d intervals", len(d.list("intervals")))
	}
}

// F44: a server that cannot start.
func TestServerCannotStart(t *testing.T) {
	t.Parallel()
	b := pair(t)
	b.serve()
	for _, fault := range []struct{ args, words []string }{
		{nil, []string{"unable to start listener", "Address already in use"}},
		{[]string{"-B", "10.99.9.9"}, []string{"unable to start listener", "Cannot assign requested address"}},
		{[]string{"-p", "0"}, []string{"port"}},
	} {
		for _, mode := range [][]string{nil, {"-D"}, {"-J"}, {"-D", "-J"}} {
			args := slices.Concat(fault.args, mode)
			r := b.server(args...)
			if r.Code != 1 {
				t.Errorf("%v: exit %d: %s%s", args, r.Code, r.Stdout, r.Stderr)
			}
			switch {
			case fault.args != nil && fault.args[1] == "0": // a parameter error: text in any mode
				b.says(r.Stderr, fault.words...)
			case slices.Contains(mode, "-J"):
				b.says(b.parse(r.Stdout).at("error").(string), fault.words...)
				if r.Stderr != "" {
					t.Errorf("%v: stderr says %q", args, r.Stderr)
				}
			default:
				b.says(r.Stderr, fault.words...)
				if !oneLine(r.Stderr) || r.Stdout != "" {
					t.Errorf("%v: stdout %q, stderr %q, want one line", args, r.Stdout, r.Stderr)
				}
			}
		}
	}
}

// F45: too few descriptors at the server.
func TestFewDescriptors(t *testing.T) {
	t.Parallel()
	b := pair(t)
	srv := b.startCmd(b.net.Far, lab.Command{Args: []string{"sh", "-c", "ulimit -n 40; exec " + program + " iperf3 -s -p " + port}})
	b.until("the server listens", func() bool { return b.listening() || ended(srv) })
	b.good("-n", "64K")
	quiet := descriptors(b, srv.Pid()) // what the first test left for good, such as a poller
	b.until("the first test's descriptors are gone", func() bool {
		now := descriptors(b, srv.Pid())
		same := now == quiet
		quiet = now
		time.Sleep(100 * time.Millisecond)
		return same
	})
	r := b.client("-t", "1", "-b", "100K", "-P", "60")
	if r.Code != 1 {
		t.Errorf("exit %d", r.Code)
	}
	b.says(strings.ToLower(r.Stderr), "too many open files")
	b.good("-n", "64K", "-P", "1")
	b.until("no descriptor is left behind", func() bool { return descriptors(b, srv.Pid()) <= quiet })
}

// F44, the UDP side: a port that somebody else has for UDP serves TCP, and says why no UDP.
func TestUDPPortTaken(t *testing.T) {
	t.Parallel()
	b := pair(t)
	var other net.PacketConn
	b.check(b.net.Far.Do(func() (err error) {
		other, err = net.ListenPacket("udp", ":"+port)
		return err
	}))
	defer other.Close()
	srv := b.serve()
	b.fails([]string{"unable to start stream listener: Address already in use"}, "-u", "-t", "1")
	b.good("-n", "64K")
	b.says(srv.Stderr(), "no UDP here", "port "+port+" is taken by another socket")
}

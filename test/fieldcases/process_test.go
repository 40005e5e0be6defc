//go:build linux

package fieldcases

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fullbore-net/fullbore/internal/lab"
)

// server runs LR -s with args to its end on the far side.
func (b *bench) server(limit time.Duration, args ...string) lab.Result {
	b.Helper()
	r, err := b.net.Far.Run(b.ctx(limit), append([]string{binary, "iperf3", "-s", "-p", port}, args...)...)
	b.check(err)
	return r
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

// F41: the log file cannot be written.
func TestLogfile(t *testing.T) {
	b := pair(t)
	dir := t.TempDir()
	for _, args := range [][]string{
		{"--logfile", filepath.Join(dir, "no", "x.log")},
		{"-D", "--logfile", filepath.Join(dir, "no", "x.log")},
		{"--logfile", dir},
	} {
		r := b.server(20*time.Second, args...)
		if r.Code != 1 || strings.Count(strings.TrimSpace(r.Stderr), "\n") != 0 {
			t.Errorf("%v: exit %d, stderr %q", args, r.Code, r.Stderr)
		}
		b.says(r.Stderr, args[len(args)-1])
	}
	p := b.startCmd(b.net.Far, lab.Command{Args: []string{binary, "iperf3", "-s", "-D", "-p", port, "--logfile", "rel.log", "-I", "rel.pid"}, Dir: dir})
	<-p.Done()
	pid := pidIn(b, filepath.Join(dir, "rel.pid"))
	defer syscall.Kill(pid, syscall.SIGTERM) //nolint:errcheck // it may have ended
	b.good("-t", "2", "-b", "1M")
	log := filepath.Join(dir, "rel.log")
	b.until("the log has the summary", func() bool {
		data, _ := os.ReadFile(log)
		return strings.Contains(string(data), "receiver")
	})
	fi, err := os.Stat(log)
	b.check(err)
	if fi.Mode().Perm()&0o133 != 0 || fi.Mode().Perm()&0o600 != 0o600 {
		t.Errorf("mode of the log is %v", fi.Mode())
	}
}

// F42: pid files.
func TestPidfile(t *testing.T) {
	b := pair(t)
	dir := t.TempDir()
	pidfile := filepath.Join(dir, "p.pid")
	if r := b.server(20*time.Second, "-D", "-I", pidfile); r.Code != 0 {
		t.Fatalf("first start: exit %d: %s", r.Code, r.Stderr)
	}
	pid := pidIn(b, pidfile)
	b.good("-n", "64K")
	r := b.server(20*time.Second, "-D", "-I", pidfile)
	if r.Code != 1 {
		t.Errorf("second start: exit %d", r.Code)
	}
	b.says(r.Stderr, "Another instance")
	if got := pidIn(b, pidfile); got != pid {
		t.Errorf("the second start changed the file: %d, was %d", got, pid)
	}
	b.check(syscall.Kill(pid, syscall.SIGKILL))
	b.until("the port is free", func() bool {
		ok, err := b.net.Far.Listening()
		b.check(err)
		return !ok
	})
	if r := b.server(20*time.Second, "-D", "-I", pidfile); r.Code != 0 {
		t.Fatalf("after SIGKILL: exit %d: %s", r.Code, r.Stderr)
	}
	pid2 := pidIn(b, pidfile)
	if pid2 == pid {
		t.Error("the file was not rewritten")
	}
	b.check(syscall.Kill(pid2, syscall.SIGTERM))
	b.until("the file is removed", func() bool { _, err := os.Stat(pidfile); return os.IsNotExist(err) })
	b.check(os.WriteFile(pidfile, []byte(itoa(os.Getpid())), 0o600)) // this test: alive, unrelated
	if r := b.server(20*time.Second, "-D", "-I", pidfile); r.Code != 0 {
		t.Errorf("unrelated live pid: exit %d: %s", r.Code, r.Stderr)
	} else {
		b.check(syscall.Kill(pidIn(b, pidfile), syscall.SIGTERM))
	}
	r = b.server(20*time.Second, "-D", "-I", filepath.Join(dir, "no", "p.pid"))
	if r.Code != 1 {
		t.Errorf("unwritable: exit %d", r.Code)
	}
}

// F43: an interrupted client.
func TestInterruptedClient(t *testing.T) {
	for _, c := range []struct {
		sig  syscall.Signal
		args []string
	}{
		{syscall.SIGINT, []string{"-J"}},
		{syscall.SIGTERM, []string{"-J", "-R"}},
		{syscall.SIGHUP, []string{"-J"}},
		{syscall.SIGINT, nil},
		{syscall.SIGTERM, []string{"-R"}},
	} {
		b := pair(t)
		srv := b.serve()
		p := b.start(b.net.Near, append([]string{"-c", b.addr, "-p", port, "-b", "2M", "-t", "30"}, c.args...)...)
		b.until("two intervals are over", func() bool { return srvRows(srv) >= 2 || ended(p) })
		b.check(p.Signal(c.sig))
		code, err := p.Wait(b.ctx(15 * time.Second))
		b.check(err)
		if code != 0 {
			t.Errorf("%v %v: exit %d", c.sig, c.args, code)
		}
		if len(c.args) > 0 && c.args[0] == "-J" {
			d := b.parse(p.Stdout())
			b.says(d.at("error").(string), "interrupt")
			if len(d.list("intervals")) < 2 {
				t.Errorf("%v %v: %d intervals", c.sig, c.args, len(d.list("intervals")))
			}
		} else {
			b.says(p.Stderr(), "iperf3: interrupt - the client has terminated")
			b.says(p.Stdout(), "0.00-1.0", "sender")
		}
		b.until("the server says so", func() bool { return strings.Contains(srv.Stderr(), "the client has terminated") })
		b.good("-n", "64K")
	}
}

// F43, the other side: the server is stopped in mid-test.
func TestInterruptedServer(t *testing.T) {
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
	b.says(b.parse(p.Stdout()).at("error").(string), "the server has terminated")
}

// F44: a server that cannot start.
func TestServerCannotStart(t *testing.T) {
	b := pair(t)
	b.serve()
	for _, args := range [][]string{nil, {"-D"}, {"-B", "10.99.9.9"}, {"-J"}} {
		r := b.server(20*time.Second, args...)
		if r.Code != 1 {
			t.Errorf("%v: exit %d: %s%s", args, r.Code, r.Stdout, r.Stderr)
		}
		if len(args) > 0 && args[0] == "-J" {
			b.says(b.parse(r.Stdout).at("error").(string), "unable to start listener")
			continue
		}
		b.says(r.Stderr, "unable to start listener")
	}
	r, err := b.net.Far.Run(b.ctx(20*time.Second), binary, "iperf3", "-s", "-p", "0")
	b.check(err)
	if r.Code != 1 {
		t.Errorf("-p 0: exit %d", r.Code)
	}
}

// F45: too few descriptors at the server.
func TestFewDescriptors(t *testing.T) {
	b := pair(t)
	srv := b.startCmd(b.net.Far, lab.Command{Args: []string{"sh", "-c", "ulimit -n 40; exec " + binary + " iperf3 -s -p " + port}})
	b.until("the server listens", func() bool { ok, err := b.net.Far.Listening(); b.check(err); return ok })
	before := descriptors(b, srv.Pid())
	r := b.client("-t", "1", "-b", "100K", "-P", "60")
	if r.Code != 1 {
		t.Errorf("exit %d", r.Code)
	}
	b.says(strings.ToLower(r.Stderr), "too many open files")
	b.good("-n", "64K", "-P", "1")
	b.until("no descriptor is left behind", func() bool { return descriptors(b, srv.Pid()) <= before+1 })
}

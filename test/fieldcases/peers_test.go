//go:build linux

package fieldcases

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fullbore-net/fullbore/internal/lab"
)

const ghost = "10.77.0.11" // a second address of the near end

// gone kills a client without a goodbye: its packets are dropped first, for good.
func gone(b *bench, p *lab.Process) {
	b.Helper()
	b.check(b.net.Far.NFT(b.ctx(time.Minute), `table inet gone { chain i { type filter hook input priority 0; ip saddr `+ghost+` drop; } }`))
	b.check(p.Signal(os.Kill))
}

// running waits until a client's test carries data.
func (b *bench) running(p *lab.Process, mark string) {
	b.Helper()
	b.until("the test runs", func() bool { return strings.Contains(p.Stdout(), mark) || ended(p) })
	if ended(p) {
		b.Fatalf("it ended: %s%s", p.Stdout(), p.Stderr())
	}
}

// free waits until a client is served, and returns how long that took.
func (b *bench) free(limit time.Duration, args ...string) time.Duration {
	b.Helper()
	begin := time.Now()
	for {
		r := b.client(append([]string{"-n", "64K"}, args...)...)
		took := time.Since(begin)
		if r.Code == 0 {
			return took
		}
		if !strings.Contains(r.Stderr, "busy") {
			b.Fatalf("neither served nor busy: %s%s", r.Stdout, r.Stderr)
		}
		if took > limit {
			b.Fatalf("still busy after %v", took)
		}
		time.Sleep(100 * time.Millisecond) // polls the server
	}
}

// F24: a vanished client does not hold the server for ever.
func TestClientVanishes(t *testing.T) {
	b := pair(t)
	b.check(b.net.Near.AddAddress(lab.PairNear, ghost+"/24"))
	srv := b.serve("--rcv-timeout", "3000")
	p := b.start(b.net.Near, "-c", b.addr, "-B", ghost, "-p", port, "-b", "1M", "-t", "60")
	b.running(p, "connected to")
	busy := b.client("-n", "64K")
	b.says(busy.Stderr, "the server is busy running a test")
	gone(b, p)
	if took := b.free(20 * time.Second); took > 6*time.Second {
		t.Errorf("free after %v, want 6 s", took)
	}
	b.says(srv.Stderr(), ghost)
}

// F25: a frozen client in reverse does not hold the server.
func TestFrozenReceiver(t *testing.T) {
	b := pair(t)
	srv := b.serve("--snd-timeout", "3000")
	p := b.start(b.net.Near, "-c", b.addr, "-p", port, "-R", "-t", "60", "-b", "20M")
	b.running(p, "1.00-")
	b.check(p.Signal(syscall.SIGSTOP))
	if took := b.free(30 * time.Second); took > 6*time.Second {
		t.Errorf("free after %v, want 6 s", took)
	}
	b.says(srv.Stdout(), "0.00-1.0")
}

// F26: silent connections block nobody.
func TestSilentVisitors(t *testing.T) {
	b := pair(t)
	srv := b.serve()
	b.visitor([]byte("abc"))
	begin := time.Now()
	b.good("-t", "1", "-b", "1M")
	if took := time.Since(begin); took > 4*time.Second {
		t.Errorf("one silent visitor: a 1 s test took %v", took)
	}
	before := rss(b, srv.Pid())
	crowd := b.startCmd(b.net.Near, lab.Command{Args: []string{"bash", "-c",
		"for i in $(seq 200); do exec {fd}<>/dev/tcp/" + b.addr + "/" + port + " && printf abc >&$fd; done; echo all; sleep 60"}})
	b.until("200 visitors are there", func() bool { return strings.Contains(crowd.Stdout(), "all") || ended(crowd) })
	begin = time.Now()
	b.good("-t", "1", "-b", "1M")
	if took := time.Since(begin); took > 5*time.Second {
		t.Errorf("200 silent visitors: a 1 s test took %v", took)
	}
	if grown := rss(b, srv.Pid()) - before; grown > 20e6 {
		t.Errorf("200 silent visitors cost %.1f MB", grown/1e6)
	}
}

// F27: something accepts and never answers.
func TestSilentServer(t *testing.T) {
	b := pair(t)
	silent := b.startCmd(b.net.Far, lab.Command{Args: []string{"ncat", "-l", "-k", port, "--exec", "/bin/sleep 60"}})
	b.until("the silent server listens", func() bool {
		ok, err := b.net.Far.Listening()
		b.check(err)
		return ok || ended(silent)
	})
	begin := time.Now()
	r := b.client("-R", "-t", "1", "--connect-timeout", "500", "--rcv-timeout", "1000")
	if r.Code == 0 {
		t.Error("exit 0 against a silent server")
	}
	if took := time.Since(begin); took > 5*time.Second {
		t.Errorf("took %v", took)
	}
	if !strings.Contains(r.Stderr, "iperf3") || !strings.Contains(strings.ToLower(r.Stderr), "answer") {
		t.Errorf("does not say that the peer accepted but does not speak the protocol: %q", r.Stderr)
	}
}

// F28: the server is killed in mid-test.
func TestServerKilled(t *testing.T) {
	for _, args := range [][]string{{"-J"}, {}, {"-R"}} {
		b := pair(t)
		srv := b.serve()
		p := b.start(b.net.Near, append(args, "-c", b.addr, "-p", port, "-b", "2M", "-t", "8")...)
		kept := func() bool { return srvRows(srv) >= 2 }
		b.until("two intervals are over", func() bool { return kept() || ended(p) })
		b.check(srv.Signal(os.Kill))
		begin := time.Now()
		b.until("the client notices", func() bool { return ended(p) })
		if took := time.Since(begin); took > 3*time.Second {
			t.Errorf("%v: ended %v after the kill", args, took)
		}
		code, err := p.Wait(b.ctx(time.Minute))
		b.check(err)
		if code == 0 {
			t.Errorf("%v: exit 0", args)
		}
		if len(args) > 0 && args[0] == "-J" {
			d := b.parse(p.Stdout())
			if !d.has("error") || len(d.list("intervals")) < 1 {
				t.Errorf("%v: no error or no intervals: %s", args, p.Stdout())
			}
			if p.Stderr() != "" {
				t.Errorf("%v: stderr says %q", args, p.Stderr())
			}
			continue
		}
		b.says(p.Stderr(), "iperf3: error - ")
		b.says(p.Stdout(), "0.00-1.0")
	}
}

func srvRows(srv *lab.Process) int { return strings.Count(srv.Stdout(), "/sec") }

// F29: the link is cut in mid-test, for good or for two seconds.
func TestLinkCut(t *testing.T) {
	b := pair(t)
	srv := b.serve()
	p := b.start(b.net.Near, "-c", b.addr, "-p", port, "-b", "2M", "-t", "4", "-J")
	b.until("the first interval is over", func() bool { return srvRows(srv) >= 1 })
	b.check(b.net.Far.SetDown(lab.PairFar))
	code, err := p.Wait(b.ctx(40 * time.Second))
	b.check(err)
	d := b.parse(p.Stdout())
	if code == 0 || !d.has("error") {
		t.Errorf("cut for good: exit %d, error %v", code, d.v["error"])
	}
	if n := len(d.list("intervals")); n < 3 {
		t.Errorf("cut for good: %d intervals kept", n)
	}

	b = pair(t)
	srv = b.serve()
	p = b.start(b.net.Near, "-c", b.addr, "-p", port, "-b", "2M", "-t", "6", "-J")
	b.until("the first interval is over", func() bool { return srvRows(srv) >= 1 })
	b.check(b.net.Far.SetDown(lab.PairFar))
	b.until("two more intervals are over", func() bool { return srvRows(srv) >= 3 || ended(p) })
	b.check(b.net.Far.SetUp(lab.PairFar))
	code, err = p.Wait(b.ctx(60 * time.Second))
	b.check(err)
	if code != 0 {
		t.Fatalf("cut for a while: exit %d\n%s%s", code, p.Stdout(), p.Stderr())
	}
	d = b.parse(p.Stdout())
	sum, _ := d.intervals("sum", "bytes")
	if total := d.num("end.sum_sent.bytes"); total != sum {
		t.Errorf("cut for a while: total %v, intervals %v", total, sum)
	}
}

// F30: visitors do not use a one-off server up.
func TestOneOffSurvivesScans(t *testing.T) {
	b := pair(t)
	srv := b.serve("-1")
	for range 5 {
		_, err := b.net.Near.Run(b.ctx(time.Minute), "ncat", "-z", b.addr, port)
		b.check(err)
	}
	b.good("-n", "64K")
	code, err := srv.Wait(b.ctx(10 * time.Second))
	b.check(err)
	if code != 0 {
		t.Errorf("one-off server: exit %d", code)
	}
	idle := b.serve("-1", "--idle-timeout", "3")
	begin := time.Now()
	code, err = idle.Wait(b.ctx(30 * time.Second))
	b.check(err)
	if took := time.Since(begin); took > 8*time.Second || code != 0 {
		t.Errorf("idle one-off: exit %d after %v", code, took)
	}
}

// F31: HTTP, TLS and scanners.
func TestStrangers(t *testing.T) {
	b := pair(t)
	srv := b.serve("-J")
	hello := "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + strings.Repeat("\x5a", 506)
	script := fmt.Sprintf(`for i in $(seq 50); do
 printf 'GET / HTTP/1.1\r\nHost: x\r\n\r\n' | ncat -w 1 %[1]s %[2]s | wc -c
 printf '%[3]s' | ncat -w 1 %[1]s %[2]s | wc -c
 head -c 64 /dev/urandom | ncat -w 1 %[1]s %[2]s | wc -c
 ncat -z %[1]s %[2]s
done`, b.addr, port, shellEscape(hello))
	p := b.start(b.net.Near, "-c", b.addr, "-p", port, "-b", "10M", "-t", "3", "-J")
	r, err := b.net.Near.Run(b.ctx(90*time.Second), "bash", "-c", script)
	b.check(err)
	for line := range strings.Lines(r.Stdout) {
		if n := strings.TrimSpace(line); n != "0" && n != "1" {
			t.Errorf("a stranger got %s bytes", n)
		}
	}
	code, err := p.Wait(b.ctx(60 * time.Second))
	b.check(err)
	if code != 0 {
		t.Fatalf("the running test was disturbed: %s", p.Stdout())
	}
	b.within("bit/s of the running test", b.parse(p.Stdout()).num("end.sum_received.bits_per_second"), 9.8e6, 10.2e6)
	begin := time.Now()
	b.good("-n", "64K")
	if took := time.Since(begin); took > 3*time.Second {
		t.Errorf("the next test took %v", took)
	}
	if ended(srv) {
		t.Error("the server is gone")
	}
	b.says(srv.Stderr(), lab.NearIPv4)
}

func shellEscape(s string) string {
	var out strings.Builder
	for _, c := range []byte(s) {
		fmt.Fprintf(&out, `\x%02x`, c)
	}
	return out.String()
}

// F32: tests that follow each other closely.
func TestBackToBack(t *testing.T) {
	b := pair(t)
	b.serve("-J")
	for i := range 200 {
		if r := b.client("-n", "1K", "-l", "1K"); r.Code != 0 {
			t.Fatalf("test %d: %s%s", i+1, r.Stdout, r.Stderr)
		}
	}
}

// F22, hostile §5: every phase of a client's life can end in a freeze.
func TestServerFrozen(t *testing.T) {
	b := pair(t)
	srv := b.serve()
	p := b.start(b.net.Near, "-c", b.addr, "-p", port, "-R", "--rcv-timeout", "1500", "-t", "30", "-J")
	b.until("the first interval is over", func() bool { return srvRows(srv) >= 1 })
	b.check(srv.Signal(syscall.SIGSTOP))
	code, err := p.Wait(b.ctx(30 * time.Second))
	b.check(err)
	if code == 0 || !b.parse(p.Stdout()).has("error") {
		t.Errorf("server frozen: exit %d: %s", code, p.Stdout())
	}
}

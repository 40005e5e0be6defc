//go:build linux

package fieldcases

import (
	"errors"
	"fmt"
	"net"
	"os"
	"regexp"
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
	b.check(b.net.Far.NFT(b.ctx(time.Minute), `table inet gone { chain i { type filter hook input priority 0; ip saddr `+ghost+` drop; }; }`))
	b.check(p.Signal(os.Kill))
}

// running waits until a client's output has a mark.
func (b *bench) running(p *lab.Process, mark string) {
	b.Helper()
	b.until("the test runs", func() bool { return strings.Contains(p.Stdout(), mark) || ended(p) })
	if ended(p) {
		b.Fatalf("it ended: %s%s", p.Stdout(), p.Stderr())
	}
}

// free waits until a client is served, and returns how long that took. Every answer
// before is busy, and at once.
func (b *bench) free(limit, pause time.Duration) time.Duration {
	b.Helper()
	begin := time.Now()
	for {
		asked := time.Now()
		r := b.client("-n", "64K")
		took := time.Since(begin)
		if r.Code == 0 {
			return took
		}
		if !strings.Contains(r.Stderr, "the server is busy running a test") {
			b.Fatalf("neither served nor busy: %s%s", r.Stdout, r.Stderr)
		}
		if busy := time.Since(asked); busy > time.Second {
			b.Errorf("the busy answer took %v", busy)
		}
		if took > limit {
			b.Fatalf("still busy after %v", took)
		}
		time.Sleep(pause) // polls the server
	}
}

// F24: a vanished client does not hold the server for ever.
func TestClientVanishes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		args  []string
		limit time.Duration
	}{{"rcv-timeout", []string{"--rcv-timeout", "3000"}, 6 * time.Second}, {"default", nil, 121 * time.Second}} { // 120, and the poll
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := pair(t)
			b.check(b.net.Near.AddAddress(lab.PairNear, ghost+"/24"))
			srv := b.serve(c.args...)
			p := b.start(b.net.Near, "-c", b.addr, "-B", ghost, "-p", port, "-b", "1M", "-t", "60")
			b.running(p, "connected to")
			b.until("the server receives", func() bool { return srvRows(srv) >= 1 || ended(srv) })
			gone(b, p)
			if took := b.free(c.limit+10*time.Second, min(c.limit/20, time.Second)); took > c.limit {
				t.Errorf("free after %v, want %v", took, c.limit)
			}
			if !regexp.MustCompile(regexp.QuoteMeta(ghost) + `.* since \d{4}-\d\d-\d\dT`).MatchString(srv.Stderr()) {
				t.Errorf("the log does not say who held the slot since when: %q", srv.Stderr())
			}
		})
	}
}

// F25: a frozen client in reverse does not hold the server.
func TestFrozenReceiver(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		args  []string
		limit time.Duration
	}{{"snd-timeout", []string{"--snd-timeout", "3000"}, 6 * time.Second}, {"default", nil, 121 * time.Second}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := pair(t)
			srv := b.serve(c.args...)
			p := b.start(b.net.Near, "-c", b.addr, "-p", port, "-R", "-t", "60", "-b", "20M")
			b.running(p, "0.00-1.0")
			b.check(p.Signal(syscall.SIGSTOP))
			if took := b.free(c.limit+10*time.Second, min(c.limit/20, time.Second)); took > c.limit {
				t.Errorf("free after %v, want %v", took, c.limit)
			}
			b.says(srv.Stdout(), "0.00-1.0", "/sec") // the intervals that it has
		})
	}
}

// F26: silent connections block nobody.
func TestSilentVisitors(t *testing.T) {
	t.Parallel()
	b := pair(t)
	srv := b.serve()
	b.promptly(time.Second)
	begin := time.Now()
	one := b.visit("abc")
	b.promptly(time.Second)

	before := rss(b, srv.Pid())
	crowd := make([]wire, 200)
	for i := range crowd {
		crowd[i] = b.visit("abc")
	}
	all := time.Now()
	b.promptly(2 * time.Second)
	if grown := rss(b, srv.Pid()) - before; grown > 20e6 {
		t.Errorf("200 silent visitors cost %.1f MB", grown/1e6)
	}
	if _, err := one.rest(time.Until(begin.Add(11 * time.Second))); err != nil { // 10 s, and some to notice
		t.Errorf("a silent visitor: %v", err)
	}
	for _, w := range crowd {
		if _, err := w.rest(time.Until(all.Add(11 * time.Second))); err != nil {
			t.Fatalf("one of 200 silent visitors: %v", err)
		}
	}
	b.promptly(time.Second)
}

// silent is SILENT: it accepts, keeps the sockets and never reads or writes.
func silent(b *bench) {
	b.Helper()
	var ln net.Listener
	b.check(b.net.Far.Do(func() (err error) {
		ln, err = net.Listen("tcp", net.JoinHostPort(b.addr, port))
		return err
	}))
	done := make(chan struct{})
	go func() { // ends with the listener
		defer close(done)
		var kept []net.Conn
		for {
			c, err := ln.Accept()
			if err != nil {
				break
			}
			kept = append(kept, c)
		}
		for _, c := range kept {
			_ = c.Close()
		}
	}()
	b.Cleanup(func() { _ = ln.Close(); <-done })
}

// F27: something accepts and never answers.
func TestSilentServer(t *testing.T) {
	t.Parallel()
	b := pair(t)
	silent(b)
	for _, args := range [][]string{{"-R"}, {"-R", "-J"}} {
		begin := time.Now()
		r := b.client(append(args, "-t", "1", "--connect-timeout", "500", "--rcv-timeout", "1000")...)
		if r.Code == 0 {
			t.Errorf("%v: exit 0 against a silent server", args)
		}
		if took := time.Since(begin); took > 3*time.Second {
			t.Errorf("%v: took %v", args, took)
		}
		text := r.Stderr
		if len(args) > 1 {
			text = b.parse(r.Stdout).at("error").(string)
		}
		b.says(text, "accepted the connection", "does not speak iperf3's protocol")
	}
}

// F28: the server is killed in mid-test.
func TestServerKilled(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"-J"}, {}, {"-R"}, {"-R", "-J"}} {
		b := pair(t)
		srv := b.serve()
		p := b.start(b.net.Near, append(args, "-c", b.addr, "-p", port, "-b", "2M", "-t", "8")...)
		b.until("two intervals are over", func() bool { return srvRows(srv) >= 2 || ended(p) })
		b.check(srv.Signal(os.Kill))
		begin := time.Now()
		b.until("the client notices", func() bool { return ended(p) })
		if took := time.Since(begin); took > time.Second {
			t.Errorf("%v: ended %v after the kill", args, took)
		}
		code, err := p.Wait(b.ctx(time.Minute))
		b.check(err)
		if code == 0 {
			t.Errorf("%v: exit 0", args)
		}
		if len(args) > 0 && args[len(args)-1] == "-J" {
			d := b.parse(p.Stdout())
			if !d.has("error") || len(d.list("intervals")) < 2 {
				t.Errorf("%v: no error or not the intervals so far: %s", args, p.Stdout())
			}
			if p.Stderr() != "" {
				t.Errorf("%v: stderr says %q", args, p.Stderr())
			}
			continue
		}
		b.says(p.Stderr(), "iperf3: error - ", "closed")
		b.says(p.Stdout(), "0.00-1.0")
		role := "sender"
		if len(args) > 0 {
			role = "receiver" // the client's own figure
		}
		if !regexp.MustCompile(`0\.00-[12]\.\d\d +sec .* ` + role).MatchString(p.Stdout()) {
			t.Errorf("%v: no partial totals:\n%s", args, p.Stdout())
		}
	}
}

func srvRows(srv *lab.Process) int { return strings.Count(srv.Stdout(), "/sec") }

// zeros counts the rows of a document in which nothing moved.
func (d doc) zeros() (n int) {
	d.b.Helper()
	for i := range d.list("intervals") {
		if d.num("intervals."+itoa(i)+".sum.bytes") == 0 {
			n++
		}
	}
	return n
}

// F29: the link is cut in mid-test, for good or for two seconds.
func TestLinkCut(t *testing.T) {
	t.Parallel()
	cut := func(t *testing.T, seconds string, args ...string) (*bench, *lab.Process, *lab.Process) {
		b := pair(t)
		srv := b.serve()
		p := b.start(b.net.Near, append(args, "-c", b.addr, "-p", port, "-b", "2M", "-t", seconds, "-J")...)
		begin := time.Now()
		b.until("1.5 s have passed", func() bool { return time.Since(begin) > 1500*time.Millisecond && srvRows(srv) >= 1 || ended(p) })
		b.check(b.net.Far.SetDown(lab.PairFar))
		return b, p, srv
	}
	for _, args := range [][]string{nil, {"-R"}} {
		t.Run(fmt.Sprint("for good", args), func(t *testing.T) {
			t.Parallel()
			begin := time.Now()
			b, p, _ := cut(t, "4", args...)
			code, err := p.Wait(b.ctx(40 * time.Second))
			b.check(err)
			if took := time.Since(begin); took > 15*time.Second { // 4 + 10, and the start
				t.Errorf("%v: cut for good: ended after %v", args, took)
			}
			d := b.parse(p.Stdout())
			if code == 0 || !d.has("error") {
				t.Errorf("%v: cut for good: exit %d, error %v", args, code, d.v["error"])
			}
			if n := len(d.list("intervals")); n < 4 || d.num("intervals."+itoa(n-1)+".sum.bytes") != 0 || d.num("intervals.0.sum.bytes") == 0 {
				t.Errorf("%v: cut for good: %d intervals kept, %d of them zero", args, n, d.zeros())
			}
		})
	}
	// Back after 2 s. A sender's rows count what its buffer took, so with the system's
	// buffer the gap need not fill one: it is the receiver whose rows show it. With a small
	// buffer the sender's do, too.
	for _, args := range [][]string{nil, {"-w", "16K"}} {
		t.Run(fmt.Sprint("for a while", args), func(t *testing.T) {
			t.Parallel()
			b, p, srv := cut(t, "7", args...)
			begin := time.Now()
			b.until("2 s have passed", func() bool { return time.Since(begin) > 2*time.Second || ended(p) })
			b.check(b.net.Far.SetUp(lab.PairFar))
			code, err := p.Wait(b.ctx(60 * time.Second))
			b.check(err)
			if code != 0 {
				t.Fatalf("%v: cut for a while: exit %d\n%s%s", args, code, p.Stdout(), p.Stderr())
			}
			d := b.parse(p.Stdout())
			d.addUp("cut for a while", "bytes")
			last := len(d.list("intervals")) - 1
			if d.num("intervals."+itoa(last)+".sum.bytes") == 0 {
				t.Errorf("%v: cut for a while: nothing moves at the end", args)
			}
			b.says(srv.Stdout(), " 0.00 Bytes  0.00 bits/sec")
			if args != nil && d.zeros() < 1 {
				t.Errorf("%v: cut for a while: the sender has no zero interval", args)
			}
			if lost := d.num("end.sum_sent.bytes") - d.num("end.sum_received.bytes"); lost < 0 || lost > 2*131072 {
				t.Errorf("%v: cut for a while: %v bytes between what was sent and received", args, lost)
			}
		})
	}
}

// F30: visitors do not use a one-off server up.
func TestOneOffSurvivesScans(t *testing.T) {
	t.Parallel()
	b := pair(t)
	srv := b.serve("-1")
	for _, payload := range []string{"", "", "x", newCookie(), newCookie() + "\x00\x00\x00", newCookie() + "\x00\x00\x00\x10{\"tcp\":true", newCookie() + "\x00\x00\x00\x02[]"} {
		w := b.visit(payload)
		b.check(w.SetReadDeadline(time.Now().Add(100 * time.Millisecond)))
		_, _ = w.state() // as a scanner that looks for a banner
		b.check(w.Close())
	}
	if ended(srv) {
		t.Fatalf("visitors used the server up: %s%s", srv.Stdout(), srv.Stderr())
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
	if took := time.Since(begin); took > 4*time.Second || code != 0 { // 0 as in iperf3
		t.Errorf("idle one-off: exit %d after %v", code, took)
	}
}

// F31: HTTP, TLS and scanners.
func TestStrangers(t *testing.T) {
	b := pair(t)
	srv := b.serve("-J")
	random := make([]byte, 64)
	for i := range random {
		random[i] = byte(i*37 + 129)
	}
	payloads := []string{
		"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
		"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + strings.Repeat("\x5a", 506),
		string(random),
		"", // connect and close
	}
	visits := func(n int) {
		t.Helper()
		for range n {
			for _, payload := range payloads {
				w := b.visit(payload)
				_ = w.Conn.(*net.TCPConn).CloseWrite() // the server may have closed by now
				answer, err := w.rest(10 * time.Second)
				if err != nil || len(answer) > 1 {
					t.Fatalf("%.20q: answer %x, %v", payload, answer, err)
				}
				_ = w.Close()
			}
		}
	}
	visits(100)
	p := b.start(b.net.Near, "-c", b.addr, "-p", port, "-b", "10M", "-t", "3", "-J")
	visits(100)
	code, err := p.Wait(b.ctx(60 * time.Second))
	b.check(err)
	if code != 0 {
		t.Fatalf("the running test was disturbed: %s", p.Stdout())
	}
	b.within("bit/s of the running test", b.parse(p.Stdout()).num("end.sum_received.bits_per_second"), 9.8e6, 10.2e6)
	b.promptly(time.Second)
	if ended(srv) {
		t.Error("the server is gone")
	}
	for _, d := range b.documents(srv.Stdout()) {
		if d.has("error") {
			t.Errorf("a stranger shows in the output: %v", d.at("error"))
		}
	}
	if n := strings.Count(srv.Stderr(), lab.NearIPv4); n < 3 || n > 50 {
		t.Errorf("%d lines about 800 visitors:\n%s", n, srv.Stderr())
	}
}

// F32: tests that follow each other closely.
func TestBackToBack(t *testing.T) {
	t.Parallel()
	b := pair(t)
	b.serve("-J")
	for i := range 200 {
		if r := b.client("-n", "1K", "-l", "1K"); r.Code != 0 {
			t.Fatalf("test %d: %s%s", i+1, r.Stdout, r.Stderr)
		}
	}
}

// A frozen server does not hold its client (what F25 is for servers).
func TestServerFrozen(t *testing.T) {
	t.Parallel()
	b := pair(t)
	srv := b.serve()
	p := b.start(b.net.Near, "-c", b.addr, "-p", port, "-R", "--rcv-timeout", "1500", "-t", "30", "-J")
	b.until("the first interval is over", func() bool { return srvRows(srv) >= 1 })
	b.check(srv.Signal(syscall.SIGSTOP))
	begin := time.Now()
	code, err := p.Wait(b.ctx(30 * time.Second))
	b.check(errors.Join(err, srv.Signal(syscall.SIGCONT)))
	if took := time.Since(begin); took > 4*time.Second {
		t.Errorf("ended %v after the freeze", took)
	}
	d := b.parse(p.Stdout())
	if code == 0 || !d.has("error") || len(d.list("intervals")) < 1 {
		t.Errorf("server frozen: exit %d: %s", code, p.Stdout())
	}
}

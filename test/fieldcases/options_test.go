//go:build linux

package fieldcases

import (
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fullbore-net/fullbore/internal/lab"
)

// F33: junk, signs and wrong units are refused before anything is connected.
func TestJunkNumbers(t *testing.T) {
	b := pair(t)
	srv := b.serve()
	for _, args := range [][]string{
		{"-t", "1x"}, {"-t", "-1"}, {"-b", "-5M"}, {"-b", "1Q"}, {"-p", "5301abc"}, {"-P", "2.5"}, {"-M", "a"}, {"-i", "-1"}, {"-w", "-1"}, {"-l", "0"},
	} {
		r, err := b.net.Near.Run(b.ctx(time.Minute), append([]string{binary, "iperf3", "-c", b.addr, "-p", port, "-t", "1", "-b", "1M"}, args...)...)
		b.check(err)
		if r.Code != 1 {
			t.Errorf("%v: exit %d", args, r.Code)
		}
		b.says(r.Stderr, args[0], args[1])
	}
	if strings.Contains(srv.Stdout(), "Accepted") {
		t.Error("the server saw a connection")
	}
	b.good("-b", "1.5M", "-l", "1K", "-n", "100K")
}

// F34: a socket buffer beyond the system's limit.
func TestWindowTooLarge(t *testing.T) {
	b := pair(t)
	b.serve()
	r := b.client("-w", "64M", "-t", "1", "-J")
	d := b.parse(r.Stdout)
	if r.Code == 0 || !d.has("error") {
		t.Fatalf("exit %d, error %v", r.Code, d.v["error"])
	}
	b.says(d.at("error").(string), "67108864", "net.core.")
	r = b.client("-w", "40G", "-t", "1")
	if r.Code != 1 {
		t.Errorf("-w 40G: exit %d", r.Code)
	}
	b.says(r.Stderr, "536870912")
	d = b.json("-w", "256K", "-n", "64K")
	b.within("sndbuf_actual", d.num("start.sndbuf_actual"), 2*262144, 2*262144)
	b.within("rcvbuf_actual", d.num("start.rcvbuf_actual"), 2*262144, 2*262144)
}

// F35: the maximum segment size holds on the wire, both ways.
func TestMSS(t *testing.T) {
	for _, args := range [][]string{{}, {"-R"}, {"-6"}} {
		b := pair(t)
		addr := b.addr
		if len(args) > 0 && args[0] == "-6" {
			addr = lab.FarIPv6
		}
		for _, x := range []struct {
			ns  *lab.Namespace
			dev string
		}{{b.net.Near, lab.PairNear}, {b.net.Far, lab.PairFar}} {
			r, err := x.ns.Run(b.ctx(time.Minute), "ethtool", "-K", x.dev, "tso", "off", "gso", "off", "gro", "off")
			b.check(err)
			if r.Code != 0 {
				t.Fatal(r.Stderr)
			}
			b.check(x.ns.NFT(b.ctx(time.Minute), `table inet t { chain i { type filter hook input priority 0;
 ip length > 1252 counter comment "long"
 ip6 length > 1232 counter comment "long6"
} }`))
		}
		b.serve()
		r := b.clientTo(addr, time.Minute, append(args, "-M", "1200", "-t", "1", "-b", "1M")...)
		if r.Code != 0 {
			t.Fatalf("%v: exit %d: %s%s", args, r.Code, r.Stdout, r.Stderr)
		}
		for _, ns := range []*lab.Namespace{b.net.Near, b.net.Far} {
			counters, err := ns.NFTCounters(b.ctx(time.Minute))
			b.check(err)
			for _, c := range counters {
				if c.Packets != 0 {
					t.Errorf("%v: %d packets above 1200 bytes of payload arrived at %s", args, c.Packets, ns.Role)
				}
			}
		}
		if len(args) == 0 {
			b.fails([]string{"-M", "50"}, "-M", "50", "-t", "1")
			b.fails([]string{"99999"}, "-M", "99999", "-t", "1")
			b.good("-n", "64K")
		}
	}
}

// F36: an unknown congestion control names the known ones.
func TestCongestionControl(t *testing.T) {
	b := pair(t)
	b.serve()
	r := b.client("-C", "nosuch", "-t", "1")
	if r.Code != 1 {
		t.Errorf("exit %d", r.Code)
	}
	b.says(r.Stderr, "cubic", "reno")
	d := b.json("-C", "reno", "-n", "64K")
	if cc := d.at("end.sender_tcp_congestion"); cc != "reno" {
		t.Errorf("sender's is %v", cc)
	}
}

// F37: affinity out of range.
func TestAffinity(t *testing.T) {
	b := pair(t)
	srv := b.serve()
	b.fails([]string{"99"}, "-A", "99", "-t", "1")
	r := b.client("-A", "0,99", "-n", "64K")
	if !strings.Contains(r.Stdout+r.Stderr, "99") {
		t.Errorf("the client is not told that the server could not pin: exit %d %q %q", r.Code, r.Stdout, r.Stderr)
	}
	b.fails([]string{"-A", "x"}, "-A", "x", "-t", "1")
	if ended(srv) {
		t.Error("the server is gone")
	}
	b.good("-A", "0,0", "-n", "64K")
}

// F38: DSCP in all its spellings, from the SYN on.
func TestDSCP(t *testing.T) {
	for _, c := range []struct {
		args    []string
		v6, rev bool
	}{
		{args: []string{"--dscp", "ef"}}, {args: []string{"--dscp", "46"}}, {args: []string{"--dscp", "0x2e"}}, {args: []string{"-S", "184"}},
		{args: []string{"--dscp", "ef"}, v6: true}, {args: []string{"--dscp", "ef"}, rev: true},
	} {
		b := pair(t)
		addr, family := b.addr, "ip"
		if c.v6 {
			addr, family = lab.FarIPv6, "ip6"
		}
		// The streams of the data phase: everything but the control connection, which is the first.
		sending, match := b.net.Near, "tcp dport "+port
		if c.rev {
			sending, match = b.net.Far, "tcp sport "+port
		}
		b.check(sending.NFT(b.ctx(time.Minute), `table inet t { chain o { type filter hook output priority 0;
 `+match+` `+family+` dscp ef counter comment "marked"
 `+match+` tcp flags syn / syn,ack `+family+` dscp ef counter comment "markedsyn"
} }`))
		b.serve()
		args := append(c.args, "-t", "1", "-b", "1M", "-J")
		if c.rev {
			args = append(args, "-R")
		}
		r := b.clientTo(addr, time.Minute, args...)
		if r.Code != 0 {
			t.Fatalf("%v: exit %d: %s%s", args, r.Code, r.Stdout, r.Stderr)
		}
		if tos := b.parse(r.Stdout).num("start.test_start.tos"); tos != 184 {
			t.Errorf("%v: tos is %v", args, tos)
		}
		counters, err := sending.NFTCounters(b.ctx(time.Minute))
		b.check(err)
		if len(counters) != 2 {
			t.Fatalf("%d counters", len(counters))
		}
		if counters[0].Packets == 0 {
			t.Errorf("%v: no packet is marked", args)
		}
		if !c.rev && counters[1].Packets == 0 {
			t.Errorf("%v: the stream's SYN is not marked", args)
		}
	}
	b := pair(t)
	for _, args := range [][]string{{"--dscp", "99"}, {"--dscp", "EFX"}, {"-S", "0x1ff"}} {
		b.fails([]string{"TOS", args[1]}, append(args, "-t", "1")...)
	}
}

// F39 (TCP): block sizes.
func TestBlockSizes(t *testing.T) {
	b := pair(t)
	b.serve()
	d := b.json("-l", "1M", "-t", "1", "-b", "50M")
	if got := d.num("start.test_start.blksize"); got != 1<<20 {
		t.Errorf("block size is %v", got)
	}
	b.fails([]string{"1048576"}, "-l", "2M")
}

// F40: limits of time, omit and interval.
func TestTimeLimits(t *testing.T) {
	b := pair(t)
	b.serve()
	p := b.start(b.net.Near, "-c", b.addr, "-p", port, "-t", "0", "-b", "1M", "-i", "1")
	b.until("three seconds have passed", func() bool { return strings.Count(p.Stdout(), "/sec") >= 3 || ended(p) })
	b.check(p.Signal(os.Interrupt))
	if _, err := p.Wait(b.ctx(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	b.says(p.Stdout(), "sender")
	b.fails([]string{"86400"}, "-t", "86401")
	b.fails([]string{"0.1"}, "-i", "0.05")
	d := b.json("-i", "0", "-t", "2")
	sum, rows := d.intervals("sum", "bytes")
	if rows != 1 || sum != d.num("end.sum_sent.bytes") {
		t.Errorf("-i 0: %d intervals, %v bytes of %v", rows, sum, d.num("end.sum_sent.bytes"))
	}
	d = b.json("-i", "0.1", "-t", "1")
	sum, rows = d.intervals("sum", "bytes")
	if rows < 9 || rows > 11 || sum != d.num("end.sum_sent.bytes") {
		t.Errorf("-i 0.1: %d intervals, %v bytes of %v", rows, sum, d.num("end.sum_sent.bytes"))
	}
	b.fails([]string{"only one test end condition"}, "-t", "1", "-n", "1M", "-k", "3")
	_ = p.Signal(syscall.SIGKILL)
}

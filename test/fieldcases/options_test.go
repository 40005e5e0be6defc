//go:build linux

package fieldcases

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fullbore-net/fullbore/internal/lab"
	"github.com/fullbore-net/fullbore/internal/osnet"
)

// F33: junk, signs and wrong units are refused before anything is connected.
func TestJunkNumbers(t *testing.T) {
	t.Parallel()
	b := pair(t)
	srv := b.serve()
	for _, args := range [][]string{
		{"-t", "1x"}, {"-t", "-1"}, {"-b", "-5M"}, {"-b", "1Q"}, {"-p", "5301abc"}, {"-P", "2.5"}, {"-M", "a"}, {"-i", "-1"}, {"-w", "-1"}, {"-l", "0"},
	} {
		r, err := b.net.Near.Run(b.ctx(time.Minute), append([]string{program, "iperf3", "-c", b.addr, "-p", port, "-t", "1", "-b", "1M"}, args...)...)
		b.check(err)
		if r.Code != 1 {
			t.Errorf("%v: exit %d", args, r.Code)
		}
		b.says(r.Stderr, args[0], args[1])
	}
	if strings.Contains(srv.Stdout(), "Accepted") {
		t.Error("the server saw a connection")
	}
	d := b.json("-b", "1.5M", "-l", "1K", "-n", "100K")
	for path, want := range map[string]float64{"target_bitrate": 1.5e6, "blksize": 1024, "bytes": 102400} {
		if got := d.num("start.test_start." + path); got != want {
			t.Errorf("%s is %v, want %v", path, got, want)
		}
	}
	if got := b.json("-n", "1G").num("start.test_start.bytes"); got != 1<<30 {
		t.Errorf("-n 1G is %v", got)
	}
}

// F34: a socket buffer beyond the system's limit.
func TestWindowTooLarge(t *testing.T) {
	t.Parallel()
	b := pair(t)
	srv := b.serve()
	limit, err := b.net.Near.Run(b.ctx(time.Minute), "cat", "/proc/sys/net/core/wmem_max")
	b.check(err)
	r := b.client("-w", "64M", "-t", "1", "-J")
	d := b.parse(r.Stdout)
	if r.Code == 0 || !d.has("error") {
		t.Fatalf("exit %d, error %v", r.Code, d.v["error"])
	}
	b.says(d.at("error").(string), "67108864", strings.TrimSpace(limit.Stdout), "net.core.wmem_max", "net.core.rmem_max")
	b.until("the server has seen it", func() bool { return strings.Contains(srv.Stdout(), "Accepted connection") })
	before := strings.Count(srv.Stdout(), "Accepted connection")
	r = b.client("-w", "40G", "-t", "1")
	if r.Code != 1 {
		t.Errorf("-w 40G: exit %d", r.Code)
	}
	b.says(r.Stderr, "536870912")
	if strings.Count(srv.Stdout(), "Accepted connection") != before {
		t.Error("-w 40G: a connection was made")
	}
	d = b.json("-w", "256K", "-n", "64K")
	b.within("sndbuf_actual", d.num("start.sndbuf_actual"), 2*262144, 2*262144)
	b.within("rcvbuf_actual", d.num("start.rcvbuf_actual"), 2*262144, 2*262144)
}

// F35: the maximum segment size holds on the wire, both ways.
func TestMSS(t *testing.T) {
	t.Parallel()
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
 tcp dport `+port+` tcp flags syn / syn,ack tcp option maxseg size 1200 counter comment "asked"
}; }`))
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
				if c.Name != "asked" && c.Packets != 0 {
					t.Errorf("%v: %d packets above 1200 bytes of payload arrived at %s", args, c.Packets, ns.Role)
				}
			}
		}
		asked, err := b.net.Far.NFTCounter(b.ctx(time.Minute), "asked")
		b.check(err)
		if asked.Packets != 1 {
			t.Errorf("%v: %d SYNs say 1200, want that of the stream", args, asked.Packets)
		}
		if len(args) == 0 {
			b.fails([]string{"-M", "50", "88", "32767"}, "-M", "50", "-t", "1")
			b.fails([]string{"99999", "88", "32767"}, "-M", "99999", "-t", "1")
			b.good("-n", "64K")
		}
	}
}

// F36: an unknown congestion control names the known ones.
func TestCongestionControl(t *testing.T) {
	t.Parallel()
	b := pair(t)
	srv := b.serve()
	r := b.client("-C", "nosuch", "-t", "1")
	if r.Code != 1 {
		t.Errorf("exit %d", r.Code)
	}
	known, err := b.net.Near.Sysctl("net.ipv4.tcp_available_congestion_control")
	b.check(err)
	b.says(r.Stderr, append(strings.Fields(known), "nosuch")...)
	d := b.json("-C", "reno", "-n", "64K")
	if cc := d.at("end.sender_tcp_congestion"); cc != "reno" {
		t.Errorf("sender's is %v", cc)
	}
	// Only the receiving side lacks it.
	b.play(params(`"congestion":"nosuch"`), figures("", 100_000, 0))
	b.until("the server warns", func() bool { return strings.Contains(srv.Stderr(), "nosuch") || ended(srv) })
	b.says(srv.Stderr(), "warning")
	b.good("-n", "64K")
}

// F37: affinity out of range.
func TestAffinity(t *testing.T) {
	t.Parallel()
	b := pair(t)
	srv := b.serve()
	usable, err := osnet.UsableCPUs()
	b.check(err)
	b.fails([]string{"CPU 99", osnet.CPUList(usable)}, "-A", "99", "-t", "1")
	r := b.client("-A", "0,99", "-n", "64K")
	if !strings.Contains(r.Stdout+r.Stderr, "server cannot pin itself to its CPU 99") {
		t.Errorf("the client is not told that the server could not pin: exit %d %q %q", r.Code, r.Stdout, r.Stderr)
	}
	b.fails([]string{"-A", "x"}, "-A", "x", "-t", "1")
	if ended(srv) {
		t.Error("the server is gone")
	}
	b.good("-A", "0,0", "-n", "64K")
}

// F38: DSCP in all its spellings, from the SYN or the greeting on.
func TestDSCP(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args         []string
		v6, rev, udp bool
	}{
		{args: []string{"--dscp", "ef"}},
		{args: []string{"--dscp", "46"}},
		{args: []string{"--dscp", "0x2e"}},
		{args: []string{"-S", "184"}},
		{args: []string{"--dscp", "ef"}, v6: true},
		{args: []string{"--dscp", "46"}, rev: true},
		{args: []string{"--dscp", "0x2e"}, v6: true, rev: true},
		{args: []string{"-S", "184"}, v6: true, rev: true},
		{args: []string{"--dscp", "ef"}, udp: true},
		{args: []string{"--dscp", "46"}, udp: true, v6: true},
		{args: []string{"--dscp", "0x2e"}, udp: true, rev: true},
		{args: []string{"-S", "184"}, udp: true, v6: true, rev: true},
	} {
		b := pair(t)
		addr, family := b.addr, "ip"
		if c.v6 {
			addr, family = lab.FarIPv6, "ip6"
		}
		// The client's port tells the stream from the control connection.
		const stream = "40001"
		proto := "tcp"
		if c.udp {
			proto = "udp"
		}
		sending, match := b.net.Near, proto+" dport "+port+" "+proto+" sport "+stream
		if c.rev {
			sending, match = b.net.Far, proto+" sport "+port+" "+proto+" dport "+stream
		}
		first := "tcp flags syn / syn,ack"
		if c.udp {
			first = "udp length { 12, 53 }" // the greeting, or its answer
		}
		b.check(sending.NFT(b.ctx(time.Minute), `table inet t { chain o { type filter hook output priority 0;
 `+match+` `+family+` dscp ef counter comment "marked"
 `+match+` `+family+` dscp != ef counter comment "unmarked"
 `+match+` `+first+` `+family+` dscp ef counter comment "markedfirst"
}; }`))
		srv := b.serve("-1", "-J")
		args := append(slices.Clone(c.args), "-t", "1", "-b", "1M", "-J", "--cport", stream)
		if c.udp {
			args = append(args, "-u")
		}
		if c.rev {
			args = append(args, "-R")
		}
		r := b.clientTo(addr, time.Minute, args...)
		if r.Code != 0 {
			t.Fatalf("%v: exit %d: %s%s", args, r.Code, r.Stdout, r.Stderr)
		}
		<-srv.Done()
		for who, d := range map[string]doc{"client": b.parse(r.Stdout), "server": b.parse(srv.Stdout())} {
			if tos := d.num("start.test_start.tos"); tos != 184 {
				t.Errorf("%v: tos of the %s is %v", args, who, tos)
			}
		}
		count := func(name string) int64 {
			n, err := sending.NFTCounter(b.ctx(time.Minute), name)
			b.check(err)
			return n.Packets
		}
		if count("marked") == 0 || count("unmarked") != 0 {
			t.Errorf("%v: %d packets are marked, %d are not", args, count("marked"), count("unmarked"))
		}
		if n := count("markedfirst"); n < 1 && (c.udp || !c.rev) || n > 1 && !c.udp {
			t.Errorf("%v: %d of the first packets are marked", args, n)
		}
	}
	b := pair(t)
	for _, args := range [][]string{{"--dscp", "99"}, {"--dscp", "EFX"}, {"-S", "0x1ff"}} {
		for _, more := range [][]string{{}, {"-u"}, {"-6"}, {"-R"}} {
			b.fails([]string{args[1], "255", "63", "ef", "cs0", "af11"}, slices.Concat(args, more, []string{"-t", "1"})...)
		}
	}
}

// F39 (TCP): block sizes.
func TestBlockSizes(t *testing.T) {
	t.Parallel()
	b := pair(t)
	srv := b.serve()
	d := b.json("-l", "1M", "-t", "1", "-b", "50M")
	if got := d.num("start.test_start.blksize"); got != 1<<20 {
		t.Errorf("block size is %v", got)
	}
	before := strings.Count(srv.Stdout(), "Accepted connection")
	b.fails([]string{"1048576"}, "-l", "2M")
	if strings.Count(srv.Stdout(), "Accepted connection") != before {
		t.Error("-l 2M: a connection was made")
	}
}

// F40: limits of time, omit and interval.
func TestTimeLimits(t *testing.T) {
	t.Parallel()
	b := pair(t)
	srv := b.serve()
	p := b.start(b.net.Near, "-c", b.addr, "-p", port, "-t", "0", "-b", "1M", "-i", "1")
	begin := time.Now()
	b.until("20 s have passed", func() bool { return time.Since(begin) > 20*time.Second || ended(p) })
	if ended(p) {
		t.Fatalf("-t 0 ended by itself: %s%s", p.Stdout(), p.Stderr())
	}
	b.check(p.Signal(os.Interrupt))
	code, err := p.Wait(b.ctx(10 * time.Second))
	b.check(err)
	if code != 0 { // 0 since 3.19 on signals
		t.Errorf("-t 0, interrupted: exit %d", code)
	}
	m := regexp.MustCompile(`0\.00-(\d+)\.\d\d +sec .* sender`).FindStringSubmatch(p.Stdout())
	if m == nil || m[1] < "19" || m[1] > "22" {
		t.Errorf("-t 0, interrupted after 20 s, sums up %q of:\n%s", m, p.Stdout())
	}
	b.until("the server is free", func() bool { return b.client("-n", "64K").Code == 0 || ended(srv) })

	before := strings.Count(srv.Stdout(), "Accepted connection")
	b.fails([]string{"0 to 86400"}, "-t", "86401")
	b.fails([]string{"0.1", "60"}, "-i", "0.05")
	b.fails([]string{"0.1", "60"}, "-i", "61")
	b.fails([]string{"600"}, "-O", "601")
	b.fails([]string{"only one test end condition"}, "-t", "1", "-n", "1M", "-k", "3")
	if strings.Count(srv.Stdout(), "Accepted connection") != before {
		t.Error("a connection was made for a refused value")
	}
	d := b.json("-i", "0", "-t", "2", "-b", "10M")
	sum, rows := d.intervals("sum", "bytes")
	if rows != 1 || sum != d.num("end.sum_sent.bytes") {
		t.Errorf("-i 0: %d intervals, %v bytes of %v", rows, sum, d.num("end.sum_sent.bytes"))
	}
}

// F40: an interval of 0.1 s.
func TestShortInterval(t *testing.T) {
	b := pair(t)
	b.serve()
	d := b.json("-i", "0.1", "-t", "1", "-b", "50M")
	d.addUp("client", "bytes")
	starts, ends := d.times("intervals")
	if len(starts) != 10 {
		t.Errorf("%d intervals: %v … %v", len(starts), starts, ends)
	}
}

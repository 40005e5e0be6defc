//go:build linux

package fieldcases

import (
	"bytes"
	"crypto/rand"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/fullbore-net/fullbore/internal/lab"
)

var slow2M = lab.TBF{BitsPerSecond: 2e6, BurstBytes: 16 << 10, Latency: 50 * time.Millisecond}

// F10: small packets pass, full-size segments vanish, and nobody says so.
func TestBlackHole(t *testing.T) {
	b := routed(t)
	b.check(b.net.Router.SetMTU(lab.RouterFar, 1300))
	b.check(b.net.Router.NFT(b.ctx(time.Minute), `table inet t { chain o { type filter hook output priority 0; icmp type destination-unreachable drop; icmpv6 type packet-too-big drop; } }`))
	b.serve()
	d := b.parse(b.client("-t", "2", "-J").Stdout)
	if d.has("end.sum_received") {
		if got := d.num("end.sum_received.bytes"); got != 0 {
			t.Errorf("receiver claims %v bytes", got)
		}
	}
}

// F16: what went into the socket buffer is not what arrived.
func TestSenderAboveLink(t *testing.T) {
	b := pair(t)
	b.check(b.net.Near.SetTBF(lab.PairNear, lab.TBF{BitsPerSecond: 2e6, BurstBytes: 16 << 10, Latency: 400 * time.Millisecond}))
	b.serve()
	d := b.json("-t", "2")
	b.within("receiver's bit/s", d.num("end.sum_received.bits_per_second"), 1.5e6, 2.0e6)
	sent, _ := d.intervals("sum", "bytes")
	if total := d.num("end.sum_sent.bytes"); sent != total {
		t.Errorf("sender: intervals add up to %v, total is %v", sent, total)
	}
}

// F17: totals are the counted intervals, on each side.
func TestOmitTotals(t *testing.T) {
	for _, args := range [][]string{{"-R", "-P", "2"}, {}} {
		b := pair(t)
		for _, ns := range []*lab.Namespace{b.net.Near, b.net.Far} {
			b.check(ns.SetTBF(map[bool]string{true: lab.PairNear, false: lab.PairFar}[ns == b.net.Near], slow2M))
		}
		srv := b.serve("-1", "-J")
		d := b.json(append(args, "-O", "2", "-t", "2")...)
		<-srv.Done()
		s := b.parse(srv.Stdout())
		for who, x := range map[string]doc{"client": d, "server": s} {
			own := "end.sum_sent.bytes"
			if x.at("end.streams.0.sender.sender") == false {
				own = "end.sum_received.bytes"
			}
			got, rows := x.intervals("sum", "bytes")
			if total := x.num(own); got != total || rows == 0 {
				t.Errorf("%v %s: %d intervals add up to %v, %s is %v", args, who, rows, got, own, total)
			}
		}
		omitted := 0
		for i := range d.list("intervals") {
			if d.at("intervals."+itoa(i)+".sum.omitted") == true {
				omitted++
			}
		}
		if omitted < 1 {
			t.Errorf("%v: no omitted interval is listed", args)
		}
		b.within("client's seconds", d.num("end.sum_sent.seconds"), 1.9, 2.3)
		b.within("receiver's bit/s", d.num("end.sum_received.bits_per_second"), 1e6, 2.01e6)
	}
}

// F18: retransmits are never negative, add up, and match the kernel's count.
func TestRetransmits(t *testing.T) {
	for _, args := range [][]string{{}, {"-R"}, {"-O", "1"}, {"-P", "2"}} {
		b := routed(t)
		dev, sending := lab.RouterFar, b.net.Near
		reverse := len(args) > 0 && args[0] == "-R"
		if reverse {
			dev, sending = lab.RouterNear, b.net.Far
		}
		b.check(b.net.Router.SetTBF(dev, slow2M))
		b.serve()
		before := retransSegs(b, sending)
		d := b.json(append(args, "-t", "3")...)
		kernel := retransSegs(b, sending) - before
		got := d.num("end.sum_sent.retransmits")
		if got < 0 {
			t.Errorf("%v: %v retransmits", args, got)
		}
		if !reverse {
			sum, _ := d.intervals("sum", "retransmits")
			if sum != got {
				t.Errorf("%v: intervals add up to %v retransmits, total is %v", args, sum, got)
			}
			for i := range d.list("intervals") {
				if r := d.num("intervals." + itoa(i) + ".streams.0.retransmits"); r < 0 {
					t.Errorf("%v: interval %d: %v retransmits", args, i, r)
				}
			}
		}
		if len(args) == 0 || args[0] != "-O" {
			// What is repeated after the test's end (the buffer still empties) only the kernel counts.
			b.within("retransmits of "+args0(args), got, 0.5*kernel-5, 1.1*kernel+5)
		}
		if kernel > 20 && got == 0 {
			t.Errorf("%v: the kernel counted %v retransmits, we show none", args, kernel)
		}
	}
}

func args0(args []string) string {
	if len(args) == 0 {
		return "a plain run"
	}
	return args[0]
}

func retransSegs(b *bench, ns *lab.Namespace) float64 {
	b.Helper()
	c, err := ns.Counters()
	b.check(err)
	v, ok := c["Tcp.RetransSegs"]
	if !ok {
		b.Fatalf("no Tcp.RetransSegs among %d counters", len(c))
	}
	return float64(v)
}

// F19 (TCP): byte limits end at once and never overshoot by more than a block a stream.
func TestByteLimits(t *testing.T) {
	b := pair(t)
	b.serve()
	d := b.json("-n", "100K", "-l", "1K", "-b", "2M")
	b.within("bytes of -n 100K", d.num("end.sum_sent.bytes"), 102400, 102400+1024-1)
	d = b.json("-n", "1M", "-P", "4")
	b.within("bytes of -n 1M -P 4", d.num("end.sum_sent.bytes"), 1<<20, 1<<20+4*131072-1)
	if got := d.num("end.sum_received.bytes"); got != d.num("end.sum_sent.bytes") {
		t.Errorf("received %v of %v sent", got, d.num("end.sum_sent.bytes"))
	}
	d = b.json("-k", "10", "-l", "1K")
	if got := d.num("end.sum_sent.bytes"); got != 10240 {
		t.Errorf("-k 10 sent %v bytes", got)
	}
	d = b.json("-n", "1M", "-R", "-P", "3")
	b.within("received bytes of -n 1M -R -P 3", d.num("end.sum_received.bytes"), 1<<20, 64<<20)
}

// F20: nothing of one client's settings reaches the next one's test.
func TestNoLeaks(t *testing.T) {
	b := pair(t)
	b.serve()
	b.good("-R", "-S", "72", "-C", "reno", "-t", "1", "-b", "1M")
	b.good("--fq-rate", "1M", "-R", "-t", "1")
	b.good("-R", "-n", "1K")
	b.client("-R", "--username", "nobody") // refused on this side: no key
	b.check(b.net.Far.NFT(b.ctx(time.Minute), `table inet t { chain o { type filter hook output priority 0; tcp sport `+port+` ip dscp != 0 counter; } }`))
	d := b.json("-R", "-b", "20M", "-t", "2")
	b.within("bit/s", d.num("end.sum_received.bits_per_second"), 19e6, 21e6)
	if cc := d.at("end.sender_tcp_congestion"); cc != "cubic" {
		t.Errorf("congestion control is %v", cc)
	}
	counters, err := b.net.Far.NFTCounters(b.ctx(time.Minute))
	b.check(err)
	for _, c := range counters {
		if c.Packets != 0 {
			t.Errorf("%d packets carried a DSCP", c.Packets)
		}
	}
	if d.has("error") {
		t.Errorf("error: %v", d.at("error"))
	}
}

// F21: a rate far below one block a second is kept.
func TestVeryLowRate(t *testing.T) {
	b := pair(t)
	b.serve()
	d := b.json("-b", "10K", "-t", "5")
	b.within("bit/s", d.num("end.sum_received.bits_per_second"), 8e3, 12e3)
}

// F22: directions of an asymmetric link stay apart.
func TestAsymmetricBidir(t *testing.T) {
	b := pair(t)
	b.check(b.net.Near.SetTBF(lab.PairNear, slow2M))
	b.check(b.net.Far.SetTBF(lab.PairFar, lab.TBF{BitsPerSecond: 8e6, BurstBytes: 16 << 10, Latency: 50 * time.Millisecond}))
	b.serve()
	d := b.json("--bidir", "-t", "3")
	b.within("client → server", d.num("end.sum_received.bits_per_second"), 1.5e6, 2.0e6)
	b.within("server → client", d.num("end.sum_received_bidir_reverse.bits_per_second"), 6e6, 8.0e6)
	if d.at("end.sum_sent.sender") != true || d.at("end.sum_sent_bidir_reverse.sender") != false {
		t.Error("sender flags are wrong")
	}
	load := b.startCmd(b.net.Near, lab.Command{Args: []string{"nice", "sh", "-c", "while :; do :; done"}})
	for range 20 {
		d := b.json("--bidir", "-n", "300K")
		if d.num("end.sum_received.bytes") == 0 || d.num("end.sum_received_bidir_reverse.bytes") == 0 {
			t.Fatal("a direction stayed at zero under load")
		}
	}
	_ = load.Signal(os.Kill)
}

// F23: a file arrives whole.
func TestFile(t *testing.T) {
	b := pair(t)
	dir := t.TempDir()
	in := filepath.Join(dir, "in")
	content := make([]byte, 1000003)
	if _, err := rand.Read(content); err != nil {
		t.Fatal(err)
	}
	b.check(os.WriteFile(in, content, 0o600))

	out := filepath.Join(dir, "out")
	srv := b.serve("-1", "-F", out, "-J")
	d := b.json("-F", in, "-b", "40M")
	<-srv.Done()
	same(b, out, content)
	if got := d.num("end.sum_sent.bytes"); got != 1000003 {
		t.Errorf("client reports %v bytes", got)
	}
	if got := b.parse(srv.Stdout()).num("end.sum_received.bytes"); got != 1000003 {
		t.Errorf("server reports %v bytes", got)
	}

	back := filepath.Join(dir, "back")
	srv = b.serve("-1", "-F", in)
	b.good("-R", "-F", back, "-n", "1000003")
	<-srv.Done()
	same(b, back, content)

	b.serve()
	b.fails([]string{"unable to open -F file"}, "-F", filepath.Join(dir, "missing"))
	b.fails([]string{"file"}, "-u", "-F", in)
}

func same(b *bench, name string, want []byte) {
	b.Helper()
	got, err := os.ReadFile(name)
	b.check(err)
	if !bytes.Equal(got, want) {
		b.Errorf("%s: %d bytes arrived of %d, or they differ", filepath.Base(name), len(got), len(want))
	}
}

// F63: holding back is no reason to spin.
func TestPacedSenderSleeps(t *testing.T) {
	b := pair(t)
	b.serve()
	p := b.start(b.net.Near, "-c", b.addr, "-p", port, "-b", "20M", "-t", "3", "-J")
	var used float64
	b.until("the client ends", func() bool {
		if ended(p) {
			return true
		}
		if _, err := os.Stat("/proc/" + itoa(p.Pid()) + "/stat"); err == nil {
			used = cpuSeconds(b, p.Pid())
		}
		return false
	})
	if used >= 0.6 {
		t.Errorf("%.2f s of CPU for 3 s at 20 Mbit/s", used)
	}
	d := b.parse(p.Stdout())
	b.within("bit/s", d.num("end.sum_received.bits_per_second"), 19.4e6, 20.6e6)
}

//go:build linux

package fieldcases

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fullbore-net/fullbore/internal/lab"
)

// every walks all numbers of a document with a given key.
func every(v any, key string, f func(float64)) {
	switch x := v.(type) {
	case map[string]any:
		for k, e := range x {
			if n, ok := e.(float64); ok && k == key {
				f(n)
			}
			every(e, key, f)
		}
	case []any:
		for _, e := range x {
			every(e, key, f)
		}
	}
}

// sane checks what no document may claim: a loss below nothing or above everything.
func (d doc) sane(what string) {
	d.b.Helper()
	every(d.v, "lost_percent", func(n float64) {
		if n < 0 || n > 100 || math.IsNaN(n) {
			d.b.Errorf("%s: lost_percent %v", what, n)
		}
	})
	for _, key := range []string{"lost_packets", "packets", "jitter_ms", "bytes", "out_of_order"} {
		every(d.v, key, func(n float64) {
			if n < 0 {
				d.b.Errorf("%s: %s %v", what, key, n)
			}
		})
	}
}

// printed waits for a server's n-th document.
func (b *bench) printed(srv *lab.Process, n int) doc {
	b.Helper()
	b.until("the server has printed its document", func() bool { return len(b.documents(srv.Stdout())) >= n || ended(srv) })
	docs := b.documents(srv.Stdout())
	if len(docs) < n {
		b.Fatalf("%d documents of the server, want %d: %s", len(docs), n, srv.Stderr())
	}
	return docs[n-1]
}

// nft puts rules into an input chain of its own.
func (b *bench) nft(ns *lab.Namespace, rules string) {
	b.Helper()
	b.check(ns.NFT(b.ctx(time.Minute), "table inet t { chain i { type filter hook input priority 0; "+rules+" }; }"))
}

func (b *bench) counted(ns *lab.Namespace, name string) float64 {
	b.Helper()
	c, err := ns.NFTCounter(b.ctx(time.Minute), name)
	b.check(err)
	return float64(c.Packets)
}

// dropTenth is DROP(10 %): every tenth in turn, so that 10 % are 10 %. Greetings pass.
const dropTenth = ` udp length != { 12, 53 } numgen inc mod 10 < 1 counter drop comment "dropped";`

// F01: losses of the warm-up are not losses of the test.
func TestLossWithOmit(t *testing.T) {
	b := pair(t)
	const policed = 250e3 // bytes of IP packets a second
	b.nft(b.net.Far, `meta l4proto udp limit rate over 250 kbytes/second burst 20 kbytes counter drop;`)
	srv := b.serve("-J")
	args := []string{"-u", "-b", "8M", "-l", "1400", "-O", "2", "-t", "1", "-i", "0"}
	// The share that is lost follows from the rate that was offered, which a busy machine may
	// not keep; everything else holds whatever was offered.
	kept := false
	for try := 1; try <= 4 && !kept; try++ {
		d := b.json(args...)
		s := b.printed(srv, try)
		d.sane("client")
		s.sane("server")
		sent := d.num("end.sum_sent.packets")
		kept = sent > 700 && sent < 730
		arrived := d.num("end.sum_received.bytes") / 1400
		passes := policed * d.num("end.sum_received.seconds") / (1400 + 28)
		b.within("datagrams that got through", arrived, 0.93*passes-15, 1.07*passes+15)
		for _, sum := range []string{"end.sum", "end.sum_received", "end.streams.0.udp"} {
			b.within(sum+": lost + received", d.num(sum+".lost_packets")+arrived, 0.98*sent, 1.02*sent)
			if kept {
				b.within(sum+".lost_percent", d.num(sum+".lost_percent"), 70, 80)
			}
		}
		if kept {
			b.within("server: lost_percent", s.num("end.sum_received.lost_percent"), 70, 80)
		}
	}
	r := b.good(args...)
	if lost, total := b.receiverLoss(r.Stdout); lost < 0 || lost > total || lost < total/2 {
		t.Errorf("text: %v of %v lost\n%s", lost, total, r.Stdout)
	}
}

var udpReceiver = regexp.MustCompile(`(?m)^\[(?: *\d+|SUM)\](?:\[\w\w-\w\])? .* ms  (\d+)/(\d+) \(([^)]*)%\)  receiver$`)

// receiverLoss reads the last line of a receiver.
func (b *bench) receiverLoss(text string) (lost, total float64) {
	b.Helper()
	all := udpReceiver.FindAllStringSubmatch(text, -1)
	if len(all) == 0 {
		b.Fatalf("no line of the receiver in\n%s", text)
	}
	m := all[len(all)-1]
	lost, err1 := strconv.ParseFloat(m[1], 64)
	total, err2 := strconv.ParseFloat(m[2], 64)
	if err1 != nil || err2 != nil {
		b.Fatalf("%q", m)
	}
	return lost, total
}

// F02: a lost end of the test is lost, even when it is all of it.
func TestAllLost(t *testing.T) {
	t.Parallel()
	for _, reverse := range []bool{false, true} {
		t.Run(fmt.Sprintf("reverse=%v", reverse), func(t *testing.T) {
			t.Parallel()
			b := pair(t)
			receiving, args := b.net.Far, []string{"-u", "-b", "1M", "-l", "1000", "-t", "2"}
			if reverse {
				receiving, args = b.net.Near, append(args, "-R")
			}
			b.nft(receiving, `udp length > 100 counter drop comment "dropped";`)
			srv := b.serve("-J")
			r := b.good(append(args, "-J")...)
			d := b.parse(r.Stdout)
			d.sane("client")
			b.says(r.Stderr, "nothing arrived")
			sent := d.num("end.sum_sent.packets")
			b.within("packets sent", sent, 1, 260) // 250 are due; a busy machine may keep the sender from some
			for who, x := range map[string]doc{"client": d, "server": b.printed(srv, 1)} {
				x.sane(who)
				if who == "server" && reverse {
					continue // it reports what it did itself: sent
				}
				for _, sum := range []string{"end.sum", "end.streams.0.udp"} {
					if lost := x.num(sum + ".lost_packets"); lost != sent {
						t.Errorf("%s: %s: %v lost, %v were sent", who, sum, lost, sent)
					}
					if p := x.num(sum + ".lost_percent"); p != 100 {
						t.Errorf("%s: %s: %v %% lost", who, sum, p)
					}
				}
				if got := x.num("end.sum_received.bytes"); got != 0 {
					t.Errorf("%s: %v bytes arrived", who, got)
				}
			}
			if dropped := b.counted(receiving, "dropped"); dropped != sent {
				t.Errorf("%v datagrams were dropped, %v sent", dropped, sent)
			}
			r = b.client(args...)
			lost, total := b.receiverLoss(r.Stdout)
			if lost != total || lost == 0 {
				t.Errorf("text: %v of %v lost\n%s", lost, total, r.Stdout)
			}
			b.says(r.Stderr, "nothing arrived")
			direction := "--up"
			if reverse {
				direction = "--down"
			}
			native := b.native("-u", direction, "-b", "1M", "-l", "1000", "-t", "1")
			b.says(native.Stdout, "nothing arrived")
		})
	}
}

// F05: the loss is shown wherever the reader looks, and is what was dropped.
func TestLossIsShown(t *testing.T) {
	t.Parallel()
	for _, reverse := range []bool{false, true} {
		t.Run(fmt.Sprintf("reverse=%v", reverse), func(t *testing.T) {
			t.Parallel()
			b := pair(t)
			args := []string{"-u", "-b", "4M", "-l", "1000", "-t", "2"}
			receiving, match := b.net.Far, "udp dport "+port
			if reverse {
				receiving, match, args = b.net.Near, "udp sport "+port, append(args, "-R")
			}
			b.nft(receiving, match+dropTenth)
			srv := b.serve("-J")
			d := b.json(args...)
			s := b.printed(srv, 1)
			dropped := b.counted(receiving, "dropped")
			if dropped < 50 {
				t.Fatalf("%v datagrams were dropped: this tells nothing", dropped)
			}
			d.sane("client")
			s.sane("server")
			for _, sum := range []string{"end.sum", "end.sum_received", "end.streams.0.udp"} {
				b.within("client: "+sum+".lost_percent", d.num(sum+".lost_percent"), 7, 13)
				b.within("client: "+sum+".lost_packets", d.num(sum+".lost_packets"), dropped-1, dropped+1)
			}
			if !reverse { // a server reports what it did itself
				b.within("server: lost_percent", s.num("end.sum_received.lost_percent"), 7, 13)
				b.within("server: lost_packets", s.num("end.sum_received.lost_packets"), dropped-1, dropped+1)
			}
			sent := d.num("end.sum_sent.bytes")
			b.within("bytes received", d.num("end.sum_received.bytes"), 0.87*sent, 0.93*sent)

			before := dropped
			r := b.good(args...)
			lost, total := b.receiverLoss(r.Stdout)
			b.within("text: lost", lost, b.counted(receiving, "dropped")-before-1, b.counted(receiving, "dropped")-before+1)
			b.within("text: percent", 100*lost/total, 7, 13)
		})
	}
}

// F06: a burst does not break the rate, and no rate is no burst alone.
func TestBurst(t *testing.T) {
	b := pair(t)
	b.serve()
	var d doc
	bits := 0.0
	for try := 0; try < 4 && bits < 1.6e6; try++ {
		d = b.json("-u", "-b", "1M/1000", "-l", "100", "-t", "2")
		bits = 8 * d.num("end.sum_sent.bytes")
	}
	b.within("bits sent", bits, 1.6e6, 2.8e6)
	full := false
	for try := 0; try < 5 && !full; try++ { // the machine may stop a process for 100 ms
		d = b.json("-u", "-b", "0/1000", "-l", "100", "-t", "1", "-i", "0.1")
		starts, _ := d.times("intervals")
		full = len(starts) >= 9
		for i := range d.list("intervals") {
			full = full && d.num("intervals."+itoa(i)+".sum.packets") > 0
		}
	}
	if !full {
		t.Errorf("unlimited: some tenth of a second has no datagram: %v", d.at("intervals"))
	}
}

// F07: datagrams larger than a packet of the path.
func TestLargeDatagrams(t *testing.T) {
	t.Parallel()
	b := pair(t)
	b.serve()
	r := b.good("-u", "-b", "1M", "-l", "2048", "-t", "1", "-J")
	d := b.parse(r.Stdout) // one document
	if got := d.num("start.test_start.blksize"); got != 2048 {
		t.Errorf("block size %v", got)
	}
	if want := "warning: UDP block size 2048 exceeds TCP MSS 1448, may result in fragmentation / drops\n"; r.Stderr != want {
		t.Errorf("stderr %q, want %q", r.Stderr, want)
	}
	b.check(b.net.Near.SetMTU(lab.PairNear, 1280))
	for _, mode := range []string{"", "-J"} {
		args := []string{"-u", "-l", "1400", "--dont-fragment", "-t", "1"}
		if mode != "" {
			args = append(args, mode)
		}
		r = b.client(args...)
		if r.Code == 0 {
			t.Errorf("%v: exit 0\n%s", args, r.Stdout)
		}
		text := r.Stderr
		if mode == "-J" {
			text = b.parse(r.Stdout).at("error").(string)
		}
		b.says(text, "1400", "1252")
	}
	if got := b.json("-u", "-k", "2").num("start.test_start.blksize"); got != 1228 {
		t.Errorf("default block size at MTU 1280: %v, want 1228", got)
	}
	if r := b.client("-u", "-k", "2", "--dont-fragment", "-l", "1252"); r.Code != 0 {
		t.Errorf("1252 bytes: exit %d: %s", r.Code, r.Stderr)
	}
	r6 := b.clientTo(lab.FarIPv6, time.Minute, "-u", "-k", "2", "-J")
	if got := b.parse(r6.Stdout).num("start.test_start.blksize"); got != 1208 {
		t.Errorf("IPv6: default block size at MTU 1280: %v, want 1208", got)
	}
}

// F08: a firewall that lets only TCP through.
func TestUDPBlocked(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{nil, {"-R"}, {"-J"}} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			t.Parallel()
			b := pair(t)
			b.nft(b.net.Far, `meta l4proto udp drop;`)
			b.serve()
			begin := time.Now()
			r := b.client(append(args, "-u", "-b", "1M", "-t", "1")...)
			if took := time.Since(begin); r.Code == 0 || took > 10*time.Second {
				t.Errorf("exit %d after %v", r.Code, took)
			}
			text := r.Stderr
			if slices.Contains(args, "-J") {
				text = b.parse(r.Stdout).at("error").(string)
			}
			b.says(text, "no UDP answer from port "+port, "TCP works", "firewall?")
			b.good("-b", "1M", "-t", "1")
		})
	}
}

// F09: what the receiving socket could not hold is not the network's loss.
func TestSocketLoss(t *testing.T) {
	b := pair(t)
	srv := b.serve("-J")
	errors := func() float64 {
		c, err := b.net.Far.Counters()
		b.check(err)
		return float64(c["Udp.RcvbufErrors"])
	}
	before := errors()
	d := b.json("-u", "-b", "40M", "-l", "1400", "-w", "4K", "-t", "1")
	dropped := errors() - before
	s := b.printed(srv, 1)
	d.sane("client")
	s.sane("server")
	slack := max(1, 0.02*dropped)
	b.within("client: lost", d.num("end.sum.lost_packets"), dropped-slack, dropped+slack)
	b.within("server: lost", s.num("end.sum_received.lost_packets"), dropped-slack, dropped+slack)
	if got := d.num("start.rcvbuf_actual"); got > 32<<10 {
		t.Errorf("the receive buffer is %v bytes: -w had no effect", got)
	}

	// The diagnosis. A server that stands still for a while loses, whatever the machine.
	p := b.startNative("-u", "--up", "-b", "40M", "-l", "1400", "-w", "4K", "-t", "2", "--offload", "off")
	b.until("data flows", func() bool {
		c, err := b.net.Near.Counters()
		b.check(err)
		return float64(c["Udp.OutDatagrams"]) > d.num("end.sum_sent.packets")+500 || ended(p)
	})
	b.freeze(srv, 100*time.Millisecond)
	if code, err := p.Wait(b.ctx(time.Minute)); err != nil || code > 2 {
		t.Fatalf("fullbore test: exit %d, %v: %s%s", code, err, p.Stdout(), p.Stderr())
	}
	b.says(p.Stdout(), "loss-at-socket", "the receiver's socket dropped")
	m := networkLost.FindStringSubmatch(p.Stdout())
	if m == nil || m[1] != "0" {
		t.Errorf("the network is blamed: %q in\n%s", m, p.Stdout())
	}
}

var networkLost = regexp.MustCompile(`the receiver's socket dropped [\d ]+, the network (?:at most )?(\d+)`)

// startNative starts fullbore test on the near end.
func (b *bench) startNative(args ...string) *lab.Process {
	b.Helper()
	return b.startCmd(b.net.Near, lab.Command{Args: append([]string{program, "test", b.addr, "-p", port, "--no-store"}, args...)})
}

// freeze stops a process for so long.
func (b *bench) freeze(p *lab.Process, d time.Duration) {
	b.Helper()
	b.check(p.Signal(syscall.SIGSTOP))
	begin := time.Now()
	b.until("it has stood still", func() bool { return time.Since(begin) >= d })
	b.check(p.Signal(syscall.SIGCONT))
}

// F39 (UDP): sizes of datagrams.
func TestDatagramSizes(t *testing.T) {
	t.Parallel()
	b := pair(t)
	srv := b.serve()
	for _, c := range []struct {
		size string
		rate string
	}{{"65507", "10M"}, {"16", "100K"}} {
		d := b.json("-u", "-l", c.size, "-t", "1", "-b", c.rate)
		want, err := strconv.ParseFloat(c.size, 64)
		b.check(err)
		if got := d.num("start.test_start.blksize"); got != want {
			t.Errorf("-l %s: block size %v", c.size, got)
		}
		if got := d.num("end.sum_received.packets"); got == 0 || got != d.num("end.sum_sent.packets") {
			t.Errorf("-l %s: %v of %v datagrams arrived", c.size, got, d.num("end.sum_sent.packets"))
		}
	}
	before := strings.Count(srv.Stdout(), "Accepted connection")
	for _, size := range []string{"65508", "15"} {
		b.fails([]string{"minimum = 16 bytes, maximum = 65507 bytes"}, "-u", "-l", size)
	}
	if strings.Count(srv.Stdout(), "Accepted connection") != before {
		t.Error("a connection was made for a refused size")
	}
}

// F63 (UDP): holding back is no reason to spin.
func TestPacedDatagramSenderSleeps(t *testing.T) {
	b := pair(t)
	b.serve()
	var bps float64
	for try := 0; try < 4 && (bps < 19.4e6 || bps > 20.6e6); try++ { // the machine may stop a process for 100 ms
		p := b.start(b.net.Near, "-c", b.addr, "-p", port, "-u", "-b", "20M", "-l", "1400", "-t", "3", "-J")
		used := 0.0
		b.until("the client ends", func() bool {
			if s, ok := cpuSeconds(p.Pid()); ok {
				used = s
			}
			return ended(p)
		})
		if used >= 0.6 || used == 0 {
			t.Errorf("%.2f s of CPU for 3 s at 20 Mbit/s", used)
		}
		bps = b.parse(p.Stdout()).num("end.sum_received.bits_per_second")
	}
	b.within("bit/s", bps, 19.4e6, 20.6e6)
}

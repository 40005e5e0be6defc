//go:build linux

package fieldcases

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fullbore-net/fullbore/internal/lab"
)

// linkLocal returns the automatic fe80:: address of a device.
func linkLocal(b *bench, ns *lab.Namespace, dev string) string {
	b.Helper()
	var addr string
	b.until("the link-local address is usable", func() bool {
		r, err := ns.Run(b.ctx(time.Minute), "ip", "-6", "-o", "addr", "show", "dev", dev, "scope", "link")
		b.check(err)
		f := strings.Fields(r.Stdout)
		if len(f) < 4 || strings.Contains(r.Stdout, "tentative") {
			return false
		}
		addr, _, _ = strings.Cut(f[3], "/")
		return true
	})
	return addr
}

// F12: link-local addresses need a zone, and work with one.
func TestLinkLocal(t *testing.T) {
	t.Parallel()
	b := pair(t)
	peer, own := linkLocal(b, b.net.Far, lab.PairFar), linkLocal(b, b.net.Near, lab.PairNear)
	b.serve()
	r := b.clientTo(peer, time.Minute, "-n", "64K")
	if r.Code != 1 {
		t.Errorf("no zone: exit %d", r.Code)
	}
	b.says(r.Stderr, "%"+lab.PairNear)
	hosts := map[string]bool{}
	for _, args := range [][]string{{}, {"-u"}, {"-R"}, {"-u", "-R"}, {"-B", own + "%" + lab.PairNear}, {"-u", "-B", own + "%" + lab.PairNear}} {
		r := b.clientTo(peer+"%"+lab.PairNear, time.Minute, append(args, "-n", "64K", "-b", "2M", "-J")...)
		if r.Code != 0 {
			t.Errorf("%v: exit %d: %s%s", args, r.Code, r.Stdout, r.Stderr)
			continue
		}
		d := b.parse(r.Stdout)
		if sent, got := d.num("end.sum_sent.bytes"), d.num("end.sum_received.bytes"); got < 64<<10 || got != sent {
			t.Errorf("%v: %v of %v bytes arrived", args, got, sent)
		}
		host := d.at("start.connected.0.remote_host").(string)
		if host != peer && host != peer+"%"+lab.PairNear {
			t.Errorf("%v: remote host is %q", args, host)
		}
		hosts[host] = true
	}
	if len(hosts) != 1 {
		t.Errorf("the remote host is written in several ways: %v", hosts)
	}
}

// F13: a name with two addresses, a server on one of them.
func TestTwoFamilies(t *testing.T) {
	t.Parallel()
	b := pair(t)
	b.net.Near.SetHosts("127.0.0.1 localhost", lab.FarIPv6+" dualhost", lab.FarIPv4+" dualhost")
	b.serve("-4")
	r := b.clientTo("dualhost", time.Minute, "-n", "64K")
	if r.Code != 0 {
		t.Errorf("plain: exit %d: %s%s", r.Code, r.Stdout, r.Stderr)
	}
	b.says(r.Stdout, lab.FarIPv4)
	r = b.clientTo("dualhost", time.Minute, "-u", "-n", "64K", "-b", "2M", "-J")
	if d := b.parse(r.Stdout); r.Code != 0 || d.at("start.connected.0.remote_host") != lab.FarIPv4 || d.num("end.sum_received.bytes") < 64<<10 {
		t.Errorf("UDP: exit %d: %s%s", r.Code, r.Stdout, r.Stderr)
	}
	if r := b.clientTo("dualhost", time.Minute, "-4", "-n", "64K"); r.Code != 0 {
		t.Errorf("-4: exit %d: %s", r.Code, r.Stderr)
	}
	r = b.clientTo("dualhost", time.Minute, "-6", "-n", "64K")
	if r.Code != 1 {
		t.Errorf("-6: exit %d", r.Code)
	}
	b.says(r.Stderr, lab.FarIPv6, "IPv6")
	r = b.clientTo(lab.FarIPv4, time.Minute, "-6", "-n", "64K")
	if r.Code != 1 {
		t.Errorf("literal: exit %d", r.Code)
	}
	b.says(r.Stderr, "not an IPv6 address")
}

// F14: reverse and both directions from behind NAT.
func TestNAT(t *testing.T) {
	t.Parallel()
	b := routed(t)
	// Everything of the test goes to one port of the server, and begins at the client.
	b.check(b.net.Far.NFT(b.ctx(time.Minute), `table inet other { chain i { type filter hook input priority 0; iifname != "lo" meta l4proto { tcp, udp } th dport != `+port+` counter comment "otherport"; }; }
table inet back { chain o { type filter hook output priority 0; oifname != "lo" tcp flags syn / syn,ack counter comment "opened"; }; }`))
	b.check(b.net.Router.NFT(b.ctx(time.Minute), `table ip nat { chain p { type nat hook postrouting priority 100; oifname "`+lab.RouterFar+`" masquerade; }; }
table ip f { chain w { type filter hook forward priority 0; iifname "`+lab.RouterFar+`" ct state new drop; }; }`))
	r, err := b.net.Far.Run(b.ctx(time.Minute), "ip", "route", "del", "default")
	b.check(err)
	if r.Code != 0 {
		t.Fatal(r.Stderr)
	}
	b.serve()
	for _, args := range [][]string{{"-R"}, {"-P", "3", "-R"}, {"--bidir"}, {"-u", "-R"}, {"-u", "--bidir"}, {"-u", "-P", "3", "-R"}} {
		d := b.json(append(args, "-b", "1M", "-t", "1")...)
		for i := range d.list("end.streams") {
			path := fmt.Sprintf("end.streams.%d.receiver.bytes", i)
			if args[0] == "-u" {
				path = fmt.Sprintf("end.streams.%d.udp.bytes", i)
				if lost := d.num(fmt.Sprintf("end.streams.%d.udp.lost_packets", i)); lost != 0 {
					t.Errorf("%v: stream %d lost %v datagrams", args, i, lost)
				}
			}
			b.within(fmt.Sprintf("%v: %s", args, path), d.num(path), 80e3, 300e3)
		}
		for _, sum := range []string{"end.sum_received", "end.sum_received_bidir_reverse"} {
			if d.has(sum) && d.num(sum+".bytes") == 0 {
				t.Errorf("%v: nothing arrived: %s", args, sum)
			}
		}
	}
	for _, name := range []string{"otherport", "opened"} {
		c, err := b.net.Far.NFTCounter(b.ctx(time.Minute), name)
		b.check(err)
		if c.Packets != 0 {
			t.Errorf("%d packets at the server count as %q", c.Packets, name)
		}
	}
}

// F11: a server with two addresses answers from the one that was asked.
func TestTwoAddresses(t *testing.T) {
	t.Parallel()
	const second = "10.77.0.3"
	b := pair(t)
	b.check(b.net.Far.AddAddress(lab.PairFar, second+"/24"))
	b.nft(b.net.Near, `udp sport `+port+` ip saddr != `+second+` counter comment "wrong"; udp sport `+port+` ip saddr `+second+` counter comment "right";`)
	b.serve()
	for _, args := range [][]string{{}, {"-R"}, {"--bidir", "-P", "2"}} {
		begin := time.Now()
		r := b.clientTo(second, time.Minute, append(args, "-u", "-b", "1M", "-t", "1", "-J")...)
		if r.Code != 0 {
			t.Fatalf("%v: exit %d: %s%s", args, r.Code, r.Stdout, r.Stderr)
		}
		if took := time.Since(begin); took > 4*time.Second {
			t.Errorf("%v: 1 s took %v", args, took)
		}
		d := b.parse(r.Stdout)
		if got := d.num("end.sum_received.bytes"); got == 0 || d.num("end.sum.lost_packets") != 0 {
			t.Errorf("%v: %v bytes arrived, %v datagrams lost", args, got, d.num("end.sum.lost_packets"))
		}
		if n := b.counted(b.net.Near, "wrong"); n != 0 {
			t.Errorf("%v: %v datagrams came from another address", args, n)
		}
	}
	if b.counted(b.net.Near, "right") == 0 {
		t.Error("no datagram was seen at all")
	}
}

// F15: a server with one UDP socket for all streams, as on systems that do not tell
// connected ones on a port apart.
func TestOneSocket(t *testing.T) {
	t.Parallel()
	b := pair(t)
	srv := b.startCmd(b.net.Far, lab.Command{Args: []string{program, "iperf3", "-s", "-p", port, "-J"}, Env: []string{"FULLBORE_UDP_ONE_SOCKET=1"}})
	b.until("the server listens", func() bool { return b.listening() || ended(srv) })
	for i, args := range [][]string{{"-P", "4"}, {"-P", "4", "-R"}, {"--bidir"}, {"-P", "4", "--bidir", "--udp-counters-64bit"}} {
		// The sockets are counted while the test runs.
		p := b.start(b.net.Near, append([]string{"-c", b.addr, "-p", port, "-u", "-b", "1M", "-l", "1400", "-t", "2", "-J"}, args...)...)
		dropped := b.socketDrops()
		sockets := -1
		b.until("the client ends", func() bool {
			sent, err := b.net.Near.Counters()
			b.check(err)
			if sent["Udp.OutDatagrams"]+sent["Udp.InDatagrams"] > int64(100*(i+1)) || sockets < 0 {
				sockets = max(sockets, b.udpSockets())
			}
			return ended(p)
		})
		if code, err := p.Wait(b.ctx(time.Minute)); err != nil || code != 0 {
			t.Fatalf("%v: exit %d, %v: %s%s", args, code, err, p.Stdout(), p.Stderr())
		}
		if sockets != 1 {
			t.Errorf("%v: the server has %d UDP sockets", args, sockets)
		}
		d := b.parse(p.Stdout())
		dropped = b.socketDrops() - dropped // a machine that stands still drops at the socket
		for j := range d.list("end.streams") {
			path := fmt.Sprintf("end.streams.%d.udp.", j)
			if n, lost := d.num(path+"packets"), d.num(path+"lost_packets"); n < 20 || lost > dropped {
				t.Errorf("%v: stream %d: %v datagrams, %v lost, %v dropped by sockets", args, j, n, lost, dropped)
			}
		}
		for _, sum := range []string{"end.sum_received", "end.sum_received_bidir_reverse"} {
			if d.has(sum) && d.num(sum+".bytes") < 30e3 {
				t.Errorf("%v: %s: %v bytes", args, sum, d.num(sum+".bytes"))
			}
		}
	}
	// What the shared socket cannot do is said.
	r := b.good("-u", "-S", "184", "-k", "2", "-R", "-J")
	b.until("the server warns", func() bool { return strings.Contains(srv.Stderr(), "warning") || ended(srv) })
	b.says(srv.Stderr(), "TOS")
	b.parse(r.Stdout)
}

// socketDrops is what the sockets of both ends have dropped for lack of room.
func (b *bench) socketDrops() (n float64) {
	b.Helper()
	for _, ns := range []*lab.Namespace{b.net.Near, b.net.Far} {
		c, err := ns.Counters()
		b.check(err)
		n += float64(c["Udp.RcvbufErrors"])
	}
	return n
}

// udpSockets is how many UDP sockets the far end has open.
func (b *bench) udpSockets() (n int) {
	b.Helper()
	r, err := b.net.Far.Run(b.ctx(time.Minute), "ss", "-H", "-u", "-a", "-n")
	b.check(err)
	return strings.Count(r.Stdout, "\n")
}

package lab_test

import (
	"errors"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fullbore-net/fullbore/internal/lab"
)

// TestRouterDrops: a token bucket on the router's device drops what exceeds it, and
// the counters of nft, the device and the receiver agree.
func TestRouterDrops(t *testing.T) {
	needNamespaces(t)
	ctx := testContext(t)
	n := network(t)(lab.NewRouted("cubic"))
	if err := n.Router.SetTBF(lab.RouterFar, lab.TBF{BitsPerSecond: 2_000_000, BurstBytes: 16384, Latency: 50 * time.Millisecond}); err != nil {
		t.Fatal(err)
	}
	// tc, which is not ours, reads back what was meant.
	if got := must(t, n.Router, "tc", "qdisc", "show", "dev", lab.RouterFar); !strings.Contains(got, "tbf 1: root") ||
		!strings.Contains(got, "rate 2Mbit") || !strings.Contains(got, "burst 16Kb") || !strings.Contains(got, "lat 50ms") {
		t.Errorf("tc shows %q", got)
	}
	rules := `add table inet t
		add counter inet t sent
		add chain inet t o { type filter hook output priority 0; }
		add rule inet t o udp dport 5301 counter name sent
		add chain inet t i { type filter hook input priority 0; }
		add rule inet t i udp dport 5301 counter comment "arrived"`
	for _, ns := range []*lab.Namespace{n.Near, n.Far} {
		if err := ns.NFT(ctx, rules); err != nil {
			t.Fatal(err)
		}
	}
	var c net.Conn
	if err := n.Near.Do(func() (err error) {
		c, err = net.Dial("udp", lab.RoutedFarIPv4+":5301")
		return err
	}); err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	const packets = 200 // of 1028 bytes: 205 kB at once into a bucket of 16 kB and a queue of 29 kB
	for range packets {
		// The far end has no such port and says so by ICMP, which a later write reports.
		if _, err := c.Write(make([]byte, 1000)); err != nil && !errors.Is(err, syscall.ECONNREFUSED) {
			t.Fatal(err)
		}
	}
	sent, err := n.Near.NFTCounter(ctx, "sent")
	if err != nil {
		t.Fatal(err)
	}
	drops, err := n.Router.QdiscDrops(lab.RouterFar)
	if err != nil {
		t.Fatal(err)
	}
	if drops < packets/2 || drops > packets-40 {
		t.Errorf("the token bucket dropped %d of %d", drops, packets)
	}
	var arrived lab.NFTCounter
	for arrived.Packets < sent.Packets-drops { // the queue empties within 50 ms
		if arrived, err = n.Far.NFTCounter(ctx, "arrived"); err != nil {
			t.Fatal(err)
		}
	}
	if arrived.Packets != sent.Packets-drops || arrived.Bytes != 1028*arrived.Packets {
		t.Errorf("sent %d, dropped %d, arrived %+v", sent.Packets, drops, arrived)
	}
	counters, err := n.Far.Counters()
	if err != nil {
		t.Fatal(err)
	}
	if got := counters["Udp.NoPorts"]; got != arrived.Packets {
		t.Errorf("Udp.NoPorts %d, arrived %d", got, arrived.Packets)
	}
	if _, ok := counters["TcpExt.TCPLostRetransmit"]; !ok {
		t.Error("no counters of /proc/net/netstat")
	}
	if _, ok := counters["Udp6InDatagrams"]; !ok {
		t.Error("no counters of /proc/net/snmp6")
	}
	if _, err := n.Far.NFTCounter(ctx, "nosuch"); err == nil {
		t.Error("a counter that does not exist was found")
	}
	if err := n.Far.NFT(ctx, "add rule inet nosuch"); err == nil || !strings.Contains(err.Error(), "exit code 1") {
		t.Errorf("bad rules: %v", err)
	}
}

// TestHole: packets above the router's MTU vanish without a word.
func TestHole(t *testing.T) {
	needNamespaces(t)
	n := network(t)(lab.NewRouted("cubic"))
	if err := n.Router.SetMTU(lab.RouterFar, 1300); err != nil {
		t.Fatal(err)
	}
	if err := n.Router.NFT(testContext(t), `add table ip t
		add chain ip t o { type filter hook output priority 0; }
		add rule ip t o icmp type destination-unreachable drop`); err != nil {
		t.Fatal(err)
	}
	near, far := udpPair(t, n)
	send := func(size int) {
		t.Helper()
		if _, err := near.Write(make([]byte, size)); err != nil {
			t.Fatal(err)
		}
	}
	// Packets stay in order, so when the second small one is there the large one is not coming.
	send(1000)
	send(1400)
	send(1001)
	buf := make([]byte, 2000)
	for _, want := range []int{1000, 1001} {
		if got, err := far.Read(buf); got != want || err != nil {
			t.Errorf("received %d bytes, %v, want %d", got, err, want)
		}
	}
	send(100) // the socket has not been told
}

package lab

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCPUTimes(t *testing.T) {
	begin, err := parseCPUTimes([]byte("cpu  4917 1 2544 62867 331 7 65 16 9 9\ncpu0 2020 0 1022 32285 31 0 3 6 0 0\n"))
	if err != nil {
		t.Fatal(err)
	}
	// 4917+1+2544+62867+331+7+65+16; the guests' time is within the user's.
	if want := (cpuTimes{steal: 16, total: 70748}); begin != want {
		t.Errorf("got %+v, want %+v", begin, want)
	}
	for later, want := range map[cpuTimes]float64{
		{steal: 26, total: 70948}: 0.05, {steal: 16, total: 70948}: 0, begin: 0,
	} {
		if got := later.stealSince(begin); got != want {
			t.Errorf("steal to %+v: %v, want %v", later, got, want)
		}
	}
	for _, bad := range []string{"", "cpu0 1 2 3 4 5 6 7 8 9 10\n", "cpu 1 2 3\n", "cpu 1 2 3 4 5 6 7 x\n"} {
		if _, err := parseCPUTimes([]byte(bad)); err == nil {
			t.Errorf("accepted %q", bad)
		}
	}
	if _, err := readCPUTimes(); err != nil {
		t.Errorf("this machine's: %v", err)
	}
}

func TestParseCounters(t *testing.T) {
	got := map[string]int64{}
	err := parseTables("Udp: InDatagrams RcvbufErrors\nUdp: 17 3\nTcpExt: A\nTcpExt: -1\n", got)
	if err == nil {
		err = parsePairs("Ip6InReceives                   \t5\n", got)
	}
	want := map[string]int64{"Udp.InDatagrams": 17, "Udp.RcvbufErrors": 3, "TcpExt.A": -1, "Ip6InReceives": 5}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	for _, bad := range []string{"Udp: A\n", "Udp: A\nTcp: 1\n", "Udp: A B\nUdp: 1\n", "Udp: A\nUdp: x\n", "\n\n"} {
		if parseTables(bad, got) == nil {
			t.Errorf("accepted table %q", bad)
		}
	}
	for _, bad := range []string{"A\n", "A x\n"} {
		if parsePairs(bad, got) == nil {
			t.Errorf("accepted pair %q", bad)
		}
	}
}

func TestHasListener(t *testing.T) {
	const head = "  sl  local_address rem_address   st tx_queue rx_queue\n"
	if !hasListener(head + "   0: 00000000:1451 00000000:0000 0A 00000000:00000000 00:00000000\n") {
		t.Error("a listener was not found")
	}
	if !hasListener(head + "   0: 00000000000000000000000000000000:1451 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000\n") {
		t.Error("an IPv6 listener was not found")
	}
	if hasListener(head + "   0: 0100007F:9C41 00000000:0000 0A 00000000:00000000 00:00000000\n") {
		t.Error("a probe on loopback was taken for a listener")
	}
	if hasListener(head + "   0: 0100007F:1451 0100007F:0A0A 01 00000000:00000000 00:00000000\n") {
		t.Error("a connection was taken for a listener")
	}
}

func TestParseNFTCounters(t *testing.T) {
	// What nft 1.0.6 -j prints, shortened.
	const doc = `{"nftables": [
		{"metainfo": {"version": "1.0.6", "json_schema_version": 1}},
		{"table": {"family": "inet", "name": "t", "handle": 1}},
		{"counter": {"family": "inet", "name": "sent", "table": "t", "handle": 2, "packets": 7, "bytes": 700}},
		{"chain": {"family": "inet", "table": "t", "name": "i", "handle": 3}},
		{"rule": {"family": "inet", "table": "t", "chain": "i", "handle": 4, "expr": [
			{"match": {"op": "==", "left": {"payload": {"protocol": "udp", "field": "dport"}}, "right": 5301}},
			{"counter": "sent"}]}},
		{"rule": {"family": "inet", "table": "t", "chain": "i", "handle": 5, "comment": "dropped", "expr": [
			{"counter": {"packets": 2, "bytes": 56}}, {"drop": null}]}}]}`
	got, err := parseNFTCounters([]byte(doc))
	want := []NFTCounter{
		{Family: "inet", Table: "t", Name: "sent", Packets: 7, Bytes: 700},
		{Family: "inet", Table: "t", Chain: "i", Name: "dropped", Packets: 2, Bytes: 56},
	}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if _, err := parseNFTCounters([]byte("Error: no")); err == nil || !strings.Contains(err.Error(), "nft") {
		t.Errorf("garbage: %v", err)
	}
}

func TestSysctlPath(t *testing.T) {
	for name, want := range map[string]string{
		"net.ipv4.tcp_rmem":               "/proc/sys/net/ipv4/tcp_rmem",
		"net/ipv4/conf/eth0.1/forwarding": "/proc/sys/net/ipv4/conf/eth0.1/forwarding",
	} {
		if got := sysctlPath(name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

package firewall

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fullbore-net/fullbore/internal/plan"
)

func receiver(p plan.Plan, n plan.NTTTCP) *plan.Plan {
	n.Role = plan.NTTTCPReceiver
	p.NTTTCP = &n
	return &p
}

func listen(words ...string) []netip.AddrPort {
	var out []netip.AddrPort
	for _, w := range words {
		out = append(out, netip.MustParseAddrPort(w))
	}
	return out
}

func TestOf(t *testing.T) {
	for _, c := range []struct {
		name string
		s    plan.Serve
		want string
	}{
		{"serve's default", plan.Serve{}, "5201/tcp 5201/udp"},
		{"with NTTTCP", plan.Serve{NTTTCP: receiver(plan.Plan{}, plan.NTTTCP{})}, "5000/tcp 5001-5016/tcp 5201/tcp 6001-6016/tcp 5001-5016/udp 5201/udp"},
		{"several listeners", plan.Serve{Listen: listen("[::]:5203", "192.0.2.1:5201", "[::]:5202")}, "5201-5203/tcp 5201-5203/udp"},
		{"the same port twice", plan.Serve{Listen: listen("192.0.2.1:5201", "192.0.2.2:5201")}, "5201/tcp 5201/udp"},
		{"loopback and unknown ports need none", plan.Serve{Listen: listen("127.0.0.1:5201", "[::1]:5202", "0.0.0.0:0")}, ""},
		{"another base", plan.Serve{Listen: listen("[::]:5201"), NTTTCP: receiver(plan.Plan{Port: 7000}, plan.NTTTCP{Ports: 2})}, "5201/tcp 6999/tcp 7000-7001/tcp 8000-8001/tcp 5201/udp 7000-7001/udp"},
		{"ntttcp -r: its listener is NTTTCP's own", plan.Serve{Listen: listen("192.0.2.1:5001"), NTTTCP: receiver(plan.Plan{}, plan.NTTTCP{Ports: 1})}, "5000/tcp 5001/tcp 6001/tcp 5001/udp"},
		{"ntttcp -r 127.0.0.1", plan.Serve{Listen: listen("127.0.0.1:5001"), NTTTCP: receiver(plan.Plan{}, plan.NTTTCP{})}, ""},
		{"ntttcp -r on two addresses, one outside", plan.Serve{Listen: listen("127.0.0.1:5001", "192.0.2.1:5002"), NTTTCP: receiver(plan.Plan{}, plan.NTTTCP{Ports: 2})}, "5000/tcp 5001-5002/tcp 6001-6002/tcp 5001-5002/udp"},
		{
			"ntttcp.exe -r -P 8: reachable as Linux -P 8 too",
			plan.Serve{Listen: listen("[::]:8"), NTTTCP: receiver(plan.Plan{Port: 8}, plan.NTTTCP{Dialect: plan.NTTTCPWindows, Ports: 1, LinuxPorts: 8})},
			"7/tcp 8/tcp 1008/tcp 5000/tcp 5001-5008/tcp 8/udp 5001-5008/udp",
		},
		{"ntttcp.exe -sp", plan.Serve{NTTTCP: receiver(plan.Plan{}, plan.NTTTCP{Dialect: plan.NTTTCPWindows, Ports: 2, PortSync: true}), Listen: listen("[::]:5001")}, "5000/tcp 5001-5003/tcp 6001-6003/tcp 5001-5003/udp"},
		{"the lowest base", plan.Serve{NTTTCP: receiver(plan.Plan{Port: 1}, plan.NTTTCP{Ports: 1, NoSync: true}), Listen: listen("[::]:1")}, "1/tcp 1001/tcp 1/udp"},
		{"the highest ports", plan.Serve{NTTTCP: receiver(plan.Plan{Port: 65000}, plan.NTTTCP{Ports: 500, NoSync: true}), Listen: listen("[::]:65000")}, "64999/tcp 65000-65499/tcp 65000-65499/udp"},
	} {
		var words []string
		for _, p := range Of(c.s) {
			words = append(words, p.String())
			if p.For == "" {
				t.Errorf("%s: %s: for what?", c.name, p)
			}
		}
		if diff := cmp.Diff(c.want, strings.Join(words, " ")); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
	}
}

func TestNames(t *testing.T) {
	at := time.Unix(1700000000, 123)
	name := RunName(4711, at)
	pid, got, ok := ParseRunName(name)
	if name != "fullbore-run-4711-1700000000" || pid != 4711 || got.Unix() != at.Unix() || !ok {
		t.Errorf("%s: %d %v %v", name, pid, got, ok)
	}
	for _, bad := range []string{"", Kept, "fullbore-run-", "fullbore-run-1", "fullbore-run-x-1", "fullbore-run-1-x", "fullbore-run-0-1", "fullbore-run--1-1", "xfullbore-run-1-1"} {
		if _, _, ok := ParseRunName(bad); ok {
			t.Errorf("%q was taken for the rule of a run", bad)
		}
	}
	for name, want := range map[string]bool{Kept: true, "fullbore-run-1-2": true, "fullbore2": false, "": false, "ssh": false} {
		if ours(name) != want {
			t.Errorf("ours(%q) = %v", name, !want)
		}
	}
}

func TestLists(t *testing.T) {
	w := Wanted{}
	for i := range 20 {
		w.Ports = append(w.Ports, Ports{plan.TCP, 1000 + 10*i, 1000 + 10*i + i%2, "x"})
	}
	var total int
	for _, list := range lists(w.ranges(plan.TCP), ":", multiport) {
		n := 0
		for _, word := range strings.Split(list, ",") {
			n++
			if strings.Contains(word, ":") {
				n++
			}
			total++
		}
		if n > multiport {
			t.Errorf("%s counts %d", list, n)
		}
	}
	if total != 20 {
		t.Errorf("%d ranges of 20", total)
	}
	both := Wanted{Ports: []Ports{{plan.TCP, 5001, 5016, "a"}, {plan.TCP, 5000, 5000, "b"}, {plan.UDP, 5001, 5016, "a"}, {plan.TCP, 5010, 5020, "c"}}}
	if diff := cmp.Diff([]Ports{{plan.TCP, 5000, 5020, ""}}, both.ranges(plan.TCP)); diff != "" {
		t.Error(diff)
	}
}

package firewall

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fullbore-net/fullbore/internal/plan"
)

func recorded(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// asked is a port or a range with the answer that it must get.
type asked struct {
	transport   plan.Transport
	first, last int
	verdict     Verdict
	reason      string // part of it
}

func check(t *testing.T, l interface{ Judge(Ports) Answer }, all []asked) {
	t.Helper()
	for _, q := range all {
		p := Ports{q.transport, q.first, q.last, ""}
		if a := l.Judge(p); a.Verdict != q.verdict || !strings.Contains(a.Reason, q.reason) {
			t.Errorf("%s: %s (%s), want %s (%s)", p, a.Verdict, a.Reason, q.verdict, q.reason)
		}
	}
}

// TestNFTServer goes by a ruleset that real nft 1.0.6 printed.
func TestNFTServer(t *testing.T) {
	layers, notes, err := parseNFT(recorded(t, "nft-server.json"))
	if err != nil {
		t.Fatal(err)
	}
	var titles []string
	for _, l := range layers {
		titles = append(titles, l.Title())
	}
	if diff := cmp.Diff([]string{"nftables, chain input of table inet filter (policy drop)", "nftables, chain in of table ip6 mine (policy accept)"}, titles); diff != "" {
		t.Fatal(diff)
	}
	if len(notes) != 1 || !strings.Contains(notes[0], "chain pre of table ip raw") {
		t.Errorf("notes: %q", notes)
	}
	check(t, layers[0], []asked{
		{plan.TCP, 22, 22, Open, "handle"},
		{plan.TCP, 5001, 5008, Open, ""},
		{plan.TCP, 5001, 5016, Closed, "port 5009"},
		{plan.TCP, 4990, 5001, Closed, "port 4990"},
		{plan.TCP, 5201, 5201, Depends, "only what rule"}, // for the administrators
		{plan.TCP, 8080, 8080, Open, ""},                  // in a named set
		{plan.TCP, 6001, 6016, Depends, ""},               // a limited rate
		{plan.TCP, 9000, 9000, Depends, ""},               // from one interface
		{plan.TCP, 81, 81, Closed, ""},
		{plan.UDP, 5001, 5016, Open, ""},
		{plan.UDP, 5201, 5201, Closed, ""}, // in the verdict map
		{plan.UDP, 53, 53, Open, ""},
		{plan.UDP, 9000, 9000, Depends, "hangs on"}, // open to all but one interface
		{plan.UDP, 7000, 7000, Closed, "voice"},
		{plan.UDP, 7001, 7001, Open, ""},
		{plan.UDP, 3000, 3000, Open, ""},
		{plan.UDP, 6000, 6000, Closed, ""},
	})
	check(t, layers[1], []asked{{plan.TCP, 5201, 5201, Closed, ""}, {plan.UDP, 5201, 5201, Open, "nothing drops it"}, {plan.TCP, 5200, 5202, Closed, "port 5201"}})
}

// TestUFW goes by what real ufw 0.36.2 and iptables 1.8.9 printed.
func TestUFW(t *testing.T) {
	u := parseUFW(recorded(t, "ufw-added.txt"))
	for program, family := range map[string]int{"iptables": 4, "ip6tables": 6} {
		u.by = append(u.by, parseIptables(program, family, recorded(t, program+"-ufw.txt")))
	}
	check(t, u, []asked{
		{plan.TCP, 5000, 5016, Open, ""},
		{plan.TCP, 6001, 6016, Open, ""},
		{plan.TCP, 5201, 5201, Closed, "policy is drop"},
		{plan.TCP, 22, 22, Open, ""},
		{plan.TCP, 7000, 7000, Closed, ""},
		{plan.TCP, 7001, 7001, Depends, ""}, // from one interface, at a limited rate
		{plan.UDP, 5001, 5016, Closed, ""},  // IPv4 senders of one network only, IPv6 none
		{plan.UDP, 5353, 5353, Closed, ""},  // open to groups only, which is not us
	})
	want := []Rule{
		{Name: "fullbore-run-12-1700000000", Text: "allow from 10.0.0.0/8 to any port 5001:5016 proto udp"},
		{Name: Kept, Text: "allow 5000:5016,6001:6016/tcp"},
	}
	if diff := cmp.Diff(want, u.Rules()); diff != "" {
		t.Error(diff)
	}
	var lines []string
	for _, c := range append(u.Remove(Kept), u.Remove("fullbore-run-12-1700000000")...) {
		lines = append(lines, c.Line)
	}
	if diff := cmp.Diff([]string{"ufw delete allow 5000:5016,6001:6016/tcp", "ufw delete allow from 10.0.0.0/8 to any port 5001:5016 proto udp"}, lines); diff != "" {
		t.Error(diff)
	}
}

// TestFirewalld goes by what firewalld 1.3.3 made of its rules in nftables.
func TestFirewalld(t *testing.T) {
	layers, notes, err := parseNFT(recorded(t, "nft-firewalld.json"))
	if err != nil {
		t.Fatal(err)
	}
	if len(layers) != 1 || layers[0].table != "firewalld" || len(notes) > 0 {
		t.Fatalf("%d layers, notes %q", len(layers), notes)
	}
	check(t, layers[0], []asked{
		{plan.TCP, 5000, 5016, Depends, "hangs on"}, // not open in the zone of the other interface
		{plan.TCP, 6001, 6016, Open, ""},            // open in both zones
		{plan.UDP, 5201, 5201, Depends, ""},         // for some senders
		{plan.TCP, 22, 22, Open, ""},
		{plan.TCP, 5201, 5201, Closed, ""},
		{plan.UDP, 99, 99, Depends, ""},
	})
	want := map[string][]string{
		Kept: {`rule priority="-5201" port port="5000-5016" protocol="tcp" accept`},
		"fullbore-run-12-1700000000": {
			`rule priority="-5202" family="ipv4" source address="10.0.0.0/8" port port="5201" protocol="udp" log prefix="fullbore-run-12-1700000000" level="debug" limit value="2/d" accept`,
		},
	}
	if diff := cmp.Diff(want, parseRich(recorded(t, "firewalld-rich.txt"))); diff != "" {
		t.Error(diff)
	}
}

func TestIptables(t *testing.T) {
	for _, c := range []struct {
		name, rules string
		asked       []asked
	}{
		{"cloud image: reject at the end", `
-P INPUT ACCEPT
-A INPUT -m state --state RELATED,ESTABLISHED -j ACCEPT
-A INPUT -p icmp -j ACCEPT
-A INPUT -i lo -j ACCEPT
-A INPUT -p tcp -m state --state NEW -m tcp --dport 22 -j ACCEPT
-A INPUT -j REJECT --reject-with icmp-host-prohibited`, []asked{{plan.TCP, 22, 22, Open, ""}, {plan.TCP, 5201, 5201, Closed, "REJECT"}, {plan.UDP, 22, 22, Closed, ""}}},
		{"not from lo, not a SYN, other ports than these", `
-P INPUT DROP
-A INPUT ! -i lo -p tcp -m tcp --dport 1:1023 -j DROP
-A INPUT -p tcp -m tcp ! --tcp-flags FIN,SYN,RST,ACK SYN -m conntrack --ctstate NEW -j DROP
-A INPUT -p tcp -m multiport ! --dports 5201,5202 -j ACCEPT`, []asked{{plan.TCP, 80, 80, Closed, "DROP"}, {plan.TCP, 1024, 2000, Open, ""}, {plan.TCP, 5200, 5203, Closed, "port 5201"}}},
		{"chains, returns, marks, logs", `
-P INPUT DROP
-N OPEN
-N LATE
-A INPUT -j LOG --log-prefix "in: " --log-level 7
-A INPUT -m comment --comment "the \"open\" ones" -j OPEN
-A INPUT -g LATE
-A INPUT -j ACCEPT
-A OPEN -p udp -j RETURN
-A OPEN -p tcp -m tcp --dport 5201 -m mark ! --mark 0x1 -j DROP
-A OPEN -p tcp -m tcp --dport 5201 -j ACCEPT
-A OPEN -p udp -m udp --dport 5201 -j ACCEPT
-A LATE -p udp -m udp --dport 7000 -j ACCEPT`, []asked{{plan.TCP, 5201, 5201, Depends, "mark"}, {plan.UDP, 5201, 5201, Closed, ""}, {plan.UDP, 7000, 7000, Open, ""}}},
		{"what is handed elsewhere is not known", `
-P INPUT ACCEPT
-A INPUT -p udp -j NFQUEUE --queue-num 0`, []asked{{plan.UDP, 5201, 5201, Depends, "not read"}, {plan.TCP, 5201, 5201, Open, ""}}},
		{"a loop of chains", `
-P INPUT DROP
-A INPUT -j A
-A A -j B
-A B -j A`, []asked{{plan.TCP, 1, 1, Depends, "nested"}}},
		{"more ways through than can be followed", `
-P INPUT DROP
-A INPUT -j A0
` + doubling(), []asked{{plan.TCP, 1, 1, Depends, "too many"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := parseIptables("iptables", 4, []byte(c.rules))
			if l == nil {
				t.Fatal("nothing was seen to filter")
			}
			check(t, l, c.asked)
		})
	}
	for _, harmless := range []string{"", "-P INPUT ACCEPT\n-P FORWARD DROP\n", "-P INPUT ACCEPT\n-A INPUT -p tcp -j ACCEPT\n-A INPUT -j LOG\n"} {
		if l := parseIptables("iptables", 4, []byte(harmless)); l != nil && harmless != "" {
			t.Errorf("%q filters nothing", harmless)
		}
	}
}

func TestIptablesRemove(t *testing.T) {
	l := parseIptables("ip6tables", 6, []byte(`-P INPUT ACCEPT
-A INPUT -p tcp -m multiport --dports 5201,5001:5016 -m comment --comment fullbore -j ACCEPT
-A INPUT -p tcp -m comment --comment "fullbore is not mine" -j ACCEPT
-A INPUT -p udp -m multiport --dports 5201 -m comment --comment fullbore-run-7-1700000000 -j ACCEPT
`))
	if l == nil || len(l.Rules()) != 2 {
		t.Fatalf("%+v", l)
	}
	var lines []string
	for _, name := range []string{Kept, "fullbore-run-7-1700000000", "fullbore-run-8-1"} {
		for _, c := range l.Remove(name) {
			lines = append(lines, c.Line)
		}
	}
	want := []string{
		"ip6tables -D INPUT -p tcp -m multiport --dports 5201,5001:5016 -m comment --comment fullbore -j ACCEPT",
		"ip6tables -D INPUT -p udp -m multiport --dports 5201 -m comment --comment fullbore-run-7-1700000000 -j ACCEPT",
	}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Error(diff)
	}
}

func TestUFWEnabled(t *testing.T) {
	for conf, want := range map[string]bool{"": false, "ENABLED=yes\n": true, "# ENABLED=yes\nENABLED=no\nLOGLEVEL=low": false, "LOGLEVEL=low\nENABLED = \"yes\"": true} {
		if got := ufwEnabled([]byte(conf)); got != want {
			t.Errorf("%q: %v", conf, got)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, name := range []string{"nft-server.json", "iptables-ufw.txt", "ufw-added.txt", "firewalld-rich.txt"} {
		data, err := os.ReadFile("testdata/" + name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte(`{"nftables":[{"chain":{"family":"inet","table":"t","name":"c","type":"filter","hook":"input","policy":"drop"}},{"rule":{"family":"inet","table":"t","chain":"c","handle":1,"expr":[{"vmap":{"key":{},"data":{"set":[[1,2]]}}},{"jump":{"target":"c"}}]}}]}`))
	f.Add([]byte("-A INPUT -m comment --comment fullbore\n-A INPUT\n-A INPUT ! -p -j -g --tcp-flags A"))
	f.Add([]byte("v2.30|Action=Allow|Dir=In|LPort2_10=1-|LPort=RPC|Protocol=300|"))
	ports := []Ports{{plan.TCP, 1, 65535, ""}, {plan.UDP, 5201, 5201, ""}}
	f.Fuzz(func(t *testing.T, data []byte) {
		var layers []Layer
		if chains, _, err := parseNFT(data); err == nil {
			for _, c := range chains {
				layers = append(layers, c)
			}
		}
		if l := parseIptables("iptables", 4, data); l != nil {
			layers = append(layers, l)
		}
		layers = append(layers, parseUFW(data), &firewalld{runtime: parseRich(data)})
		if r, ok := parseWindowsRule(string(data)); ok {
			layers = append(layers, &windowsFirewall{seen: true, profiles: []windowsProfile{{name: "Public", on: true}}, found: []windowsRule{r}})
		}
		for _, l := range layers {
			for _, p := range ports {
				if a := l.Judge(p); rank(a.Verdict) < 0 || a.Reason == "" {
					t.Fatalf("%s: %+v", l.Title(), a)
				}
			}
			for _, r := range l.Rules() {
				for _, c := range l.Remove(r.Name) {
					if len(c.Line) == 0 {
						t.Fatal("a command without words")
					}
				}
			}
		}
	})
}

// doubling are 16 chains that each jump to the next one twenty times.
func doubling() string {
	var b strings.Builder
	for i := range 16 {
		for range 20 {
			fmt.Fprintf(&b, "-A A%d -j A%d\n", i, i+1)
		}
	}
	return b.String()
}

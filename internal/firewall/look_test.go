package firewall

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fullbore-net/fullbore/internal/plan"
)

// script plays the programs of a system: what they print by command line, or why they
// fail. What it does not know is not installed.
type script struct {
	says  map[string]string
	fails map[string]string
	ran   []string
}

func (s *script) run(_ context.Context, args ...string) ([]byte, error) {
	line := strings.Join(args, " ")
	s.ran = append(s.ran, line)
	if why, ok := s.fails[line]; ok {
		return nil, errors.New(why)
	}
	if out, ok := s.says[line]; ok {
		return []byte(out), nil
	}
	for known := range s.says { // installed, but not for this
		if strings.HasPrefix(known, args[0]+" ") {
			return nil, fmt.Errorf("exit status 1: %s: not played", line)
		}
	}
	return nil, exec.ErrNotFound
}

func (s *script) system(files map[string]string) System {
	tree := fstest.MapFS{}
	for name, data := range files {
		tree[name] = &fstest.MapFile{Data: []byte(data)}
	}
	return System{Run: s.run, Files: tree, Alive: func(pid int, _ time.Time) bool { return pid == 1 }, Privileged: true, Program: "/opt/fullbore", look: lookLinux}
}

const (
	listRuleset = "nft -j list ruleset"
	noRules     = `{"nftables":[{"metainfo":{"json_schema_version":1}}]}`
	dropInput   = "-P INPUT DROP\n"
	running     = "running\n"
)

// compatRules is what nft lists where iptables keeps its rules in nftables.
const compatRules = `{"nftables":[
{"table":{"family":"ip","name":"filter","handle":1}},
{"chain":{"family":"ip","table":"filter","name":"INPUT","handle":1,"type":"filter","hook":"input","prio":0,"policy":"drop"}},
{"rule":{"family":"ip","table":"filter","chain":"INPUT","handle":2,"expr":[{"xt":null},{"counter":{}},{"accept":null}]}}]}`

func TestLookLinux(t *testing.T) {
	server, zones := string(recorded(t, "nft-server.json")), string(recorded(t, "firewalld-zones.txt"))
	ufwFiles := map[string]string{"etc/ufw/ufw.conf": "ENABLED=yes\n"}
	for _, c := range []struct {
		name         string
		says, fails  map[string]string
		files        map[string]string
		unprivileged bool
		zone         string
		titles       []string
		unread       string
		notes        []string
		never        string // a command that must not have run
	}{
		{name: "nothing filters", says: map[string]string{listRuleset: noRules, "iptables -S": dropInput}, never: "iptables -S"},
		{
			name: "nftables", says: map[string]string{listRuleset: server},
			titles: []string{"nftables, chain input of table inet filter (policy drop)", "nftables, chain in of table ip6 mine (policy accept)"},
			notes:  []string{"before they come to the input chain"},
		},
		{
			name: "iptables in nftables", says: map[string]string{listRuleset: compatRules, "iptables -S": dropInput, "ip6tables -S": dropInput},
			titles: []string{"iptables, chain INPUT (policy drop)"}, never: "ip6tables -S",
		},
		{
			name: "old iptables, beside empty nftables", says: map[string]string{listRuleset: noRules, "iptables-legacy -S": dropInput, "ip6tables-legacy -S": "-P INPUT ACCEPT\n"},
			files:  map[string]string{"proc/net/ip_tables_names": "nat\nfilter\n", "proc/net/ip6_tables_names": "filter\n"},
			titles: []string{"iptables-legacy, chain INPUT (policy drop)"},
		},
		{
			name: "old iptables under its plain name", says: map[string]string{listRuleset: noRules, "iptables -S": dropInput},
			files: map[string]string{"proc/net/ip_tables_names": "filter\n"}, titles: []string{"iptables, chain INPUT (policy drop)"},
		},
		{name: "iptables without nft", says: map[string]string{"iptables -S": dropInput, "ip6tables -S": dropInput}, titles: []string{"iptables, chain INPUT (policy drop)", "ip6tables, chain INPUT (policy drop)"}},
		{name: "no tool at all", notes: []string{"neither nft nor iptables is installed"}},
		{
			name: "ufw", files: ufwFiles,
			says:   map[string]string{listRuleset: string(recorded(t, "nft-ufw.json")), "iptables -S": string(recorded(t, "iptables-ufw.txt")), "ip6tables -S": string(recorded(t, "ip6tables-ufw.txt")), "ufw show added": string(recorded(t, "ufw-added.txt"))},
			titles: []string{"ufw (enabled)"},
		},
		{
			name: "ufw without privileges", files: ufwFiles, unprivileged: true,
			fails:  map[string]string{listRuleset: "Operation not permitted (you must be root)", "ufw show added": "ERROR: You need to be root to run this script"},
			titles: []string{"ufw (enabled)"}, unread: "nftables: its rules cannot be read without privileges; ufw: its rules cannot be read without privileges",
		},
		{name: "ufw that is off", files: map[string]string{"etc/ufw/ufw.conf": "ENABLED=no\n"}, says: map[string]string{listRuleset: noRules, "ufw show added": ""}, never: "ufw show added"},
		{
			name: "firewalld", says: map[string]string{
				listRuleset: string(recorded(t, "nft-firewalld.json")), "firewall-cmd --state": running, "firewall-cmd --get-default-zone": "public\n", "firewall-cmd --get-active-zones": zones,
				"firewall-cmd --zone=public --list-rich-rules":             string(recorded(t, "firewalld-rich.txt")),
				"firewall-cmd --permanent --zone=public --list-rich-rules": string(recorded(t, "firewalld-rich-permanent.txt")),
			},
			titles: []string{"firewalld, zone public (the default)"}, notes: []string{"other active zones, whose interfaces have rules of their own: internal (--zone)"},
		},
		{
			name: "firewalld over iptables, another zone", zone: "internal", says: map[string]string{
				listRuleset: compatRules, "iptables -S": dropInput, "firewall-cmd --state": running, "firewall-cmd --get-default-zone": "public\n", "firewall-cmd --get-active-zones": "internal\n  interfaces: eth0\n",
				"firewall-cmd --zone=internal --list-rich-rules": "", "firewall-cmd --permanent --zone=internal --list-rich-rules": "",
			},
			titles: []string{"firewalld, zone internal"},
		},
		{
			name: "firewalld without privileges", unprivileged: true, says: map[string]string{"firewall-cmd --state": running},
			fails:  map[string]string{listRuleset: "Operation not permitted (you must be root)", "firewall-cmd --get-default-zone": "Authorization failed."},
			titles: []string{"firewalld, zone  (the default)"}, unread: "nftables: its rules cannot be read without privileges; firewalld: its rules cannot be read without privileges",
		},
		{name: "firewalld that is not running", says: map[string]string{listRuleset: noRules}, fails: map[string]string{"firewall-cmd --state": "exit status 252: not running"}},
		{name: "nft without privileges", unprivileged: true, fails: map[string]string{listRuleset: "Operation not permitted (you must be root)"}, unread: "nftables: its rules cannot be read without privileges"},
		{name: "nft that fails", fails: map[string]string{listRuleset: "exit status 1: netlink: broken"}, unread: "nftables: exit status 1: netlink: broken"},
		{name: "nft that says something else", says: map[string]string{listRuleset: "not JSON"}, unread: "nftables: nft -j list ruleset: invalid character 'o' in literal null (expecting 'u')"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &script{says: c.says, fails: c.fails}
			sys := s.system(c.files)
			sys.Privileged, sys.Zone = !c.unprivileged, c.zone
			h, err := lookLinux(t.Context(), sys)
			if err != nil {
				t.Fatal(err)
			}
			var titles []string
			for _, l := range h.Layers {
				titles = append(titles, l.Title())
				a := l.Judge(Ports{plan.TCP, 5201, 5201, ""})
				if c.unread != "" && a.Verdict != Depends {
					t.Errorf("%s was not read, but says %+v", l.Title(), a)
				}
			}
			if diff := cmp.Diff(c.titles, titles); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(c.unread, strings.Join(h.Unread, "; ")); diff != "" {
				t.Error(diff)
			}
			if len(h.Notes) != len(c.notes) {
				t.Errorf("notes: %q", h.Notes)
			}
			for i, n := range c.notes {
				if i < len(h.Notes) && !strings.Contains(h.Notes[i], n) {
					t.Errorf("note %q, want %q", h.Notes[i], n)
				}
			}
			for _, line := range s.ran {
				if line == c.never {
					t.Errorf("%s was run", line)
				}
				for _, word := range []string{"add", "insert", "delete", "-I", "-D", "allow", "enable"} {
					if strings.Contains(" "+line+" ", " "+word+" ") {
						t.Errorf("looking ran %s", line)
					}
				}
			}
		})
	}
}

func TestLookCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := lookLinux(ctx, (&script{says: map[string]string{listRuleset: noRules}}).system(nil)); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

func TestLookElsewhere(t *testing.T) {
	type looker func(context.Context, System) (*Host, error)
	for _, c := range []struct {
		name        string
		look        looker
		says, fails map[string]string
		titles      []string
		unread      int
	}{
		{"macOS, on", lookDarwin, map[string]string{socketfilterfw + " --getglobalstate": "Firewall is enabled. (State = 1)\n"}, nil, []string{"macOS's application firewall"}, 0},
		{"macOS, off", lookDarwin, map[string]string{socketfilterfw + " --getglobalstate": "Firewall is disabled. (State = 0)\n"}, nil, nil, 0},
		{"macOS, unknown", lookDarwin, nil, nil, nil, 1},
		{"FreeBSD, pf", lookFreeBSD, map[string]string{"kldstat -q -m pf": ""}, nil, []string{"pf"}, 0},
		{"FreeBSD, both", lookFreeBSD, map[string]string{"kldstat -q -m pf": "", "kldstat -q -m ipfw": ""}, nil, []string{"pf", "ipfw"}, 0},
		{"FreeBSD, none", lookFreeBSD, nil, nil, nil, 0},
	} {
		h, err := c.look(t.Context(), (&script{says: c.says, fails: c.fails}).system(nil))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		var titles []string
		for _, l := range h.Layers {
			titles = append(titles, l.Title())
		}
		if diff := cmp.Diff(c.titles, titles); diff != "" || len(h.Unread) != c.unread || len(h.Notes) == 0 {
			t.Errorf("%s: %s unread %q notes %q", c.name, diff, h.Unread, h.Notes)
		}
	}
}

// changing plays a firewalld whose rules follow the commands.
func changing(s *script, after map[string]map[string]string) func(context.Context, ...string) ([]byte, error) {
	return func(ctx context.Context, args ...string) ([]byte, error) {
		out, err := s.run(ctx, args...)
		for line, says := range after[strings.Join(args, " ")] {
			s.says[line] = says
		}
		return out, err
	}
}

// changes are the lines of the commands that were run and that change something.
func (s *script) changes() []string {
	var out []string
	for _, line := range s.ran {
		for _, reads := range []string{listRuleset, "-S", "show added", "--state", "--get-", "--list-"} {
			if strings.Contains(line, reads) {
				line = ""
			}
		}
		if line != "" {
			out = append(out, line)
		}
	}
	return out
}

func iptablesHost(rules string) *script {
	return &script{says: map[string]string{"iptables -S": dropInput + rules, "ip6tables -S": "-P INPUT ACCEPT\n"}}
}

const (
	addTCP = "iptables -I INPUT 1 -p tcp -m multiport --dports 5201 -m comment --comment "
	addUDP = "iptables -I INPUT 1 -p udp -m multiport --dports 5201 -m comment --comment "
)

func onePort(name string) Wanted {
	return Wanted{Name: name, Ports: []Ports{{plan.TCP, 5201, 5201, "x"}, {plan.UDP, 5201, 5201, "x"}}}
}

func TestOpenForRun(t *testing.T) {
	const run = "fullbore-run-1-1700000000"
	dead := "-A INPUT -p tcp -m multiport --dports 5201 -m comment --comment fullbore-run-99-1600000000 -j ACCEPT\n"
	other := "-A INPUT -p tcp -m multiport --dports 7000 -m comment --comment fullbore-run-1-1600000000 -j ACCEPT\n"
	s := iptablesHost(dead + other)
	s.says["iptables -D INPUT -p tcp -m multiport --dports 5201 -m comment --comment fullbore-run-99-1600000000 -j ACCEPT"] = ""
	ours := "-A INPUT -p tcp -m multiport --dports 5201 -m comment --comment " + run + " -j ACCEPT\n-A INPUT -p udp -m multiport --dports 5201 -m comment --comment " + run + " -j ACCEPT\n"
	for _, line := range []string{addTCP + run + " -j ACCEPT", addUDP + run + " -j ACCEPT"} {
		s.says[line] = ""
	}
	for line := range strings.Lines(ours) {
		s.says["iptables -D"+strings.TrimSpace(strings.TrimPrefix(line, "-A"))] = ""
		s.says["iptables -D "+strings.TrimSpace(strings.TrimPrefix(line, "-A "))] = ""
	}
	sys := s.system(nil)
	sys.Run = changing(s, map[string]map[string]string{
		"iptables -D INPUT -p tcp -m multiport --dports 5201 -m comment --comment fullbore-run-99-1600000000 -j ACCEPT": {"iptables -S": dropInput + other},
		addUDP + run + " -j ACCEPT": {"iptables -S": dropInput + ours + other},
	})
	r, err := OpenForRun(t.Context(), sys, onePort(run))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"fullbore-run-99-1600000000"}, r.Removed); diff != "" {
		t.Error(diff)
	}
	if err := r.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"iptables -D INPUT -p tcp -m multiport --dports 5201 -m comment --comment fullbore-run-99-1600000000 -j ACCEPT",
		addTCP + run + " -j ACCEPT",
		addUDP + run + " -j ACCEPT",
		"iptables -D INPUT -p tcp -m multiport --dports 5201 -m comment --comment " + run + " -j ACCEPT",
		"iptables -D INPUT -p udp -m multiport --dports 5201 -m comment --comment " + run + " -j ACCEPT",
	}
	if diff := cmp.Diff(want, s.changes()); diff != "" {
		t.Error(diff)
	}
}

func TestOpenForRunNeedsNothing(t *testing.T) {
	s := iptablesHost("-A INPUT -p tcp -j ACCEPT\n-A INPUT -p udp -j ACCEPT\n")
	r, err := OpenForRun(t.Context(), s.system(nil), onePort("fullbore-run-1-1700000000"))
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(s.changes()) > 0 || len(r.Changes) != 1 || !strings.Contains(r.Changes[0].Why, "already") {
		t.Errorf("ran %q, changes %+v", s.changes(), r.Changes)
	}
}

func TestOpenForRunUnread(t *testing.T) {
	s := &script{fails: map[string]string{listRuleset: "Operation not permitted (you must be root)"}}
	sys := s.system(nil)
	sys.Privileged = false
	_, err := OpenForRun(t.Context(), sys, onePort("fullbore-run-1-1700000000"))
	var denied *PrivilegeError
	if !errors.As(err, &denied) || strings.Count(err.Error(), Privilege) != 1 {
		t.Errorf("%v", err)
	}
}

// TestApplyUndoes: what was done before a command failed is taken back.
func TestApplyUndoes(t *testing.T) {
	s := iptablesHost("")
	done := "-A INPUT -p tcp -m multiport --dports 5201 -m comment --comment fullbore -j ACCEPT\n"
	remove := "iptables -D " + strings.TrimSpace(strings.TrimPrefix(done, "-A "))
	s.says[addTCP+"fullbore -j ACCEPT"], s.says[remove] = "", ""
	s.fails = map[string]string{addUDP + "fullbore -j ACCEPT": "exit status 4: the kernel does not like it"}
	sys := s.system(nil)
	sys.Run = changing(s, map[string]map[string]string{addTCP + "fullbore -j ACCEPT": {"iptables -S": dropInput + done}})
	h, err := lookLinux(t.Context(), sys)
	if err != nil {
		t.Fatal(err)
	}
	err = Apply(t.Context(), sys, h.Opening(onePort(Kept)), Kept)
	if err == nil || !strings.Contains(err.Error(), "does not like it") {
		t.Fatalf("%v", err)
	}
	if diff := cmp.Diff([]string{addTCP + "fullbore -j ACCEPT", addUDP + "fullbore -j ACCEPT", remove}, s.changes()); diff != "" {
		t.Error(diff)
	}
	sys.Privileged = false
	var denied *PrivilegeError
	if err := Apply(t.Context(), sys, h.Opening(onePort(Kept)), ""); !errors.As(err, &denied) {
		t.Errorf("%v", err)
	}
}

// TestApplyInterrupted: an interrupted change is taken back although its context is done.
func TestApplyInterrupted(t *testing.T) {
	s := iptablesHost("")
	done := "-A INPUT -p tcp -m multiport --dports 5201 -m comment --comment fullbore -j ACCEPT\n"
	remove := "iptables -D " + strings.TrimSpace(strings.TrimPrefix(done, "-A "))
	s.says[addTCP+"fullbore -j ACCEPT"], s.says[remove] = "", ""
	sys := s.system(nil)
	h, err := lookLinux(t.Context(), sys)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	sys.Run = func(c context.Context, args ...string) ([]byte, error) {
		if strings.Join(args, " ") == addTCP+"fullbore -j ACCEPT" {
			cancel()
			s.says["iptables -S"] = dropInput + done
		}
		if c.Err() != nil {
			t.Errorf("%q runs under a context that is done", args)
		}
		return s.run(c, args...)
	}
	if err := Apply(ctx, sys, h.Opening(onePort(Kept)), Kept); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if diff := cmp.Diff([]string{addTCP + "fullbore -j ACCEPT", remove}, s.changes()); diff != "" {
		t.Error(diff)
	}
}

// TestApplyByHand: where a step is for people nothing is run at all.
func TestApplyByHand(t *testing.T) {
	s := iptablesHost("")
	h, err := lookLinux(t.Context(), s.system(nil))
	if err != nil {
		t.Fatal(err)
	}
	h.Layers = append(h.Layers, pf())
	s.ran = nil
	if err := Apply(t.Context(), s.system(nil), h.Opening(onePort(Kept)), Kept); !errors.Is(err, ErrByHand) {
		t.Errorf("%v", err)
	}
	if len(s.ran) > 0 {
		t.Errorf("ran %q", s.ran)
	}
}

func TestOpening(t *testing.T) {
	for _, c := range []struct {
		name, rules, why string
		commands         int
	}{
		{"shut", "", "does not let these ports in (5201/udp: the chain's policy is drop, and no rule lets it in)", 2},
		{"half open", "-A INPUT -p tcp -m tcp --dport 5201 -j ACCEPT\n", "does not let in 1 of 2 ranges of ports (5201/udp: the chain's policy is drop, and no rule lets it in)", 2},
		{"open", "-A INPUT -p tcp -j ACCEPT\n-A INPUT -p udp -j ACCEPT\n", "lets all of these ports in already", 0},
		{"an old rule of ours is replaced", "-A INPUT -p tcp -m multiport --dports 5000 -m comment --comment fullbore -j ACCEPT\n", "does not let these ports in (5201/udp: the chain's policy is drop, and no rule lets it in)", 3},
	} {
		h, err := lookLinux(t.Context(), iptablesHost(c.rules).system(nil))
		if err != nil {
			t.Fatal(err)
		}
		changes := h.Opening(onePort(Kept))
		if len(changes) != 1 || changes[0].Why != c.why || len(changes[0].Commands) != c.commands {
			t.Errorf("%s: %+v", c.name, changes)
		}
	}
}

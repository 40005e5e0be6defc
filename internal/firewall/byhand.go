package firewall

import (
	"fmt"
	"strings"
)

// manual is a filter whose lines are printed for a person to put in place: this package
// has never seen them work.
type manual struct {
	kind, title string
	answer      Answer
	add         func(Wanted) []Command
	remove      func(name string) []Command
}

// Kind implements Layer.
func (m *manual) Kind() string { return m.kind }

// Title implements Layer.
func (m *manual) Title() string { return m.title }

// Rules implements Layer: they are not looked for.
func (m *manual) Rules() []Rule { return nil }

// Judge implements Layer.
func (m *manual) Judge(Ports) Answer { return m.answer }

// Lasting implements Layer.
func (m *manual) Lasting() string { return "until they are removed" }

// Add implements Layer.
func (m *manual) Add(w Wanted) []Command { return m.add(w) }

// Remove implements Layer.
func (m *manual) Remove(name string) []Command { return m.remove(name) }

var unread = Answer{Depends, "this filter's rules are not read"}

// pf is the packet filter of FreeBSD (and macOS, where it has no rules of its own).
func pf() *manual {
	lines := func(w Wanted) []string {
		from := "any"
		if len(w.Allow) > 0 {
			var words []string
			for _, p := range w.Allow {
				words = append(words, p.Masked().String())
			}
			from = "{ " + strings.Join(words, ", ") + " }"
		}
		var out []string
		for _, t := range w.transports() {
			out = append(out, fmt.Sprintf(`pass in quick proto %s from %s to any port { %s } label "%s"`, t, from, strings.ReplaceAll(lists(w.ranges(t), ":", 1<<20)[0], ",", ", "), w.Name))
		}
		return out
	}
	return &manual{
		kind: "pf", title: "pf", answer: unread,
		add: func(w Wanted) []Command {
			var out []Command
			for _, l := range lines(w) {
				out = append(out, byHand("a line for /etc/pf.conf, before the first that blocks", l))
			}
			return append(out, byHand("", "pfctl -f /etc/pf.conf"))
		},
		remove: func(name string) []Command {
			return []Command{byHand("take the lines with this label out of /etc/pf.conf", fmt.Sprintf(`grep -n 'label "%s"' /etc/pf.conf`, name)), byHand("", "pfctl -f /etc/pf.conf")}
		},
	}
}

// ipfwNumber is the rule number under which ipfw's lines are added and removed.
const ipfwNumber = 5201

// ipfw is the other filter of FreeBSD.
func ipfw() *manual {
	return &manual{
		kind: "ipfw", title: "ipfw", answer: unread,
		add: func(w Wanted) []Command {
			sources := []string{"any"}
			if len(w.Allow) > 0 {
				sources = nil
				for _, p := range w.Allow {
					sources = append(sources, p.Masked().String())
				}
			}
			var out []Command
			for _, t := range w.transports() {
				for _, list := range lists(w.ranges(t), "-", multiport) {
					for _, from := range sources {
						out = append(out, byHand("", fmt.Sprintf("ipfw add %d allow %s from %s to me %s in // %s", ipfwNumber, t, from, list, w.Name)))
					}
				}
			}
			return out
		},
		remove: func(string) []Command { return []Command{byHand("", fmt.Sprintf("ipfw delete %d", ipfwNumber))} },
	}
}

const socketfilterfw = "/usr/libexec/ApplicationFirewall/socketfilterfw"

// applicationFirewall is macOS's, which goes by program.
func applicationFirewall(program string) *manual {
	return &manual{
		kind: "socketfilterfw", title: "macOS's application firewall", answer: unread,
		add: func(w Wanted) []Command {
			var out []Command
			if len(w.Allow) > 0 {
				out = append(out, byHand("", "# it knows no senders: --allow holds in fullbore itself only"))
			}
			return append(out,
				byHand("", "sudo "+socketfilterfw+" --add "+quote(w.Program)),
				byHand("", "sudo "+socketfilterfw+" --unblockapp "+quote(w.Program)))
		},
		remove: func(string) []Command {
			return []Command{byHand("", "sudo "+socketfilterfw+" --remove "+quote(program))}
		},
	}
}

// Kinds are the filters whose lines can be printed on any system.
var Kinds = []string{"nft", "iptables", "firewalld", "ufw", "netsh", "powershell", "pf", "ipfw", "socketfilterfw"}

// Blank are the layers of a kind as they are on a host that nobody looked at: for lines
// that are printed here and used elsewhere.
func Blank(kind, program string) ([]Layer, error) {
	switch kind {
	case "nft":
		return []Layer{&nftChain{family: "inet", table: "filter", chain: "input"}}, nil
	case "iptables":
		return []Layer{&iptablesInput{program: "iptables", family: 4}, &iptablesInput{program: "ip6tables", family: 6}}, nil
	case "firewalld":
		return []Layer{&firewalld{}}, nil
	case "ufw":
		return []Layer{&ufw{}}, nil
	case "netsh", "powershell":
		return []Layer{&windowsFirewall{program: program, shell: kind == "powershell"}}, nil
	case "pf":
		return []Layer{pf()}, nil
	case "ipfw":
		return []Layer{ipfw()}, nil
	case "socketfilterfw":
		return []Layer{applicationFirewall(program)}, nil
	}
	return nil, fmt.Errorf("%q: no such filter; there are %s", kind, strings.Join(Kinds, ", "))
}

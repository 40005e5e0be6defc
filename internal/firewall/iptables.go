package firewall

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// iptablesInput is the INPUT chain of iptables' filter table, of one family.
type iptablesInput struct {
	program string // iptables, ip6tables, or their -legacy forms
	family  int
	chains  chains
	lines   map[string][]string // -A lines of ours, by name
	found   bool
}

const iptablesChain = "INPUT"

// Kind implements Layer.
func (c *iptablesInput) Kind() string { return "iptables" }

// Title implements Layer.
func (c *iptablesInput) Title() string {
	t := c.program + ", chain " + iptablesChain
	if c.found {
		t += " (policy " + c.chains.policy[iptablesChain] + ")"
	}
	return t
}

// Rules implements Layer.
func (c *iptablesInput) Rules() []Rule { return c.chains.named(iptablesChain) }

// Judge implements Layer.
func (c *iptablesInput) Judge(p Ports) Answer { return c.chains.judgeAll(iptablesChain, p) }

// Lasting implements Layer.
func (c *iptablesInput) Lasting() string {
	return "until the machine restarts; to keep them save them, with netfilter-persistent save or into /etc/sysconfig/iptables"
}

// multiport is how many ports iptables' match takes; a range counts as two
// (iptables-extensions(8)).
const multiport = 15

// Add implements Layer.
func (c *iptablesInput) Add(w Wanted) []Command {
	var out []Command
	sources, some := w.sources(c.family)
	if !some {
		return nil
	}
	for _, t := range w.transports() {
		for _, list := range lists(w.ranges(t), ":", multiport) {
			args := []string{c.program, "-I", iptablesChain, "1"}
			if len(sources) > 0 {
				args = append(args, "-s", strings.Join(sources, ","))
			}
			args = append(args, "-p", string(t), "-m", "multiport", "--dports", list, "-m", "comment", "--comment", w.Name, "-j", "ACCEPT")
			out = append(out, posix("", args...))
		}
	}
	return out
}

// Remove implements Layer.
func (c *iptablesInput) Remove(name string) []Command {
	if !c.found {
		return []Command{byHand("", fmt.Sprintf(`%[1]s -S %[2]s | sed -n '/--comment "\{0,1\}%[3]s"\{0,1\} /s/^-A/%[1]s -D/p' | sh`, c.program, iptablesChain, name))}
	}
	var out []Command
	for _, line := range c.lines[name] {
		words := iptablesWords(line)
		words[0] = "-D"
		out = append(out, posix("", append([]string{c.program}, words...)...))
	}
	return out
}

// parseIptables reads what `iptables -S` prints. nil when the chain can drop nothing and
// holds nothing of ours.
func parseIptables(program string, family int, data []byte) *iptablesInput {
	c := &iptablesInput{program: program, family: family, chains: *newChains(), lines: map[string][]string{}, found: true}
	for line := range strings.Lines(string(data)) {
		w := iptablesWords(line)
		switch {
		case len(w) >= 3 && w[0] == "-P":
			c.chains.policy[w[1]] = toDrop
			if w[2] == "ACCEPT" {
				c.chains.policy[w[1]] = toAccept
			}
		case len(w) >= 2 && w[0] == "-A":
			r := iptablesRule(w[2:], &c.chains)
			r.text = strings.TrimSpace(line)
			c.chains.rules[w[1]] = append(c.chains.rules[w[1]], r)
			if r.name != "" && w[1] == iptablesChain {
				c.lines[r.name] = append(c.lines[r.name], line)
			}
		}
	}
	if !c.chains.filters(iptablesChain) && len(c.lines) == 0 {
		return nil
	}
	return c
}

// iptablesWords splits a line as the shell would: words with blanks are in double quotes.
func iptablesWords(line string) []string {
	var out []string
	var word strings.Builder
	quoted, begun := false, false
	for i := 0; i < len(line); i++ {
		switch ch := line[i]; {
		case ch == '\\' && quoted && i+1 < len(line):
			i++
			word.WriteByte(line[i])
		case ch == '"':
			quoted, begun = !quoted, true
		case !quoted && (ch == ' ' || ch == '\t' || ch == '\n' || ch == '\r'):
			if begun || word.Len() > 0 {
				out = append(out, word.String())
			}
			word.Reset()
			begun = false
		default:
			word.WriteByte(ch)
		}
	}
	if begun || word.Len() > 0 {
		out = append(out, word.String())
	}
	return out
}

// iptablesRule reads the words after the chain's name.
func iptablesRule(words []string, c *chains) rule {
	var r rule
	var conds []func(packet) tri
	negated := false
	for i := 0; i < len(words); i++ {
		word := words[i]
		value := ""
		if i+1 < len(words) {
			value = words[i+1]
		}
		if word == "!" {
			negated = true
			continue
		}
		takes := true // the word after belongs to it
		switch word {
		case "-m", "--reject-with", "--log-prefix", "--log-level", "--dport", "--dports", "--destination-port", "--destination-ports":
			if strings.HasPrefix(word, "--d") {
				conds = append(conds, iptablesPorts(value, negated, c))
			}
		case "--comment":
			if ours(value) {
				r.name = value
			}
		case "-p":
			conds = append(conds, either(negated, func(p packet) bool {
				return value == string(p.transport) || value == protocolNumber(p.transport) || value == "all"
			}))
		case "-i":
			if value == "lo" {
				conds = append(conds, either(negated, func(packet) bool { return false }))
			} else {
				conds = append(conds, perhaps)
			}
		case "--ctstate", "--state":
			conds = append(conds, either(negated, func(packet) bool { return slices.Contains(strings.Split(value, ","), "NEW") }))
		case "-d":
			conds = append(conds, iptablesTo(value, negated))
		case "--dst-type":
			conds = append(conds, either(negated, func(packet) bool { return value == "LOCAL" || value == "UNICAST" }))
		case "--src-type":
			conds = append(conds, either(negated, func(packet) bool { return value == "UNICAST" }))
		case "--rt-type", "--rt-segsleft": // an IPv6 header that no ordinary packet has
			conds = append(conds, either(negated, func(packet) bool { return false }))
		case "--tcp-flags": // a mask, and what must be left: a flow begins with a SYN
			comp := ""
			if i+2 < len(words) {
				comp = words[i+2]
			}
			i++
			conds = append(conds, either(negated, func(packet) bool { return comp == "SYN" }))
		case "-j", "-g":
			r.end, r.target = iptablesEnd(word, value)
		default:
			takes = value != "" && !strings.HasPrefix(value, "-") && value != "!"
			conds = append(conds, perhaps) // an address, a limit, the time of day
		}
		if takes {
			i++
		}
		negated = false
	}
	if r.end == toNone && r.target != "" { // a target that goes on: what stood there were its own words
		return rule{name: r.name, match: perhaps}
	}
	r.match = all(conds)
	return r
}

// iptablesEnd reads a target. One that only logs, marks or counts goes on.
func iptablesEnd(word, target string) (end, to string) {
	switch target {
	case "ACCEPT":
		return toAccept, ""
	case "DROP", "REJECT":
		return toDrop, ""
	case "RETURN":
		return toReturn, ""
	case "LOG", "NFLOG", "MARK", "CONNMARK", "CT", "SET", "TRACE", "CHECKSUM", "AUDIT", "TCPMSS", "DSCP", "TOS", "NOTRACK":
		return toNone, target
	case "QUEUE", "NFQUEUE", "TARPIT", "SYNPROXY":
		return toMaybe, ""
	}
	if word == "-g" {
		return toGoto, target
	}
	return toJump, target
}

func either(negated bool, holds func(packet) bool) func(packet) tri {
	return func(p packet) tri {
		if holds(p) != negated {
			return yes
		}
		return no
	}
}

// iptablesTo: groups and broadcasts are not this host's own address; another may be.
func iptablesTo(network string, negated bool) func(packet) tri {
	p, err := netip.ParsePrefix(network)
	if err == nil && (p.Addr().IsMulticast() || p.String() == "255.255.255.255/32") {
		return either(negated, func(packet) bool { return false })
	}
	return perhaps
}

func iptablesPorts(list string, negated bool, c *chains) func(packet) tri {
	ranges, ok := colonRanges(list)
	for _, r := range ranges {
		c.edges = append(c.edges, r[0], r[1])
	}
	return func(p packet) tri {
		if !ok {
			return maybe
		}
		return either(negated, func(p packet) bool { return within(ranges, p.port) })(p)
	}
}

// colonRanges reads 5201,5001:5016. ok is false where a port is a name.
func colonRanges(list string) (out [][2]int, ok bool) {
	for _, part := range strings.Split(list, ",") {
		lo, hi, ranged := strings.Cut(part, ":")
		if !ranged {
			hi = lo
		}
		a, err := strconv.Atoi(first(lo, "0"))
		b, err2 := strconv.Atoi(first(hi, "65535"))
		if err != nil || err2 != nil {
			return nil, false
		}
		out = append(out, [2]int{a, b})
	}
	return out, true
}

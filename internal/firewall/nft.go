package firewall

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/fullbore-net/fullbore/internal/plan"
)

// nftChain is a base chain of nftables that sees packets for this host. An accept in one
// base chain does not overrule a drop in another, so each that can drop is a layer.
type nftChain struct {
	family, table, chain string
	chains               chains
	handles              map[string][]int // of our rules, by name
	found                bool             // it was seen, not assumed
}

// Kind implements Layer.
func (c *nftChain) Kind() string { return "nft" }

// Title implements Layer.
func (c *nftChain) Title() string {
	t := fmt.Sprintf("nftables, chain %s of table %s %s", c.chain, c.family, c.table)
	if c.found {
		t += " (policy " + c.chains.policy[c.chain] + ")"
	}
	return t
}

// Rules implements Layer.
func (c *nftChain) Rules() []Rule { return c.chains.named(c.chain) }

// Judge implements Layer.
func (c *nftChain) Judge(p Ports) Answer {
	return c.chains.judgeAll(c.chain, p)
}

// Lasting implements Layer.
func (c *nftChain) Lasting() string {
	return "until the rules are loaded anew or the machine restarts; to keep them write them into the file that is loaded then, /etc/nftables.conf on most systems"
}

// Add implements Layer. The rule comes first in the chain, so that none before it drops.
func (c *nftChain) Add(w Wanted) []Command {
	var out []Command
	for _, t := range w.transports() {
		set := bracketed(lists(w.ranges(t), "-", 1<<20)[0])
		for _, source := range c.sources(w) {
			out = append(out, posix("", "nft", fmt.Sprintf("insert rule %s %s %s %s%s dport %s counter accept comment %q", c.family, c.table, c.chain, source, t, set, w.Name)))
		}
	}
	return out
}

// sources are the matches of addresses, with a space behind, one for each rule.
func (c *nftChain) sources(w Wanted) []string {
	if len(w.Allow) == 0 {
		return []string{""}
	}
	var out []string
	for _, f := range []struct {
		family int
		word   string
	}{{4, "ip"}, {6, "ip6"}} {
		words, some := w.sources(f.family)
		if some && (c.family == "inet" || c.family == f.word) {
			out = append(out, f.word+" saddr "+bracketed(strings.Join(words, ","))+" ")
		}
	}
	return out
}

// bracketed is a set of nftables, or the one element alone.
func bracketed(list string) string {
	if !strings.Contains(list, ",") {
		return list
	}
	return "{ " + strings.ReplaceAll(list, ",", ", ") + " }"
}

// Remove implements Layer. nftables removes by number, which must have been seen.
func (c *nftChain) Remove(name string) []Command {
	if !c.found {
		return []Command{byHand("", fmt.Sprintf(
			`nft -a list chain %[1]s %[2]s %[3]s | sed -n 's/.*comment "%[4]s" # handle /delete rule %[1]s %[2]s %[3]s handle /p' | nft -f -`,
			c.family, c.table, c.chain, name))}
	}
	var out []Command
	for _, h := range c.handles[name] {
		out = append(out, posix("", "nft", fmt.Sprintf("delete rule %s %s %s handle %d", c.family, c.table, c.chain, h)))
	}
	return out
}

// named lists our rules in a chain.
func (c *chains) named(chain string) []Rule {
	var out []Rule
	for _, r := range c.rules[chain] {
		if ours(r.name) {
			out = append(out, Rule{Name: r.name, Text: r.text})
		}
	}
	return out
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// judgeAll judges the ends of a range and gives the worse answer; rules that split a range
// are judged at their edges too, so every port of it is covered.
func (c *chains) judgeAll(base string, p Ports) Answer {
	ports := []int{p.First, p.Last}
	for _, e := range c.edges {
		for _, port := range []int{e - 1, e, e + 1} {
			if p.First < port && port < p.Last {
				ports = append(ports, port)
			}
		}
	}
	slices.Sort(ports)
	var worst Answer
	left := patience
	for i, port := range slices.Compact(ports) {
		a := c.judge(base, packet{p.Transport, port}, &left)
		if i == 0 || rank(a.Verdict) > rank(worst.Verdict) {
			worst = a
			if a.Verdict != Open && p.First != p.Last {
				worst.Reason = fmt.Sprintf("port %d: %s", port, a.Reason)
			}
		}
	}
	return worst
}

func rank(v Verdict) int {
	return slices.Index([]Verdict{Open, Depends, Closed}, v)
}

// nftDocument is what `nft -j list ruleset` prints (libnftables-json(5)).
type nftDocument struct {
	Objects []nftObject `json:"nftables"`
}

type nftObject struct {
	Chain *nftChainJSON `json:"chain"`
	Rule  *nftRuleJSON  `json:"rule"`
	Set   *nftSetJSON   `json:"set"`
}

type nftSetJSON struct {
	Family string            `json:"family"`
	Table  string            `json:"table"`
	Name   string            `json:"name"`
	Elem   []json.RawMessage `json:"elem"`
}

type nftChainJSON struct {
	Family string `json:"family"`
	Table  string `json:"table"`
	Name   string `json:"name"`
	Type   string `json:"type"`
	Hook   string `json:"hook"`
	Policy string `json:"policy"`
}

type nftRuleJSON struct {
	Family  string                       `json:"family"`
	Table   string                       `json:"table"`
	Chain   string                       `json:"chain"`
	Handle  int                          `json:"handle"`
	Comment string                       `json:"comment"`
	Expr    []map[string]json.RawMessage `json:"expr"`
}

// parseNFT returns the base chains at the input hook that can drop or that hold rules of
// ours, and notes about chains at other hooks.
func parseNFT(data []byte) (layers []*nftChain, notes []string, err error) {
	var doc nftDocument
	if err := json.Unmarshal(data, &doc); err != nil {
		return nil, nil, fmt.Errorf("nft -j list ruleset: %w", err)
	}
	type key struct{ family, table string }
	tables := map[key]*chains{}
	of := func(family, table string) *chains {
		k := key{family, table}
		if tables[k] == nil {
			tables[k] = newChains()
		}
		return tables[k]
	}
	handles := map[string]map[string][]int{}
	for _, o := range doc.Objects {
		if c := o.Chain; c != nil && c.Hook != "" {
			of(c.Family, c.Table).policy[c.Name] = first(c.Policy, toAccept)
		}
		if set := o.Set; set != nil {
			of(set.Family, set.Table).sets["@"+set.Name] = set.Elem
		}
	}
	for _, o := range doc.Objects {
		if r := o.Rule; r != nil {
			t := of(r.Family, r.Table)
			parsed := r.parse(t)
			t.rules[r.Chain] = append(t.rules[r.Chain], parsed...)
			if ours(r.Comment) {
				at := r.Family + " " + r.Table + " " + r.Chain
				if handles[at] == nil {
					handles[at] = map[string][]int{}
				}
				handles[at][r.Comment] = append(handles[at][r.Comment], r.Handle)
			}
		}
	}
	for _, o := range doc.Objects {
		c := o.Chain
		if c == nil || c.Type != "filter" || !slices.Contains([]string{"inet", "ip", "ip6"}, c.Family) {
			continue
		}
		at := c.Family + " " + c.Table + " " + c.Name
		t := of(c.Family, c.Table)
		switch c.Hook {
		case "input":
			if t.filters(c.Name) || len(handles[at]) > 0 {
				layers = append(layers, &nftChain{c.Family, c.Table, c.Name, *t, handles[at], true})
			}
		case "prerouting":
			if t.filters(c.Name) && c.Table != "firewalld" { // which drops forged senders there
				notes = append(notes, fmt.Sprintf("nftables, chain %s of table %s %s, drops some packets before they come to the input chain; it is left alone", c.Name, c.Family, c.Table))
			}
		}
	}
	return layers, notes, nil
}

func newChains() *chains {
	return &chains{rules: map[string][]rule{}, policy: map[string]string{}, sets: map[string][]json.RawMessage{}}
}

// parse reads the expressions of a rule: one rule, or one for each element of a verdict
// map. The ports that it names are added to c.edges.
func (r *nftRuleJSON) parse(c *chains) []rule {
	out := rule{text: nftText(r)}
	if ours(r.Comment) {
		out.name = r.Comment
	}
	var conds []func(packet) tri
	for _, e := range r.Expr {
		for word, raw := range e {
			switch word {
			case "match":
				conds = append(conds, nftMatch(raw, c))
			case "vmap":
				return out.mapped(raw, conds, c)
			case "counter", "log", "mangle", "notrack", "ct helper": // go on
			case "queue", "synproxy", "tproxy", "fwd":
				out.end = toMaybe
			default:
				if end, target, ok := nftEnd(word, raw); ok {
					out.end, out.target = end, target
				} else {
					conds = append(conds, perhaps) // limit, quota, xt, …
				}
			}
		}
	}
	if len(r.Expr) > 0 && out.end == toNone && r.extension() {
		out.end = toMaybe
	}
	out.match = all(conds)
	return []rule{out}
}

// extension: the verdict itself may be in a part that nft does not spell out (iptables').
func (r *nftRuleJSON) extension() bool {
	_, xt := r.Expr[len(r.Expr)-1]["xt"]
	return xt
}

// nftEnd reads a verdict.
func nftEnd(word string, raw json.RawMessage) (end, target string, ok bool) {
	switch word {
	case "accept", "drop", "return":
		return word, "", true
	case "reject":
		return toDrop, "", true
	case "continue":
		return toNone, "", true
	case "jump", "goto":
		var to struct {
			Target string `json:"target"`
		}
		_ = json.Unmarshal(raw, &to) // an empty name leads to an empty chain
		return word, to.Target, true
	}
	return "", "", false
}

// mapped makes a rule for each element of a verdict map.
func (r rule) mapped(raw json.RawMessage, conds []func(packet) tri, c *chains) []rule {
	var m struct {
		Key  json.RawMessage `json:"key"`
		Data struct {
			Set [][2]json.RawMessage `json:"set"`
		} `json:"data"`
	}
	r.end = toMaybe
	r.match = all(conds)
	if json.Unmarshal(raw, &m) != nil || m.Data.Set == nil {
		return []rule{r} // a named map
	}
	var out []rule
	for _, e := range m.Data.Set {
		match, err := json.Marshal(map[string]any{"op": "==", "left": m.Key, "right": e[0]})
		var verdict map[string]json.RawMessage
		if err != nil || json.Unmarshal(e[1], &verdict) != nil {
			return []rule{r}
		}
		one := r
		one.match = all(append(conds[:len(conds):len(conds)], nftMatch(match, c)))
		for word, raw := range verdict {
			if end, target, ok := nftEnd(word, raw); ok {
				one.end, one.target = end, target
			}
		}
		out = append(out, one)
	}
	return out
}

func perhaps(packet) tri { return maybe }

// all is the conjunction of conditions.
func all(conds []func(packet) tri) func(packet) tri {
	return func(p packet) tri {
		out := yes
		for _, c := range conds {
			out = min(out, c(p))
		}
		return out
	}
}

// nftMatch reads a comparison: of the port, the transport, the state of the connection
// and the loopback interface; anything else may hold or not.
func nftMatch(raw json.RawMessage, c *chains) func(packet) tri {
	var m struct {
		Op   string `json:"op"`
		Left struct {
			Payload struct {
				Protocol string `json:"protocol"`
				Field    string `json:"field"`
			} `json:"payload"`
			Meta struct {
				Key string `json:"key"`
			} `json:"meta"`
			CT struct {
				Key string `json:"key"`
			} `json:"ct"`
			And []json.RawMessage `json:"&"`
		} `json:"left"`
		Right json.RawMessage `json:"right"`
	}
	if json.Unmarshal(raw, &m) != nil {
		return perhaps
	}
	holds := func(in func(p packet) bool) func(packet) tri {
		return func(p packet) tri {
			if in(p) == (m.Op != "!=") {
				return yes
			}
			return no
		}
	}
	words, known := nftWords(m.Right)
	l := m.Left
	switch {
	case l.Payload.Field == "dport" && (l.Payload.Protocol == "tcp" || l.Payload.Protocol == "udp" || l.Payload.Protocol == "th"):
		ranges, ok := nftRanges(m.Right, c.sets)
		for _, r := range ranges {
			c.edges = append(c.edges, r[0], r[1])
		}
		return func(p packet) tri {
			switch {
			case l.Payload.Protocol != "th" && l.Payload.Protocol != string(p.transport):
				return no
			case !ok || !slices.Contains([]string{"==", "in", "!="}, m.Op):
				return maybe
			}
			return holds(func(p packet) bool { return within(ranges, p.port) })(p)
		}
	case len(l.And) == 2 && strings.Contains(string(l.And[0]), `"flags"`) && strings.Contains(string(l.And[0]), `"tcp"`):
		return func(p packet) tri {
			switch {
			case p.transport != plan.TCP:
				return no
			case !known:
				return maybe
			}
			// The first packet of a flow is a SYN, whatever mask there is.
			return holds(func(packet) bool { return slices.Equal(words, []string{"syn"}) })(p)
		}
	case l.Payload.Protocol == "tcp" || l.Payload.Protocol == "udp":
		return func(p packet) tri {
			if l.Payload.Protocol != string(p.transport) {
				return no
			}
			return maybe
		}
	case l.Payload.Protocol == "icmp" || l.Payload.Protocol == "icmpv6" || l.Payload.Protocol == "igmp":
		return func(packet) tri { return no }
	case known && (l.Meta.Key == "l4proto" || l.Payload.Field == "protocol" || l.Payload.Field == "nexthdr"):
		return holds(func(p packet) bool {
			return slices.Contains(words, string(p.transport)) || slices.Contains(words, protocolNumber(p.transport))
		})
	case known && l.CT.Key == "state":
		return holds(func(packet) bool { return slices.Contains(words, "new") })
	case known && l.CT.Key == "status":
		return holds(func(packet) bool { return slices.Contains(words, "confirmed") }) // neither known nor translated
	case known && (l.Meta.Key == "iifname" || l.Meta.Key == "iif") && len(words) == 1 && words[0] == "lo":
		return holds(func(packet) bool { return false }) // from another host
	}
	return perhaps
}

func protocolNumber(t plan.Transport) string {
	if t == plan.UDP {
		return "17"
	}
	return "6"
}

// nftWords reads a right side that is one value or a list of them. Others are not known.
func nftWords(raw json.RawMessage) (words []string, known bool) {
	var one any
	if json.Unmarshal(raw, &one) != nil {
		return nil, false
	}
	if m, ok := one.(map[string]any); ok {
		one = m["set"]
	}
	values, ok := one.([]any)
	if !ok {
		values = []any{one}
	}
	for _, v := range values {
		switch v := v.(type) {
		case string:
			if strings.HasPrefix(v, "@") {
				return nil, false
			}
			words = append(words, v)
		case float64:
			words = append(words, strconv.Itoa(int(v)))
		default:
			return nil, false
		}
	}
	return words, true
}

// nftRanges reads ports: 5201, {"range":[a,b]}, {"set":[…]}, "@name". ok is false where
// it is something else.
func nftRanges(raw json.RawMessage, sets map[string][]json.RawMessage) (out [][2]int, ok bool) {
	var n int
	if json.Unmarshal(raw, &n) == nil {
		return [][2]int{{n, n}}, true
	}
	var name string
	var v struct {
		Range []int             `json:"range"`
		Set   []json.RawMessage `json:"set"`
		Elem  *struct {
			Val json.RawMessage `json:"val"`
		} `json:"elem"`
	}
	if json.Unmarshal(raw, &name) == nil {
		if v.Set, ok = sets[name]; !ok {
			return nil, false
		}
		sets = nil // no set is an element of another
	} else if json.Unmarshal(raw, &v) != nil {
		return nil, false
	}
	switch {
	case len(v.Range) == 2:
		return [][2]int{{v.Range[0], v.Range[1]}}, true
	case v.Elem != nil:
		return nftRanges(v.Elem.Val, nil)
	case v.Set == nil && name == "":
		return nil, false
	}
	for _, e := range v.Set {
		r, ok := nftRanges(e, sets)
		if !ok {
			return nil, false
		}
		out = append(out, r...)
	}
	return out, true
}

func within(ranges [][2]int, port int) bool {
	for _, r := range ranges {
		if r[0] <= port && port <= r[1] {
			return true
		}
	}
	return false
}

// nftText says which rule it is, and in its own comment what for.
func nftText(r *nftRuleJSON) string {
	t := fmt.Sprintf("handle %d in chain %s", r.Handle, r.Chain)
	if r.Comment != "" && !ours(r.Comment) {
		t = r.Comment + ", " + t
	}
	return t
}

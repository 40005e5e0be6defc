package firewall

import (
	"slices"
	"strconv"
	"strings"
)

// ufw is the uncomplicated firewall, which writes iptables rules. What it lets in is read
// there; its own rules are added and removed through it.
type ufw struct {
	enforced                       // its chains
	added    map[string][][]string // words after "ufw" of our rules, by name
	rules    []Rule
}

// Kind implements Layer.
func (u *ufw) Kind() string { return "ufw" }

// Title implements Layer.
func (u *ufw) Title() string { return "ufw (enabled)" }

// Rules implements Layer.
func (u *ufw) Rules() []Rule { return u.rules }

// Lasting implements Layer.
func (u *ufw) Lasting() string { return "until they are removed, after a restart too" }

// Add implements Layer. The rule is put before all others, where none denies first.
func (u *ufw) Add(w Wanted) []Command {
	sources := []string{"any"}
	if len(w.Allow) > 0 {
		v4, _ := w.sources(4)
		v6, _ := w.sources(6)
		sources = slices.Concat(v4, v6)
	}
	var out []Command
	for _, t := range w.transports() {
		for _, list := range lists(w.ranges(t), ":", multiport) {
			for _, from := range sources {
				out = append(out, posix("", "ufw", "prepend", "allow", "proto", string(t), "from", from, "to", "any", "port", list, "comment", w.Name))
			}
		}
	}
	return out
}

// Remove implements Layer.
func (u *ufw) Remove(name string) []Command {
	if u.added == nil {
		return []Command{byHand("", `ufw show added | sed -n "s/ comment '`+name+`'$//; t found; b; :found s/^ufw /ufw delete /p" | sh`)}
	}
	var out []Command
	for _, words := range u.added[name] {
		out = append(out, posix("", append([]string{"ufw", "delete"}, words...)...))
	}
	return out
}

// parseUFW reads what `ufw show added` prints: the command lines that would make the rules.
func parseUFW(data []byte) *ufw {
	u := &ufw{added: map[string][][]string{}}
	for line := range strings.Lines(string(data)) {
		rest, isRule := strings.CutPrefix(strings.TrimSpace(line), "ufw ")
		rest, comment, has := strings.Cut(rest, " comment '")
		name := strings.TrimSuffix(comment, "'")
		if !isRule || !has || !ours(name) {
			continue
		}
		u.added[name] = append(u.added[name], strings.Fields(rest))
		u.rules = append(u.rules, Rule{Name: name, Text: rest})
	}
	return u
}

// ufwEnabled reads /etc/ufw/ufw.conf, which everybody may.
func ufwEnabled(conf []byte) bool {
	for line := range strings.Lines(string(conf)) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		if strings.TrimSpace(key) == "ENABLED" {
			value, err := strconv.Unquote(strings.TrimSpace(value))
			if err != nil {
				_, value, _ = strings.Cut(strings.TrimSpace(line), "=")
			}
			return strings.EqualFold(strings.TrimSpace(value), "yes")
		}
	}
	return false
}

// enforced are the kernel's chains behind a manager of rules.
type enforced struct {
	by []Layer
	// why there are none, for people
	unread string
}

// Judge implements Layer: the worst of the chains' answers.
func (e enforced) Judge(p Ports) Answer {
	if e.unread != "" {
		return Answer{Depends, e.unread}
	}
	worst := Answer{Open, "nothing drops it"}
	for i, l := range e.by {
		if a := l.Judge(p); i == 0 || rank(a.Verdict) > rank(worst.Verdict) {
			worst = a
		}
	}
	return worst
}

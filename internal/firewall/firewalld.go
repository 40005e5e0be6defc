package firewall

import (
	"fmt"
	"regexp"
	"strings"
)

// firewalld knows no comments. A kept rule is known by its priority, one of a run by the
// words that it would log. The priorities are before those of ordinary rules (0), which
// may refuse.
const (
	keptPriority = "-5201"
	runPriority  = "-5202"
)

// firewalld is one zone of firewalld. What it lets in is read in the kernel's chains.
type firewalld struct {
	enforced
	zone      string
	isDefault bool
	runtime   map[string][]string // rich rules of ours, by name
	permanent map[string][]string
	found     bool
}

// Kind implements Layer.
func (f *firewalld) Kind() string { return "firewalld" }

// Title implements Layer.
func (f *firewalld) Title() string {
	t := "firewalld, zone " + f.zone
	if f.isDefault {
		t += " (the default)"
	}
	return t
}

// Rules implements Layer.
func (f *firewalld) Rules() []Rule {
	var out []Rule
	for _, name := range sortedKeys(f.runtime) {
		for _, r := range f.runtime[name] {
			out = append(out, Rule{Name: name, Text: r})
		}
	}
	for _, name := range sortedKeys(f.permanent) {
		for _, r := range f.permanent[name] {
			out = append(out, Rule{Name: name, Text: r + " (permanent)"})
		}
	}
	return out
}

// Lasting implements Layer.
func (f *firewalld) Lasting() string { return "until they are removed, after a restart too" }

// Add implements Layer. A kept rule goes into the running and into the permanent
// settings, which spares a reload that would lose what others have only running.
func (f *firewalld) Add(w Wanted) []Command {
	var out []Command
	for _, r := range f.rich(w) {
		out = append(out, f.command("--add-rich-rule="+r))
		if w.Name == Kept {
			out = append(out, f.command("--add-rich-rule="+r, "--permanent"))
		}
	}
	return out
}

// rich are the rules in firewalld's rich language (firewalld.richlanguage(5)).
func (f *firewalld) rich(w Wanted) []string {
	sources := []string{""}
	if len(w.Allow) > 0 {
		sources = nil
		for _, family := range []int{4, 6} {
			words, _ := w.sources(family)
			for _, s := range words {
				sources = append(sources, fmt.Sprintf(`family="ipv%d" source address="%s" `, family, s))
			}
		}
	}
	priority, log := keptPriority, ""
	if w.Name != Kept {
		// The rate is the least that firewalld takes.
		priority, log = runPriority, fmt.Sprintf(`log prefix="%s" level="debug" limit value="2/d" `, w.Name)
	}
	var out []string
	for _, t := range w.transports() {
		for _, p := range w.ranges(t) {
			for _, s := range sources {
				out = append(out, fmt.Sprintf(`rule priority="%s" %sport port="%s" protocol="%s" %saccept`, priority, s, p.span("-"), t, log))
			}
		}
	}
	return out
}

// Remove implements Layer.
func (f *firewalld) Remove(name string) []Command {
	if !f.found {
		var out []Command
		for _, mode := range []string{"", " --permanent"} {
			pattern := `priority="` + keptPriority + `"`
			if name != Kept {
				pattern = `prefix="` + name + `"`
			}
			out = append(out, byHand("", fmt.Sprintf(`firewall-cmd%[1]s --list-rich-rules | grep '%[2]s' | while read -r rule; do firewall-cmd%[1]s "--remove-rich-rule=$rule"; done`, mode, pattern)))
		}
		return out
	}
	var out []Command
	for _, r := range f.runtime[name] {
		out = append(out, f.command("--remove-rich-rule="+r))
	}
	for _, r := range f.permanent[name] {
		out = append(out, f.command("--remove-rich-rule="+r, "--permanent"))
	}
	return out
}

func (f *firewalld) command(what string, more ...string) Command {
	args := append([]string{"firewall-cmd", "-q"}, more...)
	if f.zone != "" {
		args = append(args, "--zone="+f.zone)
	}
	return posix("", append(args, what)...)
}

var (
	richPriority = regexp.MustCompile(`\bpriority="(-?\d+)"`)
	richPrefix   = regexp.MustCompile(`\bprefix="([^"]*)"`)
)

// parseRich finds our rules among those of --list-rich-rules.
func parseRich(data []byte) map[string][]string {
	out := map[string][]string{}
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSpace(line)
		m := richPriority.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		name := ""
		switch m[1] {
		case keptPriority:
			name = Kept
		case runPriority:
			if p := richPrefix.FindStringSubmatch(line); p != nil {
				name = p[1]
			}
		}
		if ours(name) {
			out[name] = append(out[name], line)
		}
	}
	return out
}

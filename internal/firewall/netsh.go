package firewall

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/fullbore-net/fullbore/internal/plan"
)

// windowsFirewall is Windows Defender Firewall. Its rules here are by program: whatever
// ports this program listens on. The state is read from the registry, which needs no
// administrator and is not in the user's language, as netsh's listing is.
type windowsFirewall struct {
	program  string // that rules are for
	profiles []windowsProfile
	found    []windowsRule
	seen     bool
	shell    bool // PowerShell's words instead of netsh's
}

// windowsProfile is one of the three kinds of network.
type windowsProfile struct {
	name       string // Domain, Private, Public: as rules name them
	on         bool
	allow      bool // what no rule is for gets in
	policyOnly bool // the domain's policy lets no rules of this machine count
}

// windowsRule is a rule as the registry has it ([MS-FASP] 2.2.37, [MS-GPFAS] 2.2.2).
type windowsRule struct {
	name, app  string
	policy     bool // of the domain's policy, not of this machine
	allow, on  bool
	protocol   int      // -1 = any
	ports      [][2]int // nil = any
	named      bool     // ports by a name (RPC, …), not by number
	profiles   []string // nil = all
	restricted bool     // to addresses, interfaces, services, users
	text       string
}

// Kind implements Layer.
func (f *windowsFirewall) Kind() string {
	if f.shell {
		return "powershell"
	}
	return "netsh"
}

// Title implements Layer.
func (f *windowsFirewall) Title() string {
	if !f.seen {
		return "Windows Defender Firewall"
	}
	var words []string
	for _, p := range f.profiles {
		state := "off"
		if p.on {
			state = "on"
		}
		words = append(words, strings.ToLower(p.name)+" "+state)
	}
	return "Windows Defender Firewall (" + strings.Join(words, ", ") + ")"
}

// Rules implements Layer.
func (f *windowsFirewall) Rules() []Rule {
	var out []Rule
	for _, r := range f.found {
		if ours(r.name) {
			out = append(out, Rule{Name: r.name, Text: r.text})
		}
	}
	return out
}

// Lasting implements Layer.
func (f *windowsFirewall) Lasting() string { return "until they are removed, after a restart too" }

// Add implements Layer.
func (f *windowsFirewall) Add(w Wanted) []Command {
	var sources []string
	for _, p := range w.Allow {
		sources = append(sources, p.Masked().String())
	}
	if f.shell {
		line := fmt.Sprintf("New-NetFirewallRule -DisplayName %s -Direction Inbound -Action Allow -Program %s -Protocol Any -Profile Any", psQuote(w.Name), psQuote(w.Program))
		if len(sources) > 0 {
			line += " -RemoteAddress " + strings.Join(sources, ",")
		}
		return []Command{byHand("", line)}
	}
	args := []string{"netsh", "advfirewall", "firewall", "add", "rule", "name=" + w.Name, "dir=in", "action=allow", "program=" + w.Program, "protocol=any", "profile=any", "enable=yes"}
	if len(sources) > 0 {
		args = append(args, "remoteip="+strings.Join(sources, ","))
	}
	return []Command{netsh(args)}
}

// Remove implements Layer.
func (f *windowsFirewall) Remove(name string) []Command {
	if f.shell {
		return []Command{byHand("", "Remove-NetFirewallRule -DisplayName "+psQuote(name))}
	}
	if f.seen && !slices.ContainsFunc(f.found, func(r windowsRule) bool { return r.name == name }) {
		return nil
	}
	return []Command{netsh([]string{"netsh", "advfirewall", "firewall", "delete", "rule", "name=" + name, "dir=in"})}
}

// netsh is a command whose line is right for cmd.exe and for PowerShell.
func netsh(args []string) Command {
	words := make([]string, len(args))
	for i, a := range args {
		words[i] = a
		if key, value, ok := strings.Cut(a, "="); ok && strings.ContainsAny(value, " &()^;,") {
			words[i] = key + `="` + value + `"`
		}
	}
	return Command{Args: args, Line: strings.Join(words, " ")}
}

func psQuote(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// Judge implements Layer. A rule that blocks wins over all that allow.
func (f *windowsFirewall) Judge(p Ports) Answer {
	if !f.seen {
		return Answer{Depends, "it was not looked at"}
	}
	worst := Answer{Open, "the firewall is off in all profiles"}
	for i, profile := range f.profiles {
		a := f.judge(p, profile)
		if i == 0 || rank(a.Verdict) > rank(worst.Verdict) {
			worst = a
		}
	}
	for _, profile := range f.profiles {
		if a := f.judge(p, profile); a.Verdict != worst.Verdict {
			return Answer{Depends, fmt.Sprintf("in the %s profile it is %s: %s", strings.ToLower(profile.name), a.Verdict, a.Reason)}
		}
	}
	return worst
}

func (f *windowsFirewall) judge(p Ports, profile windowsProfile) Answer {
	if !profile.on {
		return Answer{Open, "the firewall is off"}
	}
	answer := Answer{Closed, "no rule lets this program in"}
	if profile.allow {
		answer = Answer{Open, "the profile lets in what no rule is for"}
	}
	perhaps := ""
	for _, r := range f.found {
		covers, whole := r.covers(p, f.program, profile.name)
		if !r.on || !covers || profile.policyOnly && !r.policy {
			continue
		}
		switch {
		case !r.allow && whole:
			return Answer{Closed, "rule “" + r.name + "” blocks it, which wins over rules that allow"}
		case whole:
			answer = Answer{Open, "rule “" + r.name + "”"}
		default:
			perhaps = "rule “" + r.name + "” is for some senders or some of the ports"
		}
	}
	if perhaps != "" && answer.Verdict == Closed {
		return Answer{Depends, perhaps}
	}
	return answer
}

// covers reports whether the rule takes any of these packets, and whether it takes all.
func (r *windowsRule) covers(p Ports, program, profile string) (some, whole bool) {
	number := 6
	if p.Transport == plan.UDP {
		number = 17
	}
	if r.protocol >= 0 && r.protocol != number || r.app != "" && !strings.EqualFold(r.app, program) || r.named {
		return false, false
	}
	if len(r.profiles) > 0 && !slices.Contains(r.profiles, profile) {
		return false, false
	}
	if r.ports == nil {
		return true, !r.restricted
	}
	for _, x := range r.ports {
		if x[0] <= p.First && p.Last <= x[1] {
			return true, !r.restricted
		}
		some = some || x[0] <= p.Last && p.First <= x[1]
	}
	return some, false
}

// blocking are the names of rules that block this program: Windows makes such a rule when
// somebody answers its question, at the first listening, with “Cancel”.
func (f *windowsFirewall) blocking() []string {
	var out []string
	for _, r := range f.found {
		if r.on && !r.allow && r.app != "" && strings.EqualFold(r.app, f.program) && !slices.Contains(out, r.name) {
			out = append(out, r.name)
		}
	}
	return out
}

// parseWindowsRule reads a value such as
// v2.30|Action=Allow|Active=TRUE|Dir=In|Protocol=6|LPort=5201|App=C:\x.exe|Name=x|
// ok is false for outgoing rules and for what is not a rule.
func parseWindowsRule(value string) (r windowsRule, ok bool) {
	fields := strings.Split(value, "|")
	if len(fields) < 2 || !strings.HasPrefix(fields[0], "v") {
		return r, false
	}
	r = windowsRule{protocol: -1, text: strings.TrimSuffix(strings.Join(fields[1:], " "), " ")}
	in := false
	for _, f := range fields[1:] {
		key, v, _ := strings.Cut(f, "=")
		switch key {
		case "Action":
			r.allow = strings.EqualFold(v, "Allow") || strings.EqualFold(v, "ByPass")
		case "Active":
			r.on = strings.EqualFold(v, "TRUE")
		case "Dir":
			in = strings.EqualFold(v, "In")
		case "Protocol":
			if n, err := strconv.Atoi(v); err == nil && n < 256 {
				r.protocol = n
			}
		case "LPort":
			n, err := strconv.Atoi(v)
			r.named = r.named || err != nil
			r.ports = append(r.ports, [2]int{n, n})
		case "LPort2_10": // a range
			lo, hi, _ := strings.Cut(v, "-")
			a, err := strconv.Atoi(lo)
			b, err2 := strconv.Atoi(hi)
			r.named = r.named || err != nil || err2 != nil
			r.ports = append(r.ports, [2]int{a, b})
		case "App":
			r.app = v
		case "Name":
			r.name = v
		case "Profile":
			r.profiles = append(r.profiles, v)
		case "RA4", "RA6", "LA4", "LA6", "IF", "IFType", "Svc", "LUAuth", "RUAuth", "RMAuth", "RPort", "RPort2_10", "LUOwn", "AppPkgId", "Security", "Security2", "Security2_9", "Platform", "Platform2", "TTK", "TTK2_22", "TTK2_27", "TTK2_28":
			r.restricted = true
		}
	}
	return r, in
}

package firewall

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"slices"
	"strings"
)

// lookLinux finds nftables, iptables (both kinds), firewalld and ufw. Rules can only be
// read with privileges; whether firewalld or ufw is active shows without.
func lookLinux(ctx context.Context, s System) (*Host, error) {
	h := &Host{}
	l := &linux{ctx: ctx, s: s, h: h}
	l.nftables()
	running, err := l.firewalldRuns()
	if err != nil {
		return nil, err
	}
	conf, _ := fs.ReadFile(s.Files, "etc/ufw/ufw.conf") // no file, no ufw
	l.iptables(running || ufwEnabled(conf))
	switch {
	case running:
		l.firewalld()
	case ufwEnabled(conf):
		l.ufw()
	default:
		for _, c := range l.tables {
			h.Layers = append(h.Layers, c)
		}
	}
	for _, c := range l.native {
		h.Layers = append(h.Layers, c)
	}
	return h, ctx.Err()
}

// linux gathers what the tools say.
type linux struct {
	ctx    context.Context
	s      System
	h      *Host
	native []*nftChain      // that no other tool manages
	own    []*nftChain      // of firewalld
	compat map[string]bool  // iptables' tables in nftables: ip, ip6
	tables []*iptablesInput // iptables' chains
	noNFT  bool
	unread string // why the kernel's rules are not known
}

func missing(err error) bool { return errors.Is(err, exec.ErrNotFound) }

// deny notes a tool that would not tell.
func (l *linux) deny(what string, err error) {
	text := fmt.Sprintf("%s: %v", what, err)
	if !l.s.Privileged {
		text = what + ": its rules cannot be read without privileges"
	}
	l.unread = first(l.unread, text)
	if !slices.Contains(l.h.Unread, text) {
		l.h.Unread = append(l.h.Unread, text)
	}
}

func (l *linux) nftables() {
	l.compat = map[string]bool{}
	data, err := l.s.Run(l.ctx, "nft", "-j", "list", "ruleset")
	if missing(err) {
		l.noNFT = true
		return
	}
	var all []*nftChain
	if err == nil {
		all, l.h.Notes, err = parseNFT(data)
	}
	if err != nil {
		l.deny("nftables", err)
		return
	}
	for _, c := range all {
		switch {
		case (c.family == "ip" || c.family == "ip6") && c.table == "filter" && c.chain == iptablesChain:
			l.compat[c.family] = true
		case c.table == "firewalld":
			l.own = append(l.own, c)
		default:
			l.native = append(l.native, c)
		}
	}
}

// iptables asks for a family only where it has rules: asking alone would load its modules.
func (l *linux) iptables(managed bool) {
	for _, f := range []struct {
		family                int
		program, table, names string
	}{{4, "iptables", "ip", "proc/net/ip_tables_names"}, {6, "ip6tables", "ip6", "proc/net/ip6_tables_names"}} {
		names, _ := fs.ReadFile(l.s.Files, f.names) // not there, or not for us: no old tables are known
		old := slices.Contains(strings.Fields(string(names)), "filter")
		var programs []string
		if l.compat[f.table] || l.noNFT && !old {
			programs = append(programs, f.program)
		}
		if old {
			programs = append(programs, f.program+"-legacy")
		}
		for _, program := range programs {
			data, err := l.s.Run(l.ctx, program, "-S")
			if missing(err) && program != f.program {
				program = f.program // where there is one kind only, it has the plain name
				data, err = l.s.Run(l.ctx, program, "-S")
			}
			switch {
			case missing(err):
				if l.noNFT && f.family == 4 {
					l.h.Notes = append(l.h.Notes, "neither nft nor iptables is installed: if the kernel filters packets, its rules cannot be seen from here")
				}
			case err != nil:
				l.deny(program, err)
			default:
				if c := parseIptables(program, f.family, data); c != nil {
					l.tables = append(l.tables, c)
				}
			}
		}
	}
}

// firewalldRuns asks without needing privileges. An error is only that of the context.
func (l *linux) firewalldRuns() (bool, error) {
	data, err := l.s.Run(l.ctx, "firewall-cmd", "--state")
	if l.ctx.Err() != nil {
		return false, l.ctx.Err()
	}
	return err == nil && strings.TrimSpace(string(data)) == "running", nil
}

func (l *linux) firewalld() {
	f := &firewalld{zone: l.s.Zone, found: true}
	var err error
	ask := func(args ...string) []byte {
		var data []byte
		if err == nil {
			data, err = l.s.Run(l.ctx, append([]string{"firewall-cmd"}, args...)...)
		}
		return data
	}
	def := strings.TrimSpace(string(ask("--get-default-zone")))
	if f.zone == "" {
		f.zone = def
	}
	f.isDefault = f.zone == def
	f.runtime = parseRich(ask("--zone="+f.zone, "--list-rich-rules"))
	f.permanent = parseRich(ask("--permanent", "--zone="+f.zone, "--list-rich-rules"))
	var others []string
	for line := range strings.Lines(string(ask("--get-active-zones"))) {
		if name, _, _ := strings.Cut(strings.TrimSpace(line), " "); name != "" && !strings.HasPrefix(line, " ") && !strings.HasPrefix(line, "\t") && name != f.zone {
			others = append(others, name)
		}
	}
	if err != nil {
		l.deny("firewalld", err)
		f.found = false
	}
	if len(others) > 0 {
		l.h.Notes = append(l.h.Notes, fmt.Sprintf("firewalld has other active zones, whose interfaces have rules of their own: %s (--zone)", strings.Join(others, ", ")))
	}
	for _, c := range l.own {
		f.by = append(f.by, c)
	}
	if len(l.own) == 0 {
		for _, c := range l.tables {
			f.by = append(f.by, c)
		}
	}
	f.unread = l.unread
	if len(f.by) == 0 {
		f.unread = first(f.unread, "its chains in the kernel were not found")
	}
	l.h.Layers = append(l.h.Layers, f)
}

func (l *linux) ufw() {
	data, err := l.s.Run(l.ctx, "ufw", "show", "added")
	u := &ufw{}
	if err == nil {
		u = parseUFW(data)
	} else {
		l.deny("ufw", err)
	}
	for _, c := range l.tables {
		u.by = append(u.by, c)
	}
	u.unread = l.unread
	if len(u.by) == 0 {
		u.unread = first(u.unread, "its chains in the kernel were not found")
	}
	l.h.Layers = append(l.h.Layers, u)
}

// lookDarwin: macOS's application firewall says without privileges whether it is on; pf
// has no rules there unless somebody wrote some.
func lookDarwin(ctx context.Context, s System) (*Host, error) {
	h := &Host{Notes: []string{"fullbore prints the lines for macOS and does not run them; pf, where somebody set it up, is not looked at"}}
	data, err := s.Run(ctx, socketfilterfw, "--getglobalstate")
	text := strings.ToLower(string(data))
	switch {
	case err != nil:
		h.Unread = append(h.Unread, fmt.Sprintf("macOS's application firewall: %v", err))
	case strings.Contains(text, "enabled") || strings.Contains(text, "state = 1") || strings.Contains(text, "state = 2"):
		h.Layers = append(h.Layers, applicationFirewall(s.Program))
	}
	return h, ctx.Err()
}

// lookFreeBSD: whether pf or ipfw is loaded shows without privileges.
func lookFreeBSD(ctx context.Context, s System) (*Host, error) {
	h := &Host{Notes: []string{"fullbore prints the lines for pf and ipfw and does not run them"}}
	for _, f := range []*manual{pf(), ipfw()} {
		_, err := s.Run(ctx, "kldstat", "-q", "-m", f.kind)
		if err == nil {
			h.Layers = append(h.Layers, f)
		}
	}
	return h, ctx.Err()
}

package firewall

import (
	"context"
	"fmt"

	"golang.org/x/sys/windows/registry"
)

// Privilege says who may change filters here.
const Privilege = "it needs a console that was started as administrator"

// Where the rules and the profiles are ([MS-GPFAS] 2.2; the local store has the same
// form). The domain's policy comes before what this machine says.
const (
	localFirewall  = `SYSTEM\CurrentControlSet\Services\SharedAccess\Parameters\FirewallPolicy`
	policyFirewall = `SOFTWARE\Policies\Microsoft\WindowsFirewall`
)

func look(ctx context.Context, s System) (*Host, error) {
	f := &windowsFirewall{program: s.Program}
	for _, p := range []struct{ name, key string }{{"Domain", "Domain"}, {"Private", "Standard"}, {"Public", "Public"}} {
		profile := windowsProfile{name: p.name}
		local, policy := localFirewall+`\`+p.key+"Profile", policyFirewall+`\`+p.name+"Profile"
		if p.key == "Standard" {
			policy = policyFirewall + `\StandardProfile`
		}
		on, ok := setting(policy, "EnableFirewall")
		if !ok {
			on, ok = setting(local, "EnableFirewall")
		}
		f.seen = f.seen || ok
		profile.on = on != 0
		action, ok := setting(policy, "DefaultInboundAction")
		if !ok {
			action, ok = setting(local, "DefaultInboundAction")
		}
		profile.allow = ok && action == 0
		merge, ok := setting(policy, "AllowLocalPolicyMerge")
		profile.policyOnly = ok && merge == 0
		f.profiles = append(f.profiles, profile)
	}
	h := &Host{}
	if !f.seen {
		h.Notes = append(h.Notes, "Windows Defender Firewall has left no settings here; another product may filter packets instead")
		return h, ctx.Err()
	}
	for _, from := range []struct {
		key    string
		policy bool
	}{{localFirewall + `\FirewallRules`, false}, {policyFirewall + `\FirewallRules`, true}} {
		if err := f.read(from.key, from.policy); err != nil {
			h.Unread = append(h.Unread, fmt.Sprintf("Windows Defender Firewall: rules: %v", err))
		}
	}
	h.Layers = append(h.Layers, f)
	for _, name := range f.blocking() {
		h.Notes = append(h.Notes, fmt.Sprintf("rule “%s” blocks this program whatever others allow (Windows makes it when its question is answered with Cancel); take it away with: netsh advfirewall firewall delete rule name=\"%s\" program=\"%s\" dir=in", name, name, s.Program))
	}
	h.Notes = append(h.Notes, "filters of other products are not seen")
	return h, ctx.Err()
}

func setting(path, name string) (uint64, bool) {
	k, err := registry.OpenKey(registry.LOCAL_MACHINE, path, registry.QUERY_VALUE)
	if err != nil {
		return 0, false
	}
	defer k.Close() //nolint:errcheck // read only
	n, _, err := k.GetIntegerValue(name)
	return n, err == nil
}

// read adds the rules of a key; one that is not there holds none.
func (f *windowsFirewall) read(path string, policy bool) error {
	k, err := registry.OpenKey(registry.LOCAL_MACHINE, path, registry.QUERY_VALUE)
	if err == registry.ErrNotExist {
		return nil
	}
	if err != nil {
		return err
	}
	defer k.Close() //nolint:errcheck // read only
	names, err := k.ReadValueNames(-1)
	if err != nil {
		return err
	}
	for _, n := range names {
		value, _, err := k.GetStringValue(n)
		if err != nil {
			continue // not a rule
		}
		r, ok := parseWindowsRule(value)
		if !ok {
			continue
		}
		if full, err := registry.ExpandString(r.app); err == nil {
			r.app = full
		}
		r.policy = policy
		f.found = append(f.found, r)
	}
	return nil
}

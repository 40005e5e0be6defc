package firewall

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fullbore-net/fullbore/internal/plan"
)

const tool = `C:\tools\fullbore.exe`

// profiles: the firewall is on in all three, or as given.
func defender(t *testing.T, profiles []windowsProfile, rules ...string) *windowsFirewall {
	t.Helper()
	if profiles == nil {
		profiles = []windowsProfile{{name: "Domain", on: true}, {name: "Private", on: true}, {name: "Public", on: true}}
	}
	f := &windowsFirewall{program: tool, profiles: profiles, seen: true}
	for _, r := range rules {
		parsed, ok := parseWindowsRule(r)
		if !ok {
			continue
		}
		f.found = append(f.found, parsed)
	}
	return f
}

func TestWindowsFirewall(t *testing.T) {
	const ours = `v2.32|Action=Allow|Active=TRUE|Dir=In|App=c:\TOOLS\fullbore.exe|Name=fullbore|`
	for _, c := range []struct {
		name     string
		profiles []windowsProfile
		rules    []string
		verdict  Verdict
		reason   string
	}{
		{name: "no rule", verdict: Closed, reason: "no rule lets this program in"},
		{name: "our rule", rules: []string{ours}, verdict: Open, reason: "rule “fullbore”"},
		{name: "switched off", rules: []string{strings.Replace(ours, "TRUE", "FALSE", 1)}, verdict: Closed},
		{name: "another program's", rules: []string{strings.Replace(ours, "fullbore.exe", "other.exe", 1)}, verdict: Closed},
		{name: "outgoing", rules: []string{strings.Replace(ours, "Dir=In", "Dir=Out", 1)}, verdict: Closed},
		{name: "blocked after Cancel", rules: []string{ours, `v2.32|Action=Block|Active=TRUE|Dir=In|Protocol=6|Profile=Public|App=C:\tools\fullbore.exe|Name=fullbore.exe|`}, verdict: Depends, reason: "in the domain profile it is open"},
		{name: "blocked everywhere", rules: []string{ours, `v2.32|Action=Block|Active=TRUE|Dir=In|App=C:\tools\fullbore.exe|Name=fullbore.exe|`}, verdict: Closed, reason: "blocks it"},
		{name: "by port", rules: []string{`v2.10|Action=Allow|Active=TRUE|Dir=In|Protocol=6|LPort=22|LPort2_10=5201-5210|Name=lab|`}, verdict: Open, reason: "lab"},
		{name: "by port, other transport", rules: []string{`v2.10|Action=Allow|Active=TRUE|Dir=In|Protocol=17|LPort=5201|Name=lab|`}, verdict: Closed},
		{name: "by port, for some senders", rules: []string{`v2.10|Action=Allow|Active=TRUE|Dir=In|Protocol=6|LPort=5201|RA4=LocalSubnet|Name=lab|`}, verdict: Depends, reason: "some senders"},
		{name: "by a named port", rules: []string{`v2.10|Action=Allow|Active=TRUE|Dir=In|Protocol=6|LPort=RPC|Name=rpc|`}, verdict: Closed},
		{name: "one profile only", rules: []string{strings.Replace(ours, "|App", "|Profile=Private|App", 1)}, verdict: Depends, reason: "private profile it is open"},
		{name: "off everywhere", profiles: []windowsProfile{{name: "Domain"}, {name: "Public"}}, verdict: Open, reason: "off"},
		{name: "off in one", profiles: []windowsProfile{{name: "Domain"}, {name: "Public", on: true}}, verdict: Depends, reason: "domain profile it is open"},
		{name: "everything is let in", profiles: []windowsProfile{{name: "Public", on: true, allow: true}}, verdict: Open},
		{name: "local rules do not count", profiles: []windowsProfile{{name: "Domain", on: true, policyOnly: true}}, rules: []string{ours}, verdict: Closed},
	} {
		t.Run(c.name, func(t *testing.T) {
			check(t, defender(t, c.profiles, c.rules...), []asked{{plan.TCP, 5201, 5201, c.verdict, c.reason}})
		})
	}
	part := defender(t, nil, `v2.10|Action=Allow|Active=TRUE|Dir=In|Protocol=6|LPort2_10=5001-5008|Name=lab|`)
	check(t, part, []asked{{plan.TCP, 5001, 5016, Depends, "some of the ports"}, {plan.TCP, 5001, 5008, Open, ""}})
}

func TestWindowsRules(t *testing.T) {
	f := defender(t, nil,
		`v2.32|Action=Allow|Active=TRUE|Dir=In|App=C:\tools\fullbore.exe|Name=fullbore|`,
		`v2.32|Action=Allow|Active=TRUE|Dir=In|App=C:\tools\fullbore.exe|Name=fullbore-run-5-1700000000|`,
		`v2.32|Action=Block|Active=TRUE|Dir=In|Protocol=6|App=C:\Tools\Fullbore.exe|Name=fullbore.exe|`,
		`v2.32|Action=Block|Active=TRUE|Dir=In|Protocol=17|App=C:\Tools\Fullbore.exe|Name=fullbore.exe|`,
		`v2.32|Action=Allow|Active=TRUE|Dir=In|App=%SystemRoot%\x.exe|Name=@FirewallAPI.dll,-1|`,
		"nonsense",
	)
	var names []string
	for _, r := range f.Rules() {
		names = append(names, r.Name)
	}
	if diff := cmp.Diff([]string{Kept, "fullbore-run-5-1700000000"}, names); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"fullbore.exe"}, f.blocking()); diff != "" {
		t.Error(diff)
	}
	if c := f.Remove("fullbore-run-6-1"); len(c) > 0 {
		t.Errorf("a rule that is not there is removed: %v", c)
	}
	want := []string{"netsh", "advfirewall", "firewall", "delete", "rule", "name=fullbore", "dir=in"}
	if c := f.Remove(Kept); len(c) != 1 {
		t.Errorf("%v", c)
	} else if diff := cmp.Diff(want, c[0].Args); diff != "" {
		t.Error(diff)
	}
	if title := f.Title(); title != "Windows Defender Firewall (domain on, private on, public on)" {
		t.Error(title)
	}
}

package conclude

import (
	"fmt"
	"strings"

	"github.com/fullbore-net/fullbore/result"
)

// MTUText says what was found of one direction: "1400 bytes up (a router says so: 1400)".
func MTUText(p *result.PathMTU) string {
	if p.MTU == nil {
		return fmt.Sprintf("%s nothing passed", p.Direction)
	}
	text := fmt.Sprintf("%d bytes %s", *p.MTU, p.Direction)
	if !p.Exact {
		text = fmt.Sprintf("at least %d bytes %s, not confirmed", *p.MTU, p.Direction)
	}
	switch {
	case p.AtLink:
		text += " (all that the interfaces carry)"
	case p.Told != nil:
		text += fmt.Sprintf(" (a router says so: ICMP \"too big\", %d)", *p.Told)
	case p.BlackHole != nil && *p.BlackHole:
		text += " (a black hole: larger packets vanish, and no ICMP \"too big\" comes)"
	case p.BlackHole == nil:
		text += " (whether a router says so is not known)"
	}
	return text
}

// mtuClause is what single packets of several sizes showed.
func mtuClause(p *result.Probes) string {
	if len(p.MTU) == 0 {
		return fmt.Sprintf("path MTU: none of %s packets was answered", grouped(p.Sent))
	}
	var parts []string
	for i := range p.MTU {
		parts = append(parts, MTUText(&p.MTU[i]))
	}
	return "path MTU " + strings.Join(parts, "; ")
}

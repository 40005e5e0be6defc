package diagnose

import (
	"fmt"
	"strings"

	"github.com/fullbore-net/fullbore/internal/conclude"
	"github.com/fullbore-net/fullbore/result"
)

// Both directions at once: one medium, or one member of a bundle.

// Of what the directions carry alone, both at once carry at most shortShare where they are in
// each other's way, and at least freeShare where they are not.
const (
	shortShare = 0.7
	freeShare  = 0.85
)

// together are both directions of a stage, bit/s; false where one of them, or the processors,
// do not let it tell.
func (c *Case) together(name string) (up, down float64, ok bool) {
	var f [2]*flow
	for i, l := range c.legs() {
		for j := range l.flows {
			if l.flows[j].name == name {
				f[i] = &l.flows[j]
			}
		}
		if f[i] == nil || f[i].run == nil || !f[i].usable() || cpuFirst(f[i]) || serverLimited(f[i]) {
			return 0, 0, false
		}
	}
	if c.loopback() || conclude.SharedCores(f[0].run) && max(f[0].load[0], f[0].load[1], f[1].load[0], f[1].load[1]) > 0.6 {
		return 0, 0, false
	}
	return f[0].rate, f[1].rate, true
}

// shortBothWays reports that a stage carried less both ways than the directions do alone.
func shortBothWays(c *Case, name string) bool {
	up, down := c.Up.best(), c.Down.best()
	u, d, ok := c.together(name)
	return ok && up != nil && down != nil && !serverLimited(up) && !serverLimited(down) && u+d < shortShare*(up.rate+down.rate)
}

// pairs is what single connections each way carried, by their ports.
type pair struct {
	name     string
	ports    string
	up, down float64
	share    float64 // of what single streams carry alone
}

func (c *Case) pairs() (out []pair, alone float64) {
	a, b := c.Up.one(), c.Down.one()
	if a == nil || b == nil || !a.usable() || !b.usable() {
		return nil, 0
	}
	alone = a.rate + b.rate
	for _, d := range c.History {
		if !strings.HasPrefix(d.Step.Name, "both-ports-") {
			continue
		}
		u, w, ok := c.together(d.Step.Name)
		if !ok {
			continue
		}
		p := pair{name: d.Step.Name, up: u, down: w, share: (u + w) / alone}
		var ports []string
		for _, s := range d.Run.Streams {
			ports = append(ports, fmt.Sprint(s.Local.Port))
		}
		p.ports = strings.Join(ports, ", ")
		out = append(out, p)
	}
	return out, alone
}

// pairsFor is how many pairs that are in each other's way it takes to blame one medium for both ways:
// where flows take several ways, two of them meet by chance.
func (c *Case) pairsFor() int {
	if c.Up.spread(c) || c.Down.spread(c) {
		return 4
	}
	return 2
}

// outcomes counts the pairs that were in each other's way, and those that were not.
func outcomes(ps []pair) (short, free int) {
	for _, p := range ps {
		switch {
		case p.share < shortShare:
			short++
		case p.share >= freeShare:
			free++
		}
	}
	return short, free
}

// collision: with some ports one connection each way is as fast as alone, with others not: the
// two share a member of a bundle, or have one each. Never mind the ports: one medium for both.
func collision(c *Case) []result.Verdict {
	ps, alone := c.pairs()
	short, free := outcomes(ps)
	code := ""
	switch {
	case short > 0 && free > 0:
		code = LAGCollision
	case len(ps) >= c.pairsFor() && short == len(ps) && shortBothWays(c, "both-4"):
		code = SharedMedium
	default:
		return nil
	}
	v := draft(code, Proven, nil)
	v.Note, v.Direction = true, "both"
	put(&v, "alone", alone, "bit/s")
	say(&v, "one stream alone: up %s, down %s", rate(c.Up.one().rate), rate(c.Down.one().rate))
	least, most := ps[0].share, ps[0].share
	for _, p := range ps {
		v.Stages = append(v.Stages, p.name)
		least, most = min(least, p.share), max(most, p.share)
		say(&v, "changed: one stream each way at once, from ports %s: up %s, down %s, %s of that", p.ports, rate(p.up), rate(p.down), percent(p.share))
	}
	put(&v, "together", least*alone, "bit/s")
	if code == SharedMedium {
		u, d, _ := c.together("both-4")
		say(&v, "changed: 4 streams each way: up %s, down %s: whatever the ports, both ways share one rate", rate(u), rate(d))
		v.Summary = fmt.Sprintf("Both directions share one rate (%s alone, %s together), whatever the ports: a half-duplex link, or a radio.", rate(max(c.Up.one().rate, c.Down.one().rate)), rate(u+d))
		advise(&v, "look for a hop that runs half duplex, or over the air; a cable, or full duplex on both sides of that hop")
		return []result.Verdict{v}
	}
	put(&v, "together_other", most*alone, "bit/s")
	reach(&v, most*alone)
	v.Summary = fmt.Sprintf("Both ways at once carry %s of what they carry alone from some ports, %s from others: a bundle (LAG, ECMP) puts both directions on one member.", percent(least), percent(most))
	advise(&v, "have the bundle's hash look at ports as well as addresses (xmit_hash_policy layer3+4; the switch's load-balance setting), and check that no member is down or half duplex", "several connections each way spread over the members: fullbore test "+c.target()+" --both -P 8")
	return []result.Verdict{v}
}

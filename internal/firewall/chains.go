package firewall

import (
	"encoding/json"

	"github.com/fullbore-net/fullbore/internal/plan"
)

// Verdict says whether new packets to a port get through a filter.
type Verdict string

// The verdicts. Depends: it hangs on the sender, the interface or on something that this
// package does not read.
const (
	Open    Verdict = "open"
	Closed  Verdict = "closed"
	Depends Verdict = "depends"
)

// Answer is a verdict with its reason.
type Answer struct {
	Verdict Verdict `json:"verdict"`
	Reason  string  `json:"reason"`
}

// tri is what is known about whether a rule takes a packet.
type tri int

const (
	no tri = iota
	maybe
	yes
)

// packet is the first one of a new flow from another host.
type packet struct {
	transport plan.Transport
	port      int
}

// The ends of a rule.
const (
	toAccept = "accept"
	toDrop   = "drop" // rejecting is the same to us
	toJump   = "jump"
	toGoto   = "goto"
	toReturn = "return"
	toMaybe  = "unread" // a verdict that is not read here: it may end either way
	toNone   = ""       // counts, logs: goes on
)

// rule is one line of a chain, of nftables or iptables.
type rule struct {
	name   string // of ours, else ""
	text   string // for people
	match  func(packet) tri
	end    string
	target string // of jump and goto
}

// chains are the rules of one table by chain.
type chains struct {
	rules  map[string][]rule
	policy map[string]string // of base chains
	edges  []int             // the ports that rules name

	sets map[string][]json.RawMessage // nftables' named sets, by @name
}

// depth bounds jumps; the kernel itself allows 16 levels.
const depth = 20

// patience is how many rules are tried for one answer. Real rule sets need some thousands;
// one could be written that has more ways through it than there is time.
const patience = 2_000_000

// judge follows a packet through the base chain, trying at most *left rules.
func (c *chains) judge(base string, p packet, left *int) Answer {
	w := walk{c: c, p: p, left: left}
	if end := w.chain(base, depth); end.Verdict != "" {
		return end
	}
	if c.policy[base] == toAccept {
		return w.finish(Answer{Open, "nothing drops it"})
	}
	return w.finish(Answer{Closed, "the chain's policy is drop, and no rule lets it in"})
}

// filters reports whether anything in the chain, or in those it jumps to, can drop.
func (c *chains) filters(base string) bool {
	if c.policy[base] != toAccept {
		return true
	}
	seen := map[string]bool{}
	var look func(string) bool
	look = func(name string) bool {
		if seen[name] {
			return false
		}
		seen[name] = true
		for _, r := range c.rules[name] {
			switch r.end {
			case toDrop, toMaybe:
				return true
			case toJump, toGoto:
				if look(r.target) {
					return true
				}
			}
		}
		return false
	}
	return look(base)
}

// walk is one packet on its way; what may have ended it before is kept.
type walk struct {
	c                 *chains
	p                 packet
	mayOpen, mayClose string // text of the first rule that may have done so
	left              *int   // rules that may still be tried
}

// chain returns an Answer without verdict when the packet comes out at its end.
func (w *walk) chain(name string, left int) Answer {
	if left == 0 {
		return Answer{Depends, "the chains are nested too deeply to follow"}
	}
	for _, r := range w.c.rules[name] {
		if *w.left--; *w.left < 0 {
			return Answer{Depends, "there are too many rules to follow"}
		}
		m := r.match(w.p)
		if m == no {
			continue
		}
		switch r.end {
		case toAccept, toDrop:
			if m == yes {
				return w.finish(ending(r))
			}
			w.note(r)
		case toMaybe:
			return Answer{Depends, "rule “" + r.text + "” decides in a way that is not read here"}
		case toReturn:
			if m == yes {
				return Answer{}
			}
			return Answer{Depends, "it hangs on rule “" + r.text + "”"}
		case toJump, toGoto:
			if m == maybe {
				w.perhaps(r, left)
				continue
			}
			end := w.chain(r.target, left-1)
			if end.Verdict != "" || r.end == toGoto {
				return end
			}
		}
	}
	return Answer{}
}

// perhaps notes how a chain would end that the packet may or may not be sent to.
func (w *walk) perhaps(r rule, left int) {
	side := walk{c: w.c, p: w.p, left: w.left}
	end := side.chain(r.target, left-1)
	if end.Verdict == Open || end.Verdict == Depends {
		w.mayOpen = first(w.mayOpen, "rule “"+r.text+"”")
	}
	if end.Verdict == Closed || end.Verdict == Depends {
		w.mayClose = first(w.mayClose, "rule “"+r.text+"”")
	}
}

func ending(r rule) Answer {
	reason := "rule “" + r.text + "”"
	if r.name != "" {
		reason = "rule " + r.name
	}
	if r.end == toAccept {
		return Answer{Open, reason}
	}
	return Answer{Closed, reason}
}

func (w *walk) note(r rule) {
	if r.end == toAccept {
		w.mayOpen = first(w.mayOpen, ending(r).Reason)
	} else {
		w.mayClose = first(w.mayClose, ending(r).Reason)
	}
}

func first(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// finish weighs a sure end against what may have come before it.
func (w *walk) finish(a Answer) Answer {
	switch {
	case a.Verdict == Open && w.mayClose != "":
		return Answer{Depends, "it hangs on " + w.mayClose}
	case a.Verdict == Closed && w.mayOpen != "":
		return Answer{Depends, "only what " + w.mayOpen + " lets in"}
	}
	return a
}

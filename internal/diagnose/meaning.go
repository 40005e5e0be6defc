package diagnose

import (
	"fmt"

	"github.com/fullbore-net/fullbore/internal/conclude"
	"github.com/fullbore-net/fullbore/result"
)

// Bytes around an IP packet on Ethernet: header and check sum; preamble, start and gap.
const (
	ethernetL2 = 14 + 4
	ethernetL1 = 20
)

// meaning adds to a full path what it means: the rate as each layer counts it, against what TCP
// can reach at most (M-6349), and how much more the processors of both ends would bear.
func (c *Case) meaning(v *result.Verdict, l *leg, one, best *flow) {
	if best == nil || best.mss <= 0 || best.rate <= 0 {
		return
	}
	packet := best.wire(best.mss)
	l2, l1 := best.rate*(packet+ethernetL2)/best.mss, best.rate*(packet+ethernetL2+ethernetL1)/best.mss
	put(v, "rate_l2", l2, "bit/s")
	put(v, "rate_l1", l1, "bit/s")
	say(v, "the same %s as others count it: %s with IP headers (shapers), %s in Ethernet frames (interface counters), %s on the wire; TCP's payload is at most %.1f %% of a link's speed with these packets",
		rate(best.rate), rate(best.wire(best.rate)), rate(l2), rate(l1), 100*best.mss/(packet+ethernetL2+ethernetL1))
	busy, end := 0.0, result.End("")
	for i, e := range []result.End{l.dir.Sender(), l.dir.Receiver()} {
		if best.load[i] > busy {
			busy, end = best.load[i], e
		}
	}
	if end == "" || busy <= 0.01 || conclude.Loopback(one.run) {
		return
	}
	times := 1 / busy
	put(v, "head_room", times, "")
	text := fmt.Sprintf("%.1f times this rate", times)
	if times >= 10 {
		text = "more than ten times this rate"
	}
	say(v, "the busier end, %s, used %s of one core for its busiest worker: its processor would bear about %s", c.host(end), percent(min(busy, 1)), text)
}

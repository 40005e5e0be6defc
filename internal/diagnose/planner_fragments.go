package diagnose

import (
	"fmt"
	"math"
	"time"

	"github.com/fullbore-net/fullbore/internal/conclude"
	"github.com/fullbore-net/fullbore/internal/method"
	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/result"
)

// What is sent to learn how fragments fare: slow, so that their loss is not of its own making.
const (
	fragmentedSize = 4000 // bytes: a DNS answer's, an NFS or a syslog datagram's order of magnitude
	fragmentedRate = 4e6  // bit/s at most, and half of what TCP reached
	leastDatagrams = 30   // fewer tell nothing
)

// fragments is a slow test with datagrams that no packet of the path can hold, and with leave to
// cut them. It is made where it can decide something: the path takes smaller packets than the
// ends, so programs that go by their interface's MTU are cut, or there is time for everything
// (deep). What whole packets lose on the same way has to be known before.
func (p Planner) fragments(c *Case, l *leg) *method.Step {
	u, b := udpLoss(l), l.best()
	packet, _, narrow := narrowed(l)
	if p.Budget.Name == "quick" || !narrow && p.Budget.Name != "deep" || c.loopback() || u == nil || b == nil || packet == 0 || udpDead(c) {
		return nil
	}
	n, bps, length := max(fragmentedSize, 2*packet), math.Min(fragmentedRate, b.rate/2), max(p.Budget.Short, 2*time.Second)
	if n > plan.MaxUDPBlock || bps/8*length.Seconds() < float64(leastDatagrams*n) {
		return nil
	}
	s := p.stage(l.dir, "frag", fmt.Sprintf("UDP, datagrams of %d bytes in pieces,", n), "does a datagram larger than the path's packets arrive?", length, func(pl *plan.Plan) {
		pl.Transport, pl.Bitrate, pl.RateSet, pl.Congestion, pl.Probe = plan.UDP, int64(bps), true, "", nil
		pl.Send, pl.Receive, pl.RemoteDiscard, pl.Omit = plan.SendCopy, plan.Copy, false, 0
		pl.BlockSize, pl.AllowFragments = n, true
	})
	s.Volume = int64(bps / 8 * length.Seconds())
	return s
}

// narrowed is the largest packet that TCP sends, the MTU of the smaller known interface (0 = not
// known), and whether the path takes less than the ends do.
func narrowed(l *leg) (packet, mtu int, narrow bool) {
	one := l.one()
	if one == nil || !one.usable() || one.mss == 0 {
		return 0, 0, false
	}
	for _, e := range []result.End{result.Client, result.Server} {
		if h := one.run.Hosts.Of(e); h != nil && h.NIC != nil && h.NIC.MTU > 0 && (mtu == 0 || h.NIC.MTU < mtu) {
			mtu = h.NIC.MTU
		}
	}
	packet = int(one.wire(one.mss) + 0.5)
	return packet, mtu, mtu > 0 && packet < mtu-4 && one.run.Test.MSS == 0
}

// pieces is how many packets of the path a datagram of a flow becomes.
func (f *flow) pieces(packet int) int {
	family := 4
	if f.ipv6() {
		family = 6
	}
	return conclude.Pieces(f.run.Test.BlockSize, packet, family)
}

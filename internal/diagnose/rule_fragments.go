package diagnose

import (
	"fmt"
	"math"

	"github.com/fullbore-net/fullbore/internal/conclude"
	"github.com/fullbore-net/fullbore/internal/stats"
	"github.com/fullbore-net/fullbore/result"
)

const (
	// allGone is the share of lost datagrams from which on nothing that is cut arrives; mostThere the
	// share of whole packets that may be lost beside it.
	allGone   = 0.9
	mostThere = 0.5
	leastLost = 5 // fewer may be chance
)

// fragmentation: datagrams larger than the path's packets are cut into pieces, and either the pieces
// do not arrive, or one that is lost takes the others with it. It is a note: TCP cuts its data
// itself, and is not held by it.
func fragmentation(c *Case) (out []result.Verdict) {
	for _, l := range c.legs() {
		f := l.frag
		if f == nil || f.run == nil {
			continue
		}
		cut, whole := conclude.LossOf(f.run, l.dir), udpLoss(l)
		packet, mtu, narrow := narrowed(l)
		if cut == nil || whole == nil || packet == 0 || cut.Sent < leastDatagrams || whole.Sent < leastDatagrams {
			continue
		}
		k := f.pieces(packet)
		lost := cut.Lost
		if cut.Socket != nil {
			lost = max(lost-*cut.Socket, 0) // the receiving program's socket had no room: they had arrived
		}
		ratio := float64(lost) / float64(cut.Sent)
		low, _, ok := stats.ClopperPearson(lost, cut.Sent, 0.95)
		// What whole packets lose, each piece loses, too: so many datagrams are gone by that alone.
		expected, most := 1-math.Pow(1-whole.Ratio, float64(k)), 1-math.Pow(1-whole.High, float64(k))
		gone := ratio >= allGone && whole.Ratio < mostThere
		worse := ok && lost >= leastLost && low > most
		if k < 2 || !gone && !worse && !narrow {
			continue
		}
		v := draft(Fragmentation, Likely, l, l.udp, f)
		v.Note, v.Measured = true, nil
		put(&v, "mtu", float64(packet), "bytes")
		put(&v, "datagram", float64(f.run.Test.BlockSize), "bytes")
		put(&v, "pieces", float64(k), "packets")
		put(&v, "loss", ratio, "ratio")
		put(&v, "loss_whole", whole.Ratio, "ratio")
		if narrow {
			say(&v, "packets are at most %d bytes on this way, the interfaces take %d: what is larger is cut into pieces (fragments)", packet, mtu)
		}
		say(&v, "datagrams that fit one packet: %d of %d lost (%s)", whole.Lost, whole.Sent, percent(whole.Ratio))
		say(&v, "changed: datagrams of %d bytes, %d pieces each: %d of %d lost (%s)", f.run.Test.BlockSize, k, lost, cut.Sent, percent(ratio))
		largest := packet - 28
		if f.ipv6() {
			largest -= 20
		}
		switch {
		case gone:
			v.Certainty = Proven
			v.Summary = fmt.Sprintf("%s: fragments do not arrive: datagrams of more than %d bytes are lost, smaller ones and TCP are not.", c.way(l.dir), largest)
			advise(&v, "let fragments pass where they are dropped: a firewall, an access list, a tunnel or a carrier's network (many do so on purpose); the receiving host's own rules first: nft list ruleset")
		case worse:
			v.Certainty = Proven
			say(&v, "with the loss of whole packets %s would be expected: pieces are lost more often than whole packets are", percent(expected))
			v.Summary = fmt.Sprintf("%s: fragments are lost more often than whole packets: of datagrams of %d bytes %s are lost, of those in one packet %s.", c.way(l.dir), f.run.Test.BlockSize, percent(ratio), percent(whole.Ratio))
			advise(&v, "look for a device that holds fragments back to put them together (a firewall, a NAT), and for its limits; on a receiver with Linux: sysctl net.ipv4.ipfrag_high_thresh net.ipv4.ipfrag_time")
		default:
			say(&v, "with the loss of whole packets %s would be expected: one lost piece loses all %d", percent(expected), k)
			v.Summary = fmt.Sprintf("%s: datagrams of more than %d bytes are cut into pieces on this path; they arrive, but one lost piece loses all, and each costs every router and the receiver more.", c.way(l.dir), largest)
		}
		advise(&v, fmt.Sprintf("have programs send no datagram above %d bytes on this path (DNS: EDNS buffer 1232; NFS: over TCP; tunnels: a smaller MTU inside), or let them find the size themselves (DF)", largest))
		advise(&v, "try it: "+c.again(l.dir, fmt.Sprintf("-u -b 4M -l %d --allow-fragments", f.run.Test.BlockSize)))
		out = append(out, v)
	}
	return out
}
